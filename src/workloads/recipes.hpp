#pragma once
/// The steps of workloads that other workloads use.
#include <wye/workloads/matmul.hpp>
#include <wye/workloads/quantized.hpp>
#include <wye/workloads/rope.hpp>

#include <optional>
#include <string>

#include "cpu.hpp"
#include "product.hpp"
#include "rows.hpp"
#include "sorting.hpp"
#include "steps.hpp"

namespace wye::inline v0::workloads {

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

/// Sorts the rows of `keys`, and `values` with them. If `values` is empty, the values are the
/// columns. If `sorted_values` is empty, there are none.
template <class T>
void add_sort(Steps& steps, const Read<T>& keys, const Read<std::uint32_t>& values, const Write<T>& sorted,
              const Write<std::uint32_t>& sorted_values, SortShape shape);
/// Returns the kernel that sorts the rows of tiles. Host code ignores elements without a column.
template <class T>
const Result<ScatterKernel<T>>& top_k_sort_kernel();

/// Sets c to a b, or to a times the transpose of b. `shape` is without its stretch.
void add_matmul(Steps& steps, const Read<float>& a, const Read<float>& b, const Write<float>& c,
                Product shape);

/// Adds the steps of a product by wye's own kernels, which add up a row of c in the same order for
/// any number of rows. With `measure_variants` off, the bits of a row do not depend on the other
/// rows. Returns the reason if arguments are invalid.
template <class T>
std::optional<std::string> add_product_of_rows(Steps& steps, const MatmulGroup<T, T>& group);

/// The same with quantized weights. If `any_rows`, the host adds up rows in the same order for any
/// number of rows.
std::optional<std::string> add_quantized_matmul(Steps& steps, const Read<float>& x,
                                                const Read<std::uint8_t>& weights, const Write<float>& y,
                                                std::uint64_t rows, Quantization quantization,
                                                QuantizedMatmulOptions options, bool any_rows);
/// Returns the reason if there is no such layout of blocks.
std::optional<std::string> no_layout(const std::string& workload, Quantization q);
/// Sets x to the elements of the blocks. Returns the reason if sizes are invalid.
std::optional<std::string> add_dequantize(Steps& steps, const Read<std::uint8_t>& blocks,
                                          const Write<float>& x, Quantization quantization);

/// Rotates the heads of x. Returns the reason if arguments are invalid.
template <class T>
std::optional<std::string> add_rope(Steps& steps, const ReadWrite<T>& x, const Read<std::uint32_t>& positions,
                                    std::uint64_t head_size, const RopeOptions& options,
                                    const std::string& workload);

/// Sets the elements of `result` to silu(gate) * up. `split` distributes all elements.
template <class T>
void add_silu_multiply(Steps& steps, const Read<T>& gate, const Read<T>& up, const Write<T>& result,
                       RowSplit split);

/// Adds a x to y.
void add_axpy(Steps& steps, float a, const Read<float>& x, const ReadWrite<float>& y);

}  // namespace wye::workloads
