#pragma once
/// Executables: kernels that are built for one device.
#include <wye/base/config.hpp>
#include <wye/base/extent.hpp>
#include <wye/device/schema.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace wye::inline v0 {

namespace device {
class ExecutableBase;
}

/// Options of a launch on CUDA. Members of the sources that only CUDA devices take.
struct LaunchOptions {
  /// Workgroups of one cluster, which run at the same time on neighbouring processors and can wait
  /// for each other. The grid must be a multiple of the cluster in each dimension. Unset: as the
  /// code requires, otherwise no clusters. Devices of sm_90 and newer have clusters of 8
  /// workgroups, some of them larger ones.
  std::optional<Extent3> cluster = std::nullopt;
  /// Runs all workgroups at the same time, so that they can wait for each other (`grid.sync()`).
  /// The grid must not exceed `Executable::resident_groups`.
  bool cooperative = false;
  /// Percentage of a processor's fast memory to use as shared memory, 0 to 100; the rest is cache.
  /// A hint. Unset: the driver's choice.
  std::optional<std::uint32_t> shared_carveout = std::nullopt;
  friend bool operator==(const LaunchOptions&, const LaunchOptions&) = default;
};

/// Tells where an executable was found.
enum class CacheTier : std::uint8_t {
  none,    ///< nowhere: it has not run yet, or is a host function
  memory,  ///< ready in this process
  disk,    ///< its artefact, in the cache directory or the store of the host
  built,   ///< nowhere: it was built
  bundle,  ///< its artefact, in a bundle
};
/// Returns "memory" and the like.
WYE_API std::string_view name(CacheTier tier) noexcept;

/// The code of a kernel that a device runs.
struct KernelCode {
  std::string kernel;  ///< its name
  std::string source;  ///< language of the source in use: "Glsl", "Ptx", "host"
  std::string format;  ///< of the code that the driver takes: "spirv", "cubin", "ptx", "host", "native"
  std::string architecture = {};  ///< that a cubin or PTX is for: "sm_90", "compute_80"
  friend bool operator==(const KernelCode&, const KernelCode&) = default;
};

/// A kernel built for one device. Copies share it.
/// Threads: thread-safe.
class WYE_API Executable {
 public:
  Executable() = default;
  explicit Executable(std::shared_ptr<device::ExecutableBase> state) : state_(std::move(state)) {}
  explicit operator bool() const noexcept { return state_ != nullptr; }
  const std::string& name() const;
  const ParamSchema& schema() const;
  /// Returns the number of its workgroups that an idle device runs at the same time. A cooperative
  /// launch may have no more, and a kernel whose workgroups loop over items needs no more. 0 if the
  /// driver does not report it: on every backend but CUDA, and for native functions.
  std::uint64_t resident_groups() const noexcept;

 private:
  friend struct detail::Internals;
  std::shared_ptr<device::ExecutableBase> state_;
};

}  // namespace wye
