#pragma once
// Converts the numbers of matrices to and from float32. Four adjacent numbers are loaded by one instruction
// if they are aligned to their size. Two are rounded together.
#include "instructions.cuh"
#include "narrow.cuh"

struct Float {
  typedef float Number;
  typedef Quad Four;

  // Returns the first `count` of four numbers, then zeros.
  __device__ static Four four(const float* from, unsigned count) {
    Four q = {0.0f, 0.0f, 0.0f, 0.0f};
    if (count > 0) q.x = from[0];
    if (count > 1) q.y = from[1];
    if (count > 2) q.z = from[2];
    if (count > 3) q.w = from[3];
    return q;
  }
  __device__ static Quad values(Four four) { return four; }
  __device__ static float at(const float* from) { return *from; }

  // Writes the first `count` of two numbers. `together`: whether the two are aligned to their size.
  __device__ static void write_two(float* to, unsigned count, bool, float low, float high) {
    if (count > 0) to[0] = low;
    if (count > 1) to[1] = high;
  }
};

// 16-bit numbers, two per word. T converts them.
template <class T>
struct Sixteen {
  typedef unsigned short Number;
  struct alignas(8) Four {
    unsigned low, high;
  };

  __device__ static Four four(const Number* from, unsigned count) {
    Four f = {0, 0};
    if (count > 0) f.low = from[0];
    if (count > 1) f.low |= unsigned(from[1]) << 16;
    if (count > 2) f.high = from[2];
    if (count > 3) f.high |= unsigned(from[3]) << 16;
    return f;
  }
  __device__ static Quad values(Four four) {
    Quad q;
    T::split(four.low, q.x, q.y);
    T::split(four.high, q.z, q.w);
    return q;
  }
  __device__ static float at(const Number* from) {
    float low, high;
    T::split(*from, low, high);
    return low;
  }

  __device__ static void write_two(Number* to, unsigned count, bool together, float low, float high) {
    const unsigned word = T::rounded(low, high);
    if (together && count > 1) {
      *reinterpret_cast<unsigned*>(to) = word;
      return;
    }
    if (count > 0) to[0] = Number(word);
    if (count > 1) to[1] = Number(word >> 16);
  }
};

struct Half : Sixteen<Half> {
#ifdef __CUDA_ARCH__
  __device__ static void split(unsigned word, float& low, float& high) { split_halves(word, low, high); }
#else
  __device__ static void split(unsigned word, float& low, float& high) {
    low = value(word & 0xffffu);
    high = value(word >> 16);
  }
  __device__ static float value(unsigned bits) {
    const unsigned size = bits & 0x7fffu;
    const float value = size >= 0x7c00u  ? __uint_as_float(0x7f800000u | size << 13)
                        : size >= 0x400u ? __uint_as_float(0x38000000u + (size << 13))
                                         : float(size) * (1.0f / 16777216.0f);
    return (bits & 0x8000u) != 0 ? -value : value;
  }
#endif
  __device__ static unsigned rounded(float low, float high) {
#ifdef __CUDA_ARCH__
    return pair_of_halves(low, high);
#else
    return half_bits(low) | half_bits(high) << 16;
#endif
  }
};

struct Bfloat16 : Sixteen<Bfloat16> {
  __device__ static void split(unsigned word, float& low, float& high) {
    low = __uint_as_float(word << 16);
    high = __uint_as_float(word & 0xffff0000u);
  }
  __device__ static unsigned rounded(float low, float high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    return pair_of_bfloat16(low, high);
#else
    return bfloat16_bits(low) | bfloat16_bits(high) << 16;
#endif
  }
};
