#include "kernel/compilers/glsl.hpp"

#include <unistd.h>

#include <cstdio>
#include <string>
#include <thread>

#include "kernel/reflect/spirv.hpp"
#include "shaders.hpp"
#include "support/catch.hpp"

using namespace wye;
using kernel::GlslCompiler;
using kernel::outline;

TEST_CASE("the version is read from the first line that is one", "[kernel]") {
  CHECK(outline("#version 450\nvoid main() {}", "main").version == 450);
  CHECK(outline("#version 460 core\n", "main").profile == "core");
  CHECK(outline("// a\n/* b\n */\r\n # version 450 es // c", "main").profile == "es");
  CHECK(outline("", "main").version == 0);
  CHECK(outline("void main() {}\n#version 450", "main").version == 0);
  CHECK(outline("#ver\\\nsion 450", "main").version == 0);
  CHECK(outline("#version x45", "main").version == 0);
  CHECK(outline("#version 4500000000000", "main").version != 450);
  CHECK(outline("/* never ends", "main").version == 0);
  CHECK(outline("#", "main").version == 0);
}

TEST_CASE("an entry point in a comment does not count", "[kernel]") {
  CHECK(outline("void go() {}", "go").has_entry);
  CHECK_FALSE(outline("// go\n/* go */ void gone() {} int a_go;", "go").has_entry);
}

TEST_CASE("identifiers are those of GLSL", "[kernel]") {
  CHECK(kernel::is_identifier("a"));
  CHECK(kernel::is_identifier("_a1"));
  CHECK_FALSE(kernel::is_identifier(""));
  CHECK_FALSE(kernel::is_identifier("1a"));
  CHECK_FALSE(kernel::is_identifier("a-b"));
}

#if WYE_WITH_GLSL

namespace {

std::string sentence(Glsl source) {
  auto words = GlslCompiler::share()->compile(source, "scale");
  REQUIRE_FALSE(words);
  CHECK(words.error().code() == Errc::compile_failed);
  return words.error().sentence();
}

}  // namespace

TEST_CASE("there is one compiler, and it ends with its last user", "[kernel]") {
  const auto first = GlslCompiler::share();
  CHECK(first == GlslCompiler::share());
  CHECK(first.use_count() == 1);
}

TEST_CASE("GLSL becomes SPIR-V 1.5, the same every time", "[kernel]") {
  const auto compiler = GlslCompiler::share();
  const auto one = compiler->compile({.text = test::scale_glsl}, "a");
  const auto two = compiler->compile({.text = test::scale_glsl, .file = "/some/where/else.comp"}, "b");
  REQUIRE(one);
  CHECK((*one)[0] == 0x07230203);
  CHECK((*one)[1] == 0x00010500);
  CHECK(*one == *two);
}

TEST_CASE("the shown file name does not get into the code, even by __FILE__", "[kernel]") {
  const std::string text =
      "#version 450\n#extension GL_GOOGLE_cpp_style_line_directive : require\n"
      "layout(set = 0, binding = 0) buffer X { uint x[]; };\nvoid main() { x[0] = __LINE__; }";
  const auto compiler = GlslCompiler::share();
  CHECK(*compiler->compile({.text = text, .file = "a"}, "k") ==
        *compiler->compile({.text = text, .file = "b"}, "k"));
}

TEST_CASE("errors of GLSL name the extension that is missing", "[kernel]") {
  const auto held = GlslCompiler::share();
  const auto of = [](const std::string& statement) {
    return sentence({.text = "#version 450\nvoid main() {\n  " + statement + "\n}"});
  };
  CHECK(
      of("float16_t h = float16_t(1);")
          .starts_with("Kernel 'scale' does not compile: scale.comp:3:3: 'float16_t' : undeclared identifier "
                       "(needs '#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require')"));
  CHECK(of("u64vec2 a;").find("GL_EXT_shader_explicit_arithmetic_types_int64 : require") !=
        std::string::npos);
  CHECK(
      of("float x = subgroupAdd(1.0);") ==
      "Kernel 'scale' does not compile: scale.comp:3:13: 'subgroupAdd' : required extension not requested: "
      "GL_KHR_shader_subgroup_arithmetic (needs '#extension GL_KHR_shader_subgroup_arithmetic : require').");
  CHECK(of("unknown x;").find("needs") == std::string::npos);
}

TEST_CASE("errors of GLSL name file and line", "[kernel]") {
  const auto held = GlslCompiler::share();
  CHECK(sentence({.text = "#version 450\nvoid main() {\n  int a = ;\n}"}) ==
        "Kernel 'scale' does not compile: scale.comp:3: syntax error, unexpected SEMICOLON.");
  CHECK(sentence({.text = "#version 450\nvoid main() { a = 1; }", .file = "x.glsl"}) ==
        "Kernel 'scale' does not compile: x.glsl:2:15: 'a' : undeclared identifier.");
  // All places of an undeclared word are wrong; of another word that the line has twice, one may be right.
  CHECK(sentence({.text = "#version 450\nvoid main() { a = a; }", .file = "x.glsl"}) ==
        "Kernel 'scale' does not compile: x.glsl:2:15: 'a' : undeclared identifier.");
  CHECK(sentence({.text = "#version 450\nvoid main() { int a; int a; }", .file = "x.glsl"}) ==
        "Kernel 'scale' does not compile: x.glsl:2: 'a' : redefinition.");
  CHECK(sentence({.text = "#version 450\nfloat f;"}).find("scale.comp: ") != std::string::npos);
  CHECK(sentence({.text = "#version 450\n#line 70 3\nvoid main() { a = 1; }"}).find("3:70: 'a'") !=
        std::string::npos);
}

TEST_CASE("GLSL without a version that Vulkan knows is refused before the compiler", "[kernel]") {
  const auto held = GlslCompiler::share();
  const std::string wanted =
      "Kernel 'scale' does not compile: scale.comp:1: the source must begin with #version 450 or 460.";
  CHECK(sentence({.text = "void main() {}"}) == wanted);
  CHECK(sentence({.text = "#version 110\nvoid main() {}"}) == wanted);
  CHECK(sentence({.text = "#version 999\nvoid main() {}"}) == wanted);
  CHECK(sentence({.text = "#version 450 es\nvoid main() {}"}) ==
        "Kernel 'scale' does not compile: scale.comp:1: the profile 'es' is not core.");
}

TEST_CASE("the compiler never writes to the process's output", "[kernel]") {
  const auto held = GlslCompiler::share();
  // glslang prints the text of its built-in functions if it cannot parse them for a version.
  std::fflush(stdout);
  std::FILE* const spare = std::tmpfile();
  REQUIRE(spare);
  const int saved = dup(1);
  dup2(fileno(spare), 1);
  for (const char* text :
       {"", "#", "#version", "#version 110", "#version 110\nvoid main(){}", "#ver\\\nsion 450\n",
        "#version 450\n#version 110\nvoid main() {}", "void main() {}", "\0", "#version 310 es",
        "/**/#/**/version 450\nvoid main() {}", "#version 450 compatibility\nvoid main() {}"})
    (void)GlslCompiler::share()->compile({.text = text}, "k").has_value();
  std::fflush(stdout);
  const long printed = lseek(1, 0, SEEK_END);
  dup2(saved, 1);
  close(saved);
  std::fclose(spare);
  CHECK(printed == 0);
}

TEST_CASE("includes are refused with a sentence", "[kernel]") {
  const auto held = GlslCompiler::share();
  for (const char* extension : {"", "#extension GL_GOOGLE_include_directive : require\n"}) {
    const std::string text =
        std::string("#version 450\n") + extension + "#include \"a.glsl\"\nvoid main() {}";
    const std::string said = sentence({.text = text});
    CHECK(said.find("scale.comp:" + std::to_string(*extension ? 3 : 2)) != std::string::npos);
    CHECK(said.find("names no place to search") != std::string::npos);
    CHECK(said.find("a.glsl") != std::string::npos);
  }
}

TEST_CASE("warnings are reported on request, and change nothing", "[kernel]") {
  const auto held = GlslCompiler::share();
  const Glsl source{.text = "#version 450\n#extension GL_NV_nothing_at_all : enable\nvoid main() {}"};
  std::vector<Diagnostic> warnings;
  const auto words = held->compile(source, kernel::read_includes(source, "a.comp"), "k", &warnings);
  REQUIRE(words);
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].severity == Diagnostic::Severity::warning);
  CHECK(warnings[0].file == "a.comp");
  CHECK(warnings[0].line == 2);
  CHECK(*words == *held->compile(source, "k"));
}

TEST_CASE("macros reach the code", "[kernel]") {
  const std::string text =
      "#version 450\nlayout(set = 0, binding = 0) buffer X { uint x[]; };\nvoid main() { x[0] = N; }";
  const auto compiler = GlslCompiler::share();
  CHECK(sentence({.text = text}).find("'N' : undeclared identifier") != std::string::npos);
  const auto four = compiler->compile({.text = text, .macros = {{"N", "4"}}}, "k");
  const auto five = compiler->compile({.text = text, .macros = {{"N", "5"}}}, "k");
  REQUIRE(four);
  REQUIRE(five);
  CHECK(*four != *five);
}

TEST_CASE("any function can be the entry point", "[kernel]") {
  const std::string text =
      "#version 450\nlayout(set = 0, binding = 0) buffer X { uint x[]; };\n"
      "void one() { x[0] = 1; }\nvoid two() { x[0] = 2; }";
  const auto compiler = GlslCompiler::share();
  const auto one = compiler->compile({.text = text, .entry = "one"}, "k");
  const auto two = compiler->compile({.text = text, .entry = "two"}, "k");
  REQUIRE(one);
  REQUIRE(two);
  CHECK(*one != *two);
  CHECK(sentence({.text = text, .entry = "three"}) ==
        "Kernel 'scale' does not compile: scale.comp: there is no function 'three'.");
  CHECK(sentence({.text = text}).find("scale.comp: ") != std::string::npos);
}

TEST_CASE("a function-like macro reaches the code, and its parameters are checked", "[kernel]") {
  const std::string text =
      "#version 450\nlayout(set = 0, binding = 0) buffer X { uint x[]; };\n"
      "void main() { x[0] = psc(3u) + mad(1u, 2u, 3u); }";
  const auto compiler = GlslCompiler::share();
  const auto with = compiler->compile(
      {.text = text, .macros = {{"psc(x)", "(x)"}, {"mad(a, b, c)", "((a) * (b) + (c))"}}}, "k");
  CHECK(with);
  CHECK(kernel::macro_identifier("psc(x)") == "psc");
  CHECK(kernel::macro_identifier("f()") == "f");
  CHECK(kernel::macro_identifier("f( a , b)") == "f");
  CHECK(kernel::macro_identifier("f(...)") == "f");
  CHECK(kernel::macro_identifier("f") == "f");
  for (const char* bad :
       {"", "1f", "f(", "f)", "f(a", "f(a,)", "f(,a)", "f(..., a)", "f(a) b", "f (a)", "f(a\nb)"}) {
    INFO(bad);
    CHECK(kernel::macro_identifier(bad).empty());
  }
}

TEST_CASE("an entry point may be overloaded, and main may call it", "[kernel]") {
  const std::string text =
      "#version 450\nlayout(set = 0, binding = 0) buffer X { uint x[]; };\n"
      "void go(uint v) { x[0] = v; }\nvoid go() { go(7u); }\nvoid main() { go(); go(1u); } // \\";
  const auto compiler = GlslCompiler::share();
  const auto go = compiler->compile({.text = text, .entry = "go"}, "k");
  if (!go) FAIL(go.error().describe());
  const auto interface = kernel::reflect(*go, "main", {});
  REQUIRE(interface);
  REQUIRE(interface->bindings.size() == 1);
  CHECK(interface->bindings[0].memory.written == kernel::Written::yes);
  CHECK(compiler->compile({.text = text}, "k"));
  CHECK(sentence({.text = "#version 450\nvoid go(uint v) {}\nvoid main() {}", .entry = "go"}) ==
        "Kernel 'scale' does not compile: scale.comp: there is no function 'go' without parameters.");
  // Its own errors have their own lines.
  CHECK(sentence({.text = "#version 450\nvoid go() {\n  b = 1; }", .entry = "go"}) ==
        "Kernel 'scale' does not compile: scale.comp:3:3: 'b' : undeclared identifier.");
}

TEST_CASE("an entry point that a macro makes is found", "[kernel]") {
  CHECK(GlslCompiler::share()->compile(
      {.text = "#version 450\nvoid START() {}", .macros = {{"START", "main"}}}, "k"));
}

TEST_CASE("a source that is no text is an error, not a crash", "[kernel]") {
  const auto held = GlslCompiler::share();
  std::string noise = "#version 450\n";
  for (int i = 1; i < 2000; ++i) noise.push_back(static_cast<char>(i * 37 % 251));
  CHECK_FALSE(sentence({.text = noise}).empty());
  CHECK_FALSE(sentence({.text = std::string("#version 450\nvoid main() {}\0 more", 33)}).empty());
  CHECK_FALSE(sentence({.text = "#version 450\n" + std::string(5000, '(')}).empty());
}

TEST_CASE("a part of a hundred errors is reported, with their number", "[kernel]") {
  std::string text = "#version 450\nvoid main() {\n";
  for (int i = 0; i < 100; ++i) text += "  a" + std::to_string(i) + " = 1;\n";
  auto words = GlslCompiler::share()->compile({.text = text + "}"}, "k");
  REQUIRE_FALSE(words);
  REQUIRE(words.error().context().size() == 20);
  CHECK(words.error().context().back() == "and 80 more errors");
  const auto said = words.error().diagnostics();
  REQUIRE(said.size() == 100);
  CHECK(said[99] ==
        Diagnostic{.file = "k.comp", .line = 102, .column = 3, .text = "'a99' : undeclared identifier"});
  CHECK(words.error().context()[0] == to_string(said[1]));
}

#endif
