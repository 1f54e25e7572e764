#pragma once
#include <vulkan/vulkan.h>
#include <stdexec/execution.hpp>

struct Buffer {
  VkBuffer buffer;
};
