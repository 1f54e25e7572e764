#pragma once
/// Pinned memory for transfers.
#include <wye/base/bytes.hpp>
#include <wye/base/result.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace wye::inline v0::cuda {

class CudaDevice;

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

/// The pinned memory of a device: chunks that the batches of its lanes reuse. Pageable memory would
/// not do. The driver blocks during downloads into it, and does not report when it has read an
/// upload from it. While lanes work, chunks are allocated and not freed, because cuMemFreeHost may
/// wait for the kernels of all lanes.
/// Threads: thread-safe. The lock is not held while the driver is called.
class Staging {
 public:
  static constexpr std::uint64_t smallest_chunk = 64u << 10;
  /// The largest copy. Longer transfers take several.
  static constexpr std::uint64_t largest_chunk = 4u << 20;
  /// The memory of one part of a submission. Parts transfer while the host copies others.
  static constexpr std::uint64_t part = 2 * largest_chunk;

  explicit Staging(CudaDevice& device) : device_(device) {}
  Staging(const Staging&) = delete;
  /// Sets the limit of the memory in use. A lane waits for its own transfers before it takes more,
  /// and takes one part above the limit if it has none. Call it before lanes exist.
  void set_limit(Bytes limit) noexcept { limit_ = limit.count; }

  /// Returns `bytes` of pinned memory, at most `largest_chunk`.
  /// Errors: out_of_memory, device_lost.
  Result<std::byte*> take(StagingUse& use, std::uint64_t bytes);
  /// Returns whether `use` is large enough to submit it as a part of its own.
  static bool is_enough(const StagingUse& use) { return use.held >= part; }
  /// Returns whether another part would exceed the limit.
  bool is_full();
  /// Takes back the memory of a batch.
  void give_back(StagingUse& use) noexcept;
  /// Frees the chunks that no batch uses. Returns their bytes.
  Bytes trim() noexcept;

 private:
  Result<PinnedChunk> allocate(std::uint64_t bytes);
  CudaDevice& device_;
  std::uint64_t limit_ = 0;
  std::mutex mutex_;
  std::vector<PinnedChunk> idle_;  // smallest first
  std::size_t chunks_ = 0;         // idle and busy
  std::uint64_t busy_bytes_ = 0;
};

}  // namespace wye::cuda
