#pragma once
/// How a record set ended.
#include <wye/base/clock.hpp>
#include <wye/base/error.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace wye::inline v0 {

/// Consecutive records that failed.
struct RecordFailure {
  std::uint64_t first = 0;  ///< number of the first record, from 0
  std::uint64_t last = 0;   ///< number of the last record
  std::string device;       ///< of the last attempt: "vulkan:1"; empty if there was none
  std::uint32_t attempts = 0;
  /// With the standard error of a worker process that ended, up to 4 KiB, as context.
  Error error;
};

/// The part of one device in a record set.
struct RecordDevice {
  std::string id;    ///< "vulkan:1"
  std::string name;  ///< "GPU 1", its position among the devices of the set; "CPU"
  std::uint64_t done = 0;
  std::uint64_t failed = 0;
  std::uint32_t restarts = 0;  ///< workers that were started again
  std::optional<Error> out;    ///< set: it was taken out of the set, for this reason
};

/// The result of `distribute`. The records that are done, failed and not run are all records.
/// Threads: thread-compatible.
struct WYE_API RecordReport {
  std::uint64_t records = 0;
  std::uint64_t done = 0;
  std::uint64_t resumed = 0;          ///< of `done`: by earlier calls, from `RecordOptions::journal`
  std::uint64_t not_run = 0;          ///< because of `RecordOptions::stop` or `deadline`
  std::vector<RecordFailure> failed;  ///< sorted, without overlap
  std::vector<RecordDevice> devices;
  Duration took{};

  std::uint64_t failed_records() const noexcept;
  std::uint32_t restarts() const noexcept;
  /// Returns the error of a record, or null if it has not failed.
  const Error* error_of(std::uint64_t record) const noexcept;
  /// Returns "1,000,000 records on 4 GPUs: 999,999 done, 1 failed, 9 restarts, 41.2 s".
  std::string text() const;
};

/// The progress of a record set.
struct RecordProgress {
  struct Device {
    std::string id;
    std::string name;
    std::uint64_t records = 0;  ///< that it has done or still has to do; others may take some of them
    std::uint64_t done = 0;
    std::uint64_t failed = 0;
    double rate = 0;  ///< records per second
    bool is_out = false;
  };
  std::vector<Device> devices;
  std::uint64_t records = 0;
  std::uint64_t done = 0;
  std::uint64_t failed = 0;
  double rate = 0;                              ///< records per second, of the last seconds
  std::optional<Duration> left = std::nullopt;  ///< unset: not known yet
  Duration took{};
  bool is_end = false;  ///< the last call for the set
};

}  // namespace wye
