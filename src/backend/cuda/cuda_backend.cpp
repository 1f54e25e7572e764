#include <memory>
#include <utility>
#include <vector>

#include "backend/cuda/cuda_device.hpp"
#include "backend/cuda/cuda_error.hpp"
#include "backend/cuda/cuda_loader.hpp"
#include "base/text.hpp"

namespace wye::inline v0::cuda {
namespace {

/// Returns the entry of a backend without a device.
std::vector<device::Discovered> no_device(const Error& why) {
  device::Discovered entry;
  entry.info.id = "cuda";
  entry.info.backend = "cuda";
  entry.info.reason = why.sentence();
  if (const NativeError* native = why.native())
    entry.info.reason += base::text(" ({} -> {} ({}))", native->api, native->name, native->number);
  return {std::move(entry)};
}

/// Threads: thread-safe.
class CudaAdapter final : public device::Adapter {
 public:
  /// Opens the device in `context` if it is not null, otherwise in the primary context.
  CudaAdapter(std::shared_ptr<CudaDriver> driver, PhysicalDevice physical, device::BackendOptions options,
              CUcontext context = nullptr)
      : driver_(std::move(driver)),
        physical_(std::move(physical)),
        options_(std::move(options)),
        context_(context) {}
  const AdapterInfo& info() const noexcept override { return physical_.info; }
  Result<std::shared_ptr<device::DeviceBase>> open() override {
    auto opened = context_ ? CudaDevice::adopt(driver_, physical_, context_, options_)
                           : CudaDevice::open(driver_, physical_, options_);
    if (!opened) return std::move(opened).error();
    return std::shared_ptr<device::DeviceBase>(*std::move(opened));
  }

 private:
  std::shared_ptr<CudaDriver> driver_;
  PhysicalDevice physical_;
  device::BackendOptions options_;
  CUcontext context_;
};

class CudaBackend final : public device::Backend {
 public:
  std::string_view name() const noexcept override { return "cuda"; }

  std::vector<device::Discovered> discover(const device::BackendOptions& options) override {
    auto opened = CudaDriver::open(options.cuda_driver);
    if (!opened) return no_device(opened.error());
    const std::shared_ptr<CudaDriver> driver = *std::move(opened);
    int count = 0;
    if (const CUresult r = driver->cu.DeviceGetCount(&count); r != CUDA_SUCCESS)
      return no_device(
          failure(r, "cuDeviceGetCount", "The CUDA driver does not return its number of devices."));
    if (count <= 0) return no_device(Error(Errc::unavailable, "The CUDA driver has no device."));
    std::vector<device::Discovered> found;
    for (int i = 0; i < count; ++i) {
      PhysicalDevice physical = describe(*driver, i);
      device::Discovered& entry = found.emplace_back();
      entry.info = physical.info;
      if (physical.info.usable)
        entry.adapter = std::make_shared<CudaAdapter>(driver, std::move(physical), options);
    }
    return found;
  }

  Result<device::Discovered> adopt(const NativeDevice& native, std::string id,
                                   const device::BackendOptions& options) override {
    if (native.device == 0)
      return Error(Errc::invalid_argument, base::text("The CUDA context of native device '{}' is null.", id));
    auto opened = CudaDriver::open(options.cuda_driver);
    if (!opened) return std::move(opened).error();
    const std::shared_ptr<CudaDriver> driver = *std::move(opened);
    int count = 0;
    if (const CUresult r = driver->cu.DeviceGetCount(&count); r != CUDA_SUCCESS)
      return failure(r, "cuDeviceGetCount", "The CUDA driver does not return its number of devices.");
    for (int i = 0; i < count; ++i) {
      PhysicalDevice physical = describe(*driver, i);
      if (static_cast<std::uint64_t>(physical.handle) != native.physical) continue;
      physical.info.id = std::move(id);
      if (!physical.info.usable) return Error(Errc::unsupported, physical.info.reason);
      device::Discovered found;
      found.info = physical.info;
      found.adapter = std::make_shared<CudaAdapter>(driver, std::move(physical), options,
                                                    handle_of<CUcontext>(native.device));
      return found;
    }
    return Error(
        Errc::invalid_argument,
        base::text("The number of native device '{}' ({}) is not below the number of CUDA devices ({}).", id,
                   native.physical, count));
  }
};

}  // namespace

PhysicalDevice describe(const CudaDriver& driver, int index) {
  PhysicalDevice physical;
  AdapterInfo& info = physical.info;
  info.id = base::text("cuda:{}", index);
  info.backend = "cuda";
  info.driver = base::text("CUDA driver {}", version_text(driver.version()));
  if (driver.nvml())
    if (const std::string version = (*driver.nvml())->driver_version(); !version.empty())
      info.driver = base::text("NVIDIA {}, CUDA {}", version, version_text(driver.version()));
  info.driver_version = static_cast<std::uint64_t>(driver.version());
  info.api = "CUDA " + version_text(driver.version());
  const DriverTable& cu = driver.cu;
  CUresult failed = CUDA_SUCCESS;
  const char* failed_call = "";
  const auto ask = [&](CUresult r, const char* call) {
    if (r == CUDA_SUCCESS || failed != CUDA_SUCCESS) return;
    failed = r;
    failed_call = call;
  };
  ask(cu.DeviceGet(&physical.handle, index), "cuDeviceGet");
  const auto attribute = [&](CUdevice_attribute which) {
    int value = 0;
    if (failed == CUDA_SUCCESS)
      ask(cu.DeviceGetAttribute(&value, which, physical.handle), "cuDeviceGetAttribute");
    return value;
  };
  const auto number = [&](CUdevice_attribute which) { return static_cast<std::uint64_t>(attribute(which)); };
  char name[256] = "";
  CUuuid uuid{};
  std::size_t memory = 0;
  if (failed == CUDA_SUCCESS)
    ask(cu.DeviceGetName(name, sizeof(name) - 1, physical.handle), "cuDeviceGetName");
  if (failed == CUDA_SUCCESS) ask(cu.DeviceGetUuid(&uuid, physical.handle), "cuDeviceGetUuid");
  if (failed == CUDA_SUCCESS) ask(cu.DeviceTotalMem(&memory, physical.handle), "cuDeviceTotalMem");
  info.name = name;
  static_assert(sizeof(uuid.bytes) == sizeof(info.device_uuid));
  std::copy(std::begin(uuid.bytes), std::end(uuid.bytes), info.device_uuid.begin());
  info.memory = Bytes{memory};
  const std::uint64_t major = number(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
                      minor = number(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  info.architecture = base::text("sm_{}{}", major, minor);
  info.type =
      attribute(CU_DEVICE_ATTRIBUTE_INTEGRATED) != 0 ? AdapterType::integrated : AdapterType::discrete;
  info.processors = static_cast<std::uint32_t>(number(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  info.limits = {
      .workgroup = {number(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X), number(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y),
                    number(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)},
      .workgroup_invocations = number(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
      .groups = {number(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X), number(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y),
                 number(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)},
      .buffer = info.memory,
      .descriptor_range = info.memory,
      .shared_memory = Bytes{number(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)},
      // The limit of drivers for CUDA 12.1 and newer, on Volta and newer.
      .parameter_bytes = Bytes{major >= 7 ? 32764u : 4096u},
      .bound_buffers = 0,
      .offset_alignment = 1,
      .subgroup_size = static_cast<std::uint32_t>(attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE))};
  info.features = {Feature::float16,       Feature::float64,        Feature::int8,      Feature::int16,
                   Feature::int64,         Feature::storage8,       Feature::storage16, Feature::subgroups,
                   Feature::atomics_int64, Feature::atomics_float32};
  const bool has_pools = attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) != 0;
  const bool has_addresses = attribute(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING) != 0;
  const int mode = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_MODE);
  if (failed != CUDA_SUCCESS)
    info.reason = base::text("The CUDA driver does not return the properties of device {} ({} -> {} ({})).",
                             index, failed_call, meaning(failed).name, static_cast<int>(failed));
  else if (driver.disabled())
    info.reason = driver.disabled_reason();
  else if (mode == CU_COMPUTEMODE_PROHIBITED)
    info.reason = base::text("The compute mode of '{}' forbids contexts.", info.name);
  else if (!has_pools)
    info.reason = base::text("The driver of '{}' has no memory pools.", info.name);
  else if (!has_addresses)
    info.reason = base::text("'{}' does not share an address space with the host.", info.name);
  info.usable = info.reason.empty();
  return physical;
}

std::unique_ptr<device::Backend> make_backend();
std::unique_ptr<device::Backend> make_backend() { return std::make_unique<CudaBackend>(); }

}  // namespace wye::cuda
