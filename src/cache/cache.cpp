#include "cache/cache.hpp"

#include <new>
#include <utility>

#include "base/internals.hpp"
#include "base/process.hpp"
#include "base/text.hpp"
#include "cache/handle_state.hpp"
#include "kernel/program.hpp"

namespace wye {
inline namespace v0 {
namespace cache {

Cache::Cache(const CacheOptions& options, std::unique_ptr<ArtefactStore> store,
             std::shared_ptr<const DirectoryStore> directory, std::vector<Bundle> bundles)
    : options_(options),
      clock_(options.clock ? *options.clock : Clock::steady()),
      log_(options.log, {.level = LogLevel::trace, .rooms = {}}),
      store_(std::move(store)),
      drivers_(store_ ? std::make_unique<DriverTier>(*store_) : nullptr),
      directory_(std::move(directory)),
      bundles_(std::move(bundles)),
      compilers_(kernel::keep_compilers()),
      table_(options.kernels, options.memory, options.eviction) {}

Cache::~Cache() {
  background_builds_.clear();  // waits for them: they use this cache
  save_driver_code();
}

void Cache::save_driver_code() {
  if (!drivers_) return;
  try {
    drivers_->save();
  } catch (const std::bad_alloc&) {  // the driver generates it again
  }
}

Result<std::shared_ptr<Cache>> Cache::open(const CacheOptions& options) {
  std::shared_ptr<BlobStore> store = options.store;
  std::vector<Bundle> bundles;
  for (const std::string& path : options.bundles) {
    auto opened = Bundle::open(path);
    if (!opened) return std::move(opened).error();
    bundles.push_back(std::move(*opened));
  }
  std::shared_ptr<const DirectoryStore> directory;
  std::string locks;
  if (!store && !options.directory.empty()) {
    auto opened =
        DirectoryStore::open(options.directory, {options.disk, options.disk_kernels},
                             options.durable ? base::Durability::power_cut : base::Durability::process);
    if (!opened) return std::move(opened).error();
    store = *opened;
    directory = std::move(*opened);
    locks = DirectoryStore::lock_file(options.directory);
  }
  std::unique_ptr<ArtefactStore> artefacts;
  if (store)
    artefacts =
        std::make_unique<ArtefactStore>(std::move(store), std::move(locks),
                                        base::Logger(options.log, {.level = LogLevel::trace, .rooms = {}}));
  auto cache = base::make_own<Cache>(options, std::move(artefacts), std::move(directory), std::move(bundles));
  if (options.warm_compilers) cache->start_warming_compilers();
  return cache;
}

/// `compilers_` keeps the result. If no thread can be started, the first compile does the work.
void Cache::start_warming_compilers() {
  auto worker = base::Worker::start("wye-warm", [] {
    try {
      kernel::warm_compilers();
    } catch (const std::bad_alloc&) {
    }
  });
  if (worker) warming_.emplace(*std::move(worker));
}

std::optional<Duration> Cache::build_cost(const device::Program& asked,
                                          const device::DeviceBase& device) const {
  const auto digest = asked.current().key(device);
  if (!digest) return Duration{};
  const TableLock lock = freeze();
  if (const auto entry = table_.find({*digest, device.ref().generation}); entry && !entry->alive.expired())
    return std::nullopt;
  return expected_cost(device).value_or(Duration{});
}

std::optional<Duration> Cache::expected_cost(const device::DeviceBase& device) const {
  const auto cost = costs_.find(device.info().id);
  if (cost == costs_.end()) return std::nullopt;
  return cost->second.total / cost->second.builds;
}

Result<device::Provided> Cache::provide(const std::shared_ptr<const device::Program>& program,
                                        const std::shared_ptr<device::DeviceBase>& device, Instant until) {
  return provide(program, device, until, DriverCode::lazy);
}

Result<device::Provided> Cache::make_ready(const std::shared_ptr<const device::Program>& program,
                                           const std::shared_ptr<device::DeviceBase>& device, Instant until) {
  return provide(program, device, until, DriverCode::complete);
}

Result<device::Provided> Cache::provide(const KernelDescription& description,
                                        const std::shared_ptr<device::DeviceBase>& device, Instant until) {
  if (const Error* inherited = origin_.error()) return *inherited;
  auto program = descriptions_.find_or_make(description);
  if (!program) return std::move(program).error();
  return provide(*program, device, until);
}

Result<device::Provided> Cache::provide(const std::shared_ptr<const device::Program>& asked,
                                        const std::shared_ptr<device::DeviceBase>& device, Instant until,
                                        DriverCode code) {
  if (const Error* inherited = origin_.error()) return *inherited;
  const device::Program& program = asked->current();
  if (const Error* lost = device->lost()) {
    if (device->origin().is_inherited()) return *lost;
    RemovedList removed;
    const TableLock lock = freeze();
    settle_handles();
    table_.remove_device(device->ref().generation, removed);
    count_removed(removed);
    return *lost;
  }
  if (ExecutablePointer ready = find_ready(program, *device))
    return device::Provided{Executable(std::move(ready)), CacheTier::memory, Duration{}};
  if (const auto observer = observer_.lock()) observer->used(asked, device);
  auto digest = program.key(*device);
  if (!digest) return std::move(digest).error();
  return find_or_build({{*digest, device->ref().generation},
                        std::shared_ptr<const device::Program>(asked, &program),
                        device,
                        until,
                        code});
}

ExecutablePointer Cache::find_ready(const device::Program& program, const device::DeviceBase& device) {
  if (origin_.is_inherited()) return nullptr;
  const std::uint64_t program_id = program.current().id();
  const std::lock_guard lock(table_lock_);
  const Alias& found = alias(program_id, device.ref().generation);
  if (found.program != program_id || found.device != device.ref().generation) return nullptr;
  Entry& entry = *found.entry;
  if (!entry.kept || table_.rises(entry)) return nullptr;
  table_.use(entry);
  ++entry.hits;
  return entry.kept;
}

/// Finds `key` while its executable is alive, and keeps it from now on if the bounds allow.
ExecutablePointer Cache::find_alive(const Key& key, std::uint64_t program, RemovedList& removed) {
  const std::lock_guard lock(table_lock_);
  const std::shared_ptr<Entry> entry = table_.find(key);
  ExecutablePointer executable = entry ? entry->alive.lock() : nullptr;
  if (!executable) return nullptr;
  table_.use(*entry);
  ++entry->hits;
  if (table_.rises(*entry)) {
    settle_handles();
    table_.protect(*entry);
  }
  if (!entry->kept) {
    settle_handles();
    table_.keep(*entry, executable, removed);
    count_removed(removed);
  }
  alias(program, key.device) = {program, key.device, entry};
  return executable;
}

void Cache::add(const BuildRequest& request, Built& built, RemovedList& removed) {
  const device::DeviceBase& device = *request.device;
  const std::lock_guard lock(table_lock_);
  settle_handles();
  count_built(built, request.key);
  const auto entry = std::make_shared<Entry>();
  entry->key = request.key;
  entry->label = base::text("{}@{}", request.program->name(), device.info().id);
  entry->bytes = built.executable->bytes();
  entry->tier = built.tier;
  entry->build_time = built.build_time;
  entry->alive = entry->kept = built.executable;
  if (built.compiled) entry->record = history_.record(*entry, device, built.executable->artefact().kernel);
  table_.insert(entry, removed);
  count_removed(removed);
  absences_.erase(request.key);
  const std::uint64_t program = request.program->id();
  alias(program, entry->key.device) = {program, entry->key.device, entry};
}

void Cache::count_built(const Built& built, const Key& key) {
  if (built.tier == CacheTier::disk) {
    ++counted_.disk_hits;
  } else if (built.tier == CacheTier::bundle) {
    ++counted_.bundle_hits;
  } else if (built.tier ==
             CacheTier::built) {  // otherwise a host function, which is neither built nor missed
    ++counted_.misses;
    const Absence* absence = absences_.find(key);
    const bool evicted = table_.find(key) || (absence && !absence->failure);
    ++(built.corrupt ? counted_.misses_corrupt : evicted ? counted_.misses_evicted : counted_.misses_first);
    counted_.build_time += built.build_time;
    BuildCost& cost = costs_[built.executable->device()->info().id];
    cost.total += built.build_time;
    ++cost.builds;
  }
}

void Cache::count_removed(const RemovedList& removed) {
  for (const auto& [entry, why] : removed.entries) {
    const Duration saved = entry->build_time * entry->hits;
    counted_.hits += entry->hits;
    counted_.saved += saved;
    if (entry->record) {
      entry->record->entry.uses += entry->hits;
      entry->record->metrics.saved += saved;
    }
    switch (why) {
      case Removal::evicted: ++counted_.evictions; break;
      case Removal::reclaimed: ++counted_.evictions, ++counted_.evictions_reclaimed; break;
      case Removal::cleared: ++counted_.cleared; break;
      case Removal::lost: ++counted_.lost; break;
    }
    if (why != Removal::lost) add_absence(entry->key, why);
  }
}

void Cache::add_absence(const Key& key, Removal why, std::optional<Error> failure) {
  try {
    absences_.add(key, why, std::move(failure), clock_.now());
  } catch (const std::bad_alloc&) {  // it is not remembered
  }
}

void Cache::settle_handles() const noexcept {
  for (HandleState* handle : handles_) handle->settle();
}

bool Cache::is_full() const {
  const TableLock lock = freeze();
  return table_.is_full();
}

Bytes Cache::reclaim(const device::DeviceBase& device, Bytes wanted) {
  RemovedList removed;
  const TableLock lock = freeze();
  settle_handles();
  const Bytes freed = table_.reclaim(device.ref().generation, wanted, removed);
  count_removed(removed);
  return freed;
}

void Cache::clear() {
  if (origin_.is_inherited()) return;
  if (store_) store_->clear_deaths();
  descriptions_.clear();
  RemovedList removed;
  const TableLock lock = freeze();
  settle_handles();
  absences_.forget_failures();
  table_.remove_idle(removed);
  count_removed(removed);
}

Cache& of(const ShaderCache& cache) {
  return static_cast<Cache&>(*base::state_of(cache));  // only `ShaderCache::open` makes providers
}

std::shared_ptr<Cache> share(const ShaderCache& cache) {
  return std::static_pointer_cast<Cache>(base::state_of(cache));
}

}  // namespace cache
}  // namespace v0
}  // namespace wye
