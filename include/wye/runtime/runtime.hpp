#pragma once
/// Everything put together: devices, kernels, jobs, data.
#include <wye/base/result.hpp>
#include <wye/cache/shader_cache.hpp>
#include <wye/data/array.hpp>
#include <wye/pool/context_pool.hpp>
#include <wye/runtime/metrics.hpp>
#include <wye/runtime/options.hpp>
#include <wye/scheduler/scheduler.hpp>

#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <vector>

namespace wye {
inline namespace v0 {

namespace runtime {
struct State;
}

/// Owns a ContextPool, a ShaderCache and a Scheduler. Copies share one runtime; several may live in one
/// process. It closes with its last copy: queued jobs settle as `closed`, running ones are waited for.
///
/// `RuntimeOptions::close_timeout` limits how long the destruction of the last copy takes: what is not over then is abandoned,
/// as by `close(deadline)`. By default, running jobs and host functions have no limit here, because they use memory of the
/// host's; jobs have their time limits. Work that a GPU has in flight after that, of jobs that timed out and leases that ended,
/// is abandoned after 10 s.
///
/// A child of `fork` can use nothing that its parent opened: every call on a runtime, or on an object that came from it, answers
/// `closed` at once, and destroying such an object does nothing. The child opens a runtime of its own. CUDA is off in a child if
/// its parent has initialized CUDA. Mesa's drivers join their threads in `exit`, and crash there in a child that has started
/// threads: if the parent has Vulkan open, such a child ends by `_exit` or `exec`.
/// Threads: thread-safe.
class WYE_API Runtime {
 public:
  /// Opens every usable device; the CPU always is one.
  /// Errors: invalid_argument (an option or environment variable, named with its value and range), not_found
  /// (a backend
  ///         this build does not have), unavailable (no device of the backends asked for, with the reasons),
  ///         unsupported (these headers are of another version than the library).
  static Result<Runtime> open(RuntimeOptions options = {}, Version header = header_version);

  /// Queues a job; see `Scheduler::submit`.
  [[nodiscard]] Ticket submit(Job job, const JobOptions& options = {});
  /// Runs a job on this thread; see `Scheduler::run`.
  Result<Outcome> run(Job job, const JobOptions& options = {});

  /// An array with a copy of `values`.
  template <class T>
  Array<T> array(std::span<const T> values) {
    return Array<T>(make_array(std::as_bytes(values), values.size(), element_type<T>(), sizeof(T)));
  }
  template <std::ranges::contiguous_range R>
  auto array(const R& values) {
    using T = std::ranges::range_value_t<R>;
    return array<T>(std::span<const T>(std::ranges::data(values), std::ranges::size(values)));
  }
  /// An array of `count` elements whose contents are not set.
  template <class T>
  Array<T> array(std::uint64_t count) {
    return Array<T>(make_array({}, count, element_type<T>(), sizeof(T)));
  }
  /// An array over the host's own memory, which must outlive it; it holds the result after `read()`.
  template <class T>
  Array<T> borrow(std::span<T> memory) {
    return Array<T>(
        borrow_array(std::as_writable_bytes(memory), memory.size(), element_type<T>(), sizeof(T)));
  }

  /// Everything that was looked for, with the reason where it cannot be used.
  const std::vector<AdapterInfo>& adapters() const;
  const std::vector<Device>& devices() const;
  /// Cost: that of `Device::monitor` for each device.
  Metrics metrics() const;

  ContextPool& pool();
  ShaderCache& cache();
  Scheduler& scheduler();

  /// Settles every job and refuses new ones. Without effect the second time.
  void close();
  /// Does the same, and waits until `deadline` for running jobs and for the work that devices have in flight. What is not over
  /// then is abandoned; nothing that a thread or a device may still use is freed. The destruction of the last copy does not
  /// wait for it either. See `Scheduler::close` and `ContextPool::close`.
  /// Errors: timed_out, naming each abandoned job with its tag and device, and each context that has work in flight.
  [[nodiscard]] Result<void> close(Deadline deadline);

 private:
  explicit Runtime(std::shared_ptr<runtime::State> state) : state_(std::move(state)) {}
  std::shared_ptr<data::ArrayState> make_array(std::span<const std::byte> values, std::uint64_t count,
                                               ElementType element, std::uint32_t size);
  std::shared_ptr<data::ArrayState> borrow_array(std::span<std::byte> memory, std::uint64_t count,
                                                 ElementType element, std::uint32_t size);
  std::shared_ptr<runtime::State> state_;
};

}  // namespace v0
}  // namespace wye
