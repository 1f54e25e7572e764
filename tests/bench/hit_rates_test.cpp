/// The cache's hit rates, on the traces of the benchmarks: those of its policies said as plainly as
/// they can be, never above the optimum, and the figures that are promised.
#include <bit>
#include <cstdlib>
#include <iterator>
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
  trace.resize(std::min<std::size_t>(trace.size(), 1'500));
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
    for (const std::uint32_t room : {3u, std::min(one.room, 60u)}) {
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

namespace {

struct Rates {
  std::string_view scene;
  double fifo, lru, slru, belady;
};
/// Of the second half of each trace, in percent. What wye can be told to do is lru or slru.
constexpr Rates after_start[] = {
    {"zipf_20", 59.6, 64.3, 69.8, 81.6},      {"zipf_85", 94.9, 96.2, 96.4, 99.1},
    {"sweeps_50", 53.7, 58.2, 67.1, 74.9},    {"moving_50", 77.1, 81.0, 81.4, 91.7},
    {"loop_20", 7.7, 10.9, 63.7, 76.7},       {"web_clients", 48.6, 52.7, 60.1, 69.0},
    {"workloads_20", 56.4, 55.8, 37.0, 73.5}, {"workloads_50", 94.5, 94.5, 65.2, 95.6},
    {"workloads_85", 97.2, 97.2, 96.7, 98.9},
};

}  // namespace

TEST_CASE("hit rates after the start", "[bench]") {
  CHECK(std::size(after_start) == scenes().size());
  for (const Rates& expected : after_start) {
    CAPTURE(expected.scene);
    const Scene& one = scene(expected.scene);
    const Trace trace = one.make();
    const auto rate = [&](auto policy) { return hit_rate_after_start(policy(trace, one.room), trace); };
    const auto about = [](double percent) { return Approx(percent).epsilon(0).margin(0.1); };
    CHECK(rate(in_fifo) == about(expected.fifo));
    CHECK(rate(in_lru) == about(expected.lru));
    CHECK(rate(in_slru) == about(expected.slru));
    CHECK(rate(in_belady) == about(expected.belady));
  }
}

TEST_CASE("with room for 85 % of its kernels a cache finds 95 % of the requests after the start", "[bench]") {
  for (const std::string_view name : {"zipf_85", "workloads_85"}) {
    const Scene& one = scene(name);
    const Trace trace = one.make();
    CHECK(hit_rate_after_start(in_lru(trace, one.room), trace) > 95);
    CHECK(hit_rate_after_start(in_slru(trace, one.room), trace) > 95);
  }
}
