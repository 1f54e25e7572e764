#pragma once
/// Graphs: jobs with dependencies, which become a plan.
#include <wye/base/clock.hpp>
#include <wye/base/result.hpp>
#include <wye/scheduler/job.hpp>
#include <wye/scheduler/plan.hpp>
#include <wye/scheduler/scheduler.hpp>

#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

namespace wye::inline v0 {

namespace scheduler {
struct GraphState;
}

/// One step of a graph. It converts to its number, which names the step in `Plan::set` and in a
/// `PlanDescription`.
/// Threads: thread-compatible, as its graph.
class WYE_API GraphStep {
 public:
  GraphStep(const GraphStep&) = default;  // also for moves: no step is empty
  GraphStep& operator=(const GraphStep&) = default;
  ~GraphStep() = default;
  /// Makes this step follow another one of the same graph, in addition to those that it follows by
  /// the memory that they share. `Graph::compile` reports a step of another graph, and steps that
  /// follow each other.
  GraphStep after(const GraphStep& step) const;
  operator std::size_t() const noexcept { return number_; }  // NOLINT: a step is its number

 private:
  friend class Graph;
  GraphStep(std::shared_ptr<scheduler::GraphState> graph, std::size_t number);
  std::shared_ptr<scheduler::GraphState> graph_;
  std::size_t number_;
};

/// Options of `Graph::compile`.
struct PlanOptions {
  std::string_view name = "graph";  ///< shown in errors, explanations and the log
  std::string_view on = {};  ///< restricts all steps to an adapter ("vulkan:0") or a backend ("vulkan")
  /// Unset: `SchedulerOptions::fallback`. `forbid`: a step runs on the first device that can run
  /// it, or `compile` fails; a plan whose device is lost fails.
  std::optional<Fallback> fallback = std::nullopt;
  /// All steps on GPUs run on one processor. Otherwise each runs on its first choice.
  bool one_silicon = true;
  WorkloadType type = workload_types::custom;  ///< of the runs, in metrics
  Deadline deadline = {};                      ///< of the builds of kernels
  /// Runs each step on its device in this plan, which was compiled from the same graph. Replaces
  /// `on` and `one_silicon`.
  std::optional<PlanDescription> placement = std::nullopt;
};

/// A list of jobs, each a step. A step follows the steps before it that write memory that it uses,
/// and those that use memory that it writes: slices of arrays, host memory, buffers and scratch
/// memory. Other steps are independent. Scratch memory keeps its contents from step to step of a
/// run. Copies share one graph. Plans that are compiled already do not change with it.
/// Threads: thread-compatible. Host memory among the arguments is borrowed by each run.
class WYE_API Graph {
 public:
  Graph();
  Graph(const Graph&) = default;  // also for moves: no graph is empty
  Graph& operator=(const Graph&) = default;
  ~Graph() = default;

  /// Adds a step. `compile` reports the error of a step that cannot run.
  GraphStep add(Job job);
  std::size_t size() const noexcept;

  /// Chooses the device of each step, builds its kernels, reserves all memory and records the
  /// commands.
  /// Errors: invalid_argument (no steps; steps that follow each other, named; a step of another
  ///         graph; scratch memory that is read before any step writes it; an array of another
  ///         runtime; arguments that overlap, end beyond their memory, or do not match the kernel;
  ///         a `placement` of another graph), unsupported (no device can run a step), unavailable
  ///         and not_found (a device that is named), over_budget and out_of_memory (with the bytes
  ///         that the plan needs), timed_out, closed; those of builds. Each names the step, and the
  ///         argument if it is about one.
  Result<Plan> compile(const Scheduler& scheduler, const PlanOptions& options = {}) const;
  /// The same, for the scheduler of a runtime.
  template <class R>
  requires requires(R& runtime) {
    { runtime.scheduler() } -> std::convertible_to<const Scheduler&>;
  }
  Result<Plan> compile(R& runtime, const PlanOptions& options = {}) const {
    return compile(runtime.scheduler(), options);
  }

 private:
  std::shared_ptr<scheduler::GraphState> state_;
};

}  // namespace wye
