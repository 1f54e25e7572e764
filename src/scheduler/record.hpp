#pragma once
/// One job on its way: what the ticket, the queue and the thread that runs it share.
#include <wye/scheduler/job.hpp>
#include <wye/scheduler/scheduler.hpp>
#include <wye/scheduler/ticket.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/gate.hpp"
#include "data/array_state.hpp"
#include "data/completion.hpp"
#include "device/provider.hpp"

namespace wye {
inline namespace v0 {
namespace scheduler {

class Core;
class Trial;

enum class State : std::uint8_t {
  waiting,  ///< for the users of its arrays that come before it
  queued,   ///< ready to run
  running,
  settled,
  abandoned,  ///< settled while it runs: see `Core::close`
};

/// What was decided about one device, as data. `Core::explain` and `Core::reason` make sentences of it.
struct Decision {
  std::size_t device = 0;
  Candidate::Verdict verdict = Candidate::Verdict::passed;
  RefusalCode code = RefusalCode::none;
  std::uint32_t argument = 0;                                 ///< foreign_buffer: its number, from 1
  std::shared_ptr<const device::Program> program = nullptr;   ///< kernel_unsupported, foreign_buffer
  std::shared_ptr<const device::DeviceBase> owner = nullptr;  ///< foreign_buffer: the device of the buffer
  std::optional<Error> error = std::nullopt;                  ///< device_lost, attempt_failed
};

/// The state moves forward only, by compare-and-swap: whoever moves it to `running` runs the job, whoever
/// moves it to `settled` settles it.
/// Threads: what is below the state is written by that one thread, and read by others once the job has
///          settled. Of an abandoned record, others read its name, tag and error only.
struct Record : std::enable_shared_from_this<Record> {
  std::shared_ptr<Core> core;
  std::optional<Job> job;  ///< given up when settled: it holds on to the caller's arrays and buffers
  std::string name;
  std::string tag;
  std::string on;
  WorkloadType type;
  Priority priority = Priority::normal;
  Fallback fallback = Fallback::allow;
  Instant start_by = Instant::max();
  Duration time_limit{};
  std::uint64_t sequence = 0;
  bool in_haste = false;  ///< it has a `start_by` or time limit of its own
  bool borrows = false;   ///< some argument is host memory of the caller's

  std::atomic<State> state{State::queued};
  std::atomic<bool> stop{false};

  std::shared_ptr<data::Completion> turn;  ///< its turn with the arrays it uses; null where it uses none
  std::vector<std::shared_ptr<data::ArrayState>> outputs;  ///< arrays that fail if it does
  data::Predecessors before;                               ///< users of its arrays that come before it
  std::shared_ptr<Record> kept;                            ///< itself, until those are over
  Record* next_turn = nullptr;      ///< the next record whose turn has come, on the thread that sees to it
  Record* active_before = nullptr;  ///< neighbours in the core's list of running jobs, under the core's mutex
  Record* active_after = nullptr;
  const void* run_by = nullptr;    ///< the thread that runs it
  TypeMetrics* counted = nullptr;  ///< the row of its type in the metrics; null: it was never counted

  Instant submitted{};
  Instant started{};
  Instant ended{};
  Duration lane_time{};      ///< of devices that failed before, and until it had a lane
  Duration build_time{};     ///< until its kernels were ready
  Duration transfer_time{};  ///< until what it needs was there
  std::size_t device = 0;    ///< where it ran
  std::atomic<std::size_t> tried_on{~std::size_t{0}};  ///< the device that it is being tried on
  CacheTier tier = CacheTier::none;
  Bytes moved;
  Bytes size;  ///< of its operands: what the preference table is asked with
  std::vector<Decision> decisions;
  std::vector<std::pair<std::shared_ptr<const Trial>, std::size_t>>
      variants;  ///< which of several kernels it took
  /// Programs with a source that comes before the one in use and that the device refuses.
  std::vector<std::shared_ptr<const device::Program>> passed_over;
  std::optional<Error> error;

  mutable std::mutex mutex;  ///< for what follows
  mutable base::Gate gate;
  std::atomic<bool> is_settled{false};  ///< others than those who park may look without the mutex
  std::vector<std::function<void(const Result<Outcome>&)>> thens;

  /// "Job 'scale'", or "Job 'scale' (tag 'frame 7')": how sentences of it begin.
  std::string subject() const;
  /// The same in the middle of one.
  std::string object() const;

  bool advance(State from, State to) noexcept { return state.compare_exchange_strong(from, to); }
  /// The result, once settled.
  Result<Outcome> result();
};

}  // namespace scheduler
}  // namespace v0
}  // namespace wye
