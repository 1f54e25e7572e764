// Waits for jobs, and cancels them.
#include <algorithm>
#include <deque>
#include <utility>

#include "base/text.hpp"
#include "scheduler/core.hpp"

namespace wye::inline v0::scheduler {

namespace {

/// The records that one call of `wait_any` waits for.
class AnyOf {
 public:
  explicit AnyOf(std::span<const std::shared_ptr<Record>> records) noexcept : records_(records) {}
  AnyOf(const AnyOf&) = delete;
  ~AnyOf() {
    for (const auto& record : records_) {
      const base::Lock lock(record->parking().mutex);
      if (record->listeners) std::erase(record->listeners->any_waits, &any_);
    }
  }
  /// Has every record that settles notify this.
  void watch() {
    for (const auto& record : records_) {
      const base::Lock lock(record->parking().mutex);
      if (!record->watch()) return any_.notify();
      record->make_listeners().any_waits.push_back(&any_);
    }
  }
  /// Has `clock` wake this when it is advanced, if it is a ManualClock.
  void watch(const Clock& clock) {
    if (const auto* const manual = dynamic_cast<const ManualClock*>(&clock))
      woken_.emplace_back(*manual, any_.mutex, any_.gate);
  }
  /// Waits until a record has settled. Returns earlier at `until` of the steady clock, or when a
  /// clock that was advanced shows a time for which `is_late()` holds.
  template <class IsLate>
  bool wait(Instant until, IsLate is_late) noexcept {
    base::Lock lock(any_.mutex);
    any_.gate.wait(lock, until, [&] { return any_.any_settled || (!woken_.empty() && is_late()); });
    return any_.any_settled;
  }

 private:
  std::span<const std::shared_ptr<Record>> records_;
  AnyWait any_;
  std::deque<base::WokenByClock> woken_;
};

bool is_unstarted(const Record& record) noexcept {
  const State state = record.state;
  return state == State::queued || state == State::waiting;
}

bool is_past_start(const Record& record) noexcept { return record.start_by <= record.core->clock().now(); }

/// Returns when a record has to start, of the steady clock.
Instant start_of(const Record& record) noexcept {
  return base::parked_until(record.core->clock(), record.start_by);
}

/// Returns the first time, until `until`, at which a record that has not started has to start.
Instant first_start(std::span<const std::shared_ptr<Record>> records, Instant until) noexcept {
  const Instant now = Clock::steady().now();
  for (const auto& record : records) {
    // Of a job that is being staged, the thread that stages it looks at the time afterwards.
    const Instant start = start_of(*record);
    if (is_unstarted(*record) || (record->state == State::staging && start > now))
      until = std::min(until, start);
  }
  return until;
}

}  // namespace

/// Makes room for one more job of a scheduler while a job, on a thread of a scheduler or of the CPU
/// team, waits for one of its jobs. That job may need the slot of the job that waits.
class Core::YieldedSlot {
 public:
  explicit YieldedSlot(Core& awaited) noexcept : workers_(runs_job() ? &awaited.workers() : nullptr) {
    if (workers_) workers_->add_room(1);
  }
  ~YieldedSlot() {
    if (workers_) workers_->add_room(-1);
  }
  YieldedSlot(const YieldedSlot&) = delete;

 private:
  Workers* const workers_;
};

Result<Outcome> Core::wait(Record& record, Deadline deadline) {
  if (const Error* inherited = origin_.error()) return *inherited;
  if (record.is_settled) return record.result();
  const Instant until = deadline.at(parts_.clock);
  // A thread without a deadline runs the job itself, unless a worker is about to.
  bool is_left = false;
  if (deadline.is_never() && record.state == State::queued) {
    base::Lock lock = queue_.hold();
    is_left = !runs_job() && workers_.take_all_locked();
    if (!is_left) workers_.run_if_room(lock, record);
  }
  if (record.is_settled) return record.result();
  const auto is_settled = [&] { return record.is_settled.load(); };
  const Instant start_by = record.start_by;
  // A worker with more jobs to run ends several of them before a parked thread is awake.
  if (!is_left && queue_.count_ready() == 0 && until > parts_.clock.now())
    (void)base::seen_before_parking(is_settled);
  const YieldedSlot slot(*this);
  Parking& parking = record.parking();
  base::Lock lock(parking.mutex);
  record.watch();
  if (!parking.gate.wait(lock, parts_.clock, std::min(until, start_by), is_settled)) {
    lock.unlock();
    if (start_by <= until) {
      runner_.expire(record);  // a job that has just started continues
      lock.lock();
      parking.gate.wait(lock, parts_.clock, until, is_settled);
    } else {
      lock.lock();
    }
    if (!record.is_settled)
      return error_or(parts_.spare.timed_out, [&] {
        return Error(Errc::timed_out,
                     base::text("{} has not completed yet; it continues.", record.subject()));
      });
  }
  lock.unlock();
  return record.result();
}

Result<std::size_t> Core::wait_any(std::span<const std::shared_ptr<Record>> records, Deadline deadline) {
  for (const auto& record : records)
    if (const Error* inherited = record->core->origin_.error()) return *inherited;
  const Clock& clock = records.front()->core->clock();
  const Instant end = deadline.at(clock), until = base::parked_until(clock, end);
  AnyOf any(records);
  any.watch();
  std::deque<YieldedSlot> slots;  // of each scheduler
  for (auto record = records.begin(); record != records.end(); ++record)
    if (std::none_of(records.begin(), record,
                     [&](const auto& other) { return other->core == (*record)->core; })) {
      slots.emplace_back(*(*record)->core);
      any.watch((*record)->core->clock());
    }
  const auto is_late = [&] {
    return clock.now() >= end || std::any_of(records.begin(), records.end(), [](const auto& record) {
             return is_unstarted(*record) && is_past_start(*record);
           });
  };
  for (;;) {
    if (any.wait(first_start(records, until), is_late)) break;
    const Instant now = Clock::steady().now();
    for (const auto& record : records)
      if (is_past_start(*record) || start_of(*record) <= now) record->core->runner_.expire(*record);
    if (any.wait(Instant::min(), is_late)) break;
    if (until <= now || clock.now() >= end)
      return Error(Errc::timed_out,
                   base::text("None of {} jobs has completed yet; they continue.", records.size()));
  }
  const auto first = std::find_if(records.begin(), records.end(),
                                  [](const auto& record) { return record->is_settled.load(); });
  return static_cast<std::size_t>(first - records.begin());
}

void Core::cancel(Record& record) noexcept {
  if (!origin_.is_inherited()) runner_.cancel(record);
}

void Core::release(const std::shared_ptr<Record>& record) noexcept {
  if (!record->borrows || record->is_settled) return;  // it owns its operands, or uses none any more
  if (origin_.is_inherited()) return;
  cancel(*record);
  Parking& parking = record->parking();
  base::Lock lock(parking.mutex);
  record->watch();
  parking.gate.wait(lock, Instant::max(), [&] { return record->is_settled.load(); });
}

}  // namespace wye::scheduler
