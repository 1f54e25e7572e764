// Parameters beyond the limit of push constants reach the kernel through a buffer.
#include "spirv/rewrite.hpp"

#include <cstring>
#include <numeric>
#include <spirv-tools/libspirv.hpp>

#include "backend/vulkan/rig.hpp"
#include "backend/vulkan/spirv_check.hpp"
#include "backend/vulkan/vulkan_executable.hpp"

namespace wye::test {
namespace {

using vulkan::VulkanExecutable;

/// A struct of 300 bytes by value, a buffer by descriptor or by address, and small numbers.
constexpr std::size_t table_words = 75;
using Table = std::array<Word, table_words>;

std::string source(Twin twin) {
  const bool bound = twin == Twin::descriptors;
  return std::string(
             "#version 450\n#extension GL_EXT_buffer_reference : require\n"
             "#extension GL_EXT_shader_explicit_arithmetic_types : require\n"
             "#extension GL_EXT_shader_16bit_storage : require\n#extension GL_EXT_shader_8bit_storage : "
             "require\n"
             "layout(local_size_x = 64) in;\n") +
         (bound ? "layout(set = 0, binding = 0) buffer X { uint at[]; } x;\n"
                : "layout(buffer_reference, std430, buffer_reference_align = 4) buffer X { uint at[]; };\n") +
         "layout(push_constant, std430) uniform P {\n" + (bound ? "" : "  X x; uvec2 count;\n") +
         "  uint table[75]; uint by; uint16_t half_word; uint8_t small;\n} p;\n"
         "uint entry(uint table[75], uint i) { return table[i % 75]; }\n"
         "void main() {\n  uint i = gl_GlobalInvocationID.x;\n  if (i < " +
         (bound ? "x.at.length()" : "p.count.x") + ") " + (bound ? "x" : "p.x") +
         ".at[i] = entry(p.table, i) * p.by + uint(p.half_word) + uint(p.small);\n}\n";
}

Artefact spilling(Twin twin, bool vulkan_1_0 = false) {
  Artefact artefact;
  artefact.kernel = "spilling";
  artefact.language = "spirv";
  artefact.schema = {{buffer_slot("x", Access::write),
                      {.name = "table",
                       .kind = SlotKind::structure,
                       .access = Access::read,
                       .element = ElementType::opaque,
                       .size = sizeof(Table)},
                      scalar_slot("by"),
                      {.name = "half_word",
                       .kind = SlotKind::scalar,
                       .access = Access::read,
                       .element = ElementType::uint16,
                       .size = 2},
                      {.name = "small",
                       .kind = SlotKind::scalar,
                       .access = Access::read,
                       .element = ElementType::uint8,
                       .size = 1}}};
  std::uint32_t at = 0;
  if (twin == Twin::descriptors) {
    artefact.passing = {{.kind = Passing::Kind::descriptor, .binding = 0, .offset = 0}};
  } else {
    artefact.passing = {{.kind = Passing::Kind::span, .binding = 0, .offset = 0}};
    at = 16;
  }
  for (const std::uint32_t offset : {at, at + 300, at + 304, at + 306})
    artefact.passing.push_back({.kind = Passing::Kind::bytes, .binding = 0, .offset = offset});
  artefact.parameter_bytes = at + 307;
  artefact.workgroup = artefact.tile = 64;
  artefact.code = compile(source(twin), vulkan_1_0);
  return artefact;
}

Table some_table(std::uint64_t seed) {
  Table table;
  const auto words = random_words(seed, table.size());
  std::copy(words.begin(), words.end(), table.begin());
  return table;
}

Arguments arguments(const std::shared_ptr<BufferBase>& x, const Table& table, Word by) {
  Arguments list;
  list.push_back(argument(x));
  list.push_back(Operand::of_value(table));
  list.push_back(Operand::of_value(by));
  list.push_back(Operand::of_value(std::uint16_t{40000}));
  list.push_back(Operand::of_value(std::uint8_t{200}));
  return list;
}

std::vector<Word> expected(const Table& table, Word by, std::size_t count) {
  std::vector<Word> words(count);
  for (std::size_t i = 0; i < count; ++i) words[i] = table[i % table_words] * by + 40200;
  return words;
}

TEST_CASE("a spilled module is valid SPIR-V and has no push constants left", "[vulkan]") {
  spvtools::SpirvTools tools(SPV_ENV_VULKAN_1_2);
  std::string complaint;
  tools.SetMessageConsumer([&](spv_message_level_t, const char*, const spv_position_t&, const char* message) {
    complaint += message;
  });
  for (const bool vulkan_1_0 : {false, true}) {
    const Artefact artefact = spilling(Twin::descriptors, vulkan_1_0);
    vulkan::PhysicalDevice physical;
    physical.spirv_version = 0x00010600;
    const auto module = good(vulkan::read_spirv(artefact, physical));
    CHECK((module.version < 0x00010300) == vulkan_1_0);
    const auto words = spirv::spill_push_constants(module, 1);
    CHECK(tools.Validate(words.data(), words.size()));
    CHECK(complaint == "");
    const auto again = good(spirv::Module::parse(words));
    for (const spirv::Variable& variable : again.variables)
      CHECK(variable.storage != spirv::StorageClass::PushConstant);
    for (const auto& [id, type] : again.types) CHECK(type.storage != spirv::StorageClass::PushConstant);
    for (const spv::Capability capability : again.capabilities)
      CHECK(capability != spv::Capability::StoragePushConstant16);
  }
}

TEST_CASE("parameters over the limit of push constants spill, and every dispatch sees its own", "[vulkan]") {
  Rig rig;
  REQUIRE(rig.device().info().limits.parameter_bytes < Bytes{307});
  for (const Twin twin : {Twin::descriptors, Twin::addresses}) {
    const auto kernel = rig.executable(spilling(twin));
    const auto& made = static_cast<const VulkanExecutable&>(*kernel);
    CHECK(made.spilled() == (twin == Twin::descriptors ? 1u : 0u));
    std::vector<std::shared_ptr<BufferBase>> buffers;
    auto lane = rig.lane();
    for (Word i = 0; i < 400; ++i) {  // more than one piece of staging memory holds
      buffers.push_back(rig.buffer(200 * sizeof(Word)));
      lane->dispatch(kernel, arguments(buffers.back(), some_table(i), i + 3), 200);
    }
    settle(*lane);
    for (Word i = 0; i < 400; i += 57)
      CHECK(difference(rig.read(buffers[i]), expected(some_table(i), i + 3, 200)) == "");
  }
}

TEST_CASE("a module for Vulkan 1.0 spills too", "[vulkan]") {
  Rig rig;
  const auto kernel = rig.executable(spilling(Twin::descriptors, true));
  const auto x = rig.buffer(100 * sizeof(Word));
  auto lane = rig.lane();
  lane->dispatch(kernel, arguments(x, some_table(1), 9), 100);
  settle(*lane);
  CHECK(difference(rig.read(x), expected(some_table(1), 9, 100)) == "");
}

TEST_CASE("parameters within the limit do not spill, unless a smaller limit is set", "[vulkan]") {
  {
    Rig rig;
    const auto kernel = rig.kernel("mix");
    CHECK_FALSE(static_cast<const VulkanExecutable&>(*kernel).spilled());
  }
  Rig rig({.parameter_bytes = Bytes{16}});
  const auto kernel = rig.kernel("mix");
  CHECK(static_cast<const VulkanExecutable&>(*kernel).spilled() == 0u);
  const auto from = rig.buffer(random_words(1, 1000)), to = rig.buffer(random_words(2, 1000));
  auto lane = rig.lane();
  lane->dispatch(kernel, arguments_of(argument(from), argument(to), Word{5}), 1000);
  settle(*lane);
  auto model = random_words(2, 1000);
  const auto source_words = random_words(1, 1000);
  for (std::size_t i = 0; i < model.size(); ++i) model[i] = model[i] * 3 + source_words[i] + 5;
  CHECK(difference(rig.read(to), model) == "");
}

}  // namespace
}  // namespace wye::test
