// Returns exp(v) for v <= 0. Does not use the built-in function, because drivers disagree far below zero.
float exponential(float v) { return v < -87.0 ? 0.0 : exp(v); }
