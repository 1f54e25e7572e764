#include "base/file.hpp"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "base/descriptor.hpp"
#include "base/text.hpp"
#include "base/write_signals.hpp"

namespace wye::inline v0::base {
namespace {

/// Returns "File 'x' cannot be opened: Permission denied."
Error refused(std::string_view what, const std::string& path, std::string_view cannot, const char* api,
              int number, Place place = Place::here()) {
#ifdef __GLIBC__
  const char* symbol = ::strerrorname_np(number);
#else
  const char* symbol = nullptr;
#endif
  return Error(Errc::io,
               text("{} '{}' cannot be {}: {}.", what, path, cannot, std::generic_category().message(number)),
               NativeError{api, number, symbol ? symbol : ""}, place);
}

/// An open file, closed on destruction.
class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  File(const File&) = delete;  // two owners would close it twice
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  explicit operator bool() const { return descriptor_ >= 0; }
  int get() const { return descriptor_; }
  int release() { return std::exchange(descriptor_, -1); }
  /// Closes the file. Returns 0 or the error's number.
  int close() { return ::close(std::exchange(descriptor_, -1)) == 0 || errno == EINTR ? 0 : errno; }

 private:
  int descriptor_;
};

int open_for_reading(const std::string& path, int flags) {
  return uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags); });
}

/// Writes `content` completely. Returns 0 or the error's number.
int write_all(int descriptor, std::span<const std::byte> content) {
  const WriteSignalsBlocked blocked;
  while (!content.empty()) {
    const ssize_t written =
        uninterrupted([&] { return ::write(descriptor, content.data(), content.size()); });
    if (written < 0) return errno;
    content = content.subspan(static_cast<std::size_t>(written));
  }
  return 0;
}

Duration since_epoch(const timespec& time) {
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

Duration calendar() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return since_epoch(now);
}

/// Locks or unlocks one byte of an open file. Returns 0 or the error's number. The lock belongs to
/// the open file and not to the process, so threads exclude each other as processes do.
int set_lock(int descriptor, std::uint64_t place, short kind) {
  struct flock range {};
  range.l_type = kind;
  range.l_whence = SEEK_SET;
  range.l_start = static_cast<off_t>(place);
  range.l_len = 1;
  return uninterrupted([&] { return ::fcntl(descriptor, F_OFD_SETLK, &range); }) == 0 ? 0 : errno;
}

}  // namespace

Result<std::optional<std::vector<std::byte>>> read_file(const std::string& path, Bytes at_most) {
  const File file(open_for_reading(path, O_NONBLOCK));  // a pipe of that name must not block
  if (!file) {
    if (errno == ENOENT || errno == ENOTDIR) return std::optional<std::vector<std::byte>>();
    return refused("File", path, "opened", "open", errno);
  }
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return refused("File", path, "read", "fstat", errno);
  if (!S_ISREG(status.st_mode)) return Error(Errc::io, text("'{}' is not a regular file.", path));

  const Bytes size{static_cast<std::uint64_t>(status.st_size)};
  if (size > at_most) {
    return Error(Errc::out_of_memory, text("The size of file '{}' ({}) exceeds the limit of this read ({}).",
                                           path, to_string(size), to_string(at_most)));
  }
  std::vector<std::byte> content(size.count);
  std::size_t done = 0;
  while (done < content.size()) {
    const ssize_t got = uninterrupted([&] {
      return ::pread(file.get(), content.data() + done, content.size() - done, static_cast<off_t>(done));
    });
    if (got < 0) return refused("File", path, "read", "pread", errno);
    if (got == 0) break;  // the file was truncated meanwhile
    done += static_cast<std::size_t>(got);
  }
  content.resize(done);
  return std::optional(std::move(content));
}

Result<void> write_file(const std::string& path, std::span<const std::byte> content, Durability durability) {
  const std::size_t slash = path.rfind('/');
  const std::size_t name_at = slash == path.npos ? 0 : slash + 1;
  std::string beside = path.substr(0, name_at) + "." + path.substr(name_at) + ".XXXXXX.tmp";
  File file(::mkostemps(beside.data(), 4, O_CLOEXEC));  // creates it with mode 0600
  if (!file) return refused("File", path, "written", "mkostemps", errno);

  const char* api = "write";
  int number = write_all(file.get(), content);
  if (number == 0 && durability == Durability::power_cut) {
    api = "fsync";
    number = ::fsync(file.get()) == 0 ? 0 : errno;
  }
  if (number == 0) {
    api = "close";
    number = file.close();
  }
  if (number == 0) {
    api = "rename";
    number = ::rename(beside.c_str(), path.c_str()) == 0 ? 0 : errno;
  }
  if (number != 0) {
    ::unlink(beside.c_str());
    return refused("File", path, "written", api, number);
  }
  if (durability == Durability::process) return {};
  // The directory stores the file's name.
  const std::string folder = slash == path.npos ? "." : path.substr(0, name_at);
  const File directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory || ::fsync(directory.get()) != 0)
    return refused("Directory", folder, "synchronized", directory ? "fsync" : "open", errno);
  return {};
}

Result<void> remove_file(const std::string& path) {
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return {};
  return refused("File", path, "removed", "unlink", errno);
}

Result<void> make_private_directory(const std::string& path) {
  for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string parent = path.substr(0, slash);
    if (::mkdir(parent.c_str(), 0700) != 0 && errno != EEXIST) {
      const int number = errno;
      struct stat status {};  // an existing parent may be read-only or foreign
      if (::stat(parent.c_str(), &status) != 0) {
        return refused("Directory", parent, "created", "mkdir", number);
      }
    }
    if (slash == path.npos) break;
  }
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return refused("Directory", path, "opened", "stat", errno);
  if (!S_ISDIR(status.st_mode)) return Error(Errc::io, text("'{}' is not a directory.", path));
  if (status.st_uid != ::geteuid()) {
    return Error(Errc::io, text("Directory '{}' belongs to user {}; this process runs as user {}.", path,
                                status.st_uid, ::geteuid()));
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Error(Errc::io, text("Directory '{}' has mode {:04o}: other users may write to it.", path,
                                status.st_mode & 07777));
  }
  return {};
}

Result<std::vector<std::string>> list_directory(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), ::closedir);
  if (!directory) return refused("Directory", path, "opened", "opendir", errno);
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(directory.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  if (errno != 0) return refused("Directory", path, "read", "readdir", errno);
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::vector<FileEntry>> list_files(const std::string& path) {
  std::vector<FileEntry> files;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), ::closedir);
  if (!directory) {
    if (errno == ENOENT) return files;
    return refused("Directory", path, "opened", "opendir", errno);
  }
  const Duration now = calendar();
  errno = 0;
  while (const dirent* entry = ::readdir(directory.get())) {
    struct stat status {};
    if (::fstatat(::dirfd(directory.get()), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(status.st_mode)) {
      const Duration changed = since_epoch(status.st_mtim);
      files.push_back({entry->d_name, Bytes{static_cast<std::uint64_t>(status.st_size)}, status.st_ino,
                       changed, now - changed});
    }
    errno = 0;  // an entry that was removed meanwhile is left out
  }
  if (errno != 0) return refused("Directory", path, "read", "readdir", errno);
  return files;
}

Result<bool> remove_unchanged(const std::string& path, const FileEntry& seen) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return false;
    return refused("File", path, "removed", "lstat", errno);
  }
  if (status.st_ino != seen.number || since_epoch(status.st_mtim) != seen.changed ||
      static_cast<std::uint64_t>(status.st_size) != seen.bytes.count)
    return false;
  if (::unlink(path.c_str()) == 0) return true;
  if (errno == ENOENT) return false;
  return refused("File", path, "removed", "unlink", errno);
}

Result<void> freshen(const std::string& path, Duration older_than) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return refused("File", path, "freshened", "stat", errno);
  if (calendar() - since_epoch(status.st_mtim) < older_than) return {};
  const timespec times[2] = {{0, UTIME_OMIT}, {0, UTIME_NOW}};
  if (::utimensat(AT_FDCWD, path.c_str(), times, 0) != 0)
    return refused("File", path, "freshened", "utimensat", errno);
  return {};
}

Result<RandomFile> RandomFile::open(const std::string& path, For use) {
  const int flags = use == For::writing ? O_RDWR | O_CREAT | O_NOFOLLOW : O_RDONLY;
  File file(uninterrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK, 0600); }));
  if (!file && errno == ENOENT && use == For::reading)
    return Error(Errc::not_found, text("There is no file '{}'.", path));
  if (!file) return refused("File", path, "opened", "open", errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return refused("File", path, "opened", "fstat", errno);
  if (!S_ISREG(status.st_mode)) return Error(Errc::io, text("'{}' is not a regular file.", path));
  return RandomFile(file.release(), path);
}

RandomFile::RandomFile(RandomFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}

RandomFile& RandomFile::operator=(RandomFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(path_, other.path_);
  return *this;
}

RandomFile::~RandomFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<Bytes> RandomFile::size() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) return refused("File", path_, "read", "fstat", errno);
  return Bytes{static_cast<std::uint64_t>(status.st_size)};
}

Result<std::size_t> RandomFile::read(std::uint64_t offset, std::span<std::byte> piece) const {
  std::size_t done = 0;
  while (done < piece.size()) {
    const ssize_t got = uninterrupted([&] {
      return ::pread(descriptor_, piece.data() + done, piece.size() - done,
                     static_cast<off_t>(offset + done));
    });
    if (got < 0) return refused("File", path_, "read", "pread", errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

Result<void> RandomFile::write(std::uint64_t offset, std::span<const std::byte> piece) {
  const WriteSignalsBlocked blocked;
  while (!piece.empty()) {
    const ssize_t written = uninterrupted(
        [&] { return ::pwrite(descriptor_, piece.data(), piece.size(), static_cast<off_t>(offset)); });
    if (written < 0) return refused("File", path_, "written", "pwrite", errno);
    piece = piece.subspan(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
  return {};
}

Result<void> RandomFile::resize(Bytes size) {
  const WriteSignalsBlocked blocked;
  if (uninterrupted([&] { return ::ftruncate(descriptor_, static_cast<off_t>(size.count)); }) != 0)
    return refused("File", path_, "written", "ftruncate", errno);
  return {};
}

Result<std::optional<FileLock>> FileLock::acquire(const std::string& path, std::uint64_t place, Instant until,
                                                  const Clock& clock) {
  File file(uninterrupted(
      [&] { return ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600); }));
  if (!file) return refused("File", path, "opened", "open", errno);
  using namespace std::chrono_literals;
  Duration pause = 1ms;
  for (;;) {
    const int number = set_lock(file.get(), place, F_WRLCK);
    if (number == 0) return std::optional(FileLock(file.release(), place));
    if (number != EAGAIN && number != EACCES) return refused("File", path, "locked", "fcntl", number);
    const Instant now = clock.now();
    if (until <= now) return std::optional<FileLock>();
    std::this_thread::sleep_for(std::min<Duration>(pause, until - now));
    pause = std::min<Duration>(pause * 3 / 2, 20ms);
  }
}

FileLock::FileLock(FileLock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), place_(other.place_), origin_(other.origin_) {}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(place_, other.place_);
  std::swap(origin_, other.origin_);
  return *this;
}

FileLock::~FileLock() {
  if (descriptor_ < 0) return;
  // Closing is not enough, because a child of `fork` has the file open, too. The child must not
  // release its parent's lock.
  if (!origin_.is_inherited()) (void)set_lock(descriptor_, place_, F_UNLCK);
  ::close(descriptor_);
}

std::string path_of(const void* symbol) {
  Dl_info info{};
  link_map* map = nullptr;
  const bool found = ::dladdr1(symbol, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) != 0;
  // The loader knows the program itself only by the name under which it was started.
  const bool in_program = !found || !map || !map->l_name || *map->l_name == '\0';
  const std::unique_ptr<char, void (*)(void*)> path(
      ::realpath(in_program ? "/proc/self/exe" : map->l_name, nullptr), ::free);
  return path ? path.get() : "";
}

std::string own_path() { return path_of(reinterpret_cast<const void*>(&own_path)); }

}  // namespace wye::base
