#pragma once
/// Objects of a driver, as numbers: how they pass between wye and a host that uses the same driver. The headers of
/// `interop` give them their types.
#include <wye/base/bytes.hpp>

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>

namespace wye {
inline namespace v0 {

/// A lock that two sides have agreed on, whatever its type; it must outlive this. Empty: there is nothing to lock.
/// Threads: as the lock behind it.
class NativeLock {
 public:
  NativeLock() = default;
  template <class L>
  requires(!std::same_as<std::remove_cv_t<L>, NativeLock> && requires(L & l) { l.lock(), l.unlock(); })
      NativeLock(L& lockable)
      : lockable_(&lockable),
        lock_([](void* l) { static_cast<L*>(l)->lock(); }),
        unlock_([](void* l) { static_cast<L*>(l)->unlock(); }) {}
  void lock() const {
    if (lockable_) lock_(lockable_);
  }
  void unlock() const {
    if (lockable_) unlock_(lockable_);
  }

 private:
  void* lockable_ = nullptr;
  void (*lock_)(void*) = nullptr;
  void (*unlock_)(void*) = nullptr;
};

/// A device of a driver. Made by `interop::vulkan_device`, and the like.
struct NativeDevice {
  std::string backend;         ///< "vulkan"
  std::uint64_t instance = 0;  ///< Vulkan: VkInstance
  std::uint64_t physical = 0;  ///< Vulkan: VkPhysicalDevice; CUDA: CUdevice
  std::uint64_t device = 0;    ///< Vulkan: VkDevice; CUDA: CUcontext
  std::uint64_t queue = 0;     ///< Vulkan: VkQueue
  std::uint32_t queue_family = 0;
  NativeLock lock = {};              ///< held by whoever uses the queue
  const void* created = nullptr;     ///< Vulkan: the VkDeviceCreateInfo it was made with
  void (*entry_points)() = nullptr;  ///< Vulkan: vkGetInstanceProcAddr; null: the loader that wye opens
};

/// Memory of a driver.
struct NativeMemory {
  std::string backend;
  std::uint64_t buffer = 0;   ///< Vulkan: VkBuffer
  std::uint64_t memory = 0;   ///< Vulkan: VkDeviceMemory
  std::uint64_t offset = 0;   ///< of the first byte in `memory`
  std::uint64_t address = 0;  ///< what kernels know it by; CUDA: CUdeviceptr
  Bytes bytes = {};
};

/// A point that a driver's object reaches.
struct NativePoint {
  std::string backend;
  std::uint64_t object = 0;  ///< Vulkan: VkSemaphore, a timeline; CUDA: CUevent
  std::uint64_t value = 0;
  std::uint64_t queue = 0;  ///< CUDA, instead of `object`: CUstream, all that it was given so far
};

/// Called once, when memory that was brought is used no more: on whatever thread lets go of it last.
using Release = std::function<void()>;

/// A handle of a driver as a number, and back: some are pointers on some machines only.
template <class Handle>
std::uint64_t number_of(Handle handle) noexcept {
  if constexpr (std::is_pointer_v<Handle>)
    return reinterpret_cast<std::uintptr_t>(handle);
  else
    return static_cast<std::uint64_t>(handle);
}
template <class Handle>
Handle handle_of(std::uint64_t number) noexcept {
  if constexpr (std::is_pointer_v<Handle>)
    return reinterpret_cast<Handle>(static_cast<std::uintptr_t>(number));
  else
    return static_cast<Handle>(number);
}

}  // namespace v0
}  // namespace wye
