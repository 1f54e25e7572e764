#include <wye/workloads/quantized.hpp>

#include <optional>
#include <string>

#include "cpu.hpp"
#include "kernel_text.hpp"
#include "quantized_kernels.hpp"
#include "recipes.hpp"
#include "steps.hpp"

namespace wye::inline v0::workloads {
namespace {

template <class X>
using QuantizedKernel = Kernel<Read<X>, Read<std::uint8_t>, Write<float>, QuantizedProduct, BlockLayout>;

const auto& quantize_kernel() {
  static const auto kernel = make_kernel<Read<float>, Write<std::uint8_t>, BlockLayout>(
      kernels::quantize, {"x", "blocks", "layout"}, {}, {host(cpu::quantize, {.tile = Extent3(256)})});
  return kernel;
}
const auto& dequantize_kernel() {
  static const auto kernel = make_kernel<Read<std::uint8_t>, Write<float>, BlockLayout>(
      kernels::dequantize, {"blocks", "x", "layout"}, {}, {host(cpu::dequantize, {.tile = Extent3(16384)})});
  return kernel;
}
/// The units of a block of many rows.
constexpr std::uint32_t units_per_block = block_side / rows_per_tile * columns_per_block;
/// Makes the product with a host function and its fewest units per call.
template <class X, class F>
Result<QuantizedKernel<X>> make_product(const KernelText& text, F function, std::uint32_t units) {
  return make_kernel<Read<X>, Read<std::uint8_t>, Write<float>, QuantizedProduct, BlockLayout>(
      text, {"x", "weights", "y", "shape", "layout"}, {},
      {host(function, {.tile = Extent3(units * lanes_per_unit)})});
}
const auto& product_kernel(bool few) {
  static const auto of_few = make_product<float>(kernels::quantized_matmul, cpu::multiply_few_rows, 64);
  static const auto of_many =
      make_product<float>(kernels::quantized_matmul, cpu::multiply_many_rows, units_per_block);
  return few ? of_few : of_many;
}
const auto& int8_product_kernel(bool few) {
  static const auto of_few =
      make_product<std::uint8_t>(kernels::quantized_matmul_int8, cpu::multiply_int8_rows, columns_per_block);
  static const auto of_many =
      make_product<std::uint8_t>(kernels::quantized_matmul_int8, cpu::multiply_int8_rows, units_per_block);
  return few ? of_few : of_many;
}

/// Returns the reason if `elements` are not those of `bytes` bytes of blocks.
std::optional<std::string> no_blocks(const std::string& workload, std::uint64_t elements, std::uint64_t bytes,
                                     Quantization q) {
  if (auto why = no_layout(workload, q)) return why;
  if (elements % q.group != 0)
    return "Vector x (" + std::to_string(elements) + " elements) of workload '" + workload +
           "' is no whole number of blocks of " + std::to_string(q.group) + " elements.";
  const std::uint64_t needed = elements / q.group * block_bytes(q);
  if (bytes != needed)
    return "Blocks (" + std::to_string(bytes) + " bytes) of workload '" + workload + "' are not the " +
           std::to_string(needed) + " bytes of " + std::to_string(elements) + " elements.";
  return std::nullopt;
}

/// The longest row: a lane of a unit adds up to 2^15 products, because shaders have limited loops.
constexpr std::uint64_t longest_inner = std::uint64_t{1} << 20;

/// Returns the reason if sizes are invalid.
std::optional<std::string> no_quantized_product(std::uint64_t x, std::uint64_t weights, std::uint64_t y,
                                                std::uint64_t rows, Quantization q) {
  const std::string workload = "quantized_matmul";
  if (auto why = no_layout(workload, q)) return why;
  const auto no_rows_in = [&](const char* which, std::uint64_t size) {
    return "Matrix " + std::string(which) + " (" + std::to_string(size) + " elements) of workload '" +
           workload + "' has no whole number of columns for " + std::to_string(rows) + " rows.";
  };
  if (rows == 0 ? x != 0 : x % rows != 0) return no_rows_in("x", x);
  if (rows == 0 ? y != 0 : y % rows != 0) return no_rows_in("y", y);
  if (y > largest_dimension || rows > largest_dimension)
    return "Matrix y (" + std::to_string(y) + " elements, " + std::to_string(rows) +
           " rows) of workload 'quantized_matmul' exceeds the limit (" + std::to_string(largest_dimension) +
           ").";
  if (rows == 0) return std::nullopt;
  const std::uint64_t inner = x / rows, columns = y / rows;
  if (inner % q.group != 0)
    return "Rows (" + std::to_string(inner) +
           " elements) of workload 'quantized_matmul' are no whole number of blocks of " +
           std::to_string(q.group) + " elements.";
  if (inner > longest_inner)
    return "Rows (" + std::to_string(inner) + " elements) of workload 'quantized_matmul' exceed the limit (" +
           std::to_string(longest_inner) + ").";
  const std::uint64_t needed = columns * (inner / q.group) * block_bytes(q);
  if (weights != needed)
    return "Weights (" + std::to_string(weights) + " bytes) of workload 'quantized_matmul' are not the " +
           std::to_string(needed) + " bytes of " + std::to_string(columns) + " x " + std::to_string(inner) +
           " elements.";
  return std::nullopt;
}

}  // namespace

std::optional<std::string> no_layout(const std::string& workload, Quantization q) {
  const auto type = static_cast<unsigned>(q.type);
  if (type > static_cast<unsigned>(BlockType::int8))
    return "Block type (" + std::to_string(type) + ") of workload '" + workload + "' exceeds the limit (" +
           std::to_string(static_cast<unsigned>(BlockType::int8)) + ").";
  const bool any = q.type == BlockType::int4 || q.type == BlockType::int8;
  if (q.group == 32 || (any && (q.group == 64 || q.group == 128))) return std::nullopt;
  return "Group (" + std::to_string(q.group) + " elements) of workload '" + workload + "' is not " +
         (any ? "32, 64 or 128." : "32.");
}

Job quantize(Read<float> x, Write<std::uint8_t> blocks, Quantization quantization) {
  if (auto why = no_blocks("quantize", x.size(), blocks.size(), quantization))
    return refused("quantize", workload_types::vector, *std::move(why));
  Steps steps;
  steps.add(quantize_kernel(), flat(x.size() / quantization.group), x, blocks, layout_of(quantization));
  return std::move(steps).job("quantize", workload_types::vector);
}

std::optional<std::string> add_dequantize(Steps& steps, const Read<std::uint8_t>& blocks,
                                          const Write<float>& x, Quantization quantization) {
  if (auto why = no_blocks("dequantize", x.size(), blocks.size(), quantization)) return why;
  steps.add(dequantize_kernel(), flat(x.size()), blocks, x, layout_of(quantization));
  return std::nullopt;
}

Job dequantize(Read<std::uint8_t> blocks, Write<float> x, Quantization quantization) {
  Steps steps;
  if (auto why = add_dequantize(steps, blocks, x, quantization))
    return refused("dequantize", workload_types::vector, *std::move(why));
  return std::move(steps).job("dequantize", workload_types::vector);
}

std::optional<std::string> add_quantized_matmul(Steps& steps, const Read<float>& x,
                                                const Read<std::uint8_t>& weights, const Write<float>& y,
                                                std::uint64_t rows, Quantization quantization,
                                                QuantizedMatmulOptions options, bool any_rows) {
  if (auto why = no_quantized_product(x.size(), weights.size(), y.size(), rows, quantization)) return why;
  QuantizedProduct shape{.rows = static_cast<std::uint32_t>(rows),
                         .columns = static_cast<std::uint32_t>(rows == 0 ? 0 : y.size() / rows),
                         .inner = static_cast<std::uint32_t>(rows == 0 ? 0 : x.size() / rows),
                         .tiles = (static_cast<std::uint32_t>(rows) + rows_per_tile - 1) / rows_per_tile};
  const bool few = any_rows || rows <= most_few_rows;
  // Blocks of many rows begin where calls of the host function do.
  constexpr std::uint32_t tiles = block_side / rows_per_tile;
  if (!options.int8_x && !few && shape.tiles > tiles) shape.tiles = (shape.tiles + tiles - 1) / tiles * tiles;
  if (const std::uint64_t units = units_of(shape); units > largest_dimension + 1)
    return "Rows (" + std::to_string(rows) + ") of workload 'quantized_matmul' need " +
           std::to_string(units) + " units of 4 x 1 results, which exceeds the limit (" +
           std::to_string(largest_dimension + 1) + ").";
  const Extent3 items = flat(units_of(shape) * lanes_per_unit);
  const BlockLayout layout = layout_of(quantization);
  if (options.int8_x) {
    constexpr Quantization q8_0{.type = BlockType::q8_0};
    const Scratch<std::uint8_t> blocks(x.size() / q8_0.group * block_bytes(q8_0));
    steps.add(quantize_kernel(), flat(x.size() / q8_0.group), x, blocks, layout_of(q8_0));
    steps.add(int8_product_kernel(few || shape.tiles <= tiles), items, blocks, weights, y, shape, layout);
  } else {
    steps.add(product_kernel(few), items, x, weights, y, shape, layout);
  }
  return std::nullopt;
}

Job quantized_matmul(Read<float> x, Read<std::uint8_t> weights, Write<float> y, std::uint64_t rows,
                     Quantization quantization, QuantizedMatmulOptions options) {
  Steps steps;
  if (auto why = add_quantized_matmul(steps, x, weights, y, rows, quantization, options, false))
    return refused("quantized_matmul", workload_types::matrix, *std::move(why));
  return std::move(steps).job("quantized_matmul", workload_types::matrix);
}

}  // namespace wye::workloads
