/// The cache's hit rates, on the traces of the benchmarks: those of its policies said as plainly as they can be, never
/// above the optimum, and the figures that are promised.
#include <bit>
#include <cstdlib>
#include <map>
#include <random>

#include "support/catch.hpp"
#include "traces/policy.hpp"

using namespace wye_bench;

namespace {

const Scene& scene(std::string_view name) {
  for (const Scene& one : scenes())
    if (one.name == name) return one;
  FAIL("no scene of this name");
  std::abort();
}

/// As many requests of `one` as fill a small cache many times.
Trace beginning(const Scene& one) {
  Trace trace = one.make();
  trace.resize(std::min<std::size_t>(trace.size(), 2'500));
  return trace;
}

/// The most hits that any choice of victims can lead to, found by trying all.
std::uint64_t most_hits(const Trace& trace, std::uint32_t room) {
  std::map<unsigned, std::uint64_t> most{{0, 0}};  // by the set of what is kept
  for (const std::uint32_t kernel : trace) {
    const unsigned bit = 1u << kernel;
    std::map<unsigned, std::uint64_t> then;
    const auto reach = [&](unsigned set, std::uint64_t hits) { then[set] = std::max(then[set], hits); };
    for (const auto& [set, hits] : most) {
      if (set & bit) {
        reach(set, hits + 1);
      } else if (static_cast<std::uint32_t>(std::popcount(set)) < room) {
        reach(set | bit, hits);
      } else {
        for (unsigned rest = set; rest != 0; rest &= rest - 1) reach((set & ~(rest & -rest)) | bit, hits);
      }
    }
    most = std::move(then);
  }
  std::uint64_t best = 0;
  for (const auto& [set, hits] : most) best = std::max(best, hits);
  return best;
}

}  // namespace

TEST_CASE("the cache finds what a plain lru and a plain slru find, on every trace", "[bench]") {
  for (const Scene& one : scenes()) {
    CAPTURE(one.name);
    const Trace trace = beginning(one);
    for (const std::uint32_t room : {3u, std::min(one.room, 100u)}) {
      CAPTURE(room);
      CHECK(in_cache(trace, room, wye::Eviction::lru) == in_lru(trace, room));
      CHECK(in_cache(trace, room, wye::Eviction::slru) == in_slru(trace, room));
    }
  }
}

TEST_CASE("Belady's choice is the best of all choices", "[bench]") {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    Trace trace(40);
    for (std::uint32_t& kernel : trace) kernel = static_cast<std::uint32_t>(random() % 7);
    for (std::uint32_t room = 1; room <= 5; ++room)
      CHECK(in_belady(trace, room).hits == most_hits(trace, room));
  }
}

TEST_CASE("no policy finds more than Belady's, and with room for all they are the same", "[bench]") {
  for (const Scene& one : scenes()) {
    CAPTURE(one.name);
    const Trace trace = one.make();
    const std::uint64_t bound = in_belady(trace, one.room).hits;
    for (const auto policy : {in_fifo, in_lru, in_slru}) CHECK(policy(trace, one.room).hits <= bound);
    const auto all = static_cast<std::uint32_t>(kernels_in(trace));
    for (const auto policy : {in_fifo, in_lru, in_slru, in_belady})
      CHECK(policy(trace, all).hits == trace.size() - all);
  }
}

TEST_CASE("a trace is the same each time it is made", "[bench]") {
  for (const Scene& one : scenes()) {
    CAPTURE(one.name);
    CHECK(one.make() == one.make());
    CHECK(one.room > 0);
    CHECK(one.room < kernels_in(one.make()));
  }
  CHECK(kernels_in(scene("workloads_50").make()) == recorded::kernels.size());
}
