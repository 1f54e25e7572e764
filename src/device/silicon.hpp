#pragma once
/// Processors, each reached by one or more adapters, and the names of devices on them.
#include <wye/base/result.hpp>
#include <wye/device/adapter.hpp>

#include <compare>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device/machine_share.hpp"
#include "device/memory_account.hpp"
#include "device/slots.hpp"

namespace wye::inline v0::device {

/// Numbers the processors that this process uses, from 1.
enum class SiliconId : std::uint32_t {};

/// Names one opened device for the life of the process. A device that is opened again has a new
/// generation.
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
  ~Silicon();
  /// Returns the processor that `adapter` reaches. Adapters with the same device UUID reach the
  /// same one, and so do all adapters whose device is the CPU. An adapter without a UUID has a
  /// processor of its own.
  static std::shared_ptr<Silicon> of(const AdapterInfo& adapter);

  SiliconId id() const noexcept { return id_; }
  /// Returns its name, as the first of its adapters reports it.
  const std::string& name() const noexcept { return account_->owner(); }
  /// Returns the root of its accounts. Its limit is the smallest of: the memory of the machine for
  /// a CPU, the budgets of pools, and the memory that `note_available` was told. Otherwise a GPU's
  /// driver keeps its own limit.
  const std::shared_ptr<MemoryAccount>& account() const noexcept { return account_; }
  /// Adds a budget of a pool, until as many calls of `remove_budget`. Throws: std::bad_alloc.
  void add_budget(Bytes budget);
  void remove_budget(Bytes budget) noexcept;
  /// Notes how much memory the driver reports as free: other programs may use the rest. Memory that
  /// is reserved and not allocated yet makes the limit too large by its size; the driver refuses
  /// such allocations.
  void note_available(Bytes available) noexcept;
  /// Returns the slots that all pools of this process share.
  Slots& slots() noexcept { return slots_; }
  /// Shares slots and budget with the processes that share the same processor in `folder`, until
  /// the end of this object. Without effect if it is shared already, or if other processes cannot
  /// name the processor: it is no CPU and has no UUID.
  /// Errors: those of `MachineShare::join` and `watch`; invalid_argument (it is shared in another
  ///         folder).
  Result<void> share(const std::string& folder);
  /// Returns the processes that share it; empty if it is not shared.
  std::vector<MachineShare::Process> processes();

 private:
  void update_limit_locked() noexcept;

  SiliconId id_;
  const std::string key_;  // its name among processes; empty: it has none
  Slots slots_;
  const Bytes memory_;  // of the machine, or no limit
  std::shared_ptr<MemoryAccount> account_;
  std::mutex mutex_;
  std::vector<Bytes> budgets_;  // of pools
  Bytes told_ = MemoryAccount::no_limit;
  MachineShare* published_ = nullptr;  // gets the budgets
  std::mutex sharing_;                 // of `share_`
  std::unique_ptr<MachineShare> share_;
};

}  // namespace wye::device
