// Waits until no thread uses a job.
#include "base/text.hpp"
#include "base/worker.hpp"
#include "scheduler/core.hpp"
#include "scheduler/listeners.hpp"

namespace wye::inline v0::scheduler {

/// Returns whether no job waits or runs, and no thread or callback holds a settled job.
bool Core::is_quiet_locked() noexcept {
  return queued_ == 0 && active_.count() == 0 && users_ == 0 && callbacks_ == 0 && ready_.count() == 0 &&
         ready_.places().committed() == 0;
}

/// Ends the use of a job by a thread that does not count as the thread of a committed job.
void Core::end_use() noexcept {
  const base::Lock lock = base::lock_soon(mutex_);
  --users_;
  note_quiet_locked();
}

/// Returns the error of `quiesce` at its deadline.
Error Core::not_quiet_locked() const {
  const std::uint32_t left = queued_ + active_.count();
  if (left > 0)
    return Error(Errc::timed_out, base::text("{} jobs were left when the deadline of quiescing passed: {} "
                                             "waited, {} ran.",
                                             left, queued_, active_.count()));
  return Error(Errc::timed_out, base::text("0 jobs were left when the deadline of quiescing passed, but "
                                           "threads still used settled jobs ({} submissions of them were in "
                                           "flight).",
                                           callbacks_));
}

Result<void> Core::quiesce(Deadline deadline) {
  if (const Error* inherited = origin_.error()) return *inherited;
  if (runs_job() || calls_function() || base::Worker::inside())
    return Error(
        Errc::invalid_argument,
        "A thread that runs a job or a function of a ticket cannot wait until the scheduler is idle: "
        "it would wait for itself.");
  const Clock& clock = pool_->clock();
  const Instant until = deadline.at(clock);
  const auto is_quiet = [this] { return is_quiet_locked(); };
  for (;;) {
    {
      base::Lock lock = base::lock_soon(mutex_);
      ++quiescing_;
      if (!is_quiet()) {
        wake_worker(std::move(lock));  // queues may have entries of jobs that have settled
        lock = base::lock_soon(mutex_);
      }
      const bool in_time = quiet_.wait(lock, clock, until, is_quiet);
      --quiescing_;
      if (!in_time) return not_quiet_locked();
    }
    if (!provider_->await_builds(base::parked_until(clock, until)))
      return Error(
          Errc::timed_out,
          "0 jobs were left when the deadline of quiescing passed, but a build of a job that timed out "
          "still ran.");
    if (!pool_->leases().await_finished(base::parked_until(clock, until)))
      return Error(
          Errc::timed_out,
          "0 jobs were left when the deadline of quiescing passed, but work that a job left in flight "
          "had not completed.");
    const base::Lock lock = base::lock_soon(mutex_);
    if (is_quiet()) return {};  // no job was submitted meanwhile
  }
}

}  // namespace wye::scheduler
