#pragma once
/// The numbers of jobs.
#include <wye/scheduler/scheduler.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pool/fleet.hpp"
#include "scheduler/settled.hpp"

namespace wye::inline v0::scheduler {

/// The rate of events, by whole seconds.
class Rate {
 public:
  void note(Instant at) noexcept {
    const std::int64_t second = second_of(at);
    Second& of = seconds_[static_cast<std::size_t>(second) % seconds_.size()];
    if (of.number != second) of = {second, 0};
    ++of.events;
  }
  /// Returns the events per second, over the last five whole seconds.
  double per_second(Instant now) const noexcept;

 private:
  struct Second {
    std::int64_t number = -1;
    std::uint64_t events = 0;
  };
  static std::int64_t second_of(Instant at) noexcept {
    return at.time_since_epoch() / std::chrono::seconds(1);
  }
  std::array<Second, 8> seconds_{};
};

/// The numbers of one type of jobs.
struct TypeRow {
  TypeMetrics counts;  ///< without the rate and the histograms
  Rate rate;
  std::vector<std::unique_ptr<JobHistograms>> on;  ///< each device; null: no job has completed there
};

/// Counts jobs. A job that is submitted settles once: `note` for it, or `note_without_result`.
/// Threads: under the mutex of its scheduler.
class Ledger {
 public:
  /// The pool has at most `devices`. Throws: std::bad_alloc.
  explicit Ledger(std::size_t devices) : completed_on_(devices) {}

  /// Returns the row of a type of jobs, which does not move. Throws: std::bad_alloc.
  TypeRow& row_of(WorkloadType type);
  void note_submission() noexcept { ++counts_.submitted; }
  void note(const Settled& job) noexcept;
  /// Counts a job that failed without a result: it was abandoned, or there was no memory to keep it.
  /// `row`: null if it is of no type.
  void note_without_result(TypeRow* row) noexcept {
    ++counts_.failed;
    if (row) ++row->counts.failed;
  }
  void note_memory_wait() noexcept { ++counts_.memory_waits; }
  void note_prefetch(Bytes copied) noexcept {
    ++counts_.prefetches;
    counts_.bytes_prefetched += copied;
  }

  /// Returns the numbers at the time `now`, but for those of jobs that wait or run.
  SchedulerMetrics metrics(const pool::Fleet& devices, Instant now) const;

 private:
  static constexpr std::size_t most_named = 32, most_types = 64;

  /// Notes the times of a job that has completed.
  static void note_times(TypeRow& row, const Settled& job) noexcept;

  SchedulerMetrics counts_;  // without types
  std::map<std::string, TypeRow, std::less<>> types_;
  std::vector<std::pair<std::string_view, TypeRow*>> named_;  // some of the types
  TypeRow untyped_;                                           // of jobs without memory for their row
  std::vector<std::uint64_t> completed_on_;                   // jobs per device
};

}  // namespace wye::scheduler
