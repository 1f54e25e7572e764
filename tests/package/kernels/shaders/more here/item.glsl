layout(local_size_x = 64) in;
uint item() { return gl_GlobalInvocationID.x; }
