// Sums of the numbers of the invocations before each one of the workgroup.
shared uint prefix_sums[gl_WorkGroupSize.x];

// Returns the sum of the numbers of all invocations before this one. `total` is the sum of all. All invocations of the
// workgroup call it.
uint prefix_of(uint mine, out uint total) {
  const uint me = gl_LocalInvocationID.x;
  prefix_sums[me] = mine;
  for (uint reach = 1; reach < gl_WorkGroupSize.x; reach *= 2) {
    barrier();
    const uint before = me >= reach ? prefix_sums[me - reach] : 0;
    barrier();
    prefix_sums[me] += before;
  }
  barrier();
  total = prefix_sums[gl_WorkGroupSize.x - 1];
  const uint mine_and_before = prefix_sums[me];
  barrier();
  return mine_and_before - mine;
}
