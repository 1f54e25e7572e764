#pragma once
/// The leases of a pool: its contexts, the requests that wait for them, and the choice among them.
#include <wye/pool/context_pool.hpp>
#include <wye/pool/lease.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/gate.hpp"
#include "base/logger.hpp"
#include "device/reclaimable.hpp"
#include "pool/accounts.hpp"
#include "pool/context.hpp"
#include "pool/fleet.hpp"
#include "silicon/slots.hpp"

namespace wye::inline v0::pool {

/// An order of devices for a kind of work, which is named in errors.
struct Workload {
  std::string_view name = {};
  std::span<const std::size_t> order = {};  ///< indices; empty: the order in which a pool prefers its devices
};

/// Threads: thread-safe. While its mutex is held, a driver is called only to ask whether an unfinished
///          lane has completed. The mutex of the fleet may be locked under it. `prepare` and `discard`
///          are called by one thread at a time.
class Leases final : public std::enable_shared_from_this<Leases>,
                     public device::Reclaimable,
                     private silicon::SlotTaker {
 public:
  Leases(std::shared_ptr<const PoolOptions> options, std::shared_ptr<Fleet> fleet,
         std::shared_ptr<Accounts> accounts);
  Leases(const Leases&) = delete;
  /// Waits for the work in flight of ended leases, see `PoolOptions::close_timeout`.
  ~Leases() override;

  const Clock& clock() const noexcept { return fleet_->clock(); }
  Accounts& accounts() const noexcept { return *accounts_; }
  /// Returns the error of a lease without memory of the host. It was constructed in advance.
  const Error& no_memory() const noexcept { return no_memory_; }

  /// Prepares the contexts of a device that the fleet and the accounts have prepared; the pool has
  /// `processors` processors. Throws: std::bad_alloc; then `discard` undoes it.
  void prepare(std::size_t device, std::size_t processors);
  /// Removes the device `from` and all later ones, which are not published, and leaves the processors
  /// from `processors` on.
  void discard(std::size_t from, std::size_t processors) noexcept;
  /// Publishes the prepared devices of the fleet, and gives their contexts to waiters. `places` orders
  /// all devices: a new device comes after those with the same place, and before those with a larger
  /// one. Returns false, and publishes nothing, if the pool is closed.
  bool publish(const std::vector<std::size_t>& places) noexcept;
  /// Replaces a lost device of the fleet. Throws: std::bad_alloc; then nothing has changed.
  void replace(std::size_t device, Device opened);

  /// Leases a context for the application, waiting until `until`; `Instant::min()` does not wait.
  Result<Lease> lease(const LeaseRequest& request, Instant until, SourceLocation where,
                      const Workload& workload);
  /// Leases a context of one device, within the pool's own timeout. `now` is the time of the pool's
  /// clock.
  Result<Lease> lease_on(const device::DeviceBase& device, Instant now);
  /// Leases a context of `device` to transfer data. A closed pool leases too, because data may be
  /// read after the end, but waits for its own timeout at most.
  Result<Lease> lease_for(const device::DeviceBase& device, Instant until);
  /// Leases the lane of `device` for copies that are submitted ahead of the jobs that use them,
  /// without waiting. Each device has one, beside its contexts. A lease may end with copies in
  /// flight, and the next user's commands follow them. Returns nothing if it is leased, the pool is
  /// closed, or the device refuses a further lane.
  std::optional<Lease> lease_copies(device::DeviceRef device) noexcept;
  void give_back(Context& context) noexcept;
  /// Adds a job that has completed on a device to the load of its processor; see
  /// `silicon::Slots::note_run`. `stretch` returns its stretch; it is called if the slots may change.
  template <class Stretch>
  void note_run(std::size_t device, Stretch stretch) noexcept {
    silicon::Slots& slots = fleet_->silicon(fleet_->processor_of(device)).slots();
    if (slots.observes_runs() && slots.note_run(stretch())) slots_of(device).serve();
  }

  /// Destroys the lanes of ended leases whose work has completed, and those of idle contexts.
  void trim();
  /// Destroys the lanes of ended leases that had work in flight; they hold the executables of that
  /// work. Waits for it until `until`, of the steady clock. Returns false if some of it has not
  /// completed then.
  bool await_finished(Instant until) noexcept;
  /// Releases the buffers of completed copies of the lane for copies, and idle lanes. Returns 1 byte
  /// if it may have freed memory: their size is unknown.
  Bytes reclaim(const device::DeviceBase& device, Bytes wanted) noexcept override;
  IdleMemory kind() const noexcept override { return IdleMemory::contexts; }

  /// Keeps all numbers unchanged while the lock is held.
  base::Lock freeze() const { return base::Lock(mutex_); }
  void add_to_locked(PoolMetrics& metrics) const noexcept;

  bool is_closed() const;
  void close();
  /// Closes, and waits until `until` (of the steady clock) for the work in flight of ended leases.
  /// Work in flight then is abandoned: its lanes are never destroyed, and they keep their devices
  /// and all memory of their submissions.
  /// Errors:  timed_out, naming the abandoned work; closed in a child of `fork`.
  Result<void> close(Instant until) noexcept;

 private:
  friend class Report;
  /// The lease that a caller wants.
  struct Wanted {
    DeviceFilter which = {};
    std::span<const std::size_t> order = {};  ///< of `Workload`
    Priority priority = Priority::normal;
    StopToken stop = {};
    silicon::SlotUse use = {};  ///< its begin is set by `begin_lease`
    bool needs_slot = true;
  };
  struct Waiter {
    Waiter(const Wanted& of, const std::vector<std::size_t>& by) : wanted(of), refusing(by) {}
    const Wanted& wanted;
    const std::vector<std::size_t>& refusing;  ///< see `take_idle`
    bool is_endless = false;                   ///< it has no deadline and cannot be stopped
    bool is_stuck = false;                     ///< see `is_deadlock`
    bool lacks_slot = false;                   ///< it waits for a slot: a context is idle
    Instant rank{};                            ///< see `rank_of`
    std::uint64_t arrival = 0;                 ///< order of waiters of one rank; 0: it has not waited yet
    std::atomic<Context*> given{nullptr};      ///< changed under the mutex
    base::Gate answered;

    /// Parks the thread until `is_answered()` or `until`. Returns false if the request was stopped
    /// meanwhile.
    template <class F>
    bool await(base::Lock& lock, const Clock& clock, Instant until, F is_answered);
  };
  /// A call that leases a context.
  struct Request {
    const Wanted& wanted;
    Instant until;
    bool closed_too = false;                 ///< a closed pool serves it
    std::vector<std::size_t> refusing = {};  ///< devices that refused a lane in this call
    std::optional<Error> refusal = std::nullopt;
    std::optional<Waiter> waiter = std::nullopt;
  };
  /// The state for one device.
  struct OnDevice : DeviceContexts {
    std::size_t equal = 0;  ///< the first device of the same backend and type
    std::size_t rank = 0;   ///< position in the order of preference
  };
  /// The state for one processor.
  struct OnProcessor {
    std::shared_ptr<silicon::Slots::Member> slots;
    bool is_waited_for = false;  ///< a request waits for nothing but a slot
    void leave() noexcept;
  };

  /// Leases a context of a candidate at the time `now`. Allocates nothing if a context with a lane
  /// is idle.
  Result<Lease> lease_any(const Wanted& wanted, Instant now, Instant until, bool closed_too = false);
  Result<Lease> lease_any(Request& request, Instant now);
  /// Waits until a context is given to a request, and returns it.
  Result<Context*> wait_locked(base::Lock& lock, Request& request, bool lacks_slot);
  /// Returns the handle of a context that has just been leased.
  Lease handle(Context& context) noexcept;
  /// Creates the lane of a leased context that has none, and counts the lease.
  Result<void> open_lane(Context& context);
  void trim_due_locked(Instant now, Lanes& ended);
  /// Makes unfinished the lanes for copies with work in flight.
  void retire_copying() noexcept;
  /// Lets every waiter check its conditions.
  void wake_all() noexcept;

  // Choice (choice.cpp)
  /// Returns when a request is served: when it began to wait, later by `aging` for each priority
  /// below the highest.
  Instant rank_of(Priority priority, Instant now) const noexcept {
    return now + (static_cast<int>(Priority::high) - static_cast<int>(priority)) * aging_;
  }
  silicon::Slots::Member& slots_of(std::size_t device) const noexcept {
    return *processors_[fleet_->processor_of(device)].slots;
  }
  /// Leases the best of the idle contexts of candidates, one for each device, and returns it; null
  /// if there is none. A context with a lane comes before a context without one. Skips contexts
  /// without a lane on the devices in `refusing`, and devices without a free slot. `lacks_slot`
  /// tells whether it skipped one of these.
  Context* take_idle(const Wanted& wanted, Instant rank, Instant now,
                     const std::vector<std::size_t>& refusing, bool& lacks_slot) noexcept;
  /// Leases the context of a device that was returned last, whose memory is in the caches of the
  /// processor; null if that context is leased or has no lane, or if there is no slot.
  Context* take_warm(std::size_t device, Instant now) noexcept;
  /// Leases an idle context. Returns false if there is no slot for it.
  bool begin_lease(Context& context, const Wanted& wanted, Instant rank, Instant now) noexcept;
  /// Returns whether a candidate has a lane, leased or not.
  bool any_has_lane(const Wanted& wanted) const noexcept;
  /// Returns whether a lease of context `a` is better than one of `b`, which is on another device.
  bool comes_before(const Context& a, const Context& b, const Wanted& wanted) const noexcept;
  /// Adds `waiter` in the order of ranks.
  void queue(Waiter& waiter, Instant now);
  /// Gives contexts to waiters: `returned`, unless it is null, and idle contexts to those that
  /// waited for a slot. Then notes which of them still wait for one.
  void serve_locked(Context* returned) noexcept;
  void serve_waiting() noexcept override;
  /// Gives idle contexts of a device that can be used from now on to waiters.
  void offer_locked(std::size_t device) noexcept;
  /// Notes, for the slots of each processor, the first request that waits only for one of them.
  void note_waiting_locked() noexcept;
  /// Returns whether `waiter`, which begins to wait, and threads that wait already could only be
  /// served by each other.
  bool is_deadlock(Waiter& waiter) noexcept;

  const std::shared_ptr<const PoolOptions> options_;
  const std::shared_ptr<Fleet> fleet_;
  const std::shared_ptr<Accounts> accounts_;
  base::Logger log_;
  const Duration aging_;  // a hundred years at most, so that no rank overflows
  Switches switches_;
  // All places are there from the beginning, as in `Fleet`.
  std::vector<OnDevice> devices_;
  std::vector<OnProcessor> processors_;

  mutable std::mutex mutex_;
  std::deque<Waiter*> waiters_;  // first come, first served
  UnfinishedLanes unfinished_;
  Instant next_trim_{};
  std::uint64_t arrivals_ = 0, leases_ = 0, timeouts_ = 0;
  Histogram waits_;  // of requests that have waited and got a context
  bool closed_ = false, has_abandoned_ = false;
  const Error no_memory_{Errc::out_of_memory, "The host has no memory left for a lease."};
  const Error close_timed_out_{
      Errc::timed_out, "Work was still in flight when the deadline of closing passed, and is abandoned."};
};

}  // namespace wye::pool
