#pragma once
/// Contexts: the lanes of a device that requests lease.
#include <wye/pool/context_pool.hpp>
#include <wye/pool/lease.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/id.hpp"
#include "base/journal.hpp"
#include "device/lane.hpp"
#include "pool/fleet.hpp"
#include "silicon/memory_account.hpp"
#include "silicon/slots.hpp"

namespace wye::inline v0::pool {

class Leases;
struct Context;

using Lanes = std::vector<std::unique_ptr<device::Lane>>;

/// The state of a `Lease`: its context, which it is a part of, and the pool's leases, which it keeps
/// alive.
struct LeaseState {
  explicit LeaseState(Context& of) noexcept : context(&of) {}
  LeaseState(const LeaseState&) = delete;
  inline device::Lane& lane() const noexcept;
  inline const Device& device() const noexcept;
  static Lease wrap(LeaseState& state) noexcept { return Lease(&state); }

  Context* const context;
  std::shared_ptr<Leases> leases;  ///< null while the context is not leased
};

/// Counts the context switches of threads, and emits them. Each thread notes to which lane it has
/// submitted last.
/// Threads: thread-safe.
class Switches : base::Identified {
 public:
  /// `fleet` outlives it.
  Switches(std::shared_ptr<base::Journal> journal, const Fleet& fleet) noexcept;
  void note_submission(const Context& to) noexcept;
  void note_wait(const Context& of) noexcept;
  base::Journal& journal() const noexcept { return *journal_; }
  std::uint64_t count() const noexcept { return count_.load(std::memory_order_relaxed); }
  /// Returns the durations of switches, see `PoolMetrics::switch_time`.
  Histogram times() const noexcept;

 private:
  /// Notes the end of a call of this thread, if there is a listener for switches or the thread has
  /// switched lately.
  void note_end() const noexcept;
  /// `since`: the end of this thread's last call of the lane of `from`.
  void report(const Context& from, const Context& to, Instant since) noexcept;

  const std::shared_ptr<base::Journal> journal_;
  const Fleet& fleet_;
  std::atomic<std::uint64_t> count_{0};
  mutable std::mutex mutex_;
  Histogram times_;  // under the mutex
};

/// One lane with its account and history. The lane is created when first needed, and replaced after
/// a failure.
/// Threads: the lane belongs to the thread that has leased the context; the rest is changed under
///          the mutex of `Leases`.
struct Context final : device::LaneObserver {
  Context(Switches& of, std::size_t on_device, std::string with_id)
      : switches(of), device(on_device), id(std::move(with_id)) {}
  void submitted() noexcept override { switches.note_submission(*this); }
  void waited() noexcept override { switches.note_wait(*this); }
  /// Creates the lane. Sets `refused` on an error.
  Result<void> make_lane(const Fleet& fleet);
  /// Moves the lane to `ended`, which has room for it, and forgets that the device refused one.
  void end_lane(Lanes& ended) noexcept;

  Switches& switches;
  const std::size_t device;  ///< an index
  const std::string id;
  const Id context_id = base::next_id();
  Id lease_id;  ///< of the last lease
  LeaseState lease{*this};
  std::unique_ptr<device::Lane> lane;  ///< belongs to the lease while leased
  Device on;                           ///< the device of the lane
  std::shared_ptr<silicon::MemoryAccount> account;
  std::shared_ptr<silicon::MemoryAccount>
      tag;  ///< of the lease of the application; null: its tag has no budget
  bool leased = false;
  bool has_lane = false;                ///< changed under the mutex
  bool refused = false;                 ///< the device refused a lane for the current lease
  silicon::HeldSlot slot;               ///< `use` is that of the last lease, even if it needed no slot
  Instant idle_since = Instant::max();  ///< first check of `trim` since its lease; max: there was none
  std::uint64_t last_used = 0;          ///< number of the last lease; 0: never leased with a lane
  bool is_for_copies = false;           ///< see `Leases::lease_copies`
  std::string work;                     ///< the job that failed on the lane, for the error of `Leases::close`
  std::atomic<std::uint64_t> dispatches{0};
};

/// The contexts of one device.
/// Threads: under the mutex of `Leases`, but for `make` and `open_ahead`.
class DeviceContexts {
 public:
  /// Makes the contexts of a device without lanes. `account`: that of its processor.
  void make(std::size_t device, const Fleet& fleet, Switches& switches, const PoolOptions& options,
            const std::shared_ptr<silicon::MemoryAccount>& account);
  /// Creates the lanes of the first contexts. An error of the device ends that and is logged.
  void open_ahead(const Fleet& fleet, std::uint32_t count, const base::Logger& log);

  std::size_t leased() const noexcept;
  bool has_idle() const noexcept { return leased() < all.size(); }
  bool has_lane() const noexcept;
  /// Returns the idle context to lease: one with a lane, if there is one, the least recently used.
  /// `needs_lane`: null if none has a lane.
  Context* best_idle(bool needs_lane) const noexcept;
  /// Moves lanes of contexts that were idle for `idle_for` to `ended`, and keeps `kept` lanes.
  void trim(Instant now, Duration idle_for, std::uint32_t kept, Lanes& ended);
  /// Moves the lanes of all idle contexts to `ended`, which has room for them.
  void end_idle(Lanes& ended) noexcept;

  std::vector<std::unique_ptr<Context>> all;
  std::unique_ptr<Context> copying;  ///< see `Leases::lease_copies`
  Context* warm = nullptr;           ///< returned last; null if none was
};

/// Lanes that were returned with work in flight. They are destroyed when it has completed.
/// Threads: under the mutex of `Leases`.
class UnfinishedLanes {
 public:
  struct Entry {
    std::unique_ptr<device::Lane> lane;
    const Context* context = nullptr;
    std::string work;  ///< the job that failed on it, if any
  };

  /// `fleet` counts those with work of a job, and outlives it.
  explicit UnfinishedLanes(Fleet& fleet) noexcept : fleet_(fleet) {}
  /// Adds the lane of a context. Throws: std::bad_alloc; then `lane` is unchanged.
  void add(std::unique_ptr<device::Lane>& lane, const Context& context, std::string& work);
  /// Removes the lanes whose work has completed and returns them. Throws: std::bad_alloc; then they
  /// stay.
  Lanes take_finished();
  /// Removes and returns all of them.
  std::vector<Entry> take_all() noexcept;
  bool is_empty() const noexcept { return entries_.empty(); }

 private:
  void count(const Entry& entry, int by) noexcept {
    if (!entry.work.empty()) fleet_.count_unfinished(entry.context->device, by);
  }

  Fleet& fleet_;
  std::vector<Entry> entries_;
};

/// Keeps a lane whose work is in flight until the process ends.
void abandon(std::unique_ptr<device::Lane> lane) noexcept;

device::Lane& LeaseState::lane() const noexcept { return *context->lane; }
const Device& LeaseState::device() const noexcept { return context->on; }

}  // namespace wye::pool
