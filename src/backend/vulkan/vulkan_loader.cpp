#include "backend/vulkan/vulkan_loader.hpp"

#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "backend/vulkan/vulkan_error.hpp"
#include "base/descriptor.hpp"
#include "base/process.hpp"
#include "base/text.hpp"

namespace wye::inline v0::vulkan {
namespace {

/// More files than the loader and a driver open at the same time while an instance is created.
constexpr unsigned files_of_a_driver = 16;

constexpr const char* validation_layer = "VK_LAYER_KHRONOS_validation";

struct SharedInstance {
  std::mutex mutex;
  std::weak_ptr<VulkanInstance> instance;
};
/// A child of `fork` needs its own instance, because it lacks the threads of its parent's driver.
constinit base::PerProcess<SharedInstance> shared_instance;

Result<DynamicLibrary> open_loader(const std::vector<std::string>& names) {
  std::string tried;
  for (const std::string& name : names) {
    auto library = DynamicLibrary::open(name);
    if (library) return library;
    if (library.error() == Errc::io)
      return Error(Errc::io, "The Vulkan loader cannot be opened: " + library.error().sentence());
    tried += (tried.empty() ? "" : " ") + library.error().sentence();
  }
  return Error(Errc::unavailable, "The Vulkan loader is not installed: " + tried);
}

bool has_layer(const LoaderTable& loader, const char* name) {
  std::uint32_t count = 0;
  if (loader.EnumerateInstanceLayerProperties(&count, nullptr) != VK_SUCCESS) return false;
  std::vector<VkLayerProperties> layers(count);
  if (loader.EnumerateInstanceLayerProperties(&count, layers.data()) < VK_SUCCESS) return false;
  layers.resize(count);
  for (const VkLayerProperties& layer : layers)
    if (std::strcmp(layer.layerName, name) == 0) return true;
  return false;
}

VKAPI_ATTR VkBool32 VKAPI_CALL hear(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                    VkDebugUtilsMessageTypeFlagsEXT,
                                    const VkDebugUtilsMessengerCallbackDataEXT* data, void* messages) {
  const bool is_error = severity >= VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  try {
    static_cast<Messages*>(messages)->log(is_error ? LogLevel::error : LogLevel::warning,
                                          data->pMessage ? data->pMessage : "");
  } catch (...) {  // no memory for the text; exceptions must not unwind the driver
  }
  return VK_FALSE;
}

}  // namespace

Result<std::shared_ptr<VulkanInstance>> VulkanInstance::open(const VulkanOptions& options,
                                                             const device::BackendOptions& backend) {
  if (!options.shares_instance() || backend.validate) return make(options, backend);
  auto& [mutex, shared] = shared_instance.get();
  // Held during the driver's call: a second caller waits for the same result.
  const std::lock_guard lock(mutex);
  if (auto instance = shared.lock()) return instance;
  auto made = make(options, backend);
  if (made) shared = *made;
  return made;
}

Result<std::shared_ptr<VulkanInstance>> VulkanInstance::make(const VulkanOptions& options,
                                                             const device::BackendOptions& backend) {
  auto library = open_loader(options.loaders);
  if (!library) return std::move(library).error();
  const auto get = library->function<PFN_vkGetInstanceProcAddr>("vkGetInstanceProcAddr");
  if (!get)
    return Error(Errc::unavailable, base::text("Library '{}' is not a Vulkan loader.", library->name()));
  auto loader = load_loader(get, options.wrap);
  if (!loader) return std::move(loader).error();
  std::uint32_t version = 0;
  if (const VkResult r = loader->EnumerateInstanceVersion(&version); r != VK_SUCCESS)
    return failure(r, "vkEnumerateInstanceVersion", "The Vulkan loader does not report its version.");
  if (version < VK_API_VERSION_1_2)
    return Error(Errc::unavailable, base::text("The Vulkan loader has version {}.{}; wye needs 1.2.",
                                               VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version)));

  auto instance = base::own(new VulkanInstance(std::move(*library), false));
  instance->wrap = options.wrap;
  instance->entry_points = get;
  bool validate = backend.validate;
  if (validate) {
    instance->messages_.emplace(backend.log);
    validate = has_layer(*loader, validation_layer);
    if (!validate)
      instance->messages_->log(
          LogLevel::warning,
          base::text("Validation was requested, but {} is not installed.", validation_layer));
  }
  if (auto created = instance->create(*loader, validate); !created) return std::move(created).error();
  return instance;
}

Result<std::shared_ptr<VulkanInstance>> VulkanInstance::adopt(const VulkanOptions& options, VkInstance handle,
                                                              PFN_vkGetInstanceProcAddr get) {
  std::optional<DynamicLibrary> library;
  if (!get) {
    auto opened = open_loader(options.loaders);
    if (!opened) return std::move(opened).error();
    library = std::move(*opened);
    get = library->function<PFN_vkGetInstanceProcAddr>("vkGetInstanceProcAddr");
    if (!get)
      return Error(Errc::unavailable, base::text("Library '{}' is not a Vulkan loader.", library->name()));
  }
  LoaderTable loader;
  loader.GetInstanceProcAddr = get;
  auto table = load_instance(loader, handle, options.wrap);
  if (!table) return std::move(table).error();
  auto instance = base::own(new VulkanInstance(std::move(library), true));
  instance->wrap = options.wrap;
  instance->entry_points = get;
  instance->vk = *table;
  instance->handle = handle;
  return instance;
}

Result<void> VulkanInstance::create(const LoaderTable& loader, bool validate) {
  const VkApplicationInfo application{.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                      .pNext = nullptr,
                                      .pApplicationName = nullptr,
                                      .applicationVersion = 0,
                                      .pEngineName = "wye",
                                      .engineVersion = WYE_VERSION_MAJOR << 16 | WYE_VERSION_MINOR,
                                      .apiVersion = VK_API_VERSION_1_3};
  VkDebugUtilsMessengerCreateInfoEXT messenger{};
  messenger.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
  messenger.messageSeverity =
      VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  messenger.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
  messenger.pfnUserCallback = hear;
  messenger.pUserData = messages();
  const VkValidationFeatureEnableEXT checks[] = {VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};
  VkValidationFeaturesEXT features{};
  features.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT;
  features.pNext = &messenger;
  features.enabledValidationFeatureCount = 1;
  features.pEnabledValidationFeatures = checks;
  const char* extensions[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME, VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME};

  VkInstanceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &application;
  if (validate) {
    info.pNext = &features;
    info.enabledLayerCount = 1;
    info.ppEnabledLayerNames = &validation_layer;
    info.enabledExtensionCount = 2;
    info.ppEnabledExtensionNames = extensions;
  }
  if (const VkResult r = loader.CreateInstance(&info, nullptr, &handle); r != VK_SUCCESS) {
    handle = VK_NULL_HANDLE;
    // Without free file descriptors, the loader finds no installed driver.
    if (const auto shortage = base::descriptor_shortage(files_of_a_driver))
      return failure(r, "vkCreateInstance",
                     base::text("The Vulkan loader cannot create an instance: {}.", *shortage));
    return failure(r, "vkCreateInstance",
                   r == VK_ERROR_INCOMPATIBLE_DRIVER ? "No Vulkan driver is installed."
                                                     : "The Vulkan loader cannot create an instance.");
  }
  auto table = load_instance(loader, handle, wrap);
  if (!table) {
    // The instance has no function table yet, so vkDestroyInstance comes from the loader.
    const base::DriverFunction destroy(
        reinterpret_cast<PFN_vkDestroyInstance>(loader.GetInstanceProcAddr(handle, "vkDestroyInstance")));
    if (destroy) destroy(handle, nullptr);
    handle = VK_NULL_HANDLE;
    return std::move(table).error();
  }
  vk = *table;
  if (validate && vk.CreateDebugUtilsMessengerEXT && vk.DestroyDebugUtilsMessengerEXT)
    if (const VkResult r = vk.CreateDebugUtilsMessengerEXT(handle, &messenger, nullptr, &messenger_);
        r != VK_SUCCESS)
      return failure(r, "vkCreateDebugUtilsMessengerEXT",
                     "The driver cannot register for validation messages.");
  return {};
}

VulkanInstance::~VulkanInstance() {
  if (handle == VK_NULL_HANDLE || is_adopted_) return;
  if (messenger_ != VK_NULL_HANDLE) vk.DestroyDebugUtilsMessengerEXT(handle, messenger_, nullptr);
  vk.DestroyInstance(handle, nullptr);
}

}  // namespace wye::vulkan
