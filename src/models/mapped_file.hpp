#pragma once
#include <wye/base/result.hpp>

#include <cstddef>
#include <span>
#include <string>

namespace wye::inline v0::models {

/// A file in memory, read when it is used. The memory is private: writes to it change no file. If
/// another process shortens the file meanwhile, a read beyond its end ends this process by SIGBUS.
/// Threads: thread-compatible.
class MappedFile {
 public:
  /// Errors: not_found, io, invalid_argument (`path` is no regular file).
  static Result<MappedFile> open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();
  std::span<std::byte> bytes() const noexcept { return bytes_; }

 private:
  explicit MappedFile(std::span<std::byte> bytes) noexcept : bytes_(bytes) {}
  std::span<std::byte> bytes_;
};

}  // namespace wye::models
