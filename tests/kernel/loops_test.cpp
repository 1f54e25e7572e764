#include "spirv/loops.hpp"

#include <wye/kernel/compile.hpp>

#include <cstdint>
#include <optional>
#include <string>

#include "support/catch.hpp"
#include "support/compilers.hpp"

using namespace wye;

#if WYE_WITH_GLSL

namespace {

std::optional<std::uint64_t> iterations(const std::string& body, const std::string& functions = {}) {
  const auto compiled =
      compile(Glsl{.text = "#version 450\nlayout(local_size_x = 64) in;\n"
                           "layout(set = 0, binding = 0) buffer Z { uint z[]; };\n"
                           "layout(push_constant) uniform P { uint n; };\n"
                           "layout(constant_id = 0) const uint sixteen = 16;\nshared uint part[64];\n" +
                           functions + "void main() { uint sum = 0;\n" + body + "\nz[0] = sum; }"});
  if (!compiled) FAIL(compiled.error().describe());
  const auto module = spirv::Module::parse(compiled->spirv.words);
  REQUIRE(module);
  return spirv::most_iterations(*module, module->compute_entry("main")->function);
}

}  // namespace

TEST_CASE("the iterations of loops with constant bounds are known", "[kernel][spirv]") {
  const auto held = kernel::GlslCompiler::share();
  CHECK(iterations("") == 0);
  CHECK(iterations("for (uint i = 0; i < 10; ++i) sum += z[i];") == 10);
  CHECK(iterations("for (int i = 10; i > 0; --i) sum += z[i];") == 10);
  CHECK(iterations("for (int i = 10; i >= 0; i -= 3) sum += z[i];") == 4);
  CHECK(iterations("for (int i = 0; i <= 10; i += 3) sum += z[i];") == 4);
  CHECK(iterations("for (int i = -5; i < 5; ++i) sum += z[i + 5];") == 10);
  CHECK(iterations("for (uint i = 0; i != 10; ++i) sum += z[i];") == 10);
  CHECK(iterations("for (uint i = 0; 10 > i; ++i) sum += z[i];") == 10);
  CHECK(iterations("for (uint i = 20; i < 10; ++i) sum += z[i];") == 0);
  CHECK(iterations("uint i = 3; while (i < 10) { sum += z[i]; i += 2; }") == 4);
  CHECK(iterations("for (uint i = 0; i < sixteen; ++i) sum += z[i];") == 16);
  CHECK(iterations(
            "for (uint i = 0; i < 10; ++i) { if (z[i] == 3) continue; if (z[i] == 4) break; ++sum; }") == 10);
  CHECK(iterations("for (uint i = 0; i < 300; ++i) for (uint j = 0; j < 300; ++j) sum += z[i * j];") ==
        300 + 300 * 300);
  CHECK(iterations("for (uint i = 0; i < 3; ++i) sum += z[i]; for (uint i = 0; i < 4; ++i) sum ^= z[i];") ==
        7);
  CHECK(
      iterations("for (uint i = 0; i < 3; ++i) sum += f(i);",
                 "uint f(uint k) { uint s = 0; for (uint i = 0; i < 5; ++i) s += z[i * k]; return s; }\n") ==
      3 + 3 * 5);
}

TEST_CASE("loops that halve or double a counter have few iterations", "[kernel][spirv]") {
  const auto held = kernel::GlslCompiler::share();
  for (const char* const loop :
       {"for (uint i = 32; i > 0; i /= 2) sum += z[i];", "for (uint i = n; i != 0; i >>= 1) sum += z[i];",
        "for (uint i = gl_WorkGroupSize.x / 2; i > 0; i >>= 1) { barrier(); part[i] += part[i + 1]; }",
        "for (uint i = 1; i < 4096; i *= 2) sum += z[i];",
        "for (uint i = 1; i < 4096; i <<= 2) sum += z[i];"}) {
    INFO(loop);
    const auto found = iterations(loop);
    REQUIRE(found);
    CHECK(*found >= 6);
    CHECK(*found <= 65);
  }
}

TEST_CASE("loops without a constant bound have an unknown number of iterations", "[kernel][spirv]") {
  const auto held = kernel::GlslCompiler::share();
  for (const char* const loop :
       {"for (uint i = 0; i < n; ++i) sum += z[i];", "for (uint i = 0; i < z.length(); ++i) sum += z[i];",
        "for (uint i = n; i < 10; ++i) sum += z[i];", "for (uint i = 0; i < 10; i += n) sum += z[i];",
        "for (uint i = 0; i < 10; ++i) { sum += z[i]; if (z[i] == 7) i = 0; }",
        "for (uint i = 0; i < 10;) { sum += z[i]; if (z[i] == 7) ++i; }",
        "for (uint i = 0; i < 10; --i) sum += z[i];", "for (uint i = 10; i >= 0; --i) sum += z[i];",
        "for (uint i = 1; i < 4000000000u; i *= 2) sum += z[i];",
        "for (uint i = 0; i != 10; i += 3) sum += z[i];", "for (uint i = 10; i >= 2; i -= 3) sum += z[i];",
        "while (z[sum] != 0) ++sum;", "uint i = 0; do { sum += z[i]; ++i; } while (i < n);",
        "for (uint i = 0; i < 10; ++i) for (uint j = 0; j < n; ++j) sum += z[i * j];",
        "for (uint i = 0; i < 10; ++i) { sum += z[i]; change(i); }",
        "for (uint i = 0; i < 3; ++i) sum += g(i);"}) {
    INFO(loop);
    CHECK(iterations(
              loop,
              "void change(inout uint i) { if (z[i] == 1) i = 0; }\n"
              "uint g(uint k) { uint s = 0; for (uint i = 0; i < n; ++i) s += z[i * k]; return s; }\n") ==
          std::nullopt);
  }
}

#endif
