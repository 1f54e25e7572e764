#pragma once
/// The names of opened devices.
#include <compare>
#include <cstdint>

#include "silicon/silicon.hpp"

namespace wye::inline v0::device {

/// Names one opened device for the life of the process. A device that is opened again has a new
/// generation.
struct DeviceRef {
  silicon::SiliconId silicon{};
  std::uint64_t generation = 0;  ///< counts all devices that this process opens, from 1
  friend auto operator<=>(const DeviceRef&, const DeviceRef&) = default;
};

}  // namespace wye::device
