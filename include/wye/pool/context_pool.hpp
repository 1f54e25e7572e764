#pragma once
/// The ContextPool: execution lanes on shared devices, leased one user at a time.
#include <wye/base/bytes.hpp>
#include <wye/base/clock.hpp>
#include <wye/base/detail/id.hpp>
#include <wye/base/histogram.hpp>
#include <wye/base/log.hpp>
#include <wye/base/result.hpp>
#include <wye/device/adapter.hpp>
#include <wye/device/device.hpp>
#include <wye/device/native.hpp>
#include <wye/pool/lease.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wye::inline v0 {

namespace pool {
class Pool;
}

/// Determines the number of slots of a processor. A slot is the right to a lease of one of its
/// devices. All backends and all pools of the process share the slots.
enum class SlotRule : std::uint8_t {
  /// From the device: the processors of a CPU; for a GPU an eighth of its multiprocessors, or its
  /// queues if these are more. At least 4, and at least the `lanes_per_device` of each pool.
  device,
  host_share,  ///< the processors of the host, divided by the number of processors that the pool uses; at least 1
  /// From 1 to `slots`, or to the number of `device`. Falls by one if jobs take more than 1.5 times
  /// their shortest run time. Rises by one if they do not, and a request has waited for a slot.
  load,
};

/// Determines which pools share the slots and the budget of a processor.
enum class Share : std::uint8_t {
  process,  ///< those of this process
  /// Those of all processes of this user on this machine that share with `machine`. The smallest
  /// `slots` of a process limits the slots of all together; if none is set, the largest default.
  /// The smallest `silicon_memory` limits their memory together. Requests are served in their order
  /// over all processes, by the clocks of their pools. If a process does not take a free slot for
  /// 250 ms, it is passed over. When a process ends in any way, its slots and memory are free
  /// again: within 10 ms for a new request, within 250 ms for a request that waits. A wait for
  /// slots of other processes is never refused as endless.
  machine,
};

/// A switch of contexts: a submission of a thread to another context than that of its previous
/// submission, of the same pool.
struct ContextSwitch {
  std::string_view from, to;  ///< contexts: "vulkan:0#1"
  std::string_view device;    ///< of `to`
  std::string_view backend;   ///< of `to`
  bool changes_device = false;
  bool changes_backend = false;
  std::uint64_t thread = 0;  ///< number of the thread in the process, from 1
  /// From the end of the thread's last call of `from` until the device accepted the submission to
  /// `to`. The application's own work between them counts, and the creation of a lane if it was the
  /// first lease of `to`.
  Duration duration{};
};

/// Receives switches. The rule of all functions that receive events: a thread of the runtime calls
/// them, one call at a time, in the order of the events, under no lock. It exists while there is
/// such a function. Functions of a pool or cache without a runtime have a thread for each of the two.
/// A function may block: that delays other such functions and no work. Of the events that wait
/// meanwhile, the oldest beyond 16,384 of one thread are dropped. It may call wye, also end the
/// runtime. Its exceptions are dropped. Views are valid during the call; names of more than 127
/// bytes are cut. The end of the last handle of the runtime waits until earlier events are
/// received, unless it is within such a call.
using SwitchSink = std::function<void(const ContextSwitch&)>;

/// How much of the memory of a processor is in use.
struct MemoryPressure {
  enum class Level : std::uint8_t {
    none,
    some,  ///< 80 % of a limit; or processes of the machine waited for memory for 10 % of the last 10 s (CPU)
    high,  ///< 95 % of a limit
  };
  std::string_view silicon;  ///< its name
  std::string_view limited;  ///< "silicon" or "runtime": the limit that is nearer
  Bytes held;                ///< of that limit
  Bytes limit;
  Level level = Level::none;
};

/// Receives changes of `MemoryPressure::level`, by the rule of `SwitchSink`: the allocation or lease
/// that caused one does not wait for the call. A fall is noticed by a later allocation or lease.
using PressureSink = std::function<void(const MemoryPressure&)>;

/// Limits the allocations of the leases and jobs with one tag on a processor, in one pool. Arrays
/// do not count.
struct TagBudget {
  std::string tag;
  Bytes memory;
};

/// Options of `ContextPool::open`. Only `RuntimeOptions::from_environment` reads the variables.
///
/// | option           | default       | environment       | unit, range                                     |
/// |------------------|---------------|-------------------|-------------------------------------------------|
/// | backends         | all           | WYE_BACKENDS      | names that this build has, preferred first      |
/// | devices          | all           | WYE_DEVICES       | ids or UUIDs of adapters                        |
/// | lanes_per_device | 2             | WYE_LANES         | contexts, 1 to 256                              |
/// | contexts_ahead   | 0             | -                 | contexts, 0 to lanes_per_device                 |
/// | idle_trim        | 60 s          | -                 | more than 0; Duration::max(): never             |
/// | slots            | 0             | WYE_SLOTS         | leases per processor, 1 to 4096; 0: `slot_rule` |
/// | slot_rule        | device        | -                 | device, host_share, load                        |
/// | silicon_memory   | 0             | WYE_SILICON_MEMORY | bytes, at least 4 KiB; 0: all                  |
/// | pool_memory      | 0             | WYE_POOL_MEMORY   | bytes, at least 4 KiB; 0: all                   |
/// | tag_memory       | none          | -                 | see TagBudget; at least 4 KiB                   |
/// | lane_memory      | 512 MiB       | WYE_LANE_MEMORY   | bytes, or with KiB, MiB, GiB                    |
/// | kept_memory      | 512 MiB       | WYE_KEPT_MEMORY   | bytes, or with KiB, MiB, GiB                    |
/// | pinned_memory    | 64 MiB        | WYE_PINNED_MEMORY | bytes, or with KiB, MiB, GiB                    |
/// | poll_limit       | 300 us        | WYE_POLL_LIMIT    | seconds, or with ms, s; at most 1 s; 0: never   |
/// | lease_timeout    | 5 s           | WYE_LEASE_TIMEOUT | seconds, or with ms, s                          |
/// | aging            | 10 s          | -                 | more than 0; Duration::max(): never             |
/// | cpu_threads      | 0             | WYE_CPU_THREADS   | threads, with the caller; 0: one per processor  |
/// | isolation        | shared        | WYE_ISOLATION     | shared, partition, device                       |
/// | partition        | half          | WYE_PARTITION     | multiprocessors, or a share: 50%                |
/// | adopt            | none          | -                 | devices of the application (`interop`)          |
/// | validate_driver  | false         | WYE_VALIDATE      | 0, 1                                            |
/// | cuda_driver      | the system's  | WYE_CUDA_DRIVER   | path or name of the library of CUDA's driver    |
/// | log              | none          | -                 | see RuntimeOptions                              |
/// | on_switch        | none          | -                 | see SwitchSink                                  |
/// | on_pressure      | none          | -                 | see PressureSink                                |
/// | clock            | steady clock  | -                 |                                                 |
/// | close_timeout    | see below     | -                 | see RuntimeOptions                              |
/// | share            | process       | WYE_SHARE         | process, machine                                |
/// | share_folder     | see below     | WYE_SHARE_DIR     | a directory of this user                        |
/// | monitor_period   | 10 s          | -                 | more than 0; Duration::max(): never             |
struct PoolOptions {
  /// Backends to look for devices in, preferred first; a repeated name counts once. Empty: every
  /// backend of this build, in its order of preference.
  std::vector<std::string> backends = {};
  std::uint32_t lanes_per_device = 2;  ///< contexts per device, created when first needed
  std::uint32_t contexts_ahead = 0;  ///< contexts per device that `open` creates, and that `idle_trim` keeps
  /// Time after which the driver's objects of an idle context are freed. The pool has no thread: it
  /// checks when a context is leased.
  Duration idle_trim = std::chrono::seconds(60);
  /// Limits the leases of one processor at a time, over all backends and pools of this process; see
  /// also `share`. Further requests wait. The leases of one thread count as one, because it must
  /// not wait for itself. If pools have different numbers, the smallest holds while its pool is
  /// open.
  std::uint32_t slots = 0;
  SlotRule slot_rule = SlotRule::device;
  /// Limits the allocations of this process on one processor, over all backends and pools. If pools
  /// have different numbers, the smallest holds while its pool is open. Memory that other programs
  /// use, and the control group of this process, limit it too, if the driver and the system tell.
  Bytes silicon_memory = Bytes{0};
  Bytes pool_memory = Bytes{0};  ///< limits the allocations of this pool on one processor, with its arrays
  std::vector<TagBudget> tag_memory = {};
  Bytes lane_memory = Bytes{512ull << 20};  ///< limit of the allocations of one context
  /// Memory that a CUDA device or the CPU keeps for reuse by all its contexts. More makes
  /// allocation faster; less leaves more memory to other programs. The system takes that of the CPU
  /// when it needs it.
  Bytes kept_memory = Bytes{512ull << 20};
  Duration lease_timeout = std::chrono::seconds(5);  ///< of requests without a deadline
  /// Time after which a request that waits is as urgent as a new one of the next higher priority: a
  /// later request overtakes it only if it begins to wait within this time for each priority
  /// between them.
  Duration aging = std::chrono::seconds(10);
  std::uint32_t cpu_threads = 0;  ///< of the CPU's team; the calling thread counts
  /// With `partition`, devices that cannot be divided are not opened, and report this as their
  /// reason: Vulkan devices, and CUDA devices if the driver has no green contexts (12.5 or newer
  /// has them). The share of the CPU is `cpu_threads`. Adopted devices are never divided. With
  /// `device` the pool shares no driver's device with other pools or the application, so that their
  /// errors and limits do not reach it.
  Isolation isolation = Isolation::shared;
  Partition partition = {};              ///< with `Isolation::partition`; default: half of the device
  std::vector<NativeDevice> adopt = {};  ///< devices of the application, used instead of wye's own
  bool validate_driver = false;          ///< enables the driver's validation layers, which report to `log`
  std::string cuda_driver = {};          ///< the library to open as CUDA's driver; empty: the system's
  LogSink log = {};
  SwitchSink on_switch = {};  ///< then each call of a lane reads the clock
  PressureSink on_pressure = {};
  const Clock* clock = nullptr;  ///< null: the steady clock
  /// Limits how long the destructor of the pool waits for work in flight, which is then abandoned
  /// as by `close(deadline)`.
  /// Unset: 10 s for work of a GPU, no limit for host functions.
  std::optional<Duration> close_timeout = std::nullopt;
  /// With `machine`, each processor is shared from `open` on by all pools of this process, until
  /// its last device closes. It has one parked thread, and an entry in a small file of
  /// `share_folder`, up to 128 of them. Processors without a UUID, other than the CPU, are not
  /// shared. A damaged file, or a file or folder of another user, is an error of `open`.
  Share share = Share::process;
  /// The directory of the files of `Share::machine`, created with owner-only permissions. Its file
  /// system must be local.
  /// Empty: "/dev/shm/wye-1000" for user 1000.
  std::string share_folder = {};
  /// The monitor of a processor (`Device::monitor`) is read for memory errors and heat at most this
  /// often, by a thread that runs a job there; see DeviceHealth.
  Duration monitor_period = std::chrono::seconds(10);
  /// Pinned memory that uploads and downloads of a CUDA device share at a time. Above it a lane
  /// waits for its own transfers while it submits, and has 8 MiB in any case. It stays pinned until
  /// `trim`.
  Bytes pinned_memory = Bytes{64ull << 20};
  /// The longest time that a thread polls a CUDA device before it sleeps. It polls for so long only
  /// if the waits for the lane took no longer lately, otherwise for 30 us. Polling saves an
  /// interrupt; sleeping saves the processor.
  Duration poll_limit = std::chrono::microseconds(300);
  /// The adapters of `backends` to use; empty: all. A name is an id that the adapter has without
  /// this option ("vulkan:1"), or the UUID of a processor in the form of `to_string(Uuid)`, with or
  /// without "GPU-" or "MIG-" before it. A UUID names the adapters of all backends for that
  /// processor. The adapters are numbered from 0 in the order of their names, for each backend.
  /// Drivers of backends that no name can mean are not loaded. `adopt` adds to these devices.
  std::vector<std::string> devices = {};
};

/// Selects the context to lease.
struct LeaseRequest {
  std::string_view on = {};  ///< an adapter id ("vulkan:0") or a backend ("vulkan"); empty: any
  Features needs = {};
  std::optional<Deadline> deadline = std::nullopt;  ///< unset: the pool's `lease_timeout`
  Priority priority = Priority::normal;             ///< among the requests that wait
  /// Names the holder in `contexts`, in errors and in the log. Up to 31 characters are kept.
  std::string_view tag = {};
  StopToken stop = {};  ///< ends the wait; checked every 10 ms
};

/// One context, for display.
struct ContextInfo {
  std::string id;       ///< "vulkan:0#1"
  std::string device;   ///< "vulkan:0"
  std::string backend;  ///< "vulkan"
  bool active = false;  ///< leased
  std::string tag;      ///< of its lease
  /// The place of the call that leased it, "main.cpp:42"; empty if wye leased it for a job.
  std::string taken_at;
  Duration last_used{};       ///< time since its last lease began
  Bytes bytes;                ///< held by its buffers
  std::uint64_t kernels = 0;  ///< dispatches, and steps of sequences, so far
  /// Memory that the driver's pool for the device holds for all contexts, in buffers or unused.
  /// Zero if it has no pool: only CUDA has one.
  Bytes reserved{};
  Id context_id = {};  ///< unlike `id`, no context of another pool has it
  Id lease_id = {};    ///< `Lease::lease_id` of its last lease
};

/// A lease that uses a slot of a processor, for display.
struct SlotInfo {
  std::string context;   ///< "vulkan:0#1"
  std::string tag;       ///< of its request
  std::string taken_at;  ///< as `ContextInfo::taken_at`
  Duration age{};
  bool is_own = false;  ///< of this pool, not of another one of the process
};

/// Memory of a processor that one owner holds in this process, its parts included.
struct MemoryShare {
  std::string owner;  ///< "vulkan:0#1"
  std::string level;  ///< "silicon", "runtime", "context" or "tag"
  Bytes held;
  std::optional<Bytes> limit;
};

/// A process that shares a processor (`Share::machine`), for display.
struct ProcessShare {
  std::int64_t pid = 0;    ///< as that process sees it
  std::uint32_t used = 0;  ///< slots
  Bytes held;              ///< memory
  bool waits = false;      ///< a request waits for a slot
  bool is_own = false;     ///< this process
};

/// The state of a device. A suspect device runs only jobs that no other device can run, and leases.
/// A job that completes or fails changes nothing.
///
/// | event                                      | from        | to          |
/// |--------------------------------------------|-------------|-------------|
/// | a job runs out of time, and its work stays in flight | healthy | suspect |
/// | that work completes                        | suspect     | healthy     |
/// | its memory has an error that ECC cannot correct (`monitor_period`) | healthy | suspect |
/// | a minute without a further one             | suspect     | healthy     |
/// | it is lost                                 | healthy     | quarantined |
/// | it is lost, and cannot be opened again     | healthy     | dead        |
/// | it is needed, after the back-off           | quarantined | probing     |
/// | it cannot be opened, is not trusted, or its copies are wrong | probing | quarantined |
/// | the same, after ten losses and failures    | probing     | dead        |
/// | it copies memory rightly                   | probing     | healthy     |
///
/// The back-off after a first loss is zero. It is 100 ms after the second loss or failed probe, and
/// doubles with each further one to 30 s. Losses and failures are counted from the last time that
/// 16 jobs in a row have completed on the device. Heat changes no state, because a slow GPU is
/// still faster than its fallback: `DeviceState::last_fault` reports it.
enum class DeviceHealth : std::uint8_t { healthy, suspect, quarantined, probing, dead };

/// One device of a processor, for display.
struct DeviceState {
  std::string id;  ///< "vulkan:0"
  DeviceHealth health = DeviceHealth::healthy;
  std::uint64_t generation = 1;     ///< rises each time that it is opened again
  std::optional<Error> last_fault;  ///< unset: none so far
  bool is_gpu = false;
  bool is_emulated = false;  ///< a driver of a GPU that runs on the CPU
};

/// One processor (a GPU, or the CPU of the machine) with its use by this process, for display.
struct SiliconInfo {
  std::string name;
  std::vector<DeviceState> devices;  ///< of this pool: "cuda:0", "vulkan:0"
  std::uint32_t slots = 0;
  std::uint32_t used = 0;        ///< of `slots`, by this process
  std::uint32_t waiting = 0;     ///< requests of this pool that it could serve
  std::vector<SlotInfo> leases;  ///< that use the slots; the leases of one thread share a slot
  /// The processor, then each runtime, each followed by its contexts; then the tags of this pool
  /// that have a budget.
  std::vector<MemoryShare> memory;
  MemoryPressure::Level pressure = MemoryPressure::Level::none;
  std::uint32_t used_elsewhere = 0;     ///< of `slots`, by other processes
  Bytes held_elsewhere;                 ///< memory that other processes hold of the same budget
  std::vector<ProcessShare> processes;  ///< this one and those; empty with `Share::process`
  /// Returns the part of the slots that is in use, also by other processes, 0 to 1.
  double slot_use() const noexcept {
    return slots == 0 ? 0.0 : static_cast<double>(used + used_elsewhere) / static_cast<double>(slots);
  }
};

/// Counts since the pool was opened, all read at one moment.
struct PoolMetrics {
  std::uint32_t contexts = 0;  ///< leased so far
  std::uint32_t active = 0;    ///< of `contexts`: leased now
  std::uint64_t leases = 0;
  std::uint64_t switches = 0;    ///< submissions of a thread to another context than its previous one
  std::uint64_t timeouts = 0;    ///< requests that waited until their deadline
  Bytes bytes;                   ///< allocated by contexts, and for arrays
  std::uint64_t evictions = 0;   ///< replicas of arrays whose memory was freed for other allocations
  std::uint64_t shortages = 0;   ///< jobs that memory was not free for, each attempt counted
  std::uint64_t recoveries = 0;  ///< lost devices that were opened again
  Histogram lease_wait;          ///< of requests that have waited and got a context
  /// As `ContextSwitch::duration`. A thread that has not switched within its last 64 submissions reads
  /// no clock: its next switch is counted in `switches` alone.
  Histogram switch_time;
};

/// Owns the devices and their contexts. Copies share one pool. A device closes after the last copy
/// of the pool, the last lease and the last buffer.
/// Threads: thread-safe; requests that wait are served by priority, with aging, and then in order
///          of arrival.
class WYE_API ContextPool {
 public:
  /// Opens every usable device of `options.backends`.
  /// Errors: invalid_argument (an option out of range), not_found (a backend that this build does
  ///         not have, with those that it has), unavailable (no usable device, with the reason for
  ///         each; no thread for `on_switch` or `on_pressure`), unsupported (these headers are of
  ///         another version than the library). With `Share::machine` also: io (its folder or file
  ///         cannot be used), corrupt (the file is damaged), unsupported (the file is of another
  ///         version), unavailable (128 processes share the processor).
  static Result<ContextPool> open(PoolOptions options = {},
                                  Headers headers = {header_version, sizeof(PoolOptions)});

  /// Returns all adapters that the last discovery has found, by `open` or `rescan`. An adapter that
  /// is not usable has the reason. The reference and the list stay valid and unchanged until the
  /// pool ends.
  const std::vector<AdapterInfo>& adapters() const;
  /// Returns the open devices, preferred first, then those that `rescan` has added. A lost device
  /// is opened again when it is needed, and has a new handle then: the old one, its buffers and its
  /// executables stay lost.
  std::vector<Device> devices() const;
  /// Discovers adapters again, with the options of `open`. Opens and checks new adapters, and those
  /// that could not be opened before. Opens quarantined devices again at once, and dead ones if
  /// their adapter is found and can open a device again. Returns the devices that can be used since
  /// this call, empty if there are none. Waiting requests are served by them. An adapter of an open
  /// device is recognized by its backend and UUID, or by its id without a UUID. If the id of a new
  /// adapter is in use, it gets the next free one. Devices of the application are not discovered
  /// again. Open devices keep their slots.
  /// Threads: thread-safe; calls run one after the other. Leases and jobs go on.
  /// Errors:  closed; out_of_memory (no adapter was added); over_budget (a pool has at most 16
  ///          devices more than `open` found; devices up to this limit were added).
  /// Cost:    that of `open`. A driver may find new devices only in a new process, as CUDA's does
  ///          once it is initialized.
  Result<std::vector<AdapterInfo>> rescan();

  /// Leases one context that meets `request`. Waits until such a context is idle and its processor has a free slot, or the
  /// deadline passes. Of the devices with both it takes the first by this order:
  ///   1. the order of `devices`: the backend, and real processors before emulated ones;
  ///   2. of devices of one backend and type: the fewest leased contexts, then the least memory in use by this pool, then
  ///      the least recently used.
  /// Of the contexts of the device it takes the least recently used, but one with a lane before one without. If the driver
  /// refuses a further lane, waits for an existing lane. `where` is the place of the call, which `close` reports.
  /// Errors:  not_found (no device `on`), unsupported (no device has all features that it needs), timed_out,
  ///          device_lost, closed, cancelled (by `stop`); unavailable (a wait without a deadline could never end: all these
  ///          contexts were leased by this thread, or by threads that wait for each other); the driver's, if it refuses a
  ///          lane and there is none.
  /// Cost: one lock and no allocation if a context with a lane is idle.
  Result<Lease> lease(const LeaseRequest& request = {}, SourceLocation where = SourceLocation::current());
  /// Leases a context as `lease`, without waiting.
  /// Errors: those of `lease`; unavailable (no context is free) instead of timed_out.
  Result<Lease> try_lease(const LeaseRequest& request = {}, SourceLocation where = SourceLocation::current());

  /// Frees idle memory of all devices: all kinds up to `last`. Contexts that `contexts_ahead` keeps
  /// stay. Returns the bytes of buffers and kernels that were freed; those of lanes, and memory
  /// that a backend kept for reuse, are not known.
  Bytes trim(IdleMemory last = IdleMemory::replicas);
  /// Moves arrays that nothing uses together on each device, and returns the memory that they leave
  /// to the driver. An allocation that fails does the same before its error. Returns the bytes that
  /// drivers got; see `MemoryInfo::spare`.
  Bytes defragment();

  std::vector<ContextInfo> contexts() const;
  /// Returns the processors of the devices, in their order. Stops no work.
  std::vector<SiliconInfo> silicon() const;
  PoolMetrics metrics() const;

  /// Refuses new leases and wakes all waiters. Leases stay valid until they end. Logs a warning for
  /// each one of the application: its tag, its age, and the place of the call in the source.
  void close();
  /// Closes as `close()`, and waits until devices have completed the work of ended leases. If
  /// `deadline` passes first, abandons the work in flight: its lanes, their memory and their
  /// devices are kept until the process ends, because a device may still use them.
  /// Errors: timed_out, naming each context and the job that failed on it.
  [[nodiscard]] Result<void> close(Deadline deadline);

 private:
  friend struct detail::Internals;
  explicit ContextPool(std::shared_ptr<pool::Pool> state) : state_(std::move(state)) {}
  std::shared_ptr<pool::Pool> state_;
};

}  // namespace wye
