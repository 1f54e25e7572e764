#include "base/file.hpp"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <memory>
#include <system_error>
#include <utility>

#include "base/text.hpp"

namespace wye {
inline namespace v0 {
namespace base {
namespace {

/// "File 'x' cannot be opened: Permission denied."
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

/// An open file, closed when it ends.
class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  File(const File&) = delete;  // two owners would close it twice
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  explicit operator bool() const { return descriptor_ >= 0; }
  int get() const { return descriptor_; }
  /// Closes now; 0 or the error's number.
  int close() { return ::close(std::exchange(descriptor_, -1)) == 0 || errno == EINTR ? 0 : errno; }

 private:
  int descriptor_;
};

/// Calls `call` until no signal interrupts it.
template <class Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

int open_for_reading(const std::string& path, int flags) {
  return uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags); });
}

/// Writes all of it; 0 or the error's number.
int write_all(int descriptor, std::span<const std::byte> content) {
  while (!content.empty()) {
    const ssize_t written =
        uninterrupted([&] { return ::write(descriptor, content.data(), content.size()); });
    if (written < 0) return errno;
    content = content.subspan(static_cast<std::size_t>(written));
  }
  return 0;
}

}  // namespace

Result<std::optional<std::vector<std::byte>>> read_file(const std::string& path, Bytes at_most) {
  const File file(open_for_reading(path, O_NONBLOCK));  // a pipe of that name must not hold us up
  if (!file) {
    if (errno == ENOENT || errno == ENOTDIR) return std::optional<std::vector<std::byte>>();
    return refused("File", path, "opened", "open", errno);
  }
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return refused("File", path, "read", "fstat", errno);
  if (!S_ISREG(status.st_mode)) return Error(Errc::io, text("'{}' is not a regular file.", path));

  const Bytes size{static_cast<std::uint64_t>(status.st_size)};
  if (size > at_most) {
    return Error(Errc::out_of_memory, text("The size of file '{}' ({}) exceeds what may be read of it ({}).",
                                           path, to_string(size), to_string(at_most)));
  }
  std::vector<std::byte> content(size.count);
  std::size_t done = 0;
  while (done < content.size()) {
    const ssize_t got = uninterrupted([&] {
      return ::pread(file.get(), content.data() + done, content.size() - done, static_cast<off_t>(done));
    });
    if (got < 0) return refused("File", path, "read", "pread", errno);
    if (got == 0) break;  // somebody made it shorter meanwhile
    done += static_cast<std::size_t>(got);
  }
  content.resize(done);
  return std::optional(std::move(content));
}

Result<void> write_file(const std::string& path, std::span<const std::byte> content) {
  const std::size_t slash = path.rfind('/');
  const std::size_t name_at = slash == path.npos ? 0 : slash + 1;
  std::string beside = path.substr(0, name_at) + "." + path.substr(name_at) + ".XXXXXX.tmp";
  File file(::mkostemps(beside.data(), 4, O_CLOEXEC));  // makes it with mode 0600
  if (!file) return refused("File", path, "written", "mkostemps", errno);

  const char* api = "write";
  int number = write_all(file.get(), content);
  if (number == 0) {
    api = "close";
    number = file.close();
  }
  if (number == 0) {
    api = "rename";
    number = ::rename(beside.c_str(), path.c_str()) == 0 ? 0 : errno;
  }
  if (number == 0) return {};
  ::unlink(beside.c_str());
  return refused("File", path, "written", api, number);
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
      struct stat status {};  // a read-only or foreign parent that is there is fine
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
    return Error(Errc::io, text("Directory '{}' belongs to user {}, not to user {} who runs this process.",
                                path, status.st_uid, ::geteuid()));
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

std::string own_path() {
  Dl_info info{};
  link_map* map = nullptr;
  const bool found = ::dladdr1(reinterpret_cast<const void*>(&own_path), &info,
                               reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) != 0;
  // The loader knows the program itself only by what it was called as.
  const bool in_program = !found || !map || !map->l_name || *map->l_name == '\0';
  const std::unique_ptr<char, void (*)(void*)> path(
      ::realpath(in_program ? "/proc/self/exe" : map->l_name, nullptr), ::free);
  return path ? path.get() : "";
}

}  // namespace base
}  // namespace v0
}  // namespace wye
