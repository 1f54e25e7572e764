#include <wye/workloads/thread_simulation.hpp>

#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "cpu.hpp"
#include "steps.hpp"
#include "thread_simulation_kernels.hpp"

namespace wye::inline v0::workloads {
namespace {

const auto& thread_simulation_kernel() {
  static const auto kernel =
      make_kernel<Write<SimulatedThread>, ReadWrite<ThreadDepth>, Write<ThreadSummary>, cpu::ThreadShape>(
          kernels::thread_simulation, {"last", "depths", "summary", "shape"}, {},
          {host(cpu::thread_simulation, {.tile = Extent3(256)})});
  return kernel;
}

constexpr std::uint64_t most_chains = std::uint64_t{1} << 30;
constexpr std::uint64_t largest_thread_limit = (std::numeric_limits<std::uint64_t>::max() - 1) / 3;
constexpr std::uint32_t largest_depth = 60'000, largest_batch = 256;

/// Returns the reason if an option is out of its range.
std::optional<std::string> no_thread_options(const ThreadSimulationOptions& options) {
  const std::string of = ") of workload 'thread_simulation' ";
  if (options.max_depth > largest_depth)
    return "Largest depth (" + std::to_string(options.max_depth) + of + "exceeds the limit (" +
           std::to_string(largest_depth) + ").";
  if (options.batch < 1 || options.batch > largest_batch)
    return "Batch (" + std::to_string(options.batch) + of + "is not between 1 and " +
           std::to_string(largest_batch) + ".";
  if (options.limit > largest_thread_limit)
    return "Limit (" + std::to_string(options.limit) + of + "exceeds the limit (" +
           std::to_string(largest_thread_limit) + ").";
  return std::nullopt;
}

}  // namespace

Job thread_simulation(Write<SimulatedThread> last, Write<ThreadDepth> depths, Write<ThreadSummary> summary,
                      ThreadSimulationOptions options) {
  const auto refuse = [](std::string sentence) {
    return refused("thread_simulation", workload_types::simulation, std::move(sentence));
  };
  if (auto why = no_thread_options(options)) return refuse(*std::move(why));
  if (last.size() > most_chains)
    return refuse("Threads (" + std::to_string(last.size()) +
                  ") of workload 'thread_simulation' exceed the limit (" + std::to_string(most_chains) +
                  ").");
  const std::uint64_t levels = std::uint64_t{options.max_depth} + 1;
  if (depths.size() != levels)
    return refuse("Depths (" + std::to_string(depths.size()) +
                  " elements) of workload 'thread_simulation' do not have " + std::to_string(levels) +
                  " elements for its largest depth (" + std::to_string(options.max_depth) + ").");
  if (summary.size() != 1)
    return refuse("Summary (" + std::to_string(summary.size()) +
                  " elements) of workload 'thread_simulation' does not have 1 element.");

  const std::span<SimulatedThread> no_threads;
  const std::span<ThreadSummary> no_summary;
  cpu::ThreadShape shape{.limit_low = static_cast<std::uint32_t>(options.limit),
                         .limit_high = static_cast<std::uint32_t>(options.limit >> 32),
                         .max_depth = options.max_depth,
                         .batch = options.batch,
                         .part = cpu::reset_depths};
  Steps steps;
  steps.add(thread_simulation_kernel(), flat(levels), no_threads, Memory(depths), no_summary, shape);
  if (last.size() != 0) {
    shape.part = cpu::follow_chains;
    const std::uint64_t batches = (last.size() - 1) / options.batch + 1;
    steps.add(thread_simulation_kernel(), flat(256 * batches), last, Memory(depths), no_summary, shape);
  }
  shape.part = cpu::find_deepest;
  steps.add(thread_simulation_kernel(), Extent3(1), no_threads, Memory(depths), summary, shape);
  return std::move(steps).job("thread_simulation", workload_types::simulation);
}

}  // namespace wye::workloads
