#pragma once
/// Native functions as kernel code, type-erased.
#include <wye/base/extent.hpp>
#include <wye/base/result.hpp>
#include <wye/device/native.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace wye::inline v0 {

namespace detail {

/// One argument of a native function.
struct NativeArgument {
  std::uint64_t address = 0;         ///< of memory: its device address
  std::uint64_t count = 0;           ///< of memory: elements
  std::span<const std::byte> value;  ///< of a value: its bytes
};

}  // namespace detail

namespace device {

/// Code that submits work to a lane. It may throw; the caller catches.
/// Threads: `enqueue` is called on the thread that submits, on several at once for different lanes.
class NativeCode {
 public:
  virtual ~NativeCode() = default;
  /// Submits the work of `grid` items to `lane` and does not wait for it. `arguments` are in the
  /// order of the schema.
  virtual Result<void> enqueue(const NativeLane& lane, Extent3 grid,
                               std::span<const detail::NativeArgument> arguments) const = 0;
  /// Returns the test for devices; null if every device of the backend can run this code.
  virtual NativeProbe probe() const noexcept { return nullptr; }
};

}  // namespace device

}  // namespace wye
