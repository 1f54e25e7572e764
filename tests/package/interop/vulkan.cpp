// Vulkan's header as this program includes it, with the declarations that its own functions need.
#include <vulkan/vulkan_core.h>
#include <wye/interop/vulkan.hpp>
#include <wye/wye.hpp>

bool refuses(const wye::Device& device);
bool refuses(const wye::Device& device) {
  return !wye::interop::vulkan_device(device) && !wye::interop::vulkan_buffer<float>(device, {.bytes = 4}) &&
         !wye::interop::vulkan_semaphore({}) && !wye::interop::sync_point(device, {});
}
