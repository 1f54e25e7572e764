#pragma once
// Memory of the stand-in: tracked, poisoned.
#include "support/cuda/world.hpp"

namespace standin {

/// Fresh memory, 0xcb, or null: where a pool finds no room too.
void* allocate(std::size_t size, Allocation from);
/// What a driver does at each wait: pools give back what they keep above their threshold.
void give_back_kept();
/// Takes memory out of what is known, and poisons it with 0xdd.
void release(CUdeviceptr address);
/// Says what is seen at `address` of a file that others have too.
void show(CUdeviceptr address, const Allocation& seen);
/// Whether work of a device may use [address, address + size): memory of the host's, or its own.
bool is_reached_by(int device, CUdeviceptr address, std::size_t size);
/// Fresh memory is 0xcb and memory that was given back 0xdd: all of what is small, the ends of what is large.
void poison(void* memory, std::size_t size, int with);
/// Whether [address, address + size) is in one allocation.
bool is_known(CUdeviceptr address, std::size_t size);
inline std::byte* bytes(CUdeviceptr address) { return reinterpret_cast<std::byte*>(address); }
std::size_t total_memory();

// Entry points that a graph is made of.
CUresult MemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t size, CUstream stream);
CUresult MemsetD32Async(CUdeviceptr to, unsigned pattern, std::size_t count, CUstream stream);

}  // namespace standin
