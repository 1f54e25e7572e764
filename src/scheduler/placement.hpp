#pragma once
/// Which devices a job tries, in which order: a pure function of facts.
#include <wye/base/bytes.hpp>
#include <wye/scheduler/job.hpp>
#include <wye/scheduler/scheduler.hpp>

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace wye {
inline namespace v0 {
namespace scheduler {

/// A device, as placement sees it.
struct Choice {
  std::string_view backend;
  bool emulated = false;  ///< a GPU driver that runs on the CPU: after everything else
};

/// The preference table: the default rows, with the host's in place of those of the same type.
class Preferences {
 public:
  explicit Preferences(std::vector<Preference> replacing);
  /// The row that counts for `bytes` of `type`; a type without rows is treated as `custom`.
  const Preference& row(WorkloadType type, Bytes bytes) const;
  const std::vector<Preference>& rows() const noexcept { return rows_; }

 private:
  std::vector<Preference> rows_;
};

/// The indices of `devices` in the order of `row`; devices it does not name keep their order, after those it
/// names.
std::vector<std::size_t> order(std::span<const Choice> devices, const Preference& row);

}  // namespace scheduler
}  // namespace v0
}  // namespace wye
