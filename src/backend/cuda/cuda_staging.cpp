#include "backend/cuda/cuda_staging.hpp"

#include <algorithm>
#include <bit>

#include "base/text.hpp"

namespace wye {
inline namespace v0 {
namespace cuda {

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
  const auto idle = std::find_if(idle_.begin(), idle_.end(),
                                 [&](const PinnedChunk& chunk) { return chunk.bytes >= bytes; });
  use.chunks.reserve(use.chunks.size() + 1);
  PinnedChunk chunk;
  if (idle != idle_.end()) {
    chunk = *idle;
    idle_.erase(idle);
    idle_bytes_ -= chunk.bytes;
  } else {
    idle_.reserve(chunks_ + 1);  // give_back() must not allocate
    chunk.bytes = std::bit_ceil(std::max(bytes, smallest_chunk));
    const CurrentContext current(device_);
    if (!current) return current.error();
    void* host = nullptr;
    if (const CUresult r = device_.cu.MemHostAlloc(&host, chunk.bytes, CU_MEMHOSTALLOC_PORTABLE);
        r != CUDA_SUCCESS)
      return device_
          .failed(r, "cuMemHostAlloc",
                  base::text("The driver cannot allocate {} of pinned memory for transfers of device '{}'.",
                             to_string(Bytes{chunk.bytes}), device_.info().id))
          .with_context("while taking staging memory");
    chunk.host = static_cast<std::byte*>(host);
    ++chunks_;
  }
  use.chunks.push_back(chunk);
  busy_bytes_ += chunk.bytes;
  use.held += chunk.bytes;
  use.used = bytes;
  return chunk.host;
}

void Staging::give_back(StagingUse& use) noexcept {
  for (const PinnedChunk& chunk : use.chunks) {
    busy_bytes_ -= chunk.bytes;
    if (idle_bytes_ + chunk.bytes > budget) {
      --chunks_;
      release(chunk);
      continue;
    }
    idle_bytes_ += chunk.bytes;
    const auto place = std::find_if(idle_.begin(), idle_.end(),
                                    [&](const PinnedChunk& other) { return other.bytes >= chunk.bytes; });
    idle_.insert(place, chunk);
  }
  use.chunks.clear();
  use.used = use.held = 0;
}

void Staging::release(const PinnedChunk& chunk) noexcept {
  if (device_.lost()) return;  // the device may still write to it; the release of the context frees it
  const CurrentContext current(device_);
  if (current) device_.lose_if_fatal(device_.cu.MemFreeHost(chunk.host), "cuMemFreeHost");
}

Staging::~Staging() {
  for (const PinnedChunk& chunk : idle_) release(chunk);
}

}  // namespace cuda
}  // namespace v0
}  // namespace wye
