#include "backend/vulkan/driver.hpp"

#include <shared_mutex>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <utility>

namespace wye::test {
namespace {

Driver* current = nullptr;

bool begins_with(std::string_view text, std::string_view with) { return text.substr(0, with.size()) == with; }

/// "Buffer" of "vkCreateBuffer" and "vkDestroyBuffer"; empty for other functions.
std::string_view kind_of(std::string_view name) {
  if (name == "vkAllocateMemory" || name == "vkFreeMemory") return "DeviceMemory";
  if (begins_with(name, "vkCreate")) return name == "vkCreateComputePipelines" ? "Pipeline" : name.substr(8);
  if (begins_with(name, "vkDestroy")) return name.substr(9);
  return {};
}

bool makes(std::string_view name) { return begins_with(name, "vkCreate") || name == "vkAllocateMemory"; }

/// Returns whether the object that a function destroys, its last argument but one, is not null.
template <class... A>
bool ends_something(const A&... arguments) {
  if constexpr (sizeof...(A) >= 2) {
    const auto all = std::tie(arguments...);
    using Last = std::tuple_element_t<sizeof...(A) - 1, std::tuple<A...>>;
    if constexpr (std::is_same_v<Last, const VkAllocationCallbacks*>)
      return std::get<sizeof...(A) - 2>(all) != VK_NULL_HANDLE;
  }
  return false;
}

}  // namespace

/// The function that stands in a table, one for each of the driver's.
template <class Tag, class Pfn>
struct Hook;
template <class Tag, class R, class... A>
struct Hook<Tag, R(VKAPI_PTR*)(A...)> {
  using Pfn = R(VKAPI_PTR*)(A...);
  static inline Pfn real = nullptr;

  static R VKAPI_CALL call(A... arguments) {
    Driver& driver = *current;
    if constexpr (std::is_same_v<R, VkResult>) {
      const VkResult instead = driver.arrive(Tag::name, true, Tag::of_device);
      if (instead != VK_SUCCESS) return instead;
      std::shared_lock submits(driver.submitting_, std::defer_lock);
      if constexpr (std::is_same_v<Pfn, PFN_vkQueueSubmit>) {
        submits.lock();
        if (driver.is_lost(std::get<0>(std::tie(arguments...)))) return VK_ERROR_DEVICE_LOST;
      }
      const VkResult result = pass(driver, arguments...);
      if (result == VK_SUCCESS && makes(Tag::name)) driver.made(Tag::name);
      if (result == VK_SUCCESS) remember(driver, arguments...);
      return result;
    } else {
      driver.arrive(Tag::name, false, false);
      if constexpr (std::is_void_v<R>)
        if (ends_something(arguments...)) driver.ended(Tag::name);
      if constexpr (std::is_same_v<Pfn, PFN_vkGetDeviceQueue>) {
        pass(driver, arguments...);
        return remember(driver, arguments...);
      }
      return pass(driver, arguments...);
    }
  }

  static R pass(Driver& driver, A... arguments) {
    using Function = std::function<R(Pfn, A...)>;
    Function function;
    {
      const std::lock_guard lock(driver.mutex_);
      if (const auto it = driver.replaced_.find(Tag::name); it != driver.replaced_.end())
        function = std::any_cast<Function>(it->second);
    }
    return function ? function(real, arguments...) : real(arguments...);
  }

  static void remember(Driver& driver, A... arguments) {
    if constexpr (std::is_same_v<Pfn, PFN_vkCreateDevice>) {
      const std::lock_guard lock(driver.mutex_);
      driver.device_ = *std::get<3>(std::tie(arguments...));
      driver.lost_ = false;
      driver.lost_devices_.erase(driver.device_);  // an earlier one had the same handle
    }
    if constexpr (std::is_same_v<Pfn, PFN_vkGetDeviceQueue>) {
      const std::lock_guard lock(driver.mutex_);
      driver.queues_[*std::get<3>(std::tie(arguments...))] = std::get<0>(std::tie(arguments...));
    }
  }
};

#define WYE_TAG(list, is_of_device)                      \
  struct list {                                          \
    static constexpr std::string_view name = "vk" #list; \
    static constexpr bool of_device = is_of_device;      \
  };
#define WYE_HOST_TAG(name) WYE_TAG(name, false)
#define WYE_DEVICE_TAG(name) WYE_TAG(name, true)
namespace tag {
WYE_VULKAN_LOADER_FUNCTIONS(WYE_HOST_TAG)
WYE_VULKAN_INSTANCE_FUNCTIONS(WYE_HOST_TAG)
WYE_VULKAN_MESSAGE_FUNCTIONS(WYE_HOST_TAG)
WYE_VULKAN_MATRIX_FUNCTIONS(WYE_HOST_TAG)
WYE_VULKAN_DEVICE_FUNCTIONS(WYE_DEVICE_TAG)
WYE_VULKAN_SHARING_FUNCTIONS(WYE_DEVICE_TAG)
}  // namespace tag

namespace {

PFN_vkVoidFunction hook(std::string_view name, PFN_vkVoidFunction real) {
#define WYE_HOOK(function)                                 \
  if (name == "vk" #function) {                            \
    using H = Hook<tag::function, PFN_vk##function>;       \
    H::real = reinterpret_cast<PFN_vk##function>(real);    \
    return reinterpret_cast<PFN_vkVoidFunction>(&H::call); \
  }
  WYE_VULKAN_LOADER_FUNCTIONS(WYE_HOOK)
  WYE_VULKAN_INSTANCE_FUNCTIONS(WYE_HOOK)
  WYE_VULKAN_MESSAGE_FUNCTIONS(WYE_HOOK)
  WYE_VULKAN_MATRIX_FUNCTIONS(WYE_HOOK)
  WYE_VULKAN_DEVICE_FUNCTIONS(WYE_HOOK)
  WYE_VULKAN_SHARING_FUNCTIONS(WYE_HOOK)
  throw std::logic_error("no hook for " + std::string(name));
}

}  // namespace

Driver::Driver() {
  if (std::exchange(current, this)) throw std::logic_error("two drivers are watched at once");
}

Driver::~Driver() { current = nullptr; }

vulkan::Wrap Driver::wrap() {
  return [](std::string_view name, PFN_vkVoidFunction real) { return hook(name, real); };
}

void Driver::fail(std::string_view name, unsigned nth, VkResult result) {
  const std::lock_guard lock(mutex_);
  target_ = name;
  countdown_ = nth;
  result_ = result;
  failed_ = false;
}

void Driver::replace_with(std::string_view name, std::any function) {
  const std::lock_guard lock(mutex_);
  replaced_[std::string(name)] = std::move(function);
}

VkResult Driver::arrive(std::string_view name, bool can_fail, bool can_be_lost) {
  {
    const std::lock_guard lock(mutex_);
    ++calls_[std::string(name)];
    if (lost_ && can_be_lost) return VK_ERROR_DEVICE_LOST;
    if (!can_fail || countdown_ == 0 || name != target_ || --countdown_ != 0) return VK_SUCCESS;
    failed_ = true;
    if (result_ != VK_ERROR_DEVICE_LOST) return result_;
  }
  stop_device();
  return VK_ERROR_DEVICE_LOST;
}

/// A lost device does no more work. This device is not lost, so it completes its submissions first,
/// and gets no further one.
void Driver::stop_device() {
  const std::unique_lock none_submits(submitting_);
  if (device_ != VK_NULL_HANDLE) Hook<tag::DeviceWaitIdle, PFN_vkDeviceWaitIdle>::real(device_);
  const std::lock_guard lock(mutex_);
  lost_ = true;
  lost_devices_.insert(device_);
}

bool Driver::is_lost(VkQueue queue) const {
  const std::lock_guard lock(mutex_);
  const auto device = queues_.find(queue);
  return device != queues_.end() && lost_devices_.count(device->second) != 0;
}

void Driver::made(std::string_view name) {
  const std::lock_guard lock(mutex_);
  ++alive_[std::string(kind_of(name))];
}

void Driver::ended(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const auto kind = alive_.find(kind_of(name));
  if (kind == alive_.end() || kind->second == 0) {
    alive_[std::string(kind_of(name)) + " ended twice"] = 1;
    return;
  }
  --kind->second;
  if (name == "vkDestroyDevice") device_ = VK_NULL_HANDLE;
}

unsigned Driver::calls(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto it = calls_.find(name);
  return it == calls_.end() ? 0 : it->second;
}

std::map<std::string, int> Driver::alive() const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, int> some;
  for (const auto& [kind, count] : alive_)
    if (count != 0) some.emplace(kind, count);
  return some;
}

std::string Driver::alive_text() const {
  std::string text;
  for (const auto& [kind, count] : alive()) text += kind + " x " + std::to_string(count) + "; ";
  return text;
}

}  // namespace wye::test
