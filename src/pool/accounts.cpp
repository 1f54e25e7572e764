#include "pool/accounts.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "base/host_info.hpp"
#include "base/internals.hpp"
#include "base/sizes.hpp"
#include "base/text.hpp"

namespace wye::inline v0::pool {
namespace {

/// The driver is asked how much memory is free at most this often, unless memory has run out.
constexpr Duration check_period = std::chrono::milliseconds(100);

using Level = MemoryPressure::Level;

/// Returns the level of pressure if a `part` of a limit is held.
Level level_of(double part) noexcept {
  return part >= 0.95 ? Level::high : part >= 0.8 ? Level::some : Level::none;
}

MemoryShare share_of(const silicon::MemoryAccount::Entry& entry) {
  MemoryShare share{.owner = entry.owner,
                    .level = std::string(name(entry.level)),
                    .held = entry.held,
                    .limit = std::nullopt};
  if (entry.limit != silicon::MemoryAccount::no_limit) share.limit = entry.limit;
  return share;
}

/// Names the devices of a processor, which share its memory: "'cpu:0' and 'vulkan:0'".
std::string ids_on(const Fleet& fleet, std::size_t processor) {
  std::string ids;
  for (std::size_t d = 0; d < fleet.size(); ++d)
    if (fleet.processor_of(d) == processor)
      ids += base::text("{}'{}'", ids.empty() ? "" : " and ", fleet.info(d).id);
  return ids;
}

}  // namespace

Accounts::Accounts(std::shared_ptr<const PoolOptions> options, const Fleet& fleet,
                   std::shared_ptr<base::Journal> journal)
    : options_(std::move(options)), journal_(std::move(journal)), fleet_(fleet), here_(fleet.limit()) {}

Accounts::~Accounts() {
  discard(0);
  for (base::Subscription& sink : sinks_) sink.finish();
}

Result<void> Accounts::subscribe_sinks() {
  if (options_->on_switch) {
    auto sink = journal_->listen<base::ContextSwitched>(
        [on_switch = options_->on_switch](const base::ContextSwitched& event) {
          on_switch({.from = event.from,
                     .to = event.to,
                     .device = event.device,
                     .backend = event.backend,
                     .changes_device = event.changes_device,
                     .changes_backend = event.changes_backend,
                     .thread = event.thread,
                     .duration = event.duration});
        });
    if (!sink) return std::move(sink).error();
    sinks_[0] = *std::move(sink);
  }
  if (options_->on_pressure) {
    auto sink = journal_->listen<base::PressureChanged>(
        [on_pressure = options_->on_pressure](const base::PressureChanged& event) {
          on_pressure({.silicon = event.silicon,
                       .limited = event.limited,
                       .held = event.held,
                       .limit = event.limit,
                       .level = static_cast<MemoryPressure::Level>(event.level)});
        });
    if (!sink) return std::move(sink).error();
    sinks_[1] = *std::move(sink);
  }
  return {};
}

void Accounts::prepare(const std::string& owner) {
  silicon::Silicon& silicon = fleet_.silicon(prepared_);
  auto account = std::make_shared<silicon::MemoryAccount>(
      owner, options_->pool_memory != Bytes{} ? options_->pool_memory : silicon::MemoryAccount::no_limit,
      silicon::AccountLevel::runtime, silicon.account());
  std::vector<std::shared_ptr<silicon::MemoryAccount>> tags;
  for (const TagBudget& budget : options_->tag_memory)
    tags.push_back(
        std::make_shared<silicon::MemoryAccount>(budget.tag, budget.memory, silicon::AccountLevel::tag));
  if (options_->silicon_memory != Bytes{}) silicon.add_budget(options_->silicon_memory);
  Here& here = here_[prepared_++];
  here.account = std::move(account);
  here.tags = std::move(tags);
}

void Accounts::discard(std::size_t from) noexcept {
  while (prepared_ > from) {
    Here& here = here_[--prepared_];
    if (options_->silicon_memory != Bytes{})
      fleet_.silicon(prepared_).remove_budget(options_->silicon_memory);
    here.tags.clear();
    here.account.reset();
  }
}

std::shared_ptr<silicon::MemoryAccount> Accounts::of(const device::DeviceBase& device) const noexcept {
  for (std::size_t p = 0; p < fleet_.processor_count(); ++p)
    if (&fleet_.silicon(p) == device.silicon().get()) return here_[p].account;
  return nullptr;
}

std::shared_ptr<silicon::MemoryAccount> Accounts::of_tag(std::size_t device,
                                                         std::string_view tag) const noexcept {
  for (std::size_t t = 0; t < options_->tag_memory.size(); ++t)
    if (options_->tag_memory[t].tag == tag) return here(device).tags[t];
  return nullptr;
}

std::optional<std::size_t> Accounts::host_device() const noexcept {
  for (std::size_t d = 0; d < fleet_.size(); ++d)
    if (fleet_.info(d).features.has(Feature::host_memory)) return d;
  return std::nullopt;
}

Bytes Accounts::held() const noexcept {
  Bytes all;
  for (std::size_t p = 0; p < fleet_.processor_count(); ++p) all += here_[p].account->held();
  return all;
}

std::vector<MemoryShare> Accounts::shares(std::size_t processor) const {
  std::vector<MemoryShare> list;
  for (const auto& entry : fleet_.silicon(processor).account()->entries()) list.push_back(share_of(entry));
  for (const auto& tag : here_[processor].tags)
    list.push_back(share_of({tag->owner(), tag->level(), tag->held(), tag->limit()}));
  return list;
}

std::optional<SizeLimit> Accounts::limit_of(std::size_t device, const silicon::MemoryAccount* tag,
                                            const WorkingSet& set) const {
  const auto of_account = [&](const silicon::MemoryAccount& account, Bytes needed) {
    if (account.level() == silicon::AccountLevel::runtime)
      return SizeLimit{
          .needed = needed,
          .limit = account.limit(),
          .of = base::text("budget of this runtime on {}", ids_on(fleet_, fleet_.processor_of(device)))};
    return SizeLimit{
        .code = account.level() == silicon::AccountLevel::silicon ? Errc::out_of_memory : Errc::over_budget,
        .needed = needed,
        .limit = account.limit(),
        .of = base::text("budget of {} '{}'", name(account.level()), account.owner())};
  };
  if (set.own > options_->lane_memory)
    return SizeLimit{.needed = set.own, .limit = options_->lane_memory, .of = "memory limit of a lane"};
  if (tag && tag->limit() < set.own) return of_account(*tag, set.own);
  if (const auto* account = of(device)->find_smaller(set.all())) return of_account(*account, set.all());
  const AdapterInfo& info = fleet_.info(device);
  if (info.memory != Bytes{} && info.memory < set.all())
    return SizeLimit{.code = Errc::out_of_memory,
                     .needed = set.all(),
                     .limit = info.memory,
                     .of = base::text("memory of '{}'", info.name)};
  return std::nullopt;
}

Result<void> Accounts::reserve(std::size_t device, const std::shared_ptr<silicon::MemoryAccount>& tag,
                               const WorkingSet& set, Instant now, Reservation& reserved) {
  Here& one = here(device);
  if (Instant due = one.next_check.load(std::memory_order_relaxed);
      now >= due && one.next_check.compare_exchange_strong(due, now + check_period))
    check_memory(device);
  silicon::MemoryCharge& first = set.own == Bytes{} ? reserved.replicas : reserved.own;
  auto charged = first.fill(*one.account, set.all());
  if (!charged) charged = make_room(device, set.all(), first);
  note_pressure(device);
  if (!charged || set.own == Bytes{}) return charged;
  if (set.replicas != Bytes{}) reserved.replicas = reserved.own.split(set.replicas);
  if (charged = reserved.own.add_tag(tag); !charged) reserved = {};
  return charged;
}

Result<void> Accounts::make_room(std::size_t device, Bytes bytes, silicon::MemoryCharge& charge) {
  Device copy;
  auto charged =
      base::state_of(fleet_.device(device, copy))->reserve({.bytes = bytes, .account = of(device)});
  if (!charged) return std::move(charged).error();
  charge = *std::move(charged);
  return {};
}

void Accounts::check_memory(std::size_t device) noexcept {
  Device copy;
  device::DeviceBase& asked = *base::state_of(fleet_.device(device, copy));
  try {
    asked.check_memory();
    if (asked.info().type == AdapterType::cpu)
      here(device).is_stalled.store(base::memory_stall() >= 0.1, std::memory_order_relaxed);
  } catch (const std::bad_alloc&) {  // the limit stays
  }
}

bool Accounts::note_shortage(std::size_t device) noexcept {
  shortages_.fetch_add(1, std::memory_order_relaxed);
  silicon::Silicon& silicon = fleet_.silicon(fleet_.processor_of(device));
  const bool is_used_here = silicon.slots().note_shortage();
  return is_used_here || silicon.account()->held_elsewhere() != Bytes{};
}

MemoryPressure Accounts::pressure_on(std::size_t processor) const noexcept {
  const silicon::Silicon& silicon = fleet_.silicon(processor);
  const Here& here = here_[processor];
  MemoryPressure nearest{.silicon = silicon.name(), .limited = {}, .held = {}, .limit = {}};
  double most = -1;
  for (const silicon::MemoryAccount* const account : {silicon.account().get(), here.account.get()}) {
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
  if (here.is_stalled.load(std::memory_order_relaxed)) nearest.level = std::max(nearest.level, Level::some);
  return nearest;
}

void Accounts::note_pressure(const device::DeviceBase& device) noexcept {
  if (!journal_->wants<base::PressureChanged>()) return;
  if (const auto d = fleet_.find(device.ref())) report_pressure(*d);
}

void Accounts::note_eviction(const device::DeviceBase& device, Bytes bytes) noexcept {
  evictions_.fetch_add(1, std::memory_order_relaxed);
  if (journal_->wants<base::Evicted>())
    journal_->emit(base::Evicted{.name = "array", .device = device.info().id, .bytes = bytes});
}

void Accounts::report_pressure(std::size_t device) noexcept {
  const MemoryPressure pressure = pressure_on(fleet_.processor_of(device));
  if (here(device).level.exchange(pressure.level, std::memory_order_relaxed) == pressure.level) return;
  journal_->emit(base::PressureChanged{.silicon = pressure.silicon,
                                       .limited = pressure.limited,
                                       .held = pressure.held,
                                       .limit = pressure.limit,
                                       .level = static_cast<std::uint8_t>(pressure.level)});
}

}  // namespace wye::pool
