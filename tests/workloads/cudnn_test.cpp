// Attention by cuDNN. tests/with-stand-in-cuda.sh has its stand-in found; on other machines only
// that there is none is tested.
#include "cudnn.hpp"

#include <wye/workloads/attention.hpp>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>

#include "support/skip.hpp"
#include "variants.hpp"
#include "workloads/attention_case.hpp"
#include "workloads/legs.hpp"
#include "workloads/stand_in.hpp"

using namespace wye;
using namespace wye::test;
namespace reference = wye::workloads::reference;
using workloads::AttentionOptions;
using workloads::AttentionShape;

namespace {

/// The stand-in for the driver, if it has the stand-in for cuDNN and the device can use it.
std::optional<StandIn> stand_in_of_cudnn() {
  const char* const libraries = std::getenv("LIBRARIES");
  const char* const architecture = std::getenv("WYE_STANDIN_ARCHITECTURE");
  const bool fits =
      !std::getenv("WYE_STANDIN_CUDNN_VERSION") && (!architecture || std::atoi(architecture) >= 80);
  if (!libraries || std::string_view(libraries) != "standin" || !fits) return std::nullopt;
  return stand_in_driver();
}

Runtime separate_runtime() { return Runtime::open().value(); }

template <class T>
Result<Outcome> attend(Runtime& runtime, const Heads<T>& p, std::vector<T>& out) {
  out = of<T>(poisoned(results(p.shape)));
  return runtime
      .submit(workloads::attention(p.q, p.k, p.v, out, p.shape, p.options),
              {.fallback = Fallback::forbid, .on = "cuda"})
      .wait();
}

std::string selected(const Outcome& outcome) {
  for (const VariantChoice& choice : outcome.variants())
    for (const Variant& variant : choice.variants)
      if (variant.selected) return variant.kernel;
  return "";
}

/// Attends by each variant. Returns how often cuDNN computed it; all results are right. Without the
/// stand-in there are no calls to count.
template <class T>
long runs_by_cudnn(const std::optional<StandIn>& driver, Runtime& runtime, AttentionShape shape,
                   AttentionOptions options = {}) {
  INFO(shape.heads << " heads, " << shape.queries << " queries, " << shape.keys << " keys of "
                   << shape.head_size << " and " << value_size(shape) << (options.causal ? ", causal" : ""));
  const Heads<T> p = heads<T>(shape, options, 2);
  const std::vector<double> exact = reference::attention(p.q, p.k, p.v, shape, options);
  const Bound bound = bound_of(p, exact);
  long runs = 0;
  for (int i = 0; i < 3; ++i) {
    const long before = driver ? driver->calls("cudnnBackendExecute") : 0;
    std::vector<T> out;
    const auto done = attend(runtime, p, out);
    if (!done) FAIL(done.error().describe());
    INFO(done->reason());
    CHECK(difference(floats(out), exact, bound) == "");
    const bool is_by_cudnn = selected(*done).find("cudnn") != std::string::npos;
    if (driver) CHECK((driver->calls("cudnnBackendExecute") > before) == is_by_cudnn);
    runs += is_by_cudnn ? 1 : 0;
  }
  return runs;
}

constexpr AttentionShape few_keys{1, 5, 9, 16};

}  // namespace

// First in this file: the other cases open cuDNN.
TEST_CASE("attention opens cuDNN on no runtime without CUDA", "[workloads][cudnn]") {
  const auto is_open = [] {
    std::ifstream maps("/proc/self/maps");
    const std::string all{std::istreambuf_iterator<char>(maps), {}};
    return all.find("libcudnn") != all.npos;
  };
  if (is_open()) return test::skip("cuDNN is open already");
  Runtime runtime = Runtime::open({.pool = {.backends = {"cpu"}}}).value();
  const Heads<half> p = heads<half>(few_keys);
  std::vector<half> out(results(few_keys));
  REQUIRE(runtime.run(workloads::attention(p.q, p.k, p.v, out, few_keys)));
  CHECK_FALSE(is_open());
}

TEST_CASE("a job without measurements of variants does not open cuDNN", "[workloads][cudnn]") {
  const auto driver = stand_in_of_cudnn();
  if (!driver) return test::skip("cuDNN is not the stand-in");
  REQUIRE(::setenv("WYE_MEASURE_VARIANTS", "0", 1) == 0);
  Runtime runtime = separate_runtime();
  REQUIRE(::unsetenv("WYE_MEASURE_VARIANTS") == 0);
  const long made = driver->calls("cudnnCreate");
  CHECK(runs_by_cudnn<half>(driver, runtime, few_keys) == 0);
  CHECK(driver->calls("cudnnCreate") == made);
}

TEST_CASE("without a cuDNN that fits, wye's own kernels attend, with the reason", "[workloads][cudnn]") {
  if (!stand_in_driver() || stand_in_of_cudnn()) return test::skip("cuDNN can be used");
  const char* const libraries = std::getenv("LIBRARIES");
  if (!libraries) return test::skip("the test is not told whether there is cuDNN");
  const bool has_stand_in = std::string_view(libraries) == "standin";
  if (workloads::cudnn::known_absent()) return test::skip("cuDNN is known to be absent");
  Runtime runtime = separate_runtime();
  const Heads<half> p = heads<half>({1, 3, 7, 24});
  std::string reasons;
  for (int i = 0; i < 3; ++i) {
    std::vector<half> out;
    const auto done = attend(runtime, p, out);
    if (!done) FAIL(done.error().describe());
    reasons += done->reason();
    const std::vector<double> exact = reference::attention(p.q, p.k, p.v, p.shape);
    CHECK(difference(floats(out), exact, bound_of(p, exact)) == "");
  }
  INFO(reasons);
  CHECK(reasons.find("Kernel 'attention_half_cudnn' is not used: ") != std::string::npos);
  const char* const version = std::getenv("WYE_STANDIN_CUDNN_VERSION");
  const char* const sentence =
      !has_stand_in ? "Library 'libcudnn.so.9' has no function 'cudnnBackendExecute'"
      : version ? "Library 'libcudnn.so.9' is cuDNN 9.12.0, which has no operation for attention (9.13.1 has)"
                : "cuDNN cannot compute attention on device 'cuda:0': it has no engine for it";
  CHECK(reasons.find(sentence) != std::string::npos);
}

TEST_CASE("cuDNN attends to half and bfloat16, causal and not", "[workloads][cudnn]") {
  const auto driver = stand_in_of_cudnn();
  if (!driver && (stand_in_driver() || !has_leg("cuda"))) return test::skip("there is no cuDNN");
  const auto made = [&](const char* function) { return driver ? driver->calls(function) : 0; };
  const long handles = made("cudnnCreate"), ended = made("cudnnDestroy"),
             descriptors = made("cudnnBackendCreateDescriptor"),
             destroyed = made("cudnnBackendDestroyDescriptor");
  long runs = 0, expected = 0;
  {
    Runtime runtime = separate_runtime();
    for (const AttentionShape& shape : {AttentionShape{1, 1, 1, 8},
                                        {2, 7, 33, 40},
                                        {3, 65, 70, 8, 24},
                                        {1, 17, 130, 256, 16},
                                        {2, 9, 9, 64}})
      for (const bool causal : {false, true}) {
        runs += runs_by_cudnn<half>(driver, runtime, shape, {.causal = causal});
        runs += runs_by_cudnn<bfloat16>(driver, runtime, shape, {.causal = causal});
        expected += 2;
      }
    runs += runs_by_cudnn<half>(driver, runtime, {2, 3, 20, 16}, {.scale = 1.5f});
    ++expected;
    if (driver) CHECK(made("cudnnCreate") > handles);
  }
  if (!driver && runs == 0) return test::skip("no attention ran by cuDNN");
  if (driver) CHECK(runs == expected);
  CHECK(made("cudnnCreate") - handles == made("cudnnDestroy") - ended);
  CHECK(made("cudnnBackendCreateDescriptor") - descriptors ==
        made("cudnnBackendDestroyDescriptor") - destroyed);
}

TEST_CASE("cuDNN gets no attention that it would compute in another way", "[workloads][cudnn]") {
  const auto driver = stand_in_of_cudnn();
  if (!driver) return test::skip("cuDNN is not the stand-in");
  Runtime runtime = separate_runtime();
  const std::vector<float> mask(5 * 9);
  CHECK(runs_by_cudnn<half>(driver, runtime, few_keys, {.mask = mask}) == 0);
  CHECK(runs_by_cudnn<half>(driver, runtime, few_keys, {.scale = 0.0f}) == 0);
  CHECK(runs_by_cudnn<half>(driver, runtime, few_keys, {.scale = -0.5f}) == 0);
  CHECK(runs_by_cudnn<half>(driver, runtime, {1, 5, 9, 12}) == 0);
  CHECK(runs_by_cudnn<half>(driver, runtime, {1, 5, 9, 16, 20}) == 0);
  CHECK(runs_by_cudnn<half>(driver, runtime, {1, 9, 5, 16}, {.causal = true}) == 0);
  CHECK(runs_by_cudnn<half>(driver, runtime, {1, 9, 5, 16}) == 1);
  CHECK(runs_by_cudnn<half>(driver, runtime, {1, 5, 0, 16}) == 0);
  CHECK(runs_by_cudnn<half>(driver, runtime, {1, 1, 16385, 8}) == 0);
  CHECK(runs_by_cudnn<float>(driver, runtime, few_keys) == 0);
}

TEST_CASE("the conditions of cuDNN's attention are those of its kernels", "[workloads][cudnn]") {
  namespace cudnn = workloads::cudnn;
  const cudnn::Attention good{
      .causal = true, .heads = 65535, .queries = 2, .keys = 2, .head_size = 8, .value_size = 256};
  CHECK(cudnn::takes(good));
  const auto takes = [&](auto change) {
    cudnn::Attention attention = good;
    change(attention);
    return cudnn::takes(attention);
  };
  CHECK_FALSE(takes([](auto& a) { a.heads = 65536; }));
  CHECK_FALSE(takes([](auto& a) { a.heads = 0; }));
  CHECK_FALSE(takes([](auto& a) { a.queries = 0; }));
  CHECK_FALSE(takes([](auto& a) { a.queries = 3; }));
  CHECK(takes([](auto& a) { a.queries = 3, a.causal = false; }));
  CHECK_FALSE(takes([](auto& a) { a.keys = 0, a.causal = false; }));
  CHECK_FALSE(takes([](auto& a) { a.keys = 129; }));  // 2^31 elements and more
  CHECK_FALSE(takes([](auto& a) { a.head_size = 4; }));
  CHECK_FALSE(takes([](auto& a) { a.value_size = 100; }));
}

TEST_CASE("cuDNN gets operands that begin at multiples of 16 bytes", "[workloads][cudnn]") {
  const auto driver = stand_in_of_cudnn();
  if (!driver) return test::skip("cuDNN is not the stand-in");
  Runtime runtime = separate_runtime();
  const AttentionShape shape{1, 4, 6, 24};
  const Heads<half> p = heads<half>(shape);
  const std::uint64_t rows = 4 * 24, keys = 6 * 24;
  Array<half> memory[] = {runtime.array<half>(200), runtime.array<half>(200), runtime.array<half>(200),
                          runtime.array<half>(200)};
  const auto runs = [&](std::size_t moved, std::uint64_t by) {
    const auto begin = [&](std::size_t operand) { return operand == moved ? by : 8u; };
    const std::vector<half>* const from[] = {&p.q, &p.k, &p.v};
    for (std::size_t i = 0; i < 3; ++i)
      std::copy(from[i]->begin(), from[i]->end(),
                memory[i].write().value().begin() + static_cast<std::ptrdiff_t>(begin(i)));
    const auto job = [&] {
      return workloads::attention(
          Read<half>(memory[0]).slice(begin(0), rows), Read<half>(memory[1]).slice(begin(1), keys),
          Read<half>(memory[2]).slice(begin(2), keys), Write<half>(memory[3]).slice(begin(3), rows), shape);
    };
    const long before = driver->calls("cudnnBackendExecute");
    for (int i = 0; i < 3; ++i) {
      const auto done = runtime.submit(job(), {.fallback = Fallback::forbid, .on = "cuda"}).wait();
      if (!done) FAIL(done.error().describe());
    }
    return driver->calls("cudnnBackendExecute") - before;
  };
  CHECK(runs(0, 8) == 1);
  for (std::size_t operand = 0; operand < 4; ++operand) {
    INFO(operand);
    CHECK(runs(operand, 4) == 0);
  }
}

TEST_CASE("a lane makes cuDNN's plan of an attention once", "[workloads][cudnn]") {
  const auto driver = stand_in_of_cudnn();
  if (!driver) return test::skip("cuDNN is not the stand-in");
  Runtime runtime = separate_runtime();
  CHECK(runs_by_cudnn<half>(driver, runtime, {1, 6, 11, 16}) == 1);
  const long made = driver->calls("cudnnBackendCreateDescriptor");
  const long runs = runs_by_cudnn<half>(driver, runtime, {1, 6, 11, 16}) +
                    runs_by_cudnn<half>(driver, runtime, {1, 6, 11, 16});
  CHECK(runs >= 1);
  CHECK(driver->calls("cudnnBackendCreateDescriptor") - made == runs);  // what each run passes
}

TEST_CASE("if cuDNN fails on a device, wye's own kernels attend there, with the reason",
          "[workloads][cudnn]") {
  const auto driver = stand_in_of_cudnn();
  if (!driver) return test::skip("cuDNN is not the stand-in");
  struct Refusal {
    const char* function;
    int number;
    const char* sentence;
  };
  constexpr std::string_view cannot = "cuDNN cannot compute attention on device 'cuda:0': ";
  for (const Refusal& refusal :
       {Refusal{"cudnnCreate", 1001, "it was not initialized"},
        Refusal{"cudnnCreate", 1008, "a library that it needs cannot be loaded"},
        Refusal{"cudnnCreate", 3005, "it needs a newer driver"},
        Refusal{"cudnnCreate", 3007, "it does not support this device"},
        Refusal{"cudnnSetStream", 2000, "an argument is invalid"},
        Refusal{"cudnnBackendCreateDescriptor", 4003, "it has no memory left"},
        Refusal{"cudnnBackendSetAttribute", 3000, "it does not support this"},
        Refusal{"cudnnBackendFinalize", 4000, "an internal operation failed"},
        Refusal{"cudnnBackendGetAttribute", 7, "it returned an unknown code"},
        Refusal{"cudnnGetVersion", 91900, "causal masks need 9.21.0, this is 9.19.0"}}) {
    INFO(refusal.function << ": " << refusal.number);
    Runtime runtime = separate_runtime();
    const Heads<half> p = heads<half>({1, 5, 9, 16}, {.causal = true});
    const long made = driver->calls("cudnnCreate"), ended = driver->calls("cudnnDestroy"),
               executed = driver->calls("cudnnBackendExecute");
    driver->fail(refusal.function, 1, refusal.number);
    std::string reasons;
    for (int i = 0; i < 5; ++i) {
      std::vector<half> out;
      const auto done = attend(runtime, p, out);
      if (!done) FAIL(done.error().describe());
      CHECK(done->backend() == "cuda");
      reasons += done->reason();
    }
    INFO(reasons);
    CHECK(reasons.find(std::string(cannot) + refusal.sentence) != std::string::npos);
    CHECK(driver->calls("cudnnBackendExecute") == executed);
    const bool is_made = std::string_view(refusal.function) != "cudnnGetVersion";
    CHECK(driver->calls("cudnnCreate") - made == (is_made ? 1 : 0));
    CHECK(driver->calls("cudnnDestroy") - ended ==
          (is_made && std::string_view(refusal.function) != "cudnnCreate" ? 1 : 0));
  }
}

TEST_CASE("whichever call of cuDNN fails, a job is right or has its error, and the next one is right",
          "[workloads][cudnn]") {
  const auto driver = stand_in_of_cudnn();
  if (!driver) return test::skip("cuDNN is not the stand-in");
  namespace cudnn = workloads::cudnn;
  const auto kernel =
      workloads::AttentionKernel<half>::make(
          {.name = "by_cudnn",
           .sources = {native("cuda",
                              [](const NativeLane& lane, DeviceSpan<const half> q, DeviceSpan<const half> k,
                                 DeviceSpan<const half> v, DeviceSpan<half> out, DeviceSpan<float> workspace,
                                 workloads::AttentionStretch stretch) {
                                return cudnn::attend(
                                    lane,
                                    {.causal = true,
                                     .heads = 1,
                                     .queries = stretch.queries,
                                     .keys = stretch.keys,
                                     .head_size = 8,
                                     .value_size = 8},
                                    {q.data, k.data, v.data, out.data, workspace.data, 4 * workspace.size},
                                    stretch.scale);
                              })},
           .parameters = workloads::attention_parameters()})
          .value();
  Runtime runtime = separate_runtime();
  struct Calls {
    const char* function;
    int code;
    Errc expected;
  };
  std::uint64_t keys = 3;
  // The first case makes the lane's handle.
  for (const Calls& calls :
       {Calls{"cudnnSetStream", 2000, Errc::internal}, Calls{"cudnnCreate", 1001, Errc::unavailable},
        Calls{"cudnnBackendCreateDescriptor", 4003, Errc::out_of_memory},
        Calls{"cudnnBackendSetAttribute", 2000, Errc::internal},
        Calls{"cudnnBackendFinalize", 3000, Errc::unsupported},
        Calls{"cudnnBackendGetAttribute", 4000, Errc::kernel_failed},
        Calls{"cudnnBackendExecute", 5000, Errc::kernel_failed}}) {
    long errors = 0;
    bool reached = true;
    for (long n = 1; reached && n < 200; ++n) {
      INFO(calls.function << ", call " << n);
      const Heads<half> p = heads<half>({1, 3, keys++, 8}, {.causal = true});
      const std::vector<double> exact = reference::attention(p.q, p.k, p.v, p.shape, p.options);
      const auto attend = [&](bool may_fail) {
        std::vector<half> out = of<half>(poisoned(results(p.shape)));
        const Scratch<float> workspace(cudnn::workspace_size / sizeof(float));
        const workloads::AttentionStretch stretch{.queries = 3,
                                                  .keys = static_cast<std::uint32_t>(p.shape.keys),
                                                  .scale = static_cast<float>(1 / std::sqrt(8.0))};
        const auto done = runtime
                              .submit(kernel(p.q, p.k, p.v, out, workspace, stretch),
                                      {.fallback = Fallback::forbid, .on = "cuda"})
                              .wait();
        if (done) {
          CHECK(difference(floats(out), exact, bound_of(p, exact)) == "");
          return;
        }
        INFO(done.error().describe());
        CHECK(may_fail);
        CHECK(done.error() == calls.expected);
        CHECK(done.error().describe().find(calls.function) != std::string::npos);
        ++errors;
      };
      const long before = driver->calls(calls.function);
      driver->fail(calls.function, n, calls.code);
      attend(true);
      reached = driver->calls(calls.function) - before >= n;
      driver->fail(calls.function, 1000000, 0);
      attend(false);
    }
    CHECK_FALSE(reached);
    INFO(calls.function);
    CHECK(errors >= (std::string_view(calls.function) == "cudnnCreate" ? 0 : 1));
  }
}

// NaN in the values of a key that a query does not see: the documented exception.
TEST_CASE("by cuDNN, NaN that a causal query does not see may only reach its own column",
          "[workloads][cudnn]") {
  const auto driver = stand_in_of_cudnn();
  if (!driver) return test::skip("cuDNN is not the stand-in");
  Runtime runtime = separate_runtime();
  Heads<half> p = heads<half>({1, 6, 6, 8}, {.causal = true});
  const std::vector<double> exact = reference::attention(p.q, p.k, p.v, p.shape, p.options);
  const Bound bound = bound_of(p, exact);
  p.v[5 * 8 + 2] = half(undefined);
  for (std::uint64_t c = 0; c < 8; ++c) p.k[5 * 8 + c] = half(undefined);
  for (int i = 0; i < 3; ++i) {
    std::vector<half> out;
    const auto done = attend(runtime, p, out);
    REQUIRE(done);
    const bool is_by_cudnn = selected(*done).find("cudnn") != std::string::npos;
    for (std::size_t at = 0; at < out.size(); ++at) {
      const auto number = static_cast<float>(out[at]);
      if (at >= 5 * 8)
        CHECK(std::isnan(number));
      else if (!is_by_cudnn || at % 8 != 2)
        CHECK(std::abs(static_cast<double>(number) - exact[at]) <= bound(at));
    }
  }
}

// Last in this file: no more attentions are admitted then.
TEST_CASE("a process admits a limited number of attentions to cuDNN", "[workloads][cudnn]") {
  if (std::getenv("WYE_STANDIN_CUDNN_VERSION")) return test::skip("cuDNN is too old");
  namespace cudnn = workloads::cudnn;
  const auto attention = [](std::uint64_t heads) {
    return cudnn::Attention{.heads = heads, .queries = 1, .keys = 1, .head_size = 8, .value_size = 8};
  };
  std::uint64_t admitted = 0;
  while (admitted <= cudnn::most_attentions && cudnn::admits(attention(1000 + admitted))) ++admitted;
  CHECK(admitted <= cudnn::most_attentions);
  for (std::uint64_t i = 0; i < admitted; ++i) CHECK(cudnn::admits(attention(1000 + i)));
  CHECK_FALSE(cudnn::admits(attention(999)));
}
