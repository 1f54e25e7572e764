#pragma once
/// The steps of workloads that other workloads use.
#include "cpu.hpp"
#include "product.hpp"
#include "rows.hpp"
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

/// Sets c to a b, or to a times the transpose of b. `shape` is without its stretch.
void add_matmul(Steps& steps, const Read<float>& a, const Read<float>& b, const Write<float>& c,
                Product shape);

}  // namespace workloads
}  // namespace v0
}  // namespace wye
