#pragma once
#include <vulkan/vulkan.h>

struct Buffer {
  VkBuffer buffer;
};
