#pragma once
/// The state behind a ContextPool.
#include <wye/pool/context_pool.hpp>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/gate.hpp"
#include "device/lane.hpp"

namespace wye {
inline namespace v0 {
namespace pool {

struct Inventory;

/// One lane with what is known about it. Made on first need; its lane is replaced after a failure.
struct Context {
  std::string id;
  std::size_t device = 0;              ///< index into the pool's devices
  std::unique_ptr<device::Lane> lane;  ///< belongs to the lease while leased
  std::shared_ptr<device::MemoryAccount> account;
  bool leased = false;
  bool made = false;            ///< it has a lane; changed under the pool's mutex
  bool refused = false;         ///< the device gave the current lease no lane
  Instant since{};              ///< when the current lease began
  std::uint64_t last_used = 0;  ///< tick of the last lease; 0: never
  Instant last_used_at{};
  std::string work;  ///< the job that failed on the lane, for the error of `Pool::close`
  std::atomic<std::uint64_t> dispatches{0};
};

/// Threads: thread-safe. No driver is called while the mutex is held.
class Pool : public std::enable_shared_from_this<Pool> {
 public:
  static Result<std::shared_ptr<Pool>> open(PoolOptions options);
  /// Opens a pool of devices that are open already. `options` have been checked.
  static std::shared_ptr<Pool> open(PoolOptions options, Inventory inventory);
  static ContextPool wrap(std::shared_ptr<Pool> pool) { return ContextPool(std::move(pool)); }
  ~Pool();

  const std::vector<AdapterInfo>& adapters() const noexcept { return adapters_; }
  const std::vector<Device>& devices() const noexcept { return devices_; }
  const Clock& clock() const noexcept { return *clock_; }
  /// Which process opened it. A child of `fork` takes no lock of it and leases nothing.
  const base::Origin& origin() const noexcept { return origin_; }
  Duration lease_timeout() const noexcept { return options_.lease_timeout; }

  /// Leases a context, waiting until `until`; `Instant::min()` does not wait.
  Result<Lease> lease(const LeaseRequest& request, Instant until);
  /// Leases a context of one device, within the pool's own timeout.
  Result<Lease> lease_on(std::size_t device);
  /// Leases a context of the device that `device` is, for data to be moved. Also from a closed pool: then for its own timeout at
  /// most, so that data can be read after the end and nothing waits for a lease that never ends.
  Result<Lease> lease_for(const device::DeviceBase& device, Instant until);
  void give_back(Context& context) noexcept;

  /// Holds every number of this pool still while the lock lives.
  base::Lock freeze() const { return base::Lock(mutex_); }
  std::vector<ContextInfo> contexts_locked() const;
  PoolMetrics metrics_locked() const;

  bool is_closed() const;
  void close();
  /// Closes, and waits until `until` (of the steady clock) for what ended leases have in flight. What is in flight then is
  /// abandoned: its lanes are never destroyed, and they hold their devices and all memory of their submissions.
  /// Errors: timed_out, naming what is abandoned; closed in a child of `fork`.
  Result<void> close(Instant until) noexcept;

 private:
  /// A lane that was given back with work in flight.
  struct Unfinished {
    std::unique_ptr<device::Lane> lane;
    const Context* context = nullptr;
    std::string work;  ///< the job that failed on it, if a job did
  };
  struct Waiter {
    explicit Waiter(const std::vector<std::size_t>& wanted) : devices(wanted) {}
    const std::vector<std::size_t>& devices;
    std::atomic<Context*> given{nullptr};  ///< changed under the mutex
    base::Gate answered;
  };

  explicit Pool(PoolOptions options);
  Result<std::vector<std::size_t>> candidates(const LeaseRequest& request) const;
  Result<Lease> lease_any(const std::vector<std::size_t>& devices, Instant until, bool closed_too = false);
  /// The context to lease now, or null: of the first device that has an idle one. One with a lane goes before one whose lane is
  /// still to be made, which on devices in `refusing` is not tried again.
  Context* take_idle(const std::vector<std::size_t>& devices, const std::vector<std::size_t>& refusing);
  /// Whether a lane of one of `devices` exists, be it leased.
  bool any_made(std::span<const std::size_t> devices) const;
  void begin(Context& context);
  /// Makes the lane of a leased context that has none.
  Result<void> furnish(Context& context);
  Error nothing_free(const std::vector<std::size_t>& devices, Duration waited, bool waits) const;
  /// Takes the lanes out of `unfinished_` that have finished.
  std::vector<std::unique_ptr<device::Lane>> dig();

  const base::Origin origin_;
  PoolOptions options_;
  const Clock* clock_;
  std::vector<AdapterInfo> adapters_;
  std::vector<Device> devices_;

  mutable std::mutex mutex_;
  std::vector<std::vector<std::unique_ptr<Context>>> contexts_;  // per device
  std::deque<Waiter*> waiters_;                                  // first come, first served
  std::vector<Unfinished> unfinished_;
  Context* last_leased_ = nullptr;
  std::uint64_t tick_ = 0;
  std::uint64_t leases_ = 0;
  std::uint64_t switches_ = 0;
  std::uint64_t timeouts_ = 0;
  bool closed_ = false;
  bool has_abandoned_ = false;
  const Error close_timed_out_{
      Errc::timed_out, "Work was still in flight when the deadline of closing passed, and is abandoned."};
};

/// What a `Lease` owns.
struct LeaseState {
  std::shared_ptr<Pool> pool;
  Context* context = nullptr;

  LeaseState(std::shared_ptr<Pool> from, Context* leased) : pool(std::move(from)), context(leased) {}
  ~LeaseState() { pool->give_back(*context); }
  LeaseState(const LeaseState&) = delete;

  device::Lane& lane() const noexcept { return *context->lane; }
  const Device& device() const noexcept { return pool->devices()[context->device]; }
  static Lease wrap(std::unique_ptr<LeaseState> state) { return Lease(std::move(state)); }
};

}  // namespace pool
}  // namespace v0
}  // namespace wye
