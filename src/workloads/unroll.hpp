#pragma once
// GCC and clang keep an array of vectors in registers only if loops over it are unrolled.
#if defined(__clang__)
#define WYE_UNROLL _Pragma("unroll")
#else
#define WYE_UNROLL _Pragma("GCC unroll 16")
#endif
