#pragma once
/// Buffers in the memory of one device.
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

namespace wye::inline v0::vulkan {

/// A VkBuffer in a range of a memory block. If its memory is mapped, the host uploads and downloads
/// in place. This class tracks when it may.
class VulkanBuffer final : public device::BufferBase {
 public:
  /// Errors: out_of_memory, over_budget, device_lost.
  static Result<std::shared_ptr<VulkanBuffer>> create(std::shared_ptr<VulkanDevice> device,
                                                      const device::BufferRequest& request);
  /// Adopts a VkBuffer or memory of the application. Copies are staged, because its host address is
  /// not known.
  /// Errors: invalid_argument, out_of_memory, device_lost.
  static Result<std::shared_ptr<VulkanBuffer>> adopt(std::shared_ptr<VulkanDevice> device,
                                                     const NativeMemory& memory, Release release);
  /// Creates a buffer in memory that another driver opens, or opens `opened`, which another driver
  /// has created. Copies are staged, because the host cannot track accesses of the other device.
  /// Errors: unsupported, out_of_memory, device_lost; `opened` is then unchanged.
  static Result<std::shared_ptr<VulkanBuffer>> share(std::shared_ptr<VulkanDevice> device, Bytes bytes,
                                                     device::SharedMemory* opened);
  /// Returns the file by which another driver opens the memory.
  Result<device::SharedMemory> file();
  /// The usage of all buffers.
  static constexpr VkBufferUsageFlags usage =
      VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
      VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
  ~VulkanBuffer() override;
  VulkanBuffer(std::shared_ptr<VulkanDevice> device, Bytes bytes, device::MemoryUse use,
               device::MemoryCharge charge = {});

  std::uint64_t address() const noexcept override { return address_; }
  std::byte* host() const noexcept override { return coherent_ ? mapped_ : nullptr; }
  bool is_to_move() const noexcept override { return vulkan().heap().is_emptied(memory_.block); }
  VkBuffer handle() const noexcept { return handle_; }
  /// Returns its handles and its location in memory.
  NativeMemory native() const;
  /// Returns the mapped memory; null if copies are staged.
  std::byte* mapped() const noexcept { return mapped_; }
  /// Makes writes of the host visible to the device (`flush`), or the reverse (`invalidate`). Does
  /// nothing for coherent memory.
  Result<void> flush(std::uint64_t offset, std::uint64_t bytes) { return sync(offset, bytes, true); }
  Result<void> invalidate(std::uint64_t offset, std::uint64_t bytes) { return sync(offset, bytes, false); }

  /// The number of submissions that use this buffer and are not retired. While it is not 0, the
  /// host must not write the memory.
  std::atomic<std::uint32_t> uses{0};
  /// The last submission in `uses`. Each submission counts once.
  std::atomic<std::uint64_t> last_user{0};

  /// A download that the host performs in place once `timeline` has reached `value`.
  struct Read {
    const void* owner = nullptr;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    std::byte* target = nullptr;
    std::shared_ptr<VulkanTimeline> timeline;
    std::uint64_t value = 0;
  };
  void add_read(Read read);
  /// Returns whether reads are pending. Nothing may then write the memory before
  /// `complete_all_reads`.
  bool has_pending_reads() const noexcept { return pending_reads_.load(std::memory_order_acquire) != 0; }
  /// Returns whether the buffer was ever written while reads were pending. Later downloads are then
  /// staged, so that writes need not wait.
  bool prefers_staging() const noexcept { return prefers_staging_.load(std::memory_order_relaxed); }
  /// Performs the pending reads of `owner`, whose value has been reached.
  Result<void> complete_reads(const void* owner);
  /// Discards the pending reads of `owner`. Their targets are not written after this returns.
  void discard_reads(const void* owner) noexcept;
  /// Waits for all pending reads and performs them. Called before a write.
  Result<void> complete_all_reads();

 private:
  Result<void> bind(bool only_spare);
  Result<void> create_handle();
  /// Overwrites new memory with zeros.
  Result<void> clear();
  /// Clears memory that another driver uses, too, and waits for it.
  Result<void> clear_now();
  Result<void> use(const NativeMemory& memory);
  Result<void> bind_shared(device::SharedMemory* opened);
  void query_address();
  Error creation_error(VkResult result, const char* api);
  Result<void> sync(std::uint64_t offset, std::uint64_t bytes, bool to_device);
  Result<void> do_reads(const void* owner);
  VulkanDevice& vulkan() const noexcept { return static_cast<VulkanDevice&>(*device()); }

  VkBuffer handle_ = VK_NULL_HANDLE;
  MemoryRange memory_;                // without a block if the memory is adopted
  NativeMemory adopted_;              // memory of the application
  std::list<MemoryBlock> dedicated_;  // the block of a shared buffer
  bool is_shared_ = false;
  bool is_dedicated_ = false;
  Release release_;
  std::uint64_t address_ = 0;
  std::byte* mapped_ = nullptr;
  bool coherent_ = true;
  device::MemoryUse use_;
  VulkanClearing::Fill cleared_;
  std::mutex reads_mutex_;  // held during the copies too: its users wait for them anyway
  std::vector<Read> reads_;
  std::atomic<std::size_t> pending_reads_{0};
  std::atomic<bool> prefers_staging_{false};
};

}  // namespace wye::vulkan
