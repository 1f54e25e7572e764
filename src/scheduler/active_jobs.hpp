#pragma once
/// The jobs that run.
#include <wye/base/clock.hpp>

#include <cstdint>

#include "scheduler/ready.hpp"
#include "scheduler/record.hpp"

namespace wye::inline v0::scheduler {

/// Lists the jobs that run on a thread, are in flight on a device, or have returned from there.
/// Threads: under the mutex of its scheduler.
class ActiveJobs {
 public:
  void add(Record& job) noexcept;
  void remove(Record& job) noexcept;
  /// Returns the job that was added last; `Active::active_next` is the one before it. Null if there
  /// is none.
  Record* last() const noexcept { return last_; }
  std::uint32_t count() const noexcept { return count_; }

  void begin_flight() noexcept { ++in_flight_; }
  void end_flight() noexcept { --in_flight_; }
  /// Returns the number of jobs that are in flight or have returned.
  std::uint32_t in_flight() const noexcept { return in_flight_; }
  /// Returns when the first time limit of a job in flight passes, of the steady clock;
  /// `Instant::max()` if none is in flight.
  Instant first_expiry() const noexcept;
  /// Returns whether the time limit of a job in flight has passed by `clock`, that of jobs.
  bool has_expired(const Clock& clock) const noexcept;
  /// Returns the jobs in flight whose time limit has passed to `ready`.
  void return_expired(const Clock& clock, Ready& ready) noexcept;

 private:
  Record* last_ = nullptr;
  std::uint32_t count_ = 0;
  std::uint32_t in_flight_ = 0;
};

}  // namespace wye::scheduler
