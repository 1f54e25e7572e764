// Jobs that a device runs while no thread waits for them.
#include <new>
#include <utility>

#include "scheduler/core.hpp"
#include "scheduler/workers.hpp"

namespace wye::inline v0::scheduler {

bool Workers::detach(Record& record, const device::TimelinePoint& point) noexcept {
  const std::shared_ptr<Record> keep = record.shared_from_this();
  bool is_sooner = false;
  std::uint32_t flight = 0;
  {
    const base::Lock lock = queue_.hold();
    if (record.attempt->is_cut_short()) return false;  // `cancel` found it running
    const auto number = queue_.begin_flight_locked(record);
    if (!number) return false;  // abandoned
    flight = *number;
    queue_.add_user_locked(1);  // this thread: `cancel` may settle the job now, on another one
    is_sooner = crew_.call_for(record.attempt->park());
  }
  if (is_sooner) crew_.wake();
  try {
    if (point.timeline->when(point.value, [raw = &record, flight](const Error*) { on_return(raw, flight); }))
      return true;
  } catch (const std::bad_alloc&) {  // like a thread that the system refuses
  }
  const base::Lock lock = queue_.hold();
  (void)queue_.end_callback_locked(record);
  // Otherwise its time limit has passed, or it was abandoned.
  if (record.flight != flight || !record.advance(State::in_flight, State::running)) {
    if (std::exchange(record.is_unattended, false)) queue_.ready().push_returned(keep);
    return true;
  }
  queue_.active().end_flight();
  queue_.add_user_locked(-1);
  record.run_by = this_thread();
  return false;
}

void Workers::on_return(Record* record, std::uint32_t flight) noexcept {
  Workers& workers = record->core->workers();
  Queue& queue = workers.queue_;
  // A worker may settle the record, and the core may end, as soon as the mutex is free.
  base::Lock lock = queue.hold();
  if (record->flight != flight ||
      (!record->advance(State::in_flight, State::returned) && !std::exchange(record->is_unattended, false))) {
    const std::shared_ptr<Core> last = record->core;  // its time limit passed before
    std::shared_ptr<Record> keep = queue.end_callback_locked(*record);
    queue.add_user_locked(1);  // this thread, until it has left the job
    lock.unlock();
    keep.reset();
    return queue.end_use();
  }
  queue.ready().push_returned(queue.end_callback_locked(*record));
  if (workers.call_locked()) workers.crew_.wake();
}

void Workers::stop_flight(const std::shared_ptr<Record>& record) noexcept {
  base::Lock lock = queue_.hold();
  // A batch in flight goes on for its other jobs.
  if (record->state != State::in_flight || record->batch) return;
  if (!record->advance(State::in_flight, State::running)) return;
  queue_.active().end_flight();
  Instant now;
  run_begun(lock, record, false, now);
  wake(std::move(lock));
}

}  // namespace wye::scheduler
