// The time and the memory of the buffers that recorded programs create and destroy
// (bench/traces/record_buffers.sh).
#include <benchmark/benchmark.h>
#include <wye/wye.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <vector>

#include "peers/vulkan_memory.hpp"
#include "traces/buffers.hpp"

namespace {

using wye_bench::BufferTrace;

const BufferTrace& trace() {
  static const BufferTrace made = wye_bench::interleaved_buffers();
  return made;
}

/// The buffers of wye on one backend.
class Wye {
 public:
  explicit Wye(const char* backend, std::size_t buffers) : buffers_(buffers) {
    if (auto pool = wye::ContextPool::open({.backends = {backend}})) {
      pool_ = *std::move(pool);
      device_ = pool_->devices().at(0);
    }
  }
  bool is_open() const { return pool_.has_value(); }
  const wye::Device& device() const { return *device_; }
  bool create(std::uint32_t number, std::uint64_t bytes) {
    auto made = device_->buffer<std::byte>(bytes);
    if (!made) return false;
    buffers_[number] = *std::move(made);
    return true;
  }
  void destroy(std::uint32_t number) { buffers_[number].reset(); }
  std::uint64_t held() const {
    const wye::MemoryInfo memory = device_->memory();
    return memory.in_use.count + memory.spare.count;
  }

 private:
  std::optional<wye::ContextPool> pool_;
  std::optional<wye::Device> device_;
  std::vector<std::optional<wye::Buffer>> buffers_;
};

class Malloc {
 public:
  explicit Malloc(std::size_t buffers) : buffers_(buffers) {}
  bool create(std::uint32_t number, std::uint64_t bytes) {
    buffers_[number] = std::calloc(bytes, 1);  // zeros, as a buffer of wye has
    benchmark::DoNotOptimize(buffers_[number]);
    return buffers_[number] != nullptr;
  }
  void destroy(std::uint32_t number) { std::free(buffers_[number]); }
  std::uint64_t held() const { return 0; }

 private:
  std::vector<void*> buffers_;
};

/// Replays the trace. The counter is the most memory that was held, as a multiple of the most
/// memory that buffers had.
template <class Allocator>
void replay(benchmark::State& state, Allocator& allocator) {
  // Once with a look at the memory after each event, which is not timed.
  std::uint64_t most_held = 0;
  for (const auto& [buffer, bytes] : trace().events) {
    if (bytes == 0)
      allocator.destroy(buffer);
    else if (!allocator.create(buffer, bytes))
      return state.SkipWithError("no memory");
    most_held = std::max(most_held, allocator.held());
  }
  for (auto _ : state)
    for (const auto& [buffer, bytes] : trace().events)
      if (bytes == 0)
        allocator.destroy(buffer);
      else
        benchmark::DoNotOptimize(allocator.create(buffer, bytes));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(trace().events.size()));
  if (most_held != 0)
    state.counters["held"] = static_cast<double>(most_held) / static_cast<double>(trace().most_bytes);
}

void by_wye(benchmark::State& state, const char* backend) {
  Wye wye(backend, trace().most_alive);
  if (!wye.is_open()) return state.SkipWithError("no such device");
  replay(state, wye);
}
BENCHMARK_CAPTURE(by_wye, vulkan, "vulkan")->Name("allocation_vulkan/wye");
BENCHMARK_CAPTURE(by_wye, cpu, "cpu")->Name("allocation_cpu/wye");

void by_peer(benchmark::State& state,
             std::unique_ptr<wye_bench::VulkanBuffers> (*open)(const wye::Device&, std::size_t)) {
  Wye wye("vulkan", 0);
  if (!wye.is_open()) return state.SkipWithError("no such device");
  const auto peer = open(wye.device(), trace().most_alive);
  if (!peer) return state.SkipWithError("the peer is not installed");
  replay(state, *peer);
}
BENCHMARK_CAPTURE(by_peer, vma, wye_bench::open_vma)->Name("allocation_vulkan/vma");
BENCHMARK_CAPTURE(by_peer, one_allocation_each, wye_bench::open_one_allocation_each)
    ->Name("allocation_vulkan/one_allocation_each");

void by_malloc(benchmark::State& state) {
  Malloc malloc(trace().most_alive);
  replay(state, malloc);
}
BENCHMARK(by_malloc)->Name("allocation_cpu/malloc");

}  // namespace
