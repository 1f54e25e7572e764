#pragma once
/// Decides how a set continues after failures.
#include <wye/base/clock.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "division.hpp"

namespace wye::inline v0::records {

/// The limits and times of `distribute` that no option sets.
struct Pace {
  Duration join_limit = std::chrono::seconds(10);  ///< from the start of a process to `worker_main`
  Duration first_restart = std::chrono::milliseconds(100);
  Duration longest_restart = std::chrono::seconds(10);
  std::size_t most_ends = 5;  ///< of processes of a device
  Duration ends_within = std::chrono::seconds(60);
  std::size_t most_failures = 3;     ///< batches of a device in a row, while others complete theirs
  std::uint32_t most_halvings = 64;  ///< restarts of a set that isolate bad records
  /// A worker may destroy the word that wakes the set, which then sees the rest after this time.
  Duration longest_wait = std::chrono::seconds(1);
  Duration end_limit = std::chrono::seconds(5);  ///< for a worker that is asked to end
};

/// Batches that failed: they run again, in halves or whole, or their records are given up.
/// Threads: one thread at a time.
class Retries {
 public:
  Retries(std::uint32_t attempts, std::uint32_t most_halvings)
      : attempts_(attempts), halvings_left_(most_halvings) {}
  /// Returns the batches that run again; none: the records have failed. `failed` counts the attempt.
  std::vector<Batch> after_failure(Batch& failed, std::size_t device) const;
  /// The same for the batch that ran when a process ended.
  std::vector<Batch> after_end(Batch& failed, std::size_t device);
  /// The same for one of two batches, if the other one may have ended the process. It runs alone.
  std::vector<Batch> after_unclear_end(Batch& failed, std::size_t device);

 private:
  const std::uint32_t attempts_;
  std::uint32_t halvings_left_;
};

/// The failures of the devices of a set. A device that fails too often is taken out.
/// Threads: one thread at a time.
class DeviceFailures {
 public:
  DeviceFailures(std::size_t devices, const Pace& pace) : pace_(pace), devices_(devices) {}
  /// Records the end of a process. Returns whether the device is to be taken out.
  bool note_end(std::size_t device, Instant now);
  /// Records a batch that failed. Returns whether the device is to be taken out. Records that fail
  /// on several devices count for none.
  bool note_failure(std::size_t device, const RecordRange& range);
  void note_done(std::size_t device);

 private:
  struct Device {
    std::vector<Instant> ends;
    std::vector<RecordRange> in_a_row;
    std::uint64_t done_elsewhere = 0;  ///< since the first of them
  };
  const Pace pace_;
  std::vector<Device> devices_;
};

}  // namespace wye::records
