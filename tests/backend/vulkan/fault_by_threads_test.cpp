// Any call of the driver may fail while eight threads lease and submit.
#include <wye/wye.hpp>

#include "backend/vulkan/driver.hpp"
#include "backend/vulkan/rig.hpp"
#include "support/await.hpp"
#include "support/scripted_pool.hpp"
#include "support/temporary_folder.hpp"
#include "support/users.hpp"

namespace wye::test {
namespace {

TEST_CASE("a call of the driver fails while eight threads use the device", "[vulkan][faults][no_tsan]") {
  constexpr const char* functions[] = {"vkAllocateMemory",         "vkMapMemory",
                                       "vkCreateBuffer",           "vkBindBufferMemory",
                                       "vkCreateShaderModule",     "vkCreatePipelineLayout",
                                       "vkCreateComputePipelines", "vkCreateDescriptorPool",
                                       "vkAllocateDescriptorSets", "vkCreateCommandPool",
                                       "vkAllocateCommandBuffers", "vkBeginCommandBuffer",
                                       "vkEndCommandBuffer",       "vkQueueSubmit",
                                       "vkCreateSemaphore",        "vkGetSemaphoreCounterValue",
                                       "vkWaitSemaphores"};
  const TemporaryFolder folder;
  const auto kernel = axpy();
  Driver driver;
  VulkanOptions options;
  options.wrap = driver.wrap();
  int met = 0, lost = 0, failed = 0;
  {
    const auto found = discover(options);
    const auto usable =
        std::find_if(found.begin(), found.end(), [](const Discovered& one) { return one.adapter; });
    REQUIRE(usable != found.end());
    const auto idle = driver.alive();
    for (const char* function : functions)
      for (const VkResult result : {VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_DEVICE_LOST})
        for (const unsigned nth : {1u, 3u, 10u, 30u}) {
          INFO(function << " answers " << result << " at call " << nth);
          Use use;
          {
            auto device = usable->adapter->open();
            REQUIRE(device);
            ContextPool pool = pool_over({*device}, {.lanes_per_device = 3}, {usable->adapter});
            device->reset();
            const auto cache = ShaderCache::open({.directory = folder.path()}).value();
            Scheduler scheduler = Scheduler::open(pool, cache, {}).value();
            driver.fail(function, nth, result);
            use_at_once(pool, scheduler, kernel, use);
            met += driver.failed();
            lost += pool.metrics().recoveries != 0;
            CHECK(pool.metrics().active == 0);
            CHECK(scheduler.metrics().running == 0);
          }
          CHECK(use.wrong == 0);
          CHECK(use.completed + use.failed == 32);
          failed += use.failed;
          if (!test::becomes_true([&] { return driver.alive() == idle; }))
            FAIL("left behind: " << driver.alive_text());
        }
  }
  CHECK(driver.alive_text() == "");
  CHECK(met > 60);
  CHECK(lost > 10);
  WARN(met << " faults met, " << lost << " devices opened again, " << failed << " errors of a caller");
}

}  // namespace
}  // namespace wye::test
