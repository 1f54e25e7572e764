#include <wye/workloads/scan.hpp>

#include "cpu.hpp"
#include "recipes.hpp"
#include "scan_kernels.hpp"
#include "subgroups.hpp"

namespace wye::inline v0::workloads {
namespace {

template <class T>
using ScanKernel = Kernel<Read<T>, Read<SumOf<T>>, Write<SumOf<T>>, RowSplit, std::uint32_t>;

template <class T>
Result<ScanKernel<T>> make_scan(const KernelText& text) {
  return make_kernel_with_subgroups<Read<T>, Read<SumOf<T>>, Write<SumOf<T>>, RowSplit, std::uint32_t>(
      text, {"x", "offsets", "sums", "split", "exclusive"}, host(cpu::scan<T>, {.tile = piece_tile}));
}
const auto& scan_kernel(float) {
  static const auto kernel = make_scan<float>(kernels::scan);
  return kernel;
}
const auto& scan_kernel(half) {
  static const auto kernel = make_scan<half>(kernels::scan_half);
  return kernel;
}
const auto& scan_kernel(bfloat16) {
  static const auto kernel = make_scan<bfloat16>(kernels::scan_bfloat16);
  return kernel;
}
const auto& scan_kernel(std::int32_t) {
  static const auto kernel = make_scan<std::int32_t>(kernels::scan_word);
  return kernel;
}
const auto& scan_kernel(std::uint32_t) {
  static const auto kernel = make_scan<std::uint32_t>(kernels::scan_word);
  return kernel;
}
const auto& scan_kernel(std::uint64_t) {
  static const auto kernel = make_scan<std::uint64_t>(kernels::scan_uint64);
  return kernel;
}

/// Adds the steps: the sums of all pieces, their exclusive scan, and the scan of each piece from
/// its offset on. A row has at most 2^15 pieces, so that the sums of its pieces are one piece.
template <class T>
void add_scan(Steps& steps, const Read<T>& x, const Write<SumOf<T>>& sums, RowSplit split,
              std::uint32_t exclusive) {
  using S = SumOf<T>;
  if (split.pieces == 1)
    return steps.add(scan_kernel(T{}), split.items(), x, std::span<const S>(), sums, split, exclusive);
  const Scratch<S> of_pieces(split.all_pieces()), offsets(split.all_pieces());
  add_piece_sums<T>(steps, x, of_pieces, split);
  add_scan<S>(steps, of_pieces, offsets, split_of(split.rows, split.pieces), 1);
  steps.add(scan_kernel(T{}), split.items(), x, offsets, sums, split, exclusive);
}

template <class T>
Job scan_job(Scan scan, const Read<T>& x, const Write<SumOf<T>>& sums,
             std::optional<std::uint64_t> columns_or_all) {
  const std::uint64_t columns = columns_or_all.value_or(x.size());
  auto why = not_as_long("scan", "sums", sums.size(), "x", x.size());
  if (!why) why = no_rows("scan", x.size(), columns);
  if (why) return refused("scan", workload_types::vector, *std::move(why));
  Steps steps;
  add_scan<T>(steps, x, sums, split_rows(x.size(), columns), scan == Scan::exclusive ? 1 : 0);
  return std::move(steps).job("scan", workload_types::vector);
}

}  // namespace

Job scan(Scan scan, Read<float> x, Write<float> sums, std::optional<std::uint64_t> columns) {
  return scan_job(scan, x, sums, columns);
}
Job scan(Scan scan, Read<std::int32_t> x, Write<std::int32_t> sums, std::optional<std::uint64_t> columns) {
  return scan_job(scan, x, sums, columns);
}
Job scan(Scan scan, Read<std::uint32_t> x, Write<std::uint32_t> sums, std::optional<std::uint64_t> columns) {
  return scan_job(scan, x, sums, columns);
}
Job scan(Scan scan, Read<std::uint64_t> x, Write<std::uint64_t> sums, std::optional<std::uint64_t> columns) {
  return scan_job(scan, x, sums, columns);
}
Job scan(Scan scan, Read<half> x, Write<float> sums, std::optional<std::uint64_t> columns) {
  return scan_job(scan, x, sums, columns);
}
Job scan(Scan scan, Read<bfloat16> x, Write<float> sums, std::optional<std::uint64_t> columns) {
  return scan_job(scan, x, sums, columns);
}

}  // namespace wye::workloads
