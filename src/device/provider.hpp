#pragma once
/// The ports through which rooms that do not know each other meet.
#include <wye/base/bytes.hpp>
#include <wye/base/clock.hpp>
#include <wye/base/result.hpp>
#include <wye/device/executable.hpp>
#include "base/digest.hpp"

#include <atomic>
#include <memory>
#include <optional>
#include <string_view>

#include "device/contract.hpp"

namespace wye {
inline namespace v0 {
namespace device {

/// Something an executable can be made of. The kernel room's kernels are.
/// Threads: thread-safe.
class Program {
 public:
  Program() = default;
  Program(const Program&) = delete;  // it has an identity
  virtual ~Program() = default;
  /// The program to use now: itself, or what it was replaced with (hot reload), which has the same name and schema and
  /// lives as long. Who asks several things asks one program.
  const Program& current() const noexcept { return *current_.load(std::memory_order_acquire); }
  virtual std::string_view name() const noexcept = 0;
  virtual const ParamSchema& schema() const noexcept = 0;
  /// Different for every program of this process, for the life of the process.
  virtual std::uint64_t id() const noexcept = 0;
  /// Why no executable can be made of it for `device`, or nothing.
  virtual std::optional<Error> refusal(const DeviceBase& device) const = 0;
  /// Why a source that comes before the one that `device` takes is passed over there; nothing where none is.
  virtual std::optional<Error> passed_over(const DeviceBase&) const { return std::nullopt; }
  /// Names the artefact that `build` would make for `device`: a digest of everything that goes into it.
  virtual Result<Digest> key(const DeviceBase& device) const = 0;
  /// Whether the artefact is worth keeping on disk: false for code that is already in the process.
  virtual bool storable(const DeviceBase& device) const noexcept = 0;
  /// Errors: compile_failed with file and line, unsupported, invalid_argument naming the slot.
  virtual Result<Artefact> build(const DeviceBase& device) const = 0;

 protected:
  mutable std::atomic<const Program*> current_{this};
};

struct Provided {
  Executable executable;
  CacheTier tier = CacheTier::none;
  Duration build_time{};
};

/// Gives executables: the cache, as the scheduler sees it.
/// Threads: thread-safe.
class ExecutableProvider {
 public:
  virtual ~ExecutableProvider() = default;
  /// What building would cost: nothing where it is ready, zero where nobody knows.
  virtual std::optional<Duration> build_cost(const Program& program, const DeviceBase& device) const = 0;
  /// What `until` is told by.
  virtual const Clock& clock() const noexcept = 0;
  /// Errors: those of `Program::build` and `DeviceBase::create_executable`; timed_out at `until`: what is being
  ///         built by then goes on, for who asks next.
  virtual Result<Provided> provide(const std::shared_ptr<const Program>& program,
                                   const std::shared_ptr<DeviceBase>& device, Instant until) = 0;
  /// As `provide`; and the driver makes all of its code now, where it would leave that for the first dispatch.
  virtual Result<Provided> make_ready(const std::shared_ptr<const Program>& program,
                                      const std::shared_ptr<DeviceBase>& device, Instant until) = 0;
};

/// Is told which programs are used, and where.
/// Threads: thread-safe.
class UseObserver {
 public:
  virtual ~UseObserver() = default;
  /// `program` is wanted on `device`: the first time on each thread, and now and then later. What was replaced is named, not
  /// what replaced it.
  virtual void used(const std::shared_ptr<const Program>& program,
                    const std::shared_ptr<DeviceBase>& device) = 0;
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
