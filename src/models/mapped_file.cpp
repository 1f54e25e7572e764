#include "mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

namespace wye::inline v0::models {
namespace {

Error failed(const char* call, const std::string& path, int number) {
  const Errc code = number == ENOENT || number == ENOTDIR ? Errc::not_found : Errc::io;
  char text[128];
  const char* const said = ::strerror_r(number, text, sizeof text);  // of glibc: it may not use `text`
  return Error(code, "File '" + path + "' cannot be read: " + said + ".",
               NativeError{call, number, ::strerrorname_np(number)});
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe would block
  if (file < 0) return failed("open", path, errno);
  struct stat about {};
  const int looked = ::fstat(file, &about);
  const int number = errno;
  void* memory = nullptr;
  const auto size = looked == 0 ? static_cast<std::uint64_t>(about.st_size) : 0;
  if (looked == 0 && S_ISREG(about.st_mode) && size > 0)
    memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
  const int refused = errno;
  ::close(file);
  if (looked != 0) return failed("fstat", path, number);
  if (!S_ISREG(about.st_mode)) return Error(Errc::invalid_argument, "'" + path + "' is no regular file.");
  if (memory == MAP_FAILED) return failed("mmap", path, refused);
  return MappedFile({static_cast<std::byte*>(memory), size});
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}
MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

}  // namespace wye::models
