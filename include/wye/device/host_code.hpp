#pragma once
/// A function of the host as kernel code, type-erased.
#include <wye/base/extent.hpp>
#include <wye/base/stop.hpp>
#include <wye/device/operand.hpp>

#include <span>

namespace wye {
inline namespace v0 {
namespace device {

/// Code that runs in this process. It may throw; whoever calls it catches.
/// Threads: `run` is called from several threads at once, with disjoint ranges.
class HostCode {
 public:
  virtual ~HostCode() = default;
  /// Runs the items of `range`. `operands` are of kind host or value, in the order of the schema.
  virtual void run(Range range, std::span<const Operand> operands, const StopToken& stop) const = 0;
};

}  // namespace device
}  // namespace v0
}  // namespace wye
