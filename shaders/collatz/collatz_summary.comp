#version 460
// Finds records and sums of 65,536 results, or of as many summaries, per workgroup. Of equal records the first place counts,
// so any order of the comparisons has the same result.
#include "span.glsl"
#include "flat.glsl"
#include "collatz.glsl"

layout(push_constant) uniform Arguments {
  ConstNumberSpan results;
  ConstNumberSpan parts;  // summaries of the step before; empty: the results count
  NumberSpan sums;
};

const uint words_of_summary = 18, stretch = 65536;

struct Summary {
  uvec2 finished, unfinished, overflowed, steps, most_steps, longest, highest;
  uvec4 peak;
};

Summary nothing() {
  const uvec2 zero = uvec2(0);
  return Summary(zero, zero, zero, zero, zero, zero, zero, uvec4(0));
}

Summary summary_of_result(uvec2 place) {
  ConstWords from = ConstWords(element(uvec2(results.data), times(place, words_of_result)));
  const uint reason = from.at[5];
  const uvec2 one = uvec2(1, 0), steps = uvec2(from.at[4], 0);
  Summary s = nothing();
  if (reason == end_overflow) {
    s.overflowed = one;
  } else if (reason == end_step_limit) {
    s.unfinished = one;
  } else {
    s.finished = one;
    s.steps = steps;
    s.most_steps = steps;
    s.longest = place;
    s.highest = place;
    s.peak = uvec4(from.at[0], from.at[1], from.at[2], from.at[3]);
  }
  return s;
}

Summary summary_of_part(uvec2 place) {
  ConstWords from = ConstWords(element(uvec2(parts.data), times(place, words_of_summary)));
  Summary s;
  s.finished = uvec2(from.at[0], from.at[1]);
  s.unfinished = uvec2(from.at[2], from.at[3]);
  s.overflowed = uvec2(from.at[4], from.at[5]);
  s.steps = uvec2(from.at[6], from.at[7]);
  s.most_steps = uvec2(from.at[8], from.at[9]);
  s.longest = uvec2(from.at[10], from.at[11]);
  s.highest = uvec2(from.at[12], from.at[13]);
  s.peak = uvec4(from.at[14], from.at[15], from.at[16], from.at[17]);
  return s;
}

Summary combined(Summary a, Summary b) {
  const bool none = a.finished == uvec2(0), counts = b.finished != uvec2(0);
  if (counts && (none || is_less(a.most_steps, b.most_steps) ||
                 (a.most_steps == b.most_steps && is_less(b.longest, a.longest)))) {
    a.most_steps = b.most_steps;
    a.longest = b.longest;
  }
  if (counts && (none || is_greater(b.peak, a.peak) || (a.peak == b.peak && is_less(b.highest, a.highest)))) {
    a.peak = b.peak;
    a.highest = b.highest;
  }
  a.finished = plus(a.finished, b.finished);
  a.unfinished = plus(a.unfinished, b.unfinished);
  a.overflowed = plus(a.overflowed, b.overflowed);
  a.steps = plus(a.steps, b.steps);
  return a;
}

shared Summary of_others[128];

void main() {
  const uint me = gl_LocalInvocationID.x;
  const uint group = flat_unit(8);
  const bool has_parts = parts.size != uvec2(0);
  const uvec2 count = has_parts ? parts.size : results.size;
  const uvec2 first = product(group, stretch);
  Summary mine = nothing();
  for (uint i = me; i < stretch; i += 256) {
    const uvec2 place = plus(first, uvec2(i, 0));
    if (!is_less(place, count)) break;
    if (has_parts)
      mine = combined(mine, summary_of_part(place));
    else
      mine = combined(mine, summary_of_result(place));
  }
  for (uint reach = 128; reach > 0; reach >>= 1) {
    if (me >= reach && me < 2 * reach) of_others[me - reach] = mine;
    barrier();
    if (me < reach) mine = combined(mine, of_others[me]);
    barrier();
  }
  if (me != 0 || !is_less(uvec2(group, 0), sums.size)) return;
  Words to = Words(element(uvec2(sums.data), product(group, words_of_summary)));
  const uvec2 pairs[7] = uvec2[](mine.finished, mine.unfinished, mine.overflowed, mine.steps, mine.most_steps,
                                 mine.longest, mine.highest);
  for (uint i = 0; i < 7; ++i) {
    to.at[2 * i] = pairs[i].x;
    to.at[2 * i + 1] = pairs[i].y;
  }
  for (uint i = 0; i < 4; ++i) to.at[14 + i] = mine.peak[i];
}
