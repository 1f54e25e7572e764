#include "device/device.hpp"

#include <algorithm>
#include <exception>
#include <new>
#include <tuple>
#include <utility>

#include "base/text.hpp"
#include "device/backend.hpp"
#include "device/pending_signals.hpp"
#include "device/processor.hpp"
#include "device/stamps.hpp"
#include "silicon/memory_account.hpp"

namespace wye::inline v0::device {

namespace {

std::uint64_t next_generation() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

DeviceBase::~DeviceBase() = default;

DeviceBase::DeviceBase(AdapterInfo info)
    : info_(std::move(info)),
      no_memory_(Errc::out_of_memory,
                 base::text("The host has no memory left to describe a buffer of '{}'.", info_.id)),
      silicon_(silicon_of(info_)),
      generation_(next_generation()) {}

template <class F>
auto DeviceBase::with_room(const BufferRequest& request, F attempt) -> decltype(attempt()) {
  const auto lacks_room = [](const auto& result) { return !result && silicon::is_shortage(result.error()); };
  const std::uint64_t defragmented = defragmented_.load(std::memory_order_relaxed);
  auto result = attempt();
  if (!lacks_room(result)) return result;
  if (silicon_->account()->find_full(
          request.bytes)) {  // other programs may have freed memory since it was asked
    check_memory();
    if (result = attempt(); !lacks_room(result)) return result;
  }
  // Reclaimed memory does not help against a limit of the owner itself, or if the size never fits.
  if (request.account)
    if (const MemoryAccount* full = request.account->find_full(request.bytes))
      if (full->level() > silicon::AccountLevel::runtime || full->limit() < request.bytes) return result;
  if (request.tag && request.tag->find_full(request.bytes)) return result;
  if (reclaim(IdleMemory::replicas, request.bytes) != Bytes{}) result = attempt();
  // A move changes nothing about a limit that is counted.
  if (lacks_room(result) && !silicon_->account()->find_full(request.bytes)) {
    defragment();
    if (defragmented_.load(std::memory_order_relaxed) != defragmented) result = attempt();
  }
  if (lacks_room(result)) return with_holders(result.error());
  return result;
}

Result<std::shared_ptr<BufferBase>> DeviceBase::allocate(const BufferRequest& request) try {
  if (request.bytes > info_.limits.buffer) return create_buffer(request);
  return with_room(request, [&] { return create_buffer(request); });
} catch (const std::bad_alloc&) {
  return no_memory_;
}

Result<MemoryCharge> DeviceBase::reserve(const BufferRequest& request) try {
  return with_room(request, [&] { return charge(request); });
} catch (const std::bad_alloc&) {
  return no_memory_;
}

void DeviceBase::check_memory() {
  if (const MemoryInfo memory = this->memory(); memory.total != Bytes{})
    silicon_->note_available(memory.available);
}

std::vector<std::weak_ptr<Reclaimable>> DeviceBase::reclaimables() {
  const std::lock_guard lock(reclaim_mutex_);
  return reclaimables_;
}

Bytes DeviceBase::reclaim(IdleMemory last, Bytes wanted) {
  const auto reclaimables = this->reclaimables();
  std::vector<std::tuple<IdleMemory, std::uint64_t, std::size_t>> in_order;
  for (std::size_t i = 0; i < reclaimables.size(); ++i)
    if (const auto owner = reclaimables[i].lock(); owner && owner->kind() <= last)
      in_order.emplace_back(owner->kind(), owner->last_use(*this), i);
  std::sort(in_order.begin(), in_order.end());
  Bytes freed;
  for (const auto& [kind, use, i] : in_order) {
    if (freed >= wanted) break;
    if (const auto owner = reclaimables[i].lock()) freed += owner->reclaim(*this, wanted - freed);
  }
  return freed;
}

Bytes DeviceBase::defragment() noexcept {
  const std::lock_guard lock(defragment_mutex_);
  if (lost()) return {};
  const Bytes returned = empty_allocations([this] {
    for (const auto& one : reclaimables())
      if (const auto owner = one.lock()) owner->move_buffers(*this);
  });
  defragmented_.fetch_add(returned.count, std::memory_order_relaxed);
  return returned;
}

Bytes DeviceBase::empty_allocations(const std::function<void()>&) noexcept { return {}; }

/// Adds a line of context that names the largest holders of memory of the silicon.
Error DeviceBase::with_holders(const Error& error) const {
  constexpr std::size_t most_named = 8;
  const MemoryAccount& all = *silicon_->account();
  std::vector<MemoryAccount::Entry> entries = all.entries();
  // Each account without its children, which follow it.
  for (std::size_t i = 0; i < entries.size(); ++i)
    for (std::size_t child = i + 1; child < entries.size() && entries[child].level > entries[i].level;
         ++child)
      if (static_cast<int>(entries[child].level) == static_cast<int>(entries[i].level) + 1)
        entries[i].held -= std::min(entries[i].held, entries[child].held);
  std::erase_if(entries, [](const MemoryAccount::Entry& one) { return one.held == Bytes{}; });
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto& a, const auto& b) { return a.held > b.held; });
  std::string holders;
  for (std::size_t i = 0; i < std::min(entries.size(), most_named); ++i) {
    const auto& [owner, level, held, limit] = entries[i];
    holders +=
        base::text("{}{} {}", i == 0 ? ": " : ", ", to_string(held),
                   level == silicon::AccountLevel::silicon   ? "outside of contexts"
                   : level == silicon::AccountLevel::runtime ? base::text("in arrays on '{}'", owner)
                                                             : base::text("in {} '{}'", name(level), owner));
  }
  if (entries.size() > most_named) holders += base::text(", and {} more", entries.size() - most_named);
  if (const Bytes elsewhere = all.held_elsewhere(); elsewhere != Bytes{})
    holders += base::text("; processes that share it hold {}", to_string(elsewhere));
  return error.with_context(
      base::text("this process holds {} of '{}'{}", to_string(all.held()), all.owner(), holders));
}

void DeviceBase::add_reclaimable(std::weak_ptr<Reclaimable> reclaimable) {
  const std::lock_guard lock(reclaim_mutex_);
  if (reclaimables_.size() >= reclaimables_limit_) {
    std::erase_if(reclaimables_, [](const auto& one) { return one.expired(); });
    reclaimables_limit_ = std::max<std::size_t>(16, reclaimables_.size() * 2);
  }
  reclaimables_.push_back(std::move(reclaimable));
}

std::string lacking(const AdapterInfo& adapter, Features needs) {
  const Features missing = needs.without(adapter.features), absent = missing.without(adapter.failed_features),
                 failed = missing.without(absent);
  if (failed.empty()) return to_string(absent);
  std::string text = absent.empty() ? std::string() : to_string(absent) + ", and ";
  return text + to_string(failed) + ", which failed the check of the device";
}

Error not_found(std::string_view requested, std::span<const AdapterInfo* const> there) {
  std::string devices, backends;
  const auto add = [](std::string& list, const std::string& name) {
    const std::string quoted = "'" + name + "'";
    if (list.find(quoted) == std::string::npos) list += (list.empty() ? "" : ", ") + quoted;
  };
  for (const AdapterInfo* one : there) {
    add(devices, one->id);
    add(backends, one->backend);
  }
  return Error(Errc::not_found, base::text("There is no device or backend '{}' (devices: {}; backends: {}).",
                                           requested, devices, backends));
}

Result<std::shared_ptr<DeviceBase>> DeviceBase::open_again() const {
  const BackendEntry* const entry = find_backend(info_.backend);
  if (entry && entry->make)
    for (const Discovered& one : entry->make()->discover({})) {
      if (!one.adapter || one.info.device_uuid != info_.device_uuid) continue;
      auto opened = one.adapter->open();
      if (!opened || (*opened)->driver_identity() == driver_identity()) return opened;
    }
  return Error(Errc::unavailable, base::text("The adapter of device '{}' is not found again.", info_.id));
}

Digest DeviceBase::driver_identity() const {
  const AdapterInfo& i = info_;
  return Hasher()
      .add("wye driver")
      .add(std::string_view(i.backend))
      .add(std::string_view(i.name))
      .add(std::as_bytes(std::span(i.device_uuid)))
      .add(std::as_bytes(std::span(i.driver_uuid)))
      .add(std::string_view(i.driver))
      .add(i.driver_version)
      .add(std::string_view(i.api))
      .finish();
}

void DeviceBase::note_shared(const std::shared_ptr<Timeline>& timeline) {
  const std::lock_guard lock(shared_mutex_);
  shared_.push_back(timeline);
  shares_.store(true, std::memory_order_release);
}

Instant DeviceBase::next_check(Instant until) {
  // The delay until a loss is found. Threads do not wake for it if no timeline is shared.
  constexpr Duration poll = std::chrono::milliseconds(50);
  if (!shares_.load(std::memory_order_acquire)) return until;
  const Instant now = Clock::steady().now();
  if (until <= now) return until;
  std::vector<std::shared_ptr<Timeline>> shared;
  {
    const std::lock_guard lock(shared_mutex_);
    std::erase_if(shared_, [&](const std::weak_ptr<Timeline>& one) {
      auto timeline = one.lock();
      if (timeline) shared.push_back(std::move(timeline));
      return one.expired();
    });
    shares_.store(!shared_.empty(), std::memory_order_release);
  }
  bool pending = false;
  for (const auto& timeline : shared)
    pending |= timeline->pending_signals() && timeline->pending_signals()->any_pending();
  return pending ? std::min(until, now + poll) : until;
}

std::optional<Error> DeviceBase::known_refusal_by(NativeProbe probe) const {
  const std::lock_guard lock(probed_mutex_);
  const auto known = probed_.find(probe);
  return known != probed_.end() ? known->second : std::nullopt;
}

std::optional<Error> DeviceBase::refusal_by(NativeProbe probe) {
  if (!probe) return std::nullopt;
  {
    const std::lock_guard lock(probed_mutex_);
    if (const auto known = probed_.find(probe); known != probed_.end()) return known->second;
  }
  const auto useful = run_probe(probe);
  if (const Error* failure = lost()) return *failure;  // the result says nothing about the function
  // Several threads may have called the probe: the first result stays.
  const std::lock_guard lock(probed_mutex_);
  return probed_.emplace(probe, useful ? std::nullopt : std::optional(useful.error())).first->second;
}

Result<void> DeviceBase::run_probe(NativeProbe probe) {
  std::string what;
  try {
    return probe({.backend = info_.backend, .device = info_.id});
  } catch (const Exception& exception) {
    return exception.error();
  } catch (const std::exception& exception) {
    what = exception.what();
  } catch (...) {
    what = "an exception that is not a std::exception";
  }
  return Error(Errc::unavailable,
               base::text("The probe of a native function on '{}' threw: {}.", info_.id, what));
}

Monitoring unmonitored(std::string device, const std::string& why) {
  Monitoring none;
  none.device = std::move(device);
  none.memory_total.absence = none.memory_used.absence = why;
  none.utilization.absence = none.temperature.absence = why;
  none.corrected_errors.absence = none.uncorrected_errors.absence = why;
  none.slowed_by_heat.absence = why;
  return none;
}

Monitoring DeviceBase::monitor() {
  return unmonitored(info_.id, base::text("Backend '{}' has no monitor for its devices.", info_.backend));
}

Result<std::vector<std::byte>> DeviceBase::driver_code() { return std::vector<std::byte>(); }
Result<void> DeviceBase::preload(std::span<const std::byte>) { return {}; }

Result<std::shared_ptr<StampsBase>> DeviceBase::create_stamps() {
  return Error(Errc::unsupported, base::text("Device '{}' has no clock for stamps.", info_.id));
}

std::shared_ptr<ReplayBase> DeviceBase::create_replay() {
  return std::make_shared<ReplayBase>(shared_from_this());
}

}  // namespace wye::device
