#include "scheduler/next_job.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace wye::inline v0::scheduler {

NextJob::NextJob(const SchedulerOptions& options, std::size_t devices, const EntryCounts& entries,
                 const Places& places, const TimeBook& times, Lines& lines)
    : aging_(std::min<Duration>(options.aging, std::chrono::hours(24 * 36500))),
      learns_(options.placement == PlacementMode::learned),
      entries_(entries),
      places_(places),
      times_(times),
      lines_(lines),
      waits_(1 + devices) {}

/// Returns the next job of a place in one level that is not staged.
Found NextJob::first_unstaged(std::uint16_t place, std::size_t level) noexcept {
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
Found NextJob::first_in(std::uint16_t place, std::size_t level) noexcept {
  Found first = first_unstaged(place, level);
  if (place == on_threads) return first;
  const auto look = [&](Entries& staged) {
    if (!staged.empty() && (!first.jobs || first.jobs->front().runs_after(staged.front())))
      first = {.jobs = &staged, .place = place};
  };
  look(lines_.staged(place)[level]);
  const Places::Place& here = places_[place];
  if (first.jobs || !here.shares || here.refusal.until) return first;
  lines_.each_place(here.group, [&](std::uint16_t other) {
    Entries& staged = lines_.staged(other)[level];
    if (other == place || staged.empty() || places_.has_room(other)) return;
    const Waiting& job = *staged.front().job;
    if (lines_.is_shared(job) && job.state != State::staging) look(staged);
  });
  return first;
}

/// Returns the next job, of one for each priority: that of the lowest rank, which is the time of its
/// submission, later by `aging` for each priority below the highest. Of jobs with the same rank, the
/// job of the higher priority is next.
Found NextJob::first_of(const Firsts& firsts) const noexcept {
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

Found NextJob::first_at(std::uint16_t place) noexcept {
  lines_.find_homes();
  Firsts firsts{};
  for (std::size_t level = 0; level < levels; ++level) firsts[level] = first_in(place, level);
  return first_of(firsts);
}

Found NextJob::to_run() noexcept {
  if (entries_.all() == 0) return {};
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

/// Returns how much slower than at home a group is believed to run the kernels of a line.
double NextJob::believed_slowness(const Line& line, const Line::Group& group) const noexcept {
  // The library's own workloads have vector code for the CPU: lavapipe takes 40 to 1,000 times as long
  // (bench/placement_bench.cpp).
  constexpr double of_emulated = 100;
  const Places::Place& place = places_[group.number];
  const bool is_emulated = !place.is_gpu && !place.is_host;
  const bool is_own = group.times->type() != workload_types::custom;
  return times_.slowness(*group.times, line.home, is_emulated && is_own ? of_emulated : 1);
}

/// Returns whether a job of a line may be tried on a group. The trial may take as long as its kernels
/// have run in all if the device and its processor are idle. On another device, or one on which the
/// kernels have run, it may take a fiftieth of the time that they have run since. It is then one of 32 of
/// their jobs: otherwise jobs of small sizes would be tried after each large one.
bool NextJob::is_worth_trying(const Line& line, std::uint16_t group, bool is_idle) const noexcept {
  constexpr int part = 50, jobs = 32;
  const Line::Group* const here = line.of(group);
  const Duration at_home = line.time_on(line.home);
  if (!here || !here->times || !here->times->may_be_tried() || at_home == Duration::zero()) return false;
  if (line.prefers_others_to(group)) return false;
  const Duration since = here->times->run_since();
  if (here->times->has_run())
    return here->time() != Duration::zero() && here->time() <= since / part &&
           here->times->jobs_since() >= jobs;
  const Duration limit = is_idle ? since : since / part;
  const double expected = believed_slowness(line, *here) * static_cast<double>(at_home.count());
  return at_home <= limit && expected <= static_cast<double>(limit.count());
}

/// Returns a job to try on a device with room; none if no trial may run. One runs on each group.
Found NextJob::next_trial(bool is_idle) noexcept {
  Found found;
  for (std::uint16_t to = 1; to < places_.size() && !found.jobs; ++to) {
    if (!takes_trials(to) || (is_idle && places_.jobs_on_processor(to) > 0)) continue;
    for (std::uint16_t home = 1; home < places_.size(); ++home)
      lines_.each_at(home, [&](Line& line) {
        if (found.jobs) return;
        for (Entries& jobs : line.jobs)
          if (!jobs.empty() && !jobs.front().is_old() && jobs.front().job->state == State::queued &&
              may_try(*jobs.front().job, line, to, is_idle))
            found = {.jobs = &jobs, .line = &line, .place = to, .chosen = Chosen::trial};
      });
  }
  return found;
}

/// Sums the jobs that wait for each group.
void NextJob::find_waits() noexcept {
  for (std::uint16_t p = 1; p < places_.size(); ++p) {
    const Places::Place& here = places_[p];
    Wait& wait = waits_[here.group];
    if (here.group == p) wait = {.devices = 0};
    if (!here.shares) continue;
    ++wait.devices;
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
Found NextJob::next_to_move() noexcept {
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
        look(lines_.staged(from)[level], nullptr, places_[from].group);
      }
      if (best.found.jobs) return best.found;
    }
  }
  return {};
}

/// Returns whether a job of the group `home`, whose time on the group `to` is not known, may move there.
bool NextJob::may_move_unknown(const Waiting& job, std::uint16_t home, std::uint16_t to) const noexcept {
  if (!places_[to].is_gpu || !places_[home].is_gpu) return false;
  if (job.waits.line->prefers_others_to(to)) return false;
  if (!learns_) return true;
  const Line::Group* const group = job.waits.line->of(to);
  const bool may_be_tried = group && group->times && group->times->may_be_tried();
  return may_be_tried && !places_[to].runs_trial && !job.has_own_limits;
}

/// Returns the first or the last one of some jobs that wait for the group `home`, if it is worth
/// moving to the place of `jobs`. An entry of a job that has settled is returned too: it is dropped.
NextJob::Candidate NextJob::to_move(Found jobs, std::uint16_t home) noexcept {
  if (jobs.jobs->front().is_stale()) return {jobs};
  const std::uint16_t to = places_[jobs.place].group;
  if (!places_.are_apart(to, home)) return {};
  Wait wait = waits_[home];
  wait.devices = std::max(wait.devices, 1u);
  double slowdown = 1;
  const auto move_of = [&](const Waiting& job) {
    if (job.state != State::queued || !may_run(job, jobs.place)) return Move::none;
    const Duration there = job.waits.line->time_on(home), here = job.waits.line->time_on(to);
    const bool is_known = here != Duration::zero();
    if (!is_known && !may_move_unknown(job, home, to)) return Move::none;
    jobs.chosen = learns_ && !is_known ? Chosen::trial : Chosen::idle;
    wait.until_start = job.waits.line->prefers_others_to(to);
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

Found NextJob::to_stage() noexcept {
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

std::optional<Room> NextJob::find_room(const Waiting& job) noexcept {
  if (!lines_.is_shared(job))
    return places_.has_room(job.line) ? std::optional(Room{job.line}) : std::nullopt;
  const Line* const line = lines_.find(job);
  if (!line) return std::nullopt;
  for (std::uint16_t p = 1; p < places_.size(); ++p)
    if (takes_trials(p) && may_try(job, *line, p, false)) return Room{p, Chosen::trial};
  std::optional<Room> best;
  lines_.each_place(line->home, [&](std::uint16_t p) {
    if (!places_.has_room(p) || places_[p].refusal.until) return;
    if (!best || places_.comes_before(p, best->place)) best = Room{p};
  });
  return best;
}

}  // namespace wye::scheduler
