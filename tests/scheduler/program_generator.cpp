// Makes random programs. The same seed makes the same program.
#include <algorithm>
#include <array>
#include <random>
#include <utility>

#include "program.hpp"

namespace wye::test::programs {

World::World(Runtime opened, std::vector<Scripted> scripted_devices, SchedulerOptions options,
             const PoolOptions& of_pool)
    : MixedDevices(std::move(opened), scripted_devices, std::move(options), of_pool),
      devices(std::move(scripted_devices)) {
  for (const Device& device : pool->devices()) {
    places.push_back(device.id());
    alignment = std::max<std::size_t>(alignment, device.info().limits.offset_alignment / sizeof(Number));
  }
}

namespace {

class Generator {
 public:
  Generator(const World& world, unsigned seed) : world_(world), engine_(seed) {}

 protected:
  std::size_t below(std::size_t limit) { return static_cast<std::size_t>(engine_() % limit); }
  bool one_of(std::size_t count) { return below(count) == 0; }
  Number number() { return static_cast<Number>(engine_()); }
  Row row() {
    Row values(width);
    std::generate(values.begin(), values.end(), [&] { return number(); });
    return values;
  }
  std::size_t begin_of(std::size_t count) {
    return below((width - count) / world_.alignment + 1) * world_.alignment;
  }
  Priority priority() { return static_cast<Priority>(below(3)); }
  const std::string& place() { return world_.places[below(world_.places.size())]; }

  const World& world_;
  Program program_;

 private:
  std::mt19937 engine_;
};

/// Jobs on slices of arrays, accesses of the host, cancellations, and losses of devices.
class JobGenerator : Generator {
 public:
  JobGenerator(const World& world, unsigned seed, bool keeps_tickets, bool loses_devices)
      : Generator(world, seed), keeps_tickets_(keeps_tickets) {
    if (loses_devices) add_losses();
  }
  Program make() {
    program_.arrays.resize(3 + below(4));
    for (Row& values : program_.arrays) values = row();
    const std::size_t length = 10 + below(31);
    while (events_ < length) add_event();
    for (std::size_t i = 0; i < program_.arrays.size(); ++i) add_access(HostAccess::Kind::read, whole(i));
    return std::move(program_);
  }

 private:
  static Part whole(std::size_t array) { return {Part::Kind::array, array}; }

  /// The first device may be lost, the second one in half of all programs; each of them in a third
  /// of those at a step of a job, before or after it.
  void add_losses() {
    program_.losses.resize(one_of(2) ? 2 : 1);
    for (Loss& loss : program_.losses) {
      if (!one_of(3)) continue;
      loss.at = static_cast<int>(below(24));
      loss.fails = one_of(2);
    }
  }
  /// Between two operations.
  void disturb() {
    const std::size_t number = below(48), device = below(program_.losses.size());
    const auto add = [&](Disturbance::Kind kind) { program_.actions.push_back(Disturbance{kind, device}); };
    if (number < 4) add(Disturbance::Kind::hold);
    if (number == 4) add(Disturbance::Kind::lose);
    if (number == 5) add(Disturbance::Kind::release);
  }
  /// Before the host waits: completes what is in flight, or loses its device.
  void end_holds() {
    for (std::size_t d = 0; d < program_.losses.size(); ++d)
      program_.actions.push_back(
          Disturbance{one_of(4) ? Disturbance::Kind::lose_if_holding : Disturbance::Kind::release, d});
  }

  Part slice(std::size_t count) {
    const std::size_t array = below(program_.arrays.size());
    return {Part::Kind::array, array, begin_of(count), count};
  }
  Part beside(const Part& used) {
    for (;;)
      if (const Part part = slice(used.count); !part.overlaps(used)) return part;
  }
  std::size_t count() {  // mostly whole arrays and halves
    const std::size_t n = below(8);
    return n < 3 ? width : n < 5 ? width / 2 : 1 + below(width);
  }

  void add_event() {
    if (!program_.losses.empty()) disturb();
    const Part z = slice(count());
    const std::size_t kind = below(16);
    if (kind >= 13) return add_access(static_cast<HostAccess::Kind>(kind - 13), z);
    add_job(kind < 4    ? Operation::Kind::affine
            : kind < 7  ? Operation::Kind::combine
            : kind < 10 ? Operation::Kind::blend
                        : Operation::Kind::shift,
            z);
    if (one_of(24)) {  // cancels a job, most often a recent one
      const std::size_t target = events_ - 1 - below(std::min<std::size_t>(events_, 4));
      program_.actions.push_back(Cancel{target});
    }
  }
  void add_access(HostAccess::Kind kind, const Part& part) {
    const Number k = number();
    end_holds();
    program_.actions.push_back(HostAccess{kind, part, k});
    ++events_;
  }
  void add_job(Operation::Kind kind, const Part& z) {
    const Part x = beside(z), y = beside(z);
    Run run{.steps = {{.calls = {{kind, x, y, z, number()}}}}};
    run.priority = priority();
    run.place = place();
    run.drops_ticket = !keeps_tickets_ && program_.losses.empty() && one_of(4);
    program_.actions.push_back(std::move(run));
    ++events_;
  }

  const bool keeps_tickets_;
  std::size_t events_ = 0;
};

/// Types of work with different orders of devices (`rows_of_types`).
constexpr std::array types = {WorkloadType{"anywhere"}, WorkloadType{"at-home"}, WorkloadType{"first-gpu"},
                              WorkloadType{"second-gpu"}};

/// A graph over arrays, memory of the host and scratch memory; its runs and updates.
class GraphGenerator : Generator {
 public:
  using Generator::Generator;

  Program make() {
    const std::size_t used_arrays = 2 + below(3), used_rows = below(3);
    program_.scratch = below(3);
    used_ = {used_arrays, used_rows, program_.scratch};
    is_set_.assign(program_.scratch, false);
    for (std::size_t i = 0; i < used_arrays + 2; ++i) program_.arrays.push_back(row());  // 2 for updates
    for (std::size_t i = 0; i < used_rows + 2; ++i) program_.rows.push_back(row());
    program_.graph.resize(3 + below(14));
    for (std::size_t s = 0; s < program_.graph.size(); ++s) make_step(s);
    program_.on = place();
    program_.one_silicon = one_of(2);
    const std::size_t runs = 1 + below(4);
    for (std::size_t run = 0; run < runs; ++run) {
      for (std::size_t updates = run == 0 ? 0 : below(4); updates > 0; --updates) add_update();
      add_run();
    }
    for (std::size_t i = 0; i < program_.rows.size(); ++i) add_read({Part::Kind::row, i});
    for (std::size_t i = 0; i < program_.arrays.size(); ++i) add_read({Part::Kind::array, i});
    return std::move(program_);
  }

 private:
  Part::Kind kind_of_memory() {
    const std::size_t n = below(6);
    return n < 3 ? Part::Kind::array : n < 5 ? Part::Kind::row : Part::Kind::scratch;
  }
  /// Scratch memory must be written as a whole before all else: if `sets`, the part may be that.
  Part part(std::size_t count, bool sets) {
    for (;;) {
      Part of{.kind = kind_of_memory(), .count = count};
      const std::size_t most = used_[static_cast<std::size_t>(of.kind)];
      if (most == 0) continue;
      of.index = below(most);
      of.from = begin_of(count);
      if (of.kind != Part::Kind::scratch || is_set_[of.index]) return of;
      if (!sets || count != width) continue;
      is_set_[of.index] = true;
      return of;
    }
  }
  Operation operation() {
    static constexpr Operation::Kind kinds[] = {Operation::Kind::affine, Operation::Kind::blend,
                                                Operation::Kind::iota};
    Operation op;
    op.kind = kinds[below(std::size(kinds))];
    const std::size_t count = one_of(2) ? width : one_of(2) ? width / 2 : 1 + below(width);
    op.z = part(count, op.kind == Operation::Kind::iota);
    do op.x = part(count, false);
    while (op.x.overlaps(op.z));
    op.k = number();
    return op;
  }
  void make_step(std::size_t number) {
    Step& step = program_.graph[number];
    step.type = types[below(types.size())];
    const std::size_t calls = one_of(6) ? 2 : 1;
    for (std::size_t c = 0; c < calls; ++c) step.calls.push_back(operation());
    while (number > 0 && one_of(4)) step.after.push_back(below(number));
  }
  void add_update() {
    Update update;
    update.step = below(program_.graph.size());
    const std::vector<Operation>& calls = program_.graph[update.step].calls;
    update.call = below(calls.size());
    const Operation& op = calls[update.call];
    const std::size_t first = formula_of(op.kind).inputs > 0 ? 0 : 1;
    update.of = static_cast<Update::Of>(first + below(3 - first));
    if (update.of == Update::Of::k) {
      update.k = number();
    } else {
      const Part::Kind kind = (update.of == Update::Of::x ? op.x : op.z).kind;
      if (kind == Part::Kind::scratch) return;
      update.index = below(kind == Part::Kind::array ? program_.arrays.size() : program_.rows.size());
    }
    program_.actions.push_back(update);
  }
  void add_run() {
    program_.actions.push_back(Run{.priority = priority()});
    if (one_of(3)) {  // a job between two runs
      const Part z{Part::Kind::array, below(used_[0])};
      const Operation op{Operation::Kind::affine, {}, {}, z, number()};
      program_.actions.push_back(Run{.steps = {{{op}, {}, types[below(types.size())]}}});
    }
    if (one_of(3)) add_read({Part::Kind::array, below(program_.arrays.size())});
  }
  void add_read(const Part& part) { program_.actions.push_back(HostAccess{HostAccess::Kind::read, part}); }

  std::array<std::size_t, 3> used_{};  // memory of each kind, without that for updates
  std::vector<bool> is_set_;           // scratch memory
};

}  // namespace

Program random_jobs(const World& world, unsigned seed, bool keeps_tickets, bool loses_devices) {
  return JobGenerator(world, seed, keeps_tickets, loses_devices).make();
}

Program random_graph(const World& world, unsigned seed) { return GraphGenerator(world, seed).make(); }

std::vector<Preference> rows_of_types() {
  return {{types[0], Bytes{}, {"cuda", "vulkan", "cpu"}},
          {types[1], Bytes{}, {"cpu"}},
          {types[2], Bytes{}, {"cuda", "cpu"}},
          {types[3], Bytes{}, {"vulkan", "cpu"}},
          {workload_types::custom, Bytes{}, {"cpu"}}};
}

}  // namespace wye::test::programs
