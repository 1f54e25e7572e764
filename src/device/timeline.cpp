#include "device/timeline.hpp"

#include "base/text.hpp"

namespace wye {
inline namespace v0 {
namespace device {

Timeline::~Timeline() = default;

Error not_larger(std::uint64_t value, std::uint64_t reached) {
  return Error(Errc::invalid_argument,
               base::text("A timeline only grows: the new value ({}) is not larger than the one it has ({}).",
                          value, reached));
}

}  // namespace device
}  // namespace v0
}  // namespace wye
