#include "device/memory_account.hpp"

#include <algorithm>

#include "base/sizes.hpp"
#include "base/text.hpp"

namespace wye {
inline namespace v0 {
namespace device {

Result<void> MemoryAccount::reserve(Bytes bytes) {
  std::uint64_t held = held_.load(std::memory_order_relaxed);
  do {
    if (held > limit_ || bytes.count > limit_ - held) {
      const base::Sizes size(bytes, Bytes{limit_ - std::min(held, limit_)});
      return Error(Errc::over_budget,
                   base::text("Allocation ({}) exceeds what is left of the budget of '{}' ({} held of {}).",
                              size(bytes), owner_, size(Bytes{held}), size(Bytes{limit_})));
    }
  } while (!held_.compare_exchange_weak(held, held + bytes.count, std::memory_order_relaxed));
  return {};
}

}  // namespace device
}  // namespace v0
}  // namespace wye
