#pragma once
/// Products of matrices.
#include <wye/device/parameter.hpp>
#include <wye/scheduler/job.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace wye {
inline namespace v0 {
namespace workloads {

/// Dimensions of c = a b: c is rows x columns, a is rows x inner, b is inner x columns.
struct MatmulShape {
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::uint64_t inner = 0;
  friend bool operator==(const MatmulShape&, const MatmulShape&) = default;
};

/// Sets c to the product of a and b.
/// Shape:   all three row after row. Without a shape it follows from the three sizes, which leave one possibility where
///          none is zero. Where `inner` is zero, c becomes zero. Dimensions are below 2^31.
/// Bound:   (inner + 2) 2^-24 (|a| |b|), the last factor being the product of the absolute values. NaN and infinities
///          as the sums of products have them; nothing is skipped because it meets a zero.
/// Bits:    the same device gives the same bits, on the CPU with the same BLAS.
/// Cost:    on the CPU, the OpenBLAS that is installed where its serial flavour is and where its vectors are as wide as
///          the processor's; else our own code, which reaches about 80 % of what the processor can. On CUDA, `matmul_on_cuda`.
/// Errors:  invalid_argument (sizes that do not match the shape, or each other).
WYE_API Job matmul(Read<float> a, Read<float> b, Write<float> c, MatmulShape shape = {});

/// What multiplies on CUDA: "cuBLAS" where libcublas.so.13 or .12 can be opened, in float32 throughout (no TF32); else our own
/// kernel, and why: "wye's own kernel: No library ...".
/// Threads: thread-safe.
WYE_API std::string matmul_on_cuda();

namespace reference {
/// The same in float64, on this thread.
WYE_API std::vector<double> matmul(std::span<const float> a, std::span<const float> b, MatmulShape shape);
}  // namespace reference

}  // namespace workloads
}  // namespace v0
}  // namespace wye
