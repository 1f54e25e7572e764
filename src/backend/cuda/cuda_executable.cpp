#include "backend/cuda/cuda_executable.hpp"

#include <algorithm>
#include <utility>

#include "backend/cuda/cuda_error.hpp"
#include "base/process.hpp"
#include "base/text.hpp"

namespace wye::inline v0::cuda {
namespace {

std::string sides(Extent3 extent) { return base::text("{} x {} x {}", extent.x, extent.y, extent.z); }

}  // namespace

Result<std::shared_ptr<CudaExecutable>> CudaExecutable::create(std::shared_ptr<CudaDevice> device,
                                                               const device::Artefact& artefact) {
  if (const Error* lost = device->lost()) return *lost;
  const AdapterInfo& info = device->info();
  const auto languages = device->languages();
  if (std::find(languages.begin(), languages.end(), artefact.language) == languages.end())
    return Error(Errc::unsupported, base::text("The language of kernel '{}' ('{}') is not supported by "
                                               "device '{}' ('cubin', 'ptx' or 'native').",
                                               artefact.kernel, artefact.language, info.id));
  if (!info.features.contains(artefact.needs))
    return Error(Errc::unsupported,
                 base::text("Kernel '{}' needs {}, which device '{}' does not support.", artefact.kernel,
                            device::lacking(info, artefact.needs), info.id));
  const bool native = artefact.language == "native";
  if (native && !artefact.native)
    return Error(Errc::invalid_argument,
                 base::text("Kernel '{}' for '{}' has no native function.", artefact.kernel, info.id));
  auto executable = base::make_own<CudaExecutable>(device, artefact);
  if (native) return executable;
  using Kind = device::Passing::Kind;
  if (auto checked = device::check_passing(artefact, "CUDA device", {Kind::bytes, Kind::address, Kind::span});
      !checked)
    return std::move(checked).error();
  if (artefact.parameter_bytes > info.limits.parameter_bytes.count)
    return Error(
        Errc::unsupported,
        base::text("The parameters of kernel '{}' ({} bytes) exceed the limit of device '{}' ({} bytes).",
                   artefact.kernel, artefact.parameter_bytes, info.id, info.limits.parameter_bytes.count));
  const CurrentContext current(*device);
  if (!current) return current.error();
  if (auto loaded = executable->load_library(); !loaded) return std::move(loaded).error();
  const CreationContext making(*device);
  if (!making) return making.error();
  if (auto loaded = executable->load_function(); !loaded) return std::move(loaded).error();
  if (auto checked = executable->check_limits(); !checked) return std::move(checked).error();
  if (auto prepared = executable->prepare_launches(); !prepared) return std::move(prepared).error();
  return executable;
}

Error CudaExecutable::not_loaded(CUresult result, const char* api) {
  CudaDevice& device = cuda();
  std::string sentence =
      base::text("The driver of device '{}' cannot load kernel '{}'.", device.info().id, artefact().kernel);
  if (result == CUDA_ERROR_NOT_FOUND)
    sentence =
        base::text("The code of kernel '{}' has no entry point '{}'.", artefact().kernel, artefact().entry);
  else if (result == CUDA_ERROR_NO_BINARY_FOR_GPU)
    sentence =
        base::text("The {} of kernel '{}' is not for the architecture of device '{}' ({}).",
                   artefact().language, artefact().kernel, device.info().id, device.info().architecture);
  else if (result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
    sentence =
        base::text("The PTX version of kernel '{}' is newer than the driver of device '{}' ({}) supports.",
                   artefact().kernel, device.info().id, device.info().driver);
  Error error = device.failed(result, api, std::move(sentence));
  return log_ && log_->text[0] != '\0' ? error.with_context(log_->text.data()) : error;
}

Result<void> CudaExecutable::load_library() {
  CudaDevice& device = cuda();
  if (artefact().language == "ptx") log_ = std::make_unique<Log>();
  CUlibrary library = nullptr;
  if (const CUresult r =
          device.cu.LibraryLoadData(&library, artefact().code.data(), log_ ? log_->options : nullptr,
                                    log_ ? log_->values : nullptr, log_ ? 2 : 0, nullptr, nullptr, 0);
      r != CUDA_SUCCESS)
    return not_loaded(r, "cuLibraryLoadData");
  library_ = library;
  return {};
}

Result<void> CudaExecutable::load_function() {
  CudaDevice& device = cuda();
  CUkernel kernel = nullptr;
  if (const CUresult r = device.cu.LibraryGetKernel(&kernel, library_, artefact().entry.c_str());
      r != CUDA_SUCCESS)
    return not_loaded(r, "cuLibraryGetKernel");
  // The parameters are one block of bytes, which the kernel would misread in another layout.
  if (device.cu.KernelGetParamInfo) {
    std::size_t offset = 0, size = 0, end = 0, i = 0;
    while (device.cu.KernelGetParamInfo(kernel, i, &offset, &size) == CUDA_SUCCESS) end = offset + size, ++i;
    if (i != 0 && end != artefact().parameter_bytes)
      return Error(
          Errc::invalid_argument,
          base::text("The parameters of kernel '{}' ({} bytes) have another size in its code ({} bytes).",
                     artefact().kernel, artefact().parameter_bytes, end));
  }
  kernel_ = kernel;
  CUfunction function = nullptr;
  if (const CUresult r = device.cu.KernelGetFunction(&function, kernel); r != CUDA_SUCCESS)
    return not_loaded(r, "cuKernelGetFunction");
  // Drivers load lazily. A function that is not loaded lacks some attributes, and loads in its
  // first launch.
  if (device.cu.FuncLoad)
    if (const CUresult r = device.cu.FuncLoad(function); r != CUDA_SUCCESS)
      return not_loaded(r, "cuFuncLoad");
  function_ = function;
  return {};
}

Result<void> CudaExecutable::check_limits() {
  CudaDevice& device = cuda();
  int threads = 0, shared = 0, registers = 0;
  for (const auto& [attribute, value] : {std::pair{CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &threads},
                                         std::pair{CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &shared},
                                         std::pair{CU_FUNC_ATTRIBUTE_NUM_REGS, &registers}})
    if (const CUresult r = device.cu.FuncGetAttribute(value, attribute, function_); r != CUDA_SUCCESS)
      return device.failed(
          r, "cuFuncGetAttribute",
          base::text("The driver of device '{}' does not return the requirements of kernel '{}'.",
                     device.info().id, artefact().kernel));
  if (artefact().workgroup.count() > static_cast<std::uint64_t>(threads))
    return Error(
        Errc::unsupported,
        base::text(
            "The workgroup of kernel '{}' ({} invocations with {} registers each) exceeds the limit of its "
            "code on device '{}' ({} invocations).",
            artefact().kernel, artefact().workgroup.count(), registers, device.info().id, threads));
  const std::uint64_t all = static_cast<std::uint64_t>(shared) + artefact().dynamic_shared;
  if (all > device.info().limits.shared_memory.count)
    return Error(Errc::unsupported, base::text("The shared memory of kernel '{}' ({} bytes, {} of them "
                                               "dynamic) exceeds the limit of device '{}' ({}).",
                                               artefact().kernel, all, artefact().dynamic_shared,
                                               device.info().id, device.info().limits.shared_memory.count));
  if (artefact().dynamic_shared == 0) return {};
  if (const CUresult r =
          device.cu.KernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                       static_cast<int>(artefact().dynamic_shared), kernel_, device.handle());
      r != CUDA_SUCCESS)
    return device.failed(
        r, "cuKernelSetAttribute",
        base::text("Device '{}' refuses the dynamic shared memory of kernel '{}' ({} bytes).",
                   device.info().id, artefact().kernel, artefact().dynamic_shared));
  return {};
}

Result<void> CudaExecutable::prepare_launches() {
  CudaDevice& device = cuda();
  const LaunchOptions& launch = artefact().launch;
  if (launch.shared_carveout)  // a hint
    device.lose_if_fatal(
        device.cu.KernelSetAttribute(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                                     static_cast<int>(*launch.shared_carveout), kernel_, device.handle()),
        "cuKernelSetAttribute");
  if (const Error* lost = device.lost()) return *lost;
  if (auto prepared = prepare_clusters(); !prepared) return prepared;
  if (launch.cooperative) {
    if (!device.processors().cooperative)
      return Error(
          Errc::unsupported,
          base::text("Kernel '{}' needs a cooperative launch, which device '{}' ({}) does not support.",
                     artefact().kernel, device.info().id, device.info().name));
    CUlaunchAttribute& attribute = attributes_[attribute_count_++];
    attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attribute.value.cooperative = 1;
  }
  return count_resident();
}

Result<Extent3> CudaExecutable::required_cluster() {
  CudaDevice& device = cuda();
  int x = 0, y = 0, z = 0;
  for (const auto& [attribute, value] : {std::pair{CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, &x},
                                         std::pair{CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, &y},
                                         std::pair{CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, &z}})
    if (const CUresult r = device.cu.FuncGetAttribute(value, attribute, function_); r != CUDA_SUCCESS)
      return device.failed(
          r, "cuFuncGetAttribute",
          base::text("The driver of device '{}' does not return the cluster size of kernel '{}'.",
                     device.info().id, artefact().kernel));
  return x > 0 ? Extent3(static_cast<std::uint64_t>(x), static_cast<std::uint64_t>(std::max(y, 1)),
                         static_cast<std::uint64_t>(std::max(z, 1)))
               : Extent3(0);
}

Result<void> CudaExecutable::prepare_clusters() {
  CudaDevice& device = cuda();
  const auto& declared = artefact().launch.cluster;
  if (!device.processors().clusters) {
    if (!declared || declared->count() == 1) return {};
    return Error(
        Errc::unsupported,
        base::text("Kernel '{}' needs clusters ({} workgroups), which device '{}' ({}, {}) does not support "
                   "(sm_90 or newer).",
                   artefact().kernel, declared->count(), device.info().id, device.info().name,
                   device.info().architecture));
  }
  auto required = required_cluster();
  if (!required) return std::move(required).error();
  if (declared && required->count() != 0 && *declared != *required)
    return Error(
        Errc::invalid_argument,
        base::text("The cluster of kernel '{}' ({}) differs from the cluster that its code requires ({}).",
                   artefact().kernel, sides(*declared), sides(*required)));
  cluster_ = declared ? *declared : required->count() != 0 ? *required : Extent3();
  if (!declared || cluster_.count() == 1) return {};
  constexpr std::uint64_t portable = 8;
  const auto refused = [&](CUresult r, const char* api) {
    return device.failed(r, api,
                         base::text("Device '{}' cannot launch kernel '{}' in clusters of {} workgroups.",
                                    device.info().id, artefact().kernel, cluster_.count()));
  };
  if (cluster_.count() > portable)
    if (const CUresult r = device.cu.KernelSetAttribute(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
                                                        1, kernel_, device.handle());
        r != CUDA_SUCCESS)
      return refused(r, "cuKernelSetAttribute");
  int most = 0;
  const auto shape = launch_of<CUlaunchConfig>(artefact(), cluster_);
  if (const CUresult r = device.cu.OccupancyMaxPotentialClusterSize(&most, function_, &shape);
      r != CUDA_SUCCESS)
    return refused(r, "cuOccupancyMaxPotentialClusterSize");
  if (cluster_.count() > static_cast<std::uint64_t>(std::max(most, 0)))
    return Error(
        Errc::unsupported,
        base::text("The cluster of kernel '{}' ({} workgroups) exceeds the limit of device '{}' ({}).",
                   artefact().kernel, cluster_.count(), device.info().id, most));
  CUlaunchAttribute& attribute = attributes_[attribute_count_++];
  attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attribute.value.clusterDim = {static_cast<unsigned>(cluster_.x), static_cast<unsigned>(cluster_.y),
                                static_cast<unsigned>(cluster_.z)};
  return {};
}

Result<void> CudaExecutable::count_resident() {
  CudaDevice& device = cuda();
  int count = 0;
  CUresult r = CUDA_SUCCESS;
  const char* api = "cuOccupancyMaxActiveBlocksPerMultiprocessor";
  if (cluster_.count() > 1) {
    api = "cuOccupancyMaxActiveClusters";
    auto shape = launch_of<CUlaunchConfig>(artefact(), cluster_);
    CUlaunchAttribute cluster{};
    cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    cluster.value.clusterDim = {shape.gridDimX, shape.gridDimY, shape.gridDimZ};
    shape.attrs = &cluster;
    shape.numAttrs = 1;
    r = device.cu.OccupancyMaxActiveClusters(&count, function_, &shape);
  } else {
    r = device.cu.OccupancyMaxActiveBlocksPerMultiprocessor(
        &count, function_, static_cast<int>(artefact().workgroup.count()), artefact().dynamic_shared);
  }
  if (r != CUDA_SUCCESS)
    return device.failed(r, api,
                         base::text("The driver of device '{}' does not return the occupancy of kernel '{}'.",
                                    device.info().id, artefact().kernel));
  const auto each = static_cast<std::uint64_t>(std::max(count, 0));
  resident_ = cluster_.count() > 1 ? each * cluster_.count()
                                   : each * static_cast<std::uint64_t>(device.processors().count);
  return {};
}

Result<void> CudaExecutable::check_grid(Extent3 groups) const {
  if (cluster_ != Extent3() &&
      (groups.x % cluster_.x != 0 || groups.y % cluster_.y != 0 || groups.z % cluster_.z != 0))
    return Error(
        Errc::unsupported,
        base::text(
            "The grid of kernel '{}' ({} workgroups) on device '{}' is not a multiple of its cluster ({}).",
            artefact().kernel, sides(groups), cuda().info().id, sides(cluster_)));
  if (artefact().launch.cooperative && groups.count() > resident_)
    return Error(
        Errc::unsupported,
        base::text(
            "The cooperative grid of kernel '{}' ({} workgroups) exceeds the number of workgroups that "
            "device '{}' runs at once ({}).",
            artefact().kernel, groups.count(), cuda().info().id, resident_));
  return {};
}

CudaExecutable::~CudaExecutable() {
  CudaDevice& device = cuda();
  if (!library_ || device.lost()) return;
  const CurrentContext current(device);
  if (current) device.lose_if_fatal(device.cu.LibraryUnload(library_), "cuLibraryUnload");
}

}  // namespace wye::cuda
