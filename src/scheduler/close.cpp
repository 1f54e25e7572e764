// Waits until a scheduler is idle, closes it, and abandons the jobs that do not end in time.
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/process.hpp"
#include "base/text.hpp"
#include "base/worker.hpp"
#include "data/array_state.hpp"
#include "scheduler/core.hpp"
#include "scheduler/followers.hpp"
#include "scheduler/listeners.hpp"

namespace wye::inline v0::scheduler {

Result<void> Core::close(Instant until) noexcept {
  if (const Error* inherited = origin_.error()) return *inherited;
  workers_.close();
  while (const std::shared_ptr<Record> record = queue_.take_any())
    runner_.settle(*record, State::queued, error_or(parts_.spare.closed, [&] {
      return Error(Errc::closed,
                   base::text("{} had not started when the scheduler was closed.", record->subject()));
    }));
  if (workers_.await_stopped(until)) {  // the result joins them
    parts_.store.update();
    return {};
  }
  self_ = shared_from_this();
  base::detail::keep(this);
  std::string names;
  bool are_all_named = true;
  std::shared_ptr<device::Timeline> polled;
  while (std::shared_ptr<Record> record = queue_.abandon_next(polled)) {
    // A worker waits for it instead of the waiter thread of the device: that polls the driver again
    // and again, which it must not do while the process ends.
    if (polled && polled->drop_callbacks()) Workers::on_return(record.get(), record->flight);
    const std::string name = abandon(*record);
    try {
      names += (names.empty() ? "" : ", ") + name;
    } catch (const std::bad_alloc&) {
      are_all_named = false;
    }
    record.reset();
    queue_.end_use();
  }
  if (!are_all_named || names.empty()) return parts_.spare.close_timed_out;
  return error_or(parts_.spare.close_timed_out, [&] {
    return Error(
        Errc::timed_out,
        base::text("Jobs still ran when the deadline of closing passed, and are abandoned: {}.", names));
  });
}

/// Settles a job that still runs, and returns its name and device. The job's objects stay: its
/// thread still uses them.
std::string Core::abandon(Record& record) noexcept {
  const std::size_t index = record.tried_on.load(std::memory_order_relaxed);
  const std::string_view device = index < parts_.pool->fleet().size()
                                      ? std::string_view(parts_.pool->fleet().info(index).id)
                                      : "no device yet";
  record.stop = true;
  record.settled_at = parts_.clock.now();
  record.error = error_or(parts_.spare.abandoned, [&] {
    return Error(Errc::closed,
                 base::text("{} was abandoned: it still ran on '{}' when the deadline of closing passed.",
                            record.subject(), device));
  });
  abandon_outputs(record);
  const std::vector<Continuation> continuations = publish(record);
  if (record.completion) record.completion->complete();  // its followers settle: the scheduler is closed
  call(continuations, record);
  try {
    return base::text("{} on '{}'", record.object(), device);
  } catch (const std::bad_alloc&) {
    return {};
  }
}

Result<void> Core::quiesce(Deadline deadline) {
  if (const Error* inherited = origin_.error()) return *inherited;
  if (runs_job() || calls_function() || base::Worker::inside())
    return Error(
        Errc::invalid_argument,
        "A thread that runs a job or a function of a ticket cannot wait until the scheduler is idle: "
        "it would wait for itself.");
  const Clock& clock = parts_.pool->clock();
  const Instant until = deadline.at(clock);
  for (;;) {
    workers_.wake(queue_.hold());  // lines may have entries of jobs that have settled
    if (auto quiet = queue_.await_quiet(clock, until); !quiet) return quiet;
    if (!parts_.provider->await_builds(base::parked_until(clock, until)))
      return Error(
          Errc::timed_out,
          "0 jobs were left when the deadline of quiescing passed, but a build of a job that timed out "
          "still ran.");
    if (!parts_.pool->leases().await_finished(base::parked_until(clock, until)))
      return Error(
          Errc::timed_out,
          "0 jobs were left when the deadline of quiescing passed, but work that a job left in flight "
          "had not completed.");
    if (queue_.await_quiet(clock, Instant::min())) return {};  // no job was submitted meanwhile
  }
}

void Core::call_at_once(const std::function<void(const Result<Outcome>&)>& then, Record& record) noexcept {
  queue_.begin_use();
  call(then, record);
  queue_.end_use();
}

}  // namespace wye::scheduler
