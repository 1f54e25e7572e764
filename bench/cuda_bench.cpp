// CUDA: what wye adds to the bare driver, and how near its kernels come to what the card can. On a machine without a card each
// is skipped; tests/gpu/run.sh runs them where there is one.
#include <benchmark/benchmark.h>
#include <wye/workloads/axpy.hpp>
#include <wye/workloads/matmul.hpp>
#include <wye/wye.hpp>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "peers/raw_cuda.hpp"

namespace {

using wye::Bytes;

constexpr char cuda_cpp[] = R"(extern "C" __global__ void add(wye_span<unsigned> x, unsigned by) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < x.size) x[i] += by;
})";
constexpr std::uint64_t small = 64;

struct AddParameters {
  std::uint64_t address, size;
  unsigned by;
};

// A CUDA lane with the kernel and a buffer.
struct Lane {
  wye::ContextPool pool;
  wye::ShaderCache cache;
  wye::Lease lease;
  wye::Executable executable;
  wye::Buffer buffer;

  static std::optional<Lane> open(benchmark::State& state) {
    auto pool = wye::ContextPool::open({.backends = {"cuda"}, .cuda_driver = driver()});
    if (!pool) return state.SkipWithError("no card"), std::nullopt;
    static const auto kernel = wye::Kernel<wye::ReadWrite<std::uint32_t>, std::uint32_t>::make(
        {.name = "add", .sources = {wye::CudaCpp{.text = cuda_cpp}}});
    auto cache = wye::ShaderCache::open().value();
    auto lease = pool->lease().value();
    auto executable = cache.find_or_build(*kernel, lease.device());
    if (!executable) return state.SkipWithError(executable.error().sentence().c_str()), std::nullopt;
    auto buffer = lease.buffer<std::uint32_t>(small).value();
    lease.upload(std::vector<std::uint32_t>(small, 3), buffer);
    lease.wait().value();
    return Lane{std::move(*pool), std::move(cache), std::move(lease), *std::move(executable),
                std::move(buffer)};
  }
  static std::string driver() {
    const char* named = std::getenv("WYE_CUDA_DRIVER");
    return named ? named : "";
  }
};

std::unique_ptr<wye_bench::RawCuda> raw(benchmark::State& state) {
  std::string why;
  auto peer = wye_bench::RawCuda::open(why);
  if (!peer) state.SkipWithError(why.c_str());
  return peer;
}

// The same, and the kernel.
struct RawAdd {
  std::unique_ptr<wye_bench::RawCuda> cuda;
  wye::Cubin cubin;
  AddParameters parameters{};

  static std::optional<RawAdd> open(benchmark::State& state) {
    auto cuda = raw(state);
    if (!cuda) return std::nullopt;
    auto compiled =
        wye::compile(wye::CudaCpp{.text = cuda_cpp}, {.name = "add", .target = cuda->architecture()});
    if (!compiled) return state.SkipWithError(compiled.error().sentence().c_str()), std::nullopt;
    RawAdd add{std::move(cuda), *compiled->cubin};
    if (!add.cuda->load(add.cubin.bytes.data(), "add"))
      return state.SkipWithError("the cubin is refused"), std::nullopt;
    add.parameters = {add.cuda->memory(small * sizeof(std::uint32_t)), small, 1};
    return add;
  }
  bool launch() { return cuda->launch(1, 64, &parameters, 20); }
};

void dispatch_wye(benchmark::State& state) {
  auto lane = Lane::open(state);
  if (!lane) return;
  const auto arguments = wye::arguments(lane->buffer, 1u);
  for (auto _ : state) {
    lane->lease.dispatch(lane->executable, arguments);
    if (!lane->lease.wait()) state.SkipWithError("failed");
  }
}
BENCHMARK(dispatch_wye)->Name("cuda_dispatch_sync/wye")->UseRealTime()->MinTime(0.3);

void dispatch_raw(benchmark::State& state) {
  auto add = RawAdd::open(state);
  if (!add) return;
  for (auto _ : state)
    if (!add->launch() || !add->cuda->wait()) state.SkipWithError("failed");
}
BENCHMARK(dispatch_raw)->Name("cuda_dispatch_sync/raw_cuda")->UseRealTime()->MinTime(0.3);

constexpr int batch = 1000;

void batch_wye(benchmark::State& state) {
  auto lane = Lane::open(state);
  if (!lane) return;
  const auto arguments = wye::arguments(lane->buffer, 1u);
  for (auto _ : state) {
    for (int i = 0; i < batch; ++i) lane->lease.dispatch(lane->executable, arguments);
    if (!lane->lease.wait()) state.SkipWithError("failed");
  }
  state.SetItemsProcessed(state.iterations() * batch);
}
BENCHMARK(batch_wye)->Name("cuda_dispatch_batch/wye")->UseRealTime()->Unit(benchmark::kMicrosecond);

void batch_raw(benchmark::State& state) {
  auto add = RawAdd::open(state);
  if (!add) return;
  for (auto _ : state) {
    for (int i = 0; i < batch; ++i)
      if (!add->launch()) state.SkipWithError("failed");
    if (!add->cuda->wait()) state.SkipWithError("failed");
  }
  state.SetItemsProcessed(state.iterations() * batch);
}
BENCHMARK(batch_raw)->Name("cuda_dispatch_batch/raw_cuda")->UseRealTime()->Unit(benchmark::kMicrosecond);

std::vector<float> values(std::size_t n) {
  std::vector<float> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = 0.5f + static_cast<float>(i % 977) * 0.001f;
  return v;
}

std::optional<wye::Runtime> with_card(benchmark::State& state) {
  auto runtime = wye::Runtime::open({.backends = {{"cuda"}}, .lane_memory = Bytes{4ull << 30}});
  if (!runtime) return state.SkipWithError("no card"), std::nullopt;
  return *runtime;
}

// Runs a job over and over on arrays that stay on the card.
void run_job(benchmark::State& state, wye::Runtime& runtime, const wye::Job& job) {
  if (auto first = runtime.run(job); !first) return state.SkipWithError(first.error().sentence().c_str());
  for (auto _ : state)
    if (!runtime.run(job)) state.SkipWithError("failed");
}

// What a card that is small, or stands in for one, can take.
constexpr std::size_t vector_bytes = 256u << 20;

void axpy_wye(benchmark::State& state) {
  auto runtime = with_card(state);
  if (!runtime) return;
  const auto host = values(vector_bytes / sizeof(float));
  auto x = runtime->array(host), y = runtime->array(host);
  run_job(state, *runtime, wye::workloads::axpy(1e-6f, x, y));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(3 * vector_bytes));
}
BENCHMARK(axpy_wye)->Name("cuda_axpy_256MiB/wye")->UseRealTime()->Unit(benchmark::kMicrosecond);

// A copy that moves as many bytes: a half of them read, a half written.
void axpy_copy(benchmark::State& state) {
  auto cuda = raw(state);
  if (!cuda) return;
  constexpr std::size_t bytes = vector_bytes * 3 / 2;
  const std::uint64_t from = cuda->memory(bytes), to = cuda->memory(bytes);
  if (from == 0 || to == 0) return state.SkipWithError("no room");
  for (auto _ : state)
    if (!cuda->copy(to, from, bytes) || !cuda->wait()) state.SkipWithError("failed");
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(2 * bytes));
}
BENCHMARK(axpy_copy)->Name("cuda_axpy_256MiB/device_copy")->UseRealTime()->Unit(benchmark::kMicrosecond);

constexpr int side = 4096;

void matmul_wye(benchmark::State& state) {
  auto runtime = with_card(state);
  if (!runtime) return;
  const auto host = values(std::size_t{side} * side);
  auto a = runtime->array(host), b = runtime->array(host);
  auto c = runtime->array<float>(host.size());
  run_job(state, *runtime, wye::workloads::matmul(a, b, c));
}
BENCHMARK(matmul_wye)->Name("cuda_matmul_4096/wye")->UseRealTime()->Unit(benchmark::kMicrosecond);

void matmul_cublas(benchmark::State& state) {
  auto cuda = raw(state);
  if (!cuda) return;
  if (std::string why; !cuda->open_cublas(why)) return state.SkipWithError(why.c_str());
  constexpr std::size_t bytes = std::size_t{side} * side * sizeof(float);
  const std::uint64_t a = cuda->memory(bytes), b = cuda->memory(bytes), c = cuda->memory(bytes);
  std::byte* host = cuda->pinned(bytes);
  if (a == 0 || b == 0 || c == 0 || !host) return state.SkipWithError("no room");
  std::memcpy(host, values(std::size_t{side} * side).data(), bytes);
  for (const std::uint64_t to : {a, b})
    if (!cuda->copy(to, reinterpret_cast<std::uint64_t>(host), bytes) || !cuda->wait())
      return state.SkipWithError("failed");
  for (auto _ : state)
    if (!cuda->multiply(a, b, c, side) || !cuda->wait()) state.SkipWithError("failed");
}
BENCHMARK(matmul_cublas)->Name("cuda_matmul_4096/cublas")->UseRealTime()->Unit(benchmark::kMicrosecond);

constexpr std::size_t roundtrip = 64u << 20;

void roundtrip_wye(benchmark::State& state) {
  auto lane = Lane::open(state);
  if (!lane) return;
  const auto source = values(roundtrip / sizeof(float));
  std::vector<float> target(source.size(), 1.0f);
  const auto buffer = lane->lease.buffer<float>(source.size()).value();
  for (auto _ : state) {
    lane->lease.upload(source, buffer);
    lane->lease.download(buffer, target);
    if (!lane->lease.wait()) state.SkipWithError("failed");
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(2 * roundtrip));
}
BENCHMARK(roundtrip_wye)->Name("cuda_roundtrip_64MiB/wye")->UseRealTime()->Unit(benchmark::kMicrosecond);

// From and to memory that any program has: through pinned memory.
void roundtrip_raw(benchmark::State& state) {
  auto cuda = raw(state);
  if (!cuda) return;
  const auto source = values(roundtrip / sizeof(float));
  std::vector<float> target(source.size(), 1.0f);
  std::byte* there = cuda->pinned(roundtrip);
  std::byte* back = cuda->pinned(roundtrip);
  const std::uint64_t memory = cuda->memory(roundtrip);
  if (!there || !back || memory == 0) return state.SkipWithError("no room");
  for (auto _ : state) {
    std::memcpy(there, source.data(), roundtrip);
    if (!cuda->copy(memory, reinterpret_cast<std::uint64_t>(there), roundtrip) ||
        !cuda->copy(reinterpret_cast<std::uint64_t>(back), memory, roundtrip) || !cuda->wait())
      state.SkipWithError("failed");
    std::memcpy(target.data(), back, roundtrip);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(2 * roundtrip));
}
BENCHMARK(roundtrip_raw)->Name("cuda_roundtrip_64MiB/raw_cuda")->UseRealTime()->Unit(benchmark::kMicrosecond);

}  // namespace
