// The health of devices: lost ones are opened again, checked, and replaced.
#include <algorithm>
#include <array>
#include <chrono>
#include <new>
#include <span>
#include <utility>

#include "base/internals.hpp"
#include "base/text.hpp"
#include "pool/discovery.hpp"
#include "pool/pool.hpp"

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

void Pool::note_loss(std::size_t device) noexcept {
  const base::Lock lock = base::lock_soon(mutex_);
  note_loss_locked(device);
}

void Pool::note_loss_locked(std::size_t device) noexcept {
  const Error* const lost = base::state_of(devices_[device])->lost();
  if (!lost || health_[device].state != DeviceHealth::healthy) return;
  quarantine_locked(device, *lost);
  if (qualifier_) qualifier_->note_loss(*base::state_of(devices_[device]));
}

bool Pool::note_losses(const Wanted& wanted) noexcept {
  const base::Lock lock = base::lock_soon(mutex_);
  for (std::size_t d = 0; d < device_count(); ++d)
    if (is_able(d, wanted)) note_loss_locked(d);
  return !has_candidate(wanted);
}

void Pool::quarantine_locked(std::size_t device, const Error& why) noexcept {
  Health& health = health_[device];
  health.last_fault = why;
  health.completed = 0;
  ++health.failures;
  health.state = is_replaceable_[device] && health.failures <= most_failures ? DeviceHealth::quarantined
                                                                             : DeviceHealth::dead;
  health.probe_at = clock_->now() + back_off(health.failures);
  if (health.state != DeviceHealth::dead) has_lost_.store(true, std::memory_order_relaxed);
}

Suspicion Pool::suspicion_locked(std::size_t device) const noexcept {
  if (std::any_of(unfinished_.begin(), unfinished_.end(),
                  [&](const Unfinished& one) { return one.context->device == device && !one.work.empty(); }))
    return Suspicion::unfinished_work;
  const Instant until = silicon_[silicon_of_[device]].watch->suspect_until;
  return until != Instant::min() && clock_->now() < until ? Suspicion::memory_errors : Suspicion::none;
}

void Pool::update_suspects_locked() noexcept {
  for (std::size_t d = 0; d < device_count(); ++d)
    suspicions_[d].store(suspicion_locked(d), std::memory_order_relaxed);
}

Suspicion Pool::current_suspicion(std::size_t device) noexcept {
  std::vector<std::unique_ptr<device::Lane>> finished;  // destroyed after the lock
  const base::Lock lock = base::lock_soon(mutex_);
  try {
    finished = collect_finished();
  } catch (const std::bad_alloc&) {  // they stay
  }
  update_suspects_locked();
  return suspicions_[device].load(std::memory_order_relaxed);
}

void Pool::read_monitor(std::size_t device, Instant now) noexcept try {
  SharedSilicon& one = silicon_[silicon_of_[device]];
  SharedSilicon::Watch& watch = *one.watch;
  Instant due = watch.next_reading.load(std::memory_order_relaxed);
  const Instant next =
      options_.monitor_period >= Instant::max() - now ? Instant::max() : now + options_.monitor_period;
  if (now < due || !watch.next_reading.compare_exchange_strong(due, next)) return;
  Monitoring read;  // of the first device of the processor that has a value
  for (std::size_t d = 0; d < device_count() && !read.uncorrected_errors.value && !read.slowed_by_heat.value;
       ++d)
    if (silicon_of_[d] == silicon_of_[device]) read = this->device(d).monitor();
  // A monitor that lacks both values at first has none later.
  if (due == Instant::min() && !read.uncorrected_errors.value && !read.slowed_by_heat.value)
    return watch.next_reading.store(Instant::max(), std::memory_order_relaxed);
  const std::string& name = one.silicon->name();
  std::vector<Error> faults;
  {
    const base::Lock lock = base::lock_soon(mutex_);
    const auto errors = read.uncorrected_errors.value;
    if (errors && watch.memory_errors && *errors > *watch.memory_errors) {
      watch.suspect_until = now + distrust;
      faults.emplace_back(
          Errc::corrupt,
          base::text("Processor '{}' has had {} memory errors since its driver was loaded that "
                     "ECC could not correct (before: {}).",
                     name, *errors, *watch.memory_errors));
    }
    if (errors) watch.memory_errors = errors;
    const bool is_hot = read.slowed_by_heat.value.value_or(false);
    if (is_hot && !watch.is_hot)
      faults.emplace_back(Errc::unavailable,
                          base::text("Processor '{}' runs with reduced clocks because of its temperature "
                                     "({} degrees Celsius).",
                                     name, read.temperature.value.value_or(0)));
    watch.is_hot = is_hot;
    for (const Error& fault : faults) note_fault_locked(one, fault);
    if (watch.suspect_until != Instant::min()) update_suspects_locked();
  }
  for (const Error& fault : faults) log_.write(LogLevel::warning, "pool", fault.sentence());
} catch (const std::bad_alloc&) {  // a later reading finds the errors
}

void Pool::note_fault_locked(const SharedSilicon& one, const Error& fault) noexcept {
  for (std::size_t d = 0; d < device_count(); ++d)
    if (&silicon_[silicon_of_[d]] == &one) health_[d].last_fault = fault;
}

void Pool::note_completion(std::size_t device) noexcept {
  const base::Lock lock = base::lock_soon(mutex_);
  Health& health = health_[device];
  if (health.failures == 0 || health.state != DeviceHealth::healthy || ++health.completed < jobs_to_trust)
    return;
  health.failures = 0;
  has_lost_.store(
      std::any_of(health_.begin(), health_.end(), [](const Health& one) { return one.failures != 0; }),
      std::memory_order_relaxed);
}

bool Pool::recover_all(bool waits) noexcept {
  for (std::size_t d = 0; d < device_count(); ++d) {
    {
      base::Lock lock = base::lock_soon(mutex_);
      Health& health = health_[d];
      if (waits) probed_.wait(lock, Instant::max(), [&] { return health.state != DeviceHealth::probing; });
      if (closed_ || health.state != DeviceHealth::quarantined || clock_->now() < health.probe_at) continue;
      health.state = DeviceHealth::probing;
    }
    probe_again(d);
  }
  return true;
}

void Pool::probe_again(std::size_t device) noexcept {
  try {
    recover(device);
  } catch (const std::bad_alloc&) {
    const base::Lock lock = base::lock_soon(mutex_);
    if (health_[device].state == DeviceHealth::probing) quarantine_locked(device, no_memory_);
    probed_.wake_all();
  }
}

/// Opens a device that is being probed again. Throws: std::bad_alloc; if it is still being probed
/// then, nothing has changed.
void Pool::recover(std::size_t device) {
  std::vector<std::unique_ptr<device::Lane>> ended;  // destroyed after the lock
  const Result<Device> opened = open_again(device);
  const Device old = this->device(device);
  {
    const base::Lock lock = base::lock_soon(mutex_);
    if (opened)
      replace_locked(device, *opened, ended);
    else
      quarantine_locked(device, opened.error());
    probed_.wake_all();
  }
  if (!opened) return;
  ended.clear();
  log_.write(LogLevel::warning, "pool",
             base::text("Device '{}' was lost and has been opened again.", infos_[device].id));
  // Cached kernels and spare replicas hold the old device.
  (void)base::state_of(old)->reclaim(IdleMemory::replicas, Bytes{~std::uint64_t{0}});
}

Result<Device> Pool::open_again(std::size_t device) const {
  std::shared_ptr<device::Adapter> adapter;
  {
    const base::Lock lock = base::lock_soon(mutex_);
    adapter = reopened_by_[device];  // `rescan` replaces it
  }
  auto opened = open_adapter(*adapter, infos_[device].id, nullptr);
  if (!opened) return std::move(opened).error();
  if ((*opened)->silicon() != silicon_[silicon_of_[device]].silicon)
    return Error(Errc::unavailable,
                 base::text("Device '{}' is on another processor since it was lost.", infos_[device].id));
  if (qualifier_)
    if (auto trusted = qualifier_->qualify(*opened); !trusted) return std::move(trusted).error();
  if (auto good = probe(**opened); !good)
    return std::move(good).error().with_context(
        base::text("while checking device '{}', which was opened again", infos_[device].id));
  return Device(*std::move(opened));
}

void Pool::replace_locked(std::size_t device, Device opened,
                          std::vector<std::unique_ptr<device::Lane>>& ended) {
  ended.reserve(contexts_[device].size() + 1);
  base::state_of(opened)->add_reclaimable(weak_from_this());
  const auto end_lane = [&](Context& context) {
    if (context.leased) return;  // the thread that leased it opens its lane
    context.refused = false;
    context.on = {};
    if (!context.lane) return;
    ended.push_back(std::move(context.lane));
    context.has_lane = false;
  };
  for (const auto& context : contexts_[device]) end_lane(*context);
  end_lane(*copying_[device]);
  warm_[device] = nullptr;
  refs_[device].store(base::state_of(opened)->ref().generation, std::memory_order_release);
  {
    const base::Lock lock = base::lock_soon(devices_mutex_);
    devices_[device] = std::move(opened);
  }
  Health& health = health_[device];
  health.state = DeviceHealth::healthy;
  ++health.generation;
  ++recoveries_;
  offer_locked(device);
  wake_all();
}

}  // namespace wye::pool
