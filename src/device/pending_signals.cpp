#include "device/pending_signals.hpp"

#include <algorithm>
#include <utility>

namespace wye::inline v0::device {
namespace {

/// `any_pending` removes signals that were made. `add` calls it when there are as many as this.
constexpr std::size_t many = 16;

}  // namespace

void PendingSignals::add(std::uint64_t value, TimelinePoint by) {
  bool full = false;
  {
    const std::lock_guard lock(mutex_);
    full = signals_.size() >= many;
    signals_.push_back({value, std::move(by)});
  }
  if (full) (void)any_pending();
}

bool PendingSignals::any_pending() {
  std::vector<Signal> signals;
  {
    const std::lock_guard lock(mutex_);
    signals = signals_;
  }
  bool pending = false;
  for (const Signal& signal : signals) {
    const auto made = signal.by.timeline->wait(signal.by.value, Instant::min());
    if (!made && made.error() == Errc::timed_out) {
      pending = true;
    } else if (remove(signal.value, made ? nullptr : &made.error()) && !made &&
               timeline_.reached() < signal.value) {
      if (auto raised = timeline_.signal(signal.value); raised) continue;
      const std::lock_guard lock(mutex_);
      signals_.push_back(signal);  // the next poll tries again
      pending = true;
    }
  }
  return pending;
}

bool PendingSignals::remove(std::uint64_t value, const Error* failure) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(signals_.begin(), signals_.end(),
                                  [&](const Signal& signal) { return signal.value == value; });
  if (found == signals_.end()) return false;
  signals_.erase(found);
  // Before the timeline is signaled: the threads that the signal wakes find the failure.
  if (failure) failed_.push_back({value, *failure});
  return true;
}

std::optional<Error> PendingSignals::failure_of(std::uint64_t value) const {
  const std::lock_guard lock(mutex_);
  for (const Failed& one : failed_)
    if (one.value == value) return one.failure;
  return std::nullopt;
}

}  // namespace wye::device
