// Tickets: ownership, and lifetime beside jobs, runtimes and memory.
#include <wye/wye.hpp>

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "rig.hpp"

using namespace wye;
using namespace std::chrono_literals;
using test::Busy;
using test::settled;

static_assert(!std::is_copy_constructible_v<Ticket> && !std::is_copy_assignable_v<Ticket>);
static_assert(std::is_nothrow_move_constructible_v<Ticket> && std::is_nothrow_move_assignable_v<Ticket>);

TEST_CASE("a ticket that was moved waits for its job, on any thread", "[scheduler]") {
  Busy busy;
  std::vector<float> x(1, 1.0f);
  Ticket first = busy.runtime.submit(test::host_scale()(x, 2.0f));
  Ticket second = std::move(first);
  std::optional<Errc> code;
  std::thread waits([&, third = std::move(second)]() mutable {
    const auto done = third.wait();
    if (!done) code = done.error().code();
  });
  busy.release();
  waits.join();
  CHECK_FALSE(code);
  CHECK(x[0] == 2.0f);
}

TEST_CASE("a ticket that takes another job cancels the queued job that it had", "[scheduler]") {
  Busy busy;
  std::vector<float> x(1, 1.0f), y(1, 1.0f);
  Ticket ticket = busy.runtime.submit(test::host_scale()(x, 2.0f));
  ticket = busy.runtime.submit(test::host_scale()(y, 2.0f));
  CHECK(busy.runtime.metrics().jobs.cancelled == 1);
  Ticket& same = ticket;
  ticket = std::move(same);
  CHECK(busy.runtime.metrics().jobs.cancelled == 1);
  busy.release();
  CHECK_FALSE(settled(ticket));
  CHECK(x[0] == 1.0f);
  CHECK(y[0] == 2.0f);
}

TEST_CASE("a job of arrays continues without its ticket, and its failure stays with its outputs",
          "[scheduler]") {
  Busy busy;
  auto x = busy.runtime.array(std::vector<float>(1, 1.0f)),
       y = busy.runtime.array(std::vector<float>(1, 1.0f));
  const auto throws = test::on_host("throws", [](Range, std::span<float>) { throw 1; });
  { const Ticket dropped = busy.runtime.submit(test::host_scale()(x, 2.0f)); }
  { const Ticket dropped = busy.runtime.submit(throws(y)); }
  busy.release();
  CHECK(test::contents(x) == std::vector<float>{2.0f});
  CHECK(y.read().error() == Errc::kernel_failed);
}

TEST_CASE("a job of arrays and of host memory without elements continues without its ticket", "[scheduler]") {
  const auto add =
      Kernel<Read<float>, ReadWrite<float>>::make(
          {.name = "add", .sources = {host([](Range range, std::span<const float> y, std::span<float> x) {
                            for (std::uint64_t i : range) x[i] += y.empty() ? 1.0f : y[i];
                          })}})
          .value();
  Busy busy;
  auto x = busy.runtime.array(std::vector<float>(1, 1.0f));
  { const Ticket dropped = busy.runtime.submit(add(std::span<const float>(), x)); }
  CHECK(busy.runtime.metrics().jobs.cancelled == 0);
  busy.release();
  CHECK(test::contents(x) == std::vector<float>{2.0f});
}

TEST_CASE("dropping a ticket does not wait for the predecessors of its job, also if it borrows memory",
          "[scheduler]") {
  Runtime runtime = test::cpu_runtime(2);
  test::Latch latch;
  auto x = runtime.array(std::vector<float>(1, 1.0f));
  auto running = runtime.submit(latch.kernel(x));
  latch.await();
  {
    std::vector<float> borrowed(1, 1.0f);
    const Ticket waits = runtime.submit(test::copy()(x, borrowed));
  }
  CHECK(runtime.metrics().jobs.cancelled == 1);
  CHECK_FALSE(running.ready());
  latch.open();
  CHECK(running.wait());
  CHECK(test::contents(x) == std::vector<float>{1.0f});  // the cancelled job would have read it only
}

TEST_CASE("a ticket outlives its runtime, with result, outcome and explanation", "[scheduler]") {
  std::optional<Ticket> completed, failed;
  std::optional<Outcome> outcome;
  std::vector<float> x(1, 1.0f), y(1, 1.0f);
  {
    Runtime runtime = test::cpu_runtime();
    completed = runtime.submit(test::host_scale()(x, 2.0f), {.tag = "frame 7"});
    failed = runtime.submit(test::on_host("throws", [](Range, std::span<float>) { throw 1; })(y));
    outcome = completed->wait().value();
    CHECK(settled(*failed) == Errc::kernel_failed);
  }
  CHECK(completed->ready());
  REQUIRE(completed->wait());
  CHECK(completed->explain().tag == "frame 7");
  CHECK(completed->explain().candidates.size() == 1);
  completed->cancel();
  CHECK(completed->wait());
  CHECK(failed->wait().error() == Errc::kernel_failed);
  completed.reset();
  failed.reset();
  CHECK(outcome->device().id == "cpu:0");
  CHECK(outcome->reason() == "'cpu:0' is the only device.");
}

TEST_CASE("every wait of a ticket returns the same result", "[scheduler]") {
  Runtime runtime = test::cpu_runtime();
  std::vector<float> x(1, 1.0f);
  auto ticket = runtime.submit(test::host_scale()(x, 2.0f));
  const auto first = ticket.wait(), second = ticket.wait();
  REQUIRE(first);
  REQUIRE(second);
  CHECK(first->queue_time() == second->queue_time());
  CHECK(first->run_time() == second->run_time());
  CHECK(x[0] == 2.0f);  // it ran once
}

TEST_CASE("a job that has not settled has a name and no candidates in its explanation", "[scheduler]") {
  Busy busy;
  std::vector<float> x(1, 1.0f);
  auto queued = busy.runtime.submit(test::host_scale()(x, 2.0f), {.tag = "frame 7"});
  auto cancelled = busy.runtime.submit(test::host_scale()(x, 2.0f));
  cancelled.cancel();
  CHECK(cancelled.explain().candidates.empty());
  for (const Ticket* ticket : {&queued, &busy.blocker}) CHECK(ticket->explain().candidates.empty());
  CHECK(queued.explain().job == "host_scale");
  CHECK(queued.explain().tag == "frame 7");
  busy.release();
  REQUIRE_FALSE(settled(queued));
  CHECK(queued.explain().candidates.size() == 1);
}

TEST_CASE("the text of job options is needed until `submit` returns only", "[scheduler]") {
  Busy busy;
  std::vector<float> x(1, 1.0f);
  auto tag = std::make_unique<std::string>(100, 't'), on = std::make_unique<std::string>("cpu:0");
  auto ticket = busy.runtime.submit(test::host_scale()(x, 2.0f), {.on = *on, .tag = *tag});
  *tag = std::string(100, 'u');
  *on = "moon";
  tag.reset();
  on.reset();
  busy.release();
  CHECK_FALSE(settled(ticket));
  CHECK(ticket.explain().tag == std::string(100, 't'));
}

TEST_CASE("a job that cannot run returns its error and is counted under its type", "[scheduler]") {
  Runtime runtime = test::cpu_runtime();
  const auto make = [] {
    return Job::failed("matmul", workload_types::matrix, Error(Errc::invalid_argument, "The shapes differ."));
  };
  CHECK(make().name() == "matmul");
  CHECK(make().size() == 0);
  auto ticket = runtime.submit(make());
  CHECK(ticket.ready());
  const auto done = ticket.wait();
  CHECK(done.error() == Errc::invalid_argument);
  CHECK(done.error().sentence() == "The shapes differ.");
  CHECK(runtime.run(make()).error() == Errc::invalid_argument);
  CHECK(runtime.metrics().jobs.by_type.at("matrix").failed == 2);
}

TEST_CASE("the ticket of a job whose memory is not valid settles at once, and the job holds no array",
          "[scheduler]") {
  Busy busy;
  auto x = busy.runtime.array(std::vector<float>(4, 1.0f));
  auto refused = busy.runtime.submit(test::copy()(x, Array<float>()));
  CHECK(refused.ready());
  CHECK(refused.wait().error() == Errc::invalid_argument);
  CHECK(x.write(0ms));  // no user has it
  auto other = busy.runtime.submit(test::copy()(Array<float>(), x));
  CHECK(other.ready());
  CHECK(x.read(0ms).error() == Errc::invalid_argument);  // the refused job should have written it
  CHECK(x.write(0ms));
  CHECK(test::contents(x) == std::vector<float>(4, 1.0f));
}

namespace {

/// Waits for a ticket on a thread of the application that can be cancelled.
struct Cancellable {
  Ticket* ticket = nullptr;
  bool has_returned = false;
  bool has_completed = false;
  bool goes_on = false;

  static void* wait(void* object) {
    auto& self = *static_cast<Cancellable*>(object);
    self.has_completed = self.ticket->wait().has_value();
    self.has_returned = true;
    ::pthread_testcancel();
    self.goes_on = true;
    return nullptr;
  }
  void check(pthread_t thread) const {
    void* result = nullptr;
    REQUIRE(::pthread_join(thread, &result) == 0);
    CHECK(result == PTHREAD_CANCELED);
    CHECK(has_returned);
    CHECK(has_completed);
    CHECK_FALSE(goes_on);
  }
};

}  // namespace

TEST_CASE("a thread that is cancelled while it waits for a job ends after the wait", "[scheduler]") {
  Runtime runtime = test::cpu_runtime();
  test::Latch latch;
  std::vector<float> x(1, 1.0f);
  Ticket ticket = runtime.submit(latch.kernel(x));
  latch.await();  // on a worker
  Cancellable waits{&ticket};
  pthread_t thread{};
  REQUIRE(::pthread_create(&thread, nullptr, Cancellable::wait, &waits) == 0);
  ::pthread_cancel(thread);  // its wait would be the first cancellation point
  latch.open();
  waits.check(thread);
}

TEST_CASE("a thread that is cancelled in a host function that it runs ends after the job", "[scheduler]") {
  std::vector<float> x(1, 1.0f);
  Runtime runtime = test::cpu_runtime();
  const auto cancels = test::on_host("cancels", [](Range, std::span<float> values) {
    ::pthread_cancel(::pthread_self());
    ::pthread_testcancel();
    values[0] += 1;
  });
  struct Run {
    Runtime& runtime;
    Job job;
    bool has_completed = false;
    static void* body(void* object) {
      auto& self = *static_cast<Run*>(object);
      self.has_completed = self.runtime.run(std::move(self.job)).has_value();
      ::pthread_testcancel();
      return nullptr;
    }
  } run{runtime, cancels(x)};
  pthread_t thread{};
  REQUIRE(::pthread_create(&thread, nullptr, Run::body, &run) == 0);
  void* result = nullptr;
  REQUIRE(::pthread_join(thread, &result) == 0);
  CHECK(result == PTHREAD_CANCELED);
  CHECK(run.has_completed);
  auto ticket = runtime.submit(cancels(x));
  CHECK_FALSE(settled(ticket));  // on a worker, which goes on
  CHECK_FALSE(settled(ticket));
  CHECK(x == std::vector<float>{3.0f});
}
