// Turns that devices take without the host: on lavapipe, which gives no timeline semaphores away,
// through a driver that says it does, and keeps the number in a file equal to the semaphore's.
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
#include <vector>

#include "base/internals.hpp"
#include "device/native.hpp"
#include "interop/vulkan_host.hpp"
#include "support/skip.hpp"

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
std::mutex mutex;
std::vector<VkBufferMemoryBarrier> halves;  // of transfers to other drivers and from them
std::atomic<bool> hangs = false;            // it accepts work and executes none
std::atomic<bool> is_lost = false;          // and reports it

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
VKAPI_ATTR VkResult VKAPI_CALL submit(VkQueue queue, std::uint32_t count, const VkSubmitInfo* infos,
                                      VkFence fence) {
  const auto real_submit = reinterpret_cast<PFN_vkQueueSubmit>(real(instance_of_real, "vkQueueSubmit"));
  return hangs ? VK_SUCCESS : real_submit(queue, count, infos, fence);
}
VKAPI_ATTR VkResult VKAPI_CALL wait(VkDevice device, const VkSemaphoreWaitInfo* info, std::uint64_t timeout) {
  if (is_lost) return VK_ERROR_DEVICE_LOST;
  return reinterpret_cast<PFN_vkWaitSemaphores>(real_device()(device, "vkWaitSemaphores"))(device, info,
                                                                                           timeout);
}
VKAPI_ATTR void VKAPI_CALL barrier(VkCommandBuffer commands, VkPipelineStageFlags from,
                                   VkPipelineStageFlags to, VkDependencyFlags flags, std::uint32_t all,
                                   const VkMemoryBarrier* barriers, std::uint32_t buffers,
                                   const VkBufferMemoryBarrier* of_buffers, std::uint32_t images,
                                   const VkImageMemoryBarrier* of_images) {
  const auto real_barrier =
      reinterpret_cast<PFN_vkCmdPipelineBarrier>(real(instance_of_real, "vkCmdPipelineBarrier"));
  {
    const std::lock_guard lock(mutex);
    halves.insert(halves.end(), of_buffers, of_buffers + buffers);
  }
  real_barrier(commands, from, to, flags, all, barriers, buffers, of_buffers, images, of_images);
}
template <class F>
PFN_vkVoidFunction function(F f) {
  return reinterpret_cast<PFN_vkVoidFunction>(f);
}
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL of_device(VkDevice device, const char* name) {
  if (std::strcmp(name, "vkCreateSemaphore") == 0) return function(create);
  if (std::strcmp(name, "vkDestroySemaphore") == 0) return function(destroy);
  if (std::strcmp(name, "vkGetSemaphoreFdKHR") == 0) return function(give);
  if (std::strcmp(name, "vkQueueSubmit") == 0) return function(submit);
  if (std::strcmp(name, "vkWaitSemaphores") == 0) return function(wait);
  if (std::strcmp(name, "vkCmdPipelineBarrier") == 0) return function(barrier);
  return real_device()(device, name);
}
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL of_instance(VkInstance instance, const char* name) {
  if (std::strcmp(name, "vkGetDeviceProcAddr") == 0) return function(of_device);
  if (std::strcmp(name, "vkGetPhysicalDeviceExternalSemaphoreProperties") == 0) return function(say_yes);
  return real(instance, name);
}

}  // namespace giving

/// Returns whether there is a Vulkan device. Reports a skip if not.
bool has_vulkan() {
  const auto pool = ContextPool::open({.backends = {"vulkan"}});
  if (!pool) skip(pool.error().sentence());
  return pool.has_value();
}

/// A pool of both legs on one silicon, by drivers that share all there is. Without the validation
/// layer: it is not told that the semaphores are given away, takes the mirror's signals for wye's,
/// and waits for them on a thread of its own until ten seconds are over, in
/// vkGetSemaphoreCounterValue and vkSignalSemaphore (1.3.239).
struct Both {
  Both()
      : host({.extensions = {VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME}, .layers = false}),
        same("WYE_STANDIN_UUID", uuid().c_str()) {
    giving::real = host.library.function<PFN_vkGetInstanceProcAddr>("vkGetInstanceProcAddr");
    giving::instance_of_real = host.instance;
    giving::hangs = giving::is_lost = false;
    giving::halves.clear();
    created = host.created;
    created.enabledExtensionCount = 2;
    created.ppEnabledExtensionNames = extensions;
    auto brought = host.brought();
    brought.created = &created;
    brought.entry_points = giving::of_instance;
    pool.emplace(ContextPool::open({.backends = {"cuda"},
                                    .adopt = {interop::vulkan_device(brought)},
                                    .cuda_driver = WYE_STAND_IN_CUDA})
                     .value());
  }
  ~Both() {
    pool.reset();
    CHECK(giving::mirrors.empty());
  }
  Lease lease(std::string_view on) { return pool->lease({.on = on}).value(); }
  static std::string uuid() {
    auto vulkan = ContextPool::open({.backends = {"vulkan"}}).value();
    std::string digits;
    for (const char c : to_string(vulkan.devices().front().info().device_uuid))
      if (c != '-') digits += c;
    return digits;
  }
  const char* extensions[2] = {VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME,
                               VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME};
  VkDeviceCreateInfo created{};
  const StandIn stand_in;
  VulkanHost host;
  const Setting same;
  std::optional<ContextPool> pool;
};

interop::SharedBuffer share_words(const Lease& a, const Lease& b) {
  auto memory = interop::share<Word>(a.device(), b.device(), 5000).value();
  REQUIRE(memory.why_copied() == "");
  REQUIRE(memory.why_waited() == "");
  return memory;
}

/// Waits and returns the failure. It must not be that of the deadline, which is far beyond the time
/// limit of a lost device.
Error failure_of_wait(Lease& lease) {
  const auto waited = lease.wait(60s);
  REQUIRE_FALSE(waited);
  CHECK(waited.error() != Errc::timed_out);
  return waited.error();
}

}  // namespace

TEST_CASE("a wait for the other device happens on the device, without the host", "[cuda][shared]") {
  if (!has_vulkan()) return;
  const StandIn stand_in;
  const auto alive = stand_in.alive();
  {
    Both both;
    Lease cuda = both.lease("cuda"), vulkan = both.lease("vulkan");
    for (const bool by_vulkan : {true, false}) {
      auto memory = by_vulkan ? share_words(vulkan, cuda) : share_words(cuda, vulkan);
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
      // Work that is not yet submitted to the driver is handed over too.
      const auto gate = good(base::state_of(vulkan.device())->create_timeline());
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
    // Each turn of Vulkan's ends with a release of the memory and begins with an acquire.
    long released = 0, acquired = 0;
    for (const VkBufferMemoryBarrier& half : giving::halves) {
      CHECK(half.size == 5000 * sizeof(Word));
      (half.dstQueueFamilyIndex == VK_QUEUE_FAMILY_EXTERNAL ? released : acquired) += 1;
      CHECK((half.srcQueueFamilyIndex == VK_QUEUE_FAMILY_EXTERNAL) !=
            (half.dstQueueFamilyIndex == VK_QUEUE_FAMILY_EXTERNAL));
    }
    CHECK(released == 42);
    CHECK(acquired == 40);
    // A failed lane hands nothing over, and no waiter stays blocked.
    auto memory = interop::share<Word>(vulkan.device(), cuda.device(), 10).value();
    stand_in.fail("cuSignalExternalSemaphoresAsync", 1, CUDA_ERROR_NOT_PERMITTED);
    cuda.fill(memory.on(cuda.device()), 1);
    auto failed = memory.hand_over(cuda, vulkan);
    REQUIRE_FALSE(failed);
    INFO(failed.error().describe());
    CHECK(failed.error() == Errc::unavailable);
    CHECK(vulkan.wait(60s));
  }
  CHECK(stand_in.changed_since(alive) == "");
}

TEST_CASE("a wait for a lane that fails before its signal continues and fails with it", "[cuda][shared]") {
  if (!has_vulkan()) return;
  Both both;
  Lease cuda = both.lease("cuda"), vulkan = both.lease("vulkan");
  auto memory = share_words(vulkan, cuda);
  const auto gate = good(base::state_of(cuda.device())->create_timeline());
  cuda.wait_for(SyncPoint(gate, 1));
  cuda.fill(memory.on(cuda.device()), 3);
  memory.hand_over(cuda, vulkan).value();
  vulkan.fill(memory.on(vulkan.device()), 4);
  CHECK(vulkan.wait(20ms).error() == Errc::timed_out);
  both.stand_in.fail("cuMemsetD32Async", 1, CUDA_ERROR_NOT_PERMITTED);
  CHECK(gate->signal(1));
  says(failure_of_wait(vulkan).describe(), {"CUDA_ERROR_NOT_PERMITTED", "waited for another device"});
  CHECK(vulkan.wait().error() == Errc::unavailable);
  // The device is well.
  Lease next = both.lease("vulkan");
  auto own = next.buffer<Word>(100).value();
  next.fill(own, 1);
  CHECK(next.wait(60s));
}

TEST_CASE("the host signals for a lost CUDA device, and the waiter fails", "[cuda][shared]") {
  if (!has_vulkan()) return;
  Both both;
  Lease cuda = both.lease("cuda"), vulkan = both.lease("vulkan"), bystander = both.lease("vulkan");
  auto memory = share_words(vulkan, cuda);
  // The stream is at something without end.
  auto never = good(base::state_of(vulkan.device())->native_interop()->create_shared_timeline());
  const auto on_cuda = good(base::state_of(cuda.device())->native_interop()->open_shared_timeline(never));
  cuda.wait_for(SyncPoint(on_cuda, 1));
  cuda.fill(memory.on(cuda.device()), 3);
  memory.hand_over(cuda, vulkan).value();
  std::vector<Word> seen(5000);
  vulkan.download(memory.on(vulkan.device()), seen);
  vulkan.submit();
  // Vulkan has one queue: it stands still for all.
  auto own = bystander.buffer<Word>(100).value();
  bystander.fill(own, 1);
  CHECK(bystander.wait(20ms).error() == Errc::timed_out);
  // Only the waiter examines the lost device.
  both.stand_in.fail("cuEventQuery", 1, CUDA_ERROR_LAUNCH_FAILED);
  CHECK(bystander.wait(60s));
  const Error failed = failure_of_wait(vulkan);
  CHECK(failed == Errc::device_lost);
  says(failed.describe(), {"'cuda:0'", "CUDA_ERROR_LAUNCH_FAILED"});
}

TEST_CASE("the host signals for a lost Vulkan device, and the waiter fails", "[cuda][shared]") {
  if (!has_vulkan()) return;
  Both both;
  Lease cuda = both.lease("cuda"), vulkan = both.lease("vulkan");
  auto memory = share_words(vulkan, cuda);
  giving::hangs = true;
  vulkan.fill(memory.on(vulkan.device()), 3);
  memory.hand_over(vulkan, cuda).value();
  cuda.fill(memory.on(cuda.device()), 4);
  CHECK(cuda.wait(20ms).error() == Errc::timed_out);
  giving::is_lost = true;
  const Error failed = failure_of_wait(cuda);
  CHECK(failed == Errc::device_lost);
  says(failed.describe(), {"'vulkan:host'", "VK_ERROR_DEVICE_LOST"});
  Lease next = both.lease("cuda");
  auto own = next.buffer<Word>(100).value();
  next.fill(own, 1);
  CHECK(next.wait(60s));
}

TEST_CASE("a lane that waits for a turn of a lost device without a deadline ends", "[cuda][shared]") {
  if (!has_vulkan()) return;
  Both both;
  Lease vulkan = both.lease("vulkan");
  {
    Lease cuda = both.lease("cuda");
    auto memory = share_words(vulkan, cuda);
    giving::hangs = true;
    vulkan.fill(memory.on(vulkan.device()), 3);
    memory.hand_over(vulkan, cuda).value();
    cuda.fill(memory.on(cuda.device()), 4);
    cuda.submit();
    giving::is_lost = true;
    const auto waited = cuda.wait();
    REQUIRE_FALSE(waited);
    CHECK(waited.error() == Errc::device_lost);
  }
}

}  // namespace wye::test
#endif
