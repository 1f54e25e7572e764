// Turns that devices take without the host: on lavapipe, which gives no timeline semaphores away, through a driver that says it
// does, and keeps the number in a file equal to the semaphore's.
#include "backend/cuda/rig.hpp"

#if WYE_WITH_VULKAN
#include <sys/mman.h>
#include <unistd.h>
#include <wye/interop/shared.hpp>
#include <wye/interop/vulkan.hpp>
#include <wye/wye.hpp>

#include <atomic>
#include <cstring>
#include <list>
#include <mutex>
#include <thread>

#include "interop/vulkan_host.hpp"

namespace wye::test {
namespace {

using namespace std::chrono_literals;

/// A semaphore and a number in a file: each follows the other.
class Mirror {
 public:
  Mirror(PFN_vkGetDeviceProcAddr get, VkDevice device, VkSemaphore of)
      : semaphore(of), file_(memfd_create("wye mirror", MFD_CLOEXEC)) {
    if (ftruncate(file_, sizeof(std::uint64_t)) != 0) std::abort();
    value_ = static_cast<std::uint64_t*>(
        mmap(nullptr, sizeof(std::uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0));
    const auto ask =
        reinterpret_cast<PFN_vkGetSemaphoreCounterValue>(get(device, "vkGetSemaphoreCounterValue"));
    const auto set = reinterpret_cast<PFN_vkSignalSemaphore>(get(device, "vkSignalSemaphore"));
    thread_ = std::thread([=, this] {
      while (!stop_) {
        std::uint64_t there = 0;
        ask(device, semaphore, &there);
        const std::uint64_t here = std::atomic_ref(*value_).load();
        if (here > there) {
          VkSemaphoreSignalInfo info{};
          info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO;
          info.semaphore = semaphore;
          info.value = here;
          set(device, &info);
        } else if (there > here) {
          std::atomic_ref(*value_).store(there);
        }
        std::this_thread::sleep_for(50us);
      }
    });
  }
  Mirror(const Mirror&) = delete;
  ~Mirror() {
    stop_ = true;
    thread_.join();
    munmap(value_, sizeof(std::uint64_t));
    close(file_);
  }
  int another_file() const { return dup(file_); }
  const VkSemaphore semaphore;

 private:
  int file_;
  std::uint64_t* value_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

/// The driver's functions that are others here. There is one such driver in a process.
namespace giving {

PFN_vkGetInstanceProcAddr real = nullptr;
VkInstance instance_of_real = VK_NULL_HANDLE;
std::list<Mirror> mirrors;

PFN_vkGetDeviceProcAddr real_device() {
  return reinterpret_cast<PFN_vkGetDeviceProcAddr>(real(instance_of_real, "vkGetDeviceProcAddr"));
}
VKAPI_ATTR void VKAPI_CALL say_yes(VkPhysicalDevice, const VkPhysicalDeviceExternalSemaphoreInfo*,
                                   VkExternalSemaphoreProperties* properties) {
  properties->externalSemaphoreFeatures = VK_EXTERNAL_SEMAPHORE_FEATURE_EXPORTABLE_BIT;
}
VKAPI_ATTR VkResult VKAPI_CALL create(VkDevice device, const VkSemaphoreCreateInfo* info,
                                      const VkAllocationCallbacks* memory, VkSemaphore* made) {
  VkSemaphoreCreateInfo without = *info;
  auto type = *static_cast<const VkSemaphoreTypeCreateInfo*>(info->pNext);
  type.pNext = nullptr;  // that it is to be given away
  without.pNext = &type;
  return reinterpret_cast<PFN_vkCreateSemaphore>(real_device()(device, "vkCreateSemaphore"))(device, &without,
                                                                                             memory, made);
}
VKAPI_ATTR void VKAPI_CALL destroy(VkDevice device, VkSemaphore semaphore,
                                   const VkAllocationCallbacks* memory) {
  mirrors.remove_if([&](const Mirror& mirror) { return mirror.semaphore == semaphore; });
  reinterpret_cast<PFN_vkDestroySemaphore>(real_device()(device, "vkDestroySemaphore"))(device, semaphore,
                                                                                        memory);
}
VKAPI_ATTR VkResult VKAPI_CALL give(VkDevice device, const VkSemaphoreGetFdInfoKHR* info, int* file) {
  *file = mirrors.emplace_back(real_device(), device, info->semaphore).another_file();
  return VK_SUCCESS;
}
template <class F>
PFN_vkVoidFunction function(F f) {
  return reinterpret_cast<PFN_vkVoidFunction>(f);
}
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL of_device(VkDevice device, const char* name) {
  if (std::strcmp(name, "vkCreateSemaphore") == 0) return function(create);
  if (std::strcmp(name, "vkDestroySemaphore") == 0) return function(destroy);
  if (std::strcmp(name, "vkGetSemaphoreFdKHR") == 0) return function(give);
  return real_device()(device, name);
}
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL of_instance(VkInstance instance, const char* name) {
  if (std::strcmp(name, "vkGetDeviceProcAddr") == 0) return function(of_device);
  if (std::strcmp(name, "vkGetPhysicalDeviceExternalSemaphoreProperties") == 0) return function(say_yes);
  return real(instance, name);
}

}  // namespace giving
}  // namespace

TEST_CASE("the turn of the other device begins on the device, and the host waits for nothing",
          "[cuda][shared]") {
  if (auto there = ContextPool::open({.backends = {"vulkan"}}); !there) {
    WARN("skipped: there is no Vulkan device");
    return;
  }
  const StandIn stand_in;
  const auto alive = stand_in.alive();
  VulkanHost host({.extensions = {VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME}});
  giving::real = host.library.function<PFN_vkGetInstanceProcAddr>("vkGetInstanceProcAddr");
  giving::instance_of_real = host.instance;
  const char* extensions[] = {VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME,
                              VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME};
  VkDeviceCreateInfo created = host.created;
  created.enabledExtensionCount = 2;
  created.ppEnabledExtensionNames = extensions;
  auto brought = host.brought();
  brought.created = &created;
  brought.entry_points = giving::of_instance;
  std::string uuid;
  {
    auto pool = ContextPool::open({.backends = {"vulkan"}}).value();
    for (const char c : to_string(pool.devices().front().info().device_uuid))
      if (c != '-') uuid += c;
  }
  const Setting same("WYE_STANDIN_UUID", uuid.c_str());
  {
    ContextPool pool = ContextPool::open({.backends = {"cuda"},
                                          .cuda_driver = WYE_STAND_IN_CUDA,
                                          .adopt = {interop::vulkan_device(brought)}})
                           .value();
    Lease cuda = pool.lease({.on = "cuda"}).value(), vulkan = pool.lease({.on = "vulkan"}).value();
    for (const bool by_vulkan : {true, false}) {
      auto memory = by_vulkan ? interop::share<Word>(vulkan.device(), cuda.device(), 5000).value()
                              : interop::share<Word>(cuda.device(), vulkan.device(), 5000).value();
      REQUIRE(memory.why_copied() == "");
      REQUIRE(memory.why_waited() == "");
      const Buffer c = memory.on(cuda.device()), v = memory.on(vulkan.device());
      for (unsigned round = 1; round <= 20; ++round) {
        stand_in.seed(round);
        std::vector<Word> on_cuda(5000), on_vulkan(5000);
        vulkan.fill(v, round);
        memory.hand_over(vulkan, cuda).value();
        cuda.download(c, on_cuda);
        cuda.fill(c, 1000 + round);
        memory.hand_over(cuda, vulkan).value();
        vulkan.download(v, on_vulkan);
        vulkan.fill(v, 0);
        vulkan.wait(60s).value();
        cuda.wait(60s).value();
        CHECK(on_cuda == std::vector<Word>(5000, round));
        CHECK(on_vulkan == std::vector<Word>(5000, 1000 + round));
      }
      // What has not even been given to the driver yet is handed over too.
      const auto gate = good(vulkan.device().base()->create_timeline());
      std::vector<Word> seen(5000);
      vulkan.wait_for(SyncPoint(gate, 1));
      vulkan.fill(v, 77);
      memory.hand_over(vulkan, cuda).value();
      cuda.download(c, seen);
      CHECK(cuda.wait(20ms).error() == Errc::timed_out);
      CHECK(gate->signal(1));
      cuda.wait(60s).value();
      CHECK(seen == std::vector<Word>(5000, 77));
      vulkan.wait(60s).value();
    }
    CHECK(stand_in.calls("cuWaitExternalSemaphoresAsync") == 42);
    CHECK(stand_in.calls("cuSignalExternalSemaphoresAsync") == 40);
    // A lane that has failed hands nothing over, and leaves nobody waiting.
    auto memory = interop::share<Word>(vulkan.device(), cuda.device(), 10).value();
    stand_in.fail("cuSignalExternalSemaphoresAsync", 1, CUDA_ERROR_NOT_PERMITTED);
    cuda.fill(memory.on(cuda.device()), 1);
    auto failed = memory.hand_over(cuda, vulkan);
    REQUIRE_FALSE(failed);
    INFO(failed.error().describe());
    CHECK(failed.error() == Errc::unavailable);
    CHECK(vulkan.wait(60s));
  }
  CHECK(giving::mirrors.empty());
  CHECK(stand_in.alive() == alive);
}

}  // namespace wye::test
#endif
