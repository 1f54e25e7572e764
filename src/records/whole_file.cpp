#include "whole_file.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

#include "text.hpp"

namespace wye::inline v0::records {
namespace {

Error failed(const std::string& path, std::string_view cannot, const char* call, int number) {
  return Error(
      number == ENOENT ? Errc::not_found : Errc::io,
      text("File '", path, "' cannot be ", cannot, ": ", std::generic_category().message(number), "."),
      NativeError{call, number, ""});
}

/// Repeats `call` until no signal interrupts it.
template <class Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

}  // namespace

WholeFile::WholeFile(WholeFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      path_(std::move(other.path_)),
      length_(other.length_) {}

WholeFile::~WholeFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<WholeFile> WholeFile::open(const std::string& path) {
  // A pipe without a writer would block.
  const int descriptor =
      uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); });
  if (descriptor < 0) return failed(path, "read", "open", errno);
  WholeFile file(descriptor, path, 0);
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) return failed(path, "read", "fstat", errno);
  if (!S_ISREG(status.st_mode)) return Error(Errc::io, text("File '", path, "' is no regular file."));
  file.length_ = static_cast<std::uint64_t>(status.st_size);
  return file;
}

Result<WholeFile> WholeFile::create(const std::string& path, std::uint64_t length) {
  rlimit limit{};
  // A write beyond the limit would end the process by a signal.
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && length > limit.rlim_cur)
    return Error(Errc::io, text("File '", path, "' of ", length, " bytes exceeds the limit of this process (",
                                static_cast<std::uint64_t>(limit.rlim_cur), " bytes)."));
  const int descriptor = uninterrupted(
      [&] { return ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, S_IRUSR | S_IWUSR); });
  if (descriptor < 0) return failed(path, "written", "open", errno);
  WholeFile file(descriptor, path, length);
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) return failed(path, "written", "fstat", errno);
  if (!S_ISREG(status.st_mode)) return Error(Errc::io, text("File '", path, "' is no regular file."));
  if (uninterrupted([&] { return ::ftruncate(descriptor, static_cast<off_t>(length)); }) != 0)
    return failed(path, "written", "ftruncate", errno);
  return file;
}

std::string WholeFile::identity() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) return "unknown";
  std::string nanoseconds = std::to_string(status.st_mtim.tv_nsec);
  nanoseconds.insert(0, 9 - nanoseconds.size(), '0');
  return text(length_, " bytes, changed ", static_cast<std::int64_t>(status.st_mtim.tv_sec), ".",
              nanoseconds);
}

bool WholeFile::is_named(const std::string& path) const noexcept {
  struct stat own {
  }, named{};
  return ::fstat(descriptor_, &own) == 0 && ::stat(path.c_str(), &named) == 0 && own.st_dev == named.st_dev &&
         own.st_ino == named.st_ino;
}

Result<void> WholeFile::read(std::uint64_t offset, std::span<std::byte> to) const {
  while (!to.empty()) {
    const ssize_t got =
        uninterrupted([&] { return ::pread(descriptor_, to.data(), to.size(), static_cast<off_t>(offset)); });
    if (got < 0) return failed(path_, "read", "pread", errno);
    if (got == 0)
      return Error(Errc::io, text("File '", path_, "' has become shorter than ", length_, " bytes."));
    to = to.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
  return {};
}

Result<void> WholeFile::write(std::uint64_t offset, std::span<const std::byte> from) {
  while (!from.empty()) {
    const ssize_t written = uninterrupted(
        [&] { return ::pwrite(descriptor_, from.data(), from.size(), static_cast<off_t>(offset)); });
    if (written < 0) return failed(path_, "written", "pwrite", errno);
    from = from.subspan(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
  return {};
}

}  // namespace wye::records
