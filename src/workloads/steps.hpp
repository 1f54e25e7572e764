#pragma once
/// The steps of a job, and the grids they run over.
#include <wye/kernel/kernel.hpp>
#include <wye/scheduler/job.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace wye::inline v0::workloads {

/// Collects calls that execute in order, and makes a job of them.
class Steps {
 public:
  /// Adds one call. If the kernel could not be made, the whole job fails.
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

/// The memory of a parameter, for a step with another access.
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

/// Returns whether the memory of a parameter begins at a multiple of `bytes`. An array does.
template <class T, Access access>
bool begins_at(const detail::Parameter<T, access>& parameter, std::uint64_t bytes) {
  const wye::detail::Operand& operand = parameter.operand();
  const auto begin = operand.kind == wye::detail::Operand::Kind::host
                         ? static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(operand.data))
                         : operand.offset * sizeof(T);
  return begin % bytes == 0;
}

/// Elements in host memory.
struct HostWords {
  bool exist = false;
  std::span<const std::uint32_t> words;
};
inline HostWords words_on_host(const Read<std::uint32_t>& numbers) {
  const auto& operand = numbers.operand();
  if (operand.kind != wye::detail::Operand::Kind::host) return {};
  return {true, {static_cast<const std::uint32_t*>(operand.data), numbers.size()}};
}

/// Makes a failed job with the reason `sentence`.
Job refused(std::string name, WorkloadType type, std::string sentence);

/// Rows, columns and nodes are 32-bit numbers in kernels, and signed where drivers index with them.
inline constexpr std::uint64_t largest_dimension = 0x7fff'ffff;

/// Flat grids have rows of 2^23 items: any number of items fits into 65,535 workgroups of 256 per
/// dimension. The last row may have items beyond the end, which are ignored.
/// `shaders/include/flat.glsl` and `flat.cuh` have the same number.
inline constexpr std::uint64_t flat_width = std::uint64_t{1} << 23;
constexpr Extent3 flat(std::uint64_t items) {
  return items <= flat_width ? Extent3(items) : Extent3(flat_width, (items + flat_width - 1) / flat_width);
}

/// Returns the part of a flat grid's items that is below `items`.
constexpr Range below(Range range, std::uint64_t items) {
  return {std::min(range.first, items), std::min(range.last, items), range.grid};
}

}  // namespace wye::workloads
