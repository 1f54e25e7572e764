#pragma once
/// Products of matrices.
#include <wye/base/half.hpp>
#include <wye/device/parameter.hpp>
#include <wye/scheduler/job.hpp>

#include <cstdint>
#include <optional>
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

/// How matrices lie, how many products of one shape there are, and how exact they have to be.
struct MatmulOptions {
  bool transposed_b = false;  ///< b is given as columns x inner
  /// Devices may round what float products multiply to TF32, which has 11 bits: NVIDIA's tensor cores from Ampere on do, and
  /// everybody else calculates in float32 as ever.
  bool tf32 = false;
  std::uint64_t batch = 1;  ///< products; of more than one the shape has to be given
  /// Elements from the beginning of one matrix to that of the next; unset: they follow each other. Zero: of a, or of b, there
  /// is one for all.
  std::optional<std::uint64_t> a_step = std::nullopt;
  std::optional<std::uint64_t> b_step = std::nullopt;
  std::optional<std::uint64_t> c_step = std::nullopt;
};

/// Sets c to the product of a and b.
/// Shape:   all three row after row. Without a shape it follows from the three sizes, which leave one possibility where
///          none is zero. Where `inner` is zero, c becomes zero. Dimensions are below 2^31.
/// Bound:   (inner + 2) 2^-24 (|a| |b|), the last factor being the product of the absolute values. NaN and infinities
///          as the sums of products have them; nothing is skipped because it meets a zero.
/// Bits:    the same device gives the same bits.
/// Cost:    on the CPU about 80 % of what the processor can (bench/workloads_bench.cpp). On CUDA, `matmul_on_cuda`.
/// Errors:  invalid_argument (sizes that do not match the shape, or each other).
WYE_API Job matmul(Read<float> a, Read<float> b, Write<float> c, MatmulShape shape = {});

/// The same with options: batches of products, b transposed, TF32.
/// Shape:   with steps, each of the three is as large as its last matrix needs, or larger; what lies between the matrices of c
///          stays as it is.
/// Bound:   with `tf32`, (2^-10 + 2^-22 + (inner + 2) 2^-23) (|a| |b|) where it is rounded to nearest, as wye's own kernel does.
/// Errors:  invalid_argument (as above; a batch of no product, of several without a shape; matrices of c that overlap).
WYE_API Job matmul(Read<float> a, Read<float> b, Write<float> c, MatmulShape shape,
                   const MatmulOptions& options);

/// Sets c to the product of matrices of 16-bit numbers, added up in float32. Where c is of 16 bits, too, each of its numbers is
/// rounded once, at the end.
/// Shape:   as above.
/// Bound:   (inner + 2) 2^-23 (|a| |b|): tensor cores cut off what they add. Where c is half, 2^-11 |c| + 2^-25 more, and
///          infinity from 65520 on; where it is bfloat16, 2^-8 |c| more. Of bfloat16, numbers and products below 2^-126 may count
///          as zero.
/// Bits:    as above; on CUDA of one kernel: without cuBLAS there are two, which add up in other orders, and which of them runs is
///          measured (`fastest_of`). With `measure_variants` off it is the same one each time.
/// Cost:    on CUDA cuBLAS, else tensor cores (of bfloat16 from Ampere on) or none, whichever is quicker on the device for as much
///          work. On the CPU and on Vulkan the numbers are made float32 and multiplied as such: that saves memory, not time. A c of
///          16 bits costs a float32 matrix of its size while the job runs.
/// Errors:  as above.
WYE_API Job matmul(Read<half> a, Read<half> b, Write<float> c, MatmulShape shape = {},
                   const MatmulOptions& options = {});
WYE_API Job matmul(Read<half> a, Read<half> b, Write<half> c, MatmulShape shape = {},
                   const MatmulOptions& options = {});
WYE_API Job matmul(Read<bfloat16> a, Read<bfloat16> b, Write<float> c, MatmulShape shape = {},
                   const MatmulOptions& options = {});
WYE_API Job matmul(Read<bfloat16> a, Read<bfloat16> b, Write<bfloat16> c, MatmulShape shape = {},
                   const MatmulOptions& options = {});

/// Sets c to the product of matrices of 8-bit integers.
/// Shape:   as above.
/// Bound:   exact where `inner` is at most 131,071. Beyond that a sum may leave the range of int32: it wraps around, and is not
///          saturated.
/// Cost:    on CUDA, tensor cores; cuBLAS where rows begin at multiples of 4 elements, which is what it asks for. On the CPU by
///          way of float32, in pieces that float32 has exactly.
/// Errors:  as above.
WYE_API Job matmul(Read<std::int8_t> a, Read<std::int8_t> b, Write<std::int32_t> c, MatmulShape shape = {},
                   const MatmulOptions& options = {});

/// What multiplies on CUDA: "cuBLAS" where libcublas.so.13 or .12 can be opened, float in float32 throughout unless TF32 is
/// asked for; else our own kernel, and why: "wye's own kernel: No library ...". Whether it can be used on a device is known once
/// that has multiplied: "wye's own kernel: cuBLAS does not multiply on device 'cuda:0': it was not initialized."; where it can on
/// another one, "cuBLAS, or wye's own kernel: ...".
/// Threads: thread-safe.
WYE_API std::string matmul_on_cuda();

namespace reference {
/// The same in float64, on this thread.
WYE_API std::vector<double> matmul(std::span<const float> a, std::span<const float> b, MatmulShape shape);
/// With options, of which `tf32` makes no difference. What lies between the matrices of c is zero.
WYE_API std::vector<double> matmul(std::span<const float> a, std::span<const float> b, MatmulShape shape,
                                   const MatmulOptions& options);
WYE_API std::vector<double> matmul(std::span<const half> a, std::span<const half> b, MatmulShape shape,
                                   const MatmulOptions& options = {});
WYE_API std::vector<double> matmul(std::span<const bfloat16> a, std::span<const bfloat16> b,
                                   MatmulShape shape, const MatmulOptions& options = {});
/// In 64 bits.
WYE_API std::vector<std::int64_t> matmul(std::span<const std::int8_t> a, std::span<const std::int8_t> b,
                                         MatmulShape shape, const MatmulOptions& options = {});
}  // namespace reference

}  // namespace workloads
}  // namespace v0
}  // namespace wye
