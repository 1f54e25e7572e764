#include <wye/base/clock.hpp>

#include <new>

namespace wye {
inline namespace v0 {
namespace {

class SteadyClock final : public Clock {
 public:
  Instant now() const noexcept override { return std::chrono::steady_clock::now(); }
};

}  // namespace

Clock::~Clock() = default;

const Clock& Clock::steady() noexcept {
  // Never destroyed, so that objects destroyed after `main` can still read it.
  alignas(SteadyClock) static std::byte storage[sizeof(SteadyClock)];
  static const Clock& clock = *new (storage) SteadyClock;
  return clock;
}

Instant ManualClock::now() const noexcept { return Instant(Duration(nanoseconds_.load())); }

void ManualClock::advance(Duration by) noexcept { nanoseconds_.fetch_add(by.count()); }

}  // namespace v0
}  // namespace wye
