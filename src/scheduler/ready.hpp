#pragma once
/// The jobs that are ready to run, in order.
#include <wye/base/clock.hpp>
#include <wye/pool/context_pool.hpp>
#include <wye/scheduler/scheduler.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "scheduler/entries.hpp"
#include "scheduler/lines.hpp"
#include "scheduler/placement.hpp"
#include "scheduler/places.hpp"
#include "scheduler/tags.hpp"
#include "scheduler/time_book.hpp"
#include "scheduler/waiting.hpp"

namespace wye::inline v0::scheduler {

/// Counts the jobs in lines, by priority, and those that have returned.
/// Threads: under the mutex of its scheduler, but for `all`.
class EntryCounts {
 public:
  void add(std::size_t level, int jobs) noexcept {
    in_lines_[level] += static_cast<std::uint32_t>(jobs);
    add_returned(jobs);
  }
  void add_returned(int jobs) noexcept {
    all_.store(all() + static_cast<std::size_t>(jobs), std::memory_order_relaxed);
  }
  bool has(std::size_t level) const noexcept { return in_lines_[level] != 0; }
  std::size_t all() const noexcept { return all_.load(std::memory_order_relaxed); }

 private:
  std::array<std::uint32_t, levels> in_lines_{};
  std::atomic<std::size_t> all_{0};
};

/// Keeps jobs in lines. A device takes the next job of those that wait for it or for its group; one
/// without such a job takes one that waits for other devices if `decide_move`. The next job of a place
/// is the first one of the highest priority, in the order of `SchedulerOptions::order`. The keys do not
/// change: aging is a rank, later by `aging` for each priority below the highest. A staged job runs on
/// the device that it is staged on, unless an equal one has nothing else of its priority to run.
/// A *trial* runs kernels on a group where they have not run, or run slower than at home. They run at
/// home meanwhile, so the cost of trials is a part of their run time: see `is_worth_trying`.
/// Threads: under the mutex of its scheduler, but for `count`.
class Ready {
 public:
  /// A pool has at most `devices`. `times` outlives it.
  Ready(const SchedulerOptions& options, const PoolOptions& pool, std::size_t devices, TimeBook& times,
        Places::MemoryInUse memory);

  Places& places() noexcept { return places_; }
  Tags& tags() noexcept { return tags_; }
  /// Gives a job its place in the order.
  void rank(Waiting& job) noexcept;
  /// Adds a job to its line; to the staged ones of its place if it is staged. Throws
  /// std::bad_alloc, but not if the job returns from the list of its tag.
  void push(std::shared_ptr<Waiting> job);
  /// Adds a job that has returned from a device: a worker takes it before all others.
  void push_returned(std::shared_ptr<Waiting> job) noexcept;
  bool has_returned() const noexcept { return first_returned_ != nullptr; }
  /// Takes the first returned job, which is there.
  std::shared_ptr<Waiting> pop_returned() noexcept;
  /// Takes the next job to run, whose state is queued or staging, and sets its place. Null if none
  /// may run.
  std::shared_ptr<Waiting> pop() noexcept {
    return take(true, [this] { return next(); });
  }
  /// Takes the next job of the place of `leader` if `may_join` returns true for it and its mean time
  /// there; null otherwise.
  template <class MayJoin>
  std::shared_ptr<Waiting> pop_for(const Waiting& leader, MayJoin may_join) noexcept {
    return take(true, [&]() -> Found {
      const Found found = first_for(leader.place);
      if (!found.jobs) return {};
      const Waiting& next = *found.jobs->front().job;
      const State state = next.state;
      if (state == State::staging) return {};
      if (state != State::queued) return found;  // a job that has settled is skipped
      const TimeBook::Row* const times = row_of(next, leader.place);
      return times && may_join(next, times->mean()) ? found : Found{};
    });
  }
  /// Takes the next job to stage, and sets its place: that of a device without room whose limit of
  /// staged jobs is not reached. Null if there is none.
  std::shared_ptr<Waiting> pop_to_stage() noexcept {
    return take(false, [this] { return next_to_stage(); });
  }
  /// Takes the job that would run last, if `job` would run before it; null otherwise.
  std::shared_ptr<Waiting> take_last(const Waiting& job) noexcept;
  /// Takes any job; null if there is none.
  std::shared_ptr<Waiting> take_any() noexcept;
  /// Returns whether a job may run, or may be staged if `may_stage`.
  bool has_work(bool may_stage) noexcept;
  /// Returns how many jobs a lane of a device takes: its job, which has just started, and those that
  /// wait for it, divided among this lane and the free ones of equal devices.
  std::size_t jobs_per_lane(std::uint16_t place) const noexcept;
  /// Returns the number of jobs in lines, some of which may have settled, and of those that have
  /// returned. Threads: any.
  std::size_t count() const noexcept { return entries_.all(); }
  /// A place with room for a job.
  struct Room {
    std::uint16_t place = on_threads;
    Chosen chosen = Chosen::by_order;
  };
  /// Returns a place that takes a job now; nothing if there is none.
  std::optional<Room> find_room(const Waiting& job) noexcept;
  /// Has a job, which begins to run, take its place.
  void take_place(Waiting& job, const Room& room) noexcept;
  /// Makes a queued job one of the staged jobs of its place. Throws: std::bad_alloc.
  void stage(std::shared_ptr<Waiting> job);
  /// Counts a job that starts or settles as waiting no longer. Its entry may stay for a while.
  void leave(Waiting& job) noexcept;

  /// Takes the first job of a tag that was set aside; null if there is none.
  std::shared_ptr<Waiting> take_held(TagState& tag) noexcept;
  /// Returns a job that was set aside to its line, if its tag has room.
  void release_held(TagState& tag) noexcept;
  /// Lets the jobs of a tag start again, after its pause.
  void resume(TagState& tag) noexcept;
  /// Lets the jobs of a tag, or of the places, start again whose time has come.
  void resume_due(Instant now) noexcept;
  /// Returns when the first of them starts again; `Instant::max()` if none pauses.
  Instant first_resume() noexcept;

  /// Notes that a job which was taken has ended, or waits again.
  void end_trial(Waiting& job) noexcept;
  /// Returns the jobs that wait and run before a job that is ready now.
  Expected before(const Waiting& job) noexcept;
  /// Returns how many jobs run at a time where a job waits.
  std::uint32_t at_a_time(const Waiting& job) noexcept;

 private:
  using Levels = std::array<Entries, levels>;
  /// The next job of some, and its place.
  struct Found {
    Entries* jobs = nullptr;
    Line* line = nullptr;  // that has them; null: they are staged
    std::uint16_t place = on_threads;
    bool is_last = false;  // of them: see `next_to_move`
    Chosen chosen = Chosen::by_order;
  };
  using Firsts = std::array<Found, levels>;

  Instant next_due(const Waiting& job) const noexcept;
  std::shared_ptr<Waiting> take_found(const Found& found, bool runs) noexcept;
  std::shared_ptr<Waiting> pop_entry(const Found& found) noexcept;
  template <class Find>
  std::shared_ptr<Waiting> take(bool runs, Find find) noexcept {
    for (Found found = find(); found.jobs; found = find())
      if (auto job = take_found(found, runs)) return job;
    return nullptr;
  }
  void hold(std::shared_ptr<Waiting> job) noexcept;
  /// Returns whether a shared job may run at the place of a device.
  bool may_run(const Waiting& job, std::uint16_t at) const noexcept {
    return job.may_move_to(at) || (lines_.is_shared(job) && places_[at].group == lines_.first_group_of(job));
  }
  TimeBook::Row* row_of(const Waiting& job, std::uint16_t place) noexcept;
  Found first_unstaged(std::uint16_t place, std::size_t level) noexcept;
  Found first_in(std::uint16_t place, std::size_t level) noexcept;
  Found first_for(std::uint16_t place) noexcept;
  Found next() noexcept;
  bool takes_of_others(std::uint16_t place) const noexcept {
    return places_[place].unlike != 0 && !places_[place].refusal.until && places_.has_room(place);
  }
  bool is_worth_trying(const Line& line, std::uint16_t group, bool is_idle) const noexcept;
  Found next_trial(bool is_idle) noexcept;
  Found next_to_move() noexcept;
  void find_waits() noexcept;
  /// A job that may move, and its run time on the idle device over that at its home.
  struct Candidate {
    Found found;
    double slowdown = 0;
  };
  Candidate to_move(Found jobs, std::uint16_t home) noexcept;
  Found next_to_stage() noexcept;
  Found first_of(const Firsts& firsts) const noexcept;
  void expect_no_more(Waiting& job) noexcept;
  /// Calls `f` with all jobs, as `Levels`, and their line; null: they are staged.
  template <class F>
  void each_levels(F f) {
    for (std::uint16_t p = 0; p < places_.size(); ++p) {
      f(lines_[p].jobs, &lines_[p]);
      f(staged_[p], nullptr);
      lines_.each_at(p, [&](Line& line) { f(line.jobs, &line); });
    }
  }

  const JobOrder order_;
  const Duration aging_;  // a hundred years at most, so that no rank overflows
  const bool observes_;   // the jobs of one device; those of several devices always; all jobs if `refuses_`
  const bool refuses_;
  const bool learns_;
  TimeBook& times_;
  Places places_;
  Lines lines_;
  std::vector<Levels> staged_;  // by place
  std::vector<Wait> waits_;     // by group: see `find_waits`
  Tags tags_;
  EntryCounts entries_;
  Waiting* first_returned_ = nullptr;
  Waiting** last_returned_ = &first_returned_;
};

}  // namespace wye::scheduler
