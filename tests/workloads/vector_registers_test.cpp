// The vector registers after the host code of workloads.
#include <wye/base/extent.hpp>
#include <wye/base/half.hpp>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cpu.hpp"
#include "support/catch.hpp"

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>

namespace {

namespace cpu = wye::workloads::cpu;
using wye::Range;

/// Whether the upper parts of registers 0 to 15 are in use: SSE code is slow then on some
/// processors.
bool uses_upper_parts() {
  std::uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
  return (low & (1u << 2 | 1u << 6)) != 0;
}

/// Sets all bits of a register.
void use_upper_parts() { asm volatile("vcmpps $15, %%ymm0, %%ymm0, %%ymm0" ::: "xmm0"); }

void zero_upper_parts() {
  asm volatile("vzeroupper" ::
                   : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
                     "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}

/// Whether the processor tells which registers are in use: XGETBV with 1 (Intel, "Software
/// Developer's Manual", volume 1, 13.2). It may always say that they are.
bool tells_use() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned needed = bit_OSXSAVE | bit_AVX;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & needed) != needed) return false;
  if (__get_cpuid_count(13, 1, &a, &b, &c, &d) == 0 || (a & 4u) == 0) return false;
  use_upper_parts();
  const bool used = uses_upper_parts();
  zero_upper_parts();
  return used && !uses_upper_parts();
}

}  // namespace

TEST_CASE("The host code of workloads leaves no upper part of a register in use", "[workloads]") {
  if (!tells_use()) {
    SUCCEED("The processor does not tell which registers are in use.");
    return;
  }
  constexpr std::uint32_t side = 64;
  std::vector<float> x(side * side, 1.5f), y = x, z = x;
  std::vector<wye::half> halves(side * side, wye::half(2.5f));
  const std::vector<std::uint8_t> blocks(2 * 18, 1);
  std::vector<float> of_blocks(2 * 32);
  const wye::workloads::RowSplit rows{.rows = side, .columns = side};
  const wye::workloads::Product product{.rows = side, .columns = side, .inner = side, .last = side};
  const std::vector<std::pair<std::string, std::function<void()>>> codes{
      {"axpy",
       [&] {
         cpu::axpy({0, x.size()}, 2, x, y);
       }},
      {"transpose",
       [&] {
         cpu::transpose({0, wye::workloads::items_per_transposed_block}, x, std::span(y), {side, side});
       }},
      {"normalize",
       [&] {
         cpu::normalize({0, side}, y, rows);
       }},
      {"softmax",
       [&] {
         cpu::softmax({0, side}, y, rows, 1);
       }},
      {"dot",
       [&] {
         cpu::dot<wye::half>({0, side}, halves, halves, std::span(z).first(side), rows);
       }},
      {"matmul",
       [&] {
         cpu::matmul<float>({0, wye::workloads::items_per_block}, x, y, {}, {}, std::span(z), product);
       }},
      {"widen", [&] { cpu::widen(halves.data(), 1, halves.size(), halves.size(), z.data()); }},
      {"narrow", [&] { cpu::narrow(z, halves.data()); }},
      {"dequantize",
       [&] {
         cpu::dequantize({0, 64}, blocks, of_blocks, wye::workloads::layout_of({}));
       }},
  };
  for (const auto& [name, code] : codes) {
    zero_upper_parts();
    code();
    const bool used = uses_upper_parts();
    INFO(name);
    CHECK_FALSE(used);
  }
}
#endif
