// The steps of the main job (examples/document_network) as jobs, and the same kernels called by
// hand on a lease of the same device. The kernels are plain ones, since those of the workloads can
// be called through jobs only.
#include <benchmark/benchmark.h>
#include <wye/wye.hpp>

#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lane.hpp"

namespace {

using wye::Read;
using wye::ReadWrite;
using wye::Write;
using Floats = std::vector<float>;

std::string glsl(std::string buffers, const char* parameters, const char* body) {
  std::string text = "#version 450\nlayout(local_size_x = 64) in;\n";
  std::size_t binding = 0;
  for (std::size_t at = 0; at < buffers.size(); ++at)
    text += "layout(set = 0, binding = " + std::to_string(binding++) + ") buffer B" + buffers[at] +
            " { float " + buffers[at] + "[]; };\n";
  return text + "layout(push_constant) uniform P { " + parameters + " };\nvoid main() {\n" +
         "  const uint i = gl_GlobalInvocationID.x;\n" + body + "}\n";
}

/// The rows of `matrix` have length 1.
const auto& normalize() {
  static const auto kernel =
      wye::Kernel<ReadWrite<float>, std::uint32_t>::make(
          {.name = "normalize",
           .sources = {wye::Glsl{.text = glsl("m", "uint columns;", R"(
  if (i * columns >= m.length()) return;
  float sum = 0;
  for (uint c = 0; c < columns; ++c) sum += m[i * columns + c] * m[i * columns + c];
  for (uint c = 0; c < columns; ++c) m[i * columns + c] *= inversesqrt(sum);
)")},
                       wye::host([](wye::Range range, std::span<float> m, std::uint32_t columns) {
                         for (const std::uint64_t row : range) {
                           float* const values = m.data() + row * columns;
                           float sum = 0;
                           for (std::uint32_t c = 0; c < columns; ++c) sum += values[c] * values[c];
                           for (std::uint32_t c = 0; c < columns; ++c) values[c] /= std::sqrt(sum);
                         }
                       })}})
          .value();
  return kernel;
}

/// Sets s[a, b] to the product of rows a and b.
const auto& similarity() {
  static const auto kernel =
      wye::Kernel<Read<float>, Write<float>, std::uint32_t, std::uint32_t>::make(
          {.name = "similarity",
           .sources = {wye::Glsl{.text = glsl("ms", "uint rows; uint columns;", R"(
  if (i >= s.length()) return;
  const uint a = i / rows * columns, b = i % rows * columns;
  float sum = 0;
  for (uint c = 0; c < columns; ++c) sum += m[a + c] * m[b + c];
  s[i] = sum;
)")},
                       wye::host([](wye::Range range, std::span<const float> m, std::span<float> s,
                                    std::uint32_t rows, std::uint32_t columns) {
                         for (const std::uint64_t i : range) {
                           const float* const a = m.data() + i / rows * columns;
                           const float* const b = m.data() + i % rows * columns;
                           float sum = 0;
                           for (std::uint32_t c = 0; c < columns; ++c) sum += a[c] * b[c];
                           s[i] = sum;
                         }
                       })}})
          .value();
  return kernel;
}

/// Replaces each row by its softmax.
const auto& attention() {
  static const auto kernel =
      wye::Kernel<ReadWrite<float>, std::uint32_t>::make(
          {.name = "attention",
           .sources = {wye::Glsl{.text = glsl("s", "uint rows;", R"(
  if (i >= rows) return;
  float sum = 0;
  for (uint c = 0; c < rows; ++c) sum += s[i * rows + c] = exp(10.0 * s[i * rows + c]);
  for (uint c = 0; c < rows; ++c) s[i * rows + c] /= sum;
)")},
                       wye::host([](wye::Range range, std::span<float> s, std::uint32_t rows) {
                         for (const std::uint64_t row : range) {
                           float* const values = s.data() + row * rows;
                           float sum = 0;
                           for (std::uint32_t c = 0; c < rows; ++c)
                             sum += values[c] = std::exp(10.0f * values[c]);
                           for (std::uint32_t c = 0; c < rows; ++c) values[c] /= sum;
                         }
                       })}})
          .value();
  return kernel;
}

/// One iteration of PageRank, from x to y.
const auto& rank() {
  static const auto kernel =
      wye::Kernel<Read<float>, Read<float>, Write<float>, std::uint32_t>::make(
          {.name = "rank",
           .sources = {wye::Glsl{.text = glsl("wxy", "uint rows;", R"(
  if (i >= rows) return;
  float sum = 0;
  for (uint j = 0; j < rows; ++j) sum += w[j * rows + i] * x[j];
  y[i] = 0.15 / float(rows) + 0.85 * sum;
)")},
                       wye::host([](wye::Range range, std::span<const float> w, std::span<const float> x,
                                    std::span<float> y, std::uint32_t rows) {
                         for (const std::uint64_t i : range) {
                           float sum = 0;
                           for (std::uint32_t j = 0; j < rows; ++j) sum += w[j * rows + i] * x[j];
                           y[i] = 0.15f / static_cast<float>(rows) + 0.85f * sum;
                         }
                       })}})
          .value();
  return kernel;
}
constexpr int pairs_of_iterations = 10;

/// Reduces ranks by age.
const auto& date() {
  static const auto kernel =
      wye::Kernel<ReadWrite<float>, float>::make(
          {.name = "date",
           .sources = {wye::Glsl{.text = glsl("x", "float decay;", R"(
  if (i < x.length()) x[i] *= exp(-decay * float(i) / float(x.length()));
)")},
                       wye::host([](wye::Range range, std::span<float> x, float decay) {
                         for (const std::uint64_t i : range)
                           x[i] *= std::exp(-decay * static_cast<float>(i) / static_cast<float>(x.size()));
                       })}})
          .value();
  return kernel;
}

/// The documents, and what is found about them.
struct Data {
  std::uint32_t rows = static_cast<std::uint32_t>(wye_bench::sized(256, 32));
  std::uint32_t columns = rows;
  Floats given = wye_bench::random_values<float>(std::size_t{rows} * columns);
  Floats matrix = given, scores = Floats(std::size_t{rows} * rows);
  Floats ranks = Floats(rows), other_ranks = Floats(rows);

  void reset() {
    matrix = given;
    ranks.assign(rows, 1 / static_cast<float>(rows));
  }
};

/// Runs the steps through `runtime`, on memory of the host, as the main job does.
bool run_jobs(wye::Runtime& runtime, Data& d) {
  const auto run = [&](wye::Job job) { return runtime.run(std::move(job)).has_value(); };
  d.reset();
  std::vector<wye::Call> ranks;
  for (int i = 0; i < pairs_of_iterations; ++i) {
    if (i != 0) ranks.push_back(rank()(d.scores, d.ranks, d.other_ranks, d.rows).over({d.rows}));
    ranks.push_back(rank()(d.scores, d.other_ranks, d.ranks, d.rows).over({d.rows}));
  }
  return run(normalize()(d.matrix, d.columns).over({d.rows})) &&
         run(similarity()(d.matrix, d.scores, d.rows, d.columns)) &&
         run(attention()(d.scores, d.rows).over({d.rows})) &&
         run(wye::Job::sequence("rank", wye::workload_types::graph,
                                rank()(d.scores, d.ranks, d.other_ranks, d.rows).over({d.rows}),
                                std::move(ranks))) &&
         run(date()(d.ranks, 2.0f));
}

/// The same by hand: a lease, and executables that are there.
class ByHand {
 public:
  ByHand(wye::Runtime& runtime, const Data& d)
      : lease_(runtime.pool().lease().value()),
        uses_host_memory_(lease_.device().info().features.has(wye::Feature::host_memory)) {
    const auto find = [&](const auto& kernel) {
      return runtime.cache().find_or_build(kernel, lease_.device()).value();
    };
    normalize_ = find(normalize());
    similarity_ = find(similarity());
    attention_ = find(attention());
    rank_ = find(rank());
    date_ = find(date());
    if (uses_host_memory_) return;
    matrix_ = lease_.buffer<float>(d.matrix.size()).value();
    scores_ = lease_.buffer<float>(d.scores.size()).value();
    ranks_ = lease_.buffer<float>(d.rows).value();
    other_ranks_ = lease_.buffer<float>(d.rows).value();
  }

  bool run(Data& d) {
    d.reset();
    return uses_host_memory_ ? run_on(d, d.matrix, d.scores, d.ranks, d.other_ranks)
                             : run_on(d, *matrix_, *scores_, *ranks_, *other_ranks_);
  }

 private:
  void upload(const Floats& from, const wye::Buffer& to) { lease_.upload(from, to); }
  void upload(const Floats&, const Floats&) {}
  void download(const wye::Buffer& from, Floats& to) { lease_.download(from, to); }
  void download(const Floats&, Floats&) {}

  /// On memory `M` of the device. Each step begins and ends with memory of the host, as a job does.
  template <class M>
  bool run_on(Data& d, M& matrix, M& scores, M& ranks, M& other_ranks) {
    upload(d.matrix, matrix);
    lease_.dispatch(*normalize_, normalize()(matrix, d.columns).over({d.rows}));
    download(matrix, d.matrix);
    if (!lease_.wait()) return false;

    upload(d.matrix, matrix);
    lease_.dispatch(*similarity_, similarity()(matrix, scores, d.rows, d.columns));
    download(scores, d.scores);
    if (!lease_.wait()) return false;

    upload(d.scores, scores);
    lease_.dispatch(*attention_, attention()(scores, d.rows).over({d.rows}));
    download(scores, d.scores);
    if (!lease_.wait()) return false;

    upload(d.scores, scores);
    upload(d.ranks, ranks);
    for (int i = 0; i < pairs_of_iterations; ++i) {
      lease_.dispatch(*rank_, rank()(scores, ranks, other_ranks, d.rows).over({d.rows}));
      lease_.dispatch(*rank_, rank()(scores, other_ranks, ranks, d.rows).over({d.rows}));
    }
    download(ranks, d.ranks);
    download(other_ranks, d.other_ranks);
    if (!lease_.wait()) return false;

    upload(d.ranks, ranks);
    lease_.dispatch(*date_, date()(ranks, 2.0f));
    download(ranks, d.ranks);
    return lease_.wait().has_value();
  }

  wye::Lease lease_;
  bool uses_host_memory_;
  std::optional<wye::Executable> normalize_, similarity_, attention_, rank_, date_;
  std::optional<wye::Buffer> matrix_, scores_, ranks_, other_ranks_;
};

std::optional<wye::Runtime> open(benchmark::State& state, const char* backend) {
  auto runtime = wye::Runtime::open({.pool = {.backends = {backend}}});
  if (!runtime) return state.SkipWithError("no such device"), std::nullopt;
  return std::move(*runtime);
}

void steps_as_jobs(benchmark::State& state, const char* backend) {
  auto runtime = open(state, backend);
  if (!runtime) return;
  Data data, by_hand;
  if (!run_jobs(*runtime, data) || !ByHand(*runtime, by_hand).run(by_hand) || data.ranks != by_hand.ranks)
    return state.SkipWithError("failed, or the two give different ranks");
  for (auto _ : state)
    if (!run_jobs(*runtime, data)) state.SkipWithError("failed");
}
void steps_by_hand(benchmark::State& state, const char* backend) {
  auto runtime = open(state, backend);
  if (!runtime) return;
  Data data;
  ByHand by_hand(*runtime, data);
  if (!by_hand.run(data)) return state.SkipWithError("failed");
  for (auto _ : state)
    if (!by_hand.run(data)) state.SkipWithError("failed");
}

void rows(benchmark::internal::Benchmark* row) {
  row->UseRealTime()->MeasureProcessCPUTime()->Unit(benchmark::kMillisecond);
}
BENCHMARK_CAPTURE(steps_as_jobs, cpu, "cpu")->Name("main_job_steps_cpu/wye")->Apply(rows);
BENCHMARK_CAPTURE(steps_by_hand, cpu, "cpu")->Name("main_job_steps_cpu/by_hand")->Apply(rows);
BENCHMARK_CAPTURE(steps_as_jobs, vulkan, "vulkan")->Name("main_job_steps_vulkan/wye")->Apply(rows);
BENCHMARK_CAPTURE(steps_by_hand, vulkan, "vulkan")->Name("main_job_steps_vulkan/by_hand")->Apply(rows);

}  // namespace
