#pragma once
/// The Runtime: a ContextPool, a ShaderCache and a Scheduler in one object.
#include <wye/base/bytes.hpp>
#include <wye/base/result.hpp>
#include <wye/cache/shader_cache.hpp>
#include <wye/data/array.hpp>
#include <wye/pool/context_pool.hpp>
#include <wye/runtime/event.hpp>
#include <wye/runtime/options.hpp>
#include <wye/runtime/qualification.hpp>
#include <wye/scheduler/scheduler.hpp>

#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <vector>

namespace wye::inline v0 {

namespace runtime {
struct State;
}

/// The use of the machine by the process of a runtime.
struct ProcessMetrics {
  Bytes resident;             ///< memory, now; 0 if unknown
  Duration processor_time{};  ///< of all threads, since the process began
};

/// Counts of a runtime. Those of its scheduler, its cache, and its pool with the contexts are each read
/// at one moment.
struct Metrics {
  PoolMetrics pool;
  CacheMetrics cache;
  SchedulerMetrics jobs;
  std::vector<ContextInfo> contexts;
  std::vector<Monitoring> devices;   ///< of each open device
  std::vector<SiliconInfo> silicon;  ///< as `ContextPool::silicon`
  ProcessMetrics process;
  std::uint64_t events_dropped = 0;  ///< while there was a listener
  /// Returns the bytes that contexts and the cache hold.
  Bytes bytes() const { return pool.bytes + cache.bytes; }
  /// Returns the part of the slots of all processors that is in use, also by other processes, 0 to 1.
  WYE_API double slot_use() const noexcept;
};

/// Returns metrics in the text format of Prometheus (version 0.0.4), with a name, a unit and a help text
/// for each: docs/operating.md lists them. Labels are devices, backends, workload types, parts and
/// states. The text has at most 2,000 series: of the histograms, those of the 16 workload types with the
/// most jobs, and one of the others together.
WYE_API std::string prometheus_text(const Metrics& metrics);

/// Returns a sentence for each of these that holds, with its figures and a remedy; empty if all is well:
///   - more than half of the time of 16 jobs or more of a type, on a backend, is transfers;
///   - three kernels or more were built again after they had been evicted;
///   - builds at first use are more than a tenth of the time of jobs, and 50 ms;
///   - jobs wait while less than half of the slots are in use;
///   - a hundredth of the jobs or more have returned to their queues for want of memory;
///   - the only GPU is a driver that runs on the CPU.
WYE_API std::vector<std::string> advise(const Metrics& metrics);

/// Owns a ContextPool, a ShaderCache and a Scheduler. Copies share one runtime; a process may open
/// several. The runtime closes with its last copy: queued jobs complete as `closed`, and the
/// destructor waits for running jobs.
///
/// `RuntimeOptions::close_timeout` limits this wait. Work that is unfinished then is abandoned, as
/// by `close(deadline)`. By default the wait for running jobs and host functions has no limit,
/// because they use memory of the application; jobs have their time limits. Work of timed-out jobs
/// and ended leases that is still in flight on a GPU is abandoned after 10 s.
///
/// A child of `fork` cannot use objects that its parent opened. Every call on them returns `closed`
/// at once, and their destructors do nothing. The child opens a runtime of its own. CUDA is off in
/// a child if its parent has initialized CUDA. If the parent has Vulkan open, the child must end by
/// `_exit` or `exec`: Mesa's drivers join the parent's threads in `exit`, and crash there if the
/// child has started threads.
/// Threads: thread-safe.
class WYE_API Runtime {
 public:
  /// Opens every usable device with `RuntimeOptions::from_environment()`. The CPU is always usable.
  /// Errors: those of `from_environment` and of the other `open`.
  WYE_LOCAL static Result<Runtime> open() {
    return open_from_environment({header_version, sizeof(RuntimeOptions)});
  }
  /// Opens the usable devices of `options.pool.backends`. Reads no environment variable: kernels
  /// are stored only if `options.cache` names a directory or a store.
  /// Errors: invalid_argument (an option, named with its value and range), not_found (a backend
  ///         that this build does not have), unavailable (no usable device, with the reason for
  ///         each), io (the cache directory), unsupported (these headers are of another version
  ///         than the library, or of another layout).
  static Result<Runtime> open(RuntimeOptions options,
                              Headers headers = {header_version, sizeof(RuntimeOptions)});

  /// Queues a job; see `Scheduler::submit`.
  [[nodiscard]] Ticket submit(Job job, const JobOptions& options = {});
  /// Queues jobs in their order; see `Scheduler::submit`.
  [[nodiscard]] std::vector<Ticket> submit(std::span<Job> jobs, const JobOptions& options = {});
  /// Runs a job on this thread; see `Scheduler::run`.
  Result<Outcome> run(Job job, const JobOptions& options = {});

  /// Returns an array with a copy of `values`.
  template <class T>
  Array<T> array(std::span<const T> values) {
    return Array<T>(make_array(std::as_bytes(values), values.size(), element_type<T>(), sizeof(T)));
  }
  template <std::ranges::contiguous_range R>
  auto array(const R& values) {
    using T = std::ranges::range_value_t<R>;
    return array<T>(std::span<const T>(std::ranges::data(values), std::ranges::size(values)));
  }
  /// Returns an array of `count` elements that are zero.
  template <class T>
  Array<T> array(std::uint64_t count) {
    return Array<T>(make_array({}, count, element_type<T>(), sizeof(T)));
  }
  /// Returns an array over memory of the application, which must outlive the array. `read()` writes
  /// results back to this memory.
  template <class T>
  Array<T> borrow(std::span<T> memory) {
    return Array<T>(
        borrow_array(std::as_writable_bytes(memory), memory.size(), element_type<T>(), sizeof(T)));
  }

  /// Leases a context for work of `type` on `size` of data: as `ContextPool::lease`, but devices
  /// come in the order in which the scheduler prefers them for such work
  /// (`SchedulerOptions::preferences`).
  /// Errors: those of `ContextPool::lease`, naming the type.
  Result<Lease> lease(WorkloadType type, Bytes size = {}, const LeaseRequest& request = {},
                      SourceLocation where = SourceLocation::current());

  /// Returns the options that it was opened with. The log, clock and `close_timeout` of the runtime
  /// are those of each part without its own.
  const RuntimeOptions& options() const;
  /// Returns every adapter that was found; see `ContextPool::adapters`.
  const std::vector<AdapterInfo>& adapters() const;
  std::vector<Device> devices() const;
  /// Finds devices that have appeared since `open`, and opens lost ones again; see
  /// `ContextPool::rescan`. Jobs that are submitted later use them. Graphs that are compiled keep
  /// their devices.
  Result<std::vector<AdapterInfo>> rescan();
  /// Returns the report of each GPU that was checked (`RuntimeOptions::qualification`), also if it
  /// failed.
  std::vector<QualificationReport> qualifications() const;
  /// Cost: that of `Device::monitor` for each device.
  Metrics metrics() const;

  /// Calls `listener` with each event from now on: in the order of each thread's events, and an event
  /// that another one has caused after that one. A thread of the runtime calls it, which exists while
  /// there is a listener, one call at a time and under no lock. A listener may block: that delays other
  /// listeners and no job. Of the events of one thread that wait meanwhile, 16,384 are kept; the oldest
  /// beyond that are dropped and counted. It may call wye, also end the runtime. Its exceptions are
  /// dropped.
  /// Errors: unavailable (no thread can be started), out_of_memory, closed (in a child of `fork`).
  /// Cost:   nothing without a listener. With one, about 1 us for a job, on the thread that it ends on.
  [[nodiscard]] Result<EventSubscription> listen(EventListener listener);

  ContextPool& pool();
  ShaderCache& cache();
  Scheduler& scheduler();

  /// Completes queued jobs as `closed`, waits for running jobs, and refuses new ones. A second call
  /// has no effect.
  void close();
  /// Closes as `close()`, and waits until `deadline` for running jobs and for work in flight on
  /// devices. Abandons work that is unfinished then: memory that a thread or device may still use
  /// is not freed, and the destructor does not wait for it. See `Scheduler::close` and
  /// `ContextPool::close`.
  /// Errors: timed_out, naming each abandoned job with its tag and device, and each context with
  ///         work in flight.
  [[nodiscard]] Result<void> close(Deadline deadline);

 private:
  friend struct detail::Internals;
  explicit Runtime(std::shared_ptr<runtime::State> state) : state_(std::move(state)) {}
  static Result<Runtime> open_from_environment(Headers headers);
  std::shared_ptr<data::ArrayState> make_array(std::span<const std::byte> values, std::uint64_t count,
                                               ElementType element, std::uint32_t size);
  std::shared_ptr<data::ArrayState> borrow_array(std::span<std::byte> memory, std::uint64_t count,
                                                 ElementType element, std::uint32_t size);
  std::shared_ptr<runtime::State> state_;
};

}  // namespace wye
