#include <wye/workloads/pagerank.hpp>

#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "workloads/legs.hpp"

using namespace wye;
using namespace wye::test;
namespace reference = wye::workloads::reference;
using workloads::LinksTo;
using workloads::PageRankOptions;
using workloads::PageRankSummary;

namespace {

/// Between one and twice `average` links to each node, from anywhere; every seventh node links
/// nowhere.
LinksTo random_graph(std::uint32_t nodes, std::uint32_t average, std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::uint32_t end) { return static_cast<std::uint32_t>(random() % end); };
  LinksTo links;
  links.offsets.push_back(0);
  for (std::uint32_t node = 0; node < nodes; ++node) {
    for (std::uint32_t i = below(2 * average + 1); i > 0; --i) {
      const std::uint32_t source = below(nodes);
      if (source % 7 != 3) links.sources.push_back(source);
    }
    links.offsets.push_back(static_cast<std::uint32_t>(links.sources.size()));
  }
  return links;
}

/// Node 0 is linked to by all others; node 1 by node 0.
LinksTo star(std::uint32_t nodes) {
  LinksTo links;
  links.offsets.assign(nodes + 1, nodes);
  links.offsets[0] = 0;
  links.offsets[1] = nodes - 1;
  for (std::uint32_t node = 1; node < nodes; ++node) links.sources.push_back(node);
  links.sources.push_back(0);
  return links;
}

/// Nodes 1 to `nodes` - 1 link to node 0, which links to nothing.
LinksTo star_without_end(std::uint32_t nodes) {
  LinksTo links;
  links.offsets.assign(nodes + 1, nodes - 1);
  links.offsets[0] = 0;
  for (std::uint32_t node = 1; node < nodes; ++node) links.sources.push_back(node);
  return links;
}

/// A random graph in which every hundredth node or so is a hub. The number of links of hub i is
/// `largest` / (i + 1).
LinksTo graph_with_hubs(std::uint32_t nodes, std::uint32_t largest, std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::uint32_t end) { return static_cast<std::uint32_t>(random() % end); };
  LinksTo links;
  links.offsets.push_back(0);
  std::uint32_t hubs = 0;
  for (std::uint32_t node = 0; node < nodes; ++node) {
    const bool hub = node == nodes / 3 || below(100) == 0;
    for (std::uint32_t i = hub ? largest / ++hubs : below(4); i > 0; --i) {
      const std::uint32_t source = below(nodes);
      if (source % 5 != 3) links.sources.push_back(source);
    }
    links.offsets.push_back(static_cast<std::uint32_t>(links.sources.size()));
  }
  return links;
}

struct Ranked {
  std::vector<float> ranks;
  PageRankSummary summary{77, 77, 77, 77};
};

Ranked ranked(const LinksTo& links, PageRankOptions options, const std::string& leg) {
  Ranked result{poisoned(links.offsets.size() - 1)};
  run(workloads::pagerank(links.offsets, links.sources, result.ranks, std::span(&result.summary, 1), options),
      leg);
  return result;
}

/// The change of all ranks together that the header allows.
double distance(std::span<const float> ranks, std::span<const double> exact) {
  double sum = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) sum += std::abs(double{ranks[i]} - exact[i]);
  return ranks.size() == exact.size() ? sum : std::numeric_limits<double>::infinity();
}

void check(const LinksTo& links, PageRankOptions options, const std::string& leg) {
  const Ranked got = ranked(links, options, leg);
  PageRankOptions exactly = options;
  exactly.tolerance = 1e-9f;  // far below the bound
  exactly.iterations = 1000;
  const auto exact = reference::pagerank(links.offsets, links.sources, exactly);
  const double damping = options.damping;
  CHECK(got.summary.converged == 1);
  CHECK(got.summary.ignored_links == 0);
  CHECK(got.summary.residual <= options.tolerance);
  CHECK(distance(got.ranks, exact.ranks) <= 2 * double{options.tolerance} * damping / (1 - damping) + 1e-5);
  CHECK(std::accumulate(got.ranks.begin(), got.ranks.end(), 0.0) == Approx(1.0).epsilon(1e-5));
  const auto same = reference::pagerank(links.offsets, links.sources, options);
  CHECK(std::abs(static_cast<int>(got.summary.iterations) - static_cast<int>(same.iterations)) <= 1);
}

}  // namespace

TEST_CASE("PageRank ranks random graphs", "[workloads][pagerank]") {
  for (const std::string& leg : legs())
    for (std::uint32_t nodes : {2u, 3u, 10u, 255u, 256u, 257u, 1000u, 5000u}) {
      INFO(leg << ", " << nodes << " nodes");
      check(random_graph(nodes, 5, nodes), {}, leg);
    }
}

TEST_CASE("PageRank is right for a node with more links than one loop of a shader may do",
          "[workloads][pagerank][large]") {
  for (const std::string& leg : legs()) {
    if (leg == "cuda") continue;  // has no such limit
    INFO(leg);
    // Enough links that leaving out those beyond 65,535 moves a tenth of all rank.
    check(star(80000), {}, leg);
    LinksTo links = star(80000);
    // The long row begins inside a block, and another long one follows.
    links.offsets.assign(80001, 80000);
    links.offsets[0] = 0;
    links.offsets[1] = 5;
    links.offsets[2] = 40000;
    links.offsets[3] = 79999;
    check(links, {.damping = 0.5f}, leg);
  }
}

TEST_CASE("PageRank keeps its bound at nodes with thousands of links", "[workloads][pagerank]") {
  for (const std::string& leg : legs())
    for (const std::uint32_t nodes : {1001u, 3501u, 12001u}) {
      INFO(leg << ", " << nodes << " nodes");
      check(star(nodes), {}, leg);
      if (nodes == 1001) check(star(nodes), {.damping = 0.95f, .iterations = 1000}, leg);
    }
}

TEST_CASE("PageRank reaches a tolerance of 1e-7", "[workloads][pagerank]") {
  for (const std::string& leg : legs())
    for (const std::uint32_t nodes : {11u, 1001u, 5001u}) {
      INFO(leg << ", " << nodes << " nodes");
      check(star_without_end(nodes), {.tolerance = 1e-7f, .iterations = 1000}, leg);
      check(star(nodes), {.tolerance = 1e-7f, .iterations = 1000}, leg);
      check(random_graph(nodes, 5, nodes), {.tolerance = 1e-7f, .iterations = 1000}, leg);
    }
}

TEST_CASE("PageRank keeps its bound on random graphs with hubs of up to a million links",
          "[workloads][pagerank][large]") {
  for (const std::string& leg : legs())
    for (const std::uint32_t largest : {10'000u, 100'000u, 1'000'000u}) {
      if (leg == "cuda" && largest > 100'000) continue;  // takes 15 s on the stand-in
      INFO(leg << ", " << largest << " links to one node");
      check(graph_with_hubs(largest / 10, largest, largest), {}, leg);
    }
}

TEST_CASE("PageRank of graphs that are hardly any", "[workloads][pagerank]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    const Ranked empty = ranked({{0}, {}}, {}, leg);
    CHECK(empty.ranks.empty());
    CHECK(empty.summary.iterations == 0);
    CHECK(empty.summary.converged == 1);

    const Ranked one = ranked({{0, 0}, {}}, {}, leg);
    CHECK(one.ranks[0] == Approx(1.0));
    const Ranked itself = ranked({{0, 1}, {0}}, {}, leg);
    CHECK(itself.ranks[0] == Approx(1.0));
    const Ranked apart = ranked({{0, 0, 0, 0}, {}}, {}, leg);
    for (float rank : apart.ranks) CHECK(rank == Approx(1.0 / 3));
    CHECK(apart.summary.converged == 1);
  }
}

TEST_CASE("PageRank prefers nodes by their personalization", "[workloads][pagerank]") {
  for (const std::string& leg : legs())
    for (const std::uint32_t nodes : {1u, 2u, 257u, 1000u}) {
      INFO(leg << ", " << nodes << " nodes");
      const LinksTo links = random_graph(nodes, 5, nodes);
      const std::vector<float> any = numbers(nodes, 4, 0, 1e6f), alike(nodes, 0.3f);
      std::vector<float> one(nodes);
      one[nodes / 2] = 1e-30f;
      const std::vector<float>* const all[] = {&any, &one, &alike};
      for (const std::vector<float>* preferences : all) {
        check(links, {.personalization = *preferences}, leg);
        check(links, {.tolerance = 1e-7f, .iterations = 1000, .personalization = *preferences}, leg);
        check(star_without_end(nodes), {.personalization = *preferences}, leg);
      }
      const Ranked same = ranked(links, {.personalization = alike}, leg), plain = ranked(links, {}, leg);
      double apart = 0;
      for (std::size_t i = 0; i < nodes; ++i)
        apart += std::abs(double{same.ranks[i]} - double{plain.ranks[i]});
      CHECK(apart <= 1e-6);
    }
}

TEST_CASE("PageRank counts preferences in arrays that cannot be meant as 0", "[workloads][pagerank]") {
  const LinksTo links = random_graph(300, 4, 21);
  std::vector<float> good = numbers(300, 22, 0, 1), bad = good;
  good[0] = good[7] = good[299] = 0;
  bad[0] = undefined, bad[7] = -3, bad[299] = infinity;
  for (const std::string& leg : legs()) {
    INFO(leg);
    const Array<float> given = the_runtime().array(bad),
                       nothing = the_runtime().array(std::vector<float>(300));
    CHECK(same_bits(ranked(links, {.personalization = given}, leg).ranks,
                    ranked(links, {.personalization = good}, leg).ranks));
    CHECK(distance(ranked(links, {.personalization = nothing}, leg).ranks,
                   reference::pagerank(links.offsets, links.sources).ranks) < 1e-5);
  }
}

TEST_CASE("PageRank divides the rank of a node among its links by their weights", "[workloads][pagerank]") {
  for (const std::string& leg : legs())
    for (const std::uint32_t nodes : {1u, 2u, 3u, 257u, 1000u, 5000u}) {
      INFO(leg << ", " << nodes << " nodes");
      const LinksTo links = random_graph(nodes, 5, nodes);
      std::vector<float> weights = numbers(links.sources.size(), 41, 0, 1e3f);
      check(links, {.weights = weights}, leg);
      check(links, {.damping = 0.95f, .tolerance = 1e-7f, .iterations = 1000, .weights = weights}, leg);
      // Some nodes give all to few links, and some have no link with a weight.
      for (std::size_t i = 0; i < weights.size(); ++i)
        if (links.sources[i] % 5 == 1 || i % 3 == 0) weights[i] = 0;
      check(links, {.weights = weights}, leg);
      const std::vector<float> preferences = numbers(nodes, 42, 0, 1);
      check(links, {.personalization = preferences, .weights = weights}, leg);
      const std::vector<float> none(weights.size());
      check(links, {.weights = none}, leg);
    }
}

TEST_CASE("PageRank by weights of any size keeps its bound", "[workloads][pagerank]") {
  const LinksTo links = random_graph(600, 6, 43);
  const std::vector<float> mantissas = numbers(links.sources.size(), 44, 1, 2),
                           exponents = numbers(links.sources.size(), 45, 0, 1);
  const auto weights = [&](int least, int most) {
    std::vector<float> made;
    for (std::size_t i = 0; i < mantissas.size(); ++i)
      made.push_back(std::ldexp(mantissas[i],
                                least + static_cast<int>(static_cast<float>(most - least) * exponents[i])));
    return made;
  };
  for (const std::string& leg : legs())
    // Denormal numbers, sums above 2^128, all that float32 holds, and some orders of magnitude.
    for (const auto& [least, most] : {std::pair{-148, -140}, {126, 127}, {-149, 127}, {-20, 20}, {-40, 0}}) {
      INFO(leg << ", 2^" << least << " to 2^" << most);
      const std::vector<float> some = weights(least, most);
      check(links, {.weights = some}, leg);
    }
}

TEST_CASE("PageRank by weights is right for nodes that many links enter or leave",
          "[workloads][pagerank][large]") {
  // Node 0 is linked to by all, and links to all.
  constexpr std::uint32_t nodes = 80000;
  LinksTo links;
  links.offsets = {0};
  for (std::uint32_t node = 0; node < nodes; ++node) {
    if (node == 0)
      for (std::uint32_t source = 1; source < nodes; ++source) links.sources.push_back(source);
    else
      links.sources.push_back(0);
    if (node % 3 == 1) links.sources.push_back(node - 1);
    links.offsets.push_back(static_cast<std::uint32_t>(links.sources.size()));
  }
  std::vector<float> weights = numbers(links.sources.size(), 46, 0, 1);
  for (const std::string& leg : legs()) {
    INFO(leg);
    check(links, {.weights = weights}, leg);
    // One weight is as much as all others together, which are lost if each is rounded to it.
    std::vector<float> one(weights.size(), 1e-9f);
    one[nodes + 7] = 8e-5f;
    check(links, {.weights = one}, leg);
  }
}

TEST_CASE("PageRank by weights loses none of a million small ones beside a large one",
          "[workloads][pagerank][large]") {
  // Node 0 links to the others, to each by many links; they link to node 0.
  constexpr std::uint32_t nodes = 1000, each = 1050;
  LinksTo links;
  links.offsets = {0};
  for (std::uint32_t node = 0; node < nodes; ++node) {
    for (std::uint32_t i = 1; i < nodes && node == 0; ++i) links.sources.push_back(i);
    if (node > 0) links.sources.insert(links.sources.end(), each, 0u);
    links.offsets.push_back(static_cast<std::uint32_t>(links.sources.size()));
  }
  // Half of the sum, of which a 2048th is lost if it is rounded to 2^-31 of the large weight.
  std::vector<float> weights(links.sources.size(), 0x1p-20f * (1 + 0x1p-11f - 0x1p-20f));
  weights[nodes] = 1;
  for (const std::string& leg : legs()) {
    INFO(leg);
    check(links, {.weights = weights}, leg);
  }
}

TEST_CASE("PageRank by equal weights is PageRank without them", "[workloads][pagerank]") {
  for (const std::string& leg : legs())
    for (const float weight : {1.0f, 0.3f, 1e-42f, 3e38f}) {
      INFO(leg << ", " << weight);
      const LinksTo links = random_graph(3000, 5, 47);
      const std::vector<float> weights(links.sources.size(), weight);
      const Ranked alike = ranked(links, {.weights = weights}, leg), plain = ranked(links, {}, leg);
      double apart = 0;
      for (std::size_t i = 0; i < plain.ranks.size(); ++i)
        apart += std::abs(double{alike.ranks[i]} - double{plain.ranks[i]});
      CHECK(apart <= 2e-6);
    }
}

TEST_CASE("PageRank by weights gives the same bits again", "[workloads][pagerank]") {
  const LinksTo links = random_graph(5000, 6, 48);
  const std::vector<float> weights = numbers(links.sources.size(), 49, 0, 1e-3f);
  for (const std::string& leg : legs()) {
    INFO(leg);
    const PageRankOptions options{.iterations = 30, .weights = weights};
    CHECK(same_bits(ranked(links, options, leg).ranks, ranked(links, options, leg).ranks));
  }
}

TEST_CASE("PageRank counts weights in arrays that cannot be meant as 0", "[workloads][pagerank]") {
  LinksTo links = random_graph(300, 4, 50);
  links.sources[5] = 300;
  std::vector<float> good = numbers(links.sources.size(), 51, 0, 1), bad = good;
  good[0] = good[7] = good[8] = 0;
  bad[0] = undefined, bad[7] = -3, bad[8] = infinity, bad[5] = undefined;
  for (const std::string& leg : legs()) {
    INFO(leg);
    const Array<float> given = the_runtime().array(bad);
    const Ranked got = ranked(links, {.weights = given}, leg);
    CHECK(got.summary.ignored_links == 1);
    CHECK(same_bits(got.ranks, ranked(links, {.weights = good}, leg).ranks));
    CHECK(distance(got.ranks, reference::pagerank(links.offsets, links.sources, {.weights = good}).ranks) <
          1e-5);
  }
}

TEST_CASE("PageRank by weights reads nothing outside a graph with invalid offsets", "[workloads][pagerank]") {
  LinksTo links = random_graph(300, 40, 52);
  std::mt19937 random(53);
  for (std::uint32_t& offset : links.offsets) offset = static_cast<std::uint32_t>(random());
  const std::vector<float> weights(links.sources.size(), 0.5f);
  for (const std::string& leg : legs()) {
    INFO(leg);
    CHECK(ranked(links, {.iterations = 5, .weights = weights}, leg).summary.iterations <= 5);
  }
}

TEST_CASE("PageRank stops at its tolerance or its iterations, and the summary has the cause",
          "[workloads][pagerank]") {
  const LinksTo links = random_graph(2000, 4, 9);
  for (const std::string& leg : legs()) {
    INFO(leg);
    const Ranked few = ranked(links, {.tolerance = 0, .iterations = 3}, leg);
    CHECK(few.summary.iterations == 3);
    CHECK(few.summary.converged == 0);
    CHECK(few.summary.residual > 0);
    const auto exact = reference::pagerank(links.offsets, links.sources, {.tolerance = 0, .iterations = 3});
    CHECK(distance(few.ranks, exact.ranks) < 1e-5);
    CHECK(few.summary.residual == Approx(exact.residual).epsilon(1e-3));

    // No work is done after convergence: with more allowed iterations the bits are the same.
    const Ranked enough = ranked(links, {.tolerance = 1e-4f, .iterations = 30}, leg);
    const Ranked more = ranked(links, {.tolerance = 1e-4f, .iterations = 101}, leg);
    CHECK(enough.summary.converged == 1);
    CHECK(enough.summary.iterations < 30);
    CHECK(more.summary.iterations == enough.summary.iterations);
    CHECK(same_bits(enough.ranks, more.ranks));
  }
}

TEST_CASE("PageRank counts links from nodes that do not exist, and ignores them", "[workloads][pagerank]") {
  LinksTo links = random_graph(500, 4, 11);
  const LinksTo good = links;
  // Two more links to the last node, from nowhere.
  links.sources.push_back(500);
  links.sources.push_back(0xffff'ffff);
  links.offsets.back() += 2;
  for (const std::string& leg : legs()) {
    INFO(leg);
    const Ranked got = ranked(links, {}, leg);
    CHECK(got.summary.ignored_links == 2);
    CHECK(distance(got.ranks, reference::pagerank(good.offsets, good.sources).ranks) < 1e-5);
  }
}

TEST_CASE("PageRank reads nothing outside a graph with invalid offsets", "[workloads][pagerank]") {
  LinksTo links = random_graph(300, 4, 12);
  std::mt19937 random(13);
  for (std::uint32_t& offset : links.offsets) offset = static_cast<std::uint32_t>(random());
  for (const std::string& leg : legs()) {
    INFO(leg);
    const Ranked got = ranked(links, {.iterations = 5}, leg);
    CHECK(got.summary.iterations <= 5);
  }
}

TEST_CASE("PageRank gives the same bits again", "[workloads][pagerank]") {
  const LinksTo links = random_graph(5000, 6, 14);
  for (const std::string& leg : legs()) {
    INFO(leg);
    const PageRankOptions options{.iterations = 30};
    CHECK(same_bits(ranked(links, options, leg).ranks, ranked(links, options, leg).ranks));
  }
}

TEST_CASE("PageRank refuses invalid arguments", "[workloads][pagerank]") {
  const LinksTo links = random_graph(10, 2, 15);
  std::vector<float> ranks(10), few(9);
  std::vector<PageRankSummary> summary(1), two(2);
  const auto job = [&](PageRankOptions options) {
    return workloads::pagerank(links.offsets, links.sources, ranks, summary, options);
  };
  CHECK(refusal(workloads::pagerank(links.offsets, links.sources, few, summary)) ==
        "Offsets (11 elements) of workload 'pagerank' must be one more than its ranks (9 elements).");
  CHECK(refusal(workloads::pagerank(links.offsets, links.sources, ranks, two)) ==
        "Summary (2 elements) of workload 'pagerank' must have one element.");
  CHECK(refusal(job({.damping = 1.5f})) ==
        "Damping (1.500000) of workload 'pagerank' is not between 0 and 1.");
  CHECK(refusal(job({.damping = NAN})).find("Damping (nan)") == 0);
  CHECK(refusal(job({.tolerance = -1})) == "Tolerance (-1.000000) of workload 'pagerank' is not at least 0.");
  CHECK(refusal(job({.iterations = 0})) ==
        "Iterations (0) of workload 'pagerank' are not between 1 and 1000.");
  CHECK(refusal(job({.iterations = 1001})) ==
        "Iterations (1001) of workload 'pagerank' are not between 1 and 1000.");
  const std::vector<float> negative{0, 0, 0, -1, 0, 0, 0, 0, 0, 2}, unknown(10, undefined), none(10),
      huge(10, 3e38f);
  CHECK(refusal(job({.personalization = few})) ==
        "Personalization (9 elements) of workload 'pagerank' is not as long as its ranks (10 elements).");
  CHECK(refusal(job({.personalization = negative})) ==
        "Personalization (-1.000000 for node 3) of workload 'pagerank' is not at least 0.");
  CHECK(refusal(job({.personalization = unknown})).find("Personalization (nan for node 0)") == 0);
  CHECK(refusal(job({.personalization = none})) ==
        "Sum of the personalization (0.000000) of workload 'pagerank' is not between 2^-126 and 2^128.");
  CHECK(refusal(job({.personalization = huge})).find("Sum of the personalization (3") == 0);

  const std::size_t count = links.sources.size();
  REQUIRE(count > 4);
  const std::vector<float> too_few(count - 1, 1.0f);
  CHECK(refusal(job({.weights = too_few})) ==
        "Weights (" + std::to_string(count - 1) +
            " elements) of workload 'pagerank' differ in number from its links (" + std::to_string(count) +
            " elements).");
  std::vector<float> weights(count, 1.0f);
  weights[4] = -2;
  CHECK(refusal(job({.weights = weights})) ==
        "Weight (-2.000000 of link 4) of workload 'pagerank' is not finite and at least 0.");
  weights[3] = undefined;
  CHECK(refusal(job({.weights = weights})).find("Weight (nan of link 3)") == 0);
  weights[2] = infinity;
  CHECK(refusal(job({.weights = weights})).find("Weight (inf of link 2)") == 0);
}

TEST_CASE("links turned around lead to the same nodes", "[workloads][pagerank]") {
  // 0 -> 1, 0 -> 2, 2 -> 1, 2 -> 1, 2 -> 9 (which is not there)
  const std::vector<std::uint32_t> offsets{0, 2, 2, 5}, targets{1, 2, 1, 1, 9};
  const LinksTo links = workloads::links_to(offsets, targets);
  CHECK(links.offsets == std::vector<std::uint32_t>{0, 0, 3, 4});
  CHECK(links.sources == std::vector<std::uint32_t>{0, 2, 2, 0});
  CHECK(links.weights.empty());
  const std::vector<float> weights{1, 2, 3, 4, 5};
  const LinksTo weighted = workloads::links_to(offsets, targets, weights);
  CHECK(weighted.sources == links.sources);
  CHECK(weighted.weights == std::vector<float>{1, 3, 4, 2});
  CHECK(workloads::links_to(offsets, targets, std::span(weights).first(3)).weights ==
        std::vector<float>{1, 3, 0, 2});
  CHECK(workloads::links_to({}, {}).offsets == std::vector<std::uint32_t>{0});
}
