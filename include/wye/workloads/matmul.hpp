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

namespace wye::inline v0::workloads {

/// Dimensions of c = a b: c is rows x columns, a is rows x inner, b is inner x columns.
struct MatmulShape {
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::uint64_t inner = 0;
  friend bool operator==(const MatmulShape&, const MatmulShape&) = default;
};

/// The layout of the matrices, the number of products and their precision.
struct MatmulOptions {
  bool transposed_a = false;  ///< a is given as inner x rows
  bool transposed_b = false;  ///< b is given as columns x inner
  /// Allows devices to round the factors of float products to TF32, which has 11 bits. NVIDIA's
  /// tensor cores from Ampere on do so. All other devices compute in float32.
  bool tf32 = false;
  std::uint64_t batch = 1;  ///< number of products; more than one need a shape
  /// Elements from the beginning of one matrix to the beginning of the next. Unset: the matrices
  /// are contiguous. Zero: all products share one a, or one b.
  std::optional<std::uint64_t> a_step = std::nullopt;
  std::optional<std::uint64_t> b_step = std::nullopt;
  std::optional<std::uint64_t> c_step = std::nullopt;
};

/// A function of each element x of a product.
enum class Activation : std::uint32_t {
  none,
  relu,       ///< max(x, 0)
  gelu,       ///< x times the normal distribution up to x
  gelu_tanh,  ///< x / (1 + exp(-2 u)), u = sqrt(2 / pi) (x + 0.044715 x^3): the approximation of gelu by tanh
  silu,       ///< x / (1 + exp(-x))
};

/// Changes the product to c = activation(scale a b + bias) + residual. `T` is the type of the elements of c.
/// Shape:   `bias` has one element for each column of c, and is the same for all products of a batch. `residual` has the shape
///          and the steps of c, and does not overlap c.
/// Bound:   1.13 |scale| times that of the product, before c is rounded to 16 bits, and 2^-20 (|scale| |a| |b| + |bias| +
///          |residual|) more. Activations of NaN are NaN, and those of -infinity are 0.
/// Cost:    on the CPU and in wye's own kernels, a few percent of a product with an inner dimension of 500. On CUDA, cuBLASLt
///          computes it if that can be opened, rows begin at multiples of 16 bytes, the activation is neither `gelu` nor
///          `silu`, and a residual comes without activation. Otherwise CUDA uses wye's own kernel.
template <class T>
struct MatmulEpilogue {
  float scale = 1;
  std::optional<Read<T>> bias = std::nullopt;
  Activation activation = Activation::none;
  std::optional<Read<T>> residual = std::nullopt;
};
/// Products of integers are not changed.
template <>
struct MatmulEpilogue<std::int32_t> {};

/// One of several products of a job: c = a b, with elements of `T` in a and b, and of `R` in c.
template <class T, class R>
struct MatmulGroup {
  Read<T> a;
  Read<T> b;
  Write<R> c;
  MatmulShape shape = {};
  MatmulOptions options = {};
  MatmulEpilogue<R> epilogue = {};
};

/// Sets c to the product of a and b.
/// Shape:   all three row after row. Without a shape it follows from the three sizes, which are unambiguous if none is zero.
///          If `inner` is zero, c becomes zero. Dimensions are below 2^31.
/// Bound:   (inner + 2) 2^-24 (|a| |b|), the last factor being the product of the absolute values. NaN and infinities
///          propagate as in sums of products; zeros skip no product.
/// Bits:    the same device gives the same bits.
/// Cost:    on the CPU about 80 % of the processor's peak (bench/workloads_bench.cpp). On CUDA, see `matmul_on_cuda`.
///          On Vulkan there are two kernels, which add in the same order. GPUs measure both (`fastest_of`). With
///          `measure_variants` off they use the kernel with tiles in shared memory. CPUs always use the other kernel.
/// Errors:  invalid_argument (sizes that do not match the shape, or each other).
WYE_API Job matmul(Read<float> a, Read<float> b, Write<float> c, MatmulShape shape = {});

/// The same with options (batches of products, a or b transposed, TF32) and an epilogue.
/// Shape:   with steps, each of the three is at least as large as its last matrix needs. Elements
///          between the matrices of c are unchanged.
/// Bound: with `tf32`, (2^-10 + 2^-22 + (inner + 2) 2^-23) (|a| |b|) if factors are rounded to
/// nearest, as in wye's own kernel.
/// Errors:  invalid_argument (as above; a batch of no product, of several without a shape; matrices
///          of c that overlap; sizes of the epilogue's numbers; an unknown activation).
WYE_API Job matmul(Read<float> a, Read<float> b, Write<float> c, MatmulShape shape,
                   const MatmulOptions& options, const MatmulEpilogue<float>& epilogue = {});

/// Sets c to the product of matrices of 16-bit numbers, accumulated in float32. If c has 16 bits, too, each of its numbers is
/// rounded once, at the end.
/// Shape:   as above.
/// Bound:   (inner + 2) 2^-23 (|a| |b|), because tensor cores truncate in additions. If c is half, 2^-11 |c| + 2^-25 more, and
///          infinity from 65520 on. If c is bfloat16, 2^-8 |c| more. For bfloat16, numbers and products below 2^-126 may count
///          as zero.
/// Bits:    as above. On CUDA without cuBLAS, and for half on GPUs with `Feature::cooperative_matrix`, kernels add in different
///          orders. Autotuning selects the kernel (`fastest_of`). With `measure_variants` off the kernel is always the same.
/// Cost:    on CUDA cuBLAS. Without it, autotuning decides for the device and size whether tensor cores are used (for bfloat16
///          from Ampere on). On Vulkan, GPUs with `Feature::cooperative_matrix` can compute products of half with it, unless
///          wye is built with a glslang older than 14. Otherwise, as on the CPU, the numbers are converted to float32: that
///          saves memory, not time. If `inner` exceeds 32,768, a c of 16 bits needs a float32 matrix of its size while the
///          job runs, and cuBLAS does not compute the last part.
/// Errors:  as above.
WYE_API Job matmul(Read<half> a, Read<half> b, Write<float> c, MatmulShape shape = {},
                   const MatmulOptions& options = {}, const MatmulEpilogue<float>& epilogue = {});
WYE_API Job matmul(Read<half> a, Read<half> b, Write<half> c, MatmulShape shape = {},
                   const MatmulOptions& options = {}, const MatmulEpilogue<half>& epilogue = {});
WYE_API Job matmul(Read<bfloat16> a, Read<bfloat16> b, Write<float> c, MatmulShape shape = {},
                   const MatmulOptions& options = {}, const MatmulEpilogue<float>& epilogue = {});
WYE_API Job matmul(Read<bfloat16> a, Read<bfloat16> b, Write<bfloat16> c, MatmulShape shape = {},
                   const MatmulOptions& options = {}, const MatmulEpilogue<bfloat16>& epilogue = {});

/// Sets c to the product of matrices of 8-bit integers.
/// Shape:   as above.
/// Bound:   exact if `inner` is at most 131,071. Beyond that a sum may leave the range of int32: it wraps around and does not
///          saturate.
/// Cost:    on CUDA, tensor cores; cuBLAS if rows begin at multiples of 4 elements, which it requires. On the CPU, float32
///          arithmetic on pieces that float32 represents exactly.
/// Errors:  as above.
WYE_API Job matmul(Read<std::int8_t> a, Read<std::int8_t> b, Write<std::int32_t> c, MatmulShape shape = {},
                   const MatmulOptions& options = {});

/// Computes products of any shapes as one job, for example those of the experts of a layer.
/// Shape:   each as above. Groups may share a and b.
/// Bits:    each product has the bits that it has alone.
/// Cost:    one call of a kernel per group. Groups whose matrices c do not overlap can run at the
///          same time on GPUs. On the CPU, they run one after another with all threads.
/// Errors:  invalid_argument (no group; a group as above, with its number: the job then computes
///          none).
WYE_API Job matmul(std::span<const MatmulGroup<float, float>> groups);
WYE_API Job matmul(std::span<const MatmulGroup<half, float>> groups);
WYE_API Job matmul(std::span<const MatmulGroup<half, half>> groups);
WYE_API Job matmul(std::span<const MatmulGroup<bfloat16, float>> groups);
WYE_API Job matmul(std::span<const MatmulGroup<bfloat16, bfloat16>> groups);
WYE_API Job matmul(std::span<const MatmulGroup<std::int8_t, std::int32_t>> groups);

/// Returns the implementation that multiplies on CUDA: "cuBLAS" if libcublas.so.13 or .12 can be
/// opened. It computes float in float32 unless TF32 is allowed. Otherwise returns wye's own kernel
/// with the reason: "wye's own kernel: No library ...". A failure of cuBLAS on a device is known
/// only after a product there: "wye's own kernel: cuBLAS does not multiply on device 'cuda:0': it
/// was not initialized."; if it works on another device, "cuBLAS, or wye's own kernel: ...".
/// Threads: thread-safe.
WYE_API std::string matmul_on_cuda();

namespace reference {
/// The same in float64, on this thread.
WYE_API std::vector<double> matmul(std::span<const float> a, std::span<const float> b, MatmulShape shape);
/// With options. `tf32` has no effect. Elements between the matrices of c become zero.
WYE_API std::vector<double> matmul(std::span<const float> a, std::span<const float> b, MatmulShape shape,
                                   const MatmulOptions& options);
WYE_API std::vector<double> matmul(std::span<const half> a, std::span<const half> b, MatmulShape shape,
                                   const MatmulOptions& options = {});
WYE_API std::vector<double> matmul(std::span<const bfloat16> a, std::span<const bfloat16> b,
                                   MatmulShape shape, const MatmulOptions& options = {});
/// c as the epilogue changes it: the product `c`, and `bias` and `residual` as in MatmulEpilogue,
/// or empty.
WYE_API std::vector<double> matmul_epilogue(std::span<const double> c, std::uint64_t columns, float scale,
                                            std::span<const double> bias, Activation activation,
                                            std::span<const double> residual);
/// The same in 64 bits.
WYE_API std::vector<std::int64_t> matmul(std::span<const std::int8_t> a, std::span<const std::int8_t> b,
                                         MatmulShape shape, const MatmulOptions& options = {});
}  // namespace reference

}  // namespace wye::workloads
