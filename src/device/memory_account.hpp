#pragma once
/// How much memory an owner holds, and how memory is given back.
#include <wye/base/bytes.hpp>
#include <wye/base/result.hpp>

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

namespace wye {
inline namespace v0 {
namespace device {

class DeviceBase;

/// Bytes held by one owner (a lane, say), against a limit.
/// Threads: thread-safe.
class MemoryAccount {
 public:
  MemoryAccount(std::string owner, Bytes limit) : owner_(std::move(owner)), limit_(limit.count) {}
  /// Errors: over_budget, naming the owner, what it holds and its limit.
  Result<void> reserve(Bytes bytes);
  void release(Bytes bytes) noexcept { held_.fetch_sub(bytes.count, std::memory_order_relaxed); }
  Bytes held() const noexcept { return Bytes{held_.load(std::memory_order_relaxed)}; }
  Bytes limit() const noexcept { return Bytes{limit_}; }

 private:
  std::string owner_;
  std::uint64_t limit_;
  std::atomic<std::uint64_t> held_{0};
};

/// Something that can give memory of a device back.
/// Threads: thread-safe.
class Reclaimable {
 public:
  virtual ~Reclaimable() = default;
  /// Frees up to `wanted` bytes of what is not in use and says how many it freed.
  virtual Bytes reclaim(const DeviceBase& device, Bytes wanted) = 0;
};

}  // namespace device
}  // namespace v0
}  // namespace wye
