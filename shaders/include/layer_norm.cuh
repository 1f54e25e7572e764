#pragma once
// Rows divided by their root mean square or their standard deviation, times a weight; see `layer_norm.glsl`.
#include "fours.cuh"
#include "rows.cuh"
#include "team.cuh"

struct NormStep {
  float epsilon;
  unsigned centered;
  unsigned phase;
};

// The operands of rows; `residual` and `bias` may be null.
template <class T>
struct NormOperands {
  const typename T::Number* x;
  typename T::Number* residual;
  const typename T::Number* weight;
  const typename T::Number* bias;
  typename T::Number* result;
};

struct Moments {
  float first, second;
};
__device__ Moments shuffled(Moments v, int bits) { return {shuffled(v.first, bits), shuffled(v.second, bits)}; }
__device__ Moments combine(Moments a, Moments b) { return {a.first + b.first, a.second + b.second}; }

__device__ float sum_of(Quad v) { return (v.x + v.y) + (v.z + v.w); }

// Reads a row of x, or of x + residual.
template <class T>
struct NormRow {
  const typename T::Number* x;
  const typename T::Number* residual;
  unsigned size;
  bool x_together, residual_together;

  __device__ Quad at(unsigned i) const {
    const Quad v = four_at<T>(x, i, size, x_together);
    if (residual == nullptr) return v;
    const Quad r = four_at<T>(residual, i, size, residual_together);
    return rounded<T>({v.x + r.x, v.y + r.y, v.z + r.z, v.w + r.w});
  }
};

// Returns the sums of numbers `first` and `second` of the three of each piece of a row, of this thread's pieces.
__device__ Moments sums_of_pieces(wye_span<float> partials, Piece p, RowSplit split, unsigned first, unsigned second) {
  Moments sums = {0.0f, 0.0f};
  for (unsigned i = p.lane; i < split.pieces; i += p.lanes) {
    const Size from = 3 * (p.row * split.pieces + i);
    sums = combine(sums, {partials[from + first], partials[from + second]});
  }
  return sums;
}

template <class T>
__device__ void norm_rows(NormOperands<T> operands, wye_span<float> partials, RowSplit split, NormStep norm) {
  const Piece p = piece_of(split);
  typename T::Number* const sums = operands.residual == nullptr ? nullptr : operands.residual + p.first;
  NormRow<T> row = {operands.x + p.first, sums, p.size, false, false};
  row.x_together = has_fours<T>(row.x);
  row.residual_together = has_fours<T>(sums);
  const bool centered = norm.centered != 0;
  const float count = float(split.columns);

  float mean = 0.0f;
  if (centered) {
    Moments mine = {0.0f, 0.0f};
    if (norm.phase >= 2) {
      mine = sums_of_pieces(partials, p, split, 0, 0);
    } else {
      Quad parts = {0.0f, 0.0f, 0.0f, 0.0f};
      for (unsigned i = p.lane; 4 * i < p.size; i += p.lanes) {
        const Quad v = row.at(i);
        parts = {parts.x + v.x, parts.y + v.y, parts.z + v.z, parts.w + v.w};
      }
      mine.first = sum_of(parts);
    }
    const float sum = team_result(mine, split.lanes_log2).first;
    if (norm.phase == 1) {
      if (p.size == 0 || p.lane != 0) return;
      partials[3 * p.number] = sum;
      partials[3 * p.number + 1] = 0.0f;
      partials[3 * p.number + 2] = 0.0f;
      return;
    }
    mean = sum / count;
    __syncthreads();  // before the memory of this sum is that of the next
  }

  Moments mine = {0.0f, 0.0f};
  if (norm.phase == 3) {
    mine = sums_of_pieces(partials, p, split, 1, 2);
  } else {
    Quad parts = {0.0f, 0.0f, 0.0f, 0.0f}, squares = parts;
    for (unsigned i = p.lane; 4 * i < p.size; i += p.lanes) {
      const unsigned numbers = p.size - 4 * i;
      Quad v = row.at(i);
      v.x -= mean;
      v.y = numbers > 1 ? v.y - mean : 0.0f;
      v.z = numbers > 2 ? v.z - mean : 0.0f;
      v.w = numbers > 3 ? v.w - mean : 0.0f;
      parts = {parts.x + v.x, parts.y + v.y, parts.z + v.z, parts.w + v.w};
      squares = {fmaf(v.x, v.x, squares.x), fmaf(v.y, v.y, squares.y), fmaf(v.z, v.z, squares.z), fmaf(v.w, v.w, squares.w)};
    }
    mine = {sum_of(parts), sum_of(squares)};
  }
  const Moments all = team_result(mine, split.lanes_log2);
  if (p.size == 0) return;
  if (norm.phase == 2) {
    if (p.lane != 0) return;
    if (!centered) partials[3 * p.number] = 0.0f;
    partials[3 * p.number + 1] = all.first;
    partials[3 * p.number + 2] = all.second;
    return;
  }

  const float correction = centered ? all.first / count : 0.0f;
  const float difference = all.second / count - correction * correction;
  const float variance = difference < 0.0f ? 0.0f : difference;
  const float inverse = 1.0f / sqrtf(variance + norm.epsilon);

  const unsigned column = unsigned(p.first - p.row * split.columns);
  const typename T::Number* const weights = operands.weight + column;
  const typename T::Number* const biases = operands.bias == nullptr ? nullptr : operands.bias + column;
  typename T::Number* const to = operands.result + p.first;
  const bool weights_together = has_fours<T>(weights), biases_together = has_fours<T>(biases), to_together = has_fours<T>(to);
  for (unsigned i = p.lane; 4 * i < p.size; i += p.lanes) {
    const Quad v = row.at(i), w = four_at<T>(weights, i, p.size, weights_together);
    Quad b = {0.0f, 0.0f, 0.0f, 0.0f};
    if (biases != nullptr) b = four_at<T>(biases, i, p.size, biases_together);
    if (sums != nullptr) write_four<T>(sums, i, p.size, row.residual_together, v);
    const Quad y = {(v.x - mean - correction) * inverse * w.x, (v.y - mean - correction) * inverse * w.y,
                    (v.z - mean - correction) * inverse * w.z, (v.w - mean - correction) * inverse * w.w};
    write_four<T>(to, i, p.size, to_together, biases == nullptr ? y : Quad{y.x + b.x, y.y + b.y, y.z + b.z, y.w + b.w});
  }
}
