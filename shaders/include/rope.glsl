// Rotates pairs of elements of heads by angles position * base^(-2 i / rotated), or of scaled frequencies, in place. A team of invocations has some
// heads of one row, an invocation two adjacent pairs i at a time: all elements of these are read before they are written.
#include "span.glsl"
#include "flat.glsl"
#include "lines.glsl"

struct Rotation {
  uint rows;
  uint heads;        // of a row
  uint head_size;
  uint rotated;      // elements of a head
  uint team_heads;   // the most heads of a team
  uint lanes_log2;   // 2^lanes_log2 invocations are a team
  uint neighbours;   // 1: pairs are adjacent elements; 0: a pair has one element of each half of those that are rotated
  uint ratio_low;    // base^(-2 / rotated) in units of 2^-64
  uint ratio_high;
  // Frequencies of pairs are scaled by 1 - s(i): s(i) is `shrink` up to pair `ramp_first`, and grows by `slope` with each of the
  // next `ramp_length` pairs.
  uint ramp_first;
  uint ramp_length;
  uint shrink_low;  // in units of 2^-64
  uint shrink_high;
  uint slope_low;   // in units of 2^-64
  uint slope_high;
  float magnitude;  // of rotated elements
};

layout(push_constant) uniform Arguments {
  NumberSpan x;
  ConstWordSpan positions;
  ConstFloatSpan factors;  // divisors of frequencies, of each pair; or empty
  Rotation shape;
};

// Returns a b / 2^64, rounded down.
uvec2 high_product(uvec2 a, uvec2 b) {
  const uvec2 one = plus(product(a.x, b.y), uvec2(product(a.x, b.x).y, 0));
  const uvec2 other = plus(product(a.y, b.x), uvec2(one.x, 0));
  return plus(plus(product(a.y, b.y), uvec2(one.y, 0)), uvec2(other.y, 0));
}

// Returns the turns for each position that pair i rotates by, ratio^i / (2 pi), in units of 2^-64. The product with a position,
// modulo 2^64, is the angle without its whole turns.
uvec2 frequency(uint i, uvec2 ratio) {
  uvec2 turns = uvec2(0x9391054au, 0x28be60dbu);
  for (; i != 0u; i >>= 1) {
    if ((i & 1u) != 0u) turns = high_product(turns, ratio);
    ratio = high_product(ratio, ratio);
  }
  return turns;
}

// Returns turns / factor, rounded down, modulo 2^64. Divides by the 24 bits of the factor, a byte at a time, and shifts by its
// exponent. Factors are at least 2^-8.
uvec2 divided(uvec2 turns, float factor) {
  const uint bits = floatBitsToUint(factor), divisor = (bits & 0x7fffffu) | 0x800000u, exponent = bits >> 23 & 255u;
  uvec3 from = uvec3(turns.x << 23, turns.y << 23 | turns.x >> 9, turns.y >> 9);  // turns 2^23
  uvec2 quotient = uvec2(0);
  uint rest = 0u;
  for (uint i = 0u; i < 12u; ++i) {
    const uint some = rest << 8 | from.z >> 24;
    from = uvec3(from.x << 8, from.y << 8 | from.x >> 24, from.z << 8 | from.y >> 24);
    quotient = uvec2(quotient.x << 8 | some / divisor, quotient.y << 8 | quotient.x >> 24);
    rest = some % divisor;
  }
  if (exponent < 127u) {
    const uint left = min(127u - exponent, 31u);
    return uvec2(quotient.x << left, quotient.y << left | quotient.x >> (32u - left));
  }
  const uint right = exponent - 127u;
  if (right >= 64u) return uvec2(0);
  if (right >= 32u) return uvec2(quotient.y >> (right - 32u), 0);
  return right == 0u ? quotient : uvec2(quotient.x >> right | quotient.y << (32u - right), quotient.y >> right);
}

// Returns the frequency of pair i with the options: `turns` are those of the base.
uvec2 with_options(uvec2 turns, uint i) {
  const uint steps = min(i > shape.ramp_first ? i - shape.ramp_first : 0u, shape.ramp_length);
  const uvec2 shrink =
      plus(uvec2(shape.shrink_low, shape.shrink_high), times(uvec2(shape.slope_low, shape.slope_high), steps));
  const uvec2 part = high_product(turns, shrink);
  uint borrow;
  const uint low = usubBorrow(turns.x, part.x, borrow);
  turns = uvec2(low, turns.y - part.y - borrow);
  // Last, because factors below 1 may give whole turns, which are lost.
  return factors.size.x == 0u ? turns : divided(turns, factors.data.at[i]);
}

// Returns the cosine and the sine of an angle in units of 2^-32 turns. The polynomials minimize the largest error in |angle| <=
// pi / 4 (2e-9, by Remez exchange). Built-in functions have no useful bound.
vec2 cosine_sine(uint angle) {
  const uint quarter = (angle + 0x20000000u) >> 30;
  const float a = float(int(angle - (quarter << 30))) * 1.4629180792671596e-9;
  const float z = a * a;
  const float sine = a + a * z * (-0.16666650665 + z * (0.0083319783935 + z * -0.00019495601938));
  const float cosine = 1.0 - 0.5 * z + z * z * (0.041666646861 + z * (-0.0013887367213 + z * 2.4438415518e-5));
  const vec2 turned = (quarter & 1u) == 0u ? vec2(cosine, sine) : vec2(-sine, cosine);
  return (quarter & 2u) == 0u ? turned : -turned;
}

vec2 rotated_by(vec2 turn, float x, float y) { return vec2(x * turn.x - y * turn.y, x * turn.y + y * turn.x); }

void main() {
  const uint groups = (shape.heads + shape.team_heads - 1) / shape.team_heads;
  const uint team = flat_unit(shape.lanes_log2);
  if (groups == 0u || team / groups >= shape.rows) return;
  const uint row = team / groups, first_head = team % groups * shape.team_heads;
  const uint last_head = min(first_head + shape.team_heads, shape.heads);
  const uint lanes = 1u << shape.lanes_log2, lane = gl_LocalInvocationID.x & (lanes - 1u);
  const uint pairs = shape.rotated / 2u, position = positions.data.at[row];
  const uvec2 ratio = uvec2(shape.ratio_low, shape.ratio_high);
  const bool neighbours = shape.neighbours != 0u;

  for (uint unit = lane; 2u * unit < pairs; unit += lanes) {
    const uint i = 2u * unit, count = min(2u, pairs - i);
    const uvec2 turns = frequency(i, ratio);
    const vec2 turn0 = cosine_sine(times(with_options(turns, i), position).y) * shape.magnitude;
    vec2 turn1 = vec2(0.0);
    if (count > 1u)
      turn1 = cosine_sine(times(with_options(high_product(turns, ratio), i + 1u), position).y) * shape.magnitude;
    for (uint head = first_head; head < last_head; ++head) {
      PackedLine line = line_of(uvec2(x.data), product(row * shape.heads + head, shape.head_size));
      if (neighbours) {
        const vec2 pair0 = rotated_by(turn0, term_at(line, 2u * i), term_at(line, 2u * i + 1u));
        if (count > 1u) {
          const vec2 pair1 = rotated_by(turn1, term_at(line, 2u * i + 2u), term_at(line, 2u * i + 3u));
          write_two(line, 2u * i + 2u, 2u, pair1);
        }
        write_two(line, 2u * i, 2u, pair0);
      } else {
        const vec2 pair0 = rotated_by(turn0, term_at(line, i), term_at(line, i + pairs));
        vec2 pair1 = vec2(0.0);
        if (count > 1u) pair1 = rotated_by(turn1, term_at(line, i + 1u), term_at(line, i + 1u + pairs));
        write_two(line, i, count, vec2(pair0.x, pair1.x));
        write_two(line, i + pairs, count, vec2(pair0.y, pair1.y));
      }
    }
  }
}
