#pragma once
/// The ports between the kernel room, the cache, the scheduler, the pool and the runtime.
#include <wye/base/bytes.hpp>
#include <wye/base/clock.hpp>
#include <wye/base/result.hpp>
#include <wye/device/executable.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <string_view>

#include "base/digest.hpp"
#include "device/artefact.hpp"
#include "device/device.hpp"
#include "device/driver_records.hpp"

namespace wye::inline v0::device {

/// Digests of the name of a kernel, its parameters and its sources: a kernel that is made again has the
/// same ones. The code of functions of the application cannot be digested.
struct ProgramDigests {
  Digest in_process;  ///< functions count by their type, an address
  Digest stored;      ///< without these: equal in every process
};

/// The source of executables: a kernel of the kernel room.
/// Threads: thread-safe.
class Program {
 public:
  Program() = default;
  Program(const Program&) = delete;  // it has an identity
  virtual ~Program() = default;
  /// Returns the program to use now: itself, or its replacement (hot reload), which has the same
  /// name and schema and lives as long. A caller that needs several results calls `current` once.
  const Program& current() const noexcept { return *current_.load(std::memory_order_acquire); }
  virtual std::string_view name() const noexcept = 0;
  virtual const ParamSchema& schema() const noexcept = 0;
  /// Returns a number that differs for every program of this process.
  virtual std::uint64_t id() const noexcept = 0;
  virtual const ProgramDigests& digests() const noexcept = 0;
  /// Returns a bit for each parameter that has a leading index (`Kernel::Options::batchable`); 0:
  /// there is none.
  virtual std::uint32_t batchable() const noexcept { return 0; }
  /// Returns whether its author promises that no driver ends its loops early
  /// (`Kernel::Options::has_short_loops`).
  virtual bool has_short_loops() const noexcept { return false; }
  /// Returns whether it names the types of adapters that run it (`Kernel::Options::adapters`).
  virtual bool names_adapters() const noexcept { return false; }
  /// Returns whether an executable can be created for `device`. Makes no sentence, unlike
  /// `refusal`.
  virtual bool runs_on(const DeviceBase& device) const { return !refusal(device); }
  /// Returns the reason why no executable can be created for `device`, or nothing.
  virtual std::optional<Error> refusal(const DeviceBase& device) const = 0;
  /// Returns whether `device` skips a preferred source. Makes no sentence.
  virtual bool passes_over(const DeviceBase& device) const { return passed_over(device).has_value(); }
  /// Returns the reason why `device` skips a preferred source; nothing if it skips none.
  virtual std::optional<Error> passed_over(const DeviceBase&) const { return std::nullopt; }
  /// Returns the code that `device` runs. Only the name is set if it runs none.
  virtual KernelCode code(const DeviceBase&) const { return {std::string(name()), {}, {}}; }
  /// Returns whether `device` runs it by a native function of the application.
  virtual bool is_native(const DeviceBase&) const noexcept { return false; }
  /// Returns a digest of all input of `build` for `device`.
  virtual Result<Digest> key(const DeviceBase& device) const = 0;
  /// Returns whether the artefact can be stored on disk: false for code of this process.
  virtual bool storable(const DeviceBase& device) const noexcept = 0;
  /// Compiles or finds the artefact for `device`.
  /// Errors: compile_failed with file and line, unsupported, invalid_argument naming the slot.
  virtual Result<Artefact> build(const DeviceBase& device) const = 0;

 protected:
  mutable std::atomic<const Program*> current_{this};
};

/// An executable, its tier, and the time to build it.
struct Provided {
  Executable executable;
  CacheTier tier = CacheTier::none;
  Duration build_time{};
};

/// Provides executables: the cache as the scheduler uses it.
/// Threads: thread-safe.
class ExecutableProvider {
 public:
  virtual ~ExecutableProvider() = default;
  /// Returns the expected cost of a build: nothing if the executable is ready, zero if it is
  /// unknown.
  virtual std::optional<Duration> build_cost(const Program& program, const DeviceBase& device) const = 0;
  /// Begins a build on a thread of its own, unless one has ended or has begun, and returns.
  /// Errors: those of an earlier build.
  virtual Result<void> begin_build(const std::shared_ptr<const Program>& program,
                                   const std::shared_ptr<DeviceBase>& device) = 0;
  /// Returns the clock of `until`.
  virtual const Clock& clock() const noexcept = 0;
  /// Errors: those of `Program::build` and `DeviceBase::create_executable`; timed_out at `until`.
  ///         The build continues; later calls use its result.
  virtual Result<Provided> provide(const std::shared_ptr<const Program>& program,
                                   const std::shared_ptr<DeviceBase>& device, Instant until) = 0;
  /// Does as `provide`, and makes the driver generate all code now instead of at the first
  /// dispatch.
  virtual Result<Provided> make_ready(const std::shared_ptr<const Program>& program,
                                      const std::shared_ptr<DeviceBase>& device, Instant until) = 0;
  /// Waits until the builds whose callers timed out have ended, and their threads too. Returns
  /// false if `until`, of the steady clock, passes first.
  virtual bool await_builds(Instant) { return true; }
  /// Returns the storage for facts about drivers, which lives as long; null without one.
  virtual DriverRecords* driver_records() noexcept { return nullptr; }
};

/// Observes which programs are used on which devices.
/// Threads: thread-safe.
class UseObserver {
 public:
  virtual ~UseObserver() = default;
  /// Notes that `program` is used on `device`: the first time on each thread, and from time to time
  /// later. `program` is the original, not its replacement.
  virtual void used(const std::shared_ptr<const Program>& program,
                    const std::shared_ptr<DeviceBase>& device) = 0;
};

/// Checks devices before the pool uses them.
/// Threads: thread-safe.
class Qualifier {
 public:
  virtual ~Qualifier() = default;
  /// Checks `device`, which no other thread uses yet, and withdraws the features that failed.
  /// Errors: unavailable: the device cannot be trusted.
  virtual Result<void> qualify(const std::shared_ptr<DeviceBase>& device) = 0;
  /// Notes that `device` was lost: its checks no longer vouch for it in later runtimes. Locks only
  /// its own mutex.
  virtual void note_loss(const DeviceBase& /*device*/) noexcept {}
};

}  // namespace wye::device
