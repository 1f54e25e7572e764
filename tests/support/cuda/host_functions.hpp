#pragma once
// Types and functions of CUDA C++ that involve one thread only: vectors, atomics, arithmetic.
#include <assert.h>
#include <math.h>
#include <stdio.h>

#include <bit>
#include <cstdint>
#include <type_traits>

// ---- vectors ----

// The toolkit's headers for 16-bit types define the same vectors.
#define __VECTOR_TYPES_H__
#define __VECTOR_FUNCTIONS_H__
#define __VECTOR_FUNCTIONS_HPP__

#define WYE_VECTORS(T, name, align2, align4)                 \
  struct name##1 {                                           \
    T x;                                                     \
  };                                                         \
  struct alignas(align2) name##2 {                           \
    T x, y;                                                  \
  };                                                         \
  struct alignas(align4) name##4 {                           \
    T x, y, z, w;                                            \
  };                                                         \
  inline name##1 make_##name##1(T x) { return {x}; }         \
  inline name##2 make_##name##2(T x, T y) { return {x, y}; } \
  inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
#define WYE_VECTOR3(T, name) \
  struct name##3 {           \
    T x, y, z;               \
  };                         \
  inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }

WYE_VECTORS(signed char, char, 2, 4)
WYE_VECTORS(unsigned char, uchar, 2, 4)
WYE_VECTORS(short, short, 4, 8)
WYE_VECTORS(unsigned short, ushort, 4, 8)
WYE_VECTORS(int, int, 8, 16)
WYE_VECTORS(unsigned, uint, 8, 16)
WYE_VECTORS(long long, longlong, 16, 16)
WYE_VECTORS(unsigned long long, ulonglong, 16, 16)
WYE_VECTORS(float, float, 8, 16)
WYE_VECTORS(double, double, 16, 16)
WYE_VECTOR3(signed char, char)
WYE_VECTOR3(unsigned char, uchar)
WYE_VECTOR3(int, int)
WYE_VECTOR3(float, float)
WYE_VECTOR3(double, double)
inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
#undef WYE_VECTORS
#undef WYE_VECTOR3

// ---- memory ----

template <class T>
T __ldg(const T* address) {
  return *address;
}
template <class T>
T __ldcg(const T* address) {
  return *address;
}
template <class T>
T __ldcs(const T* address) {
  return *address;
}
template <class T>
void __stcg(T* address, T value) {
  *address = value;
}
template <class T>
void __stcs(T* address, T value) {
  *address = value;
}

namespace twin {

/// Replaces *address by f(*address) atomically and without ordering. Returns the old value.
template <class T, class F>
T update(T* address, F f) {
  T old, desired;
  __atomic_load(address, &old, __ATOMIC_RELAXED);
  do desired = f(old);
  while (!__atomic_compare_exchange(address, &old, &desired, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return old;
}
template <class T>
using Value = std::type_identity_t<T>;

}  // namespace twin

#define WYE_ATOMIC(name, expression)                                          \
  template <class T>                                                          \
  T name(T* address, twin::Value<T> value) {                                  \
    return twin::update(address, [value](T old) -> T { return expression; }); \
  }
WYE_ATOMIC(atomicMin, value < old ? value : old)
WYE_ATOMIC(atomicMax, old < value ? value : old)
WYE_ATOMIC(atomicExch, ((void)old, value))
WYE_ATOMIC(atomicAnd, old& value)
WYE_ATOMIC(atomicOr, old | value)
WYE_ATOMIC(atomicXor, old ^ value)
WYE_ATOMIC(atomicInc, old >= value ? 0 : old + 1)
WYE_ATOMIC(atomicDec, old == 0 || old > value ? value : old - 1)
#undef WYE_ATOMIC

/// Integers wrap around.
template <class T>
T atomicAdd(T* address, twin::Value<T> value) {
  if constexpr (std::is_integral_v<T>)
    return __atomic_fetch_add(address, value, __ATOMIC_RELAXED);
  else
    return twin::update(address, [value](T old) { return old + value; });
}
template <class T>
T atomicSub(T* address, twin::Value<T> value) {
  return __atomic_fetch_sub(address, value, __ATOMIC_RELAXED);
}
template <class T>
T atomicCAS(T* address, twin::Value<T> expected, twin::Value<T> desired) {
  __atomic_compare_exchange(address, &expected, &desired, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}

// ---- arithmetic ----

template <class A, class B, class = std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>>>
std::common_type_t<A, B> min(A a, B b) {
  using T = std::common_type_t<A, B>;
  if constexpr (std::is_floating_point_v<T>)
    return a != a || static_cast<T>(b) < static_cast<T>(a) ? static_cast<T>(b) : static_cast<T>(a);
  else
    return static_cast<T>(b) < static_cast<T>(a) ? static_cast<T>(b) : static_cast<T>(a);
}
template <class A, class B, class = std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>>>
std::common_type_t<A, B> max(A a, B b) {
  using T = std::common_type_t<A, B>;
  if constexpr (std::is_floating_point_v<T>)
    return a != a || static_cast<T>(a) < static_cast<T>(b) ? static_cast<T>(b) : static_cast<T>(a);
  else
    return static_cast<T>(a) < static_cast<T>(b) ? static_cast<T>(b) : static_cast<T>(a);
}
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float __saturatef(float x) { return fminf(fmaxf(x, 0.0f), 1.0f); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline float __frsqrt_rn(float x) { return rsqrtf(x); }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
// The host's library declares functions of these names too.
#define __expf expf
#define __exp10f exp10f
#define __logf logf
#define __log2f log2f
#define __log10f log10f
#define __powf powf
#define __sinf sinf
#define __cosf cosf
#define __tanf tanf

inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }
inline long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
inline int __float2int_rn(float x) { return static_cast<int>(rintf(x)); }
inline int __float2int_rz(float x) { return static_cast<int>(x); }
inline int __float2int_rd(float x) { return static_cast<int>(floorf(x)); }
inline int __float2int_ru(float x) { return static_cast<int>(ceilf(x)); }
inline unsigned __float2uint_rn(float x) { return static_cast<unsigned>(rintf(x)); }
inline unsigned __float2uint_rz(float x) { return static_cast<unsigned>(x); }
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned x) { return static_cast<float>(x); }

inline int __popc(unsigned x) { return std::popcount(x); }
inline int __popcll(unsigned long long x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __clzll(long long x) { return std::countl_zero(static_cast<unsigned long long>(x)); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
  unsigned result = 0;
  for (int i = 0; i < 32; ++i) result |= (x >> i & 1u) << (31 - i);
  return result;
}
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32);
}
inline int __mulhi(int a, int b) { return static_cast<int>(static_cast<long long>(a) * b >> 32); }
__extension__ inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<unsigned long long>(static_cast<Wide>(a) * b >> 64);
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) {
  return static_cast<unsigned>(((static_cast<unsigned long long>(high) << 32 | low) << (by & 31)) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
  return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) >> (by & 31));
}
// An instruction of shaders/include/instructions.cuh that all architectures have.
inline int add_products_of_bytes(int a, int b, int sum) {
  for (int i = 0; i < 32; i += 8) sum += static_cast<signed char>(a >> i) * static_cast<signed char>(b >> i);
  return sum;
}
