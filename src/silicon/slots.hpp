#pragma once
/// The slots of a processor: how many leases of its devices may be in use at a time, over all pools
/// of this process.
#include <wye/base/clock.hpp>
#include <wye/base/log.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/gate.hpp"

namespace wye::inline v0::silicon {

class MachineShare;

/// A lease that uses a slot.
struct SlotUse {
  std::array<char, 32> tag{};  ///< of the lease, up to a zero
  std::optional<SourceLocation> where =
      std::nullopt;          ///< the application's call; unset: wye leased it for a job
  std::uint64_t thread = 0;  ///< number of the thread of that call; 0: wye leased it
  Instant since{};           ///< start of the lease
};

/// A part of each context: the slot that its lease uses. Changed under the lock of its pool and
/// that of the `Slots`.
struct HeldSlot {
  SlotUse use;
  std::string_view context;      ///< its id
  const Clock* clock = nullptr;  ///< of `use.since`
  const void* member = nullptr;  ///< the `Slots::Member` that took it; null while it is not used
  bool counts = false;           ///< see `Slots`
  HeldSlot *before = nullptr, *after = nullptr;  ///< in the list of used slots
};

/// The port through which slots call a pool.
class SlotTaker {
 public:
  virtual ~SlotTaker() = default;
  /// Gives free slots to requests that wait for one, and calls `Member::wait` for the first that
  /// still waits. Called without a lock of the slots.
  virtual void serve_waiting() noexcept = 0;
};

/// The leases of one thread share a slot: only the first of them counts. Otherwise threads that
/// each have a lease, and want a second one, would wait for each other. Each lease for a job
/// counts.
/// Threads: thread-safe.
class Slots {
 public:
  /// The number of slots that one pool asks for.
  struct Wish {
    std::uint32_t limit = 0;     ///< 0: it has none
    std::uint32_t at_least = 1;  ///< if no pool has a limit
    bool follows_load = false;   ///< the number changes between 1 and the others' result
  };
  class Member;
  /// A slot in use, for display.
  struct Holder {
    SlotUse use;
    std::string context;
    Duration age{};
    bool is_own = false;  ///< of the pool that asks
  };

  /// `of_device`: `default_slots` of the first device.
  explicit Slots(std::uint32_t of_device) noexcept : default_(of_device), limit_(of_device) {
    load_.most = load_.now = of_device;
  }
  /// Adds a further device of the processor.
  void add_device(std::uint32_t of_device) noexcept;
  /// Adds a pool. The smallest limit of a pool holds; without limits, the largest number of a
  /// device and of `Wish::at_least`. `taker` outlives the result.
  std::shared_ptr<Member> join(SlotTaker& taker, Wish wish);

  /// Adds a job to the load. The stretch of a job is its run time divided by the least run time of such jobs; zero: it is not
  /// known, and the job does not count. After each window of 16 jobs:
  ///   - the number of slots falls by one if the mean stretch exceeds 1.5;
  ///   - otherwise it rises by one if a request waited for a slot, and if it has not fallen in the last 16 windows.
  /// Without `Wish::follows_load` only slots that `note_shortage` took come back, one for each window.
  /// Source: the congestion window of TCP Vegas (Brakmo and Peterson, IEEE JSAC 1995). Returns true if the number has risen; the
  /// caller then calls `Member::serve`.
  bool note_run(double stretch) noexcept;
  /// A job that has just ended its lease found no memory. From now on there are as many slots as
  /// are in use now, but at least one for a job beside the application's leases. A slot comes back
  /// with each window of jobs. Returns false, and changes nothing, if no lease for a job uses a
  /// slot: there is no memory to wait for.
  bool note_shortage() noexcept;
  /// Returns whether `note_run` may change the number of slots.
  bool observes_runs() const noexcept { return observes_runs_.load(std::memory_order_relaxed); }

  /// Shares the slots with other processes, until the end of this object. `machine` lives longer,
  /// and calls `serve`.
  void share(MachineShare& machine) noexcept;
  /// Lets the pools with waiting requests take free slots, the earliest rank first. No lock of a
  /// pool may be held.
  void serve() noexcept;

  std::uint32_t limit() const noexcept;
  /// Returns the slots that this process uses.
  std::uint32_t used() const noexcept;
  /// Returns the slots that other processes use.
  std::uint32_t used_elsewhere() const noexcept;
  std::vector<Holder> holders(const Member& asking) const;

 private:
  void update_limit_locked() noexcept;
  void note_load_locked(double of_job) noexcept;
  std::uint32_t limit_locked() const noexcept;
  /// Tells other processes the rank of the first request that waits, if this process may use a slot
  /// more.
  void publish_rank_locked() noexcept;

  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Member>> members_;
  HeldSlot* first_ = nullptr;  // of the used ones
  std::uint32_t used_ = 0;
  std::uint32_t waiting_ = 0;        // members with a request that waits
  MachineShare* machine_ = nullptr;  // null: this process shares the slots with no other one
  std::uint32_t default_;
  std::uint32_t limit_;  // of this process
  std::atomic<bool> observes_runs_{false};
  bool follows_load_ = false;
  std::uint32_t missing_ = 0;         // slots that shortages of memory took, of those that there would be
  std::uint32_t since_shortage_ = 0;  // jobs of the window
  struct Load {
    double stretch = 0;       // sum of the window
    std::uint32_t jobs = 0;   // in the window
    std::uint32_t calm = 0;   // windows until it may rise
    std::uint32_t most = 1;   // slots
    std::uint32_t now = 1;    // slots that follow the load
    bool has_waited = false;  // in the window
  } load_;
};

/// A pool among the users of a processor's slots.
/// Threads: thread-safe. The pool calls it under its own lock, except for `serve` and `leave`.
class Slots::Member {
 public:
  Member(Slots& of, SlotTaker& taker, Wish wish) noexcept : slots_(of), taker_(&taker), wish_(wish) {}
  Member(const Member&) = delete;

  /// Uses a slot for a lease that begins `now`. Returns false if none is free, or if a request with
  /// an earlier rank waits.
  bool take(HeldSlot& slot, const SlotUse& use, Instant now, Instant rank) noexcept;
  /// Returns whether `take` would succeed now.
  bool is_free(const SlotUse& use, Instant rank) const noexcept;
  /// Returns true if a request of a pool waits, so that the caller has to call `serve`.
  bool give_back(HeldSlot& slot) noexcept;
  /// Notes the rank of the first request of this pool that waits for nothing but a slot; nothing:
  /// there is none.
  void wait(std::optional<Instant> rank) noexcept;
  /// Ignores the rank of this pool until its next call of `wait`: it serves its requests in their
  /// own order.
  void begin_service() noexcept;
  /// Calls `Slots::serve`.
  void serve() noexcept { slots_.serve(); }
  /// Returns whether every slot is used by a lease for which `is_meant(slot)`.
  template <class F>
  bool are_all_used(F is_meant) const {
    const base::Lock lock = base::lock_soon(slots_.mutex_);
    if (slots_.used_ < slots_.limit_locked()) return false;
    for (const HeldSlot* slot = slots_.first_; slot; slot = slot->after)
      if (!is_meant(*slot)) return false;
    return true;
  }
  /// Ends the membership. When it has returned, `serve_waiting` is not called any more. No lock of
  /// a pool may be held.
  void leave() noexcept;

 private:
  friend class Slots;
  bool is_free_locked(Instant rank) const noexcept;
  /// Returns a slot that a thread uses, and that counts or does not; null if there is none.
  HeldSlot* find_locked(std::uint64_t thread, bool counts) const noexcept;

  Slots& slots_;
  std::mutex visiting_;  // held while the taker is called
  SlotTaker* taker_;     // null after `leave`; changed under `visiting_`
  const Wish wish_;
  std::optional<Instant> rank_;  // of the first waiting request
};

}  // namespace wye::silicon
