// Assigns contexts to requests: the order of choice, slots, waiters, and waits that cannot end.
#include <algorithm>
#include <tuple>
#include <utility>

#include "base/internals.hpp"
#include "pool/leases.hpp"

namespace wye::inline v0::pool {

bool Leases::comes_before(const Context& a, const Context& b, const Wanted& wanted) const noexcept {
  const std::span<const std::size_t> order = wanted.order;
  const auto place = [&](const Context& context) {
    const std::size_t device = devices_[context.device].equal;
    return order.empty()
               ? devices_[device].rank
               : static_cast<std::size_t>(std::find(order.begin(), order.end(), device) - order.begin());
  };
  if (devices_[a.device].equal != devices_[b.device].equal) return place(a) < place(b);
  const auto load = [&](const Context& c) {
    return std::tuple(devices_[c.device].leased(), accounts_->of(c.device)->held().count, c.last_used);
  };
  return load(a) < load(b);
}

Context* Leases::take_idle(const Wanted& wanted, Instant rank, Instant now,
                           const std::vector<std::size_t>& refusing, bool& lacks_slot) noexcept {
  for (;;) {
    Context* best = nullptr;
    lacks_slot = false;
    for (std::size_t d = 0; d < fleet_->size(); ++d) {
      if (!fleet_->is_candidate(d, wanted.which)) continue;
      const bool refuses = std::find(refusing.begin(), refusing.end(), d) != refusing.end();
      Context* const idle = devices_[d].best_idle(refuses);
      if (!idle || (best && !comes_before(*idle, *best, wanted))) continue;
      if (wanted.needs_slot && !slots_of(d).is_free(wanted.use, rank))
        lacks_slot = true;
      else
        best = idle;
    }
    if (!best) return nullptr;
    if (begin_lease(*best, wanted, rank, now)) return best;
    // Another pool has taken the slot meanwhile.
  }
}

Context* Leases::take_warm(std::size_t device, Instant now) noexcept {
  static constexpr Wanted any{};
  const base::Lock lock = base::lock_soon(mutex_);
  Context* const warm = devices_[device].warm;
  if (!warm || warm->leased || !warm->has_lane || closed_ || !unfinished_.is_empty() || now >= next_trim_)
    return nullptr;
  return begin_lease(*warm, any, rank_of(any.priority, now), now) ? warm : nullptr;
}

bool Leases::begin_lease(Context& context, const Wanted& wanted, Instant rank, Instant now) noexcept {
  if (wanted.needs_slot) {
    if (!slots_of(context.device).take(context.slot, wanted.use, now, rank)) return false;
  } else {
    context.slot.use = wanted.use;
    context.slot.use.since = now;
  }
  context.leased = true;
  context.lease_id = base::next_id();
  context.idle_since = Instant::max();
  if (context.has_lane) context.last_used = ++leases_;
  return true;
}

bool Leases::any_has_lane(const Wanted& wanted) const noexcept {
  for (std::size_t d = 0; d < fleet_->size(); ++d)
    if (fleet_->is_candidate(d, wanted.which) && devices_[d].has_lane()) return true;
  return false;
}

void Leases::queue(Waiter& waiter, Instant now) {
  // A waiter whose context got no lane waits again, and keeps its place.
  if (waiter.arrival == 0) {
    waiter.arrival = ++arrivals_;
    waiter.rank = rank_of(waiter.wanted.priority, now);
  }
  const auto later = std::find_if(waiters_.begin(), waiters_.end(), [&](const Waiter* w) {
    return std::pair(w->rank, w->arrival) > std::pair(waiter.rank, waiter.arrival);
  });
  waiters_.insert(later, &waiter);
}

void Leases::serve_locked(Context* returned) noexcept {
  const Context* const was_returned = returned;
  // If the device refused this context a lane, a waiter gets it only if there is no other context
  // to wait for.
  if (returned && returned->refused && devices_[returned->device].has_lane()) returned = nullptr;
  // The requests of this pool are served in their own order.
  for (std::size_t p = 0; p < fleet_->processor_count(); ++p)
    if (processors_[p].is_waited_for) processors_[p].slots->begin_service();
  std::optional<Instant> now;
  for (auto at = waiters_.begin(); at != waiters_.end();) {
    Waiter& waiter = **at;
    Context* given = nullptr;
    const bool may_get = returned && fleet_->is_candidate(returned->device, waiter.wanted.which);
    if ((may_get || waiter.lacks_slot) && !now) now = clock().now();
    if (may_get) {
      if (begin_lease(*returned, waiter.wanted, waiter.rank, *now))
        given = returned;
      else
        waiter.lacks_slot = true;
    }
    if (!given && waiter.lacks_slot)
      given = take_idle(waiter.wanted, waiter.rank, *now, waiter.refusing, waiter.lacks_slot);
    if (!given) {
      ++at;
      continue;
    }
    if (given == returned) returned = nullptr;
    waiter.given = given;
    waiter.answered.wake_one();  // under the lock: the waiter's thread destroys it
    at = waiters_.erase(at);
  }
  if (was_returned && !was_returned->leased && fleet_->is_lost(was_returned->device))
    wake_all();  // waiters without another device
  note_waiting_locked();
}

void Leases::note_waiting_locked() noexcept {
  for (std::size_t p = 0; p < fleet_->processor_count(); ++p) {
    OnProcessor& here = processors_[p];
    const auto waits_here = [&](const Waiter* waiter) {
      return waiter->lacks_slot && fleet_->any_on(p, [&](std::size_t d) {
        return fleet_->is_candidate(d, waiter->wanted.which) && devices_[d].has_idle();
      });
    };
    const auto first = std::find_if(waiters_.begin(), waiters_.end(), waits_here);
    const bool waits = first != waiters_.end();
    if (!waits && !here.is_waited_for) continue;
    here.is_waited_for = waits;
    here.slots->wait(waits ? std::optional((*first)->rank) : std::nullopt);
  }
}

void Leases::offer_locked(std::size_t device) noexcept {
  bool any = false;
  for (Waiter* const waiter : waiters_) {
    if (!fleet_->is_candidate(device, waiter->wanted.which)) continue;
    waiter->lacks_slot = true;  // `serve_locked` then looks for an idle context, and for its slot
    any = true;
  }
  if (any) serve_locked(nullptr);
}

void Leases::serve_waiting() noexcept {
  const base::Lock lock = base::lock_soon(mutex_);
  serve_locked(nullptr);
}

/// A thread that waits without a deadline is stuck if each context that it may get, or each slot
/// for it, was leased by a thread that is stuck.
bool Leases::is_deadlock(Waiter& waiter) noexcept {
  if (!waiter.is_endless || waiter.wanted.use.thread == 0) return false;
  for (Waiter* const one : waiters_) one->is_stuck = one->is_endless && one->wanted.use.thread != 0;
  const auto is_stuck = [&](const silicon::SlotUse& use) {
    return use.thread != 0 && std::any_of(waiters_.begin(), waiters_.end(), [&](const Waiter* one) {
             return one->is_stuck && one->wanted.use.thread == use.thread;
           });
  };
  const auto is_held = [&](const auto& context) { return context->leased && is_stuck(context->slot.use); };
  const auto may_end = [&](const Waiter& one) {
    for (std::size_t d = 0; d < fleet_->size(); ++d)
      if (fleet_->is_candidate(d, one.wanted.which) &&
          !std::all_of(devices_[d].all.begin(), devices_[d].all.end(), is_held) &&
          !slots_of(d).are_all_used([&](const silicon::HeldSlot& slot) { return is_stuck(slot.use); }))
        return true;
    return false;
  };
  for (bool changed = true; changed && waiter.is_stuck;) {
    changed = false;
    for (Waiter* const one : waiters_) {
      if (!one->is_stuck || !may_end(*one)) continue;
      one->is_stuck = false;
      changed = true;
    }
  }
  return waiter.is_stuck;
}

}  // namespace wye::pool
