#include <wye/workloads/reduce.hpp>

#include "cpu.hpp"
#include "recipes.hpp"
#include "reduce_kernels.hpp"
#include "subgroups.hpp"

namespace wye::inline v0::workloads {
namespace {

template <class T>
using SumKernel = Kernel<Read<T>, Write<SumOf<T>>, RowSplit>;
template <class T>
using ExtremeKernel = Kernel<Read<T>, Read<std::uint32_t>, Write<T>, Write<std::uint32_t>, RowSplit,
                             std::uint32_t, std::uint32_t>;

/// The kernels for elements of type `T`.
template <class T>
struct ReduceKernels {
  Result<SumKernel<T>> sum;
  Result<ExtremeKernel<T>> extreme;

  ReduceKernels(const KernelText& sum_text, const KernelText& extreme_text)
      : sum(make_kernel_with_subgroups<Read<T>, Write<SumOf<T>>, RowSplit>(
            sum_text, {"x", "sums", "split"}, host(cpu::reduce_sum<T>, {.tile = piece_tile}))),
        extreme(make_kernel_with_subgroups<Read<T>, Read<std::uint32_t>, Write<T>, Write<std::uint32_t>,
                                           RowSplit, std::uint32_t, std::uint32_t>(
            extreme_text, {"x", "candidates", "values", "places", "split", "columns", "flip"},
            host(cpu::reduce_extreme<T>, {.tile = piece_tile}))) {}
};

const auto& reduce_kernels(float) {
  static const ReduceKernels<float> kernels(kernels::reduce_sum, kernels::reduce_extreme);
  return kernels;
}
const auto& reduce_kernels(half) {
  static const ReduceKernels<half> kernels(kernels::reduce_sum_half, kernels::reduce_extreme_half);
  return kernels;
}
const auto& reduce_kernels(bfloat16) {
  static const ReduceKernels<bfloat16> kernels(kernels::reduce_sum_bfloat16,
                                               kernels::reduce_extreme_bfloat16);
  return kernels;
}
const auto& reduce_kernels(std::int32_t) {
  static const ReduceKernels<std::int32_t> kernels(kernels::reduce_sum_word, kernels::reduce_extreme_word);
  return kernels;
}
const auto& reduce_kernels(std::uint32_t) {
  static const ReduceKernels<std::uint32_t> kernels(kernels::reduce_sum_word, kernels::reduce_extreme_word);
  return kernels;
}
const auto& reduce_kernels(std::uint64_t) {
  static const ReduceKernels<std::uint64_t> kernels(kernels::reduce_sum_uint64,
                                                    kernels::reduce_extreme_uint64);
  return kernels;
}

constexpr const char* name_of(Reduction reduction) {
  constexpr const char* names[] = {"sum", "min", "max"};
  return names[static_cast<unsigned>(reduction)];
}

Job refused_reduction(std::string sentence) {
  return refused("reduce", workload_types::vector, std::move(sentence));
}

template <class T>
Job sum_job(const Read<T>& x, const Write<SumOf<T>>& results) {
  if (auto why = no_columns("reduce", x.size(), results.size())) return refused_reduction(*std::move(why));
  Steps steps;
  add_sums(steps, x, results, split_columns(x.size(), results.size()));
  return std::move(steps).job("reduce", workload_types::vector);
}

/// The sign bit of negative keys is inverted, so that they have the order of unsigned integers.
/// Inverted keys have the opposite order.
template <class T>
constexpr std::uint32_t flip_of(Reduction reduction) {
  const std::uint32_t sign = std::is_same_v<T, std::int32_t> ? 0x8000'0000u : 0u;
  return reduction == Reduction::min ? ~sign : sign;
}

template <class T>
Job extreme_job(Reduction reduction, const Read<T>& x, const Write<T>& results,
                const Write<std::uint32_t>& places) {
  if (auto why = no_columns("reduce", x.size(), results.size())) return refused_reduction(*std::move(why));
  if (x.size() == 0 && results.size() != 0)
    return refused_reduction("Vector x (0 elements) of workload 'reduce' has empty rows, which have no '" +
                             std::string(name_of(reduction)) + "'.");
  const RowSplit split = split_columns(x.size(), results.size());
  const std::uint32_t flip = flip_of<T>(reduction);
  const auto& kernel = reduce_kernels(T{}).extreme;
  const std::span<const std::uint32_t> all;
  Steps steps;
  if (split.pieces == 1) {
    steps.add(kernel, split.items(), x, all, results, places, split, split.columns, flip);
  } else {
    const Scratch<std::uint32_t> candidates(split.all_pieces());
    const RowSplit of_pieces = split_of(split.rows, split.pieces);
    steps.add(kernel, split.items(), x, all, std::span<T>(), candidates, split, split.columns, flip);
    steps.add(kernel, of_pieces.items(), x, candidates, results, places, of_pieces, split.columns, flip);
  }
  return std::move(steps).job("reduce", workload_types::vector);
}

/// Reduces to results of the type of `x`.
template <class T>
Job same_type(Reduction reduction, const Read<T>& x, const Write<T>& results) {
  if (reduction != Reduction::sum) return extreme_job(reduction, x, results, std::span<std::uint32_t>());
  if constexpr (std::is_same_v<T, SumOf<T>>)
    return sum_job(x, results);
  else
    return refused_reduction("Reduction 'sum' of workload 'reduce' needs results of type float.");
}

template <class T>
Job to_float(Reduction reduction, const Read<T>& x, const Write<float>& results) {
  if (reduction == Reduction::sum) return sum_job(x, results);
  return refused_reduction("Reduction '" + std::string(name_of(reduction)) +
                           "' of workload 'reduce' needs results of the type of x.");
}

template <class T>
Job with_places(Reduction reduction, const Read<T>& x, const Write<T>& results,
                const Write<std::uint32_t>& places) {
  if (reduction == Reduction::sum)
    return refused_reduction("Reduction 'sum' of workload 'reduce' has no places.");
  if (auto why = not_as_long("reduce", "places", places.size(), "results", results.size()))
    return refused_reduction(*std::move(why));
  return extreme_job(reduction, x, results, places);
}

}  // namespace

template <class T>
void add_piece_sums(Steps& steps, const Read<T>& x, const Write<SumOf<T>>& sums, RowSplit split) {
  steps.add(reduce_kernels(T{}).sum, split.items(), x, sums, split);
}

template <class T>
void add_sums(Steps& steps, const Read<T>& x, const Write<SumOf<T>>& results, RowSplit split) {
  if (split.pieces == 1) return add_piece_sums<T>(steps, x, results, split);
  const Scratch<SumOf<T>> partials(split.all_pieces());
  add_piece_sums<T>(steps, x, partials, split);
  add_sums<SumOf<T>>(steps, partials, results, split_of(split.rows, split.pieces));
}

#define WYE_SUMS(T)                                                                       \
  template void add_piece_sums(Steps&, const Read<T>&, const Write<SumOf<T>>&, RowSplit); \
  template void add_sums(Steps&, const Read<T>&, const Write<SumOf<T>>&, RowSplit);
WYE_SUMS(float)
WYE_SUMS(half)
WYE_SUMS(bfloat16)
WYE_SUMS(std::int32_t)
WYE_SUMS(std::uint32_t)
WYE_SUMS(std::uint64_t)
#undef WYE_SUMS

Job reduce(Reduction reduction, Read<float> x, Write<float> results) {
  return same_type(reduction, x, results);
}
Job reduce(Reduction reduction, Read<std::int32_t> x, Write<std::int32_t> results) {
  return same_type(reduction, x, results);
}
Job reduce(Reduction reduction, Read<std::uint32_t> x, Write<std::uint32_t> results) {
  return same_type(reduction, x, results);
}
Job reduce(Reduction reduction, Read<std::uint64_t> x, Write<std::uint64_t> results) {
  return same_type(reduction, x, results);
}
Job reduce(Reduction reduction, Read<half> x, Write<float> results) {
  return to_float(reduction, x, results);
}
Job reduce(Reduction reduction, Read<half> x, Write<half> results) {
  return same_type(reduction, x, results);
}
Job reduce(Reduction reduction, Read<bfloat16> x, Write<float> results) {
  return to_float(reduction, x, results);
}
Job reduce(Reduction reduction, Read<bfloat16> x, Write<bfloat16> results) {
  return same_type(reduction, x, results);
}

Job reduce(Reduction reduction, Read<float> x, Write<float> results, Write<std::uint32_t> places) {
  return with_places(reduction, x, results, places);
}
Job reduce(Reduction reduction, Read<half> x, Write<half> results, Write<std::uint32_t> places) {
  return with_places(reduction, x, results, places);
}
Job reduce(Reduction reduction, Read<bfloat16> x, Write<bfloat16> results, Write<std::uint32_t> places) {
  return with_places(reduction, x, results, places);
}
Job reduce(Reduction reduction, Read<std::int32_t> x, Write<std::int32_t> results,
           Write<std::uint32_t> places) {
  return with_places(reduction, x, results, places);
}
Job reduce(Reduction reduction, Read<std::uint32_t> x, Write<std::uint32_t> results,
           Write<std::uint32_t> places) {
  return with_places(reduction, x, results, places);
}
Job reduce(Reduction reduction, Read<std::uint64_t> x, Write<std::uint64_t> results,
           Write<std::uint32_t> places) {
  return with_places(reduction, x, results, places);
}

}  // namespace wye::workloads
