#include "cache/store/driver_tier.hpp"

#include <new>
#include <utility>
#include <vector>

#include "cache/store/artefact_bytes.hpp"

namespace wye::inline v0::cache {

namespace {

/// After so many processes have ended while their drivers loaded a record, it is removed, for
/// whichever reason they ended: it costs little to make it again.
constexpr unsigned most_deaths = 2;

Digest record_of(const device::DeviceBase& device) {
  return Hasher().add("wye driver code").add(device.driver_identity().bytes).finish();
}

}  // namespace

std::shared_ptr<DriverTier::State> DriverTier::state_of(device::DeviceBase& device) {
  const auto known = states_.find(&device);
  if (known != states_.end() && !known->second->device.expired()) return known->second;
  // The address may belong to a device that no longer exists.
  std::erase_if(states_, [](const auto& state) { return state.second->device.expired(); });
  auto state = std::make_shared<State>();
  state->device = device.weak_from_this();
  states_.emplace(&device, state);
  return state;
}

void DriverTier::prepare(device::DeviceBase& device) {
  std::shared_ptr<State> state;
  {
    base::Lock lock(mutex_);
    state = state_of(device);
    if (state->phase != Phase::fresh) {
      gate_.wait(lock, Instant::max(), [&] { return state->phase == Phase::prepared; });
      return;
    }
    state->phase = Phase::loading;
  }
  try {
    load(device, *state);
  } catch (...) {  // the driver generates it again
  }
  {
    const base::Lock lock(mutex_);
    state->phase = Phase::prepared;
  }
  gate_.wake_all();
}

void DriverTier::load(device::DeviceBase& device, State& state) {
  const Digest key = record_of(device);
  const auto record = store_.get(key);
  if (!record) return;
  auto stored = decode_driver(*record, key);
  bool good = stored.has_value();
  if (good) {
    const Claim claim = store_.claim(key, Instant{});
    MarkedBuild marked = store_.mark(key, claim);
    good = marked.deaths().interrupted < most_deaths;
    if (good) {
      marked.reach(1);
      good = device.preload(stored->bytes).has_value();
    }
  }
  if (!good && !device.lost()) store_.drop(key);
  const Digest content = good ? digest(stored->bytes) : Digest{};
  const base::Lock lock(mutex_);
  state.saved = content;
  ++(good ? counts_.loaded : counts_.corrupt);
}

void DriverTier::made(device::DeviceBase& device) {
  std::shared_ptr<State> state;
  {
    const base::Lock lock(mutex_);
    state = state_of(device);
    state->is_saved = false;
    if (++state->count < state->next) return;
    state->next *= 2;
    state->is_saved = true;
  }
  try {
    save(device, *state);
  } catch (const std::bad_alloc&) {  // it is not stored
  }
}

void DriverTier::save() {
  std::vector<std::pair<std::shared_ptr<device::DeviceBase>, std::shared_ptr<State>>> grown;
  {
    const base::Lock lock(mutex_);
    for (const auto& [address, state] : states_)
      if (auto device = state->device.lock(); device && !std::exchange(state->is_saved, true))
        grown.emplace_back(std::move(device), state);
  }
  for (const auto& [device, state] : grown) save(*device, *state);
}

void DriverTier::save(device::DeviceBase& device, State& state) {
  if (device.lost()) return;
  const auto code = device.driver_code();
  if (!code || code->empty()) return;
  const Digest content = digest(*code);
  {
    const base::Lock lock(mutex_);
    if (std::exchange(state.saved, content) == content) return;
  }
  const Digest key = record_of(device);
  store_.put(key, encode(DriverRecord{device.info().name, device.info().driver, *code}, key));
}

DriverTier::Counts DriverTier::counts() const {
  const base::Lock lock(mutex_);
  return counts_;
}

}  // namespace wye::cache
