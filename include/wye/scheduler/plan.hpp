#pragma once
/// Plans: graphs that are compiled for the devices of a runtime and run many times.
#include <wye/base/bytes.hpp>
#include <wye/base/extent.hpp>
#include <wye/base/result.hpp>
#include <wye/device/parameter.hpp>
#include <wye/scheduler/job.hpp>
#include <wye/scheduler/ticket.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace wye::inline v0 {

namespace scheduler {
struct PlanState;
}

/// A plan as data. Steps are numbered in the order in which they were added to the graph.
/// Threads: thread-compatible.
struct PlanDescription {
  /// One argument of a step.
  struct Argument {
    /// The memory, numbered by first use: "array 0", "host memory 1", "buffer 2", "scratch 3";
    /// "value" for values.
    std::string memory;
    std::string kept_in;  ///< "host", "device", or "parameters" for values
    Access access = Access::read;
    ElementType element = ElementType::opaque;
    std::uint32_t element_size = 0;
    std::uint64_t first = 0;  ///< element of the memory
    std::uint64_t count = 0;
    friend bool operator==(const Argument&, const Argument&) = default;
  };
  /// One kernel call of a step.
  struct Call {
    std::string kernel;
    Extent3 items;
    std::vector<Argument> arguments;
    friend bool operator==(const Call&, const Call&) = default;
  };
  struct Step {
    std::string name;
    std::string device;  ///< "cuda:0"
    std::vector<Call> calls;
    std::vector<std::size_t> after;  ///< the steps that it follows
    /// Its device first, with the times of earlier jobs like the step (`Candidate::estimate`); not compared.
    std::vector<Candidate> candidates;
  };
  /// A copy that the plan inserts. It is left out in a run that finds the contents in place
  /// already.
  struct Copy {
    std::size_t before = 0;  ///< the step that needs it; the number of steps: after the last step
    std::string memory;      ///< as in `Argument`
    std::string from;        ///< "host" or a device
    std::string to;
    Bytes bytes;
    friend bool operator==(const Copy&, const Copy&) = default;
  };
  /// A device of the plan, and the memory that is reserved there.
  struct Device {
    std::string id;
    std::string name;
    Bytes arrays;   ///< replicas of arrays
    Bytes host;     ///< copies of host memory
    Bytes scratch;  ///< shared by scratch memories that are never in use at the same time
    Bytes total() const { return arrays + host + scratch; }
    friend bool operator==(const Device&, const Device&) = default;
  };

  std::string name;
  std::vector<Step> steps;
  std::vector<std::size_t> order;  ///< in which the steps are submitted
  /// The parts of `order` that are submitted together, by their numbers of steps: each runs on one
  /// device.
  std::vector<std::size_t> segments;
  /// Arrays count as being on the host before the first step.
  std::vector<Copy> copies;
  std::vector<Device> devices;
  std::vector<std::string> changes;  ///< why steps were placed again; not compared

  /// Returns a line for the plan, for each step, copy and device. No trailing newline.
  WYE_API std::string text() const;
  /// Returns all of it as one JSON object on one line.
  WYE_API std::string json() const;
  /// Returns the steps and dependencies as a graph in the language of Graphviz.
  WYE_API std::string graphviz() const;
  /// Reads the result of `json`.
  /// Errors: corrupt, naming the member that is missing or has another type.
  WYE_API static Result<PlanDescription> from_json(std::string_view text);
  WYE_API friend bool operator==(const PlanDescription& a, const PlanDescription& b);
};

/// Returns a sentence for each difference between two plans, by step and field; none if they are
/// equal.
WYE_API std::vector<std::string> differences(const PlanDescription& a, const PlanDescription& b);

/// A graph that is compiled: the device of each step is chosen, its kernels are built, the memory
/// is reserved, and the commands are recorded (on CUDA as graphs of the driver). Copies share one
/// plan. A run behaves as one job: it follows the users of the graph's arrays and is followed by
/// them. Runs of a plan that uses arrays and values only are ordered by these arrays. Runs of any
/// other plan follow each other. If a device of the plan is lost, the next run places all steps
/// again; a run that has completed some steps fails. A plan does not keep its runtime open. It
/// keeps the arrays, buffers and memory of its arguments.
/// Threads: thread-safe.
class WYE_API Plan {
 public:
  /// Submits a run; see `Scheduler::submit`. `JobOptions::on`, `fallback` and `type` are options of
  /// `Graph::compile`.
  /// Errors: those of a job, through the ticket; invalid_argument (an option of `compile` is set).
  /// Cost:   independent of the number of steps, but for one user of each array.
  [[nodiscard]] Ticket run(const JobOptions& options = {});

  /// Replaces argument number `argument` of call number `call` of a step, for later runs. Runs that
  /// were submitted keep theirs. A value is replaced by a value of the same type; memory by memory
  /// of the same kind, element type and size. A grid stays the same. Host memory is borrowed by
  /// later runs.
  /// Errors: invalid_argument, naming the step and the argument: there is no such argument, the
  ///         value has another type, the memory another size, kind or runtime, or it is used by
  ///         another step in a way that needs another order; those of an allocation if a device
  ///         needs a new copy of the memory.
  /// Cost:   one allocation for a value, unless no run is pending; proportional to the size of the
  ///         plan for memory.
  template <class T>
  Result<void> set(std::size_t step, std::size_t argument, T&& value, std::size_t call = 0) {
    using Value = std::remove_cvref_t<T>;
    if constexpr (detail::HasOperand<Value>) {
      return set_operand(step, call, argument, value.operand(Access::read_write));
    } else if constexpr (std::ranges::contiguous_range<T> && std::ranges::borrowed_range<T> &&
                         (std::is_array_v<Value> || std::ranges::view<Value> ||
                          !std::is_trivially_copyable_v<Value>)) {
      using Element = std::remove_pointer_t<decltype(std::ranges::data(value))>;
      return set_operand(
          step, call, argument,
          detail::Operand::host_span(std::span<Element>(std::ranges::data(value), std::ranges::size(value)),
                                     std::is_const_v<Element> ? Access::read : Access::read_write));
    } else {
      static_assert(std::is_trivially_copyable_v<Value>,
                    "an argument is an array, a buffer, a container by reference, a span or a plain value");
      return set_operand(step, call, argument, detail::Operand::of_value(value));
    }
  }

  /// Returns the plan as data, as it is now; an empty one in a child of `fork`.
  PlanDescription description() const;
  std::string text() const { return description().text(); }
  std::string json() const { return description().json(); }
  std::string graphviz() const { return description().graphviz(); }

 private:
  friend struct detail::Internals;
  explicit Plan(std::shared_ptr<scheduler::PlanState> state);
  Result<void> set_operand(std::size_t step, std::size_t call, std::size_t argument, detail::Operand operand);
  std::shared_ptr<scheduler::PlanState> state_;

 public:
  Plan(const Plan&) = default;  // also for moves: no plan is empty
  Plan& operator=(const Plan&) = default;
  ~Plan() = default;
};

}  // namespace wye
