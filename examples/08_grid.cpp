// The grid of a call: one item per written element by default; `over` sets another.
#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>
#include <wye/wye.hpp>

int main() {
  // Sums each row, with one item per row.
  const auto sum_rows = wye::Kernel<wye::Read<float>, wye::Write<float>, std::uint32_t>::make({
      .name = "sum_rows",
      .sources = {wye::Glsl{.text = R"(#version 450
                      layout(local_size_x = 64) in;
                      layout(set = 0, binding = 0) readonly buffer Table { float table[]; };
                      layout(set = 0, binding = 1) writeonly buffer Sums { float sums[]; };
                      layout(push_constant) uniform P { uint columns; };
                      void main() {
                        uint row = gl_GlobalInvocationID.x;
                        if (row >= sums.length()) return;
                        float sum = 0;
                        for (uint column = 0; column < columns; ++column) sum += table[row * columns + column];
                        sums[row] = sum;
                      })"},
                  wye::host([](wye::Range rows, std::span<const float> table, std::span<float> sums,
                               std::uint32_t columns) {
                    for (auto row : rows) {
                      sums[row] = 0;
                      for (float value : table.subspan(row * columns, columns)) sums[row] += value;
                    }
                  })},
  });

  // Multiplies row and column numbers in a grid of two dimensions.
  const auto multiply = wye::Kernel<wye::Write<std::uint32_t>, std::uint32_t>::make({
      .name = "multiply",
      .sources = {wye::Glsl{.text = R"(#version 450
                      layout(local_size_x = 8, local_size_y = 8) in;
                      layout(set = 0, binding = 0) writeonly buffer Table { uint table[]; };
                      layout(push_constant) uniform P { uint width; };
                      void main() {
                        uvec2 at = gl_GlobalInvocationID.xy;
                        if (at.x < width && at.y < table.length() / width) table[at.y * width + at.x] = at.x * at.y;
                      })"},
                  wye::host([](wye::Range range, std::span<std::uint32_t> table, std::uint32_t) {
                    for (const auto row : range.rows())
                      for (auto x : row.columns())
                        table[row.start + x] = static_cast<std::uint32_t>(x * row.y);
                  })},
  });
  if (!sum_rows) return std::puts(sum_rows.error().describe().c_str()), 1;
  if (!multiply) return std::puts(multiply.error().describe().c_str()), 1;
  auto runtime = wye::Runtime::open();
  if (!runtime) return std::puts(runtime.error().describe().c_str()), 1;

  constexpr std::uint32_t rows = 30, columns = 40;
  std::vector<float> table(rows * columns, 0.5f), sums(rows);
  auto summed = runtime->run((*sum_rows)(table, sums, columns).over(rows));
  if (!summed) return std::puts(summed.error().describe().c_str()), 1;

  std::vector<std::uint32_t> products(rows * columns);
  auto multiplied = runtime->run((*multiply)(products, columns).over({columns, rows}));
  if (!multiplied) return std::puts(multiplied.error().describe().c_str()), 1;

  std::printf("row sum %g, 29 x 39 = %u\n", sums.back(), products.back());
  return sums.back() == 20.0f && products.back() == 29 * 39 ? 0 : 1;
}
