// Cancelling jobs at each stage.
#include <wye/wye.hpp>

#include <atomic>
#include <chrono>
#include <future>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "rig.hpp"

using namespace wye;
using namespace std::chrono_literals;
using test::Busy;
using test::settled;

TEST_CASE("a job that is cancelled before it starts never runs, however often it is cancelled",
          "[scheduler]") {
  Busy busy;
  std::atomic<int> calls{0};
  const auto counts = test::on_host("counts", [&](Range, std::span<float>) { ++calls; });
  std::vector<float> x(1, 1.0f);
  auto ticket = busy.runtime.submit(counts(x));
  for (int i = 0; i < 3; ++i) ticket.cancel();
  CHECK(ticket.wait().error() == Errc::cancelled);
  busy.release();
  std::vector<float> y(1, 1.0f);
  CHECK(busy.runtime.run(test::host_scale()(y, 2.0f)));  // the queue is empty by now
  CHECK(calls == 0);
  CHECK(busy.runtime.metrics().jobs.cancelled == 1);
}

TEST_CASE("a host function that ignores its StopToken ends, and its result is dropped", "[scheduler]") {
  Runtime runtime = test::cpu_runtime();
  test::Latch latch;
  auto x = runtime.array(std::vector<float>(1, 1.0f));
  auto ticket = runtime.submit(latch.kernel(x));
  latch.await();
  ticket.cancel();
  ticket.cancel();
  CHECK(ticket.wait(1ms).error() == Errc::timed_out);  // the function still uses its memory
  CHECK_FALSE(ticket.ready());
  latch.open();
  CHECK(settled(ticket) == Errc::cancelled);
  CHECK(x.read().error() == Errc::cancelled);
  CHECK(runtime.metrics().jobs.cancelled == 1);
  CHECK(runtime.metrics().jobs.completed == 0);
}

TEST_CASE("cancelling a job that has completed keeps its result and its arrays", "[scheduler]") {
  Runtime runtime = test::cpu_runtime();
  auto x = runtime.array(std::vector<float>(1, 1.0f));
  auto ticket = runtime.submit(test::host_scale()(x, 2.0f));
  REQUIRE_FALSE(settled(ticket));
  ticket.cancel();
  CHECK(ticket.wait());
  CHECK(test::contents(x) == std::vector<float>{2.0f});
}

TEST_CASE("cancelling a job that has failed keeps its error", "[scheduler]") {
  Runtime runtime = test::cpu_runtime();
  std::vector<float> x(1, 1.0f);
  auto ticket = runtime.submit(
      test::on_host("throws", [](Range, std::span<float>) { throw std::runtime_error("no"); })(x));
  REQUIRE(settled(ticket) == Errc::kernel_failed);
  ticket.cancel();
  CHECK(ticket.wait().error() == Errc::kernel_failed);
  CHECK(runtime.metrics().jobs.cancelled == 0);
  CHECK(runtime.metrics().jobs.failed == 1);
}

TEST_CASE("the followers of a cancelled job fail as cancelled until a job overwrites the array",
          "[scheduler]") {
  Busy busy;
  Runtime& runtime = busy.runtime;
  auto x = runtime.array(std::vector<float>(4, 1.0f)), y = runtime.array(std::vector<float>(4, 2.0f)),
       z = runtime.array(std::vector<float>(4, 3.0f));
  auto producer = runtime.submit(test::host_scale()(x, 2.0f));
  auto reader = runtime.submit(test::copy()(x, y));
  auto far = runtime.submit(test::host_scale()(y, 2.0f));
  auto mends = runtime.submit(test::copy()(z, x));
  auto after = runtime.submit(test::host_scale()(x, 2.0f));
  producer.cancel();
  CHECK(producer.ready());
  busy.release();
  CHECK(settled(reader) == Errc::cancelled);
  CHECK(settled(far) == Errc::cancelled);
  CHECK_FALSE(settled(mends));
  CHECK_FALSE(settled(after));
  CHECK(y.read().error() == Errc::cancelled);
  CHECK(test::contents(x) == std::vector<float>(4, 6.0f));
}

TEST_CASE("cancelling a reader fails its output and not its input", "[scheduler]") {
  Busy busy;
  auto x = busy.runtime.array(std::vector<float>(4, 1.0f)), y = busy.runtime.array(std::vector<float>(4));
  auto reader = busy.runtime.submit(test::copy()(x, y));
  auto writer = busy.runtime.submit(test::host_scale()(x, 2.0f));
  reader.cancel();
  busy.release();
  CHECK_FALSE(settled(writer));
  CHECK(test::contents(x) == std::vector<float>(4, 2.0f));
  CHECK(y.read().error() == Errc::cancelled);
}

TEST_CASE("a continuation may cancel another job", "[scheduler]") {
  Busy busy;
  auto held = busy.runtime.array(std::vector<float>(1, 1.0f));
  std::vector<float> y(1, 5.0f);
  auto view = held.write();
  auto second = busy.runtime.submit(test::copy()(held, y));  // waits for the view
  std::promise<bool> cancelled;
  busy.blocker.then([&](const Result<Outcome>&) {
    second.cancel();
    cancelled.set_value(second.ready());
  });
  busy.latch.open();
  CHECK(cancelled.get_future().get());
  CHECK(second.wait().error() == Errc::cancelled);
  CHECK(y[0] == 5.0f);
}

TEST_CASE("a host function may cancel its own job", "[scheduler]") {
  Runtime runtime = test::cpu_runtime();
  std::promise<Ticket*> own;
  std::promise<bool> has_seen_stop;
  auto ticket_of_function = own.get_future();
  const auto cancels = Kernel<ReadWrite<float>>::make(
      {.name = "cancels", .sources = {host([&](Range, std::span<float>, StopToken stop) {
                            ticket_of_function.get()->cancel();
                            has_seen_stop.set_value(stop.stop_requested());
                          })}});
  std::vector<float> x(1, 1.0f);
  auto ticket = runtime.submit((*cancels)(x));
  own.set_value(&ticket);
  CHECK(has_seen_stop.get_future().get());
  CHECK(settled(ticket) == Errc::cancelled);
}

TEST_CASE("a cancelled job in the queue does not hold up the jobs behind it", "[scheduler]") {
  Busy busy;
  std::vector<std::vector<float>> memory(100, std::vector<float>(1, 1.0f));
  std::vector<Ticket> tickets;
  for (auto& x : memory) tickets.push_back(busy.runtime.submit(test::host_scale()(x, 2.0f)));
  for (std::size_t i = 0; i < tickets.size(); i += 2) tickets[i].cancel();
  CHECK(busy.runtime.metrics().jobs.queued == 50);
  busy.release();
  for (std::size_t i = 0; i < tickets.size(); ++i) {
    const auto error = settled(tickets[i]);
    CHECK(error == (i % 2 == 0 ? std::optional(Errc::cancelled) : std::nullopt));
    CHECK(memory[i][0] == (i % 2 == 0 ? 1.0f : 2.0f));
  }
}

TEST_CASE("a job that races with its cancellation completes wholly or is cancelled", "[scheduler]") {
  Runtime runtime = test::cpu_runtime();
  const auto scale = test::host_scale();
  std::mt19937 random(1);
  int completed = 0;
  constexpr int jobs = test::rounds(4000);
  for (int i = 0; i < jobs; ++i) {
    std::vector<float> x(64, 1.0f);
    auto ticket = runtime.submit(scale(x, 2.0f));
    for (auto spins = random() % 2000; spins > 0; --spins)
      std::atomic_signal_fence(std::memory_order_seq_cst);
    ticket.cancel();
    const auto done = ticket.wait();
    const bool is_whole = x == std::vector<float>(64, 1.0f) || x == std::vector<float>(64, 2.0f);
    REQUIRE(is_whole);
    if (done) {
      ++completed;
      REQUIRE(x[0] == 2.0f);
    } else {
      REQUIRE(done.error() == Errc::cancelled);
    }
  }
  const SchedulerMetrics metrics = runtime.metrics().jobs;
  CHECK(metrics.completed == static_cast<std::uint64_t>(completed));
  CHECK(metrics.cancelled == static_cast<std::uint64_t>(jobs - completed));
}
