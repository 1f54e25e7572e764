// The lines of jobs that are ready, alone.
#include "scheduler/ready.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"

using namespace wye;
using namespace std::chrono_literals;
using scheduler::Choice;
using scheduler::decide_move;
using scheduler::Move;
using scheduler::on_threads;
using scheduler::Ready;
using scheduler::shared_line;
using scheduler::State;
using scheduler::Table;
using scheduler::TimeBook;
using scheduler::Wait;
using scheduler::Waiting;

namespace {

constexpr std::size_t most_devices = 8;
int processors[most_devices];

Choice gpu(std::string_view backend, std::string_view name, int processor) {
  return {.backend = backend, .type = AdapterType::discrete, .name = name, .silicon = &processors[processor]};
}

/// Lines of jobs for some devices, with one lane each unless `lanes` is set.
struct Lines {
  explicit Lines(std::vector<Choice> devices, SchedulerOptions options = {}, std::uint32_t lanes = 1)
      : table({}, std::move(devices), options.placement),
        ready(options, pool_options(lanes), most_devices, times,
              [this](std::size_t d) { return Bytes{memory[d]}; }) {
    ready.places().add(table);
  }
  static PoolOptions pool_options(std::uint32_t lanes) {
    PoolOptions options;
    options.lanes_per_device = lanes;
    return options;
  }
  /// Adds a job that may run on the group of `device`.
  std::shared_ptr<Waiting> add(std::size_t device, Priority priority = Priority::normal,
                               std::uint64_t movable = 0, std::uint64_t kernels = 7) {
    const bool shares = table.choices[device].shares();
    return add_to(shares ? shared_line(most_devices, table.choices[device].equal)
                         : static_cast<std::uint16_t>(1 + device),
                  priority, movable, kernels);
  }
  std::shared_ptr<Waiting> add_to(std::uint16_t line, Priority priority = Priority::normal,
                                  std::uint64_t movable = 0, std::uint64_t kernels = 7) {
    const auto job = std::make_shared<Waiting>();
    job->line = line;
    job->priority = priority;
    job->movable = movable;
    job->sequence = ++last;
    job->kernels = kernels;
    job->tag_state = tag;
    ready.rank(*job);
    ready.push(job);
    return job;
  }
  /// Notes that a job has run on a device.
  void note(std::size_t device, Duration took, std::uint64_t kernels = 7) {
    const auto group = static_cast<std::uint16_t>(1 + table.choices[device].equal);
    times.note(*times.row({.kernels = kernels, .group = group}), took, took, Instant());
  }
  /// Takes the next job to run, and runs it. Returns its number and its device.
  std::pair<std::uint64_t, int> start() {
    const auto job = ready.pop();
    if (!job) return {0, -1};
    job->state = State::running;
    ready.leave(*job);
    ready.places().commit(job->place);
    running.push_back(job);
    return {job->sequence, job->place - 1};
  }
  /// Ends the first job that runs on a device.
  void end(std::uint16_t device) {
    const auto job = std::find_if(running.begin(), running.end(),
                                  [&](const auto& one) { return one->place == 1 + device; });
    REQUIRE(job != running.end());
    ready.places().uncommit((*job)->place);
    ready.end_trial(**job);
    running.erase(job);
  }

  std::uint64_t memory[8] = {};
  std::uint64_t last = 0;
  scheduler::TagState* tag = nullptr;  // of the jobs that are added
  std::vector<std::shared_ptr<Waiting>> running;
  TimeBook times;
  Table table;
  Ready ready;
};

using Start = std::pair<std::uint64_t, int>;
const Start none{0, -1};

}  // namespace

TEST_CASE("devices of the same backend, type and name on several processors are equal", "[scheduler]") {
  const auto of = [](std::vector<Choice> devices, PlacementMode mode = PlacementMode::table) {
    return scheduler::find_groups(std::move(devices), mode);
  };
  const auto two = of({gpu("cuda", "L4", 0), gpu("cuda", "A100", 1), gpu("cuda", "L4", 2)});
  CHECK(two[0].equal == 0);
  CHECK(two[1].equal == 1);
  CHECK(two[2].equal == 0);
  CHECK(two[0].apart == 0b010);
  CHECK(two[1].apart == 0b101);
  CHECK(two[1].others == 0b101);
  CHECK((two[0].has_equals && !two[1].has_equals && two[2].has_equals));
  CHECK((two[0].shares() && two[1].shares() && two[2].shares()));
  // Two backends of the same two cards.
  const std::vector<Choice> cards{gpu("cuda", "L4", 0), gpu("cuda", "L4", 1), gpu("vulkan", "L4", 0),
                                  gpu("vulkan", "L4", 1)};
  for (const PlacementMode mode : {PlacementMode::table, PlacementMode::learned}) {
    const auto both = of(cards, mode);
    for (const Choice& device : both) {
      CHECK(device.shares());
      CHECK(device.apart == 0);
    }
    CHECK(both[0].others == (mode == PlacementMode::table ? 0 : 0b1100));
    CHECK(both[3].equal == 2);
  }
}

TEST_CASE("the CPU, and a driver that runs on it, share jobs if their times are learned", "[scheduler]") {
  auto emulated = gpu("vulkan", "llvmpipe", 1);
  emulated.emulated = true;
  auto cpu = gpu("cpu", "CPU", 1);
  cpu.is_host = true;
  const std::vector<Choice> devices{gpu("cuda", "L4", 0), emulated, cpu};
  for (const Choice& device : scheduler::find_groups(devices, PlacementMode::table)) {
    CHECK_FALSE(device.shares());
    CHECK(device.apart == 0);
  }
  const auto learned = scheduler::find_groups(devices, PlacementMode::learned);
  CHECK(learned[0].others == 0b110);
  CHECK(learned[0].apart == 0b110);
  CHECK(learned[1].others == 0b101);
  CHECK(learned[1].apart == 0b001);
  CHECK(learned[2].others == 0b011);
  CHECK(learned[2].apart == 0b001);
}

TEST_CASE("the CPU's jobs run on wye's threads, and an idle CPU takes jobs of a GPU", "[scheduler]") {
  auto cpu = gpu("cpu", "CPU", 1);
  cpu.is_host = true;
  Lines lines({gpu("cuda", "L4", 0), cpu}, {.concurrent_jobs = 2});
  scheduler::Places& places = lines.ready.places();
  lines.add(0, Priority::normal, 0b10), lines.add(0, Priority::normal, 0b10);
  CHECK(lines.start() == Start{1, 0});
  CHECK(lines.start() == none);  // the CPU is not tried while no time is known
  lines.note(0, 1ms);
  CHECK(lines.start() == Start{2, 1});  // a trial
  CHECK(places[on_threads].committed == 1);
  lines.note(1, 4ms);
  lines.end(1);
  CHECK(places[on_threads].committed == 0);
  for (int i = 0; i < 10; ++i) lines.add(0, Priority::normal, 0b10);
  CHECK(lines.start() == Start{12, 1});
  CHECK(lines.start() == Start{11, 1});
  CHECK(lines.start() == none);  // two jobs run on wye's threads
  lines.end(0);
  CHECK(lines.start() == Start{3, 0});
  lines.end(1), lines.end(1);
  lines.note(1, 1us);
  for (int i = 0; i < 40; ++i) lines.note(1, 1us);
  lines.add_to(on_threads);
  CHECK(lines.start() == Start{4, 1});  // it is their home now
  CHECK(lines.start() == Start{5, 1});
  lines.end(1), lines.end(1);
}

TEST_CASE("a driver on the CPU is tried for 2 % of the time, and then takes what it runs faster",
          "[scheduler][trials]") {
  auto cpu = gpu("cpu", "CPU", 1), emulated = gpu("vulkan", "llvmpipe", 1);
  cpu.is_host = true;
  emulated.emulated = true;
  Lines lines({cpu, emulated}, {.concurrent_jobs = 1});
  const auto add = [&] { lines.add(0, Priority::normal, 0b10); };
  add(), add(), add();
  CHECK(lines.start() == Start{1, 0});
  for (int i = 0; i < 49; ++i) lines.note(0, 1ms);
  CHECK(lines.start() == none);
  lines.note(0, 1ms);
  CHECK(lines.start() == Start{2, 1});
  SECTION("a slower one takes no job, also while it is idle") {
    lines.note(1, 2ms);
    lines.end(1);
    for (int i = 0; i < 9; ++i) add();
    CHECK(lines.start() == none);
  }
  SECTION("a faster one takes all") {
    lines.note(1, 100us);
    lines.end(1);
    lines.end(0);
    CHECK(lines.start() == Start{3, 1});
    add();
    CHECK(lines.start() == none);
  }
}

TEST_CASE("equal devices take the jobs of their line in turns", "[scheduler]") {
  Lines lines({gpu("cuda", "L4", 0), gpu("cuda", "L4", 1), gpu("cuda", "L4", 2)});
  for (int i = 0; i < 5; ++i) lines.add(1);
  CHECK(lines.start() == Start{1, 0});
  CHECK(lines.start() == Start{2, 1});
  CHECK(lines.start() == Start{3, 2});
  CHECK(lines.start() == none);
  lines.end(2);
  CHECK(lines.start() == Start{4, 2});
  lines.end(0), lines.end(1);
  CHECK(lines.start() == Start{5, 0});  // it was used before device 1 was
}

TEST_CASE("of equal devices that are free, the one with less memory in use takes the job", "[scheduler]") {
  Lines lines({gpu("cuda", "L4", 0), gpu("cuda", "L4", 1)}, {}, 2);
  lines.memory[0] = 100;
  lines.memory[1] = 10;
  for (int i = 0; i < 3; ++i) lines.add(0);
  CHECK(lines.start() == Start{1, 1});
  CHECK(lines.start() == Start{2, 0});  // fewer jobs run there
  CHECK(lines.start() == Start{3, 1});
}

TEST_CASE("a job that is bound to a device waits for it", "[scheduler]") {
  Lines lines({gpu("cuda", "L4", 0), gpu("cuda", "L4", 1)});
  lines.add_to(2);
  lines.add_to(2);
  lines.add(0);
  CHECK(lines.start() == Start{1, 1});
  CHECK(lines.start() == Start{3, 0});
  CHECK(lines.start() == none);
  lines.end(0);
  CHECK(lines.start() == none);
  lines.end(1);
  CHECK(lines.start() == Start{2, 1});
}

TEST_CASE("jobs are staged on the equal device with the fewest, and run there", "[scheduler]") {
  Lines lines({gpu("cuda", "L4", 0), gpu("cuda", "L4", 1)});
  for (int i = 0; i < 6; ++i) lines.add(0)->uses_arrays = true;
  lines.start(), lines.start();
  std::vector<std::uint16_t> staged;
  while (auto job = lines.ready.pop_to_stage()) {
    staged.push_back(job->place);
    lines.ready.stage(job);
  }
  CHECK(staged == std::vector<std::uint16_t>{1, 2});  // jobs 3 and 4
  lines.end(1);
  CHECK(lines.start() == Start{4, 1});
  lines.end(1);
  CHECK(lines.start() == Start{5, 1});
  lines.end(1);
  CHECK(lines.start() == Start{6, 1});
  lines.end(1);
  CHECK(lines.start() == Start{3, 1});  // moves, because its device still runs job 1
  CHECK(lines.ready.places()[1].staged == 0);
  CHECK(lines.ready.places()[2].staged == 0);
}

TEST_CASE("a staged job of a higher priority moves to an equal device that is free", "[scheduler]") {
  Lines lines({gpu("cuda", "L4", 0), gpu("cuda", "L4", 1)});
  lines.add(0), lines.add(0);
  lines.start(), lines.start();
  const auto high = lines.add(0, Priority::high);
  high->uses_arrays = true;
  lines.ready.stage(lines.ready.pop_to_stage());
  CHECK(high->place == 1);
  lines.add(0);
  lines.end(1);
  CHECK(lines.start() == Start{3, 1});
}

TEST_CASE("an idle device takes a job of another one when that completes it earlier", "[scheduler]") {
  CHECK(decide_move({.run = 10ms, .before = 10ms}, 1ms) == Move::first);
  CHECK(decide_move({.run = 1ms, .before = 1ms}, 10ms) == Move::none);
  CHECK(decide_move({.run = 1ms, .before = 12ms}, 10ms) == Move::last);
  CHECK(decide_move({.run = 1ms, .before = 12ms, .devices = 4}, 10ms) == Move::none);
  CHECK(decide_move({.run = 1ms, .before = 1s}, {}) == Move::none);
  CHECK(decide_move({.run = 1ms, .before = 1s, .jobs = 1}, {}) == Move::none);
  CHECK(decide_move({.before = 1s, .jobs = 1}, {}) == Move::first);
  CHECK(decide_move({.jobs = 1}, 1ms) == Move::first);
  CHECK(decide_move({}, 1ms) == Move::none);
}

TEST_CASE("with no run time known, jobs beyond those that may be staged move", "[scheduler]") {
  Lines lines({gpu("cuda", "A100", 0), gpu("cuda", "L4", 1)}, {.committed_per_lane = 3});
  for (int i = 0; i < 4; ++i) lines.add(0, Priority::normal, 0b10);
  CHECK(lines.start() == Start{1, 0});
  CHECK(lines.start() == Start{2, 1});  // three jobs wait, and two may be staged
  CHECK(lines.start() == none);
  lines.end(1);
  CHECK(lines.start() == none);
  lines.end(0);
  CHECK(lines.start() == Start{3, 0});
}

TEST_CASE("a job that cannot run on an idle device does not move there", "[scheduler]") {
  Lines lines({gpu("cuda", "A100", 0), gpu("cuda", "L4", 1)}, {.committed_per_lane = 1});
  for (int i = 0; i < 3; ++i) lines.add(0);
  CHECK(lines.start() == Start{1, 0});
  CHECK(lines.start() == none);
  lines.add(0, Priority::normal, 0b10);
  CHECK(lines.start() == Start{4, 1});  // the last one can
}

TEST_CASE("jobs wait for the fastest device, and a slower one takes only what would wait longer",
          "[scheduler]") {
  for (const bool is_first_slow : {true, false}) {
    INFO(is_first_slow);
    Lines lines({gpu("cuda", "first", 0), gpu("cuda", "second", 1)});
    lines.note(0, is_first_slow ? 10ms : 1ms);
    lines.note(1, is_first_slow ? 1ms : 10ms);
    for (int i = 0; i < 16; ++i) lines.add(0, Priority::normal, 0b10);
    const int fast = is_first_slow ? 1 : 0;
    CHECK(lines.start() == Start{1, fast});
    CHECK(lines.start() == Start{16, 1 - fast});
    for (std::uint64_t ran = 2; ran < 16; ++ran) {
      CHECK(lines.start() == none);
      lines.end(static_cast<std::uint16_t>(fast));
      CHECK(lines.start() == Start{ran, fast});
    }
    lines.end(static_cast<std::uint16_t>(fast));
    CHECK(lines.start() == none);
  }
}

TEST_CASE("an idle device takes the job that it slows down least", "[scheduler]") {
  Lines lines({gpu("cuda", "first", 0), gpu("cuda", "second", 1)});
  lines.note(0, 1ms, 7), lines.note(1, 8ms, 7);
  lines.note(0, 1ms, 8), lines.note(1, 2ms, 8);
  for (int i = 0; i < 20; ++i) lines.add(0, Priority::normal, 0b10, i % 2 == 0 ? 7 : 8);
  CHECK(lines.start() == Start{1, 0});
  CHECK(lines.start() == Start{20, 1});  // of kernel 8
  lines.end(1);
  CHECK(lines.start() == Start{18, 1});
}

TEST_CASE("a job that waits goes where it runs faster once that is known", "[scheduler]") {
  Lines lines({gpu("cuda", "first", 0), gpu("cuda", "second", 1)});
  lines.note(0, 1ms), lines.note(1, 2ms);
  for (int i = 0; i < 4; ++i) lines.add(0, Priority::normal, 0b10);
  CHECK(lines.start() == Start{1, 0});
  CHECK(lines.start() == Start{4, 1});
  for (int i = 0; i < 30; ++i) lines.note(0, 1s);
  lines.end(1);
  CHECK(lines.start() == Start{2, 1});
  lines.end(0), lines.end(1);
  CHECK(lines.start() == Start{3, 1});
}

TEST_CASE("while the fastest device refuses jobs, they wait for the next one", "[scheduler]") {
  Lines lines({gpu("cuda", "first", 0), gpu("cuda", "second", 1), gpu("cuda", "third", 2)});
  const bool knows_first = GENERATE(true, false);
  if (knows_first) lines.note(0, 1ms);
  lines.note(1, 8ms), lines.note(2, 4ms);
  lines.add(0, Priority::normal, 0b110);
  const Instant until = Instant() + 100ms;
  lines.ready.places().refuse(1, false, until);
  CHECK(lines.start() == Start{1, 2});
  lines.ready.resume_due(until);
  lines.add(0, Priority::normal, 0b110);
  CHECK(lines.start() == Start{2, 0});
}

TEST_CASE("with the table a job waits for the first device", "[scheduler]") {
  Lines lines({gpu("cuda", "first", 0), gpu("cuda", "second", 1)}, {.placement = PlacementMode::table});
  lines.note(0, 3ms), lines.note(1, 2ms);
  lines.add(0, Priority::normal, 0b10);
  CHECK(lines.start() == Start{1, 0});
  lines.end(0);
  lines.note(0, 10s);
  lines.add(0, Priority::normal, 0b10);
  CHECK(lines.start() == Start{2, 0});
}

TEST_CASE("a kernel is tried on an idle device for as long as it has run", "[scheduler][trials]") {
  Lines lines({gpu("cuda", "first", 0), gpu("cuda", "second", 1)}, {.committed_per_lane = 8});
  const auto add = [&] { return lines.add(0, Priority::normal, 0b10); };
  add(), add();
  CHECK(lines.start() == Start{1, 0});
  CHECK(lines.start() == none);  // its time is not known
  lines.note(0, 1ms);
  CHECK(lines.start() == Start{2, 1});
  add(), add();
  CHECK(lines.start() == none);  // one trial of a group runs at a time
  SECTION("once: its time is known then") {
    lines.note(1, 3ms);
    lines.end(1);
    CHECK(lines.start() == none);
    lines.end(0);
    CHECK(lines.start() == Start{3, 0});
  }
  SECTION("again if the trial has failed") {
    lines.end(1);
    CHECK(lines.start() == Start{3, 1});
  }
}

TEST_CASE("trials on a device with other work, or a slower one, take 2 % of the time",
          "[scheduler][trials]") {
  Lines lines({gpu("cuda", "first", 0), gpu("cuda", "second", 1)}, {.committed_per_lane = 8});
  const bool has_run_there = GENERATE(true, false);
  lines.note(0, 1ms);
  if (has_run_there) lines.note(1, 3ms);
  lines.add_to(1), lines.add_to(2);
  CHECK(lines.start() == Start{1, 0});
  CHECK(lines.start() == Start{2, 1});
  lines.add(0, Priority::normal, 0b10);  // job 3
  lines.add_to(2);
  for (int i = 0; i < (has_run_there ? 149 : 48); ++i) lines.note(0, 1ms);
  lines.end(1);
  CHECK(lines.start() == Start{4, 1});
  lines.add_to(2);
  lines.end(1);
  lines.note(0, 1ms);
  CHECK(lines.start() == Start{3, 1});  // before job 5
  lines.end(1);
  CHECK(lines.start() == Start{5, 1});
}

TEST_CASE("a kernel that is still to be built is not tried", "[scheduler][trials]") {
  const std::uint32_t staged = GENERATE(1u, 8u);  // without staged jobs, one moves to the idle device
  Lines lines({gpu("cuda", "first", 0), gpu("cuda", "second", 1)}, {.committed_per_lane = staged});
  lines.note(0, 1ms);
  lines.times.delay_trials(*lines.times.row({.kernels = 7, .group = 2}), 2ms);
  for (int i = 0; i < 4; ++i) lines.add(0, Priority::normal, 0b10);
  CHECK(lines.start() == Start{1, 0});
  CHECK(lines.start() == none);
  lines.note(0, 1ms);
  CHECK(lines.start() == none);
  lines.note(0, 1ms);
  CHECK(lines.start() == Start{2, 1});
}

TEST_CASE("a driver on the CPU is believed to run the library's workloads a hundred times slower",
          "[scheduler][trials]") {
  auto cpu = gpu("cpu", "CPU", 1), emulated = gpu("vulkan", "llvmpipe", 1);
  cpu.is_host = true;
  emulated.emulated = true;
  Lines lines({cpu, emulated}, {.concurrent_jobs = 1});
  const auto row = [&](std::uint16_t group) {
    return lines.times.row({.kernels = 7, .group = group}, {workload_types::matrix});
  };
  lines.times.note(*row(1), 1ms, {}, Instant());
  lines.add(0, Priority::normal, 0b10)->named.type = workload_types::matrix;
  lines.add(0, Priority::normal, 0b10);
  CHECK(lines.start() == Start{1, 0});
  for (int i = 1; i < 4999; ++i) lines.times.note(*row(1), 1ms, {}, Instant());
  CHECK(lines.start() == none);
  lines.times.note(*row(1), 1ms, {}, Instant());
  CHECK(lines.start() == Start{2, 1});
}

TEST_CASE("jobs have equal shares of the processor that they run on", "[scheduler]") {
  auto cpu = gpu("cpu", "CPU", 1), emulated = gpu("vulkan", "llvmpipe", 1);
  cpu.is_host = true;
  emulated.emulated = true;
  Lines lines({gpu("cuda", "L4", 0), emulated, cpu});
  scheduler::Places& places = lines.ready.places();
  const auto share = [&](std::uint16_t place, Duration at) { return places.share(place, Instant() + at); };
  CHECK(share(2, 5ms) == 0ms);  // no job has run
  places.commit(2);
  CHECK(share(2, 8ms) == 3ms);
  places.commit(3);
  CHECK(places.jobs_on_processor(2) == 2);
  CHECK(share(3, 12ms) == 5ms);
  places.commit(on_threads);  // it runs on the CPU too
  CHECK(share(2, 18ms) == 7ms);
  CHECK(share(2, 17ms) == 7ms);  // read before the last time
  places.uncommit(2), places.uncommit(on_threads);
  CHECK(share(on_threads, 20ms) == 9ms);
  places.uncommit(3);
  CHECK(share(3, 30ms) == 9ms);
  CHECK(share(1, 30ms) == 0ms);
}

TEST_CASE("a job with limits of its own is no trial", "[scheduler][trials]") {
  Lines lines({gpu("cuda", "first", 0), gpu("cuda", "second", 1)}, {.committed_per_lane = 8});
  for (int i = 0; i < 100; ++i) lines.note(0, 1ms);
  lines.add_to(1);
  CHECK(lines.start() == Start{1, 0});
  lines.add(0, Priority::normal, 0b10)->has_own_limits = true;
  CHECK(lines.start() == none);
  lines.end(0);
  CHECK(lines.start() == Start{2, 0});
  lines.add(0, Priority::normal, 0b10);
  CHECK(lines.start() == Start{3, 1});
}

TEST_CASE("a device that has refused a job takes none that it shares for a while", "[scheduler]") {
  Lines lines({gpu("cuda", "L4", 0), gpu("cuda", "L4", 1)});
  lines.add(0), lines.add(0), lines.add_to(1);
  const Instant until = Instant() + 100ms;
  lines.ready.places().refuse(1, true, until);
  CHECK(lines.start() == Start{1, 1});
  CHECK(lines.start() == Start{3, 0});  // is bound to it
  lines.end(0);
  CHECK(lines.start() == none);
  CHECK(lines.ready.first_resume() == until);
  lines.ready.resume_due(until - 1ns);
  CHECK(lines.start() == none);
  lines.ready.resume_due(until);
  CHECK(lines.start() == Start{2, 0});
}

TEST_CASE("if all devices of a group refuse jobs, the last one goes on with those of its group",
          "[scheduler]") {
  Lines lines({gpu("cuda", "L4", 0), gpu("cuda", "L4", 1), gpu("vulkan", "A2", 2)});
  const Instant until = Instant() + 100ms;
  lines.ready.places().refuse(2, true, until);
  lines.ready.places().refuse(1, true, until);
  lines.ready.places().refuse(3, true, until);  // it is alone in its group
  lines.add(0), lines.add(2), lines.add(0);
  CHECK(lines.start() == Start{1, 0});
  CHECK(lines.start() == Start{2, 2});
  CHECK(lines.start() == none);
  lines.end(0);
  CHECK(lines.start() == Start{3, 0});
  lines.end(0), lines.end(2);
  lines.ready.places().refuse(3, false, until);  // a job that came from others would come again
  lines.add(2);
  CHECK(lines.start() == none);
  lines.ready.resume_due(until);
  CHECK(lines.start() == Start{4, 2});
}

TEST_CASE("a job that settles while it is set aside does not return to its line", "[scheduler]") {
  Lines lines({gpu("cuda", "L4", 0), gpu("cuda", "L4", 1)}, {.tags = {{.tag = "few", .concurrent = 1}}});
  lines.tag = lines.ready.tags().enter("few");
  REQUIRE(lines.tag);
  const bool is_shared = GENERATE(true, false);
  const auto add = [&] { return is_shared ? lines.add(0) : lines.add_to(1); };
  add();
  CHECK(lines.start() == Start{1, 0});
  lines.end(0);
  lines.tag->running = 1;
  const auto second = add();
  add(), add();
  CHECK(lines.start() == none);
  CHECK(lines.ready.count() == 0);
  second->state = State::settled;
  lines.ready.leave(*second);
  SECTION("when its tag has room") {
    lines.tag->running = 0;
    lines.ready.release_held(*lines.tag);
    CHECK(lines.ready.count() == 1);
    CHECK(lines.start().first == 3);
    CHECK(lines.ready.take_any()->sequence == 4);
  }
  SECTION("when all jobs are taken") {
    CHECK(lines.ready.take_any()->sequence == 3);
    CHECK(lines.ready.take_any()->sequence == 4);
    CHECK(lines.ready.take_any() == nullptr);
  }
}

TEST_CASE("the last job is one of any line, and jobs that are staged count", "[scheduler]") {
  Lines lines({gpu("cuda", "L4", 0), gpu("cuda", "L4", 1)});
  lines.add(0), lines.add(0);
  lines.start(), lines.start();
  const auto third = lines.add(0, Priority::low);
  third->uses_arrays = true;
  lines.ready.stage(lines.ready.pop_to_stage());
  lines.add_to(2);
  lines.add_to(on_threads, Priority::high);
  Waiting high;
  high.priority = Priority::high;
  CHECK(lines.ready.take_last(high) == third);
  CHECK(lines.ready.take_last(high)->sequence == 4);
  CHECK(lines.ready.take_last(high) == nullptr);
  CHECK(lines.ready.take_any()->sequence == 5);
  CHECK(lines.ready.take_any() == nullptr);
  CHECK(lines.ready.count() == 0);
}

TEST_CASE("jobs that wait are divided among the free lanes of equal devices", "[scheduler]") {
  Lines lines({gpu("cuda", "L4", 0), gpu("cuda", "L4", 1)}, {}, 2);
  for (int i = 0; i < 16; ++i) lines.add(0);
  CHECK(lines.start() == Start{1, 0});
  CHECK(lines.ready.jobs_per_lane(1) == 4);  // the job that runs, and 15 that wait, on 4 lanes
  CHECK(lines.start() == Start{2, 1});
  CHECK(lines.ready.jobs_per_lane(2) == 5);  // 15 on 3 lanes
  lines.start(), lines.start();
  CHECK(lines.ready.jobs_per_lane(2) == 13);
  lines.ready.places().commit(2);  // a job of a batch that failed, which runs alone
  CHECK(lines.ready.jobs_per_lane(2) == 1);
}
