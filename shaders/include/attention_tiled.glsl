// Attention with tiles in shared memory, for GPUs: the text that attention.glsl includes with TILED. A workgroup processes 32
// queries of one head. Each invocation computes the scores of one of 32 keys and four queries, then every 32nd column of v
// for these queries. It adds in the same order as attention.glsl.
const uint rows = 4;  // queries of an invocation, 8 apart
const uint depth = 8; // vectors of four elements of a row that are in shared memory at a time

// The column of padding avoids bank conflicts.
shared vec4 q_tile[32][depth + 1], k_tile[32][depth + 1];
shared vec4 tile_scores[32][8];  // of each query; then its weights

// The elements 4 i to 4 i + 3 of a row. Elements beyond the row are zeros.
vec4 four_at(Line row, uint i) {
  const uint size = head_size(), k = 4 * i;
  if (k + 4 <= size) return four(row, k);
  vec4 some = vec4(0.0);
  for (uint j = 0; j < 4; ++j)
    if (k + j < size) some[j] = at(row, k + j);
  return some;
}

vec4 products[rows];  // of four elements each, of each query with the key

void add_products(uint row, uint lane, uint i) {
  const vec4 b = k_tile[lane][i];
  for (uint r = 0; r < rows; ++r) products[r] = fma(q_tile[row + 8 * r][i], b, products[r]);
}

// Computes the products of four queries and this invocation's key.
vec4 scores_of(Line q_row, Line k_row, uint row, uint lane) {
  const uint copied = gl_LocalInvocationID.x >> 3, column = gl_LocalInvocationID.x & 7;
  const uint size = head_size(), whole = size / 8 * 2, all = (size + 3) / 4;  // vectors
  for (uint r = 0; r < rows; ++r) products[r] = vec4(0.0);
  vec4 sums = vec4(0.0);
  for (uint first = 0; first < all; first += depth) {
    barrier();  // the products of the vectors before are added
    q_tile[copied][column] = four_at(q_row, first + column);
    k_tile[copied][column] = four_at(k_row, first + column);
    barrier();
    if (first + depth <= whole)  // a loop to unroll
      for (uint i = 0; i < depth; ++i) add_products(row, lane, i);
    else
      for (uint i = first; i < whole; ++i) add_products(row, lane, i - first);
    if (first + depth < all) continue;
    for (uint r = 0; r < rows; ++r) sums[r] = (products[r].x + products[r].y) + (products[r].z + products[r].w);
    for (uint i = 4 * whole; i < size; ++i)
      for (uint r = 0; r < rows; ++r) {
        const uint vector = i / 4 - first;
        sums[r] = fma(q_tile[row + 8 * r][vector][i & 3], k_tile[lane][vector][i & 3], sums[r]);
      }
  }
  return sums;
}

vec4 low_sums[rows], high_sums[rows];

// Adds a key's values to the sums of the queries for which it has a weight.
void add_weighted(vec4 some, uvec2 values, uint key) {
  if (some == vec4(0.0)) return;
  const uint size = value_size();
  Line row = line_of(uvec2(v.data), plus(values, product(key, size)));
  vec4 low_values = vec4(0.0), high_values = vec4(0.0);
  low_values.x = at(row, low_columns.x);
  if (size > 32) low_values.y = at(row, low_columns.y);
  if (size > 64) low_values.zw = vec2(at(row, low_columns.z), at(row, low_columns.w));
  if (size > 128)
    high_values = vec4(at(row, high_columns.x), at(row, high_columns.y), at(row, high_columns.z), at(row, high_columns.w));
  for (uint r = 0; r < rows; ++r) {
    if (some[r] == 0.0) continue;  // the query may not see the key
    low_sums[r] = fma(vec4(some[r]), low_values, low_sums[r]);
    if (size > 128) high_sums[r] = fma(vec4(some[r]), high_values, high_sums[r]);
  }
}

void main() {
  // Heads begin at multiples of 64 queries.
  const uint number = (gl_WorkGroupID.y << (flat_width_log2 - 10)) + gl_WorkGroupID.x;
  const uint groups = (stretch.queries + 63) / 64 * 2;
  if (groups == 0) return;
  const uint head = number / groups, first_query = number % groups * 32;
  if (head >= stretch.heads || first_query >= stretch.queries) return;
  const uint me = gl_LocalInvocationID.x, lane = me & 31, row = me >> 5;
  const uint last_query = stretch.queries - 1, end = min(stretch.last, seen_by(min(first_query + 31, last_query)));
  uint query[rows], seen[rows];
  for (uint r = 0; r < rows; ++r) {
    query[r] = min(first_query + row + 8 * r, last_query);
    seen[r] = seen_by(query[r]);
  }

  const uint size = value_size();
  const uvec2 keys = times(product(stretch.keys, head_size()), head), values = times(product(stretch.keys, size), head);
  const uvec2 states = times(product(stretch.queries, size + 2), head);
  const uint copied = me >> 3;
  Line q_row = line_of(uvec2(q.data), plus(times(product(stretch.queries, head_size()), head),
                                           product(min(first_query + copied, last_query), head_size())));
  low_columns = min(uvec4(lane) + uvec4(0, 32, 64, 96), uvec4(size - 1));
  high_columns = min(uvec4(lane) + uvec4(128, 160, 192, 224), uvec4(size - 1));

  vec2 sum[rows];
  for (uint r = 0; r < rows; ++r) {
    sum[r] = nothing;
    low_sums[r] = high_sums[r] = vec4(0.0);
    if (stretch.first == 0) continue;
    ConstFloats kept = ConstFloats(element(uvec2(state.data), plus(states, product(query[r], size + 2))));
    sum[r] = vec2(kept.at[0], kept.at[1]);
    for (uint i = 0; i < 4; ++i) {
      low_sums[r][i] = kept.at[2 + low_columns[i]];
      high_sums[r][i] = kept.at[2 + high_columns[i]];
    }
  }
  for (uint first = stretch.first; first < end; first += 32) {
    const uint key = first + lane;
    Line k_row = line_of(uvec2(k.data), plus(keys, product(min(first + copied, stretch.last - 1), head_size())));
    const vec4 products_of_key = scores_of(q_row, k_row, row, lane);
    // -infinity and invisible keys have no weight; NaN and +infinity make the result NaN. Compares bits,
    // because compilers may remove comparisons with NaN.
    float scores_of_key[rows];
    bool here[rows];
    for (uint r = 0; r < rows; ++r) {
      here[r] = key < min(seen[r], stretch.last);
      float score = here[r] ? scaled(products_of_key[r], stretch.scale) : nothing.x;
#ifdef MASKED
      if (here[r]) score = masked(score, mask_of(head, query[r]).at[key]);
#endif
      scores_of_key[r] = score;
      const bool finite = (floatBitsToUint(score) & 0x7f800000) != 0x7f800000;
      tile_scores[row + 8 * r][lane >> 2][lane & 3] = finite ? score : nothing.x;
    }
    barrier();
    float most[rows];
    for (uint r = 0; r < rows; ++r) {
      vec4 largest = tile_scores[row + 8 * r][0];
      for (uint i = 1; i < 8; ++i) largest = max(largest, tile_scores[row + 8 * r][i]);
      most[r] = max(sum[r].x, max(max(largest.x, largest.y), max(largest.z, largest.w)));
    }
    barrier();
    for (uint r = 0; r < rows; ++r) {
      const uint bits = floatBitsToUint(scores_of_key[r]);
      const bool finite = (bits & 0x7f800000) != 0x7f800000;
      tile_scores[row + 8 * r][lane >> 2][lane & 3] =
          !here[r] || bits == 0xff800000 ? 0.0 : finite ? exponential(scores_of_key[r] - most[r]) : not_a_number();
      const float ratio = exponential(sum[r].x - most[r]);
      sum[r] = vec2(most[r], sum[r].y * ratio);
      low_sums[r] *= ratio;
      high_sums[r] *= ratio;
    }
    barrier();
    const uint vectors = (min(end - first, 32) + 3) / 4;
    for (uint i = 0; i < vectors; ++i) {
      vec4 some[rows];
      for (uint r = 0; r < rows; ++r) {
        some[r] = tile_scores[row + 8 * r][i];
        sum[r].y += (some[r].x + some[r].y) + (some[r].z + some[r].w);
      }
      for (uint j = 0; j < 4; ++j)
        add_weighted(vec4(some[0][j], some[1][j], some[2][j], some[3][j]), values, first + 4 * i + j);
    }
  }

  const bool last = stretch.last == stretch.keys;
  for (uint r = 0; r < rows; ++r) {
    if (first_query + row + 8 * r > last_query) return;
    Floats kept = Floats(element(uvec2(state.data), plus(states, product(query[r], size + 2))));
    const uvec2 to = plus(times(product(stretch.queries, size), head), product(query[r], size));
    if (!last && lane < 2) kept.at[lane] = sum[r][lane];
#ifdef MASKED
    const float share = sum[r].y == 0.0 ? 0.0 : share_of(sum[r]);
#else
    const float share = share_of(sum[r]);
#endif
    for (uint i = 0; i < 8; ++i) {
      const uint column = lane + 32 * i;
      if (column >= size) break;
      const float value = i < 4 ? low_sums[r][i] : high_sums[r][i - 4];
      if (!last)
        kept.at[2 + column] = value;
      else
        write(plus(to, uvec2(column, 0)), seen[r] == 0 ? 0.0 : value * share);
    }
  }
}
