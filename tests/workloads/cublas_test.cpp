// Products by cuBLAS. tests/with-stand-in-cuda.sh has its stand-in found; on other machines there
// is nothing to see but why not.
#include <wye/workloads/matmul.hpp>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>

#include "support/skip.hpp"
#include "workloads/legs.hpp"
#include "workloads/stand_in.hpp"

using namespace wye;
using namespace wye::test;
namespace reference = wye::workloads::reference;

namespace {

/// The stand-in for the driver, if it has the stand-in for cuBLAS, to which it passes requests on.
std::optional<StandIn> stand_in() {
  const char* const libraries = std::getenv("LIBRARIES");
  return libraries && std::string_view(libraries) == "standin" ? stand_in_driver() : std::nullopt;
}

/// A separate runtime, because lanes keep their handles of cuBLAS.
Runtime new_runtime() { return Runtime::open().value(); }

constexpr workloads::MatmulShape small{37, 21, 50};

Result<Outcome> multiply(Runtime& runtime, std::vector<float>& c) {
  const std::vector<float> a = numbers(small.rows * small.inner, 1),
                           b = numbers(small.inner * small.columns, 2);
  c = poisoned(small.rows * small.columns);
  return runtime.submit(workloads::matmul(a, b, c, small), {.fallback = Fallback::forbid, .on = "cuda"})
      .wait();
}

void is_right(Runtime& runtime) {
  std::vector<float> c;
  const auto done = multiply(runtime, c);
  if (!done) FAIL(done.error().describe());
  const std::vector<double> exact =
      reference::matmul(numbers(small.rows * small.inner, 1), numbers(small.inner * small.columns, 2), small);
  CHECK(difference(c, exact, [](std::size_t) { return 1e-4; }) == "");
}

}  // namespace

// First in this file: the other cases open cuBLAS.
TEST_CASE("matmul opens cuBLAS on no runtime without CUDA", "[workloads][cublas]") {
  const auto is_open = [] {
    std::ifstream maps("/proc/self/maps");
    const std::string all{std::istreambuf_iterator<char>(maps), {}};
    return all.find("libcublas") != all.npos;
  };
  if (is_open()) {
    return test::skip("cuBLAS is open already");
  }
  Runtime runtime = Runtime::open({.pool = {.backends = {"cpu"}}}).value();
  const std::vector<float> a(64, 1.0f), b(64, 2.0f);
  std::vector<float> c(64);
  REQUIRE(runtime.run(workloads::matmul(a, b, c)));
  CHECK(c[0] == 16);
  const std::vector<half> narrow_a(64, half(1.0f)), narrow_b(64, half(2.0f));
  REQUIRE(runtime.run(workloads::matmul(narrow_a, narrow_b, c, {8, 8, 8}, {})));
  CHECK(c[63] == 16);
  CHECK_FALSE(is_open());
}

TEST_CASE("matmul_on_cuda returns the implementation, with the reason if it is not cuBLAS",
          "[workloads][cublas]") {
  const std::string what = workloads::matmul_on_cuda();
  if (stand_in())
    CHECK(what == "cuBLAS");
  else if (what != "cuBLAS")
    CHECK(what.find("wye's own kernel: Library 'libcublas.so.13' ") == 0);
}

TEST_CASE("cuBLAS multiplies on CUDA, with a handle for each lane that ends with it", "[workloads][cublas]") {
  const auto driver = stand_in();
  if (!driver) return test::skip("cuBLAS is not the stand-in");
  const long before = driver->calls("cublasGemmStridedBatchedEx"), made = driver->calls("cublasCreate_v2"),
             ended = driver->calls("cublasDestroy_v2");
  {
    Runtime runtime = new_runtime();
    for (int i = 0; i < 10; ++i) is_right(runtime);
    CHECK(driver->calls("cublasGemmStridedBatchedEx") == before + 10);
    CHECK(driver->calls("cublasCreate_v2") > made);
    CHECK(driver->calls("cublasCreate_v2") < made + 10);
  }
  CHECK(driver->calls("cublasCreate_v2") - made == driver->calls("cublasDestroy_v2") - ended);
}

TEST_CASE(
    "cuBLAS multiplies numbers of every kind and batches of them, bytes where they lie as it wants them",
    "[workloads][cublas]") {
  const auto driver = stand_in();
  if (!driver) return test::skip("cuBLAS is not the stand-in");
  Runtime runtime = new_runtime();
  const workloads::MatmulShape shape{6, 8, 12};
  const workloads::MatmulOptions options{.transposed_b = true, .batch = 2};
  /// How often cuBLAS is called for products of `T`; they are right.
  const auto calls = [&](auto type, auto sum, workloads::MatmulShape size, bool tf32 = false) {
    using T = decltype(type);
    std::vector<T> a, b;
    for (std::uint64_t i = 0; i < 2 * size.rows * size.inner; ++i)
      a.push_back(T(static_cast<float>(i % 7) - 3));
    for (std::uint64_t i = 0; i < 2 * size.inner * size.columns; ++i)
      b.push_back(T(static_cast<float>(i % 5) - 2));
    std::vector<decltype(sum)> c(2 * size.rows * size.columns, decltype(sum)(77.0f));
    workloads::MatmulOptions how = options;
    how.tf32 = tf32;
    const long before = driver->calls("cublasGemmStridedBatchedEx");
    const auto done =
        runtime.submit(workloads::matmul(a, b, c, size, how), {.fallback = Fallback::forbid, .on = "cuda"})
            .wait();
    if (!done) FAIL(done.error().describe());
    // Small whole numbers: everything here has them exactly.
    const auto exact = reference::matmul(a, b, size, how);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < c.size(); ++i)
      if (static_cast<double>(static_cast<float>(c[i])) != static_cast<double>(exact[i])) ++wrong;
    CHECK(wrong == 0);
    return driver->calls("cublasGemmStridedBatchedEx") - before;
  };
  CHECK(calls(float(), float(), shape) == 1);
  CHECK(calls(float(), float(), shape, true) == 1);
  CHECK(calls(half(), float(), shape) == 1);
  CHECK(calls(half(), half(), shape) == 1);
  CHECK(calls(bfloat16(), float(), shape) == 1);
  CHECK(calls(bfloat16(), bfloat16(), {5, 7, 9}) == 1);
  CHECK(calls(std::int8_t(), std::int32_t(), shape) == 1);
  CHECK(calls(std::int8_t(), std::int32_t(), {6, 8, 13}) == 0);
  CHECK(calls(std::int8_t(), std::int32_t(), {6, 6, 12}) == 0);
}

TEST_CASE("if cuBLAS fails on a device, wye's own kernel multiplies there, with the reason",
          "[workloads][cublas]") {
  const auto driver = stand_in();
  if (!driver) return test::skip("cuBLAS is not the stand-in");
  {
    Runtime runtime = new_runtime();
    std::vector<std::int8_t> a(3), b(3);  // rows that cuBLAS does not take
    std::vector<std::int32_t> c(1);
    const auto own =
        runtime.submit(workloads::matmul(a, b, c, {1, 1, 3}), {.fallback = Fallback::forbid, .on = "cuda"})
            .wait();
    if (!own && own.error() == Errc::unsupported) {
      return test::skip(own.error().sentence());
    }
  }
  struct Refusal {
    const char* function;
    int number;
    const char* sentence;
  };
  for (const Refusal& refusal :
       {Refusal{"cublasCreate_v2", 1, "cuBLAS cannot multiply on device 'cuda:0': it was not initialized."},
        Refusal{"cublasCreate_v2", 3, "cuBLAS cannot multiply on device 'cuda:0': it has no memory left."},
        Refusal{"cublasCreate_v2", 8,
                "cuBLAS cannot multiply on device 'cuda:0': it does not support this device."},
        Refusal{"cublasSetStream_v2", 7,
                "cuBLAS cannot multiply on device 'cuda:0': an argument is invalid."},
        Refusal{"cublasSetMathMode", 14,
                "cuBLAS cannot multiply on device 'cuda:0': an internal operation failed."}}) {
    INFO(refusal.function << ": " << refusal.number);
    Runtime runtime = new_runtime();
    driver->fail(refusal.function, 1, refusal.number);
    const long made = driver->calls("cublasCreate_v2"), ended = driver->calls("cublasDestroy_v2"),
               multiplied = driver->calls("cublasGemmStridedBatchedEx");
    for (int i = 0; i < 3; ++i) {
      is_right(runtime);
      std::vector<float> c;
      const auto done = multiply(runtime, c);
      if (!done) FAIL(done.error().describe());
      CHECK(done->backend() == "cuda");
      INFO(done->reason());
      CHECK(done->reason() ==
            std::string("The job requests 'cuda'. The native function of kernel 'matmul' is "
                        "not used on 'cuda:0': ") +
                refusal.sentence);
    }
    // It is tried once for all kernels that could use it.
    std::vector<half> a(6), b(6);
    std::vector<float> c(4);
    const auto other =
        runtime.submit(workloads::matmul(a, b, c, {2, 2, 3}), {.fallback = Fallback::forbid, .on = "cuda"})
            .wait();
    if (!other) FAIL(other.error().describe());
    CHECK(other->reason().find(refusal.sentence) != std::string::npos);
    CHECK(driver->calls("cublasCreate_v2") - made == 1);
    CHECK(driver->calls("cublasDestroy_v2") - ended == (refusal.function[6] == 'C' ? 0 : 1));
    CHECK(driver->calls("cublasGemmStridedBatchedEx") == multiplied);
    CHECK(workloads::matmul_on_cuda() == std::string("wye's own kernel: ") + refusal.sentence);
  }
  // Another runtime tries again.
  Runtime runtime = new_runtime();
  const long multiplied = driver->calls("cublasGemmStridedBatchedEx");
  is_right(runtime);
  CHECK(driver->calls("cublasGemmStridedBatchedEx") == multiplied + 1);
  CHECK(workloads::matmul_on_cuda() == "cuBLAS");
}

TEST_CASE("a later failure of cuBLAS is the job's error, and the next job tries cuBLAS again",
          "[workloads][cublas]") {
  const auto driver = stand_in();
  if (!driver) return test::skip("cuBLAS is not the stand-in");
  struct Refusal {
    const char* function;
    int number;
    Errc code;
    const char* name;
  };
  for (const Refusal& refusal :
       {Refusal{"cublasCreate_v2", 1, Errc::unavailable, "CUBLAS_STATUS_NOT_INITIALIZED"},
        Refusal{"cublasSetStream_v2", 7, Errc::internal, "CUBLAS_STATUS_INVALID_VALUE"},
        Refusal{"cublasSetMathMode", 14, Errc::kernel_failed, "CUBLAS_STATUS_INTERNAL_ERROR"},
        Refusal{"cublasGemmStridedBatchedEx", 8, Errc::unsupported, "CUBLAS_STATUS_ARCH_MISMATCH"},
        Refusal{"cublasGemmStridedBatchedEx", 13, Errc::kernel_failed, "CUBLAS_STATUS_EXECUTION_FAILED"},
        Refusal{"cublasGemmStridedBatchedEx", 99, Errc::kernel_failed, "unknown"}}) {
    INFO(refusal.function << ": " << refusal.name);
    Runtime runtime = new_runtime();
    // Requests before the first lane succeed.
    const bool is_product = std::string_view(refusal.function) == "cublasGemmStridedBatchedEx";
    driver->fail(refusal.function, is_product ? 1 : 2, refusal.number);
    std::vector<float> c;
    const auto done = multiply(runtime, c);
    REQUIRE_FALSE(done);
    INFO(done.error().describe());
    CHECK(done.error() == refusal.code);
    CHECK(done.error().describe().find(refusal.name) != std::string::npos);
    CHECK(done.error().describe().find("'cuda:0'") != std::string::npos);
    is_right(runtime);
  }
}

TEST_CASE("cuBLASLt computes the epilogues that it has, and finds an algorithm once", "[workloads][cublas]") {
  const auto driver = stand_in();
  if (!driver) return test::skip("cuBLAS is not the stand-in");
  using workloads::Activation;
  const workloads::MatmulShape shape{8, 16, 24};
  const auto a = of<half>(numbers(9 * 24, 1)), b = of<half>(numbers(24 * 16, 2)),
             bias = of<half>(numbers(16, 3)), residual = of<half>(numbers(8 * 16, 4));
  Runtime runtime = new_runtime();
  const Array<half> on_device = runtime.array(a), biases = runtime.array(of<half>(numbers(24, 5)));
  /// How often cuBLASLt is called for a product with the epilogue.
  const auto calls = [&](const workloads::MatmulEpilogue<half>& epilogue, std::size_t first = 0) {
    std::vector<half> c(8 * 16);
    const long before = driver->calls("cublasLtMatmul");
    const auto done =
        runtime
            .submit(workloads::matmul(Read<half>(on_device).slice(first, 8 * 24), b, c, shape, {}, epilogue),
                    {.fallback = Fallback::forbid, .on = "cuda"})
            .wait();
    if (!done) FAIL(done.error().describe());
    return driver->calls("cublasLtMatmul") - before;
  };
  const long found = driver->calls("cublasLtMatmulAlgoGetHeuristic");
  for (const Activation activation : {Activation::none, Activation::relu, Activation::gelu_tanh})
    CHECK(calls({.scale = 2, .bias = bias, .activation = activation}) == 1);
  CHECK(calls({.scale = 2, .bias = bias, .residual = residual}) == 1);
  CHECK(driver->calls("cublasLtMatmulAlgoGetHeuristic") ==
        found + 3);  // that of the residual is that of the bias
  CHECK(calls({.bias = bias, .activation = Activation::relu}) == 1);
  CHECK(driver->calls("cublasLtMatmulAlgoGetHeuristic") == found + 3);
  CHECK(calls({.bias = bias, .activation = Activation::gelu}) == 0);
  CHECK(calls({.activation = Activation::silu}) == 0);
  CHECK(calls({.activation = Activation::relu, .residual = residual}) == 0);
  CHECK(calls({.bias = bias}, 8) == 1);
  CHECK(calls({.bias = Read<half>(biases).slice(8, 16)}) == 1);
  CHECK(calls({.bias = bias}, 4) == 0);  // rows of a are not at multiples of 16 bytes
  CHECK(calls({}) == 0);
}

TEST_CASE(
    "if cuBLASLt cannot be used, wye's own kernel computes the epilogue; a later failure is the job's error",
    "[workloads][cublas]") {
  const auto driver = stand_in();
  if (!driver) return test::skip("cuBLAS is not the stand-in");
  const auto product = [](Runtime& runtime, std::vector<float>& c) {
    const std::vector<float> a = numbers(8 * 24, 1), b = numbers(24 * 16, 2), bias = numbers(16, 3);
    c = poisoned(8 * 16);
    return runtime
        .submit(workloads::matmul(a, b, c, {8, 16, 24}, {},
                                  {.bias = bias, .activation = workloads::Activation::relu}),
                {.fallback = Fallback::forbid, .on = "cuda"})
        .wait();
  };
  const auto is_right = [](const std::vector<float>& c) {
    const std::vector<float> bias = numbers(16, 3);
    const auto exact = reference::matmul_epilogue(
        reference::matmul(numbers(8 * 24, 1), numbers(24 * 16, 2), {8, 16, 24}), 16, 1,
        std::vector<double>(bias.begin(), bias.end()), workloads::Activation::relu, {});
    return difference(c, exact, [](std::size_t) { return 1e-4; });
  };
  std::vector<float> c;
  {
    Runtime runtime = new_runtime();
    driver->fail("cublasLtCreate", 1, 1);
    const auto done = product(runtime, c);
    if (!done) FAIL(done.error().describe());
    CHECK(is_right(c) == "");
    CHECK(done->reason() ==
          "The job requests 'cuda'. The native function of kernel 'matmul' is not used on 'cuda:0': cuBLASLt "
          "cannot multiply "
          "on device 'cuda:0': it was not initialized.");
  }
  struct Refusal {
    const char* function;
    int number;
    Errc code;
  };
  for (const Refusal& refusal : {Refusal{"cublasLtMatmulDescCreate", 3, Errc::out_of_memory},
                                 Refusal{"cublasLtMatmulDescSetAttribute", 7, Errc::internal},
                                 Refusal{"cublasLtMatrixLayoutCreate", 3, Errc::out_of_memory},
                                 Refusal{"cublasLtMatrixLayoutSetAttribute", 7, Errc::internal},
                                 Refusal{"cublasLtMatmulPreferenceCreate", 3, Errc::out_of_memory},
                                 Refusal{"cublasLtMatmulPreferenceSetAttribute", 7, Errc::internal},
                                 Refusal{"cublasLtMatmulAlgoGetHeuristic", 15, Errc::unsupported},
                                 Refusal{"cublasLtMatmul", 13, Errc::kernel_failed}}) {
    INFO(refusal.function);
    Runtime runtime = new_runtime();
    driver->fail(refusal.function, 1, refusal.number);
    const auto done = product(runtime, c);
    REQUIRE_FALSE(done);
    INFO(done.error().describe());
    CHECK(done.error() == refusal.code);
    CHECK(done.error().describe().find(refusal.function) != std::string::npos);
    const auto again = product(runtime, c);
    if (!again) FAIL(again.error().describe());
    CHECK(is_right(c) == "");
  }
}
