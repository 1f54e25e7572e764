// Random graphs, compared with a sequential interpreter and with their jobs submitted one by one.
#include <wye/wye.hpp>

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "program.hpp"
#include "rig.hpp"
#include "support/device/test_kernels.hpp"
#include "support/random_cases.hpp"
#include "support/skip.hpp"

using namespace wye;
using test::Scripted;
using test::scripted;
using test::programs::Action;
using test::programs::HostAccess;
using test::programs::Mistakes;
using test::programs::Program;
using test::programs::Trace;
using test::programs::World;

namespace graph_programs {
namespace {

World world_of(PoolOptions options, std::vector<Scripted> devices = {}) {
  World world(Runtime::open({.pool = std::move(options)}).value(), std::move(devices),
              {.concurrent_jobs = 3, .preferences = test::programs::rows_of_types()});
  // Half of the graphs run on several devices.
  world.places.insert(world.places.end(), world.places.size() + 1, "");
  return world;
}

World scripted_world() {
  return world_of({.backends = {"cpu"}}, {scripted("cuda:0"), scripted("vulkan:0"), scripted("cuda:1")});
}

/// Returns how the graph of a seed differs from the interpreter; empty if it does not.
std::string differs(World& world, unsigned seed, const Mistakes& mistakes = {}) {
  return differs(world, random_graph(world, seed), mistakes);
}

/// Compares the jobs of the graph's steps, too.
std::string differs_or_its_jobs_do(World& world, unsigned seed) {
  const Program program = random_graph(world, seed);
  Trace trace = execute(world, program);
  if (std::string difference = interpret(program, trace); !difference.empty()) return difference;
  const std::string difference = differs(world, one_by_one(program, trace));
  return difference.empty() ? difference : "one by one: " + difference;
}

/// Returns the number of seeds below `seeds` whose graphs differ from the interpreter.
int differing(const Mistakes& mistakes, unsigned seeds) {
  World world = scripted_world();
  int count = 0;
  for (unsigned seed = 0; seed < seeds; ++seed) count += differs(world, seed, mistakes).empty() ? 0 : 1;
  return count;
}

}  // namespace
}  // namespace graph_programs

using graph_programs::differing;
using graph_programs::differs;

TEST_CASE("1,000 random graphs on four devices do what their jobs do one by one", "[scheduler]") {
  World world = graph_programs::scripted_world();
  for (const unsigned seed : test::RandomCases(1000)) {
    INFO("seed " << seed);
    REQUIRE(graph_programs::differs_or_its_jobs_do(world, seed) == "");
  }
}

TEST_CASE("random graphs on lavapipe and the CPU do what a sequential interpreter does", "[scheduler]") {
  if (!test::has_device(Runtime::open({}).value(), "vulkan")) return;
  World world = graph_programs::world_of({.backends = {"cpu", "vulkan"}});
  for (const unsigned seed : test::RandomCases(200)) {
    INFO("seed " << seed);
    REQUIRE(differs(world, seed) == "");
  }
}

TEST_CASE("random graphs on the stand-in for CUDA and the CPU do what a sequential interpreter does",
          "[scheduler]") {
  if (test::stand_in_cuda().empty()) return test::skip("this build is without CUDA");
  if (const std::string why = test::no_cuda_kernels(); !why.empty()) return test::skip(why);
  World world = graph_programs::world_of({.backends = {"cpu", "cuda"}, .cuda_driver = test::stand_in_cuda()});
  for (const unsigned seed : test::RandomCases(200)) {
    INFO("seed " << seed);
    REQUIRE(differs(world, seed) == "");
  }
}

TEST_CASE("random graphs on a device that does nothing complete", "[scheduler]") {
  World world = graph_programs::world_of({.backends = {"null"}});
  for (const unsigned seed : test::RandomCases(1000)) {
    INFO("seed " << seed);
    Program program = random_graph(world, seed);
    std::erase_if(program.actions, [](const Action& a) { return std::holds_alternative<HostAccess>(a); });
    REQUIRE(differs(world, program) == "");
  }
  test::check_counts(world.scheduler->metrics());
}

TEST_CASE("the interpreter finds graphs whose kernels write what they declare to read",
          "[scheduler][no_tsan]") {
  CHECK(differing({.writes_undeclared = true}, 100) > 50);
}

TEST_CASE("the interpreter finds graphs whose runs have stale arguments", "[scheduler][no_tsan]") {
  CHECK(differing({.forgets_updates = true}, 100) > 40);
}

TEST_CASE("the interpreter finds graphs whose slices are off by one", "[scheduler][no_tsan]") {
  const auto slice = [](std::size_t from, std::size_t count) {
    return (from + 1) % (test::programs::width - count + 1);
  };
  CHECK(differing({.slice = slice}, 100) > 50);
}
