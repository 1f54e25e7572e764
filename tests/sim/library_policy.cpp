// The policy of the library, on its own lines of jobs, table and book of times.
#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "scheduler/placement.hpp"
#include "scheduler/ready.hpp"
#include "sim/simulation.hpp"

namespace wye::test::sim {
namespace {

using scheduler::Choice;
using scheduler::on_threads;
using scheduler::Ready;
using scheduler::Row;
using scheduler::State;
using scheduler::Table;
using scheduler::TimeBook;
using scheduler::Waiting;

bool is_host(const Device& device) { return device.backend == "cpu"; }

/// Returns the properties of the devices. A processor is told by the address of the first device on it.
std::vector<Choice> choices_of(const Mix& mix) {
  std::vector<Choice> choices;
  for (const Device& device : mix.devices) {
    const Device* silicon = &device;
    for (const Device& other : mix.devices)
      if (!device.processor.empty() && other.processor == device.processor) {
        silicon = &other;
        break;
      }
    choices.push_back({.backend = device.backend,
                       .emulated = device.emulated,
                       .is_host = is_host(device),
                       .type = is_host(device) ? AdapterType::cpu : AdapterType::discrete,
                       .name = device.name,
                       .silicon = silicon});
  }
  return choices;
}

SchedulerOptions options_for(const Mix& mix, PlacementMode mode) {
  SchedulerOptions options{.placement = mode};
  for (const Device& device : mix.devices)
    if (is_host(device)) options.concurrent_jobs = device.lanes;
  return options;
}

PoolOptions pool_options(const Mix& mix) {
  PoolOptions options;
  const Device* first = nullptr;
  for (const Device& device : mix.devices) {
    if (is_host(device)) continue;
    if (first && first->lanes != device.lanes)
      throw std::invalid_argument("a pool has the same number of lanes on each GPU");
    first = &device;
    options.lanes_per_device = device.lanes;
  }
  return options;
}

class LibraryPolicy : public Policy {
 public:
  LibraryPolicy(const Mix& mix, PlacementMode mode)
      : mix_(mix),
        table_({}, choices_of(mix), mode),
        there_(mix.devices.size(), true),
        ready_(options_for(mix, mode), pool_options(mix), mix.devices.size(), times_,
               [](std::size_t) { return Bytes{}; }),
        running_(mix.jobs.size()) {
    ready_.places().add(table_);
  }

  void adopt(const Learned& earlier) {
    for (const auto& [group, times] : earlier) times_.adopt(group, times);
  }
  Learned learned() const {
    Learned learned;
    for (const Choice& choice : table_.choices) {
      const auto group = static_cast<std::uint16_t>(1 + choice.equal);
      learned.emplace(group, times_.noted(group));
    }
    return learned;
  }

  void ready(std::size_t job, Instant now) override {
    auto waiting = std::make_shared<SimulatedJob>();
    waiting->index = job;
    waiting->priority = mix_.jobs[job].priority;
    waiting->sequence = ++last_;
    waiting->kernels = mix_.jobs[job].kernel + 1;
    waiting->named.stored = waiting->kernels;
    waiting->size = Bytes{mix_.jobs[job].bytes};
    waiting->uses_arrays = mix_.jobs[job].data.has_value();
    waiting->submitted = now_ = now;
    push(std::move(waiting));
  }
  std::optional<Run> next(const Devices& devices) override {
    for (std::size_t d = 0; d < there_.size(); ++d) there_[d] = devices.there[d];
    while (auto job = std::static_pointer_cast<SimulatedJob>(ready_.pop())) {
      const std::size_t device = job->place == on_threads ? host_of(*job) : job->place - 1u;
      if (!there_[device]) {  // as `Runner` does: it goes to the line of the next device
        ready_.leave(*job);
        if (job->place != on_threads) {
          scheduler::Places& places = ready_.places();
          const std::size_t group = places[job->place].group - 1u;
          places.refuse(job->place, job->line == scheduler::shared_line(mix_.devices.size(), group),
                        Instant::max());
        }
        push(std::move(job));
        continue;
      }
      job->runs.committed = now_;
      job->runs.share = ready_.places().share(job->place, now_);
      ready_.places().commit(job->place);
      ready_.leave(*job);
      job->state = State::running;
      running_[job->index] = job;
      return Run{job->index, device};
    }
    while (auto job = ready_.pop_to_stage()) ready_.stage(std::move(job));
    return std::nullopt;
  }
  void completed(const Run& run, Duration held, Duration took, Instant now) override {
    now_ = now;
    const std::shared_ptr<SimulatedJob> job = take(run);
    if (job->runs.times)
      times_.note(
          *job->runs.times, held, took, now,
          std::min(1.0, static_cast<double>(job->runs.share.count()) / static_cast<double>(held.count())));
  }
  void failed(const Run& run, Instant now) override {
    now_ = now;
    std::shared_ptr<SimulatedJob> job = take(run);
    there_[run.device] = false;
    job->state = State::queued;
    push(std::move(job));
  }
  void returned(std::size_t device, Instant now) override {
    now_ = now;
    there_[device] = true;
    if (!is_host(mix_.devices[device]))
      ready_.places().resume(ready_.places()[static_cast<std::uint16_t>(1 + device)].refusal);
    for (auto& job : std::exchange(left_, {})) push(std::move(job));
  }

 private:
  struct SimulatedJob : Waiting {
    std::size_t index = 0;
  };
  bool is_open(const Job& job, std::size_t device) const {
    return there_[device] && mix_.can_run(job, device);
  }
  const Row& row_of(const SimulatedJob& waiting) const {
    return table_.preferences.row(workload_types::custom, Bytes{mix_.jobs[waiting.index].bytes});
  }
  std::size_t host_of(const SimulatedJob& waiting) const {
    for (const std::size_t device : row_of(waiting).devices)
      if (is_host(mix_.devices[device])) return device;
    return 0;
  }
  /// Puts a job into the line of its first device.
  void push(std::shared_ptr<SimulatedJob> waiting) {
    const Job& job = mix_.jobs[waiting->index];
    const Row& row = row_of(*waiting);
    const auto opens = [&](std::size_t device) { return is_open(job, device); };
    const auto first = std::find_if(row.devices.begin(), row.devices.end(), opens);
    if (first == row.devices.end()) return left_.push_back(std::move(waiting));
    waiting->place = on_threads;
    waiting->runs.times = nullptr;
    const scheduler::Home home =
        scheduler::home_at(row, *first, [&](std::size_t device) { return mix_.can_run(job, device); });
    waiting->movable = home.movable;
    if (home.is_shared)
      waiting->line = scheduler::shared_line(mix_.devices.size(), row.choices[*first].equal);
    else
      waiting->line = is_host(mix_.devices[*first]) ? on_threads : static_cast<std::uint16_t>(1 + *first);
    ready_.rank(*waiting);
    ready_.push(std::move(waiting));
  }
  std::shared_ptr<SimulatedJob> take(const Run& run) {
    std::shared_ptr<SimulatedJob> job = std::move(running_[run.job]);
    job->runs.share = ready_.places().share(job->place, now_) - job->runs.share;
    ready_.places().uncommit(job->place);
    ready_.end_trial(*job);
    return job;
  }

  const Mix& mix_;
  const Table table_;
  std::vector<bool> there_;
  TimeBook times_;
  Ready ready_;
  std::uint64_t last_ = 0;
  Instant now_{};
  std::vector<std::shared_ptr<SimulatedJob>> running_;  // by index of the job
  std::vector<std::shared_ptr<SimulatedJob>> left_;     // that no device can run now
};

}  // namespace

std::unique_ptr<Policy> library_policy(const Mix& mix, PlacementMode mode) {
  return std::make_unique<LibraryPolicy>(mix, mode);
}

Learned learn(const Mix& mix, std::uint64_t seed) {
  LibraryPolicy policy(mix, PlacementMode::learned);
  simulate(mix, policy, seed);
  return policy.learned();
}

std::unique_ptr<Policy> library_policy(const Mix& mix, const Learned& earlier) {
  auto policy = std::make_unique<LibraryPolicy>(mix, PlacementMode::learned);
  policy->adopt(earlier);
  return policy;
}

}  // namespace wye::test::sim
