#include <wye/workloads/timeline.hpp>

#include <cmath>

namespace wye::inline v0::workloads {

std::vector<double> reference::timeline(std::span<const Evidence> evidence, TimelineOptions options) {
  std::vector<double> importance;
  importance.reserve(evidence.size());
  for (const Evidence& e : evidence) {
    const double distance = std::abs(double{options.now} - double{e.timestamp});
    const double x = double{options.decay} * distance;
    const bool gone = x > 87 && !std::isnan(e.importance);
    importance.push_back(gone ? 0 : double{e.importance} * std::exp(-x));
  }
  return importance;
}

}  // namespace wye::workloads
