// The planner compared with a model without hulls. The model runs programs with neighbours out of
// order and checks whether the results differ.
#include "device/barriers.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "support/catch.hpp"

namespace wye::test {
namespace {

using namespace device;
using Program = std::vector<std::vector<Touch>>;
using Plan = std::vector<bool>;
using Memories = std::map<std::uint64_t, std::vector<std::uint64_t>>;

constexpr std::uint64_t memory_size = 24;

std::uint64_t scramble(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = a * 0x9e3779b97f4a7c15u + b + 0x7f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// The value that a command writes: every byte depends on the command and on all bytes that it
/// read.
struct Machine {
  Memories memories;
  std::vector<std::uint64_t> seen;  // per command

  explicit Machine(const Program& program) : seen(program.size()) {
    for (const auto& command : program)
      for (const Touch& t : command) {
        std::vector<std::uint64_t>& bytes = memories[t.memory];
        bytes.resize(memory_size);
        for (std::uint64_t i = 0; i < memory_size; ++i) bytes[i] = scramble(~t.memory, i);
      }
  }
  void read(const Program& program, std::size_t i) {
    seen[i] = scramble(1000, i);
    for (const Touch& t : program[i])
      if (reads(t.access))
        for (std::uint64_t b = t.first; b < t.last; ++b) seen[i] = scramble(seen[i], memories[t.memory][b]);
  }
  void write(const Program& program, std::size_t i) {
    for (const Touch& t : program[i])
      if (writes(t.access))
        for (std::uint64_t b = t.first; b < t.last; ++b) memories[t.memory][b] = scramble(seen[i], b);
  }
  friend bool operator==(const Machine&, const Machine&) = default;
};

/// Runs one group of commands that no barrier separates, somehow.
using Disorder = std::function<void(Machine&, const Program&, std::size_t first, std::size_t last)>;

void in_order(Machine& machine, const Program& program, std::size_t first, std::size_t last) {
  for (std::size_t i = first; i < last; ++i) {
    machine.read(program, i);
    machine.write(program, i);
  }
}
void backwards(Machine& machine, const Program& program, std::size_t first, std::size_t last) {
  for (std::size_t i = last; i-- > first;) {
    machine.read(program, i);
    machine.write(program, i);
  }
}
void reads_first(Machine& machine, const Program& program, std::size_t first, std::size_t last) {
  for (std::size_t i = first; i < last; ++i) machine.read(program, i);
  for (std::size_t i = last; i-- > first;) machine.write(program, i);
}

/// Returns whether `disorder` within the groups of `plan` differs from sequential execution at the
/// end of any group.
bool hazard_seen(const Program& program, const Plan& plan, const Disorder& disorder) {
  Machine ordered(program), disordered(program);
  for (std::size_t first = 0; first < program.size();) {
    std::size_t last = first + 1;
    while (last < program.size() && !plan[last]) ++last;
    in_order(ordered, program, first, last);
    disorder(disordered, program, first, last);
    if (!(ordered == disordered)) return true;
    first = last;
  }
  return false;
}

struct Shape {
  const char* name;
  bool exact;  ///< a hull of such ranges covers only bytes of the ranges
  std::function<std::pair<std::uint64_t, std::uint64_t>(std::mt19937_64&)> range;
};

const std::vector<Shape> shapes = {
    {"whole memories", true,
     [](std::mt19937_64&) { return std::pair<std::uint64_t, std::uint64_t>(0, memory_size); }},
    {"beginnings", true,
     [](std::mt19937_64& r) { return std::pair<std::uint64_t, std::uint64_t>(0, r() % memory_size + 1); }},
    {"any ranges", false,
     [](std::mt19937_64& r) {
       const std::uint64_t a = r() % (memory_size + 1), b = r() % (memory_size + 1);
       return std::pair(std::min(a, b), std::max(a, b));
     }},
};

Program random_program(std::mt19937_64& random, const Shape& shape) {
  Program program(random() % 30 + 2);
  const std::uint64_t memories = random() % 12 + 1;
  for (auto& command : program) {
    command.resize(random() % 4);
    for (Touch& t : command) {
      const auto [first, last] = shape.range(random);
      // Numbers far apart and close together: the table hashes them.
      t = {.memory = (random() % memories) << (random() % 2 * 32),
           .first = first,
           .last = last,
           .access = static_cast<Access>(random() % 3 + 1)};
    }
  }
  return program;
}

}  // namespace

TEST_CASE("the planner misses no hazard of thousands of random programs", "[device]") {
  for (const Shape& shape : shapes)
    for (std::uint64_t seed = 0; seed < 3000; ++seed) {
      std::mt19937_64 random(seed);
      const Program program = random_program(random, shape);
      const Plan plan = plan_barriers(program);
      const Disorder shuffled = [&](Machine& machine, const Program& p, std::size_t first, std::size_t last) {
        std::vector<std::size_t> order(last - first);
        std::iota(order.begin(), order.end(), first);
        std::shuffle(order.begin(), order.end(), random);
        for (std::size_t i : order) in_order(machine, p, i, i + 1);
      };
      INFO(shape.name << ", seed " << seed);
      REQUIRE(plan.size() == program.size());
      REQUIRE_FALSE(hazard_seen(program, plan, backwards));
      REQUIRE_FALSE(hazard_seen(program, plan, reads_first));
      REQUIRE_FALSE(hazard_seen(program, plan, shuffled));
    }
}

TEST_CASE("every planned barrier is necessary if ranges are exact", "[device]") {
  std::size_t barriers = 0;
  for (const Shape& shape : shapes) {
    if (!shape.exact) continue;
    for (std::uint64_t seed = 0; seed < 1500; ++seed) {
      std::mt19937_64 random(seed);
      const Program program = random_program(random, shape);
      Plan plan = plan_barriers(program);
      for (std::size_t i = 0; i < plan.size(); ++i) {
        if (!plan[i]) continue;
        ++barriers;
        plan[i] = false;
        INFO(shape.name << ", seed " << seed << ", barrier " << i);
        REQUIRE(hazard_seen(program, plan, backwards));
        plan[i] = true;
      }
    }
  }
  CHECK(barriers > 10000);
}

TEST_CASE("each kind of hazard gets its barrier, and two reads get none", "[device]") {
  const Touch read{.memory = 5, .first = 0, .last = 8, .access = Access::read};
  const Touch write{.memory = 5, .first = 4, .last = 12, .access = Access::write};
  const Touch both{.memory = 5, .first = 7, .last = 8, .access = Access::read_write};
  const Touch beside{.memory = 5, .first = 12, .last = 13, .access = Access::write};
  const Touch elsewhere{.memory = 6, .first = 0, .last = 12, .access = Access::write};
  const Touch nothing{.memory = 5, .first = 6, .last = 6, .access = Access::write};
  const auto between = [](Touch a, Touch b) -> bool { return plan_barriers(Program{{a}, {b}})[1]; };
  CHECK(between(write, read));
  CHECK(between(read, write));
  CHECK(between(write, write));
  CHECK(between(both, both));
  CHECK(between(read, both));
  CHECK_FALSE(between(read, read));
  CHECK_FALSE(between(write, beside));
  CHECK_FALSE(between(write, elsewhere));
  CHECK_FALSE(between(write, nothing));
  CHECK_FALSE(between(nothing, read));
  CHECK_FALSE(plan_barriers(Program{{write, read}})[0]);  // within one command nothing is ordered
  CHECK(plan_barriers({}).empty());
}

TEST_CASE("a barrier orders all commands before it", "[device]") {
  const auto touch = [](std::uint64_t memory, Access access) {
    return std::vector<Touch>{{.memory = memory, .first = 0, .last = 8, .access = access}};
  };
  const Program program = {touch(1, Access::write), touch(2, Access::write), touch(1, Access::read),
                           touch(2, Access::read), touch(2, Access::write)};
  CHECK(plan_barriers(program) == Plan{false, false, true, false, true});
}

TEST_CASE("the planner tracks many memories at once, and forgets them when cleared", "[device]") {
  BarrierPlanner planner;
  for (int round = 0; round < 3; ++round) {
    for (std::uint64_t memory = 0; memory < 5000; ++memory) {
      const Touch write{.memory = memory * memory, .first = 0, .last = 8, .access = Access::write};
      REQUIRE_FALSE(planner.next({&write, 1}));
    }
    const Touch again{.memory = 4999 * 4999, .first = 7, .last = 9, .access = Access::read};
    CHECK(planner.next({&again, 1}));
    planner.clear();
  }
}

}  // namespace wye::test
