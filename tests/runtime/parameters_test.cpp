/// Shader parameters other than storage buffers and 32-bit numbers, on a real Vulkan device,
/// compared with the host.
#include <wye/wye.hpp>

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <vector>

#include "on_vulkan.hpp"
#include "support/catch.hpp"
#include "support/compilers.hpp"

using namespace wye;
using test::in_slang;
using test::lacks;
using test::open_vulkan;
using test::run;

namespace {

/// A kernel whose first parameter is `x`, a buffer of floats.
template <class... P>
Kernel<P...> in_glsl(const std::string& declarations, const std::string& body) {
  auto made = Kernel<P...>::make(
      {.name = "k",
       .sources = {Glsl{
           .text = "#version 450\n" + declarations +
                   "\nlayout(local_size_x = 64) in;\n"
                   "layout(set = 0, binding = 0) buffer X { float x[]; };\n"
                   "void main() {\n  uint i = gl_GlobalInvocationID.x;\n  if (i >= x.length()) return;\n  " +
                   body + "\n}\n"}}});
  if (!made) FAIL(made.error().describe());
  return *made;
}

constexpr char narrow_types[] =
    "#extension GL_EXT_shader_8bit_storage : require\n#extension GL_EXT_shader_16bit_storage : require\n";

}  // namespace

TEST_CASE("numbers of 8 and 16 bits and bools are parameters of a shader", "[runtime]") {
  auto on = open_vulkan();
  if (!on || lacks(*on, Feature::parameters8) || lacks(*on, Feature::parameters16)) return;
  const auto narrow = in_glsl<ReadWrite<float>, std::int8_t, std::uint16_t, bool, half, bool>(
      std::string(narrow_types) +
          "layout(push_constant) uniform P { int8_t a; uint16_t b; bool c; float16_t d; bool e; };",
      "x[i] = float(int(a)) + float(uint(b)) * 1000.0 + (c ? 0.5 : 0.0) + float(d) * 0.125 + (e ? 0.25 : "
      "0.0);");
  for (const bool c : {false, true}) {
    std::vector<float> x(100);
    run(*on, narrow(x, std::int8_t{-7}, std::uint16_t{40'000}, c, half(1.0f), !c));
    CHECK(x ==
          std::vector<float>(100, -7.0f + 40'000'000.0f + (c ? 0.5f : 0.0f) + 0.125f + (c ? 0.0f : 0.25f)));
  }
  if (!test::has_slang()) return;
  const auto slang = in_slang<ReadWrite<float>, std::uint8_t, std::int16_t, bool>(
      R"([shader("compute")] [numthreads(64, 1, 1)]
void k(uint3 id : SV_DispatchThreadID, uniform RWStructuredBuffer<float> x, uniform uint8_t a, uniform int16_t b,
       uniform bool c) {
  uint count, stride;
  x.GetDimensions(count, stride);
  if (id.x < count) x[id.x] = float(a) + float(b) * 1000 + (c ? 0.5f : 0.0f);
})");
  for (const bool c : {false, true}) {
    std::vector<float> x(100);
    run(*on, slang(x, std::uint8_t{200}, std::int16_t{-300}, c));
    CHECK(x == std::vector<float>(100, 200.0f - 300'000.0f + (c ? 0.5f : 0.0f)));
  }
}

TEST_CASE("a uniform buffer is a buffer that a kernel reads", "[runtime]") {
  auto on = open_vulkan();
  if (!on) return;
  struct Settings {
    float scale;
    std::uint32_t first;
    alignas(16) float offset[3];
    std::uint32_t mode;
  };
  const auto structure = in_glsl<ReadWrite<float>, Read<Settings>, float>(
      "layout(set = 0, binding = 1) uniform S { float scale; uint first; vec3 offset; uint mode; };\n"
      "layout(push_constant) uniform P { float more; };",
      "x[i] = x[i] * scale + float(first) + offset.x + offset.y * 2.0 + offset.z * 4.0 + float(mode) + "
      "more;");
  std::vector<float> x(1000);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  const std::vector<Settings> settings = {{2, 3, {1, 2, 3}, 100}};
  run(*on, structure(x, settings, 0.5f));
  bool right = true;
  for (std::size_t i = 0; i < x.size(); ++i) right &= x[i] == static_cast<float>(i) * 2 + 3 + 17 + 100 + 0.5f;
  CHECK(right);

  // More than any device binds as a uniform buffer.
  struct Four {
    float n[4];
  };
  const auto table = in_glsl<ReadWrite<float>, Read<Four>>(
      "layout(set = 0, binding = 1) uniform T { vec4 four[20000]; };", "x[i] = four[i * 19u][i % 4u];");
  std::vector<Four> fours(20'000);
  for (std::size_t i = 0; i < fours.size(); ++i)
    for (std::size_t k = 0; k < 4; ++k) fours[i].n[k] = static_cast<float>(i * 4 + k);
  run(*on, table(x, fours));
  right = true;
  for (std::size_t i = 0; i < x.size(); ++i) right &= x[i] == static_cast<float>(i * 19 * 4 + i % 4);
  CHECK(right);

  // A struct of another layout is refused.
  struct Packed {
    float scale;
    std::uint32_t first;
    float offset[3];
    std::uint32_t mode, more[2];
  };
  const auto other = in_glsl<ReadWrite<float>, Read<Packed>>(
      "layout(set = 0, binding = 1) uniform S { float scale; uint first; vec3 offset; uint mode; };",
      "x[i] *= scale + offset.x;");
  const std::vector<Packed> packed(1);
  const auto refused = on->run(other(x, packed));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().describe().find("float32 at 16, 20, 24") != std::string::npos);
}

TEST_CASE("a struct that a shader lays out otherwise is refused, not read wrongly", "[runtime]") {
  auto on = open_vulkan();
  if (!on) return;
  struct Line {
    float a;
    float b[3];
  };
  const auto wrong = in_glsl<ReadWrite<float>, Line>(
      "struct Line { float a; vec3 b; };\nlayout(push_constant) uniform P { Line line; };",
      "x[i] = line.a + line.b.x;");
  std::vector<float> x(10);
  const auto refused = on->run(wrong(x, Line{1, {2, 3, 4}}));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().describe().find(
            "the declared struct has float32 at 0, 4, 8, 12; the struct of the source "
            "has float32 at 0, 16, 20, 24") != std::string::npos);
  struct Spaced {
    float a;
    alignas(16) float b[3];
  };
  const auto right = in_glsl<ReadWrite<float>, Spaced>(
      "struct Line { float a; vec3 b; };\nlayout(push_constant) uniform P { Line line; };",
      "x[i] = line.a + line.b.x + line.b.y * 10.0 + line.b.z * 100.0;");
  run(*on, right(x, Spaced{1, {2, 3, 4}}));
  CHECK(x == std::vector<float>(10, 433.0f));
}

TEST_CASE("clustered subgroup operations and the Vulkan memory model", "[runtime]") {
  auto on = open_vulkan();
  if (!on) return;
  if (!lacks(*on, Feature::subgroups_clustered)) {
    const auto clusters = in_glsl<ReadWrite<float>>("#extension GL_KHR_shader_subgroup_clustered : require",
                                                    "x[i] = subgroupClusteredAdd(x[i], 4);");
    std::vector<float> x(256);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
    run(*on, clusters(x));
    bool right = true;
    for (std::size_t i = 0; i < x.size(); ++i) right &= x[i] == static_cast<float>(i / 4 * 16 + 6);
    CHECK(right);
  }
  if (!lacks(*on, Feature::memory_model)) {
    const auto model = in_glsl<ReadWrite<float>>(
        "#extension GL_KHR_memory_scope_semantics : require\n#pragma use_vulkan_memory_model",
        "x[i] += 1.0; memoryBarrier(gl_ScopeWorkgroup, gl_StorageSemanticsBuffer, "
        "gl_SemanticsAcquireRelease); memoryBarrier(gl_ScopeDevice, gl_StorageSemanticsBuffer, "
        "gl_SemanticsAcquireRelease);");
    std::vector<float> x(100, 2.0f);
    run(*on, model(x));
    CHECK(x == std::vector<float>(100, 3.0f));
  }
}

TEST_CASE("4194304 items run in workgroups of 64, which are more than a device may take in x", "[runtime]") {
  auto on = open_vulkan();
  if (!on) return;
  const auto count = in_glsl<ReadWrite<float>>("", "x[i] += float(i);");
  for (const std::size_t items : std::initializer_list<std::size_t>{4'194'240, 4'194'304, 8'388'545}) {
    INFO(items << " items");
    std::vector<float> x(items, 1.0f);
    run(*on, count(x));
    bool right = true;
    for (std::size_t i = 0; i < items; ++i) right &= x[i] == static_cast<float>(i) + 1.0f;
    CHECK(right);
  }
}

TEST_CASE("a constant buffer of Slang is a buffer that a kernel reads", "[runtime][slang]") {
  if (!test::has_slang()) return;
  auto on = open_vulkan();
  if (!on || lacks(*on, Feature::scalar_layout)) return;
  struct Settings {
    float scale;
    std::uint32_t first;
    float offset[3];
  };
  const auto shift = in_slang<ReadWrite<float>, Read<Settings>>(R"(
struct Settings { float scale; uint first; float3 offset; };
[shader("compute")] [numthreads(64, 1, 1)]
void shift(uint3 id : SV_DispatchThreadID, uniform RWStructuredBuffer<float> x, uniform ConstantBuffer<Settings> s) {
  uint count, stride;
  x.GetDimensions(count, stride);
  if (id.x < count) x[id.x] = x[id.x] * s.scale + float(s.first) + s.offset.z;
})");
  std::vector<float> x(100, 2.0f);
  const std::vector<Settings> settings = {{2, 3, {1, 2, 3}}};
  run(*on, shift(x, settings));
  CHECK(x == std::vector<float>(100, 10.0f));
}

TEST_CASE("any function of a shader can be an entry point, also a function that main calls", "[runtime]") {
  auto on = open_vulkan();
  if (!on) return;
  const std::string text = R"(#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer X { float x[]; };
void add(float by) { uint i = gl_GlobalInvocationID.x; if (i < x.length()) x[i] += psc(by); }
void add() { add(2.0); }
void main() { add(); add(5.0); })";
  for (const auto& [entry, wanted] : {std::pair("add", 3.0f), std::pair("main", 8.0f)}) {
    const auto kernel = Kernel<ReadWrite<float>>::make(
        {.name = "k", .sources = {Glsl{.text = text, .entry = entry, .macros = {{"psc(x)", "(x)"}}}}});
    if (!kernel) FAIL(kernel.error().describe());
    std::vector<float> x(100, 1.0f);
    run(*on, (*kernel)(x));
    CHECK(x == std::vector<float>(100, wanted));
  }
}
