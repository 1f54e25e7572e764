// CUDA: how near wye's kernels come to what the card can. Each gives right results for random
// numbers before it is timed. On a machine without a card each is skipped; tests/gpu/run.sh runs
// them where there is one.
#include <wye/workloads/add_rows.hpp>
#include <wye/workloads/attention.hpp>
#include <wye/workloads/attention_weights.hpp>
#include <wye/workloads/axpy.hpp>
#include <wye/workloads/cached_attention.hpp>
#include <wye/workloads/matmul.hpp>
#include <wye/workloads/normalize.hpp>
#include <wye/workloads/segment_mean.hpp>
#include <wye/workloads/softmax.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "cuda.hpp"
#include "lane.hpp"
#include "peers/raw_cublaslt.hpp"

namespace {

using wye::Bytes;
using wye_bench::copy_raw;
using wye_bench::keep_driver;
using wye_bench::large;
using wye_bench::random_values;
using wye_bench::raw;
using wye_bench::sized;

// --- Workloads on arrays that stay on the card

std::optional<wye::Runtime> with_card(benchmark::State& state) {
  keep_driver();
  auto options = wye::RuntimeOptions::from_environment();
  if (!options) return state.SkipWithError(options.error().sentence().c_str()), std::nullopt;
  options->pool.backends = {"cuda"};
  options->pool.lane_memory = Bytes{4ull << 30};
  auto runtime = wye::Runtime::open(*options);
  if (!runtime) return state.SkipWithError("no card"), std::nullopt;
  return *runtime;
}

/// Whether numbers here and there are the reference's, to `bound` of the largest; the reference
/// knows the first ones.
template <class T>
bool is_near(const wye::Array<T>& array, const std::vector<double>& expected, double bound) {
  const auto now = array.read();
  if (!now) return false;
  double largest = 0, error = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    const auto number = static_cast<float>((*now)[i]);
    error = std::max(error, std::abs(expected[i] - static_cast<double>(number)));
    if (std::isnan(number)) return false;
  }
  return error <= bound * largest;
}

/// Labels a row with the variant that its job selected, and counts the least time of each.
void show_choices(benchmark::State& state, const std::vector<wye::VariantChoice>& choices) {
  for (const wye::VariantChoice& choice : choices) {
    for (const wye::Variant& variant : choice.variants) {
      if (variant.selected) state.SetLabel(variant.kernel);
      if (variant.least_time)
        state.counters["ms_" + variant.kernel] =
            std::chrono::duration<double, std::milli>(*variant.least_time).count();
    }
  }
}

/// Runs a job once, looks at `result`, and runs it over and over. Where there are kernels to choose
/// from, that is over by then.
template <class T>
void run_job(benchmark::State& state, wye::Runtime& runtime, const wye::Job& job, const wye::Array<T>& result,
             const std::vector<double>& expected, double bound) {
  std::vector<wye::VariantChoice> choices;
  for (int i = 0; i == 0 || (i < 10 && !choices.empty()); ++i) {
    const auto done = runtime.run(job);
    if (!done) return state.SkipWithError(done.error().sentence().c_str());
    if (i == 0 && !is_near(result, expected, bound))
      return state.SkipWithError("the result is something else");
    choices = done->variants();
  }
  show_choices(state, choices);
  for (auto _ : state)
    if (!runtime.run(job)) state.SkipWithError("failed");
}

void axpy_wye(benchmark::State& state) {
  auto runtime = with_card(state);
  if (!runtime) return;
  const auto x = random_values<float>(large() / sizeof(float), 4), y = random_values<float>(x.size(), 5);
  std::vector<double> expected(std::min<std::size_t>(x.size(), 1u << 22));
  for (std::size_t i = 0; i < expected.size(); ++i)
    expected[i] = 0.25 * static_cast<double>(x[i]) + static_cast<double>(y[i]);
  auto on_x = runtime->array(x), on_y = runtime->array(y);
  run_job(state, *runtime, wye::workloads::axpy(0.25f, on_x, on_y), on_y, expected, 1e-6);
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(3 * large()));
}
BENCHMARK(axpy_wye)->Name("cuda_axpy_256MiB/wye")->UseRealTime()->Unit(benchmark::kMicrosecond);
// A copy that moves as many bytes as two vectors that are read and one that is written.
BENCHMARK_CAPTURE(copy_raw, three_halves, 3)
    ->Name("cuda_axpy_256MiB/device_copy")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

constexpr std::uint64_t columns = 1024;

/// A job on rows in place: what it must move is once read and once written.
template <class Make, class Expected>
void rows_wye(benchmark::State& state, Make job, Expected reference) {
  auto runtime = with_card(state);
  if (!runtime) return;
  const auto matrix = random_values<float>(large() / sizeof(float), 6);
  const auto first = std::span(matrix).first(std::min<std::size_t>(matrix.size(), 64 * columns));
  auto array = runtime->array(matrix);
  run_job(state, *runtime, job(array), array, reference(first), 1e-4);
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(2 * large()));
}

void normalize_wye(benchmark::State& state) {
  rows_wye(
      state, [](auto& array) { return wye::workloads::normalize(array, columns); },
      [](auto matrix) { return wye::workloads::reference::normalize(matrix, columns); });
}
BENCHMARK(normalize_wye)->Name("cuda_normalize_256MiB/wye")->UseRealTime()->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(copy_raw, normalize, 2)
    ->Name("cuda_normalize_256MiB/device_copy")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

void softmax_wye(benchmark::State& state) {
  rows_wye(
      state, [](auto& array) { return wye::workloads::softmax(array, columns); },
      [](auto matrix) { return wye::workloads::reference::softmax(matrix, columns); });
}
BENCHMARK(softmax_wye)->Name("cuda_softmax_256MiB/wye")->UseRealTime()->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(copy_raw, softmax, 2)
    ->Name("cuda_softmax_256MiB/device_copy")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

void add_row_wye(benchmark::State& state) {
  auto runtime = with_card(state);
  if (!runtime) return;
  const auto matrix = random_values<float>(large() / sizeof(float), 6), zeros = std::vector<float>(columns);
  std::vector<double> expected(matrix.begin(), matrix.begin() + 64 * columns);
  auto x = runtime->array(matrix), row = runtime->array(zeros);
  run_job(state, *runtime, wye::workloads::add_rows(x, row), x, expected, 1e-6);
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(2 * large()));
}
BENCHMARK(add_row_wye)->Name("cuda_add_row_256MiB/wye")->UseRealTime()->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(copy_raw, add_row, 2)
    ->Name("cuda_add_row_256MiB/device_copy")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

/// Segments of `length` rows; the last one may have fewer.
void segment_mean_wye(benchmark::State& state, std::uint32_t length) {
  auto runtime = with_card(state);
  if (!runtime) return;
  const auto matrix = random_values<float>(large() / sizeof(float), 6);
  const auto rows = static_cast<std::uint32_t>(matrix.size() / columns);
  std::vector<std::uint32_t> offsets{0};
  while (offsets.back() < rows) offsets.push_back(std::min(offsets.back() + length, rows));
  const auto expected = wye::workloads::reference::segment_mean(matrix, std::span(offsets).first(2), columns);
  auto x = runtime->array(matrix);
  auto result = runtime->array(std::vector<float>((offsets.size() - 1) * columns));
  run_job(state, *runtime, wye::workloads::segment_mean(x, offsets, result), result, expected, 1e-4);
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(large()));
}
// What it must move is once read. The copy reads half of that and writes as much.
BENCHMARK_CAPTURE(segment_mean_wye, sequences, 128)
    ->Name("cuda_segment_mean_256MiB/wye")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(copy_raw, segments, 1)
    ->Name("cuda_segment_mean_256MiB/device_copy")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(segment_mean_wye, long_segments, 16384)
    ->Name("cuda_segment_mean_long_256MiB/wye")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(copy_raw, long_segments, 1)
    ->Name("cuda_segment_mean_long_256MiB/device_copy")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

void attention_wye(benchmark::State& state) {
  const wye::workloads::AttentionWeightsOptions options{.columns = columns, .head_size = 64};
  rows_wye(
      state, [&](auto& array) { return wye::workloads::attention_weights(array, options); },
      [&](auto matrix) { return wye::workloads::reference::attention_weights(matrix, options); });
}
BENCHMARK(attention_wye)
    ->Name("cuda_attention_weights_256MiB/wye")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(copy_raw, attention, 2)
    ->Name("cuda_attention_weights_256MiB/device_copy")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

// --- Products: cuBLAS through wye, and wye's own kernel, where wye finds no cuBLAS
// (tests/gpu/run.sh hides it)

std::size_t side() { return sized(4096, 96); }

/// The first row of the product.
std::vector<double> first_row(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<double> row(side(), 0.0);
  for (std::size_t k = 0; k < side(); ++k)
    for (std::size_t j = 0; j < side(); ++j)
      row[j] += static_cast<double>(a[k]) * static_cast<double>(b[k * side() + j]);
  return row;
}

void matmul_wye(benchmark::State& state, bool by_cublas) {
  const std::string by = wye::workloads::matmul_on_cuda();
  if ((by == "cuBLAS") != by_cublas)
    return state.SkipWithError(by_cublas ? by.c_str() : "wye takes cuBLAS, which is there");
  auto runtime = with_card(state);
  if (!runtime) return;
  const auto a = random_values<float>(side() * side(), 7), b = random_values<float>(a.size(), 8);
  auto on_a = runtime->array(a), on_b = runtime->array(b);
  auto c = runtime->array<float>(a.size());
  run_job(state, *runtime, wye::workloads::matmul(on_a, on_b, c), c, first_row(a, b), 1e-4);
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(2 * side() * side() * side()));
}

void matmul_cublas(benchmark::State& state) {
  auto cuda = raw(state);
  if (!cuda) return;
  if (std::string why; !cuda->open_cublas(why)) return state.SkipWithError(why.c_str());
  const std::size_t bytes = side() * side() * sizeof(float);
  const auto x = random_values<float>(side() * side(), 7), y = random_values<float>(x.size(), 8);
  std::vector<float> row(side());
  const std::uint64_t a = cuda->memory(bytes), b = cuda->memory(bytes), c = cuda->memory(bytes);
  if (a == 0 || b == 0 || c == 0) return state.SkipWithError("no room");
  const auto multiply = [&] { return cuda->multiply(a, b, c, static_cast<int>(side())); };
  if (!cuda->write(a, x.data(), bytes) || !cuda->write(b, y.data(), bytes) || !multiply() ||
      !cuda->read(row.data(), c, side() * sizeof(float)))
    return state.SkipWithError("failed");
  const auto expected = first_row(x, y);
  for (std::size_t j = 0; j < side(); ++j)
    if (!(std::abs(static_cast<double>(row[j]) - expected[j]) <= 1e-4 * expected[j]))
      return state.SkipWithError("the product is something else");
  for (auto _ : state)
    if (!multiply() || !cuda->wait()) state.SkipWithError("failed");
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(2 * side() * side() * side()));
}

BENCHMARK_CAPTURE(matmul_wye, cublas, true)
    ->Name("cuda_matmul_4096/wye")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(matmul_cublas)->Name("cuda_matmul_4096/cublas")->UseRealTime()->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(matmul_wye, own, false)
    ->Name("cuda_matmul_own_4096/wye")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(matmul_cublas)->Name("cuda_matmul_own_4096/cublas")->UseRealTime()->Unit(benchmark::kMicrosecond);

template <class T>
std::vector<T> narrowed(const std::vector<float>& numbers) {
  std::vector<T> made;
  made.reserve(numbers.size());
  for (const float number : numbers) made.emplace_back(number);
  return made;
}

/// Products of half by wye's own kernels, of which there are two.
void matmul_half_wye(benchmark::State& state, std::size_t rows) {
  if (wye::workloads::matmul_on_cuda() == "cuBLAS")
    return state.SkipWithError("wye takes cuBLAS, which is there");
  auto runtime = with_card(state);
  if (!runtime) return;
  const wye::workloads::MatmulShape shape{std::min(rows, side()), side(), side()};
  const auto a = narrowed<wye::half>(random_values<float>(shape.rows * shape.inner, 7)),
             b = narrowed<wye::half>(random_values<float>(shape.inner * shape.columns, 8));
  const auto widened = [](const std::vector<wye::half>& numbers) {
    return std::vector<float>(numbers.begin(), numbers.end());
  };
  auto on_a = runtime->array(a), on_b = runtime->array(b);
  auto c = runtime->array<float>(shape.rows * shape.columns);
  run_job(state, *runtime, wye::workloads::matmul(on_a, on_b, c, shape), c, first_row(widened(a), widened(b)),
          1e-3);
  state.SetItemsProcessed(state.iterations() *
                          static_cast<std::int64_t>(2 * shape.rows * shape.columns * shape.inner));
}
BENCHMARK_CAPTURE(matmul_half_wye, square, 4096)
    ->Name("cuda_matmul_own_half_4096/wye")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(matmul_cublas)
    ->Name("cuda_matmul_own_half_4096/cublas_in_float32")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
// As many rows as a step of decoding has.
BENCHMARK_CAPTURE(matmul_half_wye, few_rows, 16)
    ->Name("cuda_matmul_own_half_16x4096/wye")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

/// Products of 16 bits into 16 bits, with or without a bias and ReLU.
template <class T>
struct Narrow {
  std::vector<T> a = narrowed<T>(random_values<float>(side() * side(), 7));
  std::vector<T> b = narrowed<T>(random_values<float>(side() * side(), 8));
  std::vector<T> bias = narrowed<T>(random_values<float>(side(), 9));

  std::vector<double> expected(bool ends) const {
    auto row = first_row(std::vector<float>(a.begin(), a.end()), std::vector<float>(b.begin(), b.end()));
    for (std::size_t j = 0; ends && j < row.size(); ++j)
      row[j] = std::max(row[j] + static_cast<double>(static_cast<float>(bias[j])), 0.0);
    return row;
  }
};

template <class T>
void matmul_narrow_wye(benchmark::State& state, bool ends) {
  auto runtime = with_card(state);
  if (!runtime) return;
  const Narrow<T> of;
  auto a = runtime->array(of.a), b = runtime->array(of.b), bias = runtime->array(of.bias),
       c = runtime->array<T>(of.a.size());
  wye::workloads::MatmulEpilogue<T> epilogue;
  if (ends) epilogue = {.bias = bias, .activation = wye::workloads::Activation::relu};
  run_job(state, *runtime, wye::workloads::matmul(a, b, c, {side(), side(), side()}, {}, epilogue), c,
          of.expected(ends), 1e-2);
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(2 * side() * side() * side()));
}

template <class T>
void matmul_cublaslt(benchmark::State& state, bool ends) {
  auto cuda = raw(state);
  if (!cuda) return;
  const Narrow<T> of;
  const std::size_t bytes = side() * side() * sizeof(T);
  const std::uint64_t a = cuda->memory(bytes), b = cuda->memory(bytes), c = cuda->memory(bytes),
                      bias = cuda->memory(side() * sizeof(T)),
                      workspace = cuda->memory(wye_bench::RawCublasLt::workspace_bytes);
  if (a == 0 || b == 0 || c == 0 || bias == 0 || workspace == 0) return state.SkipWithError("no room");
  wye_bench::RawCublasLt lt;
  if (const std::string why = lt.prepare(cuda->stream(), static_cast<int>(side()),
                                         std::is_same_v<T, wye::bfloat16>, ends ? bias : 0, workspace);
      !why.empty())
    return state.SkipWithError(why.c_str());
  std::vector<T> row(side());
  if (!cuda->write(a, of.a.data(), bytes) || !cuda->write(b, of.b.data(), bytes) ||
      !cuda->write(bias, of.bias.data(), side() * sizeof(T)) || !lt.multiply(a, b, c) ||
      !cuda->read(row.data(), c, side() * sizeof(T)))
    return state.SkipWithError("failed");
  const auto expected = of.expected(ends);
  for (std::size_t j = 0; j < side(); ++j)
    if (!(std::abs(static_cast<double>(static_cast<float>(row[j])) - expected[j]) <= 1e-2 * expected[j]))
      return state.SkipWithError("the product is something else");
  for (auto _ : state)
    if (!lt.multiply(a, b, c) || !cuda->wait()) state.SkipWithError("failed");
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(2 * side() * side() * side()));
}

void narrow_by_wye(benchmark::State& state, bool is_bfloat16, bool ends) {
  (is_bfloat16 ? matmul_narrow_wye<wye::bfloat16> : matmul_narrow_wye<wye::half>)(state, ends);
}
void narrow_by_cublaslt(benchmark::State& state, bool is_bfloat16, bool ends) {
  (is_bfloat16 ? matmul_cublaslt<wye::bfloat16> : matmul_cublaslt<wye::half>)(state, ends);
}
BENCHMARK_CAPTURE(narrow_by_wye, half, false, false)
    ->Name("cuda_matmul_half_4096/wye")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(narrow_by_cublaslt, half, false, false)
    ->Name("cuda_matmul_half_4096/cublaslt")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(narrow_by_wye, bfloat16, true, false)
    ->Name("cuda_matmul_bfloat16_4096/wye")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(narrow_by_cublaslt, bfloat16, true, false)
    ->Name("cuda_matmul_bfloat16_4096/cublaslt")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(narrow_by_wye, half_relu, false, true)
    ->Name("cuda_matmul_half_relu_4096/wye")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(narrow_by_cublaslt, half_relu, false, true)
    ->Name("cuda_matmul_half_relu_4096/cublaslt")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

// --- Attention in one pass, beside cuBLAS's products with the weights of a matrix of scores in
// between

wye::workloads::AttentionShape heads() {
  return {.heads = sized(16, 2), .queries = sized(4096, 70), .keys = sized(4096, 70), .head_size = 64};
}
std::size_t numbers_of_heads() { return heads().heads * heads().queries * heads().head_size; }

/// Queries, keys and values: the first from 1/16 to 1/8, so that no key has all the weight.
std::vector<float> queries() {
  auto q = random_values<float>(numbers_of_heads(), 9);
  for (float& number : q) number /= 16;
  return q;
}
std::vector<float> keys() { return random_values<float>(numbers_of_heads(), 10); }
std::vector<float> values_of_keys() { return random_values<float>(numbers_of_heads(), 11); }

/// Of the first query alone.
std::vector<double> first_query() {
  const auto shape = heads();
  const auto q = queries(), k = keys(), v = values_of_keys();
  const auto one = [&](const std::vector<float>& rows, std::size_t count) {
    return std::span(rows).first(count * shape.head_size);
  };
  return wye::workloads::reference::attention(one(q, 1), one(k, shape.keys), one(v, shape.keys),
                                              {1, 1, shape.keys, shape.head_size});
}

/// Of two products. Causal attention has about half of them.
void count_operations(benchmark::State& state, bool causal = false) {
  const auto shape = heads();
  const std::uint64_t operations = 4 * shape.heads * shape.queries * shape.keys * shape.head_size;
  state.SetItemsProcessed(state.iterations() *
                          static_cast<std::int64_t>(causal ? operations / 2 : operations));
}

void fused_attention(benchmark::State& state) {
  auto runtime = with_card(state);
  if (!runtime) return;
  auto q = runtime->array(queries()), k = runtime->array(keys()), v = runtime->array(values_of_keys());
  auto out = runtime->array<float>(numbers_of_heads());
  run_job(state, *runtime, wye::workloads::attention(q, k, v, out, heads()), out, first_query(), 1e-4);
  count_operations(state);
}

/// Of 16 bits. The counters have the least time of each variant: wye's own kernels and, if it is
/// installed, cuDNN.
template <class T>
void fused_attention_of(benchmark::State& state, bool causal, bool own) {
  auto runtime = with_card(state);
  if (!runtime) return;
  const auto narrow = [&](const std::vector<float>& numbers) { return runtime->array(narrowed<T>(numbers)); };
  auto q = narrow(queries()), k = narrow(keys()), v = narrow(values_of_keys());
  auto out = runtime->array<T>(numbers_of_heads());
  const auto job = wye::workloads::attention(q, k, v, out, heads(), {.causal = causal});
  auto expected = first_query();
  if (causal) {  // The first query sees the first key only.
    const auto values = values_of_keys();
    expected.assign(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(heads().head_size));
  }
  run_job(state, *runtime, job, out, expected, std::is_same_v<T, wye::half> ? 4e-3 : 3e-2);
  for (const auto& [name, value] : state.counters)
    if (own && name.find("cudnn") != name.npos) return state.SkipWithError("wye takes cuDNN, which is there");
  count_operations(state, causal);
}
void fused_attention_of_half(benchmark::State& state) { fused_attention_of<wye::half>(state, false, false); }
void causal_attention_of_half(benchmark::State& state) { fused_attention_of<wye::half>(state, true, false); }
void fused_attention_of_bfloat16(benchmark::State& state) {
  fused_attention_of<wye::bfloat16>(state, false, false);
}
/// Where wye finds no cuDNN (tests/gpu/run.sh hides it).
void own_attention_of_half(benchmark::State& state) { fused_attention_of<wye::half>(state, false, true); }

/// In float32, or in TF32: cuBLAS has no softmax for what it multiplies in half.
void attention_by_cublas(benchmark::State& state, bool tf32) {
  if (const std::string by = wye::workloads::matmul_on_cuda(); by != "cuBLAS")
    return state.SkipWithError(by.c_str());
  auto runtime = with_card(state);
  if (!runtime) return;
  const auto shape = heads();
  auto q = runtime->array(queries()), k = runtime->array(keys()), v = runtime->array(values_of_keys());
  auto scores = runtime->array<float>(shape.heads * shape.queries * shape.keys);
  auto out = runtime->array<float>(numbers_of_heads());
  const wye::Job steps[] = {
      wye::workloads::matmul(q, k, scores, {shape.queries, shape.keys, shape.head_size},
                             {.transposed_b = true, .tf32 = tf32, .batch = shape.heads}),
      wye::workloads::attention_weights(scores, {.columns = shape.keys, .head_size = shape.head_size}),
      wye::workloads::matmul(scores, v, out, {shape.queries, shape.head_size, shape.keys},
                             {.tf32 = tf32, .batch = shape.heads})};
  const auto once = [&] {
    return std::all_of(std::begin(steps), std::end(steps),
                       [&](const wye::Job& step) { return runtime->run(step).has_value(); });
  };
  if (!once()) return state.SkipWithError("failed");
  if (!is_near(out, first_query(), tf32 ? 4e-3 : 1e-4))
    return state.SkipWithError("the result is something else");
  for (auto _ : state)
    if (!once()) state.SkipWithError("failed");
  count_operations(state);
}

/// One new token of 8 sequences, whose keys and values in the cache are 256 MiB.
void cached_attention_of_half(benchmark::State& state) {
  auto runtime = with_card(state);
  if (!runtime) return;
  constexpr std::size_t sequences = 8, key_columns = 8 * 128, query_columns = 32 * 128;
  const std::size_t tokens = large() / (2 * sequences * key_columns * sizeof(wye::half)),
                    numbers = sequences * tokens * key_columns;
  const auto values = [](std::size_t n, unsigned seed) {
    return narrowed<wye::half>(random_values<float>(n, seed));
  };
  const auto q = values(sequences * query_columns, 9), k = values(sequences * key_columns, 10),
             v = values(sequences * key_columns, 11), keys = values(numbers, 12),
             values_of_keys = values(numbers, 13);
  std::vector<std::uint32_t> offsets, slots, cached(sequences, static_cast<std::uint32_t>(tokens - 1));
  for (std::uint32_t s = 0; s <= sequences; ++s) offsets.push_back(s);
  for (std::uint32_t s = 0; s < sequences; ++s) slots.push_back(s);
  const wye::workloads::SequenceShape shape{.heads = 32, .key_value_heads = 8, .head_size = 128};
  const auto first = [](const auto& all, std::size_t n) { return std::span(all).first(n); };
  const std::vector<double> expected = wye::workloads::reference::cached_attention(
      first(q, query_columns), first(k, key_columns), first(v, key_columns), first(offsets, 2),
      {first(keys, tokens * key_columns), first(values_of_keys, tokens * key_columns), first(slots, 1),
       first(cached, 1), tokens},
      shape);
  auto on_q = runtime->array(q), on_k = runtime->array(k), on_v = runtime->array(v),
       key_cache = runtime->array(keys), value_cache = runtime->array(values_of_keys),
       out = runtime->array<wye::half>(q.size());
  run_job(state, *runtime,
          wye::workloads::cached_attention(on_q, on_k, on_v, offsets,
                                           {key_cache, value_cache, slots, cached, tokens}, out, shape),
          out, expected, 4e-3);
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(large()));
}
BENCHMARK(cached_attention_of_half)
    ->Name("cuda_cached_attention_half_8x8192x128/wye")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
// A copy that moves as many bytes as are read.
BENCHMARK_CAPTURE(copy_raw, one_half, 1)
    ->Name("cuda_cached_attention_half_8x8192x128/device_copy")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

BENCHMARK(fused_attention)
    ->Name("cuda_attention_16x4096x64/wye")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(attention_by_cublas, float32, false)
    ->Name("cuda_attention_16x4096x64/cublas_and_softmax")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(fused_attention_of_half)
    ->Name("cuda_attention_half_16x4096x64/wye")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(attention_by_cublas, tf32, true)
    ->Name("cuda_attention_half_16x4096x64/cublas_in_tf32")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

BENCHMARK(causal_attention_of_half)
    ->Name("cuda_attention_half_causal_16x4096x64/wye")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(fused_attention_of_bfloat16)
    ->Name("cuda_attention_bfloat16_16x4096x64/wye")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(own_attention_of_half)
    ->Name("cuda_attention_own_half_16x4096x64/wye")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
