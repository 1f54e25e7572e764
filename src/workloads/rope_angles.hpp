#pragma once
/// The frequencies of rotations in float64, for references.
#include <wye/workloads/rope.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace wye::inline v0::workloads {

/// Returns the angle of pair i of `rotated` elements for each position, in radians.
inline double rope_frequency(const RopeOptions& options, std::uint64_t rotated, std::uint64_t i) {
  const auto size = static_cast<double>(rotated), pair = static_cast<double>(i);
  double frequency = std::pow(options.base, -2.0 * pair / size);
  if (options.factors) frequency /= double{static_cast<const float*>(options.factors->operand().data)[i]};
  if (!options.yarn) return frequency * options.scale;
  const auto pair_that_turns = [&](double turns) {
    const double pi = 3.141592653589793;
    return size * std::log(static_cast<double>(options.yarn->original_context) / (2 * pi * turns)) /
           (2 * std::log(options.base));
  };
  const double low = std::max(0.0, std::floor(pair_that_turns(options.yarn->beta_fast))),
               high = std::min(size - 1, std::ceil(pair_that_turns(options.yarn->beta_slow)));
  const double ramp = 1 - std::clamp((pair - low) / std::max(1.0, high - low), 0.0, 1.0),
               share = options.yarn->mix * ramp;
  return frequency * (options.scale * (1 - share) + share);
}

/// Returns the factor of rotated elements.
inline double rope_magnitude(const RopeOptions& options) {
  const bool mixes = options.yarn && options.yarn->mix != 0;
  return options.magnitude * (mixes ? 1 + 0.1 * std::log(1 / options.scale) : 1);
}

}  // namespace wye::workloads
