// Random graphs, compared with a sequential interpreter and with their jobs submitted one by one.
#include <wye/wye.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph_kernels.hpp"
#include "mixed_devices.hpp"
#include "rig.hpp"
#include "support/device/test_kernels.hpp"
#include "support/random_cases.hpp"
#include "support/skip.hpp"

using namespace wye;
using namespace wye::literals;

namespace graph_programs {
namespace {

using test::Number;
using test::Row;
using test::Scripted;
using test::scripted;

constexpr std::size_t width = 32;  // elements of all memory

/// Types of work with different orders of devices.
constexpr std::array types = {WorkloadType{"anywhere"}, WorkloadType{"at-home"}, WorkloadType{"first-gpu"},
                              WorkloadType{"second-gpu"}};

std::vector<Preference> rows_of_types() {
  return {{types[0], 0_B, {"cuda", "vulkan", "cpu"}},
          {types[1], 0_B, {"cpu"}},
          {types[2], 0_B, {"cuda", "cpu"}},
          {types[3], 0_B, {"vulkan", "cpu"}},
          {workload_types::custom, 0_B, {"cpu"}}};
}

/// A scheduler on real and scripted devices, and the places where its graphs run.
struct World : test::MixedDevices {
  explicit World(PoolOptions options, const std::vector<Scripted>& scripted_devices = {})
      : MixedDevices(Runtime::open({.pool = std::move(options)}).value(), scripted_devices,
                     {.concurrent_jobs = 3, .preferences = rows_of_types()}) {
    for (const Device& device : pool->devices()) {
      places.push_back(device.id());
      alignment = std::max<std::size_t>(alignment, device.info().limits.offset_alignment / sizeof(Number));
    }
    places.insert(places.end(), places.size() + 1, "");  // half of the graphs run on several devices
  }
  Array<Number> array(const Row& values) const { return test::array_in(*pool, values); }

  std::vector<std::string> places;
  std::size_t alignment = 1;
};

/// Elements of an array, of host memory or of scratch memory.
struct Part {
  enum class Kind { array, row, scratch };
  Kind kind = Kind::array;
  std::size_t index = 0, from = 0, count = width;
  bool overlaps(const Part& other) const {
    return kind == other.kind && index == other.index && from < other.from + other.count &&
           other.from < from + count;
  }
};

/// One call of a step: z += k, z = 3 z + x + k, or z[i] = k + i.
struct Operation {
  enum class Kind { add, mix, iota };
  Kind kind = Kind::add;
  Part x, z;
  Number k = 0;
};

struct RandomStep {
  std::vector<Operation> calls;
  std::vector<std::size_t> after = {};
  WorkloadType type;
};

/// The mistakes that a test plants.
struct Planted {
  bool forgets_dependencies = false;  // kernels declare to read what they write
  bool forgets_updates = false;
  std::size_t shift = 0;  // of slices, in elements
};

/// z = 3 z + x + k, declared wrongly.
const Kernel<Read<Number>, Read<Number>, Number>& undeclared_mix() {
  static const auto kernel =
      Kernel<Read<Number>, Read<Number>, Number>::make(
          {.name = "planted",
           .sources = {host([](Range range, std::span<const Number> x, std::span<const Number> z, Number k) {
             for (const std::uint64_t i : range) const_cast<Number&>(z[i]) = z[i] * 3 + x[i] + k;
           })}})
          .value();
  return kernel;
}

/// Memory that steps use: arrays, host memory and scratch memory.
struct Contents {
  std::vector<Array<Number>> arrays;
  std::vector<Row> rows;
  std::vector<Scratch<Number>> scratch;

  template <class P>
  P parameter(const Part& part, std::size_t shift = 0) {
    const std::size_t from = part.count < width ? (part.from + shift) % (width - part.count + 1) : part.from;
    switch (part.kind) {
      case Part::Kind::array: return P(arrays[part.index].slice(from, part.count));
      case Part::Kind::row: return P(std::span(rows[part.index]).subspan(from, part.count));
      case Part::Kind::scratch: break;
    }
    return P(scratch[part.index]).slice(from, part.count);
  }
  Call call(const Operation& op, const Planted& planted = {}) {
    if (op.kind == Operation::Kind::add)
      return test::add_number()(parameter<ReadWrite<Number>>(op.z, planted.shift), op.k);
    if (op.kind == Operation::Kind::iota)
      return test::count_numbers()(parameter<Write<Number>>(op.z, planted.shift), op.k);
    if (planted.forgets_dependencies)
      return undeclared_mix()(parameter<Read<Number>>(op.x), parameter<Read<Number>>(op.z), op.k);
    return test::mix_numbers()(parameter<Read<Number>>(op.x),
                               parameter<ReadWrite<Number>>(op.z, planted.shift), op.k);
  }
};

/// The same memory in the interpreter.
struct Model {
  std::vector<Row> arrays, rows, scratch;

  Number* at(const Part& part) {
    auto& of = part.kind == Part::Kind::array ? arrays : part.kind == Part::Kind::row ? rows : scratch;
    return of[part.index].data() + part.from;
  }
  void run(const Operation& op) {
    Number *const z = at(op.z), *const x = at(op.x);
    for (std::size_t i = 0; i < op.z.count; ++i) {
      if (op.kind == Operation::Kind::add) z[i] += op.k;
      if (op.kind == Operation::Kind::mix) z[i] = z[i] * 3 + x[i] + op.k;
      if (op.kind == Operation::Kind::iota) z[i] = op.k + static_cast<Number>(i);
    }
  }
};

/// Runs the graph of a seed, and returns how it differs from the interpreter; empty if it does not.
std::string differs(World& world, unsigned seed, const Planted& planted = {}, bool one_by_one = true,
                    bool computes = true) {
  std::mt19937 engine(seed);
  const auto random = [&](std::size_t below) { return static_cast<std::size_t>(engine() % below); };
  const auto number = [&] { return static_cast<Number>(engine()); };
  Model model;
  Contents contents, alone;  // of the plan, and of jobs submitted one by one
  const std::size_t used_arrays = 2 + random(3), used_rows = random(3), scratch_count = random(3);
  const auto row = [&] {
    Row values(width);
    std::generate(values.begin(), values.end(), number);
    return values;
  };
  for (std::size_t i = 0; i < used_arrays + 2; ++i) {  // two more, for updates
    model.arrays.push_back(row());
    contents.arrays.push_back(world.array(model.arrays.back()));
    alone.arrays.push_back(world.array(model.arrays.back()));
  }
  for (std::size_t i = 0; i < used_rows + 2; ++i) model.rows.push_back(row());
  contents.rows = alone.rows = model.rows;
  for (std::size_t i = 0; i < scratch_count; ++i) {
    model.scratch.emplace_back(width);
    contents.scratch.emplace_back(width);
  }

  std::vector<bool> is_set(scratch_count);
  const auto part = [&](std::size_t count, bool sets) {
    for (;;) {
      const std::size_t kind = random(6);
      Part of;
      of.count = count;
      of.kind = kind < 3 ? Part::Kind::array : kind < 5 ? Part::Kind::row : Part::Kind::scratch;
      const std::size_t most = of.kind == Part::Kind::array ? used_arrays
                               : of.kind == Part::Kind::row ? used_rows
                                                            : scratch_count;
      if (most == 0) continue;
      of.index = random(most);
      of.from = random((width - count) / world.alignment + 1) * world.alignment;
      if (of.kind != Part::Kind::scratch || is_set[of.index]) return of;
      if (!sets || count != width) continue;
      is_set[of.index] = true;
      return of;
    }
  };
  std::vector<RandomStep> steps(3 + random(14));
  for (std::size_t s = 0; s < steps.size(); ++s) {
    steps[s].type = types[random(types.size())];
    const std::size_t calls = random(6) == 0 ? 2 : 1;
    for (std::size_t c = 0; c < calls; ++c) {
      Operation op;
      op.kind = static_cast<Operation::Kind>(random(3));
      const std::size_t count = random(2) == 0 ? width : random(2) == 0 ? width / 2 : 1 + random(width);
      op.z = part(count, op.kind == Operation::Kind::iota);
      do op.x = part(count, false);
      while (op.x.overlaps(op.z));
      op.k = number();
      steps[s].calls.push_back(op);
    }
    while (s > 0 && random(4) == 0) steps[s].after.push_back(random(s));
  }

  Graph graph;
  std::vector<GraphStep> added;
  const auto job_of = [&](Contents& in, const RandomStep& step, const Planted& mistake) {
    Call first = in.call(step.calls[0], mistake);
    std::vector<Call> rest;
    if (step.calls.size() > 1) rest.push_back(in.call(step.calls[1], mistake));
    return Job::sequence("step", step.type, std::move(first), std::move(rest));
  };
  for (const RandomStep& step : steps) {
    added.push_back(graph.add(job_of(contents, step, planted)));
    for (const std::size_t before : step.after) added.back().after(added[before]);
  }
  auto plan = graph.compile(*world.scheduler,
                            {.on = world.places[random(world.places.size())], .one_silicon = random(2) == 0});
  if (!plan) return "compile: " + plan.error().describe();

  std::vector<Ticket> tickets;
  const auto wait_all_of_them = [&]() -> std::string {
    for (Ticket& ticket : tickets)
      if (const auto done = ticket.wait(); !done) return "a run failed: " + done.error().describe();
    tickets.clear();
    return {};
  };
  const std::size_t runs = 1 + random(4);
  for (std::size_t run = 0; run < runs; ++run) {
    for (std::size_t update = run == 0 ? 0 : random(4); update > 0; --update) {
      const std::size_t s = random(steps.size()), c = random(steps[s].calls.size());
      Operation& op = steps[s].calls[c];
      Operation changed = op;
      const std::size_t which = op.kind == Operation::Kind::mix ? random(3) : 1 + random(2);
      std::size_t argument = op.kind == Operation::Kind::mix ? which : which - 1;  // x, z, k
      Result<void> set;
      if (which == 2) {
        changed.k = number();
        if (!planted.forgets_updates) set = plan->set(added[s], argument, changed.k, c);
      } else {
        Part& memory = which == 0 ? changed.x : changed.z;
        if (memory.kind == Part::Kind::scratch) continue;
        const bool is_array = memory.kind == Part::Kind::array;
        memory.index = random(is_array ? contents.arrays.size() : contents.rows.size());
        if (!planted.forgets_updates)
          set = is_array
                    ? plan->set(added[s], argument,
                                contents.arrays[memory.index].slice(memory.from, memory.count), c)
                    : plan->set(added[s], argument,
                                std::span(contents.rows[memory.index]).subspan(memory.from, memory.count), c);
      }
      if (set) {
        op = changed;
        continue;
      }
      const std::string why = set.error().describe();
      const bool is_right =
          which != 2 && (test::mentions(why, "another order") || test::mentions(why, "overlaps"));
      if (!is_right) return "set: " + why;
    }
    tickets.push_back(plan->run({.priority = static_cast<Priority>(random(3))}));
    for (const RandomStep& step : steps) {
      for (const Operation& op : step.calls) model.run(op);
      if (!one_by_one) continue;
      RandomStep in_arrays = step;  // each graph's scratch memory is an array here
      for (Operation& op : in_arrays.calls)
        for (Part* of : {&op.x, &op.z})
          if (of->kind == Part::Kind::scratch) {
            of->kind = Part::Kind::array;
            of->index += used_arrays + 2;
          }
      while (alone.arrays.size() < used_arrays + 2 + scratch_count)
        alone.arrays.push_back(world.array(Row(width)));
      if (const auto done = world.scheduler->run(job_of(alone, in_arrays, {})); !done)
        return "a job failed: " + done.error().describe();
    }
    if (random(3) == 0) {  // a job between two runs
      const Operation op{Operation::Kind::add, {}, {Part::Kind::array, random(used_arrays)}, number()};
      tickets.push_back(world.scheduler->submit(Job(contents.call(op), types[random(types.size())])));
      if (one_by_one) (void)world.scheduler->run(Job(alone.call(op), types[0])).has_value();
      model.run(op);
    }
    if (random(3) == 0 && computes) {
      const std::size_t a = random(contents.arrays.size());
      if (test::contents(contents.arrays[a]) != model.arrays[a])
        return "array " + std::to_string(a) + " is wrong after run " + std::to_string(run);
    }
  }
  if (const std::string failed = wait_all_of_them(); !failed.empty()) return failed;
  if (!computes) return {};
  for (std::size_t a = 0; a < contents.arrays.size(); ++a) {
    if (test::contents(contents.arrays[a]) != model.arrays[a])
      return "array " + std::to_string(a) + " is wrong\n" + plan->text();
    if (one_by_one && test::contents(alone.arrays[a]) != model.arrays[a])
      return "array " + std::to_string(a) + " of the jobs is wrong";
  }
  for (std::size_t r = 0; r < contents.rows.size(); ++r) {
    if (contents.rows[r] != model.rows[r]) return "row " + std::to_string(r) + " is wrong\n" + plan->text();
    if (one_by_one && alone.rows[r] != model.rows[r])
      return "row " + std::to_string(r) + " of the jobs is wrong";
  }
  return {};
}

World scripted_world() {
  return World({.backends = {"cpu"}}, {scripted("cuda:0"), scripted("vulkan:0"), scripted("cuda:1")});
}

/// Returns the number of seeds below `seeds` whose graphs differ from the interpreter.
int differing(const Planted& planted, unsigned seeds) {
  World world = scripted_world();
  int count = 0;
  for (unsigned seed = 0; seed < seeds; ++seed) count += differs(world, seed, planted, false).empty() ? 0 : 1;
  return count;
}

}  // namespace
}  // namespace graph_programs

using graph_programs::differing;
using graph_programs::differs;

TEST_CASE("1,000 random graphs on four devices do what their jobs do one by one", "[scheduler]") {
  graph_programs::World world = graph_programs::scripted_world();
  for (const unsigned seed : test::RandomCases(1000)) {
    INFO("seed " << seed);
    REQUIRE(differs(world, seed) == "");
  }
}

TEST_CASE("random graphs on lavapipe and the CPU do what a sequential interpreter does", "[scheduler]") {
  if (!test::has_device(Runtime::open({}).value(), "vulkan")) return;
  graph_programs::World world({.backends = {"cpu", "vulkan"}});
  for (const unsigned seed : test::RandomCases(200)) {
    INFO("seed " << seed);
    REQUIRE(differs(world, seed, {}, false) == "");
  }
}

TEST_CASE("random graphs on the stand-in for CUDA and the CPU do what a sequential interpreter does",
          "[scheduler]") {
  if (test::stand_in_cuda().empty()) return test::skip("this build is without CUDA");
  if (const std::string why = test::no_cuda_kernels(); !why.empty()) return test::skip(why);
  graph_programs::World world({.backends = {"cpu", "cuda"}, .cuda_driver = test::stand_in_cuda()});
  for (const unsigned seed : test::RandomCases(200)) {
    INFO("seed " << seed);
    REQUIRE(differs(world, seed, {}, false) == "");
  }
}

TEST_CASE("random graphs on a device that does nothing complete", "[scheduler]") {
  graph_programs::World world({.backends = {"null"}});
  for (const unsigned seed : test::RandomCases(1000)) {
    INFO("seed " << seed);
    REQUIRE(differs(world, seed, {}, false, false) == "");
  }
  test::check_counts(world.scheduler->metrics());
}

TEST_CASE("the interpreter finds graphs whose kernels write what they declare to read",
          "[scheduler][no_tsan]") {
  CHECK(differing({.forgets_dependencies = true}, 100) > 50);
}

TEST_CASE("the interpreter finds graphs whose runs have stale arguments", "[scheduler][no_tsan]") {
  CHECK(differing({.forgets_updates = true}, 100) > 40);
}

TEST_CASE("the interpreter finds graphs whose slices are off by one", "[scheduler][no_tsan]") {
  CHECK(differing({.shift = 1}, 100) > 50);
}
