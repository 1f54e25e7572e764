#pragma once
/// Shaders for the tests of this room: from GLSL, and from SPIR-V in the assembler's notation.
#include <cstdint>
#include <string>
#include <vector>

namespace wye::test {

using Words = std::vector<std::uint32_t>;

/// programs.md, 02.
inline constexpr char scale_glsl[] = R"(#version 450
                layout(local_size_x = 256) in;
                layout(set = 0, binding = 0) buffer X { float x[]; };
                layout(push_constant) uniform P { float s; };
                void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) x[i] *= s; })";

/// The same with an address in place of the bound buffer.
inline constexpr char scale_span_glsl[] = R"(#version 450
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 64) in;
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Floats { float at[]; };
struct Span { Floats data; uvec2 count; };
layout(push_constant) uniform P { Span x; float s; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < x.count.x) x.data.at[i] *= s; })";

/// Compiles `glsl`. Fails the test if the compiler refuses it.
Words compile(const std::string& glsl);

/// Assembles `text` with SPIRV-Tools. Fails the test if the assembler refuses it.
Words assemble(const std::string& text);

/// Returns the smallest module with a compute entry point "main", with `declarations` and `body` at
/// their places.
Words module(const std::string& annotations, const std::string& declarations, const std::string& body,
             const std::string& entry = "OpEntryPoint GLCompute %main \"main\"",
             const std::string& mode = "OpExecutionMode %main LocalSize 8 4 2");

}  // namespace wye::test
