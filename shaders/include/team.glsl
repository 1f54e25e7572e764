// A team: 2^log2 neighbouring invocations of one workgroup that put their partial results together, always in the same
// order. Needs PARTIAL, a type, and PARTIAL combine(PARTIAL, PARTIAL) before it.
shared PARTIAL team_partials[gl_WorkGroupSize.x];

// What the partial results of the team come to. Called once, by all invocations of the workgroup.
PARTIAL team_result(PARTIAL mine, uint log2) {
  const uint me = gl_LocalInvocationID.x;
  const uint place = me & ((1 << log2) - 1);
  team_partials[me] = mine;
  for (uint reach = (1 << log2) >> 1; reach > 0; reach >>= 1) {
    barrier();
    if (place < reach) team_partials[me] = combine(team_partials[me], team_partials[me + reach]);
  }
  barrier();
  return team_partials[me - place];
}
