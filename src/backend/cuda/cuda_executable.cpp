#include "backend/cuda/cuda_executable.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "backend/cuda/cuda_error.hpp"
#include "base/text.hpp"

namespace wye {
inline namespace v0 {
namespace cuda {
Result<std::shared_ptr<CudaExecutable>> CudaExecutable::create(std::shared_ptr<CudaDevice> device,
                                                               const device::Artefact& artefact) {
  if (const Error* lost = device->lost()) return *lost;
  const AdapterInfo& info = device->info();
  const auto languages = device->languages();
  if (std::find(languages.begin(), languages.end(), artefact.language) == languages.end())
    return Error(Errc::unsupported,
                 base::text("Kernel '{}' is in language '{}'; device '{}' takes 'cubin', 'ptx' and 'native'.",
                            artefact.kernel, artefact.language, info.id));
  if (!info.features.contains(artefact.needs))
    return Error(Errc::unsupported,
                 base::text("Kernel '{}' needs {}, which device '{}' does not offer.", artefact.kernel,
                            to_string(artefact.needs.without(info.features)), info.id));
  const bool native = artefact.language == "native";
  if (native && !artefact.native)
    return Error(Errc::invalid_argument,
                 base::text("Kernel '{}' for '{}' has no native function.", artefact.kernel, info.id));
  auto executable = std::make_shared<CudaExecutable>(device, artefact);
  if (native) return executable;
  using Kind = device::Passing::Kind;
  if (auto checked = device::check_passing(artefact, "CUDA device", {Kind::bytes, Kind::address, Kind::span});
      !checked)
    return std::move(checked).error();
  if (artefact.parameter_bytes > info.limits.parameter_bytes.count)
    return Error(
        Errc::unsupported,
        base::text("Kernel '{}' has parameters of {} bytes, and device '{}' takes {}.", artefact.kernel,
                   artefact.parameter_bytes, info.id, info.limits.parameter_bytes.count));
  const CurrentContext current(*device);
  if (!current) return current.error();
  if (auto loaded = executable->load(artefact); !loaded) return std::move(loaded).error();
  if (auto checked = executable->check_limits(); !checked) return std::move(checked).error();
  return executable;
}

Result<void> CudaExecutable::load(const device::Artefact& artefact) {
  CudaDevice& device = cuda();
  std::array<char, 4096> log{};
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log.data(), reinterpret_cast<void*>(log.size() - 1)};
  const auto refused = [&](CUresult r, const char* api) {
    std::string sentence =
        base::text("The driver of device '{}' does not load kernel '{}'.", device.info().id, artefact.kernel);
    if (r == CUDA_ERROR_NOT_FOUND)
      sentence =
          base::text("The code of kernel '{}' has no kernel named '{}'.", artefact.kernel, artefact.entry);
    else if (r == CUDA_ERROR_NO_BINARY_FOR_GPU)
      sentence = base::text("The {} of kernel '{}' is not for the architecture of device '{}' ({}).",
                            artefact.language, artefact.kernel, device.info().id, device.info().architecture);
    else if (r == CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
      sentence = base::text(
          "The PTX of kernel '{}' is of a newer version than the driver of device '{}' ({}) knows.",
          artefact.kernel, device.info().id, device.info().driver);
    Error error = device.failed(r, api, std::move(sentence));
    return log[0] != '\0' ? error.with_context(log.data()) : error;
  };
  CUlibrary library = nullptr;
  if (const CUresult r = device.cu.LibraryLoadData(&library, artefact.code.data(), options, values,
                                                   artefact.language == "ptx" ? 2 : 0, nullptr, nullptr, 0);
      r != CUDA_SUCCESS)
    return refused(r, "cuLibraryLoadData");
  library_ = library;
  CUkernel kernel = nullptr;
  if (const CUresult r = device.cu.LibraryGetKernel(&kernel, library_, artefact.entry.c_str());
      r != CUDA_SUCCESS)
    return refused(r, "cuLibraryGetKernel");
  // The block of parameters is copied as it is: one of another layout would be read as something else.
  if (device.cu.KernelGetParamInfo) {
    std::size_t offset = 0, size = 0, end = 0, i = 0;
    while (device.cu.KernelGetParamInfo(kernel, i, &offset, &size) == CUDA_SUCCESS) end = offset + size, ++i;
    if (i != 0 && end != artefact.parameter_bytes)
      return Error(Errc::invalid_argument,
                   base::text("The code of kernel '{}' has {} bytes of parameters, and {} are given to it.",
                              artefact.kernel, end, artefact.parameter_bytes));
  }
  CUfunction function = nullptr;
  if (const CUresult r = device.cu.KernelGetFunction(&function, kernel); r != CUDA_SUCCESS)
    return refused(r, "cuKernelGetFunction");
  function_ = function;
  return {};
}

Result<void> CudaExecutable::check_limits() {
  CudaDevice& device = cuda();
  int threads = 0, shared = 0;
  for (const auto& [attribute, value] : {std::pair{CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &threads},
                                         std::pair{CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &shared}})
    if (const CUresult r = device.cu.FuncGetAttribute(value, attribute, function_); r != CUDA_SUCCESS)
      return device.failed(r, "cuFuncGetAttribute",
                           base::text("The driver of device '{}' does not say what kernel '{}' needs.",
                                      device.info().id, artefact().kernel));
  if (artefact().workgroup.count() > static_cast<std::uint64_t>(threads))
    return Error(
        Errc::unsupported,
        base::text("The workgroup of kernel '{}' ({} invocations) is larger than its registers allow on "
                   "device '{}' ({}).",
                   artefact().kernel, artefact().workgroup.count(), device.info().id, threads));
  const std::uint64_t all = static_cast<std::uint64_t>(shared) + artefact().dynamic_shared;
  if (all > device.info().limits.shared_memory.count)
    return Error(
        Errc::unsupported,
        base::text("Kernel '{}' uses {} bytes of shared memory, {} of them dynamic, and device '{}' has {}.",
                   artefact().kernel, all, artefact().dynamic_shared, device.info().id,
                   device.info().limits.shared_memory.count));
  if (artefact().dynamic_shared == 0) return {};
  if (const CUresult r =
          device.cu.FuncSetAttribute(function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                     static_cast<int>(artefact().dynamic_shared));
      r != CUDA_SUCCESS)
    return device.failed(r, "cuFuncSetAttribute",
                         base::text("Device '{}' gives kernel '{}' no {} bytes of dynamic shared memory.",
                                    device.info().id, artefact().kernel, artefact().dynamic_shared));
  return {};
}

CudaExecutable::~CudaExecutable() {
  CudaDevice& device = cuda();
  if (!library_ || device.lost()) return;
  const CurrentContext current(device);
  if (current) device.heard(device.cu.LibraryUnload(library_), "cuLibraryUnload");
}

}  // namespace cuda
}  // namespace v0
}  // namespace wye
