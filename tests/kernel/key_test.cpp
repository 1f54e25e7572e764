#include "kernel/key.hpp"
#include "base/internals.hpp"

#include <wye/kernel/kernel.hpp>

#include <set>
#include <vector>

#include "kernel/program.hpp"
#include "support/catch.hpp"
#include "support/compilers.hpp"
#include "support/double_device.hpp"
#include "support/temporary_folder.hpp"

using namespace wye;
using kernel::Ingredients;
using kernel::shader_key;

namespace {

const ParamSchema schema{{Slot{"x", SlotKind::buffer, Access::read_write, ElementType::float32, 4},
                          Slot{"s", SlotKind::scalar, Access::read, ElementType::float32, 4}}};
const std::vector<Macro> macros{{"A", "1"}, {"B", ""}};
const std::vector<device::Specialization> two_constants{{0, 4, 16}, {7, 8, 0x4000000000000000}};

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

Ingredients plain() {
  return {.kernel = "scale",
          .language = "Glsl",
          .source = bytes("void main() {}"),
          .entry = "main",
          .compiler = "a compiler 1.0",
          .macros = macros,
          .constants = two_constants,
          .tile = std::nullopt,
          .schema = &schema};
}

Digest device_key(const Glsl& source) {
  const auto kernel = Kernel<ReadWrite<float>>::make({.name = "k", .sources = {source}});
  test::DoubleDevice gpu("vulkan:0", {"spirv"});
  return base::program_of(*kernel)->key(gpu).value();
}

}  // namespace

TEST_CASE("keys are the same on every machine", "[kernel]") {
  CHECK(shader_key(plain()).hex() == "81ab0a0597a9b4f7728c55f8fede66194471bca610379c51b3d53732bdfe7e2c");
  Ingredients bare = plain();
  bare.language = "SpirV";
  bare.compiler = {};
  bare.macros = {};
  bare.constants = {};
  bare.tile = Extent3(0, 16);
  CHECK(shader_key(bare).hex() == "73b638f2bb4c5b04a421205e015eb5cf1c3c76fdc369c33cea65fdb0aeea7687");
  Ingredients including = plain();
  const auto texts = kernel::read_includes(
      {.text = "#include \"a\"\n#include \"gone\"", .includes = {{"a", "#include \"b\""}, {"b", "content"}}},
      "x");
  including.texts = texts;
  CHECK(shader_key(including).hex() == "119939c828a6067347488abc6be22b702dc502821db683412398eab5b1fc0989");
}

TEST_CASE("a key changes with every ingredient", "[kernel]") {
  std::vector<Digest> keys{shader_key(plain())};
  const auto with = [&](auto change) {
    Ingredients in = plain();
    change(in);
    keys.push_back(shader_key(in));
  };
  with([](Ingredients& in) { in.kernel = "scale2"; });
  with([](Ingredients& in) { in.language = "SpirV"; });
  with([](Ingredients& in) { in.source = bytes("void main() { }"); });
  with([](Ingredients& in) { in.entry = "main2"; });
  with([](Ingredients& in) { in.compiler = "a compiler 1.1"; });
  const std::vector<std::vector<Macro>> other_macros{
      {}, {{"A", "1"}}, {{"A", "2"}, {"B", ""}}, {{"A", ""}, {"B", "1"}}, {{"A", "1"}, {"B", ""}, {"C", ""}}};
  for (const auto& other : other_macros) with([&](Ingredients& in) { in.macros = other; });
  const std::vector<std::vector<device::Specialization>> other_constants{
      {},
      {{0, 4, 16}},
      {{0, 4, 17}, {7, 8, 0x4000000000000000}},
      {{1, 4, 16}, {7, 8, 0x4000000000000000}},
      {{0, 8, 16}, {7, 8, 0x4000000000000000}}};
  for (const auto& other : other_constants) with([&](Ingredients& in) { in.constants = other; });
  for (const Extent3 tile : {Extent3(1), Extent3(0), Extent3(1, 2), Extent3(1, 1, 2)})
    with([&](Ingredients& in) { in.tile = tile; });
  std::vector<ParamSchema> schemas(12, schema);
  schemas[0].slots.pop_back();
  schemas[1].slots[0].name = "y";
  schemas[2].slots[0].kind = SlotKind::address;
  schemas[3].slots[0].access = Access::read;
  schemas[4].slots[0].element = ElementType::int32;
  schemas[5].slots[0].size = 8;
  std::swap(schemas[6].slots[0], schemas[6].slots[1]);
  schemas[7].slots.push_back(schema.slots[1]);
  const auto with_members = [&](std::size_t n, std::vector<SlotMember> members) {
    schemas[n].slots[1] = {"s", SlotKind::structure, Access::read, ElementType::opaque,
                           16,  std::move(members)};
  };
  with_members(8, {{ElementType::float32, 0, 4}, {ElementType::float32, 4, 4}});
  with_members(9, {{ElementType::float32, 0, 4}, {ElementType::float32, 8, 4}});
  with_members(10, {{ElementType::float32, 0, 4}, {ElementType::int32, 4, 4}});
  with_members(11, {{ElementType::float32, 0, 4}});
  for (const auto& other : schemas) with([&](Ingredients& in) { in.schema = &other; });
  // The end of one field is not the beginning of the next.
  with([](Ingredients& in) { in.kernel = "scaleG", in.language = "lsl"; });
  CHECK(std::set<Digest>(keys.begin(), keys.end()).size() == keys.size());
}

TEST_CASE("a key does not change with the order of macros and constants", "[kernel]") {
  const std::vector<Macro> turned_macros{macros[1], macros[0]};
  const std::vector<device::Specialization> turned_constants{two_constants[1], two_constants[0]};
  Ingredients in = plain();
  in.macros = turned_macros;
  in.constants = turned_constants;
  CHECK(shader_key(in) == shader_key(plain()));
}

TEST_CASE("the shown file name is not part of a kernel's key, everything else of its source is", "[kernel]") {
  if (!test::has_glsl()) return;
  const Glsl plain{.text = "void main() {}"};
  CHECK(device_key(plain) == device_key({.text = plain.text, .file = "/home/me/x.comp"}));
  CHECK(device_key(plain) ==
        device_key({.text = plain.text, .entry = "main", .constants = {}, .macros = {}}));
  CHECK(device_key(plain) != device_key({.text = plain.text + " "}));
  CHECK(device_key(plain) != device_key({.text = plain.text, .entry = "go"}));
  CHECK(device_key(plain) != device_key({.text = plain.text, .constants = {{0, 1u}}}));
  CHECK(device_key({.text = plain.text, .constants = {{0, 1u}}}) !=
        device_key({.text = plain.text, .constants = {{0, 1.0f}}}));
  CHECK(device_key(plain) != device_key({.text = plain.text, .macros = {{"N", "1"}}}));
  CHECK(device_key(plain) != device_key({.text = plain.text, .tile = Extent3(64)}));
}

TEST_CASE("a shader has one key on all devices, a host function has a different key in each kernel",
          "[kernel]") {
  const auto idle = host([](Range, std::span<float>) {});
  const auto one = Kernel<ReadWrite<float>>::make({.name = "k", .sources = {Glsl{.text = "x"}, idle}});
  const auto two = Kernel<ReadWrite<float>>::make({.name = "k", .sources = {Glsl{.text = "x"}, idle}});
  test::DoubleDevice cpu("cpu:0", {"host"}), gpu("vulkan:0", {"spirv"}), other("vulkan:1", {"spirv"});
  CHECK(base::program_of(*one)->key(cpu).value() != base::program_of(*two)->key(cpu).value());
  CHECK(base::program_of(*one)->key(cpu).value() == base::program_of(*one)->key(cpu).value());
  if (!test::has_glsl()) return;
  CHECK(base::program_of(*one)->key(gpu).value() == base::program_of(*two)->key(other).value());
  CHECK(base::program_of(*one)->key(gpu).value() != base::program_of(*one)->key(cpu).value());
}

TEST_CASE("keys of CUDA C++ are the same on every machine", "[kernel]") {
  Ingredients in = plain();
  in.language = "CudaCpp";
  in.compiler = {};
  in.constants = {};
  in.options = "workgroup unset, dynamic shared 0, registers 0, exact";
  const Digest source = shader_key(in);
  CHECK(source.hex() == "99dd3476e34c71d3f040aee8e5d81ddad605974c574e6df085ba3475f0667f89");
  const auto target = kernel::target_key(source, "NVRTC 13.0.88", "sm_90");
  CHECK(target.hex() == "9ef9533c34ea14025eb26b443d158d6619d0b46898b94dba3fb788184bf6f9cf");
  CHECK(target != kernel::target_key(source, "NVRTC 13.0.96", "sm_90"));
  CHECK(target != kernel::target_key(source, "NVRTC 13.0.88", "sm_80"));
  in.options = "workgroup 64 x 1 x 1, dynamic shared 0, registers 0, exact";
  CHECK(source != shader_key(in));
}

TEST_CASE("keys of Slang are the same on every machine", "[kernel][slang]") {
  const auto source_in = [](const TemporaryFolder& folder) {
    folder.put("more.slang", "import b.deep;");
    return Slang{.text = "import a;\nimport more;\nimport gone;\n",
                 .entry = "scale",
                 .constants = {{"width", 16u}, {"bias", -1.5f}},
                 .macros = macros,
                 .tile = Extent3(0, 16),
                 .includes = {{"a.slang", "module a;"}, {"b/deep.slang", "module deep;"}},
                 .include_directories = {folder.path().string()}};
  };
  const TemporaryFolder here;
  const Slang source = source_in(here);
  const auto texts = kernel::read_imports(source, "/home/me/scale.slang");
  Ingredients in = plain();
  in.language = "Slang";
  in.source = bytes(source.text);
  in.entry = source.entry;
  in.compiler = {};
  in.constants = {};
  in.tile = source.tile;
  in.texts = texts;
  in.link_constants = source.constants;
  in.named_texts = true;
  const Digest key = shader_key(in);
  CHECK(key.hex() == "22d753a496d77dcd174474c25a6ccb00b6b167d1a5a8d2bb317a2d6e37bf7377");
  const char* const release = "Slang 2026.12, C layout, row-major, SPIR-V, spirv-opt";
  CHECK(kernel::target_key(key, release, "spirv").hex() ==
        "39eaba7ff468f5e459b24d6034c58c05b831560e78d375589ece6c9e53bce17c");

  // The key in a kernel.
  if (!test::has_slang()) return;
  const TemporaryFolder there;
  test::DoubleDevice gpu("vulkan:0", {"spirv"});
  const auto build = kernel::SlangCompiler::share()->build_id(kernel::SlangCompiler::Target::spirv).value();
  for (const TemporaryFolder* folder : {&here, &there}) {
    const auto made = AnyKernel::make("scale", schema, {source_in(*folder)}).value();
    CHECK(base::program_of(made)->key(gpu).value() == kernel::target_key(key, build, "spirv"));
  }
}

TEST_CASE("the compiler's build has a name, if there is a compiler", "[kernel]") {
  CHECK(kernel::GlslCompiler::build_id().empty() == (kernel::GlslCompiler::share() == nullptr));
}
