#pragma once
/// Autotunes equivalent kernels (variants) per device and size of work, by timing the jobs that run
/// them.
#include <wye/base/clock.hpp>
#include <wye/base/error.hpp>
#include <wye/kernel/kernel.hpp>
#include <wye/scheduler/ticket.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "device/device.hpp"

namespace wye::inline v0::scheduler {

/// Returns the numbers of the programs that run on `device`, in order of preference: programs that
/// name its type of adapter, then the others. Returns the first number if none runs.
std::vector<std::size_t> variants_on(const device::DeviceBase& device, const detail::Programs& programs);
/// Returns the number of the only program. If there are several, returns the number of the only
/// program that runs on `device`. Returns nothing if there is a choice.
std::optional<std::size_t> only_variant_on(const device::DeviceBase& device,
                                           const detail::Programs& programs);

/// The variants of one kernel, on one device, for work of one size. Each is run three times,
/// alternating. A variant that took over twice the time of another in two runs each is not run
/// again. The least time of a variant counts: other work on the device and loading, in the first
/// run, only add to it.
/// Threads: thread-safe.
class Trial {
 public:
  /// The variants are those of `variants_on`.
  Trial(const detail::Programs& programs, const device::DeviceBase& device);

  struct Selection {
    std::size_t program = 0;
    bool timed = false;  ///< the caller calls `record`
  };
  /// Selects the variant to run next: one with a run left if the job `may_try`, otherwise the
  /// quickest. If all are excluded, all are selectable again.
  Selection select(bool may_try);
  void record(std::size_t program, Duration time);
  /// Excludes a variant that cannot be built.
  void exclude(std::size_t program, Error why);
  /// Returns the choice of a job that ran `program`, with the measurements so far.
  VariantChoice choice(std::size_t program) const;

 private:
  struct Measured {
    std::size_t program;
    std::string name;
    std::uint32_t selected = 0;  // times selected for a timed run, failed jobs included
    std::uint32_t runs = 0;      // completed timed runs
    Duration best = Duration::max();
    std::optional<Error> why = std::nullopt;  // set if it is excluded
  };
  Measured& variant_of(std::size_t program);
  std::size_t usable() const;
  bool has_run_left(const Measured& variant) const;
  bool is_open() const;

  mutable std::mutex mutex_;
  std::vector<Measured> variants_;
};

/// A call, ready for one device.
struct Prepared {
  Executable executable;
  std::shared_ptr<Trial> trial;  ///< of its variants; null if it has one only
  Trial::Selection selection;
};

/// All trials of a scheduler. Trials of destroyed kernels stay until there are 4096 trials; then
/// all are removed.
/// Threads: thread-safe.
class Trials {
 public:
  /// Returns the trial of `call` on device number `device`.
  std::shared_ptr<Trial> of(const Call& call, std::size_t device, const device::DeviceBase& base);

 private:
  /// Device, ids of the programs, size classes of the grid and the operands.
  using Key = std::vector<std::uint64_t>;
  std::mutex mutex_;
  std::map<Key, std::shared_ptr<Trial>> trials_;
};

/// Returns sentences about a choice; nothing if there is only one variant.
std::string text(const VariantChoice& choice);

/// Returns the quarter octave of `n`: 0 for 0 and 1, 4 for 2, 6 for 3, 8 to 11 for 4 to 7.
std::uint32_t size_class(std::uint64_t n) noexcept;

}  // namespace wye::scheduler
