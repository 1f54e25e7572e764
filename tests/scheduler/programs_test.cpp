// Random programs of jobs and host accesses, compared with a sequential interpreter: no read is
// stale.
#include <wye/wye.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "program.hpp"
#include "rig.hpp"
#include "support/device/test_kernels.hpp"
#include "support/random_cases.hpp"
#include "support/skip.hpp"

using namespace wye;
using namespace wye::literals;
using test::Scripted;
using test::scripted;
using test::programs::Faults;
using test::programs::Mistakes;
using test::programs::Program;
using test::programs::World;

namespace {

/// How the jobs of a program reach their devices.
struct Path {
  std::uint32_t lanes_per_device = 4;
  std::uint32_t committed_per_lane = 2;
  std::uint32_t batch_limit = test::shares_submissions;
  PlacementMode placement = PlacementMode::learned;
};

/// Opens a scheduler over the devices of a runtime and two scripted devices of `backend`.
World world_on(Runtime real, Path path = {}, const std::string& backend = "cuda") {
  World world(std::move(real), {scripted(backend + ":0"), scripted(backend + ":1")},
              {.concurrent_jobs = 3,
               .committed_per_lane = path.committed_per_lane,
               .batch_limit = path.batch_limit,
               .placement = path.placement,
               .preferences = {{workload_types::custom, 0_B, {"cuda", "cpu"}}}},
              {.lanes_per_device = path.lanes_per_device});
  world.places.insert(world.places.end(), {"", "cuda"});  // fallback is possible on these
  return world;
}
Runtime opened(std::vector<std::string> backends) {
  return Runtime::open({.pool = {.backends = std::move(backends)}}).value();
}
World world_of(std::vector<std::string> backends, Path path = {}) {
  return world_on(opened(std::move(backends)), path);
}

/// Has some steps of the scripted devices fail.
void fail_steps(const World& world, unsigned failing_in_1000) {
  const auto steps = std::make_shared<std::atomic<unsigned>>(0);
  for (const Scripted& device : world.devices)
    device->set_script([steps, failing_in_1000](auto) -> std::optional<Error> {
      if (std::minstd_rand(++*steps * 7919)() % 1000 >= failing_in_1000) return std::nullopt;
      return Error(Errc::unavailable, "The script fails this step.");
    });
}

/// Returns how the program of a seed differs from the interpreter; empty if it does not.
std::string differs(World& world, unsigned seed, bool steps_fail = false, const Mistakes& mistakes = {}) {
  return differs(world, random_jobs(world, seed, steps_fail, false), mistakes, {.steps_fail = steps_fail});
}

/// Returns how the program of a seed differs if it loses devices.
std::string differs_with_losses(World& world, unsigned seed) {
  const Program program = random_jobs(world, seed, true, true);
  Faults faults;
  for (std::size_t d = 0; d < program.losses.size(); ++d)
    faults.may_be_lost.push_back(world.devices[d]->info().id);
  return differs(world, program, {}, faults);
}

/// Returns the number of seeds below `seeds` whose programs differ from the interpreter.
int differing(const Mistakes& mistakes, unsigned seeds) {
  World world = world_of({"cpu"});
  int count = 0;
  for (unsigned seed = 0; seed < seeds; ++seed)
    count += differs(world, seed, false, mistakes).empty() ? 0 : 1;
  return count;
}

/// Runs programs whose devices are lost. Returns how many of those differ from the interpreter, of
/// seeds that begin at `first`; stops at the first one if `stops`. Each has devices of its own;
/// those of `hidden` programs hide their loss.
int differing_with_losses(unsigned first, unsigned seeds, bool hidden, bool stops) {
  const Runtime real = opened({"cpu"});
  int count = 0;
  std::uint64_t failed = 0, completed = 0;
  for (unsigned seed = first; seed < first + seeds; ++seed) {
    World world = world_on(real);
    if (hidden)
      for (const Scripted& device : world.devices) device->hide_loss();
    const std::string difference = differs_with_losses(world, seed);
    INFO("seed " << seed);
    if (stops) REQUIRE(difference == "");
    count += difference.empty() ? 0 : 1;
    failed += world.scheduler->metrics().failed;
    completed += world.scheduler->metrics().completed;
  }
  // How many of each is a matter of the seeds.
  CHECK(completed > 0);
  CHECK((failed > 0 || hidden));
  return count;
}

}  // namespace

TEST_CASE("random programs on three devices read what a sequential interpreter reads", "[scheduler]") {
  World world = world_of({"cpu"});
  for (const unsigned seed : test::RandomCases(2000)) {
    INFO("seed " << seed);
    REQUIRE(differs(world, seed) == "");
  }
  for (const Scripted& device : world.devices) CHECK(device->buffers_alive() == 0);
}

TEST_CASE("random programs whose jobs are staged or batched read what a sequential interpreter reads",
          "[scheduler]") {
  for (Path path : {Path{1, 1}, Path{1, 2, 1}, Path{1, 4, 1}, Path{2, 4, 1}}) {
    path.placement = PlacementMode::table;  // jobs wait for the first device more often
    for (const unsigned failing : {0u, 50u}) {
      World world = world_of({"cpu"}, path);
      if (failing != 0) fail_steps(world, failing);
      const auto takes_paths = [&] {
        if (path.lanes_per_device > 1) return true;  // few programs have so many jobs at a time
        const SchedulerMetrics metrics = world.scheduler->metrics();
        return (metrics.prefetches > 0) == (path.committed_per_lane > 1) &&
               (metrics.batches > 0) == (path.batch_limit > 1);
      };
      // How many jobs find their device busy is chance: further programs run until some did.
      const test::RandomCases seeds(500);
      const unsigned first = *seeds.begin(), enough = seeds.size(), most = 200 * enough;
      for (unsigned seed = first; seed < first + enough || (seed < first + most && !takes_paths()); ++seed) {
        INFO("seed " << seed << ", " << path.lanes_per_device << " lanes, " << path.committed_per_lane
                     << " committed per lane, " << failing << " of 1000 steps fail");
        REQUIRE(differs(world, seed, failing != 0) == "");
      }
      const SchedulerMetrics metrics = world.scheduler->metrics();
      INFO(path.lanes_per_device << " lanes, " << path.committed_per_lane << " committed per lane, "
                                 << failing << " of 1000 steps fail: " << metrics.completed << " jobs, "
                                 << metrics.prefetches << " prefetches, " << metrics.batches << " batches");
      CHECK(takes_paths());
      if (failing == 0) CHECK(world.devices[0]->buffers_alive() == 0);
    }
  }
}

TEST_CASE("random programs on lavapipe and three devices read what a sequential interpreter reads",
          "[scheduler]") {
  if (!test::has_device(Runtime::open({}).value(), "vulkan")) return;
  for (const Path path : {Path{}, Path{1, 4}}) {
    World world = world_of({"cpu", "vulkan"}, path);
    for (const unsigned seed : test::RandomCases(100)) {
      INFO("seed " << seed << ", " << path.lanes_per_device << " lanes");
      REQUIRE(differs(world, seed) == "");
    }
  }
}

TEST_CASE(
    "random programs on the stand-in for CUDA and three devices read what a sequential interpreter reads",
    "[scheduler]") {
  if (test::stand_in_cuda().empty()) return test::skip("this build is without CUDA");
  if (const std::string why = test::no_cuda_kernels(); !why.empty()) return test::skip(why);
  World world = world_on(
      Runtime::open({.pool = {.backends = {"cpu", "cuda"}, .cuda_driver = test::stand_in_cuda()}}).value(),
      {}, "vulkan");
  for (const unsigned seed : test::RandomCases(200)) {
    INFO("seed " << seed);
    REQUIRE(differs(world, seed) == "");
  }
}

TEST_CASE("random programs on devices that fail at random steps never read stale contents", "[scheduler]") {
  for (const unsigned failing : {10u, 100u}) {
    World world = world_of({"cpu"});
    fail_steps(world, failing);
    for (const unsigned seed : test::RandomCases(1000)) {
      INFO("seed " << seed << ", " << failing << " of 1000 steps fail");
      REQUIRE(differs(world, seed, true) == "");
    }
    CHECK(world.scheduler->metrics().fallbacks > 0);
  }
}

TEST_CASE("random programs whose devices are lost read what a sequential interpreter reads, or device_lost",
          "[scheduler]") {
  const test::RandomCases seeds(1000);
  CHECK(differing_with_losses(*seeds.begin(), seeds.size(), false, true) == 0);
}

TEST_CASE("20,000 random programs whose devices are lost never read stale contents", "[.proof]") {
  for (unsigned first = 1'000'000; first < 1'020'000; first += 1000)
    CHECK(differing_with_losses(first, 1000, false, true) == 0);
}

TEST_CASE("the interpreter finds a device that is lost and does not say so", "[scheduler][no_tsan]") {
  CHECK(differing_with_losses(0, 100, true, false) > 20);
}

TEST_CASE("100,000 random programs read what a sequential interpreter reads", "[.proof]") {
  World world = world_of({"cpu"});
  for (unsigned seed = 0; seed < 100'000; ++seed) {
    INFO("seed " << seed);
    REQUIRE(differs(world, seed) == "");
  }
}

TEST_CASE("the interpreter finds a kernel that writes an array which it declares to read",
          "[scheduler][no_tsan]") {
  CHECK(differing({.writes_undeclared = true}, 100) > 50);
}

TEST_CASE("the interpreter finds a kernel that reads an array which it declares to overwrite",
          "[scheduler][no_tsan]") {
  CHECK(differing({.reads_undeclared = true}, 100) > 50);
}

TEST_CASE("the interpreter finds slices that are off by one", "[scheduler][no_tsan]") {
  const auto slice = [](std::size_t from, std::size_t) { return from == 0 ? 1 : from - 1; };
  CHECK(differing({.slice = slice}, 100) > 50);
}

TEST_CASE("the interpreter finds a job on a slice that follows only the users of another slice",
          "[scheduler][no_tsan]") {
  // The job writes the elements before its slice.
  const auto slice = [](std::size_t from, std::size_t count) { return from < count ? from : from - count; };
  CHECK(differing({.slice = slice}, 100) > 50);
}
