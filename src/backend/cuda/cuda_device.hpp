#pragma once
/// An opened device: the primary context, retained, and what all lanes share.
#include <wye/device/adapter.hpp>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backend/cuda/cuda_loader.hpp"
#include "backend/cuda/cuda_pool.hpp"
#include "backend/cuda/cuda_waiter.hpp"
#include "device/artefact.hpp"
#include "device/backend.hpp"
#include "device/buffer.hpp"
#include "device/device.hpp"
#include "device/executable.hpp"
#include "device/lane_base.hpp"
#include "device/native.hpp"
#include "device/pending_submissions.hpp"
#include "device/timeline.hpp"
#include "device/timeline_waiter.hpp"
#include "device/unfinished_work.hpp"

namespace wye {
inline namespace v0 {
namespace cuda {

class CudaDevice;
struct CudaStream;

/// Makes a device's context the current one of this thread, and then the one that was before. Does nothing where it is
/// current already.
class CurrentContext {
 public:
  explicit CurrentContext(CudaDevice& device) noexcept;
  CurrentContext(CudaDevice& device, CUcontext context) noexcept;
  CurrentContext(const CurrentContext&) = delete;
  ~CurrentContext();
  explicit operator bool() const noexcept { return result_ == CUDA_SUCCESS; }
  CUresult result() const noexcept { return result_; }
  /// Why it is not current.
  Error error() const;

 private:
  CudaDevice& device_;
  const CUcontext context_;
  CUresult result_ = CUDA_SUCCESS;
  bool pushed_ = false;
};

/// Makes current what streams, events and functions are made in. Of a device that was divided this is the partition's own
/// context, which "can be current to only one thread at a time" (cuda.h): the lock is the driver's demand. All else is done in
/// the device's context: a stream brings its partition along.
class MakingContext {
 public:
  explicit MakingContext(CudaDevice& device) noexcept;
  MakingContext(const MakingContext&) = delete;
  explicit operator bool() const noexcept { return static_cast<bool>(current_); }
  Error error() const { return current_.error(); }

 private:
  std::unique_lock<std::mutex> lock_;
  CurrentContext current_;
};

/// An event of the driver; goes back to its device with its last handle.
struct CudaEvent {
  CUevent handle = nullptr;
};
using EventHandle = std::shared_ptr<CudaEvent>;

/// What runs kernels.
struct Processors {
  int count = 0;             ///< multiprocessors
  bool clusters = false;     ///< they run clusters of blocks
  bool cooperative = false;  ///< they run all blocks of a launch at the same time, if asked
};

/// What is known of a device of the driver.
struct PhysicalDevice {
  CUdevice handle = 0;
  AdapterInfo info;
};

/// Asks the driver about its device number `index`. `info.usable` and `info.reason` say whether wye can use it.
PhysicalDevice describe(const CudaDriver& driver, int index);

struct LaneWork;

/// Threads: thread-safe.
class CudaDevice final : public device::DeviceBase, private device::NativeInterop {
 public:
  /// Errors: unavailable, unsupported, out_of_memory: with what the driver said.
  static Result<std::shared_ptr<CudaDevice>> open(std::shared_ptr<CudaDriver> driver,
                                                  const PhysicalDevice& physical,
                                                  const device::BackendOptions& options);
  /// The same in a context that the host has made and keeps.
  static Result<std::shared_ptr<CudaDevice>> adopt(std::shared_ptr<CudaDriver> driver,
                                                   const PhysicalDevice& physical, CUcontext context,
                                                   const device::BackendOptions& options);
  /// Lanes, buffers and executables have ended: each keeps its device alive.
  ~CudaDevice() override;

  std::span<const std::string_view> languages() const noexcept override;
  MemoryInfo memory() override;
  Monitoring monitor() override;
  const Error* ended_by() const noexcept override { return lost_.load(std::memory_order_acquire); }
  Result<std::shared_ptr<device::BufferBase>> create_buffer(const device::BufferRequest& request) override;
  Result<std::shared_ptr<device::ExecutableBase>> create_executable(
      const device::Artefact& artefact) override;
  Result<std::unique_ptr<device::LaneBase>> create_lane(const device::LaneOptions& options) override;
  std::shared_ptr<device::ReplayBase> create_replay() override;
  Result<std::shared_ptr<device::Timeline>> create_timeline() override;
  device::NativeInterop* native_interop() noexcept override { return this; }

  const DriverTable& cu;
  /// The one that is current inside calls.
  CUcontext context() const noexcept { return context_; }
  /// What streams, events, functions and the nodes of graphs are of: the context, or the partition's.
  CUcontext work_context() const noexcept { return partition_context_ ? partition_context_ : context_; }
  /// What of it kernels run on: of a partition, its own.
  const Processors& processors() const noexcept { return processors_; }
  const std::shared_ptr<CudaDriver>& driver() const noexcept { return driver_; }
  /// Where memory is taken and given back. Nothing else is in it, so that it never has to be waited for long.
  CUstream memory_stream() const noexcept { return memory_stream_; }
  CudaPools& pools() noexcept { return pools_; }
  /// What a pool holds on to.
  Bytes kept_memory() const noexcept { return kept_memory_; }
  CUdevice handle() const noexcept { return handle_; }
  device::PendingSubmissions& pending() noexcept { return pending_; }
  CudaWaiter& waiter() noexcept { return waiter_; }
  std::shared_ptr<CudaDevice> self() { return std::static_pointer_cast<CudaDevice>(shared_from_this()); }

  /// The making context is current.
  Result<CUstream> create_stream(device::LanePriority priority);
  // These are called with the context current.
  /// Says that memory was taken: it is there for who comes behind the memory stream.
  Result<void> memory_taken();
  /// Lets a stream that is about to be given work begin behind the memory that was taken so far.
  Result<void> order_behind_memory(CudaStream& stream);
  /// The context is current.
  Result<EventHandle> take_event();

  /// The work of lanes that have ended. It holds this device.
  device::UnfinishedWork<LaneWork>& unfinished() noexcept { return unfinished_; }

  /// The error of a driver's call that failed. Some failures end the device.
  Error failed(CUresult result, const char* api, std::string sentence, Place place = Place::here());
  /// Looks at a result that nobody is told of: it may be of the failure that ends the device.
  void heard(CUresult result, const char* api) noexcept;
  /// Ends the device: from now on everything on it answers the error that this gives.
  const Error& lose(CUresult result, const char* api, Place place = Place::here()) noexcept;

 private:
  friend class MakingContext;
  CudaDevice(std::shared_ptr<CudaDriver> driver, const PhysicalDevice& physical);
  Result<void> create(const device::BackendOptions& options);
  Result<void> run_probe(NativeProbe probe) override;
  /// Makes a partition, and its context.
  Result<void> divide(Partition wish);
  Result<void> furnish();
  Error refused(CUresult result, const char* api);
  NativeDevice native_device() override;
  NativeMemory native_memory(device::BufferBase& buffer) override;
  Result<NativePoint> native_point(device::Timeline& timeline, std::uint64_t value) override;
  Result<void> follow(std::uint64_t queue, device::Timeline& timeline, std::uint64_t value) override;
  Result<std::shared_ptr<device::BufferBase>> adopt_memory(const NativeMemory& memory,
                                                           Release release) override;
  Result<std::shared_ptr<device::Timeline>> adopt_timeline(const NativePoint& point) override;
  Result<device::SharedBufferBase> create_shared(Bytes bytes) override;
  Result<std::shared_ptr<device::BufferBase>> open_shared(device::SharedMemory& memory, Bytes bytes) override;
  Result<device::SharedTimeline> create_shared_timeline() override;
  Result<std::shared_ptr<device::Timeline>> open_shared_timeline(device::SharedTimeline& original) override;
  bool reaches(const device::DeviceBase& other) const noexcept override;
  bool has_attribute(CUdevice_attribute attribute) noexcept;
  void give_event(CUevent event) noexcept;

  std::shared_ptr<CudaDriver> driver_;
  CUdevice handle_;
  CUcontext context_ = nullptr;
  CUgreenCtx partition_ = nullptr;  // where the device was divided
  CUcontext partition_context_ = nullptr;
  std::mutex making_;  // in the partition
  Processors processors_;
  bool retained_ = false;  // the primary context: a host's own is the host's to end
  CUstream memory_stream_ = nullptr;
  Bytes kept_memory_ = device::BackendOptions().kept_memory;
  CUevent memory_event_ = nullptr;
  std::atomic<std::uint64_t> memory_taken_{0};  // times; the event is behind the last

  mutable std::mutex peers_mutex_;
  mutable std::map<CUdevice, bool> peers_;  // devices that were asked whether they reach this one's memory

  std::mutex idle_mutex_;
  std::vector<CUevent> idle_events_;
  std::size_t events_ = 0;

  device::UnfinishedWork<LaneWork> unfinished_;
  std::mutex lost_mutex_;
  Error lost_error_;  // as it will be given; written once, under the mutex
  std::atomic<const Error*> lost_{nullptr};

  mutable CudaPools pools_;
  device::TimelineWaiter timelines_{"wye-cuda-call", device::TimelineWaiter::Sleep::between_polls};
  device::PendingSubmissions pending_{*this, timelines_};
  CudaWaiter waiter_;
};

}  // namespace cuda
}  // namespace v0
}  // namespace wye
