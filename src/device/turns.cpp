#include "device/turns.hpp"

#include <algorithm>
#include <utility>

namespace wye {
inline namespace v0 {
namespace device {
namespace {

/// Promises that are kept are taken off the list when somebody waits; where nobody does, when there are as many.
constexpr std::size_t many = 16;

}  // namespace

void Turns::promise(std::uint64_t value, TimelinePoint by) {
  bool full = false;
  {
    const std::lock_guard lock(mutex_);
    full = promises_.size() >= many;
    promises_.push_back({value, std::move(by)});
  }
  if (full) (void)open();
}

bool Turns::open() {
  std::vector<Promise> promises;
  {
    const std::lock_guard lock(mutex_);
    promises = promises_;
  }
  bool open = false;
  for (const Promise& promise : promises) {
    const auto kept = promise.by.timeline->wait(promise.by.value, Instant::min());
    if (!kept && kept.error() == Errc::timed_out) {
      open = true;
    } else if (settle(promise.value, kept ? nullptr : &kept.error()) && !kept &&
               timeline_.reached() < promise.value) {
      if (auto raised = timeline_.signal(promise.value); raised) continue;
      const std::lock_guard lock(mutex_);
      promises_.push_back(promise);  // it is tried again
      open = true;
    }
  }
  return open;
}

bool Turns::settle(std::uint64_t value, const Error* why) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(promises_.begin(), promises_.end(),
                                  [&](const Promise& promise) { return promise.value == value; });
  if (found == promises_.end()) return false;
  promises_.erase(found);
  // Before the timeline is raised: who is woken by that finds it.
  if (why) broken_.push_back({value, *why});
  return true;
}

std::optional<Error> Turns::broken(std::uint64_t value) const {
  const std::lock_guard lock(mutex_);
  for (const Broken& one : broken_)
    if (one.value == value) return one.why;
  return std::nullopt;
}

}  // namespace device
}  // namespace v0
}  // namespace wye
