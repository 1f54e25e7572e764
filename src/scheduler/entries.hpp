#pragma once
/// The jobs of one priority in a line.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "scheduler/waiting.hpp"

namespace wye::inline v0::scheduler {

/// A job in a line, with its keys, because jobs are scattered over memory.
struct Entry {
  Instant due{};  // its `start_by`, if that decides the order within a priority
  std::uint64_t sequence = 0;
  std::uint32_t number = 0;  // of the job's entries
  std::shared_ptr<Waiting> job;

  /// A job that ran without being taken out (`Workers::run_if_room`), and then returned to a line,
  /// has an old entry too.
  bool is_old() const noexcept { return number != job->waits.entries; }
  /// Returns whether its job has settled or runs.
  bool is_stale() const noexcept {
    const State state = job->state;
    return is_old() || (state != State::queued && state != State::staging);
  }
  /// Returns whether this job of two of one priority runs later.
  bool runs_after(const Entry& other) const noexcept {
    return due != other.due ? due > other.due : sequence > other.sequence;
  }
};

/// Keeps jobs in their order. Most are added in that order: they are a queue from the beginning of
/// one buffer. The others are a heap from its end. The next job is the first of one of the two.
/// Threads: one at a time.
class Entries {
 public:
  bool empty() const noexcept { return size() == 0; }
  std::size_t size() const noexcept { return end_ - first_ + in_heap_; }
  /// Returns the next job to run, of at least one.
  const Entry& front() const noexcept { return heap_is_next() ? slots_.back() : slots_[first_]; }
  /// Returns one of the last jobs, of at least one.
  const Entry& back() const noexcept { return first_ < end_ ? slots_[end_ - 1] : slots_[top()]; }
  /// Calls `f` with each entry, in no order.
  template <class F>
  void each(F f) const {
    for (std::size_t i = first_; i < end_; ++i) f(slots_[i]);
    for (std::size_t i = top(); i < slots_.size(); ++i) f(slots_[i]);
  }

  /// Makes room for `more` entries. Throws: std::bad_alloc.
  void reserve(std::size_t more) {
    const std::size_t all = size() + more;
    // With more jobs than free slots `push` would move many jobs, often.
    if (all <= slots_.size() && (top() - end_ >= more || first_ >= slots_.size() / 2)) return;
    std::vector<Entry> larger(2 * all);
    std::move_backward(slots_.begin() + at(top()), slots_.end(), larger.end());
    std::move(slots_.begin() + at(first_), slots_.begin() + at(end_), larger.begin());
    end_ -= std::exchange(first_, 0);
    slots_ = std::move(larger);
  }
  /// Adds a job, for which there is room.
  void push(Entry entry) noexcept {
    if (end_ == top()) {
      std::move(slots_.begin() + at(first_), slots_.begin() + at(end_), slots_.begin());
      end_ -= std::exchange(first_, 0);
    }
    if (first_ == end_ || !slots_[end_ - 1].runs_after(entry)) {
      slots_[end_++] = std::move(entry);
    } else {
      ++in_heap_;
      slots_[top()] = std::move(entry);
      std::push_heap(slots_.rbegin(), heap_end(), later);
    }
  }
  std::shared_ptr<Waiting> pop_front() noexcept {
    if (!heap_is_next()) return take_from_queue(first_++);
    std::pop_heap(slots_.rbegin(), heap_end(), later);
    return take_top();
  }
  std::shared_ptr<Waiting> pop_back() noexcept {
    return first_ < end_ ? take_from_queue(--end_) : take_top();
  }
  /// Takes out an entry that `each` has shown.
  std::shared_ptr<Waiting> remove(const Entry& entry) noexcept {
    const auto index = static_cast<std::size_t>(&entry - slots_.data());
    std::shared_ptr<Waiting> job = std::move(slots_[index].job);
    if (index < end_) {
      std::move(slots_.begin() + at(index + 1), slots_.begin() + at(end_), slots_.begin() + at(index));
      --end_;
    } else {
      if (index != top()) slots_[index] = std::move(slots_[top()]);
      --in_heap_;
      std::make_heap(slots_.rbegin(), heap_end(), later);
    }
    return job;
  }

 private:
  static constexpr auto later = [](const Entry& a, const Entry& b) { return a.runs_after(b); };
  std::size_t top() const noexcept { return slots_.size() - in_heap_; }
  static std::ptrdiff_t at(std::size_t index) noexcept { return static_cast<std::ptrdiff_t>(index); }
  bool heap_is_next() const noexcept {
    return in_heap_ > 0 && (first_ == end_ || slots_[first_].runs_after(slots_.back()));
  }
  std::vector<Entry>::reverse_iterator heap_end() noexcept {
    return std::make_reverse_iterator(slots_.begin() + at(top()));
  }
  std::shared_ptr<Waiting> take_top() noexcept {
    std::shared_ptr<Waiting> job = std::move(slots_[top()].job);
    --in_heap_;
    return job;
  }
  std::shared_ptr<Waiting> take_from_queue(std::size_t index) noexcept {
    std::shared_ptr<Waiting> job = std::move(slots_[index].job);
    if (first_ == end_) first_ = end_ = 0;
    return job;
  }

  std::vector<Entry> slots_;  // with a job: those from `first_` to `end_`, and the last `in_heap_`
  std::size_t first_ = 0;
  std::size_t end_ = 0;
  std::size_t in_heap_ = 0;
};

/// The highest priority first.
using Levels = std::array<Entries, levels>;

/// Counts the jobs in lines, by priority, and those that have returned.
/// Threads: under the mutex of its scheduler, but for `all`.
class EntryCounts {
 public:
  void add(std::size_t level, int jobs) noexcept {
    in_lines_[level] += static_cast<std::uint32_t>(jobs);
    add_returned(jobs);
  }
  void add_returned(int jobs) noexcept {
    all_.store(all() + static_cast<std::size_t>(jobs), std::memory_order_relaxed);
  }
  bool has(std::size_t level) const noexcept { return in_lines_[level] != 0; }
  std::size_t all() const noexcept { return all_.load(std::memory_order_relaxed); }

 private:
  std::array<std::uint32_t, levels> in_lines_{};
  std::atomic<std::size_t> all_{0};
};

}  // namespace wye::scheduler
