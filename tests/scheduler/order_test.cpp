// The order of jobs: priorities, and the users of an array.
#include <wye/wye.hpp>

#include <atomic>
#include <chrono>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "rig.hpp"

using namespace wye;
using namespace std::chrono_literals;
using test::Busy;
using test::settled;

namespace {

/// Kernels that write their letter when they run. Their jobs run one at a time.
struct Notes {
  std::string text;
  Kernel<ReadWrite<float>> writer(char letter) {
    return test::on_host("note", [this, letter](Range, std::span<float>) { text += letter; });
  }
};

/// Two host functions that each wait until both run.
struct Meeting {
  std::atomic<int> present{0};
  std::atomic<bool> met{false};
  test::StopPoint both{"the meeting"};
  Kernel<Read<float>, Write<float>> reader =
      Kernel<Read<float>, Write<float>>::make(
          {.name = "reader", .sources = {host([this](Range, std::span<const float> x, std::span<float> y) {
                               if (++present == 2) {
                                 met = true;
                                 both.open();
                               }
                               both.pass();
                               y[0] = x[0];
                             })}})
          .value();
};

}  // namespace

TEST_CASE("a job that its predecessors release runs by priority and then by its submission", "[scheduler]") {
  Busy busy;
  Runtime& runtime = busy.runtime;
  Notes notes;
  auto x = runtime.array(std::vector<float>(1, 1.0f)), y = runtime.array(std::vector<float>(1, 1.0f)),
       z = runtime.array(std::vector<float>(1, 1.0f));
  std::vector<Ticket> tickets;
  tickets.push_back(runtime.submit(notes.writer('a')(x)));
  tickets.push_back(runtime.submit(notes.writer('b')(x)));                                // waits for a
  tickets.push_back(runtime.submit(notes.writer('c')(y)));                                // is ready before b
  tickets.push_back(runtime.submit(notes.writer('d')(x), {.priority = Priority::high}));  // waits for b
  tickets.push_back(runtime.submit(notes.writer('e')(y), {.priority = Priority::low}));
  tickets.push_back(runtime.submit(notes.writer('f')(z)));
  busy.release();
  for (Ticket& ticket : tickets) CHECK_FALSE(settled(ticket));
  CHECK(notes.text == "abdcfe");
}

TEST_CASE("a job of high priority follows a job of low priority that has its array", "[scheduler]") {
  Busy busy;
  Notes notes;
  auto x = busy.runtime.array(std::vector<float>(1, 1.0f));
  auto low = busy.runtime.submit(notes.writer('l')(x), {.priority = Priority::low});
  auto high = busy.runtime.submit(notes.writer('h')(x), {.priority = Priority::high});
  busy.release();
  CHECK_FALSE(settled(high));
  CHECK(low.ready());
  CHECK(notes.text == "lh");
}

TEST_CASE("readers of an array run at the same time", "[scheduler]") {
  Runtime runtime = test::cpu_runtime(2);
  auto x = runtime.array(std::vector<float>(1, 5.0f)), y = runtime.array<float>(1),
       z = runtime.array<float>(1);
  Meeting meeting;
  auto first = runtime.submit(meeting.reader(x, y)), second = runtime.submit(meeting.reader(x, z));
  CHECK_FALSE(settled(first));
  CHECK_FALSE(settled(second));
  CHECK(meeting.met);
  CHECK(test::contents(y) == test::contents(z));
}

TEST_CASE("readers between two writers run at the same time, after the first and before the second",
          "[scheduler]") {
  Runtime runtime = test::cpu_runtime(4);
  auto x = runtime.array(std::vector<float>(1, 1.0f)), y = runtime.array<float>(1),
       z = runtime.array<float>(1);
  Meeting meeting;
  test::Latch latch;
  auto before = runtime.submit(latch.kernel(x));
  latch.await();
  auto scaled = runtime.submit(test::host_scale()(x, 2.0f));
  auto first = runtime.submit(meeting.reader(x, y)), second = runtime.submit(meeting.reader(x, z));
  auto after = runtime.submit(test::host_scale()(x, 10.0f));
  CHECK(meeting.present == 0);
  latch.open();
  CHECK_FALSE(settled(after));
  CHECK(meeting.met);
  CHECK(first.ready());
  CHECK(second.ready());
  CHECK(test::contents(y) == std::vector<float>{2.0f});
  CHECK(test::contents(z) == std::vector<float>{2.0f});
  CHECK(test::contents(x) == std::vector<float>{20.0f});
}

TEST_CASE("a writer waits for a reader that still runs", "[scheduler]") {
  Runtime runtime = test::cpu_runtime(2);
  auto x = runtime.array(std::vector<float>(1, 1.0f)), y = runtime.array<float>(1);
  test::StopPoint point;
  const auto slow = Kernel<Read<float>, Write<float>>::make(
      {.name = "slow", .sources = {host([&](Range, std::span<const float> in, std::span<float> out) {
                         point.pass();
                         out[0] = in[0];
                       })}});
  auto reader = runtime.submit((*slow)(x, y));
  point.await();
  auto writer = runtime.submit(test::host_scale()(x, 2.0f));
  CHECK(writer.wait(20ms).error() == Errc::timed_out);
  point.open();
  CHECK_FALSE(settled(writer));
  CHECK(test::contents(y) == std::vector<float>{1.0f});
  CHECK(test::contents(x) == std::vector<float>{2.0f});
}

TEST_CASE("jobs without an array in common do not wait for each other", "[scheduler]") {
  Runtime runtime = test::cpu_runtime(2);
  test::Latch latch;
  auto x = runtime.array(std::vector<float>(1, 1.0f)), y = runtime.array(std::vector<float>(1, 1.0f));
  auto blocked = runtime.submit(latch.kernel(x));
  latch.await();
  auto waits = runtime.submit(test::host_scale()(x, 2.0f));
  auto free = runtime.submit(test::host_scale()(y, 2.0f));
  CHECK_FALSE(settled(free));
  CHECK_FALSE(waits.ready());
  latch.open();
  CHECK_FALSE(settled(waits));
}

TEST_CASE("an array that a job uses several times is one use: the job does not wait for itself",
          "[scheduler]") {
  const auto device = test::scripted("cuda:0");
  test::Machine machine({device});
  auto x = machine.array(std::vector<float>{1, 2, 3}), y = machine.array(std::vector<float>(3));
  const auto scale = test::host_scale();
  const auto sum = Kernel<Read<float>, Read<float>, Write<float>>::make(
                       {.name = "sum",
                        .sources = {host([](Range range, std::span<const float> a, std::span<const float> b,
                                            std::span<float> c) {
                          for (const std::uint64_t i : range) c[i] = a[i] + b[i];
                        })}})
                       .value();
  auto twice = machine.scheduler.submit(sum(x, x, y));
  CHECK_FALSE(settled(twice));
  CHECK(test::contents(y) == std::vector<float>{2, 4, 6});
  auto steps = machine.scheduler.submit(
      Job::sequence("steps", workload_types::custom, scale(x, 2.0f), {test::copy()(x, y), scale(x, 3.0f)}));
  CHECK_FALSE(settled(steps));
  auto after = machine.scheduler.submit(scale(x, 1.0f));
  CHECK_FALSE(settled(after));
  CHECK(test::contents(x) == std::vector<float>{6, 12, 18});
  CHECK(test::contents(y) == std::vector<float>{2, 4, 6});
}

TEST_CASE("jobs that use two arrays crosswise, from two threads, do not wait for each other for ever",
          "[scheduler]") {
  Runtime runtime = test::cpu_runtime(2);
  const auto copy = test::copy();
  auto x = runtime.array(std::vector<float>(1, 1.0f)), y = runtime.array(std::vector<float>(1, 2.0f));
  std::atomic<int> failed{0};
  constexpr int jobs = test::rounds(2000);
  const auto submits = [&](bool forth) {
    for (int i = 0; i < jobs; ++i) {
      auto ticket = forth ? runtime.submit(copy(x, y)) : runtime.submit(copy(y, x));
      if (i % 16 == 0 && !ticket.wait()) ++failed;
    }
  };
  std::thread other([&] { submits(false); });
  submits(true);
  other.join();
  CHECK(failed == 0);
  CHECK(test::contents(x) == test::contents(y));
}

TEST_CASE("no change of an array is lost among eight threads that submit", "[scheduler]") {
  Runtime runtime = test::cpu_runtime(4);
  auto x = runtime.array(std::vector<std::uint64_t>(3, 0));
  const auto adds = Kernel<ReadWrite<std::uint64_t>>::make(
                        {.name = "adds", .sources = {host([](Range range, std::span<std::uint64_t> values) {
                                           for (const std::uint64_t i : range) values[i] += 1;
                                         })}})
                        .value();
  constexpr int each = test::rounds(1000);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < each; ++i) {
        const Ticket dropped = runtime.submit(adds(x));
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(test::contents(x) == std::vector<std::uint64_t>(3, std::uint64_t{8} * each));
}

TEST_CASE("the host reads the last write before its call, and jobs after it read the host's", "[scheduler]") {
  const auto device = test::scripted("cuda:0");
  test::Machine machine({device});
  auto x = machine.array(std::vector<float>(4, 1.0f));
  const auto scale = test::host_scale();
  for (int i = 0; i < test::rounds(500); ++i) {
    { const Ticket dropped = machine.scheduler.submit(scale(x, 2.0f)); }
    REQUIRE(x.read().value()[3] == 2.0f);
    { const Ticket dropped = machine.scheduler.submit(scale(x, 3.0f)); }
    auto view = x.write().value();
    REQUIRE(view[3] == 6.0f);
    for (float& value : view) value = 1.0f;
  }
}
