#pragma once
/// Devices as a backend implements them.
#include <wye/base/clock.hpp>
#include <wye/base/result.hpp>
#include <wye/device/adapter.hpp>
#include <wye/device/detail/native_code.hpp>
#include <wye/device/device.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/digest.hpp"
#include "base/process.hpp"
#include "device/artefact.hpp"
#include "device/buffer.hpp"
#include "device/device_ref.hpp"
#include "device/executable.hpp"
#include "device/lane_base.hpp"
#include "device/reclaimable.hpp"
#include "device/timeline.hpp"
#include "silicon/silicon.hpp"

namespace wye::inline v0::device {

class NativeInterop;
class StampsBase;

/// Returns the features of `needs` that a device lacks, for sentences: "int64, and float16, which
/// failed its check".
std::string lacking(const AdapterInfo& adapter, Features needs);

/// Returns the error of a request for a device or backend that is not `there`.
Error not_found(std::string_view requested, std::span<const AdapterInfo* const> there);

/// Returns a Monitoring without numbers; `why` is the reason for each.
Monitoring unmonitored(std::string device, const std::string& why);

/// An open adapter. It creates buffers, executables, lanes and timelines.
/// Threads: thread-safe.
class DeviceBase : public std::enable_shared_from_this<DeviceBase> {
 public:
  virtual ~DeviceBase();
  const AdapterInfo& info() const noexcept { return info_; }
  /// Removes features that failed their checks from `info`. Call it before other threads use the
  /// device.
  void withdraw(Features failed) noexcept {
    info_.failed_features = info_.failed_features.with(failed);
    info_.features = info_.features.without(failed);
  }
  /// Sets `Limits::loop_iterations` in `info`. Call it before other threads use the device.
  void limit_loops(std::uint64_t iterations) noexcept { info_.limits.loop_iterations = iterations; }
  /// Sets the id in `info`. Call it before other threads use the device.
  void rename(std::string id) noexcept { info_.id = std::move(id); }
  /// Names the process that opened the device. In a child of `fork`, `lost` returns
  /// `origin().error()`.
  const base::Origin& origin() const noexcept { return origin_; }
  /// Returns the name of this device in other rooms, different for every device that this process
  /// opens.
  DeviceRef ref() const noexcept { return {silicon_->id(), generation_}; }
  const std::shared_ptr<silicon::Silicon>& silicon() const noexcept { return silicon_; }
  /// Returns the languages of artefacts that it runs, in order of preference: {"spirv"}, {"host"}.
  virtual std::span<const std::string_view> languages() const noexcept = 0;
  virtual MemoryInfo memory() = 0;
  /// Returns the memory that the driver's pool for this device holds, in buffers or unused; zero if
  /// there is no pool.
  virtual Bytes reserved_memory() { return {}; }
  /// Reads the monitor of the hardware. Missing numbers have a reason; without an override all
  /// numbers are missing.
  virtual Monitoring monitor();
  /// Returns the failure that ended this device, or null.
  const Error* lost() const noexcept {
    const Error* const inherited = origin_.error();
    return inherited ? inherited : ended_by();
  }
  /// Registers a timeline that another device signals too.
  void note_shared(const std::shared_ptr<Timeline>& timeline);
  /// Returns the end of the next sleep of a thread that waits for this device until `until`. While
  /// a shared timeline has pending signals, the sleep is short and this call polls them: no driver
  /// reports the loss of the other device.
  Instant next_check(Instant until);
  /// Returns the reason why native functions with `probe` cannot run on this device, or nothing.
  /// Calls `probe` once and keeps its result.
  std::optional<Error> refusal_by(NativeProbe probe);
  /// Returns the result that `refusal_by` has kept; nothing if there is none.
  std::optional<Error> known_refusal_by(NativeProbe probe) const;
  /// Opens the adapter of this device again, with default options. A child of `fork` calls it: the
  /// device of its parent cannot be used there.
  /// Errors: unavailable (the adapter is not found); those of `Adapter::open`.
  virtual Result<std::shared_ptr<DeviceBase>> open_again() const;
  /// Returns a digest of the device and the exact build of its driver, equal in every process.
  /// Driver code is valid only for the same digest.
  Digest driver_identity() const;
  /// Returns the code that the driver has generated for kernels, for `preload` in a later process;
  /// empty if the driver exports none.
  /// Errors: out_of_memory, device_lost.
  virtual Result<std::vector<std::byte>> driver_code();
  /// Loads the result of `driver_code` from a device of the same `driver_identity`. Has no effect
  /// after an executable was created.
  /// Errors: corrupt (another driver wrote it; nothing was loaded), device_lost.
  virtual Result<void> preload(std::span<const std::byte> code);

  /// Creates a buffer. If the device, its silicon or the runtime has no room for it, asks the
  /// driver how much is free, has reclaimables free idle memory, in the order of their kinds, then
  /// of their last uses, then in which they were added, defragments the rest, and tries again after
  /// each of these.
  /// Errors: those of `create_buffer`, with the holders of the memory as a line of context;
  ///         out_of_memory if the host has no memory to describe a buffer or an error.
  Result<std::shared_ptr<BufferBase>> allocate(const BufferRequest& request);
  /// Charges the accounts for buffers that are created later with `BufferRequest::reserved`. Makes
  /// room as `allocate`.
  /// Errors: those of `MemoryAccount::reserve`, as `allocate`.
  Result<MemoryCharge> reserve(const BufferRequest& request);
  /// Charges the accounts of `request`. Backends call it before they allocate.
  /// Errors: those of `MemoryAccount::reserve`.
  Result<MemoryCharge> charge(const BufferRequest& request) const {
    if (request.reserved && request.bytes <= request.reserved->bytes())
      return request.reserved->split(request.bytes);
    return MemoryCharge::make(request.account ? request.account : silicon_->account(), request.bytes,
                              request.tag);
  }
  /// Limits the account of the silicon by the memory that the driver reports as free.
  void check_memory();
  /// Has reclaimables free idle memory of the kinds up to `last`, in their order, until `wanted`
  /// bytes are free. Returns the bytes that they freed.
  Bytes reclaim(IdleMemory last, Bytes wanted);
  /// Returns whether host and device share their memory: an upload costs a copy in memory, about as
  /// much as clearing it.
  virtual bool has_unified_memory() const noexcept { return false; }
  /// Returns memory that the backend keeps for later allocations to the driver.
  virtual void release_spare_memory() noexcept {}
  /// Moves buffers that nothing uses together, until the allocations of the driver that they leave
  /// are empty, and returns these to the driver. Copies each byte that it moves once. Returns the
  /// bytes that the driver got; zero for a backend whose driver moves memory itself. Waits for
  /// another thread that does the same.
  Bytes defragment() noexcept;
  /// Returns a number for a use of memory of this device, larger than those of earlier uses.
  std::uint64_t next_use() noexcept { return uses_.fetch_add(1, std::memory_order_relaxed) + 1; }
  /// Adds an owner of idle memory of this device for `allocate`.
  void add_reclaimable(std::weak_ptr<Reclaimable> reclaimable);

  /// Creates a buffer of zeros, unless `BufferRequest::is_overwritten`. Work that is submitted later
  /// finds the zeros.
  /// Errors: out_of_memory (the size exceeds the largest buffer or the free memory; the sentence
  ///         says which), over_budget, device_lost.
  virtual Result<std::shared_ptr<BufferBase>> create_buffer(const BufferRequest& request) = 0;
  /// Errors: unsupported (language, limit or feature), compile_failed, out_of_memory, device_lost.
  virtual Result<std::shared_ptr<ExecutableBase>> create_executable(const Artefact& artefact) = 0;
  /// Creates a lane that does not check its submissions. Other rooms call `Lane::create`.
  virtual Result<std::unique_ptr<LaneBase>> create_lane(const LaneOptions& options = {}) = 0;
  /// Creates an empty object that can keep this driver's form of a recording.
  virtual std::shared_ptr<ReplayBase> create_replay();
  /// Creates stamps for lanes of this device.
  /// Errors: unsupported (the device has no clock; without an override none has), out_of_memory,
  ///         device_lost.
  virtual Result<std::shared_ptr<StampsBase>> create_stamps();
  /// Creates a timeline with value 0. The host signals it; lanes of this device wait for it.
  virtual Result<std::shared_ptr<Timeline>> create_timeline() = 0;
  /// Returns access to the driver's own objects; null if there is no driver.
  virtual NativeInterop* native_interop() noexcept { return nullptr; }

 protected:
  explicit DeviceBase(AdapterInfo info);
  /// Returns the failure that ended this device in the process that opened it, or null.
  virtual const Error* ended_by() const noexcept = 0;
  /// Empties allocations of the driver one by one: marks its buffers as `is_to_move`, calls `move`,
  /// and returns the allocation to the driver if nothing is left in it. Returns the bytes that the
  /// driver got.
  virtual Bytes empty_allocations(const std::function<void()>& move) noexcept;
  /// Calls `probe` in the same state as native functions, and turns exceptions into errors.
  virtual Result<void> run_probe(NativeProbe probe);

 private:
  /// Returns `attempt()`; if it has no room, makes some and returns the result of a second call.
  template <class F>
  auto with_room(const BufferRequest& request, F attempt) -> decltype(attempt());
  Error with_holders(const Error& error) const;
  std::vector<std::weak_ptr<Reclaimable>> reclaimables();

  AdapterInfo info_;
  const Error no_memory_;
  const base::Origin origin_{};
  const std::shared_ptr<silicon::Silicon> silicon_;
  const std::uint64_t generation_;
  std::atomic<std::uint64_t> uses_{0};
  std::atomic<bool> shares_{false};
  std::mutex shared_mutex_;
  std::vector<std::weak_ptr<Timeline>> shared_;
  std::mutex defragment_mutex_;
  std::atomic<std::uint64_t> defragmented_{0};  // bytes that the driver got
  std::mutex reclaim_mutex_;
  std::vector<std::weak_ptr<Reclaimable>> reclaimables_;
  std::size_t reclaimables_limit_ = 16;  ///< size at which expired entries are removed
  mutable std::mutex probed_mutex_;
  std::map<NativeProbe, std::optional<Error>> probed_;
};

}  // namespace wye::device
