// SPIR-V that would crash a driver is refused before it reaches the driver.
#include "backend/vulkan/spirv_check.hpp"

#include <cstring>
#include <random>

#include "backend/vulkan/rig.hpp"

namespace wye::test {
namespace {

using vulkan::check_spirv;
using vulkan::PhysicalDevice;
using vulkan::read_spirv;

/// A device with everything.
PhysicalDevice everything() {
  PhysicalDevice physical;
  physical.info.id = "vulkan:7";
  physical.info.limits.workgroup = {1024, 1024, 64};
  physical.info.limits.workgroup_invocations = 1024;
  physical.info.limits.shared_memory = Bytes{32768};
  physical.spirv_version = 0x00010600;
  physical.subgroup_operations = ~0u;
  physical.enabled.has_atomic_float = true;
  const auto on = [](auto& features,
                     std::initializer_list<VkBool32 std::remove_reference_t<decltype(features)>::*> list) {
    for (const auto member : list) features.*member = VK_TRUE;
  };
  using Core = VkPhysicalDeviceFeatures;
  on(physical.enabled.core.features, {&Core::shaderFloat64, &Core::shaderInt64, &Core::shaderInt16});
  using V12 = VkPhysicalDeviceVulkan12Features;
  on(physical.enabled.v12, {&V12::shaderFloat16, &V12::shaderInt8, &V12::shaderBufferInt64Atomics});
  return physical;
}

/// A kernel with one bound buffer and one number.
Artefact artefact_of(const std::string& glsl, Extent3 workgroup = 64) {
  Artefact artefact;
  artefact.kernel = "k";
  artefact.language = "spirv";
  artefact.schema = {{buffer_slot("x", Access::read_write), scalar_slot("by")}};
  artefact.passing = {{.kind = Passing::Kind::descriptor, .binding = 0, .offset = 0},
                      {.kind = Passing::Kind::bytes, .binding = 0, .offset = 0}};
  artefact.parameter_bytes = 4;
  artefact.workgroup = workgroup;
  artefact.code = compile(glsl);
  return artefact;
}

std::string shader(const std::string& declarations, const std::string& body = "",
                   const std::string& size = "local_size_x = 64") {
  return "#version 450\n#extension GL_EXT_shader_explicit_arithmetic_types : require\n"
         "#extension GL_KHR_shader_subgroup_shuffle : require\nlayout(" +
         size +
         ") in;\nlayout(set = 0, binding = 0) buffer X { uint x[]; };\nlayout(push_constant) uniform P { "
         "uint by; };\n" +
         declarations + "\nvoid main() { x[gl_GlobalInvocationID.x] += by; " + body + " }\n";
}

Result<void> checked(const Artefact& artefact, const PhysicalDevice& physical = everything()) {
  auto module = read_spirv(artefact, physical);
  if (!module) return std::move(module).error();
  return check_spirv(*module, artefact, physical);
}

void refused(const Result<void>& result, Errc code, std::initializer_list<const char*> words) {
  REQUIRE_FALSE(result);
  INFO(result.error().sentence());
  CHECK(result.error() == code);
  for (const char* word : words) {
    INFO(word);
    CHECK(result.error().sentence().find(word) != std::string::npos);
  }
}

std::vector<std::uint32_t> words_of(const Artefact& artefact) {
  std::vector<std::uint32_t> words(artefact.code.size() / 4);
  std::memcpy(words.data(), artefact.code.data(), artefact.code.size());
  return words;
}

void put(Artefact& artefact, const std::vector<std::uint32_t>& words) {
  const auto bytes = std::as_bytes(std::span(words));
  artefact.code.assign(bytes.begin(), bytes.end());
}

TEST_CASE("a kernel that fits passes", "[vulkan]") {
  good(checked(artefact_of(shader(""))));
  good(checked(artefact_of(shader("shared uint s[100];", "s[0] = by;"))));
}

TEST_CASE("bytes that are no SPIR-V are refused with the reason", "[vulkan]") {
  const Artefact fine = artefact_of(shader(""));
  const auto words = words_of(fine);
  Artefact broken = fine;
  const auto with = [&](std::size_t at, std::uint32_t word) {
    auto changed = words;
    changed[at] = word;
    put(broken, changed);
    return checked(broken);
  };
  broken.code.clear();
  refused(checked(broken), Errc::compile_failed,
          {"'k'", "The SPIR-V module (0 words) is shorter than its header"});
  broken.code.assign(fine.code.begin(), fine.code.end() - 1);
  refused(checked(broken), Errc::compile_failed, {"truncated"});
  refused(with(0, 0x03022307), Errc::compile_failed, {"first word (0x03022307)"});
  refused(with(0, 0xdeadbeef), Errc::compile_failed, {"first word (0xdeadbeef)"});
  refused(with(1, 0x00020000), Errc::compile_failed, {"version 2.0", "up to 1.6"});
  refused(with(5, words[5] & 0xffff), Errc::compile_failed,
          {"instruction at word 5", "exceeds the end of the module"});
  refused(with(5, (words[5] & 0xffff) | 0xfff00000), Errc::compile_failed,
          {"instruction at word 5", "exceeds the end of the module"});
}

TEST_CASE("an entry point that is not there, or not a compute shader's, is refused", "[vulkan]") {
  Artefact artefact = artefact_of(shader(""));
  artefact.entry = "begin";
  refused(checked(artefact), Errc::compile_failed, {"'begin'"});
  artefact.entry = "main";
  auto words = words_of(artefact);
  for (std::size_t at = 5; at < words.size(); at += words[at] >> 16)
    if ((words[at] & 0xffff) == static_cast<unsigned>(spirv::Op::OpEntryPoint))
      words[at + 1] = 4;  // Fragment
  put(artefact, words);
  refused(checked(artefact), Errc::compile_failed, {"compute entry point 'main'"});
}

TEST_CASE("set and binding numbers outside the layout are refused", "[vulkan]") {
  refused(checked(artefact_of(shader("layout(set = 0, binding = 5) buffer Y { uint y[]; };", "y[0] = 1;"))),
          Errc::compile_failed, {"set 0, binding 5", "which has no parameter"});
  refused(checked(artefact_of(shader("layout(set = 3, binding = 0) buffer Y { uint y[]; };", "y[0] = 1;"))),
          Errc::compile_failed, {"set 3, binding 0", "only set 0"});
  refused(
      checked(artefact_of(shader("layout(set = 0, binding = 60000) buffer Y { uint y[]; };", "y[0] = 1;"))),
      Errc::compile_failed, {"binding 60000"});
}

TEST_CASE("resources that are not one storage buffer are refused", "[vulkan]") {
  Artefact artefact = artefact_of(shader("layout(set = 0, binding = 1) uniform U { uint u; };", "x[0] = u;"));
  artefact.passing[1] = {.kind = Passing::Kind::descriptor, .binding = 1, .offset = 0};
  refused(checked(artefact), Errc::compile_failed, {"binding 1", "not a storage buffer"});
  artefact.code =
      compile(shader("layout(set = 0, binding = 1) buffer Y { uint y[]; } ys[4];", "x[0] = ys[2].y[0];"));
  refused(checked(artefact), Errc::compile_failed, {"binding 1", "not a storage buffer"});
  artefact.code = compile(shader("layout(set = 0, binding = 1, r32ui) uniform uimage2D image;",
                                 "imageStore(image, ivec2(0), uvec4(1));"));
  refused(checked(artefact), Errc::compile_failed, {"binding 1", "not a storage buffer"});
}

TEST_CASE("a push-constant block longer than the parameters is refused", "[vulkan]") {
  Artefact artefact = artefact_of(shader(""));
  artefact.parameter_bytes = 0;
  refused(checked(artefact), Errc::compile_failed, {"push-constant block", "byte 0", "end at 0"});
}

TEST_CASE("a workgroup over a limit is refused, naming number and limit", "[vulkan]") {
  Artefact artefact =
      artefact_of(shader("", "", "local_size_x_id = 1, local_size_y_id = 2, local_size_z_id = 3"), {1, 1, 1});
  const auto with = [&](Extent3 size) {
    artefact.workgroup = size;
    artefact.specialization = {{1, 4, size.x}, {2, 4, size.y}, {3, 4, size.z}};
    return checked(artefact);
  };
  good(with({16, 8, 8}));
  refused(with({2048, 1, 1}), Errc::unsupported, {"width", "2048", "1024", "'vulkan:7'"});
  refused(with({1, 1025, 1}), Errc::unsupported, {"height", "1025", "1024"});
  refused(with({1, 1, 65}), Errc::unsupported, {"depth", "65", "64"});
  refused(with({64, 32, 1}), Errc::unsupported, {"size", "2048", "1024"});
  refused(with({64, 0, 1}), Errc::unsupported, {"height", "0", "1024"});
}

TEST_CASE("the workgroup that counts is the one after specialization", "[vulkan]") {
  Artefact artefact =
      artefact_of(shader("", "x[0] = gl_WorkGroupSize.x;", "local_size_x_id = 9, local_size_y = 2"), {1, 2});
  good(checked(artefact));
  artefact.specialization = {{.id = 9, .size = 4, .bits = 100}};
  refused(checked(artefact), Errc::compile_failed, {"(1 x 2 x 1)", "(100 x 2 x 1)"});
  artefact.workgroup = {100, 2};
  good(checked(artefact));
  artefact.specialization[0].bits = 600;
  artefact.workgroup = {600, 2};
  refused(checked(artefact), Errc::unsupported, {"1200", "1024"});
}

TEST_CASE("an artefact that declares another workgroup than its code is refused", "[vulkan]") {
  refused(checked(artefact_of(shader(""), 128)), Errc::compile_failed, {"(128 x 1 x 1)", "(64 x 1 x 1)"});
}

TEST_CASE("capabilities that are not switched on are refused", "[vulkan]") {
  const Artefact doubles = artefact_of(shader("", "x[0] = uint(sqrt(double(by)));"));
  good(checked(doubles));
  PhysicalDevice without = everything();
  without.enabled.core.features.shaderFloat64 = VK_FALSE;
  refused(checked(doubles, without), Errc::unsupported, {"capability 10", "'vulkan:7' does not"});

  const Artefact shuffles = artefact_of(shader("", "x[0] = subgroupShuffle(by, 1);"));
  good(checked(shuffles));
  without = everything();
  without.subgroup_operations = VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT;
  refused(checked(shuffles, without), Errc::unsupported, {"capability 65"});

  const Artefact images = artefact_of(shader("layout(set = 0, binding = 1) uniform writeonly image2D image;",
                                             "imageStore(image, ivec2(0), vec4(1));"));
  refused(checked(images), Errc::unsupported, {"capability 56", "wye never"});
}

TEST_CASE("extensions that the device has not enabled are refused", "[vulkan]") {
  const Artefact fine = artefact_of(shader(""));
  const auto declaring = [&](std::string extension) {
    std::vector<std::uint32_t> added(extension.size() / 4 + 1, 0u);
    std::memcpy(added.data(), extension.data(), extension.size());
    added.insert(added.begin(), static_cast<std::uint32_t>(added.size() + 1) << 16 | 10u);
    auto words = words_of(fine);
    std::size_t at = 5;
    while ((words[at] & 0xffff) == 17) at += words[at] >> 16;  // after the capabilities
    words.insert(words.begin() + static_cast<std::ptrdiff_t>(at), added.begin(), added.end());
    Artefact artefact = fine;
    put(artefact, words);
    return artefact;
  };
  good(checked(declaring("SPV_KHR_storage_buffer_storage_class")));
  good(checked(declaring("SPV_KHR_vulkan_memory_model")));
  good(checked(declaring("SPV_EXT_shader_atomic_float_add")));
  good(checked(declaring("SPV_KHR_non_semantic_info")));
  refused(checked(declaring("SPV_NONE_of_this\n")), Errc::unsupported,
          {"'k'", "extension 'SPV_NONE_of_this?'", "wye never offers"});
  refused(checked(declaring("SPV_KHR_ray_query")), Errc::unsupported, {"'SPV_KHR_ray_query'"});
  PhysicalDevice without = everything();
  without.enabled.has_atomic_float = false;
  refused(checked(declaring("SPV_KHR_cooperative_matrix"), without), Errc::unsupported,
          {"'SPV_KHR_cooperative_matrix'", "'vulkan:7' does not"});
  refused(checked(declaring("SPV_EXT_shader_atomic_float_add"), without), Errc::unsupported,
          {"'SPV_EXT_shader_atomic_float_add'", "'vulkan:7' does not"});
  without.spirv_version = 0x00010500;  // of Vulkan 1.2
  refused(checked(declaring("SPV_KHR_non_semantic_info"), without), Errc::unsupported,
          {"'SPV_KHR_non_semantic_info'", "'vulkan:7' does not"});
}

TEST_CASE("shared memory over the limit is refused", "[vulkan]") {
  good(checked(artefact_of(shader("shared uint s[8192];", "s[by] = 1;"))));
  refused(
      checked(artefact_of(shader("struct S { vec4 v; double d[3]; }; shared S s[900];", "s[by].v.x = 1;"))),
      Errc::unsupported, {"36000 bytes", "32768 bytes"});
}

TEST_CASE("no change to a module makes the checks read outside it", "[vulkan]") {
  const Artefact fine = artefact_of(shader("shared uint s[100];", "s[0] = by;", "local_size_x_id = 1"));
  const auto words = words_of(fine);
  std::mt19937_64 random(5);
  int parsed = 0;
  for (int round = 0; round < 5000; ++round) {
    auto changed = words;
    for (std::uint64_t n = 1 + random() % 4; n > 0; --n) {
      std::uint32_t& word = changed[random() % changed.size()];
      switch (random() % 3) {
        case 0: word = static_cast<std::uint32_t>(random()); break;
        case 1: word ^= 1u << random() % 32; break;
        default: word = changed[random() % changed.size()];
      }
    }
    if (random() % 4 == 0) changed.resize(random() % changed.size());
    Artefact broken = fine;
    put(broken, changed);
    if (auto module = read_spirv(broken, everything())) {
      ++parsed;
      (void)check_spirv(*module, broken, everything());
    }
  }
  CHECK(parsed > 100);
}

}  // namespace
}  // namespace wye::test
