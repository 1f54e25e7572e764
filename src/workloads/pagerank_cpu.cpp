#include <algorithm>
#include <atomic>
#include <cmath>

#include "cpu.hpp"

namespace wye {
inline namespace v0 {
namespace workloads {
namespace {

/// Nodes whose changes are added up together, whoever does them: the bits do not depend on the number of threads.
constexpr std::uint64_t group = 256;

float* part(std::span<float> shares, std::uint32_t number, std::uint32_t nodes) {
  return shares.data() + number * (std::size_t{nodes} + 1);
}

/// What a few links bring. Four sums, so that shares, which lie all over memory, are waited for together.
float given_by_few(const float* shares, const std::uint32_t* sources, std::size_t count,
                   std::uint32_t nodes) {
  float s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    s0 += shares[std::min(sources[i], nodes)];
    s1 += shares[std::min(sources[i + 1], nodes)];
    s2 += shares[std::min(sources[i + 2], nodes)];
    s3 += shares[std::min(sources[i + 3], nodes)];
  }
  for (; i < count; ++i) s0 += shares[std::min(sources[i], nodes)];
  return (s0 + s1) + (s2 + s3);
}

/// What `count` links bring. Many are added up in double precision, so that the error does not grow with them.
float given(const float* shares, const std::uint32_t* sources, std::size_t count, std::uint32_t nodes) {
  constexpr std::size_t few = 512;
  if (count <= few) return given_by_few(shares, sources, count, nodes);
  double sum = 0;
  for (std::size_t i = 0; i < count; i += few)
    sum += double{given_by_few(shares, sources + i, std::min(few, count - i), nodes)};
  return static_cast<float>(sum);
}

}  // namespace

void cpu::pagerank_clear(Range range, std::span<std::uint32_t> degrees, std::span<PageRankSummary> summary,
                         std::uint32_t nodes) {
  if (range.first == 0) summary[0] = {.converged = nodes == 0 ? 1u : 0u};
  const Range items = below(range, nodes);
  std::fill(degrees.data() + items.first, degrees.data() + items.last, 0u);
}

void cpu::pagerank_count(Range range, std::span<const std::uint32_t> sources,
                         std::span<std::uint32_t> degrees, std::span<PageRankSummary> summary,
                         std::uint32_t nodes) {
  const auto add_one = [](std::uint32_t& to) { std::atomic_ref(to).fetch_add(1, std::memory_order_relaxed); };
  for (std::uint64_t link : below(range, sources.size()))
    add_one(sources[link] < nodes ? degrees[sources[link]] : summary[0].ignored_links);
}

void cpu::pagerank_start(Range range, std::span<const std::uint32_t> degrees, std::span<float> shares,
                         std::span<float> ranks, std::span<float> partials, std::uint32_t nodes) {
  const float rank = 1.0f / static_cast<float>(nodes);
  const Range items = below(range, nodes);
  for (std::uint64_t first = items.first; first < items.last; first += group) {
    float dangling = 0;
    for (std::uint64_t node = first; node < std::min(first + group, items.last); ++node) {
      const float share = degrees[node] == 0 ? 0.0f : 1.0f / static_cast<float>(degrees[node]);
      if (degrees[node] == 0) dangling += rank;
      ranks[node] = rank;
      part(shares, 0, nodes)[node] = rank * share;
      part(shares, 2, nodes)[node] = share;
    }
    partials[2 * (first / group)] = 0;
    partials[2 * (first / group) + 1] = dangling;
  }
  if (range.first <= nodes && nodes < range.last)
    part(shares, 0, nodes)[nodes] = part(shares, 1, nodes)[nodes] = 0;
}

void cpu::pagerank_pull(Range range, std::span<const std::uint32_t> offsets,
                        std::span<const std::uint32_t> sources, std::span<float> shares,
                        std::span<const float>, std::span<float> ranks, std::span<float> partials,
                        std::span<const PageRankSummary> summary, std::uint32_t nodes, std::uint32_t turn,
                        float damping) {
  if (summary[0].converged) return;
  const auto links = static_cast<std::uint32_t>(sources.size());
  const float* from = part(shares, turn, nodes);
  const float* share = part(shares, 2, nodes);
  float* to = part(shares, 1 - turn, nodes);
  const float count = static_cast<float>(nodes), dangling = partials.back();
  const float base = (1.0f - damping) / count + damping * (dangling / count);

  const Range items = below(range, nodes);
  for (std::uint64_t first = items.first; first < items.last; first += group) {
    float changed = 0, lost = 0;
    for (std::uint64_t node = first; node < std::min(first + group, items.last); ++node) {
      const std::uint32_t begin = std::min(offsets[node], links), end = std::min(offsets[node + 1], links);
      const std::size_t size = end > begin ? end - begin : 0;
      const float rank = base + damping * given(from, sources.data() + begin, size, nodes);
      changed += std::abs(rank - ranks[node]);
      if (share[node] == 0) lost += rank;
      ranks[node] = rank;
      to[node] = rank * share[node];
    }
    partials[2 * (first / group)] = changed;
    partials[2 * (first / group) + 1] = lost;
  }
}

void cpu::pagerank_sum(Range range, std::span<float> partials, std::span<PageRankSummary> summary,
                       std::uint32_t groups, std::uint32_t counts, float tolerance) {
  if (range.first != 0 || summary[0].converged) return;
  double changed = 0, dangling = 0;
  for (std::size_t i = 0; i < groups; ++i) {
    changed += double{partials[2 * i]};
    dangling += double{partials[2 * i + 1]};
  }
  partials.back() = static_cast<float>(dangling);
  if (counts == 0) return;
  ++summary[0].iterations;
  summary[0].residual = static_cast<float>(changed);
  if (summary[0].residual <= tolerance) summary[0].converged = 1;
}

}  // namespace workloads
}  // namespace v0
}  // namespace wye
