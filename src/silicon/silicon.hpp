#pragma once
/// Processors, each reached by one or more devices.
#include <wye/base/bytes.hpp>
#include <wye/base/result.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "silicon/machine_share.hpp"
#include "silicon/memory_account.hpp"
#include "silicon/slots.hpp"

namespace wye::inline v0::silicon {

/// Numbers the processors that this process uses, from 1.
enum class SiliconId : std::uint32_t {};

/// Describes a processor as one of its devices knows it.
struct ProcessorInfo {
  std::string name = {};    ///< for display
  std::string key = {};     ///< equal in all processes; empty: no other device reaches it
  std::uint32_t slots = 1;  ///< the default number of its slots
  /// The limit of its account; zero: unknown. Unset: the memory of the machine, which is read from
  /// the system.
  std::optional<Bytes> memory = Bytes{};
};

/// One processor: the state that its devices share, independent of their backends.
/// Threads: thread-safe.
class Silicon {
 public:
  Silicon(SiliconId id, const ProcessorInfo& info);
  ~Silicon();
  /// Returns the processor with the key of `info`, for a further device. If none is in use, or
  /// without a key, it is a new one, with the name and the memory of `info`.
  static std::shared_ptr<Silicon> of(const ProcessorInfo& info);

  SiliconId id() const noexcept { return id_; }
  /// Returns its name, as the first of its devices knows it.
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
  /// the end of this object. Without effect if it is shared already, or if it has no key.
  /// Errors: those of `MachineShare::join` and `watch`; invalid_argument (it is shared in another
  ///         folder).
  Result<void> share(const std::string& folder);
  /// Returns the processes that share it; empty if it is not shared.
  std::vector<MachineShare::Process> processes();

 private:
  void update_limit_locked() noexcept;

  SiliconId id_;
  const std::string key_;  // `ProcessorInfo::key`
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

}  // namespace wye::silicon
