#pragma once
/// A simulation of threads that fork.
#include <wye/device/parameter.hpp>
#include <wye/scheduler/job.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace wye::inline v0::workloads {

/// The reason for the end of a chain of forks. If several apply, it is the first of them.
enum class ThreadEnd : std::uint32_t {
  one,        ///< the value is 1 or less
  limit,      ///< the value is above the limit
  max_depth,  ///< the depth is the largest
};

/// The last thread of a chain of forks.
struct SimulatedThread {
  std::uint64_t value = 0;
  std::uint32_t depth = 0;  ///< the number of forks before it
  ThreadEnd end = ThreadEnd::one;
  friend bool operator==(const SimulatedThread&, const SimulatedThread&) = default;
};

/// The chains that end at one depth.
struct ThreadDepth {
  std::uint32_t chains = 0;
  std::uint32_t first = 0;  ///< the first of them; 2^32 - 1 without any
  friend bool operator==(const ThreadDepth&, const ThreadDepth&) = default;
};

struct ThreadSummary {
  std::uint64_t forks = 0;    ///< of all chains
  std::uint32_t deepest = 0;  ///< the depth of the longest chain
  std::uint32_t thread = 0;   ///< the first chain of this depth
  friend bool operator==(const ThreadSummary&, const ThreadSummary&) = default;
};

struct ThreadSimulationOptions {
  std::uint32_t max_depth = 10;  ///< at most 60,000
  /// Chains that one workgroup simulates, and the fewest that one call of the host function
  /// simulates: 1 to 256. Results do not depend on it.
  std::uint32_t batch = 256;
  std::uint64_t limit = 1'000'000;  ///< at most (2^64 - 2) / 3
};

/// Simulates threads that fork. Thread i carries the value i at depth 0. A thread forks its
/// successor, which is one depth further. The successor carries the value after one Collatz step:
/// half of an even value, 3n + 1 of an odd value n. A chain of forks ends when the value is 1 or
/// less, the value is above the limit, or the depth is `max_depth`.
/// Shape:   as many chains as elements of `last`, at most 2^30. `depths` has max_depth + 1
///          elements, `summary` has one. Without chains, the summary is 0.
/// Bound:   exact.
/// Bits:    equal on all devices.
/// Cost:    three steps. Each chain is one loop of one invocation.
/// Errors:  invalid_argument (sizes that do not match, an option out of its range).
WYE_API Job thread_simulation(Write<SimulatedThread> last, Write<ThreadDepth> depths,
                              Write<ThreadSummary> summary, ThreadSimulationOptions options = {});

namespace reference {
struct ThreadSimulation {
  std::vector<SimulatedThread> last;
  std::vector<ThreadDepth> depths;
  ThreadSummary summary;
};
/// Simulates `threads` chains, on the calling thread.
WYE_API ThreadSimulation thread_simulation(std::uint32_t threads, ThreadSimulationOptions options = {});
}  // namespace reference

}  // namespace wye::workloads
