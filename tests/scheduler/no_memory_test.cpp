// Jobs in a process that counts its allocations, and that runs out of memory at every point of
// their life.
#include <wye/wye.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "latch.hpp"
#include "support/await.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/failing_new.hpp"
#include "support/kernels.hpp"
#include "support/stop_point.hpp"
#include "support/thread.hpp"

using namespace wye;
using namespace std::chrono_literals;

namespace {

/// Calls `life` with every allocation in it failing in turn, alone and with all that follow it.
template <class Life>
void at_every_allocation(Life life) {
  for (const bool for_good : {false, true}) {
    long n = 0;
    for (; n < 2000; ++n) {
      INFO("allocation " << n << (for_good ? " and all that follow" : ""));
      if (!life(n, for_good)) break;
    }
    CHECK(n > 0);
    CHECK(n < 2000);
  }
}

/// Fails allocation `n` from now on, or all from it on.
void fail_after(long n, bool for_good) {
  test::fail_allocations(n, for_good ? test::Failing::all : test::Failing::one);
}

/// Whether an allocation failed since `fail_after`.
bool one_failed() {
  test::fail_no_allocations();
  return test::failed_allocations() > 0;
}

bool is_of_memory(const Result<Outcome>& result) { return result || result.error() == Errc::out_of_memory; }

Runtime runtime_of(std::uint32_t concurrent_jobs) {
  return Runtime::open({.pool = {.backends = {"cpu"}, .lease_timeout = 1s},
                        .scheduler = {.concurrent_jobs = concurrent_jobs}})
      .value();
}

}  // namespace

TEST_CASE("jobs on slices leave each element old, new or failed, whichever allocation fails",
          "[scheduler][no_tsan]") {
  const auto scale = test::host_scale();
  at_every_allocation([&](long n, bool for_good) {
    Runtime runtime = runtime_of(2);  // the first jobs of a runtime allocate; later ones use its memory again
    Array<float> array = runtime.array(std::vector<float>(12, 1.0f));
    for (float& value : array.write().value()) value = 1.0f;
    std::vector<Ticket> tickets;
    tickets.reserve(4);
    fail_after(n, for_good);
    for (std::uint64_t first = 0; first < 10; first += 3)
      tickets.push_back(runtime.submit(scale(array.slice(first, 2), 2.0f)));
    bool are_of_memory = true;
    for (Ticket& ticket : tickets) are_of_memory = is_of_memory(ticket.wait()) && are_of_memory;
    const bool failed = one_failed();
    CHECK(are_of_memory);
    for (std::uint64_t i = 0; i < 12; ++i) {
      const auto view = array.slice(i, 1).read();
      if (!view)
        CHECK(view.error() == Errc::out_of_memory);
      else if (i % 3 == 2)
        CHECK((*view)[0] == 1.0f);
      else
        CHECK(((*view)[0] == 2.0f || ((*view)[0] == 1.0f && failed)));
    }
    return failed;
  });
}

TEST_CASE("a graph compiles, changes and runs, or runs out of memory, whichever allocation fails",
          "[scheduler][no_tsan]") {
  Runtime runtime = runtime_of(2);
  const auto scale = test::host_scale();
  Array<float> array = runtime.array(std::vector<float>(8, 1.0f));
  std::vector<float> x(8, 1.0f);
  REQUIRE(runtime.run(scale(array, 1.0f)));
  at_every_allocation([&](long n, bool for_good) {
    for (float& value : array.write().value()) value = 1.0f;
    fail_after(n, for_good);
    Graph* graph = nullptr;
    try {
      graph = new Graph;
    } catch (const std::bad_alloc&) {  // as for every object that the application makes
    }
    std::optional<Result<Plan>> plan;
    std::optional<Result<void>> set;
    std::optional<Result<Outcome>> done;
    if (graph) {
      try {
        const GraphStep first = graph->add(scale(array, 2.0f));
        graph->add(scale(x, 1.0f)).after(first);
        plan = graph->compile(runtime);
        if (*plan) {
          set = (*plan)->set(first, 1, 3.0f);
          done = (*plan)->run().wait();
        }
      } catch (const std::bad_alloc&) {
        plan.reset();  // the calls and jobs are the application's
      }
    }
    const bool failed = one_failed();
    delete graph;
    if (plan && !*plan) CHECK(plan->error() == Errc::out_of_memory);
    if (set && !*set) CHECK(set->error() == Errc::out_of_memory);
    if (done) {
      CHECK(is_of_memory(*done));
      const auto view = array.read();
      if (*done && view)
        CHECK((*view)[0] == (*set ? 3.0f : 2.0f));
      else if (view)
        CHECK((*view)[0] == 1.0f);
      else
        CHECK(view.error() == Errc::out_of_memory);
    }
    return failed;
  });
}

TEST_CASE("a job settles whichever allocation of its life fails", "[scheduler][no_tsan]") {
  const auto scale = test::host_scale();
  std::vector<float> x(100, 1.0f);
  std::vector<float> y(100, 1.0f);
  at_every_allocation([&](long n, bool for_good) {
    Runtime runtime = runtime_of(2);  // the first job of a runtime allocates; later ones use its memory again
    Job job = scale(x, 1.0f);
    fail_after(n, for_good);
    auto ticket = runtime.submit(std::move(job));
    while (!ticket.ready() && test::failed_allocations() == 0) std::this_thread::yield();
    (void)test::becomes_true([&] { return ticket.ready(); });
    const bool failed = one_failed();
    REQUIRE(ticket.ready());
    const auto result = ticket.wait(1min);
    INFO((result ? std::string() : result.error().describe()));
    CHECK(is_of_memory(result));
    const auto healthy = runtime.run(scale(y, 1.0f));
    INFO((healthy ? std::string() : healthy.error().describe()));
    CHECK(healthy);
    CHECK(runtime.metrics().jobs.queued == 0);
    CHECK(runtime.metrics().jobs.running == 0);
    return failed;
  });
}

TEST_CASE("a job that its caller runs settles whichever allocation fails", "[scheduler][no_tsan]") {
  const auto scale = test::host_scale();
  std::vector<float> x(100, 1.0f);
  at_every_allocation([&](long n, bool for_good) {
    Runtime runtime = runtime_of(2);  // likewise
    Job job = scale(x, 1.0f);
    fail_after(n, for_good);
    const auto result = runtime.run(std::move(job));
    const bool failed = one_failed();
    CHECK(is_of_memory(result));
    return failed;
  });
}

TEST_CASE("a function is called once with the result or out_of_memory, whichever allocation fails",
          "[scheduler][no_tsan]") {
  Runtime runtime = runtime_of(1);
  at_every_allocation([&](long n, bool for_good) {
    std::vector<float> x(1, 1.0f);
    test::Latch latch;
    std::atomic<int> calls{0};
    std::optional<Errc> error;
    auto ticket = runtime.submit(latch.kernel(x));
    latch.await();
    fail_after(n, for_good);
    ticket.then([&](const Result<Outcome>& result) {
      if (!result) error = result.error().code();
      ++calls;
    });
    const bool failed = one_failed();
    CHECK(calls == (failed ? 1 : 0));
    latch.open();
    CHECK(ticket.wait(1min));
    (void)test::becomes_true([&] { return calls > 0; });
    CHECK(calls == 1);
    CHECK(error == (failed ? std::optional(Errc::out_of_memory) : std::nullopt));
    return failed;
  });
}

TEST_CASE("jobs that follow each other settle whichever allocation fails", "[scheduler][no_tsan]") {
  Runtime runtime = runtime_of(2);
  const auto scale = test::host_scale();
  const auto copy = test::copy();
  at_every_allocation([&](long n, bool for_good) {
    auto x = runtime.array<float>(100);
    auto y = runtime.array<float>(100);
    for (float& value : x.write().value()) value = 1.0f;
    for (float& value : y.write().value()) value = 1.0f;
    test::Latch latch;
    auto first = runtime.submit(latch.kernel(x));
    Job copies = copy(x, y), scales = scale(y, 2.0f), rereads = copy(y, x);
    latch.await();
    fail_after(n, for_good);
    auto second = runtime.submit(std::move(copies));
    auto third = runtime.submit(std::move(scales));
    auto fourth = runtime.submit(std::move(rereads));
    latch.open();
    (void)test::becomes_true([&] { return fourth.ready(); });
    const bool failed = one_failed();
    for (Ticket* ticket : {&first, &second, &third, &fourth}) {
      const auto result = ticket->wait(1min);
      CHECK((result || result.error() != Errc::timed_out));
    }
    auto values = x.write(1min);
    CHECK(values);
    return failed;
  });
}

TEST_CASE("cancelling, late and closed jobs settle whichever allocation fails", "[scheduler][no_tsan]") {
  const auto scale = test::host_scale();
  at_every_allocation([&](long n, bool for_good) {
    std::vector<float> x(1, 1.0f), y(1, 1.0f);
    test::Latch latch;
    auto runtime = std::make_optional(runtime_of(1));
    auto blocker = runtime->submit(latch.kernel(x));
    latch.await();
    auto cancelled = runtime->submit(scale(y, 2.0f));
    auto dropped = std::make_optional(runtime->submit(scale(y, 2.0f)));
    auto late = runtime->submit(scale(y, 2.0f), {.start_by = 1ms});
    auto closed = runtime->submit(scale(y, 2.0f));
    fail_after(n, for_good);
    cancelled.cancel();
    dropped.reset();
    const auto late_result = late.wait();
    latch.open();
    runtime.reset();
    const bool failed = one_failed();
    CHECK(cancelled.wait(1min).error() == Errc::cancelled);
    CHECK(late_result.error() == Errc::timed_out);
    const auto at_close = closed.wait(1min);
    CHECK((at_close || at_close.error() == Errc::closed || at_close.error() == Errc::out_of_memory));
    CHECK(is_of_memory(blocker.wait(1min)));
    return failed;
  });
}

TEST_CASE("closing with a deadline abandons a job whichever allocation fails", "[.abandons]") {
  static std::vector<std::unique_ptr<test::Latch>>
      latches;  // abandoned threads may use them until the process ends
  static std::vector<float> x(1, 1.0f);
  at_every_allocation([&](long n, bool for_good) {
    test::Latch& latch = *latches.emplace_back(std::make_unique<test::Latch>());
    Runtime runtime = runtime_of(2);
    auto ticket = runtime.submit(latch.kernel(x));
    latch.await();
    fail_after(n, for_good);
    const auto closed = runtime.close(1ms);
    const bool failed = one_failed();
    REQUIRE_FALSE(closed);
    CHECK(closed.error() == Errc::timed_out);
    CHECK(ticket.wait(1min).error() == Errc::closed);
    latch.open();
    REQUIRE(runtime.scheduler().quiesce());
    CHECK(runtime.metrics().pool.active == 0);
    return failed;
  });
}

TEST_CASE("closing with a deadline allocates nothing that it cannot do without",
          "[scheduler][no_sanitizer]") {
  // In a process of its own: threads and devices that are abandoned stay until it ends.
  CHECK(test::in_own_process("closing with a deadline abandons a job whichever allocation fails") ==
        test::success);
}

namespace {

constexpr int counted_rounds = 8;

/// Returns the allocations of all threads for each of a number of equal jobs: the least of several
/// rounds. In a round in which a thread is preempted, another thread takes its jobs and may
/// allocate what it needs first.
template <class F>
double allocations_per_job(int jobs, F round) {
  long least = std::numeric_limits<long>::max();
  for (int i = 0; i < counted_rounds; ++i) {
    const long before = test::all_allocations;
    round(jobs);
    least = std::min(least, test::all_allocations - before);
  }
  return static_cast<double>(least) / jobs;
}

/// What a job allocates in the steady state.
struct Allocations {
  double run = 0, submit_and_wait = 0, many_in_flight = 0, of_threads = 0, on_array = 0, after = 0;
};
// The numbers may only fall. Growing a queue further than in the counted_rounds before is allowed
// one allocation in 50 jobs.
constexpr double growth = 0.02;
constexpr Allocations most_allocations{
    .run = 0, .submit_and_wait = 0, .many_in_flight = 0, .of_threads = 0, .on_array = 0, .after = 1};

}  // namespace

TEST_CASE("jobs allocate no more in the steady state than is stated", "[scheduler][no_sanitizer]") {
  const std::string backend = GENERATE("null", "cpu");
  CAPTURE(backend);
  Runtime runtime = Runtime::open({.pool = {.backends = {backend}}}).value();
  const auto scale = test::host_scale();
  std::vector<float> x(64, 1.0f);
  const Array<float> array = runtime.array(x);
  std::vector<Ticket> tickets;
  tickets.reserve(1000);
  std::atomic<bool> all_completed{true};
  const auto wait_for_all = [&] {
    for (Ticket& ticket : tickets) all_completed = ticket.wait() && all_completed;
    tickets.clear();
  };
  const JobOptions options{.priority = Priority::high, .tag = "frame"};

  CHECK(allocations_per_job(1000, [&](int jobs) {
          for (int i = 0; i < jobs; ++i)
            all_completed = runtime.run(scale(x, 1.0f), options) && all_completed;
        }) <= most_allocations.run + growth);
  CHECK(allocations_per_job(1000, [&](int jobs) {
          for (int i = 0; i < jobs; ++i)
            all_completed = runtime.submit(scale(x, 1.0f), options).wait() && all_completed;
        }) <= most_allocations.submit_and_wait + growth);
  CHECK(allocations_per_job(1000, [&](int jobs) {
          for (int i = 0; i < jobs; ++i) tickets.push_back(runtime.submit(scale(x, 1.0f), options));
          wait_for_all();
        }) <= most_allocations.many_in_flight + growth);
  CHECK(allocations_per_job(1000, [&](int jobs) {
          for (int i = 0; i < jobs; ++i) all_completed = runtime.run(scale(array, 1.0f)) && all_completed;
        }) <= most_allocations.on_array + growth);
  CHECK(allocations_per_job(1000, [&](int jobs) {
          tickets.push_back(runtime.submit(scale(x, 1.0f)));
          for (int i = 1; i < jobs; ++i)
            tickets.push_back(runtime.submit(scale(x, 1.0f), {.after = {tickets.back()}}));
          wait_for_all();
        }) <= most_allocations.after + growth);

  // Threads that exist already: what a thread needs once is not counted.
  std::atomic<int> round{0}, finished{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      std::vector<float> y(64, 1.0f);
      for (int seen = 0; seen < counted_rounds; ++seen) {
        while (round <= seen) std::this_thread::yield();
        for (int i = 0; i < 500; ++i)
          if (!runtime.submit(scale(y, 1.0f), options).wait()) all_completed = false;
        ++finished;
      }
    });
  CHECK(allocations_per_job(2000, [&](int) {
          const int until = 4 * ++round;
          while (finished < until) std::this_thread::yield();
        }) <= most_allocations.of_threads + growth);
  for (std::thread& thread : threads) thread.join();
  CHECK(all_completed);
}
