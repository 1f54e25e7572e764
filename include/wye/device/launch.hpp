#pragma once
/// How a kernel is launched, beside its grid.
#include <wye/base/extent.hpp>

#include <cstdint>
#include <optional>

namespace wye {
inline namespace v0 {

/// What a launch may ask of a device that runs CUDA's kernels, and no other device offers: an option of the sources that
/// only such devices take.
struct LaunchOptions {
  /// Workgroups of one cluster: they run at the same time, on processors near to each other, and can wait for each other.
  /// The grid has to be a multiple of it in each dimension. Unset: what the code requires, else no clusters. Devices of sm_90 and
  /// newer have them, of 8 workgroups and some of more.
  std::optional<Extent3> cluster = std::nullopt;
  /// All workgroups run at the same time and can wait for each other (`grid.sync()`). The grid must not have more of them than
  /// `Executable::resident_groups` says.
  bool cooperative = false;
  /// Percent of a processor's fast memory that the kernel would like to have as shared memory, 0 to 100, the rest being cache.
  /// Nothing but a hint. Unset: the driver's choice.
  std::optional<std::uint32_t> shared_carveout = std::nullopt;
  friend bool operator==(const LaunchOptions&, const LaunchOptions&) = default;
};

}  // namespace v0
}  // namespace wye
