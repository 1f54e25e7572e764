#pragma once
// Instructions that CUDA C++ has no function for. Tests define functions of the same names that do the same on the host.
// Source: PTX ISA 8.2, 9.7.1 (dp4a), 9.7.8 (cvt, cp.async) and 9.7.13 (mma, ldmatrix and the layouts of their operands).
#if defined(__CUDA_ARCH__) && defined(__CUDACC__)

// The two halves of a word.
__device__ void split_halves(unsigned word, float& low, float& high) {
  asm("{ .reg .b16 low, high; mov.b32 {low, high}, %2; cvt.f32.f16 %0, low; cvt.f32.f16 %1, high; }"
      : "=f"(low), "=f"(high)
      : "r"(word));
}
__device__ unsigned pair_of_halves(float low, float high) {
  unsigned word;
#if __CUDA_ARCH__ >= 800
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
#else
  asm("{ .reg .b16 low, high; cvt.rn.f16.f32 low, %1; cvt.rn.f16.f32 high, %2; mov.b32 %0, {low, high}; }"
      : "=r"(word)
      : "f"(low), "f"(high));
#endif
  return word;
}

// Adds the products of the four signed bytes of two words.
__device__ int add_products_of_bytes(int a, int b, int sum) {
  asm("dp4a.s32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(a), "r"(b));
  return sum;
}

#if __CUDA_ARCH__ >= 750
// Four matrices of eight rows of four words. Lane i gives the address of row i % 8 of matrix i / 8.
__device__ void load_matrices(unsigned (&to)[4], const unsigned* row) {
  const unsigned from = unsigned(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(from)
               : "memory");
}
// The transposes of four matrices of eight rows of eight 16-bit numbers.
__device__ void load_transposes(unsigned (&to)[4], const unsigned* row) {
  const unsigned from = unsigned(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(from)
               : "memory");
}
#endif

#if __CUDA_ARCH__ >= 800
// Begins to copy `bytes` bytes to shared memory, and fills up `count` words with zeros. Both addresses are aligned to `count` words.
template <unsigned count>
__device__ void begin_copy(unsigned* to, const void* from, unsigned bytes) {
  const unsigned shared = unsigned(__cvta_generic_to_shared(to));
  if (count == 4)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(__cvta_generic_to_global(from)), "r"(bytes)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(shared), "l"(__cvta_generic_to_global(from)), "r"(bytes),
                 "n"(4 * count)
                 : "memory");
}
// Makes a group of the copies that this thread has begun since its last group.
__device__ void end_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until this thread has at most `count` groups of copies in flight.
template <unsigned count>
__device__ void wait_for_groups() {
  asm volatile("cp.async.wait_group %0;" ::"n"(count) : "memory");
}

// Rounds to the nearest number of 11 bits, ties away from zero.
__device__ unsigned rounded_to_tf32(unsigned word) {
  unsigned rounded;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(__uint_as_float(word)));
  return rounded;
}
__device__ unsigned pair_of_bfloat16(float low, float high) {
  unsigned word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}
__device__ void mma_half_16x8x16(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ void mma_bfloat16_16x8x16(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ void mma_tf32_16x8x8(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ void mma_int8_16x8x32(int (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
#elif __CUDA_ARCH__ >= 750
__device__ void mma_half_16x8x8(float (&c)[4], unsigned a0, unsigned a1, unsigned b) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a0), "r"(a1), "r"(b));
}
__device__ void mma_int8_8x8x16(int& c0, int& c1, unsigned a, unsigned b) {
  asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
               : "+r"(c0), "+r"(c1)
               : "r"(a), "r"(b));
}
#endif

#endif
