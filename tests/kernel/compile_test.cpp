#include <wye/kernel/compile.hpp>
#include <wye/kernel/kernel.hpp>

#include "cubin.hpp"
#include "cuda.hpp"
#include "kernel/compilers/glsl.hpp"
#include "shaders.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using namespace wye;

TEST_CASE("a host function or an unknown target cannot be compiled", "[kernel]") {
  const Kernel<float>::Source source = host([](Range, float) {});
  const auto refused = compile(source, {.name = "k"});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().describe() == "unsupported: Kernel 'k' is a host function, which is not compiled.");
  CHECK(compile(SpirV{}, {.target = "ptx"}).error().sentence() ==
        "Target 'ptx' is unknown; valid targets are like 'spirv', 'sm_90' and 'compute_90'.");
  CHECK(compile(Glsl{.text = "x"}, {.name = "k", .target = "sm_90"}).error().sentence() ==
        "The Glsl source of kernel 'k' cannot be compiled for 'sm_90'.");
  CHECK(compile(SpirV{}).error() == Errc::invalid_argument);
  CHECK(compile(Glsl{}).error() == Errc::invalid_argument);
}

TEST_CASE("PTX and cubins have a description of their parameters", "[kernel]") {
  const auto ptx = compile(Ptx{.text = test::scale_ptx}, {.name = "scale"});
  REQUIRE(ptx);
  REQUIRE(ptx->parameters.size() == 2);
  CHECK(ptx->parameters[0].slot == Slot{"", SlotKind::structure, Access::read, ElementType::opaque, 16});
  CHECK(ptx->parameters[1].slot == Slot{"", SlotKind::scalar, Access::read, ElementType::float32, 4});
  CHECK(ptx->parameters[1].offset == 16);
  CHECK(ptx->push_bytes == 20);
  CHECK(ptx->ptx->text == test::scale_ptx);
  const auto cubin = compile(Cubin{.bytes = test::CubinMaker().make()}, {.name = "scale", .target = "sm_80"});
  REQUIRE(cubin);
  CHECK(cubin->parameters.size() == 2);
  CHECK(compile(Cubin{.bytes = test::CubinMaker().make()}, {.name = "scale", .target = "sm_90"})
            .error()
            .sentence() ==
        "The Cubin source of kernel 'scale' is for 'sm_80' and cannot be compiled for 'sm_90'.");
  CHECK(compile(Ptx{.text = test::scale_ptx}, {.name = "gone"}).error() == Errc::invalid_argument);
}

TEST_CASE("CUDA C++ compiles without a device", "[kernel]") {
  if (!test::nvrtc()) return;
  const TemporaryFolder folder;
  folder.put("a.cuh", "#define TIMES 2\n");
  const CudaCpp source{
      .text = std::string("#include \"a.cuh\"\n__device__ int f() { int unused; return TIMES; }\n") +
              test::scale_cu,
      .include_directories = {folder.path()}};
  const auto machine = compile(source, {.name = "scale", .target = "sm_90"});
  if (!machine) FAIL(machine.error().describe());
  REQUIRE(machine->cubin);
  CHECK_FALSE(machine->ptx);
  CHECK(machine->push_bytes == 20);
  CHECK(machine->workgroup == Extent3(256));
  CHECK(machine->files == std::vector<std::string>{folder / "a.cuh"});
  REQUIRE(machine->warnings.size() == 1);
  CHECK(machine->warnings[0].line == 2);
  CHECK(machine->warnings[0].text.find("unused") != std::string::npos);
  // The result is a source, and an equal one.
  const auto kernel = Kernel<ReadWrite<float>, float>::make({.name = "scale", .sources = {*machine->cubin}});
  CHECK(kernel);
  const auto text = compile(source, {.name = "scale"});
  REQUIRE(text);
  REQUIRE(text->ptx);
  CHECK(Kernel<ReadWrite<float>, float>::make({.name = "scale", .sources = {*text->ptx}}));
  CHECK(compile(source, {.name = "scale", .target = "spirv"}).error() == Errc::unsupported);
  CHECK(compile(source, {.name = "scale", .target = "sm_35"}).error() == Errc::unsupported);

  const auto nowhere = compile(source, {.name = "scale", .nvrtc = folder / "libnvrtc.so.1"});
  CHECK(nowhere.error() == Errc::unavailable);

  const auto whole = self_contained(source);
  REQUIRE(whole);
  CHECK(whole->include_directories.empty());
  CHECK(compile(*whole, {.name = "scale", .target = "sm_90"})->cubin->bytes == machine->cubin->bytes);
}

#if WYE_WITH_GLSL

namespace {

std::string expects(const std::string& glsl) {
  auto compiled = compile(Glsl{.text = glsl});
  if (!compiled) return compiled.error().describe();
  ParamSchema schema;
  for (const SourceParameter& p : compiled->parameters) schema.slots.push_back(p.slot);
  // A kernel may declare the description of a shader.
  const auto made = AnyKernel::make("k", schema, {compiled->spirv});
  return made ? to_string(schema) : made.error().describe();
}

}  // namespace

TEST_CASE("a kernel can be made from the description of a compiled source", "[kernel]") {
  const auto held = kernel::GlslCompiler::share();
  CHECK(expects(test::scale_glsl) == "(buffer read_write float32 x, scalar float32 s)");
  CHECK(expects(test::scale_span_glsl) == "(buffer read_write float32 x, scalar float32 s)");
  const std::string begin =
      "#version 450\n#extension GL_EXT_buffer_reference : require\nlayout(local_size_x = 8) in;\n";
  CHECK(
      expects(begin + "layout(set = 0, binding = 3) writeonly buffer A { uint a[]; };\n"
                      "layout(set = 0, binding = 1) buffer B { ivec4 b[]; };\n"
                      "layout(push_constant) uniform P { double d; vec2 v; uint n; };\n"
                      "void main() { a[0] = b[1].x + n + uint(d) + uint(v.x); }") ==
      "(buffer read int32 b, buffer read_write uint32 a, scalar float64 d, structure 8-byte v, scalar uint32 "
      "n)");  // `writeonly` does not tell that each element is written
  CHECK(expects(begin + "struct S { vec2 p; uint n; };\nlayout(set = 0, binding = 0) buffer A { S a[]; };\n"
                        "layout(buffer_reference) buffer R { float r[]; };\n"
                        "layout(push_constant) uniform P { R r; };\nvoid main() { a[0].n = uint(r.r[1]); }")
            .find("(buffer read_write 16-byte a, address read") == 0);
  CHECK(expects(begin + "void main() {}") == "()");
}

TEST_CASE("compiling gives the words, the workgroup, the features and the files", "[kernel]") {
  const TemporaryFolder folder;
  folder.put("a.glsl", "#include \"b.glsl\"\n");
  folder.put("b.glsl", "layout(local_size_x = 8, local_size_y = 4) in;\n");
  const auto compiled =
      compile(Glsl{.text = "#version 450\n#include <a.glsl>\n#include <m>\n#include <a.glsl>\n"
                           "layout(push_constant) uniform P { double d; };\nvoid main() { double e = d; }",
                   .constants = {},
                   .tile = Extent3(64),
                   .includes = {{"m", "\n"}},
                   .include_directories = {folder.path()}});
  if (!compiled) FAIL(compiled.error().describe());
  CHECK(compiled->workgroup == Extent3(8, 4));
  CHECK(compiled->needs == Features{Feature::float64});
  CHECK(compiled->push_bytes == 8);
  CHECK(compiled->files == std::vector<std::string>{folder / "a.glsl", folder / "b.glsl"});
  CHECK(compiled->spirv.tile == Extent3(64));
  const auto again = compile(compiled->spirv);
  REQUIRE(again);
  CHECK(again->spirv.words == compiled->spirv.words);
  CHECK(again->files.empty());
}

TEST_CASE("errors of compiling have their entries as data", "[kernel]") {
  const auto refused =
      compile(Glsl{.text = "#version 450\nvoid main() { foo = 1; }", .file = "a.comp"}, {.name = "k"});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().sentence() ==
        "Kernel 'k' does not compile: a.comp:2:15: 'foo' : undeclared identifier.");
  REQUIRE(refused.error().diagnostics().size() == 1);
  CHECK(refused.error().diagnostics()[0] ==
        Diagnostic{.file = "a.comp", .line = 2, .column = 15, .text = "'foo' : undeclared identifier"});
}

TEST_CASE("a self-contained source needs no files, and is the same source", "[kernel]") {
  const TemporaryFolder folder;
  folder.put("lib/a.glsl", "#include \"b.glsl\"\n#include <c.glsl>\n");
  folder.put("lib/b.glsl", "const uint b = 1;\n");
  const Glsl source{.text = "#version 450\n#include \"lib/a.glsl\"\nvoid main() {}",
                    .include_directories = {folder.path()},
                    .find_include = [](const std::string&) { return "const uint c = 2;\n"; }};
  const auto whole = self_contained(source);
  REQUIRE(whole);
  CHECK(whole->include_directories.empty());
  CHECK_FALSE(whole->find_include);
  CHECK(whole->includes.size() == 3);
  CHECK(compile(*whole)->spirv.words == compile(source)->spirv.words);
}

#endif
