#include <wye/workloads/axpy.hpp>

#include "axpy_kernels.hpp"
#include "cpu.hpp"
#include "recipes.hpp"
#include "steps.hpp"

namespace wye::inline v0::workloads {
namespace {

// Kernels of workloads are function-local statics. They own text and host code but no threads or
// driver objects, so they may live until the library is unloaded.
const auto& axpy_kernel() {
  static const auto kernel = make_kernel<float, Read<float>, ReadWrite<float>>(
      kernels::axpy, {"a", "x", "y"}, {.glsl = Extent3(1024), .cuda = Extent3(1024)},
      {host(cpu::axpy, {.tile = Extent3(16384)})});
  return kernel;
}

}  // namespace

void add_axpy(Steps& steps, float a, const Read<float>& x, const ReadWrite<float>& y) {
  steps.add(axpy_kernel(), flat(y.size()), a, x, y);
}

Job axpy(float a, Read<float> x, ReadWrite<float> y) {
  if (auto why = not_as_long("axpy", "x", x.size(), "y", y.size()))
    return refused("axpy", workload_types::vector, *std::move(why));
  Steps steps;
  add_axpy(steps, a, x, y);
  return std::move(steps).job("axpy", workload_types::vector);
}

}  // namespace wye::workloads
