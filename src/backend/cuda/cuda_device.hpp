#pragma once
/// An opened device: its retained primary context, and the state that all lanes share.
#include <wye/device/adapter.hpp>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backend/cuda/cuda_events.hpp"
#include "backend/cuda/cuda_loader.hpp"
#include "backend/cuda/cuda_pool.hpp"
#include "backend/cuda/cuda_staging.hpp"
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

namespace wye::inline v0::cuda {

class CudaDevice;
struct CudaStream;

/// Makes a context of a device current to this thread, and permits it all calls during a capture of
/// the application. The destructor restores the previous context and mode.
class CurrentContext {
 public:
  explicit CurrentContext(CudaDevice& device) noexcept;
  CurrentContext(CudaDevice& device, CUcontext context) noexcept;
  CurrentContext(const CurrentContext&) = delete;
  ~CurrentContext();
  explicit operator bool() const noexcept { return result_ == CUDA_SUCCESS; }
  CUresult result() const noexcept { return result_; }
  /// Returns why the context is not current.
  Error error() const;

 private:
  const RelaxedCapture relaxed_;
  CudaDevice& device_;
  const CUcontext context_;
  CUresult result_ = CUDA_SUCCESS;
  bool pushed_ = false;
};

/// Makes the context current in which streams, events and functions are created. On a partition
/// this is the partition's own context, which "can be current to only one thread at a time"
/// (cuda.h); hence the lock. All other calls use the device's context, because a stream knows its
/// partition.
class CreationContext {
 public:
  explicit CreationContext(CudaDevice& device) noexcept;
  CreationContext(const CreationContext&) = delete;
  explicit operator bool() const noexcept { return static_cast<bool>(current_); }
  Error error() const { return current_.error(); }

 private:
  std::unique_lock<std::mutex> lock_;
  CurrentContext current_;
};

/// The processors that run kernels.
struct Processors {
  int count = 0;             ///< multiprocessors
  bool clusters = false;     ///< supports clusters of blocks
  bool cooperative = false;  ///< supports launches whose blocks all run at the same time
};

/// A device of the driver, and its properties.
struct PhysicalDevice {
  CUdevice handle = 0;
  AdapterInfo info;
};

/// Returns the properties of the driver's device number `index`. `info.usable` and `info.reason`
/// tell whether wye can use it.
PhysicalDevice describe(const CudaDriver& driver, int index);

struct LaneWork;

/// Threads: thread-safe.
class CudaDevice final : public device::DeviceBase, private device::NativeInterop {
 public:
  /// Opens a device in its primary context.
  /// Errors:  unavailable, unsupported, out_of_memory, with the result of the driver.
  static Result<std::shared_ptr<CudaDevice>> open(std::shared_ptr<CudaDriver> driver,
                                                  const PhysicalDevice& physical,
                                                  const device::BackendOptions& options);
  /// Opens a device in a context that the application owns.
  static Result<std::shared_ptr<CudaDevice>> adopt(std::shared_ptr<CudaDriver> driver,
                                                   const PhysicalDevice& physical, CUcontext context,
                                                   const device::BackendOptions& options);
  /// Lanes, buffers and executables keep their device alive, so none exists here.
  ~CudaDevice() override;

  std::span<const std::string_view> languages() const noexcept override;
  MemoryInfo memory() override;
  Bytes reserved_memory() override;
  void release_spare_memory() noexcept override;
  Monitoring monitor() override;
  const Error* ended_by() const noexcept override { return lost_.load(std::memory_order_acquire); }
  Result<std::shared_ptr<device::BufferBase>> create_buffer(const device::BufferRequest& request) override;
  Result<std::shared_ptr<device::ExecutableBase>> create_executable(
      const device::Artefact& artefact) override;
  Result<std::unique_ptr<device::LaneBase>> create_lane(const device::LaneOptions& options) override;
  std::shared_ptr<device::ReplayBase> create_replay() override;
  Result<std::shared_ptr<device::StampsBase>> create_stamps() override;
  Result<std::shared_ptr<device::Timeline>> create_timeline() override;
  device::NativeInterop* native_interop() noexcept override { return this; }

  const DriverTable& cu;
  /// Returns the context that is current inside calls.
  CUcontext context() const noexcept { return context_; }
  /// Returns the context of streams, events, functions and nodes of graphs: the partition's if
  /// there is one.
  CUcontext work_context() const noexcept { return partition_context_ ? partition_context_ : context_; }
  /// Returns the processors that run kernels: the partition's if there is one.
  const Processors& processors() const noexcept { return processors_; }
  const std::shared_ptr<CudaDriver>& driver() const noexcept { return driver_; }
  /// Returns the stream that allocates and frees memory. It executes nothing else, so waits for it
  /// are short.
  CUstream memory_stream() const noexcept { return memory_stream_; }
  CudaPool& pool() noexcept { return pool_; }
  CudaEvents& events() noexcept { return events_; }
  /// Returns the longest time that a waiting thread polls.
  Duration poll_limit() const noexcept { return poll_limit_; }
  Staging& staging() noexcept { return staging_; }
  /// Returns the number of batches in flight that wait for a signal of the application or of
  /// another driver. While there are any, a thread that submits does not wait for its transfers:
  /// the same thread may have to make the signal.
  std::atomic<int>& foreign_waits() noexcept { return foreign_waits_; }
  CUdevice handle() const noexcept { return handle_; }
  device::PendingSubmissions& pending() noexcept { return pending_; }
  CudaWaiter& waiter() noexcept { return waiter_; }
  std::shared_ptr<CudaDevice> self() { return std::static_pointer_cast<CudaDevice>(shared_from_this()); }

  /// Creates a stream. The `CreationContext` is current.
  Result<CUstream> create_stream(device::LanePriority priority);
  // The following functions require the context to be current.

  /// Records an allocation in the memory stream. Streams that wait for its event may use the
  /// memory.
  Result<void> record_allocation();
  /// Makes `stream` wait for all allocations so far.
  Result<void> order_behind_memory(CudaStream& stream);
  Result<void> check_not_captured(std::uint64_t queue);

  /// Returns the unfinished work of destroyed lanes. It keeps this device alive.
  device::UnfinishedWork<LaneWork>& unfinished() noexcept { return unfinished_; }

  /// Returns the error of a failed call of the driver. Some results end the device.
  Error failed(CUresult result, const char* api, std::string sentence, Place place = Place::here());
  /// Ends the device if `result` demands it. For calls whose result no caller receives.
  void lose_if_fatal(CUresult result, const char* api) noexcept;
  /// Ends the device. From now on every operation on it fails with the returned error.
  const Error& lose(CUresult result, const char* api, Place place = Place::here()) noexcept;

 private:
  friend class CreationContext;
  CudaDevice(std::shared_ptr<CudaDriver> driver, const PhysicalDevice& physical);
  void set_options(const device::BackendOptions& options) noexcept;
  Result<void> create(const device::BackendOptions& options);
  Result<void> run_probe(NativeProbe probe) override;
  /// Creates a partition and its context.
  Result<void> create_partition(Partition wish);
  Result<void> create_objects();
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

  std::shared_ptr<CudaDriver> driver_;
  CUdevice handle_;
  CUcontext context_ = nullptr;
  CUgreenCtx partition_ = nullptr;  // null if the device is not partitioned
  CUcontext partition_context_ = nullptr;
  std::mutex creation_mutex_;  // of the partition's context
  Processors processors_;
  enum class Holds : std::uint8_t { none, primary, created };
  Holds holds_ = Holds::none;  // of `context_`; none: it is the application's
  CUstream memory_stream_ = nullptr;
  Bytes kept_memory_{};
  Duration poll_limit_{};
  CUevent memory_event_ = nullptr;
  std::atomic<std::uint64_t> allocations_{0};  // their number; the event follows the last

  mutable std::mutex peers_mutex_;
  mutable std::map<CUdevice, bool> peers_;  // whether these devices can access this one's memory

  CudaEvents events_{*this};

  device::UnfinishedWork<LaneWork> unfinished_;
  std::mutex lost_mutex_;
  Error lost_error_;  // written once, under the mutex
  std::atomic<const Error*> lost_{nullptr};

  CudaPool pool_;
  Staging staging_{*this};
  std::atomic<int> foreign_waits_{0};
  device::TimelineWaiter timelines_{"wye-cuda-call", device::TimelineWaiter::Sleep::between_polls};
  device::PendingSubmissions pending_{*this, timelines_};
  CudaWaiter waiter_;
};

}  // namespace wye::cuda
