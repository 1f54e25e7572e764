#pragma once
/// Files of records.
#include <wye/base/result.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace wye::inline v0::records {

/// A file of known length.
/// Threads: thread-compatible.
class WholeFile {
 public:
  /// Errors: not_found, io (also if it is no regular file).
  static Result<WholeFile> open(const std::string& path);
  /// Creates a file, or opens one, and sets its length.
  /// Errors: io (also if the length exceeds the limit of this process).
  static Result<WholeFile> create(const std::string& path, std::uint64_t length);
  WholeFile(WholeFile&& other) noexcept;
  WholeFile& operator=(WholeFile&&) = delete;
  ~WholeFile();

  std::uint64_t length() const noexcept { return length_; }
  /// Describes the state of the file: "1600 bytes, changed 1790000000.123456789".
  std::string identity() const;
  /// Returns whether `path` names this file.
  bool is_named(const std::string& path) const noexcept;
  /// Reads at `offset`. Fails if the file has become shorter.
  Result<void> read(std::uint64_t offset, std::span<std::byte> to) const;
  Result<void> write(std::uint64_t offset, std::span<const std::byte> from);

 private:
  WholeFile(int descriptor, std::string path, std::uint64_t length)
      : descriptor_(descriptor), path_(std::move(path)), length_(length) {}
  int descriptor_;
  std::string path_;
  std::uint64_t length_;
};

}  // namespace wye::records
