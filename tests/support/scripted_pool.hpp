#pragma once
/// A pool of devices whose failures a test scripts.
#include <wye/pool/context_pool.hpp>

#include <memory>
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

inline ContextPool pool_of(const std::vector<Scripted>& devices, PoolOptions options = {}) {
  pool::Inventory inventory;
  for (const Scripted& device : devices) {
    inventory.adapters.push_back(device->info());
    inventory.devices.push_back(device);
  }
  return wye::detail::Internals::make<ContextPool>(
      pool::Pool::open(std::move(options), std::move(inventory)));
}

/// Fails the lane of `lease`, as a failed submission does. Its context has no lane when the lease has ended.
inline void fail(Lease& lease) { base::state_of(lease)->lane().fail(Error(Errc::internal, "no more")); }

}  // namespace wye::test
