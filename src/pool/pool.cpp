#include "pool/pool.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <new>
#include <set>
#include <span>
#include <utility>

#include "base/cancellation.hpp"
#include "base/internals.hpp"
#include "base/process.hpp"
#include "base/text.hpp"
#include "pool/discovery.hpp"

namespace wye::inline v0::pool {
namespace {

constexpr std::uint32_t most_lanes = 256, most_slots = 4096;
constexpr Bytes least_budget{4096};

/// Limit of the wait of a pool's destructor for work in flight on GPUs. No caller waits for this
/// work: its jobs timed out, or its leases ended.
constexpr Duration gpu_close_timeout = std::chrono::seconds(10);

/// Returns a number of the calling thread that no other thread of the process has had, from 1.
std::uint64_t this_thread() noexcept {
  static std::atomic<std::uint64_t> last{0};
  static constinit thread_local std::uint64_t own = 0;
  if (own == 0) own = last.fetch_add(1, std::memory_order_relaxed) + 1;
  return own;
}

/// Returns a number that no other pool of the process has, from 1.
std::uint64_t next_pool() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

/// The last call of a lane that a thread made.
struct LastCall {
  std::uint64_t pool = 0;  ///< its number; a pool may have ended
  const Context* context = nullptr;
  Instant end{};  ///< set if the pool reports switches
};
constinit thread_local LastCall last_call;

Result<void> check(const PoolOptions& options) {
  if (options.lanes_per_device < 1 || options.lanes_per_device > most_lanes)
    return Error(Errc::invalid_argument,
                 base::text("The number of lanes per device ({}) is not in the range 1 to {}.",
                            options.lanes_per_device, most_lanes));
  if (options.contexts_ahead > options.lanes_per_device)
    return Error(
        Errc::invalid_argument,
        base::text("The number of contexts made ahead ({}) exceeds the number of lanes per device ({}).",
                   options.contexts_ahead, options.lanes_per_device));
  if (options.monitor_period <= Duration::zero())
    return Error(Errc::invalid_argument,
                 base::text("The period between readings of the monitor ({} s) is not positive.",
                            seconds(options.monitor_period)));
  if (options.idle_trim <= Duration::zero())
    return Error(Errc::invalid_argument,
                 base::text("The time after which idle contexts are trimmed ({} s) is not positive.",
                            seconds(options.idle_trim)));
  if (options.slots > most_slots)
    return Error(Errc::invalid_argument,
                 base::text("The number of slots per processor ({}) is not in the range 1 to {}, or 0.",
                            options.slots, most_slots));
  if (options.slots != 0 && options.slot_rule == SlotRule::host_share)
    return Error(
        Errc::invalid_argument,
        base::text("There are both a number of slots ({}) and the rule 'host_share' for it.", options.slots));
  if (options.poll_limit < Duration::zero() || options.poll_limit > std::chrono::seconds(1))
    return Error(Errc::invalid_argument,
                 base::text("The poll limit ({} s) is not from 0 to 1 s.", seconds(options.poll_limit)));
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
  const auto is_small = [](Bytes budget) { return budget < least_budget; };
  const auto small = [](const std::string& of, Bytes budget) {
    return Error(Errc::invalid_argument, base::text("The memory budget of {} ({}) is less than {}.", of,
                                                    to_string(budget), to_string(least_budget)));
  };
  if (options.silicon_memory != Bytes{} && is_small(options.silicon_memory))
    return small("a processor", options.silicon_memory);
  if (options.pool_memory != Bytes{} && is_small(options.pool_memory))
    return small("the pool", options.pool_memory);
  for (const TagBudget& budget : options.tag_memory) {
    if (is_small(budget.memory)) return small(base::text("tag '{}'", budget.tag), budget.memory);
    if (budget.tag.empty() || budget.tag.size() >= silicon::SlotUse{}.tag.size())
      return Error(Errc::invalid_argument,
                   base::text("A tag with a memory budget ('{}') has {} characters; expected 1 to {}.",
                              budget.tag, budget.tag.size(), silicon::SlotUse{}.tag.size() - 1));
    if (std::count_if(options.tag_memory.begin(), options.tag_memory.end(),
                      [&](const TagBudget& other) { return other.tag == budget.tag; }) > 1)
      return Error(Errc::invalid_argument, base::text("Tag '{}' has two memory budgets.", budget.tag));
  }
  const Partition& part = options.partition;
  if (options.isolation != Isolation::partition && part != Partition{})
    return Error(Errc::invalid_argument,
                 base::text("A partition ({}) is set, but the isolation is '{}'.",
                            part.percent != 0 ? base::text("{} %", part.percent)
                                              : base::text("{} multiprocessors", part.multiprocessors),
                            options.isolation == Isolation::shared ? "shared" : "device"));
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

Pool::Pool(PoolOptions options, std::size_t devices)
    : number_(next_pool()),
      options_(std::move(options)),
      clock_(options_.clock ? options_.clock : &Clock::steady()),
      log_(options_.log),
      aging_(std::min<Duration>(options_.aging, std::chrono::hours(24 * 36500))),
      device_limit_(devices + most_added),
      infos_(device_limit_),
      found_as_(device_limit_),
      reopened_by_(device_limit_),
      is_replaceable_(device_limit_),
      suspicions_(device_limit_),
      refs_(device_limit_),
      order_(device_limit_),
      rank_(device_limit_),
      silicon_(device_limit_),
      silicon_of_(device_limit_),
      devices_(device_limit_),
      health_(device_limit_),
      contexts_(device_limit_),
      copying_(device_limit_),
      warm_(device_limit_) {}

Result<std::shared_ptr<Pool>> Pool::open(PoolOptions options, std::shared_ptr<device::Qualifier> qualifier) {
  if (auto ok = check(options); !ok) return std::move(ok).error();
  const device::BackendOptions backend{.cpu_threads = options.cpu_threads,
                                       .validate = options.validate_driver,
                                       .log = options.log,
                                       .cuda_driver = options.cuda_driver,
                                       .isolation = options.isolation,
                                       .partition = options.partition,
                                       .kept_memory = options.kept_memory,
                                       .pinned_memory = options.pinned_memory,
                                       .poll_limit = options.poll_limit};
  auto inventory = take_inventory(options.backends, backend, options.adopt, qualifier.get());
  if (!inventory) return std::move(inventory).error();
  inventory->discover = [backends = options.backends, backend] { return find_adapters(backends, backend); };
  for (const auto& device : inventory->devices)
    if (auto shared = share_processor(*device, options); !shared) return std::move(shared).error();
  return open(std::move(options), *std::move(inventory), std::move(qualifier));
}

std::shared_ptr<Pool> Pool::open(PoolOptions options, Inventory inventory,
                                 std::shared_ptr<device::Qualifier> qualifier) {
  auto pool = base::own(new Pool(std::move(options), inventory.devices.size()));
  pool->qualifier_ = std::move(qualifier);
  pool->discover_ = std::move(inventory.discover);
  pool->lists_.push_back(std::make_unique<const std::vector<AdapterInfo>>(std::move(inventory.adapters)));
  pool->adapters_ = pool->lists_.back().get();
  std::set<const silicon::Silicon*> processors;
  for (const auto& device : inventory.devices) processors.insert(device->silicon().get());
  inventory.reopened_by.resize(inventory.devices.size());
  for (std::size_t d = 0; d < inventory.devices.size(); ++d) {
    std::string id = inventory.devices[d]->info().id;
    pool->prepare_device(std::move(inventory.devices[d]), std::move(inventory.reopened_by[d]), std::move(id),
                         processors.size());
    pool->rank_[d] = d;
  }
  pool->publish_prepared_locked();
  return pool;
}

/// Keeps a lane whose work is in flight until the process ends.
void Pool::abandon(std::unique_ptr<device::Lane> lane) noexcept {
  lane->timeline()->abandon();
  base::detail::keep(lane.release());
}

Pool::~Pool() {
  for (SharedSilicon& one : silicon_)
    if (one.slots) leave_slots(one);
  const Instant now = Clock::steady().now();
  retire_copying();
  for (Unfinished& one : unfinished_) {
    // A host function uses memory of the application, which may be freed only after the function
    // has returned.
    const bool runs_host_code = one.lane->device()->info().features.has(Feature::host_memory);
    const Instant until = has_abandoned_           ? now
                          : options_.close_timeout ? Deadline(*options_.close_timeout).at(Clock::steady())
                          : runs_host_code         ? Instant::max()
                                                   : now + gpu_close_timeout;
    if (!one.lane->idle(until)) abandon(std::move(one.lane));
  }
}

std::shared_ptr<silicon::MemoryAccount> Pool::account_on(const device::DeviceBase& device) const noexcept {
  for (const SharedSilicon& one : processors())
    if (one.silicon == device.silicon()) return one.account;
  return nullptr;
}

bool Pool::is_named(std::size_t device, const Wanted& wanted) const noexcept {
  if (wanted.only != no_device) return device == wanted.only;
  const AdapterInfo& info = infos_[device];
  return wanted.on.empty() || wanted.on == info.id || wanted.on == info.backend;
}

bool Pool::has_candidate(const Wanted& wanted) const noexcept {
  for (std::size_t d = 0; d < device_count(); ++d)
    if (is_candidate(d, wanted)) return true;
  return false;
}

std::optional<std::size_t> Pool::find(device::DeviceRef device) const noexcept {
  for (std::size_t d = 0; d < device_count(); ++d)
    if (refs_[d].load(std::memory_order_acquire) == device.generation) return d;
  return std::nullopt;
}

Result<Lease> Pool::lease(const LeaseRequest& request, Instant until, SourceLocation where,
                          const Workload& workload) {
  if (const Error* inherited = origin_.error()) return *inherited;
  Wanted wanted{.on = request.on,
                .needs = request.needs,
                .workload = workload,
                .priority = request.priority,
                .stop = request.stop,
                .use = {.where = where, .thread = this_thread()}};
  std::copy_n(request.tag.data(), std::min(request.tag.size(), wanted.use.tag.size() - 1),
              wanted.use.tag.data());
  const bool is_left_without = note_losses(wanted);
  (void)recover_lost(is_left_without);
  return lease_any(wanted, clock_->now(), until);
}

Result<Lease> Pool::lease_on(const device::DeviceBase& device, Instant now) {
  const auto d = find(device);
  if (!d) return d.error();  // also in a child of fork
  const SharedSilicon& one = silicon_[silicon_of_[*d]];
  if (now >= one.watch->next_reading.load(std::memory_order_relaxed)) read_monitor(*d, now);
  if (Context* const warm = take_warm(*d, now)) return of(device, handle(*warm));
  return of(device, lease_any({.only = *d}, now, Deadline(options_.lease_timeout).at(now)));
}

Result<Lease> Pool::lease_for(const device::DeviceBase& device, Instant until) {
  const auto d = find(device);
  if (!d) return d.error();
  const Instant now = clock_->now();
  if (is_closed()) until = std::min(until, Deadline(options_.lease_timeout).at(now));
  return of(device, lease_any({.only = *d, .needs_slot = false}, now, until, true));
}

Result<std::size_t> Pool::find(const device::DeviceBase& device) const {
  const auto d = device.lost() ? std::nullopt : find(device.ref());
  if (d) return *d;
  if (const Error* lost = device.lost()) return *lost;  // it may have been replaced meanwhile
  return Error(Errc::invalid_argument,
               base::text("Device '{}' does not belong to this pool.", device.info().id));
}

Result<Lease> Pool::of(const device::DeviceBase& device, Result<Lease> lease) {
  if (lease && base::state_of(lease->device()).get() != &device)
    if (const Error* lost = device.lost())
      return *lost;  // the lane is that of the device which has replaced it
  return lease;
}

std::optional<Lease> Pool::lease_copies(device::DeviceRef device) noexcept try {
  const auto d = find(device);
  if (!d) return std::nullopt;
  const Device on = this->device(*d);
  if (base::state_of(on)->lost()) return std::nullopt;
  Context& context = *copying_[*d];
  const Instant now = clock_->now();
  {
    const base::Lock lock = base::lock_soon(mutex_);
    if (closed_ || context.leased || context.refused) return std::nullopt;
    context.leased = true;
    context.slot.use.since = now;
  }
  Lease lease = handle(context);  // from here on its destructor returns the context
  const bool is_new = !context.lane;
  if (is_new) {
    auto lane = device::Lane::create(*base::state_of(on));
    if (!lane) {
      context.refused = true;  // it is not asked again
      return std::nullopt;
    }
    context.lane = *std::move(lane);
    context.on = on;
  }
  return lease;
} catch (const std::bad_alloc&) {
  return std::nullopt;
}

Bytes Pool::reclaim(const device::DeviceBase& device, Bytes) noexcept {
  const auto d = find(device.ref());
  if (!d) return {};
  Context& context = *copying_[*d];
  std::vector<std::unique_ptr<device::Lane>> ended;  // destroyed after the lock
  bool has_copies = false;
  {
    const base::Lock lock = base::lock_soon(mutex_);
    if (closed_) return {};
    try {
      trim_locked(clock_->now(), Duration::zero(), *d, ended);
    } catch (const std::bad_alloc&) {  // some lanes stay
    }
    has_copies = !context.leased && context.has_lane;
    if (has_copies) context.leased = true;
  }
  const bool kept = has_copies && context.lane->keeps_buffers();
  if (has_copies) const Lease lease = handle(context);
  return Bytes{kept || !ended.empty() ? std::uint64_t{1} : 0};
}

void Pool::retire_copying() noexcept {
  const base::Lock lock = base::lock_soon(mutex_);
  for (const auto& context : std::span(copying_).first(device_count())) {
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
      trim_due_locked(now, finished);
      if (closed_ && !closed_too) return Error(Errc::closed, "The context pool is closed.");
      // Fair: a returned context goes to a waiter directly, so no thread waits while a context is
      // idle.
      bool lacks_slot = false;
      taken =
          take_idle(wanted, waiter ? waiter->rank : rank_of(wanted.priority, now), now, refusing, lacks_slot);
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
        if (!waiter) waiter.emplace(wanted, refusing);
        waiter->given = nullptr;
        waiter->lacks_slot = lacks_slot;
        waiter->is_endless = until == Instant::max() && !wanted.stop.can_stop();
        queue(*waiter, start);
        if (is_deadlock(*waiter)) {
          waiters_.erase(std::find(waiters_.begin(), waiters_.end(), &*waiter));
          return never_free(wanted);
        }
        if (lacks_slot) {  // a slot that an earlier request left may be free
          note_waiting_locked();
          lock.unlock();
          for (const SharedSilicon& one : processors()) one.slots->serve();
          lock.lock();
        }
        (void)base::seen_before_parking(
            lock, [&] { return waiter->given.load(std::memory_order_relaxed) != nullptr; });
        const auto is_answered = [&] {
          return waiter->given || (closed_ && !closed_too) || !has_candidate(wanted);
        };
        const bool is_stopped = !await(*waiter, lock, until, is_answered);
        taken = waiter->given;
        if (!taken) {
          waiters_.erase(std::find(waiters_.begin(), waiters_.end(), &*waiter));
          if (waiter->lacks_slot) note_waiting_locked();  // otherwise its rank would keep slots from others
          Error error = closed_ && !closed_too
                            ? Error(Errc::closed, "The context pool was closed during the wait for a lease.")
                        : !has_candidate(wanted) ? no_candidate(wanted)
                        : is_stopped             ? busy(clock_->now() - start, Errc::cancelled)
                                                 : busy(until - start, Errc::timed_out);
          timeouts_ += error == Errc::timed_out;
          return error;
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

Result<void> Pool::open_lane(Context& context) {
  if (context.lane) return {};
  if (auto created = make_lane(context); !created) return created;
  const base::Lock lock = base::lock_soon(mutex_);
  context.has_lane = true;
  count_lease(context);
  return {};
}

Result<void> Pool::make_lane(Context& context) {
  Device on = device(context.device);
  auto lane = device::Lane::create(*base::state_of(on));
  if (!lane) {
    context.refused = true;
    return std::move(lane).error().with_context(base::text("while creating context '{}'", context.id));
  }
  context.lane = *std::move(lane);
  context.on = std::move(on);
  context.lane->set_observer(&context);
  return {};
}

void Context::submitted() noexcept {
  if (last_call.context != this || last_call.pool != pool.number()) {
    if (last_call.context && last_call.pool == pool.number())
      pool.note_switch(*last_call.context, *this, last_call.end);
    last_call = {pool.number(), this, {}};
  }
  if (pool.reports_switches()) last_call.end = Clock::steady().now();
}

void Context::waited() noexcept {
  if (last_call.context == this && pool.reports_switches()) last_call.end = Clock::steady().now();
}

void Pool::note_switch(const Context& from, const Context& to, Instant since) noexcept {
  switches_.fetch_add(1, std::memory_order_relaxed);
  if (!options_.on_switch) return;
  const base::CancellationHeld held;
  try {
    const AdapterInfo &left = infos_[from.device], &entered = infos_[to.device];
    options_.on_switch({.from = from.id,
                        .to = to.id,
                        .device = entered.id,
                        .backend = entered.backend,
                        .changes_device = left.id != entered.id,
                        .changes_backend = left.backend != entered.backend,
                        .thread = this_thread(),
                        .duration = Clock::steady().now() - since});
  } catch (...) {  // of the application
  }
}

void Pool::give_back(Context& context) noexcept {
  if (origin_.is_inherited()) return;
  std::unique_ptr<device::Lane> retired;
  if (context.lane) context.lane->discard();  // the next user of the lane must not run or write any of it
  // A failed lane returns its failure for ever, and a lane with work in flight is not idle. The
  // next lease gets a new lane.
  if (context.lane && (context.lane->failure() || (!context.is_for_copies && !context.lane->idle()) ||
                       context.lane->device()->lost()))
    retired = std::move(context.lane);
  if (retired) context.on = {};
  std::vector<std::unique_ptr<device::Lane>> finished;  // destroyed after the lock
  std::unique_ptr<device::Lane> outdated;               // likewise
  bool others_wait = false;
  {
    base::Lock lock = base::lock_soon(mutex_);
    // The device may have been lost and replaced since its loss was looked for.
    if (context.lane &&
        context.lane->device()->ref().generation != refs_[context.device].load(std::memory_order_relaxed)) {
      outdated = std::move(context.lane);
      context.on = {};
    }
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
    context.has_lane = context.lane != nullptr;
    if (context.is_for_copies) return;  // no request waits for it
    if (context.slot.member) others_wait = slots_of(context.device).give_back(context.slot);
    if (context.slot.use.where) context.slot.use = {.since = context.slot.use.since};
    warm_[context.device] = &context;
    if (!waiters_.empty()) serve_locked(&context);
    context.refused = false;
  }
  if (others_wait) slots_of(context.device).serve();
}

bool Pool::await_finished(Instant until) noexcept {
  // Such work is rare, and a callback of the driver would keep its thread until the work ends.
  constexpr Duration look = std::chrono::milliseconds(1);
  for (;;) {
    std::vector<std::unique_ptr<device::Lane>> finished;  // destroyed after the lock
    base::Lock lock = base::lock_soon(mutex_);
    try {
      finished = collect_finished();
    } catch (const std::bad_alloc&) {  // they stay
    }
    if (unfinished_.empty()) return true;
    const Instant now = Clock::steady().now();
    if (now >= until) return false;
    base::Gate nothing;
    nothing.wait(lock, now + look, [] { return false; });
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
  update_suspects_locked();
  return finished;
}

void Pool::trim_due_locked(Instant now, std::vector<std::unique_ptr<device::Lane>>& ended) {
  if (now < next_trim_) return;
  next_trim_ = options_.idle_trim >= Instant::max() - now ? Instant::max() : now + options_.idle_trim / 4;
  if (next_trim_ != Instant::max()) trim_locked(now, options_.idle_trim, no_device, ended);
}

void Pool::trim_locked(Instant now, Duration idle_for, std::size_t device,
                       std::vector<std::unique_ptr<device::Lane>>& ended) {
  for (std::size_t d = 0; d < device_count(); ++d) {
    if (device != no_device && device != d) continue;
    const auto& of_device = contexts_[d];
    auto lanes =
        std::count_if(of_device.begin(), of_device.end(), [](const auto& one) { return one->has_lane; });
    for (const auto& context : of_device) {
      if (context->leased || !context->has_lane || lanes <= options_.contexts_ahead) continue;
      if (context->idle_since == Instant::max()) context->idle_since = now;
      if (now - context->idle_since < idle_for) continue;
      ended.push_back(std::move(context->lane));
      context->has_lane = false;
      --lanes;
    }
  }
}

void Pool::open_ahead(std::size_t device) {
  for (std::uint32_t c = 0; c < options_.contexts_ahead; ++c) {
    Context& context = *contexts_[device][c];
    const auto created = make_lane(context);
    context.has_lane = created.has_value();
    if (created) continue;
    context.refused = false;  // it is asked again when a lease needs it
    if (log_.wants(LogLevel::warning, "pool"))
      log_.write(LogLevel::warning, "pool", created.error().describe());
    break;
  }
}

template <class F>
bool Pool::await(Waiter& waiter, base::Lock& lock, Instant until, F is_answered) {
  constexpr Duration step = std::chrono::milliseconds(10);
  const StopToken& stop = waiter.wanted.stop;
  if (!stop.can_stop()) return waiter.answered.wait(lock, *clock_, until, is_answered), true;
  const Instant parked = base::parked_until(*clock_, until);
  for (;;) {
    if (stop.stop_requested()) return false;
    const Instant next = std::min(parked, Clock::steady().now() + step);
    if (waiter.answered.wait(lock, next, is_answered) || next == parked || clock_->now() >= until)
      return true;
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
