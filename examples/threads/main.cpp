// Simulates 1,000 threads that fork, and draws the forks: each chain is a line from its first value
// to its last one.
#include <wye/workloads/thread_simulation.hpp>
#include <wye/wye.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "canvas.hpp"
#include "files.hpp"

namespace {

namespace workloads = wye::workloads;
using workloads::SimulatedThread;
using workloads::ThreadDepth;
using workloads::ThreadEnd;
using workloads::ThreadSummary;

constexpr std::size_t thread_count = 1000;
constexpr workloads::ThreadSimulationOptions options{.max_depth = 10, .batch = 256};

/// Returns the values of a chain, from its first thread to its last one.
std::vector<std::uint64_t> values_of(std::uint64_t value, std::uint32_t depth) {
  std::vector<std::uint64_t> values{value};
  for (std::uint32_t i = 0; i < depth; ++i) {
    value = value % 2 == 0 ? value / 2 : 3 * value + 1;
    values.push_back(value);
  }
  return values;
}

std::string picture_of(const std::vector<SimulatedThread>& last, const std::vector<ThreadDepth>& depths,
                       const ThreadSummary& summary) {
  using namespace document_network;  // NOLINT: the names of its page
  constexpr double left = 110, right = 1500, top = 170, bottom = 860;
  Canvas page(1600, 1000);
  page.headline("Threads that fork", std::to_string(last.size()) + " chains, " +
                                         std::to_string(summary.forks) + " forks, the deepest at depth " +
                                         std::to_string(summary.deepest));

  std::vector<std::vector<std::uint64_t>> chains;
  std::uint64_t largest = 2;
  for (std::size_t i = 0; i < last.size(); ++i) {
    chains.push_back(values_of(i, last[i].depth));
    largest = std::max(largest, *std::max_element(chains.back().begin(), chains.back().end()));
  }
  const double most = std::log2(static_cast<double>(largest) + 1);
  const auto at = [&](std::size_t depth, std::uint64_t value) {
    return Point{left + (right - left) * static_cast<double>(depth) / std::max(options.max_depth, 1u),
                 bottom - (bottom - top) * std::log2(static_cast<double>(value) + 1) / most};
  };
  for (std::size_t i = 0; i < chains.size(); ++i) {
    const Color color = viridis(static_cast<double>(i) / static_cast<double>(chains.size())).fade(0.25);
    for (std::size_t depth = 1; depth < chains[i].size(); ++depth)
      page.line(at(depth - 1, chains[i][depth - 1]), at(depth, chains[i][depth]), color);
    if (last[i].end != ThreadEnd::max_depth) page.disc(at(last[i].depth, last[i].value), 3, kind_color(1));
  }
  const Style small{.size = 15, .color = colors::quiet, .align = 0.5};
  for (std::uint32_t depth = 0; depth < depths.size(); ++depth) {
    const double x = at(depth, 0).x;
    page.write({x, bottom + 30}, "depth " + std::to_string(depth), small);
    page.write({x, bottom + 52}, std::to_string(depths[depth].chains) + " end", small);
  }
  page.footnote(
      "Height: the logarithm of the value. Colour: the first value. Discs: chains that end before the last "
      "depth.");
  return page.png();
}

int fail(const std::string& sentence) {
  std::fprintf(stderr, "threads: %s\n", sentence.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "threads.png";
  auto runtime = wye::Runtime::open();
  if (!runtime) return fail(runtime.error().describe());

  std::vector<SimulatedThread> last(thread_count);
  std::vector<ThreadDepth> depths(options.max_depth + 1);
  ThreadSummary summary;
  auto done = runtime->run(workloads::thread_simulation(last, depths, std::span(&summary, 1), options));
  if (!done) return fail(done.error().describe());
  for (std::uint32_t depth = 0; depth < depths.size(); ++depth)
    std::printf("depth %2u: %4u chains end\n", depth, depths[depth].chains);
  std::printf("%llu forks; the deepest chain is that of thread %u, at depth %u\n",
              static_cast<unsigned long long>(summary.forks), summary.thread, summary.deepest);

  const std::string picture = picture_of(last, depths, summary);
  if (picture.empty()) return fail("There is no memory for the picture.");
  if (auto wrong = document_network::write_all({{path, picture}})) return fail(*wrong);
  std::printf("written to %s\n", path.c_str());
  return 0;
}
