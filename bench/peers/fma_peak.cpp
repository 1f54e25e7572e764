#include "peers/fma_peak.hpp"

#include <benchmark/benchmark.h>

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace wye_bench {
namespace {

// Twelve sums, so that no addition waits for another.
#define WYE_BENCH_TWELVE(step) \
  step(0) step(1) step(2) step(3) step(4) step(5) step(6) step(7) step(8) step(9) step(10) step(11)

#if defined(__x86_64__)
__attribute__((target("avx512f"))) void with_avx512(std::uint64_t rounds) {
  __m512 sums[12];
  for (__m512& sum : sums) sum = _mm512_set1_ps(1.0f);
  const __m512 a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(0.001f);
  for (std::uint64_t i = 0; i < rounds; ++i) {
#define WYE_BENCH_STEP(k) sums[k] = _mm512_fmadd_ps(sums[k], a, b);
    WYE_BENCH_TWELVE(WYE_BENCH_STEP)
#undef WYE_BENCH_STEP
  }
  for (__m512& sum : sums) benchmark::DoNotOptimize(sum);
}

__attribute__((target("avx2,fma"))) void with_avx2(std::uint64_t rounds) {
  __m256 sums[12];
  for (__m256& sum : sums) sum = _mm256_set1_ps(1.0f);
  const __m256 a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(0.001f);
  for (std::uint64_t i = 0; i < rounds; ++i) {
#define WYE_BENCH_STEP(k) sums[k] = _mm256_fmadd_ps(sums[k], a, b);
    WYE_BENCH_TWELVE(WYE_BENCH_STEP)
#undef WYE_BENCH_STEP
  }
  for (__m256& sum : sums) benchmark::DoNotOptimize(sum);
}
#endif

void with_four_floats(std::uint64_t rounds) {
  using Four = float __attribute__((vector_size(16)));
  Four sums[12];
  for (Four& sum : sums) sum = Four{1, 1, 1, 1};
  const Four a{0.999f, 0.999f, 0.999f, 0.999f}, b{0.001f, 0.001f, 0.001f, 0.001f};
  for (std::uint64_t i = 0; i < rounds; ++i) {
#define WYE_BENCH_STEP(k) sums[k] = sums[k] * a + b;
    WYE_BENCH_TWELVE(WYE_BENCH_STEP)
#undef WYE_BENCH_STEP
  }
  for (Four& sum : sums) benchmark::DoNotOptimize(sum);
}

}  // namespace

void multiply_and_add(double operations) {
  const auto rounds = [&](double lanes) { return static_cast<std::uint64_t>(operations / (12 * 2 * lanes)); };
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return with_avx512(rounds(16));
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return with_avx2(rounds(8));
#endif
  with_four_floats(rounds(4));
}

}  // namespace wye_bench
