#pragma once
/// Files and directories: every call of the file system that the library makes.
#include <wye/base/bytes.hpp>
#include <wye/base/clock.hpp>
#include <wye/base/result.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/process.hpp"

namespace wye {
inline namespace v0 {
namespace base {

/// Reads a whole file; nothing where there is none.
/// Errors: io; out_of_memory where it is larger than `at_most`.
Result<std::optional<std::vector<std::byte>>> read_file(const std::string& path,
                                                        Bytes at_most = Bytes{~0ull});

/// What a file outlasts.
enum class Durability : std::uint8_t {
  process,    ///< the end of who wrote it; after a power cut it may be empty
  power_cut,  ///< who writes waits for the disk
};

/// Writes a file whole or not at all: to a temporary one beside it, ".<name>.<random>.tmp", then renamed. A
/// process that dies meanwhile leaves the temporary one. Owner-only permissions.
/// Errors: io.
Result<void> write_file(const std::string& path, std::span<const std::byte> content,
                        Durability durability = Durability::process);

/// Removes a file; no error where there is none.
Result<void> remove_file(const std::string& path);

/// Makes a directory and its parents with owner-only permissions. A directory that others own or may write to
/// is refused: what is read from it becomes code.
/// Errors: io, naming the path and the reason.
Result<void> make_private_directory(const std::string& path);

/// Names of the entries of a directory, sorted.
/// Errors: io.
Result<std::vector<std::string>> list_directory(const std::string& path);

/// A regular file as its directory shows it.
struct FileEntry {
  std::string name;
  Bytes bytes;
  std::uint64_t number = 0;  ///< the file system's own; another file of this name has another one
  Duration changed{};        ///< when its content last changed or was freshened, by the system's calendar
  Duration age{};            ///< since then; negative where it says a time to come
};

/// The regular files in a directory, in no order; none where there is no directory.
/// Errors: io.
/// Cost:    some 4 us for each.
Result<std::vector<FileEntry>> list_files(const std::string& path);

/// Removes a file that is still what `seen` says: one that was replaced or freshened meanwhile stays. A
/// replacement in the microsecond between the look and the removal goes with it.
/// Errors: io; false where it stays or was gone.
Result<bool> remove_unchanged(const std::string& path, const FileEntry& seen);

/// Makes a file's time of change now, where that is `older_than` or more ago. Its time of access is left alone.
/// Errors: io.
Result<void> freshen(const std::string& path, Duration older_than);

/// An open file that is read and written in pieces.
/// Threads: thread-safe; pieces that overlap are not ordered.
class RandomFile {
 public:
  enum class For : std::uint8_t {
    reading,
    writing,  ///< and reading; it is made, for its owner only, where there is none
  };
  /// Errors: io, also where it is no regular file; not_found where there is none to read.
  static Result<RandomFile> open(const std::string& path, For use);
  RandomFile(RandomFile&& other) noexcept;
  RandomFile& operator=(RandomFile&& other) noexcept;
  ~RandomFile();

  Result<Bytes> size() const;
  /// Reads up to `piece.size()` bytes at `offset`; says how many there were.
  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> piece) const;
  Result<void> write(std::uint64_t offset, std::span<const std::byte> piece);
  /// Leaves nothing in it.
  Result<void> clear();

 private:
  RandomFile(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}
  int descriptor_;
  std::string path_;
};

/// A place in a file that one holder has at a time, among the threads of all processes. Its end gives it
/// back, and so does the end of its process, however that comes. A child of `fork` does not hold its parent's lock:
/// the copy in the child gives nothing back. If the parent dies, its lock ends with the last such child.
class FileLock {
 public:
  /// Waits for `place`, a number below 2^63, of the file `path`, which is made where there is none; nothing
  /// where another one still holds it at `until` of the steady clock (`Instant{}`: does not wait).
  /// Errors: io, also where the file system has no locks.
  /// Cost:    2 us where it is free. The system cannot wait for it with a time limit: who waits looks again
  ///          every 1 to 20 ms.
  static Result<std::optional<FileLock>> acquire(const std::string& path, std::uint64_t place, Instant until);

  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock();

 private:
  FileLock(int descriptor, std::uint64_t place) : descriptor_(descriptor), place_(place) {}
  int descriptor_;
  std::uint64_t place_;
  Origin origin_;
};

/// The absolute path of the shared object or program that has `symbol` in it; empty where the system does not
/// say.
std::string path_of(const void* symbol);
/// The one that this library is linked into.
std::string own_path();

}  // namespace base
}  // namespace v0
}  // namespace wye
