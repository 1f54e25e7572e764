#version 460
// Elements of blocks as floats. An invocation writes one.
#include "quantized.glsl"

layout(push_constant) uniform Arguments {
  ConstNumberSpan blocks;
  FloatSpan x;
  BlockLayout form;
};

void main() {
  const uvec2 item = flat_item(gl_GlobalInvocationID.x);
  if (!is_less(item, x.size)) return;
  PackedLine block = block_at(uvec2(blocks.data), shifted_right(item, form.group_log2), form);
  const uint i = item.x & ((1u << form.group_log2) - 1);
  Floats(element(uvec2(x.data), item)).at[0] = value_at(block, header_of(block, form), i, form);
}
