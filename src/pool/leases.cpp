#include "pool/leases.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <new>
#include <utility>

#include "base/host_info.hpp"
#include "base/internals.hpp"
#include "base/text.hpp"
#include "pool/report.hpp"

namespace wye::inline v0::pool {
namespace {

/// Emits that a request has got a context, if it has waited for a slot.
void emit_wait(base::Journal& journal, const Context& given, std::string_view device, Duration took,
               bool for_slot) noexcept {
  if (for_slot) journal.emit(base::SlotWaited{.context = given.id, .device = device, .took = took});
}

/// Limit of the wait of a destructor for work in flight on GPUs. No caller waits for this work: its
/// jobs timed out, or its leases ended.
constexpr Duration gpu_close_timeout = std::chrono::seconds(10);

/// Returns a lease of `device`, which may have been lost and replaced since it was found.
Result<Lease> of(const device::DeviceBase& device, Result<Lease> lease) {
  if (lease && base::state_of(lease->device()).get() != &device)
    if (const Error* lost = device.lost())
      return *lost;  // the lane is that of the device which has replaced it
  return lease;
}

}  // namespace

Leases::Leases(std::shared_ptr<const PoolOptions> options, std::shared_ptr<Fleet> fleet,
               std::shared_ptr<Accounts> accounts)
    : options_(std::move(options)),
      fleet_(std::move(fleet)),
      accounts_(std::move(accounts)),
      log_(options_->log),
      aging_(std::min<Duration>(options_->aging, std::chrono::hours(24 * 36500))),
      switches_(accounts_->journal(), *fleet_),
      devices_(fleet_->limit()),
      processors_(fleet_->limit()),
      unfinished_(*fleet_) {}

Leases::~Leases() {
  for (OnProcessor& one : processors_) one.leave();
  const Instant now = Clock::steady().now();
  retire_copying();
  for (UnfinishedLanes::Entry& one : unfinished_.take_all()) {
    // A host function uses memory of the application, which may be freed only after the function
    // has returned.
    const bool runs_host_code = one.lane->device()->info().features.has(Feature::host_memory);
    const Instant until = has_abandoned_            ? now
                          : options_->close_timeout ? Deadline(*options_->close_timeout).at(Clock::steady())
                          : runs_host_code          ? Instant::max()
                                                    : now + gpu_close_timeout;
    if (!one.lane->idle(until)) abandon(std::move(one.lane));
  }
}

void Leases::prepare(std::size_t device, std::size_t processors) {
  const std::size_t p = fleet_->processor_of(device);
  if (!processors_[p].slots) {
    silicon::Slots::Wish wish{.limit = options_->slots,
                              .at_least = options_->lanes_per_device,
                              .follows_load = options_->slot_rule == SlotRule::load};
    if (options_->slot_rule == SlotRule::host_share)
      wish.limit =
          std::max(1u, base::usable_processors() / static_cast<unsigned>(std::max(processors, p + 1)));
    processors_[p].slots = fleet_->silicon(p).slots().join(*this, wish);
  }
  const AdapterInfo& info = fleet_->info(device);
  OnDevice& here = devices_[device];
  here.rank = here.equal = device;
  for (std::size_t d = device; d-- > 0;)
    if (const AdapterInfo& other = fleet_->info(d); other.backend == info.backend && other.type == info.type)
      here.equal = d;
  here.make(device, *fleet_, switches_, *options_, accounts_->of(device));
  base::state_of(fleet_->device(device))->add_reclaimable(weak_from_this());
  here.open_ahead(*fleet_, options_->contexts_ahead, log_);
}

void Leases::discard(std::size_t from, std::size_t processors) noexcept {
  for (std::size_t d = from; d < devices_.size(); ++d) devices_[d] = {};
  for (std::size_t p = processors; p < processors_.size(); ++p) processors_[p].leave();
}

void Leases::OnProcessor::leave() noexcept {
  if (!slots) return;
  slots->leave();
  slots.reset();
}

bool Leases::publish(const std::vector<std::size_t>& places) noexcept {
  const std::size_t before = fleet_->size(), prepared = fleet_->prepared();
  {
    const base::Lock lock = base::lock_soon(mutex_);
    if (closed_) return false;
    for (std::size_t d = before; d < prepared; ++d) {
      std::size_t rank = d;
      for (std::size_t other = 0; other < d; ++other)
        if (places[other] > places[d]) rank = std::min(rank, devices_[other].rank);
      for (std::size_t other = 0; other < d; ++other)
        if (devices_[other].rank >= rank) ++devices_[other].rank;
      devices_[d].rank = rank;
    }
    fleet_->publish();
    for (std::size_t d = before; d < prepared; ++d) offer_locked(d);
  }
  for (std::size_t p = 0; p < fleet_->processor_count(); ++p)
    processors_[p].slots->serve();  // a slot that no request has waited for may be free
  return true;
}

void Leases::replace(std::size_t device, Device opened) {
  Lanes ended;  // destroyed after the lock
  ended.reserve(devices_[device].all.size() + 1);
  base::state_of(opened)->add_reclaimable(weak_from_this());
  {
    const base::Lock lock = base::lock_soon(mutex_);
    devices_[device].end_idle(ended);  // the thread that has leased another one opens its lane
    fleet_->install(device, std::move(opened));
    offer_locked(device);
    wake_all();
  }
  ended.clear();
  log_.write(LogLevel::warning, "pool",
             base::text("Device '{}' was lost and has been opened again.", fleet_->info(device).id));
}

Result<Lease> Leases::lease(const LeaseRequest& request, Instant until, SourceLocation where,
                            const Workload& workload) {
  Wanted wanted{.which = {.on = request.on, .needs = request.needs, .workload = workload.name},
                .order = workload.order,
                .priority = request.priority,
                .stop = request.stop,
                .use = {.where = where, .thread = base::this_thread()}};
  std::copy_n(request.tag.data(), std::min(request.tag.size(), wanted.use.tag.size() - 1),
              wanted.use.tag.data());
  return lease_any(wanted, clock().now(), until);
}

Result<Lease> Leases::lease_on(const device::DeviceBase& device, Instant now) {
  const auto d = fleet_->find(device);
  if (!d) return d.error();  // also in a child of fork
  fleet_->note_monitor(*d, now);
  if (Context* const warm = take_warm(*d, now)) return of(device, handle(*warm));
  return of(device, lease_any({.which = {.only = *d}}, now, Deadline(options_->lease_timeout).at(now)));
}

Result<Lease> Leases::lease_for(const device::DeviceBase& device, Instant until) {
  const auto d = fleet_->find(device);
  if (!d) return d.error();
  const Instant now = clock().now();
  if (is_closed()) until = std::min(until, Deadline(options_->lease_timeout).at(now));
  return of(device, lease_any({.which = {.only = *d}, .needs_slot = false}, now, until, true));
}

std::optional<Lease> Leases::lease_copies(device::DeviceRef device) noexcept try {
  const auto d = fleet_->find(device);
  if (!d || fleet_->is_lost(*d)) return std::nullopt;
  Context& context = *devices_[*d].copying;
  const Instant now = clock().now();
  {
    const base::Lock lock = base::lock_soon(mutex_);
    if (closed_ || context.leased || context.refused) return std::nullopt;
    context.leased = true;
    context.lease_id = base::next_id();
    context.slot.use.since = now;
  }
  Lease lease = handle(context);  // from here on its destructor returns the context
  if (!context.lane && !context.make_lane(*fleet_)) return std::nullopt;  // it is not asked again
  return lease;
} catch (const std::bad_alloc&) {
  return std::nullopt;
}

Bytes Leases::reclaim(const device::DeviceBase& device, Bytes) noexcept {
  const auto d = fleet_->find(device.ref());
  if (!d) return {};
  Context& context = *devices_[*d].copying;
  Lanes ended;  // destroyed after the lock
  bool has_copies = false;
  {
    const base::Lock lock = base::lock_soon(mutex_);
    if (closed_) return {};
    try {
      devices_[*d].trim(clock().now(), Duration::zero(), options_->contexts_ahead, ended);
    } catch (const std::bad_alloc&) {  // some lanes stay
    }
    has_copies = !context.leased && context.has_lane;
    if (has_copies) context.leased = true;
  }
  const bool kept = has_copies && context.lane->keeps_buffers();
  if (has_copies) const Lease lease = handle(context);
  return Bytes{kept || !ended.empty() ? std::uint64_t{1} : 0};
}

void Leases::retire_copying() noexcept {
  const base::Lock lock = base::lock_soon(mutex_);
  for (std::size_t d = 0; d < fleet_->size(); ++d) {
    Context& context = *devices_[d].copying;
    if (context.leased || !context.lane || context.lane->idle()) continue;
    try {
      unfinished_.add(context.lane, context, context.work);
      context.has_lane = false;
    } catch (const std::bad_alloc&) {  // then the destructor of the lane waits for its copies
    }
  }
}

Lease Leases::handle(Context& context) noexcept {
  context.lease.leases = shared_from_this();
  if (!options_->tag_memory.empty())
    context.tag = accounts_->of_tag(context.device, context.slot.use.tag.data());
  accounts_->note_pressure(context.device);
  return LeaseState::wrap(context.lease);
}

template <class F>
bool Leases::Waiter::await(base::Lock& lock, const Clock& clock, Instant until, F is_answered) {
  constexpr Duration step = std::chrono::milliseconds(10);
  const StopToken& stop = wanted.stop;
  if (!stop.can_stop()) return answered.wait(lock, clock, until, is_answered), true;
  const Instant parked = base::parked_until(clock, until);
  for (;;) {
    if (stop.stop_requested()) return false;
    const Instant next = std::min(parked, Clock::steady().now() + step);
    if (answered.wait(lock, next, is_answered) || next == parked || clock.now() >= until) return true;
  }
}

Result<Lease> Leases::lease_any(const Wanted& wanted, Instant now, Instant until, bool closed_too) try {
  Request request{.wanted = wanted, .until = until, .closed_too = closed_too};
  return lease_any(request, now);
} catch (const std::bad_alloc&) {
  return no_memory_;
}

Result<Lease> Leases::lease_any(Request& request, Instant now) {
  const Wanted& wanted = request.wanted;
  for (;;) {
    Lanes finished;  // destroyed after the lock
    Context* taken = nullptr;
    {
      base::Lock lock = base::lock_soon(mutex_);
      finished = unfinished_.take_finished();
      trim_due_locked(now, finished);
      if (closed_ && !request.closed_too) return Error(Errc::closed, "The context pool is closed.");
      // Fair: a returned context goes to a waiter directly, so no thread waits while a context is
      // idle.
      bool lacks_slot = false;
      const Instant rank = request.waiter ? request.waiter->rank : rank_of(wanted.priority, now);
      taken = take_idle(wanted, rank, now, request.refusing, lacks_slot);
      if (!taken) {
        const auto given = wait_locked(lock, request, lacks_slot);
        if (!given) return given.error();
        taken = *given;
      }
    }
    Context& context = *taken;
    Lease lease = handle(context);  // from here on its destructor returns the context
    auto created = open_lane(context);
    if (created) return lease;
    // Tries another lane, of this device or of the next.
    request.refusing.push_back(context.device);
    request.refusal = std::move(created).error();
  }
}

Result<Context*> Leases::wait_locked(base::Lock& lock, Request& request, bool lacks_slot) {
  const Wanted& wanted = request.wanted;
  const auto has_none = [&] { return !fleet_->has_candidate(wanted.which); };
  const auto is_closed = [&] { return closed_ && !request.closed_too; };
  const auto busy = [&](Duration waited, Errc code) {
    Error none = Report(*this).no_context_free(wanted, waited, code);
    return request.refusal ? none.with_context(base::text("after the device refused a lane: {}",
                                                          request.refusal->sentence()))
                           : none;
  };
  if (has_none()) return fleet_->no_candidate(wanted.which);
  if (request.refusal && !any_has_lane(wanted)) return *request.refusal;
  const Instant start = clock().now(), until = request.until;
  if (until <= start)
    return busy(Duration::zero(), until == Instant::min() ? Errc::unavailable : Errc::timed_out);
  if (!request.waiter) request.waiter.emplace(wanted, request.refusing);
  Waiter& waiter = *request.waiter;
  waiter.given = nullptr;
  waiter.lacks_slot = lacks_slot;
  waiter.is_endless = until == Instant::max() && !wanted.stop.can_stop();
  queue(waiter, start);
  if (is_deadlock(waiter)) {
    waiters_.erase(std::find(waiters_.begin(), waiters_.end(), &waiter));
    return Report(*this).never_free(wanted);
  }
  if (lacks_slot) {  // a slot that an earlier request left may be free
    note_waiting_locked();
    lock.unlock();
    for (std::size_t p = 0; p < fleet_->processor_count(); ++p) processors_[p].slots->serve();
    lock.lock();
  }
  (void)base::seen_before_parking(lock,
                                  [&] { return waiter.given.load(std::memory_order_relaxed) != nullptr; });
  const bool is_stopped =
      !waiter.await(lock, clock(), until, [&] { return waiter.given || is_closed() || has_none(); });
  if (Context* const given = waiter.given) {
    const Duration waited = clock().now() - start;
    waits_.add(waited);
    emit_wait(*accounts_->journal(), *given, fleet_->info(given->device).id, waited, lacks_slot);
    return given;
  }
  waiters_.erase(std::find(waiters_.begin(), waiters_.end(), &waiter));
  if (waiter.lacks_slot) note_waiting_locked();  // otherwise its rank would keep slots from others
  if (is_closed()) return Error(Errc::closed, "The context pool was closed during the wait for a lease.");
  if (has_none()) return fleet_->no_candidate(wanted.which);
  if (is_stopped) return busy(clock().now() - start, Errc::cancelled);
  ++timeouts_;
  return busy(until - start, Errc::timed_out);
}

Result<void> Leases::open_lane(Context& context) {
  if (context.lane) return {};
  if (auto created = context.make_lane(*fleet_); !created) return created;
  const base::Lock lock = base::lock_soon(mutex_);
  context.has_lane = true;
  context.last_used = ++leases_;
  return {};
}

void Leases::give_back(Context& context) noexcept {
  if (fleet_->origin().is_inherited()) return;
  std::unique_ptr<device::Lane> retired;
  if (context.lane) context.lane->discard();  // the next user of the lane must not run or write any of it
  // A failed lane returns its failure for ever, and a lane with work in flight is not idle. The
  // next lease gets a new lane.
  if (context.lane && (context.lane->failure() || (!context.is_for_copies && !context.lane->idle()) ||
                       context.lane->device()->lost()))
    retired = std::move(context.lane);
  if (retired) context.on = {};
  Lanes finished;                          // destroyed after the lock
  std::unique_ptr<device::Lane> outdated;  // likewise
  bool others_wait = false;
  {
    base::Lock lock = base::lock_soon(mutex_);
    // The device may have been lost and replaced since its loss was looked for.
    if (context.lane && fleet_->find(context.lane->device()->ref()) != context.device) {
      outdated = std::move(context.lane);
      context.on = {};
    }
    try {
      if (retired) unfinished_.add(retired, context, context.work);
      context.work.clear();
      finished = unfinished_.take_finished();
    } catch (const std::bad_alloc&) {  // then the destructor of the retired lane waits for its work in flight
    }
    context.leased = false;
    context.has_lane = context.lane != nullptr;
    if (context.is_for_copies) return;  // no request waits for it
    if (context.slot.member) others_wait = slots_of(context.device).give_back(context.slot);
    if (context.slot.use.where) context.slot.use = {.since = context.slot.use.since};
    devices_[context.device].warm = &context;
    if (!waiters_.empty()) serve_locked(&context);
    context.refused = false;
  }
  if (others_wait) slots_of(context.device).serve();
}

bool Leases::await_finished(Instant until) noexcept {
  // Such work is rare, and a callback of the driver would keep its thread until the work ends.
  constexpr Duration look = std::chrono::milliseconds(1);
  for (;;) {
    Lanes finished;  // destroyed after the lock
    base::Lock lock = base::lock_soon(mutex_);
    try {
      finished = unfinished_.take_finished();
    } catch (const std::bad_alloc&) {  // they stay
    }
    if (unfinished_.is_empty()) return true;
    const Instant now = Clock::steady().now();
    if (now >= until) return false;
    base::Gate nothing;
    nothing.wait(lock, now + look, [] { return false; });
  }
}

void Leases::trim_due_locked(Instant now, Lanes& ended) {
  if (now < next_trim_) return;
  const Duration idle_for = options_->idle_trim;
  next_trim_ = idle_for >= Instant::max() - now ? Instant::max() : now + idle_for / 4;
  if (next_trim_ == Instant::max()) return;
  for (std::size_t d = 0; d < fleet_->size(); ++d)
    devices_[d].trim(now, idle_for, options_->contexts_ahead, ended);
}

void Leases::trim() {
  Lanes ended;  // destroyed after the lock
  const base::Lock lock = base::lock_soon(mutex_);
  ended = unfinished_.take_finished();
  for (std::size_t d = 0; d < fleet_->size(); ++d)
    devices_[d].trim(clock().now(), Duration::zero(), options_->contexts_ahead, ended);
}

void Leases::add_to_locked(PoolMetrics& metrics) const noexcept {
  for (std::size_t d = 0; d < fleet_->size(); ++d) {
    for (const auto& context : devices_[d].all) {
      if (context->last_used == 0) continue;
      ++metrics.contexts;
      metrics.active += context->leased;
    }
  }
  metrics.leases = leases_;
  metrics.timeouts = timeouts_;
  metrics.lease_wait = waits_;
  metrics.switch_time = switches_.times();
  metrics.switches = switches_.count();
}

bool Leases::is_closed() const {
  const base::Lock lock = base::lock_soon(mutex_);
  return closed_;
}

void Leases::close() {
  if (fleet_->origin().is_inherited()) return;
  {
    const base::Lock lock = base::lock_soon(mutex_);
    if (std::exchange(closed_, true)) return;
    wake_all();
  }
  try {
    Report(*this).log_leases();
  } catch (const std::bad_alloc&) {  // a warning less
  }
}

void Leases::wake_all() noexcept {
  for (Waiter* const waiter : waiters_) waiter->answered.wake_one();
}

Result<void> Leases::close(Instant until) noexcept {
  if (const Error* inherited = fleet_->origin().error()) return *inherited;
  close();
  retire_copying();
  std::vector<UnfinishedLanes::Entry> unfinished;
  {
    const base::Lock lock = base::lock_soon(mutex_);
    unfinished = unfinished_.take_all();
  }
  std::string names;
  bool abandons = false, are_all_named = true;
  for (UnfinishedLanes::Entry& one : unfinished) {
    if (one.lane->idle(until)) continue;
    abandon(std::move(one.lane));
    abandons = true;
    try {
      names += base::text("{}{}context '{}'", names.empty() ? "" : ", ",
                          one.work.empty() ? "" : base::text("{} on ", one.work), one.context->id);
    } catch (const std::bad_alloc&) {
      are_all_named = false;
    }
  }
  if (!abandons) return {};
  {
    const base::Lock lock = base::lock_soon(mutex_);
    has_abandoned_ = true;
  }
  if (!are_all_named) return close_timed_out_;
  try {
    return Error(
        Errc::timed_out,
        base::text("Work was still in flight when the deadline of closing passed, and is abandoned: {}.",
                   names));
  } catch (const std::bad_alloc&) {
    return close_timed_out_;
  }
}

}  // namespace wye::pool
