#include "pool/pool.hpp"

#include <algorithm>
#include <new>
#include <set>
#include <utility>

#include "base/text.hpp"
#include "pool/discovery.hpp"
#include "pool/report.hpp"

namespace wye::inline v0::pool {
namespace {

constexpr std::uint32_t most_lanes = 256, most_slots = 4096;
constexpr Bytes least_budget{4096};
constexpr std::size_t most_added = 16;  // devices, after `open`

Result<void> check_numbers(const PoolOptions& options) {
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
  return {};
}

Result<void> check_times(const PoolOptions& options) {
  if (options.lease_timeout < Duration::zero())
    return Error(Errc::invalid_argument,
                 base::text("The lease timeout ({} s) is negative.", seconds(options.lease_timeout)));
  if (options.aging <= Duration::zero())
    return Error(Errc::invalid_argument,
                 base::text("The aging of requests ({} s) is not positive.", seconds(options.aging)));
  if (options.close_timeout && *options.close_timeout < Duration::zero())
    return Error(Errc::invalid_argument,
                 base::text("The close timeout ({} s) is negative.", seconds(*options.close_timeout)));
  return {};
}

Result<void> check_memory(const PoolOptions& options) {
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
  return {};
}

Result<void> check_partition(const PoolOptions& options) {
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

Result<void> check(const PoolOptions& options) {
  for (const auto check_some : {check_numbers, check_times, check_memory, check_partition})
    if (auto ok = check_some(options); !ok) return ok;
  return {};
}

}  // namespace

Pool::Pool(std::shared_ptr<const PoolOptions> options, std::size_t devices,
           std::shared_ptr<device::Qualifier> qualifier, std::shared_ptr<base::Journal> journal)
    : options_(std::move(options)),
      fleet_(base::make_own<Fleet>(options_, devices + most_added, std::move(qualifier), journal)),
      accounts_(base::make_own<Accounts>(options_, *fleet_, std::move(journal))),
      leases_(base::make_own<Leases>(options_, fleet_, accounts_)) {}

Result<std::shared_ptr<Pool>> Pool::open(PoolOptions options, std::shared_ptr<device::Qualifier> qualifier,
                                         std::shared_ptr<base::Journal> journal) {
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
  const Selection selection{options.backends, options.devices};
  auto inventory = take_inventory(selection, backend, options.adopt, qualifier.get());
  if (!inventory) return std::move(inventory).error();
  inventory->discover = [selection, backend] {
    std::vector<std::string> missing;  // may come back
    return find_adapters(selection, backend, missing);
  };
  for (const auto& device : inventory->devices)
    if (auto shared = share_processor(*device, options); !shared) return std::move(shared).error();
  auto pool = open(std::move(options), *std::move(inventory), std::move(qualifier), std::move(journal));
  if (auto subscribed = pool->accounts().subscribe_sinks(); !subscribed) return std::move(subscribed).error();
  return pool;
}

std::shared_ptr<Pool> Pool::open(PoolOptions options, Inventory inventory,
                                 std::shared_ptr<device::Qualifier> qualifier,
                                 std::shared_ptr<base::Journal> journal) {
  if (!journal) journal = base::Journal::make();
  auto pool = base::own(new Pool(std::make_shared<const PoolOptions>(std::move(options)),
                                 inventory.devices.size(), std::move(qualifier), std::move(journal)));
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
  }
  pool->leases_->publish(std::vector<std::size_t>(pool->fleet_->prepared()));  // in this order
  return pool;
}

Result<Lease> Pool::lease(const LeaseRequest& request, Instant until, SourceLocation where,
                          const Workload& workload) {
  if (const Error* inherited = origin().error()) return *inherited;
  const bool is_left_without = fleet_->note_losses({.on = request.on, .needs = request.needs});
  (void)recover_lost(is_left_without);
  return leases_->lease(request, until, where, workload);
}

bool Pool::recover_all(bool waits) noexcept {
  for (std::size_t d = 0; d < fleet_->size() && !leases_->is_closed(); ++d)
    if (fleet_->begin_probe(d, waits)) recover(d);
  return true;
}

void Pool::recover(std::size_t device) noexcept try {
  auto opened = fleet_->open_again(device);
  if (!opened) return fleet_->quarantine(device, opened.error());
  const Device old = fleet_->device(device);
  leases_->replace(device, *std::move(opened));
  // Cached kernels and spare replicas hold the old device.
  (void)base::state_of(old)->reclaim(IdleMemory::replicas, Bytes{~std::uint64_t{0}});
} catch (const std::bad_alloc&) {
  fleet_->quarantine(device, no_memory());
}

Suspicion Pool::current_suspicion(std::size_t device) noexcept {
  (void)leases_->await_finished(Instant::min());
  return fleet_->suspicion(device);
}

Bytes Pool::trim(IdleMemory last) {
  leases_->trim();
  Bytes freed;
  for (const Device& device : fleet_->devices()) {
    device::DeviceBase& state = *base::state_of(device);
    if (state.lost()) continue;
    freed += state.reclaim(last, Bytes{~std::uint64_t{0}});
    state.release_spare_memory();
  }
  return freed;
}

Bytes Pool::defragment() {
  Bytes returned;
  for (const Device& device : fleet_->devices()) returned += base::state_of(device)->defragment();
  return returned;
}

PoolMetrics Pool::metrics_locked() const {
  PoolMetrics metrics;
  leases_->add_to_locked(metrics);
  metrics.bytes = accounts_->held();
  metrics.evictions = accounts_->evictions();
  metrics.shortages = accounts_->shortages();
  metrics.recoveries = fleet_->recoveries();
  return metrics;
}

void Pool::add_reserved(std::vector<ContextInfo>& contexts) const {
  for (std::size_t d = 0; d < fleet_->size(); ++d) {
    const auto is_here = [&](const ContextInfo& context) { return context.device == fleet_->info(d).id; };
    if (std::none_of(contexts.begin(), contexts.end(), is_here)) continue;
    const Bytes reserved = base::state_of(fleet_->device(d))->reserved_memory();
    for (ContextInfo& context : contexts)
      if (is_here(context)) context.reserved = reserved;
  }
}

std::vector<ContextInfo> Pool::contexts_locked() const { return Report(*leases_).contexts(); }

std::vector<SiliconInfo> Pool::silicon() const {
  const Report report(*leases_);
  std::vector<SiliconInfo> list;
  for (std::size_t p = 0; p < fleet_->processor_count(); ++p) {
    silicon::Silicon& silicon = fleet_->silicon(p);
    SiliconInfo& info = list.emplace_back();
    info.name = silicon.name();
    for (std::size_t d = 0; d < fleet_->size(); ++d)
      if (fleet_->processor_of(d) == p) info.devices.push_back(fleet_->state_of(d));
    info.slots = silicon.slots().limit();
    info.used = silicon.slots().used();
    info.leases = report.slots_used_on(p);
    info.waiting = report.waiting_on(p);
    info.memory = accounts_->shares(p);
    info.pressure = accounts_->pressure_on(p).level;
    for (const silicon::MachineShare::Process& one : silicon.processes()) {
      info.processes.push_back(
          {.pid = one.number, .used = one.used, .held = one.held, .waits = one.waits, .is_own = one.is_own});
      if (one.is_own) continue;
      info.used_elsewhere += one.used;
      info.held_elsewhere += one.held;
    }
  }
  return list;
}

}  // namespace wye::pool
