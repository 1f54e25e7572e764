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

namespace wye {
inline namespace v0 {
namespace scheduler {

/// The properties of a device that placement uses.
struct Choice {
  std::string_view backend;
  bool emulated = false;  ///< a GPU driver that runs on the CPU: comes last
};

/// The preference table: the default rows, replaced by the application's rows of the same type.
class Preferences {
 public:
  explicit Preferences(std::vector<Preference> replacing);
  /// Returns the row for `bytes` of `type`. A type without rows has those of `custom`.
  const Preference& row(WorkloadType type, Bytes bytes) const;
  const std::vector<Preference>& rows() const noexcept { return rows_; }

 private:
  std::vector<Preference> rows_;
};

/// Returns the indices of `devices` in the order of `row`. Devices that it does not name keep their order and
/// come last.
std::vector<std::size_t> order(std::span<const Choice> devices, const Preference& row);

/// The orders of all rows of a preference table, made once.
class Orders {
 public:
  Orders(std::span<const Choice> devices, const Preferences& preferences);
  const std::vector<std::size_t>& of(const Preference& row) const noexcept;

 private:
  std::vector<std::pair<const Preference*, std::vector<std::size_t>>> rows_;
  std::vector<std::size_t> as_found_;  ///< for a row that is not in the table
};

}  // namespace scheduler
}  // namespace v0
}  // namespace wye
