// Sources that are nested deeper than their compilers support. None ends the process, with any
// stack of the calling thread.
#include <wye/kernel/compile.hpp>

#include <string>

#include "base/worker.hpp"
#include "support/catch.hpp"
#include "support/compilers.hpp"
#include "support/skip.hpp"

using namespace wye;

namespace {

std::string repeated(int count, const std::string& text) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

// Kernels that store `expression`, which may use `a`, on line 2; `before` comes first.

Glsl nested_glsl(const std::string& expression, const std::string& before = {}) {
  return {.text =
              "#version 450\nlayout(local_size_x = 64) in; layout(set = 0, binding = 0) buffer X { float "
              "v[]; } x;" +
              before + "\nvoid main() { float a = x.v[0]; x.v[0] = " + expression + "; }\n"};
}

CudaCpp nested_cuda(const std::string& expression, const std::string& before = {}) {
  return {.text = before + "\nextern \"C\" __global__ void k(wye_span<float> x) { float a = x[0]; x[0] = " +
                  expression + "; }\n"};
}

Slang nested_slang(const std::string& expression, const std::string& before = {}) {
  return {.text =
              before +
              "\n[shader(\"compute\")] [numthreads(64, 1, 1)] void k(uniform RWStructuredBuffer<float> x) "
              "{ float a = x[0]; x[0] = " +
              expression + "; }\n"};
}

/// Returns the error of compiling a source on a thread with a small stack. Empty if it compiles or
/// there is no compiler.
template <class Source>
std::string nested_error(Source source) {
  const auto small =
      base::on_stack(Bytes{256u << 10}, "small", [&] { return compile(source, {.name = "k"}); });
  return small || small.error() == Errc::unavailable || small.error() == Errc::unsupported
             ? std::string()
             : small.error().sentence();
}

template <class Make>
void check_nested(Make kernel, const std::string& file, int line) {
  const std::string place = "Kernel 'k' does not compile: " + file + ":" + std::to_string(line) + ": ";
  CHECK(nested_error(kernel(repeated(20'000, "(") + "a" + repeated(20'000, ")"))) ==
        place + "brackets are nested deeper than 1000.");
  CHECK(nested_error(kernel(repeated(4'000, "-(") + "a" + repeated(4'000, ")"))) ==
        place + "brackets are nested deeper than 1000.");
  CHECK(nested_error(kernel("a" + repeated(20'000, " + a"))) ==
        place + "an expression has more than 10000 parts.");
  CHECK(nested_error(kernel(repeated(20'000, "a ? a :") + "a")) ==
        place + "an expression has more than 10000 parts.");
  // Allowed nesting does not end the process, and neither do comments, statements and lines of
  // macros.
  CHECK(nested_error(kernel(repeated(400, "-(") + "a" + repeated(400, ")"))) == "");
  CHECK(nested_error(kernel("a" + repeated(4'900, " + a"))) == "");
  CHECK(nested_error(kernel("a", "/*" + repeated(5'000, "(") + "*/ // " + repeated(5'000, "("))) == "");
  CHECK(nested_error(kernel("a" + repeated(10'000, ";\na"))) == "");
  CHECK(nested_error(kernel("ONE", "\n" + repeated(5'000, "#define ONE 1.0f\n"))) == "");
}

}  // namespace

TEST_CASE("GLSL that is nested too deep is refused before it ends the process", "[kernel]") {
  check_nested([](auto... what) { return nested_glsl(what...); }, "k.comp", 3);
  // Macros make more of it than is seen: there is room for that.
  CHECK(nested_error(nested_glsl("a" + repeated(2'000, " TEN"), "\n#define TEN" + repeated(10, " +a"))) ==
        "");
}

TEST_CASE("CUDA C++ that is nested too deep is refused before it ends the process", "[kernel]") {
  const auto plain = compile(nested_cuda("a"), {.name = "k"});
  if (!plain && plain.error() == Errc::unsupported) return test::skip("this build has no CUDA C++");
  check_nested([](auto... what) { return nested_cuda(what...); }, "k.cu", 2);
}

TEST_CASE("Slang that is nested too deep is refused before it ends the process", "[kernel][slang]") {
  if (!test::has_slang()) return;
  check_nested([](auto... what) { return nested_slang(what...); }, "k.slang", 2);
}
