#include "base/shared_memory.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <climits>
#include <cstring>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/file.hpp"
#include "base/host_info.hpp"
#include "base/text.hpp"
#include "base/write_signals.hpp"

namespace wye::inline v0::base {
namespace {

Error failed(const std::string& path, std::string_view cannot, const char* api, int number) {
  return Error(
      Errc::io,
      text("Shared file '{}' cannot be {}: {}.", path, cannot, std::generic_category().message(number)),
      NativeError{api, number, ""});
}

struct flock places(std::uint64_t first, std::uint64_t count, short kind) {
  struct flock range {};
  range.l_type = kind;
  range.l_whence = SEEK_SET;
  range.l_start = static_cast<off_t>(first);
  range.l_len = static_cast<off_t>(count);
  return range;
}

/// The parts of /proc/<number>/stat that tell processes apart.
struct ProcessState {
  char state = 0;  ///< 0: unknown
  std::uint64_t threads = 0;
  std::uint64_t start = 0;
};

ProcessState process_state(std::int32_t number) noexcept {
  std::array<char, 32> path{};
  const auto end = std::to_chars(path.data() + 6, path.data() + 20, number);
  std::memcpy(path.data(), "/proc/", 6);
  std::memcpy(end.ptr, "/stat", 6);
  const Descriptor file(uninterrupted([&] { return ::open(path.data(), O_RDONLY | O_CLOEXEC); }));
  std::array<char, 1024> content{};
  const ssize_t size =
      file ? uninterrupted([&] { return ::read(file.number(), content.data(), content.size()); }) : -1;
  if (size <= 0) return {};
  // "<number> (<name>) <state> <field 4> ...": the name may contain anything.
  std::string_view rest(content.data(), static_cast<std::size_t>(size));
  rest.remove_prefix(std::min(rest.rfind(')'), rest.size()));
  constexpr int state_field = 3, threads_field = 20, start_field = 22;
  ProcessState found;
  for (int field = state_field - 1; !rest.empty(); ++field) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
    const auto number_in = [&](std::uint64_t& out) {
      std::from_chars(word.data(), word.data() + word.size(), out);
    };
    if (field == state_field) found.state = word.empty() ? '\0' : word.front();
    if (field == threads_field) number_in(found.threads);
    if (field == start_field) return number_in(found.start), found;
  }
  return {};
}

std::uint64_t own_numbers() noexcept {
  struct stat status {};
  return ::stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

}  // namespace

ProcessId ProcessId::own() noexcept {
  const auto number = static_cast<std::int32_t>(::getpid());
  return {.number = number, .start = process_state(number).start, .numbers = own_numbers()};
}

bool ProcessId::has_ended() const noexcept {
  if (start == 0 || numbers == 0 || numbers != own_numbers()) return false;
  if (::kill(number, 0) != 0 && errno == ESRCH) return true;
  const ProcessState now = process_state(number);
  if (now.state == 0) return false;  // it may be hidden
  const bool is_zombie = (now.state == 'Z' || now.state == 'X') && now.threads <= 1;
  return now.start != start || is_zombie;
}

Result<std::string> make_shared_directory(std::string path) {
  if (path.empty()) path = text("/dev/shm/wye-{}", ::geteuid());
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode))
    return Error(Errc::io, text("Shared directory '{}' is a symbolic link.", path));
  if (auto made = make_private_directory(path); !made) return std::move(made).error();
  return path;
}

Result<SharedFile> SharedFile::open(const std::string& path) {
  Descriptor file(uninterrupted(
      [&] { return ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600); }));
  if (!file && errno == ELOOP) return Error(Errc::io, text("Shared file '{}' is a symbolic link.", path));
  if (!file) return failed(path, "opened", "open", errno);
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) return failed(path, "opened", "fstat", errno);
  if (!S_ISREG(status.st_mode)) return Error(Errc::io, text("Shared file '{}' is not a regular file.", path));
  if (status.st_uid != ::geteuid())
    return Error(Errc::io, text("Shared file '{}' belongs to user {}; this process runs as user {}.", path,
                                status.st_uid, ::geteuid()));
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return Error(Errc::io, text("Shared file '{}' has mode {:04o}: other users may write to it.", path,
                                status.st_mode & 07777));
  return SharedFile(std::move(file), path);
}

SharedFile::SharedFile(SharedFile&& other) noexcept
    : descriptor_(std::move(other.descriptor_)),
      path_(std::move(other.path_)),
      mapped_(std::exchange(other.mapped_, {})) {}

SharedFile::~SharedFile() {
  if (!mapped_.empty()) ::munmap(mapped_.data(), mapped_.size());
}

Result<Bytes> SharedFile::size() const {
  struct stat status {};
  if (::fstat(descriptor_.number(), &status) != 0) return failed(path_, "read", "fstat", errno);
  return Bytes{static_cast<std::uint64_t>(status.st_size)};
}

Result<std::size_t> SharedFile::read(std::uint64_t offset, std::span<std::byte> piece) const {
  std::size_t done = 0;
  while (done < piece.size()) {
    const ssize_t got = uninterrupted([&] {
      return ::pread(descriptor_.number(), piece.data() + done, piece.size() - done,
                     static_cast<off_t>(offset + done));
    });
    if (got < 0) return failed(path_, "read", "pread", errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

Result<void> SharedFile::write(std::uint64_t offset, std::span<const std::byte> piece) {
  const WriteSignalsBlocked blocked;
  while (!piece.empty()) {
    const ssize_t written = uninterrupted([&] {
      return ::pwrite(descriptor_.number(), piece.data(), piece.size(), static_cast<off_t>(offset));
    });
    if (written < 0) return failed(path_, "written", "pwrite", errno);
    piece = piece.subspan(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
  return {};
}

Result<std::byte*> SharedFile::map(Bytes size) {
  void* const memory =
      ::mmap(nullptr, size.count, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_.number(), 0);
  if (memory == MAP_FAILED) return failed(path_, "mapped", "mmap", errno);
  mapped_ = {static_cast<std::byte*>(memory), size.count};
  return mapped_.data();
}

bool SharedFile::is_named() const noexcept {
  struct stat own {
  }, named{};
  return ::fstat(descriptor_.number(), &own) == 0 && ::lstat(path_.c_str(), &named) == 0 &&
         own.st_dev == named.st_dev && own.st_ino == named.st_ino;
}

void SharedFile::remove() noexcept {
  if (is_named()) ::unlink(path_.c_str());
}

int SharedFile::set_lock(std::uint64_t place, bool locked) noexcept {
  struct flock range = places(place, 1, locked ? F_WRLCK : F_UNLCK);
  return uninterrupted([&] { return ::fcntl(descriptor_.number(), F_OFD_SETLK, &range); }) == 0 ? 0 : errno;
}

Result<bool> SharedFile::lock(std::uint64_t place, Instant until) {
  for (;;) {
    const int number = set_lock(place, true);
    if (number == 0) return true;
    if (number != EAGAIN && number != EACCES) return failed(path_, "locked", "fcntl", number);
    if (Clock::steady().now() >= until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

bool SharedFile::is_any_locked(std::uint64_t first, std::uint64_t count) const noexcept {
  struct flock range = places(first, count, F_WRLCK);
  const bool told = uninterrupted([&] { return ::fcntl(descriptor_.number(), F_OFD_GETLK, &range); }) == 0;
  return !told || range.l_type != F_UNLCK;
}

Result<SharedBlock> SharedBlock::create(Bytes size) {
  const auto refused = [&](const char* call, int number, Errc code) {
    return Error(code,
                 text("Shared memory ({}) could not be allocated: {}.", to_string(size),
                      std::generic_category().message(number)),
                 NativeError{call, number, ""});
  };
  // The system would first end other processes to find the memory.
  if (const Bytes available = available_memory(); size > available)
    return Error(Errc::out_of_memory,
                 text("Shared memory ({}) exceeds the memory that the system has available ({}).",
                      to_string(size), to_string(available)));
  Descriptor descriptor(::memfd_create("wye", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!descriptor) return refused("memfd_create", errno, Errc::unavailable);
  {
    const WriteSignalsBlocked blocked;
    const int number = ::posix_fallocate(descriptor.number(), 0, static_cast<off_t>(size.count));
    if (number != 0) return refused("posix_fallocate", number, Errc::out_of_memory);
  }
  if (::fcntl(descriptor.number(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return refused("fcntl", errno, Errc::unavailable);
  return map(std::move(descriptor), size);
}

Result<SharedBlock> SharedBlock::map(Descriptor descriptor) {
  ::fcntl(descriptor.number(), F_SETFD, FD_CLOEXEC);
  struct stat status {};
  if (::fstat(descriptor.number(), &status) != 0 || status.st_size <= 0)
    return Error(Errc::invalid_argument,
                 text("Descriptor {} is that of no shared memory.", descriptor.number()));
  return map(std::move(descriptor), Bytes{static_cast<std::uint64_t>(status.st_size)});
}

Result<SharedBlock> SharedBlock::map(Descriptor descriptor, Bytes size) {
  void* const memory =
      ::mmap(nullptr, size.count, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor.number(), 0);
  if (memory == MAP_FAILED)
    return Error(Errc::out_of_memory,
                 text("Shared memory ({}) could not be mapped: {}.", to_string(size),
                      std::generic_category().message(errno)),
                 NativeError{"mmap", errno, ""});
  return SharedBlock(std::move(descriptor), {static_cast<std::byte*>(memory), size.count});
}

SharedBlock::SharedBlock(SharedBlock&& other) noexcept
    : descriptor_(std::move(other.descriptor_)), mapped_(std::exchange(other.mapped_, {})) {}

SharedBlock::~SharedBlock() {
  if (!mapped_.empty()) ::munmap(mapped_.data(), mapped_.size());
}

bool SharedMutex::initialize() noexcept {
  pthread_mutexattr_t attributes;
  if (::pthread_mutexattr_init(&attributes) != 0) return false;
  const bool made = ::pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED) == 0 &&
                    ::pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) == 0 &&
                    ::pthread_mutex_init(&mutex_, &attributes) == 0;
  ::pthread_mutexattr_destroy(&attributes);
  return made;
}

bool SharedMutex::lock(Duration most) noexcept {
  int result = ::pthread_mutex_trylock(&mutex_);
  if (result == EBUSY) {
    timespec until{};
    ::clock_gettime(CLOCK_REALTIME, &until);
    const auto end = std::chrono::nanoseconds(until.tv_nsec) + most;
    const auto full_seconds = std::chrono::floor<std::chrono::seconds>(end);
    until.tv_sec += full_seconds.count();
    until.tv_nsec = (end - full_seconds).count();
    result = ::pthread_mutex_timedlock(&mutex_, &until);
  }
  if (result == EOWNERDEAD) result = ::pthread_mutex_consistent(&mutex_);
  return result == 0;
}

void SharedMutex::unlock() noexcept { ::pthread_mutex_unlock(&mutex_); }

void await_change(const std::atomic<std::uint32_t>& word, std::uint32_t seen, Instant until) noexcept {
  static_assert(sizeof(word) == sizeof(std::uint32_t) && std::atomic<std::uint32_t>::is_always_lock_free);
  timespec rest{};
  if (until != Instant::max()) {
    const Duration left = std::max(until - Clock::steady().now(), Duration::zero());
    const auto full_seconds = std::chrono::floor<std::chrono::seconds>(left);
    rest.tv_sec = full_seconds.count();
    rest.tv_nsec = std::chrono::nanoseconds(left - full_seconds).count();
  }
  ::syscall(SYS_futex, &word, FUTEX_WAIT, seen, until == Instant::max() ? nullptr : &rest, nullptr, 0);
}

void signal_change(std::atomic<std::uint32_t>& word) noexcept {
  word.fetch_add(1);
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace wye::base
