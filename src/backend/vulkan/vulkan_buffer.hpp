#pragma once
/// Memory of one device.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "backend/vulkan/vulkan_device.hpp"
#include "backend/vulkan/vulkan_memory.hpp"
#include "backend/vulkan/vulkan_timeline.hpp"
#include "device/buffer.hpp"

namespace wye {
inline namespace v0 {
namespace vulkan {

/// A VkBuffer in a piece of a block. Where the host reaches its memory, uploads and downloads are plain
/// copies; this class knows when they may be.
class VulkanBuffer final : public device::BufferBase {
 public:
  /// Errors: out_of_memory, over_budget, device_lost.
  static Result<std::shared_ptr<VulkanBuffer>> create(std::shared_ptr<VulkanDevice> device,
                                                      const device::BufferRequest& request);
  /// A buffer over the host's own VkBuffer, or memory. The host's address of it is not known: copies are staged.
  /// Errors: invalid_argument, out_of_memory, device_lost.
  static Result<std::shared_ptr<VulkanBuffer>> adopt(std::shared_ptr<VulkanDevice> device,
                                                     const NativeMemory& memory, Release release);
  /// A buffer in memory that another driver opens, or, where `opened` is given, has made. Copies are staged: the host does
  /// not know what the other device does to it.
  /// Errors: unsupported, out_of_memory, device_lost; then `opened` is as it was.
  static Result<std::shared_ptr<VulkanBuffer>> share(std::shared_ptr<VulkanDevice> device, Bytes bytes,
                                                     device::SharedMemory* opened);
  /// What another driver opens it by.
  Result<device::SharedMemory> file();
  /// What every one of them is for.
  static constexpr VkBufferUsageFlags usage =
      VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
      VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
  ~VulkanBuffer() override;
  VulkanBuffer(std::shared_ptr<VulkanDevice> device, Bytes bytes, device::MemoryUse use,
               device::MemoryCharge charge = {});

  std::uint64_t address() const noexcept override { return address_; }
  std::byte* host() const noexcept override { return coherent_ ? mapped_ : nullptr; }
  VkBuffer handle() const noexcept { return handle_; }
  /// Where it lies.
  NativeMemory native() const;
  /// Where the host may copy to and from, or null: then copies are staged.
  std::byte* mapped() const noexcept { return mapped_; }
  /// Makes what the host wrote there visible to the device; the other way round. Nothing to do for coherent
  /// memory.
  Result<void> flush(std::uint64_t offset, std::uint64_t bytes) { return sync(offset, bytes, true); }
  Result<void> invalidate(std::uint64_t offset, std::uint64_t bytes) { return sync(offset, bytes, false); }

  /// Submissions that use this buffer and have not been retired by their lane. While there is one, the host
  /// must not write the memory itself.
  std::atomic<std::uint32_t> uses{0};
  /// The submission that counted itself last, so that it does so once.
  std::atomic<std::uint64_t> last_user{0};

  /// A download that the host will do by itself, straight out of this memory, once `timeline` has reached
  /// `value`.
  struct Read {
    const void* owner = nullptr;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    std::byte* target = nullptr;
    std::shared_ptr<VulkanTimeline> timeline;
    std::uint64_t value = 0;
  };
  void promise(Read read);
  /// Whether there are any: then nothing may write the memory before `settle`.
  bool has_promises() const noexcept { return promised_.load(std::memory_order_acquire) != 0; }
  /// Whether somebody has written it before its downloads were waited for: then staging lets both go on.
  bool is_hurried() const noexcept { return hurried_.load(std::memory_order_relaxed); }
  /// Does those of `owner`, whose value has been reached; those that were done meanwhile stay done.
  Result<void> keep(const void* owner);
  /// Forgets those of `owner`; their targets are not written any more when this returns.
  void drop(const void* owner) noexcept;
  /// Waits for and does all of them, whoever's they are: for who is about to write the memory.
  Result<void> settle();

 private:
  Result<void> bind();
  Result<void> make();
  Result<void> use(const NativeMemory& memory);
  Result<void> bind_shared(device::SharedMemory* opened);
  void ask_address();
  Error not_made(VkResult result, const char* api);
  Result<void> sync(std::uint64_t offset, std::uint64_t bytes, bool to_device);
  Result<void> do_reads(const void* owner);
  VulkanDevice& vulkan() const noexcept { return static_cast<VulkanDevice&>(*device()); }

  VkBuffer handle_ = VK_NULL_HANDLE;
  MemoryRange memory_;            // without a block where the memory is the host's
  NativeMemory hosts_;            // what the host brought
  std::list<MemoryBlock> alone_;  // of one that is shared
  bool is_shared_ = false;
  bool is_dedicated_ = false;
  Release release_;
  std::uint64_t address_ = 0;
  std::byte* mapped_ = nullptr;
  bool coherent_ = true;
  device::MemoryUse use_;
  std::mutex reads_mutex_;  // held during the copies too: who wants it wants them done
  std::vector<Read> reads_;
  std::atomic<std::size_t> promised_{0};
  std::atomic<bool> hurried_{false};
};

}  // namespace vulkan
}  // namespace v0
}  // namespace wye
