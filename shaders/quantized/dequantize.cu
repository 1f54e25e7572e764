// Elements of blocks as floats. A thread writes one.
#include "quantized.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_dequantize(wye_span<const unsigned char> blocks, wye_span<float> x, BlockLayout layout) {
  const Size item = flat_thread();
  if (item >= x.size) return;
  const Byte* const block = blocks.data + (item >> layout.group_log2) * block_bytes(layout);
  x[item] = value_at(block, header_of(block, layout), unsigned(item) & ((1u << layout.group_log2) - 1), layout);
}
