#include "kernel/compilers/includes.hpp"
#include "base/internals.hpp"

#include <wye/kernel/kernel.hpp>

#include <random>
#include <stdexcept>
#include <string>

#include "kernel/compilers/glsl.hpp"
#include "kernel/program.hpp"
#include "support/catch.hpp"
#include "support/compilers.hpp"
#include "support/double_device.hpp"
#include "support/temporary_folder.hpp"

using namespace wye;
using kernel::GlslCompiler;
using kernel::read_includes;

namespace {

std::string shader(const std::string& before, const std::string& body = "x[0] = value;") {
  return "#version 450\n" + before +
         "\nlayout(set = 0, binding = 0) buffer X { uint x[]; };\nvoid main() { " + body + " }\n";
}

Digest key_of(const Glsl& source) {
  const auto kernel = Kernel<ReadWrite<std::uint32_t>>::make({.name = "k", .sources = {source}});
  test::DoubleDevice gpu("vulkan:0", {"spirv"});
  return base::program_of(*kernel)->key(gpu).value();
}

/// Returns the shown names of the includes of `source`, in order of discovery.
std::vector<std::string> shown(const Glsl& source) {
  std::vector<std::string> names;
  for (const auto& text : read_includes(source, "")) names.push_back(text.shown);
  names.erase(names.begin());
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("an include is searched in memory, then in the directories, then by the callback", "[kernel]") {
  const TemporaryFolder folder;
  folder.put("one/a", "one");
  folder.put("two/a", "two");
  folder.put("two/b", "two");
  Glsl source{.text = "#include <a>\n#include <b>\n#include <c>\n#include <d>",
              .includes = {{"c", ""}},
              .include_directories = {folder / "one", folder / "two"},
              .find_include = [](const std::string& name) { return "host's " + name; }};
  CHECK(shown(source) == Names{folder / "one/a", folder / "two/b", "c", "d"});
  source.includes.push_back({"./a", ""});
  CHECK(shown(source) == Names{"a", folder / "two/b", "c", "d"});
  CHECK(read_includes(source, "")[4].text == "host's d");
}

TEST_CASE("an include in quotes is first searched beside its includer", "[kernel]") {
  const TemporaryFolder folder;
  folder.put("first/b", "");
  folder.put("second/a", "#include \"b\"\n#include \"lib/c\"");
  folder.put("second/b", "");
  folder.put("second/lib/c", "#include \"../d\"\n#include \"b\"\n#include <b>");
  folder.put("second/d", "");
  const Glsl source{.text = "#include \"a\"", .include_directories = {folder / "first", folder / "second"}};
  CHECK(shown(source) == Names{folder / "second/a", folder / "second/b", folder / "second/lib/c",
                               folder / "second/d", folder / "first/b"});
  const Glsl in_memory{.text = "#include \"lib/a\"",
                       .includes = {{"b", ""}, {"lib/a", "#include \"b\""}, {"lib/b", ""}}};
  CHECK(shown(in_memory) == Names{"lib/a", "lib/b"});
}

TEST_CASE("everything that the compiler takes for an include is seen", "[kernel]") {
  const auto seen = [](std::string text) {
    return read_includes({.text = std::move(text)}, "")[0].uses.size();
  };
  CHECK(seen("#include \"a\"") == 1);
  CHECK(seen(" \t# \tinclude\t<a> more") == 1);
  CHECK(seen("/* x */ # /* y */ include \"a\"") == 1);
  CHECK(seen("#inc\\\nlu\\\r\nde \"a\\\nb\"") == 1);
  CHECK(seen("#if 0\n#include \"a\"\n#endif\n// #include \"b\"") == 2);
  CHECK(seen("#include \"a\"\n#include <a>\n#include \"a\"") == 2);
  CHECK(seen("#include/* x */\"a\"") == 1);
  CHECK(seen("#include \"a") == 1);
  CHECK(seen("#include \"\"") == 1);
  CHECK(seen("#include a\n#define include\n#pragma \"a\"\ninclude \"a\"") == 0);
  CHECK(seen("#") == 0);
  CHECK(seen("#include") == 0);
}

TEST_CASE("names that lead upwards, around and nowhere are names", "[kernel]") {
  const TemporaryFolder folder;
  folder.put("a", "");
  folder.put("in/b", "");
  const Glsl source{
      .text =
          "#include \"../a\"\n#include \"./x/..//b\"\n#include \"b\"\n#include \"/etc/passwd\"\n"
          "#include \"..\"\n#include \"in\"\n#include \".\"",
      .include_directories = {folder / "in"}};
  CHECK(shown(source) == Names{folder / "in/../a", folder / "in/b"});
}

TEST_CASE("equal contents give equal keys, at any place and with any name", "[kernel]") {
  if (!test::has_glsl()) return;
  const TemporaryFolder one, two;
  const std::string text = "#include \"a.glsl\"\n";
  one.put("a.glsl", "content");
  two.put("far/away/a.glsl", "content");
  const Digest key = key_of({.text = text, .includes = {{"a.glsl", "content"}}});
  CHECK(key == key_of({.text = text, .include_directories = {one.path()}}));
  CHECK(key == key_of({.text = text, .include_directories = {"/nowhere", two / "far/away"}}));
  CHECK(key == key_of({.text = text, .find_include = [](const std::string&) { return "content"; }}));
  CHECK(key ==
        key_of({.text = text, .file = "/x/y.comp", .includes = {{"a.glsl", "content"}, {"b", "unused"}}}));

  CHECK(key != key_of({.text = text}));
  CHECK(key != key_of({.text = text, .includes = {{"a.glsl", "other"}}}));
  CHECK(key_of({.text = text}) == key_of({.text = text, .includes = {{"b", "unused"}}}));
}

TEST_CASE("a key depends on the place of each included text", "[kernel]") {
  if (!test::has_glsl()) return;
  const std::string text = "#include \"a\"\n#include \"b\"\n";
  const Digest key = key_of({.text = text, .includes = {{"a", "1"}, {"b", "2"}}});
  CHECK(key != key_of({.text = text, .includes = {{"a", "2"}, {"b", "1"}}}));
  CHECK(key != key_of({.text = text, .includes = {{"a", "1"}}}));
  CHECK(key != key_of({.text = text, .includes = {{"b", "1"}}}));
  CHECK(key_of({.text = text, .includes = {{"a", "1"}}}) != key_of({.text = text, .includes = {{"b", "1"}}}));
  // An include deeper inside counts as well.
  const Glsl deep{.text = "#include \"a\"", .includes = {{"a", "#include \"b\""}, {"b", "1"}}};
  Glsl deeper = deep;
  deeper.includes[1].text = "2";
  CHECK(key_of(deep) != key_of(deeper));
}

TEST_CASE("an exception or error of the callback is the reason of a missing include", "[kernel]") {
  const auto why = [](IncludeFinder find) {
    return read_includes({.text = "#include <a>", .find_include = std::move(find)}, "")[0].uses[0].why;
  };
  CHECK(why([](const std::string&) -> std::string { throw std::runtime_error("no network"); }) ==
        "the application's find_include throws: no network");
  CHECK(why([](const std::string&) -> std::string { throw 3; }) == "the application's find_include throws");
  CHECK(why([](const std::string&) { return Error(Errc::io, "The disk\nis on fire."); }) ==
        "The disk is on fire");
  CHECK(why([](const std::string&) { return std::optional<std::string>(); }) ==
        "it does not exist (searched its find_include)");
}

TEST_CASE("a source is read from a file, with its folder to include from", "[kernel]") {
  const TemporaryFolder folder;
  const std::string path = folder.put("lib/scale.comp", "\xEF\xBB\xBF#version 450\n");
  const auto source = Glsl::from_file(path);
  REQUIRE(source);
  CHECK(source->text == "#version 450\n");
  CHECK(source->file == path);
  CHECK(source->include_directories == Names{folder / "lib"});
}

TEST_CASE("a file that is no source is refused with a sentence", "[kernel]") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& path) {
    const auto source = Glsl::from_file(path);
    REQUIRE_FALSE(source);
    return source.error();
  };
  const std::string missing = folder / "missing.comp";
  CHECK(refused(missing).describe() == "not_found: File '" + missing + "' does not exist.");
  CHECK(refused("") == Errc::not_found);
  CHECK(refused(folder / "").code() == Errc::io);
  CHECK(refused(std::string("a\0b", 3)) == Errc::invalid_argument);
  const std::string empty = folder.put("empty", "");
  CHECK(refused(empty).sentence() == "File '" + empty + "' is empty.");
  const std::string zero = folder.put("zero", std::string("a\nb\0c", 5));
  CHECK(refused(zero).sentence() == "File '" + zero + "' has a zero byte in line 2.");
  for (const char* bytes : {"\xff", "\xc0\xaf", "\xe2\x82", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x80"}) {
    const std::string latin = folder.put("latin", std::string("#version 450\n\n// ") + bytes);
    CHECK(refused(latin).sentence() == "File '" + latin + "' is not UTF-8 in line 3.");
  }
  CHECK(Glsl::from_file(folder.put("good", "// \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80")));
  const std::string huge = folder.put("huge", "");
  std::filesystem::resize_file(huge, 100u << 20);
  CHECK(refused(huge).describe() == "invalid_argument: The size of file '" + huge +
                                        "' (100 MiB) exceeds the limit of this read (4.00 MiB).");
}

TEST_CASE("SPIR-V is read from a file, and nothing else is", "[kernel]") {
  const TemporaryFolder folder;
  const std::uint32_t words[] = {0x07230203, 0x00010500, 0, 1, 0};
  const std::string bytes(reinterpret_cast<const char*>(words), sizeof(words));
  const auto source = SpirV::from_file(folder.put("a.spv", bytes));
  REQUIRE(source);
  CHECK(source->words == std::vector<std::uint32_t>(words, words + 5));
  for (const std::string& bad :
       {bytes.substr(0, 19), bytes.substr(0, 16), std::string(), std::string(20, 'x')}) {
    const auto refused = SpirV::from_file(folder.put("bad.spv", bad));
    REQUIRE_FALSE(refused);
    CHECK(refused.error() == Errc::invalid_argument);
  }
  CHECK(SpirV::from_file(folder / "missing.spv").error() == Errc::not_found);
}

TEST_CASE("a source of two million lines is refused when a kernel is made of it", "[kernel]") {
  std::string text = "#version 450\n";
  for (int i = 0; i < 2'000'000; ++i) text += "// n\n";
  const auto made = Kernel<ReadWrite<float>>::make({.name = "k", .sources = {Glsl{.text = std::move(text)}}});
  REQUIRE_FALSE(made);
  CHECK(
      made.error().describe() ==
      "invalid_argument: The size of the Glsl source of kernel 'k' (9.54 MiB) exceeds the limit of a source "
      "(4.00 MiB).");
}

#if WYE_WITH_GLSL

namespace {

Error build_error(const Glsl& source) {
  auto words = GlslCompiler::share()->compile(source, "scale");
  REQUIRE_FALSE(words);
  CHECK(words.error() == Errc::compile_failed);
  return words.error();
}

}  // namespace

TEST_CASE("included text is compiled, and its path does not get into the code", "[kernel]") {
  const auto compiler = GlslCompiler::share();
  const TemporaryFolder folder;
  folder.put("lib/value.glsl", "#include \"number.glsl\"\nconst uint value = NUMBER;");
  folder.put("lib/number.glsl", "#define NUMBER 7");
  const std::string text = shader("#include <lib/value.glsl>");
  const auto from_files = compiler->compile({.text = text, .include_directories = {folder.path()}}, "k");
  const auto from_memory =
      compiler->compile({.text = text,
                         .includes = {{"lib/value.glsl", folder.get("lib/value.glsl")},
                                      {"lib/number.glsl", folder.get("lib/number.glsl")}}},
                        "k");
  if (!from_files) FAIL(from_files.error().describe());
  REQUIRE(from_memory);
  CHECK(*from_files == *from_memory);
  const auto other =
      compiler->compile({.text = text, .includes = {{"lib/value.glsl", "const uint value = 8;"}}}, "k");
  REQUIRE(other);
  CHECK(*other != *from_memory);
}

TEST_CASE("a kernel does not change when its files change", "[kernel]") {
  const TemporaryFolder folder;
  folder.put("value.glsl", "const uint value = 1;");
  folder.put("k.comp", shader("#include \"value.glsl\""));
  const auto make = [&] {
    return Kernel<ReadWrite<std::uint32_t>>::make(
               {.name = "k", .sources = {Glsl::from_file(folder / "k.comp").value()}})
        .value();
  };
  test::DoubleDevice gpu("vulkan:0", {"spirv"});
  const auto first = make();
  const auto key = base::program_of(first)->key(gpu).value();
  const auto same = make();
  folder.put("value.glsl", "const uint value = 2;");
  const auto second = make();
  CHECK(base::program_of(same)->key(gpu).value() == key);
  CHECK(base::program_of(second)->key(gpu).value() != key);
  CHECK(base::program_of(first)->build(gpu)->code == base::program_of(same)->build(gpu)->code);
  CHECK(base::program_of(first)->build(gpu)->code != base::program_of(second)->build(gpu)->code);
}

TEST_CASE("an error in an include names the include", "[kernel]") {
  const auto held = GlslCompiler::share();
  const Error error = build_error(
      {.text = shader("#include \"a.glsl\"\n#include \"b.glsl\""),
       .file = "k.comp",
       .includes = {{"a.glsl", "\n\nuint f() { return unknown; }"}, {"b.glsl", "const uint value = 1;\n"}}});
  CHECK(error.sentence() ==
        "Kernel 'scale' does not compile: a.glsl:3:19: 'unknown' : undeclared identifier.");
  REQUIRE_FALSE(error.diagnostics().empty());
  CHECK(error.diagnostics()[0] ==
        Diagnostic{.file = "a.glsl", .line = 3, .column = 19, .text = "'unknown' : undeclared identifier"});
  // The lines of the includer are right again after an include.
  const Error after = build_error({.text = shader("#include \"b.glsl\"", "\nx[0] = more;"),
                                   .file = "k.comp",
                                   .includes = {{"b.glsl", "const uint value = 1;\n\n\n"}}});
  CHECK(after.diagnostics()[0].file == "k.comp");
  CHECK(after.diagnostics()[0].line == 5);
}

TEST_CASE("a missing include is reported with its place and the searched directories", "[kernel]") {
  const auto held = GlslCompiler::share();
  const TemporaryFolder folder;
  folder.put("a.glsl", "\n#include <gone.glsl>\n");
  const Error error =
      build_error({.text = shader("#include \"a.glsl\""),
                   .includes = {{"other", ""}},
                   .include_directories = {folder.path(), "/nowhere"},
                   .find_include = [](const std::string&) { return std::optional<std::string>(); }});
  REQUIRE(error.diagnostics().size() >= 1);
  CHECK(error.diagnostics()[0] ==
        Diagnostic{.file = folder / "a.glsl",
                   .line = 2,
                   .text = "'gone.glsl' cannot be included: it does not exist (searched its includes, '" +
                           folder.path().string() + "', '/nowhere', its find_include)"});
  const auto why = [&](const std::string& name) {
    return build_error({.text = shader("#include \"" + name + "\""), .include_directories = {folder.path()}})
        .sentence();
  };
  CHECK(why("/etc/passwd")
            .find("scale.comp:2: '/etc/passwd' cannot be included: absolute names are not searched") !=
        std::string::npos);
  folder.put("bad.glsl", "a\n\xff");
  CHECK(why("bad.glsl").find("is not UTF-8 in line 2") != std::string::npos);
  std::filesystem::create_directory(folder / "folder");
  CHECK(why("folder").find("is not a regular file") != std::string::npos);
}

TEST_CASE("a missing include that no condition lets through is no error", "[kernel]") {
  const std::string text =
      shader("#ifdef NEVER\n#include \"gone.glsl\"\n#endif\n// #include \"gone.glsl\"", "x[0] = 1;");
  const auto compiled = GlslCompiler::share()->compile({.text = text}, "k");
  if (!compiled) FAIL(compiled.error().describe());
}

TEST_CASE("mutual includes end by their conditions, or are reported as a cycle", "[kernel]") {
  const auto held = GlslCompiler::share();
  const std::string guard = "#ifndef A\n#define A\n#include \"b\"\nconst uint value = 1;\n#endif\n";
  CHECK(held->compile(
      {.text = shader("#include \"a\""), .includes = {{"a", guard}, {"b", "#include \"a\"\n"}}}, "k"));

  const Error cycle = build_error({.text = shader("#include \"a\""),
                                   .includes = {{"a", "#include \"b\"\n"}, {"b", "\n#include \"a\"\n"}}});
  CHECK(cycle.diagnostics()[0].text.find("includes form a cycle: '") == 0);
  CHECK(cycle.diagnostics()[0].text.find("'a' includes 'b'") != std::string::npos);
  CHECK(cycle.diagnostics()[0].line != 0);
  CHECK(cycle.diagnostics().size() == 1);
  CHECK(
      build_error({.text = shader("#include \"a\""), .includes = {{"a", "#include \"a\"\n#include \"a\"\n"}}})
          .sentence()
          .find("'a' includes 'a'") != std::string::npos);
}

TEST_CASE("every include of the compiler was found before, for each way of writing it", "[kernel]") {
  const auto held = GlslCompiler::share();
  const std::vector<std::string> pieces{
      "#",      "#include", "include", "\"a\"",   "<a>",      "a",  " ", "\t",           "\n", "\n#", "/* */",
      "/*\n*/", "//",       "\\\n",    "#if 0\n", "#endif\n", "\"", "<", "#inc\\\nlude", "'",  "/*"};
  std::mt19937 random(20261121);
  std::size_t included = 0;
  for (int round = 0; round < 2000; ++round) {
    Glsl source{.text = "#version 450\n", .includes = {{"a", "uint a() { return 1; }\n"}}};
    for (int i = 0; i < 8; ++i) source.text += pieces[random() % pieces.size()];
    if (round % 4 == 0) source.text += "\n # /* x */ include/*\n*/\"a\"\n";
    source.text += "\nlayout(set = 0, binding = 0) buffer X { uint x[]; };\nvoid main() { x[0] = a(); }";
    const auto words = held->compile(source, "k");
    included += words.has_value();
    if (words) continue;
    CAPTURE(source.text);
    for (const Diagnostic& said : words.error().diagnostics())
      CHECK(said.text.find("form of this #include") == std::string::npos);
  }
  CHECK(included > 10);
}

TEST_CASE("includes too deep, too many or too large are errors in bounded time", "[kernel]") {
  const auto held = GlslCompiler::share();
  const auto chain = [](int length, const std::string& between, std::string last) {
    Glsl source{.text = shader("#include \"0\"")};
    for (int i = 0; i < length; ++i) {
      const std::string next = "#include \"" + std::to_string(i + 1) + "\"\n";
      source.includes.push_back({std::to_string(i), between == "twice" ? next + next : next});
    }
    source.includes.push_back({std::to_string(length), std::move(last)});
    return source;
  };
  CHECK(held->compile(chain(63, "", "const uint value = 1;\n"), "k"));
  CHECK(build_error(chain(64, "", "const uint value = 1;\n"))
            .sentence()
            .find("includes are nested deeper than 64") != std::string::npos);
  CHECK(build_error(chain(40, "twice", "")).sentence().find("more than 10000 texts") != std::string::npos);
  CHECK(build_error(chain(8, "twice", std::string(1 << 20, '\n')))
            .sentence()
            .find("includes more than 4.00 MiB") != std::string::npos);
  Glsl many{.text = shader("#include \"0\"")};
  for (int i = 0; i < 1200; ++i)
    many.includes.push_back({std::to_string(i), "#include \"" + std::to_string(i + 1) + "\"\n"});
  CHECK(read_includes(many, "").size() == 1001);
  std::string hard = "#version 450\n";
  for (int i = 0; i < 300'000; ++i) hard += "#/*";
  CHECK(read_includes({.text = hard + "*/"}, "").size() == 1);
  std::string open;
  for (int i = 0; i < 100'000; ++i) open += "#include <";
  CHECK(read_includes({.text = open}, "").size() == 1);
}

#endif
