#include "device/host_timeline.hpp"

#include "base/text.hpp"

namespace wye::inline v0::device {

std::uint64_t HostTimeline::reached() noexcept { return reached_.load(); }

bool HostTimeline::is_known(std::uint64_t value) noexcept {
  if (reached() >= value) return true;
  const base::Lock lock(mutex_);
  return failure_.has_value();
}

Result<void> HostTimeline::wait(std::uint64_t value, Instant until) {
  if (reached() >= value) return {};
  if (until != Instant::min() && base::seen_before_parking([&] { return reached() >= value; })) return {};
  base::Lock lock(mutex_);
  gate_.wait(lock, until, [&] { return reached() >= value || failure_; });
  if (reached() >= value) return {};
  if (failure_) return *failure_;
  return Error(Errc::timed_out,
               base::text("The timeline did not reach the value waited for ({}) in time; its "
                          "value is {}.",
                          value, reached()));
}

Result<void> HostTimeline::signal(std::uint64_t value) {
  if (by_ == SignaledBy::lane)
    return Error(Errc::invalid_argument, "A timeline that a lane signals cannot be signaled by the host.");
  return reach(value);
}

Result<void> HostTimeline::reach(std::uint64_t value) {
  {
    base::Lock lock(mutex_);
    if (failure_) return *failure_;
    if (value <= reached()) return not_larger(value, reached());
    reached_.store(value);
  }
  gate_.wake_all();
  call_back(value, nullptr);
  return {};
}

void HostTimeline::fail(Error error) {
  {
    base::Lock lock(mutex_);
    if (failure_) return;
    failure_ = std::move(error);
    gate_.wake_all();
  }
  arrange_callbacks();
}

std::optional<Error> HostTimeline::failure() const {
  const base::Lock lock(mutex_);
  return failure_;
}

void HostTimeline::arrange_callbacks() noexcept {
  const Error* failure = nullptr;
  {
    const base::Lock lock(mutex_);
    if (failure_) failure = &*failure_;  // it never changes
  }
  call_back(reached(), nullptr);
  if (failure) call_back(no_value, failure);
}

}  // namespace wye::device
