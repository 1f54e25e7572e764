#pragma once
/// Code that drivers leave for later.
#include <memory>

#include "device/contract.hpp"

namespace wye {
inline namespace v0 {
namespace cache {

/// Has the driver make all code of `executable` now: by a dispatch over no items, with arguments that nothing reads.
/// Some drivers (lavapipe) make it for the first dispatch only. Where the device makes no lane, it stays as it is.
/// Threads: thread-safe.
void make_all_code(const std::shared_ptr<device::ExecutableBase>& executable);

}  // namespace cache
}  // namespace v0
}  // namespace wye
