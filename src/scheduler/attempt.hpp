#pragma once
/// One try of a job on one device.
#include <wye/base/clock.hpp>
#include <wye/pool/lease.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "base/internals.hpp"
#include "device/executable.hpp"
#include "pool/pool.hpp"
#include "scheduler/binding.hpp"
#include "scheduler/trials.hpp"

namespace wye::inline v0::scheduler {

/// Copies of this size and more are submitted alone, to measure their time. The submission costs
/// little beside them.
inline constexpr Bytes least_measured{1 << 20};

/// One step of a job, ready for one device.
struct Step {
  Executable executable;
  std::shared_ptr<Trial> trial;  ///< of its variants; null if it has one only
  Trial::Selection selection;
};
using Steps = detail::InlineList<Step, 1>;

/// The state of a job on a device. It is kept while the job is in flight.
/// Threads: that of the thread that runs the job.
struct Attempt {
  /// `operands`: those of the segment of a plan; null: those of the job.
  Attempt(const Job& job, const Device& on, std::size_t index, const Binding::Operands* operands = nullptr)
      : device(index), binding(job, on, operands) {}

  pool::Context& context() const noexcept { return *base::state_of(leased())->context; }
  device::Lane& lane() const noexcept { return base::state_of(leased())->lane(); }

  std::size_t device;               ///< an index into the pool's devices
  Steps steps;                      ///< until they are recorded
  Instant until = Instant::max();   ///< when the time limit passes, of the scheduler's clock
  Instant park = Instant::max();    ///< the same instant, of the steady clock
  Instant lap{};                    ///< up to here the job's times are known
  bool began = false;               ///< a command may have run
  bool has_downloads = false;       ///< the downloads are recorded
  bool is_recorded = false;         ///< all commands of its batch are recorded
  const Attempt* leader = nullptr;  ///< of its batch, which has the lease; null: this has one
  const Error* batch_error =
      nullptr;  ///< of the submission of its batch, once it has returned; null: it completed
  Binding binding;
  std::optional<Lease> lease;  ///< ends before the binding

 private:
  const Lease& leased() const noexcept { return leader ? *leader->lease : *lease; }
};

}  // namespace wye::scheduler
