#include <wye/base/histogram.hpp>

#include <cmath>

namespace wye::inline v0 {
namespace {

/// Returns the middle of the values that a bucket counts.
Duration middle_of(std::size_t bucket) noexcept {
  if (bucket < 8) return Duration(static_cast<std::int64_t>(bucket));
  const std::size_t shift = bucket / 4 - 1;
  const std::uint64_t least = (4 + bucket % 4) << shift;
  return Duration(static_cast<std::int64_t>(least + (std::uint64_t{1} << shift) / 2));
}

}  // namespace

void Histogram::add(const Histogram& other) noexcept {
  count_ += other.count_;
  sum_ += other.sum_;
  for (std::size_t b = 0; b < buckets_.size(); ++b) buckets_[b] += other.buckets_[b];
}

Duration Histogram::percentile(double fraction) const noexcept {
  const double within = fraction > 0 ? std::min(fraction, 1.0) : 0;
  const double wanted = std::ceil(within * static_cast<double>(count_));
  const auto rank = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(wanted));
  std::uint64_t below = 0;
  for (std::size_t b = 0; b < buckets_.size(); ++b)
    if ((below += buckets_[b]) >= rank) return middle_of(b);
  return {};
}

}  // namespace wye
