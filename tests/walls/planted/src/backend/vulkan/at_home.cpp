#include <vulkan/vulkan_core.h>

VkResult create(VkDevice device) { return vkDeviceWaitIdle(device) + VK_SUCCESS; }
