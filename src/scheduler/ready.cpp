#include "scheduler/ready.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace wye::inline v0::scheduler {

Ready::Ready(const SchedulerOptions& options, const PoolOptions& pool, std::size_t devices, TimeBook& times,
             Places::MemoryInUse memory)
    : order_(options.order),
      aging_(std::min<Duration>(options.aging, std::chrono::hours(24 * 36500))),
      observes_(options.batch_limit > 1),
      refuses_(options.refuse_unreachable),
      most_places_(1 + devices),
      times_(times),
      places_(options.concurrent_jobs, pool.lanes_per_device, options.committed_per_lane, devices,
              std::move(memory)),
      lines_(2 * most_places_),
      staged_(most_places_),
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

void Ready::push(std::shared_ptr<Waiting> job) {
  Line& line = lines_[job->line];
  const std::size_t level = level_of(*job);
  observe(*job);
  if (job->expected == Duration::zero() && job->mean_time() != Duration::zero()) {
    job->expected = job->mean_time();
    ++line.expected[level].jobs;
    line.expected[level].run_time += job->expected;
  }
  Entries& jobs = (job->is_staged ? staged_[job->place] : line.jobs)[level];
  jobs.reserve(line.held + 1);  // those that return from the list of their tag find room
  jobs.push({.due = job->due, .sequence = job->sequence, .number = ++job->entries, .job = std::move(job)});
  entries_.add(level, 1);
}

void Ready::push_returned(std::shared_ptr<Waiting> job) noexcept {
  Waiting* const last = job.get();
  last->self_listed = std::move(job);
  *last_returned_ = last;
  last_returned_ = &last->next_listed;
  entries_.add_returned(1);
}

std::shared_ptr<Waiting> Ready::pop_returned() noexcept {
  Waiting* const returned = first_returned_;
  first_returned_ = std::exchange(returned->next_listed, nullptr);
  if (!first_returned_) last_returned_ = &first_returned_;
  entries_.add_returned(-1);
  return std::move(returned->self_listed);
}

/// Removes the entry of a job that was found.
std::shared_ptr<Waiting> Ready::pop_entry(const Found& found) noexcept {
  std::shared_ptr<Waiting> job = found.is_last ? found.jobs->pop_back() : found.jobs->pop_front();
  entries_.add(level_of(*job), -1);
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
  if (job->place != found.place) {  // otherwise a thread that stages the job may read it
    if (std::exchange(job->is_staged, false)) --places_[job->place].staged;
    job->place = found.place;
  }
  if (runs && found.place != on_threads && places_[found.place].group != group_of(job->line))
    job->time_row = nullptr;  // it moves
  return job;
}

/// Returns the jobs of one level of which the first is the next one of a place; null if there is none.
/// A job that is staged on an equal device without room comes after all others.
Entries* Ready::first_in(std::uint16_t place, std::size_t level) noexcept {
  Entries* first = nullptr;
  const auto look = [&](Entries& jobs) {
    if (!jobs.empty() && (!first || first->front().runs_after(jobs.front()))) first = &jobs;
  };
  const Places::Place& here = places_[place];
  look(lines_[place].jobs[level]);
  if (place == on_threads) return first;
  look(staged_[place][level]);
  if (!here.shares || here.refusal.until) return first;
  const std::size_t line = most_places_ + here.group;
  look(lines_[line].jobs[level]);
  if (first) return first;
  each_place(static_cast<std::uint16_t>(line), [&](std::uint16_t other) {
    Entries& staged = staged_[other][level];
    if (other == place || staged.empty() || places_.has_room(other)) return;
    const Waiting& job = *staged.front().job;
    if (job.line == line && job.state != State::staging) look(staged);
  });
  return first;
}

/// Returns the next job, of one for each priority: that of the lowest rank, which is the time of its
/// submission, later by `aging` for each priority below the highest. Of jobs with the same rank, the
/// job of the higher priority is next.
Ready::Found Ready::first_of(const Firsts& firsts) const noexcept {
  Found next;
  Instant least;
  for (std::size_t level = 0; level < levels; ++level) {
    const Found& one = firsts[level];
    if (!one.jobs) continue;
    const Instant rank = one.jobs->front().job->submitted + static_cast<std::int64_t>(level) * aging_;
    if (next.jobs && rank >= least) continue;
    next = one;
    least = rank;
  }
  return next;
}

Ready::Found Ready::first_for(std::uint16_t place) noexcept {
  Firsts firsts{};
  for (std::size_t level = 0; level < levels; ++level) firsts[level] = {first_in(place, level), place};
  return first_of(firsts);
}

/// Returns the next job to run; none if no job may run.
Ready::Found Ready::next() noexcept {
  if (count() == 0) return {};
  Firsts firsts{};
  for (std::uint16_t p = 0; p < places_.size(); ++p) {
    if (!places_.has_room(p)) continue;
    for (std::size_t level = 0; level < levels; ++level) {
      Entries* const jobs = entries_.has(level) ? first_in(p, level) : nullptr;
      Found& first = firsts[level];
      if (!jobs || (first.jobs && first.jobs != jobs && !first.jobs->front().runs_after(jobs->front())))
        continue;
      if (first.jobs != jobs || places_.comes_before(p, first.place)) first = {jobs, p};
    }
  }
  const Found found = first_of(firsts);
  return found.jobs ? found : next_to_move();
}

/// Returns a job that waits for other devices, for a device with room that has no job.
Ready::Found Ready::next_to_move() noexcept {
  for (std::uint16_t to = 1; to < places_.size(); ++to) {
    const Places::Place& here = places_[to];
    if (here.unlike == 0 || here.refusal.until || !places_.has_room(to)) continue;
    for (std::size_t level = 0; level < levels; ++level)
      for (std::uint16_t from = 1; from < places_.size(); ++from) {
        if ((here.unlike >> (from - 1) & 1) == 0) continue;
        const std::uint16_t group = places_[from].group;
        if (from == group)
          if (const Found found = move_from(lines_[most_places_ + group].jobs[level], group, to); found.jobs)
            return found;
        if (const Found found = move_from(staged_[from][level], group, to); found.jobs) return found;
      }
  }
  return {};
}

/// Returns a job of some, of the devices of `group`, that another device takes. An entry of a job
/// that has settled is returned too: it is dropped.
Ready::Found Ready::move_from(Entries& jobs, std::uint16_t group, std::uint16_t to) noexcept {
  if (jobs.empty()) return {};
  if (jobs.front().is_stale()) return {&jobs, to};
  const auto line = static_cast<std::uint16_t>(most_places_ + group);
  Wait wait{.at_a_time = at_a_time(line)};
  std::size_t waiting = 0, may_stage = 0;
  for (std::size_t level = 0; level < levels; ++level) {
    waiting += lines_[line].jobs[level].size();
    wait.before += lines_[line].expected[level].run_time;
  }
  each_place(line, [&](std::uint16_t p) { may_stage += places_[p].staged_limit - places_[p].staged; });
  wait.is_long = waiting > may_stage;
  const auto move_of = [&](const Entry& entry) {
    const Waiting& job = *entry.job;
    if (job.state != State::queued || (job.movable >> (to - 1) & 1) == 0) return Move::none;
    wait.run = job.mean_time();
    return decide_move(wait, times_.find(job.kind(places_[to].group)).held.mean);
  };
  if (move_of(jobs.front()) == Move::first) return {&jobs, to};
  if (jobs.back().is_stale() || move_of(jobs.back()) != Move::none) return {&jobs, to, true};
  return {};
}

/// Returns the next job to stage, on that of its devices where the fewest jobs are staged.
Ready::Found Ready::next_to_stage() noexcept {
  Found best;
  for (std::uint16_t p = on_threads + 1; p < places_.size(); ++p) {
    const Places::Place& here = places_[p];
    if (here.staged >= here.staged_limit || here.pause.until || places_.has_room(p)) continue;
    if (best.jobs && places_[best.place].staged <= here.staged) continue;
    Firsts firsts{};
    for (std::size_t level = 0; level < levels; ++level) {
      Entries& own = lines_[p].jobs[level];
      Entries& shared = lines_[most_places_ + here.group].jobs[level];
      Entries* first = own.empty() ? nullptr : &own;
      if (here.shares && !here.refusal.until && !shared.empty() &&
          (!first || first->front().runs_after(shared.front())))
        first = &shared;
      firsts[level] = {first, p};
    }
    const Found found = first_of(firsts);
    if (!found.jobs) continue;
    const Waiting& job = *found.jobs->front().job;
    if (job.uses_arrays || job.kernels != here.prepared) best = found;
  }
  return best;
}

void Ready::stage(std::shared_ptr<Waiting> job) {
  Places::Place& here = places_[job->place];
  job->is_staged = true;
  ++here.staged;
  here.prepared = job->kernels;
  push(std::move(job));
}

std::shared_ptr<Waiting> Ready::take_last(const Waiting& job) noexcept {
  const std::size_t own = level_of(job);
  for (std::size_t level = levels; level-- > own;) {
    Entries* jobs = nullptr;
    const Entry* last = nullptr;
    each_levels([&](Levels& of) {
      of[level].each([&](const Entry& entry) {
        if (entry.job->state == State::staging || (last && !entry.runs_after(*last))) return;
        jobs = &of[level];
        last = &entry;
      });
    });
    if (!last || (level == own && next_due(job) >= last->due)) continue;
    entries_.add(level, -1);
    return jobs->remove(*last);
  }
  return nullptr;
}

std::shared_ptr<Waiting> Ready::take_any() noexcept {
  std::shared_ptr<Waiting> any;
  each_levels([&](Levels& of) {
    for (Entries& jobs : of)
      if (!any && !jobs.empty()) any = pop_entry({.jobs = &jobs, .is_last = true});
  });
  TagState* const tag = any ? nullptr : tags_.with_held();
  return tag ? take_held(*tag) : any;
}

bool Ready::has_work(bool may_stage) noexcept {
  return has_returned() || next().jobs || (may_stage && next_to_stage().jobs);
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
  add(staged_[place]);
  if (here.shares) {
    const auto line = static_cast<std::uint16_t>(most_places_ + here.group);
    add(lines_[line].jobs);
    each_place(line, [&](std::uint16_t other) {
      const Places::Place& equal = places_[other];
      if (other != place) free += equal.limit - std::min(equal.limit, equal.committed);
    });
  }
  return (jobs + free - 1) / free;
}

std::optional<std::uint16_t> Ready::find_room(const Waiting& job) const noexcept {
  std::optional<std::uint16_t> best;
  each_place(job.line, [&](std::uint16_t p) {
    if (!places_.has_room(p) || (job.line >= most_places_ && places_[p].refusal.until)) return;
    if (!best || places_.comes_before(p, *best)) best = p;
  });
  return best;
}

void Ready::leave(Waiting& job) noexcept {
  expect_no_more(job);
  Entries& jobs = (job.is_staged ? staged_[job.place] : lines_[job.line].jobs)[level_of(job)];
  // Often it is the next one or was added last. Otherwise `take` drops its entry.
  if (!jobs.empty() && jobs.front().job.get() == &job)
    pop_entry({.jobs = &jobs});
  else if (!jobs.empty() && jobs.back().job.get() == &job)
    pop_entry({.jobs = &jobs, .is_last = true});
  if (std::exchange(job.is_staged, false)) --places_[job.place].staged;
}

/// Sets a job aside until its tag has room.
void Ready::hold(std::shared_ptr<Waiting> job) noexcept {
  TagState& tag = *job->tag_state;
  expect_no_more(*job);
  ++lines_[job->line].held;
  Waiting* const last = job.get();
  last->self_listed = std::move(job);
  last->next_listed = nullptr;
  *tag.last_held = last;
  tag.last_held = &last->next_listed;
}

std::shared_ptr<Waiting> Ready::take_held(TagState& tag) noexcept {
  Waiting* const first = tag.first_held;
  if (!first) return nullptr;
  tag.first_held = std::exchange(first->next_listed, nullptr);  // it may be listed as returned next
  if (!tag.first_held) tag.last_held = &tag.first_held;
  --lines_[first->line].held;
  return std::move(first->self_listed);
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

void Ready::observe(Waiting& job) noexcept {
  const bool is_shared = job.line >= most_places_;
  if (job.time_row || (!refuses_ && !is_shared && (!observes_ || job.line == on_threads))) return;
  const std::uint16_t group = job.place != on_threads ? places_[job.place].group : group_of(job.line);
  job.time_row = times_.row(job.kind(group));
}

/// Removes a job that starts, settles or is set aside from the expected work of its line.
void Ready::expect_no_more(Waiting& job) noexcept {
  if (job.expected == Duration::zero()) return;
  Expected& expected = lines_[job.line].expected[level_of(job)];
  --expected.jobs;
  expected.run_time -= std::exchange(job.expected, Duration::zero());
}

Ready::Expected Ready::before(const Waiting& job) const noexcept {
  const std::size_t own = level_of(job);
  Expected before;
  for (std::size_t level = 0; level <= own; ++level) {
    before.jobs += lines_[job.line].expected[level].jobs;
    before.run_time += lines_[job.line].expected[level].run_time;
  }
  if (order_ == JobOrder::first_submitted) return before;
  const Instant due = next_due(job);  // some jobs of its priority run after it
  const auto subtract = [&](const Entry& other) {
    if (other.job->line != job.line || other.due <= due || other.is_old() ||
        other.job->expected == Duration::zero())
      return;
    --before.jobs;
    before.run_time -= other.job->expected;
  };
  lines_[job.line].jobs[own].each(subtract);
  each_place(job.line, [&](std::uint16_t p) { staged_[p][own].each(subtract); });
  return before;
}

std::uint32_t Ready::at_a_time(std::uint16_t line) const noexcept {
  std::uint32_t sum = 0;
  each_place(line, [&](std::uint16_t p) { sum += places_[p].limit; });
  return std::max(sum, 1u);
}

}  // namespace wye::scheduler
