#pragma once
/// The kernels of the tests of graphs: those of tests/support/cuda/test_kernels.cu, in every
/// language. All are over 32-bit elements.
#include <wye/wye.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace wye::test {

using Number = std::uint32_t;
using Row = std::vector<Number>;

/// Returns whether a text has a part.
inline bool mentions(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}
inline bool mentions(const Error& error, std::string_view part) { return mentions(error.describe(), part); }

inline std::string number_glsl(const std::string& buffers, const std::string& statement) {
  return "#version 450\nlayout(local_size_x = 64) in;\n" + buffers +
         "layout(push_constant) uniform P { uint k; };\n"
         "void main() { uint i = gl_GlobalInvocationID.x; if (i < z.length()) " +
         statement + " }";
}

inline std::string number_cuda(const std::string& entry, const std::string& parameters,
                               const std::string& statement) {
  return "extern \"C\" __global__ void " + entry + "(" + parameters +
         ") {\n  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n  " + statement + "\n}\n";
}

/// z += k
inline const Kernel<ReadWrite<Number>, Number>& add_number() {
  static const auto kernel =
      Kernel<ReadWrite<Number>, Number>::make(
          {.name = "add",
           .sources = {Glsl{.text = number_glsl("layout(set = 0, binding = 0) buffer Z { uint z[]; };\n",
                                                "z[i] += k;")},
                       CudaCpp{.text = number_cuda("add", "wye_span<unsigned> x, unsigned by",
                                                   "if (i < x.size) x[i] += by;"),
                               .entry = "add"},
                       host([](Range range, std::span<Number> z, Number k) {
                         for (const std::uint64_t i : range) z[i] += k;
                       })}})
          .value();
  return kernel;
}

/// z = 3 z + x + k
inline const Kernel<Read<Number>, ReadWrite<Number>, Number>& mix_numbers() {
  static const auto kernel =
      Kernel<Read<Number>, ReadWrite<Number>, Number>::make(
          {.name = "mix",
           .sources = {Glsl{.text =
                                number_glsl("layout(set = 0, binding = 0) readonly buffer X { uint x[]; };\n"
                                            "layout(set = 0, binding = 1) buffer Z { uint z[]; };\n",
                                            "z[i] = z[i] * 3u + x[i] + k;")},
                       CudaCpp{.text = number_cuda(
                                   "mix", "wye_span<const unsigned> from, wye_span<unsigned> to, unsigned by",
                                   "if (i < to.size) to[i] = to[i] * 3u + from[i] + by;"),
                               .entry = "mix"},
                       host([](Range range, std::span<const Number> x, std::span<Number> z, Number k) {
                         for (const std::uint64_t i : range) z[i] = z[i] * 3 + x[i] + k;
                       })}})
          .value();
  return kernel;
}

/// z[i] = k + i
inline const Kernel<Write<Number>, Number>& count_numbers() {
  static const auto kernel =
      Kernel<Write<Number>, Number>::make(
          {.name = "iota",
           .sources = {Glsl{.text = number_glsl(
                                "layout(set = 0, binding = 0) writeonly buffer Z { uint z[]; };\n",
                                "z[i] = k + i;")},
                       CudaCpp{.text = number_cuda("iota", "wye_span<unsigned> to, unsigned first",
                                                   "if (i < to.size) to[i] = first + i;"),
                               .entry = "iota"},
                       host([](Range range, std::span<Number> z, Number k) {
                         for (const std::uint64_t i : range) z[i] = k + static_cast<Number>(i);
                       })}})
          .value();
  return kernel;
}

}  // namespace wye::test
