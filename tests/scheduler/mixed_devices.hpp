#pragma once
/// A scheduler on real and on scripted devices.
#include <wye/wye.hpp>

#include <optional>
#include <utility>
#include <vector>

#include "rig.hpp"

namespace wye::test {

/// A scheduler on the devices of a runtime, and on scripted devices after them.
struct MixedDevices {
  MixedDevices(Runtime opened, const std::vector<Scripted>& scripted_devices, SchedulerOptions options,
               const PoolOptions& of_pool = {.lanes_per_device = 4})
      : real(std::move(opened)) {
    pool::Inventory inventory;
    for (const Device& device : real.devices()) {
      inventory.adapters.push_back(device.info());
      inventory.devices.push_back(base::state_of(device));
    }
    for (const Scripted& device : scripted_devices) {
      inventory.adapters.push_back(device->info());
      inventory.devices.push_back(device);
    }
    pool = wye::detail::Internals::make<ContextPool>(pool::Pool::open(of_pool, std::move(inventory)));
    scheduler = Scheduler::open(*pool, cache, std::move(options)).value();
  }

  Runtime real;
  ShaderCache cache = ShaderCache::open().value();
  std::optional<ContextPool> pool;
  std::optional<Scheduler> scheduler;
};

}  // namespace wye::test
