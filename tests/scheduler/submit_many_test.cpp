// Jobs that are submitted together.
#include <wye/wye.hpp>

#include <cstddef>
#include <vector>

#include "rig.hpp"

using namespace wye;
using namespace std::chrono_literals;
using test::settled;

TEST_CASE("jobs that are submitted together have their tickets in order, each with its own result",
          "[scheduler]") {
  Runtime runtime = test::cpu_runtime(2);
  for (const std::size_t count : {0u, 1u, 63u, 64u, 65u, 200u}) {
    std::vector<std::vector<float>> values(count);
    std::vector<Job> jobs;
    for (std::size_t i = 0; i < count; ++i) {
      values[i].assign(3, static_cast<float>(i));
      jobs.push_back(i % 7 == 3
                         ? Job::failed("wrong", workload_types::custom, Error(Errc::io, "A wrong job."))
                         : Job(test::host_scale()(values[i], 2.0f)));
    }
    const SchedulerMetrics before = runtime.scheduler().metrics();
    auto tickets = runtime.submit(jobs, {.tag = "together"});
    REQUIRE(tickets.size() == count);
    for (std::size_t i = 0; i < count; ++i) {
      INFO("job " << i << " of " << count);
      const auto result = tickets[i].wait();
      if (i % 7 == 3)
        CHECK(result.error() == Errc::io);
      else
        CHECK(result);
      CHECK(tickets[i].explain().tag == "together");
      if (i > 0) CHECK(tickets[i - 1].id() < tickets[i].id());
      CHECK(values[i] == std::vector<float>(3, static_cast<float>(i) * (i % 7 == 3 ? 1.0f : 2.0f)));
    }
    CHECK(runtime.scheduler().metrics().submitted == before.submitted + count);
  }
}

TEST_CASE("jobs that are submitted together follow each other by arrays, and the jobs of `after`",
          "[scheduler]") {
  Runtime runtime = test::cpu_runtime(2);
  test::Latch latch;
  auto held = runtime.array(std::vector<float>(1, 0.0f));
  auto first = runtime.submit(latch.kernel(held), {.time_limit = Duration::max()});
  latch.await();
  auto x = runtime.array(std::vector<float>(5, 1.0f)), y = runtime.array<float>(5);
  std::vector<Job> jobs;
  for (int i = 0; i < 100; ++i) jobs.push_back(test::host_scale()(x, i % 2 == 0 ? 2.0f : 0.5f));
  jobs.push_back(test::host_scale()(x, 3.0f));
  jobs.push_back(test::copy()(x, y));
  auto tickets = runtime.submit(jobs, {.after = {first}});
  CHECK_FALSE(tickets.front().ready());
  latch.open();
  REQUIRE(wait_all(tickets));
  const auto read = y.read();
  REQUIRE(read);
  for (const float value : *read) CHECK(value == 3.0f);
}

TEST_CASE("jobs that are submitted together wait for room, are refused, or drop others, each in its turn",
          "[scheduler]") {
  const auto open = [](WhenFull when_full) {
    return Runtime::open({.pool = {.backends = {"cpu"}},
                          .cache = {.disk = Bytes{0}},
                          .scheduler = {.concurrent_jobs = 1, .max_queued = 3, .when_full = when_full}})
        .value();
  };
  std::vector<std::vector<float>> values(150, std::vector<float>(2, 1.0f));
  const auto make = [&] {
    std::vector<Job> jobs;
    for (auto& x : values) jobs.push_back(test::host_scale()(x, 2.0f));
    return jobs;
  };
  SECTION("they wait") {
    Runtime runtime = open(WhenFull::wait);
    auto jobs = make();
    auto tickets = runtime.submit(jobs);
    CHECK(wait_all(tickets));
    for (const auto& x : values) CHECK(x == std::vector<float>(2, 2.0f));
  }
  SECTION("they wait, and follow each other") {
    Runtime runtime = open(WhenFull::wait);
    auto x = runtime.array(std::vector<float>(5, 1.0f));
    std::vector<Job> jobs;
    for (int i = 0; i < 100; ++i) jobs.push_back(test::host_scale()(x, i % 2 == 0 ? 2.0f : 0.5f));
    auto tickets = runtime.submit(jobs);
    CHECK(wait_all(tickets));
    const auto read = x.read();
    REQUIRE(read);
    for (const float value : *read) CHECK(value == 1.0f);
  }
  SECTION("those beyond the limit are refused") {
    Runtime runtime = open(WhenFull::refuse);
    test::Latch latch;
    std::vector<float> memory(1);
    auto blocker = runtime.submit(latch.kernel(memory), {.time_limit = Duration::max()});
    latch.await();
    auto jobs = make();
    auto tickets = runtime.submit(jobs);
    for (std::size_t i = 3; i < tickets.size(); ++i) CHECK(settled(tickets[i]) == Errc::over_budget);
    latch.open();
    for (std::size_t i = 0; i < 3; ++i) CHECK(tickets[i].wait());
    CHECK(blocker.wait());
  }
}

TEST_CASE("jobs that are submitted together to a closed scheduler fail as closed", "[scheduler]") {
  Runtime runtime = test::cpu_runtime(1);
  std::vector<float> x(4, 1.0f);
  std::vector<Job> jobs(70, test::host_scale()(x, 2.0f));
  runtime.close();
  auto tickets = runtime.submit(jobs);
  REQUIRE(tickets.size() == jobs.size());
  for (Ticket& ticket : tickets) CHECK(ticket.wait().error() == Errc::closed);
  CHECK(x == std::vector<float>(4, 1.0f));
}
