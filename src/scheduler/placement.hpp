#pragma once
/// Orders the devices that a job tries: a pure function.
#include <wye/base/bytes.hpp>
#include <wye/scheduler/job.hpp>
#include <wye/scheduler/scheduler.hpp>

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace wye::inline v0::scheduler {

/// The properties of a device that placement uses.
struct Choice {
  std::string_view backend;
  bool emulated = false;  ///< a GPU driver that runs on the CPU: comes last
};

/// Returns the indices of `devices` in the order of `row`. Devices that it does not name keep their
/// order and come last.
std::vector<std::size_t> order(std::span<const Choice> devices, const Preference& row);

/// A row of the preference table, and the order of devices that follows from it.
struct Row : Preference {
  std::vector<std::size_t> devices = {};
  std::span<const Choice> choices = {};  ///< the properties of all devices, by index
};

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
  Table(const std::vector<Preference>& replacing, std::vector<Choice> devices)
      : choices(std::move(devices)), preferences(replacing, choices) {}
  Table(const Table&) = delete;
  const std::vector<Choice> choices;
  const Preferences preferences;
};

}  // namespace wye::scheduler
