// 800 jobs in random order on the CPU and a GPU driver: where they run by learned times, beside the
// fixed order of the preference table and, job by job, the faster device. The devices are those of the
// machine; without a second one the rows are skipped.
#include <benchmark/benchmark.h>
#include <wye/workloads/attention.hpp>
#include <wye/workloads/dot.hpp>
#include <wye/workloads/layer_norm.hpp>
#include <wye/workloads/matmul.hpp>
#include <wye/workloads/reduce.hpp>
#include <wye/workloads/scan.hpp>
#include <wye/workloads/softmax.hpp>
#include <wye/workloads/sort.hpp>
#include <wye/workloads/top_k.hpp>
#include <wye/workloads/transpose.hpp>
#include <wye/wye.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "processes.hpp"
#include "values.hpp"

namespace {

namespace workloads = wye::workloads;
using wye_bench::values;

constexpr std::size_t jobs_of_run = 800;
constexpr unsigned seed = 11;
/// Jobs of one case that may wait or run: each has memory of its own.
constexpr std::size_t copies = 4;

/// A plain loop on the host and the same in GLSL: which device is faster depends on the loop.
using Own = wye::Kernel<wye::Read<float>, wye::Write<float>>;

Own own_kernel(const char* name, const char* line, float (*f)(float)) {
  return Own::make(
             {.name = name,
              .sources = {wye::Glsl{.text = std::string(R"(#version 450
layout(local_size_x = 256) in;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { float y[]; };
void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i >= y.length()) return;
  float v = x[i];
)") + line + "\n  y[i] = v;\n}\n"},
                          wye::host([f](wye::Range range, std::span<const float> x, std::span<float> y) {
                            for (auto i : range) y[i] = f(x[i]);
                          })}})
      .value();
}

const Own& polynomial() {
  static const Own kernel =
      own_kernel("polynomial", "for (int k = 0; k < 256; ++k) v = v * v - 0.7;", [](float v) {
        for (int k = 0; k < 256; ++k) v = v * v - 0.7f;
        return v;
      });
  return kernel;
}

const Own& waves() {
  static const Own kernel =
      own_kernel("waves", "for (int k = 0; k < 16; ++k) v = sin(v + 0.1);", [](float v) {
        for (int k = 0; k < 16; ++k) v = std::sin(v + 0.1f);
        return v;
      });
  return kernel;
}

/// Jobs of one workload and size.
struct Case {
  std::string name = {};
  std::vector<std::vector<float>> in = {}, out = {};  // for each copy
  std::function<wye::Job(std::span<const float> in, std::span<float> out)> make = {};
  wye::Job job(std::size_t copy) { return make(in[copy], out[copy]); }
};

class Cases {
 public:
  Cases() {
    for (const std::size_t n : {64u, 160u, 384u})
      add("matmul", n, n * n, n * n, [n](auto x, auto y) { return workloads::matmul(x, x, y, {n, n, n}); });
    for (const std::size_t n : {1u << 14, 1u << 17, 1u << 20}) {
      add("reduce", n, n, 1,
          [](auto x, auto y) { return workloads::reduce(workloads::Reduction::sum, x, y); });
      add("scan", n, n, n, [](auto x, auto y) { return workloads::scan(workloads::Scan::inclusive, x, y); });
      add("dot", n, n, 1, [](auto x, auto y) { return workloads::dot(x, x, y); });
      add("sort", n / 4, n / 4, n / 4, [](auto x, auto y) { return workloads::sort(x, y); });
      add("softmax", n, n, n, [](auto, auto y) { return workloads::softmax(y, 256); });
      add("transpose", n, n, n, [](auto x, auto y) { return workloads::transpose(x, y, 128); });
      add("layer_norm", n, n, n,
          [](auto x, auto y) { return workloads::layer_norm(x, x.subspan(0, 256), x.subspan(256, 256), y); });
    }
    for (const std::size_t n : {32u, 96u, 224u})
      add("attention", n, 2 * n * 64, 2 * n * 64, [n](auto x, auto y) {
        return workloads::attention(x, x, x, y, {.heads = 2, .queries = n, .keys = n, .head_size = 64});
      });
    for (const std::size_t n : {1u << 12, 1u << 14, 1u << 16}) {
      add("polynomial", n, n, n, [](auto x, auto y) { return polynomial()(x, y); });
      add("waves", n, n, n, [](auto x, auto y) { return waves()(x, y); });
    }
  }
  std::vector<Case>& all() { return all_; }

 private:
  void add(const char* name, std::size_t size, std::size_t in, std::size_t out,
           std::function<wye::Job(std::span<const float>, std::span<float>)> make) {
    Case one{.name = std::string(name) + " " + std::to_string(size), .make = std::move(make)};
    for (std::size_t c = 0; c < copies; ++c) {
      one.in.push_back(values(in, static_cast<unsigned>(all_.size() * copies + c)));
      one.out.push_back(values(out, 7));
    }
    all_.push_back(std::move(one));
  }
  std::vector<Case> all_;
};

Cases& cases() {
  static Cases cases;
  return cases;
}

/// `directory`: of the cache; empty: memory only.
wye::Result<wye::Runtime> open(wye::PlacementMode placement, const std::string& directory = {}) {
  return wye::Runtime::open({.cache = {.directory = directory}, .scheduler = {.placement = placement}});
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The least time of each case on each of two devices, alone.
struct Alone {
  std::vector<std::string> devices;
  std::vector<std::vector<double>> seconds;  // of a case, by device
};

const std::optional<Alone>& alone() {
  static const std::optional<Alone> known = []() -> std::optional<Alone> {
    auto runtime = open(wye::PlacementMode::table);
    if (!runtime) return std::nullopt;
    Alone alone;
    for (const wye::Device& device : runtime->devices()) alone.devices.push_back(device.info().id);
    if (alone.devices.size() < 2) return std::nullopt;
    for (Case& one : cases().all()) {
      std::vector<double>& times = alone.seconds.emplace_back();
      for (const std::string& device : alone.devices) {
        double least = 1e9;
        for (int k = 0; k < 4 && (k < 2 || least < 0.2); ++k) {
          const auto start = std::chrono::steady_clock::now();
          if (!runtime->run(one.job(0), {.on = device})) return std::nullopt;
          least = std::min(least, seconds_since(start));
        }
        times.push_back(least);
      }
    }
    return alone;
  }();
  return known;
}

/// Runs the jobs. Returns the seconds of all and of the second half, or the error of a job.
wye::Result<std::pair<double, double>> run_all(wye::Runtime& runtime) {
  std::vector<Case>& all = cases().all();
  std::vector<std::array<std::optional<wye::Ticket>, copies>> last(all.size());
  std::mt19937 random(seed);
  const auto start = std::chrono::steady_clock::now();
  double half = 0;
  for (std::size_t k = 0; k < jobs_of_run; ++k) {
    if (k == jobs_of_run / 2) half = seconds_since(start);
    const std::size_t c = random() % all.size(), copy = random() % copies;
    std::optional<wye::Ticket>& ticket = last[c][copy];
    if (ticket)
      if (auto done = ticket->wait(); !done) return std::move(done).error();
    ticket = runtime.submit(all[c].job(copy));
  }
  for (auto& tickets : last)
    for (auto& ticket : tickets)
      if (ticket)
        if (auto done = ticket->wait(); !done) return std::move(done).error();
  const double sum = seconds_since(start);
  return std::pair(sum, sum - half);
}

/// Returns the seconds of the second half of the jobs on the faster device for each, one after the other.
double best_half() {
  std::mt19937 random(seed);
  double sum = 0;
  for (std::size_t k = 0; k < jobs_of_run; ++k) {
    const std::vector<double>& times = alone()->seconds[random() % cases().all().size()];
    random();
    if (k >= jobs_of_run / 2) sum += *std::min_element(times.begin(), times.end());
  }
  return sum;
}

void mixed_jobs(benchmark::State& state, wye::PlacementMode placement, bool is_second_process) {
  if (!alone()) return state.SkipWithError("needs two devices");
  const wye_bench::Folder folder;
  const std::string directory = is_second_process ? (folder.path() / "cache").string() : std::string();
  double half = 0;
  for (auto _ : state) {
    for (int k = is_second_process ? 0 : 1; k < 2; ++k) {
      auto runtime = open(placement, directory);
      if (!runtime) return state.SkipWithError(runtime.error().sentence().c_str());
      const auto ran = run_all(*runtime);
      if (!ran) return state.SkipWithError(ran.error().sentence().c_str());
      if (k == 0) continue;  // it leaves kernels and times
      state.SetIterationTime(ran->first);
      half = ran->second;
    }
  }
  state.counters["second_half_of_best"] = half / best_half();
}
BENCHMARK_CAPTURE(mixed_jobs, learned, wye::PlacementMode::learned, false)
    ->Name("placement_of_800_jobs/wye")
    ->UseManualTime()
    ->Iterations(1);
BENCHMARK_CAPTURE(mixed_jobs, second_process, wye::PlacementMode::learned, true)
    ->Name("placement_of_800_jobs/wye, second process")
    ->UseManualTime()
    ->Iterations(1);
BENCHMARK_CAPTURE(mixed_jobs, table, wye::PlacementMode::table, false)
    ->Name("placement_of_800_jobs/table")
    ->UseManualTime()
    ->Iterations(1);

}  // namespace
