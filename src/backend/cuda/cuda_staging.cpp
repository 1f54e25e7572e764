#include "backend/cuda/cuda_staging.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "backend/cuda/cuda_device.hpp"
#include "base/text.hpp"

namespace wye::inline v0::cuda {

Result<std::byte*> Staging::take(StagingUse& use, std::uint64_t bytes) {
  constexpr std::uint64_t alignment = 256;
  if (!use.chunks.empty()) {
    const PinnedChunk& last = use.chunks.back();
    const std::uint64_t offset = (use.used + alignment - 1) & ~(alignment - 1);
    if (offset <= last.bytes && last.bytes - offset >= bytes) {
      use.used = offset + bytes;
      return last.host + offset;
    }
  }
  use.chunks.reserve(use.chunks.size() + 1);
  PinnedChunk chunk;
  {
    const std::lock_guard lock(mutex_);
    const auto idle =
        std::find_if(idle_.begin(), idle_.end(), [&](const PinnedChunk& one) { return one.bytes >= bytes; });
    if (idle != idle_.end()) {
      chunk = *idle;
      idle_.erase(idle);
    } else {
      idle_.reserve(++chunks_);  // give_back() must not allocate
    }
  }
  if (!chunk.host) {
    auto made = allocate(std::bit_ceil(std::max(bytes, smallest_chunk)));
    if (!made) {
      const std::lock_guard lock(mutex_);
      --chunks_;
      return std::move(made).error();
    }
    chunk = *made;
  }
  use.chunks.push_back(chunk);
  use.held += chunk.bytes;
  use.used = bytes;
  const std::lock_guard lock(mutex_);
  busy_bytes_ += chunk.bytes;
  return chunk.host;
}

Result<PinnedChunk> Staging::allocate(std::uint64_t bytes) {
  const CurrentContext current(device_);
  if (!current) return current.error();
  void* host = nullptr;
  const auto attempt = [&] { return device_.cu.MemHostAlloc(&host, bytes, CU_MEMHOSTALLOC_PORTABLE); };
  CUresult r = attempt();
  if (r == CUDA_ERROR_OUT_OF_MEMORY && trim() != Bytes{}) r = attempt();
  if (r == CUDA_SUCCESS) return PinnedChunk{static_cast<std::byte*>(host), bytes};
  return device_
      .failed(r, "cuMemHostAlloc",
              base::text("The driver cannot allocate {} of pinned memory for transfers of device '{}'.",
                         to_string(Bytes{bytes}), device_.info().id))
      .with_context("while taking staging memory");
}

bool Staging::is_full() {
  const std::lock_guard lock(mutex_);
  return busy_bytes_ + part > limit_;
}

void Staging::give_back(StagingUse& use) noexcept {
  const std::lock_guard lock(mutex_);
  for (const PinnedChunk& chunk : use.chunks) {
    busy_bytes_ -= chunk.bytes;
    const auto place = std::find_if(idle_.begin(), idle_.end(),
                                    [&](const PinnedChunk& other) { return other.bytes >= chunk.bytes; });
    idle_.insert(place, chunk);
  }
  use.chunks.clear();
  use.used = use.held = 0;
}

Bytes Staging::trim() noexcept {
  if (device_.lost()) return {};  // the device may still write to it; the release of the context frees it
  const CurrentContext current(device_);
  if (!current) return {};
  Bytes freed;
  for (;;) {
    PinnedChunk chunk;
    {
      const std::lock_guard lock(mutex_);
      if (idle_.empty()) return freed;
      chunk = idle_.back();
      idle_.pop_back();
      --chunks_;
    }
    device_.lose_if_fatal(device_.cu.MemFreeHost(chunk.host), "cuMemFreeHost");
    freed += Bytes{chunk.bytes};
  }
}

}  // namespace wye::cuda
