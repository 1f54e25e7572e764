#pragma once
/// Pinned memory for transfers.
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

/// The pinned memory of one batch, until the batch completes.
struct StagingUse {
  std::vector<PinnedChunk> chunks;
  std::uint64_t used = 0;  ///< bytes of the last chunk
  std::uint64_t held = 0;  ///< bytes of all chunks
};

/// The pinned memory of one lane: chunks that its batches reuse. Pageable memory would not do. The driver
/// blocks during downloads into it, and does not report when it has read an upload from it.
/// Threads: one thread at a time.
class Staging {
 public:
  static constexpr std::uint64_t smallest_chunk = 64u << 10;
  /// The largest copy. Longer transfers take several.
  static constexpr std::uint64_t largest_chunk = 4u << 20;
  /// The limit of uploads in flight, and of idle memory. Downloads have no limit.
  static constexpr std::uint64_t budget = 32u << 20;

  explicit Staging(CudaDevice& device) : device_(device) {}
  Staging(const Staging&) = delete;
  ~Staging();

  /// Returns `bytes` of pinned memory, at most `largest_chunk`.
  /// Errors: out_of_memory, device_lost.
  Result<std::byte*> take(StagingUse& use, std::uint64_t bytes);
  /// Returns whether `use` is large enough to submit it as a part of its own.
  bool is_enough(const StagingUse& use) const { return use.held >= budget / 4; }
  /// Returns whether another such part would exceed the budget.
  bool is_full() const { return busy_bytes_ + budget / 4 > budget; }
  /// Takes back the memory of a batch. Frees memory over the budget.
  void give_back(StagingUse& use) noexcept;

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
