// The health of devices: lost ones are opened again, checked, and replaced.
#include <algorithm>
#include <array>
#include <chrono>
#include <new>
#include <span>
#include <utility>

#include "base/internals.hpp"
#include "base/text.hpp"
#include "device/lane.hpp"
#include "pool/discovery.hpp"
#include "pool/fleet.hpp"

namespace wye::inline v0::pool {
namespace {

constexpr std::uint32_t most_failures = 10;
constexpr std::uint32_t jobs_to_trust = 16;
/// How long a device is suspect after a memory error.
constexpr Duration distrust = std::chrono::minutes(1);

/// Returns how long a device stays in quarantine after `failures`, of which there is at least one.
Duration back_off(std::uint32_t failures) noexcept {
  constexpr Duration shortest = std::chrono::milliseconds(100), longest = std::chrono::seconds(30);
  if (failures == 1) return Duration::zero();
  return std::min<Duration>(longest, shortest * (1 << std::min(failures - 2, 16u)));
}

/// Copies a pattern to a device, on it, and back.
/// Errors: internal if it differs then; those of the device.
Result<void> probe(device::DeviceBase& device) {
  constexpr Duration limit = std::chrono::seconds(1);
  std::array<std::uint32_t, 256> pattern{}, returned{};
  for (std::uint32_t i = 0; i < pattern.size(); ++i) pattern[i] = i * 0x9e3779b9u ^ 0x5bd1e995u;
  const Bytes size{sizeof pattern};
  auto lane = device::Lane::create(device);
  if (!lane) return std::move(lane).error();
  auto first = device.create_buffer({.bytes = size, .account = nullptr});
  if (!first) return std::move(first).error();
  auto second = device.create_buffer({.bytes = size, .account = nullptr});
  if (!second) return std::move(second).error();
  (*lane)->upload(std::as_bytes(std::span(pattern)), {*first, {}, size});
  (*lane)->copy({*first, {}, size}, {*second, {}, size});
  (*lane)->download({*second, {}, size}, std::as_writable_bytes(std::span(returned)));
  if (auto done = (*lane)->wait(Clock::steady().now() + limit); !done) {
    (*lane)->discard();
    return done;
  }
  if (returned == pattern) return {};
  return Error(Errc::internal,
               base::text("Device '{}' returned a wrong copy of {} bytes.", device.info().id, size.count));
}

}  // namespace

bool Fleet::is_lost(std::size_t device) const noexcept {
  const Member& member = members_[device];
  if (!member.is_replaceable) return base::state_of(member.device)->lost();
  const base::Lock lock = lock_here();
  return base::state_of(member.device)->lost();
}

void Fleet::note_loss(std::size_t device) noexcept {
  const base::Lock lock = base::lock_soon(mutex_);
  note_loss_locked(members_[device]);
}

void Fleet::note_loss_locked(Member& member) noexcept {
  const Error* const lost = base::state_of(member.device)->lost();
  if (!lost || member.health != DeviceHealth::healthy) return;
  quarantine_locked(member, *lost);
  journal_->emit(member.changed(base::DeviceChanged::Change::lost, *lost));
  if (qualifier_) qualifier_->note_loss(*base::state_of(member.device));
}

bool Fleet::note_losses(const DeviceFilter& filter) noexcept {
  bool has_candidate = false;
  for (std::size_t d = 0; d < size(); ++d) {
    if (!is_able(d, filter)) continue;
    if (is_lost(d))
      note_loss(d);
    else
      has_candidate = true;
  }
  return !has_candidate;
}

void Fleet::quarantine(std::size_t device, const Error& why) noexcept {
  const base::Lock lock = base::lock_soon(mutex_);
  if (members_[device].health == DeviceHealth::probing) quarantine_locked(members_[device], why);
  probed_.wake_all();
}

void Fleet::quarantine_locked(Member& member, const Error& why) noexcept {
  member.last_fault = why;
  member.completed = 0;
  ++member.failures;
  member.health = member.is_replaceable && member.failures <= most_failures ? DeviceHealth::quarantined
                                                                            : DeviceHealth::dead;
  member.probe_at = clock_->now() + back_off(member.failures);
  if (member.health != DeviceHealth::dead) has_lost_.store(true, std::memory_order_relaxed);
}

Suspicion Fleet::suspicion(std::size_t device) const noexcept {
  const Member& member = members_[device];
  if (member.unfinished.load(std::memory_order_relaxed) != 0) return Suspicion::unfinished_work;
  return processors_[member.processor].watch.is_doubted(*clock_) ? Suspicion::memory_errors : Suspicion::none;
}

bool ProcessorWatch::begin(Instant now, Instant next) noexcept {
  Instant due = next_.load(std::memory_order_relaxed);
  return now >= due && next_.compare_exchange_strong(due, next);
}

std::vector<Error> ProcessorWatch::note(const Monitoring& read, const std::string& name, Instant now) {
  std::vector<Error> faults;
  const auto errors = read.uncorrected_errors.value;
  if (!std::exchange(was_read_, true) && !errors && !read.slowed_by_heat.value)
    next_.store(Instant::max(), std::memory_order_relaxed);
  if (errors && memory_errors_ && *errors > *memory_errors_) {
    doubted_until_.store(now + distrust, std::memory_order_relaxed);
    faults.emplace_back(Errc::corrupt,
                        base::text("Processor '{}' has had {} memory errors since its driver was loaded that "
                                   "ECC could not correct (before: {}).",
                                   name, *errors, *memory_errors_));
  }
  if (errors) memory_errors_ = errors;
  const bool is_hot = read.slowed_by_heat.value.value_or(false);
  if (is_hot && !is_hot_)
    faults.emplace_back(Errc::unavailable,
                        base::text("Processor '{}' runs with reduced clocks because of its temperature "
                                   "({} degrees Celsius).",
                                   name, read.temperature.value.value_or(0)));
  is_hot_ = is_hot;
  return faults;
}

void Fleet::read_monitor(std::size_t device, Instant now) noexcept try {
  const std::size_t p = members_[device].processor;
  Processor& processor = processors_[p];
  const Duration period = options_->monitor_period;
  if (!processor.watch.begin(now, period >= Instant::max() - now ? Instant::max() : now + period)) return;
  Monitoring read;  // of the first device of the processor that has a value
  for (std::size_t d = 0; d < size() && !read.uncorrected_errors.value && !read.slowed_by_heat.value; ++d)
    if (members_[d].processor == p) read = this->device(d).monitor();
  std::vector<Error> faults;
  {
    const base::Lock lock = base::lock_soon(mutex_);
    faults = processor.watch.note(read, processor.silicon->name(), now);
    for (const Error& fault : faults)
      for (std::size_t d = 0; d < size(); ++d)
        if (members_[d].processor == p) members_[d].last_fault = fault;
  }
  for (const Error& fault : faults) log_.write(LogLevel::warning, "pool", fault.sentence());
} catch (const std::bad_alloc&) {  // a later reading finds the errors
}

void Fleet::note_completion(std::size_t device) noexcept {
  const base::Lock lock = base::lock_soon(mutex_);
  Member& member = members_[device];
  if (member.failures == 0 || member.health != DeviceHealth::healthy || ++member.completed < jobs_to_trust)
    return;
  member.failures = 0;
  has_lost_.store(
      std::any_of(members_.begin(), members_.end(), [](const Member& one) { return one.failures != 0; }),
      std::memory_order_relaxed);
}

bool Fleet::begin_probe(std::size_t device, bool waits) noexcept {
  Member& member = members_[device];
  base::Lock lock = base::lock_soon(mutex_);
  if (waits) probed_.wait(lock, Instant::max(), [&] { return member.health != DeviceHealth::probing; });
  if (member.health != DeviceHealth::quarantined || clock_->now() < member.probe_at) return false;
  member.health = DeviceHealth::probing;
  return true;
}

bool Fleet::begin_probe_with(std::size_t device, std::shared_ptr<device::Adapter> adapter) noexcept {
  Member& member = members_[device];
  base::Lock lock = base::lock_soon(mutex_);
  note_loss_locked(member);
  probed_.wait(lock, Instant::max(), [&] { return member.health != DeviceHealth::probing; });
  const bool returns = member.health == DeviceHealth::dead && member.is_replaceable && adapter;
  if (member.health != DeviceHealth::quarantined && !returns) return false;
  if (adapter) member.adapter.swap(adapter);
  if (returns) member.failures = 0;
  member.health = DeviceHealth::probing;
  return true;
}

Result<Device> Fleet::open_again(std::size_t device) const {
  const Member& member = members_[device];
  std::shared_ptr<device::Adapter> adapter;
  {
    const base::Lock lock = base::lock_soon(mutex_);
    adapter = member.adapter;  // `begin_probe_with` replaces it
  }
  auto opened = open_adapter(*adapter, member.info.id, nullptr);
  if (!opened) return std::move(opened).error();
  if ((*opened)->silicon() != processors_[member.processor].silicon)
    return Error(Errc::unavailable,
                 base::text("Device '{}' is on another processor since it was lost.", member.info.id));
  if (qualifier_)
    if (auto trusted = qualifier_->qualify(*opened); !trusted) return std::move(trusted).error();
  if (auto good = probe(**opened); !good)
    return std::move(good).error().with_context(
        base::text("while checking device '{}', which was opened again", member.info.id));
  return Device(*std::move(opened));
}

void Fleet::install(std::size_t device, Device opened) noexcept {
  Member& member = members_[device];
  const base::Lock lock = base::lock_soon(mutex_);
  member.opening.store(base::state_of(opened)->ref().generation, std::memory_order_release);
  member.device = std::move(opened);
  member.health = DeviceHealth::healthy;
  ++member.generation;
  recoveries_.fetch_add(1, std::memory_order_relaxed);
  journal_->emit(member.changed(base::DeviceChanged::Change::recovered));
  probed_.wake_all();
}

DeviceState Fleet::state_of(std::size_t device) const {
  const Member& member = members_[device];
  const base::Lock lock = base::lock_soon(mutex_);
  return {.id = member.info.id,
          .health = member.health == DeviceHealth::healthy && suspicion(device) != Suspicion::none
                        ? DeviceHealth::suspect
                        : member.health,
          .generation = member.generation,
          .last_fault = member.last_fault,
          .is_gpu = member.info.type != AdapterType::cpu || device::is_emulated(member.info),
          .is_emulated = device::is_emulated(member.info)};
}

}  // namespace wye::pool
