#include "base/descriptor.hpp"

#include <unistd.h>

namespace wye {
inline namespace v0 {
namespace base {

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

}  // namespace base
}  // namespace v0
}  // namespace wye
