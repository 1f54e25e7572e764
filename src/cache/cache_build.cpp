// How the cache builds: one build per key, on its own thread if a caller waits with a deadline.
#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "base/text.hpp"
#include "cache/cache.hpp"
#include "cache/store/driver_code.hpp"

namespace wye {
inline namespace v0 {
namespace cache {

namespace {

using namespace std::chrono_literals;

/// Whether a repeated build would fail again.
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

Result<device::Provided> Cache::find_or_build(const BuildRequest& request) {
  const std::string& device_id = request.device->info().id;
  RemovedList removed;
  base::Lock lock(mutex_);
  if (ExecutablePointer ready = find_alive(request.key, request.program->id(), removed))
    return device::Provided{Executable(std::move(ready)), CacheTier::memory, Duration{}};
  if (const Absence* absence = absences_.find(request.key); absence && absence->is_believed(clock_.now())) {
    ++counted_.failure_hits;
    return *absence->failure;
  }
  if (const auto in_flight = builds_.find(request.key); in_flight != builds_.end()) {
    const std::shared_ptr<Build> build = in_flight->second;
    ++counted_.joined;
    ++build->waiting;
    const bool has_result =
        build->gate.wait(lock, base::parked_until(clock_, request.until), [&] { return build->has_result; });
    --build->waiting;
    if (!has_result) return still_building(*request.program, device_id);
    return build->result;
  }
  if (request.until != Instant::max() && clock_.now() >= request.until)
    return Error(Errc::timed_out,
                 base::text("Kernel '{}' is not built for '{}', and the deadline has passed.",
                            request.program->name(), device_id));
  const auto build = std::make_shared<Build>();
  build->began = clock_.now();
  builds_.emplace(request.key, build);
  lock.unlock();
  return start_build(request, build);
}

/// Builds on this thread, or on another one if the caller has a deadline that a compiler may not keep.
Result<device::Provided> Cache::start_build(const BuildRequest& request,
                                            const std::shared_ptr<Build>& build) {
  std::list<BackgroundBuild> background;
  if (request.until != Instant::max() && request.program->storable(*request.device))
    background = start_in_background(request, build);
  if (background.empty()) {
    run_build(request, *build);
    return build->result;
  }
  base::Lock lock(mutex_);
  build->gate.wait(lock, base::parked_until(clock_, request.until), [&] { return build->is_finished; });
  if (!build->is_finished) background_builds_.splice(background_builds_.end(), background);
  if (!build->has_result) return still_building(*request.program, request.device->info().id);
  return build->result;
}

/// Returns the started build; an empty list if no thread can be started.
std::list<Cache::BackgroundBuild> Cache::start_in_background(const BuildRequest& request,
                                                             const std::shared_ptr<Build>& build) {
  std::list<BackgroundBuild> started, ended;
  {
    const base::Lock lock(mutex_);
    for (auto one = background_builds_.begin(); one != background_builds_.end();) {
      const auto next = std::next(one);
      if (one->build.expired()) ended.splice(ended.end(), background_builds_, one);
      one = next;
    }
  }
  try {
    started.push_back({build, std::nullopt});
    if (auto worker =
            base::Worker::start("wye-build", [this, request, build] { run_build(request, *build); }))
      started.front().worker.emplace(std::move(*worker));
    else
      started.clear();
  } catch (const std::bad_alloc&) {
    started.clear();
  }
  return started;
}

/// Builds, wakes all waiters, then stores the artefact.
void Cache::run_build(const BuildRequest& request, Build& build) {
  RemovedList removed;
  Result<Built> built = build_executable(request);
  {
    const base::Lock lock(mutex_);
    builds_.erase(request.key);
    if (built) {
      try {
        add(request, *built, removed);
      } catch (const std::bad_alloc&) {  // it lives as long as its users
      }
      build.result = device::Provided{Executable(built->executable), built->tier, built->build_time};
    } else {
      ++counted_.failures;
      if (is_lasting(built.error())) add_absence(request.key, Removal::evicted, built.error());
      build.result = built.error();
    }
    build.has_result = true;
  }
  build.gate.wake_all();
  try {
    if (built && built->to_store) store_->save(*built->to_store, std::exchange(built->claim, {}));
    if (built && built->compiled && drivers_) drivers_->made(*request.device);
  } catch (const std::bad_alloc&) {  // it is not stored
  }
  report(request, build, built);
  {
    const base::Lock lock(mutex_);
    build.is_finished = true;
  }
  build.gate.wake_all();
}

void Cache::report(const BuildRequest& request, const Build& build, const Result<Built>& built) const {
  if (!options_.on_build || (built && built->tier == CacheTier::none)) return;
  BuildEvent event;
  event.kernel = request.program->name();
  event.device = request.device->info().id;
  if (built) {
    event.tier = built->tier;
    event.took = built->build_time;
    event.bytes = built->executable->bytes();
  } else {
    event.took = clock_.now() - build.began;
    event.error = &built.error();
  }
  {
    const auto lock = freeze();
    event.hit_rate = metrics_locked().hit_rate();
  }
  try {
    options_.on_build(event);
  } catch (...) {  // the host's exception
  }
}

/// Turns exceptions into errors: other callers wait for the result.
Result<Cache::Built> Cache::build_executable(const BuildRequest& request) {
  try {
    return try_build(request);
  } catch (const std::bad_alloc&) {
    return Error(Errc::out_of_memory, "The host has no memory left to build a kernel.");
  } catch (const std::exception& thrown) {
    return Error(Errc::internal,
                 base::text("Building kernel '{}' threw: {}.", request.program->name(), thrown.what()));
  } catch (...) {
    return Error(Errc::internal, base::text("Building kernel '{}' threw.", request.program->name()));
  }
}

void Cache::load_stored(const Digest& digest, Built& built, std::optional<device::Artefact>& artefact) {
  ArtefactStore::Loaded loaded = store_->load(digest);
  if (loaded.corrupt) count_corrupt(built);
  artefact = std::move(loaded.artefact);
  if (artefact) built.tier = CacheTier::disk;
}

void Cache::load_bundled(const Digest& digest, Built& built, std::optional<device::Artefact>& artefact) {
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

Result<Cache::Built> Cache::try_build(const BuildRequest& request) {
  const Digest& digest = request.key.digest;
  const device::Program& program = *request.program;
  device::DeviceBase& device = *request.device;
  Instant start = clock_.now();
  const bool compiled = program.storable(device), stored = store_ && compiled;
  Built built;
  std::optional<device::Artefact> artefact;
  if (compiled) load_bundled(digest, built, artefact);
  if (stored && !artefact) load_stored(digest, built, artefact);
  Claim to_load;  // no process waits for it
  if (artefact) {
    if (stored) to_load = store_->claim(digest, Instant{});
  } else if (stored) {
    // One process builds. It may be slow or hang, so other processes do not wait for long.
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
    if (built.claim.lock || built.claim.waited) load_stored(digest, built, artefact);
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
    return Error(Errc::compile_failed,
                 base::text("Building kernel '{}' for '{}' ended its process {} times. The next try is an "
                            "hour after the last one. "
                            "It is earlier if the kernel, its compiler or the driver ({}) changes, or after "
                            "ShaderCache::clear or "
                            "'wyec cache clear'.",
                            program.name(), device.info().id, marked.deaths(), device.info().driver));
  if (!artefact) {
    auto made = program.build(device);
    if (!made) return std::move(made).error();
    artefact = std::move(*made);
  }
  if (artefact->host) built.tier = CacheTier::none;  // a host function needs no build
  auto executable = device.create_executable(*artefact);
  if (!executable) return std::move(executable).error();
  built.executable = std::move(*executable);
  if (request.code == DriverCode::complete && compiled) make_all_code(built.executable);
  built.build_time = clock_.now() - start;
  built.compiled = compiled;
  if (stored && built.tier == CacheTier::built) built.to_store = std::move(artefact);
  if (log_.wants(LogLevel::debug, "cache"))
    log_.write(LogLevel::debug, "cache",
               base::text("Kernel '{}' for '{}': {} in {} us.", program.name(), device.info().id,
                          built.tier == CacheTier::disk     ? "from disk"
                          : built.tier == CacheTier::bundle ? "from a bundle"
                                                            : "built",
                          std::chrono::duration_cast<std::chrono::microseconds>(built.build_time).count()));
  return built;
}

}  // namespace cache
}  // namespace v0
}  // namespace wye
