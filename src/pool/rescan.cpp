// Adds devices to a pool: those of `open`, and devices that appear later.
#include <algorithm>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/host_info.hpp"
#include "base/internals.hpp"
#include "base/text.hpp"
#include "pool/discovery.hpp"
#include "pool/pool.hpp"

namespace wye::inline v0::pool {
namespace {

/// Returns whether an adapter that was found is that of `known`. If they have no UUID, `id` is the
/// id that its backend gave it.
bool is_same(const AdapterInfo& found, const AdapterInfo& known, std::string_view id) noexcept {
  if (found.backend != known.backend) return false;
  return found.device_uuid == Uuid{} && known.device_uuid == Uuid{} ? found.id == id
                                                                    : found.device_uuid == known.device_uuid;
}

/// Returns the index of the adapter that an entry of the list of adapters describes, preferably
/// with the same id.
std::optional<std::size_t> find_again(const std::vector<device::Discovered>& found,
                                      const AdapterInfo& entry) {
  std::optional<std::size_t> best;
  for (std::size_t f = 0; f < found.size(); ++f)
    if (is_same(found[f].info, entry, entry.id) && (!best || found[f].info.id == entry.id)) best = f;
  return best;
}

/// Returns the id that an adapter was found with, or the next free id of its backend.
std::string free_id(const AdapterInfo& info, const std::vector<AdapterInfo>& list) {
  std::string id = info.id;
  const auto has_id = [&](const AdapterInfo& entry) { return entry.id == id; };
  for (std::size_t number = 0; std::any_of(list.begin(), list.end(), has_id); ++number)
    id = base::text("{}:{}", info.backend, number);
  return id;
}

bool are_equal(const std::vector<AdapterInfo>& a, const std::vector<AdapterInfo>& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [](const AdapterInfo& left, const AdapterInfo& right) {
        return left.id == right.id && left.usable == right.usable && left.reason == right.reason;
      });
}

}  // namespace

class Pool::Turn {
 public:
  /// Waits until no other call of `rescan` runs. `lock` is that of the pool.
  Turn(Pool& pool, base::Lock& lock) : pool_(pool) {
    pool.rescanned_.wait(lock, Instant::max(), [&] { return !pool.is_rescanning_; });
    pool.is_rescanning_ = true;
  }
  Turn(const Turn&) = delete;
  ~Turn() {
    pool_.discard_prepared(pool_.device_count());
    const base::Lock lock = base::lock_soon(pool_.mutex_);
    pool_.is_rescanning_ = false;
    pool_.rescanned_.wake_all();
  }

 private:
  Pool& pool_;
};

Result<void> Pool::share_processor(const device::DeviceBase& device, const PoolOptions& options) {
  if (options.share != Share::machine) return {};
  if (auto shared = device.silicon()->share(options.share_folder); !shared)
    return std::move(shared).error().with_context(
        base::text("while sharing the processor of '{}' with other processes", device.info().id));
  return {};
}

void Pool::prepare_silicon(const device::DeviceBase& device, std::size_t processors) {
  SharedSilicon& one = silicon_[prepared_silicon_];
  one.silicon = device.silicon();
  one.account = std::make_shared<silicon::MemoryAccount>(
      device.info().id,
      options_.pool_memory != Bytes{} ? options_.pool_memory : silicon::MemoryAccount::no_limit,
      silicon::AccountLevel::runtime, device.silicon()->account());
  for (const TagBudget& budget : options_.tag_memory)
    one.tags.push_back(
        std::make_shared<silicon::MemoryAccount>(budget.tag, budget.memory, silicon::AccountLevel::tag));
  silicon::Slots::Wish wish{.limit = options_.slots,
                            .at_least = options_.lanes_per_device,
                            .follows_load = options_.slot_rule == SlotRule::load};
  if (options_.slot_rule == SlotRule::host_share)
    wish.limit = std::max(1u, base::usable_processors() / static_cast<unsigned>(processors));
  if (options_.silicon_memory != Bytes{}) one.silicon->add_budget(options_.silicon_memory);
  try {
    one.slots = one.silicon->slots().join(*this, wish);
  } catch (const std::bad_alloc&) {
    if (options_.silicon_memory != Bytes{}) one.silicon->remove_budget(options_.silicon_memory);
    throw;
  }
}

void Pool::leave_slots(SharedSilicon& one) noexcept {
  one.slots->leave();
  if (options_.silicon_memory != Bytes{}) one.silicon->remove_budget(options_.silicon_memory);
}

void Pool::end_silicon(SharedSilicon& one) noexcept {
  if (one.slots) leave_slots(one);
  one.tags.clear();
  one.slots.reset();
  one.account.reset();
  one.silicon.reset();
}

void Pool::make_contexts(std::size_t device, const std::shared_ptr<silicon::MemoryAccount>& account) {
  for (std::uint32_t lane = 0; lane < options_.lanes_per_device; ++lane) {
    auto context = std::make_unique<Context>(*this);
    context->id = base::text("{}#{}", infos_[device].id, lane);
    context->device = device;
    context->slot.context = context->id;
    context->slot.clock = clock_;
    context->account = std::make_shared<silicon::MemoryAccount>(context->id, options_.lane_memory,
                                                                silicon::AccountLevel::context, account);
    contexts_[device].push_back(std::move(context));
  }
  copying_[device] = std::make_unique<Context>(*this);
  copying_[device]->id = base::text("{}#copies", infos_[device].id);
  copying_[device]->device = device;
  copying_[device]->is_for_copies = true;
}

void Pool::prepare_device(std::shared_ptr<device::DeviceBase> device,
                          std::shared_ptr<device::Adapter> adapter, std::string found_as,
                          std::size_t processors) {
  const std::size_t d = prepared_;
  device::DeviceBase& opened = *device;
  const std::size_t processors_before = prepared_silicon_;
  try {
    infos_[d] = opened.info();
    found_as_[d] = std::move(found_as);
    is_replaceable_[d] = adapter != nullptr;
    reopened_by_[d] = std::move(adapter);
    refs_[d].store(opened.ref().generation, std::memory_order_relaxed);
    devices_[d] = Device(std::move(device));
    const auto same_order = std::find_if(
        infos_.begin(), infos_.begin() + static_cast<std::ptrdiff_t>(d), [&](const AdapterInfo& other) {
          return other.backend == infos_[d].backend && other.type == infos_[d].type;
        });
    order_[d] = static_cast<std::size_t>(same_order - infos_.begin());
    std::size_t s = 0;
    while (s < prepared_silicon_ && silicon_[s].silicon != opened.silicon()) ++s;
    silicon_of_[d] = s;
    if (s == prepared_silicon_) {
      prepare_silicon(opened, std::max(processors, s + 1));
      ++prepared_silicon_;
    }
    make_contexts(d, silicon_[s].account);
    opened.add_reclaimable(weak_from_this());
    ++prepared_;
    open_ahead(d);
  } catch (const std::bad_alloc&) {
    prepared_ = d + 1;
    if (prepared_silicon_ == processors_before) end_silicon(silicon_[prepared_silicon_]);
    discard_prepared(d);
    throw;
  }
}

void Pool::discard_prepared(std::size_t from) noexcept {
  while (prepared_ > from) {
    const std::size_t d = --prepared_;
    contexts_[d].clear();
    copying_[d].reset();
    const base::Lock lock = lock_devices();
    devices_[d] = {};
    reopened_by_[d].reset();
    refs_[d].store(0, std::memory_order_relaxed);
  }
  const auto is_used = [&](std::size_t s) {
    return std::find(silicon_of_.begin(), silicon_of_.begin() + static_cast<std::ptrdiff_t>(prepared_), s) !=
           silicon_of_.begin() + static_cast<std::ptrdiff_t>(prepared_);
  };
  while (prepared_silicon_ > 0 && !is_used(prepared_silicon_ - 1)) end_silicon(silicon_[--prepared_silicon_]);
}

void Pool::publish_prepared_locked() noexcept {
  silicon_count_.store(prepared_silicon_, std::memory_order_release);
  count_.store(prepared_, std::memory_order_release);
}

std::size_t Pool::place_of(const AdapterInfo& info) const {
  std::vector<std::string_view> order(options_.backends.begin(), options_.backends.end());
  if (order.empty()) order = device::backend_order(device::BackendKind::gpu);
  if (is_adopted(info)) return 0;
  const auto place =
      static_cast<std::size_t>(std::find(order.begin(), order.end(), info.backend) - order.begin());
  return 1 + place + (device::is_emulated(info) ? order.size() + 1 : 0);
}

void Pool::rank_prepared_locked(const std::vector<std::size_t>& places) noexcept {
  for (std::size_t d = device_count(); d < prepared_; ++d) {
    std::size_t rank = d;
    for (std::size_t other = 0; other < d; ++other)
      if (places[other] > places[d]) rank = std::min(rank, rank_[other]);
    for (std::size_t other = 0; other < d; ++other)
      if (rank_[other] >= rank) ++rank_[other];
    rank_[d] = rank;
  }
}

void Pool::offer_locked(std::size_t device) noexcept {
  bool any = false;
  for (Waiter* const waiter : waiters_) {
    if (!is_candidate(device, waiter->wanted)) continue;
    waiter->lacks_slot = true;  // `serve_locked` then looks for an idle context, and for its slot
    any = true;
  }
  if (any) serve_locked(nullptr);
}

bool Pool::is_adapter_of(const AdapterInfo& found, std::size_t device) const noexcept {
  return is_same(found, infos_[device], found_as_[device]);
}

void Pool::retry_lost(const std::vector<device::Discovered>& found, std::vector<AdapterInfo>& usable) {
  for (std::size_t d = 0; d < device_count(); ++d) {
    std::shared_ptr<device::Adapter> adapter;
    for (const device::Discovered& one : found)
      if (one.adapter && one.adapter->can_reopen() && is_adapter_of(one.info, d) &&
          (!adapter || one.info.id == found_as_[d]))
        adapter = one.adapter;
    {
      base::Lock lock = base::lock_soon(mutex_);
      Health& health = health_[d];
      note_loss_locked(d);
      probed_.wait(lock, Instant::max(), [&] { return health.state != DeviceHealth::probing; });
      const bool returns = health.state == DeviceHealth::dead && is_replaceable_[d] && adapter;
      if (closed_ || (health.state != DeviceHealth::quarantined && !returns)) continue;
      if (adapter) reopened_by_[d].swap(adapter);
      if (returns) health.failures = 0;
      health.state = DeviceHealth::probing;
    }
    probe_again(d);
    const base::Lock lock = base::lock_soon(mutex_);
    if (health_[d].state == DeviceHealth::healthy) usable.push_back(infos_[d]);
  }
}

Result<std::vector<AdapterInfo>> Pool::rescan() {
  if (const Error* inherited = origin_.error()) return *inherited;
  const Error closed(Errc::closed, "The context pool is closed.");
  std::optional<Turn> turn;
  {
    base::Lock lock = base::lock_soon(mutex_);
    turn.emplace(*this, lock);
    if (closed_) {
      lock.unlock();
      return closed;
    }
  }
  std::vector<device::Discovered> found;
  if (discover_) {
    auto discovered = discover_();
    if (!discovered) return std::move(discovered).error();
    found = *std::move(discovered);
  }
  std::vector<AdapterInfo> usable;
  usable.reserve(device_limit_);
  retry_lost(found, usable);
  if (!discover_) return usable;

  // Entries of open devices stay, and so do those of adapters that an open device replaces. Others
  // are tried again.
  std::vector<AdapterInfo> list;
  std::vector<std::optional<std::size_t>> places(found.size());  // in `list`; nothing: it is not opened
  std::vector<std::uint8_t> is_listed(found.size());
  const std::size_t before = device_count();
  const auto is_open = [&](const AdapterInfo& info) {
    for (std::size_t d = 0; d < before; ++d)
      if (is_adapter_of(info, d)) return true;
    return false;
  };
  for (const AdapterInfo& entry : adapters()) {
    const auto again = entry.usable ? std::nullopt : find_again(found, entry);
    if (!entry.usable && (!again || is_listed[*again])) continue;
    if (again) {
      is_listed[*again] = true;
      if (!is_open(found[*again].info)) places[*again] = list.size();
    }
    list.push_back(entry);
  }
  for (std::size_t f = 0; f < found.size(); ++f) {
    if (is_listed[f] || is_open(found[f].info)) continue;
    places[f] = list.size();
    std::string id = free_id(found[f].info, list);
    list.push_back(found[f].info);
    list.back().id = std::move(id);
  }

  std::optional<Error> full;
  for (std::size_t f = 0; f < found.size(); ++f) {
    if (!places[f]) continue;
    AdapterInfo& entry = list[*places[f]];
    std::string id = std::exchange(entry, found[f].info).id;
    entry.id = id;
    if (!found[f].adapter) continue;
    if (prepared_ == device_limit_) {
      full = Error(
          Errc::over_budget,
          base::text("Device '{}' exceeds the number of devices of this pool ({}).", id, device_limit_));
      refuse(entry, *full);
      continue;
    }
    auto opened = open_adapter(*found[f].adapter, id, qualifier_.get());
    if (opened)
      if (auto shared = share_processor(**opened, options_); !shared) opened = std::move(shared).error();
    note_opened(entry, opened);
    if (!opened) continue;
    usable.push_back(entry);
    prepare_device(*std::move(opened), found[f].adapter->can_reopen() ? found[f].adapter : nullptr,
                   found[f].info.id, 0);
  }

  std::vector<std::size_t> order(prepared_);
  for (std::size_t d = 0; d < prepared_; ++d) order[d] = place_of(infos_[d]);
  // A list may be in use until the pool ends. One with the same contents is used again.
  auto shown = std::find_if(lists_.begin(), lists_.end(),
                            [&](const auto& earlier) { return are_equal(*earlier, list); });
  if (shown == lists_.end()) {
    lists_.reserve(lists_.size() + 1);
    lists_.push_back(std::make_unique<const std::vector<AdapterInfo>>(std::move(list)));
    shown = lists_.end() - 1;
  }
  {
    base::Lock lock = base::lock_soon(mutex_);
    if (closed_) {
      lock.unlock();
      return closed;
    }
    rank_prepared_locked(order);
    publish_prepared_locked();
    adapters_.store(shown->get(), std::memory_order_release);
    for (std::size_t d = before; d < prepared_; ++d) offer_locked(d);
  }
  for (const SharedSilicon& one : processors())
    one.slots->serve();  // a slot that no request has waited for may be free
  if (full) return *std::move(full);
  return usable;
}

}  // namespace wye::pool
