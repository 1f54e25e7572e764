// Reserves the memory of jobs, and has jobs wait for it.
#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "base/team.hpp"
#include "scheduler/runner.hpp"
#include "scheduler/workers.hpp"

namespace wye::inline v0::scheduler {

namespace {

/// Returns how long a job waits for memory. The time doubles with each of its waits. It is chosen at
/// random between its half and itself, so that processes do not try at the same time.
Duration next_wait(const Record& record, std::uint32_t waits) noexcept {
  constexpr Duration first_wait = std::chrono::milliseconds(1);
  constexpr std::uint32_t most_doublings = 6;
  std::uint64_t seed = record.sequence * 0x9e3779b97f4a7c15 + waits;
  seed = (seed ^ seed >> 31) * 0xbf58476d1ce4e5b9;
  const Duration longest = first_wait * (1 << std::min(waits, most_doublings));
  return longest / 2 + longest / 2 * static_cast<std::int64_t>(seed >> 54) / 1024;
}

/// Returns the waits of a job for memory; null if there is no memory to count them.
Record::Extras::Shortage* shortage_of(Record& record, Instant now) noexcept try {
  Record::Extras::Shortage& shortage = record.make_extras().shortage;
  if (shortage.waits == 0) shortage.since = now;
  return &shortage;
} catch (const std::bad_alloc&) {
  return nullptr;
}

/// Returns whether a record that lacks memory may wait for it although no other job of its device,
/// or of its tag, runs: for `longest` while others (leases, jobs of other devices or
/// runtimes) hold the memory (`is_shared`), and a few times if no others are known.
bool may_wait_alone(Record::Extras::Shortage& shortage, MemoryPause& pause, Instant now, Duration longest,
                    bool is_shared, bool is_of_tag) noexcept {
  constexpr std::uint32_t most_retries = 4;
  const bool may_wait =
      is_shared ? now - shortage.since < longest : !pause.has_no_memory && shortage.retries < most_retries;
  if (!may_wait || (is_of_tag && pause.has_no_memory)) {
    pause.has_no_memory = true;
    return false;
  }
  if (!is_shared) ++shortage.retries;
  return true;
}

}  // namespace

/// Returns a record to its line. Returns false if the system refuses a thread that would run it, or
/// without memory: this thread goes on.
bool Workers::leave_to_worker_locked(std::shared_ptr<Record> record) noexcept try {
  if (crew_.empty()) (void)call_locked();
  if (crew_.empty()) return false;
  queue_.ready().push(std::move(record));
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

bool Workers::wait_for_memory(Record& record) noexcept {
  const std::shared_ptr<Record> keep = record.shared_from_this();
  // A job on top of another one cannot wait for the memory that the other holds.
  if (record.plan_run || jobs_on_this_thread > 1 || base::Team::inside()) return false;
  const Instant now = Clock::steady().now();
  Record::Extras::Shortage* const shortage = shortage_of(record, now);
  if (!shortage) return false;
  TagState* const tag = std::exchange(record.lacks_tag_memory, false) ? record.tag_state : nullptr;
  const bool is_shared = tag || parts_.pool->accounts().note_shortage(record.decisions.back().device);

  base::Lock lock = queue_.hold();
  Places& places = queue_.ready().places();
  Places::Place& place = places[record.place];
  if (queue_.is_closing_locked() || record.state != State::running || record.stop) return false;
  MemoryPause& pause = tag ? tag->pause : place.pause;
  const std::uint32_t others = (tag ? tag->running : place.committed) - 1;
  const std::uint32_t blocked = places.is_on_threads(record.place) && !tag ? places.blocked() : 0;
  if (others <= blocked &&
      !may_wait_alone(*shortage, pause, now, parts_.pool->options().lease_timeout, is_shared, tag != nullptr))
    return false;
  places.pause(pause, now + next_wait(record, shortage->waits));
  if (!leave_to_worker_locked(keep)) {
    places.resume(pause);
    return false;
  }
  ++shortage->waits;
  if (!record.has_failed) record.started = {};  // it waits as other jobs do
  record.may_share = record.leads_batch = false;
  record.runs.times = nullptr;
  queue_.note_memory_wait_locked();
  queue_.return_locked(record);
  const bool wakes = crew_.call_for(*pause.until);
  wake(std::move(lock));
  if (wakes) crew_.wake();
  if (keep->stop) runner_.cancel(*keep);  // a call that came while it ran could not settle it
  return true;
}

}  // namespace wye::scheduler
