// An application with Vulkan of its own and wye use one device: in both directions, without copies,
// ordered by semaphores.
#include <wye/interop/vulkan.hpp>
#include <wye/wye.hpp>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>

#include "base/internals.hpp"
#include "interop/vulkan_host.hpp"
#include "support/kernels.hpp"
#include "support/skip.hpp"

namespace wye::test {
namespace {

using namespace std::chrono_literals;

bool has_vulkan() {
  static const bool has = ContextPool::open({.backends = {"vulkan"}}).has_value();
  const char* required = std::getenv("WYE_REQUIRE_BACKENDS");
  if (!has && required && std::strstr(required, "vulkan"))
    FAIL("WYE_REQUIRE_BACKENDS names vulkan, and there is no such device.");
  if (!has) test::skip("there is no Vulkan device");
  return has;
}

#define WYE_NEEDS_VULKAN() \
  if (!has_vulkan()) return

ContextPool pool_on(VulkanHost& host) {
  return ContextPool::open({.backends = {"vulkan"}, .adopt = {interop::vulkan_device(host.brought())}})
      .value();
}

std::vector<std::uint32_t> numbers(std::size_t count, std::uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::vector<std::uint32_t> all(count);
  for (std::uint32_t& one : all) one = static_cast<std::uint32_t>(random());
  return all;
}

std::vector<std::uint32_t> read(Lease& lease, const Buffer& buffer) {
  std::vector<std::uint32_t> out(buffer.bytes().count / 4);
  lease.download(buffer, out);
  lease.wait().value();
  return out;
}

TEST_CASE("an application's own device is used, and its silicon is not opened twice", "[interop]") {
  WYE_NEEDS_VULKAN();
  VulkanHost host;
  Runtime runtime = Runtime::open({.pool = {.backends = {"vulkan", "cpu"},
                                            .adopt = {interop::vulkan_device(host.brought())}}})
                        .value();
  std::size_t usable = 0;
  for (const AdapterInfo& info : runtime.adapters()) {
    INFO(info.id << " " << info.reason);
    if (info.backend != "vulkan") continue;
    usable += info.usable;
    CHECK(info.usable == (info.id == "vulkan:host"));
    if (!info.usable) CHECK(info.reason.find("'vulkan:host'") != std::string::npos);
  }
  CHECK(usable == 1);
  std::vector<float> x(1000, 3.0f);
  auto array = runtime.array(x);
  runtime.submit(scale()(array, 2.0f), {.fallback = Fallback::forbid, .on = "vulkan:host"}).wait().value();
  CHECK((*array.read())[999] == 6.0f);
  // A rescan finds the same silicon, and leaves it to the application's device.
  const auto found = runtime.rescan();
  if (!found) FAIL(found.error().describe());
  CHECK(found->empty());
  CHECK(std::count_if(runtime.adapters().begin(), runtime.adapters().end(),
                      [](const AdapterInfo& info) { return info.backend == "vulkan" && info.usable; }) == 1);
}

TEST_CASE("the native handles of an adopted device are the application's", "[interop]") {
  WYE_NEEDS_VULKAN();
  VulkanHost host;
  const ContextPool pool = pool_on(host);
  const auto out = interop::vulkan_device(pool.devices().front()).value();
  CHECK(out.instance == host.instance);
  CHECK(out.physical == host.physical);
  CHECK(out.device == host.device);
  CHECK(out.queue == host.queue);
  CHECK(out.queue_family == 0);
  out.lock.lock();
  std::thread([&] { CHECK_FALSE(host.mutex.try_lock()); }).join();
  out.lock.unlock();
}

TEST_CASE("a device without a required feature is refused by name", "[interop]") {
  WYE_NEEDS_VULKAN();
  const struct {
    HostOptions options;
    const char* name;
  } rows[] = {{{.timeline_semaphore = false}, "timelineSemaphore"},
              {{.buffer_device_address = false}, "bufferDeviceAddress"},
              {{.timeline_semaphore = false, .one_by_one = true}, "timelineSemaphore"}};
  for (const auto& row : rows) {
    VulkanHost host(row.options);
    auto refused =
        ContextPool::open({.backends = {"cpu"}, .adopt = {interop::vulkan_device(host.brought())}});
    REQUIRE_FALSE(refused);
    INFO(refused.error().describe());
    CHECK(refused.error() == Errc::unsupported);
    CHECK(refused.error().sentence().find(row.name) != std::string::npos);
    CHECK(refused.error().sentence().find("without") != std::string::npos);
  }
  VulkanHost one_by_one({.one_by_one = true});
  pool_on(one_by_one);
}

TEST_CASE("a device brought with something missing or foreign is refused", "[interop]") {
  WYE_NEEDS_VULKAN();
  VulkanHost host;
  VulkanHost other;
  const auto refused = [&](auto spoil, const char* words) {
    auto brought = host.brought();
    spoil(brought);
    auto pool = ContextPool::open({.backends = {"cpu"}, .adopt = {interop::vulkan_device(brought)}});
    REQUIRE_FALSE(pool);
    INFO(pool.error().describe());
    CHECK(pool.error() == Errc::invalid_argument);
    CHECK(pool.error().sentence().find(words) != std::string::npos);
  };
  refused([](auto& d) { d.instance = VK_NULL_HANDLE; }, "instance");
  refused([](auto& d) { d.device = VK_NULL_HANDLE; }, "device");
  refused([](auto& d) { d.created = nullptr; }, "VkDeviceCreateInfo");
  refused([&](auto& d) { d.physical = other.physical; }, "is not one of the");
  refused([](auto& d) { d.queue_family = 77; }, "family 77");
  auto unknown = ContextPool::open({.backends = {"cpu"}, .adopt = {{.backend = "metal"}}});
  CHECK(unknown.error() == Errc::not_found);
  auto cpu = ContextPool::open({.backends = {"cpu"}, .adopt = {{.backend = "cpu"}}});
  CHECK(cpu.error() == Errc::unsupported);
}

TEST_CASE("the host's VkBuffer is written in place, and released once", "[interop]") {
  WYE_NEEDS_VULKAN();
  VulkanHost host;
  for (const bool own_buffer : {true, false}) {
    std::atomic<int> released = 0;
    std::byte* mapped = nullptr;
    const auto words = numbers(1234);
    interop::VulkanBuffer brought;
    brought.bytes = words.size() * 4;
    brought.memory = host.memory(brought.bytes + 4096, mapped);
    if (own_buffer) {
      brought.buffer = host.buffer(brought.bytes);
      host.bind(brought.buffer, brought.memory);
    }
    const ContextPool pool = pool_on(host);
    {
      auto lease = ContextPool(pool).lease().value();
      auto buffer =
          interop::vulkan_buffer<std::uint32_t>(lease.device(), brought, [&] { ++released; }).value();
      CHECK(buffer.size() == words.size());
      CHECK(buffer.address() != 0);
      lease.upload(words, buffer);
      lease.wait().value();
      CHECK(std::memcmp(mapped, words.data(), brought.bytes) == 0);
      const auto out = interop::vulkan_buffer(buffer).value();
      CHECK((out.buffer == brought.buffer) == own_buffer);
      CHECK(out.memory == brought.memory);
      CHECK(out.bytes == brought.bytes);
      lease.fill(buffer, 7);
      lease.submit();
      buffer = {};  // the fill still uses it
      lease.wait().value();
      std::uint32_t last = 0;
      std::memcpy(&last, mapped + brought.bytes - 4, 4);
      CHECK(last == 7);
    }
    { auto again = ContextPool(pool).lease().value(); }
    CHECK(released <= 1);
    const_cast<ContextPool&>(pool) = pool_on(host);  // destroys the old pool and the objects of its lanes
    CHECK(released == 1);
  }
}

TEST_CASE("memory that cannot be meant is refused, and not released", "[interop]") {
  WYE_NEEDS_VULKAN();
  VulkanHost host;
  std::byte* mapped = nullptr;
  const VkDeviceMemory memory = host.memory(65536, mapped);
  const VkBuffer small = host.buffer(64);
  host.bind(small, memory);
  const ContextPool pool = pool_on(host);
  const Device device = pool.devices().front();
  const ContextPool cpu = ContextPool::open({.backends = {"cpu"}}).value();
  int released = 0;
  const auto refused = [&](const Device& on, const interop::VulkanBuffer& buffer, const char* words) {
    auto adopted = interop::vulkan_buffer<float>(on, buffer, [&] { ++released; });
    REQUIRE_FALSE(adopted);
    INFO(adopted.error().describe());
    CHECK(adopted.error() == Errc::invalid_argument);
    CHECK(adopted.error().sentence().find(words) != std::string::npos);
  };
  refused(device, {.bytes = 64}, "neither");
  refused(device, {.buffer = small}, "a size of 0 bytes");
  refused(device, {.buffer = small, .bytes = 1 << 20}, "exceeds its VkBuffer");
  refused(device, {.memory = memory, .offset = 1, .bytes = 64}, "not a multiple");
  refused(device, {.buffer = small, .bytes = 62}, "not a multiple");
  refused(cpu.devices().front(), {.buffer = small, .bytes = 64}, "cpu:0");
  refused({}, {.buffer = small, .bytes = 64}, "handle is empty");
  CHECK(released == 0);
  CHECK(interop::vulkan_device(cpu.devices().front()).error() == Errc::invalid_argument);
  CHECK(interop::vulkan_buffer(Buffer()).error() == Errc::invalid_argument);
  CHECK(interop::vulkan_semaphore(SyncPoint()).error() == Errc::invalid_argument);
  CHECK(interop::sync_point(device, {}).error() == Errc::invalid_argument);
}

TEST_CASE("a lane follows the host's work by its semaphore, and the host the lane's", "[interop]") {
  WYE_NEEDS_VULKAN();
  VulkanHost host;
  ContextPool pool = pool_on(host);
  auto lease = pool.lease().value();
  auto buffer = lease.buffer<std::uint32_t>(50000).value();
  const auto out = interop::vulkan_buffer(buffer).value();
  const VkSemaphore semaphore = host.semaphore();
  std::uint64_t value = 0;
  for (std::uint32_t round = 1; round <= 10; ++round) {
    // wye, then the application's work, then wye again.
    lease.fill(buffer, round);
    const SyncPoint filled = lease.point();
    host.fill(out.buffer, 100 + round, interop::vulkan_semaphore(filled).value(), {semaphore, ++value});
    lease.wait_for(interop::sync_point(lease.device(), {semaphore, value}).value());
    CHECK(read(lease, buffer) == std::vector<std::uint32_t>(50000, 100 + round));
    CHECK(filled.reached());
  }
}

TEST_CASE("a lane signals the host's semaphore behind its work", "[interop]") {
  WYE_NEEDS_VULKAN();
  VulkanHost host;
  ContextPool pool = pool_on(host);
  auto lease = pool.lease().value();
  const VkSemaphore semaphore = host.semaphore();
  const SyncPoint first = interop::sync_point(lease.device(), {semaphore, 3}).value();
  const SyncPoint second = interop::sync_point(lease.device(), {semaphore, 9}).value();
  CHECK_FALSE(first.reached());
  auto buffer = lease.buffer<std::uint32_t>(1000).value();
  lease.fill(buffer, 5);
  lease.signal(first);
  first.wait(1min).value();
  CHECK(host.value(semaphore) == 3);
  lease.signal(second);  // behind nothing new
  second.wait(1min).value();
  CHECK(host.value(semaphore) == 9);
  CHECK(read(lease, buffer) == std::vector<std::uint32_t>(1000, 5));
}

TEST_CASE("no access happens before the application's semaphore is signaled, not even a copy in place",
          "[interop]") {
  WYE_NEEDS_VULKAN();
  VulkanHost host;
  ContextPool pool = pool_on(host);
  auto lease = pool.lease().value();
  auto buffer = lease.buffer<std::uint32_t>(4096).value();
  lease.upload(numbers(4096), buffer);
  lease.wait().value();
  const VkSemaphore gate = host.semaphore();
  const SyncPoint open = interop::sync_point(lease.device(), {gate, 1}).value();
  lease.wait_for(open);
  lease.upload(numbers(4096, 2), buffer);
  std::vector<std::uint32_t> out(4096);
  lease.download(buffer, out);
  CHECK(lease.wait(50ms).error() == Errc::timed_out);
  CHECK_FALSE(open.reached());
  CHECK(open.wait(1ms).error() == Errc::timed_out);
  host.signal(gate, 1);
  lease.wait(1min).value();
  CHECK(out == numbers(4096, 2));
}

TEST_CASE("points of another device, and a lane's own, are no points to signal", "[interop]") {
  WYE_NEEDS_VULKAN();
  VulkanHost host;
  ContextPool pool = pool_on(host);
  ContextPool cpu = ContextPool::open({.backends = {"cpu"}}).value();
  const SyncPoint point = interop::sync_point(pool.devices().front(), {host.semaphore(), 1}).value();
  {
    auto lease = cpu.lease().value();
    lease.signal(point);
    CHECK(lease.wait().error() == Errc::invalid_argument);
  }
  {
    auto lease = cpu.lease().value();
    lease.wait_for(point);
    lease.fill(lease.buffer<std::uint32_t>(4).value(), 1);
    CHECK(lease.wait().error() == Errc::invalid_argument);
  }
  {
    auto lease = pool.lease().value();
    lease.signal(lease.point());
    CHECK(lease.wait().error() == Errc::invalid_argument);
  }
  {
    auto lease = pool.lease().value();
    lease.signal({});
    CHECK(lease.wait().error() == Errc::invalid_argument);
  }
}

TEST_CASE("host and wye use one queue from several threads under the agreed lock", "[interop]") {
  WYE_NEEDS_VULKAN();
  VulkanHost host;
  ContextPool pool = pool_on(host);
  auto lease = pool.lease().value();
  const VkSemaphore semaphore = host.semaphore();
  std::byte* mapped = nullptr;
  const VkDeviceMemory memory = host.memory(4096, mapped);
  const VkBuffer theirs = host.buffer(4096);
  host.bind(theirs, memory);
  std::thread other([&] {
    for (std::uint64_t i = 1; i <= 100; ++i) host.fill(theirs, 1, {}, {semaphore, i});
  });
  auto buffer = lease.buffer<std::uint32_t>(100).value();
  for (std::uint32_t i = 0; i < 100; ++i) {
    lease.fill(buffer, i);
    lease.submit();
  }
  const auto seen = read(lease, buffer);
  other.join();  // it checks things too, and only one thread at a time may
  CHECK(seen == std::vector<std::uint32_t>(100, 99));
}

TEST_CASE("the native handles of wye's own device can be used by the application", "[interop]") {
  WYE_NEEDS_VULKAN();
  ContextPool pool = ContextPool::open({.backends = {"vulkan"}}).value();
  auto lease = pool.lease().value();
  const auto out = interop::vulkan_device(lease.device()).value();
  REQUIRE(out.entry_points);
  const auto device_function =
      reinterpret_cast<PFN_vkGetDeviceProcAddr>(out.entry_points(out.instance, "vkGetDeviceProcAddr"));
  const auto wait_for_queue =
      reinterpret_cast<PFN_vkQueueWaitIdle>(device_function(out.device, "vkQueueWaitIdle"));
  auto buffer = lease.buffer<std::uint32_t>(1000).value();
  lease.fill(buffer, 42);
  const SyncPoint point = lease.point();
  {
    const std::lock_guard lock(out.lock);
    CHECK(wait_for_queue(out.queue) == VK_SUCCESS);
  }
  CHECK(point.reached());
  const auto semaphore = interop::vulkan_semaphore(point).value();
  CHECK(semaphore.value == base::value_of(point));
}

}  // namespace
}  // namespace wye::test
