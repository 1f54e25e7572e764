#pragma once
/// Products of matrices by NVIDIA's cuBLAS, where it can be opened.
#include <wye/base/result.hpp>
#include <wye/device/native_code.hpp>

#include <optional>

#include "product.hpp"

namespace wye {
inline namespace v0 {
namespace workloads {
namespace cublas {

/// Why there is no cuBLAS; nothing where there is. The first call opens it.
/// Threads: thread-safe.
std::optional<Error> absence();

/// Enqueues c = a b, or c += a b, for a stretch of the inner dimension. Native functions of a kernel.
/// Errors: what cuBLAS says, as native(); unsupported where a lane keeps no handles.
Result<void> multiply(const NativeLane& lane, DeviceSpan<const float> a, DeviceSpan<const float> b,
                      DeviceSpan<float> c, Product shape);
Result<void> multiply_add(const NativeLane& lane, DeviceSpan<const float> a, DeviceSpan<const float> b,
                          DeviceSpan<float> c, Product shape);

}  // namespace cublas
}  // namespace workloads
}  // namespace v0
}  // namespace wye
