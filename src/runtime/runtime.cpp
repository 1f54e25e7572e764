#include <wye/runtime/runtime.hpp>

#include <new>
#include <optional>
#include <string_view>
#include <utility>

#include "base/logger.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "cache/cache.hpp"
#include "data/array_state.hpp"
#include "pool/pool.hpp"
#include "runtime/environment.hpp"
#include "runtime/hot_reload.hpp"
#include "scheduler/core.hpp"

namespace wye {
inline namespace v0 {
namespace runtime {

struct State {
  ContextPool pool;
  ShaderCache cache;
  Scheduler scheduler;
  std::shared_ptr<HotReload> reload;  // null where it is off

  std::optional<Duration> close_timeout;

  void close() {
    if (pool.state()->origin().is_inherited()) return;
    if (reload) reload->stop();
    scheduler.close();
    pool.close();
  }

  Result<void> close(Instant until) noexcept {
    if (const Error* inherited = pool.state()->origin().error()) return *inherited;
    if (reload) reload->stop();
    auto jobs = scheduler.state()->close(until);
    auto work = pool.state()->close(until);
    if (jobs) return work;
    if (work) return jobs;
    try {
      return Error(Errc::timed_out, jobs.error().sentence() + " " + work.error().sentence());
    } catch (const std::bad_alloc&) {
      return jobs;
    }
  }
};

namespace {

Result<ShaderCache> open_cache(const Resolved& resolved) {
  CacheOptions options = resolved.cache;
  if (!resolved.is_default_directory) return ShaderCache::open(std::move(options));
  const base::Logger log(options.log, {.level = LogLevel::trace, .rooms = {}});
  constexpr std::string_view without = "Going on without stored kernels";
  if (options.directory.empty()) {
    log.write(LogLevel::warning, "runtime",
              base::text("{}: neither XDG_CACHE_HOME nor HOME is an absolute path.", without));
    return ShaderCache::open(std::move(options));
  }
  auto opened = ShaderCache::open(options);
  if (opened || opened.error() != Errc::io) return opened;
  log.write(LogLevel::warning, "runtime", base::text("{}: {}", without, opened.error().sentence()));
  options.directory.clear();
  return ShaderCache::open(std::move(options));
}

}  // namespace

}  // namespace runtime

Result<Runtime> Runtime::open(RuntimeOptions options, Version header) {
  if (auto ok = base::check_header(header); !ok) return std::move(ok).error();
  try {
    auto resolved = runtime::resolve(std::move(options), runtime::process_environment);
    if (!resolved) return std::move(resolved).error();
    const std::optional<Duration> close_timeout = resolved->scheduler.close_timeout;
    auto pool = ContextPool::open(std::move(resolved->pool));
    if (!pool) return std::move(pool).error();
    auto cache = runtime::open_cache(*resolved);
    if (!cache) return std::move(cache).error();
    for (const Device& device : pool->devices()) device.base()->add_reclaimable(cache::share(*cache));
    std::shared_ptr<runtime::HotReload> reload;
    if (resolved->hot_reload) {
      auto started = runtime::HotReload::start(
          cache::share(*cache),
          base::Logger(resolved->scheduler.log, {.level = LogLevel::trace, .rooms = {}}),
          std::move(resolved->on_reload), cache::of(*cache).clock());
      if (!started) return std::move(started).error();
      reload = std::move(*started);
    }
    auto scheduler = Scheduler::open(*pool, *cache, std::move(resolved->scheduler));
    if (!scheduler) return std::move(scheduler).error();
    // Arrays and tickets may outlive the runtime; what ends with its last copy is that jobs can run.
    std::shared_ptr<runtime::State> state(
        new runtime::State{std::move(*pool), std::move(*cache), std::move(*scheduler), std::move(reload),
                           close_timeout},
        [](runtime::State* last) {
          if (last->close_timeout)
            (void)last->close(Deadline(*last->close_timeout).at(Clock::steady())).has_value();
          else
            last->close();
          delete last;  // in a child of fork, that ends copies of handles and no object behind them
        });
    return Runtime(std::move(state));
  } catch (const std::bad_alloc&) {
    return Error(Errc::out_of_memory, "The host has no memory for a runtime.");
  }
}

Ticket Runtime::submit(Job job, const JobOptions& options) {
  return state_->scheduler.submit(std::move(job), options);
}
Result<Outcome> Runtime::run(Job job, const JobOptions& options) {
  return state_->scheduler.run(std::move(job), options);
}

const std::vector<AdapterInfo>& Runtime::adapters() const { return state_->pool.adapters(); }
const std::vector<Device>& Runtime::devices() const { return state_->pool.devices(); }

Metrics Runtime::metrics() const {
  if (state_->pool.state()->origin().is_inherited()) return {};
  std::vector<Monitoring> devices;  // by calls of drivers: before anything is held
  for (const Device& device : state_->pool.devices()) devices.push_back(device.monitor());
  // One moment: all three rooms hold still. They never take each other's locks, so this order cannot meet another one.
  const auto& core = *state_->scheduler.state();
  const auto& pool = *state_->pool.state();
  const auto& cache = cache::of(state_->cache);
  const auto jobs_still = core.freeze();
  const auto pool_still = pool.freeze();
  const auto cache_still = cache.freeze();
  return {pool.metrics_locked(), cache.metrics_locked(), core.metrics_locked(), pool.contexts_locked(),
          std::move(devices)};
}

ContextPool& Runtime::pool() { return state_->pool; }
ShaderCache& Runtime::cache() { return state_->cache; }
Scheduler& Runtime::scheduler() { return state_->scheduler; }
void Runtime::close() { state_->close(); }

Result<void> Runtime::close(Deadline deadline) {
  const Clock& clock = state_->pool.state()->clock();
  return state_->close(base::parked_until(clock, deadline.at(clock)));
}

std::shared_ptr<data::ArrayState> Runtime::make_array(std::span<const std::byte> values, std::uint64_t count,
                                                      ElementType element, std::uint32_t size) {
  return data::ArrayState::make(state_->pool.state(), values, count, element, size);
}

std::shared_ptr<data::ArrayState> Runtime::borrow_array(std::span<std::byte> memory, std::uint64_t count,
                                                        ElementType element, std::uint32_t size) {
  return data::ArrayState::borrow(state_->pool.state(), memory, count, element, size);
}

}  // namespace v0
}  // namespace wye
