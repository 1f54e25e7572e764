#include <wye/workloads/segment_mean.hpp>

#include <optional>
#include <string>

#include "cpu.hpp"
#include "rows.hpp"
#include "segment_mean_kernels.hpp"
#include "segments.hpp"
#include "steps.hpp"

namespace wye::inline v0::workloads {
namespace {

/// Bounds the loops of shaders.
constexpr std::uint64_t most_segment_rows = std::uint64_t{1} << 22;

template <class T>
const auto& segment_sums_kernel() {
  static const auto kernel = make_kernel<Read<T>, Read<std::uint32_t>, Write<float>, SegmentShape>(
      text_for<T>(kernels::segment_sums, kernels::segment_sums_half, kernels::segment_sums_bfloat16),
      {"x", "offsets", "sums", "shape"}, {}, {host(cpu::segment_sums<T>, {.tile = piece_tile})});
  return kernel;
}
template <class T>
const auto& segment_mean_kernel() {
  static const auto kernel = make_kernel<Read<T>, Read<std::uint32_t>, Read<float>, Write<T>, SegmentShape>(
      text_for<T>(kernels::segment_mean, kernels::segment_mean_half, kernels::segment_mean_bfloat16),
      {"x", "offsets", "sums", "result", "shape"}, {}, {host(cpu::segment_mean<T>, {.tile = piece_tile})});
  return kernel;
}

/// Returns the reason if sizes do not match or exceed a limit.
std::optional<std::string> no_segments(std::uint64_t x, std::uint64_t offsets, std::uint64_t result) {
  const auto elements = [](const char* subject, std::uint64_t size) {
    return std::string(subject) + " (" + std::to_string(size) + " elements) of workload 'segment_mean' ";
  };
  const auto number = [](std::uint64_t value) { return std::to_string(value); };
  if (offsets == 0 || offsets > largest_dimension)
    return elements("Offsets", offsets) + "are not between 1 and " + number(largest_dimension) + ".";
  const std::uint64_t segments = offsets - 1;
  if (segments == 0 ? result != 0 : result % segments != 0)
    return elements("Result", result) + "has no whole number of elements for " + number(segments) +
           " segments.";
  const std::uint64_t columns = segments == 0 ? 0 : result / segments;
  if (auto why = no_rows("segment_mean", x, columns)) return why;
  if (columns != 0 && x / columns > most_segment_rows)
    return elements("Matrix", x) + "has a number of rows (" + number(x / columns) +
           ") that exceeds the limit (" + number(most_segment_rows) + ").";
  return std::nullopt;
}

/// Returns whether a segment may have a whole stretch of rows.
bool may_have_stretches(const HostWords& offsets, std::uint64_t rows) {
  if (!offsets.exist) return rows >= segment_stretch;
  for (std::size_t i = 1; i < offsets.words.size(); ++i)
    if (offsets.words[i] - offsets.words[i - 1] >= segment_stretch) return true;
  return false;
}

SegmentShape shape_of(std::uint64_t rows, std::uint64_t columns) {
  SegmentShape shape{.rows = static_cast<std::uint32_t>(rows),
                     .columns = static_cast<std::uint32_t>(columns)};
  while (shape.lanes_log2 < 8 && columns > (std::uint64_t{4} << shape.lanes_log2)) ++shape.lanes_log2;
  if (columns > segment_piece) shape.pieces = (shape.columns - 1) / segment_piece + 1;
  return shape;
}

template <class T>
Job segment_mean_job(const Read<T>& x, const Read<std::uint32_t>& offsets, const Write<T>& result) {
  const auto refuse = [](std::string why) {
    return refused("segment_mean", workload_types::vector, std::move(why));
  };
  if (auto why = no_segments(x.size(), offsets.size(), result.size())) return refuse(*std::move(why));
  const std::uint64_t segments = offsets.size() - 1, columns = segments == 0 ? 0 : result.size() / segments;
  const std::uint64_t rows = columns == 0 ? 0 : x.size() / columns;
  const HostWords on_host = words_on_host(offsets);
  // Rows without columns have no number.
  if (on_host.exist)
    if (auto why = no_offsets("segment_mean", on_host.words,
                              columns == 0 && segments != 0 ? on_host.words.back() : rows))
      return refuse(*std::move(why));

  SegmentShape shape = shape_of(rows, columns);
  Steps steps;
  if (columns != 0 && may_have_stretches(on_host, rows)) {
    shape.stretches = shape.rows / segment_stretch;
    const Scratch<float> sums(std::uint64_t{shape.stretches} * columns);
    shape.count = shape.stretches;
    steps.add(segment_sums_kernel<T>(), shape.items(), x, offsets, sums, shape);
    shape.count = static_cast<std::uint32_t>(segments);
    steps.add(segment_mean_kernel<T>(), shape.items(), x, offsets, sums, result, shape);
  } else {
    shape.count = static_cast<std::uint32_t>(columns == 0 ? 0 : segments);
    steps.add(segment_mean_kernel<T>(), shape.items(), x, offsets, std::span<const float>(), result, shape);
  }
  return std::move(steps).job("segment_mean", workload_types::vector);
}

}  // namespace

Job segment_mean(Read<float> x, Read<std::uint32_t> offsets, Write<float> result) {
  return segment_mean_job(x, offsets, result);
}
Job segment_mean(Read<half> x, Read<std::uint32_t> offsets, Write<half> result) {
  return segment_mean_job(x, offsets, result);
}
Job segment_mean(Read<bfloat16> x, Read<std::uint32_t> offsets, Write<bfloat16> result) {
  return segment_mean_job(x, offsets, result);
}

}  // namespace wye::workloads
