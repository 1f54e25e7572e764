#include "per_target.hpp"

#include <algorithm>

#include "blocks.hpp"
#include "cpu.hpp"
#include "rotation.hpp"

HWY_BEFORE_NAMESPACE();
namespace wye::inline v0::workloads::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Rotates pairs (x[i], y[i]).
void rotate_halves(float* HWY_RESTRICT x, float* HWY_RESTRICT y, std::size_t n, const float* cosines,
                   const float* sines) {
  const hn::ScalableTag<float> d;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    const auto u = hn::LoadU(d, x + i), v = hn::LoadU(d, y + i);
    const auto c = hn::LoadU(d, cosines + i), s = hn::LoadU(d, sines + i);
    hn::StoreU(hn::Sub(hn::Mul(u, c), hn::Mul(v, s)), d, x + i);
    hn::StoreU(hn::Add(hn::Mul(u, s), hn::Mul(v, c)), d, y + i);
  }
  for (; i < n; ++i) {
    const float u = x[i], v = y[i];
    x[i] = u * cosines[i] - v * sines[i];
    y[i] = u * sines[i] + v * cosines[i];
  }
}

/// Rotates pairs (x[2 i], x[2 i + 1]).
void rotate_neighbours(float* HWY_RESTRICT x, std::size_t n, const float* cosines, const float* sines) {
  const hn::ScalableTag<float> d;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    hn::Vec<decltype(d)> u, v;
    hn::LoadInterleaved2(d, x + 2 * i, u, v);
    const auto c = hn::LoadU(d, cosines + i), s = hn::LoadU(d, sines + i);
    hn::StoreInterleaved2(hn::Sub(hn::Mul(u, c), hn::Mul(v, s)), hn::Add(hn::Mul(u, s), hn::Mul(v, c)), d,
                          x + 2 * i);
  }
  for (; i < n; ++i) {
    const float u = x[2 * i], v = x[2 * i + 1];
    x[2 * i] = u * cosines[i] - v * sines[i];
    x[2 * i + 1] = u * sines[i] + v * cosines[i];
  }
}

}  // namespace wye::workloads::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wye::inline v0::workloads::cpu {
namespace {

HWY_EXPORT(rotate_halves);
HWY_EXPORT(rotate_neighbours);

/// The pairs whose angles a call computes together.
constexpr std::uint32_t rotated_pairs = 256;

void rotate_pairs(float* x, float* y, std::size_t n, const float* cosines, const float* sines) {
  HWY_DYNAMIC_DISPATCH(rotate_halves)(x, y, n, cosines, sines);
}
template <class T>
void rotate_pairs(T* x, T* y, std::size_t n, const float* cosines, const float* sines) {
  float wide_x[rotated_pairs], wide_y[rotated_pairs];
  widen(x, 1, n, n, wide_x);
  widen(y, 1, n, n, wide_y);
  rotate_pairs(wide_x, wide_y, n, cosines, sines);
  narrow({wide_x, n}, x);
  narrow({wide_y, n}, y);
}

void rotate_adjacent(float* x, std::size_t n, const float* cosines, const float* sines) {
  HWY_DYNAMIC_DISPATCH(rotate_neighbours)(x, n, cosines, sines);
}
template <class T>
void rotate_adjacent(T* x, std::size_t n, const float* cosines, const float* sines) {
  float wide[2 * rotated_pairs];
  widen(x, 1, 2 * n, 2 * n, wide);
  rotate_adjacent(wide, n, cosines, sines);
  narrow({wide, 2 * n}, x);
}

}  // namespace

template <class T>
void rope(Range range, std::span<T> x, std::span<const std::uint32_t> positions,
          std::span<const float> factors, Rotation shape) {
  const Range items = below(range, shape.teams() << shape.lanes_log2);
  const std::uint64_t first_team = items.first >> shape.lanes_log2,
                      last_team = items.last >> shape.lanes_log2;
  std::uint64_t frequencies[rotated_pairs];
  float cosines[rotated_pairs], sines[rotated_pairs];
  for (std::uint32_t first = 0; first < shape.pairs(); first += rotated_pairs) {
    const std::uint32_t n = std::min(rotated_pairs, shape.pairs() - first);
    for (std::uint32_t i = 0; i < n; ++i) {
      std::uint64_t turns = frequency(first + i, shape.ratio());
      turns -= high_product(turns, shape.shrink_of(first + i));
      // Last, because factors below 1 may give whole turns, which are lost.
      frequencies[i] = factors.empty() ? turns : divided(turns, factors[first + i]);
    }
    std::uint64_t row_of_angles = ~std::uint64_t{0};
    for (std::uint64_t team = first_team; team < last_team; ++team) {
      const std::uint64_t row = team / shape.groups();
      if (row != row_of_angles) {
        row_of_angles = row;
        for (std::uint32_t i = 0; i < n; ++i) {
          const Turn turn = turn_by(frequencies[i] * positions[row]);
          cosines[i] = turn.cosine * shape.magnitude;
          sines[i] = turn.sine * shape.magnitude;
        }
      }
      const std::uint64_t first_head = team % shape.groups() * shape.team_heads;
      const std::uint64_t last_head = std::min<std::uint64_t>(first_head + shape.team_heads, shape.heads);
      for (std::uint64_t head = first_head; head < last_head; ++head) {
        T* const elements = x.data() + (row * shape.heads + head) * shape.head_size;
        if (shape.neighbours != 0)
          rotate_adjacent(elements + 2 * std::size_t{first}, n, cosines, sines);
        else
          rotate_pairs(elements + first, elements + shape.pairs() + first, n, cosines, sines);
      }
    }
  }
}
#define WYE_ROPE(T) \
  template void rope(Range, std::span<T>, std::span<const std::uint32_t>, std::span<const float>, Rotation);
WYE_ROPE(float)
WYE_ROPE(half)
WYE_ROPE(bfloat16)
#undef WYE_ROPE

}  // namespace wye::workloads::cpu
#endif
