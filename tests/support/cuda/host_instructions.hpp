#pragma once
// What the instructions of shaders/include/instructions.cuh do, on the host: a text that is
// compiled with __CUDA_ARCH__ calls these.
// Source: PTX ISA 8.2, 9.7.8 (cvt, cp.async) and 9.7.13 (the layouts of the operands of mma and
//         ldmatrix).
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace twin {

inline float half_value(unsigned bits) {
  const unsigned exponent = bits >> 10 & 31u, fraction = bits & 1023u;
  const double size = exponent == 31  ? fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                                                      : std::numeric_limits<double>::infinity()
                       : exponent == 0 ? std::ldexp(fraction, -24)
                                      : std::ldexp(1024 + fraction, static_cast<int>(exponent) - 25);
  return static_cast<float>((bits & 0x8000u) != 0 ? -size : size);
}
inline float bfloat16_value(unsigned bits) { return __uint_as_float((bits & 0xffffu) << 16); }

/// Rounds to the nearest of the numbers with `digits` binary digits and exponents from `least` on;
/// ties to even.
inline double rounded(float value, int digits, int least) {
  if (value == 0 || !std::isfinite(value)) return value;
  const int unit = std::max(std::ilogb(value), least) + 1 - digits;
  return std::ldexp(std::nearbyint(std::ldexp(value, -unit)), unit);
}
inline unsigned half_of(float value) {
  if (std::isnan(value)) return 0x7fffu;
  const unsigned sign = std::signbit(value) ? 0x8000u : 0;
  const double size = std::fabs(rounded(value, 11, -14));
  if (size >= 65536) return sign | 0x7c00u;
  if (size < 0x1p-14) return sign | static_cast<unsigned>(std::ldexp(size, 24));
  const int exponent = std::ilogb(size);
  return sign | (static_cast<unsigned>(std::ldexp(size, 10 - exponent)) - 1024 +
                 static_cast<unsigned>(exponent + 15) * 1024);
}
inline unsigned bfloat16_of(float value) {
  if (std::isnan(value)) return 0x7fffu;
  return __float_as_uint(static_cast<float>(rounded(value, 8, -126))) >> 16;
}

/// The words that the lanes of each warp show each other, and the rows whose addresses they give.
struct Shown {
  unsigned words[6][32];
  const unsigned* rows[32];
};
inline Shown& shown() {
  __shared__ Shown warps[8];  // kernels for tensor cores have at most 256 threads
  return warps[index_in_block() / warp_size];
}

/// Element `at` of a word that has `per_word` of them.
template <unsigned per_word>
float float_of(unsigned word, unsigned at, bool is_half) {
  if (per_word == 1) return __uint_as_float(word & 0xffffe000u);  // TF32: the lowest bits are ignored
  return is_half ? half_value(word >> 16 * at & 0xffffu) : bfloat16_value(word >> 16 * at);
}
inline std::int64_t int_of(unsigned word, unsigned at) { return static_cast<signed char>(word >> 8 * at); }

/// c += a b, for a of 8 or 16 rows, b of 8 columns, and `inner` elements. With g = lane / 4 and t =
/// lane % 4, a lane has the words (g, t), (g + 8, t), (g, t + 4) and (g + 8, t + 4) of a, those at
/// (t, g) and (t + 4, g) of b, and the sums (g, 2 t), (g, 2 t + 1), (g + 8, 2 t) and (g + 8, 2 t +
/// 1).
template <unsigned per_word, unsigned inner, unsigned sums, class Sum, class Product>
void multiply(Sum (&c)[sums], const unsigned (&a)[4], unsigned b0, unsigned b1, Product product) {
  Shown& all = shown();
  const unsigned lane = index_in_block() % warp_size, g = lane / 4, t = lane % 4;
  for (unsigned i = 0; i < 4; ++i) all.words[i][lane] = a[i];
  all.words[4][lane] = b0;
  all.words[5][lane] = b1;
  __syncwarp();
  for (unsigned i = 0; i < sums; ++i) {
    const unsigned rows = i / 2, column = 2 * t + i % 2;
    for (unsigned k = 0; k < inner; ++k) {
      const unsigned word = k / per_word, part = word / 4;
      c[i] = product(c[i], all.words[2 * part + rows][4 * g + word % 4],
                     all.words[4 + part][4 * column + word % 4], k % per_word);
    }
  }
  __syncwarp();
}
template <unsigned per_word, unsigned inner>
void multiply_floats(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1, bool is_half = false) {
  multiply<per_word, inner>(c, a, b0, b1, [&](float sum, unsigned x, unsigned y, unsigned at) {
    return std::fmaf(float_of<per_word>(x, at, is_half), float_of<per_word>(y, at, is_half), sum);
  });
}
template <unsigned inner, unsigned sums>
void multiply_ints(int (&c)[sums], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  multiply<4, inner>(c, a, b0, b1, [](int sum, unsigned x, unsigned y, unsigned at) {
    return static_cast<int>(static_cast<std::uint32_t>(sum + int_of(x, at) * int_of(y, at)));
  });
}

/// Calls `word_of` with the eight rows of each of four matrices. A row that is not aligned to 16
/// bytes is one of NaN: a device fails.
template <class F>
void load(unsigned (&to)[4], const unsigned* row, F word_of) {
  static const unsigned wrong[4] = {~0u, ~0u, ~0u, ~0u};
  Shown& all = shown();
  const unsigned lane = index_in_block() % warp_size;
  all.rows[lane] = reinterpret_cast<std::uintptr_t>(row) % 16 == 0 ? row : wrong;
  __syncwarp();
  for (unsigned i = 0; i < 4; ++i) to[i] = word_of(&all.rows[8 * i], lane / 4, lane % 4);
  __syncwarp();
}

/// The copies to shared memory that each thread of a block has in flight. Their destinations are
/// NaN until the thread waits for them. A block begins with all bits set: there are no copies, and
/// the next group is ~0.
struct Copy {
  unsigned* to;  // all bits are set if there is none
  unsigned words[4], count, group;
};
struct Copies {
  Copy all[24];
  unsigned group;  // of the next copy
};
inline Copies& copies() {
  __shared__ Copies threads[8 * warp_size];
  return threads[index_in_block()];
}
inline unsigned* no_place() { return reinterpret_cast<unsigned*>(~std::uintptr_t{0}); }

}  // namespace twin

/// A copy that is not aligned to its size, or of more bytes, is one of NaN: a device fails.
template <unsigned count>
void begin_copy(unsigned* to, const void* from, unsigned bytes) {
  static_assert(count == 1 || count == 2 || count == 4);
  twin::Copies& copies = twin::copies();
  const auto copy = std::find_if(std::begin(copies.all), std::end(copies.all),
                                 [](const twin::Copy& one) { return one.to == twin::no_place(); });
  std::fill_n(to, count, ~0u);
  if (copy == std::end(copies.all)) return;  // the thread never waits: no kernel has as many in flight
  *copy = {to, {}, count, copies.group};
  const auto at = reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from);
  if (at % sizeof(unsigned[count]) == 0 && bytes <= sizeof(unsigned[count]))
    std::memcpy(copy->words, from, bytes);
  else
    std::fill_n(copy->words, count, ~0u);
}
inline void end_group() { ++twin::copies().group; }
template <unsigned count>
void wait_for_groups() {
  twin::Copies& copies = twin::copies();
  for (twin::Copy& copy : copies.all) {
    if (copy.to == twin::no_place() || copies.group - copy.group <= count) continue;
    std::copy_n(copy.words, copy.count, copy.to);
    copy.to = twin::no_place();
  }
}

inline unsigned rounded_to_tf32(unsigned word) {
  return std::isnan(__uint_as_float(word)) ? 0x7fffffffu : word + 0x1000u;  // the lowest bits mean nothing
}
inline void split_halves(unsigned word, float& low, float& high) {
  low = twin::half_value(word & 0xffffu);
  high = twin::half_value(word >> 16);
}
inline unsigned pair_of_halves(float low, float high) {
  return twin::half_of(low) | twin::half_of(high) << 16;
}
inline unsigned pair_of_bfloat16(float low, float high) {
  return twin::bfloat16_of(low) | twin::bfloat16_of(high) << 16;
}
inline void load_matrices(unsigned (&to)[4], const unsigned* row) {
  twin::load(to, row, [](const unsigned* const* rows, unsigned g, unsigned t) { return rows[g][t]; });
}
inline void load_transposes(unsigned (&to)[4], const unsigned* row) {
  twin::load(to, row, [](const unsigned* const* rows, unsigned g, unsigned t) {
    const auto number = [&](unsigned line) { return rows[line][g / 2] >> g % 2 * 16 & 0xffffu; };
    return number(2 * t) | number(2 * t + 1) << 16;
  });
}
inline void mma_half_16x8x16(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  twin::multiply_floats<2, 16>(c, a, b0, b1, true);
}
inline void mma_half_16x8x8(float (&c)[4], unsigned a0, unsigned a1, unsigned b) {
  twin::multiply_floats<2, 8>(c, {a0, a1, 0, 0}, b, 0, true);
}
inline void mma_bfloat16_16x8x16(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  twin::multiply_floats<2, 16>(c, a, b0, b1);
}
inline void mma_tf32_16x8x8(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  twin::multiply_floats<1, 8>(c, a, b0, b1);
}
inline void mma_int8_16x8x32(int (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  twin::multiply_ints<32>(c, a, b0, b1);
}
inline void mma_int8_8x8x16(int& c0, int& c1, unsigned a, unsigned b) {
  int c[2] = {c0, c1};
  twin::multiply_ints<16>(c, {a, 0, 0, 0}, b, 0);
  c0 = c[0], c1 = c[1];
}
