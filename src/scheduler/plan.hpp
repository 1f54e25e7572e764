#pragma once
/// The state behind graphs and plans.
///
/// A run is one record (`PlanRun`), so queues, tickets, metrics, followers and closing treat it as
/// a job. The record goes through the segments of its plan one after the other: a segment is a list
/// of recorded commands for one device, and in flight it holds no thread. Records of their own for
/// the segments would let two devices work at the same time. But then the segments of two runs
/// could interleave, and each would cost a job.
///
/// The arguments and commands of a run are constant once it is submitted (`PlanSnapshot`).
/// `Plan::set` makes another snapshot. Recorded commands are taken by one thread at a time and
/// brought up to date there (`take_recorded`): a run whose arguments are those of the run before
/// changes nothing.
///
/// Memory that several devices use in turns is in arrays, also scratch memory: room `data`
/// transfers it. Arrays order runs and jobs. Other memory has no order of users, so runs of a plan
/// that has some follow each other (`PlanState::order`).
#include <wye/scheduler/graph.hpp>
#include <wye/scheduler/plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "data/array_state.hpp"
#include "device/sequence.hpp"
#include "flight/flight.hpp"
#include "scheduler/arrangement.hpp"
#include "scheduler/core.hpp"

namespace wye::inline v0::scheduler {

/// A step as it was added.
struct GraphNode {
  Job job;
  std::vector<std::size_t> after = {};
};

/// Threads: thread-compatible.
struct GraphState {
  std::vector<GraphNode> nodes;
  std::optional<Error> error;  ///< of `add` or `after`
};

/// The numbers of all arguments of a graph, in the order of steps, calls and arguments.
class ArgumentNumbers {
 public:
  explicit ArgumentNumbers(std::span<const GraphNode> nodes);
  /// Returns the number of the first argument of a call.
  std::size_t first(std::size_t step, std::size_t call) const noexcept { return calls_[steps_[step] + call]; }
  std::size_t size() const noexcept { return size_; }

 private:
  std::vector<std::size_t> steps_;  // the first call of each step
  std::vector<std::size_t> calls_;
  std::size_t size_ = 0;
};

/// An argument that `Plan::set` has replaced.
struct Replacement {
  std::size_t number = 0;  ///< of the argument
  std::size_t step = 0;
  std::size_t call = 0;
  std::size_t argument = 0;
  std::uint64_t version = 0;  ///< differs for every `set` of a plan
  Operand operand;
};
/// All of a plan, in the order in which they were replaced first: another list of the same plan
/// begins with the same arguments.
struct Replacements {
  std::uint64_t version = 0;  ///< that of the last replacement
  std::vector<Replacement> all = {};
};

/// The operands of a graph, with the replaced ones.
class Operands {
 public:
  Operands(std::span<const GraphNode> nodes, const ArgumentNumbers& numbers,
           const Replacements& replacements);
  const Operand& at(std::size_t step, std::size_t call, std::size_t argument) const noexcept {
    return *all_[numbers_->first(step, call) + argument];
  }

 private:
  std::vector<const Operand*> all_;
  const ArgumentNumbers* numbers_;
};

/// Memory that operands can share: an array, a buffer, scratch memory, or the memory of the host.
struct Memory {
  Operand::Kind kind = Operand::Kind::none;
  std::uint64_t id = 0;
  friend auto operator<=>(const Memory&, const Memory&) = default;
};

/// Bytes of some memory, and their use.
struct Touched {
  Memory memory;
  data::Interval bytes;
  Access access = Access::none;
};

/// Returns the memory of an operand; nothing for values.
std::optional<Touched> touched_by(const Operand& operand);

/// Errors: invalid_argument (steps that follow each other).
Result<Dependencies> find_dependencies(std::span<const GraphNode> nodes, const Operands& operands);
/// Returns a step that uses `operand`, an argument of `step`, in a way that orders the two, and
/// that is not in the order of `position` accordingly. Nothing if there is none.
std::optional<std::size_t> misplaced_user(std::span<const GraphNode> nodes, const Operands& operands,
                                          std::span<const std::size_t> position, std::size_t step,
                                          const Operand& operand);

/// The arrays of a plan, as each run follows and writes them.
struct ArrayUses {
  struct Use {
    std::shared_ptr<data::ArrayState> array;
    data::Interval elements;
    Access access = Access::none;
    std::size_t pieces = 1;  ///< a run may mark this many parts of it separately
  };
  std::vector<Use> uses;
  decltype(Record::Dependencies::outputs) outputs;
  Bytes size;  ///< of all operands but values and scratch memory
};
ArrayUses find_array_uses(std::span<const GraphNode> nodes, const Operands& operands);

/// Scratch memory of a plan.
struct PlanScratch {
  Bytes bytes;
  std::shared_ptr<device::BufferBase> buffer = nullptr;  ///< if one device uses it
  std::shared_ptr<data::ArrayState> array = nullptr;     ///< of bytes, if several do
};

/// The memory of the arguments on the devices of a plan. A run uses that of the arguments it was
/// submitted with.
struct PlanMemory {
  std::uint64_t version = 0;                        ///< differs for every memory of a plan
  std::vector<flight::Binding::Operands> segments;  ///< the operands of each
};

/// The recorded commands of a segment.
struct RecordedSegment {
  explicit RecordedSegment(const std::shared_ptr<device::DeviceBase>& device) : sequence(device) {}
  device::SequenceState sequence;
  std::uint64_t memory = 0;                ///< the version of its memory
  std::uint64_t replacements = 0;          ///< the version of its arguments
  std::vector<Replacement> replaced = {};  ///< the arguments that it has; without operands
};

/// A graph on some devices.
/// Threads: `recorded` under the mutex; the rest is constant once it is compiled.
struct Compiled : Arrangement {
  std::vector<Device> of_pool;                       ///< its devices when the steps were placed
  std::vector<std::size_t> devices;                  ///< of each step
  std::vector<std::vector<Executable>> executables;  ///< of each call of each step
  std::unordered_map<std::uint64_t, PlanScratch> scratch;
  std::vector<std::shared_ptr<silicon::MemoryAccount>>
      accounts;  ///< by device of the pool; null if the plan is not there
  std::shared_ptr<const PlanDescription> description;
  PlanCounts::Use use;  ///< of the devices

  std::mutex mutex;
  std::vector<std::vector<std::unique_ptr<RecordedSegment>>> recorded;  ///< idle ones, of each segment
};

/// The arguments and commands of a run, as they were when the run was submitted.
struct PlanSnapshot {
  std::shared_ptr<Compiled> compiled;
  std::shared_ptr<const Replacements> replacements;
  std::shared_ptr<const ArrayUses> arrays;
  std::shared_ptr<const PlanMemory> memory;  ///< null: a device was lost, and the steps must be placed again
};

/// Threads: thread-safe. The mutex is a leaf.
struct PlanState {
  PlanState(std::shared_ptr<Core> in, std::vector<GraphNode> all, const PlanOptions& options,
            Fallback otherwise);
  PlanState(const PlanState&) = delete;

  const std::shared_ptr<Core> core;
  const std::string name;
  const std::string on;
  const Fallback fallback;
  const bool one_silicon;
  const WorkloadType type;
  const std::vector<GraphNode> nodes;
  const ArgumentNumbers numbers;
  const Job job;       ///< stands for its runs in the scheduler: a call without arguments
  const bool borrows;  ///< an argument is host memory
  /// Followed by each run, if runs share memory that is not in arrays.
  std::shared_ptr<data::ArrayState> order;

  mutable std::mutex mutex;
  std::shared_ptr<const PlanSnapshot> snapshot;
  std::uint64_t last_version = 0;
  std::vector<std::string> changes;  ///< see `PlanDescription`
  /// The ends of work in flight of runs that have failed. Later runs use the same buffers.
  std::vector<device::TimelinePoint> in_flight;

  std::shared_ptr<const PlanSnapshot> current() const {
    const base::Lock lock(mutex);
    return snapshot;
  }
  /// Has later runs wait on the device of `lane`, which a run that has failed leaves, for the work
  /// that it has submitted there.
  void note_in_flight(device::Lane& lane) noexcept;
  /// Has `lane` wait for such work on its device.
  void wait_for_work_in_flight(device::Lane& lane);
  std::uint64_t next_version() {
    const base::Lock lock(mutex);
    return ++last_version;
  }
};

/// One run of a plan: a part of its record.
/// Threads: that of the thread that runs the job.
struct PlanRun {
  std::shared_ptr<PlanState> plan;
  std::shared_ptr<const PlanSnapshot> snapshot;
  const std::shared_ptr<const ArrayUses> arrays;  ///< constant: read when a run is abandoned
  std::size_t segment = 0;                        ///< the first that has not completed

  /// Returns the operands of that segment.
  const flight::Binding::Operands& operands() const noexcept { return snapshot->memory->segments[segment]; }
};

/// Allocates the memory that a plan has for all of its runs: scratch memory, and the replicas of
/// arrays. Describes it by device.
/// Threads: one thread at a time for each plan that is being compiled.
/// Errors: over_budget (a plan that never fits into an account), and those of allocations.
Result<void> reserve_memory(const std::shared_ptr<pool::Pool>& pool, const PlanState& plan,
                            Compiled& compiled, const Operands& operands);

/// Finds the memory of arguments. Copies of host memory stay where those of `before` are, if it is
/// not null.
/// Threads: thread-safe.
Result<std::shared_ptr<const PlanMemory>> find_memory(PlanState& plan, const Compiled& compiled,
                                                      const Operands& operands, const PlanMemory* before);

/// Places, builds, arranges and records.
/// Threads: one thread at a time.
class Compiler {
 public:
  Compiler(PlanState& plan, Instant ready_by)
      : plan_(plan), core_(*plan.core), devices_(core_.pool().fleet().devices()), ready_by_(ready_by) {}
  /// Compiles the plan with some arguments. `placement` names the device of each step, if it is not
  /// null.
  Result<std::shared_ptr<const PlanSnapshot>> compile(std::shared_ptr<const Replacements> replacements,
                                                      const PlanDescription* placement);

 private:
  /// A step, and the decisions about its devices, in the order in which it tries them. The chosen
  /// device is that of the first open decision.
  struct Placed {
    std::shared_ptr<Record> record;
    std::vector<Decision> decisions = {};
    std::size_t chosen = 0;
    bool is_pinned = false;

    /// Chooses the first open device that meets a condition. Returns whether there is one.
    template <class F>
    bool choose(F meets) {
      const auto found = std::find_if(decisions.begin(), decisions.end(),
                                      [&](const Decision& d) { return d.is_open() && meets(d.device); });
      if (found == decisions.end()) return false;
      chosen = static_cast<std::size_t>(found - decisions.begin());
      return true;
    }
    std::size_t device() const noexcept { return decisions[chosen].device; }
  };

  Result<void> check(const Operands& operands) const;
  Result<void> place(const Operands& operands, const PlanDescription* placement);
  void spread();
  Result<void> place_on_one_silicon();
  Result<bool> build();
  void arrange_steps(const Dependencies& dependencies);
  void keep_decisions(const Placed& placed) const;
  void describe(const Operands& operands, const Dependencies& dependencies, const PlanMemory& memory);
  Job job_of(std::size_t step, const Operands& operands) const;
  std::string step_text(std::size_t step) const;
  const Device& device(std::size_t index) const { return devices_[index]; }

  PlanState& plan_;
  Core& core_;
  std::vector<Device> devices_;  // of the pool; a device that is lost meanwhile keeps its handle
  const Instant ready_by_;
  std::shared_ptr<Compiled> compiled_;
  std::vector<Placed> placed_;
};

/// Takes recorded commands of a segment that no thread is submitting, with the arguments of
/// `snapshot`; records them if there are none. The caller gives them back.
Result<std::unique_ptr<RecordedSegment>> take_recorded(const PlanState& plan, const PlanSnapshot& snapshot,
                                                       std::size_t segment);
void give_back(Compiled& compiled, std::size_t segment, std::unique_ptr<RecordedSegment> recorded) noexcept;

/// Submits the commands of the segment that a run is at, after `flight` has bound its operands.
Result<void> record_segment(const PlanRun& run, flight::Flight& flight);

/// Checks recorded commands as the lanes of their device do, and names the step of a wrong command.
Result<void> check_recorded(const PlanState& plan, const Compiled& compiled, std::size_t segment,
                            RecordedSegment& recorded);

/// Checks one call of a snapshot in the same way.
Result<void> check_call(const PlanState& plan, const PlanSnapshot& snapshot, std::size_t step,
                        std::size_t call);

/// Returns the devices of a plan and the number of steps on each, as a sentence.
std::string reason_of(const PlanDescription& plan);
/// Returns the steps of a plan without their devices.
PlanDescription shape_of(const PlanState& plan, const Operands& operands, const Dependencies& dependencies);
/// Returns why a placement is not one of this plan, by step and field; empty if it is.
std::string placement_difference(const PlanDescription& placement, const PlanDescription& plan);

}  // namespace wye::scheduler
