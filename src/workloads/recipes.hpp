#pragma once
/// The steps of workloads that other workloads use.
#include "cpu.hpp"
#include "product.hpp"
#include "rows.hpp"
#include "sorting.hpp"
#include "steps.hpp"

namespace wye {
inline namespace v0 {
namespace workloads {

/// Normalizes the rows of `matrix` to length 1.
void add_normalize(Steps& steps, const ReadWrite<float>& matrix, RowSplit split);

/// Replaces the rows of `matrix` by the softmax of the rows times `scale`.
void add_softmax(Steps& steps, const ReadWrite<float>& matrix, RowSplit split, float scale);

/// Sets `results` to the sums of the rows of `x`. A sum of floats or integers has the type of `x`.
template <class T>
void add_sums(Steps& steps, const Read<T>& x, const Write<SumOf<T>>& results, RowSplit split);

/// Sets `sums` to the sums of all pieces of the rows of `x`.
template <class T>
void add_piece_sums(Steps& steps, const Read<T>& x, const Write<SumOf<T>>& sums, RowSplit split);

template <class T>
using ScatterKernel =
    Kernel<Read<T>, Read<std::uint32_t>, Write<T>, Write<std::uint32_t>, Read<std::uint32_t>, SortShape>;

/// Sorts the rows of `keys`, and `values` with them. If `values` is empty, the values are the columns. If `sorted_values` is
/// empty, there are none.
template <class T>
void add_sort(Steps& steps, const Read<T>& keys, const Read<std::uint32_t>& values, const Write<T>& sorted,
              const Write<std::uint32_t>& sorted_values, SortShape shape);
/// Returns the kernel that sorts the rows of tiles. Host code ignores elements without a column.
template <class T>
const Result<ScatterKernel<T>>& top_k_sort_kernel();

/// Sets c to a b, or to a times the transpose of b. `shape` is without its stretch.
void add_matmul(Steps& steps, const Read<float>& a, const Read<float>& b, const Write<float>& c,
                Product shape);

}  // namespace workloads
}  // namespace v0
}  // namespace wye
