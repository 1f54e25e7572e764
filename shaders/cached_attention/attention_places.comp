#version 460
// Finds the keys that each row sees, and the row of the cache that its own key becomes. One invocation has a row.
#include "span.glsl"
#include "flat.glsl"

struct SequenceRows {
  uint rows;
  uint slots;
  uint capacity;
  uint longest;  // the most keys that a row sees
  uint causal;
  uint cached;   // 0: keys are rows of the job
  uint positions;  // 1: the position of each row in its sequence follows the places
  uint window;   // the most keys that a row sees, the last ones
};

layout(push_constant) uniform Arguments {
  ConstWordSpan offsets;  // of the first rows of sequences, and the number of rows
  ConstWordSpan slots;
  ConstWordSpan cached;
  // Three words for each row: the first row of its keys, how many they are, and its own row. If it sees fewer keys, the first row
  // is after a multiple of 256 keys, and it sees the last ones.
  WordSpan places;
  SequenceRows shape;
};

void main() {
  const uint row = flat_unit(0u);
  if (row >= shape.rows) return;
  // The last sequence that begins at or before the row. Offsets that decrease may have none that the row is in.
  uint first = 0u, last = offsets.size.x - 1u;
  while (first < last) {
    const uint middle = (first + last) / 2u;
    if (offsets.data.at[middle] <= row)
      first = middle + 1u;
    else
      last = middle;
  }

  uint base = 0u, seen = 0u, own = 0xffffffffu, position = 0u;
  if (first != 0u) {
    const uint begin = offsets.data.at[first - 1u], end = min(offsets.data.at[first], shape.rows);
    if (begin <= row && row < end) {
      const uint place = row - begin;
      if (shape.cached == 0u) {
        base = begin;
        position = place;
        seen = shape.causal != 0u ? place + 1u : end - begin;
      } else {
        const uint slot = slots.data.at[first - 1u], before = cached.data.at[first - 1u];
        if (slot < shape.slots && before < shape.capacity && place < shape.capacity - before) {
          base = slot * shape.capacity;
          position = before + place;
          own = base + position;
          seen = before + (shape.causal != 0u ? place + 1u : min(end - begin, shape.capacity - before));
        }
      }
    }
  }
  seen = min(seen, shape.longest);
  if (seen > shape.window) {
    const uint hidden = (seen - shape.window) / 256u * 256u;
    base += hidden;
    seen -= hidden;
  }
  places.data.at[3u * row] = base;
  places.data.at[3u * row + 1u] = seen;
  places.data.at[3u * row + 2u] = own;
  if (shape.positions != 0u) places.data.at[3u * shape.rows + row] = position;
}
