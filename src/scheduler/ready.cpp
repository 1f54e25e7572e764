#include "scheduler/ready.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

namespace wye::inline v0::scheduler {

Ready::Ready(const SchedulerOptions& options, const PoolOptions& pool, std::size_t devices, TimeBook& times,
             Places::MemoryInUse memory)
    : order_(options.order),
      aging_(std::min<Duration>(options.aging, std::chrono::hours(24 * 36500))),
      observes_(options.batch_limit > 1),
      refuses_(options.refuse_unreachable),
      learns_(options.placement == PlacementMode::learned),
      times_(times),
      places_(options.concurrent_jobs, pool.lanes_per_device, options.committed_per_lane, devices,
              std::move(memory)),
      lines_(places_, times, devices, learns_),
      staged_(1 + devices),
      waits_(1 + devices),
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

/// Returns the row of the times of jobs like one that runs at a place; null: they are not observed.
TimeBook::Row* Ready::row_of(const Waiting& job, std::uint16_t place) noexcept {
  const std::uint16_t group = place != on_threads ? places_[place].group : lines_.first_group_of(job);
  if (lines_.is_shared(job)) {
    const Line* const line = job.in_line ? job.in_line : lines_.find(job);
    const Line::Group* const of = line ? line->of(group) : nullptr;
    return of ? of->times : nullptr;
  }
  return refuses_ || (observes_ && job.line != on_threads) ? times_.row(job.kind(group)) : nullptr;
}

void Ready::push(std::shared_ptr<Waiting> job) {
  Line* const line = job->in_line ? job->in_line : lines_.find(*job);
  if (!line) throw std::bad_alloc();
  const std::size_t level = job->level();
  Entries& jobs = (job->is_staged ? staged_[job->place] : line->jobs)[level];
  jobs.reserve(line->held + 1);  // those that return from the list of their tag find room
  if (!job->in_line) {
    job->in_line = line;
    lines_.use(*line, 1);
  }
  if (job->expected == Duration::zero()) {
    const TimeBook::Row* const row = line->is_shared() ? nullptr : row_of(*job, job->line);
    job->expected = row ? row->mean() : line->time_on(line->home);
    if (job->expected != Duration::zero()) ++line->expected[level].jobs;
    line->expected[level].run_time += job->expected;
  }
  if (!job->is_staged) lines_.use(*line, 1);
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
  if (job->place != found.place) {  // otherwise a thread that stages the job may read it
    if (std::exchange(job->is_staged, false)) --places_[job->place].staged;
    job->place = found.place;
  }
  if (runs) take_place(*job, {found.place, found.chosen});
  return job;
}

/// Returns the next job of a place in one level that is not staged.
Ready::Found Ready::first_unstaged(std::uint16_t place, std::size_t level) noexcept {
  const Places::Place& here = places_[place];
  Found first{.line = &lines_[place], .place = place};
  if (!lines_[place].jobs[level].empty()) first.jobs = &lines_[place].jobs[level];
  if (place == on_threads || !here.shares || here.refusal.until) return first;
  lines_.each_at(here.group, [&](Line& line) {
    Entries& jobs = line.jobs[level];
    if (!jobs.empty() && (!first.jobs || first.jobs->front().runs_after(jobs.front())))
      first = {.jobs = &jobs, .line = &line, .place = place};
  });
  return first;
}

/// Returns the next job of a place in one level. A job that is staged on an equal device without room
/// comes after all others.
Ready::Found Ready::first_in(std::uint16_t place, std::size_t level) noexcept {
  Found first = first_unstaged(place, level);
  if (place == on_threads) return first;
  const auto look = [&](Entries& staged) {
    if (!staged.empty() && (!first.jobs || first.jobs->front().runs_after(staged.front())))
      first = {.jobs = &staged, .place = place};
  };
  look(staged_[place][level]);
  const Places::Place& here = places_[place];
  if (first.jobs || !here.shares || here.refusal.until) return first;
  lines_.each_place(here.group, [&](std::uint16_t other) {
    Entries& staged = staged_[other][level];
    if (other == place || staged.empty() || places_.has_room(other)) return;
    const Waiting& job = *staged.front().job;
    if (lines_.is_shared(job) && job.state != State::staging) look(staged);
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
  lines_.find_homes();
  Firsts firsts{};
  for (std::size_t level = 0; level < levels; ++level) firsts[level] = first_in(place, level);
  return first_of(firsts);
}

/// Returns the next job to run; none if no job may run.
Ready::Found Ready::next() noexcept {
  if (count() == 0) return {};
  lines_.find_homes();
  if (const Found trial = next_trial(false); trial.jobs) return trial;
  Firsts firsts{};
  for (std::uint16_t p = 0; p < places_.size(); ++p) {
    if (!places_.has_room(p)) continue;
    for (std::size_t level = 0; level < levels; ++level) {
      const Found one = entries_.has(level) ? first_in(p, level) : Found{};
      Found& first = firsts[level];
      if (!one.jobs ||
          (first.jobs && first.jobs != one.jobs && !first.jobs->front().runs_after(one.jobs->front())))
        continue;
      if (first.jobs != one.jobs || places_.comes_before(p, first.place)) first = one;
    }
  }
  if (const Found found = first_of(firsts); found.jobs) return found;
  if (const Found trial = next_trial(true); trial.jobs) return trial;
  return next_to_move();
}

/// Returns whether a trial of the kind of a line may run on a group. It may take as long as its kernels
/// have run in all if its device `is_idle`: it has no job of its own. Otherwise, or if they have run
/// there, as a fiftieth of the time that they have run since.
bool Ready::is_worth_trying(const Line& line, std::uint16_t group, bool is_idle) const noexcept {
  constexpr int part = 50;
  const Line::Group* const here = line.of(group);
  const Duration at_home = line.time_on(line.home);
  if (!here || !here->times || at_home == Duration::zero()) return false;
  const Duration since = here->times->run_since();
  if (here->times->has_run()) return here->time() <= since / part;
  const Duration limit = is_idle ? since : since / part;
  return at_home <= limit && times_.slowness(group, line.home) * milliseconds(at_home) <= milliseconds(limit);
}

/// Returns a job to try on a device with room; none if no trial may run. One runs on each group.
Ready::Found Ready::next_trial(bool is_idle) noexcept {
  Found found;
  if (!learns_) return found;
  for (std::uint16_t to = 1; to < places_.size() && !found.jobs; ++to) {
    const std::uint16_t group = places_[to].group;
    if (!takes_of_others(to) || places_[group].runs_trial) continue;
    for (std::uint16_t home = 1; home < places_.size(); ++home) {
      if (home == group) continue;
      lines_.each_at(home, [&](Line& line) {
        if (found.jobs || !is_worth_trying(line, group, is_idle)) return;
        for (Entries& jobs : line.jobs) {
          if (jobs.empty()) continue;
          const Waiting& job = *jobs.front().job;
          if (job.state == State::queued && !jobs.front().is_old() && !job.has_own_limits && may_run(job, to))
            found = {.jobs = &jobs, .line = &line, .place = to, .chosen = Chosen::trial};
        }
      });
    }
  }
  return found;
}

/// Finds what waits for each group.
void Ready::find_waits() noexcept {
  for (std::uint16_t p = 1; p < places_.size(); ++p) {
    const Places::Place& here = places_[p];
    Wait& wait = waits_[here.group];
    if (here.group == p) wait = {.at_a_time = 0};
    if (!here.shares) continue;
    wait.at_a_time += here.limit;
    wait.may_stage += here.staged_limit - here.staged;
  }
  for (std::uint16_t group = 1; group < places_.size(); ++group)
    lines_.each_at(group, [&](const Line& line) {
      std::size_t jobs = 0;
      for (const Entries& level : line.jobs) jobs += level.size();
      waits_[group].jobs += jobs;
      waits_[group].before += static_cast<Duration::rep>(jobs) * line.time_on(group);
    });
}

/// Returns a job that waits for other devices, for a device with room that has no job: the one whose
/// run time grows by the least factor.
Ready::Found Ready::next_to_move() noexcept {
  bool knows_waits = false;
  for (std::uint16_t to = 1; to < places_.size(); ++to) {
    if (!takes_of_others(to)) continue;
    if (!std::exchange(knows_waits, true)) find_waits();
    for (std::size_t level = 0; level < levels; ++level) {
      Candidate best;
      const auto look = [&](Entries& jobs, Line* line, std::uint16_t home) {
        if (jobs.empty() || home == places_[to].group) return;
        const Candidate one = to_move({.jobs = &jobs, .line = line, .place = to}, home);
        if (one.found.jobs && (!best.found.jobs || one.slowdown < best.slowdown)) best = one;
      };
      for (std::uint16_t from = 1; from < places_.size(); ++from) {
        lines_.each_at(from, [&](Line& line) { look(line.jobs[level], &line, from); });
        look(staged_[from][level], nullptr, places_[from].group);
      }
      if (best.found.jobs) return best.found;
    }
  }
  return {};
}

/// Returns the first or the last one of some jobs that wait for the group `home`, if it is worth
/// moving to the place of `jobs`. An entry of a job that has settled is returned too: it is dropped.
Ready::Candidate Ready::to_move(Found jobs, std::uint16_t home) noexcept {
  if (jobs.jobs->front().is_stale()) return {jobs};
  const std::uint16_t to = places_[jobs.place].group;
  Wait wait = waits_[home];
  wait.at_a_time = std::max(wait.at_a_time, 1u);
  double slowdown = 1;
  const auto move_of = [&](const Waiting& job) {
    if (job.state != State::queued || !may_run(job, jobs.place)) return Move::none;
    const Duration there = job.in_line->time_on(home), here = job.in_line->time_on(to);
    const bool is_known = here != Duration::zero();
    jobs.chosen = learns_ && !is_known ? Chosen::trial : Chosen::idle;
    if (jobs.chosen == Chosen::trial && (places_[to].runs_trial || job.has_own_limits)) return Move::none;
    wait.run = learns_ || is_known ? there : Duration::zero();
    if (is_known && there != Duration::zero())
      slowdown = static_cast<double>(here.count()) / static_cast<double>(there.count());
    return decide_move(wait, here);
  };
  if (move_of(*jobs.jobs->front().job) == Move::first) return {jobs, slowdown};
  jobs.is_last = true;
  if (jobs.jobs->back().is_stale()) return {jobs};
  return move_of(*jobs.jobs->back().job) != Move::none ? Candidate{jobs, slowdown} : Candidate{};
}

/// Returns the next job to stage, on that of its devices where the fewest jobs are staged.
Ready::Found Ready::next_to_stage() noexcept {
  lines_.find_homes();
  Found best;
  for (std::uint16_t p = on_threads + 1; p < places_.size(); ++p) {
    const Places::Place& here = places_[p];
    if (here.staged >= here.staged_limit || here.pause.until || places_.has_room(p)) continue;
    if (best.jobs && places_[best.place].staged <= here.staged) continue;
    Firsts firsts{};
    for (std::size_t level = 0; level < levels; ++level) firsts[level] = first_unstaged(p, level);
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
    lines_.each_at(here.group, [&](const Line& line) { add(line.jobs); });
    lines_.each_place(here.group, [&](std::uint16_t other) {
      const Places::Place& equal = places_[other];
      if (other != place) free += equal.limit - std::min(equal.limit, equal.committed);
    });
  }
  return (jobs + free - 1) / free;
}

std::optional<Ready::Room> Ready::find_room(const Waiting& job) noexcept {
  if (!lines_.is_shared(job))
    return places_.has_room(job.line) ? std::optional(Room{job.line}) : std::nullopt;
  const Line* const line = lines_.find(job);
  if (!line) return std::nullopt;
  if (learns_ && !job.has_own_limits)
    for (std::uint16_t p = 1; p < places_.size(); ++p)
      if (places_[p].group != line->home && takes_of_others(p) && !places_[places_[p].group].runs_trial &&
          may_run(job, p) && is_worth_trying(*line, places_[p].group, false))
        return Room{p, Chosen::trial};
  std::optional<Room> best;
  lines_.each_place(line->home, [&](std::uint16_t p) {
    if (!places_.has_room(p) || places_[p].refusal.until) return;
    if (!best || places_.comes_before(p, best->place)) best = Room{p};
  });
  return best;
}

void Ready::take_place(Waiting& job, const Room& room) noexcept {
  job.place = room.place;
  job.time_row = row_of(job, room.place);
  job.chosen = room.chosen;
  const std::uint16_t group = places_[room.place].group;
  if (job.chosen == Chosen::by_order && room.place != on_threads && group != lines_.first_group_of(job))
    job.chosen = Chosen::by_time;
  if (job.chosen == Chosen::trial) places_[group].runs_trial = true;
  job.estimate = lines_.is_shared(job) && job.in_line ? job.in_line->time_on(group)
                 : job.time_row                       ? job.time_row->mean()
                                                      : Duration::zero();
}

void Ready::end_trial(Waiting& job) noexcept {
  if (job.chosen == Chosen::trial) places_[places_[job.place].group].runs_trial = false;
}

void Ready::leave(Waiting& job) noexcept {
  if (!job.in_line) return;
  expect_no_more(job);
  Line* const line = job.is_staged ? nullptr : job.in_line;
  Entries& jobs = (line ? line->jobs : staged_[job.place])[job.level()];
  // Often it is the next one or was added last. Otherwise `take` drops its entry.
  if (!jobs.empty() && jobs.front().job.get() == &job)
    pop_entry({.jobs = &jobs, .line = line});
  else if (!jobs.empty() && jobs.back().job.get() == &job)
    pop_entry({.jobs = &jobs, .line = line, .is_last = true});
  if (std::exchange(job.is_staged, false)) --places_[job.place].staged;
  lines_.use(*std::exchange(job.in_line, nullptr), -1);
}

/// Sets a job aside until its tag has room.
void Ready::hold(std::shared_ptr<Waiting> job) noexcept {
  TagState& tag = *job->tag_state;
  expect_no_more(*job);
  ++job->in_line->held;
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
  --first->in_line->held;
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

/// Removes a job that starts, settles or is set aside from the expected work of its line.
void Ready::expect_no_more(Waiting& job) noexcept {
  if (job.expected == Duration::zero()) return;
  Expected& expected = job.in_line->expected[job.level()];
  --expected.jobs;
  expected.run_time -= std::exchange(job.expected, Duration::zero());
}

Expected Ready::before(const Waiting& job) noexcept {
  const std::size_t own = job.level();
  const Instant due = next_due(job);
  Expected before;
  // If jobs are not in the order of their submission, some of its priority run after it.
  const auto subtract = [&](const Entry& other) {
    const Waiting& waiting = *other.job;
    if (order_ == JobOrder::first_submitted || other.due <= due || other.is_old() ||
        waiting.expected == Duration::zero())
      return;
    --before.jobs;
    before.run_time -= waiting.expected;
  };
  const auto add = [&](const Line& line) {
    for (std::size_t level = 0; level <= own; ++level) {
      before.jobs += line.expected[level].jobs;
      before.run_time += line.expected[level].run_time;
    }
    line.jobs[own].each(subtract);
  };
  const auto add_staged = [&](std::uint16_t place) {
    staged_[place][own].each([&](const Entry& other) {
      if (lines_.is_shared(*other.job) == lines_.is_shared(job)) subtract(other);
    });
  };
  if (!lines_.is_shared(job)) {
    add(lines_[job.line]);
    add_staged(job.line);
    return before;
  }
  const std::uint16_t home = lines_.home_of(job);
  lines_.find_homes();
  lines_.each_at(home, add);
  lines_.each_place(home, add_staged);
  return before;
}

std::uint32_t Ready::at_a_time(const Waiting& job) noexcept {
  if (!lines_.is_shared(job)) return std::max(places_[job.line].limit, 1u);
  std::uint32_t sum = 0;
  lines_.each_place(lines_.home_of(job), [&](std::uint16_t p) { sum += places_[p].limit; });
  return std::max(sum, 1u);
}

}  // namespace wye::scheduler
