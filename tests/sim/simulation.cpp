#include "sim/simulation.hpp"

#include <algorithm>
#include <deque>
#include <functional>
#include <limits>
#include <queue>
#include <random>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace wye::test::sim {
namespace {

Duration seconds(double count) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(count));
}
double in_seconds(Duration time) { return std::chrono::duration<double>(time).count(); }

/// The copies that jobs need: an array is copied once to each device with memory of its own, other
/// operands with each job.
class Copies {
 public:
  explicit Copies(const Mix& mix) : mix_(mix), arrays_on_(mix.devices.size()) {}
  /// Returns the seconds of the copies of a job that would start on a device.
  double time_of(const Job& job, std::size_t device) const {
    const double bandwidth = mix_.devices[device].bandwidth;
    if (bandwidth == 0 ||
        (job.data && *job.data < arrays_on_[device].size() && arrays_on_[device][*job.data]))
      return 0;
    return static_cast<double>(job.bytes) / bandwidth;
  }
  /// Makes them, and returns their seconds.
  double make(const Job& job, std::size_t device) {
    const double time = time_of(job, device);
    if (job.data) {
      if (arrays_on_[device].size() <= *job.data) arrays_on_[device].resize(*job.data + 1);
      arrays_on_[device][*job.data] = true;
    }
    return time;
  }
  void lose(std::size_t device) { arrays_on_[device].clear(); }

 private:
  const Mix& mix_;
  std::vector<std::vector<bool>> arrays_on_;
};

/// Something that happens.
struct Event {
  Duration at{};
  enum Kind : std::uint8_t { change, end, ready } kind = ready;  // in this order at one time
  std::size_t index = 0;                                         // of the change, the run or the job
  friend bool operator>(const Event& a, const Event& b) {
    return std::tuple(a.at, a.kind, a.index) > std::tuple(b.at, b.kind, b.index);
  }
};

/// A run that was started.
struct Started {
  Run run;
  Duration at{}, took{};
  bool is_over = false;  // it has completed, or its device was lost
};

class Simulation {
 public:
  Simulation(const Mix& mix, Policy& policy, std::uint64_t seed)
      : mix_(mix), policy_(policy), seed_(seed), copies_(mix) {
    devices_.running.assign(mix.devices.size(), 0);
    devices_.there.assign(mix.devices.size(), true);
    report_.jobs_on.assign(mix.devices.size(), 0);
    for (std::size_t j = 0; j < mix.jobs.size(); ++j) events_.push({mix.jobs[j].ready, Event::ready, j});
    for (std::size_t c = 0; c < mix.changes.size(); ++c) events_.push({mix.changes[c].at, Event::change, c});
  }
  Report run() {
    while (!events_.empty() && report_.completed < mix_.jobs.size()) {
      now_ = events_.top().at;
      for (; !events_.empty() && events_.top().at == now_; events_.pop()) handle(events_.top());
      while (const auto next = policy_.next(devices_)) start(*next);
    }
    return std::move(report_);
  }

 private:
  Instant now() const { return Instant(now_); }
  void handle(const Event& event) {
    switch (event.kind) {
      case Event::ready: return policy_.ready(event.index, now());
      case Event::end: return end(started_[event.index]);
      case Event::change: return apply(mix_.changes[event.index]);
    }
  }
  void start(const Run& run) {
    const Device& device = mix_.devices[run.device];
    const Job& job = mix_.jobs[run.job];
    if (!devices_.there[run.device] || devices_.running[run.device] == device.lanes ||
        !mix_.can_run(job, run.device))
      throw std::logic_error("the policy starts a job on a device that cannot take it");
    const double copies = copies_.make(job, run.device);
    const Duration took = seconds(mix_.noisy_run_time(run.job, run.device, now_, seed_));
    ++devices_.running[run.device];
    report_.starts.push_back(run);
    events_.push({now_ + seconds(copies) + took, Event::end, started_.size()});
    started_.push_back({run, now_, took});
  }
  void end(Started& started) {
    if (std::exchange(started.is_over, true)) return;
    --devices_.running[started.run.device];
    ++report_.jobs_on[started.run.device];
    ++report_.completed;
    report_.makespan = in_seconds(now_);
    policy_.completed(started.run, now_ - started.at, started.took, now());
  }
  void apply(const Change& change) {
    const bool was_there = devices_.there[change.device];
    devices_.there[change.device] = change.is_there;
    if (change.is_there && !was_there) policy_.returned(change.device, now());
    if (change.is_there || !was_there) return;
    copies_.lose(change.device);
    for (Started& started : started_) {
      if (started.run.device != change.device || std::exchange(started.is_over, true)) continue;
      --devices_.running[change.device];
      policy_.failed(started.run, now());
    }
  }

  const Mix& mix_;
  Policy& policy_;
  const std::uint64_t seed_;
  Copies copies_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<Started> started_;
  Devices devices_;
  Duration now_{};
  Report report_;
};

/// Gives each job to a device when it is ready.
class AtOnce : public Policy {
 public:
  /// `device_of` returns the device of a job, of those that can run it and are there.
  using DeviceOf =
      std::function<std::size_t(std::span<const std::size_t> open, std::span<const std::size_t> jobs_on)>;
  AtOnce(const Mix& mix, DeviceOf device_of)
      : mix_(mix),
        device_of_(std::move(device_of)),
        lines_(mix.devices.size()),
        jobs_on_(mix.devices.size()),
        there_(mix.devices.size(), true) {}

  void ready(std::size_t job, Instant) override {
    std::vector<std::size_t> open;
    for (std::size_t d = 0; d < there_.size(); ++d)
      if (there_[d] && mix_.can_run(mix_.jobs[job], d)) open.push_back(d);
    if (open.empty()) return left_.push_back(job);
    const std::size_t device = device_of_(open, jobs_on_);
    ++jobs_on_[device];
    lines_[device].push_back(job);
  }
  std::optional<Run> next(const Devices& devices) override {
    for (std::size_t d = 0; d < lines_.size(); ++d) {
      const bool was_there = there_[d];
      there_[d] = devices.there[d];
      if (was_there && !there_[d]) move_jobs(d);
      if (!there_[d] || lines_[d].empty() || devices.running[d] == mix_.devices[d].lanes) continue;
      const std::size_t job = lines_[d].front();
      lines_[d].pop_front();
      return Run{job, d};
    }
    return std::nullopt;
  }
  void completed(const Run& run, Duration, Duration, Instant) override { --jobs_on_[run.device]; }
  void failed(const Run& run, Instant now) override {
    there_[run.device] = false;
    --jobs_on_[run.device];
    ready(run.job, now);
    move_jobs(run.device);
  }
  void returned(std::size_t device, Instant now) override {
    there_[device] = true;
    for (const std::size_t job : std::exchange(left_, {})) ready(job, now);
  }

 private:
  /// Gives the jobs that wait for a lost device to others.
  void move_jobs(std::size_t device) {
    for (const std::size_t job : std::exchange(lines_[device], {})) {
      --jobs_on_[device];
      ready(job, {});
    }
  }

  const Mix& mix_;
  const DeviceOf device_of_;
  std::vector<std::deque<std::size_t>> lines_;
  std::vector<std::size_t> jobs_on_;
  std::vector<bool> there_;
  std::vector<std::size_t> left_;  // that no device can run now
};

/// A schedule: the jobs of each device, in the order in which they become ready.
class Schedule {
 public:
  Schedule(const Mix& mix, std::uint64_t seed)
      : mix_(mix), jobs_(mix.devices.size()), times_(mix.devices.size()) {
    for (std::size_t d = 0; d < times_.size(); ++d)
      for (std::size_t j = 0; j < mix.jobs.size(); ++j)
        times_[d].push_back(
            mix.can_run(mix.jobs[j], d) ? mix.noisy_run_time(j, d, {}, seed) / mix.slowness(d, {}) : 0);
  }
  std::vector<std::size_t>& on(std::size_t device) { return jobs_[device]; }
  /// Returns when the last of some jobs would end on a device.
  double end_of(const std::vector<std::size_t>& jobs, std::size_t device) const {
    std::vector<double> lanes(mix_.devices[device].lanes);
    Copies copies(mix_);
    double end = 0;
    for (const std::size_t j : jobs) {
      double& lane = *std::min_element(lanes.begin(), lanes.end());
      lane = end_of(j, device, lane, copies.make(mix_.jobs[j], device));
      end = std::max(end, lane);
    }
    return end;
  }
  /// Returns when a job would end on a device with a lane that is free at `free`.
  double end_of(std::size_t job, std::size_t device, double free, double copies) const {
    double start = std::max(free, in_seconds(mix_.jobs[job].ready));
    double took = copies + times_[device][job] * mix_.slowness(device, seconds(start));
    double lost = never;  // when the device was lost
    for (const Change& change : mix_.changes) {
      const double at = in_seconds(change.at);
      if (change.device != device) continue;
      if (!change.is_there) lost = std::min(lost, at);
      if (!change.is_there || lost == never) continue;
      if (start < at && start + took > lost) {  // it begins once the device is there again
        start = at;
        took = copies + times_[device][job] * mix_.slowness(device, change.at);
      }
      lost = never;
    }
    return start + took > lost ? never : start + took;
  }

 private:
  static constexpr double never = std::numeric_limits<double>::infinity();

  const Mix& mix_;
  std::vector<std::vector<std::size_t>> jobs_;
  std::vector<std::vector<double>> times_;  // of the run of a job, by device, if it were not slower
};

}  // namespace

void Policy::completed(const Run&, Duration, Duration, Instant) {}
void Policy::returned(std::size_t, Instant) {}

Report simulate(const Mix& mix, Policy& policy, std::uint64_t seed) {
  return Simulation(mix, policy, seed).run();
}

std::unique_ptr<Policy> round_robin(const Mix& mix) {
  return std::make_unique<AtOnce>(
      mix, [turn = std::size_t{0}](auto open, auto) mutable { return open[turn++ % open.size()]; });
}

std::unique_ptr<Policy> shortest_queue(const Mix& mix) {
  return std::make_unique<AtOnce>(mix, [](auto open, auto jobs_on) {
    return *std::min_element(open.begin(), open.end(),
                             [&](std::size_t a, std::size_t b) { return jobs_on[a] < jobs_on[b]; });
  });
}

double search_offline(const Mix& mix, std::uint64_t seed) {
  Schedule schedule(mix, seed);
  const std::size_t devices = mix.devices.size();
  // Each job in turn, to the device that completes it first.
  std::vector<std::vector<double>> lanes(devices);
  for (std::size_t d = 0; d < devices; ++d) lanes[d].assign(mix.devices[d].lanes, 0);
  Copies copies(mix);
  for (std::size_t j = 0; j < mix.jobs.size(); ++j) {
    std::optional<std::pair<double, std::size_t>> best;
    for (std::size_t d = 0; d < devices; ++d) {
      if (!mix.can_run(mix.jobs[j], d)) continue;
      const double free = *std::min_element(lanes[d].begin(), lanes[d].end());
      const std::pair end(schedule.end_of(j, d, free, copies.time_of(mix.jobs[j], d)), d);
      if (!best || end < *best) best = end;
    }
    copies.make(mix.jobs[j], best->second);
    *std::min_element(lanes[best->second].begin(), lanes[best->second].end()) = best->first;
    schedule.on(best->second).push_back(j);
  }
  std::vector<double> ends(devices);
  for (std::size_t d = 0; d < devices; ++d) ends[d] = schedule.end_of(schedule.on(d), d);
  // Jobs leave the device that ends last.
  std::mt19937_64 random(seed);
  for (std::size_t tries = 4 * mix.jobs.size(); tries > 0; --tries) {
    const auto last = static_cast<std::size_t>(std::max_element(ends.begin(), ends.end()) - ends.begin());
    std::vector<std::size_t> left = schedule.on(last);
    const auto index = static_cast<std::ptrdiff_t>(random() % left.size());
    const std::size_t job = left[static_cast<std::size_t>(index)];
    const std::size_t to = random() % devices;
    if (to == last || !mix.can_run(mix.jobs[job], to)) continue;
    left.erase(left.begin() + index);
    std::vector<std::size_t> taken = schedule.on(to);
    taken.insert(std::upper_bound(taken.begin(), taken.end(), job), job);
    const double end_there = schedule.end_of(taken, to);
    if (end_there >= ends[last]) continue;
    schedule.on(last) = std::move(left);
    schedule.on(to) = std::move(taken);
    ends[last] = schedule.end_of(schedule.on(last), last);
    ends[to] = end_there;
  }
  return *std::max_element(ends.begin(), ends.end());
}

}  // namespace wye::test::sim
