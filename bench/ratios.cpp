#include "ratios.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "quantile.hpp"

namespace wye_bench {
namespace {

// The bars wye has set itself. A peer that is a number is a fixed cost, in seconds where it is a
// time: the ratio is to that.
struct Bar {
  std::string_view work;
  std::string_view peer;
  double bar;
  double fixed = 0;
  bool cpu = false;  // of CPU time instead of wall time
  double handover =
      0;  // holds only on a machine whose hand-over between threads takes less, in seconds; 0: on all
  bool or_other = false;  // it is enough that one of the bars of its work with this mark holds
};
constexpr bool of_cpu = true, or_other = true;
constexpr Bar bars[] = {
    {"dispatch_sync", "raw_vulkan", 1.1},
    {"dispatch_batch", "raw_vulkan", 1.1},
    {"roundtrip_64MiB", "two_copies", 1.1},
    {"kernel_second_use", "raw_vulkan", 1.5},
    {"kernel_second_use", "pipeline_per_use", 0.5},
    {"kernel_second_use_of_text", "raw_vulkan", 1.5},
    {"kernel_second_use_2_threads", "raw_vulkan", 1.5},
    {"job_independent_null_x1000", "500 us of CPU", 1.0, 500e-6, of_cpu},
    {"job_independent_null_x1000", "onetbb_future", 2.0, 0, of_cpu},
    {"job_independent_null_8_threads_x8000", "4 ms of CPU", 1.0, 4e-3, of_cpu},
    {"job_independent_null_8_threads_x8000", "onetbb_future", 2.0, 0, of_cpu},
    {"job_chained_null_x1000", "200 us of CPU", 1.0, 200e-6, of_cpu},
    {"graph_replay_null_x1000", "60 us of CPU", 1.0, 60e-6, of_cpu},
    {"graph_replay_arrays_null_x1000", "60 us of CPU", 1.0, 60e-6, of_cpu},
    {"job_run_null_keeping_decisions", "none_kept", 1.05, 0, of_cpu},
    {"job_waiting.bytes", "1 KiB", 1.0, 1024},
    {"job_waiting_in_chain.bytes", "1 KiB", 1.0, 1024},
    {"dispatch_jobs_x10000", "raw_vulkan", 1.15},
    {"small_requests_x1000", "without_batches", 1.0},
    {"pipeline_vulkan", "longer_stage", 1.15, 0, false, 0, or_other},
    {"pipeline_vulkan", "copies_beside", 1.15, 0, false, 0, or_other},
    {"pipeline_cuda", "longer_stage", 1.15, 0, false, 0, or_other},
    {"pipeline_cuda", "copies_beside", 1.15, 0, false, 0, or_other},
    {"main_job_steps_cpu", "by_hand", 1.03},
    {"main_job_steps_vulkan", "by_hand", 1.03},
    {"lane_submit_and_wait_cpu", "8 us of CPU", 1.0, 8e-6, true},
    {"lane_inline_cpu", "1 us of CPU", 1.0, 1e-6, true},
    {"submit_and_wait_cpu", "8 us of CPU", 1.0, 8e-6, of_cpu, 0, or_other},
    {"submit_and_wait_cpu", "futex_ping_pong", 1.3, 0, of_cpu, 0, or_other},
    {"run_inline_cpu", "1 us of CPU", 1.0, 1e-6, of_cpu, 5e-6},
    {"runtime_open_cpu", "5 ms", 1.0, 5e-3},
    {"allocation_vulkan", "vma", 1.2},
    {"allocation_vulkan.held", "vma", 1.0},
    {"lease_return", "1 us", 1.0, 1e-6},
    {"lease_return_2_threads", "1 us", 1.0, 1e-6},
    {"lease_return_8_threads", "1 us", 1.0, 1e-6},
    {"context_cold_cpu", "0.5 ms", 1.0, 5e-4},
    {"context_cold_vulkan", "0.5 ms", 1.0, 5e-4},
    {"context_cold_cpu.bytes", "256 KiB", 1.0, 256 * 1024},
    {"context_cold_vulkan.bytes", "256 KiB", 1.0, 256 * 1024},
    {"context_switch_null.p50", "1 us", 1.0, 1e-6},
    {"context_switch_null.p99", "5 us", 1.0, 5e-6},
    {"context_switch_cpu.p50", "1 us", 1.0, 1e-6},
    {"context_switch_cpu.p99", "5 us", 1.0, 5e-6, false, 5e-6},
    {"context_switch_vulkan.p50", "1 us", 1.0, 1e-6},
    {"context_switch_vulkan.p99", "5 us", 1.0, 5e-6},
    {"context_switch_across.p50", "1 us", 1.0, 1e-6},
    {"context_switch_across.p99", "5 us", 1.0, 5e-6},
    {"cache_handle", "10 ns", 1.0, 10e-9},
    {"cache_handle_in_turns", "10 ns", 1.0, 10e-9},
    {"cache_handle_2_threads", "10 ns", 1.0, 10e-9},
    {"cache_hit", "copied_handle", 2.0},
    {"cache_hit", "mutex_around_a_map", 1.1},
    {"cache_hit_2_threads", "mutex_around_a_map", 1.0},
    {"cache_hit_8_threads", "mutex_around_a_map", 1.0},
    {"cache_hit_text_4KiB", "120 ns", 1.0, 120e-9},
    {"cache_hit_text_4KiB_2_threads", "120 ns", 1.0, 120e-9},
    {"cache_disk_hit", "50 us", 1.0, 50e-6},
    {"cache_disk_hit_2_threads", "50 us", 1.0, 50e-6},
    {"main_job_start", "empty_cache", 1.0},
    {"main_job_start_alone", "empty_cache", 1.0},
    {"cold_start_8_processes", "each_builds_all", 1.0},
    {"cold_start_8_processes.builds", "32 builds", 1.0, 32},
    {"qualification_stored", "1 ms", 1.0, 1e-3},
    {"evict_zipf_20.misses", "fifo", 1.0},
    {"evict_zipf_85.misses", "fifo", 1.0},
    {"evict_zipf_85.misses", "5 %", 1.0, 0.05},
    {"evict_sweeps_50.misses", "fifo", 1.0},
    {"evict_moving_50.misses", "fifo", 1.0},
    {"evict_web_clients.misses", "fifo", 1.0},
    {"evict_workloads_85.misses", "5 %", 1.0, 0.05},
    {"matmul_1024_cpu", "openblas", 1.1},
    {"matmul_1024_cpu", "fma_peak", 1.25},
    {"matmul_epilogue_1024_cpu", "product", 1.05},
    {"matmul_transposed_a_1024_cpu", "product", 1.1},
    {"pagerank_1M_links_cpu", "one_thread_csr", 1 / 1.5},
    {"csr_multiply_10M_cpu", "one_thread_csr", 0.67},
    {"q4_0_4096_1_row_cpu", "memory_floor", 1.3},
    {"q4_0_int8_4096_1_row_cpu", "memory_floor", 1.3},
    {"q4_0_4096_512_rows_cpu", "float_product", 1.0},
    {"q4_0_int8_4096_512_rows_cpu", "float_product", 1.0},
    {"decoder_1_token_cpu", "memory_floor", 1.6},
    {"decoder_8_requests_cpu", "one_by_one", 0.5},
    {"force_layout_1000_cpu", "one_thread_double", 0.1},
    {"collatz_100M_cpu", "plain_loop", 0.4},
    {"network_frame_cpu", "16.7 ms", 1.0, 1.0 / 60},
    {"network_frame_vulkan", "16.7 ms", 1.0, 1.0 / 60},
    {"render_network_cpu", "cairo", 0.2},
    {"normalize_10M_cpu", "memory_floor", 1.2},
    {"softmax_131072x1024_cpu", "memory_floor", 1.2},
    {"transpose_8192_cpu", "copy", 1.5},
    {"reduce_64M_cpu", "memory_floor", 1.15},
    {"dot_2x32M_cpu", "memory_floor", 1.15},
    {"scan_64M_cpu", "memory_floor", 1.3},
    {"sort_10M_cpu", "vqsort_one_thread", 0.65},
    {"sort_4096_rows_cpu", "4096_jobs", 0.2},
    {"top_100_of_10M_cpu", "memory_floor", 1.5},
    {"cuda_dispatch_sync", "raw_cuda", 1.05},
    {"cuda_dispatch_sync", "same_calls", 1.05},
    {"cuda_dispatch_batch", "raw_cuda", 1.1},
    {"cuda_wait_200us", "polling", 1.05},
    {"cuda_wait_10ms", "10 % of a core", 1.0, 1e-3, of_cpu},
    {"cuda_replay", "raw_cuda", 1.05},
    {"cuda_replay", "same_calls", 1.05},
    {"cuda_copy_256MiB", "raw_cuda", 1 / 0.95},
    {"cuda_roundtrip_64MiB", "raw_cuda", 1 / 0.95},
    {"cuda_axpy_256MiB", "device_copy", 1 / 0.85},
    {"cuda_normalize_256MiB", "device_copy", 1 / 0.85},
    {"cuda_softmax_256MiB", "device_copy", 1 / 0.85},
    {"cuda_matmul_4096", "cublas", 1 / 0.95},
    {"cuda_matmul_half_4096", "cublaslt", 1.05},
    {"cuda_matmul_bfloat16_4096", "cublaslt", 1.05},
    {"cuda_matmul_half_relu_4096", "cublaslt", 1.05},
    {"cuda_matmul_own_4096", "cublas", 1 / 0.7},
    {"cuda_lane.host_bytes", "256 KiB", 1.0, 256 * 1024},
    {"cuda_lane.device_bytes", "256 KiB", 1.0, 256 * 1024},
};

Ratio of(std::string work, std::string peer, const std::vector<double>& ours,
         const std::vector<double>& theirs, const Bar* bar) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i)
    ratios.push_back(ours[i] / theirs[i]);
  Ratio ratio{std::move(work),       std::move(peer),       quantile(ratios, 0.5),
              quantile(ratios, 0.1), quantile(ratios, 0.9), bar ? bar->bar : 0};
  ratio.or_other = bar && bar->or_other;
  ratio.handover = bar ? bar->handover : 0;
  return ratio;
}

}  // namespace

/// The machine is described once, and each work has columns of its own.
bool Collector::ReportContext(const Context& context) {
  if (!std::exchange(has_context_, true)) return ConsoleReporter::ReportContext(context);
  name_field_width_ = context.name_field_width;
  printed_header_ = false;
  return true;
}

void Collector::ReportRuns(const std::vector<Run>& runs) {
  std::vector<Run> shown;
  for (const Run& run : runs) {
    if (run.run_type == Run::RT_Aggregate || run.repetitions <= 1 || run.error_occurred) shown.push_back(run);
    const std::string& name = run.run_name.function_name;
    if (run.error_occurred) skipped_[name] = run.error_message;
    if (run.run_type != Run::RT_Iteration || run.error_occurred || run.iterations == 0) continue;
    const std::size_t slash = name.find('/');
    if (slash == std::string::npos) continue;
    const auto n = static_cast<double>(run.iterations);
    const std::string work = name.substr(0, slash), peer = name.substr(slash + 1);
    if (run.real_accumulated_time > 0) {
      Times& times = times_[work][peer];
      times.wall.push_back(run.real_accumulated_time / n);
      times.cpu.push_back(run.cpu_accumulated_time / n);
    }
    for (const auto& [counter, value] : run.counters) {
      if (value.flags & benchmark::Counter::kIsRate) continue;  // says the time once more
      Times& times = times_[work + "." + counter][peer];
      times.wall.push_back(value.value);
      times.cpu.push_back(value.value);
    }
  }
  ConsoleReporter::ReportRuns(shown);
}

std::vector<Ratio> Collector::ratios() const {
  std::vector<Ratio> list;
  for (const auto& [work, by_whom] : times_) {
    const auto ours = by_whom.find("wye");
    if (ours == by_whom.end()) continue;
    const std::size_t first = list.size();
    for (const Bar& bar : bars) {
      if (bar.work != work || bar.fixed == 0) continue;
      const std::vector<double>& times = bar.cpu ? ours->second.cpu : ours->second.wall;
      list.push_back(
          of(work, std::string(bar.peer), times, std::vector<double>(times.size(), bar.fixed), &bar));
    }
    for (const auto& [peer, theirs] : by_whom) {
      if (peer == "wye" || std::count(theirs.wall.begin(), theirs.wall.end(), 0.0) != 0) continue;
      const auto bar = std::find_if(
          std::begin(bars), std::end(bars),
          [&, &peer = peer, &work = work](const Bar& b) { return b.work == work && b.peer == peer; });
      const bool has_bar = bar != std::end(bars), cpu = has_bar && bar->cpu;
      list.push_back(of(work, peer, cpu ? ours->second.cpu : ours->second.wall,
                        cpu ? theirs.cpu : theirs.wall, has_bar ? &*bar : nullptr));
    }
    const auto holds = [](const Ratio& ratio) { return ratio.or_other && ratio.median <= ratio.bar; };
    if (!std::any_of(list.begin() + static_cast<std::ptrdiff_t>(first), list.end(), holds)) continue;
    for (std::size_t i = first; i < list.size(); ++i) list[i].other_holds = list[i].or_other;
  }
  return list;
}

Results Collector::results() const {
  Results results{.numbers = {}, .skipped = skipped_};
  for (const auto& [work, by_whom] : times_)
    for (const auto& [peer, times] : by_whom) results.numbers[work + "/" + peer] = times.wall;
  return results;
}

void apply_handover(std::vector<Ratio>& ratios, double seconds) {
  for (Ratio& ratio : ratios)
    if (ratio.handover != 0 && seconds >= ratio.handover) ratio.bar = 0;
}

void print(const std::vector<Ratio>& ratios, double handover) {
  if (ratios.empty()) return;
  std::printf("\n%-36s %-20s %8s %8s %8s %8s\n", "wye, as a multiple of", "peer", "median", "p10", "p90",
              "bar");
  for (const Ratio& r : ratios) {
    std::printf("%-36s %-20s %8.3f %8.3f %8.3f ", r.work.c_str(), r.peer.c_str(), r.median, r.p10, r.p90);
    if (r.bar == 0 && r.handover != 0)
      std::printf("%8s for hand-overs below %.0f us\n", "-", r.handover * 1e6);
    else if (r.bar == 0)
      std::printf("%8s\n", "-");
    else
      std::printf("%8.2f %s\n", r.bar,
                  r.median <= r.bar ? "holds"
                  : r.other_holds   ? "the other bar holds"
                                    : "MISSED");
  }
  std::printf("A hand-over between two threads through a futex takes %.1f us here (p50).\n", handover * 1e6);
}

bool write_json(const std::vector<Ratio>& ratios, double handover, const std::string& file) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  for (const Ratio& r : ratios) {
    Json row{{"work", r.work}, {"peer", r.peer}, {"median", r.median}, {"p10", r.p10}, {"p90", r.p90}};
    row["bar"] = r.bar == 0 ? Json() : Json(r.bar);
    row["holds"] = r.bar == 0 ? Json() : Json(r.holds());
    list.push_back(std::move(row));
  }
  std::ofstream out(file);
  out << Json{{"handover_us", handover * 1e6}, {"ratios", list}}.dump(1) << '\n';
  return static_cast<bool>(out.flush());
}

}  // namespace wye_bench
