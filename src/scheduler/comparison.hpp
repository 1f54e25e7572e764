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
#include "scheduler/time_book.hpp"

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
/// run, only add to it. The times are those of a book, so a variant that was measured on an equal
/// device, or before its kernel was made again, is not measured again.
/// Threads: thread-safe.
class Comparison {
 public:
  /// The variants are those of `variants_on`. `kind`: of the calls, with a number for their shape
  /// instead of their kernels. `times` outlives it.
  Comparison(const detail::Programs& programs, const device::DeviceBase& device, const TimeBook::Key& kind,
             TimeBook& times);

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
    TimeBook::CallKind kind;
    std::uint32_t selected = 0;               // times selected for a timed run, failed jobs included
    Timing times = {};                        // of completed timed runs, as the book had them last
    std::optional<Error> why = std::nullopt;  // set if it is excluded

    Duration best() const noexcept { return times.count > 0 ? times.least : Duration::max(); }
  };
  void read_times() noexcept;
  Measured& variant_of(std::size_t program);
  std::size_t usable() const;
  bool has_run_left(const Measured& variant) const;
  bool is_open() const;

  TimeBook& times_;
  mutable std::mutex mutex_;
  std::vector<Measured> variants_;
};

/// A call, ready for one device.
struct Prepared {
  Executable executable;
  std::shared_ptr<Comparison> comparison;  ///< of its variants; null if it has one only
  Comparison::Selection selection;
};

/// All comparisons of a scheduler. Comparisons of destroyed kernels stay until there are 4096 comparisons; then
/// all are removed, and their times too.
/// Threads: thread-safe.
class Comparisons {
 public:
  /// `times` outlives it.
  explicit Comparisons(TimeBook& times) noexcept : times_(times) {}

  /// Returns the comparison of `call` on device number `device`, one of a group of equal ones.
  std::shared_ptr<Comparison> of(const Call& call, std::size_t device, std::uint16_t group,
                                 const device::DeviceBase& base);

 private:
  /// Device, numbers of the kernels, size classes of the grid and the operands.
  using Key = std::vector<std::uint64_t>;
  TimeBook& times_;
  std::mutex mutex_;
  std::map<Key, std::shared_ptr<Comparison>> comparisons_;
};

/// Returns sentences about a choice; nothing if there is only one variant.
std::string text(const VariantChoice& choice);

}  // namespace wye::scheduler
