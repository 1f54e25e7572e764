#include <wye/workloads/top_k.hpp>

#include "cpu.hpp"
#include "recipes.hpp"
#include "top_k_kernels.hpp"

namespace wye::inline v0::workloads {
namespace {

using Places = std::uint32_t;

/// Tiles are reduced to half of their elements or less. If more elements are wanted, a row is
/// sorted instead.
constexpr std::uint32_t most_selected = sorted_tile / 2;

template <class T>
const auto& select_kernel() {
  const KernelText& text = sizeof(T) == 2   ? kernels::top_k_select_halves
                           : sizeof(T) == 4 ? kernels::top_k_select_words
                                            : kernels::top_k_select_uint64;
  // A call of the host reads 128 tiles, to find few candidates that are not among the first
  // elements.
  static const auto kernel = make_kernel<Read<T>, Read<Places>, Write<T>, Write<Places>, SortShape>(
      text, {"x", "places", "selected", "selected_places", "shape"}, {},
      {host(cpu::top_k_select<T>, {.tile = Extent3(128 * 256)})});
  return kernel;
}

Job refused_top_k(std::string sentence) {
  return refused("top_k", workload_types::vector, std::move(sentence));
}

template <class T>
void add_top_k(Steps& steps, const Read<T>& x, const Write<T>& values, const Write<Places>& places,
               SortShape shape, bool descending) {
  const std::span<const Places> none;
  if (shape.tiles > 1 && shape.keep > most_selected)
    return add_sort<T>(steps, x, none, values, places, shape);
  Read<T> candidates = x;
  Read<Places> columns = none;
  while (shape.tiles > 1 && shape.keep != 0) {
    const std::uint32_t others = shape.tiles - 1;
    const std::uint32_t selected =
        others * shape.keep + std::min(shape.keep, shape.columns - others * sorted_tile);
    const std::uint64_t size = std::uint64_t{shape.rows} * selected;
    const Write<T> to = Scratch<T>(size);
    const Write<Places> columns_to = Scratch<Places>(size);
    steps.add(select_kernel<T>(), shape.items(), candidates, columns, to, columns_to, shape);
    candidates = Memory(to);
    columns = Memory(columns_to);
    shape = sort_shape<T>(shape.rows, selected, shape.keep, descending);
  }
  const Extent3 items = shape.keep == 0 ? Extent3(0) : shape.items();
  steps.add(top_k_sort_kernel<T>(), items, candidates, columns, values, places, none, shape);
}

template <class T>
Job top_k_job(std::uint64_t k, const Read<T>& x, const Write<T>& values, const Write<Places>& places,
              const TopKOptions& options) {
  const std::uint64_t size = x.size(), columns = options.columns.value_or(size);
  if (auto why = no_rows("top_k", size, columns)) return refused_top_k(*std::move(why));
  if (k > columns)
    return refused_top_k("Number k (" + std::to_string(k) +
                         ") of workload 'top_k' exceeds the length of a row (" + std::to_string(columns) +
                         ").");
  const std::uint64_t rows = columns == 0 ? 0 : size / columns;
  const auto wrong_size = [&](const std::string& vector, std::uint64_t count) {
    return refused_top_k("Vector " + vector + " (" + std::to_string(count) +
                         " elements) of workload 'top_k' does not have " + std::to_string(k) +
                         " elements for each of " + std::to_string(rows) + " rows.");
  };
  if (values.size() != k * rows) return wrong_size("values", values.size());
  if (places.size() != k * rows) return wrong_size("places", places.size());
  const bool descending = options.order == SortOrder::descending;
  Steps steps;
  add_top_k(
      steps, x, values, places,
      sort_shape<T>(static_cast<std::uint32_t>(rows), static_cast<std::uint32_t>(rows == 0 ? 0 : columns),
                    static_cast<std::uint32_t>(rows == 0 ? 0 : k), descending),
      descending);
  return std::move(steps).job("top_k", workload_types::vector);
}

}  // namespace

#define WYE_TOP_K(T)                                                                                  \
  Job top_k(std::uint64_t k, Read<T> x, Write<T> values, Write<Places> places, TopKOptions options) { \
    return top_k_job(k, x, values, places, options);                                                  \
  }
WYE_TOP_K(float)
WYE_TOP_K(half)
WYE_TOP_K(bfloat16)
WYE_TOP_K(std::int32_t)
WYE_TOP_K(std::uint32_t)
WYE_TOP_K(std::uint64_t)
#undef WYE_TOP_K

}  // namespace wye::workloads
