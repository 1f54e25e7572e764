#include "kernel/compilers/slang.hpp"
#include "base/internals.hpp"

#include <unistd.h>
#include <wye/kernel/compile.hpp>
#include <wye/kernel/kernel.hpp>

#include <cstdio>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "cuda.hpp"
#include "device/provider.hpp"
#include "kernel/compilers/glsl.hpp"
#include "support/catch.hpp"
#include "support/compilers.hpp"
#include "support/double_device.hpp"
#include "support/temporary_folder.hpp"

using namespace wye;
using kernel::SlangCompiler;
using test::has_slang;

namespace {

const std::string scale_slang = R"([shader("compute")] [numthreads(256, 1, 1)]
void scale(uint3 id : SV_DispatchThreadID, uniform RWStructuredBuffer<float> x, uniform float s) {
  uint count, stride;
  x.GetDimensions(count, stride);
  if (id.x < count) x[id.x] *= s;
}
)";

const std::string entry_marks = "[shader(\"compute\")] [numthreads(64, 1, 1)]\n";

/// A kernel over `x` that stores `value`.
std::string slang_taking(const std::string& parameter, const std::string& value,
                         const std::string& before = {}) {
  return before + entry_marks + "void k(uint3 id : SV_DispatchThreadID, " + parameter +
         ", uniform RWStructuredBuffer<float> x) { x[id.x] = " + value + "; }\n";
}
std::string slang_storing(const std::string& value, const std::string& before = {}) {
  return before + entry_marks +
         "void k(uint3 id : SV_DispatchThreadID, uniform RWStructuredBuffer<float> x) { x[id.x] = " + value +
         "; }\n";
}

Compiled slang_made(const Slang& source) {
  auto compiled = compile(source, {.name = "k"});
  if (!compiled) FAIL(compiled.error().describe());
  return std::move(*compiled);
}

Error slang_error(const Slang& source) {
  auto compiled = compile(source, {.name = "k"});
  REQUIRE_FALSE(compiled);
  return compiled.error();
}

std::string slang_expects(const Compiled& compiled) {
  ParamSchema expected;
  for (const SourceParameter& p : compiled.parameters) expected.slots.push_back(p.slot);
  // A kernel may declare the description of a shader.
  const auto made = AnyKernel::make("k", expected, {compiled.spirv});
  return made ? to_string(expected) : made.error().describe();
}

CudaCpp slang_cuda(const Slang& source) {
  auto text = SlangCompiler::share()->cuda(source, kernel::read_imports(source, "k.slang"), "k");
  if (!text) FAIL(text.error().describe());
  return *text;
}

Digest slang_key(const Slang& source) {
  const auto made = Kernel<ReadWrite<float>>::make({.name = "k", .sources = {source}});
  REQUIRE(made);
  test::DoubleDevice gpu("vulkan:0", {"spirv"});
  return base::program_of(*made)->key(gpu).value();
}

}  // namespace

TEST_CASE("Slang becomes SPIR-V with the parameters of its entry point", "[kernel][slang]") {
  if (!has_slang()) return;
  const Compiled scale = slang_made({.text = scale_slang});
  CHECK(slang_expects(scale) == "(buffer read_write float32 x, scalar float32 s)");
  CHECK(scale.workgroup == Extent3(256));
  CHECK(scale.push_bytes == 4);
  CHECK(scale.needs.empty());
  CHECK(scale.warnings.empty());
  CHECK(scale.spirv.words[1] == 0x00010500);
  CHECK(slang_made({.text = scale_slang, .file = "/some/where/else.slang"}).spirv.words == scale.spirv.words);
  CHECK(slang_expects(slang_made(
            {.text = entry_marks +
                     "void k(uint3 id : SV_DispatchThreadID, uniform StructuredBuffer<int> a, uniform "
                     "uint n, uniform RWStructuredBuffer<float4> b, uniform double d) { b[id.x] = "
                     "float4(float(a[n]), 1, 2, float(d)); }"})) ==
        "(buffer read int32 a, buffer read_write float32 b, scalar uint32 n, scalar float64 d)");
  CHECK(slang_expects(slang_made(
            {.text = entry_marks +
                     "void k(uint3 id : SV_DispatchThreadID, uniform float* x, uniform "
                     "Ptr<float, Access.Read> y, uniform uint n) { if (id.x < n) x[id.x] = y[id.x]; }"})) ==
        "(buffer read_write float32 x, buffer read float32 y, scalar uint32 n)");
}

TEST_CASE("Slang's parameters are matched with the declaration of the kernel", "[kernel][slang]") {
  if (!has_slang()) return;
  test::DoubleDevice gpu("vulkan:0", {"spirv"});
  const auto build = [&](const auto& made) { return base::program_of(*made)->build(gpu); };
  const auto fits =
      build(Kernel<ReadWrite<float>, float>::make({.name = "scale", .sources = {Slang{scale_slang}}}));
  if (!fits) FAIL(fits.error().describe());
  CHECK(fits->schema.slots[1].name == "s");
  CHECK(fits->tile == Extent3(256));
  CHECK(fits->entry == "main");
  const auto wrong =
      build(Kernel<ReadWrite<float>, int>::make({.name = "scale", .sources = {Slang{scale_slang}}}));
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().sentence() ==
        "Parameter 2 's' of kernel 'scale' is declared as int32, but push constant 's' "
        "(offset 0) of its source is float32.");
  CHECK(wrong.error().context()[0] == "in the Slang source of kernel 'scale'");
  const auto more = build(Kernel<ReadWrite<float>>::make({.name = "scale", .sources = {Slang{scale_slang}}}));
  CHECK(more.error() == Errc::invalid_argument);
}

TEST_CASE("structs have the layout of C; a device needs scalar layout if GLSL would not allow it",
          "[kernel][slang]") {
  if (!has_slang()) return;
  const std::string q = "struct Q { uint a; float2 b; uint c; float3 d; };\n";
  const Compiled odd = slang_made({.text = slang_taking("uniform StructuredBuffer<Q> q", "q[0].b.x", q)});
  REQUIRE(odd.parameters.size() == 2);
  CHECK(odd.parameters[0].slot.size == 28);
  CHECK(odd.needs == Features{Feature::scalar_layout});
  const std::string p = "struct P { float3 at; float mass; };\n";
  const Compiled even = slang_made({.text = slang_taking("uniform StructuredBuffer<P> p", "p[0].mass", p)});
  CHECK(even.parameters[0].slot.size == 16);
  CHECK(even.needs.empty());
}

TEST_CASE("errors of Slang name file, line and column", "[kernel][slang]") {
  if (!has_slang()) return;
  const Error error = slang_error(
      {.text = entry_marks + "void k(uniform RWStructuredBuffer<float> x) {\n  x[0] = foo;\n  bar(3);\n}",
       .file = "dir/a.slang"});
  CHECK(error.describe() ==
        "compile_failed: Kernel 'k' does not compile: dir/a.slang:3:10: undefined identifier 'foo'.\n"
        "  dir/a.slang:4:3: undefined identifier 'bar' (did you mean 'var'?)");
  REQUIRE(error.diagnostics().size() == 2);
  CHECK(error.diagnostics()[0] ==
        Diagnostic{.file = "dir/a.slang", .line = 3, .column = 10, .text = "undefined identifier 'foo'"});
  CHECK(slang_error({.text = "void k( {"}).sentence().find("k.slang:1:") != std::string::npos);
  // In an imported module, the file is that of the module.
  const Error inside = slang_error({.text = "import m;\n" + slang_storing("f()"),
                                    .includes = {{"m.slang", "public float f() { return g; }"}}});
  REQUIRE_FALSE(inside.diagnostics().empty());
  CHECK(inside.diagnostics()[0].file == "m.slang");
  CHECK(inside.diagnostics()[0].line == 1);
  CHECK(inside.diagnostics()[0].column == 27);
}

TEST_CASE("warnings of Slang are reported, and buffers beside numbers cause no warning", "[kernel][slang]") {
  if (!has_slang()) return;
  const Compiled made = slang_made(
      {.text = slang_storing("float(1u / 2)", "float f(int a) { bool b = a; return b ? 1 : 2; }\n")});
  REQUIRE(made.warnings.size() == 1);
  CHECK(made.warnings[0].severity == Diagnostic::Severity::warning);
  CHECK(made.warnings[0].line == 1);
  CHECK(made.warnings[0].text.find("implicit conversion") == 0);
}

TEST_CASE("a missing import or include is reported with the searched places", "[kernel][slang]") {
  if (!has_slang()) return;
  const Error import = slang_error({.text = "\nimport gone;\n" + slang_storing("1"),
                                    .includes = {{"here.slang", ""}},
                                    .include_directories = {"/nowhere"},
                                    .find_include = [](const std::string&) { return std::nullopt; }});
  CHECK(import.sentence() ==
        "Kernel 'k' does not compile: k.slang:2:8: 'gone.slang' cannot be included: it does not exist "
        "(searched its includes, '/nowhere', its find_include).");
  const Error include = slang_error({.text = "#include \"gone.h\"\n" + slang_storing("1")});
  CHECK(include.sentence() ==
        "Kernel 'k' does not compile: k.slang:1:10: 'gone.h' cannot be included: the source names "
        "no place to search.");
}

TEST_CASE("imports and includes are found as those of GLSL are", "[kernel][slang]") {
  if (!has_slang()) return;
  const TemporaryFolder folder;
  folder.put("lib/a.slang", "__exported import b;\n#include \"c.h\"\npublic float a() { return b() + C; }\n");
  folder.put("lib/b.slang",
             "module b;\n__include \"../more/b_part\";\npublic float b() { return part(); }\n");
  folder.put("more/b-part.slang", "implementing b;\nfloat part() { return 5; }\n");
  folder.put("lib/c.h", "#pragma once\n#include <host.h>\n");
  const Slang source{
      .text = "import lib.a;\nimport in_memory;\nimport \"more/by_file.slang\";\n" +
              slang_storing("a() + m() + f() + HOST"),
      .includes = {{"in_memory.slang", "public float m() { return 7; }"}},
      .include_directories = {"/nowhere", folder.path()},
      .find_include = [](const std::string& name) -> Result<std::optional<std::string>> {
        if (name == "host.h") return std::string("#define C 3\n");
        if (name == "more/by_file.slang")
          return std::string("#define HOST 1\npublic float f() { return 2; }");
        return std::optional<std::string>();
      },
  };
  // A module's macros stay its own.
  CHECK(slang_error(source).sentence().find("undefined identifier 'HOST'") != std::string::npos);
  Slang right = source;
  right.macros = {{"HOST", "11"}};
  const Compiled made = slang_made(right);
  CHECK(made.files.size() == 4);
  const auto whole = self_contained(right);
  REQUIRE(whole);
  CHECK(whole->include_directories.empty());
  CHECK(slang_made(*whole).spirv.words == made.spirv.words);
}

TEST_CASE("modules of one name in two sources stay apart", "[kernel][slang]") {
  if (!has_slang()) return;
  const auto importing = [](const char* value) {
    return Slang{.text = "import m;\n" + slang_storing("m()"),
                 .file = "same.slang",
                 .includes = {{"m.slang", std::string("public float m() { return ") + value + "; }"}}};
  };
  const auto one = slang_made(importing("1")).spirv.words, two = slang_made(importing("2")).spirv.words;
  CHECK(one != two);
  CHECK(slang_made(importing("1")).spirv.words == one);
  CHECK(slang_made({.text = slang_storing("1"), .file = "same.slang"}).spirv.words !=
        slang_made({.text = slang_storing("2"), .file = "same.slang"}).spirv.words);
}

TEST_CASE("link-time constants reach loops and the workgroup", "[kernel][slang]") {
  if (!has_slang()) return;
  const std::string text =
      "extern static const uint tile;\nextern static const float f = 1;\nextern static const bool twice;\n"
      "[shader(\"compute\")] [numthreads(tile, 2, 1)] void k(uint3 id : SV_DispatchThreadID, uniform "
      "RWStructuredBuffer<float> x) { for (uint i = 0; i < tile; ++i) x[i] = twice ? f * 2 : f; }";
  const Compiled made = slang_made({.text = text, .constants = {{"tile", 16u}, {"twice", true}}});
  CHECK(made.workgroup == Extent3(16, 2));
  const auto words = [&](float f) {
    return slang_made({.text = text, .constants = {{"tile", 16u}, {"f", f}, {"twice", true}}}).spirv.words;
  };
  CHECK(words(1.0f) == made.spirv.words);
  CHECK(words(0.1f) != made.spirv.words);
  CHECK(words(-1e-40f) != made.spirv.words);
  CHECK(slang_error({.text = text, .constants = {{"tile", 16u}}}).sentence() ==
        "Kernel 'k' does not compile: k.slang:3:26: unresolved external symbol 'twice'.");
  const auto refused = [&](std::vector<LinkConstant> constants) {
    return slang_error({.text = text, .constants = std::move(constants)}).sentence();
  };
  CHECK(refused({{"tile", 16u}, {"tile", 8u}}) == "Kernel 'k' sets link-time constant 'tile' twice.");
  CHECK(refused({{"a b", 16u}}) == "Link-time constant 'a b' of kernel 'k' is not an identifier.");
  CHECK(refused({{"tile", 16u}, {"twice", true}, {"tlie", 1u}}) ==
        "Kernel 'k' has no link-time constant 'tlie' in its Slang source.");
  CHECK_FALSE(refused({{"tile", 16.0f}, {"twice", true}}).empty());
  // Every type, at its ends.
  const std::vector<LinkConstant> all{{"i", std::numeric_limits<std::int32_t>::min()},
                                      {"u", std::numeric_limits<std::uint32_t>::max()},
                                      {"l", std::numeric_limits<std::int64_t>::min()},
                                      {"ul", std::numeric_limits<std::uint64_t>::max()},
                                      {"d", -1e300}};
  const Compiled ends = slang_made(
      {.text = slang_storing(
           "i == int(0x80000000) && u == 0xffffffffu && l == -0x7fffffffffffffffLL - 1 && ul == "
           "0xffffffffffffffffULL && d < -9e299L && d > -1.1e300L ? 3 : 4",
           "extern static const int i; extern static const uint u; extern static const int64_t l; extern "
           "static const uint64_t ul; extern static const double d;\n"),
       .constants = all});
  CHECK(ends.spirv.words == slang_made({.text = slang_storing("3")}).spirv.words);
}

TEST_CASE("macros reach Slang", "[kernel][slang]") {
  if (!has_slang()) return;
  CHECK(slang_made({.text = slang_storing("N"), .macros = {{"N", "4"}}}).spirv.words ==
        slang_made({.text = slang_storing("4")}).spirv.words);
  CHECK(slang_error({.text = slang_storing("N"), .macros = {{"N", "4"}, {"N", "5"}}}).sentence() ==
        "Kernel 'k' defines macro 'N' twice.");
}

TEST_CASE("the entry point is the only function, or the named one", "[kernel][slang]") {
  if (!has_slang()) return;
  std::string two = slang_storing("1") + slang_storing("2");
  two.replace(two.rfind("void k("), 7, "void l(");
  CHECK(slang_error({.text = two}).sentence() ==
        "Kernel 'k' does not compile: k.slang: 2 functions are entry points; name the entry point of the "
        "kernel.");
  CHECK(slang_made({.text = two, .entry = "k"}).spirv.words ==
        slang_made({.text = slang_storing("1")}).spirv.words);
  std::string other = slang_storing("2");
  other.replace(other.rfind("void k("), 7, "void l(");
  CHECK(slang_made({.text = two, .entry = "l"}).spirv.words == slang_made({.text = other}).spirv.words);
  CHECK(slang_error({.text = two, .entry = "m"}).sentence().find("'m'") != std::string::npos);
  CHECK(
      slang_error({.text = "int k;"}).sentence() ==
      "Kernel 'k' does not compile: k.slang: no function is marked [shader(\"compute\")]; mark a function or "
      "name the entry point.");
  CHECK(slang_expects(
            slang_made({.text = "[numthreads(32, 1, 1)] void g<T>(uint3 id : SV_DispatchThreadID, uniform "
                                "RWStructuredBuffer<T> x) { x[id.x] = x[id.x + 1]; }",
                        .entry = "g<int>"})) == "(buffer read_write int32 x)");
}

TEST_CASE("parameters outside the entry point are refused by name", "[kernel][slang]") {
  if (!has_slang()) return;
  const auto refused = [](const std::string& before) {
    const Error error = slang_error({.text = slang_storing("1", before)});
    CHECK(error == Errc::unsupported);
    return error.sentence();
  };
  CHECK(refused("RWStructuredBuffer<float> g;\n") ==
        "Kernel 'k' has a parameter ('g') outside its entry point; wye accepts parameters of the entry point "
        "only.");
  CHECK(refused("uniform float g;\n").find("'g'") != std::string::npos);
  CHECK(refused("ConstantBuffer<float4> g;\n").find("'g'") != std::string::npos);
  CHECK(refused("[SpecializationConstant] const int g = 3;\n").find("'g'") != std::string::npos);
  CHECK(slang_error({.text = entry_marks +
                             "void k(uniform Texture2D<float> t, uniform RWStructuredBuffer<float> x) { x[0] "
                             "= t[uint2(0)]; }"})
            .sentence()
            .find("is an image") != std::string::npos);
}

TEST_CASE("SPIR-V that Slang should not have made is refused", "[kernel][slang]") {
  if (!has_slang()) return;
#if WYE_WITH_GLSL
  const Error error = slang_error(
      {.text = entry_marks + "void k(uniform RWStructuredBuffer<double> x) { x[0] = sin(x[0]); }"});
  CHECK(error == Errc::invalid_argument);
  CHECK(error.sentence().find("The SPIR-V is not valid") == 0);
#endif
}

TEST_CASE("a module that Slang wrote is a source", "[kernel][slang]") {
  if (!has_slang()) return;
  CHECK(slang_error({.text = "x", .module = {std::byte{1}}}).sentence() ==
        "The Slang source of kernel 'k' has both a text and a module.");
  CHECK(slang_error({.module = std::vector<std::byte>(100, std::byte{7})}) == Errc::compile_failed);
  const auto made = SlangCompiler::share()->module({.text = slang_storing("1")}, {{.shown = "k.slang"}}, "k");
  if (!made) FAIL(made.error().describe());
  CHECK(slang_made({.module = *made}).spirv.words == slang_made({.text = slang_storing("1")}).spirv.words);
}

TEST_CASE("Slang makes CUDA C++ of the same source", "[kernel][slang]") {
  if (!has_slang()) return;
  const CudaCpp text = slang_cuda({.text = scale_slang});
  CHECK(text.text.find("extern \"C\" __global__ void scale(RWStructuredBuffer<float> x") !=
        std::string::npos);
  CHECK(text.text.size() < 2000);
  CHECK(text.entry == "scale");
  CHECK(text.workgroup == Extent3(256));
  CHECK(text.max_registers == 0);
  CHECK(text.macros.empty());
  REQUIRE(text.includes.size() == 1);
  CHECK(text.includes[0].text.size() > 100'000);
  const CudaCpp large = slang_cuda(
      {.text = "[shader(\"compute\")] [numthreads(32, 32, 1)] void k(uint3 id : "
               "SV_DispatchThreadID, uniform RWStructuredBuffer<half> x) { x[id.x] += half(1); }"});
  CHECK(large.workgroup == Extent3(32, 32));
  CHECK(large.max_registers == 64);
  CHECK(large.macros.size() == 1);
  const auto refused =
      SlangCompiler::share()->cuda({.text = slang_storing("1", "uniform float g;\n")}, {{.shown = "k"}}, "k");
  CHECK(refused.error() == Errc::unsupported);
}

TEST_CASE("a kernel in Slang serves CUDA by way of NVRTC", "[kernel][slang]") {
  if (!has_slang()) return;
  if (!test::nvrtc()) return;
  const auto device = test::cuda_device("sm_90");
  const device::DeviceBase& gpu = *device;
  test::DoubleDevice vulkan("vulkan:0", {"spirv"});
  const auto made =
      Kernel<ReadWrite<float>, float>::make({.name = "k", .sources = {Slang{.text = scale_slang}}});
  REQUIRE(made);
  const auto artefact = base::program_of(*made)->build(gpu);
  if (!artefact) FAIL(artefact.error().describe());
  CHECK(artefact->language == "cubin");
  CHECK(artefact->entry == "scale");
  CHECK(artefact->workgroup == Extent3(256));
  CHECK(artefact->parameter_bytes == 20);
  REQUIRE(artefact->passing.size() == 2);
  CHECK(artefact->passing[0].kind == device::Passing::Kind::span);
  CHECK(artefact->passing[1].offset == 16);
  CHECK(artefact->key == base::program_of(*made)->key(gpu).value());
  CHECK(artefact->key != base::program_of(*made)->key(vulkan).value());
  CHECK(base::program_of(*made)->build(vulkan)->key == base::program_of(*made)->key(vulkan).value());
  // Halves need a header of the toolkit's.
  const auto half = compile(
      Slang{.text = entry_marks + "void k(uint3 id : SV_DispatchThreadID, uniform RWStructuredBuffer<half> "
                                  "x, uniform double* y) { y[id.x] = x[id.x] * half(2); }"},
      {.name = "k", .target = "compute_90"});
  if (!half) FAIL(half.error().describe());
  REQUIRE(half->ptx);
  CHECK(half->ptx->entry == "k");
  CHECK(half->push_bytes == 24);
  // Errors are Slang's own.
  const auto error = compile(Slang{.text = "int a = b;"}, {.name = "k", .target = "sm_90"});
  CHECK(error.error().sentence() == "Kernel 'k' does not compile: k.slang:1:9: undefined identifier 'b'.");
}

TEST_CASE("threads compile Slang at once", "[kernel][slang]") {
  if (!has_slang()) return;
  constexpr std::size_t most = 8;
  std::vector<std::vector<std::uint32_t>> alone, together(most);
  std::vector<Slang> sources;
  for (std::size_t i = 0; i < most; ++i) {
    sources.push_back(
        {.text = "import m;\n" + slang_storing("m() + " + std::to_string(i)),
         .includes = {{"m.slang", "public float m() { return " + std::to_string(i % 3) + "; }"}}});
    alone.push_back(slang_made(sources.back()).spirv.words);
  }
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < most; ++i)
    threads.emplace_back([&, i] {
      for (int n = 0; n < 4; ++n)
        if (auto made = compile(sources[i])) together[i] = made->spirv.words;
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(together == alone);
}

TEST_CASE("an invalid Slang source is an error, not a crash, and nothing is printed", "[kernel][slang]") {
  if (!has_slang()) return;
  std::fflush(stdout);
  std::FILE* const spare = std::tmpfile();
  REQUIRE(spare);
  const int out = dup(1), err = dup(2);
  dup2(fileno(spare), 1);
  dup2(fileno(spare), 2);
  std::string noise;
  for (int i = 1; i < 2000; ++i) noise.push_back(static_cast<char>(1 + i * 37 % 126));
  std::vector<std::string> refused;
  for (const std::string& text :
       {noise, std::string(200, '('), std::string(200, '{'), std::string("#include"), std::string("import"),
        std::string("/*"), std::string("\"")})
    refused.push_back(slang_error({.text = text}).sentence());
  (void)slang_made({.text = scale_slang});
  std::fflush(stdout);
  const long printed = lseek(1, 0, SEEK_END);
  dup2(out, 1);
  dup2(err, 2);
  close(out);
  close(err);
  std::fclose(spare);
  CHECK(printed == 0);
  for (const std::string& sentence : refused) CHECK(sentence.find("Kernel 'k' does not compile: ") == 0);
}

TEST_CASE("an include of Slang that is nested too deep is refused", "[kernel][slang]") {
  if (!has_slang()) return;
  const std::string deep(1'001, '(');
  CHECK(slang_error({.text = "import m;", .includes = {{"m.slang", "\n" + deep}}}).sentence() ==
        "Kernel 'k' does not compile: m.slang:2: brackets are nested deeper than 1000.");
  CHECK(slang_error({.text = "\nvoid f() { " +
                             [] {
                               std::string all;
                               for (int i = 0; i < 20'000; ++i) all += "A<";
                               return all;
                             }()})
            .sentence() ==
        "Kernel 'k' does not compile: k.slang:2: an expression has more than 10000 parts.");
}

TEST_CASE("a key of Slang has everything in it but paths and shown names", "[kernel][slang]") {
  if (!has_slang()) return;
  const TemporaryFolder one, two;
  for (const TemporaryFolder* folder : {&one, &two}) folder->put("m.slang", "public float m() { return 1; }");
  const auto importing = [](const TemporaryFolder& folder) {
    return Slang{.text = "import m;\n" + slang_storing("m()"), .include_directories = {folder.path()}};
  };
  CHECK(slang_key(importing(one)) == slang_key(importing(two)));
  const Digest before = slang_key(importing(one));
  one.put("m.slang", "public float m() { return 2; }");
  CHECK(slang_key(importing(one)) != before);

  const Slang plain{.text = slang_storing("1")};
  CHECK(slang_key(plain) == slang_key({.text = plain.text, .file = "/home/me/x.slang"}));
  CHECK(slang_key(plain) != slang_key({.text = plain.text + " "}));
  CHECK(slang_key(plain) != slang_key({.text = plain.text, .entry = "k"}));
  CHECK(slang_key(plain) != slang_key({.text = plain.text, .constants = {{"n", 1u}}}));
  CHECK(slang_key({.text = plain.text, .constants = {{"n", 1u}}}) !=
        slang_key({.text = plain.text, .constants = {{"n", 1}}}));
  CHECK(slang_key({.text = plain.text, .constants = {{"n", 1u}, {"m", 2u}}}) ==
        slang_key({.text = plain.text, .constants = {{"m", 2u}, {"n", 1u}}}));
  CHECK(slang_key(plain) != slang_key({.text = plain.text, .macros = {{"N", "1"}}}));
  CHECK(slang_key(plain) != slang_key({.text = plain.text, .tile = Extent3(64)}));
  CHECK(SlangCompiler::share()->build_id(SlangCompiler::Target::spirv)->find("Slang 20") == 0);
}

TEST_CASE("a kernel with Slang and a host function runs without libslang", "[kernel][slang]") {
  const auto made = Kernel<ReadWrite<float>, float>::make(
      {.name = "scale",
       .sources = {Slang{.text = scale_slang}, host([](Range, std::span<float>, float) {})}});
  REQUIRE(made);
  CHECK(made->languages() == "Slang, host");
  test::DoubleDevice cpu("cpu:0", {"host"}), gpu("vulkan:0", {"spirv"});
  CHECK_FALSE(base::program_of(*made)->refusal(cpu));
  const auto refused = base::program_of(*made)->refusal(gpu);
  const auto build = SlangCompiler::share()->build_id(SlangCompiler::Target::spirv);
  CHECK(refused.has_value() == !build.has_value());
  if (refused)
    CHECK(refused->sentence() ==
          "Kernel 'scale' has no source for 'vulkan:0' (has Slang, host; needs SpirV, Glsl or Slang): " +
              build.error().sentence());
}

TEST_CASE("a device prefers the language that needs no compiler, then GLSL", "[kernel][slang]") {
  if (!has_slang() || !test::has_glsl()) return;
  test::DoubleDevice gpu("vulkan:0", {"spirv"});
  const auto key = [&](std::vector<Kernel<ReadWrite<float>, float>::Source> sources) {
    const auto kernel =
        Kernel<ReadWrite<float>, float>::make({.name = "scale", .sources = std::move(sources)});
    return base::program_of(*kernel)->key(gpu).value();
  };
  const Slang slang{.text = scale_slang};
  const Glsl glsl{.text = "#version 450\nvoid main() {}"};
  const SpirV spirv = slang_made(slang).spirv;
  CHECK(key({slang, glsl, spirv}) == key({spirv}));
  CHECK(key({slang, glsl}) == key({glsl}));
  CHECK(key({slang}) != key({glsl}));
}

TEST_CASE("structs that CUDA lays out otherwise are refused there, with the padding that mends it",
          "[kernel][slang]") {
  if (!has_slang()) return;
  const auto said = [](const std::string& fields, const std::string& parameter, const std::string& value) {
    const std::string text = slang_taking(parameter, value, "struct Q { " + fields + " };\n");
    const Slang source{.text = text};
    slang_made(source);  // Vulkan takes them all
    const auto made = SlangCompiler::share()->cuda(source, kernel::read_imports(source, "k.slang"), "k");
    return made ? std::string() : made.error().sentence();
  };
  const std::string buffer = "uniform StructuredBuffer<Q> q", by_value = "uniform Q q",
                    pointer = "uniform Q* q";
  const std::string first =
      "In the Slang source of kernel 'k', 'b' of struct 'Q' is at byte 4 on Vulkan and at byte 8 on "
      "CUDA; add 4 bytes of padding before it.";
  CHECK(said("uint a; float2 b; uint c; float4 d;", buffer, "q[0].b.x") == first);
  CHECK(said("uint a; float2 b; uint c; float4 d;", by_value, "q.b.x") == first);
  CHECK(said("uint a; float2 b; uint c; float4 d;", pointer, "q[0].b.x") == first);
  CHECK(said("uint a; uint pad; float2 b; uint c; float4 d;", buffer, "q[0].b.x").find("'d'") !=
        std::string::npos);
  CHECK(said("uint a; uint pad; float2 b; uint c; uint pads[3]; float4 d;", buffer, "q[0].b.x") == "");
  CHECK(said("float2 a; uint b;", buffer, "q[0].a.x") ==
        "In the Slang source of kernel 'k', struct 'Q' has 12 bytes on Vulkan and 16 bytes on CUDA; add 4 "
        "bytes of padding at its end.");
  CHECK(said("uint a; float3 b; double c; float d[3]; int64_t e;", buffer, "q[0].b.x") == "");
  CHECK(said("uint a; R r[2]; };\nstruct R { float2 b; float c;", buffer, "q[0].r[1].c")
            .find("'r' of struct 'Q'") != std::string::npos);
  CHECK(said("uint a; uint pad; R r[2]; };\nstruct R { float2 b; float c;", buffer, "q[0].r[1].c")
            .find("struct 'R' has 12 bytes") != std::string::npos);
  CHECK(said("float a; float2x2 m;", buffer, "q[0].m[0].x").find("'m' of struct 'Q'") != std::string::npos);
}

TEST_CASE("a source that Slang accepts only for CUDA compiles for CUDA", "[kernel][slang]") {
  if (!has_slang()) return;
  CHECK(slang_cuda({.text = slang_storing("clock_now()", R"slang(float clock_now() {
  __target_switch {
  case cuda: __intrinsic_asm "float(clock64())";
  }
})slang")})
            .text.find("clock64") != std::string::npos);
}
