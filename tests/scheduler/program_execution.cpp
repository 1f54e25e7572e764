// Gives random programs to a scheduler.
#include <algorithm>
#include <string>
#include <utility>

#include "program.hpp"

namespace wye::test::programs {
namespace {

/// Makes a kernel whose last parameters are the written elements `z` and a number `k`. The CUDA C++
/// is that of tests/support/cuda/programs.cu.
template <class... P, class F>
Kernel<P...> kernel(const std::string& name, const std::string& buffers, const std::string& parameters,
                    const std::string& statement, F on_host) {
  return Kernel<P...>::make({.name = name,
                             .sources = {Glsl{.text = number_glsl(buffers, statement)},
                                         CudaCpp{.text = number_cuda(name, parameters + ", unsigned k",
                                                                     "if (i < z.size) " + statement)},
                                         host(on_host)}})
      .value();
}

/// Makes a kernel of the host that declares its parameters wrongly.
template <class... P, class F>
Kernel<P...> planted(F on_host) {
  return Kernel<P...>::make({.name = "planted", .sources = {host(on_host)}}).value();
}

using X = std::span<const Number>;
using Z = std::span<Number>;

const std::string in_x = "layout(set = 0, binding = 0) readonly buffer X { uint x[]; };\n";

/// z = 3 z + k
const auto& affine() {
  static const auto made = kernel<ReadWrite<Number>, Number>(
      "affine", "layout(set = 0, binding = 0) buffer Z { uint z[]; };\n", "wye_span<unsigned> z",
      "z[i] = z[i] * 3u + k;", [](Range range, Z z, Number k) {
        for (const std::uint64_t i : range) z[i] = z[i] * 3 + k;
      });
  return made;
}

/// z = x + 5 y + k
const auto& combine() {
  static const auto made = kernel<Read<Number>, Read<Number>, Write<Number>, Number>(
      "combine",
      in_x +
          "layout(set = 0, binding = 1) readonly buffer Y { uint y[]; };\n"
          "layout(set = 0, binding = 2) writeonly buffer Z { uint z[]; };\n",
      "wye_span<const unsigned> x, wye_span<const unsigned> y, wye_span<unsigned> z",
      "z[i] = x[i] + 5u * y[i] + k;", [](Range range, X x, X y, Z z, Number k) {
        for (const std::uint64_t i : range) z[i] = x[i] + 5 * y[i] + k;
      });
  return made;
}

/// z = z ^ (7 x + k)
const auto& blend() {
  static const auto made = kernel<Read<Number>, ReadWrite<Number>, Number>(
      "blend", in_x + "layout(set = 0, binding = 1) buffer Z { uint z[]; };\n",
      "wye_span<const unsigned> x, wye_span<unsigned> z", "z[i] = z[i] ^ (x[i] * 7u + k);",
      [](Range range, X x, Z z, Number k) {
        for (const std::uint64_t i : range) z[i] ^= x[i] * 7 + k;
      });
  return made;
}

/// z = x + k
const auto& shift() {
  static const auto made = kernel<Read<Number>, Write<Number>, Number>(
      "shift", in_x + "layout(set = 0, binding = 1) writeonly buffer Z { uint z[]; };\n",
      "wye_span<const unsigned> x, wye_span<unsigned> z", "z[i] = x[i] + k;",
      [](Range range, X x, Z z, Number k) {
        for (const std::uint64_t i : range) z[i] = x[i] + k;
      });
  return made;
}

const auto& affine_that_declares_to_overwrite() {
  static const auto made = planted<Write<Number>, Number>([](Range range, Z z, Number k) {
    for (const std::uint64_t i : range) z[i] = z[i] * 3 + k;
  });
  return made;
}

const auto& blend_that_declares_to_read() {
  static const auto made = planted<Read<Number>, Read<Number>, Number>([](Range, X x, X z, Number k) {
    for (std::size_t i = 0; i < z.size(); ++i) const_cast<Number&>(z[i]) ^= x[i] * 7 + k;
  });
  return made;
}

class Execution {
 public:
  Execution(World& world, const Program& program, const Mistakes& mistakes)
      : world_(world), program_(program), mistakes_(mistakes), graph_(program.graph) {
    Contents& contents = trace_.contents;
    for (const Row& values : program.arrays) contents.arrays.push_back(array_in(*world.pool, values));
    contents.rows = program.rows;
    for (std::size_t i = 0; i < program.scratch; ++i) contents.scratch.emplace_back(width);
  }
  ~Execution() {
    for (std::size_t d = 0; d < program_.losses.size(); ++d) world_.devices[d]->release();
  }
  Execution(const Execution&) = delete;

  Trace run() {
    prepare_losses();
    if (!program_.graph.empty()) compile();
    for (const Action& action : program_.actions) {
      if (!trace_.difference.empty()) break;
      std::visit([&](const auto& one) { perform(one); }, action);
    }
    return std::move(trace_);
  }

 private:
  /// The devices that a program loses at a step of a job, on its thread.
  void prepare_losses() {
    for (std::size_t d = 0; d < program_.losses.size(); ++d) {
      if (program_.losses[d].at < 0) continue;
      auto* const device = world_.devices[d].get();
      device->set_script([device, loss = program_.losses[d]](auto) -> std::optional<Error> {
        if (device->steps_made() != loss.at) return std::nullopt;
        device->lose();
        if (!loss.fails) return std::nullopt;
        return Error(Errc::device_lost, "The script loses the device at this step.");
      });
    }
  }

  void compile() {
    Graph graph;
    for (const Step& step : program_.graph) {
      added_.push_back(graph.add(job_of(step)));
      for (const std::size_t before : step.after) added_.back().after(added_[before]);
    }
    auto plan = graph.compile(*world_.scheduler, {.on = program_.on, .one_silicon = program_.one_silicon});
    if (plan)
      trace_.plan = *std::move(plan);
    else
      trace_.difference = "compile: " + plan.error().describe();
  }

  template <class P>
  P parameter(const Part& part) {
    Contents& contents = trace_.contents;
    switch (part.kind) {
      case Part::Kind::array: return P(slice(contents.arrays[part.index], part));
      case Part::Kind::row: return P(std::span(contents.rows[part.index]).subspan(part.from, part.count));
      case Part::Kind::scratch: break;
    }
    return P(contents.scratch[part.index]).slice(part.from, part.count);
  }
  static Array<Number> slice(const Array<Number>& array, const Part& part) {
    return part.count == width ? array : array.slice(part.from, part.count);
  }
  Read<Number> read(const Part& part) { return parameter<Read<Number>>(part); }

  Call call_of(const Operation& op) {
    Part z = op.z;
    if (mistakes_.slice && z.count < width) z.from = mistakes_.slice(z.from, z.count);
    const auto changed = [&] { return parameter<ReadWrite<Number>>(z); };
    const auto written = [&] { return parameter<Write<Number>>(z); };
    switch (op.kind) {
      case Operation::Kind::affine:
        if (mistakes_.reads_undeclared) return affine_that_declares_to_overwrite()(written(), op.k);
        return affine()(changed(), op.k);
      case Operation::Kind::combine: return combine()(read(op.x), read(op.y), written(), op.k);
      case Operation::Kind::blend:
        if (mistakes_.writes_undeclared) return blend_that_declares_to_read()(read(op.x), read(z), op.k);
        return blend()(read(op.x), changed(), op.k);
      case Operation::Kind::shift: return shift()(read(op.x), written(), op.k);
      case Operation::Kind::iota: break;
    }
    return count_numbers()(written(), op.k);
  }
  Job job_of(const Step& step) {
    Call first = call_of(step.calls[0]);
    std::vector<Call> rest;
    for (std::size_t c = 1; c < step.calls.size(); ++c) rest.push_back(call_of(step.calls[c]));
    return Job::sequence("step", step.type, std::move(first), std::move(rest));
  }

  void perform(const Run& run) {
    Event& event = trace_.events.emplace_back(Event{run});
    if (run.steps.empty()) {
      std::get<Run>(event.action).steps = graph_;
      event.ticket = trace_.plan->run({.priority = run.priority});
      return;
    }
    Job job = job_of(run.steps[0]);
    if (run.is_awaited) {
      if (const auto done = world_.scheduler->run(std::move(job)); !done) event.error = done.error();
      return;
    }
    Ticket ticket = world_.scheduler->submit(std::move(job), {.priority = run.priority, .on = run.place});
    if (!run.drops_ticket) event.ticket = std::move(ticket);
  }

  void perform(const HostAccess& access) {
    Event event{access};
    if (access.part.kind == Part::Kind::row)
      event.seen = row_after_all(access.part);
    else if (access.kind == HostAccess::Kind::read)
      read_array(access, event);
    else
      write_array(access, event);
    trace_.events.push_back(std::move(event));
  }
  Row row_after_all(const Part& part) {
    for (Event& event : trace_.events)
      if (event.ticket) (void)event.ticket->wait().has_value();
    const auto first = trace_.contents.rows[part.index].begin() + static_cast<std::ptrdiff_t>(part.from);
    return {first, first + static_cast<std::ptrdiff_t>(part.count)};
  }
  void read_array(const HostAccess& access, Event& event) {
    const auto view = part_of(access).read();
    if (view)
      event.seen.assign(view->begin(), view->end());
    else
      event.error = view.error();
  }
  void write_array(const HostAccess& access, Event& event) {
    auto view = part_of(access).write();
    if (!view) {
      event.error = view.error();
      return;
    }
    event.seen.assign(view->begin(), view->end());
    if (access.kind == HostAccess::Kind::write) std::fill(view->begin(), view->end(), access.k);
    (*view)[access.k % access.part.count] = access.k;
  }
  Array<Number> part_of(const HostAccess& access) const {
    return trace_.contents.arrays[access.part.index].slice(access.part.from, access.part.count);
  }

  void perform(const Update& update) {
    Operation changed = graph_[update.step].calls[update.call];
    Part& memory = update.of == Update::Of::x ? changed.x : changed.z;
    if (update.of == Update::Of::k)
      changed.k = update.k;
    else
      memory.index = update.index;
    if (!mistakes_.forgets_updates) {
      if (const auto set = replace(update, changed); !set) {
        const std::string why = set.error().describe();
        const bool is_right =
            update.of != Update::Of::k && (mentions(why, "another order") || mentions(why, "overlaps"));
        if (!is_right) trace_.difference = "set: " + why;
        return;
      }
    }
    graph_[update.step].calls[update.call] = changed;
  }
  Result<void> replace(const Update& update, const Operation& by) {
    const std::size_t inputs = formula_of(by.kind).inputs;
    const GraphStep& step = added_[update.step];
    if (update.of == Update::Of::k) return trace_.plan->set(step, inputs + 1, by.k, update.call);
    const std::size_t argument = update.of == Update::Of::x ? 0 : inputs;
    const Part& part = update.of == Update::Of::x ? by.x : by.z;
    if (part.kind == Part::Kind::array)
      return trace_.plan->set(step, argument, trace_.contents.arrays[part.index].slice(part.from, part.count),
                              update.call);
    return trace_.plan->set(step, argument,
                            std::span(trace_.contents.rows[part.index]).subspan(part.from, part.count),
                            update.call);
  }

  void perform(const Cancel& cancel) {
    Event& event = trace_.events[cancel.target];
    event.is_cancelled = event.ticket.has_value();
    if (event.ticket) event.ticket->cancel();
  }

  void perform(const Disturbance& disturbance) {
    const Scripted& device = world_.devices[disturbance.device];
    switch (disturbance.kind) {
      case Disturbance::Kind::hold: return device->hold();
      case Disturbance::Kind::lose: return device->lose();
      case Disturbance::Kind::release: return device->release();
      case Disturbance::Kind::lose_if_holding:
        if (device->held() > 0) return device->lose();
        return device->release();
    }
  }

  World& world_;
  const Program& program_;
  const Mistakes& mistakes_;
  std::vector<Step> graph_;  // with the updates so far
  std::vector<GraphStep> added_;
  Trace trace_;
};

/// Puts scratch memory into the arrays from number `first` on.
void put_in_array(Part& part, std::size_t first) {
  if (part.kind != Part::Kind::scratch) return;
  part.kind = Part::Kind::array;
  part.index += first;
}

}  // namespace

Trace execute(World& world, const Program& program, const Mistakes& mistakes) {
  return Execution(world, program, mistakes).run();
}

Program one_by_one(const Program& program, const Trace& trace) {
  Program jobs;
  jobs.arrays = program.arrays;
  jobs.arrays.resize(program.arrays.size() + program.scratch, Row(width));
  jobs.rows = program.rows;
  for (const Event& event : trace.events) {
    if (const HostAccess* access = std::get_if<HostAccess>(&event.action)) jobs.actions.push_back(*access);
    if (const Run* run = std::get_if<Run>(&event.action))
      for (Step step : run->steps) {
        for (Operation& op : step.calls)
          for (Part* part : {&op.x, &op.z}) put_in_array(*part, program.arrays.size());
        jobs.actions.push_back(Run{.steps = {std::move(step)}, .is_awaited = true});
      }
  }
  return jobs;
}

}  // namespace wye::test::programs
