// Prefix sums for GPUs: the text that scan.glsl includes with SUBGROUPS. Adds the sums of invocations in the order of a
// tree, which does not depend on the size of subgroups. Chunks alternate between two halves of shared memory. One barrier
// for each is then enough if subgroups have at least 32 invocations.
shared TERM of_blocks[2][256];

// Returns the sum of `mine` of the invocations of the piece before this one. Sets `all` to the sum over the piece's
// invocations.
TERM sum_before(TERM mine, uint half_of_memory, out TERM all) {
  const uint lanes = 1u << split.lanes_log2, me = invocation_index();
  const uint together = min(subgroup_size(), lanes), block = max(together, lanes >> 3);
  TERM before = TERM(0), sum = mine;
  subgroupBarrier();
  uint reach = 1;
  for (; reach < together; reach <<= 1) {
    const TERM other = exchanged(sum, reach);
    if ((me & reach) != 0) before = sum_of(other, before);
    sum = sum_of(sum, other);
  }
  for (; reach < block; reach <<= 1) {  // small subgroups
    barrier();
    of_blocks[half_of_memory][me] = sum;
    barrier();
    const TERM other = of_blocks[half_of_memory][me ^ reach];
    if ((me & reach) != 0) before = sum_of(other, before);
    sum = sum_of(sum, other);
  }
  all = sum;
  if (block == lanes) return before;  // all invocations of the workgroup
  if (together < block) barrier();
  const uint number = me / block, first = (me & ~(lanes - 1)) / block, count = lanes / block;
  if ((me & (block - 1)) == 0) of_blocks[half_of_memory][number] = sum;
  barrier();
  for (uint n = 1; n < count; n <<= 1) {
    const uint other = (number ^ n) & ~(n - 1);
    TERM others = of_blocks[half_of_memory][other];
    if (n >= 2) others = sum_of(others, of_blocks[half_of_memory][other + 1]);
    if (n == 4)
      others = sum_of(others, sum_of(of_blocks[half_of_memory][other + 2], of_blocks[half_of_memory][other + 3]));
    if ((number & n) != 0) before = sum_of(others, before);
    all = sum_of(all, others);
  }
  return before;
}

layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer ConstQuads { uvec4 bits; };
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer ConstPairs { uvec2 bits; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Quads { uvec4 bits; };

// Whether four adjacent elements can be loaded, or four sums be stored, by instructions for several words.
bool has_aligned_elements(PackedLine line) {
#if defined(HALF) || defined(BFLOAT16)
  return line.skip == 0 && (uvec2(line.words).x & 7) == 0;
#else
  return (uvec2(line.words).x & 15) == 0;
#endif
}

TERM terms[4];

// Loads elements i to i + count - 1, at most 4. The others are zeros. i is a multiple of 4.
void load_terms(PackedLine line, uint i, uint count, bool aligned) {
  if (count < 4 || !aligned) {
    for (uint j = 0; j < 4; ++j) terms[j] = j < count ? term_at(line, i + j) : TERM(0);
    return;
  }
#if defined(HALF) || defined(BFLOAT16)
  const uvec2 bits = ConstPairs(element(uvec2(line.words), uvec2(i >> 1, 0))).bits;
  for (uint j = 0; j < 4; ++j) terms[j] = term_of(uvec2(bits[j >> 1] >> ((j & 1) << 4) & 0xffffu, 0));
#elif defined(UINT64)
  const uvec4 low = ConstQuads(element(uvec2(line.words), uvec2(2 * i, 0))).bits;
  const uvec4 high = ConstQuads(element(uvec2(line.words), uvec2(2 * i + 4, 0))).bits;
  terms[0] = low.xy;
  terms[1] = low.zw;
  terms[2] = high.xy;
  terms[3] = high.zw;
#else
  const uvec4 bits = ConstQuads(element(uvec2(line.words), uvec2(i, 0))).bits;
  for (uint j = 0; j < 4; ++j) terms[j] = term_of(uvec2(bits[j], 0));
#endif
}

// Stores `count` of `terms` from sum i of the memory at `to` on.
void store_terms(uvec2 to, uint i, uint count, bool aligned) {
  if (count < 4 || !aligned) {
    for (uint j = 0; j < count; ++j) write_term(to, uvec2(i + j, 0), bits_of(terms[j]));
    return;
  }
#ifdef UINT64
  Quads low = Quads(element(to, uvec2(2 * i, 0)));
  low.bits = uvec4(terms[0], terms[1]);
  Quads high = Quads(element(to, uvec2(2 * i + 4, 0)));
  high.bits = uvec4(terms[2], terms[3]);
#else
  Quads quad = Quads(element(to, uvec2(i, 0)));
  quad.bits = uvec4(bits_of(terms[0]).x, bits_of(terms[1]).x, bits_of(terms[2]).x, bits_of(terms[3]).x);
#endif
}

void main() {
  const Piece p = piece_of(split);
  const uvec2 first = plus(product(p.row, split.columns), uvec2(p.first, 0));
  PackedLine line = line_of(uvec2(x.data), first);
#ifdef UINT64
  const uvec2 to = element(uvec2(sums.data), plus(first, first));
#else
  const uvec2 to = element(uvec2(sums.data), first);
#endif
  const bool loads_aligned = has_aligned_elements(line), stores_aligned = (to.x & 15) == 0;
  TERM carry = offset_of(uvec2(p.number, 0));
  const uint longest = min(split.columns, longest_piece);
  const uint size = p.last - p.first;
  for (uint chunk = 0; (chunk << split.lanes_log2) * 4 < longest; ++chunk) {
    const uint begin = ((chunk << split.lanes_log2) + p.lane) * 4;
    const uint count = begin < size ? min(size - begin, 4) : 0;
    load_terms(line, begin, count, loads_aligned);
    const TERM two = sum_of(terms[0], terms[1]), three = sum_of(two, terms[2]), four = sum_of(three, terms[3]);
    TERM all;
    const TERM before = sum_of(carry, sum_before(four, chunk & 1, all));
    if (exclusive != 0) {
      terms[3] = sum_of(before, three);
      terms[2] = sum_of(before, two);
      terms[1] = sum_of(before, terms[0]);
      terms[0] = before;
    } else {
      terms[0] = sum_of(before, terms[0]);
      terms[1] = sum_of(before, two);
      terms[2] = sum_of(before, three);
      terms[3] = sum_of(before, four);
    }
    store_terms(to, begin, count, stores_aligned);
    carry = sum_of(carry, all);
  }
}
