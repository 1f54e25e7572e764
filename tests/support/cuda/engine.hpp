#pragma once
// The interface of the engine for kernels compiled for the host (host_cuda.hpp), and for the
// stand-in for the driver. The engine is a library of its own and never instrumented: it tells a
// sanitizer which thread of a kernel runs, and what orders what.
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

/// The running thread of a kernel, on this thread of the host.
struct Self {
  uint3 thread{}, block{};
  dim3 block_dim{}, grid_dim{}, cluster_dim{};
};
extern constinit thread_local Self self WYE_ENGINE;

// ---- for kernels ----

/// Waits for all threads of the block; `line` is the line of the call.
WYE_ENGINE void sync_threads(int line);

/// Returns a lane's result of a warp operation: `values` are those of the lanes of `mask`.
using Combine = std::uint64_t (*)(const std::uint64_t* values, unsigned mask, unsigned lane,
                                  unsigned argument);
/// Waits for the lanes of `mask`, which must call it with the same mask. Orders memory if `combine`
/// is null.
WYE_ENGINE std::uint64_t sync_warp(Combine combine, unsigned mask, std::uint64_t value, unsigned argument,
                                   int line);
/// The same for all threads of the block's cluster, or of the whole launch, which must be
/// cooperative.
WYE_ENGINE void sync_cluster(int line);
WYE_ENGINE void sync_grid(int line);
/// Orders earlier writes of threads of any block with later reads of others.
WYE_ENGINE void fence();
/// Returns the position of a thread in its block.
inline unsigned index_in_block() {
  return (self.thread.z * self.block_dim.y + self.thread.y) * self.block_dim.x + self.thread.x;
}

constexpr unsigned warp_size = 32;
/// The most shared memory of a block, as on compute capability 9.0.
constexpr std::size_t most_shared = 227u << 10;

// ---- for the stand-in ----

/// One kernel.
struct Kernel {
  const char* name;
  std::size_t parameters;
  const std::size_t* offsets;
  const std::size_t* sizes;
  void (*call)(const void* parameters);  // one thread of it
  /// The address of the dynamic shared memory of this host thread, `most_shared` bytes. The
  /// thread-local memory of the kernel's library is shared memory and nothing else.
  std::byte* (*dynamic_shared)();
  const Kernel* next;
};

struct Launch {
  const Kernel* kernel;
  const void* parameters;
  dim3 grid, block;
  std::size_t shared;  // dynamic, in bytes
  /// The order of threads and blocks. 0: by number; -1: in reverse; others: at random, by this
  /// seed.
  long order;
  dim3 cluster{};  // in blocks
  bool cooperative = false;
};

/// Runs every `step`-th block of the launch, beginning with `first`. If blocks wait for each other,
/// runs all blocks with the first. Returns the error, or an empty string.
WYE_ENGINE std::string run(const Launch& launch, std::uint64_t first, std::uint64_t step);

}  // namespace twin
