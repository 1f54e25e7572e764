#pragma once
/// The adapters that an application selects (`PoolOptions::devices`).
#include <wye/base/result.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/backend.hpp"

namespace wye::inline v0::pool {

/// Names of adapters: ids, and UUIDs of processors. Without a name, it selects every adapter.
/// Threads: thread-compatible.
class DeviceMask {
 public:
  explicit DeviceMask(std::vector<std::string> names) : names_(std::move(names)) {}
  /// Errors: invalid_argument: a name is empty or repeated.
  Result<void> check() const;
  /// Returns whether an adapter of this backend may be selected.
  bool may_name(std::string_view backend) const;
  /// Removes the adapters of `found` that are not selected. The others get the order of the names,
  /// and numbers from 0 for each backend. Returns the names that select no adapter.
  std::vector<std::string> apply(std::vector<device::Discovered>& found) const;

 private:
  std::vector<std::string> names_;
};

}  // namespace wye::pool
