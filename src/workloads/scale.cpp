#include <wye/workloads/scale.hpp>

#include <bit>
#include <cstring>

#include "cpu.hpp"
#include "rows.hpp"
#include "scale_kernels.hpp"
#include "steps.hpp"

namespace wye::inline v0::workloads {
namespace {

template <class T>
auto make_scale(const KernelText& text) {
  return make_kernel<Read<T>, ReadWrite<T>, RowSplit, cpu::ScaleFactor>(
      text, {"factors", "x", "split", "a"}, {}, {host(cpu::scale<T>, {.tile = piece_tile})});
}

template <class T>
Job add_scale(const Result<Kernel<Read<T>, ReadWrite<T>, RowSplit, cpu::ScaleFactor>>& kernel,
              const Read<T>& factors, const ReadWrite<T>& x, std::uint64_t rows, cpu::ScaleFactor a) {
  if (auto why = no_columns("scale", x.size(), rows, "factors"))
    return refused("scale", workload_types::vector, *std::move(why));
  const RowSplit split = split_columns(x.size(), rows);
  Steps steps;
  steps.add(kernel, split.items(), factors, x, split, a);
  return std::move(steps).job("scale", workload_types::vector);
}

template <class T>
const auto& scale_kernel(const KernelText& text) {
  static const auto kernel = make_scale<T>(text);
  return kernel;
}

template <class T>
Job scale_all(const KernelText& text, T a, const ReadWrite<T>& x) {
  cpu::ScaleFactor factor;
  std::memcpy(static_cast<void*>(&factor), &a, sizeof a);
  return add_scale<T>(scale_kernel<T>(text), std::span<const T>(), x, 1, factor);
}
template <class T>
Job scale_rows(const KernelText& text, const Read<T>& factors, const ReadWrite<T>& x) {
  return add_scale<T>(scale_kernel<T>(text), factors, x, factors.size(), {});
}

}  // namespace

Job scale(float a, ReadWrite<float> x) { return scale_all(kernels::scale, a, x); }
Job scale(half a, ReadWrite<half> x) { return scale_all(kernels::scale_half, a, x); }
Job scale(bfloat16 a, ReadWrite<bfloat16> x) { return scale_all(kernels::scale_bfloat16, a, x); }
Job scale(std::int32_t a, ReadWrite<std::int32_t> x) { return scale_all(kernels::scale_word, a, x); }
Job scale(std::uint32_t a, ReadWrite<std::uint32_t> x) { return scale_all(kernels::scale_word, a, x); }
Job scale(std::uint64_t a, ReadWrite<std::uint64_t> x) { return scale_all(kernels::scale_uint64, a, x); }

Job scale(Read<float> factors, ReadWrite<float> x) { return scale_rows(kernels::scale, factors, x); }
Job scale(Read<half> factors, ReadWrite<half> x) { return scale_rows(kernels::scale_half, factors, x); }
Job scale(Read<bfloat16> factors, ReadWrite<bfloat16> x) {
  return scale_rows(kernels::scale_bfloat16, factors, x);
}
Job scale(Read<std::int32_t> factors, ReadWrite<std::int32_t> x) {
  return scale_rows(kernels::scale_word, factors, x);
}
Job scale(Read<std::uint32_t> factors, ReadWrite<std::uint32_t> x) {
  return scale_rows(kernels::scale_word, factors, x);
}
Job scale(Read<std::uint64_t> factors, ReadWrite<std::uint64_t> x) {
  return scale_rows(kernels::scale_uint64, factors, x);
}

}  // namespace wye::workloads
