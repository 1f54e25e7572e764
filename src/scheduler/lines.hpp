#pragma once
/// The lines in which jobs wait for devices.
#include <wye/base/clock.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "scheduler/entries.hpp"
#include "scheduler/places.hpp"
#include "scheduler/time_book.hpp"
#include "scheduler/waiting.hpp"

namespace wye::inline v0::scheduler {

/// Jobs whose run time is known, and the sum of their mean run times.
struct Expected {
  std::uint32_t jobs = 0;
  Duration run_time{};
};

/// Jobs that wait for the same places: for one place, or, if they are of one kind, for devices that
/// share them.
/// Threads: under the mutex of its scheduler.
struct Line {
  /// A group of equal devices that can run the jobs of a shared line.
  struct Group {
    std::uint16_t number = 0;        ///< the place of its first device
    TimeBook::Row* times = nullptr;  ///< of the kind there; null: they cannot be kept
    Duration estimate{};             ///< that follows from other sizes; zero: none
    bool is_preferred = false;
    /// Returns the expected time of a job that has its processor alone; zero: it is not known.
    Duration time() const noexcept {
      const Duration mean = times ? times->mean() : Duration::zero();
      return mean != Duration::zero() ? mean : estimate;
    }
    /// Returns the expected time from the start of a job to its end; zero: it is not known.
    Duration held() const noexcept {
      const Duration mean = times ? times->held() : Duration::zero();
      return mean != Duration::zero() ? mean : estimate;
    }
  };

  Levels jobs;                              ///< that are not staged, the highest priority first
  std::array<Expected, levels> expected{};  ///< of all that wait
  std::size_t held = 0;             ///< jobs that left `jobs` and return once fewer jobs of their tag run
  std::vector<Group> groups;        ///< of a shared line: in the order of the table
  std::uint16_t home = on_threads;  ///< the group, of these, whose devices take its jobs
  bool prefers = false;             ///< some of these, which are its home while they take jobs

  bool is_shared() const noexcept { return !groups.empty(); }
  /// Returns whether its jobs prefer other groups.
  bool prefers_others_to(std::uint16_t group) const noexcept {
    const Group* const one = of(group);
    return prefers && !(one && one->is_preferred);
  }
  const Group* of(std::uint16_t group) const noexcept {
    for (const Group& one : groups)
      if (one.number == group) return &one;
    return nullptr;
  }
  /// Return the expected times of a job on a group; zero: it is not known.
  Duration time_on(std::uint16_t group) const noexcept {
    const Group* const one = of(group);
    return one ? one->time() : Duration::zero();
  }
  Duration held_on(std::uint16_t group) const noexcept {
    const Group* const one = of(group);
    return one ? one->held() : Duration::zero();
  }

 private:
  friend class Lines;
  std::size_t uses_ = 0;           // of a shared line: entries in `jobs`, and jobs that wait
  std::uint64_t known_kinds_ = 0;  // when the estimates were made
  Line* next_ = nullptr;           // of the shared lines with the same home and with uses
  Line** link_ = nullptr;
};

/// Keeps one line for each place, and a shared one for each kind of jobs that devices of several
/// places may run. A shared line has a *home*: the group with the least expected time of a job, or the
/// first group in the order of the table while its time is not known. Groups that its jobs do not prefer
/// come later, and those of which all devices refuse jobs last.
/// Threads: under the mutex of its scheduler.
class Lines {
 public:
  /// A pool has at most `devices`. `places` and `times` outlive it. Without `learns` the home is the
  /// first group.
  Lines(const Places& places, TimeBook& times, std::size_t devices, bool learns);

  bool is_shared(const Waiting& job) const noexcept { return job.line >= of_places_.size(); }
  /// Returns the group of the first devices, in the order of the table, that run a job.
  std::uint16_t first_group_of(const Waiting& job) const noexcept {
    return is_shared(job) ? static_cast<std::uint16_t>(job.line - of_places_.size())
                          : places_[job.line].group;
  }
  Line& operator[](std::uint16_t place) noexcept { return of_places_[place]; }
  const Line& operator[](std::uint16_t place) const noexcept { return of_places_[place]; }
  /// Returns the staged jobs of a place, the highest priority first.
  Levels& staged(std::uint16_t place) noexcept { return staged_[place]; }
  const Levels& staged(std::uint16_t place) const noexcept { return staged_[place]; }
  /// Returns the line of a job. Null: there is no memory for it.
  Line* find(const Waiting& job) noexcept;

  /// Returns the group whose devices take a job.
  std::uint16_t home_of(const Waiting& job) noexcept {
    const Line* const line = is_shared(job) ? find(job) : nullptr;
    return line ? line->home : first_group_of(job);
  }

  /// Returns whether a device of a group takes jobs that it shares.
  bool takes_jobs(std::uint16_t group) const noexcept;

  /// Notes that `more` entries or jobs use a line; fewer if it is negative. `find` may remove a shared
  /// line without uses.
  void use(Line& line, int more) noexcept;
  /// Finds the homes of the shared lines with uses.
  void find_homes() noexcept;
  /// Calls `f` with each shared line with uses whose home is `group`. `f` may end the uses of its line.
  template <class F>
  void each_at(std::uint16_t group, F f) const {
    for (Line* line = at_[group]; line; line = line->next_) f(*line);
  }
  /// Calls `f` with each place that shares jobs, of a group.
  template <class F>
  void each_place(std::uint16_t group, F f) const {
    for (std::uint16_t p = 1; p < places_.size(); ++p)
      if (places_[p].shares && places_[p].group == group) f(p);
  }

 private:
  /// The kind of the jobs of a shared line.
  struct Kind {
    std::uint64_t kernels = 0;
    std::uint64_t movable = 0;
    std::uint64_t preferred = 0;
    std::uint32_t size_class = 0;
    std::uint16_t line = 0;
    friend bool operator==(const Kind&, const Kind&) = default;
  };
  struct Hash {
    std::size_t operator()(const Kind& kind) const noexcept {
      return static_cast<std::size_t>(combine(combine(combine(kind.kernels, kind.movable), kind.preferred),
                                              std::uint64_t{kind.size_class} << 16 | kind.line));
    }
  };
  void find_home(Line& line) noexcept;
  void link(Line& line) noexcept;
  static void unlink(Line& line) noexcept;

  const Places& places_;
  TimeBook& times_;
  const bool learns_;
  std::vector<Line> of_places_;
  std::vector<Levels> staged_;  // by place
  std::unordered_map<Kind, Line, Hash> shared_;
  static constexpr std::size_t least_shared = 4096;
  std::size_t most_shared_ = least_shared;  // beyond it those without uses are removed
  std::vector<Line*> at_;                   // by group: the first shared line with uses
};

}  // namespace wye::scheduler
