// The parameters of most checks of a device: n random words, and results.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0, std430) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1, std430) buffer Y { uint y[]; };
layout(push_constant) uniform Count { uint n; };
