// Jobs that a device runs while no thread waits for them.
#include <new>
#include <utility>

#include "scheduler/core.hpp"
#include "scheduler/queue.hpp"
#include "scheduler/runner.hpp"

namespace wye::inline v0::scheduler {

bool Queue::detach(Record& record, const device::TimelinePoint& point, Instant until) noexcept {
  const std::shared_ptr<Record> keep = record.shared_from_this();
  bool is_sooner = false;
  std::uint32_t flight = 0;
  {
    const base::Lock lock = hold();
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
  const base::Lock lock = hold();
  (void)end_callback_locked(record);
  // Otherwise its time limit has passed, or it was abandoned.
  if (record.flight != flight || !record.advance(State::in_flight, State::running)) {
    if (std::exchange(record.is_unattended, false)) ready_.push_returned(keep);
    return true;
  }
  active_.end_flight();
  --users_;
  record.run_by = this_thread();
  return false;
}

/// Returns the record, which its pending callbacks own.
std::shared_ptr<Record> Queue::end_callback_locked(Record& record) noexcept {
  --callbacks_;
  return --record.callbacks == 0 ? std::move(record.self) : record.self;
}

void Queue::on_return(Record* record, std::uint32_t flight) noexcept {
  Queue& queue = record->core->queue();
  // A worker may settle the record, and the core may end, as soon as the mutex is free.
  base::Lock lock = queue.hold();
  if (record->flight != flight ||
      (!record->advance(State::in_flight, State::returned) && !std::exchange(record->is_unattended, false))) {
    const std::shared_ptr<Core> last = record->core;  // its time limit passed before
    std::shared_ptr<Record> keep = queue.end_callback_locked(*record);
    ++queue.users_;  // this thread, until it has left the job
    lock.unlock();
    keep.reset();
    return queue.end_use();
  }
  queue.ready_.push_returned(queue.end_callback_locked(*record));
  if (queue.call_worker_locked()) queue.crew_.wake();
}

void Queue::stop_flight(const std::shared_ptr<Record>& record) noexcept {
  base::Lock lock = hold();
  // A batch in flight goes on for its other jobs.
  if (record->state != State::in_flight || record->batch) return;
  if (!record->advance(State::in_flight, State::running)) return;
  active_.end_flight();
  Instant now;
  run_begun(lock, record, false, now);
  note_quiet_locked();
  wake_worker(std::move(lock));
}

}  // namespace wye::scheduler
