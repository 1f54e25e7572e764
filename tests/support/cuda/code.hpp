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
};

struct Library {
  static constexpr std::string_view kind = "libraries";
  std::map<std::string, std::unique_ptr<Kernel>> kernels;
};

/// Reads the kernels of a cubin or of a text of PTX, as NVRTC makes them.
CUresult read_code(const void* code, Library& library);

// Entry points that a graph is made of.
CUresult LaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                      unsigned bz, unsigned shared, CUstream stream, void** parameters, void** extra);

}  // namespace standin
