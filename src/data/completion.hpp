#pragma once
/// Something that will be over: a job, or a host's turn with an array. Users of an array follow each other by
/// it.
#include <wye/base/clock.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
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
  /// One entry in the list of what runs at the end. Its owner keeps it at its address until it has run.
  struct Link {
    void (*over)(void* of) noexcept = nullptr;
    void* of = nullptr;
    Link* next = nullptr;
  };

  bool over() const noexcept {
    const base::Lock lock(mutex_);
    return over_;
  }
  /// Parks until it is over or `until` (of the steady clock); whether it is over.
  bool await(Instant until) const {
    base::Lock lock(mutex_);
    return gate_.wait(lock, until, [&] { return over_; });
  }
  /// Calls `link` once when it is over, on the thread that ends it; at once if it is. Allocates nothing.
  void when_over(Link& link) noexcept {
    {
      const base::Lock lock(mutex_);
      if (!over_) {
        *last_ = &link;
        last_ = &link.next;
        return;
      }
    }
    link.over(link.of);
  }
  /// Ends it. Without effect the second time.
  void finish() noexcept {
    Link* link = nullptr;
    {
      const base::Lock lock(mutex_);
      if (over_) return;
      over_ = true;
      link = first_;
      gate_.wake_all();  // under the lock: a waiter may free this as soon as it sees `over_`
    }
    while (link) {
      Link* const next = link->next;  // a call may end the owner of its link
      link->over(link->of);
      link = next;
    }
  }

 private:
  mutable std::mutex mutex_;
  mutable base::Gate gate_;
  bool over_ = false;
  Link* first_ = nullptr;
  Link** last_ = &first_;
};

/// The completions that a user of arrays comes after. All memory is allocated by `reserve`: nothing fails after that.
/// Threads: one thread at a time; `when_all_over` calls on the thread that ends the last one.
class Predecessors {
 public:
  Predecessors() = default;
  Predecessors(const Predecessors&) = delete;  // completions point into it

  bool empty() const noexcept { return all_.empty(); }
  /// Makes room for `n` more.
  void reserve(std::size_t n) {
    if (all_.capacity() - all_.size() < n) all_.reserve(std::max(all_.size() + n, all_.capacity() * 2));
  }
  /// Adds a completion; the caller has reserved room for it.
  void add(std::shared_ptr<Completion> one) noexcept { all_.push_back({std::move(one), {}}); }
  /// Parks until all are over or `until`; whether all are.
  bool await(Instant until) const {
    return std::all_of(all_.begin(), all_.end(),
                       [&](const Entry& entry) { return entry.before->await(until); });
  }
  /// Calls `then` once when all are over; at once if they are. `then` may end this.
  void when_all_over(void (*then)(void* of) noexcept, void* of) noexcept {
    then_ = then;
    of_ = of;
    left_ = all_.size() + 1;  // one is for the loop, which must not outlive this
    for (Entry& entry : all_) {
      entry.link = {&Predecessors::count_down, this, nullptr};
      entry.before->when_over(entry.link);
    }
    count_down(this);
  }
  void clear() noexcept { all_.clear(); }

 private:
  struct Entry {
    std::shared_ptr<Completion> before;
    Completion::Link link;
  };
  static void count_down(void* of) noexcept {
    auto& self = *static_cast<Predecessors*>(of);
    if (self.left_.fetch_sub(1) == 1) self.then_(self.of_);
  }

  std::vector<Entry> all_;
  std::atomic<std::size_t> left_{0};
  void (*then_)(void* of) noexcept = nullptr;
  void* of_ = nullptr;
};

}  // namespace data
}  // namespace v0
}  // namespace wye
