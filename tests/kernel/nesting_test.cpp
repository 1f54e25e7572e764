// Sources that are nested deeper than their compilers can bear: none ends the process, whatever stack the host's thread has.
#include <wye/kernel/compile.hpp>

#include <string>

#include "base/worker.hpp"
#include "support/catch.hpp"
#include "support/slang.hpp"

using namespace wye;

namespace {

std::string times(int count, const std::string& text) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

// Kernels that store `expression`, which may use `a`, on line 2; `before` comes first.

Glsl glsl(const std::string& expression, const std::string& before = {}) {
  return {.text =
              "#version 450\nlayout(local_size_x = 64) in; layout(set = 0, binding = 0) buffer X { float "
              "v[]; } x;" +
              before + "\nvoid main() { float a = x.v[0]; x.v[0] = " + expression + "; }\n"};
}

CudaCpp cuda(const std::string& expression, const std::string& before = {}) {
  return {.text = before + "\nextern \"C\" __global__ void k(wye_span<float> x) { float a = x[0]; x[0] = " +
                  expression + "; }\n"};
}

Slang slang(const std::string& expression, const std::string& before = {}) {
  return {.text =
              before +
              "\n[shader(\"compute\")] [numthreads(64, 1, 1)] void k(uniform RWStructuredBuffer<float> x) "
              "{ float a = x[0]; x[0] = " +
              expression + "; }\n"};
}

/// What becomes of a source on a thread with little stack; empty where it compiles, or where there is no compiler.
template <class Source>
std::string error_of(Source source) {
  const auto small =
      base::on_stack(Bytes{256u << 10}, "small", [&] { return compile(source, {.name = "k"}); });
  return small || small.error() == Errc::unavailable || small.error() == Errc::unsupported
             ? std::string()
             : small.error().sentence();
}

template <class Make>
void check_nesting(Make kernel, const std::string& file, int line) {
  const std::string place = "Kernel 'k' does not compile: " + file + ":" + std::to_string(line) + ": ";
  CHECK(error_of(kernel(times(20'000, "(") + "a" + times(20'000, ")"))) ==
        place + "brackets are nested deeper than 1000.");
  CHECK(error_of(kernel(times(4'000, "-(") + "a" + times(4'000, ")"))) ==
        place + "brackets are nested deeper than 1000.");
  CHECK(error_of(kernel("a" + times(20'000, " + a"))) == place + "an expression has more than 10000 parts.");
  CHECK(error_of(kernel(times(20'000, "a ? a :") + "a")) ==
        place + "an expression has more than 10000 parts.");
  // What is allowed does not end it, and neither do comments, statements and lines of macros.
  CHECK(error_of(kernel(times(400, "-(") + "a" + times(400, ")"))) == "");
  CHECK(error_of(kernel("a" + times(4'900, " + a"))) == "");
  CHECK(error_of(kernel("a", "/*" + times(5'000, "(") + "*/ // " + times(5'000, "("))) == "");
  CHECK(error_of(kernel("a" + times(10'000, ";\na"))) == "");
  CHECK(error_of(kernel("ONE", "\n" + times(5'000, "#define ONE 1.0f\n"))) == "");
}

}  // namespace

TEST_CASE("GLSL that is nested too deep is refused before it ends the process", "[kernel]") {
  check_nesting([](auto... what) { return glsl(what...); }, "k.comp", 3);
  // Macros make more of it than is seen: there is room for that.
  CHECK(error_of(glsl("a" + times(2'000, " TEN"), "\n#define TEN" + times(10, " +a"))) == "");
}

TEST_CASE("CUDA C++ that is nested too deep is refused before it ends the process", "[kernel]") {
  check_nesting([](auto... what) { return cuda(what...); }, "k.cu", 2);
}

TEST_CASE("Slang that is nested too deep is refused before it ends the process", "[kernel][slang]") {
  if (!test::has_slang()) return;
  check_nesting([](auto... what) { return slang(what...); }, "k.slang", 2);
}
