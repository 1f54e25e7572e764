#pragma once
/// Pinned memory of the host that copies go through.
#include <wye/base/result.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/cuda/cuda_device.hpp"

namespace wye {
inline namespace v0 {
namespace cuda {

/// One allocation of pinned memory.
struct PinnedChunk {
  std::byte* host = nullptr;
  std::uint64_t bytes = 0;
};

/// Pinned memory that one batch uses until it is done.
struct StagingUse {
  std::vector<PinnedChunk> chunks;
  std::uint64_t used = 0;  ///< bytes of the last chunk
  std::uint64_t held = 0;  ///< bytes of all chunks
};

/// The pinned memory of one lane: chunks that go round between its batches. Pageable memory will not do: the driver blocks
/// for downloads into it, and does not say when it has read uploads from it.
/// Threads: one thread at a time.
class Staging {
 public:
  static constexpr std::uint64_t smallest_chunk = 64u << 10;
  /// No copy is of more than this at once.
  static constexpr std::uint64_t largest_chunk = 4u << 20;
  /// What uploads in flight take, and what is kept of memory that is idle. Downloads take what they need.
  static constexpr std::uint64_t budget = 32u << 20;

  explicit Staging(CudaDevice& device) : device_(device) {}
  Staging(const Staging&) = delete;
  ~Staging();

  /// `bytes` of pinned memory, at most `largest_chunk`.
  /// Errors: out_of_memory, device_lost.
  Result<std::byte*> take(StagingUse& use, std::uint64_t bytes);
  /// Whether `use` is so large a part of the budget that it should go ahead of what is still to come.
  bool is_enough(const StagingUse& use) const { return use.held >= budget / 4; }
  /// Whether another such part would go over the budget.
  bool is_full() const { return busy_bytes_ + budget / 4 > budget; }
  /// Takes back what a batch used; what is more than the budget is freed.
  void give(StagingUse& use) noexcept;

 private:
  void release(const PinnedChunk& chunk) noexcept;
  CudaDevice& device_;
  std::vector<PinnedChunk> idle_;  // smallest first
  std::size_t chunks_ = 0;         // idle and busy
  std::uint64_t idle_bytes_ = 0;
  std::uint64_t busy_bytes_ = 0;
};

}  // namespace cuda
}  // namespace v0
}  // namespace wye
