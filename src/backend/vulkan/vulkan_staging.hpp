#pragma once
/// Memory of the host that copies go through where the host does not reach the device's own, or must not yet.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "backend/vulkan/vulkan_buffer.hpp"

namespace wye {
inline namespace v0 {
namespace vulkan {

/// Pieces of staging memory that one submission uses until it is done.
struct StagingUse {
  std::vector<std::shared_ptr<VulkanBuffer>> chunks;
  std::uint64_t used = 0;  ///< bytes of the last chunk
  std::uint64_t held = 0;  ///< bytes of all chunks
};

/// Bytes [offset, offset + bytes) of `buffer`.
struct StagingPiece {
  VulkanBuffer* buffer = nullptr;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::byte* host() const { return buffer->host() + offset; }
};

/// The staging memory of one lane: chunks that go round between its submissions.
/// Threads: one thread at a time.
class Staging {
 public:
  static constexpr std::uint64_t smallest_chunk = 64u << 10;

  explicit Staging(VulkanDevice& device) : device_(device) {}

  /// Takes up to `wanted` bytes, all of them where `whole`; an upload larger than a chunk comes in several
  /// pieces.
  /// Errors: out_of_memory, device_lost.
  Result<StagingPiece> take(StagingUse& use, std::uint64_t wanted, std::uint64_t alignment, bool whole);
  /// Whether `use` is so large a part of the budget that it should go ahead of what is still to come.
  bool is_enough(const StagingUse& use) const;
  /// Whether another such part would go over the budget.
  bool is_full() const;
  /// Takes back what a submission used; what is more than the budget is freed.
  void give(StagingUse& use) noexcept;

 private:
  std::uint64_t chunk_for(std::uint64_t wanted, bool whole) const;
  std::uint64_t part() const;
  VulkanDevice& device_;
  std::vector<std::shared_ptr<VulkanBuffer>> idle_;
  std::size_t chunks_ = 0;  // idle and busy
  std::uint64_t idle_bytes_ = 0;
  std::uint64_t busy_bytes_ = 0;
};

}  // namespace vulkan
}  // namespace v0
}  // namespace wye
