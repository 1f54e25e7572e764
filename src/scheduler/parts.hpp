#pragma once
/// The parts that the queue and the runner of a scheduler share.
#include <wye/scheduler/scheduler.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

#include "base/logger.hpp"
#include "device/provider.hpp"
#include "flight/flight.hpp"
#include "pool/pool.hpp"
#include "scheduler/explainer.hpp"
#include "scheduler/placer.hpp"
#include "scheduler/plan_counts.hpp"
#include "scheduler/preparer.hpp"
#include "scheduler/recent.hpp"
#include "scheduler/spare_errors.hpp"
#include "scheduler/time_book.hpp"
#include "scheduler/time_store.hpp"

namespace wye::inline v0::scheduler {

/// The parts of a scheduler that know one job at a time.
/// Threads: each part as it says; the other members are constant.
struct Parts {
  /// `add_places` is that of `Placer`. Throws: std::bad_alloc.
  Parts(std::shared_ptr<pool::Pool> of, std::shared_ptr<device::ExecutableProvider> executables,
        SchedulerOptions chosen, std::function<void(const Table&)> add_places)
      : pool(std::move(of)),
        provider(std::move(executables)),
        options(std::move(chosen)),
        clock(options.clock ? *options.clock : pool->clock()),
        log(options.log),
        plan_counts(std::make_shared<PlanCounts>(pool->fleet().limit())),
        flights(*pool, clock, most_kept_flights),
        placer(*pool, clock, options, std::move(add_places)),
        store(pool->fleet(), placer,
              options.placement == PlacementMode::learned ? provider->driver_records() : nullptr, times,
              clock, log),
        preparer(*pool, *provider, clock, times, options.measure_variants),
        explainer(*pool, placer, times, options.placement == PlacementMode::learned),
        recent(options.recent) {}
  Parts(const Parts&) = delete;

  static constexpr std::size_t most_kept_flights = 64;

  const std::shared_ptr<pool::Pool> pool;
  const std::shared_ptr<device::ExecutableProvider> provider;
  const SchedulerOptions options;
  const Clock& clock;  ///< of jobs
  const base::Logger log;
  const std::shared_ptr<PlanCounts> plan_counts;
  const flight::Flights flights;
  TimeBook times;
  Placer placer;
  TimeStore store;
  Preparer preparer;
  const Explainer explainer;
  RecentJobs recent;
  const SpareErrors spare;
};

}  // namespace wye::scheduler
