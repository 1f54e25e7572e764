#pragma once
// Sums and means of segments of rows. `src/workloads/segments.hpp` computes the distribution and documents the order of sums.
#include "fours.cuh"

struct SegmentShape {
  unsigned rows;        // of x
  unsigned columns;
  unsigned count;       // of rows that the kernel writes: of sums, or of means
  unsigned lanes_log2;  // 2^lanes_log2 threads work on one piece
  unsigned pieces;      // of one row
  unsigned stretches;   // 0: no sums of stretches are computed
};

constexpr unsigned segment_block = 32, segment_stretch = 512, segment_group = 128, segment_piece = 1024;

// A piece of a row of sums or means.
struct SegmentPiece {
  unsigned row;
  unsigned first;  // its first column
  unsigned size;   // those that do not exist have no columns
  unsigned lane;
  unsigned lanes;
};

__device__ SegmentPiece segment_piece_of(SegmentShape shape) {
  SegmentPiece p;
  const Size number = flat_thread() >> shape.lanes_log2, row = number / shape.pieces;
  p.row = unsigned(row);
  p.first = unsigned(number - row * shape.pieces) * segment_piece;
  p.size = row < shape.count ? min(segment_piece, shape.columns - p.first) : 0;
  p.lanes = 1u << shape.lanes_log2;
  p.lane = threadIdx.x & (p.lanes - 1);
  return p;
}

// The rows of a segment. Those before `rest` are in whole stretches, whose sums begin at row `first_sum`.
struct SegmentRows {
  unsigned begin;
  unsigned end;
  unsigned rest;
  unsigned first_sum;
};

__device__ SegmentRows segment_rows(const unsigned* offsets, unsigned segment, SegmentShape shape) {
  SegmentRows r;
  r.begin = min(offsets[segment], shape.rows);
  r.end = min(max(offsets[segment + 1], r.begin), shape.rows);
  r.first_sum = r.begin / segment_stretch;
  r.rest = shape.stretches == 0 ? r.begin : r.end - (r.end - r.begin) % segment_stretch;
  return r;
}

// Returns the first row of stretch `number`, or `shape.rows` if no segment has it.
__device__ unsigned stretch_begin(wye_span<const unsigned> offsets, unsigned number, SegmentShape shape) {
  // The last segment that begins in this stretch of x or before.
  unsigned first = 0, last = unsigned(offsets.size) - 1;
  while (first < last) {
    const unsigned middle = (first + last) / 2;
    if (offsets[middle] / segment_stretch <= number)
      first = middle + 1;
    else
      last = middle;
  }
  if (first == 0) return shape.rows;
  const SegmentRows r = segment_rows(offsets.data, first - 1, shape);
  const unsigned begin = r.begin + (number - r.first_sum) * segment_stretch;
  return begin < r.rest ? begin : shape.rows;
}

__device__ Quad sum_of(Quad a, Quad b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }

// Returns the sums of columns 4 i to 4 i + 3 of rows of a piece of `size` columns: of `at_a_time` rows first, then of these sums.
// Loads of `unrolled` rows do not wait for each other.
template <class T, unsigned unrolled>
__device__ Quad sums_of_rows(const typename T::Number* from, unsigned columns, unsigned rows, unsigned at_a_time, unsigned i,
                             unsigned size) {
  const bool together = has_fours<T>(from) && columns % 4 == 0;
  Quad sums = {};
  for (unsigned block = 0; block < rows; block += at_a_time) {
    const unsigned left = min(at_a_time, rows - block);
    Quad part = {};
#pragma unroll unrolled
    for (unsigned row = 0; row < left; ++row, from += columns) part = sum_of(part, four_at<T>(from, i, size, together));
    sums = sum_of(sums, part);
  }
  return sums;
}

// Sums of the rows of whole stretches. A row of sums that belongs to no segment becomes zeros.
template <class T>
__device__ void sum_stretches(wye_span<const typename T::Number> x, wye_span<const unsigned> offsets, wye_span<float> sums,
                              SegmentShape shape) {
  const SegmentPiece p = segment_piece_of(shape);
  if (p.size == 0) return;
  const unsigned begin = stretch_begin(offsets, p.row, shape);
  const unsigned rows = begin < shape.rows ? segment_stretch : 0;
  float* const to = sums.data + Size(p.row) * shape.columns + p.first;
  const bool together = has_fours<Float>(to);
  for (unsigned i = p.lane; 4 * i < p.size; i += p.lanes)
    write_four<Float>(to, i, p.size, together,
                      sums_of_rows<T, 8>(x.data + Size(begin) * shape.columns + p.first, shape.columns, rows, segment_block,
                                         i, p.size));
}

// Means, from the sums of whole stretches and from the rows beyond.
template <class T>
__device__ void mean_of_segments(wye_span<const typename T::Number> x, wye_span<const unsigned> offsets,
                                 wye_span<const float> sums, wye_span<typename T::Number> result, SegmentShape shape) {
  const SegmentPiece p = segment_piece_of(shape);
  if (p.size == 0) return;
  const SegmentRows r = segment_rows(offsets.data, p.row, shape);
  const float count = float(max(r.end - r.begin, 1u));
  typename T::Number* const to = result.data + Size(p.row) * shape.columns + p.first;
  const bool together = has_fours<T>(to);
  for (unsigned i = p.lane; 4 * i < p.size; i += p.lanes) {
    const Quad total = sums_of_rows<Float, 4>(sums.data + Size(r.first_sum) * shape.columns + p.first, shape.columns,
                                              (r.rest - r.begin) / segment_stretch, segment_group, i, p.size);
    const Quad rest = sums_of_rows<T, 4>(x.data + Size(r.rest) * shape.columns + p.first, shape.columns, r.end - r.rest,
                                         segment_block, i, p.size);
    const Quad all = sum_of(total, rest);
    write_four<T>(to, i, p.size, together, {all.x / count, all.y / count, all.z / count, all.w / count});
  }
}
