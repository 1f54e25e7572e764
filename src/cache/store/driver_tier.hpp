#pragma once
/// Driver code, stored between processes.
#include "base/digest.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "base/gate.hpp"
#include "cache/store/artefact_store.hpp"
#include "device/device.hpp"

namespace wye::inline v0::cache {

/// Gives each driver the code that it generated in earlier processes, before a device creates its
/// first executable. Records are found by device and exact driver build, and checked for damage,
/// also by the device. If two processes in a row end while they load a record, it is
/// removed.
/// Threads: thread-safe. A thread that needs a device waits while another thread prepares it.
class DriverTier {
 public:
  struct Counts {
    std::uint64_t loaded = 0;   ///< devices that got their code
    std::uint64_t corrupt = 0;  ///< records that were damaged or refused
  };

  explicit DriverTier(ArtefactStore& store) : store_(store) {}

  /// Call it before `device` creates an executable.
  void prepare(device::DeviceBase& device);
  /// Call it after `device` has created one. Stores the code each time the number of executables
  /// has doubled.
  void made(device::DeviceBase& device);
  /// Stores the unsaved code of all live devices.
  void save();
  Counts counts() const;

 private:
  enum class Phase : std::uint8_t { fresh, loading, prepared };
  struct State {
    std::weak_ptr<device::DeviceBase> device;
    Phase phase = Phase::fresh;
    Digest saved;             ///< of the code in the store
    std::uint64_t count = 0;  ///< executables created
    std::uint64_t next = 8;   ///< the count at which it is stored
    bool is_saved = true;
  };

  std::shared_ptr<State> state_of(device::DeviceBase& device);  ///< under `mutex_`
  void load(device::DeviceBase& device, State& state);
  void save(device::DeviceBase& device, State& state);

  ArtefactStore& store_;
  mutable std::mutex mutex_;
  base::Gate gate_;  ///< woken when a device is prepared
  std::unordered_map<const device::DeviceBase*, std::shared_ptr<State>>
      states_;  ///< under `mutex_`, like all that follows
  Counts counts_;
};

}  // namespace wye::cache
