#include "cache/cache.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/text.hpp"
#include "cache/hold.hpp"
#include "kernel/description.hpp"
#include "kernel/program.hpp"

namespace wye {
inline namespace v0 {
namespace cache {

namespace {

using namespace std::chrono_literals;

/// How long a refusal is believed. The key holds all that goes into a build but the driver.
constexpr Duration failure_life = 10min;
/// Keys whose failure or fate is remembered.
constexpr std::size_t past_limit = 512;
/// What may be compared behind a door: some microseconds.
constexpr Bytes most_compared{64ull << 10};
/// Kernels of a run that are recorded.
constexpr std::size_t used_limit = 10'000;

bool is_idle(const std::shared_ptr<device::ExecutableBase>& executable) {
  return executable.use_count() == 1;
}

}  // namespace

class Cache::Inside {
 public:
  explicit Inside(Reader& reader) noexcept : door_(reader.door.try_enter() ? &reader.door : nullptr) {}
  Inside(const Inside&) = delete;  // leaves once
  ~Inside() {
    if (door_) door_->leave();
  }
  explicit operator bool() const noexcept { return door_ != nullptr; }

 private:
  base::Door* door_;
};

class Cache::Exclusive {
 public:
  explicit Exclusive(const Cache& cache) : doors_(cache) {
    for (Reader& reader : cache.readers_)
      for (Slot& slot : reader.slots) empty(slot);
    for (Hold* hold : cache.holds_) hold->settle();
  }

 private:
  AllDoors doors_;
};

/// What the table keeps, the first to be evicted first: a heap, because mostly few are asked for.
class Cache::Queue {
 public:
  explicit Queue(Table& table) {
    for (auto entry = table.begin(); entry != table.end(); ++entry)
      if (const Entry& e = entry->second; e.kept)
        entries_.push_back({{e.is_protected, e.tally->used.load(std::memory_order_relaxed)}, entry});
    std::make_heap(entries_.begin(), entries_.end(), is_later);
  }
  bool empty() const noexcept { return entries_.empty(); }
  Table::iterator next() {
    std::pop_heap(entries_.begin(), entries_.end(), is_later);
    const Table::iterator entry = entries_.back().entry;
    entries_.pop_back();
    return entry;
  }

 private:
  struct Place {
    std::pair<bool, std::uint64_t> order;
    Table::iterator entry;
  };
  static bool is_later(const Place& a, const Place& b) noexcept { return a.order > b.order; }
  std::vector<Place> entries_;
};

std::size_t Cache::KeyHash::operator()(const Key& key) const noexcept {
  std::uint64_t bits = 0;  // of a digest any will do
  std::memcpy(&bits, key.digest.bytes.data(), sizeof(bits));
  return static_cast<std::size_t>(bits ^ reinterpret_cast<std::uintptr_t>(key.device) * 0x9E3779B97F4A7C15u);
}

Cache::Cache(const CacheOptions& options, std::unique_ptr<ArtefactStore> store,
             std::shared_ptr<const DirectoryStore> directory, std::vector<Bundle> bundles)
    : options_(options),
      clock_(options.clock ? *options.clock : Clock::steady()),
      log_(options.log, {.level = LogLevel::trace, .rooms = {}}),
      store_(std::move(store)),
      drivers_(store_ ? std::make_unique<DriverTier>(*store_) : nullptr),
      directory_(std::move(directory)),
      bundles_(std::move(bundles)),
      compilers_(kernel::keep_compilers()) {}

Cache::~Cache() {
  late_.clear();  // waits for them: they store what they make here
  save_drivers();
}

void Cache::save_drivers() {
  if (!drivers_) return;
  try {
    drivers_->save();
  } catch (const std::bad_alloc&) {  // then they make it again
  }
}

Result<std::shared_ptr<Cache>> Cache::open(const CacheOptions& options, std::shared_ptr<BlobStore> store) {
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
  auto cache =
      std::make_shared<Cache>(options, std::move(artefacts), std::move(directory), std::move(bundles));
  if (options.warm_compilers) cache->warm_compilers();
  return cache;
}

/// `compilers_` has what this makes. Where it cannot be made now, the first compile does it.
void Cache::warm_compilers() {
  auto worker = base::Worker::start("wye-warm", [] {
    try {
      kernel::warm_compilers();
    } catch (const std::bad_alloc&) {
    }
  });
  if (worker) warming_.emplace(*std::move(worker));
}

void Cache::raise(Tally& tally, std::uint64_t now) noexcept {
  std::uint64_t used = tally.used.load(std::memory_order_relaxed);
  while (used < now && !tally.used.compare_exchange_weak(used, now, std::memory_order_relaxed)) {
  }
}

/// Tells the tally what the slot counted.
void Cache::settle(Slot& slot) noexcept {
  if (!slot.pin) return;
  raise(*slot.tally, slot.used);
  slot.tally->hits.fetch_add(std::exchange(slot.hits, 0), std::memory_order_relaxed);
}

/// Nothing ends here: the entry keeps what the slot pinned.
void Cache::empty(Slot& slot) noexcept {
  settle(slot);
  slot = {};
}

Cache::ExecutablePointer Cache::find_again(const device::Program& program,
                                           const device::DeviceBase& device) const {
  const std::uint64_t id = program.current().id();
  Reader& mine = reader();
  const Inside inside(mine);
  if (!inside) return nullptr;
  Slot& slot = mine.slot(id, &device);
  return slot.holds(id, device) ? used_again(slot) : nullptr;
}

const Cache::ExecutablePointer& Cache::used_again(Slot& slot) const noexcept {
  if (const std::uint64_t now = touch(*slot.tally)) slot.used = now;
  ++slot.hits;
  return slot.pin;
}

Cache::ExecutablePointer Cache::find_again(const KernelDescription& description, std::uint64_t sample,
                                           const device::DeviceBase& device) const {
  Reader& mine = reader();
  const Inside inside(mine);
  if (!inside) return nullptr;
  const Described& said = mine.said(sample);
  if (said.sample != sample || !said.program || !kernel::say_the_same(*said.description, description))
    return nullptr;
  const std::uint64_t id = said.program->id();
  Slot& slot = mine.slot(id, &device);
  return slot.holds(id, device) ? used_again(slot) : nullptr;
}

/// Finds `key` in the table, for `program`, by way of the door; null also where somebody is in the way, or the use
/// changes the table.
Cache::ExecutablePointer Cache::find_kept(const Key& key, std::uint64_t program) const {
  Reader& mine = reader();
  const Inside inside(mine);
  if (!inside) return nullptr;
  const auto found = entries_.find(key);
  if (found == entries_.end() || !found->second.kept) return nullptr;
  const Entry& entry = found->second;
  if (options_.eviction == Eviction::slru && !entry.is_protected) return nullptr;
  ExecutablePointer pin(std::make_shared<ExecutablePointer>(entry.kept), entry.kept.get());
  Slot& slot = mine.slot(program, key.device);
  empty(slot);
  slot = {program, key.device, entry.tally.get(), pin, touch(*entry.tally), 1};
  return pin;
}

std::optional<Duration> Cache::build_cost(const device::Program& asked,
                                          const device::DeviceBase& device) const {
  const device::Program& program = asked.current();
  const std::uint64_t id = program.id();
  {
    Reader& mine = reader();
    const Inside inside(mine);
    if (inside && mine.slot(id, &device).holds(id, device)) return std::nullopt;
  }
  const auto digest = program.key(device);
  if (!digest) return Duration{};
  const base::Lock lock(mutex_);
  const auto found = entries_.find({*digest, &device});
  if (found != entries_.end() && !found->second.alive.expired()) return std::nullopt;
  return expected_cost(device).value_or(Duration{});
}

std::optional<Duration> Cache::expected_cost(const device::DeviceBase& device) const {
  const auto cost = costs_.find(device.info().id);
  if (cost == costs_.end()) return std::nullopt;
  return cost->second.total / cost->second.builds;
}

Result<device::Provided> Cache::provide(const std::shared_ptr<const device::Program>& program,
                                        const std::shared_ptr<device::DeviceBase>& device, Instant until) {
  return provide(program, device, until, Code::as_it_likes);
}

Result<device::Provided> Cache::make_ready(const std::shared_ptr<const device::Program>& program,
                                           const std::shared_ptr<device::DeviceBase>& device, Instant until) {
  return provide(program, device, until, Code::all);
}

Result<device::Provided> Cache::provide(const std::shared_ptr<const device::Program>& asked,
                                        const std::shared_ptr<device::DeviceBase>& device, Instant until,
                                        Code code) {
  const device::Program& program = asked->current();
  if (const Error* lost = device->lost()) {
    Leaving leaving;
    const base::Lock lock(mutex_);
    forget(*device, leaving);
    return *lost;
  }
  if (ExecutablePointer ready = find_again(program, *device))
    return device::Provided{Executable(std::move(ready)), CacheTier::memory, Duration{}};
  if (const auto observer = observer_.lock()) observer->used(asked, device);
  auto digest = program.key(*device);
  if (!digest) return std::move(digest).error();
  const Key key{*digest, device.get()};
  if (ExecutablePointer ready = find_kept(key, program.id()))
    return device::Provided{Executable(std::move(ready)), CacheTier::memory, Duration{}};
  return find_or_build({key, std::shared_ptr<const device::Program>(asked, &program), device, until, code});
}

Result<device::Provided> Cache::provide(const KernelDescription& description, std::uint64_t sample,
                                        const std::shared_ptr<device::DeviceBase>& device, Instant until) {
  if (!kernel::is_complete(description)) {
    auto made = AnyKernel::make(description);
    if (!made) return std::move(made).error();
    return provide(made->program(), device, until);
  }
  auto described = descriptions_.find_or_make(description, sample);
  if (!described) return std::move(described).error();
  if (kernel::size_of(description) <= most_compared) {
    Described before = *described;  // ends when the door is closed
    Reader& mine = reader();
    if (const Inside inside(mine); inside) std::swap(mine.said(sample), before);
  }
  return provide(described->program, device, until);
}

/// The entry under `key` if it lives, used once more; kept from now on, if the bounds have room.
Cache::ExecutablePointer Cache::revive(const Key& key, Leaving& leaving) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return nullptr;
  Entry& entry = found->second;
  ExecutablePointer executable = entry.alive.lock();
  if (!executable) return nullptr;
  entry.tally->hits.fetch_add(1, std::memory_order_relaxed);
  raise(*entry.tally, touch(*entry.tally));
  const bool rises = options_.eviction == Eviction::slru && !entry.is_protected;
  if (entry.kept && !rises) return executable;
  const Exclusive still(*this);
  if (rises) protect(entry);
  if (!entry.kept) {
    entry.kept = executable;
    trim(leaving);
  }
  return executable;
}

void Cache::keep(const Key& key, Built& built, std::string label, Leaving& leaving) {
  const Exclusive still(*this);
  if (const auto before = entries_.find(key); before != entries_.end())
    leave(before, Gone::no_room, leaving);  // one whose users have gone
  if (built.tier == CacheTier::disk) {
    ++counted_.disk_hits;
  } else if (built.tier == CacheTier::bundle) {
    ++counted_.bundle_hits;
  } else if (built.tier ==
             CacheTier::built) {  // else a function of the host: nothing was built, and nothing missed
    ++counted_.misses;
    const Past* before = past(key);
    ++(built.corrupt                           ? counted_.misses_corrupt
       : before && before->why != Gone::failed ? counted_.misses_evicted
                                               : counted_.misses_first);
    counted_.build_time += built.took;
    Cost& cost = costs_[built.executable->device()->info().id];
    cost.total += built.took;
    ++cost.builds;
  }
  past_.erase(key);
  Entry& entry = entries_[key];
  entry.kept = built.executable;
  entry.alive = built.executable;
  entry.device = built.executable->device();
  entry.bytes = built.executable->bytes();
  entry.label = std::move(label);
  entry.tier = built.tier;
  entry.took = built.took;
  entry.use = record(key, built, *built.executable->device());
  raise(*entry.tally, touch(*entry.tally));
  trim(leaving);
}

/// Where what was built under `key` is recorded; null where it is not.
Cache::Use* Cache::record(const Key& key, const Built& built, const device::DeviceBase& device) {
  if (!built.compiled) return nullptr;
  std::pair<Digest, std::string> name(key.digest, device.info().id);
  if (used_.size() >= used_limit && used_.find(name) == used_.end()) return nullptr;
  const auto [place, is_new] = used_.try_emplace(std::move(name));
  Use& use = place->second;
  if (is_new) {
    use.order = used_.size();
    use.entry = {key.digest, built.executable->artefact().kernel, device.info().backend, device.info().name};
    use.metrics.kernel = use.entry.kernel;
    use.metrics.device = device.info().id;
  }
  ++use.entry.uses;
  ++(built.tier == CacheTier::built ? use.metrics.builds : use.metrics.loads);
  use.metrics.spent += built.took;
  use.entry.took = std::max(use.entry.took, built.took);
  return &use;
}

/// What is remembered of `key`, if its device is still the one it was.
const Cache::Past* Cache::past(const Key& key) const {
  const auto found = past_.find(key);
  return found == past_.end() || found->second.device.expired() ? nullptr : &found->second;
}

void Cache::remember(const Key& key, std::weak_ptr<device::DeviceBase> device, Gone why,
                     std::optional<Error> failure) {
  try {
    const Instant now = clock_.now();
    // Failures that are still believed cost a build each: what was evicted is forgotten first.
    const auto order = [&](const Past& past) {
      return std::pair(past.failure && now < expiry(past), past.order);
    };
    if (past_.size() >= past_limit)
      past_.erase(std::min_element(past_.begin(), past_.end(), [&](const auto& a, const auto& b) {
        return order(a.second) < order(b.second);
      }));
    past_.insert_or_assign(key, Past{std::move(device), why, std::move(failure), now, remembered_++});
  } catch (const std::bad_alloc&) {  // then it is not
  }
}

bool Cache::is_full() const {
  std::uint64_t kernels = 0;
  Bytes bytes;
  const base::Lock lock(mutex_);
  for (const auto& [key, entry] : entries_)
    if (!entry.alive.expired()) ++kernels, bytes += entry.bytes;
  return kernels >= options_.kernels || bytes >= options_.memory;
}

Instant Cache::expiry(const Past& past) const noexcept { return past.at + failure_life; }

bool Cache::exceeded(std::uint64_t kernels, Bytes bytes) const noexcept {
  return kernels > options_.kernels || bytes > options_.memory;
}

void Cache::leave(Table::iterator place, Gone why, Leaving& leaving) {
  Entry& entry = place->second;
  const std::uint64_t hits = entry.tally->hits.load(std::memory_order_relaxed);
  counted_.hits += hits;
  counted_.saved += entry.took * hits;
  if (entry.use) {
    entry.use->entry.uses += hits;
    entry.use->metrics.saved += entry.took * hits;
  }
  if (why == Gone::cleared) ++counted_.cleared;
  if (why == Gone::lost) ++counted_.lost;
  if (why == Gone::no_room || why == Gone::reclaimed) ++counted_.evictions;
  if (why == Gone::reclaimed) ++counted_.evictions_reclaimed;
  if (why != Gone::lost) remember(place->first, std::move(entry.device), why);
  if (entry.kept) leaving.push_back(std::move(entry.kept));
  entries_.erase(place);
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
      leave(entry, alive ? Gone::lost : Gone::no_room, leaving);
    }
    if (alive && !kept) leaving.push_back(std::move(alive));  // its last user may have gone meanwhile
    entry = next;
  }
  if (!exceeded(kernels, bytes)) return;

  std::vector<Table::iterator> in_use;
  std::uint64_t kept_kernels = 0;
  Bytes kept_bytes;
  for (Queue queue(entries_); !queue.empty();) {
    const Table::iterator entry = queue.next();
    const Bytes size = entry->second.bytes;
    if (!is_idle(entry->second.kept)) {
      in_use.push_back(entry);
      ++kept_kernels;
      kept_bytes += size;
      continue;
    }
    leave(entry, Gone::no_room, leaving);
    --kernels;
    bytes -= size;
    if (!exceeded(kernels, bytes)) return;
  }
  for (const Table::iterator entry : in_use) {
    if (!exceeded(kept_kernels, kept_bytes)) return;
    leaving.push_back(std::move(entry->second.kept));
    --kept_kernels;
    kept_bytes -= entry->second.bytes;
  }
}

void Cache::protect(Entry& entry) {
  entry.is_protected = true;
  demote();
}

/// Leaves no more protected than have 80 % of the room: those used longest ago begin again, as if they were new.
void Cache::demote() {
  std::vector<Entry*> entries;
  std::uint64_t kernels = 0;
  Bytes bytes;
  for (auto& [key, entry] : entries_) {
    if (!entry.is_protected || entry.alive.expired()) continue;
    entries.push_back(&entry);
    ++kernels;
    bytes += entry.bytes;
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry* a, const Entry* b) { return a->tally->used.load() < b->tally->used.load(); });
  for (Entry* entry : entries) {
    if (kernels <= std::uint64_t{options_.kernels} * 4 / 5 && bytes.count <= options_.memory.count / 5 * 4)
      return;
    entry->is_protected = false;
    entry->tally->used.store(uses_.fetch_add(1) + 1);
    --kernels;
    bytes -= entry->bytes;
  }
}

void Cache::enter(Hold& hold) {
  const base::Lock lock(mutex_);
  const auto entry = entries_.find(hold.key());
  hold.begin(entry == entries_.end() ? std::make_shared<Tally>()
                                     : entry->second.tally);  // else its device is lost
  holds_.insert(&hold);
}

void Cache::leave(Hold& hold) noexcept {
  const base::Lock lock(mutex_);
  holds_.erase(&hold);
  hold.settle();
  const auto entry = entries_.find(hold.key());
  if (options_.eviction != Eviction::slru || entry == entries_.end() || entry->second.is_protected ||
      !hold.was_used_again())
    return;
  const Exclusive still(*this);
  try {
    protect(entry->second);
  } catch (const std::bad_alloc&) {  // then too many are protected for a while
  }
}

void Cache::forget(const device::DeviceBase& device, Leaving& leaving) {
  const auto is_of = [&](const Table::value_type& entry) { return entry.first.device == &device; };
  if (std::none_of(entries_.begin(), entries_.end(), is_of)) return;
  const Exclusive still(*this);
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto next = std::next(entry);
    if (is_of(*entry)) leave(entry, Gone::lost, leaving);
    entry = next;
  }
}

Bytes Cache::reclaim(const device::DeviceBase& device, Bytes wanted) {
  Bytes freed;
  Leaving leaving;
  const base::Lock lock(mutex_);
  const Exclusive still(*this);
  for (Queue queue(entries_); freed < wanted && !queue.empty();) {
    const Table::iterator entry = queue.next();
    if (entry->first.device != &device || !is_idle(entry->second.kept)) continue;
    freed += entry->second.bytes;
    leave(entry, Gone::reclaimed, leaving);
  }
  return freed;
}

void Cache::clear() {
  if (store_) store_->forgive();
  descriptions_.clear();
  Leaving leaving;
  std::vector<Described> described(readers_.size() * std::tuple_size_v<decltype(Reader::described)>);
  const base::Lock lock(mutex_);
  const Exclusive still(*this);
  auto last = described.begin();
  for (Reader& reader : readers_)
    last = std::swap_ranges(reader.described.begin(), reader.described.end(), last);
  std::erase_if(past_, [](const auto& past) { return past.second.why == Gone::failed; });
  for (Queue queue(entries_); !queue.empty();)
    if (const Table::iterator entry = queue.next(); is_idle(entry->second.kept))
      leave(entry, Gone::cleared, leaving);
}

const Cache& of(const ShaderCache& cache) {
  return static_cast<const Cache&>(*cache.provider());  // `ShaderCache::open` is the only one to give it
}

std::shared_ptr<Cache> share(const ShaderCache& cache) {
  return std::static_pointer_cast<Cache>(cache.provider());
}

}  // namespace cache
}  // namespace v0
}  // namespace wye
