#pragma once
// Loaded code: its kernels and the layout of their parameters.
#include <set>
#include <utility>

#include "support/cuda/world.hpp"

namespace standin {

struct Kernel {
  std::string name;
  std::size_t parameter_bytes = 0;
  std::vector<std::pair<std::size_t, std::size_t>> parameters;  // offset, size
  const twin::Kernel* twin = nullptr;
  std::size_t fixed_shared = 0;
  int dynamic_shared = 48 << 10;  // at most
  bool large_clusters = false;    // more than 8 blocks
  CUcontext context = nullptr;    // of its function
  std::set<CUcontext> loaded;     // the contexts into which it is loaded; under the world's mutex
  CUresult fits = CUDA_SUCCESS;   // whether it can be loaded
  void** log = nullptr;           // the option for the message of a failed load
};

/// Returns the kernel that a handle names: a CUkernel, or a CUfunction of it in a context.
inline Kernel& kernel_of(CUfunction handle) {
  return *reinterpret_cast<Kernel*>(reinterpret_cast<std::uintptr_t>(handle) & ~std::uintptr_t{1});
}
/// Returns whether a handle is a CUfunction, and not a CUkernel that was cast to one.
inline bool is_function(CUfunction handle) { return (reinterpret_cast<std::uintptr_t>(handle) & 1) != 0; }

struct Library {
  static constexpr std::string_view kind = "libraries";
  std::map<std::string, std::unique_ptr<Kernel>> kernels;
};

/// Reads the kernels of a cubin or of PTX text, as NVRTC writes them.
CUresult read_code(const void* code, Library& library);

/// The attributes of a launch, without its sizes.
struct LaunchKind {
  dim3 cluster{};
  bool cooperative = false;
  unsigned blocks() const { return cluster.x * cluster.y * cluster.z; }
};
/// Reads one attribute. Returns false if it is unknown.
bool read_attribute(CUlaunchAttributeID id, const CUlaunchAttributeValue& value, LaunchKind& kind);
/// Returns the block of a kernel's parameters, given a pointer to each.
std::vector<std::byte> gather(const Kernel& kernel, void** parameters);
/// A kernel that runs in a context, while the object exists.
class RunningKernel {
 public:
  explicit RunningKernel(CUcontext context);
  RunningKernel(const RunningKernel&) = delete;
  ~RunningKernel();

 private:
  const std::uint64_t number_;
};
/// Loads a kernel into a context unless it is loaded there. With CUDA_MODULE_LOADING=LAZY, the
/// default since CUDA 12.2, a driver loads when a function is needed for that context (cuda.h at
/// cuLibraryLoadData). A load may have to synchronize the context ("Lazy Loading" in the CUDA
/// programming guide): this one waits for all kernels that run there.
CUresult load(Kernel& kernel, CUcontext context);
bool is_loaded(const Kernel& kernel, CUcontext context);

class Sequence;
/// Submits a launch; the stream and the attributes of `config` are ignored.
CUresult push_launch(Sequence& on, const CUlaunchConfig& config, const LaunchKind& kind, CUfunction function,
                     void** parameters, void** extra);

}  // namespace standin
