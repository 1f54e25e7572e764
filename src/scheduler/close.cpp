// Closes a scheduler, and abandons the jobs that do not end in time.
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/process.hpp"
#include "base/text.hpp"
#include "data/array_state.hpp"
#include "scheduler/core.hpp"
#include "scheduler/followers.hpp"
#include "scheduler/listeners.hpp"

namespace wye::inline v0::scheduler {

Result<void> Core::close(Instant until) noexcept {
  if (const Error* inherited = origin_.error()) return *inherited;
  std::vector<base::Worker> workers;
  {
    const base::Lock lock = base::lock_soon(mutex_);
    closing_ = true;
    crew_.wake_all();
    room_.wake_all();
  }
  for (;;) {
    base::Lock lock = base::lock_soon(mutex_);
    const auto record = std::static_pointer_cast<Record>(ready_.take_any());
    if (!record) break;
    lock.unlock();
    settle(*record, State::queued, error_or(spare_.closed, [&] {
      return Error(Errc::closed,
                   base::text("{} had not started when the scheduler was closed.", record->subject()));
    }));
  }
  {
    base::Lock lock = base::lock_soon(mutex_);
    const std::uint32_t own = jobs_on_this_thread > 0 ? 1 : 0;
    if (job_stopped_.wait(lock, until, [&] {
          return has_abandoned_ || (ready_.places().committed() <= own && !staging_);
        })) {
      if (!has_abandoned_) workers = crew_.take();  // otherwise some still run jobs, and are not joined
      return {};
    }
    has_abandoned_ = true;
    self_ = shared_from_this();
    base::detail::keep(this);
    job_stopped_.wake_all();
  }
  std::string names;
  bool are_all_named = true;
  std::shared_ptr<device::Timeline> polled;
  while (std::shared_ptr<Record> record = abandon_next(polled)) {
    // A worker waits for it instead of the waiter thread of the device: that polls the driver again
    // and again, which it must not do while the process ends.
    if (polled && polled->drop_callbacks()) on_return(record.get(), record->flight);
    const std::string name = abandon(*record);
    try {
      names += (names.empty() ? "" : ", ") + name;
    } catch (const std::bad_alloc&) {
      are_all_named = false;
    }
    record.reset();
    end_use();
  }
  if (!are_all_named || names.empty()) return spare_.close_timed_out;
  return error_or(spare_.close_timed_out, [&] {
    return Error(
        Errc::timed_out,
        base::text("Jobs still ran when the deadline of closing passed, and are abandoned: {}.", names));
  });
}

/// Marks the next job that another thread runs as abandoned and returns it; null if there is none.
/// The calling thread counts as a user of the job then. Sets `polled` to the timeline of its lane
/// if the job was in flight.
std::shared_ptr<Record> Core::abandon_next(std::shared_ptr<device::Timeline>& polled) {
  polled.reset();
  const base::Lock lock = base::lock_soon(mutex_);
  if (staging_ && staging_->advance(State::staging, State::abandoned)) {
    if (staging_->is_due)
      active_.remove(*staging_);
    else
      leave_queue_locked(*staging_);
    ledger_.note_without_result(staging_->type_metrics);
    ++users_;
    return staging_->shared_from_this();
  }
  for (Record* record = active_.last(); record; record = record->active_next) {
    if (record->run_by == &jobs_on_this_thread) continue;  // its host function closes the scheduler
    if (record->advance(State::in_flight, State::abandoned)) {
      record->is_unattended = true;
      polled = record->attempt->lane().timeline();
      active_.end_flight();
    } else if (record->advance(State::returned, State::abandoned)) {
      active_.end_flight();
    } else if (!record->advance(State::running, State::abandoned)) {
      continue;  // it has just settled
    }
    active_.remove(*record);
    ledger_.note_without_result(record->type_metrics);
    ++users_;
    return record->shared_from_this();
  }
  return nullptr;
}

/// Settles a job that still runs, and returns its name and device. The job's objects stay: its
/// thread still uses them.
std::string Core::abandon(Record& record) noexcept {
  const std::size_t index = record.tried_on.load(std::memory_order_relaxed);
  const std::string_view device =
      index < pool_->fleet().size() ? std::string_view(pool_->fleet().info(index).id) : "no device yet";
  record.stop = true;
  record.settled_at = clock_->now();
  record.error = error_or(spare_.abandoned, [&] {
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

}  // namespace wye::scheduler
