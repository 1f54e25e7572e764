#pragma once
/// The order in which a plan executes its steps.
#include <cstddef>
#include <span>
#include <vector>

namespace wye::inline v0::scheduler {

/// The steps that each step follows.
struct Dependencies {
  std::vector<std::vector<std::size_t>> all;  ///< in ascending order
  /// Those that no shared memory implies: the barriers of a recording are planned from memory only.
  std::vector<std::vector<std::size_t>> by_request;
};

/// Steps that are submitted together.
struct Segment {
  struct Dispatch {
    std::size_t step = 0;
    std::size_t call = 0;
    bool is_ordered = false;  ///< all dispatches before it complete first
  };
  std::size_t device = 0;  ///< an index into the pool's devices
  std::vector<Dispatch> dispatches;
};

struct Arrangement {
  std::vector<Segment> segments;
  std::vector<std::size_t> position;    ///< of each step in the order
  std::vector<std::size_t> rank;        ///< of each step: equal for neighbours that may run at the same time
  std::vector<std::size_t> segment_of;  ///< of each step
  std::vector<std::size_t> command_of;  ///< the first command of each step in its segment
};

/// Divides steps into segments. Each takes all steps that can run on its device by then. Within a
/// segment, the steps that can run at the same time are neighbours: fewer barriers are between
/// them.
/// Shape: `devices` and `calls` have the device and the number of calls of each step.
Arrangement arrange(std::span<const std::size_t> devices, std::span<const std::size_t> calls,
                    const Dependencies& dependencies);

}  // namespace wye::scheduler
