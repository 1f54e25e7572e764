// Kernels: loading, attributes, launches.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "support/cuda/code.hpp"
#include "support/cuda/order.hpp"
#include "support/cuda/stream.hpp"

namespace standin {
namespace {

bool read_attributes(const CUlaunchConfig& config, LaunchKind& kind) {
  for (unsigned i = 0; i < config.numAttrs; ++i)
    if (!read_attribute(config.attrs[i].id, config.attrs[i].value, kind)) return false;
  return true;
}

bool lie_alike(const twin::Kernel& twin, const Kernel& kernel) {
  bool same = twin.parameters == kernel.parameters.size();
  for (std::size_t i = 0; same && i < kernel.parameters.size(); ++i)
    same = twin.offsets[i] == kernel.parameters[i].first && twin.sizes[i] == kernel.parameters[i].second;
  return same;
}

/// Finds the kernels' twins: the file of kernels that has all of them, with equal parameter
/// layouts, for the newest architecture that is not newer than the device, and with the fewest
/// others.
CUresult find_twins(Library& library) {
  const Twins* best = nullptr;
  std::string elsewhere;
  for (const Twins& twins : world().twins) {
    if (twins.architecture > architecture()) continue;
    bool has_all = true;
    for (const auto& [name, kernel] : library.kernels) {
      const auto twin = twins.kernels.find(name);
      const bool lies_alike = twin != twins.kernels.end() && lie_alike(*twin->second, *kernel);
      if (twin != twins.kernels.end() && !lies_alike) elsewhere = name;
      has_all = has_all && lies_alike;
    }
    const auto fits_better = [](const Twins& a, const Twins& b) {
      return a.architecture != b.architecture ? a.architecture > b.architecture
                                              : a.kernels.size() < b.kernels.size();
    };
    if (has_all && (!best || fits_better(twins, *best))) best = &twins;
  }
  if (!best) {
    if (elsewhere.empty())
      std::fprintf(stderr, "stand-in: kernel '%s' has no twin for the host.\n",
                   library.kernels.begin()->first.c_str());
    else
      std::fprintf(stderr, "stand-in: the parameters of kernel '%s' lie elsewhere in its twin.\n",
                   elsewhere.c_str());
    return elsewhere.empty() ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_IMAGE;
  }
  for (const auto& [name, kernel] : library.kernels) kernel->twin = best->kernels.at(name);
  return CUDA_SUCCESS;
}

/// Loads lazily, as drivers do since CUDA 12.2: the check of the architecture and the log of the
/// compilation happen when a function is created.
CUresult LibraryLoadData(CUlibrary* handle, const void* code, CUjit_option* options, void** values,
                         unsigned count, CUlibraryOption*, void**, unsigned) {
  WYE_NEEDS_CONTEXT;
  Library library;
  if (const CUresult read = read_code(code, library); read != CUDA_SUCCESS) return read;
  if (const CUresult found = find_twins(library); found != CUDA_SUCCESS) return found;
  for (unsigned i = 0; i < count; ++i)
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
      for (const auto& [name, kernel] : library.kernels) kernel->log = values + i;
  create<Library>(handle, std::move(library));
  return CUDA_SUCCESS;
}
CUresult LibraryUnload(CUlibrary handle) {
  WYE_NEEDS_CONTEXT;
  return destroy<Library>(handle);
}
CUresult LibraryGetKernel(CUkernel* kernel, CUlibrary handle, const char* name) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(Library, library, handle);
  auto& kernels = library->kernels;
  const auto found = kernels.find(name);
  if (found == kernels.end()) return CUDA_ERROR_NOT_FOUND;
  *kernel = reinterpret_cast<CUkernel>(found->second.get());
  return CUDA_SUCCESS;
}
CUresult KernelGetFunction(CUfunction* function, CUkernel kernel) {
  WYE_NEEDS_CONTEXT;
  Kernel& its = *reinterpret_cast<Kernel*>(kernel);
  if (its.log)
    std::strcpy(static_cast<char*>(*its.log),
                its.fits == CUDA_SUCCESS ? "" : "stand-in: it is for another architecture");
  if (its.fits != CUDA_SUCCESS) return its.fits;
  // The context of a partition is "a normal primary context" (cuda.h at cuCtxFromGreenCtx).
  its.context = is_partition(contexts.back()) ? primary(0) : contexts.back();
  // A driver without cuFuncLoad loads here (CUDA C++ programming guide 12.2, "Lazy Loading").
  if (setting("WYE_STANDIN_VERSION", 13000) < 12040)
    if (const CUresult r = load(its, its.context); r != CUDA_SUCCESS) return r;
  *function = reinterpret_cast<CUfunction>(reinterpret_cast<std::uintptr_t>(kernel) | 1);
  return CUDA_SUCCESS;
}
/// Since CUDA 12.4 a function is not loaded unless the caller requests it.
CUresult FuncLoad(CUfunction function) {
  WYE_NEEDS_CONTEXT;
  Kernel& kernel = kernel_of(function);
  return load(kernel, kernel.context);
}
CUresult KernelGetParamInfo(CUkernel kernel, std::size_t index, std::size_t* offset, std::size_t* size) {
  WYE_NEEDS_CONTEXT;
  const auto& parameters = reinterpret_cast<Kernel*>(kernel)->parameters;
  if (index >= parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = parameters[index].first;
  *size = parameters[index].second;
  return CUDA_SUCCESS;
}
/// Registers of one thread; a processor has 65536.
int registers() { return static_cast<int>(setting("WYE_STANDIN_REGISTERS", 32)); }
/// Returns the threads that fit into one processor's registers, in whole warps.
int threads_of_processor() { return std::min(2048, 65536 / registers() / 32 * 32); }

CUresult OccupancyMaxActiveBlocksPerMultiprocessor(int* count, CUfunction function, int threads,
                                                   std::size_t shared) {
  WYE_NEEDS_CONTEXT;
  if (threads < 1) return CUDA_ERROR_INVALID_VALUE;
  const std::size_t each = kernel_of(function).fixed_shared + shared + (1u << 10);
  *count = std::min(
      {32, threads_of_processor() / ((threads + 31) / 32 * 32), static_cast<int>((228u << 10) / each)});
  return CUDA_SUCCESS;
}
CUresult OccupancyMaxPotentialClusterSize(int* size, CUfunction function, const CUlaunchConfig*) {
  WYE_NEEDS_CONTEXT;
  if (architecture() < 90) return CUDA_ERROR_NOT_SUPPORTED;
  *size = kernel_of(function).large_clusters ? 12 : 8;
  return CUDA_SUCCESS;
}
CUresult OccupancyMaxActiveClusters(int* count, CUfunction function, const CUlaunchConfig* config) {
  WYE_NEEDS_CONTEXT;
  int blocks = 0;
  if (const CUresult r = OccupancyMaxActiveBlocksPerMultiprocessor(
          &blocks, function, static_cast<int>(config->blockDimX * config->blockDimY * config->blockDimZ),
          config->sharedMemBytes);
      r != CUDA_SUCCESS)
    return r;
  LaunchKind kind;
  if (!read_attributes(*config, kind) || kind.blocks() == 0) return CUDA_ERROR_INVALID_VALUE;
  *count = blocks * multiprocessors() / static_cast<int>(kind.blocks());
  return CUDA_SUCCESS;
}
CUresult FuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  WYE_NEEDS_CONTEXT;
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK &&
      !is_loaded(kernel_of(function), kernel_of(function).context))
    return CUDA_ERROR_FUNCTION_NOT_LOADED;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = registers(); return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = std::min(1024, threads_of_processor());
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
      if (architecture() < 90) return CUDA_ERROR_INVALID_VALUE;
      *value = static_cast<int>(setting("WYE_STANDIN_REQUIRED_CLUSTER", 0));
      if (*value != 0 && attribute != CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH) *value = 1;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = static_cast<int>(kernel_of(function).fixed_shared);
      return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}
CUresult KernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice) {
  WYE_NEEDS_CONTEXT;
  Kernel& its = *reinterpret_cast<Kernel*>(kernel);
  world().function_attributes[attribute] = value;
  if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
    return value >= -1 && value <= 100 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  if (attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) {
    if (architecture() < 90) return CUDA_ERROR_NOT_SUPPORTED;
    its.large_clusters = value != 0;
    return CUDA_SUCCESS;
  }
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 ||
      static_cast<std::size_t>(value) + its.fixed_shared > twin::most_shared)
    return CUDA_ERROR_INVALID_VALUE;
  its.dynamic_shared = value;
  return CUDA_SUCCESS;
}
}  // namespace

bool read_attribute(CUlaunchAttributeID id, const CUlaunchAttributeValue& value, LaunchKind& kind) {
  if (id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
    kind.cluster = {value.clusterDim.x, value.clusterDim.y, value.clusterDim.z};
  else if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
    kind.cooperative = value.cooperative != 0;
  else
    return false;
  return true;
}

std::vector<std::byte> gather(const Kernel& kernel, void** parameters) {
  std::vector<std::byte> block(kernel.parameter_bytes);
  for (std::size_t i = 0; i < kernel.parameters.size(); ++i)
    std::memcpy(block.data() + kernel.parameters[i].first, parameters[i], kernel.parameters[i].second);
  return block;
}

CUresult push_launch(Sequence& on, const CUlaunchConfig& config, const LaunchKind& kind, CUfunction function,
                     void** parameters, void** extra) {
  Kernel& kernel = kernel_of(function);
  const dim3 grid{config.gridDimX, config.gridDimY, config.gridDimZ},
      block{config.blockDimX, config.blockDimY, config.blockDimZ};
  const unsigned shared = config.sharedMemBytes;
  // A kernel takes the context of its stream.
  if (is_function(function) && on.context != kernel.context) return CUDA_ERROR_INVALID_HANDLE;
  // The header forbids `extra` for a cooperative kernel in a graph node; cuLaunchCooperativeKernel
  // has no such parameter.
  if ((extra && (parameters || kind.cooperative)) || grid.x == 0 || grid.y == 0 || grid.z == 0 ||
      grid.y > 65535 || grid.z > 65535 || block.x == 0 || block.y == 0 || block.z == 0 || block.x > 1024 ||
      block.y > 1024 || block.z > 64 || block.x * block.y * block.z > 1024 ||
      shared > static_cast<unsigned>(kernel.dynamic_shared))
    return CUDA_ERROR_INVALID_VALUE;
  if (static_cast<int>(block.x * block.y * block.z) > threads_of_processor())
    return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  if (kind.blocks() != 1) {
    if (kind.blocks() == 0 || architecture() < 90 || kind.blocks() > (kernel.large_clusters ? 12 : 8) ||
        grid.x % kind.cluster.x != 0 || grid.y % kind.cluster.y != 0 || grid.z % kind.cluster.z != 0)
      return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  }
  if (kind.cooperative) {
    int most = 0;
    (void)OccupancyMaxActiveBlocksPerMultiprocessor(&most, function,
                                                    static_cast<int>(block.x * block.y * block.z), shared);
    if (std::uint64_t{grid.x} * grid.y * grid.z > static_cast<std::uint64_t>(most * multiprocessors()))
      return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  }
  std::vector<std::byte> bytes;
  if (extra) {
    if (extra[0] != CU_LAUNCH_PARAM_BUFFER_POINTER || extra[2] != CU_LAUNCH_PARAM_BUFFER_SIZE ||
        extra[4] != CU_LAUNCH_PARAM_END)
      return CUDA_ERROR_INVALID_VALUE;
    bytes.resize(*static_cast<std::size_t*>(extra[3]));
    std::memcpy(bytes.data(), extra[1], bytes.size());
  } else if (parameters) {
    bytes = gather(kernel, parameters);
  }
  if (bytes.size() != kernel.parameter_bytes) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult r = load(kernel, on.context); r != CUDA_SUCCESS) return r;
  const twin::Kernel* const code = kernel.twin;  // the library may be unloaded before it runs
  begin(on);
  note_parameters(on, bytes);
  Latency* lasts = latency("kernel/" + kernel.name);
  if (!lasts) lasts = latency("kernel");
  on.push([=, context = on.context, parameters = std::move(bytes)] {
    if (broken()) return;
    const RunningKernel running(context);
    const auto begin = Latency::Clock::now();
    const twin::Launch launch{code,   parameters.data(), grid,         block,
                              shared, world().order,     kind.cluster, kind.cooperative};
    const std::string wrong = run_kernel(launch);
    if (!wrong.empty()) break_device(719, wrong.c_str());
    if (lasts) lasts->spend(begin);
  });
  return CUDA_SUCCESS;
}

namespace {

CUresult launch(const CUlaunchConfig& config, const LaunchKind& kind, CUfunction function, void** parameters,
                void** extra) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(Stream, on, config.hStream);
  return push_launch(*on, config, kind, function, parameters, extra);
}
CUresult LaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                      unsigned bz, unsigned shared, CUstream stream, void** parameters, void** extra) {
  CUlaunchConfig config{};
  config.gridDimX = gx, config.gridDimY = gy, config.gridDimZ = gz;
  config.blockDimX = bx, config.blockDimY = by, config.blockDimZ = bz;
  config.sharedMemBytes = shared;
  config.hStream = stream;
  return launch(config, {}, function, parameters, extra);
}
CUresult LaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra) {
  LaunchKind kind;
  if (!read_attributes(*config, kind)) return CUDA_ERROR_INVALID_VALUE;
  return launch(*config, kind, function, parameters, extra);
}

WYE_ENTRY_POINTS(WYE_ENTRY(LibraryLoadData, 12000), WYE_ENTRY(LibraryUnload, 12000),
                 WYE_ENTRY(LibraryGetKernel, 12000), WYE_ENTRY(KernelGetFunction, 12000),
                 WYE_ENTRY(KernelGetParamInfo, 12040), WYE_ENTRY(FuncLoad, 12040),
                 WYE_ENTRY(FuncGetAttribute, 2020), WYE_ENTRY(KernelSetAttribute, 12000),
                 WYE_ENTRY(LaunchKernel, 4000), WYE_ENTRY(LaunchKernelEx, 11060),
                 WYE_ENTRY(OccupancyMaxActiveBlocksPerMultiprocessor, 6050),
                 WYE_ENTRY(OccupancyMaxPotentialClusterSize, 11070),
                 WYE_ENTRY(OccupancyMaxActiveClusters, 11070));

}  // namespace
}  // namespace standin
