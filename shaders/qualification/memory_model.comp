#version 460
// The Vulkan memory model: an invocation that sees a flag sees what was written before it.
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model
layout(local_size_x = 64) in;
layout(set = 0, binding = 0, std430) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1, std430) buffer Y { uint y[]; };
layout(push_constant) uniform Count { uint n; };
shared uint flags[64];
shared uint values[64];

void main() {
  const uint i = gl_GlobalInvocationID.x, at = gl_LocalInvocationID.x, other = (at + 17) & 63;
  flags[at] = 0u;
  controlBarrier(gl_ScopeWorkgroup, gl_ScopeWorkgroup, gl_StorageSemanticsShared, gl_SemanticsAcquireRelease);
  values[at] = x[i % n];
  atomicStore(flags[at], 1u, gl_ScopeWorkgroup, gl_StorageSemanticsShared, gl_SemanticsRelease);
  const uint seen = atomicLoad(flags[other], gl_ScopeWorkgroup, gl_StorageSemanticsShared, gl_SemanticsAcquire);
  const uint early = seen != 0 ? values[other] : 0;
  controlBarrier(gl_ScopeWorkgroup, gl_ScopeWorkgroup, gl_StorageSemanticsShared, gl_SemanticsAcquireRelease);
  if (i < n) y[i] = seen != 0 && early != values[other] ? ~values[other] : values[other];
}
