#pragma once
/// Memory pools of the driver, which buffers are allocated from.
#include <wye/base/bytes.hpp>
#include <wye/base/result.hpp>

#include <cuda.h>

#include <memory>
#include <mutex>
#include <vector>

#include "device/memory_account.hpp"

namespace wye {
inline namespace v0 {
namespace cuda {

class CudaDevice;

/// A memory pool of the driver. Its buffers keep it alive.
class CudaPool {
 public:
  /// Creates a pool that keeps up to `kept` unused bytes. The context is current.
  static Result<std::shared_ptr<CudaPool>> create(CudaDevice& device, Bytes kept);
  CudaPool(const CudaPool&) = delete;
  ~CudaPool();
  CUmemoryPool handle() const noexcept { return handle_; }
  /// Gives another device access to the memory of this pool, present and future.
  CUresult allow_access(CUdevice peer) const;

 private:
  explicit CudaPool(CudaDevice& device) : device_(device) {}
  CudaDevice& device_;
  CUmemoryPool handle_ = nullptr;
};

/// The pools of a device: one for each account, and one for memory without an account. So no lane uses memory
/// that another lane keeps.
/// Threads: thread-safe. The lock is not held while the driver is called.
class CudaPools {
 public:
  explicit CudaPools(CudaDevice& device) : device_(device) {}
  /// Returns the pool of an account, which may be null. Removes the pools of expired accounts. The context is
  /// current.
  Result<std::shared_ptr<CudaPool>> of(const std::shared_ptr<device::MemoryAccount>& account);
  /// Gives another device access to all pools, present and future.
  CUresult allow_access(CUdevice peer);
  /// Returns the unused memory of all pools to the driver. The context is current.
  CUresult trim();
  /// Returns the amount of unused memory that the pools keep. The context is current.
  Bytes idle();
  /// Removes all pools. No buffer exists any more.
  void end() noexcept { pools_.clear(); }

 private:
  struct Entry {
    std::weak_ptr<device::MemoryAccount> account;
    std::shared_ptr<CudaPool> pool;
    bool is_of(const std::shared_ptr<device::MemoryAccount>& other) const noexcept {
      return !account.owner_before(other) && !other.owner_before(account);
    }
  };
  std::vector<std::shared_ptr<CudaPool>> all();
  CudaDevice& device_;
  std::mutex mutex_;
  std::vector<Entry> pools_;
  std::vector<CUdevice> peers_;  // with access to all pools
};

}  // namespace cuda
}  // namespace v0
}  // namespace wye
