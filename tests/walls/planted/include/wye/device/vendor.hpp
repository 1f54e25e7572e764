#pragma once
#include <stdexec/execution.hpp>
#include <vulkan/vulkan.h>

struct Buffer {
  VkBuffer buffer;
};
