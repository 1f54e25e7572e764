#pragma once
/// Options of the backend, which tests change.
#include <wye/base/bytes.hpp>

#include <memory>
#include <string>
#include <vector>

#include "backend/vulkan/vulkan_dispatch.hpp"
#include "device/backend.hpp"

namespace wye::inline v0::vulkan {

struct VulkanOptions {
  std::vector<std::string> loaders = {"libvulkan.so.1", "libvulkan.so"};  ///< tried in this order
  Wrap wrap = nullptr;              ///< called for every function of the driver
  bool host_visible = true;         ///< false: device memory is treated as not mapped
  bool host_coherent = true;        ///< false: the host flushes its writes and invalidates before its reads
  Bytes staging_chunk{4u << 20};    ///< largest size of a staging chunk
  Bytes staging_budget{32u << 20};  ///< above it, a lane waits for its uploads before it allocates more
  Bytes parameter_bytes{~0ull};     ///< larger parameter blocks spill, if the device's limit is not smaller

  bool shares_instance() const { return !wrap && loaders == VulkanOptions().loaders; }
};

std::unique_ptr<device::Backend> make_backend();
std::unique_ptr<device::Backend> make_backend(VulkanOptions options);

}  // namespace wye::vulkan
