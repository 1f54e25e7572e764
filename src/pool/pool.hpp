#pragma once
/// The state behind a ContextPool.
#include <wye/pool/context_pool.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/gate.hpp"
#include "base/internals.hpp"
#include "base/logger.hpp"
#include "device/backend.hpp"
#include "device/lane.hpp"
#include "device/provider.hpp"
#include "device/reclaimable.hpp"
#include "silicon/memory_account.hpp"
#include "silicon/silicon.hpp"
#include "silicon/slots.hpp"

namespace wye::inline v0::pool {

class Pool;
struct Context;
struct Inventory;

inline double seconds(Duration d) { return std::chrono::duration<double>(d).count(); }

/// The state of a `Lease`: its context, which it is a part of, and the pool, which it keeps alive.
struct LeaseState {
  explicit LeaseState(Context& of) noexcept : context(&of) {}
  LeaseState(const LeaseState&) = delete;
  inline device::Lane& lane() const noexcept;
  inline const Device& device() const noexcept;
  static Lease wrap(LeaseState& state) noexcept { return Lease(&state); }

  Context* const context;
  std::shared_ptr<Pool> pool;  ///< null while the context is not leased
};

/// One lane with its account and history. The lane is created when first needed, and replaced after
/// a failure. It notes on each thread to which lane the thread has submitted, to find context
/// switches.
struct Context final : device::LaneObserver {
  explicit Context(Pool& of) noexcept : pool(of) {}
  void submitted() noexcept override;
  void waited() noexcept override;

  Pool& pool;
  std::string id;
  std::size_t device = 0;  ///< index into the pool's devices
  LeaseState lease{*this};
  std::unique_ptr<device::Lane> lane;  ///< belongs to the lease while leased
  Device on;                           ///< the device of the lane
  std::shared_ptr<silicon::MemoryAccount> account;
  std::shared_ptr<silicon::MemoryAccount>
      tag;  ///< of the lease of the application; null: its tag has no budget
  bool leased = false;
  bool has_lane = false;                ///< changed under the pool's mutex
  bool refused = false;                 ///< the device refused a lane for the current lease
  silicon::HeldSlot slot;               ///< `use` is that of the last lease, even if it needed no slot
  Instant idle_since = Instant::max();  ///< first check of `trim_locked` since its lease; max: there was none
  std::uint64_t last_used = 0;          ///< number of the last lease; 0: never leased with a lane
  bool is_for_copies = false;           ///< see `Pool::lease_copies`
  std::string work;                     ///< the job that failed on the lane, for the error of `Pool::close`
  std::atomic<std::uint64_t> dispatches{0};
};

/// The memory that a job has yet to allocate on a device.
struct WorkingSet {
  Bytes own;       ///< for its host memory and its scratch memory, charged to its context in the end
  Bytes replicas;  ///< for arrays, charged to the pool
  Bytes all() const noexcept {
    return own.count <= ~replicas.count ? own + replicas : Bytes{~std::uint64_t{0}};
  }
};

/// Memory that a job has reserved, from which its buffers take their charges. Charged to the pool.
struct Reservation {
  silicon::MemoryCharge own, replicas;
};

/// A limit that a working set exceeds.
struct SizeLimit {
  Errc code = Errc::over_budget;
  Bytes needed, limit;
  std::string of;  ///< "budget of silicon 'H100'"
};

/// Why a device is suspect.
enum class Suspicion : std::uint8_t {
  none,
  unfinished_work,  ///< work of a job that failed, ran out of time for example, is in flight there
  memory_errors,    ///< its memory has had an error lately that ECC could not correct
};

/// The health of one device of a pool.
struct Health {
  DeviceHealth state = DeviceHealth::healthy;
  std::uint64_t generation = 1;  ///< counts the devices that were opened in its place
  std::uint32_t failures = 0;    ///< losses and failed probes since jobs completed again
  std::uint32_t completed = 0;   ///< jobs since the last of these
  Instant probe_at{};            ///< quarantined: it is opened again then
  std::optional<Error> last_fault = std::nullopt;
};

/// An order of devices for a kind of work, which is named in errors.
struct Workload {
  std::string_view name = {};
  std::span<const std::size_t> order = {};  ///< indices; empty: the order of `Pool::devices`
};

/// Threads: thread-safe. While the mutex is held, a driver is called only to ask whether an
///          unfinished lane has completed.
class Pool : public std::enable_shared_from_this<Pool>,
             public device::Reclaimable,
             private silicon::SlotTaker {
 public:
  /// `qualifier` checks the devices that it opens; null: they are trusted.
  static Result<std::shared_ptr<Pool>> open(PoolOptions options,
                                            std::shared_ptr<device::Qualifier> qualifier = nullptr);
  /// Opens a pool of devices that are open already. `options` have been checked.
  static std::shared_ptr<Pool> open(PoolOptions options, Inventory inventory,
                                    std::shared_ptr<device::Qualifier> qualifier = nullptr);
  ~Pool();

  /// Returns the adapters that the last discovery has found. The list stays valid and unchanged
  /// until the pool ends.
  const std::vector<AdapterInfo>& adapters() const noexcept {
    return *adapters_.load(std::memory_order_acquire);
  }
  /// Returns the number of devices. It never falls, and the index of a device never changes.
  std::size_t device_count() const noexcept { return count_.load(std::memory_order_acquire); }
  /// Returns the number that `device_count` never exceeds.
  std::size_t device_limit() const noexcept { return device_limit_; }
  /// Implements `ContextPool::rescan`. Throws: std::bad_alloc; then no device was added.
  Result<std::vector<AdapterInfo>> rescan();
  /// Describes the devices. A device that was lost and opened again has the same description.
  std::span<const AdapterInfo> infos() const noexcept { return std::span(infos_).first(device_count()); }
  const AdapterInfo& info(std::size_t device) const noexcept { return infos_[device]; }
  /// Returns a device as it is now: a lost device is replaced when it is opened again.
  Device device(std::size_t index) const {
    const base::Lock lock = lock_devices();
    return devices_[index];
  }
  /// Returns the same without a copy if the device is never replaced; otherwise in `copy`, which
  /// outlives the result.
  const Device& device(std::size_t index, Device& copy) const {
    return is_replaceable_[index] ? copy = device(index) : devices_[index];
  }
  std::vector<Device> devices() const {
    const base::Lock lock = lock_devices();
    return {devices_.begin(), devices_.begin() + static_cast<std::ptrdiff_t>(device_count())};
  }
  /// Returns why a device is suspect.
  Suspicion suspicion(std::size_t device) noexcept {
    const Suspicion found = suspicions_[device].load(std::memory_order_relaxed);
    return found == Suspicion::none ? found : current_suspicion(device);
  }
  /// Destroys the lanes of ended leases that had work in flight; they hold the executables of that
  /// work. Waits for it until `until`, of the steady clock. Returns false if some of it has not
  /// completed then.
  bool await_finished(Instant until) noexcept;
  /// Notes that a device was found to be lost.
  void note_loss(std::size_t device) noexcept;
  /// Opens each lost device again whose time has come, and checks it. `waits`: also waits for
  /// devices that other threads open. Returns false if no device was lost lately.
  bool recover_lost(bool waits) noexcept {
    return has_lost_.load(std::memory_order_relaxed) && recover_all(waits);
  }
  const Clock& clock() const noexcept { return *clock_; }
  /// Returns the process that opened it. A child of `fork` takes no lock of it and leases nothing.
  const base::Origin& origin() const noexcept { return origin_; }
  /// Returns until when a request waits.
  Instant deadline_of(const LeaseRequest& request) const noexcept {
    return request.deadline.value_or(options_.lease_timeout).at(*clock_);
  }
  std::uint32_t lanes_per_device() const noexcept { return options_.lanes_per_device; }
  /// Returns the error of a lease without memory of the host. It was constructed in advance.
  const Error& no_memory() const noexcept { return no_memory_; }

  /// Leases a context for the application, waiting until `until`; `Instant::min()` does not wait.
  Result<Lease> lease(const LeaseRequest& request, Instant until,
                      SourceLocation where = SourceLocation::current(), const Workload& workload = {});
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
  /// Releases the buffers of completed copies of that lane. Returns 1 byte if it may have freed
  /// memory: their size is unknown.
  Bytes reclaim(const device::DeviceBase& device, Bytes wanted) noexcept override;
  IdleMemory kind() const noexcept override { return IdleMemory::contexts; }
  /// Implements `ContextPool::trim`.
  Bytes trim(IdleMemory last);
  /// Implements `ContextPool::defragment`.
  Bytes defragment();
  const std::vector<TagBudget>& tag_budgets() const noexcept { return options_.tag_memory; }
  /// Returns the account of a tag with a budget on the processor of a device; null if the tag has
  /// none.
  std::shared_ptr<silicon::MemoryAccount> tag_account(std::size_t device,
                                                      std::string_view tag) const noexcept;
  /// Returns the limit because of which a working set can never be reserved; nothing if there is
  /// none.
  std::optional<SizeLimit> limit_of(std::size_t device, const silicon::MemoryAccount* tag,
                                    const WorkingSet& set) const;
  /// Charges a whole working set at once to `reserved`, which is empty, or nothing. Idle memory
  /// makes room.
  /// Errors: over_budget, out_of_memory, with the holders of the memory as a line of context.
  Result<void> reserve(std::size_t device, const std::shared_ptr<silicon::MemoryAccount>& tag,
                       const WorkingSet& set, Instant now, Reservation& reserved);
  /// Returns the device that uses memory of the host in place, whose processor's account has the
  /// host's copies of arrays; nothing if the pool has none.
  std::optional<std::size_t> host_device() const noexcept;
  /// A job found no memory on a device. Returns whether memory may become free: leases for jobs are
  /// in use on its processor, which has one slot less then, or other processes that share it hold
  /// memory.
  bool note_shortage(std::size_t device) noexcept;
  Duration lease_timeout() const noexcept { return options_.lease_timeout; }
  /// Reports the pressure on the memory of a device's processor, if it has changed. No lock may be
  /// held.
  void note_memory(std::size_t device) noexcept;
  void note_memory(const device::DeviceBase& device) noexcept {
    if (const auto d = options_.on_pressure ? find(device.ref()) : std::nullopt) note_memory(*d);
  }
  /// Counts a replica whose memory was freed for another allocation.
  void count_eviction() noexcept { evictions_.fetch_add(1, std::memory_order_relaxed); }
  void give_back(Context& context) noexcept;
  /// Adds the run time of a job on a device to the load of its processor; see
  /// `silicon::Slots::note_run`.
  void note_run(std::size_t device, std::uint64_t work, Duration run_time) noexcept {
    if (has_lost_.load(std::memory_order_relaxed)) note_completion(device);
    silicon::Slots& slots = silicon_[silicon_of_[device]].silicon->slots();
    if (slots.observes_runs() && slots.note_run(work, run_time)) slots_of(device).serve();
  }
  /// Counts a completed job of a device that was lost before.
  void note_completion(std::size_t device) noexcept;
  /// Counts a context switch of this thread, and reports it. `since`: the end of its last call of
  /// the lane of `from`.
  void note_switch(const Context& from, const Context& to, Instant since) noexcept;
  bool reports_switches() const noexcept { return options_.on_switch != nullptr; }
  std::uint64_t number() const noexcept { return number_; }
  /// Returns the account of this pool on the silicon of `device`, or null if no device of the pool
  /// is on that silicon.
  std::shared_ptr<silicon::MemoryAccount> account_on(const device::DeviceBase& device) const noexcept;

  /// Keeps all numbers of this pool unchanged while the lock is held.
  base::Lock freeze() const { return base::Lock(mutex_); }
  std::vector<ContextInfo> contexts_locked() const;
  /// Adds `reserved` to the result of `contexts_locked`. Calls drivers, so no lock is held.
  void add_reserved(std::vector<ContextInfo>& contexts) const;
  std::vector<SiliconInfo> silicon() const;
  PoolMetrics metrics_locked() const;

  bool is_closed() const;
  void close();
  /// Closes, and waits until `until` (of the steady clock) for the work in flight of ended leases.
  /// Work in flight then is abandoned: its lanes are never destroyed, and they keep their devices
  /// and all memory of their submissions.
  /// Errors:  timed_out, naming the abandoned work; closed in a child of `fork`.
  Result<void> close(Instant until) noexcept;

 private:
  static constexpr std::size_t no_device = ~std::size_t{0};

  /// A processor, with the state that this pool has for it.
  struct SharedSilicon {
    std::shared_ptr<silicon::Silicon> silicon;
    std::shared_ptr<silicon::MemoryAccount> account;  ///< a child of the silicon's
    std::shared_ptr<silicon::Slots::Member> slots;
    bool is_waited_for = false;  ///< a request waits for nothing but a slot
    std::vector<std::shared_ptr<silicon::MemoryAccount>> tags = {};  ///< as `PoolOptions::tag_memory`
    struct Watch {
      std::atomic<MemoryPressure::Level> level{MemoryPressure::Level::none};
      std::atomic<Instant> next_check{Instant::min()};    ///< when the driver is asked for free memory again
      std::atomic<bool> is_stalled{false};                ///< processes wait for memory
      std::atomic<Instant> next_reading{Instant::min()};  ///< of the monitor
      // Changed under the pool's mutex:
      std::optional<std::uint64_t> memory_errors =
          std::nullopt;                        ///< that ECC did not correct, at the last reading
      bool is_hot = false;                     ///< at the last reading
      Instant suspect_until = Instant::min();  ///< because of its memory errors
    };
    std::unique_ptr<Watch> watch = std::make_unique<Watch>();
  };
  /// A lane that was returned with work in flight.
  struct Unfinished {
    std::unique_ptr<device::Lane> lane;
    const Context* context = nullptr;
    std::string work;  ///< the job that failed on it, if any
  };
  /// The lease that a caller wants.
  struct Wanted {
    std::string_view on = {};
    Features needs = {};
    std::size_t only = no_device;  ///< an index; replaces `on` and `needs`
    Workload workload = {};
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
  };

  explicit Pool(PoolOptions options, std::size_t devices);
  /// Returns the processors of the devices.
  std::span<SharedSilicon> processors() noexcept {
    return std::span(silicon_).first(silicon_count_.load(std::memory_order_acquire));
  }
  std::span<const SharedSilicon> processors() const noexcept {
    return std::span(silicon_).first(silicon_count_.load(std::memory_order_acquire));
  }

  // rescan.cpp
  /// One call of `rescan` at a time has it.
  class Turn;
  static constexpr std::size_t most_added = 16;
  /// Shares the processor of a device with other processes, if the options say so
  /// (`Share::machine`).
  static Result<void> share_processor(const device::DeviceBase& device, const PoolOptions& options);
  /// Prepares the device of the next index: its contexts, accounts and slots. Other threads do not
  /// see it before `publish_prepared_locked`. `adapter` opens it again, if it can; `found_as` is
  /// the id that its backend gives it; the pool has `processors` processors. Throws:
  /// std::bad_alloc; then the device is not prepared.
  void prepare_device(std::shared_ptr<device::DeviceBase> device, std::shared_ptr<device::Adapter> adapter,
                      std::string found_as, std::size_t processors);
  static void abandon(std::unique_ptr<device::Lane> lane) noexcept;
  std::string ids_on(std::size_t processor) const;
  void prepare_silicon(const device::DeviceBase& device, std::size_t processors);
  void make_contexts(std::size_t device, const std::shared_ptr<silicon::MemoryAccount>& account);
  void leave_slots(SharedSilicon& one) noexcept;
  void end_silicon(SharedSilicon& one) noexcept;
  /// Removes the device `from` and all later ones, which are prepared and not published.
  void discard_prepared(std::size_t from) noexcept;
  void publish_prepared_locked() noexcept;
  /// Sets the ranks of prepared devices: each comes after the devices of its backend, and before
  /// devices that are less preferred.
  void rank_prepared_locked(const std::vector<std::size_t>& places) noexcept;
  /// Returns the place of a device in the order of preference. Equal for devices of one backend.
  std::size_t place_of(const AdapterInfo& info) const;
  /// Gives idle contexts of a device that can be used from now on to waiters.
  void offer_locked(std::size_t device) noexcept;
  /// Opens lost devices again, through the adapters that were found. Adds them to `usable`.
  void retry_lost(const std::vector<device::Discovered>& found, std::vector<AdapterInfo>& usable);
  /// Returns whether an adapter that was found is that of a device of the pool.
  bool is_adapter_of(const AdapterInfo& found, std::size_t device) const noexcept;
  bool is_named(std::size_t device, const Wanted& wanted) const noexcept;
  bool is_able(std::size_t device, const Wanted& wanted) const noexcept {
    return is_named(device, wanted) && infos_[device].features.contains(wanted.needs);
  }
  /// Returns whether a lease may use `device`: named, able and not lost.
  bool is_candidate(std::size_t device, const Wanted& wanted) const noexcept {
    return is_able(device, wanted) && !base::state_of(devices_[device])->lost();
  }
  bool has_candidate(const Wanted& wanted) const noexcept;
  /// Returns why no device is a candidate.
  Error no_candidate(const Wanted& wanted) const;
  std::optional<std::size_t> find(device::DeviceRef device) const noexcept;
  /// Errors: device_lost, invalid_argument (of another pool).
  Result<std::size_t> find(const device::DeviceBase& device) const;
  /// Returns a lease of `device`, which may have been lost and replaced since it was found.
  static Result<Lease> of(const device::DeviceBase& device, Result<Lease> lease);
  /// Leases a context of a candidate at the time `now`. Allocates nothing if a context with a lane
  /// is idle.
  Result<Lease> lease_any(const Wanted& wanted, Instant now, Instant until, bool closed_too = false);
  Result<Lease> wait_for_context(const Wanted& wanted, Instant now, Instant until, bool closed_too);
  /// Returns when a request is served: when it began to wait, later by `aging` for each priority
  /// below the highest.
  Instant rank_of(Priority priority, Instant now) const noexcept {
    return now + (static_cast<int>(Priority::high) - static_cast<int>(priority)) * aging_;
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
  /// Returns the handle of a context that has just been leased.
  Lease handle(Context& context) noexcept {
    context.lease.pool = shared_from_this();
    if (!options_.tag_memory.empty()) context.tag = tag_account(context.device, context.slot.use.tag.data());
    if (options_.on_pressure) note_memory(context.device);
    return LeaseState::wrap(context.lease);
  }
  /// Returns whether a candidate has a lane, leased or not.
  bool any_has_lane(const Wanted& wanted) const;
  bool any_has_lane(std::size_t device) const;
  /// Adds `waiter` in the order of ranks.
  void queue(Waiter& waiter, Instant now);
  /// Gives contexts to waiters: `returned`, unless it is null, and idle contexts to those that
  /// waited for a slot. Then notes which of them still wait for one.
  void serve_locked(Context* returned) noexcept;
  void serve_waiting() noexcept override;
  /// Notes, for the slots of each processor, the first request that waits only for one of them.
  void note_waiting_locked() noexcept;
  silicon::Slots::Member& slots_of(std::size_t device) const noexcept {
    return *silicon_[silicon_of_[device]].slots;
  }
  /// Returns whether `is_meant(device)` for a device on the processor `silicon`. Both are indices.
  template <class F>
  bool any_on(std::size_t silicon, F is_meant) const {
    for (std::size_t d = 0; d < device_count(); ++d)
      if (silicon_of_[d] == silicon && is_meant(d)) return true;
    return false;
  }
  bool has_idle(std::size_t device) const noexcept { return leased_on(device) < contexts_[device].size(); }
  /// Returns whether `waiter`, which begins to wait, and threads that wait already could only be
  /// served by each other.
  bool is_deadlock(Waiter& waiter) noexcept;
  std::size_t leased_on(std::size_t device) const noexcept;
  /// Logs the leases of the application that have not ended.
  void report_leases() const;
  /// Counts a lease of a context that has a lane.
  void count_lease(Context& context);
  /// Lets every waiter check its conditions.
  void wake_all() noexcept;
  /// Creates the lane of a leased context that has none, and counts the lease.
  Result<void> open_lane(Context& context);
  Result<void> make_lane(Context& context);
  Error never_free(const Wanted& wanted) const;
  /// Returns ", 2 of 2 slots of 'H100' in use" for each processor without a free slot that a
  /// request may use.
  std::string used_slots(const Wanted& wanted) const;
  /// Returns "; held by 'preview' for 2.0 s", with the tags of leases that a request waits for;
  /// empty without tags.
  std::string tagged_holders(const Wanted& wanted, Instant now) const;
  /// Returns whether a lease of context `a` is better than one of `b`, which is on another device.
  bool comes_before(const Context& a, const Context& b, const Wanted& wanted) const noexcept;
  /// Returns the names of the devices that a lease may use, and its workload, for an error.
  std::string able_devices(const Wanted& wanted) const;
  /// Returns the error of a request that got no context: unavailable (it did not wait), timed_out
  /// or cancelled.
  Error no_context_free(const Wanted& wanted, Duration waited, Errc code) const;
  /// Parks the thread of a waiter until `is_answered()` or `until`. Returns false if its request
  /// was stopped meanwhile.
  template <class F>
  bool await(Waiter& waiter, base::Lock& lock, Instant until, F is_answered);
  /// Adds lanes for copies with work in flight to `unfinished_`.
  void retire_copying() noexcept;
  /// Removes the lanes whose work has completed from `unfinished_` and returns them.
  std::vector<std::unique_ptr<device::Lane>> collect_finished();
  /// Locks `devices_mutex_`, but not in a child of `fork`: another thread may have had it.
  base::Lock lock_devices() const {
    return origin_.is_inherited() ? base::Lock() : base::lock_soon(devices_mutex_);
  }
  DeviceState state_of(std::size_t device) const;
  bool recover_all(bool waits) noexcept;
  void probe_again(std::size_t device) noexcept;
  void recover(std::size_t device);
  Suspicion current_suspicion(std::size_t device) noexcept;
  Suspicion suspicion_locked(std::size_t device) const noexcept;
  void update_suspects_locked() noexcept;
  /// Reads the monitor of a device's processor if it is due, and notes new memory errors and heat.
  void read_monitor(std::size_t device, Instant now) noexcept;
  void note_fault_locked(const SharedSilicon& one, const Error& fault) noexcept;
  /// Notes the losses of devices that a request may use. Returns whether it can use none now.
  bool note_losses(const Wanted& wanted) noexcept;
  void note_loss_locked(std::size_t device) noexcept;
  void quarantine_locked(std::size_t device, const Error& why) noexcept;
  Result<Device> open_again(std::size_t device) const;
  /// Replaces a lost device. Moves the lanes of its idle contexts to `ended`.
  void replace_locked(std::size_t device, Device opened, std::vector<std::unique_ptr<device::Lane>>& ended);
  /// Charges `bytes` for a device to `charge`, after idle memory has made room.
  Result<void> make_room(std::size_t device, Bytes bytes, silicon::MemoryCharge& charge);
  /// Asks the driver, or the system, how much memory a processor has left.
  void check_memory(std::size_t device) noexcept;
  MemoryPressure pressure_of(const SharedSilicon& one) const noexcept;
  /// Moves the lanes of contexts that were idle for `idle_trim` to `ended`, unless `contexts_ahead`
  /// keeps them.
  void trim_due_locked(Instant now, std::vector<std::unique_ptr<device::Lane>>& ended);
  /// Moves the lanes of contexts of `device` that were idle for `idle_for`, or of all devices, to
  /// `ended`.
  void trim_locked(Instant now, Duration idle_for, std::size_t device,
                   std::vector<std::unique_ptr<device::Lane>>& ended);
  /// Creates the lanes of the first contexts of a device.
  void open_ahead(std::size_t device);

  const base::Origin origin_;
  const std::uint64_t number_;  // different for each pool of the process
  PoolOptions options_;
  const Clock* clock_;
  base::Logger log_;
  const Duration aging_;                          // a hundred years at most, so that no rank overflows
  std::shared_ptr<device::Qualifier> qualifier_;  // may be null
  std::function<Result<std::vector<device::Discovered>>()> discover_;  // null: `rescan` finds no adapter
  std::vector<std::unique_ptr<const std::vector<AdapterInfo>>>
      lists_;  // of adapters; `adapters_` is the current one
  std::atomic<const std::vector<AdapterInfo>*> adapters_{nullptr};

  // Vectors with an element per device have all `device_limit_` elements from the beginning. Those
  // of one device are complete when `count_` exceeds its index. A thread without the mutex reads
  // below the count only.
  const std::size_t device_limit_;
  std::atomic<std::size_t> count_{0}, silicon_count_{0};
  std::size_t prepared_ = 0, prepared_silicon_ = 0;  // changed in `open` and by the thread that rescans
  std::vector<AdapterInfo> infos_;
  std::vector<std::string> found_as_;                          // the id of its adapter in the backend
  std::vector<std::shared_ptr<device::Adapter>> reopened_by_;  // under the mutex; null: it is not replaceable
  std::vector<std::uint8_t> is_replaceable_;                   // it can be opened again
  std::vector<std::atomic<Suspicion>> suspicions_;             // as of the last update
  std::vector<std::atomic<std::uint64_t>> refs_;               // the generation of its `DeviceRef`
  std::vector<std::size_t> order_;                             // the first one of the same backend and type
  std::vector<std::size_t> rank_;  // its position in the order of preference; under the mutex
  std::vector<SharedSilicon> silicon_;
  std::vector<std::size_t> silicon_of_;  // an index of `silicon_`

  mutable std::mutex mutex_;
  base::Gate rescanned_;  // a call of `rescan` has ended
  bool is_rescanning_ = false;
  /// Elements that are replaceable change under both mutexes, and are read under one of them. The
  /// second mutex is a leaf.
  std::vector<Device> devices_;
  mutable std::mutex devices_mutex_;
  std::vector<Health> health_;  // per device
  base::Gate probed_;           // a probe has ended
  std::atomic<bool> has_lost_{false};
  std::vector<std::vector<std::unique_ptr<Context>>> contexts_;  // per device
  std::vector<std::unique_ptr<Context>> copying_;                // per device, for `lease_copies`
  std::vector<Context*> warm_;   // per device: returned last; null if none was
  std::deque<Waiter*> waiters_;  // first come, first served
  std::vector<Unfinished> unfinished_;
  Instant next_trim_{};
  std::uint64_t arrivals_ = 0;
  std::uint64_t leases_ = 0;
  std::uint64_t timeouts_ = 0;
  std::uint64_t recoveries_ = 0;
  std::atomic<std::uint64_t> switches_{0}, evictions_{0}, shortages_{0};
  bool closed_ = false;
  bool has_abandoned_ = false;
  const Error no_memory_{Errc::out_of_memory, "The host has no memory left for a lease."};
  const Error close_timed_out_{
      Errc::timed_out, "Work was still in flight when the deadline of closing passed, and is abandoned."};
};

device::Lane& LeaseState::lane() const noexcept { return *context->lane; }
const Device& LeaseState::device() const noexcept { return context->on; }

}  // namespace wye::pool
