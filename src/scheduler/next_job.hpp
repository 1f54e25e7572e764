#pragma once
/// Finds the next job of those that wait.
#include <wye/base/clock.hpp>
#include <wye/scheduler/scheduler.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler/entries.hpp"
#include "scheduler/lines.hpp"
#include "scheduler/placement.hpp"
#include "scheduler/places.hpp"
#include "scheduler/time_book.hpp"

namespace wye::inline v0::scheduler {

/// The next job of some, and its place.
struct Found {
  Entries* jobs = nullptr;           ///< null: there is none
  Line* line = nullptr;              ///< that has `jobs`; null: they are staged
  std::uint16_t place = on_threads;  ///< that takes it
  bool is_last = false;              ///< of `jobs`; false: it is the first one
  Chosen chosen = Chosen::by_order;
};

/// A place with room for a job.
struct Room {
  std::uint16_t place = on_threads;
  Chosen chosen = Chosen::by_order;
};

/// Finds the next job. A device takes the next job of those that wait for it or for its group; without
/// such a job it takes a job of other devices if `decide_move`. The next job of a place is
/// the first one of the highest priority. Aging is a rank, later by `SchedulerOptions::aging` for each
/// priority below the highest. A staged job runs on the device that it is staged on, unless an equal
/// one has nothing else of its priority to run.
/// A *trial* shows how long kernels take on a group: they have not run there, or run slower than at
/// home. They run at home meanwhile: the time of trials is a part of their run time.
/// Threads: under the mutex of its scheduler.
class NextJob {
 public:
  /// A pool has at most `devices`. The other objects outlive it.
  NextJob(const SchedulerOptions& options, std::size_t devices, const EntryCounts& entries,
          const Places& places, const TimeBook& times, Lines& lines);

  /// Returns the next job to run; none if no job may run. An entry of a job that has settled may be
  /// returned too: it is dropped.
  Found to_run() noexcept;
  /// Returns the next job to stage, on that of its devices where the fewest jobs are staged.
  Found to_stage() noexcept;
  /// Returns the next job of a place.
  Found first_at(std::uint16_t place) noexcept;
  /// Returns a place that takes a job now; nothing if there is none.
  std::optional<Room> find_room(const Waiting& job) noexcept;

 private:
  using Firsts = std::array<Found, levels>;
  /// A job that may move, and its run time on the idle device over that at its home.
  struct Candidate {
    Found found;
    double slowdown = 0;
  };
  Found first_unstaged(std::uint16_t place, std::size_t level) noexcept;
  Found first_in(std::uint16_t place, std::size_t level) noexcept;
  Found first_of(const Firsts& firsts) const noexcept;
  /// Returns whether a device with room may take jobs that wait for others.
  bool takes_of_others(std::uint16_t place) const noexcept {
    return places_[place].shares && !places_[place].refusal.until && places_.has_room(place);
  }
  /// Returns whether a shared job may run at the place of a device.
  bool may_run(const Waiting& job, std::uint16_t at) const noexcept {
    return job.may_move_to(at) || (lines_.is_shared(job) && places_[at].group == lines_.first_group_of(job));
  }
  /// Returns whether a device with room may take a trial.
  bool takes_trials(std::uint16_t place) const noexcept {
    return learns_ && takes_of_others(place) && !places_[places_[place].group].runs_trial;
  }
  double believed_slowness(const Line& line, const Line::Group& group) const noexcept;
  bool is_worth_trying(const Line& line, std::uint16_t group, bool is_idle) const noexcept;
  /// Returns whether a job of a line may be a trial on a device that takes trials.
  bool may_try(const Waiting& job, const Line& line, std::uint16_t at, bool is_idle) const noexcept {
    const std::uint16_t group = places_[at].group;
    return !job.has_own_limits && line.home != group && may_run(job, at) &&
           is_worth_trying(line, group, is_idle);
  }
  Found next_trial(bool is_idle) noexcept;
  void find_waits() noexcept;
  Found next_to_move() noexcept;
  bool may_move_unknown(const Waiting& job, std::uint16_t home, std::uint16_t to) const noexcept;
  Candidate to_move(Found jobs, std::uint16_t home) noexcept;

  const Duration aging_;  // a hundred years at most, so that no rank overflows
  const bool learns_;
  const EntryCounts& entries_;
  const Places& places_;
  const TimeBook& times_;
  Lines& lines_;
  std::vector<Wait> waits_;  // by group: see `find_waits`
};

}  // namespace wye::scheduler
