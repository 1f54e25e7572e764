#include "runtime/hot_reload.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "base/gate.hpp"
#include "base/process.hpp"
#include "base/text.hpp"

namespace wye {
inline namespace v0 {
namespace runtime {

namespace {

const kernel::KernelProgram& kernel_of(const device::Program& program) {
  return static_cast<const kernel::KernelProgram&>(program);  // nothing else makes programs
}

}  // namespace

Result<std::shared_ptr<HotReload>> HotReload::start(std::shared_ptr<cache::Cache> cache, base::Logger log,
                                                    ReloadSink told, const Clock& clock) {
  auto made = base::own(new HotReload(std::move(cache), std::move(log), std::move(told), clock));
  auto watch = base::FileWatch::start([weak = std::weak_ptr(made)] {
    if (const auto self = weak.lock()) self->look();
  });
  if (!watch) return std::move(watch).error();
  made->watch_ = std::make_shared<base::FileWatch>(std::move(*watch));
  made->cache_->observe(made);
  return made;
}

void HotReload::stop() {
  std::shared_ptr<base::FileWatch> ended;
  const base::Lock lock(mutex_);
  ended = std::move(watch_);
}

void HotReload::used(const std::shared_ptr<const device::Program>& program,
                     const std::shared_ptr<device::DeviceBase>& device) {
  if (!kernel_of(*program).is_from_files() || program->id() == making_) return;
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
    const auto is_it = [&](const auto& known) {
      return !known.owner_before(device) && !device.owner_before(known);
    };
    if (std::none_of(watched.devices.begin(), watched.devices.end(), is_it))
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

void HotReload::look() {
  try {
    std::vector<std::string> files;
    for (const Used& one : all_used()) {
      if (!watch()) return;
      look_at(*one.watched, kernel_of(*one.program), one.devices);
      files.insert(files.end(), one.watched->files.begin(), one.watched->files.end());
    }
    std::sort(files.begin(), files.end());
    files.erase(std::unique(files.begin(), files.end()), files.end());
    const auto watch = this->watch();
    if (!watch || files == files_) return;
    files_ = files;
    watch->watch(std::move(files));
  } catch (const std::bad_alloc&) {  // the next change is another chance
  }
}

void HotReload::look_at(Watched& watched, const kernel::KernelProgram& program, const Devices& devices) {
  const Instant began = clock_.now();
  const auto now = program.read_again();
  if (now)
    watched.files = (*now)->files();
  else if (watched.files.empty())
    watched.files = program.files();

  std::string made = now ? (*now)->texts().hex() : now.error().describe();
  if (watched.made == made) return;
  const bool same = now && (*now)->texts() == kernel_of(program.current()).texts();
  const bool begins = std::exchange(watched.made, std::move(made)).empty();
  if (same && begins) return;
  std::optional<Error> error;
  if (!now)
    error = now.error();
  else if (!same)
    error = compile(*now, devices);
  if (error)
    error = error->with_context(
        base::text("while reloading kernel '{}', which stays what it was", program.name()));
  else if (!same)
    program.replace(*now);
  tell({program.name_string(), std::move(error), clock_.now() - began});
}

/// Why it cannot be used where its predecessor is, or nothing.
std::optional<Error> HotReload::compile(const std::shared_ptr<const kernel::KernelProgram>& program,
                                        const Devices& devices) {
  making_ = program->id();
  for (const auto& one : devices) {
    const auto device = one.lock();
    if (!device || device->lost()) continue;
    auto provided = cache_->provide(program, device, Instant::max());
    if (!provided && !device->lost()) return provided.error();
  }
  return std::nullopt;
}

void HotReload::tell(const Reload& reload) {
  if (reload.error)
    log_.write(LogLevel::warning, "runtime", reload.error->describe());
  else
    log_.write(LogLevel::info, "runtime",
               base::text("Kernel '{}' is reloaded, in {} ms.", reload.kernel,
                          std::chrono::duration_cast<std::chrono::milliseconds>(reload.took).count()));
  if (!told_) return;
  try {
    told_(reload);
  } catch (...) {  // it is the host's
  }
}

}  // namespace runtime
}  // namespace v0
}  // namespace wye
