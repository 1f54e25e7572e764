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

#include "unroll.hpp"

HWY_BEFORE_NAMESPACE();
namespace wye::inline v0::workloads::cpu::HWY_NAMESPACE {

/// Adds up the products of the elements of rows and those of a vector. The latter are scattered in
/// memory, so the adder first fetches a batch of products, without data-dependent branches. It then
/// adds up several rows at once, each in a vector of its own.
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
      std::uint32_t rows = 0, size = 0;
      do {
        const std::uint32_t of_row = end_of(first + i + rows) - begin - size;
        if (of_row > batch - size) break;
        begins_[rows] = size;
        sizes_[rows++] = static_cast<std::int32_t>(of_row);
        size += of_row;
      } while (rows < most_rows && i + rows < count && begin_of(first + i + rows) == begin + size);
      fetch(begin, begin + size);
      add_rows(rows, sums + i);
      i += rows;
    }
  }

  /// Adds up batches in double precision. The error is independent of their number.
  float sum_of(std::uint32_t begin, std::uint32_t end) {
    double total = 0;
    while (begin < end) {
      const std::uint32_t size = std::min(batch, end - begin);
      fetch(begin, begin + size);
      total += double{sum(size)};
      begin += size;
    }
    return static_cast<float>(total);
  }

 private:
  static constexpr std::uint32_t batch = 512, most_rows = 64;
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

#if HWY_TARGET == HWY_SCALAR
  static constexpr std::uint32_t together = 1;
  using Sums = hwy::HWY_NAMESPACE::ScalableTag<float>;
  static HWY_INLINE hwy::HWY_NAMESPACE::Vec<Sums> of_lanes(const hwy::HWY_NAMESPACE::Vec<Sums>* rows) {
    return rows[0];
  }
#else
  /// Rows have as many lanes as there are rows in a vector of sums.
  using Sums = hwy::HWY_NAMESPACE::CappedTag<float, 8>;
  static constexpr std::uint32_t together = hwy::HWY_NAMESPACE::MaxLanes(Sums());

  /// Returns the sums of the lanes of each of so many vectors.
  static HWY_INLINE hwy::HWY_NAMESPACE::Vec<Sums> of_lanes(const hwy::HWY_NAMESPACE::Vec<Sums>* rows) {
    namespace hn = hwy::HWY_NAMESPACE;
    const Sums d;
    const hn::Repartition<double, Sums> pairs;
    const auto two = [&](hn::Vec<Sums> a, hn::Vec<Sums> b) HWY_ATTR {
      return hn::BitCast(pairs, hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)));
    };
    const auto four = [&](const hn::Vec<Sums>* v) HWY_ATTR {
      const auto a = two(v[0], v[1]), b = two(v[2], v[3]);
      return hn::Add(hn::BitCast(d, hn::InterleaveLower(pairs, a, b)),
                     hn::BitCast(d, hn::InterleaveUpper(pairs, a, b)));
    };
    if constexpr (together == 4) {
      return four(rows);
    } else {
      const auto low = four(rows), high = four(rows + 4);
      return hn::Add(hn::ConcatLowerLower(d, high, low), hn::ConcatUpperUpper(d, high, low));
    }
  }
#endif

  /// Returns the first `n` lanes of a part of the batch, and zeros.
  HWY_INLINE hwy::HWY_NAMESPACE::Vec<Sums> first_lanes(std::uint32_t begin, std::int32_t n) const {
    namespace hn = hwy::HWY_NAMESPACE;
    const Sums d;
    const hn::RebindToSigned<Sums> ints;
    const auto some = hn::RebindMask(d, hn::Lt(hn::Iota(ints, 0), hn::Set(ints, n)));
    return hn::IfThenElseZero(some, hn::LoadU(d, fetched_ + begin));
  }

  /// Sets `sums` to those of the first rows of the batch. The bits of a row do not depend on the
  /// others.
  void add_rows(std::uint32_t rows, float* sums) {
    namespace hn = hwy::HWY_NAMESPACE;
    const Sums d;
    const hn::RebindToSigned<Sums> ints;
    constexpr auto step = static_cast<std::int32_t>(together);
    for (std::uint32_t row = rows; row % together != 0; ++row) {
      begins_[row] = 0;
      sizes_[row] = 0;
    }
    for (std::uint32_t row = 0; row < rows; row += together) {
      const std::int32_t most = hn::GetLane(hn::MaxOfLanes(ints, hn::LoadU(ints, sizes_ + row)));
      hn::Vec<Sums> parts[together];
      WYE_UNROLL
      for (std::uint32_t i = 0; i < together; ++i)
        parts[i] = hn::Add(hn::Zero(d), first_lanes(begins_[row + i], sizes_[row + i]));  // -0 becomes 0
      for (std::int32_t k = step; k < std::min(most, 4 * step); k += step) {
        const auto places = hn::Iota(ints, k);
        WYE_UNROLL
        for (std::uint32_t i = 0; i < together; ++i) {
          const auto some = hn::RebindMask(d, hn::Lt(places, hn::Set(ints, sizes_[row + i])));
          const auto next = hn::LoadU(d, fetched_ + begins_[row + i] + k);
          parts[i] = hn::Add(parts[i], hn::IfThenElseZero(some, next));
        }
      }
      if (most > 4 * step)
        for (std::uint32_t i = 0; i < together; ++i)
          if (sizes_[row + i] > 4 * step)
            parts[i] =
                hn::Add(parts[i], sums_of(begins_[row + i] + 4 * together,
                                          begins_[row + i] + static_cast<std::uint32_t>(sizes_[row + i])));
      if (row + together <= rows) {
        hn::StoreU(of_lanes(parts), d, sums + row);
      } else {
        HWY_ALIGN float last[together];
        hn::Store(of_lanes(parts), d, last);
        std::copy_n(last, rows - row, sums + row);
      }
    }
  }

  float sum(std::uint32_t size) {
    float sum = 0;
    begins_[0] = 0;
    sizes_[0] = static_cast<std::int32_t>(size);
    add_rows(1, &sum);
    return sum;
  }

  /// Adds up long rows by halves. The error grows with the logarithm of the length.
  hwy::HWY_NAMESPACE::Vec<Sums> sums_of(std::uint32_t begin, std::uint32_t end) const {
    namespace hn = hwy::HWY_NAMESPACE;
    const Sums d;
    if (end - begin > 8 * together) {
      const std::uint32_t middle = begin + (end - begin) / (2 * together) * together;
      return hn::Add(sums_of(begin, middle), sums_of(middle, end));
    }
    auto sum = hn::Zero(d);
    for (std::uint32_t i = begin; i < end; i += together)
      sum = hn::Add(sum, first_lanes(i, static_cast<std::int32_t>(end - i)));
    return sum;
  }

  const float *x_, *values_;
  std::uint32_t size_;
  std::span<const std::uint32_t> offsets_, columns_;
  float fetched_[batch + 4 * HWY_LANES(float)] = {};
  /// The rows of a batch.
  std::uint32_t begins_[most_rows] = {};
  std::int32_t sizes_[most_rows] = {};
};

}  // namespace wye::workloads::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
