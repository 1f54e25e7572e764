// Sums of the rows of a sparse matrix times a vector. Included once per instruction set, as
// Highway's own headers are.
#if defined(WYE_WORKLOADS_ROW_ADDER) == defined(HWY_TARGET_TOGGLE)
#ifdef WYE_WORKLOADS_ROW_ADDER
#undef WYE_WORKLOADS_ROW_ADDER
#else
#define WYE_WORKLOADS_ROW_ADDER
#endif
#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

HWY_BEFORE_NAMESPACE();
namespace wye::inline v0::workloads::cpu::HWY_NAMESPACE {

/// Adds up the products of the elements of rows and those of a vector. The latter are scattered in
/// memory, so the adder first fetches a batch of products, without data-dependent branches. It then
/// adds them up row by row.
class RowAdder {
 public:
  /// `x` has `size` elements; a column beyond counts as 0. If `values` is null, they are all 1.
  RowAdder(const float* x, std::uint32_t size, const float* values, std::span<const std::uint32_t> offsets,
           std::span<const std::uint32_t> columns)
      : x_(x), values_(values), size_(size), offsets_(offsets), columns_(columns) {}

  /// Sets `sums[i]` to the sum of row `first + i`; of rows with more than 512 elements, to
  /// `sum_of_many(begin, end)`.
  template <class F>
  void add(std::uint64_t first, std::size_t count, float* sums, F sum_of_many) {
    for (std::size_t i = 0; i < count;) {
      const std::uint32_t begin = begin_of(first + i), end = end_of(first + i);
      if (end - begin > batch) {
        sums[i++] = sum_of_many(begin, end);
        continue;
      }
      // A batch has as many rows as fit. Each begins at the end of the previous row, unless the
      // offsets are invalid.
      std::size_t last = i + 1;
      std::uint32_t reach = end;
      while (last < count && begin_of(first + last) == reach && end_of(first + last) - begin <= batch)
        reach = end_of(first + last++);
      fetch(begin, reach);
      for (; i < last; ++i) sums[i] = sum(begin_of(first + i) - begin, end_of(first + i) - begin);
    }
  }

  /// Adds up batches in double precision. The error is independent of their number.
  float sum_of(std::uint32_t begin, std::uint32_t end) {
    double total = 0;
    while (begin < end) {
      const std::uint32_t size = std::min(batch, end - begin);
      fetch(begin, begin + size);
      total += double{sum(0, size)};
      begin += size;
    }
    return static_cast<float>(total);
  }

 private:
  static constexpr std::uint32_t batch = 512;
  using D = hwy::HWY_NAMESPACE::ScalableTag<float>;

  std::uint32_t begin_of(std::uint64_t row) const {
    return std::min(offsets_[row], static_cast<std::uint32_t>(columns_.size()));
  }
  /// Returns the end of a row, which is not before its beginning.
  std::uint32_t end_of(std::uint64_t row) const { return std::max(begin_of(row + 1), begin_of(row)); }

  void fetch(std::uint32_t begin, std::uint32_t end) {
    namespace hn = hwy::HWY_NAMESPACE;
    const D d;
    const hn::Rebind<std::uint32_t, D> words;
    const hn::RebindToSigned<D> indexes;
    const std::uint32_t* column = columns_.data() + begin;
    const float* value = values_ == nullptr ? nullptr : values_ + begin;
    const std::uint32_t size = end - begin, lanes = static_cast<std::uint32_t>(hn::Lanes(d));
    std::uint32_t i = 0;
    if (size_ != 0) {
      for (; i + lanes <= size; i += lanes) {
        const auto at = hn::LoadU(words, column + i);
        const auto exists = hn::Lt(at, hn::Set(words, size_));
        const auto in_range = hn::BitCast(indexes, hn::IfThenElseZero(exists, at));
        auto product = hn::GatherIndex(d, x_, in_range);
        if (value != nullptr) product = hn::Mul(product, hn::LoadU(d, value + i));
        hn::StoreU(hn::IfThenElseZero(hn::RebindMask(d, exists), product), d, fetched_ + i);
      }
    }
    for (; i < size; ++i)
      fetched_[i] = column[i] >= size_ ? 0.0f : value == nullptr ? x_[column[i]] : value[i] * x_[column[i]];
  }

  float sum(std::uint32_t begin, std::uint32_t end) const {
    return hwy::HWY_NAMESPACE::GetLane(hwy::HWY_NAMESPACE::SumOfLanes(D(), sums(begin, end)));
  }

  /// Adds up long rows by halves. The error grows with the logarithm of the length.
  hwy::HWY_NAMESPACE::Vec<D> sums(std::uint32_t begin, std::uint32_t end) const {
    namespace hn = hwy::HWY_NAMESPACE;
    const D d;
    const auto lanes = static_cast<std::uint32_t>(hn::Lanes(d));
    if (end - begin > 8 * lanes) {
      const std::uint32_t middle = begin + (end - begin) / (2 * lanes) * lanes;
      return hn::Add(sums(begin, middle), sums(middle, end));
    }
    auto sum = hn::Zero(d);
    for (std::uint32_t i = begin; i < end; i += lanes)
      sum = hn::Add(sum, hn::IfThenElseZero(hn::FirstN(d, end - i), hn::LoadU(d, fetched_ + i)));
    return sum;
  }

  const float *x_, *values_;
  std::uint32_t size_;
  std::span<const std::uint32_t> offsets_, columns_;
  float fetched_[batch + HWY_LANES(float)] = {};
};

}  // namespace wye::workloads::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
