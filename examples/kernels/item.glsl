// One item for each invocation, in workgroups of 256.
layout(local_size_x = 256) in;

uint item() { return gl_GlobalInvocationID.x; }
