#pragma once
/// Host functions as kernel code, type-erased.
#include <wye/base/clock.hpp>
#include <wye/base/extent.hpp>
#include <wye/device/detail/operand.hpp>

#include <span>

namespace wye::inline v0::device {

/// Code that runs in this process. It may throw; the caller catches.
/// Threads: `run` is called from several threads at once, with disjoint ranges.
class HostCode {
 public:
  virtual ~HostCode() = default;
  /// Runs the items of `range`. `operands` are of kind host or value, in the order of the schema.
  virtual void run(Range range, std::span<const detail::Operand> operands, const StopToken& stop) const = 0;
};

}  // namespace wye::device
