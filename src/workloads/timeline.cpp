#include <wye/workloads/timeline.hpp>

#include <cmath>

#include "cpu.hpp"
#include "steps.hpp"
#include "timeline_kernels.hpp"

namespace wye::inline v0::workloads {
namespace {

const auto& timeline_kernel() {
  static const auto kernel = make_kernel<Read<Evidence>, Write<TimelinePoint>, float, float>(
      kernels::timeline, {"evidence", "points", "now", "decay"}, {},
      {host(cpu::timeline, {.tile = Extent3(2048)})});
  return kernel;
}

}  // namespace

Job timeline(Read<Evidence> evidence, Write<TimelinePoint> points, TimelineOptions options) {
  const auto refuse = [](std::string sentence) {
    return refused("timeline", workload_types::timeline, std::move(sentence));
  };
  if (evidence.size() != points.size())
    return refuse("Evidence (" + std::to_string(evidence.size()) +
                  " elements) of workload 'timeline' is not as long as its points (" +
                  std::to_string(points.size()) + " elements).");
  if (!std::isfinite(options.now))
    return refuse("Now (" + std::to_string(options.now) + ") of workload 'timeline' is not finite.");
  if (!std::isfinite(options.decay) || options.decay < 0)
    return refuse("Decay (" + std::to_string(options.decay) + ") of workload 'timeline' is not at least 0.");
  Steps steps;
  steps.add(timeline_kernel(), flat(points.size()), evidence, points, options.now, options.decay);
  return std::move(steps).job("timeline", workload_types::timeline);
}

}  // namespace wye::workloads
