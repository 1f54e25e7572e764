// Arrays that nothing uses are moved together, and the memory that they leave goes back to the
// driver.
#include <wye/wye.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backend/vulkan/driver.hpp"
#include "backend/vulkan/rig.hpp"
#include "data/array_state.hpp"
#include "pool/discovery.hpp"
#include "support/kernels.hpp"
#include "support/skip.hpp"

namespace wye::test {
namespace {

using Kept = std::pair<std::shared_ptr<data::ArrayState>, std::vector<std::uint32_t>>;

/// A pool with one device, whose memory is full of arrays.
struct Scene {
  explicit Scene(Rig& rig)
      : device(rig.shared()),
        pool(pool::Pool::open({.lane_memory = 1_GiB},
                              {.adapters = {device->info()}, .devices = {device}, .reopened_by = {}})) {}

  /// Makes an array of random words that only the device has.
  Kept array(std::size_t words) {
    std::vector<std::uint32_t> values(words);
    for (std::uint32_t& value : values) value = static_cast<std::uint32_t>(random());
    auto made = data::ArrayState::make(pool, std::as_bytes(std::span(values)), words, ElementType::uint32, 4);
    good(made->transfer_to(*device, Instant::max()));
    made->mark_written_on(device.get());
    std::fill_n(made->host_memory(), words * 4, std::byte{0xCD});
    return {std::move(made), std::move(values)};
  }
  /// Makes arrays of 16 MiB in all, and frees all but each `nth`.
  void fragment(std::size_t nth) {
    for (std::size_t i = 0; i < 64; ++i) kept.push_back(array(65536));
    std::size_t i = 0;
    std::erase_if(kept, [&](const Kept&) { return i++ % nth != 0; });
  }
  void check_contents() {
    for (const auto& [array, values] : kept) {
      const auto host = array->on_host(Instant::max());
      if (!host) FAIL(host.error().describe());
      CHECK(std::equal(values.begin(), values.end(), reinterpret_cast<const std::uint32_t*>(*host)));
    }
  }
  std::shared_ptr<device::BufferBase> buffer_of(const Kept& one) const {
    return one.first->replica_on(*device);
  }

  std::mt19937 random{7};
  std::shared_ptr<vulkan::VulkanDevice> device;
  std::shared_ptr<pool::Pool> pool;
  std::vector<Kept> kept;
};

/// Limits each heap of the driver to `bytes`.
void limit_heaps(Driver& driver, std::uint64_t bytes) {
  driver.replace<PFN_vkGetPhysicalDeviceMemoryProperties2>(
      "vkGetPhysicalDeviceMemoryProperties2",
      [bytes](PFN_vkGetPhysicalDeviceMemoryProperties2 real, VkPhysicalDevice device,
              VkPhysicalDeviceMemoryProperties2* out) {
        real(device, out);
        for (VkMemoryHeap& heap : std::span(out->memoryProperties.memoryHeaps)) heap.size = bytes;
      });
}

}  // namespace

TEST_CASE("idle arrays are moved together, keep their contents, and blocks go back to the driver",
          "[vulkan][defragment]") {
  Driver driver;
  Rig rig({.wrap = driver.wrap()});
  {
    Scene scene(rig);
    scene.fragment(8);
    const auto allocations = driver.calls("vkAllocateMemory");
    const auto blocks = driver.alive()["DeviceMemory"];
    const Bytes before = scene.device->memory().spare;
    const Bytes returned = scene.pool->defragment();
    const Bytes after = scene.device->memory().spare;
    CHECK(returned > Bytes{});
    CHECK(before - after == returned);
    CHECK(after.count <= before.count / 2);
    CHECK(driver.calls("vkAllocateMemory") == allocations);  // in blocks that there were
    CHECK(driver.alive()["DeviceMemory"] < blocks);
    CHECK(scene.pool->defragment() == Bytes{});  // nothing is left to move
    scene.check_contents();
    CHECK(scene.device->silicon()->account()->held() == scene.pool->accounts().of(*scene.device)->held());
  }
  CHECK(rig.device().memory().in_use == Bytes{});
}

TEST_CASE("a buffer for which memory is too scattered gets it after a move", "[vulkan][defragment]") {
  Driver driver;
  limit_heaps(driver, 20u << 20);
  Rig rig({.wrap = driver.wrap()});
  Scene scene(rig);
  scene.fragment(8);  // 2 MiB are in use
  const auto large = scene.device->allocate({.bytes = 12_MiB, .account = nullptr});
  if (!large) FAIL(large.error().describe());
  scene.check_contents();
  // What exceeds the heap together with the arrays still fails, with the numbers.
  const auto too_large = scene.device->allocate({.bytes = 12_MiB, .account = nullptr});
  REQUIRE_FALSE(too_large);
  CHECK(too_large.error() == Errc::out_of_memory);
  scene.check_contents();
}

TEST_CASE("arrays in use stay where they are, and the others are moved", "[vulkan][defragment]") {
  Rig rig;
  Scene scene(rig);
  scene.fragment(8);
  std::vector<std::uint64_t> before;
  for (const Kept& one : scene.kept) before.push_back(scene.buffer_of(one)->id());
  const auto is_moved = [&](std::size_t i) { return scene.buffer_of(scene.kept[i])->id() != before[i]; };
  SECTION("because something holds their buffer") {
    std::vector<std::shared_ptr<device::BufferBase>> holders;
    for (const Kept& one : scene.kept) holders.push_back(scene.buffer_of(one));
    CHECK(scene.pool->defragment() == Bytes{});
    for (std::size_t i = 0; i < before.size(); ++i) CHECK_FALSE(is_moved(i));
    holders.clear();
    CHECK(scene.pool->defragment() > Bytes{});
  }
  SECTION("because a job writes one") {
    scene.kept[0].first->begin_write();
    scene.pool->defragment();
    CHECK_FALSE(is_moved(0));
    scene.kept[0].first->end_write();
  }
  SECTION("because the lane for copies is in use") {
    const auto lane = scene.pool->leases().lease_copies(scene.device->ref());
    REQUIRE(lane);
    CHECK(scene.pool->defragment() == Bytes{});
  }
  scene.check_contents();
}

TEST_CASE("each driver call of a move may fail: arrays keep their contents", "[vulkan][defragment]") {
  for (const char* call : {"vkCreateBuffer", "vkBindBufferMemory", "vkQueueSubmit", "vkBeginCommandBuffer"}) {
    INFO(call);
    Driver driver;
    Rig rig({.wrap = driver.wrap()});
    Scene scene(rig);
    scene.fragment(8);
    driver.fail(call, 1, VK_ERROR_OUT_OF_HOST_MEMORY);
    scene.pool->defragment();
    CHECK(driver.failed());
    scene.check_contents();
    scene.pool->defragment();
    scene.check_contents();
  }
}

TEST_CASE("a device that is lost during a move ends nothing else", "[vulkan][defragment]") {
  Driver driver;
  Rig rig({.wrap = driver.wrap()});
  Scene scene(rig);
  scene.fragment(8);
  driver.fail("vkQueueSubmit", 1, VK_ERROR_DEVICE_LOST);
  CHECK(scene.pool->defragment() == Bytes{});
  REQUIRE(scene.device->lost());
  CHECK(scene.kept[0].first->on_host(Instant::max()).error() == Errc::device_lost);
  CHECK(scene.pool->defragment() == Bytes{});
}

TEST_CASE("jobs of eight threads see their arrays unchanged while these are moved",
          "[vulkan][defragment][threads]") {
  auto runtime = Runtime::open({.pool = {.backends = {"vulkan"}}});
  if (!runtime) return skip(runtime.error().sentence());
  const auto scale = test::scale();
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> returned{0};
  std::thread mover([&] {
    while (!stop) {
      returned += runtime->pool().defragment().count;
      std::this_thread::yield();
    }
  });
  std::vector<std::thread> users;
  std::atomic<int> failures{0};
  for (unsigned t = 0; t < 8; ++t)
    users.emplace_back([&, t] {
      std::mt19937 random(t);
      std::vector<std::pair<Array<float>, float>> arrays;
      for (int i = 0; i < 60; ++i) {
        if (arrays.size() < 8)
          arrays.emplace_back(runtime->array(std::vector<float>(1 + random() % 200'000, 1.0f)), 1.0f);
        auto& [array, expected] = arrays[random() % arrays.size()];
        if (!runtime->run(scale(array, 2.0f))) ++failures;
        expected *= 2.0f;
        if (i % 4 == 0) {
          const auto view = array.read();
          if (!view || (*view)[0] != expected || (*view)[view->size() - 1] != expected) ++failures;
        }
        if (i % 3 == 0) arrays.erase(arrays.begin() + static_cast<std::ptrdiff_t>(random() % arrays.size()));
      }
      for (auto& [array, expected] : arrays) {
        const auto view = array.read();
        if (!view) {
          ++failures;
          continue;
        }
        for (const float value : *view) failures += value != expected;
      }
    });
  for (auto& user : users) user.join();
  stop = true;
  mover.join();
  CHECK(failures == 0);
}

}  // namespace wye::test
