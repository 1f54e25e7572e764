// Kernels: loading, asking, launching.
#include <cstdio>
#include <cstring>

#include "support/cuda/code.hpp"
#include "support/cuda/stream.hpp"

namespace standin {
namespace {

bool lie_alike(const twin::Kernel& twin, const Kernel& kernel) {
  bool same = twin.parameters == kernel.parameters.size();
  for (std::size_t i = 0; same && i < kernel.parameters.size(); ++i)
    same = twin.offsets[i] == kernel.parameters[i].first && twin.sizes[i] == kernel.parameters[i].second;
  return same;
}

/// Finds the kernels' twins: the file of kernels that has them all, with parameters that lie alike, and the fewest others.
CUresult find_twins(Library& library) {
  const std::map<std::string, const twin::Kernel*>* best = nullptr;
  std::string elsewhere;
  for (const auto& twins : world().twins) {
    bool has_all = true;
    for (const auto& [name, kernel] : library.kernels) {
      const auto twin = twins.find(name);
      const bool lies_alike = twin != twins.end() && lie_alike(*twin->second, *kernel);
      if (twin != twins.end() && !lies_alike) elsewhere = name;
      has_all = has_all && lies_alike;
    }
    if (has_all && (!best || twins.size() < best->size())) best = &twins;
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
  for (const auto& [name, kernel] : library.kernels) kernel->twin = best->at(name);
  return CUDA_SUCCESS;
}

CUresult LibraryLoadData(CUlibrary* handle, const void* code, CUjit_option*, void**, unsigned,
                         CUlibraryOption*, void**, unsigned) {
  WYE_NEEDS_CONTEXT;
  Library library;
  if (const CUresult read = read_code(code, library); read != CUDA_SUCCESS) return read;
  if (const CUresult found = find_twins(library); found != CUDA_SUCCESS) return found;
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
  *function = reinterpret_cast<CUfunction>(kernel);
  return CUDA_SUCCESS;
}
CUresult KernelGetParamInfo(CUkernel kernel, std::size_t index, std::size_t* offset, std::size_t* size) {
  WYE_NEEDS_CONTEXT;
  const auto& parameters = reinterpret_cast<Kernel*>(kernel)->parameters;
  if (index >= parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = parameters[index].first;
  *size = parameters[index].second;
  return CUDA_SUCCESS;
}
CUresult FuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  WYE_NEEDS_CONTEXT;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 1024; return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = static_cast<int>(reinterpret_cast<Kernel*>(function)->fixed_shared);
      return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}
CUresult FuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  WYE_NEEDS_CONTEXT;
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 ||
      static_cast<std::size_t>(value) + reinterpret_cast<Kernel*>(function)->fixed_shared > twin::most_shared)
    return CUDA_ERROR_INVALID_VALUE;
  reinterpret_cast<Kernel*>(function)->dynamic_shared = value;
  return CUDA_SUCCESS;
}
}  // namespace

CUresult LaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                      unsigned bz, unsigned shared, CUstream stream, void** parameters, void** extra) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(Stream, on, stream);
  const Kernel& kernel = *reinterpret_cast<Kernel*>(function);
  if (parameters || gx == 0 || gy == 0 || gz == 0 || gy > 65535 || gz > 65535 || bx == 0 || by == 0 ||
      bz == 0 || bx > 1024 || by > 1024 || bz > 64 || bx * by * bz > 1024 ||
      shared > static_cast<unsigned>(kernel.dynamic_shared))
    return CUDA_ERROR_INVALID_VALUE;
  std::vector<std::byte> block;
  if (extra) {
    if (extra[0] != CU_LAUNCH_PARAM_BUFFER_POINTER || extra[2] != CU_LAUNCH_PARAM_BUFFER_SIZE ||
        extra[4] != CU_LAUNCH_PARAM_END)
      return CUDA_ERROR_INVALID_VALUE;
    block.resize(*static_cast<std::size_t*>(extra[3]));
    std::memcpy(block.data(), extra[1], block.size());
  }
  if (block.size() != kernel.parameter_bytes) return CUDA_ERROR_INVALID_VALUE;
  const twin::Kernel* const code = kernel.twin;  // the library may be unloaded when it runs
  on->push([=, parameters = std::move(block)] {
    if (broken()) return;
    const twin::Launch launch{code, parameters.data(), {gx, gy, gz}, {bx, by, bz}, shared, world().order};
    const std::string wrong = on->run(launch);
    if (!wrong.empty()) break_device(719, wrong.c_str());
  });
  return CUDA_SUCCESS;
}

namespace {

WYE_ENTRY_POINTS(WYE_ENTRY(LibraryLoadData, 12000), WYE_ENTRY(LibraryUnload, 12000),
                 WYE_ENTRY(LibraryGetKernel, 12000), WYE_ENTRY(KernelGetFunction, 12000),
                 WYE_ENTRY(KernelGetParamInfo, 12040), WYE_ENTRY(FuncGetAttribute, 2020),
                 WYE_ENTRY(FuncSetAttribute, 9000), WYE_ENTRY(LaunchKernel, 4000));

}  // namespace
}  // namespace standin
