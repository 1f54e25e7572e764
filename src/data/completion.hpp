#pragma once
/// The completion of one user of an array: a job, or an access of the host. It lets users of an
/// array follow each other.
#include <wye/base/clock.hpp>
#include <wye/device/detail/inline_list.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>

#include "base/gate.hpp"

namespace wye::inline v0::data {

/// Threads: thread-safe.
class Completion {
 public:
  /// One entry in the list of calls to make on completion. Its owner keeps it at its address until
  /// the call.
  struct Link {
    void (*call)(void* object) noexcept = nullptr;
    void* object = nullptr;
    Link* next = nullptr;
  };

  bool is_complete() const noexcept {
    const base::Lock lock(mutex_);
    return complete_;
  }
  /// Waits until it is complete, at most until `until` (of the steady clock). Returns whether it is
  /// complete.
  bool wait(Instant until) const {
    base::Lock lock(mutex_);
    return gate_.wait(lock, until, [&] { return complete_; });
  }
  /// Calls `link` once on completion, on the completing thread; at once if it is complete.
  /// Allocates nothing.
  void when_complete(Link& link) noexcept {
    {
      const base::Lock lock(mutex_);
      if (!complete_) {
        *last_ = &link;
        last_ = &link.next;
        return;
      }
    }
    link.call(link.object);
  }
  /// Completes it. A second call has no effect.
  void complete() noexcept {
    Link* link = nullptr;
    {
      const base::Lock lock(mutex_);
      if (complete_) return;
      complete_ = true;
      link = first_;
      gate_.wake_all();  // under the lock: a waiter may free this as soon as it reads `complete_`
    }
    while (link) {
      Link* const next = link->next;  // the call may free its link
      link->call(link->object);
      link = next;
    }
  }

 private:
  mutable std::mutex mutex_;
  mutable base::Gate gate_;
  bool complete_ = false;
  Link* first_ = nullptr;
  Link** last_ = &first_;
};

/// The completions that a user of arrays follows. `reserve` allocates all memory, so later calls
/// cannot fail.
/// Threads: one thread at a time; `when_all_complete` calls on the thread that completes the last
///          one.
class Predecessors {
 public:
  Predecessors() = default;
  Predecessors(const Predecessors&) = delete;  // completions point into it

  bool empty() const noexcept { return all_.empty(); }
  /// Reserves memory for `n` more.
  void reserve(std::size_t n) { all_.reserve(all_.size() + n); }
  /// Adds a completion. The caller has reserved memory for it.
  void add(std::shared_ptr<Completion> one) noexcept { all_.push_back({std::move(one), {}}); }
  /// Waits until all are complete, at most until `until`. Returns whether all are.
  bool wait(Instant until) const {
    return std::all_of(all_.begin(), all_.end(),
                       [&](const Entry& entry) { return entry.completion->wait(until); });
  }
  /// Calls `call` once when all are complete; at once if they are. `call` may free this.
  void when_all_complete(void (*call)(void* object) noexcept, void* object) noexcept {
    call_ = call;
    object_ = object;
    left_ = all_.size() + 1;  // one for the loop: this must exist until the loop ends
    for (Entry& entry : all_) {
      entry.link = {&Predecessors::count_down, this, nullptr};
      entry.completion->when_complete(entry.link);
    }
    count_down(this);
  }
  void clear() noexcept { all_.clear(); }

 private:
  struct Entry {
    std::shared_ptr<Completion> completion;
    Completion::Link link;
  };
  static void count_down(void* object) noexcept {
    auto& self = *static_cast<Predecessors*>(object);
    if (self.left_.fetch_sub(1) == 1) self.call_(self.object_);
  }

  wye::detail::InlineList<Entry, 1> all_;
  std::atomic<std::size_t> left_{0};
  void (*call_)(void* object) noexcept = nullptr;
  void* object_ = nullptr;
};

}  // namespace wye::data
