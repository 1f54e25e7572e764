#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>

#include "cpu.hpp"

namespace wye::inline v0::workloads::cpu {
namespace {

constexpr std::uint32_t no_chain = ~0u;

SimulatedThread last_of_chain(std::uint64_t value, std::uint64_t limit, std::uint32_t max_depth) {
  for (std::uint32_t depth = 0;; ++depth) {
    if (value <= 1) return {value, depth, ThreadEnd::one};
    if (value > limit) return {value, depth, ThreadEnd::limit};
    if (depth == max_depth) return {value, depth, ThreadEnd::max_depth};
    value = value % 2 == 0 ? value / 2 : 3 * value + 1;
  }
}

/// Adds chains of one depth. Several threads of the host do so at the same time.
void add_chains(ThreadDepth& depth, ThreadDepth more) {
  std::atomic_ref(depth.chains).fetch_add(more.chains, std::memory_order_relaxed);
  std::atomic_ref first(depth.first);
  std::uint32_t before = first.load(std::memory_order_relaxed);
  while (more.first < before && !first.compare_exchange_weak(before, more.first, std::memory_order_relaxed)) {
  }
}

/// Follows the chains [first, last), which are counted by depth. The counts of small depths are
/// added at the end.
void follow(std::uint64_t first, std::uint64_t last, std::span<SimulatedThread> threads,
            std::span<ThreadDepth> depths, std::uint64_t limit, std::uint32_t max_depth) {
  std::array<ThreadDepth, 64> counts;
  counts.fill({0, no_chain});
  for (std::uint64_t i = first; i < last; ++i) {
    const SimulatedThread end = threads[i] = last_of_chain(i, limit, max_depth);
    const auto chain = static_cast<std::uint32_t>(i);
    if (end.depth >= counts.size()) {
      add_chains(depths[end.depth], {1, chain});
      continue;
    }
    ThreadDepth& count = counts[end.depth];
    if (count.chains++ == 0) count.first = chain;
  }
  for (std::size_t depth = 0; depth < std::min(counts.size(), depths.size()); ++depth)
    if (counts[depth].chains != 0) add_chains(depths[depth], counts[depth]);
}

}  // namespace

void thread_simulation(Range range, std::span<SimulatedThread> last, std::span<ThreadDepth> depths,
                       std::span<ThreadSummary> summary, ThreadShape shape) {
  if (shape.part == reset_depths) {
    for (std::uint64_t depth : below(range, depths.size())) depths[depth] = {0, no_chain};
  } else if (shape.part == follow_chains) {
    const std::uint64_t size = last.size();
    follow(std::min(range.first / 256 * shape.batch, size), std::min(range.last / 256 * shape.batch, size),
           last, depths, shape.limit_low | std::uint64_t{shape.limit_high} << 32, shape.max_depth);
  } else {
    ThreadSummary found;
    for (std::uint32_t depth = 0; depth < depths.size(); ++depth) {
      if (depths[depth].chains == 0) continue;
      found.forks += std::uint64_t{depths[depth].chains} * depth;
      found.deepest = depth;
      found.thread = depths[depth].first;
    }
    summary[0] = found;
  }
}

}  // namespace wye::workloads::cpu
