// How the cache builds: one build per key, on its own thread if a caller waits with a deadline.
#include <algorithm>
#include <exception>
#include <new>
#include <utility>
#include <vector>

#include "base/cancellation.hpp"
#include "base/child_process.hpp"
#include "base/text.hpp"
#include "cache/cache.hpp"
#include "device/lane.hpp"

namespace wye::inline v0::cache {

namespace {

using namespace std::chrono_literals;

/// Whether a repeated build would fail again.
bool is_lasting(const Error& error) {
  return error == Errc::compile_failed || error == Errc::unsupported || error == Errc::invalid_argument;
}

/// Returns an empty operand of the kind that `slot` takes. An address operand refers to all of its
/// buffer, so each has its own.
Result<Operand> nothing_for(const Slot& slot, device::DeviceBase& device) {
  if (slot.kind == SlotKind::scalar || slot.kind == SlotKind::structure)
    return Operand::of_bytes(std::vector<std::byte>(slot.size));
  Operand operand;
  operand.kind = slot.kind == SlotKind::address ? Operand::Kind::address : Operand::Kind::buffer;
  operand.access = slot.access;
  operand.element = slot.element;
  operand.size = slot.size;
  auto memory =
      device.create_buffer({.bytes = Bytes{256}, .use = device::MemoryUse::device, .account = nullptr});
  if (!memory) return std::move(memory).error();
  operand.object = *std::move(memory);
  return operand;
}

/// Makes the driver generate all code of `executable` now, by a dispatch over no items. Some
/// drivers (lavapipe) generate it at the first dispatch only. Does nothing if the device cannot
/// create a lane or memory.
void make_all_code(const std::shared_ptr<device::ExecutableBase>& executable) {
  device::DeviceBase& device = *executable->device();
  auto lane = device::Lane::create(device);
  if (!lane) return;
  Arguments arguments;
  for (const Slot& slot : executable->artefact().schema.slots) {
    auto operand = nothing_for(slot, device);
    if (!operand) return;
    arguments.push_back(*std::move(operand));
  }
  (*lane)->dispatch(executable, arguments, Extent3(0));
  (void)(*lane)->wait(Instant::max()).has_value();
}

/// The steps of a build, for its mark.
enum BuildStep : std::uint8_t { compiling = 1, creating, generating };

/// Builds in a child process. Returns the last step that has not crashed there.
std::vector<std::byte> build_in_child(const device::Program& program, const device::DeviceBase& device,
                                      bool with_all_code, std::optional<device::Artefact> artefact,
                                      const base::ReachStep& reach) {
  const auto passed = [](BuildStep step) { return std::vector{std::byte{step}}; };
  if (!artefact) {
    reach(compiling);
    auto made = program.build(device);
    if (!made) return passed(generating);  // an error is no crash, and ends the build
    artefact = std::move(*made);
  }
  reach(base::child_only_step);
  auto opened = device.open_again();
  if (!opened) return passed(compiling);
  reach(creating);
  auto executable = (*opened)->create_executable(*artefact);
  if (executable && with_all_code) {
    reach(generating);
    make_all_code(*executable);
  }
  return passed(generating);
}

/// Decides about a build in which an earlier process has ended: a child process repeats it. Returns
/// nothing if this process may build.
std::optional<Error> refusal_after_deaths(const device::Program& program, const device::DeviceBase& device,
                                          bool with_all_code, const std::optional<device::Artefact>& artefact,
                                          MarkedBuild& marked) {
  const Deaths& deaths = marked.deaths();
  const auto refusal = [&](const std::string& reason, std::string_view next) {
    return Error(
        Errc::compile_failed,
        base::text("Building kernel '{}' for '{}' {}. The next try is {}. It is earlier if the kernel, "
                   "its compiler or the driver ({}) changes, or after ShaderCache::clear or "
                   "'wyec cache clear'.",
                   program.name(), device.info().id, reason, next, device.info().driver));
  };
  if (!deaths.crash && deaths.interrupted == 0) return std::nullopt;
  if (!deaths.crash && marked.is_paused())
    return refusal(base::text("ended {} processes. Whether it crashed or they were killed is not known",
                              deaths.interrupted),
                   base::text("{} min after the last one", deaths.pause()));
  if (!deaths.crash) {
    const base::ChildEnd end = base::run_in_child(
        [&](const base::ReachStep& reach) {
          return build_in_child(program, device, with_all_code, artefact, reach);
        },
        60s);
    if (end.how == base::ChildEnd::How::completed &&
        end.result.front() >= std::byte{deaths.step})  // the earlier process was killed
      return marked.end(), std::nullopt;
    if (end.how == base::ChildEnd::How::killed)
      return Error(Errc::compile_failed, base::text("Kernel '{}' was not built for '{}'. {}", program.name(),
                                                    device.info().id, end.why));
    if (end.how != base::ChildEnd::How::crashed || end.step != deaths.step) return std::nullopt;
    marked.note_crash(end.crash);
  }
  return refusal(base::text("crashes: it has ended a process that did nothing else, by {}",
                            marked.deaths().crash->text()),
                 "an hour after the last one");
}

}  // namespace

Digest build_name(const Digest& artefact, const device::DeviceBase& device) {
  return Hasher().add("wye build").add(artefact.bytes).add(device.driver_identity().bytes).finish();
}

void Cache::Build::reach(Stage next) noexcept {
  {
    const base::Lock lock(mutex_);
    stage_ = next;
  }
  gate_.wake_all();
}

Cache::Build::Stage Cache::Build::wait(Stage wanted, const Clock& clock, Instant until) {
  base::Lock lock(mutex_);
  gate_.wait(lock, clock, until, [&] { return stage_ >= wanted; });
  return stage_;
}

Result<device::Provided> Cache::find_or_build(const BuildRequest& request) {
  Removed removed;
  std::unique_lock lock(lock_);
  if (ExecutablePointer ready = table_.find(request.key, request.program->id(), removed))
    return device::Provided{Executable(std::move(ready)), CacheTier::memory, Duration{}};
  if (const Absence* absence = table_.find_absence(request.key);
      absence && absence->is_believed(clock_.now())) {
    ++table_.counted().failure_hits;
    return *absence->failure;
  }
  if (const auto in_flight = builds_.find(request.key); in_flight != builds_.end()) {
    const std::shared_ptr<Build> build = in_flight->second;
    if (request.is_ahead) return result_at(Build::Stage::running, *build, request);
    ++table_.counted().joined;
    ++build->waiting;
    lock.unlock();
    const auto stage = build->wait(Build::Stage::has_result, clock_, request.until);
    --build->waiting;
    return result_at(stage, *build, request);
  }
  if (!request.is_ahead && request.until != Instant::max() && clock_.now() >= request.until)
    return Error(Errc::timed_out,
                 base::text("Kernel '{}' is not built for '{}', and the deadline has passed.",
                            request.program->name(), request.device->info().id));
  const auto build = std::make_shared<Build>(clock_.now());
  builds_.emplace(request.key, build);
  lock.unlock();
  return start_build(request, build);
}

/// Builds on this thread, or on another one if the caller has a deadline that a compiler may not
/// keep.
Result<device::Provided> Cache::start_build(const BuildRequest& request,
                                            const std::shared_ptr<Build>& build) {
  std::list<BackgroundBuild> own, ended;  // their threads are joined on return
  try {
    if (request.until != Instant::max() && request.program->storable(*request.device)) {
      own.push_back({build, std::nullopt});
      auto worker = base::Worker::start("wye-build", [this, request, build] { run_build(request, *build); });
      if (worker)
        own.front().worker.emplace(*std::move(worker));
      else
        own.clear();
    }
  } catch (const std::bad_alloc&) {  // no thread
    own.clear();
  }
  if (own.empty()) {
    run_build(request, *build);
    return build->result;
  }
  const auto stage = build->wait(Build::Stage::finished, clock_, request.until);
  {
    const std::lock_guard lock(lock_);
    for (auto one = background_builds_.begin(); one != background_builds_.end();) {
      const auto next = std::next(one);
      if (one->build.expired()) ended.splice(ended.end(), background_builds_, one);
      one = next;
    }
    if (stage != Build::Stage::finished) background_builds_.splice(background_builds_.end(), own);
  }
  return result_at(stage, *build, request);
}

bool Cache::await_builds(Instant until) {
  for (;;) {
    std::list<BackgroundBuild> ended;  // its thread is joined last
    std::shared_ptr<Build> build;
    {
      const std::lock_guard lock(lock_);
      if (background_builds_.empty()) return true;
      build = background_builds_.front().build.lock();
      if (!build) ended.splice(ended.end(), background_builds_, background_builds_.begin());
    }
    if (!build) continue;
    if (build->wait(Build::Stage::finished, Clock::steady(), until) != Build::Stage::finished) return false;
    const std::lock_guard lock(lock_);
    const auto same = [&](const BackgroundBuild& one) { return one.build.lock() == build; };
    const auto found = std::find_if(background_builds_.begin(), background_builds_.end(), same);
    if (found != background_builds_.end()) ended.splice(ended.end(), background_builds_, found);
  }
}

Result<device::Provided> Cache::result_at(Build::Stage stage, const Build& build,
                                          const BuildRequest& request) {
  if (stage != Build::Stage::running) return build.result;
  return Error(Errc::timed_out,
               base::text("Kernel '{}' was still being built for '{}' when the deadline passed.",
                          request.program->name(), request.device->info().id));
}

/// Builds, wakes all waiters, then stores the artefact. No exception, of the application or for
/// lack of memory, keeps waiters from their result.
void Cache::run_build(const BuildRequest& request, Build& build) noexcept {
  Removed removed;
  std::optional<Built> built = build_executable(request, build.result);
  try {
    if (built)
      add(request, *built, removed);
    else
      count_failure(request.key, build.result.error());
  } catch (const std::bad_alloc&) {  // the executable lives as long as its users; a failure is not remembered
  }
  {
    const std::lock_guard lock(lock_);
    builds_.erase(request.key);
  }
  build.reach(Build::Stage::has_result);
  try {
    if (built && built->to_store) store_->save(*built->to_store, std::exchange(built->claim, {}));
    if (built && built->compiled && drivers_) drivers_->made(*request.device);
  } catch (...) {  // it is not stored
  }
  report(request, build, built ? &*built : nullptr);
  build.reach(Build::Stage::finished);
}

/// Returns nothing if the build fails; `result` then has the error.
std::optional<Cache::Built> Cache::build_executable(const BuildRequest& request,
                                                    Result<device::Provided>& result) noexcept {
  const base::CancellationHeld held;
  try {
    const std::string_view kernel = request.program->name();
    try {
      Result<Built> built = try_build(request);
      if (built) {
        result = device::Provided{Executable(built->executable), built->tier, built->build_time};
        return *std::move(built);
      }
      result = std::move(built).error();
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& thrown) {
      result = Error(Errc::internal, base::text("Building kernel '{}' threw: {}.", kernel, thrown.what()));
    } catch (...) {
      result = Error(Errc::internal, base::text("Building kernel '{}' threw.", kernel));
    }
  } catch (const std::bad_alloc&) {  // `result` says so from the beginning
  }
  return std::nullopt;
}

void Cache::count_failure(const Key& key, const Error& error) {
  const std::lock_guard lock(lock_);
  ++table_.counted().failures;
  if (is_lasting(error)) table_.add_failure(key, error);
}

void Cache::report(const BuildRequest& request, const Build& build, const Built* built) const noexcept {
  if (!journal_->wants<base::KernelBuilt>() || (built && built->tier == CacheTier::none)) return;
  base::KernelBuilt event;
  event.id = build.id;
  event.kernel = request.program->name();
  event.device = request.device->info().id;
  if (built) {
    event.tier = built->tier;
    event.took = built->build_time;
    event.bytes = built->executable->bytes();
  } else {
    event.took = clock_.now() - build.began;
    event.error = build.result.error();
  }
  {
    const auto lock = freeze();
    event.hit_rate = metrics_locked().hit_rate();
  }
  journal_->emit(event);
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
  const std::lock_guard lock(lock_);
  ++table_.counted().corrupt;
}

Result<Cache::Built> Cache::try_build(const BuildRequest& request) {
  const Digest& digest = request.key.digest;
  const device::Program& program = *request.program;
  device::DeviceBase& device = *request.device;
  Instant start = clock_.now();
  const bool compiled = program.storable(device), stored = store_ && compiled;
  const bool with_all_code = compiled && request.code == DriverCode::complete;
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
      const std::lock_guard lock(lock_);
      patience = std::max(patience, 3 * table_.build_cost(device.info().id).value_or(Duration{}));
    }
    built.claim = store_->claim(digest, Instant{});
    if (built.claim.waited) {  // another process has it
      {
        const std::lock_guard lock(lock_);
        ++table_.counted().joined_processes;
      }
      built.claim = store_->claim(digest, clock_.now() + patience, clock_);
      built.claim.waited = true;
    }
    start = clock_.now();
    if (built.claim.lock || built.claim.waited) load_stored(digest, built, artefact);
    if (artefact) to_load = std::exchange(built.claim, {});
  }
  if (stored) drivers_->prepare(device);
  MarkedBuild marked;
  if (stored) marked = store_->mark(build_name(digest, device), artefact ? to_load : built.claim);
  if (marked.deaths() != Deaths{}) {
    {
      const std::lock_guard lock(lock_);
      ++table_.counted().deaths;
    }
    if (auto refused = refusal_after_deaths(program, device, with_all_code, artefact, marked))
      return *std::move(refused);
  }
  if (!artefact) {
    marked.reach(compiling);
    auto made = program.build(device);
    if (!made) return std::move(made).error();
    artefact = std::move(*made);
  }
  if (artefact->host) built.tier = CacheTier::none;  // a host function needs no build
  marked.reach(creating);
  auto executable = device.create_executable(*artefact);
  if (!executable) return std::move(executable).error();
  built.executable = std::move(*executable);
  if (with_all_code) {
    marked.reach(generating);
    make_all_code(built.executable);
  }
  built.build_time = clock_.now() - start;
  built.compiled = compiled;
  if (stored && built.tier == CacheTier::built) built.to_store = std::move(artefact);
  if (built.executable->may_end_loops_early() && !program.has_short_loops())
    log_.write(LogLevel::warning, "cache", device::early_loop_ends(program.name(), device.info()));
  if (log_.wants(LogLevel::debug, "cache"))
    log_.write(LogLevel::debug, "cache",
               base::text("Kernel '{}' for '{}': {} in {} us.", program.name(), device.info().id,
                          built.tier == CacheTier::disk     ? "from disk"
                          : built.tier == CacheTier::bundle ? "from a bundle"
                                                            : "built",
                          std::chrono::duration_cast<std::chrono::microseconds>(built.build_time).count()));
  return built;
}

}  // namespace wye::cache
