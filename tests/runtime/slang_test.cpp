/// Kernels in Slang on real Vulkan devices, compared with the host.
#include <wye/wye.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <optional>
#include <vector>

#include "on_vulkan.hpp"
#include "support/catch.hpp"
#include "support/compilers.hpp"

using namespace wye;
using test::in_slang;
using test::lacks;
using test::run;

namespace {

/// Opens a runtime with a Vulkan device; reports a skip if there is none, or no Slang.
std::optional<Runtime> open_for_slang() { return test::has_slang() ? test::open_vulkan() : std::nullopt; }

std::vector<float> numbers(std::size_t count) {
  std::vector<float> x(count);
  for (std::size_t i = 0; i < count; ++i)
    x[i] = static_cast<float>(static_cast<int>(i * 7919 % 1000) - 500) / 64;
  return x;
}

}  // namespace

TEST_CASE("a kernel in Slang scales, through bindings and through pointers", "[runtime][slang]") {
  auto on = open_for_slang();
  if (!on) return;
  const auto bound = in_slang<ReadWrite<float>, float>(R"([shader("compute")] [numthreads(256, 1, 1)]
void scale(uint3 id : SV_DispatchThreadID, uniform RWStructuredBuffer<float> x, uniform float s) {
  uint count, stride;
  x.GetDimensions(count, stride);
  if (id.x < count) x[id.x] *= s;
})");
  const auto pointed =
      in_slang<Read<float>, Write<float>, std::uint32_t>(R"([shader("compute")] [numthreads(64, 1, 1)]
void scale(uint3 id : SV_DispatchThreadID, uniform Ptr<float, Access.Read> x, uniform float* y, uniform uint n) {
  if (id.x < n) y[id.x] = x[id.x] * 3;
})");
  for (const std::size_t count : {1u, 255u, 257u, 100'000u}) {
    const std::vector<float> before = numbers(count);
    std::vector<float> x = before, y(count);
    run(*on, bound(x, 2.5f));
    run(*on, pointed(x, y, static_cast<std::uint32_t>(count)));
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < count; ++i) wrong += x[i] != before[i] * 2.5f || y[i] != x[i] * 3;
    CHECK(wrong == 0);
  }
}

TEST_CASE("a kernel in Slang reduces in shared memory", "[runtime][slang]") {
  auto on = open_for_slang();
  if (!on) return;
  const auto sum = in_slang<Read<float>, Write<float>>(R"(extern static const uint width;
groupshared float part[width];
[shader("compute")] [numthreads(width, 1, 1)]
void sum(uint3 id : SV_DispatchThreadID, uint3 local : SV_GroupThreadID, uint3 group : SV_GroupID,
         uniform StructuredBuffer<float> x, uniform RWStructuredBuffer<float> sums) {
  uint count, stride;
  x.GetDimensions(count, stride);
  part[local.x] = id.x < count ? x[id.x] : 0;
  GroupMemoryBarrierWithGroupSync();
  for (uint half = width / 2; half > 0; half /= 2) {
    if (local.x < half) part[local.x] += part[local.x + half];
    GroupMemoryBarrierWithGroupSync();
  }
  if (local.x == 0) sums[group.x] = part[0];
})",
                                                       {{"width", 128u}});
  const std::vector<float> x = numbers(128 * 37 - 5);
  std::vector<float> sums(37);
  run(*on, sum(x, sums).over(Extent3(x.size())));
  for (std::size_t g = 0; g < sums.size(); ++g) {
    const std::size_t end = std::min(x.size(), (g + 1) * 128);
    // Numbers are multiples of 1/64: sums are exact in any order.
    CHECK(sums[g] == std::accumulate(x.begin() + static_cast<std::ptrdiff_t>(g * 128),
                                     x.begin() + static_cast<std::ptrdiff_t>(end), 0.0f));
  }
}

TEST_CASE("a kernel in Slang multiplies matrices in tiles", "[runtime][slang]") {
  auto on = open_for_slang();
  if (!on) return;
  const auto matmul =
      in_slang<Read<float>, Read<float>, Write<float>, std::uint32_t>(R"(static const uint T = 16;
groupshared float ta[T][T];
groupshared float tb[T][T];
[shader("compute")] [numthreads(T, T, 1)]
void matmul(uint3 id : SV_DispatchThreadID, uint3 at : SV_GroupThreadID, uniform StructuredBuffer<float> a,
            uniform StructuredBuffer<float> b, uniform RWStructuredBuffer<float> c, uniform uint n) {
  float sum = 0;
  for (uint t = 0; t < n; t += T) {
    ta[at.y][at.x] = id.y < n && t + at.x < n ? a[id.y * n + t + at.x] : 0;
    tb[at.y][at.x] = t + at.y < n && id.x < n ? b[(t + at.y) * n + id.x] : 0;
    GroupMemoryBarrierWithGroupSync();
    for (uint i = 0; i < T; ++i) sum += ta[at.y][i] * tb[i][at.x];
    GroupMemoryBarrierWithGroupSync();
  }
  if (id.x < n && id.y < n) c[id.y * n + id.x] = sum;
})");
  const std::uint32_t n = 75;
  const std::vector<float> a = numbers(n * n), b = numbers(n * n + 3);
  std::vector<float> c(n * n);
  run(*on, matmul(a, b, c, n).over({n, n}));
  double worst = 0;
  for (std::size_t y = 0; y < n; ++y)
    for (std::size_t x = 0; x < n; ++x) {
      double sum = 0;
      for (std::size_t i = 0; i < n; ++i) sum += double(a[y * n + i]) * double(b[i * n + x]);
      worst = std::max(worst, std::abs(sum - double(c[y * n + x])));
    }
  CHECK(worst < 1e-2);
}

TEST_CASE("structs in Slang have the layout they have in C++", "[runtime][slang]") {
  auto on = open_for_slang();
  if (!on || lacks(*on, Feature::scalar_layout)) return;
  struct Item {
    std::uint32_t a;
    float b[2];
    std::uint32_t c;
    float d[3];
  };
  struct Settings {
    float offset[3];
    float factor;
  };
  const auto shift = in_slang<ReadWrite<Item>, std::uint32_t, Settings>(R"(
struct Item { uint a; float2 b; uint c; float3 d; };
struct Settings { float3 offset; float factor; };
[shader("compute")] [numthreads(32, 1, 1)]
void shift(uint3 id : SV_DispatchThreadID, uniform RWStructuredBuffer<Item> items, uniform uint n, uniform Settings s) {
  if (id.x >= n) return;
  items[id.x].d += s.offset * s.factor;
  items[id.x].b.y += float(items[id.x].a + items[id.x].c);
})");
  std::vector<Item> items(100);
  for (std::uint32_t i = 0; i < items.size(); ++i) items[i] = {i, {1, 2}, 2 * i, {3, 4, 5}};
  run(*on, shift(items, 100u, Settings{{1, 2, 3}, 2}));
  bool right = true;
  for (std::uint32_t i = 0; i < items.size(); ++i) {
    const Item wanted{i, {1, 2 + 3 * static_cast<float>(i)}, 2 * i, {5, 8, 11}};
    right &= std::memcmp(&items[i], &wanted, sizeof(Item)) == 0;
  }
  CHECK(right);
}

TEST_CASE("half and 64-bit numbers in Slang", "[runtime][slang]") {
  auto on = open_for_slang();
  if (!on) return;
  if (!lacks(*on, Feature::int64)) {
    const auto mix =
        in_slang<ReadWrite<std::uint64_t>, std::uint64_t>(R"([shader("compute")] [numthreads(32, 1, 1)]
void mix(uint3 id : SV_DispatchThreadID, uniform RWStructuredBuffer<uint64_t> x, uniform uint64_t key) {
  x[id.x] = (x[id.x] ^ key) * 0x9E3779B97F4A7C15ULL;
})");
    std::vector<std::uint64_t> x(64);
    std::iota(x.begin(), x.end(), 0xfedcba9876543210u);
    run(*on, mix(x, std::uint64_t{0x123456789abcdef0}));
    bool right = true;
    for (std::uint64_t i = 0; i < x.size(); ++i)
      right &= x[i] == ((0xfedcba9876543210u + i) ^ 0x123456789abcdef0u) * 0x9E3779B97F4A7C15u;
    CHECK(right);
  }
  if (!lacks(*on, Feature::float16) && !lacks(*on, Feature::storage16)) {
    // Halves have no type in C++20: two of them are a structure here.
    struct Half2 {
      std::uint16_t bits[2];
    };
    const auto twice = in_slang<ReadWrite<Half2>>(R"([shader("compute")] [numthreads(32, 1, 1)]
void twice(uint3 id : SV_DispatchThreadID, uniform RWStructuredBuffer<half2> x) { x[id.x] = x[id.x] * half(2); })");
    std::vector<Half2> x(32, Half2{{0x3c00, 0x4200}});  // 1, 3
    run(*on, twice(x));
    bool right = true;
    for (const Half2& h : x) right &= h.bits[0] == 0x4000 && h.bits[1] == 0x4600;  // 2, 6
    CHECK(right);
  }
}
