#pragma once
/// A Lease: exclusive use of one context.
#include <wye/base/clock.hpp>
#include <wye/base/result.hpp>
#include <wye/device/device.hpp>
#include <wye/device/executable.hpp>
#include <wye/device/sequence.hpp>

#include <concepts>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <utility>

namespace wye {
inline namespace v0 {

namespace pool {
struct LeaseState;
}

/// Holds one context, an ordered lane of a device, and returns it to its pool on destruction. Commands execute in
/// submission order. Commands return nothing: the lease keeps the first failure, and `wait` returns it.
/// Threads: one thread at a time; may move between threads.
class WYE_API Lease {
 public:
  Lease(Lease&& other) noexcept;
  Lease& operator=(Lease&& other) noexcept;
  Lease(const Lease&) = delete;  // a context has one user
  ~Lease();

  const Device& device() const;
  /// Returns the name of the context in `ContextPool::contexts`: "vulkan:0#1".
  const std::string& id() const;

  /// Allocates `count` elements within the memory limit of the context.
  /// Errors: over_budget, and those of `Device::buffer`.
  template <class T>
  Result<Buffer> buffer(std::uint64_t count) {
    return allocate(count, element_type<T>(), sizeof(T));
  }

  /// Copies `source` to `target` at `offset`. The caller may change `source` after the call.
  template <std::ranges::contiguous_range R>
  void upload(const R& source, const Buffer& target, Bytes offset = {}) {
    upload_bytes(std::as_bytes(std::span(std::ranges::data(source), std::ranges::size(source))), target,
                 offset);
  }
  /// Copies `source` from `offset` to `target`, which is complete once `wait` has returned success.
  template <std::ranges::contiguous_range R>
  void download(const Buffer& source, R&& target, Bytes offset = {}) {
    download_bytes(source,
                   std::as_writable_bytes(std::span(std::ranges::data(target), std::ranges::size(target))),
                   offset);
  }
  /// Copies `bytes` from the beginning of `source` to the beginning of `target`.
  void copy(const Buffer& source, const Buffer& target, Bytes bytes);
  /// Fills `target` with a repeated 4-byte pattern.
  void fill(const Buffer& target, std::uint32_t pattern);
  /// Runs `executable` over the element count of its first written operand.
  void dispatch(const Executable& executable, const Arguments& arguments);
  /// Runs `executable` over `items`.
  void dispatch(const Executable& executable, const Arguments& arguments, Extent3 items);
  /// Runs `executable`, which was built from the kernel of `call`, with the arguments and the grid of `call`.
  template <detail::CallLike C>
  void dispatch(const Executable& executable, const C& call) {
    dispatch(executable, call.arguments(), call.items());
  }

  /// Submits the recorded commands to the device and returns. `wait` does this too.
  void submit();
  /// Submits the recorded commands, then `sequence`.
  void submit(Sequence& sequence);
  /// Submits, and returns the point at which all commands so far have completed.
  SyncPoint point();
  /// Makes later commands wait for `point`, which is of the same device. If work of the host reaches `point`, the host must
  /// have submitted this work to the driver before: the queue of the device may block until then.
  void wait_for(const SyncPoint& point);
  /// Submits, and signals `point`, which the host created (`interop`), when all commands so far have completed.
  void signal(const SyncPoint& point);
  /// Submits, and waits until all commands so far have completed.
  /// Errors: timed_out (the caller may wait again); the first failure on this context since the lease began.
  Result<void> wait(Deadline deadline = {});

 private:
  friend struct detail::Internals;
  friend struct pool::LeaseState;
  explicit Lease(std::unique_ptr<pool::LeaseState> state);
  Result<Buffer> allocate(std::uint64_t count, ElementType element, std::uint32_t element_size);
  void upload_bytes(std::span<const std::byte> source, const Buffer& target, Bytes offset);
  void download_bytes(const Buffer& source, std::span<std::byte> target, Bytes offset);
  std::unique_ptr<pool::LeaseState> state_;
};

}  // namespace v0
}  // namespace wye
