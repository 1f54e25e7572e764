#pragma once
/// The steps of a job, and the grids they run over.
#include <wye/kernel/kernel.hpp>
#include <wye/scheduler/job.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace wye {
inline namespace v0 {
namespace workloads {

/// Calls that run in order, until they are made a job.
class Steps {
 public:
  /// Adds one call. A kernel that could not be made makes the whole job fail.
  template <class... P>
  void add(const Result<Kernel<P...>>& kernel, Extent3 items, const std::type_identity_t<P>&... arguments) {
    if (kernel)
      calls_.push_back((*kernel)(arguments...).over(items));
    else if (!error_)
      error_ = kernel.error();
  }

  Job job(std::string name, WorkloadType type) &&;

 private:
  std::vector<Call> calls_;
  std::optional<Error> error_;
};

/// The memory behind a parameter, for a step that uses it another way.
class Memory {
 public:
  template <class T, Access access>
  explicit Memory(const detail::Parameter<T, access>& parameter) : operand_(parameter.operand()) {}
  wye::detail::Operand operand(Access access) const {
    wye::detail::Operand same = operand_;
    same.access = access;
    return same;
  }

 private:
  wye::detail::Operand operand_;
};

/// A job that cannot mean anything, for the reason in `sentence`.
Job refused(std::string name, WorkloadType type, std::string sentence);

/// Rows, columns and nodes are 32-bit numbers in kernels, and signed where drivers index with them.
inline constexpr std::uint64_t largest_dimension = 0x7fff'ffff;

/// Items in rows of 2^23, so that any number of them fits into 65,535 workgroups of 256 per dimension. The last row may
/// have items beyond the end, which are ignored. `shaders/include/flat.glsl` and `flat.cuh` read it.
inline constexpr std::uint64_t flat_width = std::uint64_t{1} << 23;
constexpr Extent3 flat(std::uint64_t items) {
  return items <= flat_width ? Extent3(items) : Extent3(flat_width, (items + flat_width - 1) / flat_width);
}

/// Those of the items of a flat grid that are below `items`.
constexpr Range below(Range range, std::uint64_t items) {
  return {std::min(range.first, items), std::min(range.last, items), range.grid};
}

}  // namespace workloads
}  // namespace v0
}  // namespace wye
