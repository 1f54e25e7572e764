#include <wye/workloads/pagerank.hpp>

#include <cmath>
#include <cstddef>
#include <numeric>

namespace wye::inline v0::workloads {

reference::PageRank reference::pagerank(std::span<const std::uint32_t> offsets,
                                        std::span<const std::uint32_t> sources, PageRankOptions options) {
  const std::size_t nodes = offsets.empty() ? 0 : offsets.size() - 1;
  PageRank result{.ranks = std::vector<double>(nodes, 1.0 / static_cast<double>(nodes))};
  if (options.personalization) {
    const auto* const given = static_cast<const float*>(options.personalization->operand().data);
    const double total = std::accumulate(given, given + nodes, 0.0);
    for (std::size_t node = 0; node < nodes; ++node) result.ranks[node] = double{given[node]} / total;
  }
  const std::vector<double> preferred = result.ranks;
  const auto* const weights =
      options.weights ? static_cast<const float*>(options.weights->operand().data) : nullptr;
  const auto weight = [&](std::size_t link) { return weights == nullptr ? 1.0 : double{weights[link]}; };
  std::vector<double> degrees(nodes);
  for (std::size_t i = 0; i < sources.size(); ++i)
    if (sources[i] < nodes) degrees[sources[i]] += weight(i);

  const double damping = options.damping;
  while (nodes > 0 && result.iterations < options.iterations) {
    double dangling = 0;
    for (std::size_t node = 0; node < nodes; ++node)
      if (degrees[node] == 0) dangling += result.ranks[node];
    std::vector<double> ranks(nodes);
    result.residual = 0;
    for (std::size_t node = 0; node < nodes; ++node) {
      double sum = dangling * preferred[node];
      for (std::size_t i = offsets[node]; i < offsets[node + 1]; ++i)
        if (sources[i] < nodes && degrees[sources[i]] > 0)
          sum += result.ranks[sources[i]] * (weight(i) / degrees[sources[i]]);
      ranks[node] = (1 - damping) * preferred[node] + damping * sum;
      result.residual += std::abs(ranks[node] - result.ranks[node]);
    }
    result.ranks.swap(ranks);
    ++result.iterations;
    if (result.residual <= double{options.tolerance}) break;
  }
  return result;
}

}  // namespace wye::workloads
