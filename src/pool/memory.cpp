// Reserves memory for jobs, frees idle memory, and reports pressure on memory.
#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "base/cancellation.hpp"
#include "base/host_info.hpp"
#include "base/internals.hpp"
#include "base/sizes.hpp"
#include "base/text.hpp"
#include "pool/pool.hpp"

namespace wye::inline v0::pool {
namespace {

/// The driver is asked how much memory is free at most this often, unless memory has run out.
constexpr Duration check_period = std::chrono::milliseconds(100);

using Level = MemoryPressure::Level;

/// Returns the level of pressure if a `part` of a limit is held.
Level level_of(double part) noexcept {
  return part >= 0.95 ? Level::high : part >= 0.8 ? Level::some : Level::none;
}

}  // namespace

std::shared_ptr<silicon::MemoryAccount> Pool::tag_account(std::size_t device,
                                                          std::string_view tag) const noexcept {
  for (std::size_t t = 0; t < options_.tag_memory.size(); ++t)
    if (options_.tag_memory[t].tag == tag) return silicon_[silicon_of_[device]].tags[t];
  return nullptr;
}

std::optional<SizeLimit> Pool::limit_of(std::size_t device, const silicon::MemoryAccount* tag,
                                        const WorkingSet& set) const {
  const auto of_account = [&](const silicon::MemoryAccount& account, Bytes needed) {
    if (account.level() == silicon::AccountLevel::runtime)
      return SizeLimit{.needed = needed,
                       .limit = account.limit(),
                       .of = base::text("budget of this runtime on {}", ids_on(silicon_of_[device]))};
    return SizeLimit{
        .code = account.level() == silicon::AccountLevel::silicon ? Errc::out_of_memory : Errc::over_budget,
        .needed = needed,
        .limit = account.limit(),
        .of = base::text("budget of {} '{}'", name(account.level()), account.owner())};
  };
  if (set.own > options_.lane_memory)
    return SizeLimit{.needed = set.own, .limit = options_.lane_memory, .of = "memory limit of a lane"};
  if (tag && tag->limit() < set.own) return of_account(*tag, set.own);
  if (const auto* account = silicon_[silicon_of_[device]].account->find_smaller(set.all()))
    return of_account(*account, set.all());
  const AdapterInfo& info = infos_[device];
  if (info.memory != Bytes{} && info.memory < set.all())
    return SizeLimit{.code = Errc::out_of_memory,
                     .needed = set.all(),
                     .limit = info.memory,
                     .of = base::text("memory of '{}'", info.name)};
  return std::nullopt;
}

/// Names the devices of a processor, which share its memory: "'cpu:0' and 'vulkan:0'".
std::string Pool::ids_on(std::size_t processor) const {
  std::string ids;
  for (std::size_t d = 0; d < device_count(); ++d)
    if (silicon_of_[d] == processor) ids += base::text("{}'{}'", ids.empty() ? "" : " and ", infos_[d].id);
  return ids;
}

std::optional<std::size_t> Pool::host_device() const noexcept {
  for (std::size_t d = 0; d < device_count(); ++d)
    if (infos_[d].features.has(Feature::host_memory)) return d;
  return std::nullopt;
}

Result<void> Pool::reserve(std::size_t device, const std::shared_ptr<silicon::MemoryAccount>& tag,
                           const WorkingSet& set, Instant now, Reservation& reserved) {
  SharedSilicon& one = silicon_[silicon_of_[device]];
  if (Instant due = one.watch->next_check.load(std::memory_order_relaxed);
      now >= due && one.watch->next_check.compare_exchange_strong(due, now + check_period))
    check_memory(device);
  silicon::MemoryCharge& first = set.own == Bytes{} ? reserved.replicas : reserved.own;
  auto charged = first.fill(*one.account, set.all());
  if (!charged) charged = make_room(device, set.all(), first);
  if (options_.on_pressure) note_memory(device);
  if (!charged || set.own == Bytes{}) return charged;
  if (set.replicas != Bytes{}) reserved.replicas = reserved.own.split(set.replicas);
  if (charged = reserved.own.add_tag(tag); !charged) reserved = {};
  return charged;
}

Result<void> Pool::make_room(std::size_t device, Bytes bytes, silicon::MemoryCharge& charge) {
  Device copy;
  auto charged = base::state_of(this->device(device, copy))
                     ->reserve({.bytes = bytes, .account = silicon_[silicon_of_[device]].account});
  if (!charged) return std::move(charged).error();
  charge = *std::move(charged);
  return {};
}

void Pool::check_memory(std::size_t device) noexcept {
  Device copy;
  device::DeviceBase& asked = *base::state_of(this->device(device, copy));
  try {
    asked.check_memory();
    if (asked.info().type == AdapterType::cpu)
      silicon_[silicon_of_[device]].watch->is_stalled.store(base::memory_stall() >= 0.1,
                                                            std::memory_order_relaxed);
  } catch (const std::bad_alloc&) {  // the limit stays
  }
}

bool Pool::note_shortage(std::size_t device) noexcept {
  shortages_.fetch_add(1, std::memory_order_relaxed);
  silicon::Silicon& silicon = *silicon_[silicon_of_[device]].silicon;
  const bool is_used_here = silicon.slots().note_shortage();
  return is_used_here || silicon.account()->held_elsewhere() != Bytes{};
}

MemoryPressure Pool::pressure_of(const SharedSilicon& one) const noexcept {
  MemoryPressure nearest{.silicon = one.silicon->name(), .limited = {}, .held = {}, .limit = {}};
  double most = -1;
  for (const silicon::MemoryAccount* const account : {one.silicon->account().get(), one.account.get()}) {
    const auto [held, limit, elsewhere] = account->use();
    if (limit == silicon::MemoryAccount::no_limit) continue;
    const double part =
        limit == Bytes{} ? 1.0 : static_cast<double>(held.count) / static_cast<double>(limit.count);
    if (part <= most) continue;
    most = part;
    nearest.limited = name(account->level());
    nearest.held = held;
    nearest.limit = limit;
    nearest.level = level_of(part);
  }
  if (one.watch->is_stalled.load(std::memory_order_relaxed))
    nearest.level = std::max(nearest.level, Level::some);
  return nearest;
}

void Pool::note_memory(std::size_t device) noexcept {
  SharedSilicon& one = silicon_[silicon_of_[device]];
  const MemoryPressure pressure = pressure_of(one);
  if (one.watch->level.exchange(pressure.level, std::memory_order_relaxed) == pressure.level) return;
  const base::CancellationHeld held;
  try {
    options_.on_pressure(pressure);
  } catch (...) {  // of the application
  }
}

Bytes Pool::trim(IdleMemory last) {
  std::vector<std::unique_ptr<device::Lane>> ended;  // destroyed after the lock
  {
    const base::Lock lock = base::lock_soon(mutex_);
    ended = collect_finished();
    trim_locked(clock_->now(), Duration::zero(), no_device, ended);
  }
  ended.clear();
  Bytes freed;
  for (const Device& device : devices()) {
    device::DeviceBase& state = *base::state_of(device);
    if (state.lost()) continue;
    freed += state.reclaim(last, Bytes{~std::uint64_t{0}});
    state.release_spare_memory();
  }
  return freed;
}

Bytes Pool::defragment() {
  Bytes returned;
  for (const Device& device : devices()) returned += base::state_of(device)->defragment();
  return returned;
}

}  // namespace wye::pool
