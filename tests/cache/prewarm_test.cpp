#include <thread>

#include "base/internals.hpp"
#include "base/worker.hpp"
#include "cache/prewarming.hpp"
#include "doubles.hpp"
#include "support/catch.hpp"
#include "support/double_device.hpp"

using namespace wye;
using namespace std::chrono_literals;
using cache::Prewarming;
using test::DoubleDevice;
using test::metrics;
using test::program;

namespace {

struct List {
  std::vector<std::shared_ptr<test::CountingProgram>> programs;
  std::vector<Prewarming::Item> items;
  List(int n, const std::shared_ptr<DoubleDevice>& device) {
    for (int i = 0; i < n; ++i) {
      programs.push_back(program(std::string(1, static_cast<char>('a' + i))));
      items.push_back({programs.back(), device});
    }
  }
};

}  // namespace

TEST_CASE("kernels are built in the given order, and then found", "[cache]") {
  const auto cache = cache::Cache::open({}).value();
  const auto device = std::make_shared<DoubleDevice>("d");
  const List list(4, device);
  Prewarm prewarm = wye::detail::Internals::make<Prewarm>(Prewarming::start(cache, list.items).value());
  CHECK(prewarm.wait());
  const auto progress = prewarm.progress();
  CHECK(progress.total == 4);
  CHECK(progress.ready == 4);
  CHECK(progress.failed == 0);
  CHECK(progress.ended);
  CHECK(cache->contents() == std::vector<std::string>{"d@d", "c@d", "b@d", "a@d"});
  CHECK(cache->provide(list.programs[0], device, Instant::max())->tier == CacheTier::memory);
}

TEST_CASE("kernels that are ready are not built again", "[cache]") {
  const auto cache = cache::Cache::open({}).value();
  const auto device = std::make_shared<DoubleDevice>("d");
  const List list(2, device);
  for (const auto& one : list.programs) REQUIRE(cache->provide(one, device, Instant::max()));
  Prewarm prewarm = wye::detail::Internals::make<Prewarm>(Prewarming::start(cache, {list.items[0]}).value());
  CHECK(prewarm.wait());
  CHECK(prewarm.progress().ready == 1);
  CHECK(cache->contents() == std::vector<std::string>{"b@d", "a@d"});
  CHECK(metrics(*cache).hits == 0);
}

TEST_CASE("prewarming evicts nothing", "[cache]") {
  const auto cache = cache::Cache::open({.kernels = 3}).value();
  const auto device = std::make_shared<DoubleDevice>("d");
  const auto wanted = program("wanted");
  REQUIRE(cache->provide(wanted, device, Instant::max()));
  const List list(5, device);
  Prewarm prewarm = wye::detail::Internals::make<Prewarm>(Prewarming::start(cache, list.items).value());
  CHECK(prewarm.wait());
  CHECK(prewarm.progress().ready == 2);
  CHECK(prewarm.progress().ended);
  CHECK(cache->contents() == std::vector<std::string>{"b@d", "a@d", "wanted@d"});
  CHECK(metrics(*cache).evictions == 0);
}

TEST_CASE("failed builds are counted, and the others continue", "[cache]") {
  const auto cache = cache::Cache::open({}).value();
  const auto device = std::make_shared<DoubleDevice>("d");
  const List list(3, device);
  list.programs[1]->on_build = [] { return Result<void>(Error(Errc::compile_failed, "No.")); };
  Prewarm prewarm = wye::detail::Internals::make<Prewarm>(Prewarming::start(cache, list.items).value());
  CHECK(prewarm.wait());
  CHECK(prewarm.progress().ready == 2);
  CHECK(prewarm.progress().failed == 1);
}

TEST_CASE("a cancelled prewarm starts no further build, and its end joins the thread", "[cache]") {
  const auto cache = cache::Cache::open({}).value();
  const auto device = std::make_shared<DoubleDevice>("d");
  const List list(3, device);
  std::atomic<bool> building{false}, go_on{false};
  list.programs[0]->on_build = [&] {
    building = true;
    while (!go_on) std::this_thread::yield();
    return Result<void>();
  };
  const int threads = base::Worker::alive();
  {
    Prewarm prewarm = wye::detail::Internals::make<Prewarm>(Prewarming::start(cache, list.items).value());
    CHECK(base::Worker::alive() == threads + 1);
    while (!building) std::this_thread::yield();
    CHECK_FALSE(prewarm.wait(5ms));
    prewarm.cancel();
    CHECK_FALSE(prewarm.progress().ended);
    go_on = true;
    CHECK(prewarm.wait());
    CHECK(prewarm.progress().ready == 1);
    building = go_on = false;
  }
  CHECK(base::Worker::alive() == threads);
  CHECK(list.programs[1]->builds == 0);

  cache->clear();
  std::thread releases([&] {
    while (!building) std::this_thread::yield();
    go_on = true;
  });
  {
    Prewarm first = wye::detail::Internals::make<Prewarm>(Prewarming::start(cache, list.items).value());
    while (!building) std::this_thread::yield();
    Prewarm second = std::move(first);
    CHECK(first.progress().ended == false);  // NOLINT: moved from
  }                                          // waits for the current build
  releases.join();
  CHECK(base::Worker::alive() == threads);
  CHECK(list.programs[0]->builds == 2);
}

TEST_CASE("an application prewarms through the public interface", "[cache]") {
  auto cache = ShaderCache::open().value();
  const auto kernel =
      Kernel<ReadWrite<float>>::make({.name = "k", .sources = {host([](Range, std::span<float>) {})}});
  const auto cpu = std::make_shared<DoubleDevice>("cpu:0");
  const auto gpu = std::make_shared<DoubleDevice>("vulkan:0", std::vector<std::string_view>{"spirv"});
  auto prewarm = cache.prewarm({*kernel}, {Device(cpu), Device(gpu), Device()});
  REQUIRE(prewarm);
  CHECK(prewarm->wait());
  CHECK(prewarm->progress().total == 1);  // the other kernel has no source for it
  CHECK(prewarm->progress().ready == 1);
  CHECK(cache.contents() == std::vector<std::string>{"k@cpu:0"});
}
