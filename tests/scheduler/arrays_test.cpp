// Failures of arrays, and arrays that a job cannot take.
#include <wye/wye.hpp>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "rig.hpp"

using namespace wye;
using namespace std::chrono_literals;
using test::settled;
using Step = test::ScriptedDevice::Step;

namespace {

Kernel<ReadWrite<float>> throws() {
  return test::on_host("throws", [](Range, std::span<float>) { throw std::runtime_error("out of ink"); });
}

/// z = x + y
Kernel<Read<float>, Read<float>, Write<float>> sum() {
  return Kernel<Read<float>, Read<float>, Write<float>>::make(
             {.name = "sum",
              .sources = {host(
                  [](Range range, std::span<const float> x, std::span<const float> y, std::span<float> z) {
                    for (const std::uint64_t i : range) z[i] = x[i] + y[i];
                  })}})
      .value();
}

/// A job of `kernel` with these operands.
template <class K>
Job job_of(const K& kernel, std::vector<Operand> operands) {
  Arguments arguments;
  for (Operand& operand : operands) arguments.push_back(std::move(operand));
  return Call(base::programs_of(kernel), std::move(arguments));
}

}  // namespace

TEST_CASE("a failure passes through every array that depends on it, with its code and sentence",
          "[scheduler]") {
  Runtime runtime = test::cpu_runtime();
  std::vector<Array<float>> chain;
  for (int i = 0; i < 6; ++i) chain.push_back(runtime.array(std::vector<float>(4, 1.0f)));
  auto broken = runtime.submit(throws()(chain[0]));
  std::vector<Ticket> tickets;
  for (std::size_t i = 1; i < chain.size(); ++i)
    tickets.push_back(runtime.submit(test::copy()(chain[i - 1], chain[i])));
  CHECK(settled(broken) == Errc::kernel_failed);
  for (Ticket& ticket : tickets) {
    const auto done = ticket.wait();
    CHECK(done.error() == Errc::kernel_failed);
    CHECK(done.error().sentence().find("out of ink") != std::string::npos);
  }
  for (const auto& array : chain) CHECK(array.read().error() == Errc::kernel_failed);
}

TEST_CASE("one failed input is enough to fail a job, and its other input stays", "[scheduler]") {
  Runtime runtime = test::cpu_runtime();
  auto good = runtime.array(std::vector<float>(4, 1.0f)), bad = runtime.array(std::vector<float>(4, 1.0f)),
       out = runtime.array(std::vector<float>(4, 1.0f));
  CHECK(runtime.run(throws()(bad)).error() == Errc::kernel_failed);
  CHECK(runtime.run(sum()(good, bad, out)).error() == Errc::kernel_failed);
  CHECK(runtime.run(sum()(bad, good, out)).error() == Errc::kernel_failed);
  CHECK(test::contents(good) == std::vector<float>(4, 1.0f));
  CHECK(out.read().error() == Errc::kernel_failed);
}

TEST_CASE("a job that overwrites all of a failed array mends it", "[scheduler]") {
  Runtime runtime = test::cpu_runtime();
  auto x = runtime.array(std::vector<float>(4, 1.0f)), y = runtime.array(std::vector<float>(4, 2.0f));
  CHECK(runtime.run(throws()(x)).error() == Errc::kernel_failed);
  CHECK(runtime.run(test::copy()(y, x)));
  CHECK(test::contents(x) == std::vector<float>(4, 2.0f));
}

TEST_CASE("a job that overwrites a part of a failed array mends that part", "[scheduler]") {
  Runtime runtime = test::cpu_runtime();
  auto x = runtime.array(std::vector<float>(4, 1.0f)), y = runtime.array(std::vector<float>(2, 2.0f));
  CHECK(runtime.run(throws()(x)).error() == Errc::kernel_failed);
  CHECK(runtime.run(test::copy()(y, x.slice(0, 2))));
  CHECK(x.read().error() == Errc::kernel_failed);
  CHECK(test::contents(x.slice(0, 2)) == std::vector<float>(2, 2.0f));
  CHECK(runtime.run(test::copy()(y, x.slice(2, 2))));
  CHECK(test::contents(x) == std::vector<float>(4, 2.0f));
}

TEST_CASE("a job that overwrites a part of an array keeps the rest, on every device", "[scheduler]") {
  const auto first = test::scripted("cuda:0"), second = test::scripted("vulkan:0");
  test::Machine machine({first, second});
  auto x = machine.array(std::vector<float>{1, 2, 3, 4}), y = machine.array(std::vector<float>{7, 8});
  const auto overwrites = [&](std::uint64_t from) {
    return job_of(test::copy(), {y.operand(Access::read), x.operand(Access::write).slice(from, 2)});
  };
  CHECK(machine.scheduler.run(overwrites(2), {.on = "cuda:0"}));
  CHECK(machine.scheduler.run(test::host_scale()(y, 10.0f), {.on = "cuda:0"}));
  CHECK(machine.scheduler.run(overwrites(1), {.on = "vulkan:0"}));
  CHECK(test::contents(x) == std::vector<float>{1, 70, 80, 8});
}

TEST_CASE("the host mends a failed array by `write`, and jobs use it again", "[scheduler]") {
  Runtime runtime = test::cpu_runtime();
  auto x = runtime.array(std::vector<float>(4, 1.0f));
  CHECK(runtime.run(throws()(x)).error() == Errc::kernel_failed);
  CHECK(runtime.run(test::host_scale()(x, 2.0f)).error() == Errc::kernel_failed);
  for (float& value : x.write().value()) value = 3.0f;
  CHECK(runtime.run(test::host_scale()(x, 2.0f)));
  CHECK(test::contents(x) == std::vector<float>(4, 6.0f));
}

TEST_CASE("a refused job names its argument, holds no array, and fails those that it should have written",
          "[scheduler]") {
  Runtime runtime = test::cpu_runtime(), other = test::cpu_runtime();
  auto x = runtime.array(std::vector<float>(4, 1.0f)), y = runtime.array(std::vector<float>(4, 2.0f));
  auto foreign = other.array(std::vector<float>(4, 3.0f));
  const auto refusal = [&](Job job) {
    const auto done = runtime.run(std::move(job));
    REQUIRE_FALSE(done);
    CHECK(done.error() == Errc::invalid_argument);
    return done.error().sentence();
  };
  CHECK(refusal(sum()(x, y, Array<float>())) == "Argument 3 of 'sum' is an empty array handle.");
  CHECK(test::contents(y) == std::vector<float>(4, 2.0f));
  CHECK(refusal(sum()(x, foreign, y)) == "Argument 2 of 'sum' is an array of another runtime.");
  CHECK(test::contents(x) == std::vector<float>(4, 1.0f));
  CHECK(y.read().error().sentence() == "Argument 2 of 'sum' is an array of another runtime.");
  CHECK(refusal(Job::sequence("two", workload_types::custom, test::host_scale()(x, 2.0f),
                              {test::host_scale()(foreign, 2.0f)})) ==
        "Argument 1 of 'host_scale' is an array of another runtime.");
  CHECK(x.read().error() == Errc::invalid_argument);
  CHECK(x.write(0ms));
  CHECK(test::contents(x) == std::vector<float>(4, 1.0f));
  CHECK(test::contents(foreign) == std::vector<float>(4, 3.0f));
}

TEST_CASE("a slice beyond its array fails the outputs of its job", "[scheduler]") {
  Runtime runtime = test::cpu_runtime();
  auto x = runtime.array(std::vector<float>(4, 1.0f)), y = runtime.array(std::vector<float>(4, 2.0f)),
       z = runtime.array(std::vector<float>(4, 3.0f));
  CHECK(runtime.run(test::copy()(x.slice(2, 3), y)).error() == Errc::invalid_argument);
  const std::string text = "Argument 1 of 'copy' is a slice that ends beyond its array (4 elements).";
  CHECK(y.read().error().sentence() == text);
  const auto reader = runtime.run(test::copy()(y, z));
  CHECK(reader.error().sentence() == text);
  CHECK(z.read().error().sentence() == text);
  CHECK(runtime.run(test::copy()(x, y)));
  CHECK(test::contents(y) == std::vector<float>(4, 1.0f));
  // A slice that is written fails from its first element.
  CHECK(runtime.run(test::copy()(x, y.slice(2, 2).slice(1, 4))).error() == Errc::invalid_argument);
  CHECK(test::contents(y.slice(0, 2)) == std::vector<float>(2, 1.0f));
  CHECK(y.slice(2, 1).read().error() == Errc::invalid_argument);
  CHECK(y.slice(3, 1).read().error() == Errc::invalid_argument);
}

TEST_CASE("operands that end beyond their array fail it, whatever their size", "[scheduler]") {
  Runtime runtime = test::cpu_runtime();
  auto x = runtime.array(std::vector<float>(4, 1.0f)), y = runtime.array(std::vector<float>(4, 2.0f));
  Operand beyond = y.operand(Access::write);
  beyond.offset = 5;
  CHECK(runtime.run(job_of(test::copy(), {x.operand(Access::read), beyond})).error() ==
        Errc::invalid_argument);
  CHECK(test::contents(y) == std::vector<float>(4, 2.0f));  // it names no element
  beyond.offset = 3;
  CHECK(runtime.run(job_of(test::copy(), {x.operand(Access::read), beyond})).error() ==
        Errc::invalid_argument);
  CHECK(test::contents(y.slice(0, 3)) == std::vector<float>(3, 2.0f));
  CHECK(y.slice(3, 1).read().error() == Errc::invalid_argument);
  beyond.size = 8;
  CHECK(runtime.run(job_of(test::copy(), {x.operand(Access::read), beyond})).error() ==
        Errc::invalid_argument);
  CHECK(y.slice(0, 1).read().error() == Errc::invalid_argument);
}

TEST_CASE("a job whose dependency cannot be followed fails its outputs", "[scheduler]") {
  Runtime runtime = test::cpu_runtime(), other = test::cpu_runtime();
  auto x = runtime.array(std::vector<float>(4, 1.0f)), y = runtime.array(std::vector<float>(4, 2.0f));
  auto z = other.array(std::vector<float>(4, 3.0f));
  Ticket elsewhere = other.submit(test::host_scale()(z, 2.0f));
  CHECK(runtime.run(test::copy()(x, y), {.after = {elsewhere}}).error() == Errc::invalid_argument);
  CHECK(y.read().error() == Errc::invalid_argument);
  CHECK(elsewhere.wait());
}

TEST_CASE("a job that is submitted to a closed scheduler fails its outputs", "[scheduler]") {
  Runtime runtime = test::cpu_runtime();
  auto x = runtime.array(std::vector<float>(4, 1.0f)), y = runtime.array(std::vector<float>(4, 2.0f));
  runtime.close();
  CHECK(runtime.run(test::copy()(x, y)).error() == Errc::closed);
  CHECK(y.read().error() == Errc::closed);
  CHECK(test::contents(x) == std::vector<float>(4, 1.0f));
}

TEST_CASE("a read-only array is read by jobs and the host, and written by neither", "[scheduler]") {
  const auto device = test::scripted("cuda:0");
  test::Machine machine({device});
  std::vector<float> memory(4, 1.0f);
  const auto state =
      data::ArrayState::borrow(base::state_of(machine.pool), std::as_writable_bytes(std::span(memory)), 4,
                               ElementType::float32, sizeof(float));
  state->set_release({}, true);
  Array<float> fixed(state);
  auto out = machine.array(std::vector<float>(4));
  CHECK(machine.scheduler.run(test::copy()(fixed, out)));
  CHECK(test::contents(out) == memory);
  const auto refused = machine.scheduler.run(test::copy()(out, fixed));
  CHECK(refused.error() == Errc::invalid_argument);
  CHECK(refused.error().describe().find("argument 2 of 'copy'") != std::string::npos);
  CHECK(machine.scheduler.run(test::host_scale()(fixed, 2.0f)).error() == Errc::invalid_argument);
  CHECK(fixed.write().error() == Errc::invalid_argument);
  CHECK(test::contents(fixed) == std::vector<float>(4, 1.0f));
}

TEST_CASE("empty arrays go through every device like others", "[scheduler]") {
  const auto first = test::scripted("cuda:0"), second = test::scripted("vulkan:0");
  test::Machine machine({first, second});
  auto x = machine.array(std::vector<float>()), y = machine.array(std::vector<float>());
  for (const char* on : {"cuda:0", "vulkan:0", "cuda:0"}) {
    const auto done = machine.scheduler.run(test::copy()(x, y), {.on = on});
    REQUIRE(done);
    CHECK(done->bytes_transferred() == Bytes{0});
    CHECK(machine.scheduler.run(test::host_scale()(y, 2.0f), {.on = on}));
  }
  CHECK(test::contents(y).empty());
  CHECK(y.write().value().size() == 0);
}

TEST_CASE("an array whose only copy was on a lost device returns device_lost until a job overwrites it",
          "[scheduler]") {
  const auto first = test::scripted("cuda:0"), second = test::scripted("vulkan:0");
  test::Machine machine({first, second});
  auto x = machine.array(std::vector<float>(4, 1.0f)), y = machine.array(std::vector<float>(4, 5.0f));
  REQUIRE(machine.scheduler.run(test::host_scale()(x, 2.0f), {.on = "cuda:0"}));
  REQUIRE(machine.scheduler.run(test::host_scale()(y, 1.0f), {.on = "vulkan:0"}));
  first->lose();
  CHECK(x.read().error() == Errc::device_lost);
  CHECK(machine.scheduler.run(test::host_scale()(x, 2.0f)).error() == Errc::device_lost);
  CHECK(test::contents(y) == std::vector<float>(4, 5.0f));  // it was elsewhere
  CHECK(machine.scheduler.run(test::copy()(y, x)));
  CHECK(test::contents(x) == std::vector<float>(4, 5.0f));
}

TEST_CASE("an array with a copy on another device survives the loss of one", "[scheduler]") {
  const auto first = test::scripted("cuda:0"), second = test::scripted("vulkan:0");
  test::Machine machine({first, second});
  auto x = machine.array(std::vector<float>(4, 1.0f)), y = machine.array(std::vector<float>(4));
  REQUIRE(machine.scheduler.run(test::host_scale()(x, 2.0f), {.on = "cuda:0"}));
  REQUIRE(machine.scheduler.run(test::copy()(x, y), {.on = "vulkan:0"}));
  first->lose();
  CHECK(machine.scheduler.run(test::host_scale()(x, 2.0f))->device().id == "vulkan:0");
  CHECK(test::contents(x) == std::vector<float>(4, 4.0f));
  CHECK(test::contents(y) == std::vector<float>(4, 2.0f));
}

TEST_CASE("a failed reader does not fail the arrays that it reads, at any step of a device", "[scheduler]") {
  for (const Step step : test::ScriptedDevice::steps) {
    INFO("step " << static_cast<int>(step));
    const auto device = test::scripted("cuda:0");
    bool fails = true;
    device->set_script([&](Step now) -> std::optional<Error> {
      if (!fails || now != step) return std::nullopt;
      return Error(Errc::kernel_failed, "The script fails this step.");
    });
    test::Machine machine({device});
    auto x = machine.array(std::vector<float>(4, 1.0f)), y = machine.array(std::vector<float>(4, 2.0f));
    CHECK(machine.scheduler.run(test::copy()(x, y)).error() == Errc::kernel_failed);
    fails = false;
    CHECK(y.read().error() == Errc::kernel_failed);
    CHECK(test::contents(x) == std::vector<float>(4, 1.0f));
    CHECK(machine.scheduler.run(test::copy()(x, y)));
    CHECK(test::contents(y) == std::vector<float>(4, 1.0f));
  }
}

TEST_CASE("a call that writes memory which it also reads is refused by name, on every device",
          "[scheduler]") {
  Runtime runtime = test::cpu_runtime();
  test::Machine machine({test::scripted("cuda:0")});
  auto here = runtime.array(std::vector<float>(4, 1.0f));
  auto there = machine.array(std::vector<float>(4, 1.0f));
  std::vector<float> memory(4, 1.0f);
  const auto refused = [](const Result<Outcome>& done) {
    REQUIRE_FALSE(done);
    CHECK(done.error() == Errc::invalid_argument);
    CHECK(done.error().sentence().find("slot 1 of kernel 'copy' overlaps in memory with slot 0") !=
          std::string::npos);
  };
  refused(runtime.run(test::copy()(here, here)));
  refused(machine.scheduler.run(test::copy()(there, there)));
  refused(runtime.run(test::copy()(memory, memory)));
  refused(machine.scheduler.run(test::copy()(memory, memory)));
  CHECK(memory == std::vector<float>(4, 1.0f));
}
