#include <wye/workloads/timeline.hpp>

#include <cmath>

namespace wye {
inline namespace v0 {
namespace workloads {

std::vector<double> reference::timeline(std::span<const Evidence> evidence, TimelineOptions options) {
  std::vector<double> importance;
  importance.reserve(evidence.size());
  for (const Evidence& e : evidence) {
    const double distance = std::abs(double{options.now} - double{e.timestamp});
    importance.push_back(double{e.importance} * std::exp(-double{options.decay} * distance));
  }
  return importance;
}

}  // namespace workloads
}  // namespace v0
}  // namespace wye
