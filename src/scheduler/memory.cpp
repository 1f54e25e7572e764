// Reserves the memory of jobs, and has jobs wait for it.
#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "base/sizes.hpp"
#include "base/team.hpp"
#include "base/text.hpp"
#include "scheduler/core.hpp"

namespace wye {
inline namespace v0 {
namespace scheduler {

/// Reserves all memory that a job has yet to allocate on the device of `attempt`, or nothing: jobs that each hold a part would
/// wait for each other.
/// Errors: over_budget, out_of_memory. `Record::lacks_memory` tells whether it may succeed later.
Result<void> Core::reserve_memory(Record& record, Attempt& attempt, Instant now) {
  const pool::WorkingSet set = attempt.binding.working_set();
  if (set.all() == Bytes{}) return {};
  const auto tag = pool_->tag_account(attempt.device, record.tag());
  if (const auto limit = pool_->limit_of(attempt.device, tag.get(), set)) {
    const base::Sizes size(limit->needed, limit->limit);
    return Error(limit->code,
                 base::text("{} needs {} on '{}'; the {} is {}.", record.subject(), size(limit->needed),
                            pool_->info(attempt.device).id, limit->of, size(limit->limit)));
  }
  auto reserved = pool_->reserve(attempt.device, tag, set, now, attempt.binding.reservation());
  if (!reserved) record.lacks_memory = true;
  return reserved;
}

/// Returns a record whose device has no memory for it now to its queue, at its old place, and pauses the queue: no other job
/// takes the memory that becomes free. The queue goes on when one of its jobs ends, or after a time that doubles with each
/// wait. The time is chosen at random between its half and itself, so that processes do not try at the same time.
/// A job waits as long as others of its queue run; as long as the lease timeout while jobs of other queues or runtimes use
/// the processor; otherwise a few times. Returns false if it has waited that long; it then goes on to its next device.
bool Core::wait_for_memory(Record& record) noexcept {
  constexpr Duration first_wait = std::chrono::milliseconds(1);
  constexpr std::uint32_t most_doublings = 6, most_retries = 4;
  const std::shared_ptr<Record> keep = record.shared_from_this();
  // A job on top of another one cannot wait for the memory that the other holds.
  if (record.plan_run || jobs_on_this_thread > 1 || base::Team::inside()) return false;
  Record::Extras::Shortage* shortage = nullptr;
  try {
    shortage = &record.make_extras().shortage;
  } catch (const std::bad_alloc&) {
    return false;
  }
  const bool is_shared = pool_->note_shortage(record.decisions.back().device);
  const Instant now = Clock::steady().now();
  if (shortage->waits == 0) shortage->since = now;
  std::uint64_t seed = record.sequence * 0x9e3779b97f4a7c15 + shortage->waits;
  seed = (seed ^ seed >> 31) * 0xbf58476d1ce4e5b9;
  const Duration longest = first_wait * (1 << std::min(shortage->waits, most_doublings));
  const Duration wait = longest / 2 + longest / 2 * static_cast<std::int64_t>(seed >> 54) / 1024;

  base::Lock lock = base::lock_soon(mutex_);
  Queue& queue = queues_[record.queue];
  if (closing_ || record.state != State::running || record.stop) return false;
  const std::uint32_t others = queue.committed - 1;
  if (others <= (record.queue == on_threads ? blocked_ : 0)) {
    const bool may_wait = is_shared ? now - shortage->since < pool_->lease_timeout()
                                    : !queue.has_no_memory && shortage->retries < most_retries;
    if (!may_wait) {
      queue.has_no_memory = true;
      return false;
    }
    if (!is_shared) ++shortage->retries;
  }
  if (!queue.paused_until) ++paused_;
  queue.paused_until = now + wait;
  if (workers_.empty()) (void)call_worker_locked();
  try {
    if (workers_.empty()) throw std::bad_alloc();  // the system refuses a thread: this one goes on
    push_locked(keep);
  } catch (const std::bad_alloc&) {
    resume_locked(record.queue);
    return false;
  }
  ++shortage->waits;
  if (!record.has_failed) record.started = {};  // it waits as other jobs do
  record.may_share = record.leads_batch = false;
  record.mean_run_time = nullptr;
  ++metrics_.memory_waits;
  return_to_queue_locked(record);
  const bool wakes = parked_ > 0 && !waking_ && *queue.paused_until < watched_until_;
  if (wakes) waking_ = true;
  wake_worker(std::move(lock));
  if (wakes) work_.wake_one();
  if (keep->stop) cancel(*keep);  // a call that came while it ran could not settle it
  return true;
}

/// Lets the jobs of a queue start again.
void Core::resume_locked(std::size_t queue) noexcept {
  if (!queues_[queue].paused_until) return;
  queues_[queue].paused_until.reset();
  --paused_;
}

/// Resumes the queues whose time has come.
void Core::resume_due_locked() noexcept {
  if (paused_ == 0) return;
  const Instant now = Clock::steady().now();
  for (std::size_t q = 0; q < queues_.size(); ++q)
    if (queues_[q].paused_until && *queues_[q].paused_until <= now) resume_locked(q);
}

}  // namespace scheduler
}  // namespace v0
}  // namespace wye
