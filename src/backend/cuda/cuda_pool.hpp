#pragma once
/// The memory pool of the driver, which the buffers of a device are allocated from.
#include <wye/base/bytes.hpp>
#include <wye/base/result.hpp>

#include <cuda.h>

namespace wye::inline v0::cuda {

class CudaDevice;

/// The memory pool of one device. An account limits its buffers; memory that is freed serves every
/// account. All allocations and frees are in the order of one stream, so that no lane waits for
/// another.
/// Threads: thread-safe between `create` and `destroy`.
class CudaPool {
 public:
  explicit CudaPool(CudaDevice& device) : device_(device) {}
  CudaPool(const CudaPool&) = delete;
  /// Gives another device access to the memory of this pool, present and future.
  CUresult allow_access(CUdevice peer) const;
  // The following functions require the context to be current.

  /// Creates the pool, which keeps up to `kept` unused bytes.
  Result<void> create(Bytes kept);
  /// Destroys the pool. No buffer exists any more.
  void destroy() noexcept;
  CUmemoryPool handle() const noexcept { return handle_; }
  /// Returns the unused memory to the driver.
  CUresult trim() const;
  /// Returns the memory that the pool has taken from the driver, in buffers or unused.
  Bytes reserved() const;
  /// Returns the unused part of it.
  Bytes idle() const;

 private:
  Bytes attribute(CUmemPool_attribute which) const;
  CudaDevice& device_;
  CUmemoryPool handle_ = nullptr;
};

}  // namespace wye::cuda
