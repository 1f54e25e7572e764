#include "base/descriptor.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "base/text.hpp"

namespace wye::inline v0::base {

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    if (number_ >= 0) ::close(number_);
    number_ = other.release();
  }
  return *this;
}

Descriptor::~Descriptor() {
  if (number_ >= 0) ::close(number_);
}

std::optional<std::string> descriptor_shortage(unsigned count) {
  std::vector<Descriptor> open;
  open.reserve(count);
  while (open.size() < count) {
    open.emplace_back(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (open.back()) continue;
    rlimit limit{};
    if (errno == ENFILE) return "the system has reached its limit of open files";
    if (errno != EMFILE || ::getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
    return text("the process has reached its limit of open files ({})", limit.rlim_cur);
  }
  return std::nullopt;
}

}  // namespace wye::base
