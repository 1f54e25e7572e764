// How the cache builds: once among those who ask, on a thread of its own where somebody has a deadline.
#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "base/text.hpp"
#include "cache/cache.hpp"
#include "cache/driver_code.hpp"

namespace wye {
inline namespace v0 {
namespace cache {

namespace {

using namespace std::chrono_literals;

/// Whether the same build would fail again.
bool is_lasting(const Error& error) {
  return error == Errc::compile_failed || error == Errc::unsupported || error == Errc::invalid_argument;
}

Error still_building(const device::Program& program, const std::string& device) {
  return Error(Errc::timed_out,
               base::text("Kernel '{}' was still being built for '{}' when the deadline passed.",
                          program.name(), device));
}

}  // namespace

Digest build_name(const Digest& artefact, const device::DeviceBase& device) {
  return Hasher().add("wye build").add(artefact.bytes).add(device.driver_identity().bytes).finish();
}

Result<device::Provided> Cache::find_or_build(const Order& order) {
  const std::string& device_id = order.device->info().id;
  Leaving leaving;
  base::Lock lock(mutex_);
  if (ExecutablePointer ready = revive(order.key, leaving))
    return device::Provided{Executable(std::move(ready)), CacheTier::memory, Duration{}};
  if (const Past* failed = past(order.key); failed && failed->failure && clock_.now() < expiry(*failed)) {
    ++counted_.failure_hits;
    return *failed->failure;
  }
  if (const auto under_way = flights_.find(order.key); under_way != flights_.end()) {
    const std::shared_ptr<Flight> theirs = under_way->second;
    ++counted_.joined;
    ++theirs->waiting;
    const bool landed =
        theirs->gate.wait(lock, base::parked_until(clock_, order.until), [&] { return theirs->done; });
    --theirs->waiting;
    if (!landed) return still_building(*order.program, device_id);
    return theirs->result;
  }
  if (order.until != Instant::max() && clock_.now() >= order.until)
    return Error(Errc::timed_out,
                 base::text("Kernel '{}' is not built for '{}', and the deadline has passed.",
                            order.program->name(), device_id));
  const auto flight = std::make_shared<Flight>();
  flight->began = clock_.now();
  flights_.emplace(order.key, flight);
  lock.unlock();
  return begin(order, flight);
}

/// Builds here, or on a thread of its own where somebody has a deadline and a compiler may not keep it.
Result<device::Provided> Cache::begin(const Order& order, const std::shared_ptr<Flight>& flight) {
  std::list<Apart> apart;
  if (order.until != Instant::max() && order.program->storable(*order.device))
    apart = send_off(order, flight);
  if (apart.empty()) {
    fly(order, *flight);
    return flight->result;
  }
  base::Lock lock(mutex_);
  flight->gate.wait(lock, base::parked_until(clock_, order.until), [&] { return flight->over; });
  if (!flight->over) late_.splice(late_.end(), apart);
  if (!flight->done) return still_building(*order.program, order.device->info().id);
  return flight->result;
}

/// The build on its way; nothing where there is no thread for it.
std::list<Cache::Apart> Cache::send_off(const Order& order, const std::shared_ptr<Flight>& flight) {
  std::list<Apart> apart, over;
  {
    const base::Lock lock(mutex_);
    for (auto one = late_.begin(); one != late_.end();) {
      const auto next = std::next(one);
      if (one->flight.expired()) over.splice(over.end(), late_, one);
      one = next;
    }
  }
  try {
    apart.push_back({flight, std::nullopt});
    if (auto worker = base::Worker::start("wye-build", [this, order, flight] { fly(order, *flight); }))
      apart.front().worker.emplace(std::move(*worker));
    else
      apart.clear();
  } catch (const std::bad_alloc&) {
    apart.clear();
  }
  return apart;
}

/// Builds, and tells all who wait.
void Cache::fly(const Order& order, Flight& flight) {
  Leaving leaving;
  Result<Built> built = build(order);
  {
    const base::Lock lock(mutex_);
    flights_.erase(order.key);
    if (built) {
      try {
        keep(order.key, *built, base::text("{}@{}", order.program->name(), order.device->info().id), leaving);
      } catch (const std::bad_alloc&) {  // then it lives as long as its users
      }
      flight.result = device::Provided{Executable(built->executable), built->tier, built->took};
    } else {
      ++counted_.failures;
      if (is_lasting(built.error()))
        remember(order.key, order.device->weak_from_this(), Gone::failed, built.error());
      flight.result = built.error();
    }
    flight.done = true;
  }
  flight.gate.wake_all();
  try {
    if (built && built->to_store) store_->save(*built->to_store, std::exchange(built->claim, {}));
    if (built && built->compiled && drivers_) drivers_->made(*order.device);
  } catch (const std::bad_alloc&) {  // then it is not stored
  }
  announce(order, flight, built);
  {
    const base::Lock lock(mutex_);
    flight.over = true;
  }
  flight.gate.wake_all();
}

void Cache::announce(const Order& order, const Flight& flight, const Result<Built>& built) const {
  if (!options_.on_build || (built && built->tier == CacheTier::none)) return;
  BuildEvent event;
  event.kernel = order.program->name();
  event.device = order.device->info().id;
  if (built) {
    event.tier = built->tier;
    event.took = built->took;
    event.bytes = built->executable->bytes();
  } else {
    event.took = clock_.now() - flight.began;
    event.error = &built.error();
  }
  {
    const Frozen still = freeze();
    event.hit_rate = metrics_locked().hit_rate();
  }
  try {
    options_.on_build(event);
  } catch (...) {  // the host's own
  }
}

/// Builds, and lets nothing but a result out: others wait for it.
Result<Cache::Built> Cache::build(const Order& order) {
  try {
    return try_build(order);
  } catch (const std::bad_alloc&) {
    return Error(Errc::out_of_memory, "The host has no memory left to build a kernel.");
  } catch (const std::exception& thrown) {
    return Error(Errc::internal,
                 base::text("Building kernel '{}' threw: {}.", order.program->name(), thrown.what()));
  } catch (...) {
    return Error(Errc::internal, base::text("Building kernel '{}' threw.", order.program->name()));
  }
}

void Cache::load(const Digest& digest, Built& built, std::optional<device::Artefact>& artefact) {
  ArtefactStore::Loaded loaded = store_->load(digest);
  if (loaded.corrupt) count_corrupt(built);
  artefact = std::move(loaded.artefact);
  if (artefact) built.tier = CacheTier::disk;
}

void Cache::unpack(const Digest& digest, Built& built, std::optional<device::Artefact>& artefact) {
  for (const Bundle& bundle : bundles_) {
    Bundle::Found found = bundle.find(digest);
    if (found.corrupt) count_corrupt(built);
    if (!found.artefact) continue;
    artefact = std::move(found.artefact);
    built.tier = CacheTier::bundle;
    return;
  }
}

void Cache::count_corrupt(Built& built) {
  built.corrupt = true;
  const base::Lock lock(mutex_);
  ++counted_.corrupt;
}

Result<Cache::Built> Cache::try_build(const Order& order) {
  const Digest& digest = order.key.digest;
  const device::Program& program = *order.program;
  device::DeviceBase& device = *order.device;
  Instant start = clock_.now();
  const bool compiled = program.storable(device), stored = store_ && compiled;
  Built built;
  std::optional<device::Artefact> artefact;
  if (compiled) unpack(digest, built, artefact);
  if (stored && !artefact) load(digest, built, artefact);
  Claim to_load;  // nobody waits for it
  if (artefact) {
    if (stored) to_load = store_->claim(digest, Instant{});
  } else if (stored) {
    // One process builds. It may have died, hang, or be a much slower one: nobody waits for long.
    Duration patience = 2s;
    {
      const base::Lock lock(mutex_);
      patience = std::max(patience, 3 * expected_cost(device).value_or(Duration{}));
    }
    built.claim = store_->claim(digest, Clock::steady().now() + patience);
    if (built.claim.waited) {
      const base::Lock lock(mutex_);
      ++counted_.joined_processes;
    }
    start = clock_.now();
    if (built.claim.lock || built.claim.waited) load(digest, built, artefact);
    if (artefact) to_load = std::exchange(built.claim, {});
  }
  if (stored) drivers_->prepare(device);
  MarkedBuild marked;
  if (stored) marked = store_->mark(build_name(digest, device), artefact ? to_load : built.claim);
  if (marked.deaths() != 0) {
    const base::Lock lock(mutex_);
    ++counted_.deaths;
  }
  if (marked.refused())
    return Error(
        Errc::compile_failed,
        base::text("Making kernel '{}' ready for '{}' ended its process {} times. It is tried again an hour "
                   "after the "
                   "last time; sooner if the kernel, its compiler or the driver ({}) changes, or after "
                   "ShaderCache::clear or 'wyec cache clear'.",
                   program.name(), device.info().id, marked.deaths(), device.info().driver));
  if (!artefact) {
    auto made = program.build(device);
    if (!made) return std::move(made).error();
    artefact = std::move(*made);
  }
  if (artefact->host) built.tier = CacheTier::none;  // a function of the host is there already
  auto executable = device.create_executable(*artefact);
  if (!executable) return std::move(executable).error();
  built.executable = std::move(*executable);
  if (order.code == Code::all && compiled) make_all_code(built.executable);
  built.took = clock_.now() - start;
  built.compiled = compiled;
  if (stored && built.tier == CacheTier::built) built.to_store = std::move(artefact);
  if (log_.wants(LogLevel::debug, "cache"))
    log_.write(LogLevel::debug, "cache",
               base::text("Kernel '{}' for '{}': {} in {} us.", program.name(), device.info().id,
                          built.tier == CacheTier::disk     ? "from disk"
                          : built.tier == CacheTier::bundle ? "from a bundle"
                                                            : "built",
                          std::chrono::duration_cast<std::chrono::microseconds>(built.took).count()));
  return built;
}

}  // namespace cache
}  // namespace v0
}  // namespace wye
