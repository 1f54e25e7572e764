#pragma once
/// The places where jobs run: how many run there, and whether a further one may.
#include <wye/base/bytes.hpp>
#include <wye/base/clock.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "scheduler/placement.hpp"
#include "scheduler/tags.hpp"
#include "scheduler/waiting.hpp"

namespace wye::inline v0::scheduler {

/// The place of jobs on wye's threads, `on_threads`, and one for each device.
/// Threads: under the mutex of its scheduler.
class Places {
 public:
  /// Returns the memory that is in use on a device, without a lock.
  using MemoryInUse = std::function<Bytes(std::size_t device)>;

  struct Place {
    std::uint32_t committed = 0;     ///< jobs that were taken for it and have not settled
    std::uint32_t limit = 0;         ///< of `committed`
    std::uint32_t staged = 0;        ///< staged jobs that wait
    std::uint32_t staged_limit = 0;  ///< of `staged`
    std::uint64_t prepared = 0;      ///< the kernels of the last job that was staged
    std::uint64_t last_taken = 0;    ///< counts the jobs of all places
    std::uint16_t group = 0;         ///< the place of the first equal device
    std::uint16_t processor = 0;     ///< the place of the first device on its processor
    bool is_host = false;            ///< its jobs run on wye's threads
    bool is_gpu = false;             ///< its processor is not that of these threads
    bool shares = false;             ///< jobs with other devices
    bool runs_trial = false;         ///< on one of its group; set if it is the first of them
    std::uint64_t apart = 0;         ///< bit `d`: device `d` shares jobs with it, but not its processor
    Duration until_room{};           ///< as `Queue::find_room_times_locked` has found it
    MemoryPause pause;               ///< it takes no job
    MemoryPause refusal;             ///< it takes no job that it shares, because it has refused one
  };

  /// `threads`: the jobs that run on wye's threads at a time; `lanes`: those of each device. A pool
  /// has at most `devices`.
  Places(std::uint32_t threads, std::uint32_t lanes, std::uint32_t committed_per_lane, std::size_t devices,
         MemoryInUse memory);

  /// Adds the places of devices that a table has added. Allocates nothing.
  void add(const Table& table) noexcept;
  /// Returns the number of places.
  std::uint16_t size() const noexcept { return static_cast<std::uint16_t>(all_.size()); }
  Place& operator[](std::uint16_t place) noexcept { return all_[place]; }
  const Place& operator[](std::uint16_t place) const noexcept { return all_[place]; }

  /// Returns whether jobs of a place run on wye's threads: those of the host's device do too.
  bool is_on_threads(std::uint16_t place) const noexcept {
    return place == on_threads || all_[place].is_host;
  }
  /// Returns whether two places are of devices that share jobs, but no processor.
  bool are_apart(std::uint16_t a, std::uint16_t b) const noexcept {
    return b <= 64 && (all_[a].apart >> (b - 1) & 1) != 0;
  }
  /// Returns whether a further job may run at a place. A job that waits for a job makes room for one
  /// on wye's threads.
  bool has_room(std::uint16_t place) const noexcept {
    const bool is_of_threads = is_on_threads(place);
    const Place& counts = all_[is_of_threads ? on_threads : place];
    return !all_[place].pause.until && counts.committed < counts.limit + (is_of_threads ? blocked_ : 0);
  }
  /// Returns whether a job that may run at two equal places runs at `a`: fewer jobs run there, then
  /// less memory is in use there, then it was least recently used.
  bool comes_before(std::uint16_t a, std::uint16_t b) const noexcept;
  void commit(std::uint16_t place) noexcept {
    ++all_[place].committed;
    if (all_[place].is_host) ++all_[on_threads].committed;
    ++processors_[all_[place].processor].jobs;
    all_[place].last_taken = ++taken_;
  }
  void uncommit(std::uint16_t place) noexcept {
    --all_[place].committed;
    if (all_[place].is_host) --all_[on_threads].committed;
    --processors_[all_[place].processor].jobs;
  }
  /// Returns the share of each job that has run on the processor of a place all the time: the time
  /// that has passed, divided by the number of jobs that ran there (the virtual time of processor
  /// sharing). Called before that number changes.
  Duration share(std::uint16_t place, Instant now) noexcept;
  /// Returns how many jobs run on the processor of a place.
  std::uint32_t jobs_on_processor(std::uint16_t place) const noexcept {
    return processors_[all_[place].processor].jobs;
  }
  void add_blocked(int jobs) noexcept { blocked_ += static_cast<std::uint32_t>(jobs); }
  /// Returns how many jobs wait, with their threads, for other jobs.
  std::uint32_t blocked() const noexcept { return blocked_; }

  void pause(MemoryPause& pause, Instant until) noexcept;
  /// Has a place take no job that it shares until `until`, because it has refused one. The last place
  /// of a group that takes such jobs goes on with those of its group (`is_of_group`): each of them
  /// leaves for its next device, and none waits for the places that pause.
  void refuse(std::uint16_t place, bool is_of_group, Instant until) noexcept;
  void resume(MemoryPause& pause) noexcept;
  bool has_pauses() const noexcept { return paused_ > 0; }
  /// Resumes the places whose time has come.
  void resume_due(Instant now) noexcept;
  /// Returns when the first place goes on; `Instant::max()` if none pauses.
  Instant first_resume() const noexcept;

 private:
  struct Processor {
    std::uint32_t jobs = 0;  // that run there
    Duration share{};
    Instant at{};  // when `share` was computed
  };

  const std::uint32_t lanes_, committed_per_lane_;
  const MemoryInUse memory_;
  std::vector<Place> all_;             // never moved
  std::vector<Processor> processors_;  // by place; those of places that are no processor are unused
  std::uint64_t taken_ = 0;
  std::uint32_t paused_ = 0;  // places and tags
  std::uint32_t blocked_ = 0;
};

}  // namespace wye::scheduler
