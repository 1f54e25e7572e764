// The distribution of segments of rows, computed by `src/workloads/segments.hpp`, which documents the order of sums.
struct SegmentShape {
  uint rows;        // of x
  uint columns;
  uint count;       // of rows that the kernel writes: of sums, or of means
  uint lanes_log2;  // 2^lanes_log2 items work on one piece
  uint pieces;      // of one row
  uint stretches;   // 0: no sums of stretches are computed
};

const uint segment_block = 32, segment_stretch = 512, segment_group = 128, segment_piece = 1024;

// A piece of a row of sums or means.
struct SegmentPiece {
  uint row;
  uint first;  // its first column
  uint size;   // those that do not exist have no columns
  uint lane;
  uint lanes;
};

SegmentPiece segment_piece_of(SegmentShape shape) {
  SegmentPiece p;
  const uint number = flat_unit(shape.lanes_log2);
  p.row = number / shape.pieces;
  p.first = (number - p.row * shape.pieces) * segment_piece;
  p.size = p.row < shape.count ? min(segment_piece, shape.columns - p.first) : 0u;
  p.lanes = 1u << shape.lanes_log2;
  p.lane = invocation_index() & (p.lanes - 1u);
  return p;
}

// The rows of a segment. Those before `rest` are in whole stretches, whose sums begin at row `first_sum`.
struct SegmentRows {
  uint begin;
  uint end;
  uint rest;
  uint first_sum;
};

SegmentRows segment_rows(ConstWords offsets, uint segment, SegmentShape shape) {
  SegmentRows r;
  r.begin = min(offsets.at[segment], shape.rows);
  r.end = min(max(offsets.at[segment + 1u], r.begin), shape.rows);
  r.first_sum = r.begin / segment_stretch;
  r.rest = shape.stretches == 0u ? r.begin : r.end - (r.end - r.begin) % segment_stretch;
  return r;
}

// Returns the first row of stretch `number`, or `shape.rows` if no segment has it.
uint stretch_begin(ConstWords offsets, uint segments, uint number, SegmentShape shape) {
  // The last segment that begins in this stretch of x or before.
  uint first = 0u, last = segments;
  while (first < last) {
    const uint middle = (first + last) / 2u;
    if (offsets.at[middle] / segment_stretch <= number)
      first = middle + 1u;
    else
      last = middle;
  }
  if (first == 0u) return shape.rows;
  const SegmentRows r = segment_rows(offsets, first - 1u, shape);
  const uint begin = r.begin + (number - r.first_sum) * segment_stretch;
  return begin < r.rest ? begin : shape.rows;
}

// One or two adjacent columns of a row whose piece begins at element `at`: k and k + 1, if they are below `size`.
vec2 columns_at(uvec2 matrix, uvec2 at, uint k, uint size) {
  PackedLine line = line_of(matrix, at);
  vec2 values = vec2(0.0);
  if (k < size) values.x = term_at(line, k);
#if PACKED_LOG2 == 1
  if (k + 1u < size) values.y = term_at(line, k + 1u);
#endif
  return values;
}

// Returns the sums of these columns of `rows` rows.
vec2 sums_of_rows(uvec2 matrix, uint begin, uint rows, uint columns, uint first, uint k, uint size) {
  uvec2 at = plus(product(begin, columns), uvec2(first, 0));
  const uvec2 step = uvec2(columns, 0);
  vec2 sums = vec2(0.0);
  for (uint block = 0u; block < rows; block += segment_block) {
    const uint left = min(segment_block, rows - block);
    vec2 part = vec2(0.0);
    uint i = 0u;
    for (; i + 8u <= left; i += 8u) {  // loads that do not wait for each other
      vec2 values[8];
      for (uint j = 0u; j < 8u; ++j, at = plus(at, step)) values[j] = columns_at(matrix, at, k, size);
      for (uint j = 0u; j < 8u; ++j) part += values[j];
    }
    for (; i < left; ++i, at = plus(at, step)) part += columns_at(matrix, at, k, size);
    sums += part;
  }
  return sums;
}
