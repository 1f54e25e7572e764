#pragma once
/// Processors, each reached by one or more adapters, and the names of devices on them.
#include <wye/device/adapter.hpp>

#include <compare>
#include <cstdint>
#include <memory>
#include <string>

#include "device/memory_account.hpp"
#include "device/slots.hpp"

namespace wye {
inline namespace v0 {
namespace device {

/// Numbers the processors that this process uses, from 1.
enum class SiliconId : std::uint32_t {};

/// Names one opened device for the life of the process. A device that is opened again has a new generation.
struct DeviceRef {
  SiliconId silicon{};
  std::uint64_t generation = 0;  ///< counts all devices that this process opens, from 1
  friend auto operator<=>(const DeviceRef&, const DeviceRef&) = default;
};

/// One processor: the state that its devices share, independent of their backends.
/// Threads: thread-safe.
class Silicon {
 public:
  Silicon(SiliconId id, const AdapterInfo& adapter);
  /// Returns the processor that `adapter` reaches. Adapters with the same device UUID reach the same one, and so do all
  /// adapters whose device is the CPU. An adapter without a UUID has a processor of its own.
  static std::shared_ptr<Silicon> of(const AdapterInfo& adapter);

  SiliconId id() const noexcept { return id_; }
  /// Returns its name, as the first of its adapters reports it.
  const std::string& name() const noexcept { return account_->owner(); }
  /// Returns the root of its accounts. The CPU's limit is the memory of the machine; a GPU's driver keeps its own limit.
  const std::shared_ptr<MemoryAccount>& account() const noexcept { return account_; }
  /// Returns the slots that all pools of this process share.
  Slots& slots() noexcept { return slots_; }

 private:
  SiliconId id_;
  Slots slots_;
  std::shared_ptr<MemoryAccount> account_;
};

}  // namespace device
}  // namespace v0
}  // namespace wye
