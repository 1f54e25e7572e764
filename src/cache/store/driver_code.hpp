#pragma once
/// Code that drivers generate late.
#include <memory>

#include "device/executable.hpp"

namespace wye {
inline namespace v0 {
namespace cache {

/// Makes the driver generate all code of `executable` now, by a dispatch over no items. Some drivers (lavapipe) generate
/// it at the first dispatch only. Does nothing if the device cannot create a lane.
/// Threads: thread-safe.
void make_all_code(const std::shared_ptr<device::ExecutableBase>& executable);

}  // namespace cache
}  // namespace v0
}  // namespace wye
