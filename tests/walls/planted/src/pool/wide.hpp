#pragma once
// One member over the limit, and none.
struct Wide {
  int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u;
};

struct Broad {
  int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t;
  static int shared;
};
