#pragma once
/// Kernels for the tests of several rooms, with all their sources.
#include <wye/device/device.hpp>
#include <wye/kernel/kernel.hpp>

#include <span>
#include <stdexcept>

namespace wye::test {

/// Returns whether a device runs kernels in GLSL and on the host.
inline bool runs_glsl_or_host(const Device& device) { return device.info().backend != "cuda"; }

inline constexpr char scale_glsl[] = R"(#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer X { float x[]; };
layout(push_constant) uniform P { float s; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) x[i] *= s; })";

/// x *= s, in GLSL and on the host.
inline Kernel<ReadWrite<float>, float> scale() {
  return Kernel<ReadWrite<float>, float>::make(
             {.name = "scale",
              .sources = {Glsl{.text = scale_glsl}, host([](Range range, std::span<float> x, float s) {
                            for (std::uint64_t i : range) x[i] *= s;
                          })}})
      .value();
}

/// x *= s, on the host only.
inline Kernel<ReadWrite<float>, float> host_scale(const char* name = "host_scale") {
  return Kernel<ReadWrite<float>, float>::make(
             {.name = name, .sources = {host([](Range range, std::span<float> x, float s) {
                              for (std::uint64_t i : range) x[i] *= s;
                            })}})
      .value();
}

/// y = x, in GLSL and on the host.
inline Kernel<Read<float>, Write<float>> copy() {
  return Kernel<Read<float>, Write<float>>::make(
             {.name = "copy",
              .sources = {Glsl{.text = R"(#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { float y[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < y.length()) y[i] = x[i]; })"},
                          host([](Range range, std::span<const float> x, std::span<float> y) {
                            for (std::uint64_t i : range) y[i] = x[i];
                          })}})
      .value();
}

/// Any function over x.
template <class F>
Kernel<ReadWrite<float>> on_host(const char* name, F function) {
  return Kernel<ReadWrite<float>>::make({.name = name, .sources = {host(function)}}).value();
}

}  // namespace wye::test
