#pragma once
/// Runs a mix of jobs under a policy, on a clock of its own and without threads.
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "scheduler/stored_times.hpp"
#include "sim/mix.hpp"

namespace wye::test::sim {

/// A job on a device.
struct Run {
  std::size_t job = 0;
  std::size_t device = 0;
};

/// What a policy may know of the devices.
struct Devices {
  std::vector<std::uint32_t> running;  ///< jobs, by device
  std::vector<bool> there;
};

/// Chooses the jobs that start. The simulation calls it; equal mixes and seeds cause equal calls.
class Policy {
 public:
  virtual ~Policy() = default;
  virtual void ready(std::size_t job, Instant now) = 0;
  /// Returns a job to start, and its device; nothing if no job may start now. Called until then.
  virtual std::optional<Run> next(const Devices& devices) = 0;
  /// A run has completed. `held`: from its start to its end; `run`: without copies.
  virtual void completed(const Run& run, Duration held, Duration took, Instant now);
  /// The device of a run was lost: the job is ready again.
  virtual void failed(const Run& run, Instant now) = 0;
  /// A device is there again.
  virtual void returned(std::size_t device, Instant now);
};

/// Returns the policy of the library: the code that the scheduler uses makes its decisions. Throws
/// std::invalid_argument: not all GPUs have the same number of lanes.
std::unique_ptr<Policy> library_policy(const Mix& mix, PlacementMode mode = PlacementMode::learned);
/// Times by group of equal devices, as they are stored.
using Learned = std::map<std::uint16_t, scheduler::StoredTimes>;
/// Returns the times that the library's policy has after a simulation.
Learned learn(const Mix& mix, std::uint64_t seed);
/// Returns the library's policy with these times.
std::unique_ptr<Policy> library_policy(const Mix& mix, const Learned& earlier);
/// Returns a policy that gives each job to the next device.
std::unique_ptr<Policy> round_robin(const Mix& mix);
/// Returns a policy that gives each job to the device with the fewest jobs.
std::unique_ptr<Policy> shortest_queue(const Mix& mix);

struct Report {
  double makespan = 0;               ///< seconds until the last job ended
  std::vector<std::size_t> jobs_on;  ///< completed, by device
  std::size_t completed = 0;
  std::vector<Run> starts;  ///< in their order, those of lost devices included
};
Report simulate(const Mix& mix, Policy& policy, std::uint64_t seed);

/// Returns the least makespan that an offline search finds, which knows the true time of each run:
/// each job in turn goes to the device that completes it first; then jobs leave the device that ends
/// last while another one would end earlier with them.
double search_offline(const Mix& mix, std::uint64_t seed);

}  // namespace wye::test::sim
