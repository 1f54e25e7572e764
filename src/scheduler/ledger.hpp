#pragma once
/// The numbers of jobs.
#include <wye/scheduler/scheduler.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "pool/fleet.hpp"
#include "scheduler/settled.hpp"

namespace wye::inline v0::scheduler {

/// Counts jobs. A job that is submitted settles once: `note` for it, or `note_without_result`.
/// Threads: under the mutex of its scheduler.
class Ledger {
 public:
  /// The numbers of one type of jobs. They do not move.
  using Row = TypeMetrics;

  /// The pool has at most `devices`. Throws: std::bad_alloc.
  explicit Ledger(std::size_t devices) : completed_on_(devices) {}

  /// Returns the row of a type of jobs. Throws: std::bad_alloc.
  Row& row_of(WorkloadType type);
  void note_submission() noexcept { ++counts_.submitted; }
  void note(const Settled& job) noexcept;
  /// Counts a job that failed without a result: it was abandoned, or there was no memory to keep it.
  /// `row`: null if it is of no type.
  void note_without_result(Row* row) noexcept {
    ++counts_.failed;
    if (row) ++row->failed;
  }
  void note_memory_wait() noexcept { ++counts_.memory_waits; }
  void note_prefetch(Bytes copied) noexcept {
    ++counts_.prefetches;
    counts_.bytes_prefetched += copied;
  }

  /// Returns the numbers, but for those of jobs that wait or run.
  SchedulerMetrics metrics(const pool::Fleet& devices) const;

 private:
  static constexpr std::size_t most_named = 32;

  SchedulerMetrics counts_;
  std::vector<std::pair<std::string_view, Row*>> named_;  // some rows of `counts_.by_type`
  std::vector<std::uint64_t> completed_on_;               // jobs per device
};

}  // namespace wye::scheduler
