// Jobs that follow other jobs by their tickets, and waits for several jobs.
#include <wye/wye.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rig.hpp"

using namespace wye;
using namespace std::chrono_literals;
using test::cpu_runtime;
using test::Latch;
using test::on_host;

namespace {

/// The order in which jobs ran.
class Order {
 public:
  Kernel<ReadWrite<float>> kernel(int number) {
    return on_host("numbered", [this, number](Range, std::span<float>) {
      const std::lock_guard lock(mutex_);
      numbers_.push_back(number);
    });
  }
  std::vector<int> numbers() {
    const std::lock_guard lock(mutex_);
    return numbers_;
  }

 private:
  std::mutex mutex_;
  std::vector<int> numbers_;
};

Kernel<ReadWrite<float>> failing() {
  return on_host("failing", [](Range, std::span<float>) { throw std::runtime_error("no more paper"); });
}

}  // namespace

TEST_CASE("a job starts after the jobs that it follows, whatever its priority", "[scheduler][after]") {
  Runtime runtime = cpu_runtime();
  Latch latch;
  Order order;
  std::vector<float> x(4, 1.0f);
  const auto one = [&](std::size_t i) { return std::span(x).subspan(i, 1); };
  auto first = runtime.submit(latch.kernel(one(0)));
  auto second = runtime.submit(latch.kernel(one(1)));
  auto third =
      runtime.submit(order.kernel(3)(one(2)), {.priority = Priority::high, .after = {first, second}});
  auto last = runtime.submit(order.kernel(4)(one(3)), {.priority = Priority::high, .after = {third, first}});
  latch.await();
  CHECK(runtime.metrics().jobs.queued >= 2);
  float other = 1.0f;
  auto probe = runtime.submit(test::host_scale()(std::span(&other, 1), 2.0f), {.priority = Priority::low});
  CHECK_FALSE(test::settled(probe));  // a job that may start would start before it
  CHECK(order.numbers().empty());
  latch.open();
  REQUIRE(last.wait());
  CHECK(first.ready());
  CHECK(second.ready());
  CHECK(order.numbers() == std::vector<int>{3, 4});
}

TEST_CASE("a job may follow jobs that have completed, and tickets may end before their followers start",
          "[scheduler][after]") {
  Runtime runtime = cpu_runtime();
  auto array = runtime.array<float>(std::vector<float>(1, 1.0f));
  auto settled = runtime.submit(test::host_scale()(array, 2.0f));
  REQUIRE(settled.wait());
  std::vector<float> x(1, 1.0f);
  CHECK(runtime.run(test::host_scale()(x, 2.0f), {.after = {settled}}));

  Latch latch;
  auto other = runtime.array<float>(1);
  std::optional<Ticket> before = runtime.submit(latch.kernel(other));
  auto after = runtime.submit(test::host_scale()(x, 2.0f), {.after = {*before}});
  before.reset();  // its job uses an array alone: it continues
  latch.await();
  CHECK_FALSE(after.ready());
  latch.open();
  CHECK(after.wait());
  CHECK(x[0] == 4.0f);
}

TEST_CASE("the failure of a job fails its followers with its error and its name", "[scheduler][after]") {
  Runtime runtime = cpu_runtime();
  std::vector<float> x(3, 1.0f);
  const auto one = [&](std::size_t i) { return std::span(x).subspan(i, 1); };
  Latch latch;
  auto gate = runtime.submit(latch.kernel(one(0)));
  auto fails = runtime.submit(failing()(one(1)), {.tag = "page 3", .after = {gate}});
  auto follows = runtime.submit(test::host_scale()(one(2), 2.0f), {.after = {fails}});
  auto indirect = runtime.submit(test::host_scale()(one(2), 2.0f), {.after = {follows}});
  latch.open();
  const auto result = follows.wait();
  REQUIRE_FALSE(result);
  CHECK(result.error() == Errc::kernel_failed);
  CHECK(result.error().describe().find("job 'failing' (tag 'page 3')") != std::string::npos);
  CHECK(result.error().describe().find("no more paper") != std::string::npos);
  CHECK(indirect.wait().error() == Errc::kernel_failed);
  CHECK(x[2] == 1.0f);
  // A failure that is known already has the same effect.
  CHECK(runtime.run(test::host_scale()(one(2), 2.0f), {.after = {fails}}).error() == Errc::kernel_failed);
  CHECK(x[2] == 1.0f);
  const SchedulerMetrics metrics = runtime.metrics().jobs;
  CHECK(metrics.failed == 4);
  CHECK(metrics.queued == 0);
}

TEST_CASE("a job with AfterFailure::run starts once the jobs that it follows have settled in any way",
          "[scheduler][after]") {
  Runtime runtime = cpu_runtime();
  std::vector<float> x(3, 1.0f);
  const auto one = [&](std::size_t i) { return std::span(x).subspan(i, 1); };
  Latch latch;
  auto gate = runtime.submit(latch.kernel(one(0)));
  auto fails = runtime.submit(failing()(one(1)), {.after = {gate}});
  auto cleans_up = runtime.submit(test::host_scale()(one(2), 2.0f),
                                  {.after = {fails}, .after_failure = AfterFailure::run});
  float other = 1.0f;
  auto probe = runtime.submit(test::host_scale()(std::span(&other, 1), 2.0f), {.priority = Priority::low});
  CHECK_FALSE(test::settled(probe));  // a job that may start would start before it
  CHECK(x[2] == 1.0f);
  latch.open();
  CHECK(cleans_up.wait());
  CHECK(x[2] == 2.0f);
}

TEST_CASE("cancellation reaches the followers of a job", "[scheduler][after]") {
  Runtime runtime = cpu_runtime();
  std::vector<float> x(4, 1.0f);
  const auto one = [&](std::size_t i) { return std::span(x).subspan(i, 1); };
  Latch latch;
  auto gate = runtime.submit(latch.kernel(one(0)));
  auto cancelled = runtime.submit(test::host_scale()(one(1), 2.0f), {.after = {gate}});
  auto follows = runtime.submit(test::host_scale()(one(2), 2.0f), {.after = {cancelled}});
  auto last = runtime.submit(test::host_scale()(one(3), 2.0f), {.after = {follows}});
  cancelled.cancel();
  CHECK(cancelled.wait().error() == Errc::cancelled);
  latch.open();
  CHECK(follows.wait().error() == Errc::cancelled);
  CHECK(last.wait().error() == Errc::cancelled);
  CHECK(gate.wait());
  CHECK(x == std::vector<float>(4, 1.0f));
}

TEST_CASE("a job that was moved from, or of another runtime, cannot be followed", "[scheduler][after]") {
  Runtime runtime = cpu_runtime(), other = cpu_runtime();
  std::vector<float> x(2, 1.0f);
  auto foreign = other.submit(test::host_scale()(std::span(x).first(1), 2.0f));
  const auto refused = runtime.run(test::host_scale()(std::span(x).last(1), 2.0f), {.after = {foreign}});
  REQUIRE_FALSE(refused);
  CHECK(refused.error() == Errc::invalid_argument);
  CHECK(refused.error().sentence() == "Dependency 1 of job 'host_scale' is a job of another runtime.");
  Ticket taken = std::move(foreign);
  const auto empty = runtime.run(test::host_scale()(std::span(x).last(1), 2.0f), {.after = {taken, foreign}});
  REQUIRE_FALSE(empty);
  CHECK(empty.error() == Errc::invalid_argument);
  CHECK(taken.wait());
  const auto also = other.run(test::host_scale()(std::span(x).last(1), 2.0f), {.after = {taken, foreign}});
  REQUIRE_FALSE(also);
  CHECK(also.error().sentence() == "Dependency 2 of job 'host_scale' is a ticket that was moved from.");
  CHECK(x == std::vector<float>{2.0f, 1.0f});
}

TEST_CASE("a chain of ten thousand jobs uses no stack per link, whether it runs or fails",
          "[scheduler][after]") {
  constexpr std::size_t links = 10'000;
  const bool fails = GENERATE(false, true);
  const bool cancels = GENERATE(false, true);
  CAPTURE(fails, cancels);
  Runtime runtime = cpu_runtime();
  Latch latch;
  std::vector<float> x(1, 1.0f), gate_memory(1, 1.0f);
  std::atomic<std::size_t> ran{0};
  const auto link = on_host("link", [&](Range, std::span<float>) { ++ran; });
  std::vector<Ticket> tickets;
  tickets.reserve(links + 2);
  tickets.push_back(runtime.submit(latch.kernel(gate_memory)));
  tickets.push_back(fails ? runtime.submit(failing()(x), {.after = {tickets[0]}})
                          : runtime.submit(link(x), {.after = {tickets[0]}}));
  for (std::size_t i = 0; i < links; ++i)
    tickets.push_back(runtime.submit(link(x), {.after = {tickets.back()}}));
  if (cancels) tickets[1].cancel();
  latch.open();
  const auto last = tickets.back().wait();
  CHECK(bool(last) == (!fails && !cancels));
  CHECK(ran == (fails || cancels ? 0 : links + 1));
  CHECK(wait_all(tickets).has_value() == (!fails && !cancels));
  const SchedulerMetrics metrics = runtime.metrics().jobs;
  CHECK(metrics.submitted == links + 2);
  CHECK(metrics.queued + metrics.running == 0);
}

TEST_CASE("jobs that follow by tickets and by arrays at once have one order", "[scheduler][after]") {
  Runtime runtime = cpu_runtime();
  auto a = runtime.array<float>(std::vector<float>(1, 1.0f)),
       b = runtime.array<float>(std::vector<float>(1, 1.0f));
  const auto add = on_host("add", [](Range, std::span<float> v) { v[0] += 3.0f; });
  for (int round = 0; round < 200; ++round) {
    auto scaled = runtime.submit(test::host_scale()(a, 2.0f));
    auto added = runtime.submit(add(b), {.after = {scaled}});
    auto back = runtime.submit(test::host_scale()(b, 0.5f));
    auto again = runtime.submit(test::host_scale()(a, 0.5f), {.after = {back, added}});
    if (round % 50 == 0) REQUIRE(again.wait());
  }
  CHECK((*a.read())[0] == 1.0f);
  CHECK(std::abs((*b.read())[0] - 3.0f) < 0.001f);
}

TEST_CASE("a host function may wait for a job that follows another one, with one job at a time",
          "[scheduler][after]") {
  Runtime runtime = cpu_runtime(1);
  std::vector<float> x(3, 1.0f);
  std::optional<Ticket> before, after;
  auto outer = runtime.submit(on_host("outer", [&](Range range, std::span<float>) {
    if (range.first != 0) return;
    before = runtime.submit(test::host_scale()(std::span(x).subspan(1, 1), 2.0f));
    after = runtime.submit(test::host_scale()(std::span(x).subspan(2, 1), 2.0f), {.after = {*before}});
    std::vector<Ticket> both;
    both.push_back(std::move(*after));
    if (wait_any(both, Deadline(60s)).value() != 0) throw std::runtime_error("no such ticket");
  })(std::span(x).first(1)));
  CHECK(outer.wait(Deadline(60s)));
  CHECK(x == std::vector<float>{1.0f, 2.0f, 2.0f});
}

TEST_CASE("threads of the CPU team may wait for jobs of two runtimes, with one job at a time",
          "[scheduler][after]") {
  const auto open = [] {
    return Runtime::open({.pool = {.backends = {"cpu"}, .lanes_per_device = 16, .cpu_threads = 4},
                          .scheduler = {.concurrent_jobs = 1}})
        .value();
  };
  Runtime runtime = open(), other = open();
  constexpr std::size_t items = 16;
  std::vector<float> x(items, 1.0f), y(items, 1.0f);
  const auto kernel = Kernel<ReadWrite<float>>::make(
                          {.name = "waits",
                           .sources = {host(
                               [&](Range range, std::span<float> all) {
                                 for (std::uint64_t i = range.first; i < range.last; ++i) {
                                   Runtime& on = i % 2 == 0 ? runtime : other;
                                   const auto one = std::span(y).subspan(i, 1);
                                   auto before = on.submit(test::host_scale()(one, 2.0f));
                                   auto after = on.submit(test::host_scale()(one, 3.0f), {.after = {before}});
                                   if (i % 4 < 2)
                                     after.wait().value();
                                   else
                                     after.wait(Deadline(60s)).value();
                                   all[i] = 7.0f;
                                 }
                               },
                               {.tile = Extent3{1, 1, 1}})}})
                          .value();
  auto ticket = runtime.submit(kernel(x));
  const auto result = ticket.wait(Deadline(60s));
  INFO((result ? std::string() : result.error().describe()));
  CHECK(result);
  CHECK(x == std::vector<float>(items, 7.0f));
  CHECK(y == std::vector<float>(items, 6.0f));
}

TEST_CASE("closing settles jobs that follow others", "[scheduler][after]") {
  Runtime runtime = cpu_runtime();
  Latch latch;
  std::vector<float> x(2, 1.0f);
  auto gate = runtime.submit(latch.kernel(std::span(x).first(1)));
  auto follows = runtime.submit(test::host_scale()(std::span(x).last(1), 2.0f), {.after = {gate}});
  latch.await();
  std::thread closing([&] { runtime.close(); });
  latch.open();
  closing.join();
  CHECK(gate.wait());
  const auto result = follows.wait();
  CHECK((result || result.error() == Errc::closed));
}

TEST_CASE("wait_all waits for all jobs and returns the first failure", "[scheduler][wait]") {
  Runtime runtime = cpu_runtime(), other = cpu_runtime();
  CHECK(wait_all({}));
  Latch latch;
  std::vector<float> x(3, 1.0f);
  const auto one = [&](std::size_t i) { return std::span(x).subspan(i, 1); };
  std::vector<Ticket> tickets;
  tickets.push_back(runtime.submit(latch.kernel(one(0))));
  tickets.push_back(other.submit(failing()(one(1)), {.tag = "second"}));
  tickets.push_back(other.submit(test::host_scale()(one(2), 2.0f)));
  latch.await();
  const auto early = wait_all(tickets, Deadline(10ms));
  REQUIRE_FALSE(early);
  CHECK(early.error() == Errc::timed_out);
  latch.open();
  const auto failure = wait_all(tickets);
  REQUIRE_FALSE(failure);
  CHECK(failure.error() == Errc::kernel_failed);
  for (const Ticket& ticket : tickets) CHECK(ticket.ready());
  tickets.erase(tickets.begin() + 1);
  CHECK(wait_all(tickets));
  Ticket taken = std::move(tickets[0]);
  CHECK(wait_all(tickets).error() == Errc::invalid_argument);
}

TEST_CASE("wait_any returns the first job that has completed", "[scheduler][wait]") {
  Runtime runtime = cpu_runtime(), other = cpu_runtime();
  CHECK(wait_any({}).error() == Errc::invalid_argument);
  Latch slow, quick;
  std::vector<float> x(3, 1.0f);
  const auto one = [&](std::size_t i) { return std::span(x).subspan(i, 1); };
  std::vector<Ticket> tickets;
  tickets.push_back(runtime.submit(slow.kernel(one(0))));
  tickets.push_back(other.submit(quick.kernel(one(1))));
  const auto early = wait_any(tickets, Deadline(10ms));
  REQUIRE_FALSE(early);
  CHECK(early.error() == Errc::timed_out);
  std::optional<Result<std::size_t>> waited;
  test::Thread waits([&] { waited = wait_any(tickets); });
  quick.await();
  waits.await_parked();
  quick.open();
  waits.join();
  const auto& first = *waited;
  REQUIRE(first);
  CHECK(*first == 1);
  CHECK(wait_any(tickets, Deadline(0ms)).value() == 1);
  tickets.erase(tickets.begin() + 1);
  Ticket taken = std::move(tickets[0]);
  CHECK(wait_any(tickets).error() == Errc::invalid_argument);
  slow.open();
}

TEST_CASE("wait_any settles a job whose start_by passes", "[scheduler][wait]") {
  test::Busy busy;
  std::vector<float> x(1, 1.0f);
  std::vector<Ticket> late;
  late.push_back(busy.runtime.submit(test::host_scale()(x, 2.0f), {.start_by = 1h}));
  std::optional<Result<std::size_t>> first;
  test::Thread waits([&] { first = wait_any(late); });
  waits.await_parked();
  busy.clock.advance(1h);
  waits.join();
  CHECK(first->value() == 0);
  CHECK(late[0].wait().error() == Errc::timed_out);
}

TEST_CASE("a manual clock that shows the deadline of a wait ends it", "[scheduler][wait]") {
  test::Busy busy;
  std::vector<float> x(1, 1.0f);
  std::vector<Ticket> tickets;
  tickets.push_back(busy.runtime.submit(test::host_scale()(x, 2.0f)));
  std::optional<Errc> one, any;
  test::Thread waits([&] { one = tickets[0].wait(Deadline(1h)).error().code(); });
  test::Thread waits_too([&] { any = wait_any(tickets, Deadline(1h)).error().code(); });
  waits.await_parked();
  waits_too.await_parked();
  busy.clock.advance(59min);
  waits.await_parked();
  CHECK_FALSE((waits.has_ended() || waits_too.has_ended()));
  busy.clock.advance(1min);
  waits.join();
  waits_too.join();
  CHECK(one == Errc::timed_out);
  CHECK(any == Errc::timed_out);
  CHECK_FALSE(tickets[0].ready());
}

TEST_CASE("wait_any consumes a thousand jobs in turn", "[scheduler][wait]") {
  Runtime runtime = cpu_runtime();
  std::vector<float> x(1000, 1.0f);
  std::vector<Ticket> tickets;
  for (std::size_t i = 0; i < x.size(); ++i)
    tickets.push_back(runtime.submit(test::host_scale()(std::span(x).subspan(i, 1), 2.0f)));
  while (!tickets.empty()) {
    const auto index = wait_any(tickets, Deadline(60s));
    REQUIRE(index);
    REQUIRE(tickets[*index].wait());
    tickets.erase(tickets.begin() + static_cast<std::ptrdiff_t>(*index));
  }
  CHECK(std::all_of(x.begin(), x.end(), [](float v) { return v == 2.0f; }));
}

TEST_CASE("an executor of the application calls the continuation", "[scheduler][then]") {
  Runtime runtime = cpu_runtime();
  std::vector<float> x(1, 1.0f);
  std::mutex mutex;
  std::vector<std::function<void()>> posted;
  const Executor executor = [&](std::function<void()> function) {
    const std::lock_guard lock(mutex);
    posted.push_back(std::move(function));
  };
  std::optional<std::thread::id> called_on;
  auto ticket = runtime.submit(test::host_scale()(x, 2.0f));
  ticket.then(
      [&](const Result<Outcome>& result) {
        CHECK(result);
        called_on = std::this_thread::get_id();
      },
      executor);
  REQUIRE(ticket.wait());
  for (bool has_one = false; !has_one;) {
    const std::lock_guard lock(mutex);
    has_one = !posted.empty();
  }
  CHECK_FALSE(called_on);
  posted.front()();
  CHECK(called_on == std::this_thread::get_id());
}

TEST_CASE("an executor that throws disturbs no other continuation", "[scheduler][then]") {
  Runtime runtime = cpu_runtime();
  Latch latch;
  std::vector<float> x(1, 1.0f);
  auto ticket = runtime.submit(latch.kernel(x));
  std::promise<void> second;
  ticket.then([](const Result<Outcome>&) {}, [](std::function<void()>) { throw std::runtime_error("full"); });
  ticket.then([](const Result<Outcome>&) { throw std::runtime_error("then"); },
              [](std::function<void()> function) { function(); });
  ticket.then([&](const Result<Outcome>&) { second.set_value(); });
  latch.open();
  CHECK(second.get_future().wait_for(60s) == std::future_status::ready);
  CHECK(ticket.wait());
  ticket.then([](const Result<Outcome>&) { throw std::runtime_error("late"); });
}

TEST_CASE("a job that follows several jobs fails if any of them has failed", "[scheduler][after]") {
  Runtime runtime = cpu_runtime();
  for (std::size_t fails = 0; fails < 3; ++fails) {
    CAPTURE(fails);
    std::vector<float> x(4, 1.0f);
    const auto one = [&](std::size_t i) { return std::span(x).subspan(i, 1); };
    std::vector<Ticket> before;
    for (std::size_t i = 0; i < 3; ++i)
      before.push_back(
          runtime.submit(i == fails ? Job(failing()(one(i))) : test::host_scale()(one(i), 2.0f)));
    const auto result =
        runtime.run(test::host_scale()(one(3), 2.0f), {.after = {before[0], before[1], before[2]}});
    REQUIRE_FALSE(result);
    CHECK(result.error() == Errc::kernel_failed);
    CHECK(x[3] == 1.0f);
  }
}
