#pragma once
/// Objects of drivers that pass between wye and a host. The headers of `interop` give them their
/// types.
#include <wye/base/result.hpp>

#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

namespace wye::inline v0 {

/// Refers to a lock of any type, which wye and the host share and which must outlive this. Empty:
/// locks nothing.
/// Threads: as the lock itself.
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

/// A device of a driver, for `PoolOptions::adopt`. Made by `interop::vulkan_device` and the like.
struct NativeDevice {
  std::string backend;         ///< "vulkan"
  std::uint64_t instance = 0;  ///< Vulkan: VkInstance
  std::uint64_t physical = 0;  ///< Vulkan: VkPhysicalDevice; CUDA: CUdevice
  std::uint64_t device = 0;    ///< Vulkan: VkDevice; CUDA: CUcontext
  std::uint64_t queue = 0;     ///< Vulkan: VkQueue
  std::uint32_t queue_family = 0;
  NativeLock lock = {};              ///< held by each thread that uses the queue
  const void* created = nullptr;     ///< Vulkan: the VkDeviceCreateInfo of the device
  void (*entry_points)() = nullptr;  ///< Vulkan: vkGetInstanceProcAddr; null: the loader that wye opens
};

/// Called once, after the last use of memory of the host, on the thread that releases it last.
using Release = std::function<void()>;

/// Objects that native functions keep with a lane between calls, such as the handle of a library.
/// The key is an address that belongs to the function. The objects are destroyed with the lane:
/// after all its work, before its `NativeLane::handle`, and with its context current.
/// Threads: one thread at a time; used during calls only.
using NativeKeep = std::map<const void*, std::shared_ptr<void>>;

/// The lane that a native function submits work to. On "cuda", `handle` is the CUstream of the
/// lane, whose context is current during the call.
struct NativeLane {
  std::string_view backend;  ///< "cuda"
  std::string_view device;   ///< "cuda:0"
  void* handle = nullptr;
  NativeKeep* keep = nullptr;  ///< null if nothing can be kept
};

/// Tests whether a native function can be used on a device, for example because a vendor's library
/// may not support it. Gets a lane without a handle and without `keep`; on "cuda" the context of
/// the device is current. It may throw, and must undo its effects.
using NativeProbe = Result<void> (*)(const NativeLane& lane);

/// Elements in the memory of a device. The host must not dereference `data`.
template <class T>
struct DeviceSpan {
  T* data = nullptr;       ///< the device address
  std::uint64_t size = 0;  ///< elements
};

}  // namespace wye
