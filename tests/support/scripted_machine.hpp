#pragma once
/// A machine in which a test plugs in and unplugs scripted devices.
#include <wye/pool/context_pool.hpp>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/scripted_pool.hpp"

namespace wye::test {

/// What the backends find.
/// Threads: thread-safe.
struct ScriptedMachine {
  /// Plugs in a device. Returns its adapter.
  std::shared_ptr<Reopening> plug(const std::string& id, std::uint8_t silicon,
                                  AdapterType type = AdapterType::discrete) {
    auto adapter = std::make_shared<Reopening>(scripted(id, type, {}, silicon)->info());
    const std::lock_guard lock(mutex);
    adapters.push_back(adapter);
    return adapter;
  }
  void unplug(const std::shared_ptr<Reopening>& adapter) {
    const std::lock_guard lock(mutex);
    std::erase(adapters, adapter);
  }
  std::vector<device::Discovered> discover() {
    const std::lock_guard lock(mutex);
    ++discoveries;
    std::vector<device::Discovered> found;
    for (const auto& adapter : adapters) found.push_back({.info = adapter->described, .adapter = adapter});
    return found;
  }
  /// Opens a pool of the devices that are plugged in now.
  ContextPool open(PoolOptions options = {}) {
    pool::Inventory inventory;
    for (const auto& adapter : adapters) {
      auto opened = adapter->open();
      inventory.adapters.push_back(adapter->described);
      pool::note_opened(inventory.adapters.back(), opened);
      if (!opened) continue;
      inventory.devices.push_back(*std::move(opened));
      inventory.reopened_by.push_back(adapter);
    }
    inventory.discover = [this]() -> Result<std::vector<device::Discovered>> { return discover(); };
    return wye::detail::Internals::make<ContextPool>(
        pool::Pool::open(std::move(options), std::move(inventory)));
  }

  std::mutex mutex;
  std::vector<std::shared_ptr<Reopening>> adapters;
  int discoveries = 0;
};

}  // namespace wye::test
