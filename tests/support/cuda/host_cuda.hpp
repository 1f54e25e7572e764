#pragma once
// CUDA C++ on the host: a .cu file that is included after this compiles unchanged into functions that run a block's threads one
// after the other. A thread that comes to a barrier is suspended until all threads of its block have.
#include <ucontext.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};

namespace twin {

/// One kernel as the stand-in for the driver finds it.
struct Kernel {
  const char* name;
  std::size_t parameters;
  const std::size_t* offsets;
  const std::size_t* sizes;
  /// Runs one block. Returns what went wrong, or null.
  const char* (*run)(const void* parameters, dim3 grid, dim3 block, uint3 block_index);
  Kernel* next;
};
inline Kernel*& kernels() {
  static Kernel* first = nullptr;
  return first;
}

/// The thread of a block that runs, on this thread of the host.
struct Self {
  uint3 thread{}, block{};
  dim3 block_dim{}, grid_dim{};
};
inline thread_local Self self;

constexpr std::size_t stack_bytes = 128u << 10;

struct Fiber {
  ucontext_t context{};
  std::unique_ptr<std::byte[]> stack{new std::byte[stack_bytes]};
  uint3 thread{};  // the one that waits
  int line = 0;    // where it waits; 0: it does not
};

/// The block that runs. Threads that never wait run one after the other on one fiber's stack; where one waits, the next
/// thread begins on another.
struct Block {
  void (*call)(const void*) = nullptr;
  const void* parameters = nullptr;
  std::size_t count = 0, next = 0, ended = 0;
  ucontext_t engine{};
  Fiber* running = nullptr;
};
inline thread_local Block block;

inline uint3 thread_at(std::size_t i) {
  const dim3& dim = self.block_dim;
  return {static_cast<unsigned>(i % dim.x), static_cast<unsigned>(i / dim.x % dim.y),
          static_cast<unsigned>(i / dim.x / dim.y)};
}

/// Called by kernels: waits for the other threads of the block.
inline void barrier(int line) {
  Fiber* const mine = block.running;
  mine->thread = self.thread;
  mine->line = line;
  swapcontext(&mine->context, &block.engine);
  self.thread = mine->thread;
}

/// Threads, until there are no more.
inline void run_threads() {
  while (block.next < block.count) {
    self.thread = thread_at(block.next++);
    block.call(block.parameters);
    ++block.ended;
  }
}

/// Runs one block. Returns what went wrong, or null.
inline const char* run_block(void (*call)(const void*), const void* parameters, dim3 grid, dim3 block_dim,
                             uint3 index) {
  static thread_local std::vector<std::unique_ptr<Fiber>> fibers;
  self = {{}, index, block_dim, grid};
  block.call = call;
  block.parameters = parameters;
  block.count = std::size_t{block_dim.x} * block_dim.y * block_dim.z;
  block.next = block.ended = 0;
  const auto run = [](Fiber& fiber) {
    fiber.line = 0;
    block.running = &fiber;
    swapcontext(&block.engine, &fiber.context);
  };
  std::size_t used = 0;
  while (block.next < block.count) {
    if (used == fibers.size()) fibers.push_back(std::make_unique<Fiber>());
    Fiber& fiber = *fibers[used++];
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = stack_bytes;
    fiber.context.uc_link = &block.engine;
    makecontext(&fiber.context, run_threads, 0);
    run(fiber);
  }
  while (block.ended != block.count) {
    if (block.ended != 0) return "threads of a block wait at a barrier that others never come to";
    for (std::size_t i = 0; i < used; ++i)
      if (fibers[i]->line != fibers[0]->line) return "threads of a block wait at different barriers";
    for (std::size_t i = 0; i < used; ++i) run(*fibers[i]);
  }
  return nullptr;
}

/// Where each parameter of a kernel lies in the block of parameters.
template <class... A>
struct Layout {
  static constexpr std::size_t count = sizeof...(A);
  std::size_t offsets[count + 1] = {};
  std::size_t sizes[count + 1] = {};
  constexpr Layout() {
    std::size_t i = 0, at = 0;
    ((at = (at + alignof(A) - 1) / alignof(A) * alignof(A), offsets[i] = at, sizes[i] = sizeof(A),
      at += sizeof(A), ++i),
     ...);
  }
};

template <auto F>
struct Twin;
template <class... A, void (*F)(A...)>
struct Twin<F> {
  static constexpr Layout<A...> layout{};
  template <std::size_t... I>
  static void call_with(const std::byte* parameters, std::index_sequence<I...>) {
    const auto get = [&](auto* value, std::size_t i) {
      std::memcpy(static_cast<void*>(value), parameters + layout.offsets[i], sizeof(*value));
    };
    std::tuple<A...> values;
    (get(&std::get<I>(values), I), ...);
    std::apply(F, values);
  }
  static void call(const void* parameters) {
    call_with(static_cast<const std::byte*>(parameters), std::index_sequence_for<A...>{});
  }
  static const char* run(const void* parameters, dim3 grid, dim3 block_size, uint3 index) {
    return run_block(call, parameters, grid, block_size, index);
  }
};

struct Add {
  Kernel kernel;
  template <auto F>
  static Kernel make(const char* name) {
    return {name,     Twin<F>::layout.count, Twin<F>::layout.offsets, Twin<F>::layout.sizes, Twin<F>::run,
            kernels()};
  }
  explicit Add(const Kernel& k) : kernel(k) { kernels() = &kernel; }
};

}  // namespace twin

#define __global__
#define __device__ inline
#define __host__
#define __forceinline__ inline
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __shared__ thread_local  // the blocks of one thread of the host run one after the other
#define threadIdx (twin::self.thread)
#define blockIdx (twin::self.block)
#define blockDim (twin::self.block_dim)
#define gridDim (twin::self.grid_dim)
inline void __syncthreads(int line = __builtin_LINE()) { twin::barrier(line); }

// As the compiler of the kernel room begins every source.
template <class T>
struct wye_span {
  T* data;
  unsigned long long size;
  T& operator[](unsigned long long i) const { return data[i]; }
};

#define WYE_TWIN(kernel) static twin::Add twin_of_##kernel(twin::Add::make<kernel>(#kernel))
