#include "backend/vulkan/vulkan_staging.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace wye::inline v0::vulkan {

std::uint64_t Staging::chunk_for(std::uint64_t wanted, bool whole) const {
  const std::uint64_t largest = std::max(device_.options().staging_chunk.count, smallest_chunk);
  const std::uint64_t rounded = wanted >= largest ? largest : std::bit_ceil(std::max(wanted, smallest_chunk));
  return whole ? std::max(rounded, wanted) : std::min(rounded, largest);
}

Result<StagingPiece> Staging::allocate(StagingUse& use, std::uint64_t wanted, std::uint64_t alignment,
                                       bool whole) {
  if (!use.chunks.empty()) {
    VulkanBuffer& last = *use.chunks.back();
    const std::uint64_t size = last.bytes().count;
    const std::uint64_t offset = std::min(size, (use.used + alignment - 1) & ~(alignment - 1));
    const std::uint64_t room = size - offset;
    if (room >= wanted || (!whole && room >= smallest_chunk)) {
      const std::uint64_t bytes = std::min(room, wanted);
      use.used = offset + bytes;
      return StagingPiece{&last, offset, bytes};
    }
  }
  const std::uint64_t size = chunk_for(wanted, whole);
  const auto idle = std::find_if(idle_.begin(), idle_.end(),
                                 [&](const auto& chunk) { return chunk->bytes().count >= size; });
  if (idle != idle_.end()) {
    use.chunks.push_back(*idle);
    idle_bytes_ -= (*idle)->bytes().count;
    idle_.erase(idle);
  } else {
    auto made = VulkanBuffer::create(
        device_.self(), {.bytes = Bytes{size}, .use = device::MemoryUse::transfer, .account = nullptr});
    if (!made) return std::move(made).error().with_context("while allocating staging memory");
    use.chunks.push_back(*std::move(made));
    idle_.reserve(++chunks_);  // `release` must not allocate
  }
  VulkanBuffer& chunk = *use.chunks.back();
  busy_bytes_ += chunk.bytes().count;
  const std::uint64_t bytes = std::min(chunk.bytes().count, wanted);
  use.used = bytes;
  use.held += chunk.bytes().count;
  return StagingPiece{&chunk, 0, bytes};
}

bool Staging::is_enough(const StagingUse& use) const { return use.held >= part(); }

bool Staging::is_full() const { return busy_bytes_ + part() > device_.options().staging_budget.count; }

/// Returns the size of a part: the device copies one part while the host fills the next.
std::uint64_t Staging::part() const { return device_.options().staging_budget.count / 4; }

void Staging::release(StagingUse& use) noexcept {
  for (auto& chunk : use.chunks) {
    const std::uint64_t bytes = chunk->bytes().count;
    busy_bytes_ -= bytes;
    if (idle_bytes_ + bytes > device_.options().staging_budget.count) {
      --chunks_;
      continue;
    }
    idle_bytes_ += bytes;
    // Smallest chunk first: small pieces leave large chunks free.
    const auto place = std::find_if(idle_.begin(), idle_.end(),
                                    [&](const auto& other) { return other->bytes().count >= bytes; });
    idle_.insert(place, std::move(chunk));
  }
  use.chunks.clear();
  use.used = use.held = 0;
}

}  // namespace wye::vulkan
