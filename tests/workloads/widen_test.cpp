// The conversions between half and float that the host code of workloads shares.
#include <wye/base/half.hpp>

#include <bit>
#include <cstdint>
#include <random>
#include <vector>

#include "cpu.hpp"
#include "support/catch.hpp"

namespace cpu = wye::workloads::cpu;
using wye::half;

namespace {

std::vector<half> all_halves() {
  std::vector<half> all(0x10000);
  for (std::uint32_t bits = 0; bits < all.size(); ++bits)
    all[bits] = half::from_bits(static_cast<std::uint16_t>(bits));
  return all;
}

}  // namespace

TEST_CASE("host code converts every half to the same bits as half itself", "[workloads][half]") {
  const std::vector<half> all = all_halves();
  std::vector<float> wide(all.size());
  // Whole vectors, rows that end within a vector, and rows with others between them.
  for (const std::size_t columns : {std::size_t{0x10000}, std::size_t{37}, std::size_t{3}})
    for (const std::size_t step : {columns, columns + 5}) {
      const std::size_t rows = step > all.size() ? 0 : (all.size() - columns) / step + 1;
      wide.assign(rows * columns, -1);
      cpu::widen(all.data(), rows, columns, step, wide.data());
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < wide.size(); ++i)
        if (std::bit_cast<std::uint32_t>(wide[i]) !=
            std::bit_cast<std::uint32_t>(static_cast<float>(all[i / columns * step + i % columns])))
          ++wrong;
      INFO(columns << " columns, a step of " << step);
      CHECK(wrong == 0);
    }
}

TEST_CASE("host code rounds floats to the same bits as half itself", "[workloads][half]") {
  std::vector<std::uint32_t> words;
  // Each half, the numbers around the middle to the next one, and the next ones.
  for (const half number : all_halves()) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(number));
    for (const std::uint32_t more : {0u, 1u, 0xfffu, 0x1000u, 0x1001u, 0x1fffu}) words.push_back(bits + more);
  }
  // Halves below 2^-14 have their middles elsewhere.
  for (std::uint32_t i = 0; i < 2048; ++i) {
    const auto middle = std::bit_cast<std::uint32_t>(static_cast<float>(i) * 0x1p-25f);
    for (const std::uint32_t sign : {0u, 0x8000'0000u})
      for (const std::uint32_t more : {0u, 1u}) {
        words.push_back(sign | (middle + more));
        words.push_back(sign | (middle == 0 ? 0 : middle - more));
      }
  }
  std::mt19937 random(46);
  for (int i = 0; i < 100'000; ++i) words.push_back(static_cast<std::uint32_t>(random()));
  std::vector<float> numbers;
  for (const std::uint32_t bits : words) numbers.push_back(std::bit_cast<float>(bits));

  for (const std::size_t n : {numbers.size(), std::size_t{37}, std::size_t{3}}) {
    std::size_t wrong = 0;
    for (std::size_t first = 0; first + n <= numbers.size(); first += n) {
      std::vector<half> narrow(n + 1);
      cpu::narrow(std::span<const float>(numbers).subspan(first, n), narrow.data());
      for (std::size_t i = 0; i < n; ++i)
        if (narrow[i].bits != half(numbers[first + i]).bits) ++wrong;
      if (narrow[n].bits != 0) ++wrong;
    }
    INFO(n << " numbers at a time");
    CHECK(wrong == 0);
  }
}
