#include "scheduler/ready.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace wye::inline v0::scheduler {

Ready::Ready(const SchedulerOptions& options, const PoolOptions& pool, std::size_t devices, TimeBook& times,
             Places::MemoryInUse memory)
    : order_(options.order),
      observes_(options.batch_limit > 1 || options.placement == PlacementMode::learned),
      refuses_(options.refuse_unreachable),
      times_(times),
      places_(options.concurrent_jobs, pool.lanes_per_device, options.committed_per_lane, devices,
              std::move(memory)),
      lines_(places_, times, devices, options.placement == PlacementMode::learned),
      next_(options, devices, entries_, places_, times, lines_),
      tags_(options.tags, pool.tag_memory, options.order == JobOrder::fair_shares) {}

/// Returns where a job would be in the order within its priority, if it were ready now.
Instant Ready::next_due(const Waiting& job) const noexcept {
  switch (order_) {
    case JobOrder::earliest_deadline: return job.start_by;
    case JobOrder::fair_shares: return job.tag_state ? tags_.next_start(*job.tag_state) : Instant();
    case JobOrder::first_submitted: break;
  }
  return Instant();
}

void Ready::rank(Waiting& job) noexcept {
  job.due = tags_.has_shares() ? tags_.ready(*job.tag_state) : next_due(job);
}

/// Returns the row of the times of jobs like a job that runs at a place; null: they are not observed.
TimeBook::Row* Ready::row_of(const Waiting& job, std::uint16_t place) noexcept {
  const std::uint16_t group = place != on_threads ? places_[place].group : lines_.first_group_of(job);
  if (lines_.is_shared(job)) {
    const Line* const line = job.waits.line ? job.waits.line : lines_.find(job);
    const Line::Group* const of = line ? line->of(group) : nullptr;
    return of ? of->times : nullptr;
  }
  return refuses_ || (observes_ && job.line != on_threads) ? times_.row(job.kind(group), job.named) : nullptr;
}

void Ready::push(std::shared_ptr<Waiting> job) {
  Line* const line = job->waits.line ? job->waits.line : lines_.find(*job);
  if (!line) throw std::bad_alloc();
  const std::size_t level = job->level();
  Entries& jobs = (job->waits.is_staged ? lines_.staged(job->place) : line->jobs)[level];
  jobs.reserve(line->held + 1);  // those that return from the list of their tag find room
  if (!job->waits.line) {
    job->waits.line = line;
    lines_.use(*line, 1);
  }
  if (job->waits.expected == Duration::zero()) {
    const TimeBook::Row* const row = line->is_shared() ? nullptr : row_of(*job, job->line);
    job->waits.expected = row ? row->held() : line->held_on(line->home);
    if (job->waits.expected != Duration::zero()) ++line->expected[level].jobs;
    line->expected[level].run_time += job->waits.expected;
  }
  if (!job->waits.is_staged) lines_.use(*line, 1);
  jobs.push(
      {.due = job->due, .sequence = job->sequence, .number = ++job->waits.entries, .job = std::move(job)});
  entries_.add(level, 1);
}

void Ready::push_returned(std::shared_ptr<Waiting> job) noexcept {
  Waiting* const last = job.get();
  last->listed.self = std::move(job);
  *last_returned_ = last;
  last_returned_ = &last->listed.next;
  entries_.add_returned(1);
}

std::shared_ptr<Waiting> Ready::pop_returned() noexcept {
  Waiting* const returned = first_returned_;
  first_returned_ = std::exchange(returned->listed.next, nullptr);
  if (!first_returned_) last_returned_ = &first_returned_;
  entries_.add_returned(-1);
  return std::move(returned->listed.self);
}

/// Removes the entry of a job that was found.
std::shared_ptr<Waiting> Ready::pop_entry(const Found& found) noexcept {
  std::shared_ptr<Waiting> job = found.is_last ? found.jobs->pop_back() : found.jobs->pop_front();
  entries_.add(job->level(), -1);
  if (found.line) lines_.use(*found.line, -1);
  return job;
}

/// Takes a job that was found, to run it (`runs`) or to stage it. Null if another thread has run or
/// cancelled it, or if its tag is full: it is set aside then.
std::shared_ptr<Waiting> Ready::take_found(const Found& found, bool runs) noexcept {
  const Entries& jobs = *found.jobs;
  if ((found.is_last ? jobs.back() : jobs.front()).is_stale()) {
    Found stale = found;
    do {  // threads that wait for their jobs leave many
      if (TagState* const tag = pop_entry(stale)->tag_state) release_held(*tag);
      stale.is_last = false;
    } while (!jobs.empty() && jobs.front().is_stale());
    return nullptr;
  }
  std::shared_ptr<Waiting> job = pop_entry(found);
  if (job->tag_state && job->tag_state->is_full()) {
    hold(std::move(job));
    return nullptr;
  }
  if (tags_.has_shares() && runs) tags_.started(job->due);
  if (job->place != found.place && std::exchange(job->waits.is_staged, false)) --places_[job->place].staged;
  if (runs)
    take_place(*job, {found.place, found.chosen});
  else
    job->place = found.place;
  return job;
}

void Ready::stage(std::shared_ptr<Waiting> job) {
  Places::Place& here = places_[job->place];
  job->waits.is_staged = true;
  ++here.staged;
  here.prepared = job->kernels;
  push(std::move(job));
}

std::shared_ptr<Waiting> Ready::take_last(const Waiting& job) noexcept {
  const std::size_t own = job.level();
  for (std::size_t level = levels; level-- > own;) {
    Entries* jobs = nullptr;
    Line* line = nullptr;
    const Entry* last = nullptr;
    each_levels([&](Levels& of, Line* of_line) {
      of[level].each([&](const Entry& entry) {
        if (entry.job->state == State::staging || (last && !entry.runs_after(*last))) return;
        jobs = &of[level];
        line = of_line;
        last = &entry;
      });
    });
    if (!last || (level == own && next_due(job) >= last->due)) continue;
    entries_.add(level, -1);
    if (line) lines_.use(*line, -1);
    return jobs->remove(*last);
  }
  return nullptr;
}

std::shared_ptr<Waiting> Ready::take_any() noexcept {
  std::shared_ptr<Waiting> any;
  each_levels([&](Levels& of, Line* line) {
    for (Entries& jobs : of)
      if (!any && !jobs.empty()) any = pop_entry({.jobs = &jobs, .line = line, .is_last = true});
  });
  while (TagState* const tag = any ? nullptr : tags_.with_held()) any = take_held(*tag);
  return any;
}

bool Ready::has_work(bool may_stage) noexcept {
  return has_returned() || next_.to_run().jobs || (may_stage && next_.to_stage().jobs);
}

std::size_t Ready::jobs_per_lane(std::uint16_t place) const noexcept {
  const Places::Place& here = places_[place];
  // More jobs than `limit` are committed while some of a failed batch run alone.
  std::size_t free = here.limit - std::min(here.limit, here.committed - 1);
  if (free == 0) return 1;
  std::size_t jobs = 1;
  const auto add = [&](const Levels& of) {
    for (const Entries& level : of) jobs += level.size();
  };
  add(lines_[place].jobs);
  add(lines_.staged(place));
  if (here.shares) {
    lines_.each_at(here.group, [&](const Line& line) { add(line.jobs); });
    lines_.each_place(here.group, [&](std::uint16_t other) {
      const Places::Place& equal = places_[other];
      if (other != place) free += equal.limit - std::min(equal.limit, equal.committed);
    });
  }
  return (jobs + free - 1) / free;
}

/// Returns why a place takes a job: by time if it is not one of the first places in the order of the table.
Chosen Ready::chosen_for(const Waiting& job, const Room& room) const noexcept {
  const bool is_first = room.place == on_threads || places_[room.place].group == lines_.first_group_of(job);
  if (room.chosen != Chosen::by_order || is_first) return room.chosen;
  return job.preferred != 0 && job.waits.is_due_here ? Chosen::idle : Chosen::by_time;
}

void Ready::take_place(Waiting& job, const Room& room) noexcept {
  if (job.place != room.place) job.place = room.place;  // otherwise a thread that stages the job may read it
  job.runs.times = row_of(job, room.place);
  job.runs.chosen = chosen_for(job, room);
  const std::uint16_t group = places_[room.place].group;
  if (job.runs.chosen == Chosen::trial) places_[group].runs_trial = true;
  const Duration alone = lines_.is_shared(job) && job.waits.line ? job.waits.line->time_on(group)
                         : job.runs.times                        ? job.runs.times->mean()
                                                                 : Duration::zero();
  job.runs.estimate = alone * (1 + places_.jobs_on_processor(room.place));
}

void Ready::end_trial(Waiting& job) noexcept {
  if (job.runs.chosen == Chosen::trial) places_[places_[job.place].group].runs_trial = false;
}

void Ready::leave(Waiting& job) noexcept {
  if (!job.waits.line) return;
  expect_no_more(job);
  Line* const line = job.waits.is_staged ? nullptr : job.waits.line;
  Entries& jobs = (line ? line->jobs : lines_.staged(job.place))[job.level()];
  // Often it is the next one or was added last. Otherwise `take` drops its entry.
  if (!jobs.empty() && jobs.front().job.get() == &job)
    pop_entry({.jobs = &jobs, .line = line});
  else if (!jobs.empty() && jobs.back().job.get() == &job)
    pop_entry({.jobs = &jobs, .line = line, .is_last = true});
  if (std::exchange(job.waits.is_staged, false)) --places_[job.place].staged;
  if (std::exchange(job.waits.is_held, false)) --job.waits.line->held;
  lines_.use(*std::exchange(job.waits.line, nullptr), -1);
}

/// Sets a job aside until its tag has room.
void Ready::hold(std::shared_ptr<Waiting> job) noexcept {
  TagState& tag = *job->tag_state;
  expect_no_more(*job);
  job->waits.is_held = true;
  ++job->waits.line->held;
  Waiting* const last = job.get();
  last->listed.self = std::move(job);
  last->listed.next = nullptr;
  *tag.last_held = last;
  tag.last_held = &last->listed.next;
}

std::shared_ptr<Waiting> Ready::take_held(TagState& tag) noexcept {
  while (Waiting* const first = tag.first_held) {
    tag.first_held = std::exchange(first->listed.next, nullptr);  // it may be listed as returned next
    if (!tag.first_held) tag.last_held = &tag.first_held;
    std::shared_ptr<Waiting> job = std::move(first->listed.self);
    if (!std::exchange(job->waits.is_held, false)) continue;  // it has left
    --job->waits.line->held;
    return job;
  }
  return nullptr;
}

void Ready::release_held(TagState& tag) noexcept {
  if (tag.is_full()) return;
  if (auto job = take_held(tag)) push(std::move(job));
}

void Ready::resume(TagState& tag) noexcept {
  if (!tag.pause.until) return;
  places_.resume(tag.pause);
  while (auto job = take_held(tag)) push(std::move(job));
}

void Ready::resume_due(Instant now) noexcept {
  if (!places_.has_pauses()) return;
  places_.resume_due(now);
  tags_.each([&](TagState& tag) {
    if (tag.pause.until && *tag.pause.until <= now) resume(tag);
  });
}

Instant Ready::first_resume() noexcept {
  if (!places_.has_pauses()) return Instant::max();
  Instant first = places_.first_resume();
  tags_.each([&](const TagState& tag) { first = std::min(first, tag.pause.until.value_or(first)); });
  return first;
}

/// Removes a job that starts, settles or is set aside from the expected work of its line.
void Ready::expect_no_more(Waiting& job) noexcept {
  if (job.waits.expected == Duration::zero()) return;
  Expected& expected = job.waits.line->expected[job.level()];
  --expected.jobs;
  expected.run_time -= std::exchange(job.waits.expected, Duration::zero());
}

/// Returns the jobs that wait in a line of one place, or at a group, and run before a job.
Expected Ready::before(const Waiting& job, std::uint16_t at) noexcept {
  const std::size_t own = job.level();
  const Instant due = next_due(job);
  Expected before;
  // If jobs are not in the order of their submission, some of its priority run after it.
  const auto subtract = [&](const Entry& other) {
    const Waiting& waiting = *other.job;
    if (order_ == JobOrder::first_submitted || other.due <= due || other.is_old() ||
        waiting.waits.expected == Duration::zero())
      return;
    --before.jobs;
    before.run_time -= waiting.waits.expected;
  };
  const auto add = [&](const Line& line) {
    for (std::size_t level = 0; level <= own; ++level) {
      before.jobs += line.expected[level].jobs;
      before.run_time += line.expected[level].run_time;
    }
    line.jobs[own].each(subtract);
  };
  const bool is_shared = lines_.is_shared(job);
  each_place_of(job, at, [&](std::uint16_t place) {
    add(lines_[place]);
    lines_.staged(place)[own].each([&](const Entry& other) {
      if (is_shared || !lines_.is_shared(*other.job)) subtract(other);
    });
  });
  if (is_shared) lines_.each_at(at, add);
  return before;
}

/// Returns the expected start of a job at a place, or on a group of devices that share it.
Start Ready::start_at(const Waiting& job, std::uint16_t at) noexcept {
  Start start{.at = at, .running = Duration::max(), .before = before(job, at), .at_a_time = 0};
  each_place_of(job, at, [&](std::uint16_t place) {
    start.at_a_time += places_[place].limit;
    start.running = std::min(start.running, places_[place].until_room);
  });
  if (start.at_a_time == 0) return {.at = at, .before = start.before};
  return start;
}

Start Ready::find_start(const Waiting& job, Duration left) noexcept {
  if (!lines_.is_shared(job)) return start_at(job, job.line);
  lines_.find_homes();
  const Line* const line = lines_.find(job);
  const std::uint16_t home = line ? line->home : lines_.first_group_of(job);
  Start first = start_at(job, home);
  if (!line || first.after() <= left) return first;
  for (const Line::Group& group : line->groups) {
    if (group.number == home || !lines_.takes_jobs(group.number)) continue;
    const Start other = start_at(job, group.number);
    if (other.after() < first.after()) first = other;
  }
  first.is_home = first.at == home;
  return first;
}

Foreseen Ready::foresee(const Waiting& job) noexcept {
  Foreseen there;
  if (const auto room = next_.find_room(job)) {
    there.room = *room;
  } else {
    there.room.place = first_place_of(job);
    there.wait = find_start(job, Duration::max()).after();
  }
  there.room.chosen = chosen_for(job, there.room);
  return there;
}

/// Returns the place, of those that a job waits for, that comes first.
std::uint16_t Ready::first_place_of(const Waiting& job) noexcept {
  if (!lines_.is_shared(job)) return job.line;
  std::uint16_t first = lines_.home_of(job);
  lines_.each_place(first, [&](std::uint16_t place) {
    if (places_.comes_before(place, first)) first = place;
  });
  return first;
}

}  // namespace wye::scheduler
