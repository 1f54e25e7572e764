#pragma once
// Code that is loaded: which kernels it has, and where their parameters lie.
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
  bool large_clusters = false;    // of more than 8 blocks
  CUcontext context = nullptr;    // that its function is of
  bool loaded = false;            // into it
  CUresult fits = CUDA_SUCCESS;   // whether it can be
  void** log = nullptr;           // the value of the option that says where it is told why not
};

struct Library {
  static constexpr std::string_view kind = "libraries";
  std::map<std::string, std::unique_ptr<Kernel>> kernels;
};

/// Reads the kernels of a cubin or of a text of PTX, as NVRTC makes them.
CUresult read_code(const void* code, Library& library);

/// How a kernel is launched, beside its sizes.
struct LaunchKind {
  dim3 cluster{};
  bool cooperative = false;
  unsigned blocks() const { return cluster.x * cluster.y * cluster.z; }
};
/// Takes one attribute. False: it is not known.
bool read_attribute(CUlaunchAttributeID id, const CUlaunchAttributeValue& value, LaunchKind& kind);
/// The block of a kernel's parameters, of where each one is.
std::vector<std::byte> gather(const Kernel& kernel, void** parameters);
/// Gives a stream a launch; the attributes of `config` are not looked at.
CUresult launch(const CUlaunchConfig& config, const LaunchKind& kind, CUfunction function, void** parameters,
                void** extra);

}  // namespace standin
