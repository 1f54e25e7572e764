#pragma once
/// Pools of the driver that buffers come from.
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

/// A pool of the driver; ends with the last of its buffers.
class CudaPool {
 public:
  /// The context is current.
  static Result<std::shared_ptr<CudaPool>> create(CudaDevice& device, Bytes kept);
  CudaPool(const CudaPool&) = delete;
  ~CudaPool();
  CUmemoryPool handle() const noexcept { return handle_; }
  /// Lets lanes of another device read and write what is in it, and what will be.
  CUresult let_in(CUdevice peer) const;

 private:
  explicit CudaPool(CudaDevice& device) : device_(device) {}
  CudaDevice& device_;
  CUmemoryPool handle_ = nullptr;
};

/// The pools of a device: one for each account, which is the memory of a lane, and one for what is charged to none. So what one
/// lane keeps no other can take, and what it may take at all is what its account allows.
/// Threads: thread-safe. The lock is not held while the driver is called.
class CudaPools {
 public:
  explicit CudaPools(CudaDevice& device) : device_(device) {}
  /// The pool of an account, which may be null. Those of accounts that ended are given up. The context is current.
  Result<std::shared_ptr<CudaPool>> of(const std::shared_ptr<device::MemoryAccount>& account);
  /// Lets another device into all pools, and those to come.
  CUresult let_in(CUdevice peer);
  /// Gives back what pools keep and nobody uses. The context is current.
  CUresult trim();
  /// What pools keep and nobody uses. The context is current.
  Bytes idle();
  /// Lets go of all: buffers have ended.
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
  std::vector<CUdevice> peers_;  // that are let in
};

}  // namespace cuda
}  // namespace v0
}  // namespace wye
