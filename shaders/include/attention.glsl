// softmax(q k^T scale) v over one stretch of the keys, head by head. Elements are floats, or 16 bits with
// HALF or BFLOAT16. MASKED adds a mask to the scores. A workgroup processes 8 queries of one head, with 32
// invocations for each query. Each invocation computes the score of one of 32 keys, then every 32nd column of
// v. TILED is a text for GPUs. Source: Dao et al., FlashAttention, arXiv:2205.14135.
#include "span.glsl"
#include "flat.glsl"
#include "elements.glsl"
#include "exponents.glsl"

struct Stretch {
  uint heads;
  uint queries;  // of a head
  uint keys;
  uint sizes;  // of rows of q and k in the low 16 bits, of rows of v and the result in the high 16 bits
  uint first;  // the stretch of the keys: [first, last)
  uint last;
  uint causal;
  float scale;
};

#if defined(HALF) || defined(BFLOAT16)
#include "words.glsl"
#define Results WordSpan
#else
#define Results FloatSpan
#endif

layout(push_constant) uniform Arguments {
  ElementSpan q;
  ElementSpan k;
  ElementSpan v;
  Results result;
#ifdef MASKED
  ConstFloatSpan mask;  // one for all heads, or one per head
#endif
  FloatSpan state;  // of each query between stretches: its largest score, the sum of exponentials, sums of values
  Stretch stretch;
};

uint head_size() { return stretch.sizes & 0xffff; }
uint value_size() { return stretch.sizes >> 16; }

// Returns the number of keys that a query sees, beginning with key 0.
uint seen_by(uint query) {
  if (stretch.causal == 0) return stretch.keys;
  const uint ahead = query + 1 + stretch.keys;
  return ahead > stretch.queries ? ahead - stretch.queries : 0;
}

vec4 four(Line line, uint i) { return vec4(at(line, i), at(line, i + 1), at(line, i + 2), at(line, i + 3)); }

// This invocation's columns, lane + 32 i. Columns beyond the row repeat the last column and are not written.
uvec4 low_columns, high_columns;

void write(uvec2 index, float value) {
#if defined(HALF) || defined(BFLOAT16)
  const uvec2 address = half_element(uvec2(result.data), index);
  write_bytes(address, 2, narrow(floatBitsToUint(value)));
#else
  Floats(element(uvec2(result.data), index)).at[0] = value;
#endif
}

#ifdef MASKED
// Returns the row of the mask for a query.
ConstFloats mask_of(uint head, uint query) {
  const uvec2 of_head = product(stretch.queries, stretch.keys);
  const uvec2 row = plus(mask.size == of_head ? uvec2(0) : times(of_head, head), product(query, stretch.keys));
  return ConstFloats(element(uvec2(mask.data), row));
}

// -infinity hides a key with any score.
float masked(float score, float mask) {
  if (floatBitsToUint(mask) == 0xff800000) return mask;
  precise const float sum = score + mask;
  return sum;
}
#endif

#ifdef TILED
#include "attention_tiled.glsl"
#else
shared float scores[256];
shared float weights[256];

// Unrolled by eight, because lavapipe limits the total iterations of all loops.
float product_of(Line a, Line b) {
  const uint size = head_size();
  vec4 sums = vec4(0.0);
  uint i = 0;
  for (; i + 8 <= size; i += 8)
    sums = fma(four(a, i + 4), four(b, i + 4), fma(four(a, i), four(b, i), sums));
  float sum = (sums.x + sums.y) + (sums.z + sums.w);
  for (; i < size; ++i) sum = fma(at(a, i), at(b, i), sum);
  return sum;
}

// The sums of this invocation's columns.
vec4 low = vec4(0.0), high = vec4(0.0);

// Reads nothing if the weight is 0, because the key may not exist.
void add_values(float weight, uvec2 values, uint key) {
  if (weight == 0.0) return;
  const uint size = value_size();
  Line row = line_of(uvec2(v.data), plus(values, product(key, size)));
  low.x = fma(weight, at(row, low_columns.x), low.x);
  if (size > 32) low.y = fma(weight, at(row, low_columns.y), low.y);
  if (size > 64)
    low.zw = fma(vec2(weight), vec2(at(row, low_columns.z), at(row, low_columns.w)), low.zw);
  if (size > 128)
    high = fma(vec4(weight),
               vec4(at(row, high_columns.x), at(row, high_columns.y), at(row, high_columns.z), at(row, high_columns.w)), high);
}

void main() {
  // Heads begin at multiples of 64 queries.
  const uint number = flat_unit(8), groups = (stretch.queries + 63) / 64 * 8;
  if (groups == 0) return;
  const uint head = number / groups, first_query = number % groups * 8;
  if (head >= stretch.heads || first_query >= stretch.queries) return;
  const uint me = gl_LocalInvocationID.x, lane = me & 31, team = me - lane;
  const uint last_query = stretch.queries - 1, query = min(first_query + (me >> 5), last_query);
  const uint seen = seen_by(query), end = min(stretch.last, seen_by(min(first_query + 7, last_query)));

  const uint size = value_size();
  const uvec2 keys = times(product(stretch.keys, head_size()), head), values = times(product(stretch.keys, size), head);
  const uvec2 row = plus(times(product(stretch.queries, size), head), product(query, size));
  Line query_line = line_of(uvec2(q.data), plus(times(product(stretch.queries, head_size()), head), product(query, head_size())));
  Floats kept = Floats(element(uvec2(state.data), plus(times(product(stretch.queries, size + 2), head),
                                                       product(query, size + 2))));
  low_columns = min(uvec4(lane) + uvec4(0, 32, 64, 96), uvec4(size - 1));
  high_columns = min(uvec4(lane) + uvec4(128, 160, 192, 224), uvec4(size - 1));

  vec2 sum = nothing;
  if (stretch.first != 0) {
    sum = vec2(kept.at[0], kept.at[1]);
    low = vec4(kept.at[2 + low_columns.x], kept.at[2 + low_columns.y], kept.at[2 + low_columns.z], kept.at[2 + low_columns.w]);
    high = vec4(kept.at[2 + high_columns.x], kept.at[2 + high_columns.y], kept.at[2 + high_columns.z], kept.at[2 + high_columns.w]);
  }
  for (uint first = stretch.first; first < end; first += 32) {
    // -infinity and invisible keys have no weight; NaN and +infinity make the result NaN. Compares bits,
    // because compilers may remove comparisons with NaN.
    const uint key = first + lane;
    const bool here = key < min(seen, stretch.last);
    float score = nothing.x;
    if (here)
      score = scaled(product_of(query_line, line_of(uvec2(k.data), plus(keys, product(key, head_size())))), stretch.scale);
#ifdef MASKED
    if (here) score = masked(score, mask_of(head, query).at[key]);
#endif
    const uint bits = floatBitsToUint(score);
    const bool finite = (bits & 0x7f800000) != 0x7f800000;
    scores[me] = finite ? score : nothing.x;
    barrier();
    float most = sum.x;
    for (uint i = team; i < team + 32; i += 4)
      most = max(max(most, max(scores[i], scores[i + 1])), max(scores[i + 2], scores[i + 3]));
    weights[me] = !here || bits == 0xff800000 ? 0.0 : finite ? exponential(score - most) : not_a_number();
    barrier();
    const float ratio = exponential(sum.x - most);
    sum = vec2(most, sum.y * ratio);
    low *= ratio;
    high *= ratio;
    for (uint i = 0; i < 32; i += 4) {
      const vec4 some = vec4(weights[team + i], weights[team + i + 1], weights[team + i + 2], weights[team + i + 3]);
      sum.y += (some.x + some.y) + (some.z + some.w);
      add_values(some.x, values, first + i);
      add_values(some.y, values, first + i + 1);
      add_values(some.z, values, first + i + 2);
      add_values(some.w, values, first + i + 3);
    }
  }

  if (first_query + (me >> 5) > last_query) return;
  const bool last = stretch.last == stretch.keys;
  if (!last && lane < 2) kept.at[lane] = sum[lane];
#ifdef MASKED
  const float share = sum.y == 0.0 ? 0.0 : share_of(sum);
#else
  const float share = share_of(sum);
#endif
  for (uint i = 0; i < 8; ++i) {
    const uint column = lane + 32 * i;
    if (column >= size) return;
    const float value = i < 4 ? low[i] : high[i - 4];
    if (!last)
      kept.at[2 + column] = value;
    else
      write(plus(row, uvec2(column, 0)), seen == 0 ? 0.0 : value * share);
  }
}
#endif
