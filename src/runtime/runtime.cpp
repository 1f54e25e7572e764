#include <wye/runtime/runtime.hpp>

#include <new>
#include <optional>
#include <utility>

#include "base/host_info.hpp"
#include "base/internals.hpp"
#include "base/journal.hpp"
#include "base/logger.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "cache/cache.hpp"
#include "data/array_state.hpp"
#include "pool/pool.hpp"
#include "runtime/events.hpp"
#include "runtime/hot_reload.hpp"
#include "runtime/qualification.hpp"
#include "scheduler/core.hpp"

namespace wye::inline v0 {
namespace runtime {

struct State {
  ContextPool pool;
  ShaderCache cache;
  Scheduler scheduler;
  std::shared_ptr<HotReload> reload;  // null if it is off
  std::shared_ptr<DeviceQualifier> qualifier;
  std::shared_ptr<base::Journal> journal;
  base::Subscription log;  // writes events to the log, at level debug

  RuntimeOptions options;

  void close() {
    if (base::state_of(pool)->origin().is_inherited()) return;
    if (reload) reload->stop();
    scheduler.close();
    pool.close();
  }

  Result<void> close(Instant until) noexcept {
    if (const Error* inherited = base::state_of(pool)->origin().error()) return *inherited;
    if (reload) reload->stop();
    auto jobs = base::state_of(scheduler)->close(until);
    auto work = base::state_of(pool)->close(until);
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

/// Gives pool, cache and scheduler the log, clock and limit of the runtime, unless they have their
/// own.
/// Errors: invalid_argument: `options.log_level` cannot be parsed.
Result<void> share_options(RuntimeOptions& options) {
  auto filter = base::LogFilter::parse(options.log_level);
  if (!filter) return std::move(filter).error().with_context("while reading RuntimeOptions::log_level");
  options.log = base::Logger(std::move(options.log), *std::move(filter)).sink();
  const auto fill = [&](auto& part) {
    if (!part.log) part.log = options.log;
    if (!part.clock) part.clock = options.clock;
  };
  fill(options.pool);
  fill(options.cache);
  fill(options.scheduler);
  if (options.close_timeout) {
    if (!options.pool.close_timeout) options.pool.close_timeout = options.close_timeout;
    if (!options.scheduler.close_timeout) options.scheduler.close_timeout = options.close_timeout;
  }
  return {};
}

/// Writes events to a log that wants them. If there is no thread for it, the log lacks them.
base::Subscription log_events(base::Journal& journal, base::Logger log) {
  if (!log.wants(LogLevel::debug, "event")) return {};
  auto subscribed = journal.listen_to_all(
      [log](const base::Event& event) { log.write(LogLevel::debug, "event", shown(event).text()); });
  if (subscribed) return *std::move(subscribed);
  log.write(LogLevel::warning, "event", subscribed.error().describe());
  return {};
}

}  // namespace

}  // namespace runtime

Result<Runtime> Runtime::open_from_environment(Headers headers) {
  if (auto ok = base::check_headers<RuntimeOptions>(headers); !ok) return std::move(ok).error();
  auto options = RuntimeOptions::from_environment();
  if (!options) return std::move(options).error();
  return open(*std::move(options), headers);
}

Result<Runtime> Runtime::open(RuntimeOptions options, Headers headers) {
  if (auto ok = base::check_headers<RuntimeOptions>(headers); !ok) return std::move(ok).error();
  try {
    if (auto ok = runtime::share_options(options); !ok) return std::move(ok).error();
    RuntimeOptions shown = options;
    const auto journal = base::Journal::make();
    base::Subscription log = runtime::log_events(*journal, base::Logger(options.log));
    auto cache = cache::open(std::move(options.cache), journal);
    if (!cache) return std::move(cache).error();
    auto qualifier = std::make_shared<runtime::DeviceQualifier>(
        cache::share(*cache), options.qualification, base::Logger(options.log),
        base::text("{}\n{}", options.pool.cuda_driver, options.pool.validate_driver));
    auto opened = pool::Pool::open(std::move(options.pool), qualifier, journal);
    if (!opened) return std::move(opened).error();
    auto pool = detail::Internals::make<ContextPool>(std::move(*opened));
    std::shared_ptr<runtime::HotReload> reload;
    if (options.hot_reload) {
      auto started = runtime::HotReload::start(cache::share(*cache), base::Logger(options.log),
                                               std::move(options.on_reload), cache::of(*cache).clock());
      if (!started) return std::move(started).error();
      reload = std::move(*started);
    }
    auto scheduler = Scheduler::open(pool, *cache, std::move(options.scheduler));
    if (!scheduler) return std::move(scheduler).error();
    // Arrays and tickets may outlive the runtime. Its last copy ends the execution of jobs.
    std::shared_ptr<runtime::State> state(
        new runtime::State{std::move(pool), std::move(*cache), std::move(*scheduler), std::move(reload),
                           std::move(qualifier), journal, std::move(log), std::move(shown)},
        [](runtime::State* last) {
          if (last->options.close_timeout)
            (void)last->close(Deadline(*last->options.close_timeout).at(Clock::steady())).has_value();
          else
            last->close();
          last->log.finish();
          delete last;  // in a child of fork, destroys handles and none of the objects behind them
        });
    return Runtime(std::move(state));
  } catch (const std::bad_alloc&) {
    return Error(Errc::out_of_memory, "The host has no memory for a runtime.");
  }
}

Ticket Runtime::submit(Job job, const JobOptions& options) {
  return state_->scheduler.submit(std::move(job), options);
}
std::vector<Ticket> Runtime::submit(std::span<Job> jobs, const JobOptions& options) {
  return state_->scheduler.submit(jobs, options);
}
Result<Outcome> Runtime::run(Job job, const JobOptions& options) {
  return state_->scheduler.run(std::move(job), options);
}

const RuntimeOptions& Runtime::options() const { return state_->options; }
const std::vector<AdapterInfo>& Runtime::adapters() const { return state_->pool.adapters(); }
std::vector<Device> Runtime::devices() const { return state_->pool.devices(); }

Result<std::vector<AdapterInfo>> Runtime::rescan() { return state_->pool.rescan(); }

std::vector<QualificationReport> Runtime::qualifications() const {
  if (base::state_of(state_->pool)->origin().is_inherited()) return {};
  return state_->qualifier->reports();
}

Metrics Runtime::metrics() const {
  if (base::state_of(state_->pool)->origin().is_inherited()) return {};
  Metrics metrics;
  for (const Device& device : state_->pool.devices()) metrics.devices.push_back(device.monitor());
  metrics.jobs = state_->scheduler.metrics();
  metrics.cache = state_->cache.metrics();
  const auto& pool = *base::state_of(state_->pool);
  {
    const auto still = pool.freeze();
    metrics.pool = pool.metrics_locked();
    metrics.contexts = pool.contexts_locked();
  }
  pool.add_reserved(metrics.contexts);
  metrics.silicon = state_->pool.silicon();
  const base::ProcessUse use = base::process_use();
  metrics.process = {use.resident, use.processor_time};
  metrics.events_dropped = state_->journal->dropped();
  return metrics;
}

double Metrics::slot_use() const noexcept {
  double used = 0, slots = 0;
  for (const SiliconInfo& one : silicon) {
    used += one.used + one.used_elsewhere;
    slots += one.slots;
  }
  return slots == 0 ? 0 : used / slots;
}

Result<Lease> Runtime::lease(WorkloadType type, Bytes size, const LeaseRequest& request,
                             SourceLocation where) {
  pool::Pool& pool = *base::state_of(state_->pool);
  return pool.lease(request, pool.deadline_of(request), where,
                    {type.name, base::state_of(state_->scheduler)->preferred(type, size).devices});
}

Result<EventSubscription> Runtime::listen(EventListener listener) try {
  const auto& journal = state_->journal;
  auto subscribed = journal->listen_to_all(
      [call = std::move(listener)](const base::Event& event) { call(runtime::shown(event)); });
  if (!subscribed) return std::move(subscribed).error();
  return EventSubscription(
      std::make_unique<runtime::Subscribed>(runtime::Subscribed{journal, *std::move(subscribed)}));
} catch (const std::bad_alloc&) {
  return Error(Errc::out_of_memory, "The host has no memory for a listener.");
}

ContextPool& Runtime::pool() { return state_->pool; }
ShaderCache& Runtime::cache() { return state_->cache; }
Scheduler& Runtime::scheduler() { return state_->scheduler; }
void Runtime::close() { state_->close(); }

Result<void> Runtime::close(Deadline deadline) {
  const Clock& clock = base::state_of(state_->pool)->clock();
  return state_->close(base::parked_until(clock, deadline.at(clock)));
}

std::shared_ptr<data::ArrayState> Runtime::make_array(std::span<const std::byte> values, std::uint64_t count,
                                                      ElementType element, std::uint32_t size) {
  return data::ArrayState::make(base::state_of(state_->pool), values, count, element, size);
}

std::shared_ptr<data::ArrayState> Runtime::borrow_array(std::span<std::byte> memory, std::uint64_t count,
                                                        ElementType element, std::uint32_t size) {
  return data::ArrayState::borrow(base::state_of(state_->pool), memory, count, element, size);
}

}  // namespace wye
