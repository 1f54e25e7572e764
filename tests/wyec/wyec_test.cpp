/// wyec as it is run by build systems.
#include <sys/wait.h>
#include <wye/kernel/compile.hpp>
#include <wye/wye.hpp>

#include <cstdio>
#include <string>
#include <vector>

#if __has_include(<app/cuda/scale.hpp>)
#include <app/cuda/scale.hpp>
#endif
#include "support/catch.hpp"
#include "support/skip.hpp"
#include "support/temporary_folder.hpp"

namespace fs = std::filesystem;

namespace {

struct Ran {
  int status = -1;
  std::string out;  ///< standard output
  std::string err;
};

Ran run(const std::vector<std::string>& arguments) {
  static const TemporaryFolder folder;
  const auto quoted = [](const std::string& text) {
    std::string safe = "'";
    for (const char c : text) safe += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return safe + "'";
  };
  std::string command = quoted(WYEC_PROGRAM);
  for (const std::string& argument : arguments) command += " " + quoted(argument);
  const int status =
      std::system((command + " >" + quoted(folder / "out") + " 2>" + quoted(folder / "err")).c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, folder.get("out"), folder.get("err")};
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

const std::string scale = R"(#version 450
layout(local_size_x = 256) in;
layout(set = 0, binding = 0) buffer X { float x[]; };
layout(push_constant) uniform P { float s; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) x[i] *= s; }
)";

}  // namespace

TEST_CASE("help and the version are no errors", "[wyec]") {
  for (const char* argument : {"--help", "-h"}) {
    const Ran ran = run({argument});
    CHECK(ran.status == 0);
    CHECK(has(ran.out, "wyec compile FILE -o OUT"));
    CHECK(ran.err.empty());
  }
  CHECK(run({"compile", "--version"}).out == "wyec " + to_string(wye::library_version()) + "\n");
}

TEST_CASE("invalid arguments give status 2 and a sentence, and have no effect", "[wyec]") {
  const TemporaryFolder folder;
  const std::string in = folder.put("a.comp", scale), out = folder / "out", spv = folder.put("a.spv", "x");
  const auto said = [&](std::vector<std::string> arguments) {
    const Ran ran = run(arguments);
    CHECK(ran.status == 2);
    CHECK(ran.out.empty());
    CHECK(ran.err.ends_with("wyec --help says what there is.\n"));
    return ran.err.substr(0, ran.err.find('\n'));
  };
  CHECK(said({}) == "wyec: Nothing is asked for.");
  CHECK(said({"link", in}) == "wyec: 'link' is not compile, reflect, embed, bundle or cache.");
  CHECK(said({"compile"}) == "wyec: There is no file to read.");
  CHECK(said({"compile", in}) == "wyec: There is no file to write: give -o.");
  CHECK(said({"compile", in, "-o"}) == "wyec: Option '-o' has no value.");
  CHECK(said({"compile", in, "-o", out, "-o", out}) == "wyec: Option '-o' is given twice.");
  CHECK(said({"compile", in, in, "-o", out}) ==
        "wyec: There are two files to read: '" + in + "' and '" + in + "'.");
  CHECK(said({"compile", in, "-o", in}) == "wyec: File '" + in + "' would be written over.");
  CHECK(said({"compile", in, "-o", out, "--depfile", out}) ==
        "wyec: File '" + out + "' would be written twice.");
  CHECK(said({"compile", in, "-o", out, "--fast"}) == "wyec: Option '--fast' is not one of compile.");
  CHECK(said({"compile", in, "-o", out, "--as", "text"}) == "wyec: Option '--as' is not one of compile.");
  CHECK(said({"compile", in, "-o", out, "--target", "dxil"}) ==
        "wyec: Target 'dxil' is unknown; valid targets are like 'spirv', 'sm_90' and 'compute_90'.");
  CHECK(said({"compile", in, "-o", out, "--language", "hlsl"}) ==
        "wyec: The value of --language ('hlsl') is not 'glsl' or 'slang' or 'spirv' or 'cuda' or 'ptx' or "
        "'cubin'.");
  CHECK(said({"compile", in, "-o", out, "--target", "sm_90", "--target", "sm_80"}) ==
        "wyec: Option '--target' is given twice.");
  CHECK(said({"embed", in, folder / "b.comp", "-o", out}) ==
        "wyec: Files '" + in + "' and '" + (folder / "b.comp") + "' are of one language.");
  CHECK(said({"embed", folder / "a.cubin", "-o", out, "--as", "text"}) ==
        "wyec: A cubin has no text to embed.");
  CHECK(said({"compile", folder / "a.txt", "-o", out}) ==
        "wyec: The language of '" + (folder / "a.txt") + "' is not known by its name: give --language.");
  CHECK(said({"compile", in, "-o", out, "-D1x=2"}) == "wyec: Macro '1x' is not an identifier.");
  CHECK(said({"compile", in, "-o", out, "-DA", "-D", "A=2"}) == "wyec: Macro 'A' is defined twice.");
  CHECK(said({"compile", spv, "-o", out, "-DA"}) ==
        "wyec: Neither macros nor include folders mean anything to SPIR-V.");
  CHECK(said({"embed", spv, "-o", out, "--as", "text"}) == "wyec: SPIR-V has no text to embed.");
  CHECK(said({"embed", in, "-o", out, "--name", "a b"}) ==
        "wyec: 'a b' cannot name a function of C++: give --name.");
  CHECK(said({"embed", folder / "double.comp", "-o", out}) ==
        "wyec: 'double' cannot name a function of C++: give --name.");
  CHECK(said({"embed", in, "-o", out, "--namespace", "a::"}) ==
        "wyec: 'a::' cannot name a namespace of C++.");
  CHECK(said({"reflect", in, "--depfile", out}) ==
        "wyec: Without a file to write, nothing can depend: give -o.");
  CHECK_FALSE(fs::exists(out));
}

TEST_CASE("a file that cannot be read gives status 1 and no output", "[wyec]") {
  const TemporaryFolder folder;
  const std::string out = folder / "out";
  const auto said = [&](const std::string& file) {
    const Ran ran = run({"compile", file, "-o", out});
    CHECK(ran.status == 1);
    CHECK_FALSE(fs::exists(out));
    return ran.err;
  };
  CHECK(said(folder / "gone.comp") ==
        "wyec: not_found: File '" + (folder / "gone.comp") + "' does not exist.\n");
  CHECK(has(said(folder.put("empty.comp", "")), "is empty"));
  CHECK(has(said(folder.put("zero.comp", std::string("#version 450\n\0", 14))), "has a zero byte in line 2"));
  CHECK(has(said(folder.put("noise.spv", "noise")), "is not SPIR-V"));
  CHECK(has(said(folder.put("noise2.spv", std::string("\x03\x02\x23\x07", 4) + std::string(40, 'x'))),
            "SPIR-V"));
  fs::create_directory(folder / "folder.comp");
  CHECK(has(said(folder / "folder.comp"), "is not a regular file"));
}

namespace {

const std::string scale_cu = R"(#include "factor.cuh"
extern "C" __global__ void scale(wye_span<float> x, float s) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < x.size) x[i] *= s * FACTOR;
}
)";

/// Returns whether CUDA C++ can be compiled. Reports a skip if not.
bool has_nvrtc() {
  const auto tried = compile(wye::CudaCpp{.text = "extern \"C\" __global__ void k() {}"}, {.name = "k"});
  if (!tried) wye::test::skip(tried.error().sentence());
  return tried.has_value();
}

}  // namespace

TEST_CASE("wyec compiles CUDA C++ to machine code and PTX", "[wyec]") {
  if (!has_nvrtc()) return;
  const TemporaryFolder folder;
  folder.put("factor.cuh", "#define FACTOR 2.0f\n");
  const std::string in = folder.put("scale.cu", scale_cu), out = folder / "out.cubin",
                    text = folder / "out.ptx";
  const Ran machine = run({"compile", in, "-o", out, "--target", "sm_90", "--depfile", folder / "out.d"});
  CHECK(machine.err.empty());
  REQUIRE(machine.status == 0);
  CHECK(has(folder.get("out.d"), "factor.cuh"));
  CHECK(wye::Cubin::from_file(out).has_value());
  CHECK(run({"compile", in, "-o", text, "--target", "compute_80"}).status == 0);
  CHECK(has(folder.get("out.ptx"), ".target sm_80"));
  // It reads its own output.
  for (const std::string& made : {out, text}) {
    const Ran said = run({"reflect", made, "--name", "scale"});
    CHECK(said.err.empty());
    CHECK(has(said.out, "\"push_bytes\": 20"));
    CHECK(has(said.out, "\"workgroup\": [256, 1, 1]"));
  }
  CHECK(has(run({"reflect", in}).out, "\"language\": \"CudaCpp\""));

  const Ran wrong =
      run({"compile", folder.put("a.cu", "void f() { foo(); }\n"), "-o", out, "--target", "sm_90"});
  CHECK(wrong.status == 1);
  CHECK(has(wrong.err, "a.cu:1:12: error: identifier \"foo\" is undefined"));
  CHECK(has(run({"compile", in, "-o", out, "--target", "spirv"}).err, "cannot be compiled for 'spirv'"));
}

TEST_CASE("wyec compiles with the NVRTC that it is given, for drivers as old as that", "[wyec]") {
  if (!has_nvrtc()) return;
  const TemporaryFolder folder;
  folder.put("factor.cuh", "#define FACTOR 2.0f\n");
  const std::string in = folder.put("scale.cu", scale_cu), out = folder / "out.ptx";
  const Ran none =
      run({"compile", in, "-o", out, "--target", "compute_75", "--nvrtc", folder / "libnvrtc.so.1"});
  CHECK(none.status == 1);
  CHECK(has(none.err, "CUDA C++ cannot be compiled, because NVRTC is not installed: "));
  CHECK(has(none.err, folder / "libnvrtc.so.1"));
  CHECK(folder.get("out.ptx").empty());
#ifdef WYE_PTX_NVRTC
  CHECK(run({"compile", in, "-o", out, "--target", "compute_75", "--nvrtc", WYE_PTX_NVRTC}).status == 0);
  CHECK(has(folder.get("out.ptx"), ".version 8.2\n"));
  const Ran newer = run({"compile", in, "-o", out, "--target", "compute_120", "--nvrtc", WYE_PTX_NVRTC});
  CHECK(newer.status == 1);
  CHECK(has(newer.err, "NVRTC 12.2.140 supports sm_50 to sm_90"));
#endif
}

TEST_CASE("wyec embeds CUDA C++ as text or for several architectures", "[wyec]") {
  if (!has_nvrtc()) return;
  const TemporaryFolder folder;
  folder.put("factor.cuh", "#define FACTOR 2.0f\n");
  const std::string in = folder.put("scale.cu", scale_cu);
  CHECK(run({"embed", in, "-o", folder / "text.hpp"}).status == 0);
  CHECK(has(folder.get("text.hpp"), "inline wye::CudaCpp scale_cuda_source()"));
  CHECK(has(folder.get("text.hpp"), "#define FACTOR 2.0f"));
  CHECK_FALSE(has(folder.get("text.hpp"), folder.path().string()));
  CHECK(run({"embed", in, "-o", folder / "code.hpp", "--target", "sm_80", "--target", "sm_90", "--target",
             "compute_90"})
            .status == 0);
  for (const char* source : {"wye::Cubin scale_sm_80_source()", "wye::Cubin scale_sm_90_source()",
                             "wye::Ptx scale_compute_90_source()"})
    CHECK(has(folder.get("code.hpp"), source));
  CHECK_FALSE(has(folder.get("code.hpp"), "FACTOR"));
}

#if WYE_WITH_GLSL

#if __has_include(<app/cuda/scale.hpp>)
TEST_CASE("wye_add_kernels compiles for several architectures, with the NVRTC that it is given", "[wyec]") {
  const auto kernel = app::cuda::scale<wye::ReadWrite<float>, float>();
  REQUIRE(kernel);
  CHECK(kernel->languages() == "Cubin, Ptx");
  CHECK(has(app::cuda::scale_compute_75_source().text, "release 12.2"));
  const auto now = app::cuda::scale_sm_80_source().bytes, then = app::cuda::scale_sm_90_source().bytes;
  CHECK(now.size() > 1000);
  CHECK(now != then);
}
#endif

TEST_CASE("files of several languages are sources of one kernel, typed by the shader", "[wyec]") {
  if (!has_nvrtc()) return;
  const TemporaryFolder folder;
  folder.put("factor.cuh", "#define FACTOR 2.0f\n");
  const std::string shader = folder.put("scale.comp", scale), cuda = folder.put("scale.cu", scale_cu);
  const Ran ran = run(
      {"embed", shader, cuda, "-o", folder / "scale.hpp", "--target", "sm_90", "--depfile", folder / "d"});
  CHECK(ran.err.empty());
  REQUIRE(ran.status == 0);
  const std::string made = folder.get("scale.hpp");
  CHECK(has(made, "using scale_kernel = wye::Kernel<wye::ReadWrite<float>, float>;"));
  CHECK(has(made, "others.push_back(scale_source());\n  others.push_back(scale_sm_90_source());"));
  for (const char* file : {"scale.comp", "scale.cu", "factor.cuh"}) CHECK(has(folder.get("d"), file));
}

TEST_CASE("wyec compiles GLSL to the SPIR-V that wye makes of it", "[wyec]") {
  const TemporaryFolder folder;
  const std::string in = folder.put("scale.comp", scale), out = folder / "scale.spv";
  const Ran ran = run({"compile", in, "-o", out});
  CHECK(ran.err.empty());
  REQUIRE(ran.status == 0);
  const auto here = compile(wye::Glsl{.text = scale});
  REQUIRE(here);
  CHECK(wye::SpirV::from_file(out)->words == here->spirv.words);
  // It reads its own output and leaves it unchanged.
  CHECK(run({"compile", out, "-o", folder / "again.spv"}).status == 0);
  CHECK(folder.get("again.spv") == folder.get("scale.spv"));
  CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 3);
}

TEST_CASE("errors have the format that editors read, one in each line", "[wyec]") {
  const TemporaryFolder folder;
  const std::string in =
      folder.put("a.comp", "#version 450\nvoid main() { foo = 1;\n  float y = bar(3);\n}\n");
  const Ran ran = run({"compile", in, "-o", folder / "out", "--depfile", folder / "out.d"});
  CHECK(ran.status == 1);
  CHECK(ran.err == in + ":2:15: error: 'foo' : undeclared identifier\n" + in +
                       ":3:13: error: 'bar' : no matching overloaded function found\n");
  CHECK_FALSE(fs::exists(folder / "out"));
  CHECK_FALSE(fs::exists(folder / "out.d"));

  const std::string lacking =
      folder.put("b.comp", "#version 450\n\n#include \"gone.glsl\"\nvoid main() {}\n");
  const Ran missing = run({"compile", lacking, "-I", "/nowhere", "-o", folder / "out"});
  CHECK(missing.status == 1);
  CHECK(has(missing.err, lacking +
                             ":3: error: 'gone.glsl' cannot be included: it does not exist (searched '" +
                             folder.path().string() + "', '/nowhere')\n"));
}

TEST_CASE("macros, folders and the entry point reach the compiler", "[wyec]") {
  const TemporaryFolder folder;
  const std::string in = folder.put("a.comp",
                                    "#version 450\n#include \"n.glsl\"\n#ifdef B\n#error b is B\n#endif\n"
                                    "layout(set = 0, binding = 0) buffer X { uint x[]; };\n"
                                    "void go() { x[0] = N + A; }\n");
  folder.put("far off/n.glsl", "#define N 3\n");
  const std::string out = folder / "out";
  CHECK(run({"compile", in, "-o", out, "-DA", "-I", folder / "far off", "--entry", "go"}).status == 0);
  CHECK(
      run({"compile", in, "-o", out, "-D", "A=x[1]", "-I" + (folder / "far off"), "--entry", "go"}).status ==
      0);
  CHECK(has(run({"compile", in, "-o", out, "-DA", "-DB=2", "-I", folder / "far off"}).err, "b is B"));
  CHECK(has(run({"compile", in, "-o", out, "-DA", "-I", folder / "far off", "--entry", "gone"}).err,
            "there is no function 'gone'"));
}

TEST_CASE("the depfile names the source and all it includes, escaped", "[wyec]") {
  const TemporaryFolder folder;
  const std::string in = folder.put("a.comp", "#version 450\n#include \"b c.glsl\"\n" + scale.substr(13));
  folder.put("b c.glsl", "#include \"$d#.glsl\"\n");
  folder.put("$d#.glsl", "\n");
  REQUIRE(run({"compile", in, "-o", folder / "out", "--depfile", folder / "out.d"}).status == 0);
  CHECK(folder.get("out.d") == (folder / "out") + ": \\\n  " + in + " \\\n  " + (folder / "b\\ c.glsl") +
                                   " \\\n  " + (folder / "$$d\\#.glsl") + "\n");
}

TEST_CASE("reflection prints the parameters of a kernel as JSON", "[wyec]") {
  const TemporaryFolder folder;
  const std::string in = folder.put("scale.comp", scale);
  const std::string expected = R"({
  "kernel": "scale",
  "language": "Glsl",
  "entry": "main",
  "parameters": [
    {"name": "x", "kind": "buffer", "access": "read_write", "element": "float32", "size": 4, "binding": 0},
    {"name": "s", "kind": "scalar", "element": "float32", "size": 4, "offset": 0}
  ],
  "push_bytes": 4,
  "workgroup": [256, 1, 1],
  "features": []
}
)";
  CHECK(run({"reflect", in}).out == expected);
  REQUIRE(run({"reflect", in, "-o", folder / "out.json"}).status == 0);
  CHECK(folder.get("out.json") == expected);
  const std::string none = folder.put("none.comp", "#version 450\nvoid main() { double d = 2.0lf; }\n");
  CHECK(has(run({"reflect", none, "--name", "\"\\"}).out, "\"kernel\": \"\\\"\\\\\",\n"));
  CHECK(has(run({"reflect", none}).out, "\"parameters\": [],\n"));
  const std::string image =
      folder.put("image.comp",
                 "#version 450\nlayout(set = 0, binding = 1, r32f) uniform image2D p;\nvoid main() { "
                 "imageStore(p, ivec2(0), vec4(1)); }\n");
  const Ran refused = run({"reflect", image});
  CHECK(refused.status == 1);
  CHECK(has(refused.err, "Binding 1 ('p') of set 0 is an image"));
}

TEST_CASE("a file that cannot be written gives status 1 and leaves nothing", "[wyec]") {
  const TemporaryFolder folder;
  const std::string in = folder.put("scale.comp", scale);
  const Ran ran = run({"compile", in, "-o", folder / "gone/out.spv"});
  CHECK(ran.status == 1);
  CHECK(ran.err ==
        "wyec: File '" + (folder / "gone/out.spv") + "' cannot be written: No such file or directory.\n");
  fs::create_directory(folder / "taken");
  CHECK(run({"compile", in, "-o", folder / "taken"}).status == 1);
  // A path that is no regular file is not replaced.
  fs::create_symlink("/dev/full", folder / "full");
  const Ran full = run({"reflect", in, "-o", folder / "full"});
  CHECK(full.status == 1);
  CHECK(has(full.err, "No space left on device"));
  CHECK(fs::is_symlink(folder / "full"));
  CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 3);
}

TEST_CASE("an embedded kernel is a header of words, or of text with its includes", "[wyec]") {
  const TemporaryFolder folder;
  const std::string in = folder.put(
      "scale.comp", "#version 450\n#include \"lib/a.glsl\"\n" + scale.substr(13) + "// \"?\\ \xc3\xa4\n");
  folder.put("lib/a.glsl", "#include \"b.glsl\"\n");
  folder.put("lib/b.glsl", "// b\n");
  const std::string out = folder / "scale.hpp";
  REQUIRE(run({"embed", in, "-o", out, "--namespace", "app::gpu"}).status == 0);
  const std::string words = folder.get("scale.hpp");
  CHECK(has(words, "namespace app::gpu {"));
  CHECK(has(words, "scale_words[] = {\n    0x07230203,"));
  CHECK(has(words, "using scale_kernel = wye::Kernel<wye::ReadWrite<float>, float>;"));
  CHECK_FALSE(has(words, folder.path().string()));

  REQUIRE(run({"embed", in, "-o", out, "--as", "text", "-DN=1", "--name", "other"}).status == 0);
  const std::string text = folder.get("scale.hpp");
  CHECK(has(text, "inline wye::Glsl other_source() {"));
  CHECK(has(text, "\"lib/b.glsl\""));
  CHECK(has(text, R"("// \"\?\\ \303\244\n")"));
  CHECK_FALSE(has(text, folder.path().string()));

  // Two files of one name cannot be distinguished in memory.
  folder.put("far/lib/a.glsl", "#include \"b.glsl\"\n");
  folder.put("far/lib/b.glsl", "// another\n");
  folder.put("far/c.glsl", "#include \"lib/b.glsl\"\n");
  const std::string both =
      folder.put("both.comp", "#version 450\n#include \"lib/b.glsl\"\n#include <c.glsl>\nvoid main() {}\n");
  const Ran ran = run({"embed", both, "-I", folder / "far", "-o", out, "--as", "text"});
  CHECK(ran.status == 1);
  CHECK(has(ran.err, "Different texts are included under one name"));
}

TEST_CASE("a kernel of two million lines is refused soon, and so is a kernel that includes itself",
          "[wyec]") {
  const TemporaryFolder folder;
  std::string text = "#version 450\n";
  for (int i = 0; i < 2'000'000; ++i) text += "//\n";
  const Ran ran = run({"compile", folder.put("long.comp", text), "-o", folder / "out"});
  CHECK(ran.status == 1);
  CHECK(has(ran.err, "exceeds the limit of this read (4.00 MiB)"));
  const std::string self = folder.put("self.comp", "#version 450\n#include \"self.comp\"\nvoid main() {}\n");
  const Ran cycle = run({"compile", self, "-o", folder / "out"});
  CHECK(cycle.status == 1);
  CHECK(has(cycle.err, "includes form a cycle: '" + self + "' includes '" + self + "'"));
}

#endif

#if WYE_WITH_SLANG

namespace {

const std::string scale_slang = R"([shader("compute")] [numthreads(256, 1, 1)]
void scale(uint3 id : SV_DispatchThreadID, uniform RWStructuredBuffer<float> x, uniform float s) {
  x[id.x] *= s;
}
)";

/// Returns whether libslang is present. Reports a skip if not.
bool has_slang() {
  const TemporaryFolder folder;
  const Ran ran = run({"reflect", folder.put("a.slang", scale_slang)});
  if (ran.status != 0) wye::test::skip(ran.err);
  return ran.status == 0;
}

}  // namespace

TEST_CASE("wyec compiles and reflects Slang", "[wyec][slang]") {
  if (!has_slang()) return;
  const TemporaryFolder folder;
  const std::string in = folder.put("scale.slang", scale_slang), out = folder / "scale.spv";
  CHECK(run({"reflect", in}).out == R"({
  "kernel": "scale",
  "language": "Slang",
  "entry": "main",
  "parameters": [
    {"name": "x", "kind": "buffer", "access": "read_write", "element": "float32", "size": 4, "binding": 0},
    {"name": "s", "kind": "scalar", "element": "float32", "size": 4, "offset": 0}
  ],
  "push_bytes": 4,
  "workgroup": [256, 1, 1],
  "features": []
}
)");
  const Ran ran = run({"compile", in, "-o", out});
  CHECK(ran.err.empty());
  REQUIRE(ran.status == 0);
  CHECK(run({"reflect", out}).status == 0);
}

TEST_CASE("wyec compiles Slang for CUDA if NVRTC is present", "[wyec][slang]") {
  if (!has_slang()) return;
  const TemporaryFolder folder;
  const std::string in = folder.put("scale.slang", scale_slang), out = folder / "scale.ptx";
  const Ran ran = run({"compile", in, "--target", "compute_90", "-o", out});
  if (ran.status != 0 && (has(ran.err, "unavailable") || has(ran.err, "unsupported"))) {
    return wye::test::skip(ran.err);
  }
  REQUIRE(ran.status == 0);
  CHECK(has(folder.get("scale.ptx"), ".entry scale("));
  CHECK(
      run({"embed", in, "--target", "spirv", "--target", "compute_90", "-o", folder / "scale.hpp"}).status ==
      0);
  CHECK(has(folder.get("scale.hpp"),
            "others.push_back(scale_source());\n  others.push_back(scale_compute_90_source());"));
}

TEST_CASE("errors, imports, macros and depfiles of Slang are as those of GLSL", "[wyec][slang]") {
  if (!has_slang()) return;
  const TemporaryFolder folder;
  folder.put("far/m.slang", "public float m() { return 2; }\n");
  const std::string in = folder.put("a.slang", "import m;\n" + scale_slang + "float f() { return N; }\n");
  const std::string out = folder / "out";
  CHECK(run({"compile", in, "-I", folder / "far", "-DN", "-o", out, "--depfile", folder / "out.d"}).status ==
        0);
  CHECK(folder.get("out.d") == out + ": \\\n  " + in + " \\\n  " + (folder / "far/m.slang") + "\n");
  CHECK(run({"compile", in, "-I", folder / "far", "-o", out}).err ==
        in + ":6:20: error: undefined identifier 'N'\n");
  CHECK(run({"compile", in, "-DN", "-o", out}).err ==
        in + ":1:8: error: 'm.slang' cannot be included: it does not exist (searched '" +
            folder.path().string() + "')\n");
  CHECK(has(run({"compile", in, "-I", folder / "far", "-DN", "-o", out, "--entry", "gone"}).err, "'gone'"));
}

TEST_CASE("Slang is embedded as words, or as text with its imports", "[wyec][slang]") {
  if (!has_slang()) return;
  const TemporaryFolder folder;
  folder.put("lib/m.slang", "public float m() { return 2; }\n");
  const std::string in = folder.put("scale.slang", "import lib.m;\n" + scale_slang),
                    out = folder / "scale.hpp";
  REQUIRE(run({"embed", in, "-o", out}).status == 0);
  CHECK(has(folder.get("scale.hpp"), "scale_words[] = {\n    0x07230203,"));
  CHECK(has(folder.get("scale.hpp"), "using scale_kernel = wye::Kernel<wye::ReadWrite<float>, float>;"));
  REQUIRE(run({"embed", in, "-o", out, "--as", "text"}).status == 0);
  CHECK(has(folder.get("scale.hpp"), "inline wye::Slang scale_source() {"));
  CHECK(has(folder.get("scale.hpp"), "source.includes.push_back({\"lib/m.slang\","));
  CHECK_FALSE(has(folder.get("scale.hpp"), folder.path().string()));
}

#endif

TEST_CASE("without its compiler, Slang gives status 1 and the reason", "[wyec][slang]") {
  const TemporaryFolder folder;
  const std::string in = folder.put("a.slang", "x"), err = folder / "err";
  // The command of a user without Slang on the loader's path. If Slang is installed, the source is
  // at fault.
  const int status =
      std::system(("env -u LD_LIBRARY_PATH '" WYEC_PROGRAM "' reflect '" + in + "' 2>'" + err + "'").c_str());
  CHECK(WEXITSTATUS(status) == 1);
  const std::string said = folder.get("err");
  CHECK((has(said, "wyec: unavailable: Library 'libslang-compiler.so' cannot be opened") ||
         has(said, "wyec: unsupported: This build of wye has no Slang compiler.") || has(said, in + ":1:")));
}

TEST_CASE("a cache directory is listed, verified, packed, trimmed and cleared", "[wyec]") {
  const TemporaryFolder folder;
  const std::string caches = folder / "caches";
  fs::create_directory(caches);
  CHECK(has(run({"cache", "ls", caches}).out, "0 files, 0 bytes, 0 damaged, in " + caches));
  auto runtime = wye::Runtime::open({.cache = {.directory = caches}}).value();
  const auto kernel = wye::Kernel<wye::ReadWrite<float>, float>::make(
                          {.name = "scale up", .sources = {wye::Glsl{.text = scale}}})
                          .value();
  std::size_t devices = 0;
  for (const wye::Device& device : runtime.devices())
    if (runtime.cache().find_or_build(kernel, device)) ++devices;
  if (devices == 0) return;  // nothing here compiles
  REQUIRE(runtime.cache().manifest().write(folder / "kernels.manifest"));
  const Ran listed = run({"cache", "ls", caches});
  CHECK(listed.status == 0);
  CHECK(has(listed.out, "scale up (spirv)"));
  CHECK(has(listed.out, "0 damaged, in " + caches));
  CHECK(run({"cache", "verify", caches}).status == 0);

  const Ran packed =
      run({"bundle", caches, "-o", folder / "kernels.bundle", "--manifest", folder / "kernels.manifest"});
  CHECK(packed.status == 0);
  CHECK(packed.out == "1 kernels of " + caches + " packed into " + (folder / "kernels.bundle") + "\n");
  {
    auto shipped = wye::Runtime::open({.cache = {.bundles = {folder / "kernels.bundle"}}}).value();
    for (const wye::Device& device : shipped.devices())
      (void)shipped.cache().find_or_build(kernel, device).has_value();
    CHECK(shipped.metrics().cache.bundle_hits == devices);
    CHECK(shipped.metrics().cache.misses == 0);
  }
  const Ran lacking =
      run({"bundle", caches, "-o", folder / "b", "--manifest", folder.put("bad", "no manifest")});
  CHECK(lacking.status == 1);
  CHECK(has(lacking.err, "Manifest '" + folder / "bad" + "' is no manifest."));

  for (const auto& entry : fs::recursive_directory_iterator(caches))
    if (entry.is_regular_file() && entry.path().filename().string().size() == 64)
      fs::resize_file(entry.path(), 20);
  const Ran verified = run({"cache", "verify", caches});
  CHECK(verified.status == 1);
  CHECK(has(verified.out, "damaged "));
  CHECK(run({"cache", "trim", caches, "--bytes", "1MiB", "--files", "0"}).status == 0);
  CHECK(has(run({"cache", "ls", caches}).out, "0 files"));
  CHECK(has(run({"cache", "clear", caches}).out, "0 files removed, 0 bytes, from " + caches));
}

TEST_CASE("invalid arguments of cache commands give status 2 and a sentence", "[wyec]") {
  const auto said = [](const std::vector<std::string>& arguments) {
    const Ran ran = run(arguments);
    CHECK(ran.status == 2);
    CHECK(ran.out.empty());
    return ran.err;
  };
  CHECK(has(said({"cache"}), "'' is not ls, verify, trim or clear."));
  CHECK(has(said({"cache", "empty"}), "'empty' is not ls, verify, trim or clear."));
  CHECK(has(said({"cache", "trim", "d"}), "Nothing says what may stay: give --bytes, --files or both."));
  CHECK(
      has(said({"cache", "trim", "d", "--bytes", "12parsecs"}),
          "The value of --bytes ('12parsecs') is not a whole number of bytes such as 536870912 or 512MiB."));
  CHECK(has(said({"cache", "trim", "--files", "99999999999999999999"}), "The value of --files"));
  CHECK(has(said({"cache", "trim", "--bytes", "99999999999GiB"}), "The value of --bytes"));
  CHECK(has(said({"cache", "ls", "d", "--bytes", "1"}), "Option '--bytes' is not one of cache ls."));
  CHECK(has(said({"cache", "ls", "d", "e"}), "There are two directories: 'd' and 'e'."));
  CHECK(has(said({"bundle", "d"}), "There is no file to write: give -o."));
  CHECK(has(said({"bundle", "d", "-D", "X"}), "Option '-D' is not one of bundle."));
  const Ran nowhere = run({"cache", "clear", "/nowhere/at/all"});
  CHECK(nowhere.status == 1);
  CHECK(has(nowhere.err, "There is no directory '/nowhere/at/all'."));
  CHECK(has(run({"cache", "ls"}).err, "The user has no cache directory here"));  // WYE_CACHE_DIR=none
}
