#pragma once
/// Shaders to be compiled and found again.
#include <string>

namespace wye_bench {

/// 4 KiB of GLSL that scale a buffer, another text for each number.
inline std::string glsl_4KiB(unsigned number) {
  std::string text =
      "#version 450\n"
      "layout(local_size_x = 64) in;\n"
      "layout(set = 0, binding = 0) buffer X { float x[]; };\n"
      "layout(push_constant) uniform P { float s; };\n"
      "void main() {\n"
      "  uint i = gl_GlobalInvocationID.x;\n"
      "  if (i >= x.length()) return;\n"
      "  float v = x[i] * s;\n";
  const std::string end = "  x[i] = v;\n}\n";
  for (unsigned line = 0; text.size() + end.size() + 48 <= 4096; ++line)
    text += "  v = fma(v, 0.5, " + std::to_string(number) + "." + std::to_string(line) + " * s);\n";
  text += "  // " + std::string(4096 - text.size() - end.size() - 6, '.') + "\n";
  return text + end;
}

}  // namespace wye_bench
