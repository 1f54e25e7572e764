#include "cache/table.hpp"

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

#include "device/device.hpp"

namespace wye::inline v0::cache {

namespace {

bool is_idle(const ExecutablePointer& executable) { return executable.use_count() == 1; }

}  // namespace

std::shared_ptr<Entry> Table::entry_of(const Key& key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : found->second;
}

ExecutablePointer Table::find(const Key& key, std::uint64_t program, Removed& removed) {
  const std::shared_ptr<Entry> entry = entry_of(key);
  ExecutablePointer executable = entry ? entry->alive.lock() : nullptr;
  if (!executable) return nullptr;
  use(*entry);
  ++entry->hits;
  if (rises(*entry)) protect(*entry);
  if (!std::exchange(entry->kept, executable)) trim(removed);
  alias(program, key.device) = {program, key.device, entry};
  return executable;
}

void Table::add(std::shared_ptr<Entry> entry, std::uint64_t program, bool corrupt, Removed& removed) {
  count_build(*entry, corrupt);
  if (entry->is_compiled)
    entry->record = history_.add_build(entry->key.digest, *entry->kept, entry->tier, entry->build_time);
  if (const auto previous = entries_.find(entry->key); previous != entries_.end())
    remove(previous, Removal::evicted, removed);  // its users have released it
  absences_.erase(entry->key);
  use(*entry);
  alias(program, entry->key.device) = {program, entry->key.device, entry};
  most_ += *entry;
  devices_.try_emplace(entry->key.device, entry->kept->device());
  entries_.emplace(entry->key, std::move(entry));
  trim(removed);
}

void Table::remove(Entries::iterator place, Removal why, Removed& removed) {
  const std::shared_ptr<Entry> entry = place->second;
  if (entry->kept) removed.push_back(entry->kept);
  entry->kept.reset();
  entries_.erase(place);
  count_hits(*entry);
  if (why == Removal::evicted || why == Removal::reclaimed) emit_eviction(*entry);
  switch (why) {
    case Removal::evicted: ++counted_.evictions; break;
    case Removal::reclaimed: ++counted_.evictions, ++counted_.evictions_reclaimed; break;
    case Removal::cleared: ++counted_.cleared; break;
    case Removal::lost: ++counted_.lost; return;
  }
  try {
    absences_.add(entry->key, why, std::nullopt, clock_.now());
  } catch (const std::bad_alloc&) {  // it is not remembered
  }
}

void Table::emit_eviction(const Entry& entry) const noexcept {
  if (!journal_.wants<base::Evicted>()) return;
  const std::string_view label = entry.label;
  const std::size_t at = label.rfind('@');
  journal_.emit(
      base::Evicted{.name = label.substr(0, at), .device = label.substr(at + 1), .bytes = entry.bytes});
}

template <class F>
void Table::remove_if(F why, Removed& removed) {
  for (auto place = entries_.begin(); place != entries_.end();) {
    const auto next = std::next(place);
    if (const std::optional<Removal> reason = why(*place->second)) remove(place, *reason, removed);
    place = next;
  }
}

std::priority_queue<Table::Candidate> Table::eviction_order() {
  settle();
  std::vector<Candidate> kept;
  for (auto place = entries_.begin(); place != entries_.end(); ++place)
    if (place->second->kept) kept.push_back({order(*place->second), place});
  return std::priority_queue<Candidate>({}, std::move(kept));
}

/// Restores the bounds. Below them it looks at the entries only when their number has doubled or a
/// device was lost, so that the average insertion takes constant time.
void Table::trim(Removed& removed) {
  const bool are_many = entries_.size() >= scan_at_;
  if (!exceeded(most_) && !are_many && !is_any_lost(removed)) return;
  most_ = evict(are_many, removed);
  scan_at_ = std::max<std::size_t>(2 * entries_.size(), kernels_);
}

/// Returns whether an entry may be of a lost device. Forgets devices that were lost or have ended.
bool Table::is_any_lost(Removed& removed) {
  bool result = false;
  for (auto place = devices_.begin(); place != devices_.end();) {
    std::shared_ptr<const device::DeviceBase> device = place->second.lock();
    const bool is_lost = device && device->lost();
    place = is_lost || !device ? devices_.erase(place) : std::next(place);
    result |= is_lost;
    removed.push_back(std::move(device));  // its last owner may have released it meanwhile
  }
  return result;
}

/// Removes entries whose executable has ended, and if `are_many`, idle entries that were not compiled.
/// Then it removes entries until the bounds hold. Idle entries leave first, least recently used
/// first. If that is not enough, the table releases entries in use, in the same order: they are
/// still found, and end with their last user. Returns the size of the live executables.
Table::Size Table::evict(bool are_many, Removed& removed) {
  Size all;
  remove_if(
      [&](const Entry& entry) -> std::optional<Removal> {
        ExecutablePointer alive = entry.alive.lock();
        if (!alive) return Removal::evicted;
        const bool is_lost = alive->device()->lost() != nullptr;
        // If the last user has released it meanwhile, it must not end here, under the lock.
        if (!entry.kept) removed.push_back(std::move(alive));
        if (is_lost) return Removal::lost;
        alive.reset();
        if (are_many && !entry.is_compiled && entry.kept && is_idle(entry.kept)) return Removal::evicted;
        all += entry;
        return std::nullopt;
      },
      removed);
  if (!exceeded(all)) return all;

  Size in_use;
  std::vector<Entry*> users;
  for (auto order = eviction_order(); !order.empty(); order.pop()) {
    const Entries::iterator place = order.top().place;
    Entry& entry = *place->second;
    if (is_idle(entry.kept)) {
      all -= entry;
      remove(place, Removal::evicted, removed);
      if (!exceeded(all)) return all;
    } else {
      users.push_back(&entry);
      in_use += entry;
    }
  }
  for (Entry* const entry : users) {
    if (!exceeded(in_use)) return all;
    removed.push_back(std::move(entry->kept));
    in_use -= *entry;
  }
  return all;
}

/// If the protected segment exceeds 80 % of the room, its least recently used entries leave it, as
/// if they were new.
void Table::protect(Entry& entry) {
  settle();
  entry.is_protected = true;
  std::vector<Entry*> segment;
  Size size;
  for (auto& [key, other] : entries_) {
    if (!other->is_protected || other->alive.expired()) continue;
    segment.push_back(other.get());
    size += *other;
  }
  std::sort(segment.begin(), segment.end(), [](const Entry* a, const Entry* b) { return a->used < b->used; });
  for (Entry* oldest : segment) {
    if (size.kernels <= kernels_ * 4 / 5 && size.bytes.count <= memory_.count / 5 * 4) return;
    oldest->is_protected = false;
    oldest->used = uses_.fetch_add(1, std::memory_order_relaxed) + 1;
    size -= *oldest;
  }
}

Bytes Table::reclaim(std::uint64_t device, Bytes wanted, Removed& removed) {
  Bytes freed;
  for (auto order = eviction_order(); freed < wanted && !order.empty(); order.pop()) {
    const Entries::iterator place = order.top().place;
    if (place->first.device != device || !is_idle(place->second->kept)) continue;
    freed += place->second->bytes;
    remove(place, Removal::reclaimed, removed);
  }
  return freed;
}

void Table::remove_device(std::uint64_t device, Removed& removed) {
  remove_if(
      [&](const Entry& entry) {
        return entry.key.device == device ? std::optional(Removal::lost) : std::nullopt;
      },
      removed);
}

void Table::remove_idle(Removed& removed) {
  remove_if(
      [](const Entry& entry) {
        return entry.kept && is_idle(entry.kept) ? std::optional(Removal::cleared) : std::nullopt;
      },
      removed);
}

void Table::remove(HandleUses& handle) noexcept {
  handles_.erase(&handle);
  settle(handle);
  if (handle.hits.load(std::memory_order_relaxed) == 0 || !rises(*handle.entry)) return;
  try {
    protect(*handle.entry);
  } catch (const std::bad_alloc&) {  // it stays in its segment
  }
}

void Table::settle() noexcept {
  for (HandleUses* const handle : handles_) settle(*handle);
  for (const auto& [key, entry] : entries_) count_hits(*entry);
}

void Table::settle(HandleUses& handle) noexcept {
  Entry& entry = *handle.entry;
  const std::uint64_t hits = handle.hits.load(std::memory_order_relaxed);
  entry.hits += hits - std::exchange(handle.settled, hits);
  entry.used = std::max(entry.used, handle.used.load(std::memory_order_relaxed));
  count_hits(entry);
}

void Table::count_hits(Entry& entry) noexcept {
  const std::uint64_t hits = entry.hits - std::exchange(entry.counted, entry.hits);
  const Duration saved = entry.build_time * hits;
  counted_.hits += hits;
  counted_.saved += saved;
  if (!entry.record) return;
  entry.record->metrics.uses += hits;
  entry.record->metrics.saved += saved;
}

void Table::count_build(const Entry& entry, bool corrupt) {
  if (entry.tier == CacheTier::disk) ++counted_.disk_hits;
  if (entry.tier == CacheTier::bundle) ++counted_.bundle_hits;
  if (entry.tier != CacheTier::built) return;  // a host function is neither built nor missed
  const Absence* absence = absences_.find(entry.key);
  const bool was_built = entry_of(entry.key) || (absence && !absence->failure);
  ++counted_.misses;
  ++(corrupt ? counted_.misses_corrupt : was_built ? counted_.misses_evicted : counted_.misses_first);
  counted_.build_time += entry.build_time;
  BuildCost& cost = costs_[entry.kept->device()->info().id];
  cost.total += entry.build_time;
  ++cost.builds;
}

std::optional<Duration> Table::build_cost(const std::string& device_id) const {
  const auto cost = costs_.find(device_id);
  if (cost == costs_.end()) return std::nullopt;
  return cost->second.total / cost->second.builds;
}

Table::Size Table::size() const {
  Size size;
  for (const auto& [key, entry] : entries_)
    if (!entry->alive.expired()) size += *entry;
  return size;
}

bool Table::is_full() const {
  const Size now = size();
  return now.kernels >= kernels_ || now.bytes >= memory_;
}

CacheMetrics Table::metrics() const {
  CacheMetrics metrics = counted_;
  const auto alive = std::count_if(entries_.begin(), entries_.end(),
                                   [](const auto& place) { return !place.second->alive.expired(); });
  metrics.kernels = static_cast<std::uint32_t>(alive);
  metrics.bytes = size().bytes;
  metrics.evictions += entries_.size() - metrics.kernels;  // these ended with their last user
  return metrics;
}

std::vector<std::string> Table::contents() const {
  std::vector<const Entry*> alive;
  for (const auto& [key, entry] : entries_)
    if (!entry->alive.expired()) alive.push_back(entry.get());
  std::sort(alive.begin(), alive.end(), [](const Entry* a, const Entry* b) { return order(*a) > order(*b); });
  std::vector<std::string> labels;
  for (const Entry* const entry : alive) labels.push_back(entry->label);
  return labels;
}

}  // namespace wye::cache
