#pragma once
/// THE CONTRACT between wye and a vendor: what a backend must provide, and nothing else. Each class here is implemented
/// once per backend, driven by the pool, the scheduler and `device::Lane`, and checked by `tests/contract`.
#include <wye/base/clock.hpp>
#include <wye/base/log.hpp>
#include <wye/base/result.hpp>
#include <wye/device/adapter.hpp>
#include <wye/device/device.hpp>
#include <wye/device/native.hpp>
#include <wye/device/schema.hpp>
#include "base/digest.hpp"
#include "device/operand.hpp"

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/process.hpp"
#include "device/artefact.hpp"
#include "device/recording.hpp"

namespace wye {
inline namespace v0 {
namespace device {

class DeviceBase;
class NativeDoor;
class Turns;

/// The one synchronization primitive: a value that only grows, or a failure that stays.
/// Threads: thread-safe.
class Timeline {
 public:
  virtual ~Timeline();
  /// Which process made it. A child of `fork` asks nothing of it.
  const base::Origin& origin() const noexcept { return origin_; }
  /// The value reached so far. Never blocks.
  virtual std::uint64_t reached() noexcept = 0;
  /// Waits until `value` is reached. A value nobody has submitted yet may be waited for.
  /// Errors: timed_out; or the failure this timeline carries, once `value` can no longer be reached.
  virtual Result<void> wait(std::uint64_t value, Instant until) = 0;
  /// Moves the value up from the host.
  /// Errors: invalid_argument (not larger than the value it has; or a lane moves this one), device_lost.
  virtual Result<void> signal(std::uint64_t value) = 0;
  /// The device whose lanes can wait for this timeline.
  virtual const DeviceBase* owner() const noexcept = 0;
  /// Whether others than wye move it: then a submission may signal it, and a wait for it holds the device's queue until
  /// they have.
  virtual bool is_foreign() const noexcept { return false; }
  /// Of a foreign timeline that two devices of wye's have: what they promised each other on it. Null of all others.
  virtual Turns* turns() noexcept { return nullptr; }

 private:
  const base::Origin origin_{};
};

/// What a timeline that has reached `reached` answers to `value`, which is not larger.
Error not_larger(std::uint64_t value, std::uint64_t reached);

/// A value of a timeline.
struct TimelinePoint {
  std::shared_ptr<Timeline> timeline;
  std::uint64_t value = 0;
};

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

/// What memory is for.
enum class MemoryUse : std::uint8_t {
  device,    ///< kernels read and write it; the host through uploads and downloads
  transfer,  ///< the host writes or reads it directly, copies move it: staging
};

struct BufferRequest {
  Bytes bytes;
  MemoryUse use = MemoryUse::device;
  std::shared_ptr<MemoryAccount> account;  ///< charged while the buffer lives; may be null
};

/// Errors: out_of_memory where `bytes` is more than any buffer of this adapter can be.
Result<void> fits(Bytes bytes, const AdapterInfo& adapter);

/// Memory of one device.
/// Threads: thread-safe to read its properties; its contents are ordered by lanes.
class BufferBase : public Retained {
 public:
  ~BufferBase() override;
  Bytes bytes() const noexcept { return bytes_; }
  /// Different for every buffer of this process.
  std::uint64_t id() const noexcept { return id_; }
  const std::shared_ptr<DeviceBase>& device() const noexcept { return device_; }
  /// The address kernels see; 0 where the device has none.
  virtual std::uint64_t address() const noexcept = 0;
  /// Where the host may read and write it while no submission uses it; null where it cannot.
  virtual std::byte* host() const noexcept = 0;

 protected:
  /// `request.account` has been charged by the caller (`charge`); the destructor gives it back.
  BufferBase(std::shared_ptr<DeviceBase> device, const BufferRequest& request);
  static Result<void> charge(const BufferRequest& request);

 private:
  std::shared_ptr<DeviceBase> device_;
  std::shared_ptr<MemoryAccount> account_;
  Bytes bytes_;
  std::uint64_t id_;
};

/// The buffer of an operand that is one, or an address in one; null where it holds none.
inline const BufferBase* buffer_of(const Operand& operand) noexcept {
  return static_cast<const BufferBase*>(operand.object.get());
}

/// Bytes of a buffer, which somebody else keeps.
struct BufferView {
  BufferBase* buffer = nullptr;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  /// Where they begin on the device.
  std::uint64_t address() const noexcept { return buffer->address() + offset; }
};

/// The bytes that an operand given to a lane of `device` means.
/// Errors: invalid_argument: it is no buffer, one of another device, or ends outside its buffer.
Result<BufferView> view_of(const Operand& operand, const DeviceBase& device);

/// A kernel that lives on one device.
/// Threads: thread-safe.
class ExecutableBase {
 public:
  virtual ~ExecutableBase();
  const std::shared_ptr<DeviceBase>& device() const noexcept { return device_; }
  /// What it was made from, without its code.
  const Artefact& artefact() const noexcept { return artefact_; }
  /// Memory it takes, as far as the driver tells.
  virtual Bytes bytes() const noexcept = 0;
  /// Workgroups of it that the device runs at the same time when it runs nothing else; 0 where nobody says.
  virtual std::uint64_t resident_groups() const noexcept { return 0; }
  /// Workgroups of the longest grid of one row (y = z = 1) that it takes, if that is more than `Limits::groups` says.
  virtual std::uint64_t row_groups() const noexcept { return 0; }

 protected:
  ExecutableBase(std::shared_ptr<DeviceBase> device, Artefact artefact);

 private:
  std::shared_ptr<DeviceBase> device_;
  Artefact artefact_;
};

/// What a backend keeps of a recording that is submitted again and again: a driver's graph, a command buffer. It belongs to
/// nobody's lane.
/// Threads: one thread at a time.
class ReplayBase {
 public:
  explicit ReplayBase(std::shared_ptr<DeviceBase> device) : device_(std::move(device)) {}
  ReplayBase(const ReplayBase&) = delete;
  virtual ~ReplayBase();
  const std::shared_ptr<DeviceBase>& device() const noexcept { return device_; }
  std::uint64_t checked = 0;  ///< the revision that the checked decorator has found right

 private:
  std::shared_ptr<DeviceBase> device_;
};

/// How a submission runs.
struct Submission {
  std::shared_ptr<const Recording> recording;  ///< closed; kept by the lane until the device is done with it
  std::span<const TimelinePoint> waits;        ///< on this device; reached before the first command runs
  StopToken stop;                              ///< host functions may look at it
  /// The submitting thread waits next and may do the work itself, even past the deadline it waits with (`stop`
  /// bounds that): no other thread needs waking.
  bool caller_waits = false;
  /// The recording will be submitted again, with other arguments perhaps: what is made of it may be kept here. Without
  /// effect on what happens. May be null, as in all submissions that are made once.
  std::shared_ptr<ReplayBase> replay = nullptr;
  std::span<const TimelinePoint> signals =
      {};  ///< foreign timelines of this device: raised behind the last command
};

/// Which lane goes first where a device has work of several. Only CUDA's devices know of it.
enum class LanePriority : std::uint8_t { normal, high };

struct LaneOptions {
  LanePriority priority = LanePriority::normal;
};

/// One ordered lane: submissions run one after the other, in the order given.
/// Threads: one thread at a time.
class LaneBase {
 public:
  /// Waits for what is in flight, but never on a lost device; downloads nobody has waited for are given up. Values that
  /// were not submitted can no longer be reached: who waits for one is answered `closed`.
  virtual ~LaneBase();
  /// Hands a closed recording to the device and returns the value its end will signal on `timeline()`. Sources of its
  /// uploads have been read when this returns.
  /// Errors: whatever stopped it; then nothing of the recording ran and the lane can be used on, unless device_lost.
  virtual Result<std::uint64_t> submit(const Submission& submission) = 0;
  /// Waits for `value` and for the downloads of all submissions up to it to be in the host's memory.
  /// Errors: timed_out (downloads not written; wait again), kernel_failed, device_lost: a failure of a submission is
  ///         also the answer to every later one.
  virtual Result<void> wait(std::uint64_t value, Instant until) = 0;
  /// Gives up the downloads that are still outstanding: their targets will not be written any more.
  virtual void abandon() noexcept = 0;
  virtual const std::shared_ptr<Timeline>& timeline() const noexcept = 0;
  const std::shared_ptr<DeviceBase>& device() const noexcept { return device_; }

 protected:
  explicit LaneBase(std::shared_ptr<DeviceBase> device) : device_(std::move(device)) {}

 private:
  std::shared_ptr<DeviceBase> device_;
};

/// No numbers, all for one reason.
Monitoring unmonitored(std::string device, const std::string& why);

/// An opened adapter.
/// Threads: thread-safe.
class DeviceBase : public std::enable_shared_from_this<DeviceBase> {
 public:
  virtual ~DeviceBase();
  const AdapterInfo& info() const noexcept { return info_; }
  /// Which process opened it. To a child of `fork` it is a lost device: `lost` returns `origin().error()` there.
  const base::Origin& origin() const noexcept { return origin_; }
  /// Different for every device that this process opens, for the life of the process.
  std::uint64_t instance() const noexcept { return instance_; }
  /// Languages of artefacts it can run, preferred first: {"spirv"}, {"host"}.
  virtual std::span<const std::string_view> languages() const noexcept = 0;
  virtual MemoryInfo memory() = 0;
  /// What the hardware's own monitor says; a reason for each number that it does not say, which is all of them here.
  virtual Monitoring monitor();
  /// The failure that ended this device, or null.
  const Error* lost() const noexcept {
    const Error* const inherited = origin_.error();
    return inherited ? inherited : ended_by();
  }
  /// Notes a timeline that another device moves too.
  void note_shared(const std::shared_ptr<Timeline>& timeline);
  /// Until when who waits for this device until `until` may sleep. Where lanes of it wait for another device that may be lost
  /// without anybody knowing, that is looked at, and the sleep is short. At once for who does not want to sleep.
  Instant sleep_until(Instant until);
  /// Why native functions with `probe` are of no use here; nothing where they are. It is asked once: what it says is kept.
  std::optional<Error> refusal_by(NativeProbe probe);
  /// The same, as far as it has been asked.
  std::optional<Error> known_refusal_by(NativeProbe probe) const;
  /// Names the device and the exact build of its driver, the same in every process. What a driver made is of use to no
  /// other.
  Digest driver_identity() const;
  /// Code that the driver made of kernels so far, for `preload` of a later process; empty where it gives none away.
  /// Errors: out_of_memory, device_lost.
  virtual Result<std::vector<std::byte>> driver_code();
  /// Gives the driver what `driver_code` gave on a device of the same `driver_identity`. Before the first executable is
  /// made; later it has no effect.
  /// Errors: corrupt (this driver did not write it: nothing of it was used), device_lost.
  virtual Result<void> preload(std::span<const std::byte> code);

  /// Errors: out_of_memory (too big for ever, or no room now: the sentence says which), over_budget, device_lost.
  virtual Result<std::shared_ptr<BufferBase>> create_buffer(const BufferRequest& request) = 0;
  /// Errors: unsupported (language, limit or feature), compile_failed, out_of_memory, device_lost.
  virtual Result<std::shared_ptr<ExecutableBase>> create_executable(const Artefact& artefact) = 0;
  virtual Result<std::unique_ptr<LaneBase>> create_lane(const LaneOptions& options = {}) = 0;
  /// A place for what this device makes of a recording; empty at first, and always where it makes nothing of it.
  virtual std::shared_ptr<ReplayBase> create_replay();
  /// A timeline of its own, at 0, for the host to signal and lanes of this device to wait for.
  virtual Result<std::shared_ptr<Timeline>> create_timeline() = 0;
  /// The way to the driver's own objects; null where there is no driver.
  virtual NativeDoor* native_door() noexcept { return nullptr; }

 protected:
  explicit DeviceBase(AdapterInfo info);
  /// The failure that ended this device in the process that opened it, or null.
  virtual const Error* ended_by() const noexcept = 0;
  /// Calls `probe` as native functions are called.
  virtual Result<void> ask(NativeProbe probe);

 private:
  AdapterInfo info_;
  const base::Origin origin_{};
  const std::uint64_t instance_;
  std::atomic<bool> shares_{false};
  std::mutex shared_mutex_;
  std::vector<std::weak_ptr<Timeline>> shared_;
  mutable std::mutex asked_mutex_;
  std::map<NativeProbe, std::optional<Error>> asked_;
};

/// A device that could be opened.
/// Threads: thread-safe.
class Adapter {
 public:
  virtual ~Adapter();
  virtual const AdapterInfo& info() const noexcept = 0;
  /// Errors: unavailable, unsupported, out_of_memory: with what the driver said.
  virtual Result<std::shared_ptr<DeviceBase>> open() = 0;
};

/// What a backend may be told.
struct BackendOptions {
  unsigned cpu_threads = 0;      ///< size of the CPU team; 0: one per processor
  bool validate = false;         ///< ask the driver's own checks for messages, where there are any
  LogSink log;                   ///< where those go
  std::string cuda_driver = {};  ///< the library to open as CUDA's driver; empty: the system's
  /// Devices that cannot be divided are not opened with `partition`, and say so; the CPU has its threads for that.
  Isolation isolation = Isolation::shared;
  Partition partition = {};  ///< checked: not both, and a share that there is
  /// Device memory that each account's buffers hold on to, those that ended included, as far as its limit goes; the rest
  /// goes back to the system. A driver that gives memory back at each wait takes hundreds of microseconds to take it again.
  Bytes kept_memory = Bytes{512ull << 20};
};

/// What a backend found: one entry per adapter, usable or not. A missing driver is one entry with its reason.
struct Discovered {
  AdapterInfo info;
  std::shared_ptr<Adapter> adapter;  ///< null where not usable
};

/// One vendor's leg.
/// Threads: thread-safe.
class Backend {
 public:
  virtual ~Backend();
  virtual std::string_view name() const noexcept = 0;
  /// Never fails and never prints: what is wrong is the reason in an entry.
  virtual std::vector<Discovered> discover(const BackendOptions& options) = 0;
  /// A device that the host has opened, as the adapter `id`. The host keeps it open until everything on it has ended.
  /// Errors: unsupported, naming what it lacks; invalid_argument, unavailable.
  virtual Result<Discovered> adopt(const NativeDevice& device, std::string id, const BackendOptions& options);
};

}  // namespace device
}  // namespace v0
}  // namespace wye
