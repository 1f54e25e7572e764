#pragma once
/// How the backend is made: what tests may change about it.
#include <wye/base/bytes.hpp>

#include <memory>
#include <string>
#include <vector>

#include "backend/vulkan/vulkan_dispatch.hpp"
#include "device/backend.hpp"

namespace wye {
inline namespace v0 {
namespace vulkan {

struct VulkanOptions {
  std::vector<std::string> loaders = {"libvulkan.so.1", "libvulkan.so"};  ///< tried in this order
  Wrap wrap = nullptr;              ///< asked for every function of the driver
  bool host_visible = true;         ///< false: device memory is treated as though the host could not reach it
  bool host_coherent = true;        ///< false: writes and reads of the host are flushed and invalidated
  Bytes staging_chunk{4u << 20};    ///< staging memory is taken in pieces of at most this
  Bytes staging_budget{32u << 20};  ///< above it a lane waits for its own uploads before it takes more
  Bytes parameter_bytes{~0ull};     ///< parameters above this spill, where the device's limit is not smaller

  bool shares_instance() const { return !wrap && loaders == VulkanOptions().loaders; }
};

std::unique_ptr<device::Backend> make_backend();
std::unique_ptr<device::Backend> make_backend(VulkanOptions options);

}  // namespace vulkan
}  // namespace v0
}  // namespace wye
