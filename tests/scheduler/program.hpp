#pragma once
/// Random programs of jobs, plans and accesses of the host, and their sequential interpreter.
///
/// A `Program` is data. `execute` gives it to a scheduler, and returns what the host observed
/// (`Trace`). `interpret` repeats that in order on plain vectors, and names the first difference. A
/// graph is executed a second time as the jobs of its steps (`one_by_one`).
#include <wye/wye.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "graph_kernels.hpp"
#include "mixed_devices.hpp"

namespace wye::test::programs {

constexpr std::size_t width = 32;  // elements of all memory

/// Elements of an array, of host memory or of scratch memory.
struct Part {
  enum class Kind { array, row, scratch };
  Kind kind = Kind::array;
  std::size_t index = 0, from = 0, count = width;
  bool overlaps(const Part& other) const {
    return kind == other.kind && index == other.index && from < other.from + other.count &&
           other.from < from + count;
  }
};

/// One call: writes `z`.
struct Operation {
  enum class Kind { affine, combine, blend, shift, iota };
  Kind kind = Kind::affine;
  Part x, y, z;
  Number k = 0;
};

/// What a kind of operation reads and writes.
struct Formula {
  std::size_t inputs;  ///< 1: `x`, 2: `x` and `y`
  bool reads_z;
  Number (*z)(Number x, Number y, Number z, Number k, Number i);
};
const Formula& formula_of(Operation::Kind kind);

/// The calls of a job, or of a step of a graph.
struct Step {
  std::vector<Operation> calls;
  std::vector<std::size_t> after = {};  ///< earlier steps of the graph
  WorkloadType type = workload_types::custom;
};

/// A job, which has one step, or a run of the program's graph, which has its steps in a trace.
struct Run {
  std::vector<Step> steps = {};
  Priority priority = Priority::normal;
  std::string place = {};  ///< `JobOptions::on`
  bool is_awaited = false;
  bool drops_ticket = false;
};
/// Reads or writes all elements of a part, or changes one of them.
struct HostAccess {
  enum class Kind { read, write, change };
  Kind kind = Kind::read;
  Part part;
  Number k = 0;
};
/// Replaces an argument of the graph for later runs.
struct Update {
  enum class Of { x, z, k };
  std::size_t step = 0, call = 0;
  Of of = Of::x;
  std::size_t index = 0;  ///< of the memory
  Number k = 0;
};
/// Cancels the job that was a number among the runs and accesses before.
struct Cancel {
  std::size_t target = 0;
};
/// Something happens to a scripted device.
struct Disturbance {
  enum class Kind { hold, lose, release, lose_if_holding };  // the last one releases it otherwise
  Kind kind = Kind::hold;
  std::size_t device = 0;
};
using Action = std::variant<Run, HostAccess, Update, Cancel, Disturbance>;

/// A scripted device that may be lost, by a disturbance or at a step that it makes.
struct Loss {
  int at = -1;         ///< the number of the step
  bool fails = false;  ///< the step, too
};

struct Program {
  std::vector<Row> arrays, rows;
  std::size_t scratch = 0;
  std::vector<Step> graph;
  std::string on;  ///< `PlanOptions`
  bool one_silicon = false;
  std::vector<Action> actions;
  std::vector<Loss> losses;  ///< of the first scripted devices
};

/// A scheduler on real and scripted devices, and the places where its programs run.
struct World : MixedDevices {
  World(Runtime opened, std::vector<Scripted> scripted_devices, SchedulerOptions options,
        const PoolOptions& of_pool = {.lanes_per_device = 4});
  std::vector<Scripted> devices;
  std::vector<std::string> places;  ///< the devices; the suites add more
  std::size_t alignment = 1;        ///< slices begin at multiples of it: all devices can bind them
};

/// The mistakes that a test plants.
struct Mistakes {
  bool writes_undeclared = false;  ///< `blend` declares to read what it also writes
  bool reads_undeclared = false;   ///< `affine` declares to overwrite what it also reads
  bool forgets_updates = false;
  /// Returns where a call's slice for `z` begins, given its first element and its length.
  std::function<std::size_t(std::size_t, std::size_t)> slice = nullptr;
};

/// Makes a program of 10 to 40 jobs and accesses of the host.
Program random_jobs(const World& world, unsigned seed, bool keeps_tickets, bool loses_devices);
/// Makes a graph of 3 to 16 steps, with 1 to 4 runs, updates between them, and jobs.
Program random_graph(const World& world, unsigned seed);
/// Returns the preferences of the types of its steps: each has another order of devices.
std::vector<Preference> rows_of_types();

/// The memory of a program.
struct Contents {
  std::vector<Array<Number>> arrays;
  std::vector<Row> rows;
  std::vector<Scratch<Number>> scratch;
};

/// A run or an access, and what the host observed.
struct Event {
  std::variant<Run, HostAccess> action;
  bool is_cancelled = false;
  std::optional<Ticket> ticket = std::nullopt;  ///< unset: an access, a dropped ticket, or an awaited job
  std::optional<Error> error = std::nullopt;    ///< of those
  Row seen = {};                                ///< by an access
};
struct Trace {
  Contents contents;
  std::optional<Plan> plan;
  std::vector<Event> events;
  std::string difference;  ///< found by the execution: no plan, or a wrong error of `Plan::set`
};
Trace execute(World& world, const Program& program, const Mistakes& mistakes = {});

/// The errors that the devices of a program give reason for.
struct Faults {
  bool steps_fail = false;                    ///< with `unavailable`
  std::vector<std::string> may_be_lost = {};  ///< these devices
};
/// Returns the first difference between a trace and the interpreter; empty if there is none.
std::string interpret(const Program& program, Trace& trace, const Faults& faults = {});

/// Returns the jobs of all steps of a trace. Each is awaited. Scratch memory is in arrays.
Program one_by_one(const Program& program, const Trace& trace);

/// Executes and interprets a program.
std::string differs(World& world, const Program& program, const Mistakes& mistakes = {},
                    const Faults& faults = {});

}  // namespace wye::test::programs
