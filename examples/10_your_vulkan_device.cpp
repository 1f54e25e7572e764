// Uses the program's own Vulkan device and its memory. The device orders the work of both; no
// thread waits.
#include <cstdio>
#include <mutex>
#include <wye/base/dynamic_library.hpp>
#include <wye/interop/vulkan.hpp>
#include <wye/wye.hpp>

namespace {

int fail(const wye::Error& error) { return std::puts(error.describe().c_str()), 1; }

/// The Vulkan objects of the program.
struct Host {
  explicit Host(PFN_vkGetInstanceProcAddr functions) : get(functions) {
    const VkApplicationInfo application{
        VK_STRUCTURE_TYPE_APPLICATION_INFO, nullptr, "host", 1, nullptr, 0, VK_API_VERSION_1_2};
    VkInstanceCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    info.pApplicationInfo = &application;
    if (call<PFN_vkCreateInstance>("vkCreateInstance")(&info, nullptr, &instance) != VK_SUCCESS) return;
    std::uint32_t one = 1;
    call<PFN_vkEnumeratePhysicalDevices>("vkEnumeratePhysicalDevices")(instance, &one, &physical);
    if (!physical) return;
    features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    features.timelineSemaphore = features.bufferDeviceAddress = VK_TRUE;  // required by wye
    queues.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
    queues.queueCount = 1;  // of family 0; a real program looks for a compute family
    queues.pQueuePriorities = &priority;
    created.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    created.pNext = &features;
    created.queueCreateInfoCount = 1;
    created.pQueueCreateInfos = &queues;
    call<PFN_vkCreateDevice>("vkCreateDevice")(physical, &created, nullptr, &device);
  }
  ~Host() {
    if (device) call<PFN_vkDestroyDevice>("vkDestroyDevice")(device, nullptr);
    if (instance) call<PFN_vkDestroyInstance>("vkDestroyInstance")(instance, nullptr);
  }
  Host(const Host&) = delete;
  template <class F>
  F call(const char* name) const {
    return reinterpret_cast<F>(get(instance, name));
  }

  PFN_vkGetInstanceProcAddr get;
  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  float priority = 1;
  VkPhysicalDeviceVulkan12Features features{};
  VkDeviceQueueCreateInfo queues{};
  VkDeviceCreateInfo created{};
  std::mutex lock;  // held by each thread that uses the queue
};

}  // namespace

int main() {
  auto loader = wye::DynamicLibrary::open({"libvulkan.so.1", "libvulkan.so"});
  if (!loader) return std::puts("This machine has no Vulkan."), 0;
  Host host(loader->function<PFN_vkGetInstanceProcAddr>("vkGetInstanceProcAddr"));
  if (!host.device) return std::puts("This machine has no Vulkan device."), 0;

  auto pool = wye::ContextPool::open({.backends = {"vulkan"},
                                      .adopt = {wye::interop::vulkan_device({.instance = host.instance,
                                                                             .physical = host.physical,
                                                                             .device = host.device,
                                                                             .lock = host.lock,
                                                                             .created = &host.created})}});
  if (!pool) return fail(pool.error());
  auto lease = pool->lease({.on = "vulkan:host"});
  if (!lease) return fail(lease.error());

  auto buffer = lease->buffer<std::uint32_t>(1000);
  if (!buffer) return fail(buffer.error());
  lease->fill(*buffer, 42);

  // The program continues on the device with the VkBuffer, after a semaphore.
  auto memory = wye::interop::vulkan_buffer(*buffer);
  auto filled = wye::interop::vulkan_semaphore(lease->point());
  if (!memory) return fail(memory.error());
  if (!filled) return fail(filled.error());
  const VkSemaphoreWaitInfo until{
      VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO, nullptr, 0, 1, &filled->semaphore, &filled->value};
  const VkResult waited = host.call<PFN_vkWaitSemaphores>("vkWaitSemaphores")(host.device, &until, ~0ull);

  std::uint32_t out[1000] = {};
  lease->download(*buffer, out);
  if (auto done = lease->wait(); !done) return fail(done.error());
  std::printf("%llu bytes of %s, on the program's own device: %u\n",
              static_cast<unsigned long long>(memory->bytes), lease->device().info().name.c_str(), out[999]);
  return waited == VK_SUCCESS && out[999] == 42 ? 0 : 1;
}
