#include "per_target.hpp"

#include <wye/workloads/force_layout.hpp>

#include <algorithm>
#include <cmath>

#include "cpu.hpp"
#include "partials.hpp"

HWY_BEFORE_NAMESPACE();
namespace wye::inline v0::workloads::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The sums of nodes over all others. The lanes of two vectors are the nodes, so the order of the
/// additions of a node does not depend on the vector's length. Two quotients have one division,
/// because positions are below 2^30.
class PairForces {
 public:
  using D = hn::CappedTag<float, layout_tile / 2>;
  using V = hn::Vec<D>;
  static std::size_t width() { return 2 * hn::Lanes(D()); }

  /// The nodes are those from `first` on; beyond the last, there are bodies far away.
  PairForces(const LayoutBodies& bodies, std::size_t first) : bodies_(bodies), first_(first) {
    const std::size_t lanes = hn::Lanes(d_), n = bodies.nodes;
    if (first + 2 * lanes <= n) {
      load(bodies.x + first, bodies.y + first);
      return;
    }
    float x[layout_tile], y[layout_tile];
    for (std::size_t i = 0; i < 2 * lanes; ++i) {
      x[i] = first + i < n ? bodies.x[first + i] : 0x1p30f;
      y[i] = first + i < n ? bodies.y[first + i] : 0x1p30f;
    }
    load(x, y);
  }

  /// Sets the sums of m d / d^2 over all others, d the vector from the other to the node.
  void compute(float* x, float* y) {
    const std::size_t n = bodies_.nodes, last = std::min(first_ + width(), n);
    nearest_ = hn::Set(d_, 1.0f);
    clear();
    add<false>(0, first_);
    add<true>(first_, last);
    add<false>(last, n);
    if (!hn::AllFalse(d_, hn::Lt(nearest_, hn::Set(d_, near_square)))) {
      clear();
      add<true>(0, first_);
      add<true>(first_, last);
      add<true>(last, n);
    }
    const std::size_t lanes = hn::Lanes(d_);
    hn::StoreU(x0_, d_, x);
    hn::StoreU(x1_, d_, x + lanes);
    hn::StoreU(y0_, d_, y);
    hn::StoreU(y1_, d_, y + lanes);
  }

 private:
  static constexpr float near_distance = 0x1p-7f, near_square = 0x1p-14f, same_square = 0x1p-40f;

  void load(const float* x, const float* y) {
    const std::size_t lanes = hn::Lanes(d_);
    at_x0_ = hn::LoadU(d_, x);
    at_x1_ = hn::LoadU(d_, x + lanes);
    at_y0_ = hn::LoadU(d_, y);
    at_y1_ = hn::LoadU(d_, y + lanes);
  }
  void clear() { x0_ = x1_ = y0_ = y1_ = hn::Zero(d_); }

  /// Separates nodes at the same place. `number` is that of the first lane's node.
  HWY_INLINE void separate(std::size_t number, std::size_t other, V& x, V& square) const {
    const V apart = hn::Sub(hn::Iota(d_, static_cast<float>(number)), hn::Set(d_, static_cast<float>(other)));
    const V side =
        hn::IfThenElseZero(hn::Ne(apart, hn::Zero(d_)), hn::CopySign(hn::Set(d_, near_distance), apart));
    x = hn::IfThenElse(hn::Lt(square, hn::Set(d_, same_square)), side, x);
    square = hn::Max(square, hn::Set(d_, near_square));
  }

  /// Adds the nodes [first, last) in blocks, which bounds the rounding error. Without `careful`,
  /// none may be near.
  template <bool careful>
  HWY_INLINE void add(std::size_t first, std::size_t last) {
    const V at_x0 = at_x0_, at_x1 = at_x1_, at_y0 = at_y0_, at_y1 = at_y1_;
    V nearest = nearest_;
    for (std::size_t begin = first; begin < last; begin += 256) {
      const std::size_t end = std::min(begin + 256, last);
      V x0 = hn::Zero(d_), y0 = x0, x1 = x0, y1 = x0;
      for (std::size_t j = begin; j < end; ++j) {
        const V x = hn::Set(d_, bodies_.x[j]), y = hn::Set(d_, bodies_.y[j]);
        V dx0 = hn::Sub(at_x0, x), dx1 = hn::Sub(at_x1, x);
        const V dy0 = hn::Sub(at_y0, y), dy1 = hn::Sub(at_y1, y);
        V square0 = hn::MulAdd(dx0, dx0, hn::Mul(dy0, dy0));
        V square1 = hn::MulAdd(dx1, dx1, hn::Mul(dy1, dy1));
        if (careful) {
          separate(first_, j, dx0, square0);
          separate(first_ + hn::Lanes(d_), j, dx1, square1);
        } else {
          nearest = hn::Min(nearest, hn::Min(square0, square1));
        }
        const V shared = hn::Div(hn::Set(d_, bodies_.mass[j]), hn::Mul(square0, square1));
        const V factor0 = hn::Mul(shared, square1), factor1 = hn::Mul(shared, square0);
        x0 = hn::MulAdd(dx0, factor0, x0);
        y0 = hn::MulAdd(dy0, factor0, y0);
        x1 = hn::MulAdd(dx1, factor1, x1);
        y1 = hn::MulAdd(dy1, factor1, y1);
      }
      x0_ = hn::Add(x0_, x0);
      y0_ = hn::Add(y0_, y0);
      x1_ = hn::Add(x1_, x1);
      y1_ = hn::Add(y1_, y1);
    }
    nearest_ = nearest;
  }

  D d_;
  LayoutBodies bodies_;
  std::size_t first_;
  V at_x0_, at_x1_, at_y0_, at_y1_, x0_, x1_, y0_, y1_, nearest_;
};

/// Sets the sums of the nodes [first, last), at most a tile.
void add_pairs(const LayoutBodies& bodies, std::size_t first, std::size_t last, float* x, float* y) {
  for (std::size_t i = first; i < last; i += PairForces::width())
    PairForces(bodies, i).compute(x + (i - first), y + (i - first));
}

/// Loads the forces before, unless one component does not count.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void load_before(D d, const float* state, std::size_t nodes, std::size_t i, V& x, V& y) {
  const V given_x = hn::LoadU(d, state + i), given_y = hn::LoadU(d, state + nodes + i);
  const V limit = hn::Set(d, 0x1p60f);
  const auto counts = hn::And(hn::Le(hn::Abs(given_x), limit), hn::Le(hn::Abs(given_y), limit));
  x = hn::IfThenElseZero(counts, given_x);
  y = hn::IfThenElseZero(counts, given_y);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V size_of(D, V x, V y) {
  return hn::Sqrt(hn::MulAdd(x, x, hn::Mul(y, y)));
}

/// Adds the products of the masses and |force + sign * force before| from element `i` on.
template <class D>
std::size_t add_sizes(D d, const float* mass, const float* forces, const float* state, std::size_t nodes,
                      float sign, std::size_t i, std::size_t n, float& sum) {
  return add_up(d, i, n, sum, [&](hn::Vec<D>& part, std::size_t k) HWY_ATTR {
    hn::Vec<D> x, y;
    load_before(d, state, nodes, k, x, y);
    const auto factor = hn::Set(d, sign);
    x = hn::MulAdd(factor, x, hn::LoadU(d, forces + k));
    y = hn::MulAdd(factor, y, hn::LoadU(d, forces + nodes + k));
    part = hn::MulAdd(hn::LoadU(d, mass + k), size_of(d, x, y), part);
  });
}

double sum_of_sizes(const float* mass, const float* forces, const float* state, std::size_t nodes,
                    float sign) {
  double total = 0;
  for (std::size_t first = 0; first < nodes; first += 1024) {
    const std::size_t last = std::min<std::size_t>(first + 1024, nodes);
    float sum = 0;
    const std::size_t done =
        add_sizes(hn::ScalableTag<float>(), mass, forces, state, nodes, sign, first, last, sum);
    add_sizes(hn::CappedTag<float, 1>(), mass, forces, state, nodes, sign, done, last, sum);
    total += double{sum};
  }
  return total;
}

/// Moves the nodes of whole vectors. Returns the first node that belongs to none.
template <class D>
std::size_t move_vectors(D d, std::size_t i, std::size_t n, float* positions, float* bodies,
                         const float* forces, float* state, std::size_t nodes) {
  using V = hn::Vec<D>;
  const std::size_t lanes = hn::Lanes(d);
  const V speed = hn::Set(d, state[2 * nodes]), one = hn::Set(d, 1.0f), limit = hn::Set(d, 0x1p30f);
  for (; i + lanes <= n; i += lanes) {
    const V x = hn::LoadU(d, forces + i), y = hn::LoadU(d, forces + nodes + i);
    V before_x, before_y;
    load_before(d, state, nodes, i, before_x, before_y);
    const V swing = size_of(d, hn::Sub(x, before_x), hn::Sub(y, before_y)), size = size_of(d, x, y);
    V factor = hn::Div(hn::Mul(hn::Set(d, 0.1f), speed), hn::MulAdd(speed, hn::Sqrt(swing), one));
    factor = hn::Min(factor, hn::Div(hn::Set(d, 10.0f), size));
    factor = hn::IfThenElseZero(hn::Gt(size, hn::Zero(d)), factor);
    hn::StoreU(x, d, state + i);
    hn::StoreU(y, d, state + nodes + i);
    const V mass = hn::LoadU(d, bodies + 2 * nodes + i);
    const auto moves = hn::Gt(mass, hn::Zero(d));
    V at_x, at_y;
    hn::LoadInterleaved2(d, positions + 2 * i, at_x, at_y);
    at_x = hn::IfThenElse(moves, hn::MulAdd(x, factor, at_x), at_x);
    at_y = hn::IfThenElse(moves, hn::MulAdd(y, factor, at_y), at_y);
    hn::StoreInterleaved2(at_x, at_y, d, positions + 2 * i);
    const auto exists = hn::And(hn::Le(hn::Abs(at_x), limit), hn::Le(hn::Abs(at_y), limit));
    hn::StoreU(hn::IfThenElseZero(exists, at_x), d, bodies + i);
    hn::StoreU(hn::IfThenElseZero(exists, at_y), d, bodies + nodes + i);
    hn::StoreU(hn::IfThenElseZero(exists, mass), d, bodies + 2 * nodes + i);
  }
  return i;
}

void move_nodes(std::size_t first, std::size_t last, float* positions, float* bodies, const float* forces,
                float* state, std::size_t nodes) {
  first = move_vectors(hn::ScalableTag<float>(), first, last, positions, bodies, forces, state, nodes);
  move_vectors(hn::CappedTag<float, 1>(), first, last, positions, bodies, forces, state, nodes);
}

}  // namespace wye::workloads::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wye::inline v0::workloads::cpu {
namespace {

HWY_EXPORT(add_pairs);
HWY_EXPORT(sum_of_sizes);
HWY_EXPORT(move_nodes);

/// Returns the links of a node; none if the offsets are invalid.
Range layout_links(std::span<const std::uint32_t> offsets, std::size_t links, std::size_t node) {
  const std::uint64_t first = std::min<std::uint64_t>(offsets[node], links);
  const std::uint64_t last = std::min<std::uint64_t>(offsets[node + 1], links);
  return {first, std::clamp<std::uint64_t>(last, first, first + 65536), {}};
}

bool usable_coordinate(float x) { return std::abs(x) <= 0x1p30f; }

}  // namespace

void force_layout_forces(Range range, std::span<const std::uint32_t> offsets,
                         std::span<const std::uint32_t> targets, std::span<const float> weights,
                         std::span<const float> bodies, std::span<float> forces, float repulsion,
                         float gravity, std::uint32_t strong) {
  const std::size_t n = offsets.size() - 1;
  const LayoutBodies all{bodies.data(), bodies.data() + n, bodies.data() + 2 * n, n};
  const Range items = below(range, n);
  for (std::uint64_t begin = items.first; begin < items.last; begin += layout_tile) {
    const std::uint64_t end = std::min<std::uint64_t>(begin + layout_tile, items.last);
    float pairs_x[layout_tile], pairs_y[layout_tile];
    HWY_DYNAMIC_DISPATCH(add_pairs)(all, begin, end, pairs_x, pairs_y);
    for (std::uint64_t i = begin; i < end; ++i) {
      const double at_x = double{all.x[i]}, at_y = double{all.y[i]}, mass = double{all.mass[i]};
      double x = 0, y = 0;
      for (const std::uint64_t k : layout_links(offsets, targets.size(), i)) {
        const std::uint32_t j = targets[k];
        if (j >= n || all.mass[j] == 0) continue;
        const float given = weights.empty() ? 1.0f : weights[k];
        const double weight = given > 0 && std::isfinite(given) ? double{given} : 0.0;
        x += weight * (double{all.x[j]} - at_x);
        y += weight * (double{all.y[j]} - at_y);
      }
      const double distance = std::max(std::sqrt(at_x * at_x + at_y * at_y), 0x1p-20);
      const double pull = double{gravity} * mass / (strong != 0 ? 1.0 : distance);
      x += double{repulsion} * mass * double{pairs_x[i - begin]} - pull * at_x;
      y += double{repulsion} * mass * double{pairs_y[i - begin]} - pull * at_y;
      const bool counts = mass > 0 && std::abs(x) <= 0x1p60 && std::abs(y) <= 0x1p60;
      forces[i] = counts ? static_cast<float>(x) : 0.0f;
      forces[n + i] = counts ? static_cast<float>(y) : 0.0f;
    }
  }
}

void force_layout_speed(Range range, std::span<const float> bodies, std::span<const float> forces,
                        std::span<float> state, float tolerance) {
  if (range.first != 0) return;
  const std::size_t n = forces.size() / 2;
  const float* const mass = bodies.data() + 2 * n;
  const double swinging = HWY_DYNAMIC_DISPATCH(sum_of_sizes)(mass, forces.data(), state.data(), n, -1.0f);
  const double traction = HWY_DYNAMIC_DISPATCH(sum_of_sizes)(mass, forces.data(), state.data(), n, 1.0f) / 2;
  const float before = state[2 * n];
  const bool continues = before > 0 && before <= 0x1p20f;
  const double most = continues ? std::min(1.5 * double{before}, 0x1p20) : swinging > 0 ? 0x1p20 : 0.0;
  state[2 * n] =
      static_cast<float>(swinging > 0 ? std::min(double{tolerance} * traction / swinging, most) : most);
  state[2 * n + 1] = static_cast<float>(swinging);
  state[2 * n + 2] = static_cast<float>(traction);
}

void force_layout_move(Range range, std::span<const std::uint32_t> offsets,
                       std::span<const std::uint32_t> targets, std::span<float> positions,
                       std::span<float> bodies, std::span<const float> forces, std::span<float> state,
                       std::uint32_t begins) {
  const std::size_t n = offsets.size() - 1;
  const Range items = below(range, n);
  if (begins == 0) {
    HWY_DYNAMIC_DISPATCH(move_nodes)
    (items.first, items.last, positions.data(), bodies.data(), forces.data(), state.data(), n);
    return;
  }
  for (std::uint64_t i : items) {
    const float x = positions[2 * i], y = positions[2 * i + 1];
    const bool exists = usable_coordinate(x) && usable_coordinate(y);
    const Range links = layout_links(offsets, targets.size(), i);
    bodies[i] = exists ? x : 0.0f;
    bodies[n + i] = exists ? y : 0.0f;
    bodies[2 * n + i] = exists ? 1.0f + static_cast<float>(links.last - links.first) : 0.0f;
  }
}

}  // namespace wye::workloads::cpu
#endif
