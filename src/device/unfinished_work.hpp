#pragma once
/// The work of lanes that ended before the device completed it.
#include <memory>
#include <mutex>
#include <utility>

namespace wye::inline v0::device {

/// Keeps `Work` until the device has completed it: memory that a device may still use is not freed.
/// `Work` has `std::unique_ptr<Work> next` and `bool has_ended() noexcept`, which never blocks.
/// Threads: thread-safe.
template <class Work>
class UnfinishedWork {
 public:
  void add(std::unique_ptr<Work> work) noexcept {
    const std::lock_guard lock(mutex_);
    work->next = std::exchange(first_, nullptr);
    first_ = std::move(work);
  }
  /// Destroys all work that the device has completed.
  void collect() noexcept {
    std::unique_ptr<Work> rest;
    {
      const std::lock_guard lock(mutex_);
      rest = std::move(first_);
    }
    while (rest) {
      std::unique_ptr<Work> work = std::exchange(rest, nullptr);
      rest = std::move(work->next);
      if (!work->has_ended()) add(std::move(work));
    }
  }

 private:
  std::mutex mutex_;
  std::unique_ptr<Work> first_;
};

}  // namespace wye::device
