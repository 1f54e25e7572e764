#include "backend/vulkan/vulkan_dispatch.hpp"

#include "base/text.hpp"

namespace wye::inline v0::vulkan {
namespace {

/// Writes a function to a table. Returns false if the function is null.
template <class Function>
bool put(base::DriverFunction<Function>& place, const char* name, PFN_vkVoidFunction real, const Wrap& wrap) {
  if (real && wrap) real = wrap(name, real);
  place = reinterpret_cast<Function>(real);
  return real != nullptr;
}

Error missing(const char* name) {
  return Error(Errc::unavailable, base::text("The Vulkan driver has no function {}.", name));
}

}  // namespace

Result<LoaderTable> load_loader(PFN_vkGetInstanceProcAddr get, const Wrap& wrap) {
  LoaderTable table;
  table.GetInstanceProcAddr = get;
#define WYE_VULKAN_LOAD(name) \
  if (!put(table.name, "vk" #name, get(VK_NULL_HANDLE, "vk" #name), wrap)) return missing("vk" #name);
  WYE_VULKAN_LOADER_FUNCTIONS(WYE_VULKAN_LOAD)
#undef WYE_VULKAN_LOAD
  return table;
}

Result<InstanceTable> load_instance(const LoaderTable& loader, VkInstance instance, const Wrap& wrap) {
  const auto get = [&](const char* name) { return loader.GetInstanceProcAddr(instance, name); };
  InstanceTable table;
#define WYE_VULKAN_LOAD(name) \
  if (!put(table.name, "vk" #name, get("vk" #name), wrap)) return missing("vk" #name);
  WYE_VULKAN_INSTANCE_FUNCTIONS(WYE_VULKAN_LOAD)
#undef WYE_VULKAN_LOAD
#define WYE_VULKAN_LOAD(name) put(table.name, "vk" #name, get("vk" #name), wrap);
  WYE_VULKAN_MESSAGE_FUNCTIONS(WYE_VULKAN_LOAD)
  WYE_VULKAN_MATRIX_FUNCTIONS(WYE_VULKAN_LOAD)
#undef WYE_VULKAN_LOAD
  return table;
}

Result<DeviceTable> load_device(const InstanceTable& instance, VkDevice device, const Wrap& wrap) {
  DeviceTable table;
#define WYE_VULKAN_LOAD(name)                                                             \
  if (!put(table.name, "vk" #name, instance.GetDeviceProcAddr(device, "vk" #name), wrap)) \
    return missing("vk" #name);
  WYE_VULKAN_DEVICE_FUNCTIONS(WYE_VULKAN_LOAD)
#undef WYE_VULKAN_LOAD
#define WYE_VULKAN_LOAD(name) \
  put(table.name, "vk" #name, instance.GetDeviceProcAddr(device, "vk" #name), wrap);
  WYE_VULKAN_SHARING_FUNCTIONS(WYE_VULKAN_LOAD)
#undef WYE_VULKAN_LOAD
  return table;
}

}  // namespace wye::vulkan
