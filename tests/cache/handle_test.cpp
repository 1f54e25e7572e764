#include <wye/wye.hpp>

#include <random>
#include <thread>

#include "base/internals.hpp"
#include "cache/handle_state.hpp"
#include "doubles.hpp"
#include "support/catch.hpp"
#include "support/double_device.hpp"

using namespace wye;
using test::DoubleDevice;
using test::metrics;
using test::program;
using Names = std::vector<std::string>;

namespace {

const Executable* get(cache::HandleState& hold) {
  auto found = hold.find_or_build({});
  if (!found) FAIL(found.error().describe());
  return *found;
}

struct Scene {
  explicit Scene(CacheOptions options = {}) : cache(cache::Cache::open(options).value()) {}
  std::shared_ptr<cache::Cache> cache;
  std::shared_ptr<DoubleDevice> device = std::make_shared<DoubleDevice>("d");
  cache::HandleState hold(const std::shared_ptr<test::CountingProgram>& what) {
    return {cache, what, device};
  }
  void use(const std::shared_ptr<test::CountingProgram>& what) {
    REQUIRE(cache->provide(what, device, Instant::max()));
  }
};

}  // namespace

TEST_CASE("a handle builds once, and counts every later use as a hit", "[cache]") {
  Scene scene;
  const auto scale = program("scale");
  auto hold = scene.hold(scale);
  CHECK(metrics(*scene.cache).misses == 0);  // nothing is built yet
  const Executable* first = get(hold);
  for (int i = 0; i < 10; ++i) CHECK(get(hold) == first);
  CHECK(scale->builds == 1);
  CHECK(metrics(*scene.cache).misses == 1);
  CHECK(metrics(*scene.cache).hits == 10);
  CHECK(metrics(*scene.cache).hits == 10);  // counted once
  scene.use(scale);
  get(hold);
  CHECK(metrics(*scene.cache).hits == 12);
}

TEST_CASE("the uses counted by a handle outlive it", "[cache]") {
  Scene scene;
  const auto scale = program("scale", true);
  {
    auto one = scene.hold(scale), two = scene.hold(scale);
    get(one), get(one), get(two), get(two), get(two);
  }
  CHECK(metrics(*scene.cache).hits == 4);
  const auto by_kernel = scene.cache->kernel_metrics();
  REQUIRE(by_kernel.size() == 1);
  CHECK(by_kernel[0].uses == 5);
}

TEST_CASE("a use by a handle counts for the order of eviction", "[cache]") {
  Scene scene({.kernels = 3});
  const auto a = program("a"), b = program("b"), c = program("c"), d = program("d");
  {
    auto hold = scene.hold(a);
    get(hold);
    scene.use(b), scene.use(c);
    CHECK(scene.cache->contents() == Names{"c@d", "b@d", "a@d"});
    get(hold);
    CHECK(scene.cache->contents() == Names{"a@d", "c@d", "b@d"});
    scene.use(c);
    get(hold);
  }
  scene.use(d);
  CHECK(scene.cache->contents() == Names{"d@d", "a@d", "c@d"});
}

TEST_CASE("an executable in a handle is not evicted before the handle ends", "[cache]") {
  Scene scene({.kernels = 1});
  const auto a = program("a"), b = program("b");
  {
    auto hold = scene.hold(a);
    const Executable* held = get(hold);
    scene.use(b), scene.use(b);
    CHECK(get(hold) == held);
    CHECK(a->builds == 1);
    CHECK(scene.cache->reclaim(*scene.device, Bytes{1000}) == Bytes{100});  // b
    scene.cache->clear();
    CHECK(get(hold) == held);
    CHECK(*scene.device->alive == 1);
  }
  scene.use(b);
  CHECK(*scene.device->alive == 1);
  CHECK(scene.cache->contents() == Names{"b@d"});
}

TEST_CASE("with slru, an executable that a handle used twice is protected after its release", "[cache]") {
  Scene scene({.kernels = 5, .eviction = Eviction::slru});
  const auto once = program("once"), again = program("again");
  {
    auto one = scene.hold(once), two = scene.hold(again);
    get(one), get(two), get(two);
  }
  for (char c = 'a'; c < 'k'; ++c) scene.use(program(std::string(1, c)));
  CHECK(scene.cache->contents().front() == "again@d");
  CHECK(once->builds == 1);
  scene.use(once);
  CHECK(once->builds == 2);
}

TEST_CASE("a handle on a lost device returns device_lost and releases its executable", "[cache]") {
  Scene scene;
  const auto scale = program("scale");
  auto hold = scene.hold(scale);
  get(hold), get(hold);
  scene.device->lose();
  for (int i = 0; i < 2; ++i) {
    const auto found = hold.find_or_build({});
    REQUIRE_FALSE(found);
    CHECK(found.error() == Errc::device_lost);
  }
  CHECK(*scene.device->alive == 0);
  CHECK(metrics(*scene.cache).hits == 1);
  CHECK(metrics(*scene.cache).lost == 1);
}

TEST_CASE("a handle returns the error of each failed build, and later the executable", "[cache]") {
  Scene scene;
  const auto broken = program("broken");
  broken->on_build = [] { return Result<void>(Error(Errc::out_of_memory, "No room now.")); };
  auto hold = scene.hold(broken);
  for (int i = 1; i <= 3; ++i) {
    const auto found = hold.find_or_build({});
    REQUIRE_FALSE(found);
    CHECK(found.error().sentence() == "No room now.");
    CHECK(broken->builds == i);
  }
  broken->on_build = nullptr;
  get(hold);
  CHECK(broken->builds == 4);
}

TEST_CASE("handles of many threads, reports and evictions at once lose no count", "[cache]") {
  Scene scene({.kernels = 4});
  std::vector<std::shared_ptr<test::CountingProgram>> programs;
  for (char c = 'a'; c < 'i'; ++c) programs.push_back(program(std::string(1, c)));
  constexpr int threads = 4, rounds = 300;
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t)
    running.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      for (int i = 0; i < rounds; ++i) {
        auto hold = scene.hold(programs[random() % programs.size()]);
        for (int k = 0; k < 5; ++k) (void)hold.find_or_build({}).has_value();
        if (i % 20 == 0) (void)metrics(*scene.cache);
        if (i % 50 == 0) scene.cache->reclaim(*scene.device, Bytes{100});
      }
    });
  for (std::thread& thread : running) thread.join();
  const CacheMetrics counted = metrics(*scene.cache);
  CHECK(counted.hits + counted.misses + counted.joined == std::uint64_t{threads} * rounds * 5);
}

TEST_CASE("a handle without a device is an error, and so is a moved-from handle", "[cache]") {
  const auto pool = ContextPool::open({.backends = {"cpu"}}).value();
  auto cache = ShaderCache::open().value();
  const auto kernel =
      Kernel<ReadWrite<float>>::make({.name = "one", .sources = {host([](Range, std::span<float>) {})}})
          .value();
  const auto none = cache.handle(kernel, Device());
  REQUIRE_FALSE(none);
  CHECK(none.error().sentence() == "The device of the kernel is empty.");
  auto handle = cache.handle(kernel, pool.devices()[0]).value();
  const auto ready = handle.find_or_build();
  REQUIRE(ready);
  CHECK((*ready)->name() == "one");
  KernelHandle moved = std::move(handle);
  CHECK(base::state_of(*moved.find_or_build().value()) == base::state_of(*(*ready)));
  CHECK(handle.find_or_build().error() == Errc::closed);  // NOLINT(bugprone-use-after-move)
}
