#pragma once
/// A kernel made ready for one device.
#include <wye/base/config.hpp>
#include <wye/device/schema.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace wye {
inline namespace v0 {

namespace device {
class ExecutableBase;
}

/// Where an executable was found.
enum class CacheTier : std::uint8_t {
  none,    ///< there was nothing to find: it has not run yet, or is a function of the host
  memory,  ///< ready in this process
  disk,    ///< its artefact, in the cache directory
  built,   ///< nowhere: it was built
  bundle,  ///< its artefact, in a bundle
};
/// "memory".
WYE_API std::string_view name(CacheTier tier) noexcept;

/// A kernel compiled for, and living on, one device. Copies share it.
/// Threads: thread-safe.
class WYE_API Executable {
 public:
  Executable() = default;
  explicit Executable(std::shared_ptr<device::ExecutableBase> base) : base_(std::move(base)) {}
  explicit operator bool() const noexcept { return base_ != nullptr; }
  const std::string& name() const;
  const ParamSchema& schema() const;
  /// Workgroups of it that the device runs at the same time when it runs nothing else: as many as a kernel needs whose
  /// workgroups go on to further items, and the most that a cooperative launch may have. 0 where the driver does not say: on
  /// all devices but CUDA's, and of native functions.
  std::uint64_t resident_groups() const noexcept;
  const std::shared_ptr<device::ExecutableBase>& base() const noexcept { return base_; }

 private:
  std::shared_ptr<device::ExecutableBase> base_;
};

}  // namespace v0
}  // namespace wye
