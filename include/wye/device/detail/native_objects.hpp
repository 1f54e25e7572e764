#pragma once
/// Memory and points of drivers as numbers, for the headers of `interop`.
#include <wye/base/bytes.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

namespace wye::inline v0 {

namespace detail {

/// Memory of a driver.
struct NativeMemory {
  std::string backend;
  std::uint64_t buffer = 0;   ///< Vulkan: VkBuffer
  std::uint64_t memory = 0;   ///< Vulkan: VkDeviceMemory
  std::uint64_t offset = 0;   ///< of the first byte in `memory`
  std::uint64_t address = 0;  ///< the address in kernels; CUDA: CUdeviceptr
  Bytes bytes = {};
};

/// A point of a driver's semaphore, event or stream.
struct NativePoint {
  std::string backend;
  std::uint64_t object = 0;  ///< Vulkan: VkSemaphore, a timeline; CUDA: CUevent
  std::uint64_t value = 0;
  std::uint64_t queue = 0;  ///< CUDA, instead of `object`: CUstream, with all work submitted to it so far
};

/// Converts a handle of a driver to a number and back. Some handles are pointers on some machines.
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

}  // namespace detail

}  // namespace wye
