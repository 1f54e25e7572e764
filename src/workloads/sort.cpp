#include <wye/workloads/sort.hpp>

#include "cpu.hpp"
#include "recipes.hpp"
#include "sort_kernels.hpp"

namespace wye::inline v0::workloads {
namespace {

using Word = std::uint32_t;

template <class T>
using CountKernel = Kernel<Read<T>, Write<Word>, SortShape>;

/// The texts for elements of one size.
struct SortTexts {
  const KernelText& count;
  const KernelText& scatter;
};
template <class T>
SortTexts sort_texts() {
  if constexpr (sizeof(T) == 2)
    return {kernels::sort_count_halves, kernels::sort_scatter_halves};
  else if constexpr (sizeof(T) == 4)
    return {kernels::sort_count_words, kernels::sort_scatter_words};
  else
    return {kernels::sort_count_uint64, kernels::sort_scatter_uint64};
}

/// The fewest items of one call of a host function.
constexpr Extent3 tiles_tile{16 * 256}, digits_tile{256 * 256};

template <class T, bool has_values>
const auto& count_kernel() {
  static const auto kernel = make_kernel<Read<T>, Write<Word>, SortShape>(
      sort_texts<T>().count, {"keys", "counts", "shape"}, {},
      {host(cpu::sort_count<T, has_values>, {.tile = tiles_tile})});
  return kernel;
}

const auto& scan_kernel() {
  static const auto kernel = make_kernel<ReadWrite<Word>, SortShape>(
      kernels::sort_scan, {"counts", "shape"}, {}, {host(cpu::sort_scan, {.tile = digits_tile})});
  return kernel;
}

template <class T, class HostCode>
Result<ScatterKernel<T>> make_scatter_kernel(HostCode code) {
  return make_kernel<Read<T>, Read<Word>, Write<T>, Write<Word>, Read<Word>, SortShape>(
      sort_texts<T>().scatter, {"keys", "values", "sorted_keys", "sorted_values", "bases", "shape"}, {},
      {host(code, {.tile = tiles_tile})});
}

template <class T>
const auto& scatter_kernel() {
  static const auto kernel = make_scatter_kernel<T>(cpu::sort_scatter<T>);
  return kernel;
}

}  // namespace

template <class T>
const Result<ScatterKernel<T>>& top_k_sort_kernel() {
  static const auto kernel = make_scatter_kernel<T>(cpu::top_k_sort<T>);
  return kernel;
}

template <class T>
void add_sort(Steps& steps, const Read<T>& keys, const Read<Word>& values, const Write<T>& sorted,
              const Write<Word>& sorted_values, SortShape shape) {
  const std::span<const Word> none;
  if (shape.tiles == 1)
    return steps.add(scatter_kernel<T>(), shape.items(), keys, values, sorted, sorted_values, none, shape);

  // Passes of 8 bits from the lowest on. Their number is even: they write a scratch memory and the
  // results in turn.
  const std::uint64_t size = std::uint64_t{shape.rows} * shape.columns;
  const bool has_values = sorted_values.size() != 0, has_all = shape.keep == shape.columns;
  const Write<Word> no_values = std::span<Word>();
  const Write<T> odd = Scratch<T>(size), even = has_all ? sorted : Write<T>(Scratch<T>(size));
  const Write<Word> odd_values = has_values ? Write<Word>(Scratch<Word>(size)) : no_values;
  const Write<Word> even_values = !has_values || has_all ? sorted_values : Write<Word>(Scratch<Word>(size));
  const Scratch<Word> counts(shape.all_tiles() * 256 + std::uint64_t{shape.rows} * 256);
  const auto& count = has_values ? count_kernel<T, true>() : count_kernel<T, false>();
  Read<T> from = keys;
  Read<Word> values_from = values;
  const std::uint32_t keep = shape.keep;
  for (shape.shift = 0; shape.shift < shape.bits; shape.shift += 8) {
    const bool is_odd = shape.shift % 16 == 0, is_last = shape.shift + 8 == shape.bits;
    shape.keep = is_last ? keep : shape.columns;
    const Write<T> to = is_last ? sorted : is_odd ? odd : even;
    const Write<Word> values_to = is_last ? sorted_values : is_odd ? odd_values : even_values;
    steps.add(count, shape.items(), from, counts, shape);
    steps.add(scan_kernel(), flat(shape.rows * shape.scan_items_of_row()), counts, shape);
    steps.add(scatter_kernel<T>(), shape.items(), from, values_from, to, values_to, counts, shape);
    from = Memory(to);
    values_from = Memory(values_to);
  }
}

namespace {

Job refused_sort(std::string sentence) {
  return refused("sort", workload_types::vector, std::move(sentence));
}

template <class T>
Job sort_job(const Read<T>& keys, const Read<Word>& values, const Write<T>& sorted,
             const Write<Word>& sorted_values, const SortOptions& options) {
  const std::uint64_t size = keys.size(), columns = options.columns.value_or(size);
  if (auto why = no_rows("sort", size, columns)) return refused_sort(*std::move(why));
  if (auto why = not_as_long("sort", "sorted", sorted.size(), "keys", size))
    return refused_sort(*std::move(why));
  const auto rows = static_cast<std::uint32_t>(columns == 0 ? 0 : size / columns);
  const auto length = static_cast<std::uint32_t>(rows == 0 ? 0 : columns);
  Steps steps;
  add_sort(steps, keys, values, sorted, sorted_values,
           sort_shape<T>(rows, length, length, options.order == SortOrder::descending));
  return std::move(steps).job("sort", workload_types::vector);
}

template <class T>
Job sort_keys(const Read<T>& keys, const Write<T>& sorted, const SortOptions& options) {
  return sort_job(keys, Read<Word>(std::span<const Word>()), sorted, Write<Word>(std::span<Word>()), options);
}

template <class T>
Job sort_pairs(const Read<T>& keys, const Read<Word>& values, const Write<T>& sorted,
               const Write<Word>& sorted_values, const SortOptions& options) {
  if (values.size() != 0)
    if (auto why = not_as_long("sort", "values", values.size(), "keys", keys.size()))
      return refused_sort(*std::move(why));
  if (auto why = not_as_long("sort", "sorted_values", sorted_values.size(), "keys", keys.size()))
    return refused_sort(*std::move(why));
  return sort_job(keys, values, sorted, sorted_values, options);
}

}  // namespace

#define WYE_SORT(T)                                                                                         \
  template const Result<ScatterKernel<T>>& top_k_sort_kernel();                                             \
  template void add_sort(Steps&, const Read<T>&, const Read<Word>&, const Write<T>&, const Write<Word>&,    \
                         SortShape);                                                                        \
  Job sort(Read<T> keys, Write<T> sorted, SortOptions options) { return sort_keys(keys, sorted, options); } \
  Job sort(Read<T> keys, Read<Word> values, Write<T> sorted, Write<Word> sorted_values,                     \
           SortOptions options) {                                                                           \
    return sort_pairs(keys, values, sorted, sorted_values, options);                                        \
  }
WYE_SORT(float)
WYE_SORT(half)
WYE_SORT(bfloat16)
WYE_SORT(std::int32_t)
WYE_SORT(std::uint32_t)
WYE_SORT(std::uint64_t)
#undef WYE_SORT

}  // namespace wye::workloads
