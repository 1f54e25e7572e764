#pragma once
/// A function of the host that gives a device work through its vendor's own interface, type-erased.
#include <wye/base/extent.hpp>
#include <wye/base/result.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string_view>

namespace wye {
inline namespace v0 {

/// What native functions keep with a lane from one call to the next: a library's handle, say. Each keeps its own by an
/// address that is its own. It ends with the lane: when all its work has ended and before what NativeLane::handle is, with
/// its context current.
/// Threads: one thread at a time: it is touched during a call only.
using NativeKeep = std::map<const void*, std::shared_ptr<void>>;

/// Where a native function puts its work. What the handle is, its backend says: on "cuda" the CUstream of the
/// lane, whose context is current during the call.
struct NativeLane {
  std::string_view backend;  ///< "cuda"
  std::string_view device;   ///< "cuda:0"
  void* handle = nullptr;
  NativeKeep* keep = nullptr;  ///< null where nothing can be kept
};

/// Says whether native functions can be used on a device, or why not: a library of a vendor's may be there and yet make nothing
/// on this one. It is given a lane without a handle that keeps nothing; on "cuda" the context of the device is current. It leaves
/// nothing behind, and may throw.
using NativeProbe = Result<void> (*)(const NativeLane& lane);

/// Elements in the memory of a device: not to be looked at by the host.
template <class T>
struct DeviceSpan {
  T* data = nullptr;       ///< the address the device knows them by
  std::uint64_t size = 0;  ///< elements
};

/// One argument of a native function.
struct NativeArgument {
  std::uint64_t address = 0;         ///< of memory: where it is on the device
  std::uint64_t count = 0;           ///< of memory: elements
  std::span<const std::byte> value;  ///< of anything else: its bytes
};

namespace device {

/// Code that enqueues. It may throw; whoever calls it catches.
/// Threads: `enqueue` is called on the thread that submits, on several at once for different lanes.
class NativeCode {
 public:
  virtual ~NativeCode() = default;
  /// Enqueues the work of `grid` items on `lane`, and does not wait for it. `arguments` are in the order of
  /// the schema.
  virtual Result<void> enqueue(const NativeLane& lane, Extent3 grid,
                               std::span<const NativeArgument> arguments) const = 0;
  /// What a device is asked by before it takes this code; null where it need not be asked.
  virtual NativeProbe probe() const noexcept { return nullptr; }
};

}  // namespace device
}  // namespace v0
}  // namespace wye
