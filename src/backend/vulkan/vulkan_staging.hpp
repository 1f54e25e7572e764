#pragma once
/// Host memory for copies to and from buffers that the host cannot access, or must not access yet.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "backend/vulkan/vulkan_buffer.hpp"

namespace wye::inline v0::vulkan {

/// The staging memory that one submission uses until it completes.
struct StagingUse {
  std::vector<std::shared_ptr<VulkanBuffer>> chunks;
  std::uint64_t used = 0;  ///< bytes of the last chunk
  std::uint64_t held = 0;  ///< bytes of all chunks
};

/// The bytes [offset, offset + bytes) of `buffer`.
struct StagingPiece {
  VulkanBuffer* buffer = nullptr;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::byte* host() const { return buffer->host() + offset; }
};

/// The staging memory of one lane. Its submissions reuse the chunks.
/// Threads: one thread at a time.
class Staging {
 public:
  static constexpr std::uint64_t smallest_chunk = 64u << 10;

  explicit Staging(VulkanDevice& device) : device_(device) {}

  /// Allocates up to `wanted` bytes, or all of them if `whole`. Uploads larger than a chunk need
  /// several pieces.
  /// Errors: out_of_memory, device_lost.
  Result<StagingPiece> allocate(StagingUse& use, std::uint64_t wanted, std::uint64_t alignment, bool whole);
  /// Returns whether `use` has reached the size at which a part of a submission is launched.
  bool is_enough(const StagingUse& use) const;
  /// Returns whether another such part would exceed the budget.
  bool is_full() const;
  /// Releases the chunks of a submission. Frees chunks above the budget.
  void release(StagingUse& use) noexcept;

 private:
  std::uint64_t chunk_for(std::uint64_t wanted, bool whole) const;
  std::uint64_t part() const;
  VulkanDevice& device_;
  std::vector<std::shared_ptr<VulkanBuffer>> idle_;
  std::size_t chunks_ = 0;  // idle and busy
  std::uint64_t idle_bytes_ = 0;
  std::uint64_t busy_bytes_ = 0;
};

}  // namespace wye::vulkan
