#pragma once
/// The loader and its instance.
#include <wye/base/dynamic_library.hpp>
#include <wye/base/result.hpp>

#include <memory>
#include <optional>

#include "backend/vulkan/vulkan_dispatch.hpp"
#include "backend/vulkan/vulkan_messages.hpp"
#include "backend/vulkan/vulkan_options.hpp"

namespace wye::inline v0::vulkan {

/// A VkInstance with its loader library.
/// Threads: thread-safe.
class VulkanInstance {
 public:
  /// Opens the loader and creates an instance. Backends without validation and wrappers share one
  /// instance per process, which ends with its last handle.
  /// Errors: unavailable (no loader, a loader older than 1.2, no driver), out_of_memory.
  static Result<std::shared_ptr<VulkanInstance>> open(const VulkanOptions& options,
                                                      const device::BackendOptions& backend);
  /// Adopts an instance of the application, which destroys it. Its functions come from `get`, or
  /// from the loader if `get` is null.
  /// Errors: unavailable (no loader, or a function is missing).
  static Result<std::shared_ptr<VulkanInstance>> adopt(const VulkanOptions& options, VkInstance handle,
                                                       PFN_vkGetInstanceProcAddr get);
  ~VulkanInstance();
  VulkanInstance(const VulkanInstance&) = delete;
  VulkanInstance& operator=(const VulkanInstance&) = delete;

  InstanceTable vk;
  VkInstance handle = VK_NULL_HANDLE;
  Wrap wrap;
  /// The source of its functions.
  PFN_vkGetInstanceProcAddr entry_points = nullptr;
  /// Returns null if no messages are wanted.
  Messages* messages() { return messages_ ? &*messages_ : nullptr; }

 private:
  VulkanInstance(std::optional<DynamicLibrary> library, bool is_adopted)
      : library_(std::move(library)), is_adopted_(is_adopted) {}
  static Result<std::shared_ptr<VulkanInstance>> make(const VulkanOptions& options,
                                                      const device::BackendOptions& backend);
  Result<void> create(const LoaderTable& loader, bool validate);
  std::optional<DynamicLibrary> library_;
  const bool is_adopted_;
  std::optional<Messages> messages_;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
};

}  // namespace wye::vulkan
