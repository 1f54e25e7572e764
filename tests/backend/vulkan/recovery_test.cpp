// A Vulkan device that is lost is opened again in its place, and its kernels come from the cache.
#include <wye/wye.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "backend/vulkan/vulkan_device.hpp"
#include "base/internals.hpp"
#include "support/catch.hpp"
#include "support/kernels.hpp"
#include "support/skip.hpp"
#include "support/temporary_folder.hpp"

using namespace wye;
using namespace std::chrono_literals;

namespace {

void lose(const Device& device) {
  (void)static_cast<vulkan::VulkanDevice&>(*base::state_of(device)).lose("vkQueueSubmit");
}

}  // namespace

TEST_CASE("a lost Vulkan device is opened again, and its kernels are not compiled again",
          "[vulkan][recovery]") {
  const TemporaryFolder folder;
  ManualClock clock;
  auto runtime = Runtime::open(
      {.pool = {.backends = {"vulkan"}}, .cache = {.directory = folder.path()}, .clock = &clock});
  if (!runtime) return test::skip(runtime.error().sentence());
  const auto scale = test::scale();
  const Array<float> kept = runtime->array(std::vector<float>(1000, 1.0f));
  std::weak_ptr<device::DeviceBase> first;
  float expected = 1.0f;
  for (int round = 0; round < 4; ++round) {
    std::vector<float> x(1000, 1.0f);
    const auto done = runtime->run(scale(x, 3.0f));
    if (!done) FAIL(done.error().describe());
    CHECK(x == std::vector<float>(1000, 3.0f));
    CHECK((done->cache_tier() == CacheTier::built) == (round == 0));
    REQUIRE(runtime->run(scale(kept, 2.0f)));
    expected *= 2.0f;
    CHECK((*kept.read())[999] == expected);
    const DeviceState state = runtime->pool().silicon().at(0).devices.at(0);
    CHECK(state.health == DeviceHealth::healthy);
    CHECK(state.generation == 1 + static_cast<std::uint64_t>(round));
    const Device device = runtime->devices().front();
    if (round == 0) first = base::state_of(device);
    lose(device);
    CHECK(device.buffer<float>(1).error() == Errc::device_lost);
    if (round == 0 || round == 3) continue;
    CHECK(runtime->run(scale(x, 3.0f)).error() == Errc::device_lost);  // it waits after further losses
    clock.advance(100ms * (1 << (round - 1)));
  }
  CHECK(first.expired());
  CHECK(runtime->pool().metrics().recoveries == 3);
}
