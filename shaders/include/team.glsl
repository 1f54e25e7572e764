// A team: 2^log2 adjacent invocations of one workgroup that combine their partial results, always in the same
// order. Needs PARTIAL, a type, and PARTIAL combine(PARTIAL, PARTIAL) before it. With SUBGROUPS the order is the same, and
// it needs PARTIAL exchanged(PARTIAL, uint) of structs.
shared PARTIAL team_partials[gl_WorkGroupSize.x];

#ifdef SUBGROUPS
// Returns the combined partial results of 2, 4 or 8 invocations that are `step` apart, in the order of a tree.
PARTIAL of_two(uint first, uint step) { return combine(team_partials[first], team_partials[first + step]); }
PARTIAL of_four(uint first, uint step) { return combine(of_two(first, 2 * step), of_two(first + step, 2 * step)); }
PARTIAL of_eight(uint first, uint step) {
  return combine(of_four(first, 2 * step), of_four(first + step, 2 * step));
}

// Combines the partial results of invocations in different subgroups, which are in shared memory. Returns those of the
// invocations whose index in the team is a multiple of `step` from this invocation's. Each subgroup reads all of them,
// which needs no barrier after it.
PARTIAL of_other_subgroups(PARTIAL mine, uint lanes, uint step) {
  const uint me = invocation_index(), first = me & ~(lanes - 1);
  team_partials[me] = mine;
  uint count = lanes / step, reach = lanes >> 1;
  for (; count > 8; count >>= 1, reach >>= 1) {
    barrier();
    if (me - first < reach) team_partials[me] = combine(team_partials[me], team_partials[me + reach]);
  }
  barrier();
  const uint from = first + (me & (step - 1));
  if (count == 8) return of_eight(from, step);
  if (count == 4) return of_four(from, step);
  return of_two(from, step);
}

PARTIAL team_result(PARTIAL mine, uint log2) {
  const uint lanes = 1u << log2, together = min(subgroup_size(), lanes);
  if (together < lanes) mine = of_other_subgroups(mine, lanes, together);  // all invocations of the workgroup
  subgroupBarrier();
  // Both of two invocations get the same bits, because `combine` is commutative.
  for (uint reach = together >> 1; reach > 0; reach >>= 1) mine = combine(mine, exchanged(mine, reach));
  return mine;
}
#else
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
#endif
