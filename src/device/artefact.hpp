#pragma once
/// Artefacts: the results of builds, from which devices create executables.
#include <wye/base/clock.hpp>
#include <wye/base/extent.hpp>
#include <wye/device/adapter.hpp>
#include <wye/device/detail/host_code.hpp>
#include <wye/device/detail/native_code.hpp>
#include <wye/device/executable.hpp>
#include <wye/device/schema.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.hpp"
#include "device/operand.hpp"

namespace wye::inline v0::device {

/// The way in which one argument is passed to the code.
struct Passing {
  enum class Kind : std::uint8_t {
    host,        ///< the operand itself
    descriptor,  ///< set 0, storage buffer at `binding`
    bytes,       ///< a value at `offset` of the parameter block
    address,     ///< an 8-byte device address at `offset` of the parameter block
    span,        ///< 16 bytes at `offset`: device address, then element count
  };
  Kind kind = Kind::host;
  std::uint32_t binding = 0;
  std::uint32_t offset = 0;
  friend bool operator==(const Passing&, const Passing&) = default;
};

/// A specialization constant: its id and the 4 or 8 bytes of its value.
struct Specialization {
  std::uint32_t id = 0;
  std::uint32_t size = 4;
  std::uint64_t bits = 0;
  friend bool operator==(const Specialization&, const Specialization&) = default;
};

/// A dimension of `tile` that spans the whole grid.
inline constexpr std::uint64_t whole = 0;

/// Code in a language of a device, with its parameters and its launch options.
struct Artefact {
  std::string kernel;    ///< the kernel's name, for messages
  std::string language;  ///< "spirv", "cubin", "ptx", "host" or "native" (`DeviceBase::languages`)
  std::string entry = "main";
  std::vector<std::byte> code;  ///< "ptx" includes its terminating zero
  std::shared_ptr<const HostCode> host;
  std::shared_ptr<const NativeCode> native;
  std::vector<Specialization> specialization;
  ParamSchema schema;
  std::vector<Passing> passing;       ///< one per slot
  std::uint32_t parameter_bytes = 0;  ///< size of the parameter block
  Extent3 workgroup{1};               ///< invocations
  /// Items that one workgroup covers, or that one call of a host function covers at least; `whole`
  /// (0): all items of the dimension.
  Extent3 tile{1};
  Features needs;
  std::uint32_t dynamic_shared = 0;  ///< bytes of shared memory that a launch adds to the code's own
  Digest key;                        ///< digest of all input of the build
  LaunchOptions launch = {};         ///< of "cubin" and "ptx" only
};

/// Checks the passing of every slot. `devices` names the devices that take `kinds`: "Vulkan
/// device".
/// Errors: invalid_argument (a slot without passing, a value that is not passed as bytes, memory
///         that is, or an end outside the block), unsupported (no such device takes the kind).
Result<void> check_passing(const Artefact& artefact, std::string_view devices,
                           std::initializer_list<Passing::Kind> kinds);

/// Checks that the launch needs no feature of CUDA. Hints are ignored.
/// Errors: unsupported, naming the feature.
Result<void> check_plain_launch(const Artefact& artefact, std::string_view devices);

/// Returns the workgroups that cover `items`.
Extent3 groups_for(const Artefact& artefact, Extent3 items) noexcept;

/// Checks a grid of workgroups against the limits of a device. A grid of one row (y = z = 1) may
/// have `row_groups` of them, if that is more than the limit in x.
/// Errors: unsupported, naming the dimension, the number and the limit.
Result<void> check_groups(const Artefact& artefact, Extent3 groups, const Limits& limits,
                          const std::string& device_id, std::uint64_t row_groups = 0);

/// Returns the shortest run of items, in row-major order, that one call of a host function covers;
/// at least 1.
std::uint64_t grain_for(const Artefact& artefact, Extent3 items);

}  // namespace wye::device
