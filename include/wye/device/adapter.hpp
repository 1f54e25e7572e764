#pragma once
/// What there is to run on, and why what is missing is missing.
#include <wye/base/bytes.hpp>
#include <wye/base/extent.hpp>
#include <wye/device/feature.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace wye {
inline namespace v0 {

enum class AdapterType : std::uint8_t { cpu, integrated, discrete, virtual_gpu, other };

/// "discrete".
WYE_API std::string_view name(AdapterType type) noexcept;

/// What one dispatch or one buffer may be.
struct Limits {
  Extent3 workgroup{1024, 1024, 64};           ///< invocations of one workgroup, per dimension
  std::uint64_t workgroup_invocations = 1024;  ///< and in all
  Extent3 groups{65535, 65535, 65535};         ///< workgroups of one dispatch, per dimension
  Bytes buffer;                                ///< largest buffer
  Bytes descriptor_range;                      ///< largest range one descriptor-bound operand may cover
  Bytes shared_memory;                         ///< per workgroup
  Bytes parameter_bytes;                       ///< parameters passed without spilling to memory
  std::uint32_t bound_buffers = 16;            ///< descriptor-bound operands of one dispatch
  std::uint32_t offset_alignment = 1;          ///< of descriptor-bound ranges, bytes
  std::uint32_t subgroup_size = 1;
};

/// Memory of a device, at the moment of asking.
struct MemoryInfo {
  Bytes total;      ///< what the device has
  Bytes in_use;     ///< what wye holds of it in this process
  Bytes available;  ///< what the driver says is left; `total - in_use` where it does not say
};

using Uuid = std::array<std::uint8_t, 16>;

/// "8f2c0000-0000-0000-0000-000000000000".
WYE_API std::string to_string(const Uuid& uuid);

/// One way to reach a piece of hardware, or the reason why there is none.
struct AdapterInfo {
  std::string id;       ///< "vulkan:0"; just "vulkan" where the backend itself is missing
  std::string backend;  ///< "vulkan"
  std::string name;     ///< what the driver calls it
  AdapterType type = AdapterType::other;
  Uuid device_uuid{};  ///< the silicon; equal across backends
  Uuid driver_uuid{};
  std::string driver;  ///< driver name and version, for people
  std::string api;     ///< "Vulkan 1.3.230"
  Bytes memory;        ///< of its largest device-local heap
  Limits limits;
  Features features;
  bool usable = false;
  std::string reason;  ///< why it is not usable; empty where it is
  /// What machine code for it is made for, "sm_90"; empty where nobody makes any but its driver.
  std::string architecture;
  std::uint64_t driver_version = 0;  ///< as the driver numbers its builds; 0 where it does not
};

}  // namespace v0
}  // namespace wye
