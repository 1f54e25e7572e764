#include "traces/policy.hpp"

#include <wye/wye.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <list>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace wye_bench {
namespace {

using Kernel = std::uint32_t;

/// Compiled, because host functions do not count against `CacheOptions::kernels`. Each number makes
/// another kernel of it.
constexpr const char* numbered = R"(#version 450
layout(local_size_x = 1) in;
layout(constant_id = 0) const uint number = 0;
layout(set = 0, binding = 0) buffer X { float x[]; };
void main() { x[0] = float(number); })";

/// `use(i, kernel)` says whether request `i` was found.
template <class Use>
Outcome replay(const Trace& trace, Use use) {
  Outcome outcome;
  for (std::size_t i = 0; i < trace.size(); ++i) {
    const bool hit = use(i, trace[i]);
    outcome.hits += hit;
    if (i >= trace.size() / 2) outcome.hits_after_start += hit;
  }
  return outcome;
}

/// Kernels, the one used last first.
class Recency {
 public:
  bool holds(Kernel kernel) const { return places_.contains(kernel); }
  std::size_t size() const { return order_.size(); }
  void use(Kernel kernel) {
    remove(kernel);
    order_.push_front(kernel);
    places_[kernel] = order_.begin();
  }
  void remove(Kernel kernel) {
    const auto found = places_.find(kernel);
    if (found == places_.end()) return;
    order_.erase(found->second);
    places_.erase(found);
  }
  Kernel take_last() {
    const Kernel last = order_.back();
    remove(last);
    return last;
  }

 private:
  std::list<Kernel> order_;
  std::unordered_map<Kernel, std::list<Kernel>::iterator> places_;
};

double percent(std::uint64_t hits, std::size_t requests) {
  return requests == 0 ? 0 : 100.0 * static_cast<double>(hits) / static_cast<double>(requests);
}

}  // namespace

double hit_rate(const Outcome& outcome, const Trace& trace) { return percent(outcome.hits, trace.size()); }

double hit_rate_after_start(const Outcome& outcome, const Trace& trace) {
  return percent(outcome.hits_after_start, trace.size() - trace.size() / 2);
}

Outcome in_cache(const Trace& trace, std::uint32_t room, wye::Eviction eviction) {
  auto pool = wye::ContextPool::open({.backends = {"null"}}).value();
  auto cache = wye::ShaderCache::open({.kernels = room, .eviction = eviction}).value();
  const wye::Device device = pool.devices()[0];
  static const wye::SpirV shader = wye::compile(wye::Glsl{.text = numbered}).value().spirv;
  std::unordered_map<Kernel, wye::Kernel<wye::ReadWrite<float>>> kernels;
  for (const Kernel kernel : trace)
    if (!kernels.contains(kernel))
      kernels.emplace(kernel,
                      wye::Kernel<wye::ReadWrite<float>>::make(
                          {.name = std::to_string(kernel),
                           .sources = {wye::SpirV{.words = shader.words, .constants = {{0, kernel}}}}})
                          .value());
  Outcome outcome;
  for (std::size_t i = 0; i < trace.size(); ++i) {
    if (i == trace.size() / 2) outcome.hits_after_start = cache.metrics().hits;
    cache.find_or_build(kernels.at(trace[i]), device).value();
  }
  outcome.hits = cache.metrics().hits;
  outcome.hits_after_start = outcome.hits - outcome.hits_after_start;
  return outcome;
}

Outcome in_fifo(const Trace& trace, std::uint32_t room) {
  Recency kept;
  return replay(trace, [&](std::size_t, Kernel kernel) {
    if (kept.holds(kernel)) return true;
    if (kept.size() == room) kept.take_last();
    kept.use(kernel);
    return false;
  });
}

Outcome in_lru(const Trace& trace, std::uint32_t room) {
  Recency kept;
  return replay(trace, [&](std::size_t, Kernel kernel) {
    const bool hit = kept.holds(kernel);
    if (!hit && kept.size() == room) kept.take_last();
    kept.use(kernel);
    return hit;
  });
}

Outcome in_slru(const Trace& trace, std::uint32_t room) {
  Recency once, again;
  return replay(trace, [&](std::size_t, Kernel kernel) {
    if (once.holds(kernel) || again.holds(kernel)) {
      once.remove(kernel);
      again.use(kernel);
      if (again.size() > room * 4 / 5) once.use(again.take_last());
      return true;
    }
    if (once.size() + again.size() == room) (once.size() != 0 ? once : again).take_last();
    once.use(kernel);
    return false;
  });
}

Outcome in_belady(const Trace& trace, std::uint32_t room) {
  constexpr std::size_t never = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> next(trace.size(), never);  // when what is asked for is asked for again
  std::unordered_map<Kernel, std::size_t> seen;
  for (std::size_t i = trace.size(); i-- > 0;) {
    if (const auto found = seen.find(trace[i]); found != seen.end()) next[i] = found->second;
    seen[trace[i]] = i;
  }
  std::set<std::pair<std::size_t, Kernel>> kept;  // the one needed last at the end
  return replay(trace, [&](std::size_t i, Kernel kernel) {
    const bool hit = kept.erase({i, kernel}) != 0;
    if (!hit && kept.size() == room) kept.erase(std::prev(kept.end()));
    kept.emplace(next[i], kernel);
    return hit;
  });
}

}  // namespace wye_bench
