#pragma once
// Buffers as wye creates them, mapped, with an address and filled with zeros, by other allocators on
// the device of wye.
#include <wye/device/device.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace wye_bench {

class VulkanBuffers {
 public:
  virtual ~VulkanBuffers() = default;
  // Creates a buffer in place `number`.
  virtual bool create(std::uint32_t number, std::uint64_t bytes) = 0;
  virtual void destroy(std::uint32_t number) = 0;
  // Of the driver's memory that it has allocated, in bytes.
  virtual std::uint64_t held() const = 0;
};

// By Vulkan Memory Allocator. Null where its header is not installed, or something failed.
std::unique_ptr<VulkanBuffers> open_vma(const wye::Device& device, std::size_t buffers);
// With an allocation of the driver for each buffer.
std::unique_ptr<VulkanBuffers> open_one_allocation_each(const wye::Device& device, std::size_t buffers);

}  // namespace wye_bench
