// The workloads on the CPU beside their obvious alternative.
#include <benchmark/benchmark.h>
#include <hwy/contrib/sort/vqsort.h>
#include <wye/base/dynamic_library.hpp>
#include <wye/workloads/add_rows.hpp>
#include <wye/workloads/attention.hpp>
#include <wye/workloads/attention_weights.hpp>
#include <wye/workloads/cached_attention.hpp>
#include <wye/workloads/collatz.hpp>
#include <wye/workloads/csr_multiply.hpp>
#include <wye/workloads/dot.hpp>
#include <wye/workloads/embed.hpp>
#include <wye/workloads/force_layout.hpp>
#include <wye/workloads/layer_norm.hpp>
#include <wye/workloads/matmul.hpp>
#include <wye/workloads/norm.hpp>
#include <wye/workloads/normalize.hpp>
#include <wye/workloads/pagerank.hpp>
#include <wye/workloads/quantized.hpp>
#include <wye/workloads/reduce.hpp>
#include <wye/workloads/rms_norm.hpp>
#include <wye/workloads/rope.hpp>
#include <wye/workloads/scale.hpp>
#include <wye/workloads/scan.hpp>
#include <wye/workloads/segment_mean.hpp>
#include <wye/workloads/silu_multiply.hpp>
#include <wye/workloads/softmax.hpp>
#include <wye/workloads/sort.hpp>
#include <wye/workloads/top_k.hpp>
#include <wye/workloads/transpose.hpp>
#include <wye/wye.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "peers/fma_peak.hpp"
#include "peers/force_layout.hpp"
#include "values.hpp"

namespace {

namespace workloads = wye::workloads;
using wye_bench::values;

wye::Runtime& runtime() {
  static wye::Runtime runtime = wye::Runtime::open({.pool = {.backends = {"cpu"}}}).value();
  return runtime;
}

void run(benchmark::State& state, const wye::Job& job) {
  for (auto _ : state)
    if (auto done = runtime().run(job); !done) state.SkipWithError(done.error().sentence().c_str());
}

/// Calls `part(i, parts)` on as many threads as there are processors.
void on_all_threads(const std::function<void(unsigned, unsigned)>& part) {
  const unsigned parts = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < parts; ++i) threads.emplace_back(part, i, parts);
  part(0, parts);
  for (std::thread& thread : threads) thread.join();
}

/// Calls `part(first, last)` for the part of `n` elements of each of these threads.
template <class F>
void on_all_parts(std::size_t n, F part) {
  on_all_threads([&](unsigned i, unsigned parts) { part(n * i / parts, n * (i + 1) / parts); });
}

/// The lower bound of any change of `n` numbers in place: reads and writes each of them once.
void change_floor(benchmark::State& state, std::size_t n) {
  auto v = values(n, 3);
  for (auto _ : state)
    on_all_parts(n, [&](std::size_t first, std::size_t last) {
      for (std::size_t k = first; k < last; ++k) v[k] = -v[k];
    });
}

void read_once(const std::vector<float>& v) {
  on_all_parts(v.size(), [&](std::size_t first, std::size_t last) {
    std::uint32_t sum = 0;
    for (std::size_t k = first; k < last; ++k) sum += std::bit_cast<std::uint32_t>(v[k]);
    benchmark::DoNotOptimize(sum);
  });
}

/// Reads each of `n` numbers once.
void read_some(benchmark::State& state, std::size_t n) {
  const auto v = values(n, 11);
  for (auto _ : state) read_once(v);
}
// --- matmul

constexpr std::size_t side = 1024;

void matmul_wye(benchmark::State& state, bool transposed_a, bool ends) {
  const auto a = values(side * side, 1), b = values(side * side, 2), bias = values(side, 3),
             residual = values(side * side, 4);
  std::vector<float> c(side * side);
  workloads::MatmulEpilogue<float> epilogue;
  if (ends) {
    epilogue = {.scale = 0.5f, .bias = bias, .activation = workloads::Activation::gelu, .residual = residual};
  }
  run(state, workloads::matmul(a, b, c, {side, side, side}, {.transposed_a = transposed_a}, epilogue));
}
BENCHMARK_CAPTURE(matmul_wye, plain, false, false)->Name("matmul_1024_cpu/wye")->UseRealTime();
/// Scaled, with bias, gelu and a residual.
BENCHMARK_CAPTURE(matmul_wye, epilogue, false, true)->Name("matmul_epilogue_1024_cpu/wye")->UseRealTime();
BENCHMARK_CAPTURE(matmul_wye, without_epilogue, false, false)
    ->Name("matmul_epilogue_1024_cpu/product")
    ->UseRealTime();
BENCHMARK_CAPTURE(matmul_wye, transposed, true, false)
    ->Name("matmul_transposed_a_1024_cpu/wye")
    ->UseRealTime();
BENCHMARK_CAPTURE(matmul_wye, not_transposed, false, false)
    ->Name("matmul_transposed_a_1024_cpu/product")
    ->UseRealTime();

/// The serial OpenBLAS in row panels, one for each thread.
void matmul_openblas(benchmark::State& state) {
  using Sgemm =
      void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*, int);
  auto library = wye::DynamicLibrary::open("/usr/$LIB/openblas-serial/libopenblas.so.0");
  if (!library) return state.SkipWithError(library.error().sentence().c_str());
  const auto sgemm = library->function<Sgemm>("cblas_sgemm");
  const auto a = values(side * side, 1), b = values(side * side, 2);
  std::vector<float> c(side * side);
  constexpr int n = side;
  for (auto _ : state)
    on_all_parts(side, [&](std::size_t first, std::size_t last) {
      sgemm(101, 111, 111, static_cast<int>(last - first), n, n, 1.0f, a.data() + first * side, n, b.data(),
            n, 0.0f, c.data() + first * side, n);
    });
}
BENCHMARK(matmul_openblas)->Name("matmul_1024_cpu/openblas")->UseRealTime();

/// As many multiplications and additions, on numbers that never leave their registers.
void matmul_peak(benchmark::State& state) {
  constexpr double operations = 2.0 * side * side * side;
  for (auto _ : state)
    on_all_threads([&](unsigned, unsigned parts) { wye_bench::multiply_and_add(operations / parts); });
}
BENCHMARK(matmul_peak)->Name("matmul_1024_cpu/fma_peak")->UseRealTime();

// --- rows

constexpr std::size_t ten_million = 10'000'000;

void normalize_wye(benchmark::State& state) {
  auto v = values(ten_million, 3);
  run(state, workloads::normalize(v, 1000));
}
BENCHMARK(normalize_wye)->Name("normalize_10M_cpu/wye")->UseRealTime();

BENCHMARK_CAPTURE(change_floor, normalize, ten_million)
    ->Name("normalize_10M_cpu/memory_floor")
    ->UseRealTime();

/// Rows of 1,024 numbers: 16 MiB, which the last cache may hold, and 512 MiB, which it cannot hold.
/// In a cache, the exponentials take longer than reading and writing.
void softmax_wye(benchmark::State& state, std::size_t rows) {
  auto v = values(rows * 1024, 4);
  run(state, workloads::softmax(v, 1024));
}
BENCHMARK_CAPTURE(softmax_wye, cache, 4096)->Name("softmax_4096x1024_cpu/wye")->UseRealTime();
BENCHMARK_CAPTURE(change_floor, cache, 4096 * 1024)->Name("softmax_4096x1024_cpu/cache_floor")->UseRealTime();
BENCHMARK_CAPTURE(softmax_wye, memory, 131072)->Name("softmax_131072x1024_cpu/wye")->UseRealTime();
BENCHMARK_CAPTURE(change_floor, memory, 131072 * 1024)
    ->Name("softmax_131072x1024_cpu/memory_floor")
    ->UseRealTime();

// --- transpose

constexpr std::size_t transposed_side = 8192;

void transpose_wye(benchmark::State& state) {
  const auto x = values(transposed_side * transposed_side, 11);
  std::vector<float> y(x.size());
  run(state, workloads::transpose(x, y, transposed_side));
}
BENCHMARK(transpose_wye)->Name("transpose_8192_cpu/wye")->UseRealTime();

void copy_floor(benchmark::State& state, std::size_t n) {
  const auto x = values(n, 11);
  std::vector<float> y(x.size());
  for (auto _ : state) {
    on_all_parts(x.size(), [&](std::size_t first, std::size_t last) {
      std::copy(x.data() + first, x.data() + last, y.data() + first);
    });
    benchmark::DoNotOptimize(y.data());
    benchmark::ClobberMemory();
  }
}
BENCHMARK_CAPTURE(copy_floor, transpose, transposed_side* transposed_side)
    ->Name("transpose_8192_cpu/copy")
    ->UseRealTime();

// --- rows of a transformer block, beside the same traffic of memory

constexpr std::size_t block_rows = 4096, block_columns = 4096, head_size = 128;

void layer_norm_wye(benchmark::State& state) {
  const auto x = values(block_rows * block_columns, 3), weight = values(block_columns, 4),
             bias = values(block_columns, 5);
  std::vector<float> result(x.size());
  run(state, workloads::layer_norm(x, weight, bias, result));
}
BENCHMARK(layer_norm_wye)->Name("layer_norm_4096x4096_cpu/wye")->UseRealTime();
BENCHMARK_CAPTURE(copy_floor, layer_norm, block_rows* block_columns)
    ->Name("layer_norm_4096x4096_cpu/copy")
    ->UseRealTime();

void rms_norm_wye(benchmark::State& state) {
  const auto x = values(block_rows * block_columns, 3), weight = values(block_columns, 4);
  std::vector<float> result(x.size());
  run(state, workloads::rms_norm(x, weight, result));
}
BENCHMARK(rms_norm_wye)->Name("rms_norm_4096x4096_cpu/wye")->UseRealTime();
BENCHMARK_CAPTURE(copy_floor, rms_norm, block_rows* block_columns)
    ->Name("rms_norm_4096x4096_cpu/copy")
    ->UseRealTime();

void rope_wye(benchmark::State& state) {
  auto x = values(block_rows * block_columns, 3);
  std::vector<std::uint32_t> positions(block_rows);
  for (std::uint32_t i = 0; i < block_rows; ++i) positions[i] = i;
  run(state, workloads::rope(x, positions, head_size));
}
BENCHMARK(rope_wye)->Name("rope_4096x32x128_cpu/wye")->UseRealTime();
BENCHMARK_CAPTURE(change_floor, rope, block_rows* block_columns)
    ->Name("rope_4096x32x128_cpu/memory_floor")
    ->UseRealTime();

void silu_multiply_wye(benchmark::State& state) {
  const auto gate = values(block_rows * block_columns, 3), up = values(gate.size(), 4);
  std::vector<float> result(gate.size());
  run(state, workloads::silu_multiply(gate, up, result));
}
BENCHMARK(silu_multiply_wye)->Name("silu_multiply_16M_cpu/wye")->UseRealTime();

void silu_multiply_floor(benchmark::State& state) {
  const auto gate = values(block_rows * block_columns, 3), up = values(gate.size(), 4);
  std::vector<float> result(gate.size());
  for (auto _ : state) {
    on_all_parts(gate.size(), [&](std::size_t first, std::size_t last) {
      for (std::size_t k = first; k < last; ++k) result[k] = gate[k] * up[k];
    });
    benchmark::DoNotOptimize(result.data());
    benchmark::ClobberMemory();
  }
}
BENCHMARK(silu_multiply_floor)->Name("silu_multiply_16M_cpu/memory_floor")->UseRealTime();

void embed_wye(benchmark::State& state) {
  const auto table = values(2 * block_rows * block_columns, 3);
  std::vector<float> result(block_rows * block_columns);
  std::vector<std::uint32_t> tokens(block_rows);
  std::mt19937 random(4);
  for (std::uint32_t& token : tokens)
    token = static_cast<std::uint32_t>(random() % (table.size() / block_columns));
  run(state, workloads::embed(table, tokens, result));
}
BENCHMARK(embed_wye)->Name("embed_4096x4096_cpu/wye")->UseRealTime();
BENCHMARK_CAPTURE(copy_floor, embed, block_rows* block_columns)
    ->Name("embed_4096x4096_cpu/copy")
    ->UseRealTime();

void add_rows_wye(benchmark::State& state, bool by_table) {
  auto x = values(block_rows * block_columns, 3);
  const auto table = values(2 * x.size(), 4), row = values(block_columns, 5);
  std::vector<std::uint32_t> rows(block_rows);
  std::mt19937 random(4);
  for (std::uint32_t& number : rows) number = static_cast<std::uint32_t>(random() % (2 * block_rows));
  run(state, by_table ? workloads::add_rows(x, table, rows) : workloads::add_rows(x, row));
}
BENCHMARK_CAPTURE(add_rows_wye, row, false)->Name("add_row_4096x4096_cpu/wye")->UseRealTime();
BENCHMARK_CAPTURE(change_floor, add_row, block_rows* block_columns)
    ->Name("add_row_4096x4096_cpu/memory_floor")
    ->UseRealTime();
BENCHMARK_CAPTURE(add_rows_wye, table, true)->Name("add_table_rows_4096x4096_cpu/wye")->UseRealTime();

/// The same by the compiler, on all threads.
void add_rows_loop(benchmark::State& state) {
  auto x = values(block_rows * block_columns, 3);
  const auto table = values(2 * x.size(), 4);
  std::vector<std::uint32_t> rows(block_rows);
  std::mt19937 random(4);
  for (std::uint32_t& number : rows) number = static_cast<std::uint32_t>(random() % (2 * block_rows));
  for (auto _ : state)
    on_all_parts(block_rows, [&](std::size_t first, std::size_t last) {
      for (std::size_t row = first; row < last; ++row) {
        const float* const added = &table[rows[row] * block_columns];
        float* const to = &x[row * block_columns];
        for (std::size_t i = 0; i < block_columns; ++i) to[i] += added[i];
      }
    });
}
BENCHMARK(add_rows_loop)->Name("add_table_rows_4096x4096_cpu/loop")->UseRealTime();

// --- means of segments of rows of 384, beside the loop by the compiler and one read of the same memory

constexpr std::size_t segment_rows = 65536, segment_columns = 384;

/// The offsets of one segment, or of sequences of up to 255 rows.
std::vector<std::uint32_t> segment_offsets(bool one) {
  if (one) return {0, segment_rows};
  std::vector<std::uint32_t> offsets{0};
  std::mt19937 random(6);
  while (offsets.back() != segment_rows)
    offsets.push_back(std::min(offsets.back() + 1 + static_cast<std::uint32_t>(random() % 255),
                               static_cast<std::uint32_t>(segment_rows)));
  return offsets;
}

void segment_mean_wye(benchmark::State& state, bool one) {
  const auto x = values(segment_rows * segment_columns, 3);
  const auto offsets = segment_offsets(one);
  std::vector<float> result((offsets.size() - 1) * segment_columns);
  run(state, workloads::segment_mean(x, offsets, result));
}
void segment_mean_loop(benchmark::State& state, bool one) {
  const auto x = values(segment_rows * segment_columns, 3);
  const auto offsets = segment_offsets(one);
  std::vector<float> result((offsets.size() - 1) * segment_columns);
  for (auto _ : state) {
    on_all_parts(offsets.size() - 1, [&](std::size_t first, std::size_t last) {
      for (std::size_t segment = first; segment < last; ++segment) {
        float* const mean = &result[segment * segment_columns];
        std::fill_n(mean, segment_columns, 0.0f);
        for (std::size_t row = offsets[segment]; row < offsets[segment + 1]; ++row)
          for (std::size_t i = 0; i < segment_columns; ++i) mean[i] += x[row * segment_columns + i];
        const auto count = static_cast<float>(offsets[segment + 1] - offsets[segment]);
        for (std::size_t i = 0; i < segment_columns; ++i) mean[i] /= count;
      }
    });
    benchmark::DoNotOptimize(result.data());
    benchmark::ClobberMemory();
  }
}
BENCHMARK_CAPTURE(segment_mean_wye, sequences, false)->Name("segment_mean_64kx384_cpu/wye")->UseRealTime();
BENCHMARK_CAPTURE(segment_mean_loop, sequences, false)->Name("segment_mean_64kx384_cpu/loop")->UseRealTime();
BENCHMARK_CAPTURE(read_some, segments, segment_rows* segment_columns)
    ->Name("segment_mean_64kx384_cpu/memory_floor")
    ->UseRealTime();
BENCHMARK_CAPTURE(segment_mean_wye, one, true)->Name("segment_mean_one_64kx384_cpu/wye")->UseRealTime();
BENCHMARK_CAPTURE(segment_mean_loop, one, true)->Name("segment_mean_one_64kx384_cpu/loop")->UseRealTime();
BENCHMARK_CAPTURE(read_some, one_segment, segment_rows* segment_columns)
    ->Name("segment_mean_one_64kx384_cpu/memory_floor")
    ->UseRealTime();

// --- reductions to one number, beside one read of the same memory; prefix sums

constexpr std::size_t sixty_four_million = std::size_t{1} << 26;

void read_floor(benchmark::State& state) { read_some(state, sixty_four_million); }

// --- products with weights of 4 bits

constexpr std::size_t weights_side = 4096;

/// Weights in blocks q4_0, times rows.
void quantized_wye(benchmark::State& state, std::size_t rows, bool int8_x) {
  constexpr std::size_t n = weights_side;
  const auto w = values(n * n, 14), x = values(rows * n, 15);
  std::vector<std::uint8_t> weights(n * n / 32 * 18);
  std::vector<float> y(rows * n);
  if (!runtime().run(workloads::quantize(w, weights))) state.SkipWithError("no blocks");
  run(state, workloads::quantized_matmul(x, weights, y, rows, {}, {.int8_x = int8_x}));
}
BENCHMARK_CAPTURE(quantized_wye, one, 1, false)->Name("q4_0_4096_1_row_cpu/wye")->UseRealTime();
BENCHMARK_CAPTURE(read_some, q4_0, (weights_side * weights_side) / 32 * 18 / 4)
    ->Name("q4_0_4096_1_row_cpu/memory_floor")
    ->UseRealTime();
BENCHMARK_CAPTURE(quantized_wye, one_int8, 1, true)->Name("q4_0_int8_4096_1_row_cpu/wye")->UseRealTime();
BENCHMARK_CAPTURE(read_some, q4_0_int8, (weights_side * weights_side) / 32 * 18 / 4)
    ->Name("q4_0_int8_4096_1_row_cpu/memory_floor")
    ->UseRealTime();
BENCHMARK_CAPTURE(quantized_wye, many, 512, false)->Name("q4_0_4096_512_rows_cpu/wye")->UseRealTime();
BENCHMARK_CAPTURE(quantized_wye, many_int8, 512, true)
    ->Name("q4_0_int8_4096_512_rows_cpu/wye")
    ->UseRealTime();

void quantized_floats(benchmark::State& state) {
  constexpr std::size_t rows = 512, n = weights_side;
  const auto w = values(n * n, 14), x = values(rows * n, 15);
  std::vector<float> y(rows * n);
  run(state, workloads::matmul(x, w, y, {rows, n, n}, {.transposed_b = true}));
}
BENCHMARK(quantized_floats)->Name("q4_0_4096_512_rows_cpu/float_product")->UseRealTime();
BENCHMARK(quantized_floats)->Name("q4_0_int8_4096_512_rows_cpu/float_product")->UseRealTime();

void reduce_wye(benchmark::State& state) {
  const auto v = values(sixty_four_million, 11);
  std::vector<float> sum(1);
  run(state, workloads::reduce(workloads::Reduction::sum, v, sum));
}
BENCHMARK(reduce_wye)->Name("reduce_64M_cpu/wye")->UseRealTime();
BENCHMARK(read_floor)->Name("reduce_64M_cpu/memory_floor")->UseRealTime();

void reduce_extreme_wye(benchmark::State& state) {
  const auto v = values(sixty_four_million, 11);
  std::vector<float> most(1);
  std::vector<std::uint32_t> place(1);
  run(state, workloads::reduce(workloads::Reduction::max, v, most, place));
}
BENCHMARK(reduce_extreme_wye)->Name("reduce_max_64M_cpu/wye")->UseRealTime();
BENCHMARK(read_floor)->Name("reduce_max_64M_cpu/memory_floor")->UseRealTime();

void scan_wye(benchmark::State& state) {
  const auto v = values(sixty_four_million, 11);
  std::vector<float> sums(v.size());
  run(state, workloads::scan(workloads::Scan::inclusive, v, sums));
}
BENCHMARK(scan_wye)->Name("scan_64M_cpu/wye")->UseRealTime();

/// Reads each of the numbers twice and writes as many: parts of a long row can be scanned at the
/// same time only after the sums of the parts before.
void scan_floor(benchmark::State& state) {
  const auto v = values(sixty_four_million, 11);
  std::vector<float> sums(v.size());
  for (auto _ : state) {
    read_once(v);
    on_all_parts(v.size(), [&](std::size_t first, std::size_t last) {
      for (std::size_t k = first; k < last; ++k) sums[k] = -v[k];
    });
    benchmark::DoNotOptimize(sums.data());
    benchmark::ClobberMemory();
  }
}
BENCHMARK(scan_floor)->Name("scan_64M_cpu/memory_floor")->UseRealTime();

/// Of two vectors of 32M numbers.
void dot_wye(benchmark::State& state) {
  const auto v = values(sixty_four_million, 11);
  const std::span<const float> x(v.data(), v.size() / 2), y(v.data() + v.size() / 2, v.size() / 2);
  std::vector<float> result(1);
  run(state, workloads::dot(x, y, result));
}
BENCHMARK(dot_wye)->Name("dot_2x32M_cpu/wye")->UseRealTime();
BENCHMARK(read_floor)->Name("dot_2x32M_cpu/memory_floor")->UseRealTime();

void norm_wye(benchmark::State& state) {
  const auto v = values(sixty_four_million, 11);
  std::vector<float> length(1);
  run(state, workloads::norm(workloads::Norm::two, v, length));
}
BENCHMARK(norm_wye)->Name("norm_64M_cpu/wye")->UseRealTime();
BENCHMARK(read_floor)->Name("norm_64M_cpu/memory_floor")->UseRealTime();

void scale_wye(benchmark::State& state) {
  auto v = values(ten_million, 3);
  run(state, workloads::scale(-1.0f, v));
}
BENCHMARK(scale_wye)->Name("scale_10M_cpu/wye")->UseRealTime();
BENCHMARK_CAPTURE(change_floor, scale, ten_million)->Name("scale_10M_cpu/memory_floor")->UseRealTime();

// --- sort

void sort_wye(benchmark::State& state) {
  const auto v = values(ten_million, 3);
  std::vector<float> sorted(v.size());
  run(state, workloads::sort(v, sorted));
}
BENCHMARK(sort_wye)->Name("sort_10M_cpu/wye")->UseRealTime();

/// Highway's sort on one thread. It is not stable, and works in place.
void sort_vqsort(benchmark::State& state) {
  const auto v = values(ten_million, 3);
  std::vector<float> sorted(v.size());
  hwy::Sorter sorter;
  for (auto _ : state) {
    state.PauseTiming();
    std::copy(v.begin(), v.end(), sorted.begin());
    state.ResumeTiming();
    sorter(sorted.data(), sorted.size(), hwy::SortAscending());
  }
}
BENCHMARK(sort_vqsort)->Name("sort_10M_cpu/vqsort_one_thread")->UseRealTime();

constexpr std::size_t sorted_rows = 4096, sorted_columns = 256;

void sort_rows_wye(benchmark::State& state) {
  const auto v = values(sorted_rows * sorted_columns, 3);
  std::vector<float> sorted(v.size());
  run(state, workloads::sort(v, sorted, {.columns = sorted_columns}));
}
BENCHMARK(sort_rows_wye)->Name("sort_4096_rows_cpu/wye")->UseRealTime();

/// One job for each row.
void sort_rows_by_jobs(benchmark::State& state) {
  const auto v = values(sorted_rows * sorted_columns, 3);
  std::vector<float> sorted(v.size());
  std::vector<wye::Job> jobs;
  for (std::size_t i = 0; i < v.size(); i += sorted_columns)
    jobs.push_back(workloads::sort(std::span(v).subspan(i, sorted_columns),
                                   std::span(sorted).subspan(i, sorted_columns)));
  for (auto _ : state)
    for (const wye::Job& job : jobs)
      if (auto done = runtime().run(job); !done) state.SkipWithError(done.error().sentence().c_str());
}
BENCHMARK(sort_rows_by_jobs)->Name("sort_4096_rows_cpu/4096_jobs")->UseRealTime();

void top_k_wye(benchmark::State& state) {
  const auto v = values(ten_million, 11);
  std::vector<float> largest(100);
  std::vector<std::uint32_t> places(100);
  run(state, workloads::top_k(100, v, largest, places));
}
BENCHMARK(top_k_wye)->Name("top_100_of_10M_cpu/wye")->UseRealTime();
BENCHMARK_CAPTURE(read_some, top_k, ten_million)->Name("top_100_of_10M_cpu/memory_floor")->UseRealTime();

// --- attention: 8 heads of 1024 queries and keys of 64 numbers, beside the three workloads that
// make the same by way of scores

constexpr workloads::AttentionShape heads{.heads = 8, .queries = 1024, .keys = 1024, .head_size = 64};
constexpr std::size_t numbers_of_heads = heads.heads * heads.queries * heads.head_size;

void attention_wye(benchmark::State& state) {
  const auto q = values(numbers_of_heads, 8), k = values(numbers_of_heads, 9),
             v = values(numbers_of_heads, 10);
  std::vector<float> out(numbers_of_heads);
  run(state, workloads::attention(q, k, v, out, heads));
}
BENCHMARK(attention_wye)->Name("attention_8x1024x64_cpu/wye")->UseRealTime();

void attention_by_scores(benchmark::State& state) {
  const auto q = values(numbers_of_heads, 8), k = values(numbers_of_heads, 9),
             v = values(numbers_of_heads, 10);
  std::vector<float> out(numbers_of_heads), scores(heads.heads * heads.queries * heads.keys);
  const wye::Job steps[] = {
      workloads::matmul(q, k, scores, {heads.queries, heads.keys, heads.head_size},
                        {.transposed_b = true, .batch = heads.heads}),
      workloads::attention_weights(scores, {.columns = heads.keys, .head_size = heads.head_size}),
      workloads::matmul(scores, v, out, {heads.queries, heads.head_size, heads.keys},
                        {.batch = heads.heads})};
  for (auto _ : state)
    for (const wye::Job& step : steps)
      if (auto done = runtime().run(step); !done) state.SkipWithError(done.error().sentence().c_str());
}
BENCHMARK(attention_by_scores)->Name("attention_8x1024x64_cpu/three_workloads")->UseRealTime();

// --- attention of one query of each of 32 heads to 4,096 keys, beside one read of the keys and values

constexpr workloads::AttentionShape one_query{.heads = 32, .queries = 1, .keys = 4096, .head_size = 128};
constexpr std::size_t numbers_of_keys = one_query.heads * one_query.keys * one_query.head_size;

void attention_of_one_query(benchmark::State& state) {
  const auto q = values(one_query.heads * one_query.head_size, 8), k = values(numbers_of_keys, 9),
             v = values(numbers_of_keys, 10);
  std::vector<float> out(q.size());
  run(state, workloads::attention(q, k, v, out, one_query));
}
BENCHMARK(attention_of_one_query)->Name("attention_32x1x4096x128_cpu/wye")->UseRealTime();
BENCHMARK_CAPTURE(read_some, attention_of_one_query, 2 * numbers_of_keys)
    ->Name("attention_32x1x4096x128_cpu/memory_floor")
    ->UseRealTime();

// --- attention of one new token of 8 sequences to 4,096 cached ones, beside one read of their keys
// and values

constexpr workloads::SequenceShape decoded{.heads = 9, .key_value_heads = 3, .head_size = 64};
constexpr std::size_t decoded_sequences = 8, decoded_tokens = 4096,
                      decoded_numbers = decoded_sequences * decoded_tokens * 3 * 64;

template <class T>
std::vector<T> values_of(std::size_t n, unsigned seed) {
  std::vector<T> made;
  made.reserve(n);
  for (const float v : values(n, seed)) made.push_back(T(v));
  return made;
}

template <class T>
void cached_attention_wye(benchmark::State& state) {
  const auto q = values_of<T>(decoded_sequences * 9 * 64, 8), k = values_of<T>(decoded_sequences * 3 * 64, 9),
             v = values_of<T>(decoded_sequences * 3 * 64, 10);
  auto keys = values_of<T>(decoded_numbers, 11), cached_values = values_of<T>(decoded_numbers, 12);
  std::vector<std::uint32_t> offsets{0}, slots, cached;
  for (std::uint32_t s = 0; s < decoded_sequences; ++s) {
    offsets.push_back(s + 1);
    slots.push_back(s);
    cached.push_back(decoded_tokens - 1);
  }
  std::vector<T> out(q.size());
  run(state, workloads::cached_attention(q, k, v, offsets,
                                         {keys, cached_values, slots, cached, decoded_tokens}, out, decoded));
}
BENCHMARK_TEMPLATE(cached_attention_wye, float)->Name("cached_attention_8x4096_cpu/wye")->UseRealTime();
BENCHMARK_CAPTURE(read_some, cached_attention, 2 * decoded_numbers)
    ->Name("cached_attention_8x4096_cpu/memory_floor")
    ->UseRealTime();
BENCHMARK_TEMPLATE(cached_attention_wye, wye::half)
    ->Name("cached_attention_half_8x4096_cpu/wye")
    ->UseRealTime();
BENCHMARK_CAPTURE(read_some, cached_attention_half, decoded_numbers)
    ->Name("cached_attention_half_8x4096_cpu/memory_floor")
    ->UseRealTime();

// --- products of a sparse matrix and a vector, beside the loop of scipy's csr_matvec

struct Sparse {
  std::vector<std::uint32_t> offsets, columns;
  std::vector<float> values, x;
};

/// A matrix of 1,000,000 rows and columns. The lengths of rows differ, ten elements on average.
Sparse sparse() {
  constexpr std::uint32_t rows = 1'000'000;
  std::mt19937 random(8);
  Sparse a{.offsets = {0}, .columns = {}, .values = {}, .x = values(rows, 9)};
  a.offsets.reserve(rows + 1);
  for (std::uint32_t row = 0; row < rows; ++row)
    a.offsets.push_back(a.offsets.back() + static_cast<std::uint32_t>(random() % 21));
  a.columns.resize(a.offsets.back());
  for (std::uint32_t& column : a.columns) column = static_cast<std::uint32_t>(random() % rows);
  a.values = values(a.columns.size(), 10);
  return a;
}

void csr_multiply_wye(benchmark::State& state) {
  const Sparse a = sparse();
  std::vector<float> y(a.x.size());
  run(state, workloads::csr_multiply(a.offsets, a.columns, a.values, a.x, y));
}
BENCHMARK(csr_multiply_wye)->Name("csr_multiply_10M_cpu/wye")->UseRealTime();

void multiply_by_row(std::span<const std::uint32_t> offsets, const std::uint32_t* columns,
                     const float* factors, const float* x, std::span<float> y) {
  for (std::size_t row = 0; row < y.size(); ++row) {
    float sum = 0;
    for (std::uint32_t i = offsets[row]; i < offsets[row + 1]; ++i) sum += factors[i] * x[columns[i]];
    y[row] = sum;
  }
}

void csr_multiply_one_thread(benchmark::State& state) {
  const Sparse a = sparse();
  std::vector<float> y(a.x.size());
  for (auto _ : state) {
    multiply_by_row(a.offsets, a.columns.data(), a.values.data(), a.x.data(), y);
    benchmark::DoNotOptimize(y.data());
    benchmark::ClobberMemory();
  }
}
BENCHMARK(csr_multiply_one_thread)->Name("csr_multiply_10M_cpu/one_thread_csr")->UseRealTime();

// --- PageRank: 20 iterations, beside as many products of the matrix and a vector as scipy makes
// them

constexpr std::uint32_t nodes = 100'000, links_in_all = 1'000'000;
constexpr std::uint32_t iterations = 20;

workloads::LinksTo graph() {
  std::mt19937 random(5);
  workloads::LinksTo links;
  links.offsets.assign(nodes + 1, 0);
  for (std::uint32_t i = 0; i < links_in_all; ++i) {
    ++links.offsets[random() % nodes + 1];
    links.sources.push_back(static_cast<std::uint32_t>(random() % nodes));
  }
  for (std::uint32_t node = 0; node < nodes; ++node) links.offsets[node + 1] += links.offsets[node];
  return links;
}

void pagerank_wye(benchmark::State& state) {
  const auto links = graph();
  std::vector<float> ranks(nodes);
  workloads::PageRankSummary summary;
  run(state, workloads::pagerank(links.offsets, links.sources, ranks, std::span(&summary, 1),
                                 {.tolerance = 0, .iterations = iterations}));
  state.SetItemsProcessed(state.iterations() * links_in_all * iterations);
}
BENCHMARK(pagerank_wye)->Name("pagerank_1M_links_cpu/wye")->UseRealTime();

void pagerank_csr(benchmark::State& state) {
  const auto links = graph();
  const std::vector<float> weights = values(links_in_all, 6), x = values(nodes, 7);
  std::vector<float> y(nodes);
  for (auto _ : state)
    for (std::uint32_t k = 0; k < iterations; ++k) {
      multiply_by_row(links.offsets, links.sources.data(), weights.data(), x.data(), y);
      benchmark::DoNotOptimize(y.data());
      benchmark::ClobberMemory();
    }
  state.SetItemsProcessed(state.iterations() * links_in_all * iterations);
}
BENCHMARK(pagerank_csr)->Name("pagerank_1M_links_cpu/one_thread_csr")->UseRealTime();

// --- layouts of a network: 20 iterations, beside as many in float64 by one thread

constexpr std::uint32_t layout_nodes = 1000, layout_links = 3000;

std::vector<std::uint32_t> ends_of_links() {
  std::mt19937 random(11);
  std::vector<std::uint32_t> ends(2 * layout_links);
  for (std::uint32_t& end : ends) end = static_cast<std::uint32_t>(random() % layout_nodes);
  return ends;
}

void force_layout_wye(benchmark::State& state) {
  const auto links = workloads::network_links(layout_nodes, ends_of_links());
  auto positions = workloads::force_layout_start(layout_nodes);
  std::vector<float> layout(workloads::force_layout_state_size(layout_nodes));
  run(state, workloads::force_layout(links.offsets, links.targets, positions, layout,
                                     {.gravity = 0.06f, .strong_gravity = true, .iterations = iterations}));
}
BENCHMARK(force_layout_wye)->Name("force_layout_1000_cpu/wye")->UseRealTime();

void force_layout_one_thread(benchmark::State& state) {
  const auto ends = ends_of_links();
  const auto start = workloads::force_layout_start(layout_nodes);
  std::vector<wye_bench::Point> points;
  for (std::size_t i = 0; i < layout_nodes; ++i)
    points.push_back({double{start[2 * i]}, double{start[2 * i + 1]}});
  for (auto _ : state) {
    wye_bench::force_layout(points, ends, iterations);
    benchmark::DoNotOptimize(points.data());
  }
}
BENCHMARK(force_layout_one_thread)->Name("force_layout_1000_cpu/one_thread_double")->UseRealTime();

// --- trajectories of the numbers 1 to 10^8, in ten parts that write the same memory

constexpr std::uint64_t collatz_part = 10'000'000, collatz_parts = 10;

void collatz_wye(benchmark::State& state) {
  std::vector<workloads::CollatzResult> results(collatz_part);
  for (auto _ : state)
    for (std::uint64_t i = 0; i < collatz_parts; ++i)
      if (auto done = runtime().run(workloads::collatz({i * collatz_part + 1, 0}, results)); !done)
        state.SkipWithError(done.error().sentence().c_str());
}
BENCHMARK(collatz_wye)->Name("collatz_100M_cpu/wye")->UseRealTime()->Iterations(1);

/// One step after the other in 64 bits, which hold these trajectories, on all processors.
void collatz_plain_loop(benchmark::State& state) {
  std::vector<workloads::CollatzResult> results(collatz_part);
  for (auto _ : state)
    for (std::uint64_t i = 0; i < collatz_parts; ++i)
      on_all_parts(collatz_part, [&](std::size_t first, std::size_t last) {
        for (std::size_t k = first; k < last; ++k) {
          std::uint64_t n = i * collatz_part + 1 + k, peak = n;
          std::uint32_t steps = 0;
          for (; n != 1; ++steps) {
            n = n % 2 == 0 ? n / 2 : 3 * n + 1;
            peak = std::max(peak, n);
          }
          results[k] = {.peak = {peak, 0}, .steps = steps};
        }
      });
}
BENCHMARK(collatz_plain_loop)->Name("collatz_100M_cpu/plain_loop")->UseRealTime()->Iterations(1);

}  // namespace
