#version 460
// A product of cooperative matrices. Its elements are integers that are exact in float.
#include "cooperative_matrix.glsl"
layout(local_size_x = 128) in;
layout(set = 0, binding = 0, std430) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1, std430) buffer Y { uint y[]; };
layout(push_constant) uniform Count { uint n; };
shared float16_t left[256], right[256];
shared float sums[256];

void main() {
  for (uint i = gl_LocalInvocationID.x; i < 256; i += 128) {
    left[i] = float16_t(x[i % n] & 31);
    right[i] = float16_t(x[(i + 7) % n] >> 5 & 31);
    sums[i] = float(x[(i + 13) % n] & 1023);
  }
  barrier();
  if (gl_SubgroupID == 0) {
    coopmat<float16_t, gl_ScopeSubgroup, matrix_rows, matrix_inner, gl_MatrixUseA> a;
    coopmat<float16_t, gl_ScopeSubgroup, matrix_inner, matrix_columns, gl_MatrixUseB> b;
    coopmat<float, gl_ScopeSubgroup, matrix_rows, matrix_columns, gl_MatrixUseAccumulator> c;
    coopMatLoad(a, left, 0, matrix_inner, gl_CooperativeMatrixLayoutRowMajor);
    coopMatLoad(b, right, 0, matrix_inner, gl_CooperativeMatrixLayoutColumnMajor);
    coopMatLoad(c, sums, 0, matrix_columns, gl_CooperativeMatrixLayoutRowMajor);
    coopMatStore(coopMatMulAdd(a, b, c), sums, 0, matrix_columns, gl_CooperativeMatrixLayoutRowMajor);
  }
  barrier();
  const uint i = gl_GlobalInvocationID.x;
  if (i >= n) return;
  const uint element = i % 256;  // each workgroup has the same product, and writes a half of it
  y[i] = element < matrix_rows * matrix_columns ? uint(sums[element]) : 0;
  if (i == 0) y[n] = matrix_rows, y[n + 1] = matrix_columns, y[n + 2] = matrix_inner;
}
