#pragma once
/// Shared by the tests of workloads: a runtime, its legs, random numbers, and the comparison with a
/// reference.
#include <wye/runtime/runtime.hpp>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/catch.hpp"

namespace wye::test {

inline constexpr float infinity = std::numeric_limits<float>::infinity();
inline constexpr float undefined = std::numeric_limits<float>::quiet_NaN();

/// One runtime for all tests.
Runtime& the_runtime();

/// Lets the CPU's workloads use no newer instructions than WYE_TEST_INSTRUCTIONS names: avx2, sse4
/// or scalar. Unset: all of this machine.
void limit_instructions();

/// The backends that can run workloads here.
const std::vector<std::string>& legs();

/// Returns whether the machine has `leg`. Reports a skip if not.
bool has_leg(std::string_view leg);

/// Runs `job` on `leg` and on no other device. Fails the test if the job fails. Each call has another
/// floating-point environment (HostFloat).
Outcome run(Job job, std::string_view leg);

/// The sentence of a job that is refused before it runs.
std::string refusal(const Job& job);

/// `count` numbers between `low` and `high`, the same for the same seed on every machine.
std::vector<float> numbers(std::size_t count, std::uint32_t seed, float low = -1.0f, float high = 1.0f);

/// Numbers that every job must overwrite.
std::vector<float> poisoned(std::size_t count);

/// Returns the numbers rounded to the type and converted back to float.
template <class T>
std::vector<T> of(const std::vector<float>& values) {
  std::vector<T> made;
  for (float value : values) made.push_back(T(value));
  return made;
}
template <class T>
std::vector<float> floats(const std::vector<T>& values) {
  std::vector<float> made;
  for (T value : values) made.push_back(static_cast<float>(value));
  return made;
}

/// Returns the absolute values.
template <class T>
std::vector<T> sizes_of(std::vector<T> values) {
  for (T& value : values) value = T(std::abs(static_cast<float>(value)));
  return values;
}

/// How far a number may be from the exact one at the same place.
using Bound = std::function<double(std::size_t place)>;

/// Returns "" if every number is within its bound of the exact number, or both are NaN. Otherwise
/// returns the worst place.
std::string difference(std::span<const float> got, std::span<const double> exact, const Bound& bound);

/// A bound that is a share of each exact number; below 1e-37 GPUs may flush numbers to zero.
Bound relative(std::span<const double> exact, double share);

/// Whether both hold the same bits.
bool same_bits(std::span<const float> a, std::span<const float> b);

}  // namespace wye::test
