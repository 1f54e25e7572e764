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

namespace wye::inline v0::base {

/// Reads a whole file. Returns nothing if it does not exist.
/// Errors: io; out_of_memory if it is larger than `at_most`.
Result<std::optional<std::vector<std::byte>>> read_file(const std::string& path,
                                                        Bytes at_most = Bytes{~0ull});

/// The event that a written file survives.
enum class Durability : std::uint8_t {
  process,    ///< the end of the writing process; after a power cut the file may be empty
  power_cut,  ///< a power cut: the writer waits for the disk
};

/// Writes a file completely or not at all: writes the temporary file ".<name>.<random>.tmp" beside
/// it and renames that. A process that dies meanwhile leaves the temporary file. Permissions are
/// owner-only.
/// Errors: io.
Result<void> write_file(const std::string& path, std::span<const std::byte> content,
                        Durability durability = Durability::process);

/// Removes a file. A missing file is no error.
Result<void> remove_file(const std::string& path);

/// Creates a directory and its parents with owner-only permissions. Refuses a directory that other
/// users own or may write to, because bytes read from it become code.
/// Errors: io, naming the path and the reason.
Result<void> make_private_directory(const std::string& path);

/// Returns the sorted names of the entries of a directory.
/// Errors: io.
Result<std::vector<std::string>> list_directory(const std::string& path);

/// A regular file in a listing of its directory.
struct FileEntry {
  std::string name;
  Bytes bytes;
  std::uint64_t number = 0;  ///< of the file system; a file that replaces this one has another number
  Duration changed{};        ///< the time of the last change or `freshen`, by the system's calendar
  Duration age{};            ///< since then; negative if that time lies in the future
};

/// Returns the regular files of a directory, in no order. Empty if the directory does not exist.
/// Errors: io.
/// Cost:    about 4 us for each file.
Result<std::vector<FileEntry>> list_files(const std::string& path);

/// Removes a file unless it was replaced or freshened since it was `seen`. A replacement in the
/// microsecond between the check and the removal is removed. Returns false if the file stays or did
/// not exist.
/// Errors: io.
Result<bool> remove_unchanged(const std::string& path, const FileEntry& seen);

/// Sets a file's time of change to now if it is at least `older_than` ago. Leaves its time of
/// access unchanged.
/// Errors: io.
Result<void> freshen(const std::string& path, Duration older_than);

/// An open file for reads and writes at offsets.
/// Threads: thread-safe; overlapping accesses are not ordered.
class RandomFile {
 public:
  enum class For : std::uint8_t {
    reading,
    writing,  ///< and reading; a missing file is created with owner-only permissions
  };
  /// Errors: io, also if it is no regular file; not_found if there is no file to read.
  static Result<RandomFile> open(const std::string& path, For use);
  RandomFile(RandomFile&& other) noexcept;
  RandomFile& operator=(RandomFile&& other) noexcept;
  ~RandomFile();

  Result<Bytes> size() const;
  /// Reads up to `piece.size()` bytes at `offset`. Returns the number of bytes read.
  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> piece) const;
  Result<void> write(std::uint64_t offset, std::span<const std::byte> piece);
  /// Removes all content.
  Result<void> clear() { return resize(Bytes{0}); }
  /// Cuts the content, or adds zeros.
  Result<void> resize(Bytes size);

 private:
  RandomFile(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}
  int descriptor_;
  std::string path_;
};

/// An exclusive lock of one place in a file, among the threads of all processes. Its destruction
/// and any end of its process release it. A child of `fork` does not hold its parent's lock, and
/// the copy in the child releases nothing. If the parent dies, its lock ends with the last such
/// child.
class FileLock {
 public:
  /// Locks `place`, a number below 2^63, of the file `path`. Creates a missing file. Waits until
  /// `clock` shows `until` (`Instant{}`: does not wait); returns nothing if the place is still
  /// locked then.
  /// Errors: io, also if the file system has no locks.
  /// Cost:    2 us if the place is free. The system has no wait with a time limit: the caller tries
  ///          again every 1 to 20 ms.
  static Result<std::optional<FileLock>> acquire(const std::string& path, std::uint64_t place, Instant until,
                                                 const Clock& clock = Clock::steady());

  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock();

 private:
  FileLock(int descriptor, std::uint64_t place) : descriptor_(descriptor), place_(place) {}
  int descriptor_;
  std::uint64_t place_;
  Origin origin_;
};

/// Returns the absolute path of the shared object or program that contains `symbol`. Empty if the
/// system does not report it.
std::string path_of(const void* symbol);
/// Returns the absolute path of the shared object or program that this library is linked into.
std::string own_path();

}  // namespace wye::base
