#include "cache/driver_tier.hpp"

#include <new>
#include <utility>
#include <vector>

#include "cache/artefact_bytes.hpp"

namespace wye {
inline namespace v0 {
namespace cache {

namespace {

Digest record_of(const device::DeviceBase& device) {
  return Hasher().add("wye driver code").add(device.driver_identity().bytes).finish();
}

}  // namespace

std::shared_ptr<DriverTier::State> DriverTier::state_of(device::DeviceBase& device) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<State>& state = states_[&device];
  if (!state || state->device.expired()) {  // the address may have been another one's
    state = std::make_shared<State>();
    state->device = device.weak_from_this();
  }
  return state;
}

void DriverTier::prepare(device::DeviceBase& device) {
  const std::shared_ptr<State> state = state_of(device);
  std::call_once(state->prepared, [&] {
    try {
      load(device, *state);
    } catch (const std::bad_alloc&) {  // then it begins with nothing
    }
  });
}

void DriverTier::load(device::DeviceBase& device, State& state) {
  const Digest key = record_of(device);
  const auto record = store_.get(key);
  if (!record) return;
  auto stored = decode_driver(*record, key);
  bool good = stored.has_value();
  if (good) {
    const Claim claim = store_.claim(key, Instant{});
    const MarkedBuild marked = store_.mark(key, claim);
    good = !marked.refused() && device.preload(stored->code);
  }
  if (good) {
    const std::lock_guard lock(state.saving);
    state.saved = digest(stored->code);
  } else if (!device.lost()) {
    store_.drop(key);
  }
  const std::lock_guard lock(mutex_);
  ++(good ? counts_.loaded : counts_.corrupt);
}

void DriverTier::made(device::DeviceBase& device) {
  const std::shared_ptr<State> state = state_of(device);
  {
    const std::lock_guard lock(mutex_);
    state->is_saved = false;
    if (++state->count < state->next) return;
    state->next *= 2;
    state->is_saved = true;
  }
  try {
    save(device, *state);
  } catch (const std::bad_alloc&) {  // then it is not
  }
}

void DriverTier::save() {
  std::vector<std::pair<std::shared_ptr<device::DeviceBase>, std::shared_ptr<State>>> grown;
  {
    const std::lock_guard lock(mutex_);
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
  const std::lock_guard lock(state.saving);
  if (content == state.saved) return;
  const Digest key = record_of(device);
  store_.put(key, encode(DriverCode{device.info().name, device.info().driver, *code}, key));
  state.saved = content;
}

DriverTier::Counts DriverTier::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace cache
}  // namespace v0
}  // namespace wye
