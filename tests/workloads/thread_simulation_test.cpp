#include <wye/workloads/thread_simulation.hpp>

#include "workloads/vectors.hpp"

using namespace wye;
using namespace wye::test;
using workloads::SimulatedThread;
using workloads::ThreadDepth;
using workloads::ThreadEnd;
using workloads::ThreadSimulationOptions;
using workloads::ThreadSummary;
namespace reference = wye::workloads::reference;

namespace {

reference::ThreadSimulation simulated(std::uint32_t threads, const ThreadSimulationOptions& options,
                                      const std::string& leg) {
  reference::ThreadSimulation made{.last = poison<SimulatedThread>(threads),
                                   .depths = poison<ThreadDepth>(std::size_t{options.max_depth} + 1),
                                   .summary = {1, 2, 3}};
  run(workloads::thread_simulation(made.last, made.depths, std::span(&made.summary, 1), options), leg);
  return made;
}

void check_simulation(std::uint32_t threads, const ThreadSimulationOptions& options, const std::string& leg) {
  const auto made = simulated(threads, options, leg);
  const auto exact = reference::thread_simulation(threads, options);
  CHECK(equal_bits(made.last, exact.last));
  CHECK(equal_bits(made.depths, exact.depths));
  CHECK(made.summary == exact.summary);
}

constexpr std::uint64_t largest_limit = 6'148'914'691'236'517'204;

}  // namespace

TEST_CASE("thread_simulation follows the chains of any number of threads", "[workloads][thread_simulation]") {
  for (const std::string& leg : legs())
    for (const std::uint32_t threads : {0u, 1u, 2u, 3u, 255u, 256u, 257u, 1000u, 5003u}) {
      INFO(leg << ", " << threads << " threads");
      check_simulation(threads, {}, leg);
      check_simulation(threads, {.max_depth = 0, .batch = 7}, leg);
      check_simulation(threads, {.max_depth = 400, .batch = 200, .limit = largest_limit}, leg);
      check_simulation(threads, {.max_depth = 63, .batch = 255, .limit = 100}, leg);
      check_simulation(threads, {.max_depth = 64, .limit = 0}, leg);
    }
}

TEST_CASE("thread_simulation has the meaning that is written down", "[workloads][thread_simulation]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    const auto made = simulated(28, {.max_depth = 3, .limit = 60}, leg);
    CHECK(made.last[0] == SimulatedThread{0, 0, ThreadEnd::one});
    CHECK(made.last[1] == SimulatedThread{1, 0, ThreadEnd::one});
    CHECK(made.last[4] == SimulatedThread{1, 2, ThreadEnd::one});
    CHECK(made.last[8] == SimulatedThread{1, 3, ThreadEnd::one});
    CHECK(made.last[7] == SimulatedThread{34, 3, ThreadEnd::max_depth});
    CHECK(made.last[27] == SimulatedThread{82, 1, ThreadEnd::limit});
    CHECK(made.depths[0] == ThreadDepth{2, 0});
    CHECK(made.summary.deepest == 3);
    CHECK(made.summary.thread == 3);
    const auto short_chains = simulated(1, {.max_depth = 2}, leg);
    CHECK(short_chains.depths[1] == ThreadDepth{0, 0xffff'ffff});
    CHECK(short_chains.summary == ThreadSummary{});
  }
}

TEST_CASE("thread_simulation is right for 1,000 random options", "[workloads][thread_simulation]") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) {
    const auto threads = static_cast<std::uint32_t>(random() % (i % 50 == 0 ? 5000 : 300));
    const ThreadSimulationOptions options{.max_depth = static_cast<std::uint32_t>(random() % 150),
                                          .batch = static_cast<std::uint32_t>(1 + random() % 256),
                                          .limit = random() >> (4 + random() % 60)};
    const std::string& leg = legs()[random() % legs().size()];
    INFO(leg << ", " << threads << " threads, depth " << options.max_depth << ", batch " << options.batch
             << ", limit " << options.limit);
    check_simulation(threads, options, leg);
  }
}

TEST_CASE("thread_simulation is right if its grid has more than one row",
          "[workloads][thread_simulation][large]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    check_simulation(70'001, {.max_depth = 2, .batch = 2}, leg);
  }
}

TEST_CASE("thread_simulation is right beyond 4 GiB", "[workloads][thread_simulation][large][.huge]") {
  if (!has_leg("cpu")) return;
  std::vector<SimulatedThread> last((std::size_t{1} << 28) + 1001);
  std::vector<ThreadDepth> depths(1);
  ThreadSummary summary;
  run(workloads::thread_simulation(last, depths, std::span(&summary, 1), {.max_depth = 0, .limit = ~0u}),
      "cpu");
  std::size_t wrong = 0;
  for (std::size_t i = 2; i < last.size(); ++i)
    wrong += !(last[i] == SimulatedThread{i, 0, ThreadEnd::max_depth});
  CHECK(wrong == 0);
  CHECK(depths[0].chains == last.size());
  CHECK(depths[0].first == 0);
}

TEST_CASE("thread_simulation refuses sizes and options out of range", "[workloads][thread_simulation]") {
  std::vector<SimulatedThread> last(4);
  std::vector<ThreadDepth> depths(11);
  std::vector<ThreadSummary> summary(1), none;
  const auto sentence_of = [&](std::span<ThreadDepth> levels, std::span<ThreadSummary> one,
                               const ThreadSimulationOptions& options) {
    const Job job = workloads::thread_simulation(last, levels, one, options);
    REQUIRE(job.error());
    CHECK(*job.error() == Errc::invalid_argument);
    return refusal(job);
  };
  CHECK(sentence_of(depths, summary, {.max_depth = 60'001}) ==
        "Largest depth (60001) of workload 'thread_simulation' exceeds the limit (60000).");
  for (const std::uint32_t batch : {0u, 257u})
    CHECK(sentence_of(depths, summary, {.batch = batch}) ==
          "Batch (" + std::to_string(batch) + ") of workload 'thread_simulation' is not between 1 and 256.");
  CHECK(sentence_of(depths, summary, {.limit = largest_limit + 1}) ==
        "Limit (6148914691236517205) of workload 'thread_simulation' exceeds the limit "
        "(6148914691236517204).");
  CHECK(sentence_of(std::span(depths).first(10), summary, {}) ==
        "Depths (10 elements) of workload 'thread_simulation' do not have 11 elements for its largest depth "
        "(10).");
  CHECK(sentence_of(depths, none, {}) ==
        "Summary (0 elements) of workload 'thread_simulation' does not have 1 element.");
}
