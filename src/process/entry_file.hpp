#pragma once
/// A file of entries that survives the end of its process. For components of wye; not installed.
#include <wye/base/result.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace wye::inline v0::process {

/// Appends entries to a file, each with a checksum. A process that is killed leaves at most a part of
/// its last entry, which the next one removes. Any other damage is an error. Entries survive the end
/// of the process, and after a power cut the last ones may be missing.
/// Threads: one thread at a time; one process at a time, by a lock.
class WYE_API EntryFile {
 public:
  /// Receives an entry; its bytes are valid during the call. An error ends the opening.
  using Each = std::function<Result<void>(std::span<const std::byte> entry)>;
  /// Opens a file, or creates it for a work that `identity` describes, as text. Calls `each` for its
  /// entries, in their order.
  /// Errors: invalid_argument (the file is that of another work, with both descriptions), corrupt (it
  ///         is damaged, or no file of entries), unavailable (another process has it open), io.
  static Result<EntryFile> open(const std::string& path, const std::string& identity, const Each& each);
  EntryFile(EntryFile&&) noexcept;
  EntryFile& operator=(EntryFile&&) = delete;
  ~EntryFile();

  /// Appends an entry that consists of both parts.
  /// Errors: io. The next entry replaces a part of this one.
  Result<void> append(std::span<const std::byte> head, std::span<const std::byte> rest);

 private:
  struct State;
  explicit EntryFile(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

/// Returns a checksum of 128 bits, as 32 hexadecimal digits. It detects damage, and no forgery.
WYE_API std::string checksum_of(std::span<const std::byte> bytes);

}  // namespace wye::process
