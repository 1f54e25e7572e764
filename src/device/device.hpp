#pragma once
/// A device as a backend implements it: it makes buffers, executables, lanes and timelines.
#include <wye/base/clock.hpp>
#include <wye/base/result.hpp>
#include <wye/device/adapter.hpp>
#include <wye/device/detail/native_code.hpp>
#include <wye/device/device.hpp>

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

#include "base/digest.hpp"
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

/// Returns a Monitoring without numbers; `why` is the reason for each.
Monitoring unmonitored(std::string device, const std::string& why);

/// An opened adapter.
/// Threads: thread-safe.
class DeviceBase : public std::enable_shared_from_this<DeviceBase> {
 public:
  virtual ~DeviceBase();
  const AdapterInfo& info() const noexcept { return info_; }
  /// Names the process that opened the device. In a child of `fork`, `lost` returns `origin().error()`.
  const base::Origin& origin() const noexcept { return origin_; }
  /// Returns the name of this device in other rooms, different for every device that this process opens.
  DeviceRef ref() const noexcept { return {silicon_->id(), generation_}; }
  const std::shared_ptr<Silicon>& silicon() const noexcept { return silicon_; }
  /// Returns the languages of artefacts that it runs, preferred first: {"spirv"}, {"host"}.
  virtual std::span<const std::string_view> languages() const noexcept = 0;
  virtual MemoryInfo memory() = 0;
  /// Reads the hardware's own monitor. A number that it does not have is a reason instead; here all of them are.
  virtual Monitoring monitor();
  /// Returns the failure that ended this device, or null.
  const Error* lost() const noexcept {
    const Error* const inherited = origin_.error();
    return inherited ? inherited : ended_by();
  }
  /// Notes a timeline that another device moves too.
  void note_shared(const std::shared_ptr<Timeline>& timeline);
  /// Returns when a thread that waits for this device until `until` must look again. If lanes of it wait for another device,
  /// whose loss no driver reports, the promises of that device are checked first, and the sleep is short.
  Instant sleep_until(Instant until);
  /// Returns why native functions with `probe` cannot run here, or nothing if they can. Calls `probe` once and keeps the
  /// answer.
  std::optional<Error> refusal_by(NativeProbe probe);
  /// Returns the answer that `refusal_by` has kept.
  std::optional<Error> known_refusal_by(NativeProbe probe) const;
  /// Names the device and the exact build of its driver, the same in every process. Code of another driver is of no use.
  Digest driver_identity() const;
  /// Returns the code that the driver made of kernels so far, for `preload` in a later process; empty if it exports none.
  /// Errors: out_of_memory, device_lost.
  virtual Result<std::vector<std::byte>> driver_code();
  /// Gives the driver the result of `driver_code` on a device of the same `driver_identity`. Has no effect once an
  /// executable was created.
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

  /// Errors: out_of_memory (larger than any buffer, or than the memory left now: the sentence says which), over_budget,
  ///         device_lost.
  virtual Result<std::shared_ptr<BufferBase>> create_buffer(const BufferRequest& request) = 0;
  /// Errors: unsupported (language, limit or feature), compile_failed, out_of_memory, device_lost.
  virtual Result<std::shared_ptr<ExecutableBase>> create_executable(const Artefact& artefact) = 0;
  virtual Result<std::unique_ptr<LaneBase>> create_lane(const LaneOptions& options = {}) = 0;
  /// Creates an empty object that keeps what this device makes of a recording, if it makes anything of it.
  virtual std::shared_ptr<ReplayBase> create_replay();
  /// Creates a timeline at 0 that the host signals and lanes of this device wait for.
  virtual Result<std::shared_ptr<Timeline>> create_timeline() = 0;
  /// Returns access to the driver's own objects; null if there is no driver.
  virtual NativeDoor* native_door() noexcept { return nullptr; }

 protected:
  explicit DeviceBase(AdapterInfo info);
  /// Returns the failure that ended this device in the process that opened it, or null.
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
