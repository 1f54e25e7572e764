#pragma once
/// The jobs that are ready to run, in order.
#include <wye/base/clock.hpp>
#include <wye/pool/context_pool.hpp>
#include <wye/scheduler/scheduler.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "scheduler/entries.hpp"
#include "scheduler/lines.hpp"
#include "scheduler/next_job.hpp"
#include "scheduler/places.hpp"
#include "scheduler/tags.hpp"
#include "scheduler/time_book.hpp"
#include "scheduler/waiting.hpp"

namespace wye::inline v0::scheduler {

/// The expected start of a job: a low estimate, for which a job without known times takes none.
struct Start {
  std::uint16_t at = on_threads;  ///< a place, or a group of devices that share the job
  bool is_home = true;            ///< it waits there anyway
  Duration running{};             ///< until the first job leaves these places; zero: they have room
  Expected before;                ///< the jobs that wait and run before it
  std::uint32_t at_a_time = 1;    ///< jobs that run there
  Duration after() const noexcept { return running + before.run_time / at_a_time; }
};

/// The place that would take a job if it were ready now.
struct Foreseen {
  Room room;
  Duration wait{};  ///< `Start::after`
};

/// Keeps the jobs that are ready: in lines and, while their tag is full, set aside. `NextJob` finds the
/// next one. Jobs of one priority are in the order of `SchedulerOptions::order`; the keys of that order
/// do not change.
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
    return take(true, [this] { return next_.to_run(); });
  }
  /// Takes the next job of the place of `leader` if `may_join` returns true for it and its mean time
  /// there; null otherwise.
  template <class MayJoin>
  std::shared_ptr<Waiting> pop_for(const Waiting& leader, MayJoin may_join) noexcept {
    return take(true, [&]() -> Found {
      const Found found = next_.first_at(leader.place);
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
    return take(false, [this] { return next_.to_stage(); });
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
  /// Returns a place that takes a job now; nothing if there is none.
  std::optional<Room> find_room(const Waiting& job) noexcept { return next_.find_room(job); }
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
  /// Returns the expected start of a job that is ready now, if `Place::until_room` is of now: on the
  /// devices that take it if that is within `left`, otherwise on those that can start it first.
  Start find_start(const Waiting& job, Duration left) noexcept;
  /// Returns the place that would take a job that is ready now, and its wait; likewise.
  Foreseen foresee(const Waiting& job) noexcept;

 private:
  Start start_at(const Waiting& job, std::uint16_t at) noexcept;
  /// Calls `f` with the place of a line of one place, or those of a group.
  template <class F>
  void each_place_of(const Waiting& job, std::uint16_t at, F f) const {
    if (lines_.is_shared(job))
      lines_.each_place(at, f);
    else
      f(at);
  }
  Expected before(const Waiting& job, std::uint16_t at) noexcept;
  std::uint16_t first_place_of(const Waiting& job) noexcept;
  Instant next_due(const Waiting& job) const noexcept;
  Chosen chosen_for(const Waiting& job, const Room& room) const noexcept;
  std::shared_ptr<Waiting> take_found(const Found& found, bool runs) noexcept;
  std::shared_ptr<Waiting> pop_entry(const Found& found) noexcept;
  template <class Find>
  std::shared_ptr<Waiting> take(bool runs, Find find) noexcept {
    for (Found found = find(); found.jobs; found = find())
      if (auto job = take_found(found, runs)) return job;
    return nullptr;
  }
  void hold(std::shared_ptr<Waiting> job) noexcept;
  TimeBook::Row* row_of(const Waiting& job, std::uint16_t place) noexcept;
  void expect_no_more(Waiting& job) noexcept;
  /// Calls `f` with all jobs, as `Levels`, and their line; null: they are staged.
  template <class F>
  void each_levels(F f) {
    for (std::uint16_t p = 0; p < places_.size(); ++p) {
      f(lines_[p].jobs, &lines_[p]);
      f(lines_.staged(p), nullptr);
      lines_.each_at(p, [&](Line& line) { f(line.jobs, &line); });
    }
  }

  const JobOrder order_;
  const bool observes_;  // the jobs of one device; those of several devices always; all jobs if `refuses_`
  const bool refuses_;
  TimeBook& times_;
  EntryCounts entries_;
  Places places_;
  Lines lines_;
  NextJob next_;
  Tags tags_;
  Waiting* first_returned_ = nullptr;
  Waiting** last_returned_ = &first_returned_;
};

}  // namespace wye::scheduler
