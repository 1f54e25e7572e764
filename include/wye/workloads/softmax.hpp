#pragma once
/// The softmax of the rows of a matrix.
#include <wye/device/parameter.hpp>
#include <wye/scheduler/job.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace wye::inline v0::workloads {

/// Replaces every row of `matrix` by exp(v) / (sum of exp of the row), in place.
/// Shape:   row after row, `columns` numbers each; any number of rows, rows of any length below 2^31.
/// Bound:   5e-5 of each weight; weights below exp(-87) of the row's largest may be zero. -infinity gets the weight 0.
///          A row with a NaN or +infinity, or with nothing but -infinity, becomes NaN.
/// Bits:    the same device gives the same bits.
/// Cost:    reads the matrix once or twice and writes it once. Kernels on Vulkan: as `reduce`.
/// Errors:  invalid_argument (a size that is no multiple of `columns`, dimensions of 2^31 or more).
/// Source:  Milakov and Gimelshein, Online normalizer calculation for softmax, arXiv:1805.02867.
WYE_API Job softmax(ReadWrite<float> matrix, std::uint64_t columns);

namespace reference {
/// The same in float64, on this thread, of `scale` times the matrix.
WYE_API std::vector<double> softmax(std::span<const float> matrix, std::uint64_t columns, double scale = 1.0);
}  // namespace reference

}  // namespace wye::workloads
