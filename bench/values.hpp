#pragma once
/// Numbers to compute with: zeros would be faster than others.
#include <cstddef>
#include <random>
#include <vector>

namespace wye_bench {

/// Returns numbers from -scale to scale, the same each time.
inline std::vector<float> values(std::size_t n, unsigned seed, float scale = 1) {
  std::mt19937 random(seed);
  std::vector<float> v(n);
  for (float& x : v) x = (static_cast<float>(random() >> 8) * 0x1p-23f - 1.0f) * scale;
  return v;
}

}  // namespace wye_bench
