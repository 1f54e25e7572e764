#pragma once
/// One call of `distribute`.
#include <wye/base/clock.hpp>
#include <wye/base/log.hpp>
#include <wye/base/result.hpp>
#include <wye/records/distribute.hpp>
#include <wye/runtime/options.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "division.hpp"
#include "failures.hpp"
#include "journal.hpp"
#include "meter.hpp"
#include "process/workers.hpp"
#include "seat.hpp"
#include "slots.hpp"
#include "source.hpp"

namespace wye::inline v0::records {

/// A device of a set.
struct SetDevice {
  std::string id;              ///< "vulkan:1"
  std::string name;            ///< "GPU 1"
  RuntimeOptions options;      ///< of the runtimes of its workers
  Variables environment = {};  ///< of its worker processes
};

/// The state of a set while it runs.
/// Threads: one thread at a time.
class Distribution {
 public:
  /// The journal has noted the ranges that are `done`; null: there is none.
  Distribution(const RecordFunction& function, const Source& source, Sink& sink, Journal* journal,
               std::vector<RecordRange> done, const RecordOptions& options, std::vector<SetDevice> devices,
               const Pace& pace);
  /// Errors: see `distribute`.
  Result<RecordReport> run();

 private:
  // Each returns whether the state has changed.
  bool take_answers(Seat& seat, Instant now);
  bool take_end(Seat& seat, Instant now);
  void finish(const Answer& answer, Seat& seat);
  /// Has a batch run again in these parts; none: its records have failed.
  void repeat(std::vector<Batch> parts, const Batch& failed, const Error& error, std::size_t device);
  void give_up(const Batch& batch, const Error& error, std::string device, std::size_t counted_for);
  void stop_writing(const Error& error);
  void give_up_rest();
  void put_back(const Batch& batch);
  void take_out(std::size_t device, const Error& error);
  void stop();
  void start_workers(Instant now);
  void start_worker(Seat& seat, Instant now);
  Result<process::Worker> start(const Seat& seat);
  void give_batches(Instant now);
  bool give_batch(Seat& seat, bool may_be_suspect, Instant now);
  bool take_back_for(const Seat& idle);
  bool is_complete() const noexcept;
  Instant next_check(Instant now) const;
  void show_progress(Instant now, bool is_end);
  void end_workers();
  RecordReport report(Instant now);
  void log(LogLevel level, const std::string& sentence) const;

  const RecordFunction& function_;
  const Source& source_;
  Sink& sink_;
  Journal* const journal_;
  const RecordOptions& options_;
  const std::vector<SetDevice> devices_;
  const Pace pace_;
  const SlotLayout layout_;
  Division division_;
  Retries retries_;
  DeviceFailures failures_;
  std::optional<process::Workers> workers_;  // outlives the seats
  std::vector<Seat> seats_;
  std::vector<process::Worker> abandoned_;  // threads that have not returned
  RecordReport report_;
  Meter meter_;
  struct {
    Instant begin{}, end{};  // of the set, and its deadline
    Instant progress{};      // the last call of its sink
  } times_;
  bool is_stopping_ = false, has_given_ = false;
};

}  // namespace wye::records
