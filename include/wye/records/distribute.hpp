#pragma once
/// Runs a function on many records, on many devices, in threads or in worker processes.
#include <wye/base/clock.hpp>
#include <wye/base/result.hpp>
#include <wye/records/record_function.hpp>
#include <wye/records/record_io.hpp>
#include <wye/records/record_report.hpp>
#include <wye/runtime/runtime.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace wye::inline v0 {

/// The devices of a record set.
struct RecordDevices {
  std::optional<std::int64_t> number = std::nullopt;
  std::vector<std::string> ids = {};

  /// Every usable GPU of the runtime, once for each processor; without one, the CPU.
  RecordDevices() = default;
  /// The first `count` of them.
  RecordDevices(int count) : number(count) {}  // NOLINT: .devices = 2
  /// Adapters of the runtime, by id: `.devices = {"cuda:0", "cpu:0"}`.
  RecordDevices(std::initializer_list<std::string> names) : ids(names) {}   // NOLINT
  RecordDevices(std::vector<std::string> names) : ids(std::move(names)) {}  // NOLINT
};

/// Receives the progress of a set on the thread that called `distribute`, at most ten times a second,
/// and once at its end. Exceptions are dropped.
using RecordProgressSink = std::function<void(const RecordProgress&)>;

/// Options of `distribute`.
///
/// | option             | default           | unit, range                                        |
/// |--------------------|-------------------|----------------------------------------------------|
/// | devices            | every usable GPU, otherwise the CPU | a number, or ids of adapters     |
/// | processes          | false             |                                                    |
/// | batch              | 128               | records, 1 to 1,000,000                            |
/// | timeout            | 300 s             | of one batch, and of the first function; more than 0 |
/// | workers_per_device | 1                 | 1 to 16                                            |
/// | io_workers         | 4                 | threads of each worker that load, 0 to 64          |
/// | attempts           | 2                 | of a batch, 1 to 100                               |
/// | journal            | none              | a path                                             |
/// | progress           | none              |                                                    |
/// | stop               | none              |                                                    |
/// | deadline           | never             | from the call on                                   |
struct RecordOptions {
  RecordDevices devices = {};
  /// Workers are child processes that run the program of this process again: a crash ends a worker,
  /// and not the application. `worker_main` must be called first in `main`. Otherwise workers are
  /// threads.
  bool processes = false;
  std::uint64_t batch = 128;
  /// A batch that takes longer has failed. A worker process is then killed; the function of a
  /// thread is asked to stop (`RecordWorker::stop`), and `distribute` returns after it has returned.
  Duration timeout = std::chrono::seconds(300);
  /// Share the device by `Share::machine` if they are more than one process.
  std::uint32_t workers_per_device = 1;
  /// For a function that loads: they load the next batch while the device works. With 0 a worker loads
  /// each batch before it runs it.
  std::uint32_t io_workers = 4;
  std::uint32_t attempts = 2;
  /// A file that notes which batches are done, with their results, or their checksums if results go to
  /// a file. The same call, after the end of the process in any way, runs the other records only.
  /// Records that failed run again. Results that a function takes are passed to it again, all from
  /// the first one on. The file stays at the end of the set. It is refused if it belongs to another
  /// set (`function`, `batch`, the records or where the results go), is damaged, or is in use.
  std::string journal = {};
  RecordProgressSink progress = {};
  std::stop_token stop = {};  ///< ends the set after the batches that run
  Deadline deadline = {};     ///< ends the set after the batches that run
};

/// Calls `function` on all records, and returns when each record is done, failed or given up. The
/// results of threads and processes are the same.
///
/// Records are divided among the devices, and each worker takes batches of its device's part. A
/// worker whose part is done takes the later half of the largest part that is left.
///
/// A batch fails if the function returns an error, throws, exceeds `timeout`, or ends its process.
/// It runs again, on another device if there is one, up to `attempts` times. If a process ends, only
/// the batch that ran is suspected: it is halved until the bad record is alone, with at most 64
/// restarts in a set; later batches are not halved. A worker process that has ended is started again
/// after 100 ms, and after twice the time for each further end without a batch in between, up to
/// 10 s. So is a process whose function returns `device_lost`. A device is taken out of the set after five ends of its processes within 60 s that are not
/// those of halves, after three failed batches in a row while others complete theirs, or if the
/// first function fails. The others get its part.
///
/// Errors:  invalid_argument (an option or a length, with its value and range; the journal of another
///          set), not_found (a device, no device, or a file), corrupt (the journal), io (a file),
///          unavailable (a journal in use), unsupported, out_of_memory. If no worker could begin, for
///          example because its first function failed on each device, that error. A batch that fails
///          is no error of the call.
/// Threads: thread-safe. Uses the calling thread until it returns. A worker cannot call it.
/// Cost:    one copy of each record and result. Two batches of memory for each worker, beside the
///          memory of the input and output.
WYE_API Result<RecordReport> distribute(Runtime& runtime, const RecordFunction& function, RecordInput in,
                                        RecordOutput out, const RecordOptions& options = {});

/// Runs this process as a worker, if `distribute` has started it as one; otherwise returns nothing
/// at once. The returned number is the exit status of the program. Call it first in `main`, with
/// all functions that the program distributes.
WYE_API std::optional<int> worker_main(int argc, char** argv, std::span<const RecordFunction> functions);
/// Takes a list: `worker_main(argc, argv, {score})`.
inline std::optional<int> worker_main(int argc, char** argv,
                                      std::initializer_list<RecordFunction> functions) {
  return worker_main(argc, argv, std::span<const RecordFunction>(functions.begin(), functions.size()));
}

}  // namespace wye
