#pragma once
/// Devices and jobs for a simulation: what each job truly costs on each device.
#include <wye/wye.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace wye::test::sim {

/// A device. Devices of the same backend and name are equal.
struct Device {
  std::string name;
  std::string backend = "cuda";  ///< "cpu": its jobs run on wye's threads
  std::uint32_t lanes = 1;       ///< jobs that it runs at a time
  double bandwidth = 0;          ///< bytes a second of copies to it; 0: it uses the host's memory
  std::string processor = {};    ///< its own if empty; devices of several backends may share one
  bool emulated = false;
};

/// A kernel, and what it costs on each device.
struct Kernel {
  std::string name;
  std::vector<double> launch;    ///< seconds of a job without bytes, by device
  std::vector<double> per_byte;  ///< seconds, by device; infinite: the device cannot run it
};

struct Job {
  std::size_t kernel = 0;
  std::uint64_t bytes = 0;  ///< of its operands
  Duration ready{};         ///< after the beginning
  Priority priority = Priority::normal;
  std::optional<std::size_t> data = std::nullopt;  ///< the array that it reads, which has its bytes
};

/// A change of a device.
struct Change {
  Duration at{};
  std::size_t device = 0;
  double slower = 1;     ///< its jobs take that many times as long from then on
  bool is_there = true;  ///< otherwise its jobs fail, and it takes none
};

struct Mix {
  std::string name;
  std::vector<Device> devices;
  std::vector<Kernel> kernels;
  std::vector<Job> jobs;  ///< in the order in which they become ready
  std::vector<Change> changes = {};
  double noise = 0;  ///< the standard deviation of a time, as a part of it

  /// Returns how many times as long as at the beginning the jobs of a device take at `when`.
  double slowness(std::size_t device, Duration when) const noexcept;
  /// Returns the seconds of a job that starts at `when`, without copies.
  double run_time(const Job& job, std::size_t device, Duration when) const noexcept;
  /// Returns the same with the noise of this job on this device, for one seed.
  double noisy_run_time(std::size_t job, std::size_t device, Duration when,
                        std::uint64_t seed) const noexcept;
  bool can_run(const Job& job, std::size_t device) const noexcept;
};

/// Reads a mix from a file in JSON; `seed` chooses what the file leaves open. tests/sim/mixes has
/// examples, and its README the members.
/// Errors: invalid_argument (a member that is unknown, absent, of another type, or out of range), io.
Result<Mix> read_mix(const std::filesystem::path& file, std::uint64_t seed);
/// Returns the mix that a text in JSON describes. `source` names it in errors.
/// Errors: as `read_mix`.
Result<Mix> parse_mix(const std::string& text, const std::string& source, std::uint64_t seed);

/// Returns a mix of 2 to 8 devices and 2,000 jobs that `seed` chooses.
Mix random_mix(std::uint64_t seed);

}  // namespace wye::test::sim
