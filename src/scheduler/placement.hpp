#pragma once
/// Chooses among devices: pure functions.
#include <wye/base/bytes.hpp>
#include <wye/base/clock.hpp>
#include <wye/scheduler/job.hpp>
#include <wye/scheduler/scheduler.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace wye::inline v0::scheduler {

/// The properties of a device that placement uses.
struct Choice {
  std::string_view backend;
  bool emulated = false;  ///< a GPU driver that runs on the CPU: comes last
  bool is_host = false;   ///< its jobs run on wye's threads
  AdapterType type = AdapterType::other;
  std::string_view name = {};     ///< of the device
  std::string_view id = {};       ///< "cuda:0"
  const void* silicon = nullptr;  ///< its processor
  std::size_t equal = 0;          ///< the first device of the same backend, type and name
  bool has_equals = false;        ///< other devices are equal
  std::uint64_t others = 0;       ///< bit `d`: device `d`, which is not equal, may run its jobs
  std::uint64_t apart = 0;        ///< of these, those on another processor

  /// Returns whether it shares jobs with other devices.
  bool shares() const noexcept { return has_equals || others != 0; }
  /// Returns whether its processor is not that of the host's threads.
  bool is_gpu() const noexcept { return !is_host && !emulated; }
};

/// Sets the members from `equal` on. With the table alone (`PlacementMode::table`) the CPU shares no
/// jobs, nor does a device that runs on it, nor do devices on one processor.
std::vector<Choice> find_groups(std::vector<Choice> devices, PlacementMode mode) noexcept;

/// The known times of a job that waits for devices.
struct Wait {
  Duration run{};             ///< its run time there; zero: not known
  Duration before{};          ///< sum of the known run times of the jobs that wait there, and of its own
  std::uint32_t devices = 1;  ///< that run them
  std::size_t jobs = 0;       ///< that wait there
  std::size_t may_stage = 0;  ///< further jobs that may be staged there
  bool until_start = false;   ///< the job would be moved only if it completes before it could start there
  bool is_long() const noexcept { return jobs > may_stage; }
};
enum class Move : std::uint8_t {
  none,   ///< no job is worth moving
  first,  ///< the first one of those that wait
  last,   ///< the last one: those before it complete earlier where they wait
};
/// Decides whether an idle device, which would run a job in `run` (zero: not known), takes one of
/// those that wait for other devices. It does if the job would complete earlier; if not both run
/// times are known, while more jobs wait than may be staged.
Move decide_move(const Wait& wait, Duration run) noexcept;

/// Returns the indices of `devices` in the order of `row`. Devices that it does not name keep their
/// order and come last.
std::vector<std::size_t> order(std::span<const Choice> devices, const Preference& row);

/// A row of the preference table, and the order of devices that follows from it.
struct Row : Preference {
  std::vector<std::size_t> devices = {};
  std::span<const Choice> choices = {};  ///< the properties of all devices, by index
  std::string prefer = {};               ///< `JobOptions::prefer`: the devices that it names come first
  std::uint64_t preferred = 0;           ///< bit `d`: device `d` is one of these

  bool is_preferred(std::size_t device) const noexcept {
    return device < 64 && (preferred >> device & 1) != 0;
  }

  /// Returns the place of the first device that is equal to a device.
  std::uint16_t group_of(std::size_t device) const noexcept {
    return static_cast<std::uint16_t>(1 + (device < choices.size() ? choices[device].equal : device));
  }
};

/// Returns whether `JobOptions::prefer` names a device.
bool names(std::string_view prefer, const Choice& device) noexcept;
/// Returns a row whose first devices are those that `prefer` names. Throws: std::bad_alloc.
Row preferring(const Row& row, std::string_view prefer);

/// The first device that may run a job.
struct Home {
  std::size_t device = 0;
  bool is_shared = false;       ///< equal devices may run it too, and those of `movable`
  std::uint64_t movable = 0;    ///< bit `d`: device `d`, which is not equal, can run it
  std::uint64_t preferred = 0;  ///< as that of the row; 0 if the first device is not one of these
};
/// Returns the home of a job whose first device is `first`, which has lanes. `can_run(d)`: device `d`
/// can run the job.
template <class CanRun>
Home home_at(const Row& row, std::size_t first, CanRun can_run) {
  const Choice& choice = row.choices[first];
  Home home{.device = first};
  const bool is_preferred = row.is_preferred(first);
  for (const std::size_t device : row.devices)  // a job may prefer one of several equal devices
    if (is_preferred && row.choices[device].equal == choice.equal && !row.is_preferred(device)) return home;
  if (is_preferred) home.preferred = row.preferred;
  if (choice.others != 0)
    for (const std::size_t device : row.devices)
      if (device < 64 && (choice.others >> device & 1) != 0 && can_run(device))
        home.movable |= std::uint64_t{1} << device;
  home.is_shared = choice.has_equals || home.movable != 0;
  return home;
}

/// The preference table for some devices: the default rows, replaced by the application's rows of
/// the same type. Its rows refer to `devices`.
class Preferences {
 public:
  explicit Preferences(const std::vector<Preference>& replacing, std::span<const Choice> devices = {});
  /// Returns the row for `bytes` of `type`. A type without rows has those of `custom`.
  const Row& row(WorkloadType type, Bytes bytes) const noexcept;

 private:
  struct Rows {  // of one type, those for larger sizes first
    WorkloadType type;
    std::vector<Row> rows;
  };
  const Rows* rows_of(WorkloadType type) const noexcept;
  std::vector<Rows> types_;
  Row as_found_;  // if the table has no row for `custom`
};

/// The devices of a pool, and the order in which jobs try them. It does not change: a device that
/// appears later is in a further table.
struct Table {
  Table(const std::vector<Preference>& replacing, std::vector<Choice> devices, PlacementMode mode)
      : choices(find_groups(std::move(devices), mode)), preferences(replacing, choices) {}
  Table(const Table&) = delete;
  const std::vector<Choice> choices;
  const Preferences preferences;
};

}  // namespace wye::scheduler
