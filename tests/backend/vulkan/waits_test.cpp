// A failed wait proves nothing about the device. Objects that it may still use are not freed.
#include <limits>

#include "backend/vulkan/driver.hpp"
#include "backend/vulkan/rig.hpp"
#include "base/worker.hpp"

namespace wye::test {
namespace {

/// A semaphore of the host. A submission waits for it on the device and is in flight until it is
/// signaled.
class Hold {
 public:
  explicit Hold(vulkan::VulkanDevice& device) : device_(device) {
    const VkSemaphoreTypeCreateInfo type{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                         .pNext = nullptr,
                                         .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE,
                                         .initialValue = 0};
    const VkSemaphoreCreateInfo info{
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type, .flags = 0};
    REQUIRE(device.vk.CreateSemaphore(device.handle(), &info, nullptr, &semaphore_) == VK_SUCCESS);
  }
  Hold(const Hold&) = delete;
  ~Hold() {
    release();
    (void)device_.vk.DeviceWaitIdle(device_.handle());
    device_.vk.DestroySemaphore(device_.handle(), semaphore_, nullptr);
  }
  TimelinePoint point() { return {vulkan::VulkanTimeline::adopt(device_.self(), semaphore_), 1}; }
  void release() {
    if (std::exchange(released_, true)) return;
    const VkSemaphoreSignalInfo info{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO,
                                     .pNext = nullptr,
                                     .semaphore = semaphore_,
                                     .value = 1};
    REQUIRE(device_.vk.SignalSemaphore(device_.handle(), &info) == VK_SUCCESS);
  }

 private:
  vulkan::VulkanDevice& device_;
  VkSemaphore semaphore_ = VK_NULL_HANDLE;
  bool released_ = false;
};

/// Makes waits answer `result`, and, if `silent`, the counters of semaphores as well, as long as
/// `failing`.
struct Failing {
  Failing(Driver& driver, VkResult result, bool silent) {
    driver.replace<PFN_vkWaitSemaphores>(
        "vkWaitSemaphores", [this, result](PFN_vkWaitSemaphores real, VkDevice device,
                                           const VkSemaphoreWaitInfo* info, std::uint64_t timeout) {
          return on ? (++answers, result) : real(device, info, timeout);
        });
    if (silent)
      driver.replace<PFN_vkGetSemaphoreCounterValue>(
          "vkGetSemaphoreCounterValue", [this, result](PFN_vkGetSemaphoreCounterValue real, VkDevice device,
                                                       VkSemaphore semaphore, std::uint64_t* value) {
            return on ? (++answers, result) : real(device, semaphore, value);
          });
  }
  std::atomic<bool> on{false};
  std::atomic<int> answers{0};
};

constexpr VkResult failures[] = {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY,
                                 VK_ERROR_UNKNOWN};

}  // namespace

TEST_CASE("any Vulkan wait keeps failing: a lane ends when its work has, and the device is well",
          "[vulkan][faults]") {
  for (const VkResult result : failures) {
    INFO(result);
    Driver driver;
    Failing waits(driver, result, false);
    Rig rig({.wrap = driver.wrap()});
    const auto x = rig.buffer(std::vector<Word>(length, 1));
    {
      Hold hold(rig.device());
      auto lane = rig.lane();
      lane->wait_for(hold.point());
      lane->fill(range(x), 9);
      const TimelinePoint end = lane->submit();
      waits.on = true;
      CHECK(end.timeline->wait(end.value, Instant::min()).error() == Errc::timed_out);
      CHECK(end.timeline->wait(end.value, Clock::steady().now() + 5ms).error() == Errc::timed_out);
      std::atomic<bool> ended{false};
      std::optional<base::Worker> ending(good(base::Worker::start("ending", [&] {
        lane.reset();
        ended = true;
      })));
      for (const int before = waits.answers; waits.answers < before + 40;)
        CHECK_FALSE(end.timeline->wait(end.value, Clock::steady().now() + 1ms));
      CHECK_FALSE(ended);
      hold.release();
      ending.reset();
      CHECK(ended);
      CHECK_FALSE(rig.device().lost());
      good(end.timeline->wait(end.value, Instant::max()));
    }
    CHECK(difference(rig.read(x), std::vector<Word>(length, 9)) == "");
    waits.on = false;
  }
}

TEST_CASE("any Vulkan wait keeps failing: objects in flight are kept if the driver gives no answer",
          "[vulkan][faults]") {
  for (const VkResult result : failures) {
    INFO(result);
    Driver driver;
    Failing calls(driver, result, true);
    Rig rig({.wrap = driver.wrap()});
    const auto add = rig.kernel("add", Twin::descriptors);
    auto x = rig.buffer(std::vector<Word>(length, 1));
    const std::weak_ptr<BufferBase> seen = x;
    {
      Hold hold(rig.device());
      auto lane = rig.lane();
      std::vector<Word> out(length, 5);
      lane->wait_for(hold.point());
      lane->dispatch(add, arguments_of(argument(x), Word{3}), length);
      lane->download(range(x), writable_bytes_of(out));
      lane->submit();
      const auto alive = driver.alive();
      calls.on = true;
      const auto waited = lane->wait(Instant::max());
      REQUIRE_FALSE(waited);
      CHECK(waited.error() == (result == VK_ERROR_UNKNOWN ? Errc::unavailable : Errc::out_of_memory));
      CHECK(waited.error().native()->api == "vkWaitSemaphores");
      CHECK_FALSE(lane->idle());  // the driver does not answer
      const Instant begun = Clock::steady().now();
      lane.reset();
      CHECK(Clock::steady().now() - begun < 10s);
      CHECK_FALSE(rig.device().lost());
      CHECK(driver.alive() == alive);
      x.reset();
      CHECK_FALSE(seen.expired());
      calls.on = false;
      rig.lane();  // collects nothing
      CHECK_FALSE(seen.expired());
      CHECK(out == std::vector<Word>(length, 5));
    }
    rig.lane();  // collects it: the device has reached the end
    CHECK(seen.expired());
  }
}

}  // namespace wye::test
