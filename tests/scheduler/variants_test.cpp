// Kernels that do the same, of which a scheduler takes the quickest.
#include <wye/wye.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "scheduler/comparison.hpp"
#include "support/catch.hpp"
#include "support/kernels.hpp"
#include "support/skip.hpp"

using namespace wye;
using namespace std::chrono_literals;

namespace {

using Doubling = Kernel<ReadWrite<float>>;

/// x *= 2, which takes as long as it is told to; every run adds its letter.
struct Timed {
  ManualClock clock;
  std::string runs;

  Doubling kernel(char letter, Duration takes, std::vector<AdapterType> adapters = {},
                  Features features = {}) {
    return Doubling::make({.name = std::string(1, letter),
                           .sources = {host(
                               [this, letter, takes](Range range, std::span<float> x) {
                                 for (std::uint64_t i : range) x[i] *= 2;
                                 clock.advance(takes);
                                 runs += letter;
                               },
                               {.tile = Extent3(2000)}  // one tile: threads would meet at `runs`
                               )},
                           .adapters = std::move(adapters),
                           .features = features})
        .value();
  }
  Runtime runtime(bool measures = true) {
    return Runtime::open(
               {.pool = {.backends = {"cpu"}}, .scheduler = {.measure_variants = measures}, .clock = &clock})
        .value();
  }
};

Job on(const Doubling& kernel, std::vector<float>& x) { return kernel(x); }

Doubling in_glsl(const char* name, const char* body) {
  return Doubling::make({.name = name,
                         .sources = {Glsl{.text = std::string(R"(#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer X { float x[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) )") +
                                                  body + " }"}}})
      .value();
}

}  // namespace

TEST_CASE("equivalent kernels are each tried, and then the quickest is used", "[scheduler]") {
  Timed timed;
  const Doubling either = fastest_of(timed.kernel('s', 9ms), {timed.kernel('q', 5ms)});
  Runtime runtime = timed.runtime();
  for (int i = 0; i < 10; ++i) {
    std::vector<float> x{1.0f, 2.0f, 3.0f};
    REQUIRE(runtime.run(on(either, x)));
    CHECK(x == std::vector<float>{2.0f, 4.0f, 6.0f});
  }
  CHECK(timed.runs == "sqsqsqqqqq");
}

TEST_CASE("a variant that takes over twice the time is not run again after two runs", "[scheduler]") {
  Timed timed;
  const Doubling either =
      fastest_of(timed.kernel('s', 11ms), {timed.kernel('m', 8ms), timed.kernel('q', 5ms)});
  Runtime runtime = timed.runtime();
  std::vector<float> x(3, 0.0f);
  for (int i = 0; i < 12; ++i) REQUIRE(runtime.run(on(either, x)));
  CHECK(timed.runs == "smqsmqmqqqqq");
}

TEST_CASE("the reason of an outcome names the variant and the times of all", "[scheduler]") {
  Timed timed;
  const Doubling either = fastest_of(timed.kernel('s', 9ms), {timed.kernel('q', 5ms)});
  Runtime runtime = timed.runtime();
  std::vector<float> x(3, 0.0f);
  const auto reason = [&] { return runtime.run(on(either, x)).value().reason(); };
  CHECK(reason() ==
        "'cpu:0' is the only device. Kernel 's' was selected from 2 variants, which are still being "
        "measured: minimum times are 's' 9 ms.");
  for (int i = 0; i < 5; ++i) (void)reason();
  CHECK(reason() ==
        "'cpu:0' is the only device. Kernel 'q' was selected from 2 variants: minimum times are 's' 9 ms, "
        "'q' 5 ms.");
  auto ticket = runtime.submit(on(either, x));
  REQUIRE(ticket.wait());
  CHECK(ticket.explain().text().find("Kernel 'q' was selected from 2") != std::string::npos);
}

TEST_CASE("variants are timed separately per size of work", "[scheduler]") {
  for (const auto& [n, expected] : {std::pair<std::uint64_t, std::uint32_t>{0, 0},
                                    {1, 0},
                                    {2, 4},
                                    {3, 6},
                                    {4, 8},
                                    {7, 11},
                                    {8, 12},
                                    {9, 12},
                                    {10, 13},
                                    {15, 15},
                                    {16, 16},
                                    {1024, 40},
                                    {1279, 40},
                                    {1280, 41},
                                    {~std::uint64_t{0}, 255}})
    CHECK(scheduler::size_class(n) == expected);
  Timed timed;
  const Doubling either = fastest_of(timed.kernel('s', 9ms), {timed.kernel('q', 5ms)});
  Runtime runtime = timed.runtime();
  std::vector<float> x(1024, 0.0f), as_large(1279, 0.0f), larger(1280, 0.0f);
  for (int i = 0; i < 7; ++i) REQUIRE(runtime.run(on(either, x)));
  timed.runs.clear();
  REQUIRE(runtime.run(on(either, as_large)));
  CHECK(timed.runs.front() == 'q');
  timed.runs.clear();
  REQUIRE(runtime.run(on(either, larger)));
  CHECK(timed.runs.front() == 's');
}

TEST_CASE("variants of a kernel that is made again are not measured again", "[scheduler]") {
  Timed timed;
  Runtime runtime = timed.runtime();
  std::vector<float> x(3, 0.0f);
  const auto run = [&](Duration quick, int count) {
    const Doubling either = fastest_of(timed.kernel('s', 9ms), {timed.kernel('q', quick)});
    for (int i = 0; i < count; ++i) REQUIRE(runtime.run(on(either, x)));
    return std::exchange(timed.runs, "");
  };
  CHECK(run(5ms, 7) == "sqsqsqq");
  CHECK(run(5ms, 3) == "qqq");
  const Doubling other = fastest_of(timed.kernel('s', 9ms), {timed.kernel('r', 5ms)});
  for (int i = 0; i < 7; ++i) REQUIRE(runtime.run(on(other, x)));
  CHECK(timed.runs.find("r") != std::string::npos);
}

TEST_CASE("the time of a variant does not contain the steps beside it", "[scheduler]") {
  Timed timed;
  const Doubling either = fastest_of(timed.kernel('s', 9ms), {timed.kernel('q', 5ms)});
  const Doubling long_one = timed.kernel('l', 100ms);
  Runtime runtime = timed.runtime();
  std::vector<float> x(3, 1.0f);
  const auto run = [&] {
    return runtime.run(
        Job::sequence("three", workload_types::custom, long_one(x), {either(x), either(x), long_one(x)}));
  };
  REQUIRE(run());
  CHECK(x == std::vector<float>(3, 16.0f));
  CHECK(timed.runs == "lsql");
  REQUIRE(run());
  REQUIRE(run());
  const auto done = run();
  REQUIRE(done);
  CHECK(timed.runs == "lsqllsqllsqllqql");
  CHECK(done->reason().ends_with("minimum times are 's' 9 ms, 'q' 5 ms."));
}

TEST_CASE("nothing is tried without measure_variants, or for a job with limits of its own", "[scheduler]") {
  Timed timed;
  const Doubling either = fastest_of(timed.kernel('s', 9ms), {timed.kernel('q', 5ms)});
  std::vector<float> x(3, 0.0f);
  Runtime same_bits = timed.runtime(false);
  for (int i = 0; i < 4; ++i) {
    const auto done = same_bits.run(on(either, x));
    REQUIRE(done);
    CHECK(done->reason() == "'cpu:0' is the only device.");
  }
  CHECK(std::exchange(timed.runs, "") == "ssss");
  REQUIRE(same_bits.run(on(fastest_of(in_glsl("in_glsl", "x[i] *= 2;"), {timed.kernel('h', 1ms)}), x)));
  CHECK(std::exchange(timed.runs, "") == "h");  // the first one of those that have a source

  Runtime runtime = timed.runtime();
  const auto in_haste = [&](JobOptions options = {.start_by = 1min}) {
    auto done = runtime.run(on(either, x), options);
    REQUIRE(done);
    return done->reason();
  };
  CHECK(in_haste().ends_with("from 2 variants, which are still being measured: none was measured yet."));
  (void)in_haste({.time_limit = 1min});
  CHECK(std::exchange(timed.runs, "") == "ss");
  REQUIRE(runtime.run(on(either, x)));
  REQUIRE(runtime.run(on(either, x)));
  (void)in_haste();
  CHECK(timed.runs == "sqq");  // what is known
}

TEST_CASE("a variant in a language that the device does not take is not counted", "[scheduler]") {
  Timed timed;
  const Doubling either = fastest_of(in_glsl("in_glsl", "x[i] *= 2;"), {timed.kernel('h', 1ms)});
  Runtime runtime = timed.runtime();
  std::vector<float> x(3, 1.0f);
  for (int i = 0; i < 3; ++i) {
    const auto done = runtime.run(on(either, x));
    REQUIRE(done);
    CHECK(done->reason() == "'cpu:0' is the only device.");
  }
  CHECK(timed.runs == "hhh");
  CHECK(x[0] == 8.0f);
}

TEST_CASE("a variant for other types of adapters is neither used nor measured nor built", "[scheduler]") {
  Timed timed;
  const std::vector<AdapterType> gpus{AdapterType::integrated, AdapterType::discrete};
  const Doubling for_gpus = timed.kernel('g', 1ms, gpus);
  const Doubling either = fastest_of(for_gpus, {timed.kernel('a', 9ms)});
  Runtime runtime = timed.runtime();
  std::vector<float> x(3, 1.0f);
  for (int i = 0; i < 4; ++i) {
    const auto done = runtime.run(on(either, x));
    REQUIRE(done);
    CHECK(done->reason() == "'cpu:0' is the only device.");
    CHECK(done->code().front().kernel == "a");
  }
  CHECK(timed.runs == "aaaa");
  CHECK(runtime.run(Job::build(either)));
  const auto alone = runtime.run(on(for_gpus, x));
  REQUIRE_FALSE(alone);
  CHECK(alone.error() == Errc::unsupported);
  CHECK(alone.error().describe().find(
            "Kernel 'g' is for integrated or discrete adapters, but 'cpu:0' is cpu.") != std::string::npos);
}

TEST_CASE("a variant that needs a feature that the device lacks is neither used nor measured nor built",
          "[scheduler]") {
  Timed timed;
  const Doubling by_subgroups = timed.kernel('s', 1ms, {AdapterType::cpu}, {Feature::subgroups});
  const Doubling by_integers = timed.kernel('i', 9ms, {}, {Feature::int64});
  const Doubling either = fastest_of(by_subgroups, {by_integers});
  std::vector<float> x(3, 1.0f);
  for (const bool measures : {true, false}) {
    Runtime runtime = timed.runtime(measures);
    for (int i = 0; i < 4; ++i) {
      const auto done = runtime.run(on(either, x));
      REQUIRE(done);
      CHECK(done->code().front().kernel == "i");
    }
    CHECK(runtime.run(Job::build(either)));
    const auto alone = runtime.run(on(by_subgroups, x));
    REQUIRE_FALSE(alone);
    CHECK(alone.error() == Errc::unsupported);
    CHECK(alone.error().describe().find("Kernel 's' needs subgroups, which 'cpu:0' does not have.") !=
          std::string::npos);
  }
  CHECK(timed.runs == "iiiiiiii");
}

TEST_CASE("a variant that names the type of the adapter is the default, and is measured like the others",
          "[scheduler]") {
  Timed timed;
  const Doubling either = fastest_of(timed.kernel('a', 5ms), {timed.kernel('c', 9ms, {AdapterType::cpu})});
  std::vector<float> x(3, 0.0f);
  Runtime same_bits = timed.runtime(false);
  for (int i = 0; i < 3; ++i) REQUIRE(same_bits.run(on(either, x)));
  CHECK(std::exchange(timed.runs, "") == "ccc");
  Runtime runtime = timed.runtime();
  for (int i = 0; i < 8; ++i) REQUIRE(runtime.run(on(either, x)));
  CHECK(timed.runs == "cacacaaa");
}

TEST_CASE("a job whose variant fails fails, and the next job tries the next variant", "[scheduler]") {
  Timed timed;
  std::atomic<bool> works{false};
  const Doubling bad = Doubling::make({.name = "b", .sources = {host([&](Range, std::span<float>) {
                                                      if (!works)
                                                        throw std::runtime_error("a fault of its own");
                                                    })}})
                           .value();
  const Doubling either = fastest_of(bad, {timed.kernel('q', 5ms)});
  Runtime runtime = timed.runtime();
  std::vector<float> x(3, 1.0f);
  const auto failed = runtime.run(on(either, x));
  REQUIRE_FALSE(failed);
  CHECK(failed.error() == Errc::kernel_failed);
  REQUIRE(runtime.run(on(either, x)));
  CHECK(timed.runs == "q");
  works = true;
  for (int i = 0; i < 12; ++i) REQUIRE(runtime.run(on(either, x)));
  CHECK(runtime.run(on(either, x))->reason().find("Kernel 'b' was selected from 2") != std::string::npos);
}

TEST_CASE("variants of a GPU give the same results; one that does not compile is named and not used",
          "[scheduler]") {
  Runtime runtime = Runtime::open({.pool = {.backends = {"vulkan"}}}).value();
  if (!test::has_device(runtime, "vulkan")) return;
  const Doubling product = in_glsl("product", "x[i] *= 2;"), sum = in_glsl("sum", "x[i] += x[i];"),
                 wrong = in_glsl("wrong", "x[i] *= twice;");
  const Doubling any = fastest_of(wrong, {product, sum});
  for (int i = 0; i < 10; ++i) {
    std::vector<float> x{1.5f, 2.0f, 3.0f};
    const auto done = runtime.run(on(any, x));
    REQUIRE(done);
    CHECK(x == std::vector<float>{3.0f, 4.0f, 6.0f});
    CHECK(done->reason().find(" Kernel 'wrong' is not used: ") != std::string::npos);
  }
  const auto metrics = runtime.cache().kernel_metrics();
  for (const char* name : {"product", "sum"})
    CHECK(std::any_of(metrics.begin(), metrics.end(),
                      [&](const KernelMetrics& m) { return m.kernel == name; }));

  std::vector<float> x(3, 1.0f);
  const auto neither = runtime.run(on(fastest_of(wrong, {in_glsl("worse", "nothing")}), x));
  REQUIRE_FALSE(neither);
  CHECK(neither.error() == Errc::compile_failed);
  CHECK(neither.error().sentence().find("'wrong'") != std::string::npos);
}

TEST_CASE("builds and prewarming make every variant ready", "[scheduler]") {
  const Doubling product = in_glsl("product", "x[i] *= 2;"), sum = in_glsl("sum", "x[i] += x[i];");
  for (const bool prewarms : {false, true}) {
    Runtime runtime = Runtime::open({.pool = {.backends = {"vulkan"}}}).value();
    if (!test::has_device(runtime, "vulkan")) return;
    const Doubling either = fastest_of(product, {sum});
    if (prewarms)
      runtime.cache().prewarm({either}, runtime.devices()).value().wait();
    else
      REQUIRE(runtime.run(Job::build(either)));
    CHECK(runtime.metrics().cache.misses == 2);
    std::vector<float> x(3, 1.0f);
    for (int i = 0; i < 2; ++i) CHECK(runtime.run(on(either, x))->cache_tier() == CacheTier::memory);
  }
  Runtime runtime = Runtime::open({.pool = {.backends = {"vulkan"}}}).value();
  CHECK(runtime.run(Job::build(fastest_of(in_glsl("wrong", "nothing"), {sum}))));
  CHECK(runtime.run(Job::build(in_glsl("wrong", "nothing"))).error() == Errc::compile_failed);

  Runtime same_bits =
      Runtime::open({.pool = {.backends = {"vulkan"}}, .scheduler = {.measure_variants = false}}).value();
  CHECK(same_bits.run(Job::build(fastest_of(product, {sum}))));
  CHECK(same_bits.metrics().cache.misses == 1);
}

TEST_CASE("many threads find the quickest variant together", "[scheduler]") {
  std::atomic<int> slow{0}, quick{0};
  const auto counting = [](const char* name, std::atomic<int>& runs, Duration takes) {
    return test::on_host(name, [&runs, takes](Range range, std::span<float> x) {
      for (std::uint64_t i : range) x[i] += 1;
      ++runs;
      std::this_thread::sleep_for(takes);
    });
  };
  const Doubling either = fastest_of(counting("slow", slow, 50ms), {counting("quick", quick, 0ms)});
  Runtime runtime = Runtime::open({.pool = {.backends = {"cpu"}, .lanes_per_device = 4}}).value();
  std::atomic<int> wrong{0};
  const auto run = [&](int each) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < each; ++i) {
          std::vector<float> x{1.0f};
          if (!runtime.run(on(either, x)) || x[0] != 2.0f) ++wrong;
        }
      });
    for (auto& thread : threads) thread.join();
  };
  run(10);
  const int measured = slow;
  CHECK(measured >= 2);
  run(40);
  CHECK(slow == measured);
  CHECK(slow + quick == 400);
  CHECK(wrong == 0);
}
