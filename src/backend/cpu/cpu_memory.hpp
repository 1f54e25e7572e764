#pragma once
/// Memory of the host for buffers, kept between them.
#include <wye/base/bytes.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace wye::inline v0::cpu {

/// One allocation. The system provides each page at its first access.
struct HostBlock {
  std::byte* memory = nullptr;
  std::uint64_t bytes = 0;
  void* allocation = nullptr;  ///< begins at most `HostBlock::alignment` bytes before `memory`
  /// The size of a cache line, and enough for every vector register.
  static constexpr std::size_t alignment = 64;
};

/// Allocates blocks, and keeps large freed ones: the first access to new pages can take as long as
/// a job's work on them. The system may take the pages of kept blocks whenever it needs memory.
/// Threads: thread-safe.
class CpuMemory {
 public:
  /// The allocator of the host keeps smaller blocks well enough.
  static constexpr std::uint64_t smallest_kept = 1u << 20;
  static constexpr std::size_t most_kept = 64;

  explicit CpuMemory(Bytes limit);
  ~CpuMemory() { release(); }
  CpuMemory(const CpuMemory&) = delete;
  CpuMemory& operator=(const CpuMemory&) = delete;

  /// Returns a block of at least `bytes`, aligned for every vector register. Its memory is null if
  /// the host has none. The first `bytes` are zero, unless `is_overwritten`. New pages are zero
  /// already, so that only kept blocks and small ones are cleared.
  HostBlock allocate(std::uint64_t bytes, bool is_overwritten) noexcept;
  /// Frees a block, or keeps it in the place of those that have been kept longest.
  void free(HostBlock block) noexcept;
  /// Returns the kept bytes.
  Bytes kept() const noexcept;
  /// Frees all kept blocks.
  void release() noexcept;

 private:
  HostBlock take(std::uint64_t bytes) noexcept;
  HostBlock remove_locked(std::vector<HostBlock>::iterator block) noexcept;
  const std::uint64_t limit_;
  mutable std::mutex mutex_;
  std::vector<HostBlock> blocks_;  // kept longest first; its capacity never changes
  std::uint64_t kept_ = 0;
};

}  // namespace wye::cpu
