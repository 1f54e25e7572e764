#include "backend/cpu/cpu_memory.hpp"

#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/host_info.hpp"

#if defined(__SANITIZE_ADDRESS__)
#define WYE_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WYE_ADDRESS_SANITIZER 1
#endif
#endif
#ifdef WYE_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(memory, bytes) (void)0
#define ASAN_UNPOISON_MEMORY_REGION(memory, bytes) (void)0
#endif

namespace wye::inline v0::cpu {
namespace {

/// Whether AddressSanitizer reports accesses to a block.
void set_accessible([[maybe_unused]] HostBlock block, bool accessible) noexcept {
  if (accessible)
    ASAN_UNPOISON_MEMORY_REGION(block.memory, block.bytes);
  else
    ASAN_POISON_MEMORY_REGION(block.memory, block.bytes);
}

void return_to_host(HostBlock block) noexcept {
  set_accessible(block, true);
  std::free(block.allocation);
}

}  // namespace

CpuMemory::CpuMemory(Bytes limit) : limit_(limit.count) { blocks_.reserve(most_kept); }

HostBlock CpuMemory::allocate(std::uint64_t bytes, bool is_overwritten) noexcept {
  if (const HostBlock kept = take(bytes); kept.memory) {
    if (!is_overwritten) std::memset(kept.memory, 0, bytes);
    return kept;
  }
  const auto attempt = [&]() -> HostBlock {
    if (bytes > ~std::uint64_t{0} - HostBlock::alignment) return {};
    // calloc does not touch pages that are new from the system.
    void* const allocation = std::calloc(bytes + HostBlock::alignment, 1);
    void* memory = allocation;
    std::size_t room = bytes + HostBlock::alignment;
    if (allocation) std::align(HostBlock::alignment, bytes, memory, room);
    return {static_cast<std::byte*>(memory), bytes, allocation};
  };
  HostBlock block = attempt();
  if (!block.memory) {
    release();
    block = attempt();
  }
  if (block.memory) base::prefer_huge_pages(block.memory, Bytes{bytes});
  return block;
}

HostBlock CpuMemory::remove_locked(std::vector<HostBlock>::iterator block) noexcept {
  const HostBlock removed = *block;
  blocks_.erase(block);
  kept_ -= removed.bytes;
  return removed;
}

/// Returns the smallest kept block of at least `bytes` that is at most an eighth larger.
HostBlock CpuMemory::take(std::uint64_t bytes) noexcept {
  if (bytes < smallest_kept) return {};
  const std::lock_guard lock(mutex_);
  auto best = blocks_.end();
  for (auto block = blocks_.begin(); block != blocks_.end(); ++block)
    if (block->bytes >= bytes && block->bytes - bytes <= bytes / 8 &&
        (best == blocks_.end() || block->bytes <= best->bytes))
      best = block;
  if (best == blocks_.end()) return {};
  const HostBlock found = remove_locked(best);
  set_accessible({found.memory, bytes}, true);
  return found;
}

void CpuMemory::free(HostBlock block) noexcept {
  if (block.bytes < smallest_kept || block.bytes > limit_) return return_to_host(block);
  base::offer_pages(block.memory, Bytes{block.bytes});
  set_accessible(block, false);
  for (;;) {
    HostBlock oldest;
    {
      const std::lock_guard lock(mutex_);
      if (kept_ + block.bytes <= limit_ && blocks_.size() < most_kept) {
        blocks_.push_back(block);
        kept_ += block.bytes;
        return;
      }
      oldest = remove_locked(blocks_.begin());
    }
    return_to_host(oldest);
  }
}

Bytes CpuMemory::kept() const noexcept {
  const std::lock_guard lock(mutex_);
  return Bytes{kept_};
}

void CpuMemory::release() noexcept {
  for (;;) {
    HostBlock oldest;
    {
      const std::lock_guard lock(mutex_);
      if (blocks_.empty()) return;
      oldest = remove_locked(blocks_.begin());
    }
    return_to_host(oldest);
  }
}

}  // namespace wye::cpu
