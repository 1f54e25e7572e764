// Functions given to `Ticket::then`.
#include <wye/wye.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "rig.hpp"

using namespace wye;
using namespace std::chrono_literals;
using test::Busy;
using test::settled;

TEST_CASE("the functions of a ticket are called in the order of their registration, each once",
          "[scheduler]") {
  Busy busy;
  std::vector<int> called;
  std::promise<void> last;
  for (int i = 0; i < 1000; ++i)
    busy.blocker.then([&, i](const Result<Outcome>& r) {
      if (r) called.push_back(i);
      if (i == 999) last.set_value();
    });
  busy.latch.open();
  last.get_future().wait();
  REQUIRE(called.size() == 1000);
  for (std::size_t i = 0; i < called.size(); ++i) REQUIRE(called[i] == static_cast<int>(i));
}

TEST_CASE("a function that throws does not keep the next ones from their call", "[scheduler]") {
  Busy busy;
  std::atomic<int> called{0};
  for (int i = 0; i < 3; ++i)
    busy.blocker.then([&](const Result<Outcome>&) {
      ++called;
      throw std::runtime_error("dropped");
    });
  std::promise<void> last;
  busy.blocker.then([&](const Result<Outcome>&) { last.set_value(); });
  busy.latch.open();
  last.get_future().wait();
  CHECK(called == 3);
  CHECK(busy.blocker.wait());
}

TEST_CASE("an exception of a function is dropped also if its job has settled before", "[scheduler]") {
  Runtime runtime = test::cpu_runtime();
  std::vector<float> x(1, 1.0f);
  auto ticket = runtime.submit(test::host_scale()(x, 2.0f));
  REQUIRE(ticket.wait());
  bool called = false;
  CHECK_NOTHROW(ticket.then([&](const Result<Outcome>&) {
    called = true;
    throw 7;
  }));
  CHECK(called);
  CHECK_NOTHROW(ticket.then(nullptr));
}

TEST_CASE("a function given to the ticket of a settled job is called at once, on the calling thread",
          "[scheduler]") {
  Runtime runtime = test::cpu_runtime();
  std::vector<float> x(1, 1.0f);
  auto ticket = runtime.submit(test::host_scale()(x, 2.0f));
  REQUIRE_FALSE(settled(ticket));
  std::thread::id on;
  ticket.then([&](const Result<Outcome>&) { on = std::this_thread::get_id(); });
  CHECK(on == std::this_thread::get_id());
}

TEST_CASE("the functions of a job that is cancelled before it starts are called before `cancel` returns",
          "[scheduler]") {
  Busy busy;
  std::vector<float> x(1, 1.0f);
  auto ticket = busy.runtime.submit(test::host_scale()(x, 2.0f));
  std::optional<Errc> code;
  std::thread::id on;
  ticket.then([&](const Result<Outcome>& r) {
    code = r.error().code();
    on = std::this_thread::get_id();
  });
  ticket.cancel();
  CHECK(code == Errc::cancelled);
  CHECK(on == std::this_thread::get_id());
}

TEST_CASE("a function receives the error of a job that is refused, times out, fails or is closed",
          "[scheduler]") {
  auto busy = std::make_unique<Busy>();
  Runtime& runtime = busy->runtime;
  std::vector<float> x(1, 1.0f);
  const auto throws = test::on_host("throws", [](Range, std::span<float>) { throw 1; });
  auto refused = runtime.submit(test::host_scale()(x, 2.0f), {.on = "nowhere"});
  auto failed = runtime.submit(throws(x));
  auto late = runtime.submit(test::host_scale()(x, 2.0f), {.start_by = 1ms});
  auto empty = runtime.submit(test::host_scale()(Array<float>(), 2.0f));
  busy->clock.advance(1s);
  CHECK(settled(empty) == Errc::invalid_argument);
  busy->release();
  CHECK(settled(refused) == Errc::not_found);
  CHECK(settled(failed) == Errc::kernel_failed);
  CHECK(settled(late) == Errc::timed_out);
  runtime.close();
  auto closed = runtime.submit(test::host_scale()(x, 2.0f));
  CHECK(settled(closed) == Errc::closed);
}

TEST_CASE("a function may submit the next job: a thousand jobs start each other", "[scheduler]") {
  Runtime runtime = test::cpu_runtime(2);
  auto x = runtime.array(std::vector<float>(1, 0.0f));
  const auto adds = test::on_host("adds", [](Range, std::span<float> values) { values[0] += 1.0f; });
  std::promise<void> all;
  int left = 1000;
  std::function<void(const Result<Outcome>&)> next = [&](const Result<Outcome>& r) {
    if (!r || --left == 0) return all.set_value();
    runtime.submit(adds(x)).then(next);  // the job uses arrays alone: it continues without its ticket
  };
  runtime.submit(adds(x)).then(next);
  REQUIRE(all.get_future().wait_for(60s) == std::future_status::ready);
  CHECK(left == 0);
  CHECK(test::contents(x) == std::vector<float>{1000.0f});
}

TEST_CASE("in a function its ticket is ready, and a wait returns the same result at once", "[scheduler]") {
  Busy busy;
  std::promise<bool> same;
  busy.blocker.then([&](const Result<Outcome>& r) {
    const bool is_ready = busy.blocker.ready();
    const auto waited = busy.blocker.wait();
    same.set_value(is_ready && r && waited && r->device().id == waited->device().id &&
                   r->run_time() == waited->run_time());
  });
  busy.latch.open();
  CHECK(same.get_future().get());
}

TEST_CASE("a function given to a ticket in a function of the same ticket is called at once", "[scheduler]") {
  Busy busy;
  std::promise<std::string> order;
  std::string called;
  busy.blocker.then([&](const Result<Outcome>&) {
    called += 'a';
    busy.blocker.then([&](const Result<Outcome>&) { called += 'b'; });
    called += 'c';
  });
  busy.blocker.then([&](const Result<Outcome>&) { order.set_value(called + 'd'); });
  busy.latch.open();
  CHECK(order.get_future().get() == "abcd");
}

TEST_CASE("a function may own its ticket and the memory that its job borrows", "[scheduler]") {
  Busy busy;
  struct Owned {
    std::vector<float> x = std::vector<float>(100, 1.0f);
    std::optional<Ticket> ticket;
  };
  auto owned = std::make_shared<Owned>();
  const std::weak_ptr<Owned> seen = owned;
  std::promise<float> value;
  owned->ticket = busy.runtime.submit(test::host_scale()(owned->x, 2.0f));
  Ticket& ticket = *owned->ticket;
  ticket.then([owned, &value](const Result<Outcome>&) mutable {
    const float x = owned->x[99];
    owned.reset();
    value.set_value(x);
  });
  owned.reset();
  CHECK_FALSE(seen.expired());
  busy.latch.open();
  CHECK(value.get_future().get() == 2.0f);
  REQUIRE(busy.runtime.scheduler().quiesce());
  CHECK(seen.expired());
}

TEST_CASE("a function may drop the last handle of another job, which is cancelled if it has not started",
          "[scheduler]") {
  Busy busy;
  auto held = busy.runtime.array(std::vector<float>(1, 1.0f));
  std::vector<float> x(1, 5.0f);
  auto view = held.write();
  std::optional<Ticket> waiting = busy.runtime.submit(test::copy()(held, x));  // for the view
  std::promise<void> dropped;
  busy.blocker.then([&](const Result<Outcome>&) {
    waiting.reset();
    dropped.set_value();
  });
  busy.latch.open();
  dropped.get_future().wait();
  CHECK(x[0] == 5.0f);
  CHECK(busy.runtime.metrics().jobs.cancelled == 1);
}

TEST_CASE("the functions of a ticket are destroyed after their call", "[scheduler]") {
  Busy busy;
  auto held = std::make_shared<int>(1);
  std::promise<void> called;
  for (int i = 0; i < 10; ++i) busy.blocker.then([held](const Result<Outcome>&) {});
  busy.blocker.then([&](const Result<Outcome>&) { called.set_value(); });
  CHECK(held.use_count() == 11);
  busy.latch.open();
  called.get_future().wait();
  REQUIRE(busy.runtime.scheduler().quiesce());
  CHECK(held.use_count() == 1);
}

TEST_CASE("the functions of a dropped ticket are called with the result of its job", "[scheduler]") {
  Runtime runtime = test::cpu_runtime();
  test::Latch latch;
  auto x = runtime.array(std::vector<float>(1, 1.0f));
  std::promise<bool> completed;
  runtime.submit(latch.kernel(x)).then([&](const Result<Outcome>& r) { completed.set_value(r.has_value()); });
  latch.open();
  CHECK(completed.get_future().get());
}

TEST_CASE("arrays that a job has written can be read in its functions", "[scheduler]") {
  Runtime runtime = test::cpu_runtime();
  test::Latch latch;
  auto x = runtime.array(std::vector<float>(1, 1.0f));
  auto ticket = runtime.submit(test::host_scale()(x, 2.0f));
  std::promise<float> value;
  ticket.then([&](const Result<Outcome>&) {
    const auto view = x.read(0ms);  // must not block
    value.set_value(view ? (*view)[0] : -1.0f);
  });
  CHECK(value.get_future().get() == 2.0f);
}
