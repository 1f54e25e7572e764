#include "backend/cpu/cpu_device.hpp"
#include "backend/vulkan/vulkan_device.hpp"
#include "device/device.hpp"
