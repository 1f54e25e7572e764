// A team: 2^log2 adjacent invocations of one workgroup that combine their partial results, always in the same
// order. Needs PARTIAL, a type, and PARTIAL combine(PARTIAL, PARTIAL) before it.
shared PARTIAL team_partials[gl_WorkGroupSize.x];

// Returns the combined partial results of the team. All invocations of the workgroup call it, once.
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
