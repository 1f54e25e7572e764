// Finds the keys that each row sees, and the row of the cache that its own key becomes. One thread has a row.
#include "flat.cuh"

struct SequenceRows {
  unsigned rows;
  unsigned slots;
  unsigned capacity;
  unsigned longest;
  unsigned causal;
  unsigned cached;
  unsigned positions;
  unsigned window;
};

extern "C" __global__ void __launch_bounds__(256)
    wye_attention_places(wye_span<const unsigned> offsets, wye_span<const unsigned> slots, wye_span<const unsigned> cached,
                         wye_span<unsigned> places, SequenceRows shape) {
  if (flat_thread() >= shape.rows) return;
  const unsigned row = unsigned(flat_thread());
  // The last sequence that begins at or before the row. Offsets that decrease may have none that the row is in.
  unsigned first = 0, last = unsigned(offsets.size) - 1;
  while (first < last) {
    const unsigned middle = (first + last) / 2;
    if (offsets[middle] <= row)
      first = middle + 1;
    else
      last = middle;
  }

  unsigned base = 0, seen = 0, own = 0xffffffffu, position = 0;
  if (first != 0) {
    const unsigned begin = offsets[first - 1], end = min(offsets[first], shape.rows);
    if (begin <= row && row < end) {
      const unsigned place = row - begin;
      if (shape.cached == 0) {
        base = begin;
        position = place;
        seen = shape.causal != 0 ? place + 1 : end - begin;
      } else {
        const unsigned slot = slots[first - 1], before = cached[first - 1];
        if (slot < shape.slots && before < shape.capacity && place < shape.capacity - before) {
          base = slot * shape.capacity;
          position = before + place;
          own = base + position;
          seen = before + (shape.causal != 0 ? place + 1 : min(end - begin, shape.capacity - before));
        }
      }
    }
  }
  seen = min(seen, shape.longest);
  if (seen > shape.window) {
    const unsigned hidden = (seen - shape.window) / 256 * 256;
    base += hidden;
    seen -= hidden;
  }
  places[3 * row] = base;
  places[3 * row + 1] = seen;
  places[3 * row + 2] = own;
  if (shape.positions != 0) places[3 * shape.rows + row] = position;
}
