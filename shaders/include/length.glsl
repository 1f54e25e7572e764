// The length of a vector whose squares may overflow or underflow. Three sums of squares: of the numbers, of
// 2^100 times the numbers, and of 2^-80 times the numbers. The sum in range is used. Source: Blue, A portable
// Fortran program to find the Euclidean norm of a vector, ACM TOMS 4 (1978), with three sums in place of
// three ranges.
#define PARTIAL vec3
const float up = 1.2676506002282294e30;     // 2^100, which lifts the square of 2^-149 above 2^-126
const float down = 8.271806125530277e-25;   // 2^-80
const float largest = 8.507059173023462e37; // 2^126; the smallest unscaled sum in range is 2^-80

vec3 combine(vec3 a, vec3 b) { return a + b; }

vec3 squares(float v) {
  const vec3 scaled = v * vec3(1.0, up, down);
  return scaled * scaled;
}

// Returns a factor and the sum of the squares of the numbers times that factor, which is in range.
vec2 scaled_sum(vec3 sums) {
  if (!(sums.x <= largest)) return vec2(down, sums.z);  // infinities and NaN, too
  return sums.x < down ? vec2(up, sums.y) : vec2(1.0, sums.x);
}

// Returns the factors that scale the numbers to length 1, to be applied one after the other; zeros if all
// numbers are zero.
vec2 to_unit(vec3 sums) {
  const vec2 scaled = scaled_sum(sums);
  return scaled.y == 0.0 ? vec2(0.0) : vec2(scaled.x, 1.0 / sqrt(scaled.y));
}

float length_of(vec3 sums) {
  const vec2 scaled = scaled_sum(sums);
  return sqrt(scaled.y) / scaled.x;
}
