// The rows of claims (claims.cpp) that no other benchmark measures: one job from `submit` to the
// end of `wait`, a layer of attention, the jobs that run at once, and the time to compile a kernel.
#include <benchmark/benchmark.h>
#include <wye/workloads/attention.hpp>
#include <wye/workloads/axpy.hpp>
#include <wye/workloads/matmul.hpp>
#include <wye/workloads/transpose.hpp>
#include <wye/wye.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "claim_kernels.hpp"
#include "peers/fma_peak.hpp"
#include "values.hpp"

namespace {

namespace workloads = wye::workloads;
using wye_bench::values;

/// Returns the runtime of a backend, the same one each time; null, with the row skipped, if it has
/// no device.
wye::Runtime* runtime_on(benchmark::State& state, const std::string& backend) {
  static std::map<std::string, wye::Result<wye::Runtime>> all;
  auto at = all.find(backend);
  if (at == all.end()) at = all.emplace(backend, wye::Runtime::open({.pool = {.backends = {backend}}})).first;
  if (at->second) return &*at->second;
  state.SkipWithError(at->second.error().sentence().c_str());
  return nullptr;
}

/// Runs a job as an application does that has other things to do meanwhile. Returns false, with the
/// row skipped, if it fails.
bool run_once(benchmark::State& state, wye::Runtime& runtime, const wye::Job& job, const char* backend) {
  const auto done = runtime.submit(job, {.on = backend}).wait();
  if (!done) state.SkipWithError(done.error().sentence().c_str());
  return done.has_value();
}

/// GPUs measure the variants of a kernel in its first jobs.
constexpr int jobs_before = 8;

// --- Vectors in memory of the host

void vector_job(benchmark::State& state, const char* backend, std::size_t n) {
  wye::Runtime* const runtime = runtime_on(state, backend);
  if (!runtime) return;
  const auto x = values(n, 1), before = values(n, 2);
  auto y = before;
  const wye::Job job = workloads::axpy(0.25f, x, y);
  if (!run_once(state, *runtime, job, backend)) return;
  for (std::size_t i = 0; i < n; ++i)
    if (!(std::abs(y[i] - (0.25f * x[i] + before[i])) <= 1e-6f))
      return state.SkipWithError("the sum is something else");
  for (int i = 0; i < jobs_before; ++i)
    if (!run_once(state, *runtime, job, backend)) return;
  for (auto _ : state) run_once(state, *runtime, job, backend);
}
BENCHMARK_CAPTURE(vector_job, cpu_512, "cpu", 512)->Name("claim_vector_512_cpu/wye")->UseRealTime();
BENCHMARK_CAPTURE(vector_job, vulkan_512, "vulkan", 512)->Name("claim_vector_512_vulkan/wye")->UseRealTime();
BENCHMARK_CAPTURE(vector_job, cuda_512, "cuda", 512)->Name("claim_vector_512_cuda/wye")->UseRealTime();
BENCHMARK_CAPTURE(vector_job, cpu_4096, "cpu", 4096)->Name("claim_vector_4096_cpu/wye")->UseRealTime();
BENCHMARK_CAPTURE(vector_job, vulkan_4096, "vulkan", 4096)
    ->Name("claim_vector_4096_vulkan/wye")
    ->UseRealTime();
BENCHMARK_CAPTURE(vector_job, cuda_4096, "cuda", 4096)->Name("claim_vector_4096_cuda/wye")->UseRealTime();
BENCHMARK_CAPTURE(vector_job, cpu_65536, "cpu", 65536)->Name("claim_vector_65536_cpu/wye")->UseRealTime();
BENCHMARK_CAPTURE(vector_job, vulkan_65536, "vulkan", 65536)
    ->Name("claim_vector_65536_vulkan/wye")
    ->UseRealTime();
BENCHMARK_CAPTURE(vector_job, cuda_65536, "cuda", 65536)->Name("claim_vector_65536_cuda/wye")->UseRealTime();

// --- Products of square matrices in memory of the host; matmul_1024_cpu is in workloads_bench.cpp

void product_job(benchmark::State& state, const char* backend, std::size_t side) {
  wye::Runtime* const runtime = runtime_on(state, backend);
  if (!runtime) return;
  const auto a = values(side * side, 3), b = values(side * side, 4);
  std::vector<float> c(side * side);
  const wye::Job job = workloads::matmul(a, b, c, {side, side, side});
  if (!run_once(state, *runtime, job, backend)) return;
  double last = 0;
  for (std::size_t k = 0; k < side; ++k)
    last += static_cast<double>(a[(side - 1) * side + k]) * static_cast<double>(b[k * side + side - 1]);
  if (!(std::abs(static_cast<double>(c.back()) - last) <= 1e-3))
    return state.SkipWithError("the product is something else");
  for (int i = 0; i < jobs_before; ++i)
    if (!run_once(state, *runtime, job, backend)) return;
  for (auto _ : state) run_once(state, *runtime, job, backend);
}
BENCHMARK_CAPTURE(product_job, cpu_64, "cpu", 64)->Name("claim_matmul_64_cpu/wye")->UseRealTime();
BENCHMARK_CAPTURE(product_job, vulkan_64, "vulkan", 64)->Name("claim_matmul_64_vulkan/wye")->UseRealTime();
BENCHMARK_CAPTURE(product_job, cuda_64, "cuda", 64)->Name("claim_matmul_64_cuda/wye")->UseRealTime();
BENCHMARK_CAPTURE(product_job, cpu_256, "cpu", 256)->Name("claim_matmul_256_cpu/wye")->UseRealTime();
BENCHMARK_CAPTURE(product_job, vulkan_256, "vulkan", 256)->Name("claim_matmul_256_vulkan/wye")->UseRealTime();
BENCHMARK_CAPTURE(product_job, cuda_256, "cuda", 256)->Name("claim_matmul_256_cuda/wye")->UseRealTime();
BENCHMARK_CAPTURE(product_job, vulkan_1024, "vulkan", 1024)
    ->Name("claim_matmul_1024_vulkan/wye")
    ->UseRealTime();
BENCHMARK_CAPTURE(product_job, cuda_1024, "cuda", 1024)->Name("claim_matmul_1024_cuda/wye")->UseRealTime();

// --- A layer of attention with the sizes of SmolLM2-135M

constexpr std::uint64_t tokens = 512, width = 576, head_size = 64, query_heads = 9, key_heads = 3;
constexpr std::uint64_t heads_of_key = query_heads / key_heads;

/// Arrays on the device. Query heads that do not share keys are neighbours: head `s * key_heads +
/// h` uses the keys of head h.
struct Layer {
  wye::Runtime& runtime;
  const char* backend;
  wye::Array<float> x = runtime.array(values(tokens * width, 5));
  wye::Array<float> to_q = runtime.array(values(query_heads * width * head_size, 6, 0.1f));
  wye::Array<float> to_k = runtime.array(values(key_heads * width * head_size, 7, 0.1f));
  wye::Array<float> to_v = runtime.array(values(key_heads * width * head_size, 8, 0.1f));
  wye::Array<float> to_y = runtime.array(values(query_heads * head_size * width, 9, 0.1f));
  wye::Array<float> q = runtime.array<float>(query_heads * tokens * head_size);
  wye::Array<float> k = runtime.array<float>(key_heads * tokens * head_size);
  wye::Array<float> v = runtime.array<float>(key_heads * tokens * head_size);
  wye::Array<float> out = runtime.array<float>(query_heads * tokens * head_size);
  wye::Array<float> columns = runtime.array<float>(query_heads * tokens * head_size);
  wye::Array<float> y = runtime.array<float>(tokens * width);

  /// Returns the jobs, which follow each other by their arrays.
  std::vector<wye::Job> jobs() {
    const workloads::MatmulShape shape{.rows = tokens, .columns = head_size, .inner = width};
    const auto by_heads = [](std::uint64_t heads) {
      return workloads::MatmulOptions{.batch = heads, .a_step = std::uint64_t{0}};
    };
    std::vector<wye::Job> list{workloads::matmul(x, to_q, q, shape, by_heads(query_heads)),
                               workloads::matmul(x, to_k, k, shape, by_heads(key_heads)),
                               workloads::matmul(x, to_v, v, shape, by_heads(key_heads))};
    constexpr std::uint64_t part = key_heads * tokens * head_size;
    for (std::uint64_t s = 0; s < heads_of_key; ++s)
      list.push_back(workloads::attention(
          q.slice(s * part, part), k, v, out.slice(s * part, part),
          {.heads = key_heads, .queries = tokens, .keys = tokens, .head_size = head_size}, {.causal = true}));
    // Transposed head by head, the results are the transpose of the matrix with a row per token.
    list.push_back(workloads::transpose(out, columns, head_size, query_heads));
    list.push_back(workloads::matmul(columns, to_y, y, {tokens, width, query_heads * head_size},
                                     workloads::MatmulOptions{.transposed_a = true}));
    return list;
  }
};

bool run_layer(benchmark::State& state, Layer& layer, const std::vector<wye::Job>& jobs) {
  std::vector<wye::Ticket> tickets;
  tickets.reserve(jobs.size());
  for (const wye::Job& job : jobs) tickets.push_back(layer.runtime.submit(job, {.on = layer.backend}));
  for (wye::Ticket& ticket : tickets)
    if (const auto done = ticket.wait(); !done)
      return state.SkipWithError(done.error().sentence().c_str()), false;
  return true;
}

void attention_layer(benchmark::State& state, const char* backend) {
  wye::Runtime* const runtime = runtime_on(state, backend);
  if (!runtime) return;
  Layer layer{.runtime = *runtime, .backend = backend};
  const std::vector<wye::Job> jobs = layer.jobs();
  for (int i = 0; i <= jobs_before; ++i)
    if (!run_layer(state, layer, jobs)) return;
  {
    // The first token sees only itself: its result is the product of its values and the last
    // weights.
    const auto v = layer.v.read(), y = layer.y.read();
    if (!v || !y) return state.SkipWithError("the result cannot be read");
    const auto to_y = values(query_heads * head_size * width, 9, 0.1f);
    double first = 0;
    for (std::uint64_t i = 0; i < query_heads * head_size; ++i) {
      const std::uint64_t key_head = i / head_size % key_heads;
      first += static_cast<double>((*v)[key_head * tokens * head_size + i % head_size]) *
               static_cast<double>(to_y[i * width]);
    }
    if (!(std::abs(static_cast<double>((*y)[0]) - first) <= 1e-3))
      return state.SkipWithError("the result is something else");
  }
  for (auto _ : state) run_layer(state, layer, jobs);
}
BENCHMARK_CAPTURE(attention_layer, cpu, "cpu")->Name("claim_attention_layer_cpu/wye")->UseRealTime();
BENCHMARK_CAPTURE(attention_layer, vulkan, "vulkan")->Name("claim_attention_layer_vulkan/wye")->UseRealTime();
BENCHMARK_CAPTURE(attention_layer, cuda, "cuda")->Name("claim_attention_layer_cuda/wye")->UseRealTime();

/// As many multiplications and additions as the layer has at least, on numbers that never leave
/// their registers.
void attention_layer_peak(benchmark::State& state) {
  constexpr double projections = 2.0 * tokens * width * head_size * (2 * query_heads + 2 * key_heads);
  constexpr double pairs = query_heads * (tokens * (tokens + 1) / 2.0);  // of queries and keys
  constexpr double operations = projections + pairs * 2 * 2 * head_size;
  const unsigned parts = std::max(1u, std::thread::hardware_concurrency());
  for (auto _ : state) {
    std::vector<std::thread> threads;
    for (unsigned i = 1; i < parts; ++i)
      threads.emplace_back([&] { wye_bench::multiply_and_add(operations / parts); });
    wye_bench::multiply_and_add(operations / parts);
    for (std::thread& thread : threads) thread.join();
  }
}
BENCHMARK(attention_layer_peak)->Name("claim_attention_layer_cpu/fma_peak")->UseRealTime();

// --- Jobs that run at once

/// Each of 8 host functions waits for the others. The counter is the most that ran at the same
/// time.
void jobs_at_once(benchmark::State& state) {
  constexpr std::uint32_t jobs = 8;
  std::atomic<std::uint32_t> running{0}, most{0};
  const auto meet = wye::Kernel<wye::ReadWrite<float>>::make(
      {.name = "meet", .sources = {wye::host([&](wye::Range, std::span<float>) {
                         const std::uint32_t now = ++running;
                         for (std::uint32_t seen = most; seen < now;)
                           if (most.compare_exchange_weak(seen, now)) break;
                         const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(2);
                         while (most < jobs && std::chrono::steady_clock::now() < until)
                           std::this_thread::sleep_for(std::chrono::microseconds(100));
                         --running;
                       })}});
  auto runtime = wye::Runtime::open(
      {.pool = {.backends = {"cpu"}, .lanes_per_device = jobs}, .scheduler = {.concurrent_jobs = jobs}});
  if (!meet || !runtime) return state.SkipWithError("failed");
  std::vector<std::vector<float>> memory(jobs, std::vector<float>(1, 1.0f));
  for (auto _ : state) {
    std::vector<wye::Ticket> tickets;
    for (std::vector<float>& one : memory) tickets.push_back(runtime->submit((*meet)(one)));
    for (wye::Ticket& ticket : tickets)
      if (!ticket.wait()) state.SkipWithError("failed");
  }
  state.counters["jobs"] = most.load();
}
BENCHMARK(jobs_at_once)->Name("claim_jobs_at_once_cpu/wye")->Iterations(1)->UseRealTime();

// --- Compiling

/// Builds a kernel that no cache has, including the code of the driver.
void compile_kernel(benchmark::State& state, const char* backend, wye_bench::MakeKernel make) {
  wye::Runtime* const runtime = runtime_on(state, backend);
  if (!runtime) return;
  static std::uint32_t number = std::random_device()();  // the driver's own cache outlives this process
  const auto build = [&] {
    const wye::AnyKernel kernel = make(std::to_string(++number) + "u");
    return run_once(state, *runtime, wye::Job::build(kernel), backend);
  };
  if (!build()) return;  // the first kernel of a process also starts the compiler
  for (auto _ : state) build();
}
void in_milliseconds(benchmark::internal::Benchmark* row) {
  row->UseRealTime()->Unit(benchmark::kMillisecond)->MinTime(0.2);
}
BENCHMARK_CAPTURE(compile_kernel, simple_vulkan, "vulkan", wye_bench::simple_kernel)
    ->Name("claim_compile_simple_vulkan/wye")
    ->Apply(in_milliseconds);
BENCHMARK_CAPTURE(compile_kernel, simple_cuda, "cuda", wye_bench::simple_kernel)
    ->Name("claim_compile_simple_cuda/wye")
    ->Apply(in_milliseconds);
BENCHMARK_CAPTURE(compile_kernel, typical_vulkan, "vulkan", wye_bench::typical_kernel)
    ->Name("claim_compile_typical_vulkan/wye")
    ->Apply(in_milliseconds);
BENCHMARK_CAPTURE(compile_kernel, typical_cuda, "cuda", wye_bench::typical_kernel)
    ->Name("claim_compile_typical_cuda/wye")
    ->Apply(in_milliseconds);
BENCHMARK_CAPTURE(compile_kernel, complex_vulkan, "vulkan", wye_bench::complex_kernel)
    ->Name("claim_compile_complex_vulkan/wye")
    ->Apply(in_milliseconds);
BENCHMARK_CAPTURE(compile_kernel, complex_cuda, "cuda", wye_bench::complex_kernel)
    ->Name("claim_compile_complex_cuda/wye")
    ->Apply(in_milliseconds);

}  // namespace
