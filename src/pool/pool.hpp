#pragma once
/// The state behind a ContextPool.
#include <wye/pool/context_pool.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/gate.hpp"
#include "base/internals.hpp"
#include "base/journal.hpp"
#include "device/backend.hpp"
#include "device/provider.hpp"
#include "pool/accounts.hpp"
#include "pool/context.hpp"
#include "pool/fleet.hpp"
#include "pool/leases.hpp"

namespace wye::inline v0::pool {

struct Inventory;

/// Joins the devices, the accounts and the leases of a pool. Adds devices to all three, and opens lost
/// ones again.
/// Threads: thread-safe. No driver is called under its mutex.
class Pool {
 public:
  /// `qualifier` checks the devices that it opens; null: they are trusted. `journal`: null: its own.
  static Result<std::shared_ptr<Pool>> open(PoolOptions options,
                                            std::shared_ptr<device::Qualifier> qualifier = nullptr,
                                            std::shared_ptr<base::Journal> journal = nullptr);
  /// Opens a pool of devices that are open already. `options` have been checked; see also
  /// `Accounts::subscribe_sinks`.
  static std::shared_ptr<Pool> open(PoolOptions options, Inventory inventory,
                                    std::shared_ptr<device::Qualifier> qualifier = nullptr,
                                    std::shared_ptr<base::Journal> journal = nullptr);

  const Fleet& fleet() const noexcept { return *fleet_; }
  Accounts& accounts() const noexcept { return *accounts_; }
  Leases& leases() const noexcept { return *leases_; }
  base::Journal& journal() const noexcept { return *accounts_->journal(); }
  const Clock& clock() const noexcept { return fleet_->clock(); }
  /// Returns the process that opened it. A child of `fork` takes no lock of it and leases nothing.
  const base::Origin& origin() const noexcept { return fleet_->origin(); }
  const PoolOptions& options() const noexcept { return *options_; }
  /// Returns the error of a lease without memory of the host.
  const Error& no_memory() const noexcept { return leases_->no_memory(); }
  /// Returns until when a request waits.
  Instant deadline_of(const LeaseRequest& request) const noexcept {
    return request.deadline.value_or(options_->lease_timeout).at(clock());
  }

  /// Returns the adapters that the last discovery has found. The list stays valid and unchanged
  /// until the pool ends.
  const std::vector<AdapterInfo>& adapters() const noexcept {
    return *adapters_.load(std::memory_order_acquire);
  }
  /// Implements `ContextPool::rescan`. Throws: std::bad_alloc; then no device was added.
  Result<std::vector<AdapterInfo>> rescan();

  /// Implements `ContextPool::lease`. Opens lost devices first that the request may use.
  Result<Lease> lease(const LeaseRequest& request, Instant until,
                      SourceLocation where = SourceLocation::current(), const Workload& workload = {});
  /// Notes that a device was found to be lost.
  void note_loss(std::size_t device) noexcept { fleet_->note_loss(device); }
  /// Opens each lost device again whose time has come, and checks it. `waits`: also waits for
  /// devices that other threads open. Returns false if no device was lost lately.
  bool recover_lost(bool waits) noexcept { return fleet_->has_lost() && recover_all(waits); }
  /// Returns why a device is suspect.
  Suspicion suspicion(std::size_t device) noexcept {
    const Suspicion found = fleet_->suspicion(device);
    return found == Suspicion::none ? found : current_suspicion(device);
  }
  /// Notes a job that has completed on a device. `stretch` as in `Leases::note_run`.
  template <class Stretch>
  void note_run(std::size_t device, Stretch stretch) noexcept {
    if (fleet_->has_lost()) fleet_->note_completion(device);
    leases_->note_run(device, stretch);
  }

  /// Implements `ContextPool::trim`.
  Bytes trim(IdleMemory last);
  /// Implements `ContextPool::defragment`.
  Bytes defragment();
  /// Keeps all numbers of this pool unchanged while the lock is held, but for those of `Accounts` and `Fleet`.
  base::Lock freeze() const { return leases_->freeze(); }
  PoolMetrics metrics_locked() const;
  std::vector<ContextInfo> contexts_locked() const;
  /// Adds `reserved` to the result of `contexts_locked`. Calls drivers, so no lock is held.
  void add_reserved(std::vector<ContextInfo>& contexts) const;
  std::vector<SiliconInfo> silicon() const;
  void close() { leases_->close(); }
  Result<void> close(Instant until) noexcept { return leases_->close(until); }

 private:
  class Turn;
  struct Listing;
  Pool(std::shared_ptr<const PoolOptions> options, std::size_t devices,
       std::shared_ptr<device::Qualifier> qualifier, std::shared_ptr<base::Journal> journal);
  bool recover_all(bool waits) noexcept;
  /// Opens a device again that is being probed.
  void recover(std::size_t device) noexcept;
  Suspicion current_suspicion(std::size_t device) noexcept;

  // rescan.cpp
  static Result<void> share_processor(const device::DeviceBase& device, const PoolOptions& options);
  void prepare_device(std::shared_ptr<device::DeviceBase> device, std::shared_ptr<device::Adapter> adapter,
                      std::string found_as, std::size_t processors);
  void discard_prepared(std::size_t from) noexcept;
  std::size_t place_of(const AdapterInfo& info) const;
  Listing list_found(const std::vector<device::Discovered>& found) const;
  Result<void> open_found(const std::vector<device::Discovered>& found, Listing& listing,
                          std::vector<AdapterInfo>& usable);
  void retry_lost(const std::vector<device::Discovered>& found, std::vector<AdapterInfo>& usable);

  const std::shared_ptr<const PoolOptions> options_;
  const std::shared_ptr<Fleet> fleet_;
  const std::shared_ptr<Accounts> accounts_;
  const std::shared_ptr<Leases> leases_;
  std::function<Result<std::vector<device::Discovered>>()> discover_;  // null: `rescan` finds no adapter
  std::vector<std::unique_ptr<const std::vector<AdapterInfo>>>
      lists_;  // of adapters; `adapters_` is the current one
  std::atomic<const std::vector<AdapterInfo>*> adapters_{nullptr};
  std::mutex mutex_;      // of the turn
  base::Gate rescanned_;  // a call of `rescan` has ended
  bool is_rescanning_ = false;
};

}  // namespace wye::pool
