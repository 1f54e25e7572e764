#include "cache/cache.hpp"

#include <new>
#include <utility>

#include "base/internals.hpp"
#include "base/process.hpp"
#include "base/text.hpp"
#include "kernel/program.hpp"

namespace wye::inline v0::cache {

Cache::Cache(const CacheOptions& options, std::unique_ptr<ArtefactStore> store,
             std::shared_ptr<const DirectoryStore> directory, std::vector<Bundle> bundles,
             std::shared_ptr<base::Journal> journal)
    : options_(options),
      clock_(options.clock ? *options.clock : Clock::steady()),
      log_(options.log),
      journal_(std::move(journal)),
      store_(std::move(store)),
      records_(store_ ? std::optional<StoredDriverRecords>(*store_) : std::nullopt),
      drivers_(store_ ? std::make_unique<DriverTier>(*store_) : nullptr),
      directory_(std::move(directory)),
      bundles_(std::move(bundles)),
      compilers_(kernel::keep_compilers()),
      table_(options, clock_, *journal_) {}

Cache::~Cache() {
  background_builds_.clear();  // waits for them: they use this cache
  build_sink_.finish();
  save_driver_code();
}

Result<void> Cache::subscribe_sink() {
  if (!options_.on_build) return {};
  auto sink =
      journal_->listen<base::KernelBuilt>([on_build = options_.on_build](const base::KernelBuilt& event) {
        BuildEvent given;
        given.id = event.id;
        given.kernel = event.kernel;
        given.device = event.device;
        given.tier = event.tier;
        given.took = event.took;
        given.bytes = event.bytes;
        given.hit_rate = event.hit_rate;
        given.error = event.error ? &*event.error : nullptr;
        on_build(given);
      });
  if (!sink) return std::move(sink).error();
  build_sink_ = *std::move(sink);
  return {};
}

void Cache::save_driver_code() noexcept {
  if (!drivers_) return;
  try {
    drivers_->save();
  } catch (...) {  // the driver generates it again
  }
}

Result<std::shared_ptr<Cache>> Cache::open(const CacheOptions& options,
                                           std::shared_ptr<base::Journal> journal) {
  std::shared_ptr<BlobStore> store = options.store;
  std::vector<Bundle> bundles;
  for (const std::string& path : options.bundles) {
    auto opened = Bundle::open(path);
    if (!opened) return std::move(opened).error();
    bundles.push_back(std::move(*opened));
  }
  std::shared_ptr<const DirectoryStore> directory;
  std::shared_ptr<BlobStore> reports;
  std::string locks;
  if (!store && !options.directory.empty()) {
    auto opened =
        DirectoryStore::open(options.directory, {options.disk, options.disk_kernels},
                             options.durable ? base::Durability::power_cut : base::Durability::process);
    if (!opened) return std::move(opened).error();
    store = *opened;
    directory = std::move(*opened);
    locks = DirectoryStore::lock_file(options.directory);
    if (options.disk != Bytes{} && options.disk_kernels != 0)  // otherwise nothing is stored
      reports = DirectoryStore::of_reports(options.directory);
  }
  std::unique_ptr<ArtefactStore> artefacts;
  if (store)
    artefacts = std::make_unique<ArtefactStore>(std::move(store), std::move(locks), base::Logger(options.log),
                                                std::move(reports));
  if (!journal) journal = base::Journal::make();
  auto cache = base::make_own<Cache>(options, std::move(artefacts), std::move(directory), std::move(bundles),
                                     std::move(journal));
  if (auto subscribed = cache->subscribe_sink(); !subscribed) return std::move(subscribed).error();
  if (options.warm_compilers) cache->start_warming_compilers();
  return cache;
}

/// `compilers_` keeps the result. If no thread can be started, the first compile does the work.
void Cache::start_warming_compilers() {
  auto worker = base::Worker::start("wye-warm", [] { kernel::warm_compilers(); });
  if (worker) warming_.emplace(*std::move(worker));
}

std::optional<Duration> Cache::build_cost(const device::Program& asked,
                                          const device::DeviceBase& device) const {
  const auto digest = asked.current().key(device);
  if (!digest) return Duration{};
  const std::lock_guard lock(lock_);
  if (const auto entry = table_.entry_of({*digest, device.ref().generation});
      entry && !entry->alive.expired())
    return std::nullopt;
  return table_.build_cost(device.info().id).value_or(Duration{});
}

Result<device::Provided> Cache::provide(const std::shared_ptr<const device::Program>& program,
                                        const std::shared_ptr<device::DeviceBase>& device, Instant until) {
  return provide(program, device, until, DriverCode::lazy);
}

Result<void> Cache::begin_build(const std::shared_ptr<const device::Program>& program,
                                const std::shared_ptr<device::DeviceBase>& device) {
  auto built = provide(program, device, clock_.now(), DriverCode::lazy, true);
  if (!built && built.error() != Errc::timed_out) return std::move(built).error();
  return {};
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
                                        DriverCode code, bool is_ahead) {
  if (const Error* inherited = origin_.error()) return *inherited;
  const device::Program& program = asked->current();
  if (const Error* lost = device->lost()) {
    if (device->origin().is_inherited()) return *lost;
    Removed removed;
    const std::lock_guard lock(lock_);
    table_.remove_device(device->ref().generation, removed);
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
                        code,
                        is_ahead});
}

ExecutablePointer Cache::find_ready(const device::Program& program, const device::DeviceBase& device) {
  if (origin_.is_inherited()) return nullptr;
  const std::uint64_t program_id = program.current().id();
  const std::lock_guard lock(lock_);
  return table_.find(program_id, device.ref().generation);
}

void Cache::add(const BuildRequest& request, const Built& built, Removed& removed) {
  const auto entry = std::make_shared<Entry>();
  entry->key = request.key;
  entry->label = base::text("{}@{}", request.program->name(), request.device->info().id);
  entry->bytes = built.executable->bytes();
  entry->tier = built.tier;
  entry->build_time = built.build_time;
  entry->is_compiled = built.compiled;
  entry->alive = entry->kept = built.executable;
  bool is_new_device = false;
  {
    const std::lock_guard lock(lock_);
    table_.add(entry, request.program->id(), built.corrupt, removed);
    is_new_device = devices_.insert(request.key.device).second;
  }
  if (is_new_device) request.device->add_reclaimable(weak_from_this());
}

bool Cache::is_full() const {
  const std::lock_guard lock(lock_);
  return table_.is_full();
}

Bytes Cache::reclaim(const device::DeviceBase& device, Bytes wanted) {
  Removed removed;
  const std::lock_guard lock(lock_);
  return table_.reclaim(device.ref().generation, wanted, removed);
}

void Cache::clear() {
  if (origin_.is_inherited()) return;
  if (store_) store_->clear_deaths();
  descriptions_.clear();
  Removed removed;
  const std::lock_guard lock(lock_);
  table_.forget_failures();
  table_.remove_idle(removed);
}

Cache& of(const ShaderCache& cache) {
  return static_cast<Cache&>(*base::state_of(cache));  // only `ShaderCache::open` makes providers
}

std::shared_ptr<Cache> share(const ShaderCache& cache) {
  return std::static_pointer_cast<Cache>(base::state_of(cache));
}

}  // namespace wye::cache
