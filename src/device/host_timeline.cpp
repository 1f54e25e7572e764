#include "device/host_timeline.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace wye {
inline namespace v0 {
namespace device {

std::uint64_t HostTimeline::reached() noexcept { return reached_.load(std::memory_order_acquire); }

Result<void> HostTimeline::wait(std::uint64_t value, Instant until) {
  if (reached() >= value) return {};
  if (until != Instant::min() && base::seen_before_parking([&] { return reached() >= value; })) return {};
  base::Lock lock(mutex_);
  gate_.wait(lock, until, [&] { return reached() >= value || failure_; });
  if (reached() >= value) return {};
  if (failure_) return *failure_;
  return Error(Errc::timed_out, base::text("The value waited for ({}) was not reached in time ({} so far).",
                                           value, reached()));
}

Result<void> HostTimeline::signal(std::uint64_t value) {
  if (by_ == MovedBy::lane)
    return Error(Errc::invalid_argument, "A timeline that a lane moves cannot be moved by the host.");
  return reach(value);
}

Result<void> HostTimeline::reach(std::uint64_t value) {
  std::vector<Watcher> due;
  {
    base::Lock lock(mutex_);
    if (failure_) return *failure_;
    if (value <= reached()) return not_larger(value, reached());
    const auto rest =
        std::partition(watchers_.begin(), watchers_.end(), [&](const Watcher& w) { return w.value > value; });
    due.assign(std::make_move_iterator(rest), std::make_move_iterator(watchers_.end()));
    watchers_.erase(rest, watchers_.end());
    reached_.store(value, std::memory_order_release);
  }
  gate_.wake_all();
  for (Watcher& watcher : due) watcher.then();
  return {};
}

void HostTimeline::fail(Error error) {
  std::vector<Watcher> due;
  {
    base::Lock lock(mutex_);
    if (failure_) return;
    failure_ = std::move(error);
    due.swap(watchers_);
    gate_.wake_all();
  }
  for (Watcher& watcher : due) watcher.then();
}

std::optional<Error> HostTimeline::failure() const {
  const base::Lock lock(mutex_);
  return failure_;
}

void HostTimeline::when(std::uint64_t value, std::function<void()> then) {
  {
    base::Lock lock(mutex_);
    if (reached() < value && !failure_) {
      watchers_.push_back({value, std::move(then)});
      return;
    }
  }
  then();
}

}  // namespace device
}  // namespace v0
}  // namespace wye
