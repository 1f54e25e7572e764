#pragma once
/// Integer square roots.
#include <cmath>
#include <cstdint>
#include <optional>

namespace wye::inline v0::workloads {

/// Returns the square root of a square number; nothing for others.
inline std::optional<std::uint64_t> square_root(std::uint64_t square) {
  auto root = static_cast<std::uint64_t>(std::sqrt(static_cast<long double>(square)));
  while (root > 0 && root > square / root) --root;
  while ((root + 1) <= square / (root + 1)) ++root;
  return root * root == square ? std::optional(root) : std::nullopt;
}

}  // namespace wye::workloads
