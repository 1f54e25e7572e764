#include "legs.hpp"
#include "support/host_float.hpp"
#include "support/skip.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace wye::test {

Runtime& the_runtime() {
  static Runtime runtime = [] {
    limit_instructions();
    RuntimeOptions options = RuntimeOptions::from_environment().value();
    options.pool.lane_memory = Bytes{std::uint64_t{2} << 30};
    options.scheduler.job_time_limit = std::chrono::minutes(5);
    return Runtime::open(std::move(options)).value();
  }();
  return runtime;
}

const std::vector<std::string>& legs() {
  static const std::vector<std::string> legs = [] {
    std::vector<std::string> names;
    for (const Device& device : the_runtime().devices()) {
      const std::string& backend = device.info().backend;
      if (std::find(names.begin(), names.end(), backend) == names.end()) names.push_back(backend);
    }
    return names;
  }();
  return legs;
}

bool has_leg(std::string_view leg) {
  const bool has = std::find(legs().begin(), legs().end(), leg) != legs().end();
  if (!has) skip("there is no device of backend '" + std::string(leg) + "'");
  return has;
}

Outcome run(Job job, std::string_view leg) {
  static unsigned calls = 0;
  const auto [done, environment] = [&] {
    const HostFloat host(calls++);
    return std::pair(the_runtime().submit(std::move(job), {.fallback = Fallback::forbid, .on = leg}).wait(),
                     host.name());
  }();
  if (!done) FAIL(done.error().describe());
  UNSCOPED_INFO("the host's floating-point environment: " << environment);
  CHECK(done->backend() == leg);
  CHECK(done->reason().find("loops") == std::string::npos);  // Kernel::Options::has_short_loops
  return *done;
}

std::string refusal(const Job& job) { return job.error() ? job.error()->sentence() : "not refused"; }

std::vector<float> numbers(std::size_t count, std::uint32_t seed, float low, float high) {
  std::mt19937 random(seed);
  std::vector<float> result(count);
  for (float& number : result) number = low + (high - low) * (static_cast<float>(random() >> 8) * 0x1p-24f);
  return result;
}

std::vector<float> poisoned(std::size_t count) { return std::vector<float>(count, -54321.0f); }

std::string difference(std::span<const float> got, std::span<const double> exact, const Bound& bound) {
  if (got.size() != exact.size())
    return std::to_string(got.size()) + " numbers instead of " + std::to_string(exact.size());
  double worst = 1;
  std::string result;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(exact[i]) && std::isnan(got[i])) continue;
    if (double{got[i]} == exact[i]) continue;  // infinities, too
    const double excess = std::abs(double{got[i]} - exact[i]) / bound(i);
    if (excess <= worst) continue;
    worst = std::isnan(excess) ? std::numeric_limits<double>::infinity() : excess;
    result = std::to_string(got[i]) + " instead of " + std::to_string(exact[i]) + " at " + std::to_string(i) +
             ", " + std::to_string(excess) + " times its bound";
  }
  return result;
}

Bound relative(std::span<const double> exact, double share) {
  return [exact, share](std::size_t i) { return share * std::abs(exact[i]) + 1e-37; };
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

}  // namespace wye::test
