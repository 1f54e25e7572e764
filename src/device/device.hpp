#pragma once
/// A device as a backend implements it: it makes buffers, executables, lanes and timelines.
#include <wye/base/clock.hpp>
#include <wye/base/digest.hpp>
#include <wye/base/result.hpp>
#include <wye/device/adapter.hpp>
#include <wye/device/monitoring.hpp>
#include <wye/device/native_code.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/process.hpp"
#include "device/artefact.hpp"
#include "device/buffer.hpp"
#include "device/executable.hpp"
#include "device/lane_base.hpp"
#include "device/silicon.hpp"
#include "device/timeline.hpp"

namespace wye {
inline namespace v0 {
namespace device {

class NativeDoor;

/// No numbers, all for one reason.
Monitoring unmonitored(std::string device, const std::string& why);

/// An opened adapter.
/// Threads: thread-safe.
class DeviceBase : public std::enable_shared_from_this<DeviceBase> {
 public:
  virtual ~DeviceBase();
  const AdapterInfo& info() const noexcept { return info_; }
  /// Which process opened it. To a child of `fork` it is a lost device: `lost` returns `origin().error()` there.
  const base::Origin& origin() const noexcept { return origin_; }
  /// The name of this device in other rooms, different for every device that this process opens.
  DeviceRef ref() const noexcept { return {silicon_->id(), generation_}; }
  const std::shared_ptr<Silicon>& silicon() const noexcept { return silicon_; }
  /// Languages of artefacts it can run, preferred first: {"spirv"}, {"host"}.
  virtual std::span<const std::string_view> languages() const noexcept = 0;
  virtual MemoryInfo memory() = 0;
  /// What the hardware's own monitor says; a reason for each number that it does not say, which is all of them here.
  virtual Monitoring monitor();
  /// The failure that ended this device, or null.
  const Error* lost() const noexcept {
    const Error* const inherited = origin_.error();
    return inherited ? inherited : ended_by();
  }
  /// Notes a timeline that another device moves too.
  void note_shared(const std::shared_ptr<Timeline>& timeline);
  /// Until when who waits for this device until `until` may sleep. Where lanes of it wait for another device that may be lost
  /// without anybody knowing, that is looked at, and the sleep is short. At once for who does not want to sleep.
  Instant sleep_until(Instant until);
  /// Why native functions with `probe` are of no use here; nothing where they are. It is asked once: what it says is kept.
  std::optional<Error> refusal_by(NativeProbe probe);
  /// The same, as far as it has been asked.
  std::optional<Error> known_refusal_by(NativeProbe probe) const;
  /// Names the device and the exact build of its driver, the same in every process. What a driver made is of use to no
  /// other.
  Digest driver_identity() const;
  /// Code that the driver made of kernels so far, for `preload` of a later process; empty where it gives none away.
  /// Errors: out_of_memory, device_lost.
  virtual Result<std::vector<std::byte>> driver_code();
  /// Gives the driver what `driver_code` gave on a device of the same `driver_identity`. Before the first executable is
  /// made; later it has no effect.
  /// Errors: corrupt (this driver did not write it: nothing of it was used), device_lost.
  virtual Result<void> preload(std::span<const std::byte> code);

  /// Creates a buffer. If the device, its silicon or the runtime has no room for it now, has reclaimables free memory that
  /// is not in use, in the order in which they were added, and tries once more.
  /// Errors: those of `create_buffer`; out_of_memory if the host has no memory to describe a buffer or an error.
  Result<std::shared_ptr<BufferBase>> allocate(const BufferRequest& request);
  /// Charges the account of `request`, for a backend that is about to allocate.
  /// Errors: those of `MemoryAccount::reserve`.
  Result<MemoryCharge> charge(const BufferRequest& request) const {
    return MemoryCharge::make(request.account ? request.account : silicon_->account(), request.bytes);
  }
  /// Adds an owner of memory of this device that `allocate` may ask to free some.
  void add_reclaimable(std::weak_ptr<Reclaimable> reclaimable);

  /// Errors: out_of_memory (too big for ever, or no room now: the sentence says which), over_budget, device_lost.
  virtual Result<std::shared_ptr<BufferBase>> create_buffer(const BufferRequest& request) = 0;
  /// Errors: unsupported (language, limit or feature), compile_failed, out_of_memory, device_lost.
  virtual Result<std::shared_ptr<ExecutableBase>> create_executable(const Artefact& artefact) = 0;
  virtual Result<std::unique_ptr<LaneBase>> create_lane(const LaneOptions& options = {}) = 0;
  /// A place for what this device makes of a recording; empty at first, and always where it makes nothing of it.
  virtual std::shared_ptr<ReplayBase> create_replay();
  /// A timeline of its own, at 0, for the host to signal and lanes of this device to wait for.
  virtual Result<std::shared_ptr<Timeline>> create_timeline() = 0;
  /// The way to the driver's own objects; null where there is no driver.
  virtual NativeDoor* native_door() noexcept { return nullptr; }

 protected:
  explicit DeviceBase(AdapterInfo info);
  /// The failure that ended this device in the process that opened it, or null.
  virtual const Error* ended_by() const noexcept = 0;
  /// Calls `probe` as native functions are called.
  virtual Result<void> ask(NativeProbe probe);

 private:
  Result<std::shared_ptr<BufferBase>> allocate_or_reclaim(const BufferRequest& request);

  AdapterInfo info_;
  const Error no_memory_;
  const base::Origin origin_{};
  const std::shared_ptr<Silicon> silicon_;
  const std::uint64_t generation_;
  std::atomic<bool> shares_{false};
  std::mutex shared_mutex_;
  std::vector<std::weak_ptr<Timeline>> shared_;
  std::mutex reclaim_mutex_;
  std::vector<std::weak_ptr<Reclaimable>> reclaimables_;
  std::size_t reclaimables_limit_ = 16;  ///< at which those that ended are removed
  mutable std::mutex asked_mutex_;
  std::map<NativeProbe, std::optional<Error>> asked_;
};

}  // namespace device
}  // namespace v0
}  // namespace wye
