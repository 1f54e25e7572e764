#include <wye/workloads/pagerank.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include "cpu.hpp"
#include "pagerank_kernels.hpp"
#include "steps.hpp"

namespace wye::inline v0::workloads {
namespace {

using Word = std::uint32_t;

const auto& clear_kernel() {
  static const auto kernel = make_kernel<Write<Word>, Write<PageRankSummary>, Word>(
      kernels::pagerank_clear, {"degrees", "summary", "nodes"}, {},
      {host(cpu::pagerank_clear, {.tile = Extent3(65536)})});
  return kernel;
}

/// One thread of the host executes it, because atomic additions by several threads take longer.
const auto& count_kernel() {
  static const auto kernel = make_kernel<Read<Word>, ReadWrite<Word>, ReadWrite<PageRankSummary>, Word>(
      kernels::pagerank_count, {"sources", "degrees", "summary", "nodes"}, {},
      {host(cpu::pagerank_count, {.tile = Extent3(0)})});
  return kernel;
}

/// On the host by one thread, like `count_kernel`, and with the sums.
const auto& largest_kernel() {
  static const auto kernel =
      make_kernel<Read<float>, Read<Word>, ReadWrite<Word>, ReadWrite<PageRankSummary>, Word>(
          kernels::pagerank_largest, {"weights", "sources", "degrees", "summary", "nodes"}, {},
          {host(cpu::pagerank_largest, {.tile = Extent3(0)})});
  return kernel;
}

const auto& weigh_kernel() {
  static const auto nothing = [](Range, std::span<const float>, std::span<const Word>, std::span<Word>,
                                 Word) {};
  static const auto kernel = make_kernel<Read<float>, Read<Word>, ReadWrite<Word>, Word>(
      kernels::pagerank_weigh, {"weights", "sources", "degrees", "nodes"}, {},
      {host(nothing, {.tile = Extent3(0)})});
  return kernel;
}

const auto& fractions_kernel() {
  static const auto kernel = make_kernel<Read<float>, Read<Word>, Read<Word>, ReadWrite<float>, Word>(
      kernels::pagerank_fractions, {"weights", "sources", "degrees", "shares", "nodes"}, {},
      {host(cpu::pagerank_fractions, {.tile = Extent3(8192)})});
  return kernel;
}

const auto& preference_kernel() {
  static const auto kernel = make_kernel<Read<float>, ReadWrite<float>, Word>(
      kernels::pagerank_preference, {"preferences", "partials", "nodes"}, {},
      {host(cpu::pagerank_preference, {.tile = Extent3(8192)})});
  return kernel;
}

const auto& start_kernel() {
  static const auto kernel =
      make_kernel<Read<Word>, Write<float>, Write<float>, ReadWrite<float>, Word, Read<float>>(
          kernels::pagerank_start, {"degrees", "shares", "ranks", "partials", "nodes", "preferences"}, {},
          {host(cpu::pagerank_start, {.tile = Extent3(8192)})});
  return kernel;
}

/// The host needs no blocks: it adds up long rows directly.
const auto& blocks_kernel() {
  static const auto nothing = [](Range, std::span<const Word>, std::span<const Word>, std::span<const float>,
                                 std::span<float>, std::span<const PageRankSummary>, Word, Word) {};
  static const auto kernel =
      make_kernel<Read<Word>, Read<Word>, Read<float>, Write<float>, Read<PageRankSummary>, Word, Word>(
          kernels::pagerank_blocks, {"offsets", "sources", "shares", "blocks", "summary", "nodes", "turn"},
          {}, {host(nothing, {.tile = Extent3(0)})});
  return kernel;
}

const auto& pull_kernel() {
  static const auto kernel =
      make_kernel<Read<Word>, Read<Word>, ReadWrite<float>, Read<float>, ReadWrite<float>, ReadWrite<float>,
                  Read<PageRankSummary>, Word, Word, float>(
          kernels::pagerank_pull,
          {"offsets", "sources", "shares", "blocks", "ranks", "partials", "summary", "nodes", "turn",
           "damping"},
          {}, {host(cpu::pagerank_pull, {.tile = Extent3(2048)})});
  return kernel;
}

const auto& sum_kernel() {
  static const auto kernel = make_kernel<ReadWrite<float>, ReadWrite<PageRankSummary>, Word, Word, float>(
      kernels::pagerank_sum, {"partials", "summary", "groups", "counts", "tolerance"}, {},
      {host(cpu::pagerank_sum)});
  return kernel;
}

constexpr Word most_iterations = 1000;
constexpr Word nodes_per_group = 256;
constexpr Word links_per_block = 2048;

/// Returns the position of the first number that is negative, NaN or infinite. Reads only host
/// memory.
std::optional<std::size_t> first_unusable(const Read<float>& input) {
  const wye::detail::Operand& operand = input.operand();
  if (operand.kind != wye::detail::Operand::Kind::host) return std::nullopt;
  const auto* const values = static_cast<const float*>(operand.data);
  for (std::size_t i = 0; i < input.size(); ++i)
    if (!(values[i] >= 0) || !std::isfinite(values[i])) return i;
  return std::nullopt;
}

float value_at(const Read<float>& input, std::size_t i) {
  return static_cast<const float*>(input.operand().data)[i];
}

/// Returns the reason if these are not valid weights of links.
std::optional<std::string> no_weights(const Read<float>& weights, std::uint64_t links) {
  if (weights.size() != links)
    return "Weights (" + std::to_string(weights.size()) +
           " elements) of workload 'pagerank' differ in number from its links (" + std::to_string(links) +
           " elements).";
  if (const auto link = first_unusable(weights))
    return "Weight (" + std::to_string(value_at(weights, *link)) + " of link " + std::to_string(*link) +
           ") of workload 'pagerank' is not finite and at least 0.";
  return std::nullopt;
}

/// Returns the reason if these are not valid preferences of nodes. Reads only host memory.
std::optional<std::string> no_personalization(const Read<float>& preferences, std::uint64_t nodes) {
  const std::string name = "Personalization (";
  if (preferences.size() != nodes)
    return name + std::to_string(preferences.size()) +
           " elements) of workload 'pagerank' is not as long as its ranks (" + std::to_string(nodes) +
           " elements).";
  const wye::detail::Operand& operand = preferences.operand();
  if (operand.kind != wye::detail::Operand::Kind::host || nodes == 0) return std::nullopt;
  if (const auto node = first_unusable(preferences))
    return name + std::to_string(value_at(preferences, *node)) + " for node " + std::to_string(*node) +
           ") of workload 'pagerank' is not at least 0.";
  double sum = 0;
  for (std::size_t node = 0; node < nodes; ++node) sum += double{value_at(preferences, node)};
  if (!(sum >= std::numeric_limits<float>::min() && sum <= std::numeric_limits<float>::max()))
    return "Sum of the personalization (" + std::to_string(sum) +
           ") of workload 'pagerank' is not between 2^-126 and 2^128.";
  return std::nullopt;
}

Job refuse(std::string sentence) { return refused("pagerank", workload_types::graph, std::move(sentence)); }

}  // namespace

Job pagerank(Read<Word> offsets, Read<Word> sources, Write<float> ranks, Write<PageRankSummary> summary,
             PageRankOptions options) {
  if (offsets.size() != ranks.size() + 1)
    return refuse("Offsets (" + std::to_string(offsets.size()) +
                  " elements) of workload 'pagerank' must be one more than its ranks (" +
                  std::to_string(ranks.size()) + " elements).");
  if (summary.size() != 1)
    return refuse("Summary (" + std::to_string(summary.size()) +
                  " elements) of workload 'pagerank' must have one element.");
  if (ranks.size() >= largest_dimension)
    return refuse("Nodes (" + std::to_string(ranks.size()) + ") of workload 'pagerank' exceed the limit (" +
                  std::to_string(largest_dimension - 1) + ").");
  if (sources.size() > 0xffff'ffff)
    return refuse("Links (" + std::to_string(sources.size()) + ") of workload 'pagerank' exceed the limit (" +
                  std::to_string(0xffff'ffff) + ").");
  if (!(options.damping >= 0 && options.damping <= 1))
    return refuse("Damping (" + std::to_string(options.damping) +
                  ") of workload 'pagerank' is not between 0 and 1.");
  if (!(options.tolerance >= 0))
    return refuse("Tolerance (" + std::to_string(options.tolerance) +
                  ") of workload 'pagerank' is not at least 0.");
  if (options.iterations < 1 || options.iterations > most_iterations)
    return refuse("Iterations (" + std::to_string(options.iterations) +
                  ") of workload 'pagerank' are not between 1 and " + std::to_string(most_iterations) + ".");

  if (options.personalization)
    if (auto why = no_personalization(*options.personalization, ranks.size())) return refuse(*std::move(why));
  if (options.weights)
    if (auto why = no_weights(*options.weights, sources.size())) return refuse(*std::move(why));

  const bool weighted = options.weights.has_value();
  const bool personal = options.personalization.has_value();
  const auto nodes = static_cast<Word>(ranks.size());
  const Word groups = (nodes + nodes_per_group - 1) / nodes_per_group;
  const std::uint64_t long_blocks = sources.size() / links_per_block;
  const Scratch<Word> degrees((weighted ? 4 : 1) * std::uint64_t{nodes});
  const Scratch<float> shares((personal || weighted ? 5 : 4) * (std::uint64_t{nodes} + 1) +
                              (weighted ? sources.size() : 0));
  const Scratch<float> partials(2 * std::uint64_t{groups} + 2);
  const Scratch<float> blocks(std::max<std::uint64_t>(long_blocks, 1));

  Steps steps;
  steps.add(clear_kernel(), flat(std::max<Word>(nodes, 1)), degrees, summary, nodes);
  if (nodes > 0) {
    if (weighted) {
      steps.add(largest_kernel(), flat(sources.size()), *options.weights, sources, degrees, Memory(summary),
                nodes);
      steps.add(weigh_kernel(), flat(sources.size()), *options.weights, sources, degrees, nodes);
    } else {
      steps.add(count_kernel(), flat(sources.size()), sources, degrees, Memory(summary), nodes);
    }
    const Read<float> preferences =
        personal ? *options.personalization : Read<float>(std::span<const float>());
    if (personal) {
      steps.add(preference_kernel(), flat(nodes), preferences, partials, nodes);
      steps.add(sum_kernel(), Extent3(256), partials, Memory(summary), groups, 2u, options.tolerance);
    }
    steps.add(start_kernel(), flat(std::uint64_t{nodes} + 1), degrees, shares, ranks, partials, nodes,
              preferences);
    if (weighted)
      steps.add(fractions_kernel(), flat(sources.size()), *options.weights, sources, degrees, shares, nodes);
    steps.add(sum_kernel(), Extent3(256), partials, Memory(summary), groups, 0u, options.tolerance);
    for (Word i = 0; i < options.iterations; ++i) {
      const Word turn = i % 2;
      if (long_blocks > 1)
        steps.add(blocks_kernel(), flat(256 * long_blocks), offsets, sources, shares, blocks, Memory(summary),
                  nodes, turn);
      steps.add(pull_kernel(), flat(nodes), offsets, sources, shares, blocks, Memory(ranks), partials,
                Memory(summary), nodes, turn, options.damping);
      steps.add(sum_kernel(), Extent3(256), partials, Memory(summary), groups, 1u, options.tolerance);
    }
  }
  return std::move(steps).job("pagerank", workload_types::graph);
}

LinksTo links_to(std::span<const Word> offsets, std::span<const Word> targets) {
  return links_to(offsets, targets, {});
}

LinksTo links_to(std::span<const Word> offsets, std::span<const Word> targets,
                 std::span<const float> weights) {
  const std::size_t nodes = offsets.empty() ? 0 : offsets.size() - 1;
  const auto each_link = [&](auto f) {
    for (std::size_t node = 0; node < nodes; ++node)
      for (std::size_t i = offsets[node]; i < std::min<std::size_t>(offsets[node + 1], targets.size()); ++i)
        if (targets[i] < nodes) f(static_cast<Word>(node), targets[i], i);
  };
  LinksTo links;
  links.offsets.assign(nodes + 1, 0);
  each_link([&](Word, Word target, std::size_t) { ++links.offsets[target + 1]; });
  for (std::size_t node = 0; node < nodes; ++node) links.offsets[node + 1] += links.offsets[node];
  links.sources.resize(links.offsets[nodes]);
  std::vector<Word> next(links.offsets.begin(), links.offsets.end() - 1);
  if (!weights.empty()) links.weights.resize(links.offsets[nodes]);
  each_link([&](Word source, Word target, std::size_t i) {
    if (i < weights.size()) links.weights[next[target]] = weights[i];
    links.sources[next[target]++] = source;
  });
  return links;
}

}  // namespace wye::workloads
