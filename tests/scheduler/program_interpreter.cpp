// The sequential interpreter of random programs.
#include <algorithm>
#include <utility>

#include "program.hpp"

namespace wye::test::programs {

const Formula& formula_of(Operation::Kind kind) {
  static constexpr Formula formulas[] = {
      {0, true, [](Number, Number, Number z, Number k, Number) { return z * 3 + k; }},
      {2, false, [](Number x, Number y, Number, Number k, Number) { return x + 5 * y + k; }},
      {1, true, [](Number x, Number, Number z, Number k, Number) { return z ^ (x * 7 + k); }},
      {1, false, [](Number x, Number, Number, Number k, Number) { return x + k; }},
      {0, false, [](Number, Number, Number, Number k, Number i) { return k + i; }},
  };
  return formulas[static_cast<std::size_t>(kind)];
}

namespace {

using Causes = std::vector<Errc>;

bool has(const Causes& causes, Errc error) {
  return std::find(causes.begin(), causes.end(), error) != causes.end();
}

/// Some memory of a program.
struct Memory {
  explicit Memory(Row initial) : values(std::move(initial)) {}
  Row values;
  std::vector<std::optional<Errc>> failures =
      std::vector<std::optional<Errc>>(values.size());  ///< of each element
  /// Elements whose only copy may be on a device that may be lost, and those that have failed for
  /// that, if it was.
  std::vector<bool> at_risk = std::vector<bool>(values.size()), may_have_failed = at_risk;

  Row seen(const Part& part) const {
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(part.from);
    return {first, first + static_cast<std::ptrdiff_t>(part.count)};
  }
  void fail(const Part& part, std::optional<Errc> error) {
    std::fill_n(failures.begin() + static_cast<std::ptrdiff_t>(part.from), part.count, error);
  }
  void add_causes(const Part& part, Causes& causes) const {
    for (std::size_t i = part.from; i < part.from + part.count; ++i)
      if (failures[i]) causes.push_back(*failures[i]);
  }
  bool any(const std::vector<bool>& of, const Part& part) const {
    const auto first = of.begin() + static_cast<std::ptrdiff_t>(part.from);
    const auto end = first + static_cast<std::ptrdiff_t>(part.count);
    return std::find(first, end, true) != end;
  }
  /// The elements have been written, on a device that may be lost or elsewhere.
  void write(const Part& part, bool is_at_risk) {
    fail(part, std::nullopt);
    for (std::size_t i = part.from; i < part.from + part.count; ++i)
      at_risk[i] = is_at_risk, may_have_failed[i] = false;
  }
  /// A copy from the device of these elements may have failed.
  void use(const Part& part) {
    for (std::size_t i = part.from; i < part.from + part.count; ++i)
      if (at_risk[i]) may_have_failed[i] = true;
  }
};

class Interpreter {
 public:
  Interpreter(const Program& program, const Faults& faults) : faults_(faults) {
    for (const Row& row : program.arrays) memory_[0].emplace_back(row);
    for (const Row& row : program.rows) memory_[1].emplace_back(row);
    for (std::size_t i = 0; i < program.scratch; ++i) memory_[2].emplace_back(Row(width));
  }
  /// Returns the difference of an event; empty if there is none.
  std::string repeat(Event& event) {
    if (const Run* run = std::get_if<Run>(&event.action)) return repeat(*run, event);
    return repeat(std::get<HostAccess>(event.action), event);
  }

 private:
  Memory& of(const Part& part) { return memory_[static_cast<std::size_t>(part.kind)][part.index]; }

  bool may_lose(const std::string& device) const {
    return std::find(faults_.may_be_lost.begin(), faults_.may_be_lost.end(), device) !=
           faults_.may_be_lost.end();
  }
  /// Returns whether a job that may run there may meet a device that is lost.
  bool may_lose_one_of(const std::string& place) const {
    return !faults_.may_be_lost.empty() && (place.empty() || place == "cuda" || may_lose(place));
  }
  bool is_of_loss(Errc error) const {  // also of a copy that another user of the array made
    return !faults_.may_be_lost.empty() && (error == Errc::device_lost || error == Errc::unavailable);
  }

  std::string repeat(const HostAccess& access, const Event& event) {
    Memory& memory = of(access.part);
    if (event.error) {
      const Errc error = event.error->code();
      if (faults_.steps_fail && error == Errc::unavailable) return {};  // a copy to the host failed
      if (is_of_loss(error) && memory.any(memory.at_risk, access.part)) {
        memory.use(access.part);
        return {};
      }
    }
    Causes causes;
    memory.add_causes(access.part, causes);
    return access.kind == HostAccess::Kind::read ? read(access, event, causes) : write(access, event, causes);
  }
  std::string read(const HostAccess& access, const Event& event, const Causes& causes) {
    if (event.error ? !has(causes, event.error->code()) : !causes.empty())
      return "the host's read has another error";
    if (!event.error && event.seen != of(access.part).seen(access.part)) return "the host's read is stale";
    return {};
  }
  std::string write(const HostAccess& access, const Event& event, const Causes& causes) {
    const Part& part = access.part;
    Memory& memory = of(part);
    if (event.error) return "the host's write failed";
    const bool is_known = causes.empty() && !memory.any(memory.may_have_failed, part);
    if (access.kind == HostAccess::Kind::change && is_known && event.seen != memory.seen(part))
      return "a stale view";
    memory.write(part, false);
    Row values = access.kind == HostAccess::Kind::write ? Row(part.count, access.k) : event.seen;
    values[access.k % part.count] = access.k;
    std::copy(values.begin(), values.end(), memory.values.begin() + static_cast<std::ptrdiff_t>(part.from));
    return {};
  }

  std::string repeat(const Run& run, Event& event) {
    const std::vector<Part> inputs = inputs_of(run);
    Causes causes;
    bool may_be_lost = may_lose_one_of(run.place);
    for (const Part& input : inputs) {
      of(input).add_causes(input, causes);
      may_be_lost = may_be_lost || of(input).any(of(input).at_risk, input);
    }
    bool is_at_risk = false;
    const std::optional<Error> error = error_of(event, causes, is_at_risk);
    if (!error && !causes.empty()) return "a job with a failed input completed";
    if (error && !has(causes, error->code()) && !is_excused(error->code(), event, may_be_lost))
      return "a job failed without a cause: " + error->describe();
    for (const Part& input : inputs)
      if (error) of(input).use(input);
    for (const Step& step : run.steps)
      for (const Operation& op : step.calls) {
        if (error)
          of(op.z).fail(op.z, error->code());
        else
          apply(op, is_at_risk);
      }
    return {};
  }
  static std::vector<Part> inputs_of(const Run& run) {
    std::vector<Part> inputs;
    for (const Step& step : run.steps)
      for (const Operation& op : step.calls) {
        const Formula& formula = formula_of(op.kind);
        if (formula.inputs > 0) inputs.push_back(op.x);
        if (formula.inputs > 1) inputs.push_back(op.y);
        if (formula.reads_z) inputs.push_back(op.z);
      }
    return inputs;
  }
  /// Returns the error of a run. If its ticket was dropped, it is the first cause.
  std::optional<Error> error_of(Event& event, const Causes& causes, bool& is_at_risk) const {
    if (event.ticket) {
      const auto done = event.ticket->wait();
      if (!done) return done.error();
      is_at_risk = may_lose(done->device().id);
      return std::nullopt;
    }
    if (event.error || causes.empty()) return event.error;
    return Error(causes.front(), "An input has failed.");
  }
  bool is_excused(Errc error, const Event& event, bool may_be_lost) const {
    return (event.is_cancelled && error == Errc::cancelled) ||
           (faults_.steps_fail && error == Errc::unavailable) || (may_be_lost && is_of_loss(error));
  }
  void apply(const Operation& op, bool is_at_risk) {
    const Formula& formula = formula_of(op.kind);
    Memory& z = of(op.z);
    z.write(op.z, is_at_risk);
    const Row unused(op.z.count);
    const Row x = formula.inputs > 0 ? of(op.x).seen(op.x) : unused;
    const Row y = formula.inputs > 1 ? of(op.y).seen(op.y) : unused;
    for (std::size_t i = 0; i < op.z.count; ++i) {
      Number& value = z.values[op.z.from + i];
      value = formula.z(x[i], y[i], value, op.k, static_cast<Number>(i));
    }
  }

  const Faults& faults_;
  std::vector<Memory> memory_[3];  // by kind
};

std::string text_of(const Part& part) {
  static constexpr const char* names[] = {"array ", "row ", "scratch "};
  return names[static_cast<std::size_t>(part.kind)] + std::to_string(part.index) + ", elements " +
         std::to_string(part.from) + " to " + std::to_string(part.from + part.count);
}

std::string text_of(const Event& event) {
  if (const HostAccess* access = std::get_if<HostAccess>(&event.action))
    return "access of kind " + std::to_string(static_cast<int>(access->kind)) + ", " + text_of(access->part);
  const Run& run = std::get<Run>(event.action);
  if (run.steps.size() != 1) return "run of " + std::to_string(run.steps.size()) + " steps";
  const Operation& op = run.steps[0].calls[0];
  return "job of kind " + std::to_string(static_cast<int>(op.kind)) + ", " + text_of(op.z);
}

}  // namespace

std::string interpret(const Program& program, Trace& trace, const Faults& faults) {
  if (!trace.difference.empty()) return trace.difference;
  Interpreter interpreter(program, faults);
  for (std::size_t n = 0; n < trace.events.size(); ++n)
    if (const std::string difference = interpreter.repeat(trace.events[n]); !difference.empty())
      return "event " + std::to_string(n) + ", " + text_of(trace.events[n]) + ": " + difference +
             (trace.plan ? "\n" + trace.plan->text() : "");
  return {};
}

std::string differs(World& world, const Program& program, const Mistakes& mistakes, const Faults& faults) {
  Trace trace = execute(world, program, mistakes);
  return interpret(program, trace, faults);
}

}  // namespace wye::test::programs
