#include "cache/cache.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>

#include "base/text.hpp"
#include "cache/directory_store.hpp"
#include "kernel/program.hpp"

namespace wye {
inline namespace v0 {
namespace cache {

namespace {

bool is_idle(const std::shared_ptr<device::ExecutableBase>& executable) {
  return executable.use_count() == 1;
}

}  // namespace

std::size_t Cache::KeyHash::operator()(const Key& key) const noexcept {
  std::uint64_t bits = 0;  // of a digest any will do
  std::memcpy(&bits, key.digest.bytes.data(), sizeof(bits));
  return static_cast<std::size_t>(bits ^ reinterpret_cast<std::uintptr_t>(key.device) * 0x9E3779B97F4A7C15u);
}

Cache::AllReaders::AllReaders(const Cache& cache) {
  for (std::size_t i = 0; i < reader_count; ++i) locks_[i] = base::Lock(cache.readers_[i].mutex);
}

Cache::Cache(const CacheOptions& options, std::shared_ptr<BlobStore> store)
    : options_(options),
      clock_(options.clock ? *options.clock : Clock::steady()),
      log_(options.log, {.level = LogLevel::trace, .rooms = {}}),
      store_(store ? std::make_unique<ArtefactStore>(std::move(store), log_) : nullptr),
      compilers_(kernel::keep_compilers()) {}

Result<std::shared_ptr<Cache>> Cache::open(const CacheOptions& options, std::shared_ptr<BlobStore> store) {
  if (!store && !options.directory.empty()) {
    auto directory = DirectoryStore::open(options.directory);
    if (!directory) return std::move(directory).error();
    store = std::move(*directory);
  }
  return std::make_shared<Cache>(options, std::move(store));
}

Cache::Reader& Cache::reader() const noexcept {
  static std::atomic<std::size_t> threads{0};
  thread_local const std::size_t mine = threads.fetch_add(1, std::memory_order_relaxed);
  return readers_[mine % reader_count];
}

/// Makes `entry` the one used last. Two threads may do this to one entry: the later use stays.
void Cache::touch(const Entry& entry) const noexcept {
  std::uint64_t used = entry.used.load(std::memory_order_relaxed);
  if (used == uses_.load(std::memory_order_relaxed)) return;
  const std::uint64_t now = uses_.fetch_add(1, std::memory_order_relaxed) + 1;
  while (used < now && !entry.used.compare_exchange_weak(used, now, std::memory_order_relaxed)) {
  }
}

Cache::ExecutablePointer Cache::find_kept(const Key& key) const {
  Reader& mine = reader();
  const std::lock_guard lock(mine.mutex);
  const auto found = entries_.find(key);
  if (found == entries_.end() || !found->second.kept) return nullptr;
  touch(found->second);
  ++mine.hits;
  return found->second.kept;
}

std::optional<Duration> Cache::build_cost(const device::Program& program,
                                          const device::DeviceBase& device) const {
  const auto digest = program.key(device);
  if (!digest) return Duration{};
  {
    const std::lock_guard lock(reader().mutex);
    const auto found = entries_.find({*digest, &device});
    if (found != entries_.end() && !found->second.alive.expired()) return std::nullopt;
  }
  const base::Lock lock(mutex_);
  const auto cost = costs_.find(device.info().id);
  if (cost == costs_.end()) return Duration{};
  return cost->second.total / cost->second.builds;
}

Result<device::Provided> Cache::provide(const std::shared_ptr<const device::Program>& program,
                                        const std::shared_ptr<device::DeviceBase>& device, Instant until) {
  if (const Error* lost = device->lost()) {
    Leaving leaving;
    const base::Lock lock(mutex_);
    forget(*device, leaving);
    return *lost;
  }
  auto digest = program->key(*device);
  if (!digest) return std::move(digest).error();
  const Key key{*digest, device.get()};
  if (ExecutablePointer ready = find_kept(key))
    return device::Provided{Executable(std::move(ready)), CacheTier::memory, Duration{}};
  return find_or_build(key, *program, *device, until);
}

Result<device::Provided> Cache::find_or_build(const Key& key, const device::Program& program,
                                              device::DeviceBase& device, Instant until) {
  const std::string& device_id = device.info().id;
  Leaving leaving;
  std::shared_ptr<Flight> flight;
  {
    base::Lock lock(mutex_);
    if (ExecutablePointer ready = revive(key, leaving)) {
      ++counted_.hits;
      return device::Provided{Executable(std::move(ready)), CacheTier::memory, Duration{}};
    }
    if (const auto under_way = flights_.find(key); under_way != flights_.end()) {
      flight = under_way->second;
      ++counted_.joined;
      if (flight->gate.wait(lock, base::parked_until(clock_, until), [&] { return flight->done; }))
        return flight->result;
      return Error(Errc::timed_out,
                   base::text("Kernel '{}' was still being built for '{}' when the deadline passed.",
                              program.name(), device_id));
    }
    if (until != Instant::max() && clock_.now() >= until)
      return Error(Errc::timed_out,
                   base::text("Kernel '{}' is not built for '{}', and the deadline has passed.",
                              program.name(), device_id));
    flight = std::make_shared<Flight>();
    flights_.emplace(key, flight);
  }

  Result<Built> built = build(key.digest, program, device);
  Result<device::Provided> result = built ? Result<device::Provided>(device::Provided{
                                                Executable(built->executable), built->tier, built->took})
                                          : Result<device::Provided>(built.error());
  {
    const base::Lock lock(mutex_);
    flights_.erase(key);
    if (built) {
      try {
        keep(key, *built, base::text("{}@{}", program.name(), device_id), leaving);
      } catch (const std::bad_alloc&) {  // then it lives as long as its users
      }
    } else {
      ++counted_.failures;
    }
    flight->result = result;
    flight->done = true;
  }
  flight->gate.wake_all();
  if (built && built->to_store) store_->save(*built->to_store);
  return result;
}

/// Builds, and lets nothing but a result out: others wait for it.
Result<Cache::Built> Cache::build(const Digest& digest, const device::Program& program,
                                  device::DeviceBase& device) {
  try {
    return try_build(digest, program, device);
  } catch (const std::bad_alloc&) {
    return Error(Errc::out_of_memory, "The host has no memory left to build a kernel.");
  } catch (const std::exception& thrown) {
    return Error(Errc::internal,
                 base::text("Building kernel '{}' threw: {}.", program.name(), thrown.what()));
  } catch (...) {
    return Error(Errc::internal, base::text("Building kernel '{}' threw.", program.name()));
  }
}

Result<Cache::Built> Cache::try_build(const Digest& digest, const device::Program& program,
                                      device::DeviceBase& device) {
  const Instant start = clock_.now();
  const bool stored = store_ && program.storable(device);
  Built built;
  std::optional<device::Artefact> artefact;
  if (stored) {
    ArtefactStore::Loaded loaded = store_->load(digest);
    if (loaded.corrupt) {
      const base::Lock lock(mutex_);
      ++counted_.corrupt;
    }
    artefact = std::move(loaded.artefact);
  }
  if (artefact) {
    built.tier = CacheTier::disk;
  } else {
    auto made = program.build(device);
    if (!made) return std::move(made).error();
    artefact = std::move(*made);
  }
  auto executable = device.create_executable(*artefact);
  if (!executable) return std::move(executable).error();
  built.executable = std::move(*executable);
  built.took = clock_.now() - start;
  if (stored && built.tier == CacheTier::built) built.to_store = std::move(artefact);
  if (log_.wants(LogLevel::debug, "cache"))
    log_.write(LogLevel::debug, "cache",
               base::text("Kernel '{}' for '{}': {} in {} us.", program.name(), device.info().id,
                          built.tier == CacheTier::disk ? "from disk" : "built",
                          std::chrono::duration_cast<std::chrono::microseconds>(built.took).count()));
  return built;
}

/// The entry under `key` if it lives; kept from now on, if the bounds have room.
Cache::ExecutablePointer Cache::revive(const Key& key, Leaving& leaving) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return nullptr;
  Entry& entry = found->second;
  ExecutablePointer executable = entry.alive.lock();
  if (!executable) return nullptr;
  touch(entry);
  if (!entry.kept) {
    const AllReaders still(*this);
    entry.kept = executable;
    trim(leaving);
  }
  return executable;
}

void Cache::keep(const Key& key, const Built& built, std::string label, Leaving& leaving) {
  if (built.tier == CacheTier::disk) {
    ++counted_.disk_hits;
  } else {
    ++counted_.misses;
    counted_.build_time += built.took;
    Cost& cost = costs_[built.executable->device()->info().id];
    cost.total += built.took;
    ++cost.builds;
  }
  const AllReaders still(*this);
  const auto [place, is_new] = entries_.try_emplace(key);
  if (!is_new) ++counted_.evictions;  // one that had no room, and whose users have gone
  Entry& entry = place->second;
  entry.kept = built.executable;
  entry.alive = built.executable;
  entry.bytes = built.executable->bytes();
  entry.label = std::move(label);
  touch(entry);
  trim(leaving);
}

bool Cache::exceeded(std::uint64_t kernels, Bytes bytes) const noexcept {
  return kernels > options_.kernels || bytes > options_.memory;
}

void Cache::leave(Table::iterator entry, Leaving& leaving) {
  if (entry->second.kept) leaving.push_back(std::move(entry->second.kept));
  entries_.erase(entry);
}

std::vector<Cache::Table::iterator> Cache::kept_in_order() {
  std::vector<Table::iterator> entries;
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry)
    if (entry->second.kept) entries.push_back(entry);
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a->second.used.load() < b->second.used.load(); });
  return entries;
}

/// Brings the table back within its bounds: what is idle goes, used longest ago first. Where that is not
/// enough, the table lets go of what is in use, in the same order: it can still be found, and ends with its
/// last user.
void Cache::trim(Leaving& leaving) {
  std::uint64_t kernels = 0;
  Bytes bytes;
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto next = std::next(entry);
    ExecutablePointer alive = entry->second.alive.lock();
    const bool kept = entry->second.kept != nullptr;
    if (alive && !alive->device()->lost()) {
      ++kernels;
      bytes += entry->second.bytes;
    } else {
      if (!alive) ++counted_.evictions;
      leave(entry, leaving);
    }
    if (alive && !kept) leaving.push_back(std::move(alive));  // its last user may have gone meanwhile
    entry = next;
  }
  if (!exceeded(kernels, bytes)) return;

  std::vector<Table::iterator> in_use;
  std::uint64_t kept_kernels = 0;
  Bytes kept_bytes;
  for (const Table::iterator entry : kept_in_order()) {
    const Bytes size = entry->second.bytes;
    if (!is_idle(entry->second.kept)) {
      in_use.push_back(entry);
      ++kept_kernels;
      kept_bytes += size;
    } else if (exceeded(kernels, bytes)) {
      leave(entry, leaving);
      ++counted_.evictions;
      --kernels;
      bytes -= size;
    }
  }
  if (!exceeded(kernels, bytes)) return;
  for (const Table::iterator entry : in_use) {
    if (!exceeded(kept_kernels, kept_bytes)) return;
    leaving.push_back(std::move(entry->second.kept));
    --kept_kernels;
    kept_bytes -= entry->second.bytes;
  }
}

void Cache::forget(const device::DeviceBase& device, Leaving& leaving) {
  const auto is_of = [&](const Table::value_type& entry) { return entry.first.device == &device; };
  if (std::none_of(entries_.begin(), entries_.end(), is_of)) return;
  const AllReaders still(*this);
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto next = std::next(entry);
    if (is_of(*entry)) leave(entry, leaving);
    entry = next;
  }
}

Bytes Cache::reclaim(const device::DeviceBase& device, Bytes wanted) {
  Bytes freed;
  Leaving leaving;
  const base::Lock lock(mutex_);
  const AllReaders still(*this);
  for (const Table::iterator entry : kept_in_order()) {
    if (freed >= wanted) break;
    if (entry->first.device != &device || !is_idle(entry->second.kept)) continue;
    freed += entry->second.bytes;
    leave(entry, leaving);
    ++counted_.evictions;
  }
  return freed;
}

void Cache::clear() {
  Leaving leaving;
  const base::Lock lock(mutex_);
  const AllReaders still(*this);
  for (const Table::iterator entry : kept_in_order())
    if (is_idle(entry->second.kept)) leave(entry, leaving);
}

Cache::Frozen Cache::freeze() const { return Frozen(*this); }

std::vector<std::string> Cache::contents() const {
  std::vector<std::pair<std::uint64_t, std::string>> found;
  {
    const Frozen still = freeze();
    for (const auto& [key, entry] : entries_)
      if (!entry.alive.expired()) found.emplace_back(entry.used.load(), entry.label);
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> labels;
  for (auto& [used, label] : found) labels.push_back(std::move(label));
  return labels;
}

CacheMetrics Cache::metrics_locked() const {
  CacheMetrics metrics = counted_;
  for (const Reader& reader : readers_) metrics.hits += reader.hits;
  for (const auto& [key, entry] : entries_) {
    if (entry.alive.expired()) {
      ++metrics.evictions;
    } else {
      ++metrics.kernels;
      metrics.bytes += entry.bytes;
    }
  }
  return metrics;
}

const Cache& of(const ShaderCache& cache) {
  return static_cast<const Cache&>(*cache.provider());  // `ShaderCache::open` is the only one to give it
}

}  // namespace cache
}  // namespace v0
}  // namespace wye
