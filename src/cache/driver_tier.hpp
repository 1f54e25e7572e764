#pragma once
/// Code that drivers made, kept between processes.
#include <wye/base/digest.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "base/gate.hpp"
#include "cache/artefact_store.hpp"
#include "device/contract.hpp"

namespace wye {
inline namespace v0 {
namespace cache {

/// Gives each driver what it made of kernels in earlier processes, before it makes the first executable of a device.
/// The record is found by the device and the exact build of the driver, and checked against damage and by the device
/// itself. A driver that dies of it twice begins with nothing.
/// Threads: thread-safe. Who needs a device that another thread prepares waits for that.
class DriverTier {
 public:
  struct Counts {
    std::uint64_t loaded = 0;   ///< devices that began with what was made before
    std::uint64_t corrupt = 0;  ///< records that were damaged or refused
  };

  explicit DriverTier(ArtefactStore& store) : store_(store) {}

  /// To be called before an executable is made on `device`.
  void prepare(device::DeviceBase& device);
  /// To be called after one was made. Stores what there is each time twice as many have been made.
  void made(device::DeviceBase& device);
  /// Stores what is not stored yet, of all devices that are still there.
  void save();
  Counts counts() const;

 private:
  enum class Phase : std::uint8_t { fresh, loading, prepared };
  struct State {
    std::weak_ptr<device::DeviceBase> device;
    Phase phase = Phase::fresh;
    Digest saved;             ///< of the code in the store
    std::uint64_t count = 0;  ///< of executables made
    std::uint64_t next = 8;   ///< so many, and it is stored
    bool is_saved = true;
  };

  std::shared_ptr<State> state_of(device::DeviceBase& device);  ///< under `mutex_`
  void load(device::DeviceBase& device, State& state);
  void save(device::DeviceBase& device, State& state);

  ArtefactStore& store_;
  mutable std::mutex mutex_;
  base::Gate gate_;  ///< devices are prepared
  std::unordered_map<const device::DeviceBase*, std::shared_ptr<State>>
      states_;  ///< under `mutex_`, as all of it
  Counts counts_;
};

}  // namespace cache
}  // namespace v0
}  // namespace wye
