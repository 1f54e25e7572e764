#pragma once
/// Something that will be over: a job, or a host's turn with an array. Users of an array follow each other by
/// it.
#include <wye/base/clock.hpp>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/gate.hpp"

namespace wye {
inline namespace v0 {
namespace data {

/// Threads: thread-safe.
class Completion {
 public:
  bool over() const noexcept {
    const base::Lock lock(mutex_);
    return over_;
  }
  /// Parks until it is over or `until` (of the steady clock); whether it is over.
  bool await(Instant until) const {
    base::Lock lock(mutex_);
    return gate_.wait(lock, until, [&] { return over_; });
  }
  /// Calls `then` once when it is over, on the thread that ends it; at once where it is.
  void when_over(std::function<void()> then) {
    {
      const base::Lock lock(mutex_);
      if (!over_) return thens_.push_back(std::move(then));
    }
    then();
  }
  /// Ends it. Without effect the second time.
  void finish() {
    std::vector<std::function<void()>> thens;
    {
      const base::Lock lock(mutex_);
      if (over_) return;
      over_ = true;
      thens.swap(thens_);
      gate_.wake_all();  // under the lock: a waiter may free this as soon as it sees `over_`
    }
    for (auto& then : thens) then();
  }

 private:
  mutable std::mutex mutex_;
  mutable base::Gate gate_;
  bool over_ = false;
  std::vector<std::function<void()>> thens_;
};

/// Ends `turn` once all of `before` are over: who gives up a turn it has not had yet still keeps its followers behind
/// those it followed.
inline void finish_after(const std::shared_ptr<Completion>& turn,
                         const std::vector<std::shared_ptr<Completion>>& before) {
  if (before.empty()) return turn->finish();
  auto left = std::make_shared<std::atomic<std::size_t>>(before.size());
  for (const auto& one : before)
    one->when_over([left, turn] {
      if (left->fetch_sub(1) == 1) turn->finish();
    });
}

}  // namespace data
}  // namespace v0
}  // namespace wye
