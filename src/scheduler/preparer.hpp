#pragma once
/// Makes the kernels of jobs ready on a device.
#include <wye/base/bytes.hpp>
#include <wye/base/clock.hpp>
#include <wye/base/result.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "device/provider.hpp"
#include "flight/flight.hpp"
#include "pool/pool.hpp"
#include "scheduler/comparison.hpp"
#include "scheduler/record.hpp"
#include "scheduler/time_book.hpp"

namespace wye::inline v0::scheduler {

/// Provides the executables of jobs, selects among the variants of a kernel, and copies arrays to
/// the device of a job that waits.
/// Threads: thread-safe, if each job is in one call at a time.
class Preparer {
 public:
  /// `pool`, `provider`, `clock`, which is that of jobs, and `times` outlive it.
  Preparer(pool::Pool& pool, device::ExecutableProvider& provider, const Clock& clock, TimeBook& times,
           bool measures_variants) noexcept
      : pool_(pool),
        provider_(provider),
        clock_(clock),
        measures_variants_(measures_variants),
        comparisons_(times) {}

  /// Returns a time of the clock of jobs by the clock of builds.
  Instant ready_by(Instant until) const noexcept;
  /// Prepares the calls of a job on a device, and adds them to `attempt`, which is null if the job
  /// only builds. Notes the selection in the record. A job without own limits may run a variant
  /// that has to be measured.
  /// Errors: those of `ExecutableProvider::provide`.
  Result<void> prepare(Record& record, std::size_t device, flight::Flight* attempt, Instant ready_by);
  /// Returns the executable of one call, of the variant that is selected.
  Result<Prepared> select(Record& record, std::size_t device, const Call& call, Instant ready_by);
  /// Prepares a device for a job that waits there: builds its kernels and submits copies of the
  /// arrays that it reads. The job meets the same errors again when it runs, so they are dropped.
  /// Returns the size of the copies.
  Bytes prepare_ahead(Record& record, std::size_t device) noexcept;
  /// Returns nothing if the kernels of a job are built for a device. Otherwise returns how long they
  /// are to be run elsewhere first, and begins their builds if they have `run` as long as these take.
  std::optional<Duration> build_ahead(const Record& record, std::size_t device, Duration run);
  /// Returns how long the builds of a job for a device would take; zero: its kernels are built.
  Duration build_cost(const Record& record, std::size_t device) const {
    return find_missing(record, device).cost;
  }

 private:
  /// Kernels that are not built for a device.
  struct Missing {
    std::vector<std::shared_ptr<const device::Program>> programs;
    Duration cost{};  // of their builds
  };
  Missing find_missing(const Record& record, std::size_t device) const;
  Result<Executable> provide(Record& record, std::size_t device,
                             const std::shared_ptr<const device::Program>& program, Instant ready_by);
  Result<Prepared> build(Record& record, std::size_t device, const Call& call, Instant ready_by);

  pool::Pool& pool_;
  device::ExecutableProvider& provider_;
  const Clock& clock_;
  const bool measures_variants_;
  Comparisons comparisons_;
};

}  // namespace wye::scheduler
