// Graphs and the runs of their plans.
#include <wye/wye.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "graph_kernels.hpp"
#include "mixed_devices.hpp"
#include "rig.hpp"
#include "support/skip.hpp"

using namespace wye;
using namespace wye::literals;
using test::add_number;
using test::contents;
using test::count_numbers;
using test::Machine;
using test::mentions;
using test::mix_numbers;
using test::Number;
using test::Row;
using test::Scripted;
using test::scripted;

namespace {

/// Types of work for the CPU, and for two GPUs.
constexpr WorkloadType on_cpu{"on-cpu"}, on_first{"on-first"}, on_second{"on-second"};

/// A scheduler on the CPU and two scripted GPUs.
struct Mixed : test::MixedDevices {
  explicit Mixed(const Scripted& a = scripted("cuda:0"), const Scripted& b = scripted("vulkan:0"))
      : MixedDevices(test::cpu_runtime(), {a, b},
                     {.preferences = {{on_cpu, 0_B, {"cpu"}},
                                      {on_first, 0_B, {"cuda", "cpu"}},
                                      {on_second, 0_B, {"vulkan", "cpu"}},
                                      {workload_types::custom, 0_B, {"cuda", "vulkan", "cpu"}}}}),
        first(a),
        second(b) {}
  Array<Number> array(const Row& values) const { return test::array_in(*pool, values); }

  Scripted first, second;
};

}  // namespace

TEST_CASE("a graph on the CPU runs its steps in the order of their memory", "[scheduler]") {
  Runtime runtime = test::cpu_runtime();
  Row x(100, 1), y(100, 2);
  Graph graph;
  graph.add(add_number()(x, 4));
  graph.add(mix_numbers()(x, y, 1));
  graph.add(add_number()(x, 10));
  auto plan = graph.compile(runtime);
  REQUIRE(plan);
  const auto done = plan->run().wait();
  REQUIRE(done);
  CHECK(done->backend() == "cpu");
  CHECK(x == Row(100, 15));
  CHECK(y == Row(100, 12));
  REQUIRE(plan->run().wait());
  CHECK(x == Row(100, 29));
  CHECK(y == Row(100, 12 * 3 + 19 + 1));
}

TEST_CASE("a graph runs on a device that does nothing", "[scheduler]") {
  Runtime runtime = Runtime::open({.pool = {.backends = {"null"}}}).value();
  Row x(64);
  Graph graph;
  for (Number i = 0; i < 100; ++i) graph.add(add_number()(x, i));
  auto plan = graph.compile(runtime);
  REQUIRE(plan);
  for (int i = 0; i < 10; ++i) {
    const auto done = plan->run().wait();
    REQUIRE(done);
    CHECK(done->reason() == "'null:0' runs 100 of 100 steps of graph 'graph'.");
  }
  CHECK(runtime.metrics().jobs.completed == 10);
  test::check_counts(runtime.metrics().jobs);
}

TEST_CASE("a graph runs on devices that copy", "[scheduler]") {
  const auto device = scripted("cuda:0");
  const Machine machine({device});
  const auto x = machine.array(Row(40, 1)), y = machine.array(Row(40, 2));
  Row z(40, 5);
  const Scratch<Number> scratch(40);
  Graph graph;
  graph.add(add_number()(x, 4));            // x = 5
  graph.add(count_numbers()(scratch, 0));   // s = i
  graph.add(mix_numbers()(x, scratch, 0));  // s = 3 i + 5
  graph.add(mix_numbers()(scratch, y, 0));  // y = 6 + 3 i + 5
  graph.add(mix_numbers()(y, z, 1));        // z = 15 + 12 + 3 i
  auto plan = graph.compile(machine.scheduler);
  REQUIRE(plan);
  REQUIRE(plan->run().wait());
  CHECK(contents(x) == Row(40, 5));
  for (Number i = 0; i < 40; ++i) {
    CHECK(contents(y)[i] == 11 + 3 * i);
    CHECK(z[i] == 27 + 3 * i);
  }
}

TEST_CASE("a plan on several devices copies what its steps exchange", "[scheduler]") {
  Mixed world;
  const auto x = world.array(Row(32, 1)), y = world.array(Row(32, 2));
  const Scratch<Number> scratch(32);
  Row z(32, 7);
  Graph graph;
  graph.add(Job(add_number()(x, 1), on_first));            // x = 2
  graph.add(Job(mix_numbers()(x, y, 0), on_cpu));          // y = 8
  graph.add(Job(count_numbers()(scratch, 1), on_second));  // s = i + 1
  graph.add(Job(mix_numbers()(y, scratch, 0), on_first));  // s = 3 i + 11
  graph.add(Job(mix_numbers()(scratch, z, 0), on_cpu));    // z = 32 + 3 i
  graph.add(Job(mix_numbers()(z, x, 0), on_second));       // x = 38 + 3 i
  auto plan = graph.compile(*world.scheduler, {.one_silicon = false});
  REQUIRE(plan);
  CHECK(plan->description().devices.size() == 3);
  for (int run = 0; run < 2; ++run) {
    INFO("run " << run << "\n" << plan->text());
    const auto done = plan->run().wait();
    REQUIRE(done);
    if (run == 1) break;
    for (Number i = 0; i < 32; ++i) {
      CHECK(contents(y)[i] == 8);
      CHECK(z[i] == 32 + 3 * i);
      CHECK(contents(x)[i] == 38 + 3 * i);
    }
  }
  CHECK(contents(y)[4] == 3 * 8 + (38 + 3 * 4 + 1));
}

TEST_CASE("runs of a plan and jobs follow each other by the arrays that they use", "[scheduler]") {
  const auto device = scripted("cuda:0");
  Machine machine({device});
  const auto x = machine.array(Row(16, 0)), y = machine.array(Row(16, 0));
  Graph graph;
  graph.add(add_number()(x, 1));
  graph.add(mix_numbers()(x, y, 0));
  auto plan = graph.compile(machine.scheduler);
  REQUIRE(plan);
  device->hold();
  std::vector<Ticket> tickets;
  Number in_x = 0, in_y = 0;
  for (int i = 0; i < 6; ++i) {
    if (i % 2 == 0) {
      tickets.push_back(plan->run());
      in_x += 1, in_y = in_y * 3 + in_x;
    } else {
      tickets.push_back(machine.scheduler.submit(mix_numbers()(y, x, 2)));
      in_x = in_x * 3 + in_y + 2;
    }
  }
  CHECK_FALSE(tickets.back().ready());
  device->release();
  for (Ticket& ticket : tickets) CHECK(ticket.wait());
  CHECK(contents(x) == Row(16, in_x));
  CHECK(contents(y) == Row(16, in_y));
}

TEST_CASE("runs of a plan that uses host memory follow each other", "[scheduler]") {
  const auto device = scripted("cuda:0");
  Machine machine({device});
  Row y(16, 0);
  Graph graph;
  graph.add(add_number()(y, 1));
  auto plan = graph.compile(machine.scheduler);
  REQUIRE(plan);
  device->hold();
  std::vector<Ticket> tickets;
  for (int i = 0; i < 4; ++i) tickets.push_back(plan->run());
  // Meanwhile a second run would upload the memory that the first one has not written yet.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  device->release();
  for (Ticket& ticket : tickets) CHECK(ticket.wait());
  CHECK(y == Row(16, 4));
}

TEST_CASE("a run in flight keeps its arguments", "[scheduler]") {
  const auto device = scripted("cuda:0");
  Machine machine({device});
  std::vector<Array<Number>> arrays;
  for (Number i = 0; i < 8; ++i) arrays.push_back(machine.array(Row(16, i)));
  Graph graph;
  const auto add = graph.add(add_number()(arrays[0], 0));
  auto plan = graph.compile(machine.scheduler);
  REQUIRE(plan);
  device->hold();
  std::vector<Ticket> tickets;
  for (Number i = 0; i < 8; ++i) {
    REQUIRE(plan->set(add, 0, arrays[i]));
    REQUIRE(plan->set(add, 1, Number{100 * i}));
    tickets.push_back(plan->run());
  }
  device->release();
  for (Ticket& ticket : tickets) CHECK(ticket.wait());
  for (Number i = 0; i < 8; ++i) CHECK(contents(arrays[i]) == Row(16, 101 * i));
}

TEST_CASE("a run that waits keeps its arguments, also if the plan had others before", "[scheduler]") {
  test::Busy busy;
  Row x(8, 0), y(8, 0);
  Graph graph;
  const auto add = graph.add(add_number()(x, 1));
  const auto other = graph.add(add_number()(y, 1));
  auto plan = graph.compile(busy.runtime);
  REQUIRE(plan);
  std::vector<Ticket> tickets;
  tickets.push_back(plan->run());  // 1, 1
  REQUIRE(plan->set(add, 1, Number{10}));
  tickets.push_back(plan->run());  // 10, 1
  REQUIRE(plan->set(other, 1, Number{100}));
  REQUIRE(plan->set(add, 0, y));
  REQUIRE(plan->set(other, 0, x));
  tickets.push_back(plan->run());  // y += 10, x += 100
  busy.release();
  for (Ticket& ticket : tickets) CHECK(ticket.wait());
  CHECK(x == Row(8, 111));
  CHECK(y == Row(8, 12));
}

TEST_CASE("host memory of a plan on a device that copies can be replaced", "[scheduler]") {
  const auto device = scripted("cuda:0");
  Machine machine({device});
  Row in(20, 3), other(20, 5), out(20, 0);
  Graph graph;
  const auto step = graph.add(mix_numbers()(in, out, 0));
  auto plan = graph.compile(machine.scheduler);
  REQUIRE(plan);
  REQUIRE(plan->run().wait());
  CHECK(out == Row(20, 3));
  const int buffers = device->buffers_alive();
  for (int i = 0; i < 4; ++i) {
    REQUIRE(plan->set(step, 0, i % 2 == 0 ? other : in));
    auto ticket = plan->run();
    REQUIRE(ticket.wait());
  }
  CHECK(out == Row(20, ((((3 * 3 + 5) * 3 + 3) * 3) + 5) * 3 + 3));
  CHECK(device->buffers_alive() == buffers);  // the new memory has the buffer of the old one
}

TEST_CASE("a step follows the steps that it is told to follow", "[scheduler]") {
  Mixed world;
  std::vector<Row> rows(4, Row(8, 0));
  Graph graph;
  const auto a = graph.add(Job(add_number()(rows[0], 1), on_cpu));
  const auto b = graph.add(Job(add_number()(rows[1], 1), on_first));
  const auto c = graph.add(Job(add_number()(rows[2], 1), on_cpu));
  graph.add(Job(add_number()(rows[3], 1), on_first));
  a.after(b);
  b.after(c);
  auto plan = graph.compile(*world.scheduler);
  REQUIRE(plan);
  const PlanDescription description = plan->description();
  CHECK(description.steps[a].after == std::vector<std::size_t>{b});
  const auto position = [&](std::size_t step) {
    return std::find(description.order.begin(), description.order.end(), step) - description.order.begin();
  };
  CHECK(position(c) < position(b));
  CHECK(position(b) < position(a));
  CHECK(plan->run().wait());
  for (const Row& row : rows) CHECK(row == Row(8, 1));
}

TEST_CASE("a graph whose steps follow each other is refused, with their names", "[scheduler]") {
  Runtime runtime = test::cpu_runtime();
  Row x(8), y(8), z(8);
  Graph graph;
  const auto a = graph.add(Job::sequence("first", workload_types::custom, add_number()(x, 1)));
  const auto b = graph.add(Job::sequence("second", workload_types::custom, add_number()(y, 1)));
  const auto c =
      graph.add(Job::sequence("third", workload_types::custom, mix_numbers()(x, z, 1)));  // after a
  a.after(b);
  b.after(c);
  const auto plan = graph.compile(runtime);
  REQUIRE_FALSE(plan);
  CHECK(plan.error() == Errc::invalid_argument);
  for (const char* name : {"'first'", "'second'", "'third'"}) CHECK(mentions(plan.error(), name));
}

TEST_CASE("a graph that cannot run is refused with the step and the argument", "[scheduler]") {
  Runtime runtime = test::cpu_runtime(), another = test::cpu_runtime();
  Row x(8), y(8);
  const auto error_of = [&](const Graph& graph) {
    const auto plan = graph.compile(runtime);
    REQUIRE_FALSE(plan);
    return plan.error();
  };
  Graph graph;
  CHECK(mentions(error_of(graph), "has no steps"));
  graph.add(add_number()(x, 1));

  SECTION("an array of another runtime") {
    graph.add(add_number()(another.array(y), 1));
    CHECK(mentions(error_of(graph), "another runtime"));
    CHECK(mentions(error_of(graph), "step 1 'add'"));
  }
  SECTION("an empty array") {
    graph.add(add_number()(Array<Number>(), 1));
    CHECK(mentions(error_of(graph), "empty array handle"));
    CHECK(mentions(error_of(graph), "step 1 'add'"));
  }
  SECTION("a slice beyond its array") {
    graph.add(add_number()(runtime.array(y).slice(4, 5), 1));
    CHECK(mentions(error_of(graph), "Argument 1"));
    CHECK(mentions(error_of(graph), "beyond its array"));
    CHECK(mentions(error_of(graph), "step 1 'add'"));
  }
  SECTION("arguments that overlap") {
    const auto both = runtime.array(y);
    graph.add(mix_numbers()(both.slice(0, 5), both.slice(4, 4), 1));
    CHECK(mentions(error_of(graph), "overlaps"));
    CHECK(mentions(error_of(graph), "step 1 'mix'"));
  }
  SECTION("scratch memory that no step sets") {
    const Scratch<Number> scratch(8);
    graph.add(mix_numbers()(scratch, y, 1));
    CHECK(
        mentions(error_of(graph), "Argument 1 of 'mix' reads scratch memory that no call before it writes"));
    CHECK(mentions(error_of(graph), "step 1 'mix'"));
  }
  SECTION("an argument without a value") {
    Call call = mix_numbers()(x, y, 1);
    call.arguments()[2] = {};
    graph.add(call);
    CHECK(mentions(error_of(graph), "Argument 3 of 'mix' has no kind"));
  }
  SECTION("an argument that is missing") {
    graph.add(Call(base::programs_of(mix_numbers()), arguments(Number{1})));
    CHECK(mentions(error_of(graph), "Argument 2 of 'mix' is not set"));
  }
  SECTION("an argument of another kind") {
    Call call = mix_numbers()(x, y, 1);
    call.arguments()[0] = wye::detail::Operand::of_value(Number{3});
    graph.add(call);
    CHECK(mentions(error_of(graph), "is a value"));
    CHECK(mentions(error_of(graph), "step 1 'mix'"));
  }
  SECTION("a job that has failed") {
    graph.add(Job::failed("wrong", workload_types::custom, Error(Errc::invalid_argument, "It is wrong.")));
    CHECK(mentions(error_of(graph), "It is wrong."));
    CHECK(mentions(error_of(graph), "step 1 'wrong'"));
  }
  SECTION("a job that builds") {
    graph.add(Job::build(add_number()));
    CHECK(mentions(error_of(graph), "no step of a graph"));
  }
  SECTION("a step of another graph") {
    Graph other;
    graph.add(add_number()(y, 1)).after(other.add(add_number()(y, 1)));
    CHECK(mentions(error_of(graph), "another graph"));
  }
  SECTION("a step that follows itself") {
    const auto step = graph.add(add_number()(y, 1));
    step.after(step);
    CHECK(mentions(error_of(graph), "follows itself"));
  }
  SECTION("a kernel without a source for any device") {
    const auto kernel = Kernel<ReadWrite<Number>>::make(
        {.name = "elsewhere",
         .sources = {Glsl{.text = "#version 450\nlayout(local_size_x = 64) in;\nlayout(set = 0, binding = 0) "
                                  "buffer Z { uint z[]; };\nvoid main() { z[0] = 1u; }"}}});
    REQUIRE(kernel);
    graph.add((*kernel)(y));
    CHECK(error_of(graph) == Errc::unsupported);
    CHECK(mentions(error_of(graph), "No device can run step 1 'elsewhere'"));
  }
  CHECK(x == Row(8));
}

TEST_CASE("a compile for a device that does not exist is refused", "[scheduler]") {
  Runtime runtime = test::cpu_runtime();
  Row x(8);
  Graph graph;
  graph.add(add_number()(x, 1));
  CHECK(graph.compile(runtime, {.on = "cuda:7"}).error() == Errc::not_found);
  runtime.close();
  CHECK(graph.compile(runtime).error() == Errc::closed);
}

TEST_CASE("an argument is replaced only by an argument of its kind, type and size", "[scheduler]") {
  Runtime runtime = test::cpu_runtime(), another = test::cpu_runtime();
  Row x(8), y(8), z(8, 3), shorter(7);
  const Row constant(8);
  const auto array = runtime.array(x);
  Graph graph;
  graph.add(mix_numbers()(x, y, 1));
  graph.add(add_number()(array, 1));
  graph.add(add_number()(z, 1));
  auto plan = graph.compile(runtime);
  REQUIRE(plan);
  const auto refused = [&](const Result<void>& result, std::string_view text) {
    REQUIRE_FALSE(result);
    INFO(result.error().describe());
    CHECK(result.error() == Errc::invalid_argument);
    CHECK(mentions(result.error(), text));
  };
  refused(plan->set(9, 0, x), "no step 9; it has 3 steps");
  refused(plan->set(0, 3, x), "no argument 3 in step 0 'mix'");
  refused(plan->set(0, 0, x, 1), "no call 1 in step 0 'mix'");
  refused(plan->set(0, 2, 1.0f), "Argument 2 of step 0 'mix'");
  refused(plan->set(0, 2, std::uint64_t{1}), "(8 bytes)");
  refused(plan->set(0, 2, x), "it cannot be replaced by host memory");
  refused(plan->set(0, 0, shorter), "8 elements; it is replaced by 7");
  refused(plan->set(0, 1, constant), "constant memory");
  refused(plan->set(0, 1, x), "overlaps");
  refused(plan->set(0, 0, array), "it cannot be replaced by an array");
  refused(plan->set(1, 0, another.array(x)), "another runtime");
  refused(plan->set(1, 0, Array<Number>()), "empty array handle");
  refused(plan->set(1, 0, array.slice(1, 9)), "beyond its array");
  refused(plan->set(1, 0, array.slice(1, 7)), "it is replaced by 7 elements");
  CHECK(plan->set(0, 0, constant));
  CHECK(plan->run().wait());
  CHECK(z == Row(8, 4));
  refused(plan->run({.on = "cpu"}).wait().error(), "'on'");
  refused(plan->run({.fallback = Fallback::allow}).wait().error(), "'fallback'");
}

TEST_CASE("memory that would need another order of the steps is refused", "[scheduler]") {
  Runtime runtime = test::cpu_runtime();
  std::vector<Row> rows(3, Row(8, 1));
  Graph graph;
  const auto a = graph.add(add_number()(rows[0], 1));
  const auto b = graph.add(mix_numbers()(rows[0], rows[1], 1));  // one level below `c`
  const auto c = graph.add(add_number()(rows[2], 1));
  auto plan = graph.compile(runtime);
  REQUIRE(plan);
  CHECK(plan->description().order == std::vector<std::size_t>{a, c, b});
  const auto refused = plan->set(c, 0, rows[1]);
  REQUIRE_FALSE(refused);
  CHECK(mentions(refused.error(), "step 2 'add'"));
  CHECK(mentions(refused.error(), "step 1 'mix' uses in another order"));
  CHECK(plan->run().wait());
  CHECK(rows[2] == Row(8, 2));
}

TEST_CASE("a run can be cancelled, be late, and follow other jobs", "[scheduler]") {
  test::Busy busy;
  Row x(8, 0);
  Graph graph;
  graph.add(add_number()(x, 1));
  auto plan = graph.compile(busy.runtime, {.name = "frame"});
  REQUIRE(plan);
  auto cancelled = plan->run();
  auto late = plan->run({.start_by = std::chrono::seconds(1)});
  auto follower = plan->run({.tag = "b", .after = {cancelled}});
  auto last =
      plan->run({.priority = Priority::high, .after = {cancelled}, .after_failure = AfterFailure::run});
  cancelled.cancel();
  busy.clock.advance(std::chrono::seconds(2));
  busy.release();
  CHECK(cancelled.wait().error() == Errc::cancelled);
  CHECK(late.wait().error() == Errc::timed_out);
  CHECK(follower.wait().error() == Errc::cancelled);
  CHECK(mentions(follower.wait().error(), "'frame'"));
  CHECK(last.wait());
  CHECK(x == Row(8, 1));
  test::check_counts(busy.runtime.metrics().jobs);
  Runtime another = test::cpu_runtime();
  auto foreign = another.submit(add_number()(x, 0));
  CHECK(plan->run({.after = {foreign}}).wait().error() == Errc::invalid_argument);
}

TEST_CASE("a failing step fails the run with its name, and the arrays that the run writes", "[scheduler]") {
  Runtime runtime = test::cpu_runtime();
  const auto x = runtime.array(std::vector<float>(8, 1.0f)), y = runtime.array(std::vector<float>(8, 1.0f));
  bool fails = true;
  const auto kernel = test::on_host("fragile", [&](Range, std::span<float>) {
    if (fails) throw std::runtime_error("it broke");
  });
  Graph graph;
  graph.add(kernel(x));
  graph.add(test::scale()(y, 2.0f));
  auto plan = graph.compile(runtime, {.name = "frame"});
  REQUIRE(plan);
  const auto done = plan->run().wait();
  REQUIRE_FALSE(done);
  CHECK(done.error() == Errc::kernel_failed);
  CHECK(mentions(done.error(), "'fragile'"));
  CHECK(mentions(done.error(), "of graph 'frame'"));
  CHECK_FALSE(x.read());
  CHECK_FALSE(y.read());
  fails = false;
  CHECK_FALSE(plan->run().wait());  // it reads failed arrays
}

TEST_CASE("a run may outlive its plan, its graph and its ticket", "[scheduler]") {
  const auto device = scripted("cuda:0");
  Machine machine({device});
  const auto x = machine.array(Row(16, 0));
  device->hold();
  {
    Graph graph;
    graph.add(add_number()(x, 1));
    auto plan = graph.compile(machine.scheduler);
    REQUIRE(plan);
    (void)plan->run();
    (void)plan->run();
  }
  device->release();
  CHECK(contents(x) == Row(16, 2));
}

TEST_CASE("threads that share a plan run it in turns", "[scheduler]") {
  const auto device = scripted("cuda:0");
  Machine machine({device});
  const auto x = machine.array(Row(16, 0)), y = machine.array(Row(16, 0));
  Graph graph;
  const auto step = graph.add(add_number()(x, 1));
  graph.add(mix_numbers()(x, y, 0));
  auto plan = graph.compile(machine.scheduler);
  REQUIRE(plan);
  const int each = test::rounds(200);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, plan = *plan]() mutable {
      for (int i = 0; i < each; ++i) {
        (void)plan.set(step, 1, Number{1}).has_value();
        if (!plan.run().wait()) FAIL("a run failed");
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(contents(x) == Row(16, static_cast<Number>(4 * each)));
}
