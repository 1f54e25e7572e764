// The queue and the threads that serve it.
#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "base/process.hpp"
#include "base/team.hpp"
#include "base/text.hpp"
#include "data/array_state.hpp"
#include "device/backend.hpp"
#include "scheduler/binding.hpp"
#include "scheduler/core.hpp"

namespace wye::inline v0::scheduler {
namespace {

constexpr std::size_t most_kept_records = 1024, most_kept_attempts = 64;

}  // namespace

Core::Core(std::shared_ptr<pool::Pool> pool, std::shared_ptr<device::ExecutableProvider> provider,
           SchedulerOptions options)
    : records_(new base::BlockPool(most_kept_records)),
      attempts_(new base::BlockPool(most_kept_attempts)),
      completions_(new base::BlockPool(most_kept_records)),
      dependencies_(new base::BlockPool(most_kept_records)),
      pool_(std::move(pool)),
      provider_(std::move(provider)),
      options_(std::move(options)),
      clock_(options_.clock ? options_.clock : &pool_->clock()),
      log_(options_.log),
      aging_(std::min<Duration>(options_.aging, std::chrono::hours(24 * 36500))),
      tags_(options_.tags, pool_->options().tag_memory, options_.order == JobOrder::fair_shares),
      ledger_(options_.recent, pool_->fleet().limit()),
      refused_(std::shared_ptr<Core>(std::shared_ptr<void>(), this),  // does not own this
               Job::failed("job", workload_types::custom, spare_.out_of_memory)) {
  queues_.reserve(1 + pool_->fleet().limit());
  queues_.resize(1);
  queues_[on_threads].limit = options_.concurrent_jobs;
  add_table();
  refused_.state = State::settled;
  refused_.is_settled = true;
  refused_.error = spare_.out_of_memory;
}

constinit thread_local int Core::jobs_on_this_thread = 0;

bool Core::runs_job() noexcept { return jobs_on_this_thread > 0 || base::Team::inside(); }

Core::~Core() = default;

/// Queues a record, under `lock`, and releases the lock.
void Core::make_ready(base::Lock lock, const std::shared_ptr<Record>& record) noexcept {
  std::optional<Error> error;
  if (closing_) {
    error = error_or(spare_.closed, [&] {
      return Error(Errc::closed,
                   base::text("{} was not ready when the scheduler closed.", record->subject()));
    });
  } else if (options_.refuse_unreachable && (error = unreachable_locked(*record))) {
    // settles below
  } else {
    try {
      record->due = tags_.has_shares() ? tags_.ready(*record->tag_state) : next_due(*record);
      push_locked(record);
      ready_.fetch_add(1, std::memory_order_relaxed);
    } catch (const std::bad_alloc&) {
      error = spare_.out_of_memory;
    }
  }
  if (error) {
    lock.unlock();
    settle(*record, State::queued, std::move(error));
    return;
  }
  wake_worker(std::move(lock));
}

/// Returns a record, which this thread runs, to the queue of its next device, at its old place in
/// the order. Returns false if the record stays with this thread; otherwise other threads may have
/// it already.
bool Core::requeue(Record& record) noexcept {
  const std::shared_ptr<Record> keep = record.shared_from_this();
  const std::size_t before = record.queue;
  record.may_share = record.leads_batch = false;  // its batch would fail again
  record.batch_size = record.launch_size = 1;
  if (record.start_by != Instant::max())
    return false;  // it has started, and must not expire while it waits again
  base::Lock lock;
  try {
    if (!next_device(record)) return false;
    const std::size_t queue = queue_of(record);
    lock = base::lock_soon(mutex_);
    if (closing_ || record.state != State::running) return false;
    record.queue = queue;
    record.mean_run_time = nullptr;
    push_locked(keep);
  } catch (const std::bad_alloc&) {
    record.queue = before;
    return false;
  }
  return_to_queue_locked(record);
  wake_worker(std::move(lock));
  if (keep->stop) cancel(*keep);  // a call that came while it ran could not settle it
  return true;
}

/// Counts a record, which this thread runs and which is in its queue again, as queued.
void Core::return_to_queue_locked(Record& record) noexcept {
  record.run_by = nullptr;
  unlist_locked(record);
  --running_;
  ++queued_;
  TagState* const tag = record.tag_state;
  if (std::exchange(record.counts_for_tag, false)) --tag->running;
  record.state = State::queued;  // an abandoned record is not here: that needs the lock
  ready_.fetch_add(1, std::memory_order_relaxed);
  if (tag) release_held_locked(*tag);
}

/// Returns where a record would be in the order within its priority, if it were ready now.
Instant Core::next_due(const Record& record) const noexcept {
  switch (options_.order) {
    case JobOrder::earliest_deadline: return record.start_by;
    case JobOrder::fair_shares: return record.tag_state ? tags_.next_start(*record.tag_state) : Instant();
    case JobOrder::first_submitted: break;
  }
  return Instant();
}

/// Returns the error of a job that cannot start by its `start_by`, if the run times of jobs before
/// it are known; otherwise nothing. Counts the jobs that wait and would run before it. Running jobs
/// may end at any time, so they do not count.
std::optional<Error> Core::unreachable_locked(const Record& record) noexcept {
  if (record.start_by == Instant::max()) return std::nullopt;
  const Queue& queue = queues_[record.queue];
  const std::size_t own = level_of(record);
  Queue::Expected before;
  for (std::size_t level = 0; level <= own; ++level) {
    before.jobs += queue.expected[level].jobs;
    before.run_time += queue.expected[level].run_time;
  }
  if (options_.order != JobOrder::first_submitted) {  // some jobs of its priority run after it
    const Instant due = next_due(record);
    for (const Heap* const heap : {&queue.ready[own], &queue.staged[own]})
      for (const Ready& other : *heap)
        if (other.due > due && !other.is_old() && other.record->expected != Duration::zero()) {
          --before.jobs;
          before.run_time -= other.record->expected;
        }
  }
  if (before.jobs == 0) return std::nullopt;
  const Duration left = record.start_by - clock_->now();
  if (before.run_time / queue.limit <= left) return std::nullopt;
  return error_or(spare_.timed_out, [&] {
    return Error(
        Errc::timed_out,
        base::text("{} was refused: {} jobs run before it, {:.3g} ms each and {} at a time, and it is "
                   "to start within {:.3g} ms.",
                   record.subject(), before.jobs, milliseconds(before.run_time) / before.jobs, queue.limit,
                   std::max(0.0, milliseconds(left))));
  });
}

/// Finds the mean run time of jobs as this one, which its own run time is added to.
void Core::observe_locked(Record& record) noexcept {
  if (!options_.refuse_unreachable && (options_.batch_limit == 1 || record.queue == on_threads)) return;
  try {
    record.mean_run_time = run_times_.of(record.program, record.queue, record.size.count);
  } catch (const std::bad_alloc&) {  // then its run time is not known
  }
}

/// Adds a job that waits to the expected work of its queue.
void Core::expect_locked(Record& record) noexcept {
  if (!record.mean_run_time) observe_locked(record);
  if (!record.mean_run_time || *record.mean_run_time == Duration::zero()) return;
  record.expected = *record.mean_run_time;
  Queue::Expected& expected = queues_[record.queue].expected[level_of(record)];
  ++expected.jobs;
  expected.run_time += record.expected;
}

/// Removes a job that starts, settles or is set aside from the expected work of its queue.
void Core::expect_no_more_locked(Record& record) noexcept {
  if (record.expected == Duration::zero()) return;
  Queue::Expected& expected = queues_[record.queue].expected[level_of(record)];
  --expected.jobs;
  expected.run_time -= std::exchange(record.expected, Duration::zero());
}

/// Adds a record to its queue. Throws std::bad_alloc, but not if the record returns from
/// `hold_locked`.
void Core::push_locked(std::shared_ptr<Record> record) {
  if (record->expected == Duration::zero()) expect_locked(*record);
  Queue& queue = queues_[record->queue];
  const std::size_t level = level_of(*record);
  Heap& heap = (record->is_staged ? queue.staged : queue.ready)[level];
  if (const std::size_t all = heap.size() + queue.held + 1; heap.capacity() < all) heap.reserve(2 * all);
  heap.push_back({.due = record->due,
                  .rank = record->submitted + static_cast<std::int64_t>(level) * aging_,
                  .sequence = record->sequence,
                  .number = ++record->entries,
                  .record = std::move(record)});
  std::push_heap(heap.begin(), heap.end(), later);
}

/// Returns the queue of the first device that may run a record; that of the threads if the job
/// holds one while it runs.
std::size_t Core::queue_of(Record& record) const {
  if (record.plan_run) return queue_of(*record.plan_run);
  const Decision* const first = record.job.is_build() ? nullptr : next_device(record);
  if (!first || pool_->fleet().info(first->device).features.has(Feature::host_memory)) return on_threads;
  return 1 + first->device;
}

/// Returns whether a further job of a queue may run. A job that waits for a job makes room for one.
bool Core::has_room_locked(std::size_t queue) const noexcept {
  const Queue& of = queues_[queue];
  return !of.pause.until && of.committed < of.limit + (queue == on_threads ? blocked_ : 0);
}

bool Core::has_work_locked() noexcept {
  if (first_returned_) return true;
  if (ready_.load(std::memory_order_relaxed) == 0) return false;
  for (std::size_t q = 0; q < queues_.size(); ++q)
    if (has_room_locked(q))
      for (std::size_t level = 0; level < levels; ++level)
        if (!queues_[q].ready[level].empty() || !queues_[q].staged[level].empty()) return true;
  return next_to_stage_locked() != nullptr;
}

std::uint32_t Core::committed_locked() const noexcept {
  std::uint32_t sum = 0;
  for (const Queue& queue : queues_) sum += queue.committed;
  return sum;
}

/// Wakes or starts a worker if there is work, and unlocks. Each worker does the same before it runs
/// a job.
void Core::wake_worker(base::Lock lock) noexcept {
  if (call_worker_locked()) {
    lock.unlock();  // otherwise the woken thread waits for the lock
    return work_.wake_one();
  }
  if (!workers_.empty() || committed_locked() > 0) return;  // a thread that runs a job takes the next one
  // The system refuses a thread. The calling thread runs all queued jobs, and jobs that become
  // ready meanwhile.
  Instant now;
  while (!closing_) {
    auto record = pop_locked();
    if (!record) return note_quiet_locked();
    run_popped(lock, std::move(record), false, now);
  }
}

/// Starts a worker if there is work that no worker is about to take. Returns true if the caller is
/// to wake a parked one.
bool Core::call_worker_locked() noexcept {
  // A worker notices when jobs in flight run out of time, and when a paused queue goes on.
  const bool is_watched = (in_flight_ == 0 && paused_ == 0) || parked_ > 0 || spinning_ > 0;
  if (waking_ || spinning_ > 0 || (!has_work_locked() && is_watched)) return false;
  if (parked_ > 0) return waking_ = true;
  if (workers_.size() > options_.concurrent_jobs + blocked_) return false;
  try {
    workers_.reserve(workers_.size() + 1);
    auto worker = base::Worker::start("wye-jobs", [this] { work(); });
    if (worker) workers_.push_back(std::move(*worker));
  } catch (const std::bad_alloc&) {  // like a thread that the system refuses
  }
  return false;
}

/// Runs a job that was taken from a queue, or that has returned, on this thread. `lock` is held
/// before and after.
/// `now`: the time, if the thread knows it; set to the time afterwards, if the thread has read it.
void Core::run_popped(base::Lock& lock, std::shared_ptr<Record> record, bool is_worker,
                      Instant& now) noexcept {
  if (record->advance(State::queued, State::running)) {
    ++queues_[record->queue].committed;
    begin_locked(*record, false);
  } else if (record->advance(State::returned, State::running)) {
    --in_flight_;
  } else if (record->state != State::abandoned || !record->attempt) {
    return;  // it has settled meanwhile
  }
  run_begun(lock, std::move(record), is_worker, now);
}

/// Runs a job that counts as running on this thread. `lock` is held before and after.
void Core::run_begun(base::Lock& lock, std::shared_ptr<Record> record, bool is_worker,
                     Instant& now) noexcept {
  const std::size_t queue = record->queue;
  record->run_by = &jobs_on_this_thread;
  if (is_worker && record->may_share && !record->attempt) take_batch_locked(*record);
  if (is_worker)
    wake_worker(std::move(lock));
  else
    lock.unlock();
  ++jobs_on_this_thread;
  const Progress progress = run(*record, is_worker, now);
  record.reset();
  --jobs_on_this_thread;
  lock = base::lock_soon(mutex_);
  end_run_locked(queue, progress);
}

/// Counts a job of a queue, which counted as committed, as a job that this thread runs no longer.
void Core::end_run_locked(std::size_t queue, Progress progress) noexcept {
  if (progress == Progress::in_flight) {
    --users_;  // `detach` has counted this thread
  } else {
    --queues_[queue].committed;
    if (progress == Progress::completed) resume_locked(queues_[queue].pause);
    job_stopped_.wake_all();
    if (closing_) work_.wake_all();  // workers end with the last job in flight
  }
  note_quiet_locked();
}

/// Returns the heap with the next job, of one heap for each priority; null if all are empty. Of
/// jobs with the same rank, the one of the higher priority is next.
Core::Heap* Core::first_of(std::array<Heap*, levels> heaps) noexcept {
  Heap* next = nullptr;
  for (Heap* const heap : heaps)
    if (heap && (!next || heap->front().rank < next->front().rank)) next = heap;
  return next;
}

/// Returns the heap with the first job of a queue in one level; null if there is none.
Core::Heap* Core::first_in_locked(Queue& queue, std::size_t level) noexcept {
  Heap& ready = queue.ready[level];
  Heap& staged = queue.staged[level];
  if (ready.empty()) return staged.empty() ? nullptr : &staged;
  return staged.empty() || later(staged.front(), ready.front()) ? &ready : &staged;
}

/// Returns the heap with the next job to run; null if no job may run.
Core::Heap* Core::next_heap_locked() noexcept {
  if (ready_.load(std::memory_order_relaxed) == 0) return nullptr;
  std::array<Heap*, levels> firsts{};
  for (std::size_t level = 0; level < levels; ++level) {
    Heap*& first = firsts[level];
    for (std::size_t q = 0; q < queues_.size(); ++q) {
      if (!has_room_locked(q)) continue;
      Heap* const heap = first_in_locked(queues_[q], level);
      if (heap && (!first || later(first->front(), heap->front()))) first = heap;
    }
  }
  return first_of(firsts);
}

/// Returns the heap with the next job to stage: of a device without room whose limit of staged jobs
/// is not reached. Null if there is none, or if a job is being staged: jobs are staged one after
/// the other, in their order.
Core::Heap* Core::next_to_stage_locked() noexcept {
  if (staging_) return nullptr;
  for (std::size_t q = on_threads + 1; q < queues_.size(); ++q) {
    Queue& queue = queues_[q];
    if (queue.staged_jobs >= queue.staged_limit || queue.pause.until || has_room_locked(q)) continue;
    std::array<Heap*, levels> firsts{};
    for (std::size_t level = 0; level < levels; ++level)
      if (!queue.ready[level].empty()) firsts[level] = &queue.ready[level];
    Heap* const first = first_of(firsts);
    if (first && is_worth_staging(*first->front().record)) return first;
  }
  return nullptr;
}

/// Takes the first job of the heap that `find_next` returns: the next one to run (`runs`), or to
/// stage. Null if there is none.
template <class Find>
std::shared_ptr<Record> Core::pop_locked(bool runs, Find find_next) {
  while (Heap* const next = find_next()) {
    std::pop_heap(next->begin(), next->end(), later);
    const bool is_old = next->back().is_old();
    auto record = std::move(next->back().record);
    next->pop_back();
    ready_.fetch_sub(1, std::memory_order_relaxed);
    TagState* const tag = record->tag_state;
    const bool is_staging = record->state == State::staging;
    // Another thread has run or cancelled it.
    if (is_old || (!is_staging && record->state != State::queued)) {
      if (tag) release_held_locked(*tag);
      continue;
    }
    if (tag && tag->is_full()) {
      hold_locked(std::move(record));
      continue;
    }
    if (tags_.has_shares() && runs) tags_.started(record->due);
    if (is_staging) {  // the thread that stages it runs it next
      record->is_due = true;
      ++queues_[record->queue].committed;
      begin_locked(*record, false);
      continue;
    }
    return record;
  }
  return nullptr;
}

std::shared_ptr<Record> Core::pop_locked() {
  return pop_locked(true, [this] { return next_heap_locked(); });
}

/// Takes jobs that wait for the same device into the submission of a job that starts there. The
/// jobs that wait are divided among its lane and the free ones: none is taken that could have a
/// lane of its own.
void Core::take_batch_locked(Record& leader) noexcept {
  constexpr Duration most_work = std::chrono::milliseconds(1);
  Queue& queue = queues_[leader.queue];
  // The lanes of a device share it: a job takes longer while others run.
  const auto time_of = [&](const Record& record) -> std::optional<Duration> {
    if (!record.may_share || !record.mean_run_time || *record.mean_run_time == Duration::zero())
      return std::nullopt;
    return *record.mean_run_time / queue.committed;
  };
  const auto own = time_of(leader);
  if (!own) return;
  Duration work = *own;
  std::size_t waiting = 1;
  for (std::size_t level = 0; level < levels; ++level)
    waiting += queue.ready[level].size() + queue.staged[level].size();
  // More jobs than `limit` are committed while some of a failed batch run alone.
  const std::size_t free = queue.limit - std::min(queue.limit, queue.committed - 1);
  if (free == 0) return;
  const std::size_t most = std::min<std::size_t>(options_.batch_limit, (waiting + free - 1) / free);
  const auto find_next = [&]() -> Heap* {
    std::array<Heap*, levels> firsts{};
    for (std::size_t level = 0; level < levels; ++level) firsts[level] = first_in_locked(queue, level);
    Heap* const heap = first_of(firsts);
    if (!heap) return nullptr;
    const Record& next = *heap->front().record;
    const State state = next.state;
    if (state == State::staging) return nullptr;
    if (state != State::queued) return heap;  // it has settled, and is skipped
    const auto time = time_of(next);
    return time && work + *time <= most_work ? heap : nullptr;
  };
  std::uint8_t size = 1;
  for (Record** last = &leader.batch; size < most;) {
    std::shared_ptr<Record> next = pop_locked(true, find_next);
    if (!next) break;
    if (!next->advance(State::queued, State::running)) continue;  // it has been cancelled
    work += *time_of(*next);
    begin_locked(*next, false);
    Record* const member = next.get();
    member->self_listed = std::move(next);
    member->next_listed = nullptr;
    *last = member;
    last = &member->next_listed;
    ++size;
  }
  if (size == 1) return;
  leader.leads_batch = true;
  for (Record* one = &leader; one; one = one->next_in_batch()) one->batch_size = size;
}

/// Sets a record aside until its tag has room.
void Core::hold_locked(std::shared_ptr<Record> record) noexcept {
  TagState& tag = *record->tag_state;
  expect_no_more_locked(*record);
  ++queues_[record->queue].held;
  Record* const last = record.get();
  last->self_listed = std::move(record);
  last->next_listed = nullptr;
  *tag.last_held = last;
  tag.last_held = &last->next_listed;
}

/// Takes the first record of a tag that was set aside; null if there is none.
std::shared_ptr<Record> Core::take_held_locked(TagState& tag) noexcept {
  Record* const first = tag.first_held;
  if (!first) return nullptr;
  tag.first_held = std::exchange(first->next_listed, nullptr);  // it may be listed as returned next
  if (!tag.first_held) tag.last_held = &tag.first_held;
  --queues_[first->queue].held;
  return std::move(first->self_listed);
}

/// Returns the next record that was set aside to its queue, if its tag has room.
void Core::release_held_locked(TagState& tag) noexcept {
  if (closing_ || tag.is_full()) return;
  if (auto record = take_held_locked(tag)) {
    push_locked(std::move(record));
    ready_.fetch_add(1, std::memory_order_relaxed);
  }
}

void Core::work() noexcept {
  base::Lock lock = base::lock_soon(mutex_);
  const auto is_closed = [&] { return closing_ && in_flight_ == 0 && !first_returned_; };
  const auto has_work = [&] { return is_closed() || waking_ || has_work_locked(); };
  const auto* const manual = dynamic_cast<const ManualClock*>(clock_);
  Instant now;  // when the job before ended, unless the thread has waited since
  for (;;) {
    if (!has_work()) {
      now = {};
      ++spinning_;
      (void)base::seen_before_parking(lock, [&] { return ready_.load(std::memory_order_relaxed) > 0; });
      --spinning_;
    }
    ++parked_;
    const Instant expiry = first_expiry_locked();
    watched_until_ = std::min(watched_until_, expiry);
    std::optional<base::WokenByClock> woken;
    if (manual && in_flight_ > 0) woken.emplace(*manual, mutex_, work_);
    work_.wait(lock, expiry, [&] { return has_work() || (woken && has_expired_locked()); });
    woken.reset();
    watched_until_ = Instant::max();
    --parked_;
    waking_ = false;
    return_expired_locked();
    resume_due_locked();
    if (is_closed()) return;
    ++users_;
    if (Record* const returned = first_returned_) {
      first_returned_ = std::exchange(returned->next_listed, nullptr);
      if (!first_returned_) last_returned_ = &first_returned_;
      ready_.fetch_sub(1, std::memory_order_relaxed);
      run_popped(lock, std::move(returned->self_listed), true, now);
    } else if (auto record = pop_locked()) {
      run_popped(lock, std::move(record), true, now);
    } else if (auto next = pop_locked(false, [this] { return next_to_stage_locked(); })) {
      now = {};
      stage(lock, std::move(next), now);
    }
    --users_;
    note_quiet_locked();
  }
}

/// Prepares the device of a job that waits for a lane. It keeps its place in the queue meanwhile:
/// if its turn comes, it starts here as soon as its device is prepared. `lock` is held before and
/// after.
void Core::stage(base::Lock& lock, std::shared_ptr<Record> record, Instant& now) noexcept {
  if (!record->advance(State::queued, State::staging)) return;
  Queue& queue = queues_[record->queue];
  std::optional<Error> error;
  record->is_staged = true;
  ++queue.staged_jobs;
  queue.prepared = record->program;
  try {
    push_locked(record);
    ready_.fetch_add(1, std::memory_order_relaxed);
    staging_ = record.get();
    wake_worker(std::move(lock));
    prepare_device(*record);
    lock = base::lock_soon(mutex_);
    staging_ = nullptr;
    if (closing_) job_stopped_.wake_all();
  } catch (const std::bad_alloc&) {
    error = spare_.out_of_memory;
  }
  if (std::exchange(record->is_due, false)) {
    if (record->advance(State::staging, State::running)) return run_begun(lock, std::move(record), true, now);
    --queue.committed;  // abandoned
    return;
  }
  if (!record->advance(State::staging, State::queued)) return;  // abandoned
  if (closing_ && !error)
    error = error_or(spare_.closed, [&] {
      return Error(Errc::closed,
                   base::text("{} had not started when the scheduler was closed.", record->subject()));
    });
  wake_worker(std::move(lock));
  // Calls that came while it was staged could not settle it.
  if (error) settle(*record, State::queued, std::move(error));
  if (record->stop) cancel(*record);
  if (record->start_by != Instant::max() && clock_->now() >= record->start_by) expire(*record);
  record.reset();
  lock = base::lock_soon(mutex_);
}

/// Runs a queued job on the calling thread if there is room. Returns whether it did, without `lock`
/// then.
bool Core::run_if_room(base::Lock& lock, Record& record) {
  const bool nested = runs_job();
  const std::size_t queue = record.queue;
  if (!nested && (!has_room_locked(queue) || (record.tag_state && record.tag_state->is_full()))) return false;
  if (!record.advance(State::queued, State::running)) return false;
  (nested ? users_ : queues_[queue].committed) += 1;
  begin_locked(record, nested);
  record.run_by = &jobs_on_this_thread;
  lock.unlock();
  ++jobs_on_this_thread;
  Instant now;
  const Progress progress = run(record, false, now);
  --jobs_on_this_thread;
  if (nested) return end_use(), true;
  lock = base::lock_soon(mutex_);
  end_run_locked(queue, progress);
  wake_worker(std::move(lock));
  return true;
}

/// Counts and lists a job that this thread runs next.
void Core::begin_locked(Record& record, bool is_nested) noexcept {
  leave_queue_locked(record);
  if (!record.mean_run_time) observe_locked(record);
  record.counts_for_tag = record.tag_state && !is_nested;
  if (record.counts_for_tag) ++record.tag_state->running;
  ++running_;
  record.active_next = active_;
  if (active_) active_->active_previous = &record;
  active_ = &record;
}

/// Counts a job that waits no longer.
void Core::leave_queue_locked(Record& record) noexcept {
  --queued_;
  expect_no_more_locked(record);
  if (std::exchange(record.is_staged, false)) --queues_[record.queue].staged_jobs;
  if (waiting_for_room_ > 0 && queued_ < options_.max_queued) room_.wake_one();
}

/// Takes a job off the list. Called by the thread that settles it.
void Core::unlist_locked(Record& record) noexcept {
  if (record.active_next) record.active_next->active_previous = record.active_previous;
  (record.active_previous ? record.active_previous->active_next : active_) = record.active_next;
  record.active_previous = record.active_next = nullptr;
}

SchedulerMetrics Core::metrics_locked() const {
  SchedulerMetrics metrics = ledger_.metrics(pool_->fleet());
  metrics.queued = queued_;
  metrics.running = running_;
  return metrics;
}

}  // namespace wye::scheduler
