#pragma once
/// Makes sentences of the decisions about devices.
#include <wye/scheduler/ticket.hpp>

#include <optional>
#include <string>
#include <vector>

#include "pool/pool.hpp"
#include "scheduler/placer.hpp"
#include "scheduler/record.hpp"
#include "scheduler/time_book.hpp"

namespace wye::inline v0::scheduler {

/// Explains where jobs ran. All that it returns is made when it is asked.
/// Threads: thread-safe, for jobs that have settled. `no_device_error`: the thread that runs the job.
class Explainer {
 public:
  /// `pool`, `placer` and `times` outlive it. `learns`: devices are chosen by `times`.
  Explainer(const pool::Pool& pool, const Placer& placer, const TimeBook& times, bool learns) noexcept
      : pool_(pool), placer_(placer), times_(times), learns_(learns) {}

  Explanation explain(const Record& record) const;
  /// Explains where a job would run that has not been submitted: the decision about that device has the
  /// verdict `ran`.
  Explanation foresee(const Record& record) const;
  std::vector<VariantChoice> variants(const Record& record) const;
  std::vector<KernelCode> code(const Record& record) const;
  /// Returns why the device of a completed job was chosen.
  std::string placement_reason(const Record& record) const;
  /// Returns the same, and how the job ran there.
  std::string reason(const Record& record) const;
  /// Returns why a device did not run a job.
  std::string describe(const Record& record, const Decision& decision) const;
  /// Returns how long jobs like one take on a device; nothing if it is not known.
  std::optional<Estimate> estimate(const Record& record, std::size_t device) const;
  /// Returns the error of a job that no device can run.
  Error no_device_error(const Record& record) const;

 private:
  std::vector<Candidate> candidates(const Record& record) const;
  bool is_inherited() const noexcept { return pool_.origin().is_inherited(); }
  std::string failure(const Record& record, const Decision& decision) const;
  std::string absent_backends(const Record& record) const;
  std::string slowness(const Record& record, std::size_t device) const;
  Decision pass(const Record& record, std::size_t device) const;
  std::string times_taken(const Record& record) const;

  const pool::Pool& pool_;
  const Placer& placer_;
  const TimeBook& times_;
  const bool learns_;
};

}  // namespace wye::scheduler
