// Reserves the memory of jobs, and has jobs wait for it.
#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "base/team.hpp"
#include "scheduler/core.hpp"

namespace wye::inline v0::scheduler {

/// Returns a record that lacks memory to its line, at its old place, and pauses the device: no
/// other job takes the memory that becomes free there. If the budget of its tag is spent, the jobs
/// of the tag are paused, and those of other tags go on. Paused jobs go on when a job of the device,
/// or of the tag, ends, or after a time that doubles with each wait. The time is chosen at random
/// between its half and itself, so that processes do not try at the same time. A job waits as long
/// as others of the device, or of its tag, run. Otherwise it waits as long as the lease timeout
/// while others (leases, jobs of other devices or runtimes) hold the memory, and a few times if no
/// others are known. Returns false if it has waited that long; it then goes on to its next device.
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
  TagState* const tag = std::exchange(record.lacks_tag_memory, false) ? record.tag_state : nullptr;
  const bool is_shared = tag || pool_->accounts().note_shortage(record.decisions.back().device);
  const Instant now = Clock::steady().now();
  if (shortage->waits == 0) shortage->since = now;
  std::uint64_t seed = record.sequence * 0x9e3779b97f4a7c15 + shortage->waits;
  seed = (seed ^ seed >> 31) * 0xbf58476d1ce4e5b9;
  const Duration longest = first_wait * (1 << std::min(shortage->waits, most_doublings));
  const Duration wait = longest / 2 + longest / 2 * static_cast<std::int64_t>(seed >> 54) / 1024;

  base::Lock lock = base::lock_soon(mutex_);
  Places& places = ready_.places();
  Places::Place& place = places[record.place];
  if (closing_ || record.state != State::running || record.stop) return false;
  MemoryPause& pause = tag ? tag->pause : place.pause;
  const std::uint32_t others = (tag ? tag->running : place.committed) - 1;
  if (others <= (record.place == on_threads && !tag ? places.blocked() : 0)) {
    const bool may_wait = is_shared ? now - shortage->since < pool_->options().lease_timeout
                                    : !pause.has_no_memory && shortage->retries < most_retries;
    if (!may_wait || (tag && pause.has_no_memory)) {
      pause.has_no_memory = true;
      return false;
    }
    if (!is_shared) ++shortage->retries;
  }
  places.pause(pause, now + wait);
  if (workers_.empty()) (void)call_worker_locked();
  try {
    if (workers_.empty()) throw std::bad_alloc();  // the system refuses a thread: this one goes on
    ready_.push(keep);
  } catch (const std::bad_alloc&) {
    places.resume(pause);
    return false;
  }
  record.place = on_threads;
  ++shortage->waits;
  if (!record.has_failed) record.started = {};  // it waits as other jobs do
  record.may_share = record.leads_batch = false;
  record.time_row = nullptr;
  ledger_.note_memory_wait();
  return_to_queue_locked(record);
  const bool wakes = parked_ > 0 && !waking_ && *pause.until < watched_until_;
  if (wakes) waking_ = true;
  wake_worker(std::move(lock));
  if (wakes) work_.wake_one();
  if (keep->stop) cancel(*keep);  // a call that came while it ran could not settle it
  return true;
}

}  // namespace wye::scheduler
