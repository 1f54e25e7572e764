// Autotunes two kernels that transpose a matrix.
#include <chrono>
#include <cstdio>
#include <span>
#include <vector>
#include <wye/wye.hpp>

constexpr std::uint64_t side = 2048;
using Transpose = wye::Kernel<wye::Read<float>, wye::Write<float>>;

// Reads row by row; every number is written to another cache line.
wye::Result<Transpose> by_rows() {
  return Transpose::make(
      {.name = "by_rows",
       .sources = {wye::host([](wye::Range range, std::span<const float> from, std::span<float> to) {
         for (std::uint64_t row : range)
           for (std::uint64_t column = 0; column < side; ++column)
             to[column * side + row] = from[row * side + column];
       })}});
}

// Reads and writes tiles of 32 x 32: whole cache lines.
wye::Result<Transpose> by_tiles() {
  constexpr std::uint64_t tile = 32;
  return Transpose::make({.name = "by_tiles",
                          .sources = {wye::host(
                              [](wye::Range range, std::span<const float> from, std::span<float> to) {
                                for (std::uint64_t first = 0; first < side; first += tile)
                                  for (std::uint64_t row : range)
                                    for (std::uint64_t column = first; column < first + tile; ++column)
                                      to[column * side + row] = from[row * side + column];
                              },
                              {.tile = wye::Extent3(tile)})}});
}

int main() {
  auto runtime = wye::Runtime::open();
  if (!runtime) return std::puts(runtime.error().describe().c_str()), 1;
  const auto rows = by_rows(), tiles = by_tiles();
  if (!rows || !tiles) return std::puts((rows ? tiles : rows).error().describe().c_str()), 1;

  // The first runs measure each kernel; later runs use the fastest for this device and size.
  const auto transpose = wye::fastest_of(*rows, {*tiles});
  std::vector<float> from(side * side), to(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i);
  for (int run = 1; run <= 7; ++run) {
    auto done = runtime->run(transpose(from, to).over(side));
    if (!done) return std::puts(done.error().describe().c_str()), 1;
    std::printf("run %d took %5.1f ms\n", run,
                std::chrono::duration<double, std::milli>(done->run_time()).count());
    if (run == 7) std::puts(done->reason().c_str());
  }
  return to[side] == from[1] ? 0 : 1;
}
