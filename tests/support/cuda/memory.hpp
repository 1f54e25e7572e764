#pragma once
// Memory of the stand-in: tracked, poisoned.
#include "support/cuda/world.hpp"

namespace standin {

/// What a driver does at each wait: pools give back what they keep above their threshold.
void give_back_kept();
/// Takes memory out of what is known, and poisons it with 0xdd.
void release(CUdeviceptr address);
/// Whether [address, address + size) is in one allocation.
bool is_known(CUdeviceptr address, std::size_t size);
inline std::byte* bytes(CUdeviceptr address) { return reinterpret_cast<std::byte*>(address); }
std::size_t total_memory();

// Entry points that a graph is made of.
CUresult MemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t size, CUstream stream);
CUresult MemsetD32Async(CUdeviceptr to, unsigned pattern, std::size_t count, CUstream stream);

}  // namespace standin
