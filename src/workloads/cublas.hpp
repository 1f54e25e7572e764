#pragma once
/// Products of matrices by NVIDIA's cuBLAS, if it can be opened.
#include <wye/base/result.hpp>
#include <wye/device/detail/native_code.hpp>

#include <cstdint>
#include <optional>
#include <string>

#include "product.hpp"

namespace wye {
inline namespace v0 {
namespace workloads {
namespace cublas {

/// Returns why cuBLAS cannot be opened, or nothing if it can. The first call opens it.
/// Threads: thread-safe.
std::optional<Error> absence();

/// Returns whether an attempt to open cuBLAS has failed in this process. Opens nothing.
/// Threads: thread-safe.
bool known_absent();

/// Checks that cuBLAS can be used on the device of `lane`. Fails if cuBLAS is newer than the driver, or if
/// memory is short.
/// Errors: those of cuBLAS, as native().
/// Threads: thread-safe.
Result<void> probe(const NativeLane& lane);
/// Describes the results of `probe`: the devices that use cuBLAS, and the reasons why others do not.
struct Probed {
  bool any = false;
  std::string refusals;
};
Probed probed();

/// The types of the factors, of the sums, and of c. Rounded products have one stretch.
enum class Arithmetic : std::uint8_t {
  float32,           ///< in float32 throughout
  tf32,              ///< float, which may be rounded to TF32
  float16,           ///< half, in float32
  float16_rounded,   ///< the same, rounded to half
  bfloat16,          ///< in float32
  bfloat16_rounded,  ///< the same, rounded to bfloat16
  int8,              ///< in int32: rows and matrices begin at multiples of 4
};

/// Enqueues c = a b for the first stretch of the inner dimension, c += a b for others. Called by native
/// functions of kernels.
/// Errors: those of cuBLAS, as native(); unsupported if a lane keeps no handles.
Result<void> multiply(const NativeLane& lane, Arithmetic arithmetic, const void* a, const void* b, void* c,
                      const Product& shape);

}  // namespace cublas
}  // namespace workloads
}  // namespace v0
}  // namespace wye
