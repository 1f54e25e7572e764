#include "cache/table.hpp"
#include "device/device.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

namespace wye {
inline namespace v0 {
namespace cache {

namespace {

bool is_idle(const ExecutablePointer& executable) { return executable.use_count() == 1; }

}  // namespace

std::size_t KeyHash::operator()(const Key& key) const noexcept {
  std::uint64_t bits = 0;  // any part of a digest is uniform
  std::memcpy(&bits, key.digest.bytes.data(), sizeof(bits));
  return static_cast<std::size_t>(bits ^ key.device * 0x9E3779B97F4A7C15u);
}

/// The kept entries, the first to be evicted first. A heap, because most callers need few of them.
class Table::EvictionOrder {
 public:
  explicit EvictionOrder(Entries& entries) {
    for (auto entry = entries.begin(); entry != entries.end(); ++entry)
      if (const Entry& e = *entry->second; e.kept) heap_.push_back({{e.is_protected, e.used}, entry});
    std::make_heap(heap_.begin(), heap_.end(), is_later);
  }
  bool empty() const noexcept { return heap_.empty(); }
  Entries::iterator next() {
    std::pop_heap(heap_.begin(), heap_.end(), is_later);
    const Entries::iterator entry = heap_.back().entry;
    heap_.pop_back();
    return entry;
  }

 private:
  struct Place {
    std::pair<bool, std::uint64_t> order;
    Entries::iterator entry;
  };
  static bool is_later(const Place& a, const Place& b) noexcept { return a.order > b.order; }
  std::vector<Place> heap_;
};

std::shared_ptr<Entry> Table::find(const Key& key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : found->second;
}

void Table::insert(std::shared_ptr<Entry> entry, RemovedList& removed) {
  if (const auto previous = entries_.find(entry->key); previous != entries_.end())
    remove(previous, Removal::evicted, removed);  // its users have released it
  use(*entry);
  entries_.emplace(entry->key, entry);
  trim(removed);
}

void Table::keep(Entry& entry, ExecutablePointer executable, RemovedList& removed) {
  entry.kept = std::move(executable);
  trim(removed);
}

void Table::remove(Entries::iterator place, Removal why, RemovedList& removed) {
  removed.entries.emplace_back(place->second, why);
  if (place->second->kept) removed.executables.push_back(std::move(place->second->kept));
  entries_.erase(place);
}

/// Restores the bounds. Idle entries leave first, least recently used first. If that is not enough, the table releases
/// entries in use, in the same order: they are still found, and end with their last user.
void Table::trim(RemovedList& removed) {
  std::uint64_t kernels = 0;
  Bytes bytes;
  for (auto place = entries_.begin(); place != entries_.end();) {
    const auto next = std::next(place);
    const std::shared_ptr<Entry> entry = place->second;
    ExecutablePointer alive = entry->alive.lock();
    const bool was_kept = entry->kept != nullptr;
    if (alive && !alive->device()->lost()) {
      ++kernels;
      bytes += entry->bytes;
    } else {
      remove(place, alive ? Removal::lost : Removal::evicted, removed);
    }
    // If the last user has released it meanwhile, it must not end here, under the mutex.
    if (alive && !was_kept) removed.executables.push_back(std::move(alive));
    place = next;
  }
  if (!exceeded(kernels, bytes)) return;

  std::vector<Entries::iterator> in_use;
  std::uint64_t kept_kernels = 0;
  Bytes kept_bytes;
  for (EvictionOrder order(entries_); !order.empty();) {
    const Entries::iterator place = order.next();
    const Bytes size = place->second->bytes;
    if (!is_idle(place->second->kept)) {
      in_use.push_back(place);
      ++kept_kernels;
      kept_bytes += size;
      continue;
    }
    remove(place, Removal::evicted, removed);
    --kernels;
    bytes -= size;
    if (!exceeded(kernels, bytes)) return;
  }
  for (const Entries::iterator place : in_use) {
    if (!exceeded(kept_kernels, kept_bytes)) return;
    removed.executables.push_back(std::move(place->second->kept));
    --kept_kernels;
    kept_bytes -= place->second->bytes;
  }
}

/// If the protected segment exceeds 80 % of the room, its least recently used entries leave it, as if they were new.
void Table::protect(Entry& entry) {
  entry.is_protected = true;
  std::vector<Entry*> protected_entries;
  std::uint64_t kernels = 0;
  Bytes bytes;
  for (auto& [key, other] : entries_) {
    if (!other->is_protected || other->alive.expired()) continue;
    protected_entries.push_back(other.get());
    ++kernels;
    bytes += other->bytes;
  }
  std::sort(protected_entries.begin(), protected_entries.end(),
            [](const Entry* a, const Entry* b) { return a->used < b->used; });
  for (Entry* oldest : protected_entries) {
    if (kernels <= kernels_ * 4 / 5 && bytes.count <= memory_.count / 5 * 4) return;
    oldest->is_protected = false;
    oldest->used = uses_.fetch_add(1, std::memory_order_relaxed) + 1;
    --kernels;
    bytes -= oldest->bytes;
  }
}

Bytes Table::reclaim(std::uint64_t device, Bytes wanted, RemovedList& removed) {
  Bytes freed;
  for (EvictionOrder order(entries_); freed < wanted && !order.empty();) {
    const Entries::iterator place = order.next();
    if (place->first.device != device || !is_idle(place->second->kept)) continue;
    freed += place->second->bytes;
    remove(place, Removal::reclaimed, removed);
  }
  return freed;
}

void Table::remove_device(std::uint64_t device, RemovedList& removed) {
  for (auto place = entries_.begin(); place != entries_.end();) {
    const auto next = std::next(place);
    if (place->first.device == device) remove(place, Removal::lost, removed);
    place = next;
  }
}

void Table::remove_idle(RemovedList& removed) {
  for (auto place = entries_.begin(); place != entries_.end();) {
    const auto next = std::next(place);
    if (place->second->kept && is_idle(place->second->kept)) remove(place, Removal::cleared, removed);
    place = next;
  }
}

bool Table::is_full() const {
  std::uint64_t kernels = 0;
  Bytes bytes;
  each([&](const Entry& entry, bool is_alive) {
    if (is_alive) ++kernels, bytes += entry.bytes;
  });
  return kernels >= kernels_ || bytes >= memory_;
}

}  // namespace cache
}  // namespace v0
}  // namespace wye
