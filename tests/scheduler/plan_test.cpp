// Plans as data: their text, JSON and differences; placement, memory, and lost devices.
#include <wye/wye.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graph_kernels.hpp"
#include "rig.hpp"

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
using test::scripted;
using test::Scripted;

namespace {

using DeviceStep = test::ScriptedDevice::Step;

/// A graph of three steps: two independent steps, and a step that follows both.
struct Diamond {
  explicit Diamond(const Machine& machine) : x(machine.array(Row(64, 1))), y(machine.array(Row(64, 2))) {
    first = graph.add(add_number()(x, 1));
    second = graph.add(add_number()(y, 2));
    third = graph.add(mix_numbers()(x, y, 0));
  }
  Array<Number> x, y;
  Graph graph;
  std::size_t first = 0, second = 0, third = 0;
};

}  // namespace

TEST_CASE("a plan describes its steps, copies and memory", "[scheduler]") {
  const Machine machine({scripted("cuda:0")});
  const Diamond diamond(machine);
  auto plan = diamond.graph.compile(machine.scheduler, {.name = "frame"});
  REQUIRE(plan);
  const PlanDescription description = plan->description();
  CHECK(description.name == "frame");
  REQUIRE(description.steps.size() == 3);
  CHECK(description.steps[2].name == "mix");
  CHECK(description.steps[2].device == "cuda:0");
  CHECK(description.steps[2].after == std::vector<std::size_t>{0, 1});
  CHECK(description.steps[0].after.empty());
  CHECK(description.steps[1].after.empty());
  REQUIRE(description.steps[2].calls.size() == 1);
  const auto& arguments = description.steps[2].calls[0].arguments;
  REQUIRE(arguments.size() == 3);
  CHECK(arguments[0].memory == "array 0");
  CHECK(arguments[0].kept_in == "device");
  CHECK(arguments[0].access == Access::read);
  CHECK(arguments[1].memory == "array 1");
  CHECK(arguments[1].access == Access::read_write);
  CHECK(arguments[1].count == 64);
  CHECK(arguments[2].memory == "value");
  REQUIRE(description.copies.size() == 2);
  CHECK(description.copies[0] == PlanDescription::Copy{0, "array 0", "host", "cuda:0", 256_B});
  CHECK(description.copies[1] == PlanDescription::Copy{1, "array 1", "host", "cuda:0", 256_B});
  REQUIRE(description.devices.size() == 1);
  CHECK(description.devices[0].arrays == 512_B);
  CHECK(description.devices[0].host == 0_B);
  CHECK(description.devices[0].scratch == 0_B);
  REQUIRE(description.steps[0].candidates.size() == 1);
  CHECK(description.steps[0].candidates[0].verdict == Candidate::Verdict::ran);
  CHECK(plan->text() ==
        "'cuda:0' runs 3 of 3 steps of graph 'frame'.\n"
        "step 0 'add' on 'cuda:0': 'cuda:0' is the only device.\n"
        "step 1 'add' on 'cuda:0': 'cuda:0' is the only device.\n"
        "step 2 'mix' on 'cuda:0' after [0, 1]: 'cuda:0' is the only device.\n"
        "copy array 0 from 'host' to 'cuda:0' (256 bytes) before step 0\n"
        "copy array 1 from 'host' to 'cuda:0' (256 bytes) before step 1\n"
        "memory on 'cuda:0': 512 bytes (arrays 512 bytes, host memory 0 bytes, scratch 0 bytes)");
  CHECK(plan->graphviz() ==
        "digraph \"frame\" {\n"
        "  0 [label=\"0 add\\ncuda:0\"];\n"
        "  1 [label=\"1 add\\ncuda:0\"];\n"
        "  2 [label=\"2 mix\\ncuda:0\"];\n"
        "  0 -> 2;\n"
        "  1 -> 2;\n"
        "}\n");
}

TEST_CASE("a plan lists the copies between its devices", "[scheduler]") {
  const auto first = scripted("cuda:0"), second = scripted("vulkan:0");
  const Machine machine({first, second}, {.preferences = {{workload_types::vector, 0_B, {"cuda"}},
                                                          {workload_types::matrix, 0_B, {"vulkan"}}}});
  const auto x = machine.array(Row(64, 1));
  Row y(64);
  Graph graph;
  graph.add(Job(add_number()(x.slice(0, 32), 1), workload_types::vector));
  graph.add(Job(add_number()(x, 1), workload_types::matrix));
  graph.add(Job(mix_numbers()(x, y, 1), workload_types::vector));
  auto plan = graph.compile(machine.scheduler, {.one_silicon = false});
  REQUIRE(plan);
  const PlanDescription description = plan->description();
  using Copy = PlanDescription::Copy;
  CHECK(description.copies == std::vector<Copy>{{0, "array 0", "host", "cuda:0", 128_B},
                                                {1, "array 0", "cuda:0", "host", 128_B},
                                                {1, "array 0", "host", "vulkan:0", 256_B},
                                                {2, "array 0", "vulkan:0", "host", 256_B},
                                                {2, "array 0", "host", "cuda:0", 256_B},
                                                {2, "host memory 1", "host", "cuda:0", 256_B},
                                                {3, "host memory 1", "cuda:0", "host", 256_B}});
  CHECK(description.segments == std::vector<std::size_t>{1, 1, 1});
  REQUIRE(plan->run().wait());
  CHECK(y == Row([] {
          Row all(64, 3);
          std::fill_n(all.begin(), 32, 4);
          return all;
        }()));
}

TEST_CASE("a plan survives JSON, and plans that differ say where", "[scheduler]") {
  const Machine machine({scripted("cuda:0")});
  const Diamond diamond(machine);
  auto plan = diamond.graph.compile(machine.scheduler);
  REQUIRE(plan);
  const PlanDescription description = plan->description();
  const auto read = PlanDescription::from_json(plan->json());
  REQUIRE(read);
  CHECK(*read == description);
  CHECK(read->json() == plan->json());
  CHECK(read->text() == plan->text());
  CHECK(differences(*read, description).empty());

  PlanDescription other = description;
  other.steps[1].device = "vulkan:0";
  other.steps[2].calls[0].arguments[1].count = 65;
  other.devices[0].scratch = 4_KiB;
  CHECK_FALSE(other == description);
  CHECK(differences(description, other) ==
        std::vector<std::string>{
            "Step 2 'mix', argument 2 of 'mix': the number of elements is 64, and 65 in the other.",
            "Step 1 'add': the device is 'cuda:0', and 'vulkan:0' in the other.",
            "Device 'cuda:0': the scratch memory is 0 bytes, and 4.00 KiB in the other."});
}

TEST_CASE("text that is no plan is refused with the member that is wrong", "[scheduler]") {
  const Machine machine({scripted("cuda:0")});
  const Diamond diamond(machine);
  auto plan = diamond.graph.compile(machine.scheduler);
  REQUIRE(plan);
  for (const char* text : {"", "{", "[]", "1", "{}", "null"}) {
    const auto read = PlanDescription::from_json(text);
    REQUIRE_FALSE(read);
    CHECK(read.error() == Errc::corrupt);
  }
  const auto whole = nlohmann::json::parse(plan->json());
  int refused = 0;
  for (const auto& [member, value] : whole.items()) {
    auto part = whole;
    part.erase(member);
    const auto missing = PlanDescription::from_json(part.dump());
    REQUIRE_FALSE(missing);
    CHECK(mentions(missing.error().sentence(), "'" + member + "'"));
    part[member] = 3.5;
    CHECK_FALSE(PlanDescription::from_json(part.dump()));
    ++refused;
  }
  CHECK(refused == 7);
  auto wrong = whole;
  wrong["steps"][0]["after"] = {7};
  CHECK(mentions(PlanDescription::from_json(wrong.dump()).error().sentence(), "'after'"));
  wrong = whole;
  wrong["steps"][0]["calls"][0]["arguments"][0]["access"] = "sometimes";
  CHECK(mentions(PlanDescription::from_json(wrong.dump()).error().sentence(), "'access'"));
}

TEST_CASE("a plan that was saved places the graph again", "[scheduler]") {
  const auto first = scripted("cuda:0"), second = scripted("vulkan:0");
  const Machine machine({first, second});
  const Diamond diamond(machine);
  auto plan = diamond.graph.compile(machine.scheduler, {.on = "vulkan:0"});
  REQUIRE(plan);
  const auto saved = PlanDescription::from_json(plan->json());
  REQUIRE(saved);

  SECTION("on the same devices") {
    auto again = diamond.graph.compile(machine.scheduler, {.placement = *saved});
    REQUIRE(again);
    for (const auto& step : again->description().steps) CHECK(step.device == "vulkan:0");
    CHECK(mentions(again->text(), "The placement names 'vulkan:0'."));
    CHECK(again->run().wait()->device().id == "vulkan:0");
    CHECK(diamond.graph.compile(machine.scheduler)->description().steps[0].device == "cuda:0");
  }
  SECTION("but not another graph") {
    const Diamond other(machine);
    Graph longer = other.graph;
    longer.add(add_number()(other.x, 1));
    const auto refused = longer.compile(machine.scheduler, {.placement = *saved});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().sentence() ==
          "The placement is of another graph: The plan: the number of steps is 3, and 4 in the other.");
    PlanDescription changed = *saved;
    changed.steps[1].calls[0].arguments[0].count = 32;
    const auto argument = diamond.graph.compile(machine.scheduler, {.placement = changed});
    REQUIRE_FALSE(argument);
    CHECK(mentions(argument.error().sentence(), "Step 1 'add', argument 1 of 'add': the number of elements"));
  }
  SECTION("but not on a device that is missing, refuses, or is another one") {
    PlanDescription changed = *saved;
    changed.steps[2].device = "vulkan:7";
    const auto missing = diamond.graph.compile(machine.scheduler, {.placement = changed});
    REQUIRE_FALSE(missing);
    CHECK(missing.error() == Errc::not_found);
    CHECK(mentions(missing.error().sentence(), "step 2 'mix' of graph 'graph' on device 'vulkan:7'"));
    changed = *saved;
    changed.devices[0].name = "another card";
    const auto another = diamond.graph.compile(machine.scheduler, {.placement = changed});
    REQUIRE_FALSE(another);
    CHECK(mentions(another.error().sentence(), "'another card'"));
    second->lose();
    const auto lost = diamond.graph.compile(machine.scheduler, {.placement = *saved});
    REQUIRE_FALSE(lost);
    CHECK(mentions(lost.error().sentence(), "step 0 'add'"));
    CHECK(mentions(lost.error().sentence(), "was lost"));
  }
}

TEST_CASE("all steps on GPUs run on one processor, unless told otherwise", "[scheduler]") {
  const auto first = scripted("cuda:0"), second = scripted("vulkan:0");
  const SchedulerOptions options{.preferences = {{workload_types::vector, 0_B, {"cuda", "vulkan"}},
                                                 {workload_types::matrix, 0_B, {"vulkan", "cuda"}}}};
  const Machine machine({first, second}, options);
  std::vector<Row> rows(3, Row(8));
  Graph graph;
  graph.add(Job(add_number()(rows[0], 1), workload_types::vector));
  graph.add(Job(add_number()(rows[1], 1), workload_types::matrix));
  graph.add(Job(add_number()(rows[2], 1), workload_types::matrix));
  const auto devices = [&](const Plan& plan) {
    std::vector<std::string> all;
    for (const auto& step : plan.description().steps) all.push_back(step.device);
    return all;
  };
  auto plan = graph.compile(machine.scheduler);
  REQUIRE(plan);
  CHECK(devices(*plan) == std::vector<std::string>{"vulkan:0", "vulkan:0", "vulkan:0"});
  const auto candidates = plan->description().steps[0].candidates;
  REQUIRE(candidates.size() == 2);
  CHECK(candidates[0].device == "vulkan:0");
  CHECK(candidates[1].code == RefusalCode::other_silicon);
  CHECK(mentions(candidates[1].reason, "not on the processor"));
  CHECK(plan->run().wait());
  auto several = graph.compile(machine.scheduler, {.one_silicon = false});
  REQUIRE(several);
  CHECK(devices(*several) == std::vector<std::string>{"cuda:0", "vulkan:0", "vulkan:0"});
  CHECK(several->run().wait());
  CHECK(rows == std::vector<Row>(3, Row(8, 2)));

  const auto buffer_on = [&](const Scripted& device) {
    return Buffer(
        device->create_buffer({.bytes = 32_B, .use = device::MemoryUse::device, .account = nullptr}).value(),
        ElementType::uint32, 4);
  };
  const Buffer here = buffer_on(first), there = buffer_on(second);
  Graph stuck;
  stuck.add(add_number()(here, 1));
  stuck.add(add_number()(there, 1));
  const auto refused = stuck.compile(machine.scheduler);
  REQUIRE_FALSE(refused);
  CHECK(refused.error() == Errc::unsupported);
  CHECK(mentions(refused.error().sentence(), "step"));
  CHECK(stuck.compile(machine.scheduler, {.one_silicon = false}));
}

TEST_CASE("scratch memories that are never in use at the same time share memory", "[scheduler]") {
  const auto device = scripted("cuda:0");
  const Machine machine({device});
  Row out(64, 0);
  Graph graph;
  std::vector<Scratch<Number>> scratch;
  for (int i = 0; i < 6; ++i) scratch.emplace_back(64);
  GraphStep last = graph.add(count_numbers()(scratch[0], 1));
  for (std::size_t i = 1; i < scratch.size(); ++i) {
    graph.add(count_numbers()(scratch[i], 0)).after(last);
    last = graph.add(mix_numbers()(scratch[i - 1], scratch[i], 0));
  }
  graph.add(mix_numbers()(scratch.back(), out, 0));
  auto plan = graph.compile(machine.scheduler);
  REQUIRE(plan);
  const Bytes bytes = plan->description().devices[0].scratch;
  INFO(plan->text());
  CHECK(bytes == 512_B);
  REQUIRE(plan->run().wait());
  Row expected(64);
  for (Number i = 0; i < 64; ++i) expected[i] = 1 + i;
  for (int s = 1; s < 6; ++s)
    for (Number i = 0; i < 64; ++i) expected[i] = 3 * i + expected[i];
  CHECK(out == expected);
}

TEST_CASE("a plan reserves its memory when it is compiled, or is refused with its size", "[scheduler]") {
  const auto device = scripted("cuda:0");
  const Machine machine({device});
  const auto x = machine.array(Row(1024));
  const Scratch<Number> scratch(1024);
  Row host(1024);
  Graph graph;
  graph.add(count_numbers()(scratch, 0));
  graph.add(mix_numbers()(scratch, x, 0));
  graph.add(mix_numbers()(x, host, 0));
  {
    auto plan = graph.compile(machine.scheduler);
    REQUIRE(plan);
    CHECK(device->buffers_alive() == 3);
    CHECK(machine.pool.metrics().bytes == 12_KiB);
    REQUIRE(plan->run().wait());
    CHECK(device->buffers_alive() == 3);
  }
  device->fail_at(DeviceStep::create_buffer, Errc::out_of_memory);
  const auto refused = graph.compile(machine.scheduler);
  REQUIRE_FALSE(refused);
  CHECK(refused.error() == Errc::out_of_memory);
  CHECK(mentions(refused.error().describe(),
                 "for graph 'graph' (arrays 0 bytes, host memory 4.00 KiB, scratch 4.00 KiB)"));
}

TEST_CASE("a plan has the times of earlier jobs like its steps", "[scheduler]") {
  Machine machine({scripted("cuda:0"), scripted("vulkan:0")});
  Row x(8), y(800);
  REQUIRE(machine.scheduler.run(add_number()(x, 1), {.on = "cuda:0"}));
  REQUIRE(machine.scheduler.run(add_number()(x, 1), {.on = "cuda:0"}));
  Graph graph;
  graph.add(add_number()(x, 1));
  graph.add(add_number()(y, 1));
  const auto plan = graph.compile(machine.scheduler);
  REQUIRE(plan);
  const auto steps = plan->description().steps;
  REQUIRE(steps[0].candidates[0].estimate);
  CHECK(steps[0].candidates[0].estimate->runs == 2);
  CHECK_FALSE(steps[0].candidates[1].estimate);  // no such job has run there
  CHECK_FALSE(steps[1].candidates[0].estimate);  // of this size
}

TEST_CASE("a step whose kernel does not build runs elsewhere, unless that is forbidden", "[scheduler]") {
  const auto first = scripted("cuda:0"), second = scripted("vulkan:0");
  first->fail_at(DeviceStep::create_executable, Errc::compile_failed);
  const Machine machine({first, second});
  Row x(8);
  Graph graph;
  graph.add(add_number()(x, 1));
  auto plan = graph.compile(machine.scheduler);
  REQUIRE(plan);
  const auto candidates = plan->description().steps[0].candidates;
  REQUIRE(candidates.size() == 2);
  CHECK(candidates[0].device == "vulkan:0");
  CHECK(candidates[1].verdict == Candidate::Verdict::failed);
  CHECK(candidates[1].code == RefusalCode::attempt_failed);
  CHECK(plan->run().wait());
  CHECK(x == Row(8, 1));
  const auto forbidden = graph.compile(machine.scheduler, {.fallback = Fallback::forbid});
  REQUIRE_FALSE(forbidden);
  CHECK(forbidden.error() == Errc::compile_failed);
  CHECK(mentions(forbidden.error().describe(), "step 0 'add'"));
}

TEST_CASE("steps are placed again when a device is lost", "[scheduler]") {
  const auto first = scripted("cuda:0"), second = scripted("vulkan:0");
  const Machine machine({first, second});
  Row x(8), y(8);
  Graph graph;
  const auto add = graph.add(add_number()(x, 1));
  auto plan = graph.compile(machine.scheduler, {.name = "frame"});
  auto bound = graph.compile(machine.scheduler, {.fallback = Fallback::forbid});
  REQUIRE(plan);
  REQUIRE(bound);
  REQUIRE(plan->run().wait());
  REQUIRE(plan->set(add, 1, Number{10}));
  first->lose();
  REQUIRE(plan->set(add, 0, y));
  auto ticket = plan->run();
  const auto done = ticket.wait();
  REQUIRE(done);
  CHECK(done->device().id == "vulkan:0");
  CHECK(x == Row(8, 1));
  CHECK(y == Row(8, 10));
  const auto explanation = ticket.explain();
  REQUIRE(explanation.candidates.size() == 2);
  CHECK(explanation.candidates[0].device == "vulkan:0");
  CHECK(explanation.candidates[1].code == RefusalCode::device_lost);
  CHECK(mentions(plan->text(), "changed: 'cuda:0' was lost"));
  CHECK(plan->description().steps[0].device == "vulkan:0");
  REQUIRE(plan->run().wait());
  CHECK(y == Row(8, 20));
  const auto forbidden = bound->run().wait();
  REQUIRE_FALSE(forbidden);
  CHECK(forbidden.error() == Errc::device_lost);
  second->lose();
  const auto nowhere = plan->run().wait();
  REQUIRE_FALSE(nowhere);
  CHECK(nowhere.error() == Errc::device_lost);
  CHECK(mentions(nowhere.error().describe(), "step 0 'add'"));
}

TEST_CASE("a run in flight on a device that is lost runs elsewhere if nothing of it has completed",
          "[scheduler]") {
  const auto first = scripted("cuda:0"), second = scripted("vulkan:0");
  const Machine machine({first, second},
                        {.preferences = {{workload_types::vector, 0_B, {"cuda", "vulkan"}},
                                         {workload_types::matrix, 0_B, {"vulkan", "cuda"}}}});
  Row x(8), y(8);
  Graph graph;
  graph.add(Job(add_number()(x, 1), workload_types::vector));
  graph.add(Job(mix_numbers()(x, y, 1), workload_types::matrix));
  auto plan = graph.compile(machine.scheduler, {.one_silicon = false});
  REQUIRE(plan);
  const auto in_flight_on = [](const Scripted& device) {
    while (device->held() == 0) std::this_thread::yield();
  };
  SECTION("in its first segment") {
    first->hold();
    auto ticket = plan->run();
    in_flight_on(first);
    first->lose();
    REQUIRE(test::settled(ticket) == std::nullopt);
    CHECK(x == Row(8, 1));
    CHECK(y == Row(8, 2));
    CHECK(machine.scheduler.metrics().fallbacks == 1);
  }
  SECTION("and fails otherwise") {
    second->hold();
    auto ticket = plan->run();
    in_flight_on(second);
    second->lose();
    CHECK(test::settled(ticket) == Errc::device_lost);
    CHECK(mentions(ticket.wait().error().describe(), "in step 1 'mix' of graph 'graph'"));
    CHECK(plan->run().wait());
    CHECK(plan->description().steps[1].device == "cuda:0");
  }
  test::check_counts(machine.scheduler.metrics());
}

TEST_CASE("a plan with a device that fails at any of its steps never blocks or crashes", "[scheduler]") {
  for (int fatal = 0; fatal < 60; ++fatal) {
    INFO("step " << fatal);
    const auto device = scripted("cuda:0");
    const Machine machine({device});
    const auto x = machine.array(Row(8, 1));
    Row y(8);
    const Scratch<Number> scratch(8);
    Graph graph;
    graph.add(count_numbers()(scratch, 0));
    graph.add(mix_numbers()(scratch, x, 0));
    graph.add(mix_numbers()(x, y, 0));
    int steps = 0;
    device->set_script([&](DeviceStep) -> std::optional<Error> {
      if (steps++ != fatal) return std::nullopt;
      return Error(Errc::out_of_memory, "The script fails this step.");
    });
    auto plan = graph.compile(machine.scheduler);
    if (!plan) continue;
    for (int run = 0; run < 3; ++run) (void)plan->run().wait().has_value();
    test::check_counts(machine.scheduler.metrics());
  }
}

TEST_CASE("a closed scheduler refuses the runs of its plans", "[scheduler]") {
  Runtime runtime = test::cpu_runtime();
  Row x(8);
  Graph graph;
  graph.add(add_number()(x, 1));
  auto plan = graph.compile(runtime);
  REQUIRE(plan);
  runtime.close();
  CHECK(plan->run().wait().error() == Errc::closed);
  CHECK(x == Row(8));
}

TEST_CASE("runs of a plan appear among the recent jobs and in the metrics of their type", "[scheduler]") {
  Runtime runtime = test::cpu_runtime();
  Row x(256);
  Graph graph;
  graph.add(add_number()(x, 1));
  auto plan = graph.compile(runtime, {.name = "frame", .type = workload_types::image});
  REQUIRE(plan);
  REQUIRE(plan->run({.tag = "video"}).wait());
  const auto recent = runtime.scheduler().recent();
  REQUIRE(recent.size() == 1);
  CHECK(recent[0].job == "frame");
  CHECK(recent[0].tag == "video");
  CHECK(recent[0].size == 1_KiB);
  CHECK(recent[0].device() == "cpu:0");
  CHECK(runtime.metrics().jobs.by_type["image"].completed == 1);
}

TEST_CASE("a run is abandoned when its scheduler closes too early", "[scheduler][no_tsan]") {
  static test::Latch latch;  // the abandoned thread uses it
  Runtime runtime = test::cpu_runtime();
  const auto x = runtime.array(std::vector<float>(8, 1.0f));
  Graph graph;
  graph.add(latch.kernel(x));
  auto plan = graph.compile(runtime);
  REQUIRE(plan);
  auto ticket = plan->run();
  latch.await();
  CHECK_FALSE(runtime.close(Duration::zero()));
  CHECK(ticket.wait().error() == Errc::closed);
  CHECK_FALSE(x.read());
  latch.open();
}
