#pragma once
/// Adapters: the hardware that a process can reach, its limits and its features.
#include <wye/base/bytes.hpp>
#include <wye/base/config.hpp>
#include <wye/base/extent.hpp>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace wye::inline v0 {

/// A capability of a device that a kernel can need.
enum class Feature : std::uint8_t {
  float16,
  float64,
  int8,
  int16,
  int64,
  storage8,             ///< 8-bit values in buffers
  storage16,            ///< 16-bit values in buffers
  subgroups,            ///< arithmetic, vote, ballot and shuffle across a subgroup
  atomics_int64,        ///< 64-bit integer atomics in buffers
  atomics_float32,      ///< atomicAdd on float in buffers
  host_memory,          ///< kernels read and write host memory in place
  scalar_layout,        ///< vectors and structs in buffers have the alignment of their scalars
  parameters8,          ///< 8-bit scalar parameters
  parameters16,         ///< 16-bit scalar parameters
  subgroups_clustered,  ///< arithmetic across clusters of a subgroup
  memory_model,         ///< the Vulkan memory model
  cooperative_matrix,  ///< products of half matrices of a subgroup, added in float (`Limits::cooperative_matrix`)
};

/// Returns "float64" and the like.
WYE_API std::string_view name(Feature feature) noexcept;

/// A set of features.
/// Threads: thread-compatible.
class Features {
 public:
  constexpr Features() = default;
  constexpr Features(std::initializer_list<Feature> list) {
    for (Feature f : list) bits_ |= bit(f);
  }
  constexpr bool has(Feature f) const { return (bits_ & bit(f)) != 0; }
  constexpr void add(Feature f) { bits_ |= bit(f); }
  constexpr bool contains(Features other) const { return (other.bits_ & ~bits_) == 0; }
  /// Returns the features of this set that are not in `other`.
  constexpr Features without(Features other) const {
    Features rest;
    rest.bits_ = bits_ & ~other.bits_;
    return rest;
  }
  /// Returns the features of both sets.
  constexpr Features with(Features other) const {
    Features both;
    both.bits_ = bits_ | other.bits_;
    return both;
  }
  constexpr bool empty() const { return bits_ == 0; }
  friend constexpr bool operator==(Features, Features) = default;

 private:
  static constexpr std::uint64_t bit(Feature f) { return std::uint64_t{1} << static_cast<unsigned>(f); }
  std::uint64_t bits_ = 0;
};

/// Returns "float64, int64" and the like.
WYE_API std::string to_string(Features features);

enum class AdapterType : std::uint8_t { cpu, integrated, discrete, virtual_gpu, other };

/// Returns "discrete" and the like.
WYE_API std::string_view name(AdapterType type) noexcept;

/// Limits of dispatches and buffers on a device.
struct Limits {
  Extent3 workgroup{1024, 1024, 64};           ///< invocations of one workgroup, per dimension
  std::uint64_t workgroup_invocations = 1024;  ///< invocations of one workgroup, in total
  Extent3 groups{65535, 65535, 65535};         ///< workgroups of one dispatch, per dimension
  Bytes buffer;                                ///< largest buffer
  Bytes descriptor_range;                      ///< largest range one descriptor-bound operand may cover
  Bytes shared_memory;                         ///< per workgroup
  Bytes parameter_bytes;                       ///< parameters passed without spilling to memory
  std::uint32_t bound_buffers = 16;            ///< descriptor-bound operands of one dispatch
  std::uint32_t offset_alignment = 1;          ///< of descriptor-bound ranges, bytes
  std::uint32_t subgroup_size = 1;
  /// Rows, columns and inner dimension of products of cooperative matrices, each 8 or 16; 0 without
  /// the feature. Kernels that use the feature get them as the specialization constants 2000, 2001
  /// and 2002, unless their source sets these.
  Extent3 cooperative_matrix{0, 0, 0};
  /// Iterations that all loops of one invocation have together before the driver ends them early; 0
  /// if no such limit is known. The check of the device measures it (`Runtime::qualifications`).
  std::uint64_t loop_iterations = 0;
};

/// Memory of a device at the time of the call.
struct MemoryInfo {
  Bytes total;      ///< of the device
  Bytes in_use;     ///< held by wye in this process
  Bytes available;  ///< free, as the driver reports it; otherwise `total - in_use`
  Bytes spare{};    ///< held by wye and in no buffer: for later buffers, or too scattered for them
};

/// Kinds of device memory that is idle, in the order in which it is freed for an allocation: a
/// later kind costs more to make again.
enum class IdleMemory : std::uint8_t {
  contexts,     ///< buffers of completed copies, lanes of idle contexts, memory kept for reuse
  executables,  ///< cached kernels that are not in use
  replicas,     ///< copies of arrays that are valid elsewhere
};

using Uuid = std::array<std::uint8_t, 16>;

/// Returns "8f2c0000-0000-0000-0000-000000000000" and the like.
WYE_API std::string to_string(const Uuid& uuid);

/// Describes hardware as one backend reaches it, or the reason why it cannot be used.
struct AdapterInfo {
  std::string id;       ///< "vulkan:0"; "vulkan" if the backend itself is missing
  std::string backend;  ///< "vulkan"
  std::string name;     ///< as the driver reports it
  AdapterType type = AdapterType::other;
  Uuid device_uuid{};  ///< of the hardware; equal for all backends
  Uuid driver_uuid{};
  std::string driver;  ///< driver name and version, to display
  std::string api;     ///< "Vulkan 1.3.230"
  Bytes memory;        ///< of its largest device-local heap
  Limits limits;
  Features features;
  bool usable = false;
  std::string reason;  ///< the reason if it is not usable
  /// Target of machine code for it: "sm_90". Empty if only its driver generates machine code.
  std::string architecture;
  std::uint64_t driver_version = 0;  ///< build number of the driver; 0 if it has none
  /// Processors of a CPU that the process may use, or multiprocessors of a GPU; 0 if the driver
  /// does not tell.
  std::uint32_t processors = 0;
  std::uint32_t queues = 0;  ///< that run kernels; 0 if the driver has no such number
  /// Features that the driver offers and that failed their checks (`Runtime::qualifications`). They
  /// are not in `features`.
  Features failed_features = {};
};

/// Selects how a device is shared with other users.
enum class Isolation : std::uint8_t {
  shared,     ///< work uses the whole device
  partition,  ///< work uses some of its multiprocessors only (CUDA's green contexts)
  /// Work uses the whole device through a driver's device that no other pool has: a CUDA context of
  /// its own instead of the process's primary one, which costs 100 to 550 MB and is scheduled in
  /// turns with it. Vulkan devices are always a pool's own.
  device,
};

/// The part of a device for `Isolation::partition`; half of it if neither member is set. Drivers
/// divide in steps (8 multiprocessors on compute capability 9.0) and round up.
struct Partition {
  std::uint32_t multiprocessors = 0;  ///< a number of multiprocessors, or
  std::uint32_t percent = 0;          ///< a share of all multiprocessors, 1 to 100
  friend bool operator==(const Partition&, const Partition&) = default;
};

}  // namespace wye
