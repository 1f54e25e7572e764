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

/// Returns the index of the adapter that an entry of the list of adapters describes, preferably
/// with the same id.
std::optional<std::size_t> find_again(const std::vector<device::Discovered>& found,
                                      const AdapterInfo& entry) {
  std::optional<std::size_t> best;
  for (std::size_t f = 0; f < found.size(); ++f)
    if (is_same_adapter(found[f].info, entry, entry.id) && (!best || found[f].info.id == entry.id)) best = f;
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

/// Returns whether an adapter that was found is that of a device of the fleet.
bool is_adapter_of(const Fleet& fleet, const AdapterInfo& found, std::size_t device) noexcept {
  return is_same_adapter(found, fleet.info(device), fleet.found_as(device));
}

}  // namespace

/// The adapters after a discovery.
struct Pool::Listing {
  std::vector<AdapterInfo> entries;
  /// For each adapter that was found its index in `entries`; nothing: it is not opened.
  std::vector<std::optional<std::size_t>> places;
};

/// Lists the adapters that were found. Entries of open devices stay, and so do those of adapters that
/// an open device replaces. Others are tried again.
Pool::Listing Pool::list_found(const std::vector<device::Discovered>& found) const {
  Listing listing{.entries = {}, .places = std::vector<std::optional<std::size_t>>(found.size())};
  std::vector<AdapterInfo>& list = listing.entries;
  std::vector<std::uint8_t> is_listed(found.size());
  const auto is_open = [&](const AdapterInfo& info) {
    for (std::size_t d = 0; d < fleet_->size(); ++d)
      if (is_adapter_of(*fleet_, info, d)) return true;
    return false;
  };
  for (const AdapterInfo& entry : adapters()) {
    const auto again = entry.usable ? std::nullopt : find_again(found, entry);
    if (!entry.usable && (!again || is_listed[*again])) continue;
    if (again) {
      is_listed[*again] = true;
      if (!is_open(found[*again].info)) listing.places[*again] = list.size();
    }
    list.push_back(entry);
  }
  for (std::size_t f = 0; f < found.size(); ++f) {
    if (is_listed[f] || is_open(found[f].info)) continue;
    listing.places[f] = list.size();
    std::string id = free_id(found[f].info, list);
    list.push_back(found[f].info);
    list.back().id = std::move(id);
  }
  return listing;
}

class Pool::Turn {
 public:
  /// Waits until no other call of `rescan` runs. `lock` is that of the pool.
  Turn(Pool& pool, base::Lock& lock) : pool_(pool) {
    pool.rescanned_.wait(lock, Instant::max(), [&] { return !pool.is_rescanning_; });
    pool.is_rescanning_ = true;
  }
  Turn(const Turn&) = delete;
  ~Turn() {
    pool_.discard_prepared(pool_.fleet_->size());
    const base::Lock lock = base::lock_soon(pool_.mutex_);
    pool_.is_rescanning_ = false;
    pool_.rescanned_.wake_all();
  }

 private:
  Pool& pool_;
};

/// Shares the processor of a device with other processes, if the options say so
/// (`Share::machine`).
Result<void> Pool::share_processor(const device::DeviceBase& device, const PoolOptions& options) {
  if (options.share != Share::machine) return {};
  if (auto shared = device.silicon()->share(options.share_folder); !shared)
    return std::move(shared).error().with_context(
        base::text("while sharing the processor of '{}' with other processes", device.info().id));
  return {};
}

/// Prepares a device in the fleet, the accounts and the leases. Other threads do not see it before
/// `Leases::publish`. `adapter` opens it again, if it can; `found_as` is the id that its backend gives
/// it; the pool has `processors` processors. Throws: std::bad_alloc; then it is not prepared.
void Pool::prepare_device(std::shared_ptr<device::DeviceBase> device,
                          std::shared_ptr<device::Adapter> adapter, std::string found_as,
                          std::size_t processors) {
  const std::size_t before = fleet_->prepared();
  try {
    const std::size_t d = fleet_->prepare(std::move(device), std::move(adapter), std::move(found_as));
    if (accounts_->prepared() < fleet_->processors_of(fleet_->prepared()))
      accounts_->prepare(fleet_->info(d).id);
    leases_->prepare(d, processors);
  } catch (const std::bad_alloc&) {
    discard_prepared(before);
    throw;
  }
}

/// Removes the device `from` and all later ones, which are prepared and not published.
void Pool::discard_prepared(std::size_t from) noexcept {
  const std::size_t processors = fleet_->processors_of(from);
  leases_->discard(from, processors);
  accounts_->discard(processors);
  fleet_->discard(from);
}

/// Returns the place of a device in the order of preference. Equal for devices of one backend.
std::size_t Pool::place_of(const AdapterInfo& info) const {
  std::vector<std::string_view> order(options_->backends.begin(), options_->backends.end());
  if (order.empty()) order = device::backend_order(device::BackendKind::gpu);
  if (is_adopted(info)) return 0;
  const auto place =
      static_cast<std::size_t>(std::find(order.begin(), order.end(), info.backend) - order.begin());
  return 1 + place + (device::is_emulated(info) ? order.size() + 1 : 0);
}

/// Opens lost devices again, through the adapters that were found. Adds them to `usable`.
void Pool::retry_lost(const std::vector<device::Discovered>& found, std::vector<AdapterInfo>& usable) {
  for (std::size_t d = 0; d < fleet_->size(); ++d) {
    std::shared_ptr<device::Adapter> adapter;
    for (const device::Discovered& one : found)
      if (one.adapter && one.adapter->can_reopen() && is_adapter_of(*fleet_, one.info, d) &&
          (!adapter || one.info.id == fleet_->found_as(d)))
        adapter = one.adapter;
    if (leases_->is_closed() || !fleet_->begin_probe_with(d, std::move(adapter))) continue;
    recover(d);
    if (fleet_->state_of(d).health == DeviceHealth::healthy) usable.push_back(fleet_->info(d));
  }
}

/// Opens the devices of a listing, and prepares them. Adds them to `usable`.
/// Errors:  over_budget (there is no room for all).
Result<void> Pool::open_found(const std::vector<device::Discovered>& found, Listing& listing,
                              std::vector<AdapterInfo>& usable) {
  Result<void> all;
  for (std::size_t f = 0; f < found.size(); ++f) {
    if (!listing.places[f]) continue;
    AdapterInfo& entry = listing.entries[*listing.places[f]];
    std::string id = std::exchange(entry, found[f].info).id;
    entry.id = id;
    if (!found[f].adapter) continue;
    if (fleet_->prepared() == fleet_->limit()) {
      all = Error(
          Errc::over_budget,
          base::text("Device '{}' exceeds the number of devices of this pool ({}).", id, fleet_->limit()));
      refuse(entry, all.error());
      continue;
    }
    auto opened = open_adapter(*found[f].adapter, id, fleet_->qualifier());
    if (opened)
      if (auto shared = share_processor(**opened, *options_); !shared) opened = std::move(shared).error();
    note_opened(entry, opened);
    if (!opened) continue;
    usable.push_back(entry);
    prepare_device(*std::move(opened), found[f].adapter->can_reopen() ? found[f].adapter : nullptr,
                   found[f].info.id, 0);
  }
  return all;
}

Result<std::vector<AdapterInfo>> Pool::rescan() {
  if (const Error* inherited = origin().error()) return *inherited;
  const Error closed(Errc::closed, "The context pool is closed.");
  std::optional<Turn> turn;
  {
    base::Lock lock = base::lock_soon(mutex_);
    turn.emplace(*this, lock);
  }
  if (leases_->is_closed()) return closed;
  std::vector<device::Discovered> found;
  if (discover_) {
    auto discovered = discover_();
    if (!discovered) return std::move(discovered).error();
    found = *std::move(discovered);
  }
  std::vector<AdapterInfo> usable;
  usable.reserve(fleet_->limit());
  retry_lost(found, usable);
  if (!discover_) return usable;

  Listing listing = list_found(found);
  const auto all_opened = open_found(found, listing, usable);
  std::vector<std::size_t> order(fleet_->prepared());
  for (std::size_t d = 0; d < order.size(); ++d) order[d] = place_of(fleet_->info(d));
  // A list may be in use until the pool ends. One with the same contents is used again.
  auto shown = std::find_if(lists_.begin(), lists_.end(),
                            [&](const auto& earlier) { return are_equal(*earlier, listing.entries); });
  if (shown == lists_.end()) {
    lists_.reserve(lists_.size() + 1);
    lists_.push_back(std::make_unique<const std::vector<AdapterInfo>>(std::move(listing.entries)));
    shown = lists_.end() - 1;
  }
  if (!leases_->publish(order)) return closed;
  adapters_.store(shown->get(), std::memory_order_release);
  if (!all_opened) return all_opened.error();
  return usable;
}

}  // namespace wye::pool
