#pragma once
/// Memory, locks and signals that processes of one user share.
#include <wye/base/bytes.hpp>
#include <wye/base/clock.hpp>
#include <wye/base/result.hpp>

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/descriptor.hpp"

namespace wye::inline v0::base {

/// Identifies a process of this machine.
struct ProcessId {
  std::int32_t number = 0;
  std::uint64_t start =
      0;  ///< ticks since the machine started; 0: unknown. A later process with the number differs.
  std::uint64_t numbers = 0;  ///< the namespace of `number`; 0: unknown
  friend bool operator==(const ProcessId&, const ProcessId&) = default;

  static ProcessId own() noexcept;
  /// Returns true if the process has certainly ended. The number of a process in another namespace
  /// tells nothing.
  /// Cost:    3 system calls.
  bool has_ended() const noexcept;
};

/// Creates a directory as `make_private_directory`, and refuses a symbolic link. Returns its path;
/// empty `path`: "/dev/shm/wye-<user>".
/// Errors: io, naming the path and the reason.
Result<std::string> make_shared_directory(std::string path);

/// A file of this user that is mapped into the memory of several processes. Its places are locks,
/// numbered from 0: the system releases them when the process ends. Children of `fork` have the
/// file open too, so that a lock that its owner did not release ends with the last of them.
/// Threads: thread-safe. Threads that use one SharedFile do not exclude each other by its places.
class SharedFile {
 public:
  /// Opens a file, or creates an empty one. Refuses a symbolic link, a file of another user, and a
  /// file to which other users may write.
  /// Errors: io, naming the path and the reason.
  static Result<SharedFile> open(const std::string& path);
  SharedFile(SharedFile&& other) noexcept;
  SharedFile& operator=(SharedFile&& other) = delete;
  /// Unmaps and closes. Does not release the places that a child of `fork` has, too.
  ~SharedFile();

  const std::string& path() const noexcept { return path_; }
  Result<Bytes> size() const;
  /// Reads up to `piece.size()` bytes at `offset`. Returns the number of bytes read.
  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> piece) const;
  /// Writes, so that the system has memory for these bytes.
  Result<void> write(std::uint64_t offset, std::span<const std::byte> piece);
  /// Maps the first `size` bytes, which the file must have, until the end of this object.
  Result<std::byte*> map(Bytes size);
  /// Returns false if the path names another file, or none.
  bool is_named() const noexcept;
  /// Removes the file, if its path names it. Its mapping stays.
  void remove() noexcept;

  /// Locks a place. Returns false if another process, or another SharedFile, has it locked.
  bool try_lock(std::uint64_t place) noexcept { return set_lock(place, true) == 0; }
  /// Locks a place, and waits until `until` for it. Tries every 1 ms, because the system has no
  /// wait with a time limit. Returns false if the time has passed.
  /// Errors: io (the file system has no such locks).
  Result<bool> lock(std::uint64_t place, Instant until);
  void unlock(std::uint64_t place) noexcept { (void)set_lock(place, false); }
  /// Returns whether another process, or another SharedFile, has one of the places locked.
  bool is_any_locked(std::uint64_t first, std::uint64_t count) const noexcept;

 private:
  SharedFile(Descriptor descriptor, std::string path) noexcept
      : descriptor_(std::move(descriptor)), path_(std::move(path)) {}
  /// Returns 0 or the error's number.
  int set_lock(std::uint64_t place, bool locked) noexcept;
  Descriptor descriptor_;
  std::string path_;
  std::span<std::byte> mapped_;
};

/// Memory that a process shares with processes that it starts. It has no name in a file system, and
/// its size cannot change: a process cannot take it away from another one. Zero at first.
/// Threads: thread-compatible.
class SharedBlock {
 public:
  /// Allocates all its memory, so that a later write cannot fail for lack of it.
  /// Errors: out_of_memory, unavailable (no descriptor is free), with the system's message.
  static Result<SharedBlock> create(Bytes size);
  /// Maps the block that another process has created. Programs that this process starts do not
  /// inherit the descriptor.
  /// Errors: invalid_argument (the descriptor is that of another kind of object), out_of_memory.
  static Result<SharedBlock> map(Descriptor descriptor);
  SharedBlock(SharedBlock&& other) noexcept;
  SharedBlock& operator=(SharedBlock&& other) = delete;
  ~SharedBlock();

  std::span<std::byte> bytes() const noexcept { return mapped_; }
  int descriptor() const noexcept { return descriptor_.number(); }

 private:
  SharedBlock(Descriptor descriptor, std::span<std::byte> mapped) noexcept
      : descriptor_(std::move(descriptor)), mapped_(mapped) {}
  static Result<SharedBlock> map(Descriptor descriptor, Bytes size);
  Descriptor descriptor_;
  std::span<std::byte> mapped_;
};

/// A mutex in memory that processes share. If its owner ends, the next thread gets it: the
/// protected data must be valid after each single write.
/// Threads: thread-safe.
class SharedMutex {
 public:
  /// Prepares a mutex in memory that no process uses yet. Returns false if the system has none.
  bool initialize() noexcept;
  /// Locks, and waits `most` for that. Returns false if the mutex stays locked, because its owner
  /// is stopped for example.
  /// Cost:    50 ns if it is free.
  bool lock(Duration most) noexcept;
  void unlock() noexcept;

 private:
  pthread_mutex_t mutex_;
};

/// Parks the thread until `word`, in memory that processes share, differs from `seen` or `until`
/// passes. May return earlier.
void await_change(const std::atomic<std::uint32_t>& word, std::uint32_t seen, Instant until) noexcept;
/// Changes `word` and wakes the threads that `await_change`, in all processes.
void signal_change(std::atomic<std::uint32_t>& word) noexcept;

}  // namespace wye::base
