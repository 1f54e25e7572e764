// Jobs that a device runs while no thread waits for them.
#include <new>
#include <utility>

#include "scheduler/core.hpp"

namespace wye::inline v0::scheduler {

/// Leaves a record, whose submission reaches `point`, to the worker that completes it then, or at
/// `until` (of the steady clock). Returns false if the record stays with the calling thread;
/// otherwise other threads may have it already.
bool Core::detach(Record& record, const device::TimelinePoint& point, Instant until) noexcept {
  const std::shared_ptr<Record> keep = record.shared_from_this();
  bool is_sooner = false;
  std::uint32_t flight = 0;
  {
    const base::Lock lock = base::lock_soon(mutex_);
    if (record.attempt->is_cut_short()) return false;  // `cancel` found it running
    record.run_by = nullptr;
    record.flight_until = until;
    if (!record.advance(State::running, State::in_flight)) return false;  // abandoned
    record.self = keep;
    ++record.callbacks;
    flight = ++record.flight;
    active_.begin_flight();
    ++callbacks_;
    ++users_;  // this thread: `cancel` may settle the job now, on another one
    is_sooner = crew_.call_for(until);
  }
  if (is_sooner) crew_.wake();
  try {
    if (point.timeline->when(point.value, [raw = &record, flight](const Error*) { on_return(raw, flight); }))
      return true;
  } catch (const std::bad_alloc&) {  // like a thread that the system refuses
  }
  const base::Lock lock = base::lock_soon(mutex_);
  (void)end_callback_locked(record);
  // Otherwise its time limit has passed, or it was abandoned.
  if (record.flight != flight || !record.advance(State::in_flight, State::running)) {
    if (std::exchange(record.is_unattended, false)) ready_.push_returned(keep);
    return true;
  }
  active_.end_flight();
  --users_;
  record.run_by = &jobs_on_this_thread;
  return false;
}

/// Returns the record, which its pending callbacks own.
std::shared_ptr<Record> Core::end_callback_locked(Record& record) noexcept {
  --callbacks_;
  return --record.callbacks == 0 ? std::move(record.self) : record.self;
}

/// Called on a thread of the device: the submission of a flight of a record has completed, or has
/// failed.
void Core::on_return(Record* record, std::uint32_t flight) noexcept {
  Core& core = *record->core;
  // A worker may settle the record, and the core may end, as soon as the mutex is free.
  base::Lock lock = base::lock_soon(core.mutex_);
  if (record->flight != flight ||
      (!record->advance(State::in_flight, State::returned) && !std::exchange(record->is_unattended, false))) {
    const std::shared_ptr<Core> last = record->core;  // its time limit passed before
    std::shared_ptr<Record> keep = core.end_callback_locked(*record);
    ++core.users_;  // this thread, until it has left the job
    lock.unlock();
    keep.reset();
    return core.end_use();
  }
  core.ready_.push_returned(core.end_callback_locked(*record));
  if (core.call_worker_locked()) core.crew_.wake();
}

}  // namespace wye::scheduler
