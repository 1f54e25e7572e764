#pragma once
/// A pool of devices whose failures a test scripts.
#include <wye/pool/context_pool.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/internals.hpp"
#include "pool/discovery.hpp"
#include "pool/pool.hpp"
#include "support/scripted_device.hpp"

namespace wye::test {

using Scripted = std::shared_ptr<ScriptedDevice>;

inline Scripted scripted(const std::string& id, AdapterType type = AdapterType::discrete,
                         Features features = {}, std::uint8_t silicon = 0) {
  return std::make_shared<ScriptedDevice>(id, type, features, silicon);
}

/// An adapter that opens a scripted device again after a loss.
struct Reopening final : device::Adapter {
  explicit Reopening(AdapterInfo of) : described(std::move(of)) {}
  const AdapterInfo& info() const noexcept override { return described; }
  bool can_reopen() const noexcept override { return true; }
  Result<std::shared_ptr<device::DeviceBase>> open() override {
    ++calls;
    if (failure) return *failure;
    devices.push_back(
        scripted(described.id, described.type, described.features, described.device_uuid.back()));
    if (lies) devices.back()->hide_loss(), devices.back()->lose();
    if (prepare) prepare(*devices.back());
    return std::shared_ptr<device::DeviceBase>(devices.back());
  }

  AdapterInfo described;
  std::optional<Error> failure;                        ///< of `open`
  bool lies = false;                                   ///< its devices report success and do nothing
  std::function<void(test::ScriptedDevice&)> prepare;  ///< called with each device that it opens
  int calls = 0;                                       ///< of `open`
  std::vector<Scripted> devices;                       ///< that it has opened
};

/// Opens a pool of devices that are open already.
inline ContextPool pool_over(std::vector<std::shared_ptr<device::DeviceBase>> devices,
                             PoolOptions options = {},
                             std::vector<std::shared_ptr<device::Adapter>> reopened_by = {}) {
  pool::Inventory inventory;
  for (const auto& device : devices) inventory.adapters.push_back(device->info());
  inventory.devices = std::move(devices);
  inventory.reopened_by = std::move(reopened_by);
  auto pool = pool::Pool::open(std::move(options), std::move(inventory));
  pool->accounts().subscribe_sinks().value();
  return wye::detail::Internals::make<ContextPool>(std::move(pool));
}

inline ContextPool pool_of(const std::vector<Scripted>& devices, PoolOptions options = {},
                           std::vector<std::shared_ptr<device::Adapter>> reopened_by = {}) {
  return pool_over({devices.begin(), devices.end()}, std::move(options), std::move(reopened_by));
}

/// Fails the lane of `lease`, as a failed submission does. Its context has no lane when the lease
/// has ended.
inline void fail(Lease& lease) { base::state_of(lease)->lane().fail(Error(Errc::internal, "no more")); }

}  // namespace wye::test
