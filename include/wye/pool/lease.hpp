#pragma once
/// A Lease: exclusive use of one context.
#include <wye/base/clock.hpp>
#include <wye/base/detail/id.hpp>
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

namespace wye::inline v0 {

namespace pool {
struct LeaseState;
}

/// Holds one context (an ordered lane of a device). The destructor returns the context to its pool.
/// It drops commands that were not submitted, and downloads that no successful `wait` followed are
/// not written any more. Commands execute in submission order. Calls return nothing: the first
/// failure sticks, and `wait` returns it.
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
  /// Returns the id of this lease. The next lease of the context has another one.
  Id lease_id() const noexcept;

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
  /// Copies the beginning of `source` into `target`. `target` is written when `wait` has returned
  /// success.
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
  /// Runs `executable`, which was built from the kernel of `call`, with the arguments and the grid
  /// of `call`.
  template <detail::CallLike C>
  void dispatch(const Executable& executable, const C& call) {
    dispatch(executable, call.arguments(), call.items());
  }

  /// Submits the recorded commands and returns. `wait` submits them too.
  void submit();
  /// Submits the recorded commands, and then all of `sequence`.
  void submit(Sequence& sequence);
  /// Submits, and returns the point at which all submitted commands are complete.
  SyncPoint point();
  /// Delays later commands until `point`, of the same device, is reached. The work that reaches a
  /// point of the application must have been submitted to the driver before: until the point is
  /// reached, the device's queue may block.
  void wait_for(const SyncPoint& point);
  /// Submits, and signals `point` of the application (`interop`) when all submitted commands are
  /// complete.
  void signal(const SyncPoint& point);
  /// Submits, and waits until all commands are complete.
  /// Errors: timed_out (wait again); or the first failure on this context since the lease began.
  Result<void> wait(Deadline deadline = {});

 private:
  friend struct detail::Internals;
  friend struct pool::LeaseState;
  explicit Lease(pool::LeaseState* state) noexcept : state_(state) {}
  Result<Buffer> allocate(std::uint64_t count, ElementType element, std::uint32_t element_size);
  void upload_bytes(std::span<const std::byte> source, const Buffer& target, Bytes offset);
  void download_bytes(const Buffer& source, std::span<std::byte> target, Bytes offset);
  /// Returns the context to its pool.
  struct WYE_API End {
    void operator()(pool::LeaseState* state) const noexcept;
  };
  std::unique_ptr<pool::LeaseState, End> state_;  // a part of the context: a lease allocates nothing
};

}  // namespace wye
