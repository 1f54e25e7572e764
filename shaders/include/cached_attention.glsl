// softmax(q k^T scale) v of rows that see unlike numbers of keys, in two steps. First, a workgroup attends to a stretch of 256
// keys, with at most 4 queries of one row that use one key/value head: they are the components of vectors. An invocation
// computes the scores of a key, then adds up a column of v. Then, 32 invocations add up the stretches of a query. Stretches begin
// at multiples of 256 keys: the bits of a row depend on nothing but its query and its keys.
#include "span.glsl"
#include "flat.glsl"
#include "elements.glsl"
#include "exponents.glsl"
#undef PARTIAL
#define PARTIAL vec4
vec4 combine(vec4 a, vec4 b) { return max(a, b); }
#include "team.glsl"

#if defined(HALF) || defined(BFLOAT16)
#include "words.glsl"
#define Results WordSpan
#else
#define Results FloatSpan
#endif

struct CachedStretches {
  uint rows;
  uint head_counts;  // of a row in the low 16 bits, of a row of keys in the high 16 bits
  uint sizes;      // of heads of keys in the low 16 bits, of values in the high 16 bits
  uint stretches;  // of the row with the most keys
  uint adds_up;    // 1: the second step
  float scale;
  float softcap;
  uint window;  // the most keys that a row sees, the last of its place
};

layout(push_constant) uniform Arguments {
  ElementSpan q;
  ElementSpan keys;
  ElementSpan values;
  ConstWordSpan places;  // see `attention_places.comp`
  FloatSpan state;  // of each query and stretch: its largest score, the sum of exponentials, sums of values
  Results result;
  CachedStretches shape;
};

shared vec4 queries[256];  // 64 of each query, then sums of values
shared vec4 weights[256];  // of each key

uint heads() { return shape.head_counts & 0xffffu; }
uint key_value_heads() { return shape.head_counts >> 16; }
uint head_size() { return shape.sizes & 0xffffu; }
uint value_size() { return shape.sizes >> 16; }

bool is_finite(float v) { return (floatBitsToUint(v) & 0x7f800000u) != 0x7f800000u; }

// Returns numbers i to i + 3 of `size`, then zeros.
vec4 four_of(Line line, uint i, uint size) {
  if (i + 4u <= size) return vec4(at(line, i), at(line, i + 1u), at(line, i + 2u), at(line, i + 3u));
  vec4 some = vec4(at(line, i), 0.0, 0.0, 0.0);
  if (i + 1u < size) some.y = at(line, i + 1u);
  if (i + 2u < size) some.z = at(line, i + 2u);
  return some;
}

// Returns cap tanh(score / cap): (1 - exp(-2 a)) / (1 + exp(-2 a)) or, below 1 / 4, the series of tanh, which ends with a^9: the
// next term is below 1e-8 of the sum. Infinities become the cap.
float capped(float score, float cap) {
  if (cap == 0.0 || (floatBitsToUint(score) & 0x7fffffffu) > 0x7f800000u) return score;
  const float size = is_finite(score) ? min(abs(score / cap), 64.0) : 64.0, z = size * size, e = exponential(-2.0 * size);
  const float series =
      size + size * z * (-1.0 / 3.0 + z * (2.0 / 15.0 + z * (-17.0 / 315.0 + z * (62.0 / 2835.0))));
  return scaled(size < 0.25 ? series : (1.0 - e) / (1.0 + e), score < 0.0 ? -cap : cap);
}

// Returns a score. Its product with the scale is rounded.
float score_of(vec4 products) {
  return capped(scaled((products.x + products.y) + (products.z + products.w), shape.scale), shape.softcap);
}

// Returns the state of a query and a stretch.
Floats state_of(uint query, uint stretch) {
  return Floats(element(uvec2(state.data), product(query * shape.stretches + stretch, value_size() + 2u)));
}

void attend() {
  const uint group = heads() / key_value_heads(), parts = (group + 3u) / 4u;
  const uint number = flat_unit(8u), row_parts = shape.rows * parts, of_stretch = key_value_heads() * row_parts;
  if (of_stretch == 0u || number / of_stretch >= shape.stretches) return;
  const uint stretch = number / of_stretch, key_head = number % of_stretch / row_parts;
  const uint row = number % row_parts / parts, part = number % parts;
  const uint base = places.data.at[3u * row], seen = places.data.at[3u * row + 1u], first = stretch * 256u;
  if (first >= seen) return;
  const uint me = gl_LocalInvocationID.x, size = head_size(), columns = value_size();
  const uint head = key_head * group + 4u * part, count = min(4u, group - 4u * part);
  const uint key_columns = key_value_heads() * size, value_columns = key_value_heads() * columns;

  const uint query = me >> 6, from = 4u * (me & 63u);
  vec4 mine = vec4(0.0);
  if (query < count && from < size) {
    Line line = line_of(uvec2(q.data), product(row * heads() + head + query, size));
    mine = four_of(line, from, size);
  }
  queries[me] = mine;
  barrier();

  // -infinity and keys that do not exist have no weight; NaN and +infinity make the result NaN. Compares bits, because compilers
  // may remove comparisons with NaN.
  const uint hidden = stretch == 0u && seen > shape.window ? seen - shape.window : 0u;
  const bool here = first + me < seen && me >= hidden;
  vec4 scores = vec4(nothing.x);
  if (here) {
    Line line = line_of(uvec2(keys.data), plus(product(base + first + me, key_columns), uvec2(key_head * size, 0)));
    vec4 products0 = vec4(0.0), products1 = vec4(0.0), products2 = vec4(0.0), products3 = vec4(0.0);
    for (uint i = 0u; 4u * i < size; ++i) {
      const vec4 some = four_of(line, 4u * i, size);
      products0 = fma(queries[i], some, products0);
      if (count > 1u) products1 = fma(queries[64u + i], some, products1);
      if (count > 2u) products2 = fma(queries[128u + i], some, products2);
      if (count > 3u) products3 = fma(queries[192u + i], some, products3);
    }
    scores = vec4(score_of(products0), score_of(products1), score_of(products2), score_of(products3));
  }
  vec4 finite = vec4(nothing.x);
  for (uint j = 0u; j < 4u; ++j)
    if (is_finite(scores[j])) finite[j] = scores[j];
  const vec4 most = team_result(finite, 8u);
  vec4 weight = vec4(0.0);
  for (uint j = 0u; j < 4u; ++j)
    if (here && floatBitsToUint(scores[j]) != 0xff800000u)
      weight[j] = is_finite(scores[j]) ? exponential(scores[j] - most[j]) : not_a_number();
  weights[me] = weight;
  barrier();

  uint lanes_log2 = 0u;
  while ((1u << lanes_log2) < columns) ++lanes_log2;
  const uint subsets = 256u >> lanes_log2, subset = me >> lanes_log2, column = me & ((1u << lanes_log2) - 1u);
  const uint last = min(seen - first, 256u);
  vec4 sums = vec4(0.0), total = vec4(0.0);
  for (uint i = hidden + ((subset - hidden) & (subsets - 1u)); i < last; i += subsets) {
    const vec4 some = weights[i];
    total += some;
    if (column < columns) {
      Line line = line_of(uvec2(values.data), plus(product(base + first + i, value_columns), uvec2(key_head * columns, 0)));
      sums = fma(some, vec4(at(line, column)), sums);
    }
  }
  queries[me] = sums;
  if (column == 0u) team_partials[subset] = total;
  barrier();

  if (subset != 0u || column >= columns) return;
  for (uint i = 1u; i < subsets; ++i) {
    sums += queries[(i << lanes_log2) + column];
    if (column == 0u) total += team_partials[i];
  }
  for (uint j = 0u; j < count; ++j) {
    Floats kept = state_of(row * heads() + head + j, stretch);
    if (column == 0u) {
      kept.at[0] = most[j];
      kept.at[1] = total[j];
    }
    kept.at[2u + column] = sums[j];
  }
}

void write(uvec2 index, float value) {
#if defined(HALF) || defined(BFLOAT16)
  const uvec2 address = half_element(uvec2(result.data), index);
  write_bytes(address, 2, narrow(floatBitsToUint(value)));
#else
  Floats(element(uvec2(result.data), index)).at[0] = value;
#endif
}

// An invocation has columns lane + 32 i. Columns beyond the row repeat the last column and are not written.
void add_up() {
  const uint query = flat_unit(5u);
  if (query >= shape.rows * heads()) return;
  const uint lane = gl_LocalInvocationID.x & 31u, columns = value_size(), step = columns + 2u;
  const uint seen = places.data.at[3u * (query / heads()) + 1u], count = (seen + 255u) / 256u;
  const uvec4 low_columns = 2u + min(uvec4(lane) + uvec4(0, 32, 64, 96), uvec4(columns - 1u));
  const uvec4 high_columns = 2u + min(uvec4(lane) + uvec4(128, 160, 192, 224), uvec4(columns - 1u));
  Floats kept = state_of(query, 0u);
  float most = nothing.x;
  for (uint i = 0u; i < count; ++i) most = max(most, kept.at[i * step]);
  float total = 0.0;
  vec4 low = vec4(0.0), high = vec4(0.0);
  for (uint i = 0u; i < count; ++i) {
    const uint from = i * step;
    const float ratio = exponential(kept.at[from] - most);
    const uvec4 a = from + low_columns, b = from + high_columns;
    total = fma(kept.at[from + 1u], ratio, total);
    low = fma(vec4(kept.at[a.x], kept.at[a.y], kept.at[a.z], kept.at[a.w]), vec4(ratio), low);
    if (columns > 128u) high = fma(vec4(kept.at[b.x], kept.at[b.y], kept.at[b.z], kept.at[b.w]), vec4(ratio), high);
  }
  const float share = share_of(vec2(most, total));
  for (uint i = 0u; i < 8u; ++i) {
    const uint column = lane + 32u * i;
    if (column >= columns) return;
    const float value = i < 4u ? low[i] : high[i - 4u];
    write(plus(product(query, columns), uvec2(column, 0)), seen == 0u ? 0.0 : value * share);
  }
}

void main() {
  if (shape.adds_up == 0u)
    attend();
  else
    add_up();
}
