#include "traces/trace.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <random>
#include <unordered_set>

namespace wye_bench {
namespace {

constexpr std::size_t length = 60'000;
constexpr std::uint32_t kernel_count = 3'000;

/// Ranks from 0, in proportion to 1 / (rank + 1)^exponent. Distributions of the standard library
/// differ from one to the other; this one is the same everywhere.
class Zipf {
 public:
  Zipf(std::uint32_t ranks, double exponent, unsigned seed) : random_(seed) {
    double sum = 0;
    for (std::uint32_t rank = 1; rank <= ranks; ++rank) {
      sum += std::pow(rank, -exponent);
      up_to_.push_back(sum);
    }
  }
  std::uint32_t operator()() {
    const double at = static_cast<double>(random_() >> 11) * 0x1p-53 * up_to_.back();
    const auto found = std::upper_bound(up_to_.begin(), up_to_.end() - 1, at);
    return static_cast<std::uint32_t>(found - up_to_.begin());
  }

 private:
  std::mt19937_64 random_;
  std::vector<double> up_to_;
};

Trace zipf(std::uint32_t ranks, double exponent) {
  Zipf next(ranks, exponent, 1);
  Trace trace(length);
  std::generate(trace.begin(), trace.end(), std::ref(next));
  return trace;
}

Trace popular() { return zipf(kernel_count, 0.9); }
Trace web_clients() { return zipf(46'830, 0.986); }

Trace sweeps() {
  constexpr std::size_t sweep = 150;
  Zipf next(kernel_count, 0.9, 2);
  std::uint32_t unused = kernel_count;
  Trace trace;
  while (trace.size() < length) {
    for (std::size_t i = 0; i < 4 * sweep; ++i) trace.push_back(next());
    for (std::size_t i = 0; i < sweep; ++i) trace.push_back(unused++);
  }
  return trace;
}

Trace moving() {
  constexpr std::uint32_t set = 1'500, requests_each = 20;
  Zipf next(set, 0.9, 3);
  std::mt19937 random(4);
  std::vector<std::uint32_t> by_rank(set);
  for (std::uint32_t i = 0; i < set; ++i) by_rank[i] = i;
  std::uint32_t unused = set;
  Trace trace;
  while (trace.size() < length) {
    by_rank[random() % set] = unused++;
    for (std::uint32_t i = 0; i < requests_each; ++i) trace.push_back(by_rank[next()]);
  }
  return trace;
}

Trace loop() {
  constexpr std::uint32_t around = kernel_count / 5 * 13 / 10;
  Zipf next(kernel_count, 0.9, 5);
  std::uint32_t step = 0;
  Trace trace;
  while (trace.size() < length) trace.push_back(trace.size() % 10 == 9 ? next() : step++ % around);
  return trace;
}

Trace workloads() {
  Trace trace;
  for (const char letter : recorded::requests) trace.push_back(static_cast<std::uint32_t>(letter - 'a'));
  return trace;
}

}  // namespace

const std::vector<Scene>& scenes() {
  static const std::vector<Scene> all = [] {
    const auto of_recorded = [](std::size_t percent) {
      return static_cast<std::uint32_t>(recorded::kernels.size() * percent / 100);
    };
    return std::vector<Scene>{
        {"zipf_20", popular, kernel_count / 5},       {"zipf_85", popular, kernel_count / 100 * 85},
        {"sweeps_50", sweeps, kernel_count / 2},      {"moving_50", moving, 750},
        {"loop_20", loop, kernel_count / 5},          {"web_clients", web_clients, 1'000},
        {"workloads_20", workloads, of_recorded(20)}, {"workloads_50", workloads, of_recorded(50)},
        {"workloads_85", workloads, of_recorded(85)},
    };
  }();
  return all;
}

std::size_t kernels_in(const Trace& trace) {
  return std::unordered_set<std::uint32_t>(trace.begin(), trace.end()).size();
}

}  // namespace wye_bench
