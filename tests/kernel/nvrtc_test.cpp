/// The real NVRTC: its code, its messages, its options.
#include "kernel/compilers/nvrtc.hpp"
#include "base/internals.hpp"

#include <wye/kernel/kernel.hpp>

#include <set>
#include <thread>

#include "cuda.hpp"
#include "kernel/key.hpp"
#include "kernel/program.hpp"
#include "support/compilers.hpp"
#include "support/temporary_folder.hpp"

using namespace wye;
using test::cuda_device;
using test::nvrtc;

namespace {

Result<device::Artefact> build_cuda(const CudaCpp& source, const std::string& architecture = "sm_90") {
  const auto kernel = Kernel<ReadWrite<float>, float>::make({.name = "scale", .sources = {source}});
  if (!kernel) return kernel.error();
  return base::program_of(*kernel)->build(*cuda_device(architecture));
}

Error refused_cuda(const CudaCpp& source) {
  auto built = build_cuda(source);
  REQUIRE_FALSE(built);
  return built.error();
}

Digest cuda_key(const CudaCpp& source, const std::string& architecture = "sm_90") {
  const auto kernel = Kernel<ReadWrite<float>, float>::make({.name = "scale", .sources = {source}});
  REQUIRE(kernel);
  return base::program_of(*kernel)->key(*cuda_device(architecture)).value();
}

std::string with(const std::string& before) { return before + "\n" + test::scale_cu; }

}  // namespace

TEST_CASE("CUDA C++ becomes machine code for each architecture", "[kernel]") {
  const auto compiler = nvrtc();
  if (!compiler) return;
  const auto kernels = [] {
    std::vector<AnyKernel> all;
    all.push_back(
        Kernel<ReadWrite<float>, float>::make({.name = "scale", .sources = {CudaCpp{.text = test::scale_cu}}})
            .value());
    all.push_back(
        Kernel<Read<float>, Read<float>, Write<float>, std::uint32_t>::make(
            {.name = "matmul", .sources = {CudaCpp{.text = test::matmul_cu, .workgroup = Extent3(16, 16)}}})
            .value());
    all.push_back(
        Kernel<Read<float>, Write<float>, std::uint32_t>::make(
            {.name = "softmax",
             .sources = {CudaCpp{.text = test::softmax_cu, .workgroup = Extent3(32), .tile = Extent3(1)}}})
            .value());
    return all;
  }();
  for (const unsigned number : {75u, 80u, 86u, 89u, 90u, 100u, 120u}) {
    const kernel::Architecture architecture{number, 0};
    INFO(to_string(architecture));
    if (!compiler->knows(architecture)) {
      test::skip(std::string(compiler->name()) + " does not know " + to_string(architecture));
      continue;
    }
    const auto device = cuda_device(to_string(architecture));
    for (const AnyKernel& kernel : kernels) {
      INFO(kernel.name());
      const auto built = base::program_of(kernel)->build(*device);
      if (!built) FAIL(built.error().describe());
      CHECK(built->language == "cubin");
      CHECK(built->entry == kernel.name());
      CHECK(built->key == base::program_of(kernel)->key(*device).value());
      CHECK(base::program_of(kernel)->storable(*device));
      CHECK(kernel::cubin_architecture(built->code).value() == architecture);
    }
    const auto scale = base::program_of(kernels[0])->build(*device);
    using Way = device::Passing::Kind;
    CHECK(scale->passing == std::vector<device::Passing>{{Way::span, 0, 0}, {Way::bytes, 0, 16}});
    CHECK(scale->parameter_bytes == 20);
    CHECK(scale->workgroup == Extent3(256));
    CHECK(scale->tile == Extent3(256));
    const auto matmul = base::program_of(kernels[1])->build(*device);
    CHECK(matmul->passing ==
          std::vector<device::Passing>{
              {Way::address, 0, 0}, {Way::address, 0, 8}, {Way::address, 0, 16}, {Way::bytes, 0, 24}});
    CHECK(matmul->parameter_bytes == 28);
    CHECK(matmul->workgroup == Extent3(16, 16));
    const auto softmax = base::program_of(kernels[2])->build(*device);
    CHECK(softmax->parameter_bytes == 36);
    CHECK(softmax->tile == Extent3(1));
  }
}

TEST_CASE("errors of CUDA C++ have columns, and its standard is chosen", "[kernel]") {
  if (!nvrtc()) return;
  const auto built = build_cuda({.text = "extern \"C\" __global__ void scale(wye_span<float> x, float s) {\n "
                                         " int y = 1;\n\n\tx[0] = foo + s; }"},
                                "sm_90");
  REQUIRE_FALSE(built);
  REQUIRE_FALSE(built.error().diagnostics().empty());
  CHECK(built.error().diagnostics()[0].line == 4);
  CHECK(built.error().diagnostics()[0].column == 9);
  CudaCpp newer{.text =
                    "extern \"C\" __global__ void scale(wye_span<float> x, float s) {\n"
                    "  static_assert(__cplusplus >= 202002L); x[0] = s; }"};
  CHECK_FALSE(build_cuda(newer, "sm_90"));
  newer.standard = 20;
  CHECK(build_cuda(newer, "sm_90"));
  newer.standard = 3;
  const auto made = Kernel<ReadWrite<float>, float>::make({.name = "scale", .sources = {newer}});
  REQUIRE_FALSE(made);
  CHECK(made.error().sentence() ==
        "The C++ standard of kernel 'scale' (3) is unknown; valid standards begin at 11.");
  newer.standard = 40;
  const auto unknown = build_cuda(newer, "sm_90");
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error() == Errc::compile_failed);
}

TEST_CASE("the argument block of CUDA is that of a shader's push constants", "[kernel]") {
  if (!nvrtc() || !test::has_glsl()) return;
  struct Particle {
    float position[3];
    float mass;
  };
  const auto kernel = Kernel<ReadWrite<float>, float, Particle, double>::make(
      {.name = "k",
       .sources = {Glsl{.text = R"(#version 450
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 64) in;
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Floats { float at[]; };
struct Span { Floats data; uvec2 count; };
struct Particle { float x; float y; float z; float mass; };
layout(push_constant) uniform P { Span x; float s; Particle p; double d; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < x.count.x) x.data.at[i] *= s + p.mass + float(d); })"},
                   CudaCpp{.text = R"(struct Particle { float position[3]; float mass; };
extern "C" __global__ void k(wye_span<float> x, float s, Particle p, double d) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < x.size) x[i] *= s + p.mass + (float)d;
})"}}});
  REQUIRE(kernel);
  test::DoubleDevice vulkan("vulkan:0", {"spirv"}, {Feature::float64});
  const auto shader = base::program_of(*kernel)->build(vulkan);
  if (!shader) FAIL(shader.error().describe());
  const auto cubin = base::program_of(*kernel)->build(*cuda_device("sm_90"));
  if (!cubin) FAIL(cubin.error().describe());
  CHECK(cubin->passing == shader->passing);
  CHECK(cubin->parameter_bytes == shader->parameter_bytes);
}

TEST_CASE("an architecture newer than the compiler gets PTX, an older one a reason", "[kernel]") {
  const auto compiler = nvrtc();
  if (!compiler) return;
  const auto newer = build_cuda({.text = test::scale_cu}, "sm_199");
  if (!newer) FAIL(newer.error().describe());
  CHECK(newer->language == "ptx");
  REQUIRE(!newer->code.empty());
  CHECK(newer->code.back() == std::byte{0});
  const std::string_view text(reinterpret_cast<const char*>(newer->code.data()), newer->code.size() - 1);
  const auto read = kernel::reflect_ptx(text, "scale");
  REQUIRE(read);
  CHECK(read->architecture.number == compiler->architectures().back());
  CHECK(newer->passing[1].offset == 16);
  CHECK(newer->parameter_bytes == 20);

  const auto older = build_cuda({.text = test::scale_cu}, "sm_35");
  REQUIRE_FALSE(older);
  CHECK(older.error() == Errc::unsupported);
  CHECK(older.error().sentence().find(compiler->name() + " generates machine code for sm_") !=
        std::string::npos);
  const auto none = build_cuda({.text = test::scale_cu}, "gfx1100");
  CHECK(none.error().sentence().find("its architecture ('gfx1100') is not a CUDA architecture") !=
        std::string::npos);
}

TEST_CASE("errors in CUDA C++ are reported with file and line", "[kernel]") {
  if (!nvrtc()) return;
  const CudaCpp source{.text =
                           "extern \"C\" __global__ void scale(wye_span<float> x, float s) {\n  int unused;\n"
                           "  foo();\n  x[0] = \"a\";\n}\n",
                       .file = "kernels/mine.cu"};
  const Error error = refused_cuda(source);
  CHECK(error.code() == Errc::compile_failed);
  CHECK(error.sentence() ==
        "Kernel 'scale' does not compile: kernels/mine.cu:3:3: identifier \"foo\" is undefined.");
  REQUIRE(error.diagnostics().size() == 2);
  CHECK(error.diagnostics()[0] ==
        Diagnostic{
            .file = "kernels/mine.cu", .line = 3, .column = 3, .text = "identifier \"foo\" is undefined"});
  CHECK(error.diagnostics()[1].line == 4);
  REQUIRE(error.context().size() == 1);
  CHECK(error.context()[0].starts_with("kernels/mine.cu:4:"));

  CHECK(refused_cuda({.text = "void f("})
            .sentence()
            .starts_with("Kernel 'scale' does not compile: scale.cu:1:"));
  // Messages of the linker and the assembler have no line in the source.
  const Error linked = refused_cuda(
      {.text =
           "extern \"C\" __device__ void g();\nextern \"C\" __global__ void scale(wye_span<float> x, float) "
           "{ g(); }"});
  CHECK(linked.sentence() ==
        "Kernel 'scale' does not compile: scale.cu: ptxas: Unresolved extern function 'g'.");
  const Error assembled = refused_cuda(
      {.text =
           "extern \"C\" __global__ void scale(wye_span<float> x, float) { asm volatile(\"foo.bar 3;\"); }"});
  CHECK(assembled.code() == Errc::compile_failed);
  // The text of a line does not decide its kind.
  const Error several = refused_cuda({.text = "#warning no error: this\n#error a warning: that\n"});
  REQUIRE(several.diagnostics().size() == 1);
  CHECK(several.diagnostics()[0].line == 2);
  CHECK(several.diagnostics()[0].text == "#error directive: a warning: that");
}

TEST_CASE("errors in includes and macros are reported at their place", "[kernel]") {
  if (!nvrtc()) return;
  const TemporaryFolder folder;
  folder.put("lib/a.cuh", "#include \"b.cuh\"\n");
  folder.put("lib/b.cuh", "#pragma once\n\n__device__ int f() { return gone; }\n");
  CudaCpp source{.text = with("#include \"lib/a.cuh\"\n#include <lib/b.cuh>"),
                 .include_directories = {folder.path()}};
  CHECK(refused_cuda(source).diagnostics()[0] == Diagnostic{.file = folder / "lib/b.cuh",
                                                            .line = 3,
                                                            .column = 29,
                                                            .text = "identifier \"gone\" is undefined"});
  source.macros = {{"gone", "1"}};
  CHECK(build_cuda(source));
  CHECK(refused_cuda({.text = test::scale_cu, .macros = {{"defined", "1"}}}).diagnostics()[0].line == 0);
}

TEST_CASE("a missing include is reported with the search path, if the compiler reaches it", "[kernel]") {
  const auto compiler = nvrtc();
  if (!compiler) return;
  CudaCpp source{.text = "\n#include \"gone.cuh\" // it is not there\n", .include_directories = {"/nowhere"}};
  const Error error = refused_cuda(source);
  REQUIRE(error.diagnostics().size() == 1);
  CHECK(error.diagnostics()[0].line == 2);
  CHECK(error.diagnostics()[0].text ==
        "'gone.cuh' cannot be included: it does not exist (searched '/nowhere')");
  source.text = with("#if 0\n#include \"gone.cuh\"\n#endif\n/* #include <this.h> */");
  CHECK(build_cuda(source));
  // No file is read that is not part of the key.
  const TemporaryFolder folder;
  const std::string there = folder.put("there.cuh", "");
  CHECK(refused_cuda({.text = with("#include \"" + there + "\"")})
            .diagnostics()[0]
            .text.find("absolute names") != std::string::npos);
  CHECK(refused_cuda({.text = with("#define THERE \"" + there + "\"\n# include THERE")})
            .diagnostics()[0]
            .text == "the form of this #include is not supported");
  CHECK(refused_cuda({.text = with("#inc\\\nlude \\\n \"" + there + "\"")})
            .diagnostics()[0]
            .text.find("absolute names") != std::string::npos);
}

TEST_CASE("includes may be nested, called alike, and include each other", "[kernel]") {
  if (!nvrtc()) return;
  const CudaCpp source{
      .text = with("#include \"one/a.cuh\"\n#include <two/a.cuh>\n#include \"c.cuh\"\n"
                   "static_assert(one == 1 && two == 2 && three == 3, \"\");"),
      .includes = {
          {"one/a.cuh", "#include \"value.cuh\"\n__device__ const int one = VALUE;\n#undef VALUE\n"},
          {"one/value.cuh", "#define VALUE 1\n"},
          {"two/a.cuh", "#include \"value.cuh\"\n__device__ const int two = VALUE;\n#undef VALUE\n"},
          {"two/value.cuh", "#define VALUE 2\n"},
          {"c.cuh", "#ifndef C\n#define C\n#include \"c.cuh\"\nconstexpr int three = 3;\n#endif\n"}}};
  const auto built = build_cuda(source);
  if (!built) FAIL(built.error().describe());
}

TEST_CASE("headers of the toolkit are found beside NVRTC", "[kernel]") {
  const auto compiler = nvrtc();
  if (!compiler) return;
  if (compiler->headers(kernel::read_includes(kernel::IncludePlaces(CudaCpp{.text = test::half_cu}), ""))
          .empty()) {
    return test::skip("the toolkit of " + std::string(compiler->name()) + " has no cuda_fp16.h");
  }
  struct Half {
    std::uint16_t bits;
  };
  const auto kernel = Kernel<ReadWrite<Half>, float>::make(
      {.name = "half_scale", .sources = {CudaCpp{.text = test::half_cu}}});
  const auto device = cuda_device("sm_90");
  const auto built = base::program_of(*kernel)->build(*device);
  if (!built) FAIL(built.error().describe());
  CHECK(built->language == "cubin");
  // The application's own header of that name comes first, and gives another key.
  const CudaCpp own{
      .text = test::half_cu,
      .includes = {{"cuda_fp16.h",
                    "struct __half { unsigned short bits; };\n__device__ __half __hmul(__half a, "
                    "__half) { return a; }\n__device__ __half __float2half(float) { return {}; }\n"}}};
  const auto shadowed = Kernel<ReadWrite<Half>, float>::make({.name = "half_scale", .sources = {own}});
  CHECK(base::program_of(*shadowed)->build(*device));
  CHECK(base::program_of(*shadowed)->key(*device).value() != built->key);
}

TEST_CASE("features outside of the minimal language are compiled", "[kernel]") {
  if (!nvrtc()) return;
  const auto built = build_cuda(
      {.text = with("__device__ float read(cudaTextureObject_t t) { return tex1D<float>(t, 0.0f); }")});
  if (!built) FAIL(built.error().describe());
}

TEST_CASE("options of CUDA C++ act, and are part of the key", "[kernel]") {
  if (!nvrtc()) return;
  const std::string text = R"(extern "C" __global__ void scale(wye_span<float> x, float s) {
  extern __shared__ float part[];
  part[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = part[threadIdx.x ^ 1] / s + sinf(s);
})";
  const CudaCpp plain{.text = text};
  const auto exact = build_cuda(plain);
  REQUIRE(exact);
  CHECK(exact->dynamic_shared == 0);
  CudaCpp fast = plain;
  fast.fast_math = true;
  CHECK(build_cuda(fast)->code.size() < exact->code.size());
  CudaCpp shared = plain;
  shared.dynamic_shared = Bytes{4096};
  CHECK(build_cuda(shared)->dynamic_shared == 4096);
  CudaCpp few = plain;
  few.max_registers = 16;
  CHECK(build_cuda(few)->code != exact->code);
  CudaCpp wide = plain;
  wide.workgroup = Extent3(64, 2);
  CHECK(build_cuda(wide)->workgroup == Extent3(64, 2));
  const std::set<Digest> keys{cuda_key(plain), cuda_key(fast), cuda_key(shared), cuda_key(few),
                              cuda_key(wide)};
  CHECK(keys.size() == 5);
}

TEST_CASE("the block of CUDA C++ comes from the code", "[kernel]") {
  if (!nvrtc()) return;
  const auto bounded = [](const std::string& bounds, std::optional<Extent3> workgroup = std::nullopt) {
    return build_cuda({.text = "extern \"C\" __global__ void " + bounds +
                               " scale(wye_span<float> x, float s) { x[0] = s; }",
                       .workgroup = workgroup});
  };
  CHECK(bounded("")->workgroup == Extent3(256));
  CHECK(bounded("__launch_bounds__(1024)")->workgroup == Extent3(256));
  CHECK(bounded("__launch_bounds__(96)")->workgroup == Extent3(96));
  CHECK(bounded("__launch_bounds__(96)", Extent3(32, 2))->workgroup == Extent3(32, 2));
  CHECK(bounded("__launch_bounds__(96)", Extent3(128)).error().sentence() ==
        "The workgroup of kernel 'scale' (128 x 1 x 1) exceeds the limit of its code (96 threads).");
}

TEST_CASE("the key of CUDA C++ is of content, target and compiler", "[kernel]") {
  if (!nvrtc()) return;
  const CudaCpp plain{.text = test::scale_cu};
  CHECK(cuda_key(plain) == cuda_key({.text = test::scale_cu, .file = "/home/me/x.cu"}));
  CHECK(cuda_key(plain) != cuda_key({.text = with("")}));
  CHECK(cuda_key(plain) != cuda_key(plain, "sm_80"));
  CHECK(cuda_key(plain, "sm_199") == cuda_key(plain, "sm_198"));  // the same PTX
  CHECK(cuda_key({.text = test::scale_cu, .macros = {{"A", "1"}, {"B", "2"}}}) ==
        cuda_key({.text = test::scale_cu, .macros = {{"B", "2"}, {"A", "1"}}}));
  CHECK(cuda_key(plain) != cuda_key({.text = test::scale_cu, .macros = {{"A", "1"}}}));
  const std::string including = with("#include \"a.cuh\"");
  const Digest one = cuda_key({.text = including, .includes = {{"a.cuh", "// one"}}});
  CHECK(one != cuda_key({.text = including, .includes = {{"a.cuh", "// two"}}}));
  const TemporaryFolder folder;
  folder.put("far/a.cuh", "// one");
  CHECK(one == cuda_key({.text = including, .include_directories = {folder / "far"}}));
}

TEST_CASE("the order of macros does not reach the code", "[kernel]") {
  if (!nvrtc()) return;
  const std::string text = with("__device__ int f() { return A + B; }");
  CHECK(build_cuda({.text = text, .macros = {{"A", "1"}, {"B", "2"}}})->code ==
        build_cuda({.text = text, .macros = {{"B", "2"}, {"A", "1"}}})->code);
}

TEST_CASE("the same source gives the same code wherever it is", "[kernel]") {
  if (!nvrtc()) return;
  const TemporaryFolder one, two;
  const std::string text = with("#include \"a.cuh\"\n__device__ const char* where() { return __FILE__; }");
  one.put("a.cuh", "__device__ const char* name = __FILE__;\n");
  two.put("b/a.cuh", "__device__ const char* name = __FILE__;\n");
  const auto here = build_cuda({.text = text, .file = "x/one.cu", .include_directories = {one.path()}});
  const auto there = build_cuda({.text = text, .file = "two.cu", .include_directories = {two / "b"}});
  REQUIRE(here);
  REQUIRE(there);
  CHECK(here->code == there->code);
  CHECK(here->key == there->key);
}

TEST_CASE("CUDA C++ that disagrees with the parameters is refused when it is built", "[kernel]") {
  if (!nvrtc()) return;
  struct Particle {
    float position[3];
  };
  const auto disagreeing = [](const std::string& parameters) {
    const auto kernel = Kernel<ReadWrite<float>, Particle>::make(
        {.name = "k",
         .sources = {CudaCpp{.text = "struct P { float4 a; };\nextern \"C\" __global__ void k(" + parameters +
                                     ") {}"}},
         .parameters = {"x", "p"}});
    const auto built = base::program_of(*kernel)->build(*cuda_device("sm_90"));
    return built ? std::string("agrees") : built.error().sentence();
  };
  CHECK(disagreeing("wye_span<float> x, float3 p") == "agrees");
  CHECK(disagreeing("wye_span<float> x, P p") ==
        "Parameter 2 'p' of kernel 'k' is declared as struct of 12 bytes, but parameter 2 (offset 16) of its "
        "source has 16 bytes; the declared struct has float32 at 0, 4, 8.");
  CHECK(disagreeing("wye_span<float> x, float2 p") ==
        "Parameter 2 'p' of kernel 'k' is declared as struct of 12 bytes, but parameter 2 (offset 16) of its "
        "source has 8 bytes; the declared struct has float32 at 0, 4, 8.");
  CHECK(
      disagreeing("int x, float3 p") ==
      "Parameter 1 'x' of kernel 'k' is declared as read_write buffer of float32, but parameter 1 (offset 0) "
      "of its source has 4 bytes.");
  CHECK(disagreeing("wye_span<float> x") ==
        "Parameter 2 'p' of kernel 'k' is declared as struct of 12 bytes, but its source has only 1 "
        "parameter.");
  CHECK(disagreeing("wye_span<float> x, float3 p, int n") ==
        "The source of kernel 'k' has a parameter 3 (4 bytes), for which no parameter is declared (2 "
        "declared).");
}

TEST_CASE("a missing entry point is reported with the existing ones", "[kernel]") {
  if (!nvrtc()) return;
  CHECK(
      refused_cuda({.text = "__global__ void scale(wye_span<float> x, float s) { x[0] = s; }"}).sentence() ==
      "The code has no kernel 'scale' (it has '_Z5scale8wye_spanIfEf'), because its function is not declared "
      "extern \"C\".");
  const std::string two =
      "extern \"C\" __global__ void one(wye_span<float> x, float s) { x[0] = s; }\n"
      "extern \"C\" __global__ void two(wye_span<float> x, float s) { x[1] = s; }\n";
  const std::string sentence = refused_cuda({.text = two}).sentence();
  CHECK(sentence.find("no kernel 'scale'") != std::string::npos);
  CHECK(sentence.find("'one'") != std::string::npos);
  CHECK(sentence.find("'two'") != std::string::npos);
  CHECK(refused_cuda({.text = "int x;"}).code() == Errc::compile_failed);
  CHECK(refused_cuda({.text = "__device__ int f() { return 1; }"}).sentence() == "The code has no kernel.");
  CHECK(build_cuda({.text = two, .entry = "two"})->entry == "two");
}

TEST_CASE("CUDA C++ compiles on several threads at once", "[kernel]") {
  if (!nvrtc()) return;
  const auto one = build_cuda({.text = test::scale_cu});
  REQUIRE(one);
  std::vector<std::vector<std::byte>> codes(4);
  std::vector<std::thread> threads;
  for (auto& code : codes)
    threads.emplace_back([&] {
      auto built = build_cuda({.text = test::scale_cu});
      if (built) code = built->code;
    });
  for (auto& thread : threads) thread.join();
  for (const auto& code : codes) CHECK(code == one->code);
}

TEST_CASE("the compiler has a build id", "[kernel]") {
  const auto compiler = nvrtc();
  if (!compiler) return;
  CHECK(compiler->name().starts_with("NVRTC "));
  CHECK(compiler->build_id().find("Cuda compilation tools, release ") != std::string::npos);
  // 13.0.88 and 13.0.96 differ in this only.
  CHECK(std::count(compiler->name().begin(), compiler->name().end(), '.') == 2);
  CHECK(std::is_sorted(compiler->architectures().begin(), compiler->architectures().end()));
  CHECK(kernel::CudaCompiler::share().value() == compiler);
}

TEST_CASE("without NVRTC, a kernel with only CUDA C++ reports that", "[kernel]") {
  auto shared = kernel::CudaCompiler::share();
  if (shared) return;
  const auto built = build_cuda({.text = test::scale_cu});
  REQUIRE_FALSE(built);
  CHECK(built.error().sentence().find("needs native, Cubin, CudaCpp, Slang or Ptx): ") != std::string::npos);
  CHECK((shared.error() == Errc::unavailable || shared.error() == Errc::unsupported));
}
