#pragma once
/// The processor that an adapter reaches.
#include <wye/device/adapter.hpp>

#include <cstdint>
#include <memory>

#include "silicon/silicon.hpp"

namespace wye::inline v0::device {

/// Returns the default number of leases of a device at a time: the processors of a CPU; for a GPU
/// an eighth of its multiprocessors, or its queues if these are more. At least 4.
std::uint32_t default_slots(const AdapterInfo& adapter) noexcept;

/// Returns the processor that `adapter` reaches. Adapters with the same device UUID reach the same
/// one, and so do all adapters whose device is the CPU. An adapter without a UUID has a processor of
/// its own.
std::shared_ptr<silicon::Silicon> silicon_of(const AdapterInfo& adapter);

}  // namespace wye::device
