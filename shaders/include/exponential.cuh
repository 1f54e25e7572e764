#pragma once

// Returns exp(v) for v <= 0.
__device__ float exponential(float v) { return v < -87.0f ? 0.0f : expf(v); }
