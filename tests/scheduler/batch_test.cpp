// Jobs that wait for a lane of their device share a submission, and equal calls share a launch.
#include <wye/wye.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rig.hpp"

using namespace wye;
using namespace std::chrono_literals;
using test::check_counts;
using test::Machine;
using test::Scripted;
using test::scripted;
using Step = test::ScriptedDevice::Step;

namespace {

/// A device with one lane, which a job in flight holds, and memory for jobs that wait. The kernel
/// `host_scale` has run there.
struct Waiting {
  explicit Waiting(SchedulerOptions options = {}, std::vector<Scripted> others = {}, Duration run_time = 1us,
                   bool stages = false)
      : devices(std::move(others)) {
    devices.insert(devices.begin(), device);
    options.clock = &clock;
    if (options.batch_limit == SchedulerOptions().batch_limit) options.batch_limit = test::shares_submissions;
    options.committed_per_lane = stages ? 2 : 1;  // a job that is being staged joins no batch
    machine.emplace(devices, std::move(options), 1u);
    for (std::size_t i = 1; i < devices.size(); ++i) {  // otherwise jobs that wait run there
      devices[i]->hold();
      others_busy.push_back(machine->scheduler.submit(kernel(busy, 1.0f), {.on = devices[i]->info().id}));
      test::await([&] { return devices[i]->held() == 1; });
    }
    run_for(run_time);
    device->hold();
    blocker.emplace(machine->scheduler.submit(kernel(last, 2.0f)));
    await_held(1);
    for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = {static_cast<float>(i + 1)};
  }
  ~Waiting() { device->release(); }
  Waiting(const Waiting&) = delete;

  void await_held(std::size_t count) const {
    test::await([&] { return device->held() == count; });
  }
  /// Runs `host_scale` in a time, which the scheduler then expects of it.
  void run_for(Duration time) {
    device->hold();
    Ticket first = machine->scheduler.submit(kernel(last, 2.0f));
    await_held(1);
    clock.advance(time);
    device->release();
    REQUIRE(first.wait(Deadline(60s)));
  }
  Call scale(std::size_t i) { return kernel(memory[i], 2.0f); }
  std::vector<Ticket> submit(std::size_t count) {
    std::vector<Ticket> tickets;
    for (std::size_t i = 0; i < count; ++i) tickets.push_back(machine->scheduler.submit(scale(i)));
    return tickets;
  }
  /// Waits for jobs without running them on this thread. Returns how many jobs each was submitted
  /// with.
  static std::vector<std::uint32_t> sizes(std::vector<Ticket>& tickets) {
    std::vector<std::uint32_t> sizes;
    for (Ticket& ticket : tickets) {
      const auto outcome = ticket.wait(Deadline(60s));
      sizes.push_back(outcome ? outcome->jobs_in_submission() : 0);
    }
    return sizes;
  }
  void check_scaled(std::size_t count) const {
    for (std::size_t i = 0; i < count; ++i) CHECK(memory[i][0] == static_cast<float>(2 * (i + 1)));
  }

  Kernel<ReadWrite<float>, float> kernel = test::host_scale();
  ManualClock clock;
  Scripted device = scripted("cuda:0");
  std::vector<Scripted> devices;
  std::vector<float> last = {1.0f}, busy = {1.0f};
  std::vector<std::vector<float>> memory = std::vector<std::vector<float>>(100);
  std::optional<Machine> machine;
  std::optional<Ticket> blocker;
  std::vector<Ticket> others_busy;
};

using Sizes = std::vector<std::uint32_t>;

/// y[z][i] = x[z][i] * weight[i] + shift, of a host function that sees the grid as one range.
using Weigh = Kernel<Read<float>, Read<float>, float, Write<float>>;
Weigh weigh(std::vector<std::size_t> batchable = {0, 3}) {
  return Weigh::make({.name = "weigh",
                      .sources = {host([](Range r, std::span<const float> x, std::span<const float> weight,
                                          float shift, std::span<float> y) {
                        for (const auto i : r) y[i] = x[i] * weight[i % weight.size()] + shift;
                      })},
                      .batchable = std::move(batchable)})
      .value();
}

}  // namespace

TEST_CASE("jobs that wait for a lane share one submission", "[scheduler]") {
  Waiting waiting;
  auto tickets = waiting.submit(10);
  const int before = waiting.device->count(Step::submit);
  waiting.device->release();
  CHECK(Waiting::sizes(tickets) == Sizes(10, 10));
  waiting.check_scaled(10);
  CHECK(waiting.device->count(Step::submit) == before + 1);
  const auto metrics = waiting.machine->scheduler.metrics();
  check_counts(metrics);
  CHECK(metrics.batches == 1);
  CHECK(metrics.batched_jobs == 10);
  const auto outcome = tickets[3].wait();
  CHECK(outcome->jobs_in_launch() == 1);
  CHECK(outcome->reason() == "'cuda:0' is the only device. It was submitted together with 9 other jobs.");
  const auto recent = waiting.machine->scheduler.recent();
  CHECK(recent.back().jobs_in_submission == 10);
  CHECK(recent.back().json().find(R"("jobs_in_submission":10,"jobs_in_launch":1)") != std::string::npos);
  CHECK(recent.front().jobs_in_submission == 1);
}

TEST_CASE("batch_limit limits the jobs of one submission", "[scheduler]") {
  for (const auto& [limit, sizes] :
       {std::pair{1u, Sizes(10, 1)}, std::pair{4u, Sizes{4, 4, 4, 4, 4, 4, 4, 4, 2, 2}}}) {
    INFO("batch_limit " << limit);
    Waiting waiting({.batch_limit = limit});
    auto tickets = waiting.submit(10);
    waiting.device->release();
    CHECK(Waiting::sizes(tickets) == sizes);
    waiting.check_scaled(10);
    CHECK(waiting.machine->scheduler.metrics().batches == (limit == 1 ? 0 : 3));
  }
  for (const std::uint32_t wrong : {0u, 65u}) {
    const auto refused = Runtime::open({.pool = {.backends = {"cpu"}}, .scheduler = {.batch_limit = wrong}});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().sentence() == "The number of jobs in one submission (" + std::to_string(wrong) +
                                            ") is not in the range 1 to 64.");
  }
}

TEST_CASE("a submission has at most 1 ms of expected work", "[scheduler]") {
  Waiting waiting({}, {}, 400us);
  auto tickets = waiting.submit(3);
  waiting.device->release();
  CHECK(Waiting::sizes(tickets) == Sizes{2, 2, 1});
  waiting.check_scaled(3);
}

TEST_CASE("a job that has a lane is not submitted with others", "[scheduler]") {
  Waiting waiting;
  waiting.device->release();
  REQUIRE(waiting.blocker->wait());
  Machine wide({waiting.device}, {.batch_limit = test::shares_submissions, .clock = &waiting.clock}, 4);
  std::vector<float> x = {1.0f};
  REQUIRE(wide.scheduler.run(waiting.kernel(x, 2.0f)));
  waiting.device->hold();
  std::vector<Ticket> tickets;
  for (std::size_t i = 0; i < 4; ++i) {
    tickets.push_back(wide.scheduler.submit(waiting.scale(i)));
    waiting.await_held(i + 1);
  }
  waiting.device->release();
  CHECK(Waiting::sizes(tickets) == Sizes(4, 1));
}

TEST_CASE("jobs with limits of their own, several calls, much memory or an unknown time are submitted alone",
          "[scheduler]") {
  Waiting waiting;
  Scheduler& scheduler = waiting.machine->scheduler;
  std::vector<float> large(std::size_t{1} << 18, 1.0f), other = {1.0f, 2.0f};
  std::vector<Ticket> tickets;
  tickets.push_back(scheduler.submit(waiting.scale(0)));
  tickets.push_back(scheduler.submit(waiting.scale(1), {.time_limit = 1min}));
  tickets.push_back(scheduler.submit(waiting.scale(2)));
  tickets.push_back(scheduler.submit(waiting.scale(3), {.start_by = Deadline(1min)}));
  tickets.push_back(
      scheduler.submit(Job::sequence("twice", workload_types::custom, waiting.scale(4), {waiting.scale(4)})));
  tickets.push_back(scheduler.submit(waiting.kernel(large, 2.0f)));
  tickets.push_back(scheduler.submit(waiting.kernel(other, 2.0f)));  // no job of its size has run
  tickets.push_back(scheduler.submit(waiting.scale(5)));
  tickets.push_back(scheduler.submit(waiting.scale(6)));
  waiting.device->release();
  CHECK(Waiting::sizes(tickets) == Sizes{1, 1, 1, 1, 1, 1, 1, 2, 2});
  CHECK(waiting.memory[4][0] == 20.0f);
  CHECK(large == std::vector<float>(large.size(), 2.0f));
  check_counts(scheduler.metrics());
}

TEST_CASE("a batch takes jobs in the order of their priorities", "[scheduler]") {
  Waiting waiting({.batch_limit = 2});
  std::vector<Ticket> tickets;
  for (const Priority priority : {Priority::low, Priority::normal, Priority::high, Priority::high})
    tickets.push_back(
        waiting.machine->scheduler.submit(waiting.scale(tickets.size()), {.priority = priority}));
  waiting.device->release();
  CHECK(Waiting::sizes(tickets) == Sizes(4, 2));
  std::vector<std::uint64_t> order;
  for (const Placement& one : waiting.machine->scheduler.recent()) order.push_back(one.number);
  REQUIRE(order.size() == 6);  // the first two ran before
  CHECK(std::is_permutation(order.begin() + 2, order.begin() + 4, std::vector<std::uint64_t>{5, 6}.begin()));
  CHECK(std::is_permutation(order.begin() + 4, order.end(), std::vector<std::uint64_t>{3, 4}.begin()));
}

TEST_CASE("a limit of a tag holds within a batch", "[scheduler]") {
  Waiting waiting({.tags = {{.tag = "few", .concurrent = 2}}});
  std::vector<Ticket> tickets;
  for (std::size_t i = 0; i < 5; ++i)
    tickets.push_back(waiting.machine->scheduler.submit(waiting.scale(i), {.tag = "few"}));
  waiting.device->release();
  CHECK(Waiting::sizes(tickets) == Sizes{2, 2, 2, 2, 1});
  waiting.check_scaled(5);
}

TEST_CASE("a cancelled job of a batch is dropped, and the others complete", "[scheduler]") {
  Waiting waiting;
  auto tickets = waiting.submit(5);
  tickets[3].cancel();  // it waits still
  waiting.device->release_first(1);
  waiting.await_held(1);  // the batch
  tickets[0].cancel();    // the job that leads it
  tickets[2].cancel();
  waiting.device->release();
  for (std::size_t i = 0; i < 5; ++i) {
    const auto result = tickets[i].wait(Deadline(60s));
    if (i == 1 || i == 4)
      CHECK(result->jobs_in_submission() == 4);
    else
      CHECK(result.error() == Errc::cancelled);
  }
  check_counts(waiting.machine->scheduler.metrics());
}

TEST_CASE("each job of a batch whose device is lost goes on alone", "[scheduler]") {
  for (const bool has_other : {true, false}) {
    const Scripted other = scripted("vulkan:0");
    Waiting waiting({}, has_other ? std::vector{other} : std::vector<Scripted>{});
    auto tickets = waiting.submit(6);
    const auto forbidden =
        waiting.machine->scheduler.submit(waiting.scale(6), {.fallback = Fallback::forbid});
    waiting.device->release_first(1);
    waiting.await_held(1);
    waiting.device->lose();
    other->release();
    for (std::size_t i = 0; i < 6; ++i) {
      const auto result = tickets[i].wait(Deadline(60s));
      if (has_other) {
        REQUIRE(result);
        CHECK(result->device().id == "vulkan:0");
        CHECK(waiting.memory[i][0] == static_cast<float>(2 * (i + 1)));
      } else {
        CHECK(result.error() == Errc::device_lost);
        CHECK(waiting.memory[i][0] == static_cast<float>(i + 1));
      }
    }
    CHECK(waiting.memory[6][0] == 7.0f);
    const auto metrics = waiting.machine->scheduler.metrics();
    check_counts(metrics);
    CHECK(metrics.fallbacks == (has_other ? 6 : 0));
  }
}

TEST_CASE("a job of a batch that goes on alone while the scheduler closes leaves nothing behind",
          "[scheduler]") {
  const Scripted other = scripted("vulkan:0");
  Waiting waiting({}, {other});
  auto tickets = waiting.submit(3);
  waiting.device->release_first(1);
  waiting.await_held(1);
  auto queued = waiting.machine->scheduler.submit(waiting.scale(3));
  std::thread closing([&] { waiting.machine->scheduler.close(); });
  CHECK(queued.wait(Deadline(60s)).error() == Errc::closed);  // from now on no job returns to a queue
  waiting.device->lose();
  test::await([&] { return other->held() == 1; });
  other->release();
  closing.join();
  CHECK(waiting.machine->scheduler.quiesce(60s));
  for (Ticket& ticket : tickets) CHECK(ticket.wait(Deadline(60s)));
  waiting.check_scaled(3);
  check_counts(waiting.machine->scheduler.metrics());
}

TEST_CASE("cancelled jobs of a batch whose device is lost stay cancelled", "[scheduler]") {
  const Scripted other = scripted("vulkan:0");
  Waiting waiting({}, {other});
  auto tickets = waiting.submit(3);
  waiting.device->release_first(1);
  waiting.await_held(1);
  tickets[0].cancel();
  tickets[1].cancel();
  waiting.device->lose();
  other->release();
  CHECK(tickets[0].wait(Deadline(60s)).error() == Errc::cancelled);
  CHECK(tickets[1].wait(Deadline(60s)).error() == Errc::cancelled);
  CHECK(tickets[2].wait(Deadline(60s)));
  check_counts(waiting.machine->scheduler.metrics());
}

TEST_CASE("if a batch cannot be submitted, each of its jobs runs alone", "[scheduler]") {
  for (const Step step : {Step::create_executable, Step::create_buffer, Step::submit}) {
    INFO("step " << static_cast<int>(step));
    Waiting waiting;
    std::atomic<int> left{-1};
    waiting.device->set_script([&](Step now) -> std::optional<Error> {
      if (now == step && left.load() >= 0 && left.fetch_sub(1) == 0)
        return Error(Errc::out_of_memory, "The script fails this step.");
      return std::nullopt;
    });
    auto tickets = waiting.submit(6);
    left = step == Step::submit ? 0 : 3;
    waiting.device->release();
    CHECK(Waiting::sizes(tickets) == Sizes(6, 1));
    waiting.check_scaled(6);
    const auto metrics = waiting.machine->scheduler.metrics();
    check_counts(metrics);
    CHECK(metrics.batches == 0);
    CHECK(waiting.device->buffers_alive() == 0);
  }
}

TEST_CASE("a batch that runs out of time fails each of its jobs", "[scheduler]") {
  Waiting waiting({.job_time_limit = 5s});
  auto tickets = waiting.submit(3);
  waiting.device->release_first(1);
  waiting.await_held(1);
  waiting.clock.advance(6s);
  waiting.device->release();
  for (Ticket& ticket : tickets) {
    const auto result = ticket.wait(Deadline(60s));
    REQUIRE_FALSE(result);
    CHECK(result.error() == Errc::timed_out);
  }
  check_counts(waiting.machine->scheduler.metrics());
}

TEST_CASE("closing abandons each job of a batch that does not end", "[scheduler][no_tsan]") {
  Waiting waiting;
  auto tickets = waiting.submit(3);
  waiting.device->release_first(1);
  waiting.await_held(1);
  const auto closed = waiting.machine->scheduler.close(Deadline(10ms));
  REQUIRE_FALSE(closed);
  CHECK(closed.error() == Errc::timed_out);
  for (Ticket& ticket : tickets) CHECK(ticket.wait(Deadline(60s)).error() == Errc::closed);
  waiting.device->release();
  REQUIRE(waiting.machine->scheduler.quiesce());  // a thread completes the abandoned jobs
  CHECK(waiting.device->buffers_alive() == 0);
  check_counts(waiting.machine->scheduler.metrics());
}

TEST_CASE("jobs of a batch that use arrays see what jobs before them wrote", "[scheduler]") {
  Waiting waiting({}, {}, 1us, true);
  const auto& machine = *waiting.machine;
  waiting.device->release();
  const auto x = machine.array(std::vector<float>{1.0f, 2.0f});
  std::vector<Array<float>> outputs;
  std::vector<Ticket> tickets;
  for (int i = 0; i < 8; ++i) outputs.push_back(machine.array(std::vector<float>{0.0f, 0.0f}));
  Scheduler scheduler = machine.scheduler;
  const auto copy = test::copy();
  REQUIRE(scheduler.run(copy(x, outputs[0])));
  waiting.device->hold();
  Ticket writer = scheduler.submit(waiting.kernel(x, 3.0f));
  waiting.await_held(1);
  for (const auto& output : outputs) tickets.push_back(scheduler.submit(copy(x, output)));
  waiting.device->release();
  REQUIRE(writer.wait(Deadline(60s)));
  CHECK(Waiting::sizes(tickets).back() > 1);
  for (const auto& output : outputs) CHECK(test::contents(output) == std::vector<float>{3.0f, 6.0f});
}

TEST_CASE("equal calls of a batchable kernel are one launch", "[scheduler]") {
  Waiting waiting;
  Scheduler scheduler = waiting.machine->scheduler;
  waiting.device->release();
  REQUIRE(waiting.blocker->wait(Deadline(60s)));
  constexpr std::size_t count = 9, jobs = 12;
  std::mt19937 random(5);
  std::uniform_real_distribution<float> number(-1, 1);
  const auto values = [&](std::size_t n) {
    std::vector<float> v(n);
    for (float& one : v) one = number(random);
    return v;
  };
  const auto weight = values(count), other_weight = values(count);
  std::vector<std::vector<float>> x, y(jobs, std::vector<float>(count, -9.0f));
  for (std::size_t i = 0; i < jobs; ++i) x.push_back(values(count));
  const auto product = weigh();
  REQUIRE(scheduler.run(product(x[0], weight, 1.0f, y[0])));
  REQUIRE(scheduler.run(product(x[0], x[0], 1.0f, y[0])));  // less memory: another size
  waiting.device->hold();
  Ticket blocker = scheduler.submit(waiting.kernel(waiting.last, 2.0f));
  waiting.await_held(1);
  // Another value, other weights, and weights that are also the input: launches of their own.
  const auto shift = [](std::size_t i) { return i < 6 ? 1.0f : 2.0f; };
  const auto weight_of = [&](std::size_t i) -> const std::vector<float>& {
    return i < 9 ? weight : i < jobs - 1 ? other_weight : x[i];
  };
  std::vector<Ticket> tickets;
  for (std::size_t i = 0; i < jobs; ++i)
    tickets.push_back(scheduler.submit(product(x[i], weight_of(i), shift(i), y[i])));
  waiting.device->release();
  Sizes launches;
  CHECK(Waiting::sizes(tickets) == Sizes(jobs, jobs));
  for (Ticket& ticket : tickets) launches.push_back(ticket.wait()->jobs_in_launch());
  CHECK(launches == Sizes{6, 6, 6, 6, 6, 6, 3, 3, 3, 2, 2, 1});
  for (std::size_t i = 0; i < jobs; ++i)
    for (std::size_t j = 0; j < count; ++j) CHECK(y[i][j] == x[i][j] * weight_of(i)[j] + shift(i));
  CHECK(tickets[0].wait()->reason() ==
        "'cuda:0' is the only device. It was submitted together with 11 other jobs, 5 of them in one launch "
        "with it.");
}

TEST_CASE("batchable parameters are checked when the kernel is made", "[scheduler]") {
  const auto error = [](std::vector<std::size_t> batchable) {
    const auto made = Weigh::make({.name = "weigh",
                                   .sources = {host([](Range, std::span<const float>, std::span<const float>,
                                                       float, std::span<float>) {})},
                                   .batchable = std::move(batchable)});
    REQUIRE_FALSE(made);
    CHECK(made.error() == Errc::invalid_argument);
    return made.error().sentence();
  };
  CHECK(error({0, 4}) ==
        "Parameter 5 of kernel 'weigh' does not exist (it has 4), so it cannot be batchable.");
  CHECK(error({2, 3}) == "Parameter 3 of kernel 'weigh' is not a buffer, so it cannot be batchable.");
  CHECK(error({0}) ==
        "Kernel 'weigh' has batchable parameters and writes parameter 4, which must be batchable too.");
}

TEST_CASE("a job of a batch that is cancelled stays cancelled when the batch runs out of time",
          "[scheduler]") {
  Waiting waiting({.job_time_limit = 1h});
  auto tickets = waiting.submit(4);
  waiting.device->release_first(1);
  CHECK(waiting.blocker->wait());
  waiting.await_held(1);
  tickets[0].cancel();  // leads the batch
  tickets[2].cancel();
  CHECK_FALSE(tickets[0].ready());  // the batch goes on for the others
  waiting.clock.advance(2h);
  CHECK(test::settled(tickets[0]) == Errc::cancelled);
  CHECK(test::settled(tickets[1]) == Errc::timed_out);
  CHECK(test::settled(tickets[2]) == Errc::cancelled);
  CHECK(test::settled(tickets[3]) == Errc::timed_out);
  check_counts(waiting.machine->scheduler.metrics());
}
