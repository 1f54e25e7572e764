#pragma once
/// A port to storage for facts about builds of drivers.
#include <wye/base/result.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/digest.hpp"

namespace wye::inline v0::device {

/// Stores bytes between processes. Each record is valid for one build of a driver.
/// Threads: thread-safe, among processes too.
class DriverRecords {
 public:
  /// The device and the driver of a record, as texts for lists of a store.
  struct Subject {
    std::string device;
    std::string driver;
  };
  /// Returns the new bytes of a record. `stored`: the present ones; empty: there are none.
  using Update = std::function<std::vector<std::byte>(std::span<const std::byte> stored)>;

  virtual ~DriverRecords() = default;
  /// Returns the bytes of a record; nothing if it is not stored.
  /// Errors: corrupt.
  virtual Result<std::optional<std::vector<std::byte>>> load(const Digest& key) = 0;
  /// Changes a record, while no other process does. `update` returns empty bytes to remove it.
  /// Returns false if it could not be stored now. Throws: that of `update`.
  virtual bool update(const Digest& key, const Subject& subject, const Update& update) = 0;
};

}  // namespace wye::device
