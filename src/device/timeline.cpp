#include "device/timeline.hpp"

#include <algorithm>
#include <utility>

#include "base/cancellation.hpp"
#include "base/text.hpp"
#include "device/device.hpp"

namespace wye::inline v0::device {
namespace {

/// Constructed by `when`: the destructor of a timeline may have no memory for it.
const Error& ended() {
  static const Error error(Errc::closed, "The timeline has ended before it reached the value waited for.");
  return error;
}

void call(const TimelineCallback& callback, const Error* failure) noexcept {
  const base::CancellationHeld held;
  try {
    callback(failure);
  } catch (...) {  // dropped: see `Timeline::when`
  }
}

}  // namespace

Timeline::~Timeline() {
  if (first_callback() != no_value && !origin_.is_inherited()) call_back(no_value, &ended());
}

Result<void> Timeline::when(std::uint64_t value, TimelineCallback callback) {
  const Error* known = origin_.error();
  if (!known && owner()) known = owner()->lost();
  if (known || (!is_foreign() && reached() >= value)) return call(callback, known), Result<void>();
  (void)ended();
  if (auto prepared = prepare_callbacks(); !prepared) return prepared;
  {
    const std::lock_guard lock(callbacks_mutex_);
    callbacks_.push_back({std::min(value, no_value - 1), ++callbacks_made_, std::move(callback)});
    std::push_heap(callbacks_.begin(), callbacks_.end());
    first_callback_.store(callbacks_.front().value);
  }
  arrange_callbacks();
  return {};
}

bool Timeline::call_back(std::uint64_t value, const Error* failure) noexcept {
  bool any = false;
  // Takes one callback at a time: a list of them would need memory.
  while (first_callback() <= std::min(value, no_value - 1)) {
    TimelineCallback callback;
    {
      const std::lock_guard lock(callbacks_mutex_);
      if (callbacks_.empty() || callbacks_.front().value > value) continue;
      std::pop_heap(callbacks_.begin(), callbacks_.end());
      callback = std::move(callbacks_.back().callback);
      callbacks_.pop_back();
      first_callback_.store(callbacks_.empty() ? no_value : callbacks_.front().value);
    }
    call(callback, failure);
    any = true;
  }
  return any;
}

bool Timeline::drop_callbacks() noexcept {
  std::vector<Pending> dropped;
  {
    const std::lock_guard lock(callbacks_mutex_);
    dropped.swap(callbacks_);
    first_callback_.store(no_value);
  }
  end_callbacks();
  return !dropped.empty();
}

Error not_larger(std::uint64_t value, std::uint64_t reached) {
  return Error(Errc::invalid_argument,
               base::text("A timeline only increases: the new value ({}) is not larger than its value ({}).",
                          value, reached));
}

}  // namespace wye::device
