#include <utility>
#include <vector>

#include "backend/vulkan/vulkan_adapter.hpp"
#include "backend/vulkan/vulkan_error.hpp"
#include "backend/vulkan/vulkan_loader.hpp"
#include "backend/vulkan/vulkan_options.hpp"
#include "base/text.hpp"

namespace wye::inline v0::vulkan {
namespace {

/// Returns the entry of a backend without devices.
std::vector<device::Discovered> no_devices(const Error& why) {
  device::Discovered entry;
  entry.info.id = "vulkan";
  entry.info.backend = "vulkan";
  entry.info.reason = why.sentence();
  if (const NativeError* native = why.native())
    entry.info.reason += base::text(" ({} -> {} ({}))", native->api, native->name, native->number);
  return {std::move(entry)};
}

class VulkanBackend final : public device::Backend {
 public:
  explicit VulkanBackend(VulkanOptions options) : options_(std::move(options)) {}
  std::string_view name() const noexcept override { return "vulkan"; }

  std::vector<device::Discovered> discover(const device::BackendOptions& backend) override {
    auto opened = VulkanInstance::open(options_, backend);
    if (!opened) return no_devices(opened.error());
    const std::shared_ptr<VulkanInstance> instance = *std::move(opened);
    std::uint32_t count = 0;
    VkResult r = instance->vk.EnumeratePhysicalDevices(instance->handle, &count, nullptr);
    std::vector<VkPhysicalDevice> handles(count);
    if (r == VK_SUCCESS && count != 0)
      r = instance->vk.EnumeratePhysicalDevices(instance->handle, &count, handles.data());
    if (r < VK_SUCCESS)
      return no_devices(
          failure(r, "vkEnumeratePhysicalDevices", "The Vulkan drivers cannot list their devices."));
    handles.resize(count);
    if (handles.empty()) return no_devices(Error(Errc::unavailable, "The Vulkan drivers have no device."));

    std::vector<device::Discovered> found;
    for (const VkPhysicalDevice handle : handles) {
      PhysicalDevice physical =
          describe(instance->vk, handle, base::text("vulkan:{}", found.size()), options_);
      device::Discovered& entry = found.emplace_back();
      if (physical.info.usable && backend.isolation == Isolation::partition) {
        // Separate queues would not divide a device either: it serves them in turn.
        physical.info.usable = false;
        physical.info.reason =
            base::text("Device '{}' ({}) cannot be divided: Vulkan cannot use only a part of a device.",
                       physical.info.id, physical.info.name);
      }
      entry.info = physical.info;
      if (physical.info.usable)
        entry.adapter = std::make_shared<VulkanAdapter>(instance, std::move(physical), options_);
    }
    return found;
  }

  Result<device::Discovered> adopt(const NativeDevice& native, std::string id,
                                   const device::BackendOptions&) override {
    return adopt_device(native, std::move(id), options_);
  }

 private:
  VulkanOptions options_;
};

}  // namespace

std::unique_ptr<device::Backend> make_backend() { return make_backend(VulkanOptions{}); }

std::unique_ptr<device::Backend> make_backend(VulkanOptions options) {
  return std::make_unique<VulkanBackend>(std::move(options));
}

}  // namespace wye::vulkan
