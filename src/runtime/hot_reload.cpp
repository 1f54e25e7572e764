#include "runtime/hot_reload.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "base/gate.hpp"
#include "base/process.hpp"
#include "base/text.hpp"

namespace wye::inline v0::runtime {

namespace {

const kernel::KernelProgram& kernel_of(const device::Program& program) {
  return static_cast<const kernel::KernelProgram&>(program);  // the only class of programs
}

}  // namespace

Result<std::shared_ptr<HotReload>> HotReload::start(std::shared_ptr<cache::Cache> cache, base::Logger log,
                                                    ReloadSink on_reload, const Clock& clock) {
  auto reloader = base::own(new HotReload(std::move(cache), std::move(log), clock));
  if (on_reload) {
    auto sink = reloader->cache_->journal()->listen<base::KernelReloaded>(
        [on_reload = std::move(on_reload)](const base::KernelReloaded& event) {
          on_reload({std::string(event.kernel), event.error, event.took});
        });
    if (!sink) return std::move(sink).error();
    reloader->sink_ = *std::move(sink);
  }
  auto watch = base::FileWatch::start([weak = std::weak_ptr(reloader)] {
    if (const auto self = weak.lock()) self->check_all();
  });
  if (!watch) return std::move(watch).error();
  reloader->watch_ = std::make_shared<base::FileWatch>(std::move(*watch));
  reloader->cache_->observe(reloader);
  return reloader;
}

void HotReload::stop() {
  std::shared_ptr<base::FileWatch> ended;
  const base::Lock lock(mutex_);
  ended = std::move(watch_);
}

void HotReload::used(const std::shared_ptr<const device::Program>& program,
                     const std::shared_ptr<device::DeviceBase>& device) {
  if (!kernel_of(*program).is_from_files() || program->id() == replacement_id_) return;
  std::shared_ptr<base::FileWatch> watch;
  {
    const base::Lock lock(mutex_);
    if (!watch_) return;
    const auto [place, is_new] = watched_.try_emplace(program->id());
    Watched& watched = place->second;
    if (is_new) {
      watched.program = program;
      watch = watch_;
    }
    const auto is_same = [&](const auto& known) {
      return !known.owner_before(device) && !device.owner_before(known);
    };
    if (std::none_of(watched.devices.begin(), watched.devices.end(), is_same))
      watched.devices.push_back(device);
  }
  if (watch) watch->ring();
}

std::shared_ptr<base::FileWatch> HotReload::watch() {
  const base::Lock lock(mutex_);
  return watch_;
}

std::vector<HotReload::Used> HotReload::all_used() {
  std::vector<Used> used;
  const base::Lock lock(mutex_);
  std::erase_if(watched_, [](const auto& one) { return one.second.program.expired(); });
  for (auto& [id, watched] : watched_)
    if (auto program = watched.program.lock())
      used.push_back({&watched, std::move(program), watched.devices});
  return used;
}

void HotReload::check_all() {
  try {
    std::vector<std::string> files;
    for (const Used& one : all_used()) {
      if (!watch()) return;
      check(*one.watched, kernel_of(*one.program), one.devices);
      files.insert(files.end(), one.watched->files.begin(), one.watched->files.end());
    }
    std::sort(files.begin(), files.end());
    files.erase(std::unique(files.begin(), files.end()), files.end());
    const auto watch = this->watch();
    if (!watch || files == files_) return;
    files_ = files;
    watch->watch(std::move(files));
  } catch (const std::bad_alloc&) {  // the next change tries again
  }
}

void HotReload::check(Watched& watched, const kernel::KernelProgram& program, const Devices& devices) {
  const Instant began = clock_.now();
  const auto now = program.read_again();
  if (now)
    watched.files = (*now)->files();
  else if (watched.files.empty())
    watched.files = program.files();

  std::string contents = now ? (*now)->digests().in_process.hex() : now.error().describe();
  if (watched.contents == contents) return;
  const bool same = now && (*now)->digests().in_process == kernel_of(program.current()).digests().in_process;
  const bool begins = std::exchange(watched.contents, std::move(contents)).empty();
  if (same && begins) return;
  std::optional<Error> error;
  if (!now)
    error = now.error();
  else if (!same)
    error = compile(*now, devices);
  if (error)
    error =
        error->with_context(base::text("while reloading kernel '{}', which is unchanged", program.name()));
  else if (!same)
    program.replace(*now);
  report({program.name_string(), std::move(error), clock_.now() - began});
}

/// Returns the reason why `program` cannot replace its predecessor on its devices, or nothing.
std::optional<Error> HotReload::compile(const std::shared_ptr<const kernel::KernelProgram>& program,
                                        const Devices& devices) {
  replacement_id_ = program->id();
  for (const auto& one : devices) {
    const auto device = one.lock();
    if (!device || device->lost()) continue;
    auto provided = cache_->provide(program, device, Instant::max());
    if (!provided && !device->lost()) return provided.error();
  }
  return std::nullopt;
}

void HotReload::report(const Reload& reload) {
  if (reload.error)
    log_.write(LogLevel::warning, "runtime", reload.error->describe());
  else
    log_.write(LogLevel::info, "runtime",
               base::text("Kernel '{}' was reloaded in {} ms.", reload.kernel,
                          std::chrono::duration_cast<std::chrono::milliseconds>(reload.took).count()));
  cache_->journal()->emit(
      base::KernelReloaded{.kernel = reload.kernel, .error = reload.error, .took = reload.took});
}

}  // namespace wye::runtime
