#include "backend/cuda/cuda_device.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "backend/cuda/cuda_buffer.hpp"
#include "backend/cuda/cuda_error.hpp"
#include "backend/cuda/cuda_executable.hpp"
#include "backend/cuda/cuda_lane.hpp"
#include "backend/cuda/cuda_replay.hpp"
#include "backend/cuda/cuda_stamps.hpp"
#include "backend/cuda/cuda_timeline.hpp"
#include "base/process.hpp"
#include "base/text.hpp"

namespace wye::inline v0::cuda {
CurrentContext::CurrentContext(CudaDevice& device) noexcept : CurrentContext(device, device.context()) {}

CurrentContext::CurrentContext(CudaDevice& device, CUcontext context) noexcept
    : relaxed_(device.cu), device_(device), context_(context) {
  CUcontext before = nullptr;
  result_ = device.cu.CtxGetCurrent(&before);
  if (result_ != CUDA_SUCCESS || before == context) return;
  result_ = device.cu.CtxPushCurrent(context);
  pushed_ = result_ == CUDA_SUCCESS;
}

CurrentContext::~CurrentContext() {
  if (!pushed_) return;
  CUcontext popped = nullptr;
  const CUresult r = device_.cu.CtxPopCurrent(&popped);
  if (r == CUDA_SUCCESS) return;
  // The result may be an error of earlier work, although the call popped the context.
  CUcontext current = nullptr;
  for (int tries = 0; tries < 2; ++tries)
    if (device_.cu.CtxGetCurrent(&current) == CUDA_SUCCESS) {
      if (current == context_) (void)device_.cu.CtxPopCurrent(&popped);
      break;
    }
  device_.lose_if_fatal(r, "cuCtxPopCurrent");
}

Error CurrentContext::error() const {
  return device_.failed(result_, "cuCtxPushCurrent",
                        base::text("The context of device '{}' cannot be made current.", device_.info().id));
}

CreationContext::CreationContext(CudaDevice& device) noexcept
    : lock_(device.partition_ ? std::unique_lock(device.creation_mutex_) : std::unique_lock<std::mutex>()),
      current_(device, device.work_context()) {}

CudaDevice::CudaDevice(std::shared_ptr<CudaDriver> driver, const PhysicalDevice& physical)
    : DeviceBase(physical.info),
      cu(driver->cu),
      driver_(std::move(driver)),
      handle_(physical.handle),
      lost_error_(Errc::device_lost,
                  base::text("Device '{}' ({}) is lost.", physical.info.id, physical.info.name)),
      pool_(*this),
      waiter_(*this) {}

Result<std::shared_ptr<CudaDevice>> CudaDevice::open(std::shared_ptr<CudaDriver> driver,
                                                     const PhysicalDevice& physical,
                                                     const device::BackendOptions& options) {
  if (driver->disabled())
    return Error(Errc::unavailable,
                 base::text("Device '{}' cannot be opened. {}", physical.info.id, driver->disabled_reason()));
  auto device = base::own(new CudaDevice(std::move(driver), physical));
  if (auto created = device->create(options); !created) return std::move(created).error();
  return device;
}

Error CudaDevice::refused(CUresult result, const char* api) {
  return failed(
      result, api,
      result == CUDA_ERROR_DEVICE_UNAVAILABLE
          ? base::text(
                "Device '{}' ({}) is in exclusive use by another process, as its compute mode demands.",
                info().id, info().name)
          : base::text("The driver cannot open device '{}' ({}).", info().id, info().name));
}

void CudaDevice::set_options(const device::BackendOptions& options) noexcept {
  kept_memory_ = options.kept_memory;
  staging_.set_limit(options.pinned_memory);
  poll_limit_ = options.poll_limit;
}

Result<void> CudaDevice::create(const device::BackendOptions& options) {
  const RelaxedCapture relaxed(cu);
  const bool creates = options.isolation == Isolation::device;
  CUcontext context = nullptr;
  if (const CUresult r =
          creates ? cu.CtxCreate(&context, 0, handle_) : cu.DevicePrimaryCtxRetain(&context, handle_);
      r != CUDA_SUCCESS)
    return refused(r, creates ? "cuCtxCreate" : "cuDevicePrimaryCtxRetain");
  context_ = context;
  holds_ = creates ? Holds::created : Holds::primary;
  // A created context is current on this thread, above the context of the application.
  if (creates)
    if (const CUresult r = cu.CtxPopCurrent(&context); r != CUDA_SUCCESS)
      return refused(r, "cuCtxPopCurrent");
  set_options(options);
  if (options.isolation == Isolation::partition)
    if (auto divided = create_partition(options.partition); !divided) return divided;
  return create_objects();
}

/// Creates the memory stream and its event, and reads the properties of the processors.
Result<void> CudaDevice::create_objects() {
  const CreationContext current(*this);
  if (!current) return current.error();
  int count = 0, clusters = 0, cooperative = 0;
  for (const auto& [attribute, value] : {std::pair{CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &count},
                                         std::pair{CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, &clusters},
                                         std::pair{CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, &cooperative}})
    if (const CUresult r = cu.DeviceGetAttribute(value, attribute, handle_); r != CUDA_SUCCESS)
      return refused(r, "cuDeviceGetAttribute");
  processors_ = {partition_ ? processors_.count : count, clusters != 0, cooperative != 0};
  auto stream = create_stream(device::LanePriority::normal);
  if (!stream) return std::move(stream).error();
  memory_stream_ = *stream;
  CUevent event = nullptr;
  if (const CUresult r = cu.EventCreate(&event, CU_EVENT_DISABLE_TIMING); r != CUDA_SUCCESS)
    return refused(r, "cuEventCreate");
  memory_event_ = event;
  return pool_.create(kept_memory_);
}

Result<void> CudaDevice::create_partition(Partition wish) {
  if (!cu.DeviceGetDevResource || !cu.DevSmResourceSplitByCount || !cu.DevResourceGenerateDesc ||
      !cu.GreenCtxCreate || !cu.GreenCtxDestroy || !cu.CtxFromGreenCtx || !cu.GreenCtxStreamCreate)
    return Error(
        Errc::unsupported,
        base::text(
            "Device '{}' cannot be divided: its driver ({}) has no green contexts (CUDA 12.5 or newer).",
            info().id, info().driver));
  const auto refused = [&](CUresult r, const char* api) {
    Error error = failed(r, api, base::text("Device '{}' ({}) cannot be divided.", info().id, info().name));
    return lost() ? error : Error(Errc::unsupported, error.sentence(), *error.native());
  };
  CUdevResource all{}, part{}, rest{};
  if (const CUresult r = cu.DeviceGetDevResource(handle_, &all, CU_DEV_RESOURCE_TYPE_SM); r != CUDA_SUCCESS)
    return refused(r, "cuDeviceGetDevResource");
  const std::uint64_t percent = wish.percent != 0 ? wish.percent : 50;
  const auto share = static_cast<unsigned>((all.sm.smCount * percent + 99) / 100);
  const unsigned wanted = wish.multiprocessors != 0 ? wish.multiprocessors : share;
  if (wanted > all.sm.smCount)
    return Error(Errc::unsupported,
                 base::text("Partition size ({} multiprocessors) exceeds the size of device '{}' ({}, {}).",
                            wanted, info().id, info().name, all.sm.smCount));
  unsigned parts = 1;
  if (const CUresult r = cu.DevSmResourceSplitByCount(&part, &parts, &all, &rest, 0, wanted);
      r != CUDA_SUCCESS)
    return refused(r, "cuDevSmResourceSplitByCount");
  CUdevResourceDesc description = nullptr;
  if (const CUresult r = cu.DevResourceGenerateDesc(&description, &part, 1); r != CUDA_SUCCESS)
    return refused(r, "cuDevResourceGenerateDesc");
  CUgreenCtx partition = nullptr;
  if (const CUresult r = cu.GreenCtxCreate(&partition, description, handle_, CU_GREEN_CTX_DEFAULT_STREAM);
      r != CUDA_SUCCESS)
    return refused(r, "cuGreenCtxCreate");
  partition_ = partition;
  processors_.count = static_cast<int>(part.sm.smCount);
  CUcontext context = nullptr;
  if (const CUresult r = cu.CtxFromGreenCtx(&context, partition_); r != CUDA_SUCCESS)
    return refused(r, "cuCtxFromGreenCtx");
  partition_context_ = context;
  return {};
}

CudaDevice::~CudaDevice() {
  timelines_.end();
  waiter_.end();
  if (!context_) return;
  const RelaxedCapture relaxed(cu);
  // A lost device might still write to its memory. The release of the context frees it.
  if (!lost()) {
    const CurrentContext current(*this);
    if (current) {
      if (memory_stream_) {
        lose_if_fatal(cu.StreamSynchronize(memory_stream_), "cuStreamSynchronize");
        lose_if_fatal(cu.StreamDestroy(memory_stream_), "cuStreamDestroy");
      }
      if (memory_event_) lose_if_fatal(cu.EventDestroy(memory_event_), "cuEventDestroy");
      events_.destroy();
      (void)staging_.trim();
      pool_.destroy();
    }
  }
  if (partition_ && !lost()) lose_if_fatal(cu.GreenCtxDestroy(partition_), "cuGreenCtxDestroy");
  if (holds_ == Holds::primary) (void)cu.DevicePrimaryCtxRelease(handle_);
  if (holds_ == Holds::created) (void)cu.CtxDestroy(context_);
}

std::span<const std::string_view> CudaDevice::languages() const noexcept {
  static constexpr std::string_view languages[] = {"native", "cubin", "ptx"};
  return languages;
}

MemoryInfo CudaDevice::memory() {
  MemoryInfo memory{.total = info().memory, .in_use = silicon()->account()->held(), .available = {}};
  memory.available = memory.total - std::min(memory.in_use, memory.total);
  if (lost()) return memory;
  const CurrentContext current(*this);
  if (!current) return memory;
  std::size_t free = 0, total = 0;
  if (const CUresult r = cu.MemGetInfo(&free, &total); r != CUDA_SUCCESS)
    return lose_if_fatal(r, "cuMemGetInfo"), memory;
  // Unused memory of the pool is available to every allocation.
  memory.spare = pool_.idle();
  memory.available = std::min(Bytes{free} + memory.spare, memory.total);
  return memory;
}

Bytes CudaDevice::reserved_memory() {
  if (lost()) return {};
  const CurrentContext current(*this);
  return current ? pool_.reserved() : Bytes{};
}

void CudaDevice::release_spare_memory() noexcept try {
  const CurrentContext current(*this);
  if (current && cu.StreamSynchronize(memory_stream()) == CUDA_SUCCESS) (void)pool_.trim();
  (void)staging_.trim();
} catch (const std::bad_alloc&) {  // it stays
}

Monitoring CudaDevice::monitor() {
  const auto& nvml = driver_->nvml();
  return nvml ? (*nvml)->read(info().id, info().device_uuid)
              : device::unmonitored(info().id, nvml.error().sentence());
}

Result<std::shared_ptr<device::BufferBase>> CudaDevice::create_buffer(const device::BufferRequest& request) {
  return CudaBuffer::create(self(), request);
}

Result<std::shared_ptr<device::ExecutableBase>> CudaDevice::create_executable(
    const device::Artefact& artefact) {
  auto executable = CudaExecutable::create(self(), artefact);
  if (!executable) return std::move(executable).error();
  return std::shared_ptr<device::ExecutableBase>(std::move(*executable));
}

Result<void> CudaDevice::run_probe(NativeProbe probe) {
  const CurrentContext current(*this);
  if (!current) return current.error();
  return DeviceBase::run_probe(probe);
}

Result<std::unique_ptr<device::LaneBase>> CudaDevice::create_lane(const device::LaneOptions& options) {
  auto lane = CudaLane::create(self(), options);
  if (!lane) return std::move(lane).error();
  return std::unique_ptr<device::LaneBase>(std::move(*lane));
}

Result<std::shared_ptr<device::StampsBase>> CudaDevice::create_stamps() { return CudaStamps::create(self()); }

Result<std::shared_ptr<device::Timeline>> CudaDevice::create_timeline() {
  auto timeline = CudaTimeline::create(self(), CudaTimeline::SignaledBy::host);
  if (!timeline) return std::move(timeline).error();
  return std::shared_ptr<device::Timeline>(std::move(*timeline));
}

bool CudaDevice::reaches(const device::DeviceBase& other) const noexcept {
  if (other.info().backend != info().backend || lost() || other.lost()) return false;
  const auto& peer = static_cast<const CudaDevice&>(other);
  if (peer.driver_ != driver_) return false;
  if (peer.handle_ == handle_) return true;
  {
    const std::lock_guard lock(peer.peers_mutex_);
    if (const auto known = peer.peers_.find(handle_); known != peer.peers_.end()) return known->second;
  }
  int can = 0;
  try {
    const bool does = cu.DeviceCanAccessPeer(&can, handle_, peer.handle_) == CUDA_SUCCESS && can != 0 &&
                      peer.pool_.allow_access(handle_) == CUDA_SUCCESS;
    const std::lock_guard lock(peer.peers_mutex_);
    peer.peers_.emplace(handle_, does);
    return does;
  } catch (...) {  // the next call asks the driver again
    return false;
  }
}

std::shared_ptr<device::ReplayBase> CudaDevice::create_replay() { return base::make_own<CudaReplay>(self()); }

Result<CUstream> CudaDevice::create_stream(device::LanePriority priority) {
  const auto refused = [&](CUresult r, const char* api) {
    return failed(r, api, base::text("Device '{}' cannot create a stream.", info().id));
  };
  int number = 0;  // the driver's default, and the lowest priority
  if (priority == device::LanePriority::high) {
    int least = 0;
    if (const CUresult r = cu.CtxGetStreamPriorityRange(&least, &number); r != CUDA_SUCCESS)
      return refused(r, "cuCtxGetStreamPriorityRange");
  }
  CUstream stream = nullptr;
  if (partition_) {
    if (const CUresult r = cu.GreenCtxStreamCreate(&stream, partition_, CU_STREAM_NON_BLOCKING, number);
        r != CUDA_SUCCESS)
      return refused(r, "cuGreenCtxStreamCreate");
  } else if (const CUresult r = cu.StreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, number);
             r != CUDA_SUCCESS) {
    return refused(r, "cuStreamCreateWithPriority");
  }
  return stream;
}

Result<void> CudaDevice::record_allocation() {
  if (const CUresult r = cu.EventRecord(memory_event_, memory_stream_); r != CUDA_SUCCESS)
    return failed(r, "cuEventRecord",
                  base::text("Device '{}' cannot record the event of an allocation.", info().id));
  allocations_.fetch_add(1, std::memory_order_release);
  return {};
}

Result<void> CudaDevice::order_behind_memory(CudaStream& stream) {
  const std::uint64_t taken = allocations_.load(std::memory_order_acquire);
  if (stream.allocations_seen == taken) return {};
  if (const CUresult r = cu.StreamWaitEvent(stream.handle, memory_event_, CU_EVENT_WAIT_DEFAULT);
      r != CUDA_SUCCESS)
    return failed(r, "cuStreamWaitEvent",
                  base::text("A lane of device '{}' cannot wait for an allocation.", info().id));
  stream.allocations_seen = taken;
  return {};
}

Error CudaDevice::failed(CUresult result, const char* api, std::string sentence, Place place) {
  if (ends_device(result)) return lose(result, api, place);
  return failure(result, api, std::move(sentence), place);
}

void CudaDevice::lose_if_fatal(CUresult result, const char* api) noexcept {
  if (result != CUDA_SUCCESS && ends_device(result)) lose(result, api);
}

const Error& CudaDevice::lose(CUresult result, const char* api, Place place) noexcept {
  {
    const std::lock_guard lock(lost_mutex_);
    if (!lost()) {
      try {
        lost_error_ =
            Error(Errc::device_lost,
                  base::clause(lost_error_.sentence()) + std::string(fault_description(result)) + ".",
                  NativeError{api, result, std::string(meaning(result).name)}, place);
      } catch (...) {  // no memory for the details
      }
      lost_.store(&lost_error_, std::memory_order_release);
      if (meaning(result).reach == Reach::process) driver_->disable(result, api);
    }
  }
  pending_.drop_all();
  waiter_.give_up();
  return lost_error_;
}

}  // namespace wye::cuda
