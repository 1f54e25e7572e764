// Jobs of several steps, scratch memory, and grids.
#include <wye/wye.hpp>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "rig.hpp"

using namespace wye;
using test::settled;
using Step = test::ScriptedDevice::Step;

namespace {

Job sequence_of(Call first, std::vector<Call> rest) {
  return Job::sequence("steps", workload_types::custom, std::move(first), std::move(rest));
}

}  // namespace

TEST_CASE("the step that fails is the last that runs, and names itself", "[scheduler]") {
  Runtime runtime = test::cpu_runtime();
  std::atomic<int> ran{0};
  const auto counts = test::on_host("counts", [&](Range, std::span<float>) { ++ran; });
  const auto breaks =
      test::on_host("breaks", [](Range, std::span<float>) { throw std::runtime_error("out of ink"); });
  std::vector<float> x(1, 1.0f);
  const auto done = runtime.run(sequence_of(counts(x), {breaks(x), counts(x), counts(x)}));
  REQUIRE_FALSE(done);
  CHECK(done.error() == Errc::kernel_failed);
  CHECK(done.error().sentence().find("'breaks'") != std::string::npos);
  CHECK(done.error().describe().find("job 'steps'") != std::string::npos);
  CHECK(ran == 1);
}

TEST_CASE("a sequence of one call is that call under another name", "[scheduler]") {
  Runtime runtime = test::cpu_runtime();
  std::vector<float> x(1, 1.0f);
  const Job job = sequence_of(test::host_scale()(x, 2.0f), {});
  CHECK(job.size() == 1);
  CHECK(job.name() == "steps");
  CHECK(Job(test::host_scale()(x, 2.0f)).name() == "host_scale");
  auto ticket = runtime.submit(job);
  CHECK_FALSE(settled(ticket));
  CHECK(ticket.explain().job == "steps");
  CHECK(x[0] == 2.0f);
}

TEST_CASE("a job of a hundred steps runs each once, in order", "[scheduler]") {
  const auto step = Kernel<ReadWrite<double>, double>::make(
                        {.name = "step", .sources = {host([](Range range, std::span<double> x, double k) {
                                           for (const std::uint64_t i : range) x[i] = x[i] * 0.5 + k;
                                         })}})
                        .value();
  std::vector<double> expected(7, 1.0);
  std::vector<Call> rest;
  std::vector<double> x(7, 1.0);
  for (int i = 1; i < 100; ++i) rest.push_back(step(x, i));
  const Job job = sequence_of(step(x, 0.0), rest);
  CHECK(job.size() == 100);
  for (double& value : expected)
    for (int i = 0; i < 100; ++i) value = value * 0.5 + i;
  const auto device = test::scripted("cuda:0");
  test::Machine machine({device});
  CHECK(machine.scheduler.run(job));
  CHECK(x == expected);
}

TEST_CASE("scratch memory is one per object and job: jobs that share it do not meet in it", "[scheduler]") {
  const auto device = test::scripted("cuda:0");
  Runtime runtime = test::cpu_runtime(2);
  test::Machine machine({device});
  const Scratch<float> scratch(64), other(64);
  const auto copy = test::copy();
  const auto scale = test::host_scale();
  std::vector<std::vector<float>> in(50), out(50);
  std::vector<Ticket> tickets;
  for (std::size_t i = 0; i < in.size(); ++i) {
    in[i].assign(64, static_cast<float>(i));
    out[i].resize(128);
    const std::span<float> both(out[i]);
    Job job = sequence_of(copy(in[i], scratch), {copy(scratch, other), scale(scratch, 2.0f),
                                                 copy(scratch, both.first(64)), copy(other, both.last(64))});
    tickets.push_back(i % 2 == 0 ? runtime.submit(std::move(job)) : machine.scheduler.submit(std::move(job)));
  }
  for (std::size_t i = 0; i < in.size(); ++i) {
    CHECK_FALSE(settled(tickets[i]));
    CHECK(out[i][63] == 2.0f * static_cast<float>(i));
    CHECK(out[i][64] == static_cast<float>(i));
  }
}

TEST_CASE("scratch memory is freed when its job has settled, also if the job failed", "[scheduler]") {
  for (const Step step : test::ScriptedDevice::steps) {
    const auto device = test::scripted("cuda:0");
    device->fail_at(step, Errc::kernel_failed);
    test::Machine machine({device});
    std::vector<float> x(64, 1.0f);
    const Scratch<float> scratch(64);
    CHECK_FALSE(machine.scheduler.run(sequence_of(test::copy()(x, scratch), {test::copy()(scratch, x)})));
    CHECK(device->buffers_alive() == 0);
    device->set_script({});
    CHECK(machine.scheduler.run(sequence_of(test::copy()(x, scratch), {test::copy()(scratch, x)})));
    CHECK(device->buffers_alive() == 0);
  }
}

TEST_CASE("scratch memory that does not fit fails its job as over_budget and changes nothing",
          "[scheduler]") {
  const auto device = test::scripted("cuda:0");
  ContextPool pool = test::pool_of({device}, {.lane_memory = Bytes{1024}});
  Scheduler scheduler = scheduler::open(pool, std::make_shared<test::Builder>(Clock::steady())).value();
  std::vector<float> x(64, 1.0f);
  const auto run = [&](std::uint64_t count) {
    const Scratch<float> scratch(count);
    return scheduler.run(sequence_of(test::host_scale()(x, 2.0f), {test::host_scale()(scratch, 2.0f)}));
  };
  CHECK(run(512).error() == Errc::over_budget);
  CHECK(x == std::vector<float>(64, 1.0f));
  CHECK(run(128));
  CHECK(x == std::vector<float>(64, 2.0f));
}

TEST_CASE("a job of no items completes and changes nothing, on every device", "[scheduler]") {
  Runtime runtime = Runtime::open().value();
  const auto scripted = test::scripted("cuda:0");
  test::Machine machine({scripted});
  std::vector<float> x(4, 1.0f), none;
  for (const Device& device : runtime.devices()) {
    if (!test::runs_glsl_or_host(device)) continue;
    INFO(device.id());
    CHECK(runtime.run(test::scale()(x, 2.0f).over(0), {.on = device.id()}));
    CHECK(runtime.run(test::scale()(none, 2.0f), {.on = device.id()}));
    CHECK(x == std::vector<float>(4, 1.0f));
  }
  CHECK(machine.scheduler.run(test::host_scale()(x, 2.0f).over(0)));
  CHECK(machine.scheduler.run(test::host_scale()(none, 2.0f)));
  CHECK(x == std::vector<float>(4, 1.0f));
}

TEST_CASE("the grid of a call is its own, or the size of its first written operand", "[scheduler]") {
  const auto device = test::scripted("cuda:0");
  test::Machine machine({device});
  std::vector<float> three(3, 1.0f), five(5, 2.0f);
  CHECK(test::copy()(five, three).items() == Extent3(3));
  CHECK(test::copy()(three, five).over(2).items() == Extent3(2));
  CHECK(machine.scheduler.run(test::copy()(five, three)));
  CHECK(three == std::vector<float>(3, 2.0f));
  five.assign(5, 7.0f);
  auto whole = machine.array(five);
  CHECK(machine.scheduler.run(
      sequence_of(test::host_scale()(whole, 3.0f).over(1), {test::host_scale()(whole, 2.0f)})));
  CHECK(test::contents(whole) == std::vector<float>{42, 14, 14, 14, 14});
}

TEST_CASE("a job whose second step a device cannot run does not run there at all", "[scheduler]") {
  const auto device = test::scripted("cuda:0");
  test::Machine machine({device});
  const auto shader = Kernel<ReadWrite<float>>::make(
                          {.name = "shader", .sources = {Glsl{.text = "#version 450\nvoid main() {}"}}})
                          .value();
  std::vector<float> x(4, 1.0f);
  auto ticket = machine.scheduler.submit(sequence_of(test::host_scale()(x, 2.0f), {shader(x)}));
  CHECK(settled(ticket) == Errc::unsupported);
  CHECK(x == std::vector<float>(4, 1.0f));
  CHECK(device->steps_made() == 0);
  CHECK(ticket.explain().candidates[0].code == RefusalCode::kernel_unsupported);
}
