#pragma once
// What kernels compiled for the host (host_cuda.hpp) ask of the one that runs their threads, and what the stand-in for the
// driver asks of it. The engine is a library of its own and never instrumented: under a sanitizer it says itself which thread
// of a kernel runs, and what orders what.
#include <cstddef>
#include <cstdint>
#include <string>

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};

#define WYE_ENGINE __attribute__((visibility("default")))

namespace twin {

/// The thread of a kernel that runs, on this thread of the host.
struct Self {
  uint3 thread{}, block{};
  dim3 block_dim{}, grid_dim{}, cluster_dim{};
};
extern constinit thread_local Self self WYE_ENGINE;

// ---- for kernels ----

/// Waits for all threads of the block; `line` is where.
WYE_ENGINE void sync_threads(int line);

/// What a lane gets of an operation of its warp: `values` are what the lanes of `mask` gave.
using Combine = std::uint64_t (*)(const std::uint64_t* values, unsigned mask, unsigned lane,
                                  unsigned argument);
/// Waits for the lanes of `mask`, which do the same with the same mask. Orders memory where `combine` is null.
WYE_ENGINE std::uint64_t sync_warp(Combine combine, unsigned mask, std::uint64_t value, unsigned argument,
                                   int line);
/// The same for all threads of the cluster that the block is in, or of the whole launch, which has to be a cooperative one.
WYE_ENGINE void sync_cluster(int line);
WYE_ENGINE void sync_grid(int line);
/// Orders what threads of any block write before with what others read after theirs.
WYE_ENGINE void fence();
/// The place of a thread in its block.
inline unsigned index_in_block() {
  return (self.thread.z * self.block_dim.y + self.thread.y) * self.block_dim.x + self.thread.x;
}

constexpr unsigned warp_size = 32;
/// The most shared memory a block may have, as on compute capability 9.0.
constexpr std::size_t most_shared = 227u << 10;

// ---- for the stand-in ----

/// One kernel.
struct Kernel {
  const char* name;
  std::size_t parameters;
  const std::size_t* offsets;
  const std::size_t* sizes;
  void (*call)(const void* parameters);  // one thread of it
  /// Where this thread of the host has the dynamic shared memory, `most_shared` bytes. The thread-local memory of the library
  /// that the kernel is in is shared memory and nothing else.
  std::byte* (*dynamic_shared)();
  const Kernel* next;
};

struct Launch {
  const Kernel* kernel;
  const void* parameters;
  dim3 grid, block;
  std::size_t shared;  // dynamic, in bytes
  /// In which order threads and blocks run. 0: as they are numbered; -1: the last first; others: at random, by this seed.
  long order;
  dim3 cluster{};  // in blocks
  bool cooperative = false;
};

/// Runs every `step`-th block of the launch, from the `first` on; of one whose blocks wait for each other all, with the first.
/// Returns what went wrong, or nothing.
WYE_ENGINE std::string run(const Launch& launch, std::uint64_t first, std::uint64_t step);

}  // namespace twin
