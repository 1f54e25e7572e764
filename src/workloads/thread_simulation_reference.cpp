#include <wye/workloads/thread_simulation.hpp>

#include <cstddef>

namespace wye::inline v0::workloads {

reference::ThreadSimulation reference::thread_simulation(std::uint32_t threads,
                                                         ThreadSimulationOptions options) {
  const ThreadDepth none{0, 0xffff'ffff};
  ThreadSimulation made{.last = {},
                        .depths = std::vector<ThreadDepth>(std::size_t{options.max_depth} + 1, none),
                        .summary = {}};
  made.last.reserve(threads);
  for (std::uint32_t i = 0; i < threads; ++i) {
    SimulatedThread thread{.value = i, .depth = 0};
    while (thread.value > 1 && thread.value <= options.limit && thread.depth < options.max_depth) {
      if (thread.value % 2 == 0)
        thread.value /= 2;
      else
        thread.value = 3 * thread.value + 1;
      ++thread.depth;
    }
    thread.end = thread.value <= 1              ? ThreadEnd::one
                 : thread.value > options.limit ? ThreadEnd::limit
                                                : ThreadEnd::max_depth;
    made.last.push_back(thread);
    ThreadDepth& depth = made.depths[thread.depth];
    if (depth.chains++ == 0) depth.first = i;
    made.summary.forks += thread.depth;
    if (thread.depth > made.summary.deepest || i == 0) {
      made.summary.deepest = thread.depth;
      made.summary.thread = i;
    }
  }
  return made;
}

}  // namespace wye::workloads
