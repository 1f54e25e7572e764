// The benefit of a directory of compiled kernels for processes that start: to the second run of the
// main job, and to several processes that start at once.
#include <benchmark/benchmark.h>
#include <wye/wye.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "glsl.hpp"
#include "processes.hpp"

namespace {

namespace fs = std::filesystem;
using wye_bench::Folder;
using wye_bench::Process;

/// A process takes its compiled kernels from `directory` and from nowhere else, its driver's own
/// cache included.
std::vector<std::string> environment(const fs::path& directory, bool driver_cache) {
  return {"WYE_CACHE_DIR=" + (directory / "wye").string(), "XDG_CACHE_HOME=" + directory.string(),
          std::string("MESA_SHADER_CACHE_DISABLE=") + (driver_cache ? "false" : "true")};
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// --- The main job, on Vulkan, on 24 documents.

/// The same documents each time.
void write_documents(const fs::path& folder) {
  fs::create_directory(folder);
  std::mt19937 random(1);
  for (int document = 0; document < 24; ++document) {
    std::ofstream out(folder / (std::to_string(document) + ".txt"));
    for (int word = 0; word < 300; ++word) {
      const unsigned number = static_cast<unsigned>(random() % 400 + static_cast<unsigned>(document) * 10);
      out << "word" << static_cast<char>('a' + number % 26) << static_cast<char>('a' + number / 26 % 26)
          << (word % 12 == 11 ? ".\n" : " ");
    }
  }
}

/// Runs it once, with the kernels that are in `cache`, and gives how many of its steps built one;
/// -1 where it failed.
int run_main_job(const Folder& folder, const fs::path& cache, bool driver_cache) {
  const fs::path json = folder.path() / "report.json";
  Process process(wye_bench::this_program().replace_filename("document_network"),
                  {"--backend", "vulkan", "--documents", (folder.path() / "documents").string(), "--out",
                   (folder.path() / "pictures").string(), "--json", json.string()},
                  environment(cache, driver_cache), "/dev/null");
  if (process.wait() != 0) return -1;
  int built = 0;
  for (const auto& step : nlohmann::json::parse(wye_bench::read_file(json)).at("steps"))
    built += step.at("cache") == "built";
  return built;
}

void main_job(benchmark::State& state, bool filled, bool driver_cache) {
  const fs::path program = wye_bench::this_program().replace_filename("document_network");
  if (!fs::exists(program))
    return state.SkipWithError(
        "document_network is not beside this program (target wye_example_document_network)");
  const Folder folder;
  write_documents(folder.path() / "documents");
  const fs::path cache = folder.path() / "cache";
  fs::create_directory(cache);
  if (filled) run_main_job(folder, cache, driver_cache);
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    const int built = run_main_job(folder, cache, driver_cache);
    state.SetIterationTime(seconds_since(start));
    if (built < 0) return state.SkipWithError("failed; there may be no Vulkan device");
    if (filled && built > 0) return state.SkipWithError("the second start built kernels");
    if (!filled && built == 0) return state.SkipWithError("the first start found kernels");
  }
}

void as_processes(benchmark::internal::Benchmark* rows) {
  rows->UseManualTime()->Iterations(1)->Unit(benchmark::kMillisecond);
}
BENCHMARK_CAPTURE(main_job, filled, true, true)->Name("main_job_start/wye")->Apply(as_processes);
BENCHMARK_CAPTURE(main_job, empty, false, true)->Name("main_job_start/empty_cache")->Apply(as_processes);
// With nothing of the driver's own, which keeps machine code in a cache that all programs share.
BENCHMARK_CAPTURE(main_job, filled_alone, true, false)->Name("main_job_start_alone/wye")->Apply(as_processes);
BENCHMARK_CAPTURE(main_job, empty_alone, false, false)
    ->Name("main_job_start_alone/empty_cache")
    ->Apply(as_processes);

// --- Eight processes that start at once and ask for the same kernels in the same order.

constexpr unsigned kernel_count = 32, process_count = 8;

void cold_processes(benchmark::State& state, bool shared) {
  std::uint64_t builds = 0;
  for (auto _ : state) {
    const Folder folder;
    std::vector<Process> processes;
    const auto start = std::chrono::steady_clock::now();
    for (unsigned i = 0; i < process_count; ++i) {
      const fs::path own = folder.path() / std::to_string(i), cache = shared ? folder.path() / "all" : own;
      processes.emplace_back(wye_bench::this_program(),
                             std::vector<std::string>{"--ask-for-kernels=" + cache.string()},
                             environment(own, false), own.string() + ".txt");
    }
    bool failed = false;
    for (Process& process : processes) failed |= process.wait() != 0;
    state.SetIterationTime(seconds_since(start));
    if (failed) return state.SkipWithError("a process failed");
    for (unsigned i = 0; i < process_count; ++i)
      builds += std::stoull(wye_bench::read_file(folder.path() / (std::to_string(i) + ".txt")));
  }
  state.counters["builds"] = static_cast<double>(builds);
}
BENCHMARK_CAPTURE(cold_processes, shared, true)->Name("cold_start_8_processes/wye")->Apply(as_processes);
BENCHMARK_CAPTURE(cold_processes, apart, false)
    ->Name("cold_start_8_processes/each_builds_all")
    ->Apply(as_processes);

// --- The checks of a Vulkan device, as a runtime opens it.

/// Returns the time to open a runtime. Its end is not measured.
double seconds_to_open(const fs::path& cache, wye::Qualification rule, bool& opened) {
  const auto start = std::chrono::steady_clock::now();
  const auto runtime = wye::Runtime::open(
      {.pool = {.backends = {"vulkan"}}, .cache = {.directory = cache.string()}, .qualification = rule});
  const double taken = seconds_since(start);
  opened = runtime.has_value() && runtime->qualifications().size() == (rule != wye::Qualification::never);
  return taken;
}

/// The median time that a stored report adds to the opening of a runtime that checks nothing.
void qualification_stored(benchmark::State& state) {
  const Folder folder;
  bool opened = false;
  seconds_to_open(folder.path(), wye::Qualification::stored, opened);
  if (!opened) return state.SkipWithError("there is no Vulkan device");
  for (auto _ : state) {
    std::vector<double> added;
    for (int i = 0; i < 21 && opened; ++i) {
      const double with = seconds_to_open(folder.path(), wye::Qualification::stored, opened);
      added.push_back(with -
                      (opened ? seconds_to_open(folder.path(), wye::Qualification::never, opened) : 0));
    }
    if (!opened) return state.SkipWithError("a runtime does not open");
    std::nth_element(added.begin(), added.begin() + 10, added.end());
    state.SetIterationTime(std::max(added[10], 0.0));
  }
}
BENCHMARK(qualification_stored)->Name("qualification_stored/wye")->Apply(as_processes);

void qualification_made(benchmark::State& state) {
  const auto pool = wye::ContextPool::open({.backends = {"vulkan"}});
  if (!pool) return state.SkipWithError("there is no Vulkan device");
  for (auto _ : state) {
    const auto report = wye::qualify(pool->devices().front());
    if (!report || !report->passed()) return state.SkipWithError("the device fails");
  }
}
BENCHMARK(qualification_made)->Name("qualification_made/wye")->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace

int wye_bench::ask_for_kernels(const std::string& cache_directory) {
  auto pool = wye::ContextPool::open({.backends = {"vulkan"}});
  if (!pool)
    pool = wye::ContextPool::open({.backends = {"null"}});  // where there are no drivers, the compiler's part
  auto cache = wye::ShaderCache::open({.directory = cache_directory});
  if (!pool || !cache) return 1;
  for (unsigned i = 0; i < kernel_count; ++i) {
    const auto kernel = wye::Kernel<wye::ReadWrite<float>, float>::make(
        {.name = "scale " + std::to_string(i), .sources = {wye::Glsl{.text = glsl_4KiB(i)}}});
    if (!kernel) return 1;
    if (const auto ready = cache->find_or_build(*kernel, pool->devices()[0]); !ready)
      return std::fprintf(stderr, "%s\n", ready.error().describe().c_str()), 1;
  }
  std::printf("%llu\n", static_cast<unsigned long long>(cache->metrics().misses));
  return 0;
}
