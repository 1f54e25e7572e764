#include "per_target.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "cpu.hpp"
#include "row_adder.hpp"

HWY_BEFORE_NAMESPACE();
namespace wye::inline v0::workloads::cpu::HWY_NAMESPACE {
/// Sets `sums[i]` to the sum of the shares that the links to node `first + i` carry.
void add_links(const float* shares, const float* fractions, std::uint32_t nodes,
               std::span<const std::uint32_t> offsets, std::span<const std::uint32_t> sources,
               std::uint64_t first, std::size_t count, float* sums) {
  RowAdder adder(shares, nodes, fractions, offsets, sources);
  adder.add(first, count, sums,
            [&](std::uint32_t begin, std::uint32_t end) { return adder.sum_of(begin, end); });
}

}  // namespace wye::workloads::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wye::inline v0::workloads::cpu {
namespace {

HWY_EXPORT(add_links);

/// The number of nodes whose changes are added up together, which makes the bits independent of the
/// number of threads.
constexpr std::uint64_t group = 256;

bool has_preferences(std::span<const float> shares, std::uint32_t nodes) {
  return shares.size() > 4 * (std::size_t{nodes} + 1);
}
bool has_weights(std::span<const float> shares, std::uint32_t nodes) {
  return shares.size() > 5 * (std::size_t{nodes} + 1);
}

/// Returns 0 for negative numbers, NaN and infinity, because only host memory has been checked.
float usable(float given) { return given > 0 && std::isfinite(given) ? given : 0.0f; }

/// Returns a sum of weights. On devices, sums are integers; here they are float64, stored in parts
/// 1 and 2 of `degrees`.
double sum_of_weights(std::span<const std::uint32_t> degrees, std::uint32_t nodes, std::uint32_t node) {
  const std::uint64_t low = degrees[std::size_t{nodes} + node], high = degrees[2 * std::size_t{nodes} + node];
  return std::bit_cast<double>(high << 32 | low);
}

std::size_t groups_of(std::uint32_t nodes) { return (std::size_t{nodes} + group - 1) / group; }

float* part(std::span<float> shares, std::uint32_t number, std::uint32_t nodes) {
  return shares.data() + number * (std::size_t{nodes} + 1);
}

}  // namespace

void pagerank_clear(Range range, std::span<std::uint32_t> degrees, std::span<PageRankSummary> summary,
                    std::uint32_t nodes) {
  if (range.first == 0) summary[0] = {.converged = nodes == 0 ? 1u : 0u};
  const Range items = below(range, nodes);
  for (std::size_t begin = 0; begin < degrees.size(); begin += nodes)
    std::fill(degrees.data() + begin + items.first, degrees.data() + begin + items.last, 0u);
}

void pagerank_count(Range range, std::span<const std::uint32_t> sources, std::span<std::uint32_t> degrees,
                    std::span<PageRankSummary> summary, std::uint32_t nodes) {
  for (std::uint64_t link : below(range, sources.size()))
    ++(sources[link] < nodes ? degrees[sources[link]] : summary[0].ignored_links);
}

void pagerank_largest(Range range, std::span<const float> weights, std::span<const std::uint32_t> sources,
                      std::span<std::uint32_t> degrees, std::span<PageRankSummary> summary,
                      std::uint32_t nodes) {
  for (std::uint64_t link : below(range, sources.size())) {
    const std::uint32_t source = sources[link];
    if (source >= nodes) {
      ++summary[0].ignored_links;
      continue;
    }
    const float weight = usable(weights[link]);
    degrees[source] = std::max(degrees[source], std::bit_cast<std::uint32_t>(weight));
    const auto sum = std::bit_cast<std::uint64_t>(sum_of_weights(degrees, nodes, source) + double{weight});
    degrees[std::size_t{nodes} + source] = static_cast<std::uint32_t>(sum);
    degrees[2 * std::size_t{nodes} + source] = static_cast<std::uint32_t>(sum >> 32);
  }
}

void pagerank_fractions(Range range, std::span<const float> weights, std::span<const std::uint32_t> sources,
                        std::span<const std::uint32_t> degrees, std::span<float> shares,
                        std::uint32_t nodes) {
  float* const fractions = part(shares, 5, nodes);
  for (std::uint64_t link : below(range, sources.size())) {
    const std::uint32_t source = sources[link];
    fractions[link] =
        source < nodes && degrees[source] != 0
            ? static_cast<float>(double{usable(weights[link])} / sum_of_weights(degrees, nodes, source))
            : 0.0f;
  }
}

void pagerank_preference(Range range, std::span<const float> preferences, std::span<float> partials,
                         std::uint32_t nodes) {
  const Range items = below(range, nodes);
  for (std::uint64_t first = items.first; first < items.last; first += group) {
    double sum = 0;
    for (std::uint64_t node = first; node < std::min(first + group, items.last); ++node)
      sum += double{usable(preferences[node])};
    partials[2 * (first / group)] = static_cast<float>(sum);
    partials[2 * (first / group) + 1] = 0;
  }
}

void pagerank_start(Range range, std::span<const std::uint32_t> degrees, std::span<float> shares,
                    std::span<float> ranks, std::span<float> partials, std::uint32_t nodes,
                    std::span<const float> preferences) {
  const bool weighted = has_weights(shares, nodes), personal = has_preferences(shares, nodes);
  const float total = !preferences.empty() ? partials[2 * groups_of(nodes) + 1] : 0.0f;
  const Range items = below(range, nodes);
  for (std::uint64_t first = items.first; first < items.last; first += group) {
    double dangling = 0;
    for (std::uint64_t node = first; node < std::min(first + group, items.last); ++node) {
      const float share = degrees[node] == 0 ? 0.0f
                          : weighted         ? 1.0f
                                             : 1.0f / static_cast<float>(degrees[node]);
      const float rank = total > 0 ? usable(preferences[node]) / total : 1.0f / static_cast<float>(nodes);
      if (degrees[node] == 0) dangling += double{rank};
      ranks[node] = rank;
      part(shares, 0, nodes)[node] = rank * share;
      part(shares, 2, nodes)[node] = share;
      part(shares, 3, nodes)[node] = 0;
      if (personal) part(shares, 4, nodes)[node] = rank;
    }
    partials[2 * (first / group)] = 0;
    partials[2 * (first / group) + 1] = static_cast<float>(dangling);
  }
  if (range.first <= nodes && nodes < range.last)
    part(shares, 0, nodes)[nodes] = part(shares, 1, nodes)[nodes] = 0;
}

void pagerank_pull(Range range, std::span<const std::uint32_t> offsets,
                   std::span<const std::uint32_t> sources, std::span<float> shares, std::span<const float>,
                   std::span<float> ranks, std::span<float> partials,
                   std::span<const PageRankSummary> summary, std::uint32_t nodes, std::uint32_t turn,
                   float damping) {
  if (summary[0].converged) return;
  const float* share = part(shares, 2, nodes);
  float *const to = part(shares, 1 - turn, nodes), *const low = part(shares, 3, nodes);
  const float for_all = partials[2 * groups_of(nodes)], for_each = for_all / static_cast<float>(nodes);
  const float* const fractions = has_weights(shares, nodes) ? part(shares, 5, nodes) : nullptr;
  const float* const preferred = has_preferences(shares, nodes) ? part(shares, 4, nodes) : nullptr;

  const Range items = below(range, nodes);
  for (std::uint64_t first = items.first; first < items.last; first += group) {
    const std::uint64_t last = std::min(first + group, items.last);
    float sums[group];
    HWY_DYNAMIC_DISPATCH(add_links)
    (part(shares, turn, nodes), fractions, nodes, offsets, sources, first, last - first, sums);
    double changed = 0, lost = 0;
    for (std::uint64_t node = first; node < last; ++node) {
      const float change =
          damping * (sums[node - first] + (preferred ? for_all * preferred[node] : for_each));
      changed += std::abs(double{change});
      if (share[node] == 0) lost += double{change};
      const float before = ranks[node], corrected = change + low[node], rank = before + corrected;
      ranks[node] = rank;
      low[node] = corrected - (rank - before);
      to[node] = change * share[node];
    }
    partials[2 * (first / group)] = static_cast<float>(changed);
    partials[2 * (first / group) + 1] = static_cast<float>(lost);
  }
}

void pagerank_sum(Range range, std::span<float> partials, std::span<PageRankSummary> summary,
                  std::uint32_t groups, std::uint32_t counts, float tolerance) {
  if (range.first != 0 || summary[0].converged) return;
  double changed = 0, dangling = 0;
  for (std::size_t i = 0; i < groups; ++i) {
    changed += double{partials[2 * i]};
    dangling += double{partials[2 * i + 1]};
  }
  if (counts == 2) {  // the preferences
    partials[2 * std::size_t{groups} + 1] = static_cast<float>(changed);
    return;
  }
  // The first change is damping (sum of shares + dangling rank / nodes) + (1 - damping) / nodes - 1
  // / nodes.
  partials[2 * std::size_t{groups}] = static_cast<float>(counts == 0 ? dangling - 1 : dangling);
  if (counts == 0) return;
  ++summary[0].iterations;
  summary[0].residual = static_cast<float>(changed);
  if (summary[0].residual <= tolerance) summary[0].converged = 1;
}

}  // namespace wye::workloads::cpu
#endif
