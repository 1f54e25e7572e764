#include "pool/pool.hpp"

#include <algorithm>
#include <iterator>
#include <new>
#include <tuple>
#include <utility>

#include "base/internals.hpp"
#include "base/process.hpp"
#include "base/text.hpp"
#include "pool/discovery.hpp"

namespace wye {
inline namespace v0 {
namespace pool {
namespace {

constexpr std::uint32_t most_lanes = 256;

/// Limit of the wait of a pool's destructor for work in flight on GPUs. No caller waits for this work: its
/// jobs timed out, or its leases ended.
constexpr Duration gpu_close_timeout = std::chrono::seconds(10);

/// Returns an address that only the calling thread has.
const void* this_thread() noexcept {
  static constinit thread_local char here = 0;
  return &here;
}

Result<void> check(const PoolOptions& options) {
  if (options.lanes_per_device < 1 || options.lanes_per_device > most_lanes)
    return Error(Errc::invalid_argument,
                 base::text("The number of lanes per device ({}) is not in the range 1 to {}.",
                            options.lanes_per_device, most_lanes));
  if (options.lease_timeout < Duration::zero())
    return Error(Errc::invalid_argument,
                 base::text("The lease timeout ({} s) is negative.", seconds(options.lease_timeout)));
  if (options.aging <= Duration::zero())
    return Error(Errc::invalid_argument,
                 base::text("The aging of requests ({} s) is not positive.", seconds(options.aging)));
  if (options.close_timeout && *options.close_timeout < Duration::zero())
    return Error(Errc::invalid_argument,
                 base::text("The close timeout ({} s) is negative.", seconds(*options.close_timeout)));
  if (options.lane_memory.count == 0)
    return Error(Errc::invalid_argument, "The memory limit of a lane (0 bytes) is not positive.");
  const Partition& part = options.partition;
  if (options.isolation == Isolation::shared && part != Partition{})
    return Error(Errc::invalid_argument,
                 base::text("A partition ({}) is set, but the isolation is 'shared'.",
                            part.percent != 0 ? base::text("{} %", part.percent)
                                              : base::text("{} multiprocessors", part.multiprocessors)));
  if (part.percent != 0 && part.multiprocessors != 0)
    return Error(
        Errc::invalid_argument,
        base::text("The partition has both a number of multiprocessors ({}) and a share of them ({} %).",
                   part.multiprocessors, part.percent));
  if (part.percent > 100)
    return Error(Errc::invalid_argument,
                 base::text("The share of a partition ({} %) is not in the range 1 to 100.", part.percent));
  return {};
}

}  // namespace

Pool::Pool(PoolOptions options)
    : options_(std::move(options)),
      clock_(options_.clock ? options_.clock : &Clock::steady()),
      log_(options_.log, {.level = LogLevel::trace, .rooms = {}}),
      aging_(std::min<Duration>(options_.aging, std::chrono::hours(24 * 36500))) {}

Result<std::shared_ptr<Pool>> Pool::open(PoolOptions options) {
  if (auto ok = check(options); !ok) return std::move(ok).error();
  auto inventory = take_inventory(options.backends,
                                  {.cpu_threads = options.cpu_threads,
                                   .validate = options.validate_driver,
                                   .log = options.log,
                                   .cuda_driver = options.cuda_driver,
                                   .isolation = options.isolation,
                                   .partition = options.partition,
                                   .kept_memory = options.kept_memory},
                                  options.adopt);
  if (!inventory) return std::move(inventory).error();
  return open(std::move(options), *std::move(inventory));
}

std::shared_ptr<Pool> Pool::open(PoolOptions options, Inventory inventory) {
  auto pool = base::own(new Pool(std::move(options)));
  pool->adapters_ = std::move(inventory.adapters);
  for (auto& device : inventory.devices) pool->devices_.emplace_back(std::move(device));
  pool->contexts_.resize(pool->devices_.size());
  pool->warm_.resize(pool->devices_.size());
  for (std::size_t d = 0; d < pool->devices_.size(); ++d) {
    const device::DeviceBase& device = *base::state_of(pool->devices_[d]);
    const auto first = std::find_if(pool->devices_.begin(), pool->devices_.end(), [&](const Device& other) {
      return other.info().backend == device.info().backend && other.info().type == device.info().type;
    });
    pool->order_.push_back(static_cast<std::size_t>(first - pool->devices_.begin()));
    std::shared_ptr<device::MemoryAccount> account = pool->account_on(device);
    if (!account) {
      account =
          std::make_shared<device::MemoryAccount>(device.info().id, device::MemoryAccount::no_limit,
                                                  device::AccountLevel::runtime, device.silicon()->account());
      pool->accounts_.push_back(account);
    }
    for (std::uint32_t lane = 0; lane < pool->options_.lanes_per_device; ++lane) {
      auto context = std::make_unique<Context>();
      context->id = base::text("{}#{}", pool->devices_[d].id(), lane);
      context->device = d;
      context->account = std::make_shared<device::MemoryAccount>(context->id, pool->options_.lane_memory,
                                                                 device::AccountLevel::context, account);
      pool->contexts_[d].push_back(std::move(context));
    }
    auto copying = std::make_unique<Context>();
    copying->id = base::text("{}#copies", pool->devices_[d].id());
    copying->device = d;
    copying->is_for_copies = true;
    pool->copying_.push_back(std::move(copying));
  }
  return pool;
}

Pool::~Pool() {
  const Instant now = Clock::steady().now();
  retire_copying();
  for (Unfinished& one : unfinished_) {
    // A host function uses memory of the application, which may be freed only after the function has
    // returned.
    const bool runs_host_code = one.lane->device()->info().features.has(Feature::host_memory);
    const Instant until = has_abandoned_           ? now
                          : options_.close_timeout ? Deadline(*options_.close_timeout).at(Clock::steady())
                          : runs_host_code         ? Instant::max()
                                                   : now + gpu_close_timeout;
    if (!one.lane->idle(until)) base::detail::keep(one.lane.release());
  }
}

std::shared_ptr<device::MemoryAccount> Pool::account_on(const device::DeviceBase& device) const noexcept {
  for (const auto& account : accounts_)
    if (account->parent() == device.silicon()->account()) return account;
  return nullptr;
}

bool Pool::is_named(std::size_t device, const Wanted& wanted) const noexcept {
  if (wanted.only != no_device) return device == wanted.only;
  const AdapterInfo& info = devices_[device].info();
  return wanted.on.empty() || wanted.on == info.id || wanted.on == info.backend;
}

bool Pool::has_candidate(const Wanted& wanted) const noexcept {
  for (std::size_t d = 0; d < devices_.size(); ++d)
    if (is_candidate(d, wanted)) return true;
  return false;
}

std::optional<std::size_t> Pool::find(device::DeviceRef device) const noexcept {
  for (std::size_t d = 0; d < devices_.size(); ++d)
    if (base::state_of(devices_[d])->ref() == device) return d;
  return std::nullopt;
}

Result<Lease> Pool::lease(const LeaseRequest& request, Instant until, SourceLocation where,
                          const Workload& workload) {
  if (const Error* inherited = origin_.error()) return *inherited;
  const Wanted wanted{.on = request.on,
                      .needs = request.needs,
                      .workload = workload,
                      .priority = request.priority,
                      .tag = request.tag,
                      .stop = request.stop,
                      .where = where,
                      .taken_by = this_thread()};
  return lease_any(wanted, clock_->now(), until);
}

Result<Lease> Pool::lease_on(device::DeviceRef device, Instant now) {
  const auto d = find(device);
  if (!d) return Error(Errc::invalid_argument, "The device does not belong to this pool.");
  if (const Error* lost = base::state_of(devices_[*d])->lost()) return *lost;  // also in a child of fork
  if (Context* const warm = take_warm(*d, now)) return handle(*warm);
  return lease_any({.only = *d}, now, Deadline(options_.lease_timeout).at(now));
}

Result<Lease> Pool::lease_for(const device::DeviceBase& device, Instant until) {
  if (const Error* lost = device.lost()) return *lost;
  const auto d = find(device.ref());
  if (!d)
    return Error(Errc::invalid_argument,
                 base::text("Device '{}' does not belong to this pool.", device.info().id));
  const Instant now = clock_->now();
  if (is_closed()) until = std::min(until, Deadline(options_.lease_timeout).at(now));
  return lease_any({.only = *d}, now, until, true);
}

std::optional<Lease> Pool::lease_copies(device::DeviceRef device) noexcept try {
  const auto d = find(device);
  if (!d || base::state_of(devices_[*d])->lost()) return std::nullopt;
  Context& context = *copying_[*d];
  const Instant now = clock_->now();
  {
    const base::Lock lock = base::lock_soon(mutex_);
    if (closed_ || context.leased || context.refused) return std::nullopt;
    start_lease(context, now);
  }
  Lease lease = handle(context);  // from here on its destructor returns the context
  const bool is_new = !context.lane;
  if (is_new) {
    auto lane = device::Lane::create(*base::state_of(devices_[*d]));
    if (!lane) {
      context.refused = true;  // it is not asked again
      return std::nullopt;
    }
    context.lane = *std::move(lane);
    base::state_of(devices_[*d])->add_reclaimable(weak_from_this());
  }
  return lease;
} catch (const std::bad_alloc&) {
  return std::nullopt;
}

Bytes Pool::reclaim(const device::DeviceBase& device, Bytes) noexcept {
  const auto d = find(device.ref());
  if (!d) return {};
  Context& context = *copying_[*d];
  {
    const base::Lock lock = base::lock_soon(mutex_);
    if (context.leased || !context.has_lane || closed_) return {};
    context.leased = true;
  }
  const bool kept = context.lane->keeps_buffers();
  { const Lease lease = handle(context); }
  return Bytes{kept ? std::uint64_t{1} : 0};
}

void Pool::retire_copying() noexcept {
  const base::Lock lock = base::lock_soon(mutex_);
  for (const auto& context : copying_) {
    if (context->leased || !context->lane || context->lane->idle()) continue;
    try {
      unfinished_.push_back({nullptr, context.get(), {}});
      unfinished_.back().lane = std::move(context->lane);
      context->has_lane = false;
    } catch (const std::bad_alloc&) {  // then the destructor of the lane waits for its copies
    }
  }
}

Result<Lease> Pool::lease_any(const Wanted& wanted, Instant now, Instant until, bool closed_too) {
  try {
    return wait_for_context(wanted, now, until, closed_too);
  } catch (const std::bad_alloc&) {
    return no_memory_;
  }
}

Result<Lease> Pool::wait_for_context(const Wanted& wanted, Instant now, Instant until, bool closed_too) {
  std::vector<std::size_t> refusing;  // devices that refused a lane in this call
  std::optional<Error> refusal;
  std::optional<Waiter> waiter;
  for (;;) {
    std::vector<std::unique_ptr<device::Lane>> finished;  // destroyed after the lock
    Context* taken = nullptr;
    {
      base::Lock lock = base::lock_soon(mutex_);
      finished = collect_finished();
      if (closed_ && !closed_too) return Error(Errc::closed, "The context pool is closed.");
      // Fair: a returned context goes to a waiter directly, so no thread waits while a context is idle.
      taken = take_idle(wanted, now, refusing);
      if (!taken) {
        if (!has_candidate(wanted)) return no_candidate(wanted);
        if (refusal && !any_has_lane(wanted)) return *std::move(refusal);
        const auto busy = [&](Duration waited, Errc code) {
          Error none = no_context_free(wanted, waited, code);
          return refusal ? none.with_context(
                               base::text("after the device refused a lane: {}", refusal->sentence()))
                         : none;
        };
        const Instant start = clock_->now();
        if (until <= start)
          return busy(Duration::zero(), until == Instant::min() ? Errc::unavailable : Errc::timed_out);
        if (!waiter) waiter.emplace(wanted);
        waiter->given = nullptr;
        waiter->is_endless = until == Instant::max() && !wanted.stop.can_stop();
        queue(*waiter, start);
        if (is_deadlock(*waiter)) {
          waiters_.erase(std::find(waiters_.begin(), waiters_.end(), &*waiter));
          return never_free(wanted);
        }
        (void)base::seen_before_parking(
            lock, [&] { return waiter->given.load(std::memory_order_relaxed) != nullptr; });
        const auto is_answered = [&] {
          return waiter->given || (closed_ && !closed_too) || !has_candidate(wanted);
        };
        const Instant parked = base::parked_until(*clock_, until);
        const bool is_stopped = !await(*waiter, lock, parked, is_answered);
        taken = waiter->given;
        if (!taken) {
          waiters_.erase(std::find(waiters_.begin(), waiters_.end(), &*waiter));
          if (closed_ && !closed_too)
            return Error(Errc::closed, "The context pool was closed during the wait for a lease.");
          if (!has_candidate(wanted)) return no_candidate(wanted);
          if (is_stopped) return busy(clock_->now() - start, Errc::cancelled);
          ++timeouts_;
          return busy(until - start, Errc::timed_out);
        }
      }
    }
    Context& context = *taken;
    Lease lease = handle(context);  // from here on its destructor returns the context
    auto created = open_lane(context);
    if (created) return lease;
    // Tries another lane, of this device or of the next.
    refusing.push_back(context.device);
    refusal = std::move(created).error();
  }
}

void Pool::queue(Waiter& waiter, Instant now) {
  // A waiter whose context got no lane waits again, and keeps its place.
  if (waiter.arrival == 0) {
    waiter.arrival = ++arrivals_;
    const int below = static_cast<int>(Priority::high) - static_cast<int>(waiter.wanted.priority);
    waiter.rank = now + below * aging_;
  }
  const auto later = std::find_if(waiters_.begin(), waiters_.end(), [&](const Waiter* w) {
    return std::pair(w->rank, w->arrival) > std::pair(waiter.rank, waiter.arrival);
  });
  waiters_.insert(later, &waiter);
}

/// A thread that waits without a deadline is stuck if each context that it may get was leased by a thread that is stuck.
bool Pool::is_deadlock(Waiter& waiter) noexcept {
  if (!waiter.is_endless || !waiter.wanted.taken_by) return false;
  for (Waiter* const one : waiters_) one->is_stuck = one->is_endless && one->wanted.taken_by;
  const auto is_held_by_stuck = [&](const Context& context) {
    return context.leased && context.taken_by &&
           std::any_of(waiters_.begin(), waiters_.end(), [&](const Waiter* one) {
             return one->is_stuck && one->wanted.taken_by == context.taken_by;
           });
  };
  for (bool changed = true; changed && waiter.is_stuck;) {
    changed = false;
    for (Waiter* const one : waiters_) {
      if (!one->is_stuck) continue;
      for (std::size_t d = 0; d < devices_.size() && one->is_stuck; ++d)
        if (is_candidate(d, one->wanted))
          one->is_stuck = std::all_of(contexts_[d].begin(), contexts_[d].end(),
                                      [&](const auto& context) { return is_held_by_stuck(*context); });
      changed |= !one->is_stuck;
    }
  }
  return waiter.is_stuck;
}

std::size_t Pool::leased_on(std::size_t device) const noexcept {
  return static_cast<std::size_t>(std::count_if(contexts_[device].begin(), contexts_[device].end(),
                                                [](const auto& context) { return context->leased; }));
}

bool Pool::comes_before(const Context& a, const Context& b, const Wanted& wanted) const noexcept {
  const std::span<const std::size_t> order = wanted.workload.order;
  const auto place = [&](const Context& context) {
    const std::size_t device = order_[context.device];
    return order.empty()
               ? device
               : static_cast<std::size_t>(std::find(order.begin(), order.end(), device) - order.begin());
  };
  if (order_[a.device] != order_[b.device]) return place(a) < place(b);
  const auto load = [&](const Context& c) {
    return std::tuple(leased_on(c.device), account_on(*base::state_of(devices_[c.device]))->held().count,
                      c.last_used);
  };
  return load(a) < load(b);
}

Context* Pool::take_idle(const Wanted& wanted, Instant now, const std::vector<std::size_t>& refusing) {
  Context* best = nullptr;
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    if (!is_candidate(d, wanted)) continue;
    const bool refuses = std::find(refusing.begin(), refusing.end(), d) != refusing.end();
    Context* idle = nullptr;
    for (const auto& context : contexts_[d]) {
      if (context->leased || (refuses && !context->has_lane)) continue;
      if (!idle ||
          std::pair(!context->has_lane, context->last_used) < std::pair(!idle->has_lane, idle->last_used))
        idle = context.get();
    }
    if (idle && (!best || comes_before(*idle, *best, wanted))) best = idle;
  }
  if (!best) return nullptr;
  start_lease(*best, now);
  set_holder(*best, wanted);
  return best;
}

Context* Pool::take_warm(std::size_t device, Instant now) noexcept {
  const base::Lock lock = base::lock_soon(mutex_);
  Context* const warm = warm_[device];
  if (!warm || warm->leased || !warm->has_lane || closed_ || !unfinished_.empty()) return nullptr;
  start_lease(*warm, now);
  return warm;
}

bool Pool::any_has_lane(const Wanted& wanted) const {
  for (std::size_t d = 0; d < devices_.size(); ++d)
    if (is_candidate(d, wanted) && any_has_lane(d)) return true;
  return false;
}

bool Pool::any_has_lane(std::size_t device) const {
  return std::any_of(contexts_[device].begin(), contexts_[device].end(),
                     [](const auto& context) { return context->has_lane; });
}

void Pool::start_lease(Context& context, Instant now) {
  context.leased = true;
  context.since = now;
  if (context.has_lane && !context.is_for_copies) count_lease(context);
}

void Pool::set_holder(Context& context, const Wanted& wanted) noexcept {
  context.where = wanted.where;
  context.taken_by = wanted.taken_by;
  const std::size_t length = std::min(wanted.tag.size(), context.tag.size() - 1);
  std::copy_n(wanted.tag.data(), length, context.tag.data());
  context.tag[length] = '\0';
}

void Pool::count_lease(Context& context) {
  context.last_used = ++leases_;
  if (last_leased_ != &context) ++switches_;
  last_leased_ = &context;
}

Result<void> Pool::open_lane(Context& context) {
  if (context.lane) return {};
  auto lane = device::Lane::create(*base::state_of(devices_[context.device]));
  if (!lane) {
    context.refused = true;
    return std::move(lane).error().with_context(base::text("while creating context '{}'", context.id));
  }
  context.lane = *std::move(lane);
  const base::Lock lock = base::lock_soon(mutex_);
  context.has_lane = true;
  count_lease(context);
  return {};
}

void Pool::give_back(Context& context) noexcept {
  if (origin_.is_inherited()) return;
  std::unique_ptr<device::Lane> retired;
  if (context.lane) context.lane->discard();  // the next user of the lane must not run or write any of it
  // A failed lane returns its failure for ever, and a lane with work in flight is not idle. The next lease
  // gets a new lane.
  if (context.lane && (context.lane->failure() || (!context.is_for_copies && !context.lane->idle())))
    retired = std::move(context.lane);
  std::vector<std::unique_ptr<device::Lane>> finished;  // destroyed after the lock
  {
    base::Lock lock = base::lock_soon(mutex_);
    try {
      if (retired) {
        unfinished_.push_back({nullptr, &context, {}});
        unfinished_.back().lane = std::move(retired);
        unfinished_.back().work.swap(context.work);
      }
      context.work.clear();
      finished = collect_finished();
    } catch (const std::bad_alloc&) {  // then the destructor of the retired lane waits for its work in flight
    }
    context.leased = false;
    if (context.where) set_holder(context, {});
    context.has_lane = context.lane != nullptr;
    if (context.is_for_copies) return;  // no request waits for it
    warm_[context.device] = &context;
    const bool was_refused = std::exchange(context.refused, false);
    if (waiters_.empty()) return;
    // If the device refused this context a lane, a waiter gets it only if there is no other context to wait
    // for.
    const bool idles = was_refused && any_has_lane(context.device);
    auto waiter = std::find_if(waiters_.begin(), waiters_.end(), [&](const Waiter* w) {
      return !idles && is_candidate(context.device, w->wanted);
    });
    if (waiter != waiters_.end()) {
      start_lease(context, clock_->now());
      set_holder(context, (*waiter)->wanted);
      (*waiter)->given = &context;
      (*waiter)->answered.wake_one();  // under the lock: the waiter's thread destroys it
      waiters_.erase(waiter);
    } else if (base::state_of(devices_[context.device])->lost()) {
      wake_all();  // waiters without another device
    }
  }
}

std::vector<std::unique_ptr<device::Lane>> Pool::collect_finished() {
  std::vector<std::unique_ptr<device::Lane>> finished;
  if (unfinished_.empty()) return finished;
  const auto first = std::partition(unfinished_.begin(), unfinished_.end(),
                                    [](const Unfinished& one) { return !one.lane->idle(); });
  finished.reserve(static_cast<std::size_t>(unfinished_.end() - first));
  for (auto one = first; one != unfinished_.end(); ++one) finished.push_back(std::move(one->lane));
  unfinished_.erase(first, unfinished_.end());
  return finished;
}

template <class F>
bool Pool::await(Waiter& waiter, base::Lock& lock, Instant until, F is_answered) {
  constexpr Duration step = std::chrono::milliseconds(10);
  const StopToken& stop = waiter.wanted.stop;
  if (!stop.can_stop()) return waiter.answered.wait(lock, until, is_answered), true;
  for (;;) {
    if (stop.stop_requested()) return false;
    const Instant next = std::min(until, Clock::steady().now() + step);
    if (waiter.answered.wait(lock, next, is_answered) || next == until) return true;
  }
}

bool Pool::is_closed() const {
  const base::Lock lock = base::lock_soon(mutex_);
  return closed_;
}

void Pool::close() {
  if (origin_.is_inherited()) return;
  {
    const base::Lock lock = base::lock_soon(mutex_);
    if (std::exchange(closed_, true)) return;
    wake_all();
  }
  try {
    report_leases();
  } catch (const std::bad_alloc&) {  // a warning less
  }
}

void Pool::wake_all() noexcept {
  for (Waiter* const waiter : waiters_) waiter->answered.wake_one();
}

Result<void> Pool::close(Instant until) noexcept {
  if (const Error* inherited = origin_.error()) return *inherited;
  close();
  retire_copying();
  std::vector<Unfinished> unfinished;
  {
    const base::Lock lock = base::lock_soon(mutex_);
    unfinished.swap(unfinished_);
  }
  std::string names;
  bool abandons = false, are_all_named = true;
  for (Unfinished& one : unfinished) {
    if (one.lane->idle(until)) continue;
    base::detail::keep(one.lane.release());
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

}  // namespace pool
}  // namespace v0
}  // namespace wye
