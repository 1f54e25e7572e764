#include <wye/scheduler/graph.hpp>
#include <wye/workloads/force_layout.hpp>

#include <algorithm>
#include <cmath>

#include "workloads/vectors.hpp"

using namespace wye;
using namespace wye::test;
using workloads::ForceLayoutOptions;
using workloads::NetworkLinks;
namespace reference = wye::workloads::reference;

namespace {

struct Network {
  NetworkLinks links;
  std::vector<float> positions, state;
  std::size_t nodes() const { return positions.size() / 2; }
};

/// Random links between random nodes, with weights; positions and a state as of a layout that is
/// under way.
Network network(std::uint32_t nodes, std::uint32_t links, std::uint32_t seed, float width = 30) {
  std::mt19937 random(seed);
  std::vector<std::uint32_t> ends(nodes == 0 ? 0 : 2 * std::size_t{links});
  for (std::uint32_t& end : ends) end = static_cast<std::uint32_t>(random() % nodes);
  Network made{.links = workloads::network_links(nodes, ends, numbers(links, seed + 1, 0, 3)),
               .positions = numbers(2 * std::size_t{nodes}, seed + 2, -width, width),
               .state = numbers(workloads::force_layout_state_size(nodes), seed + 3, -100, 100)};
  made.state[2 * nodes] = 0.5f;
  return made;
}

ForceLayoutOptions with_weights(const Network& network, ForceLayoutOptions options = {}) {
  options.weights = network.links.weights;
  return options;
}

Network moved(Network network, const ForceLayoutOptions& options, const std::string& leg) {
  run(workloads::force_layout(network.links.offsets, network.links.targets, network.positions, network.state,
                              options),
      leg);
  return network;
}

reference::ForceLayout exactly(const Network& before, const ForceLayoutOptions& options) {
  return reference::force_layout(before.links.offsets, before.links.targets, before.positions, before.state,
                                 options);
}

bool is_force(float x) { return std::abs(x) <= 0x1p60f; }

/// Returns "" if the forces are within the documented bound, and if speed and positions follow from
/// these forces.
std::string difference_of_step(const Network& before, const Network& after, const ForceLayoutOptions& options,
                               const reference::ForceLayout& exact) {
  const std::size_t n = before.nodes();
  const std::string wrong =
      difference(std::span(after.state).first(2 * n), std::span(exact.state).first(2 * n),
                 [&](std::size_t i) { return 600 * 0x1p-24 * exact.sizes[i < n ? i : i - n] + 1e-30; });
  if (!wrong.empty()) return "forces: " + wrong;

  double swinging = 0, traction = 0;
  std::vector<double> swings(n);
  for (std::size_t i = 0; i < n; ++i) {
    const bool placed =
        std::abs(before.positions[2 * i]) <= 0x1p30f && std::abs(before.positions[2 * i + 1]) <= 0x1p30f;
    const bool counts = is_force(before.state[i]) && is_force(before.state[n + i]);
    const double old_x = counts ? double{before.state[i]} : 0.0,
                 old_y = counts ? double{before.state[n + i]} : 0.0;
    const double x = after.state[i], y = after.state[n + i];
    const double mass = placed ? 1.0 + before.links.offsets[i + 1] - before.links.offsets[i] : 0.0;
    swings[i] = std::hypot(x - old_x, y - old_y);
    swinging += mass * swings[i];
    traction += mass * std::hypot(x + old_x, y + old_y) / 2;
  }
  const double last = before.state[2 * n], speed = after.state[2 * n];
  const double most = last > 0 && last <= 0x1p20 ? std::min(1.5 * last, 0x1p20) : swinging > 0 ? 0x1p20 : 0;
  const std::vector<double> sums{
      swinging > 0 ? std::min(double{options.tolerance} * traction / swinging, most) : most, swinging,
      traction};
  const std::string of_sums = difference(std::span(after.state).subspan(2 * n), sums,
                                         [&](std::size_t i) { return 1e-4 * sums[i] + 1e-30; });
  if (!of_sums.empty()) return "speed, swinging, traction: " + of_sums;

  std::vector<double> positions(before.positions.begin(), before.positions.end());
  for (std::size_t i = 0; i < n; ++i) {
    const double size = std::hypot(after.state[i], after.state[n + i]);
    if (size == 0) continue;
    const double factor = std::min(0.1 * speed / (1 + speed * std::sqrt(swings[i])), 10 / size);
    positions[2 * i] += factor * double{after.state[i]};
    positions[2 * i + 1] += factor * double{after.state[n + i]};
  }
  // A difference of nearly equal forces has the error of the forces, which its root enlarges.
  const std::string of_positions = difference(after.positions, positions, [&](std::size_t i) {
    const double step = std::abs(positions[i] - double{before.positions[i]});
    return 0x1p-22 * std::abs(positions[i]) + 1e-4 * step + 1e-30;
  });
  return of_positions.empty() ? "" : "positions: " + of_positions;
}

void check_step(const Network& before, const ForceLayoutOptions& options, const std::string& leg) {
  CHECK(difference_of_step(before, moved(before, options, leg), options, exactly(before, options)) == "");
}

/// Figures of a whole layout: small changes of its beginning do not change them much.
struct Figures {
  double link = 0;  ///< the mean length of links
  double pair = 0;  ///< the mean distance of nodes
};
Figures figures(const Network& network) {
  const auto distance = [&](std::size_t i, std::size_t j) {
    return std::hypot(double{network.positions[2 * i]} - double{network.positions[2 * j]},
                      double{network.positions[2 * i + 1]} - double{network.positions[2 * j + 1]});
  };
  Figures sums;
  const std::size_t n = network.nodes();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < i; ++j) sums.pair += distance(i, j);
    for (std::uint32_t k = network.links.offsets[i]; k < network.links.offsets[i + 1]; ++k)
      sums.link += distance(i, network.links.targets[k]);
  }
  const auto nodes = static_cast<double>(n);
  return {sums.link / static_cast<double>(network.links.targets.size()),
          sums.pair / (nodes * (nodes - 1) / 2)};
}

/// Groups of 25 nodes with many links inside and few between them.
Network groups(std::uint32_t nodes) {
  std::vector<std::uint32_t> ends;
  std::mt19937 random(5);
  for (std::uint32_t i = 0; i < nodes; ++i)
    for (std::uint32_t k = 0; k < 4; ++k) {
      ends.push_back(i);
      ends.push_back(k < 3 ? i / 25 * 25 + static_cast<std::uint32_t>(random() % 25)
                           : static_cast<std::uint32_t>(random() % nodes) / 25 * 25);
    }
  for (std::uint32_t& end : ends) end = std::min(end, nodes - 1);
  return {.links = workloads::network_links(nodes, ends),
          .positions = workloads::force_layout_start(nodes),
          .state = std::vector<float>(workloads::force_layout_state_size(nodes))};
}

}  // namespace

TEST_CASE("force_layout takes one step within its bound for networks of any size",
          "[workloads][force_layout]") {
  for (const std::string& leg : legs())
    for (const std::uint32_t nodes :
         {1u, 2u, 3u, 15u, 16u, 17u, 31u, 33u, 63u, 64u, 65u, 255u, 256u, 257u, 700u}) {
      INFO(leg << ", " << nodes << " nodes");
      const Network made = network(nodes, 3 * nodes, nodes);
      check_step(made, {}, leg);
      check_step(made, with_weights(made, {.repulsion = 20, .gravity = 0.1f, .tolerance = 0.3f}), leg);
      check_step(made, {.repulsion = 0.01f, .gravity = 0.5f, .strong_gravity = true}, leg);
      check_step(network(nodes, 0, nodes + 1), {.repulsion = 0}, leg);
    }
}

TEST_CASE("force_layout takes one step within its bound for random networks", "[workloads][force_layout]") {
  std::mt19937 random(6);
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const auto nodes = static_cast<std::uint32_t>(1 + random() % (i % 50 == 0 ? 900 : 90));
    const auto seed = static_cast<std::uint32_t>(random());
    const auto links = static_cast<std::uint32_t>(random() % (5 * nodes));
    const float width = std::exp2(static_cast<float>(random() % 20) - 5.0f);
    const std::string& leg = legs()[random() % legs().size()];
    INFO(leg << ", " << nodes << " nodes, " << links << " links, width " << width << ", seed " << seed);
    const Network made = network(nodes, links, seed, width);
    const ForceLayoutOptions options{.repulsion = 0.1f * width, .strong_gravity = i % 3 == 0};
    check_step(made, i % 2 == 0 ? options : with_weights(made, options), leg);
  }
}

TEST_CASE("force_layout begins with zeros and continues from its state", "[workloads][force_layout]") {
  const Network made = groups(150);
  for (const std::string& leg : legs()) {
    INFO(leg);
    check_step(made, {}, leg);
    Network now = made;
    for (int i = 0; i < 30; ++i) {
      const Network next = moved(now, {}, leg);
      CHECK(difference_of_step(now, next, {}, exactly(now, {})) == "");
      now = next;
    }
    const Network at_once = moved(made, {.iterations = 30}, leg);
    CHECK(equal_bits(at_once.positions, now.positions));
    CHECK(equal_bits(at_once.state, now.state));
    CHECK(equal_bits(moved(made, {.iterations = 30}, leg).positions, at_once.positions));
  }
}

TEST_CASE("force_layout places linked nodes near each other on every device", "[workloads][force_layout]") {
  const Network made = groups(300);
  const Figures begin = figures(made);
  auto exact = exactly(made, {.iterations = 200});
  Network end = made;
  std::copy(exact.positions.begin(), exact.positions.end(), end.positions.begin());
  const Figures wanted = figures(end);
  CHECK(wanted.link / wanted.pair < 0.5 * begin.link / begin.pair);
  for (const std::string& leg : legs()) {
    INFO(leg);
    const Figures got = figures(moved(made, {.iterations = 200}, leg));
    CHECK(std::abs(got.link / wanted.link - 1) < 0.1);
    CHECK(std::abs(got.pair / wanted.pair - 1) < 0.1);
  }
}

TEST_CASE("force_layout ignores nodes without a usable position, and keeps it", "[workloads][force_layout]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    Network made = network(300, 1500, 7);
    const float bad[] = {undefined, infinity, -infinity, 0x1.1p30f, -3e38f};
    for (std::size_t i = 0; i < 50; ++i) made.positions[12 * i + i % 2] = bad[i % 5];
    for (std::size_t i = 0; i < 20; ++i) made.state[7 * i] = bad[i % 5];
    made.state[600] = undefined;
    const Network after = moved(made, {.iterations = 1}, leg);
    for (std::size_t i = 0; i < made.nodes(); ++i) {
      const bool kept = std::memcmp(&made.positions[2 * i], &after.positions[2 * i], 8) == 0;
      CHECK(kept == (i % 6 == 0 && i / 6 < 50));
      if (kept) {
        CHECK(after.state[i] == 0);
        CHECK(after.state[300 + i] == 0);
      }
    }
    // Without them, the others move alike.
    for (float& x : made.positions)
      if (!(std::abs(x) <= 0x1p30f)) x = undefined;
    check_step(made, {}, leg);
  }
}

TEST_CASE("force_layout separates nodes at one place", "[workloads][force_layout]") {
  for (const std::string& leg : legs())
    for (const float at : {0.0f, 3.25f}) {
      INFO(leg << ", at " << at);
      Network made = network(100, 300, 8);
      for (std::size_t i = 0; i < 80; ++i) made.positions[2 * i] = made.positions[2 * i + 1] = at;
      made.positions[161] = at;
      made.positions[160] = at + 0x1p-10f;  // near
      check_step(made, {}, leg);
      const Network after = moved(made, {.repulsion = 100, .iterations = 20}, leg);
      for (std::size_t i = 0; i < 100; ++i)
        for (std::size_t j = 0; j < i; ++j)
          CHECK((after.positions[2 * i] != after.positions[2 * j] ||
                 after.positions[2 * i + 1] != after.positions[2 * j + 1]));
    }
}

TEST_CASE("force_layout accepts links to missing nodes, many links of a node and invalid offsets",
          "[workloads][force_layout]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    Network made = network(200, 1000, 9);
    for (std::size_t i = 0; i < made.links.targets.size(); i += 5)
      made.links.targets[i] = i % 2 == 0 ? 200 : ~0u;
    check_step(made, with_weights(made), leg);

    // Of the first node, 65,536 links count.
    Network hub = network(50, 0, 10);
    hub.links.targets.resize(150'000);
    for (std::size_t i = 0; i < hub.links.targets.size(); ++i)
      hub.links.targets[i] = i < 65'536 ? static_cast<std::uint32_t>(i * 7 % 50) : 3;
    std::fill(hub.links.offsets.begin() + 1, hub.links.offsets.end(), 150'000u);
    Network counted = hub;
    std::fill(counted.links.offsets.begin() + 1, counted.links.offsets.end(), 65'536u);
    counted.links.targets.resize(65'536);
    check_step(counted, {}, leg);
    CHECK(equal_bits(moved(hub, {}, leg).state, moved(counted, {}, leg).state));

    // Host memory is checked, arrays are not.
    std::mt19937 random(11);
    auto offsets = made.links.offsets;
    for (std::uint32_t& offset : offsets) offset = static_cast<std::uint32_t>(random());
    for (const std::uint32_t limit : {~0u, 1500u}) {
      for (std::uint32_t& offset : offsets) offset %= limit;
      const Array<std::uint32_t> beyond = the_runtime().array(offsets);
      Network changed = made;
      run(workloads::force_layout(beyond, made.links.targets, changed.positions, changed.state), leg);
      for (const float x : changed.positions) CHECK(std::isfinite(x));
    }
    auto weights = made.links.weights;
    for (std::size_t i = 0; i < weights.size(); i += 3)
      weights[i] = i % 2 == 0 ? undefined : i % 4 == 1 ? -1.0f : infinity;
    const Array<float> unusable = the_runtime().array(weights);
    const Network with_unusable = moved(made, {.weights = unusable}, leg);
    for (float& weight : weights)
      if (!(weight >= 0 && std::isfinite(weight))) weight = 0;
    CHECK(equal_bits(with_unusable.positions, moved(made, {.weights = weights}, leg).positions));
  }
}

TEST_CASE("force_layout accepts no nodes, one node, and nodes without forces", "[workloads][force_layout]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    const Network none{.links = {.offsets = {0}, .targets = {}}, .positions = {}, .state = {7, 7, 7}};
    CHECK(moved(none, {}, leg).state[1] == 0);
    Network alone = network(1, 0, 12);
    check_step(alone, {}, leg);
    alone.positions = {0, 0};
    alone.state = {0, 0, 0, 0, 0};
    CHECK(equal_bits(moved(alone, {.iterations = 5}, leg).positions, alone.positions));
    CHECK(equal_bits(moved(alone, {.iterations = 5}, leg).state, alone.state));
  }
}

TEST_CASE("force_layout takes one step of 10,000 nodes within its bound",
          "[workloads][force_layout][large]") {
  const Network made = network(10'000, 30'000, 13, 500);
  const auto exact = exactly(made, {});
  for (const std::string& leg : legs()) {
    INFO(leg);
    CHECK(difference_of_step(made, moved(made, {}, leg), {}, exact) == "");
  }
}

TEST_CASE("network_links lists links at both nodes", "[workloads][force_layout]") {
  const auto links = workloads::network_links(4, std::vector<std::uint32_t>{2, 0, 1, 1, 0, 9, 3, 2},
                                              std::vector<float>{1, 2, 3, 4});
  CHECK(links.offsets == std::vector<std::uint32_t>{0, 1, 2, 4, 5});
  CHECK(links.targets == std::vector<std::uint32_t>{2, 1, 0, 3, 2});
  CHECK(links.weights == std::vector<float>{1, 2, 1, 4, 4});
  CHECK(workloads::network_links(0, {}).offsets == std::vector<std::uint32_t>{0});
}

TEST_CASE("force_layout refuses sizes and options out of range", "[workloads][force_layout]") {
  Network made = network(4, 6, 14);
  const auto& offsets = made.links.offsets;
  const auto& targets = made.links.targets;
  const std::string links = std::to_string(targets.size());
  const auto sentence_of = [&](std::span<float> positions, std::span<float> state,
                               ForceLayoutOptions options) {
    const Job job = workloads::force_layout(offsets, targets, positions, state, options);
    REQUIRE(job.error());
    CHECK(*job.error() == Errc::invalid_argument);
    return refusal(job);
  };
  const std::span<float> positions(made.positions), state(made.state);
  CHECK(sentence_of(positions.first(7), state, {}) ==
        "Positions (7 elements) of workload 'force_layout' are not two for each of its nodes (4).");
  CHECK(sentence_of(positions, state.first(10), {}) ==
        "State (10 elements) of workload 'force_layout' does not have 11 elements for its nodes (4).");
  CHECK(sentence_of(positions, state, {.repulsion = -1}) ==
        "Repulsion (-1.000000) of workload 'force_layout' is not finite and at least 0.");
  CHECK(sentence_of(positions, state, {.gravity = undefined}) ==
        "Gravity (nan) of workload 'force_layout' is not finite and at least 0.");
  CHECK(sentence_of(positions, state, {.tolerance = 0}) ==
        "Tolerance (0.000000) of workload 'force_layout' is not finite and above 0.");
  for (const std::uint32_t iterations : {0u, 1001u})
    CHECK(sentence_of(positions, state, {.iterations = iterations}) ==
          "Iterations (" + std::to_string(iterations) +
              ") of workload 'force_layout' are not between 1 and 1000.");
  auto weights = made.links.weights;
  weights[2] = infinity;
  CHECK(sentence_of(positions, state, {.weights = weights}) ==
        "Weight (inf of link 2) of workload 'force_layout' is not finite and at least 0.");
  weights.pop_back();
  CHECK(sentence_of(positions, state, {.weights = weights}) ==
        "Weights (" + std::to_string(weights.size()) +
            " elements) of workload 'force_layout' differ in number from its links (" + links +
            " elements).");
  made.links.offsets[4] -= 1;
  CHECK(sentence_of(positions, state, {}) ==
        "Last offset (" + std::to_string(offsets[4]) +
            ") of workload 'force_layout' is not the number of its links (" + links + ").");
  const std::vector<std::uint32_t> many(65'538), none;
  CHECK(refusal(workloads::force_layout(many, none, positions, state)) ==
        "Nodes (65537) of workload 'force_layout' exceed the limit (65536).");
  CHECK(refusal(workloads::force_layout(none, targets, positions, state)) ==
        "Offsets (0 elements) of workload 'force_layout' are empty.");
}

TEST_CASE("force_layout is a step of a graph", "[workloads][force_layout]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    const Network before = network(300, 900, 41);
    Network made = before;
    Graph graph;
    graph.add(workloads::force_layout(made.links.offsets, made.links.targets, made.positions, made.state,
                                      with_weights(made, {.iterations = 3})));
    auto plan = graph.compile(the_runtime(), {.on = leg});
    if (!plan) FAIL(plan.error().describe());
    const auto done = plan->run().wait();
    if (!done) FAIL(done.error().describe());
    CHECK(equal_bits(made.positions, moved(before, with_weights(before, {.iterations = 3}), leg).positions));
  }
}
