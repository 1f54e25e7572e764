#pragma once
// Memory of the stand-in: tracked, poisoned.
#include "support/cuda/world.hpp"

namespace standin {

/// Returns fresh memory, filled with 0xcb, or null; also null if a pool has no room.
void* allocate(std::size_t size, Allocation from);
/// Trims pools to their thresholds, as a driver does at each wait.
void give_back_kept();
/// Removes an allocation and fills it with 0xdd.
void release(CUdeviceptr address);
/// Records which part of a shared file is mapped at `address`.
void show(CUdeviceptr address, const Allocation& seen);
/// Returns whether work of a device may use [address, address + size): host memory or its own.
bool is_reached_by(int device, CUdeviceptr address, std::size_t size);
/// Fresh memory is 0xcb and freed memory 0xdd: all of a small allocation, the ends of a large one.
void poison(void* memory, std::size_t size, int with);
/// Returns the allocation that contains [address, address + size), or null. The world is locked.
Allocation* find_allocation(CUdeviceptr address, std::size_t size);
/// Returns whether [address, address + size) is in one allocation.
bool is_known(CUdeviceptr address, std::size_t size);
inline std::byte* bytes(CUdeviceptr address) { return reinterpret_cast<std::byte*>(address); }
std::size_t total_memory();

class Sequence;
CUresult push_copy(Sequence& on, CUdeviceptr to, CUdeviceptr from, std::size_t size);
CUresult push_fill(Sequence& on, CUdeviceptr to, unsigned pattern, std::size_t count);

}  // namespace standin
