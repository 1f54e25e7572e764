#pragma once
// Declarations that the kernels of collatz share.
#include "flat.cuh"

struct Wide {
  Size low, high;
};
__device__ bool is_greater(Wide a, Wide b) { return a.high != b.high ? a.high > b.high : a.low > b.low; }

constexpr unsigned end_one = 0, end_step_limit = 1, end_overflow = 2;
struct CollatzResult {
  Wide peak;
  unsigned steps;
  unsigned end;
};
