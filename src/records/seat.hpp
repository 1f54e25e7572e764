#pragma once
/// The place of one worker in a set. Workers that replace each other have the same place.
#include <wye/base/clock.hpp>
#include <wye/base/error.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "division.hpp"
#include "failures.hpp"
#include "process/workers.hpp"
#include "slots.hpp"

namespace wye::inline v0::records {

/// A batch that a worker has answered.
struct Answer {
  Batch batch;
  std::optional<Error> error = std::nullopt;
  std::span<const std::byte> results = {};  ///< until the next batch is given
};

/// The end of a worker, and the reason.
struct SeatEnd {
  Error error;
  /// The batch that ran then. Two, if the worker wrote garbage: one of them ran.
  std::vector<Batch> ran = {};
  std::vector<Batch> not_run = {};  ///< batches that it had not begun
  bool is_final = false;            ///< another worker would end in the same way
  bool is_timeout = false;
};

/// The worker of a seat, its two batches and its times. Trusts no word that the worker writes.
/// Threads: one thread at a time.
class Seat {
 public:
  struct Options {
    std::size_t device = 0;
    std::string device_name;  ///< "GPU 1"
    SlotLayout layout;
    Duration timeout{};
    Pace pace;
  };
  explicit Seat(Options options) : options_(std::move(options)) {}

  std::size_t device() const noexcept { return options_.device; }
  bool is_vacant() const noexcept { return !worker_; }
  bool is_ready() const noexcept { return worker_ && is_ready_ && !is_ending_ && !fault_; }
  bool is_running() const noexcept { return slots_[0] || slots_[1]; }
  /// Returns the number of records that the worker has been given and has not answered.
  std::uint64_t records() const noexcept {
    return (slots_[0] ? slots_[0]->range.count : 0) + (slots_[1] ? slots_[1]->range.count : 0);
  }
  bool has_begun() const noexcept { return starts_ != 0; }
  std::uint32_t restarts() const noexcept { return starts_ > 0 ? starts_ - 1 : 0; }
  Instant restart_at() const noexcept { return restart_at_; }

  /// Takes a worker that has started.
  void seat(process::Worker worker, Instant now);
  /// Notes that no worker could be started.
  void note_no_worker(Instant now);
  /// Returns whether the worker can be given a batch: it has less than two.
  /// A suspect is alone in its worker, so that its end is that of the suspect.
  bool wants() const noexcept { return is_ready() && (!slots_[0] || !slots_[1]) && !has_suspect(); }
  /// Returns the memory for the records of the next batch.
  std::span<std::byte> room(const Batch& batch) noexcept;
  /// Gives a batch to the worker, whose records are in `room`.
  void give(const Batch& batch, Instant now);
  /// Takes back a batch that the worker has not begun.
  std::optional<Batch> take_back() noexcept;
  /// Returns the next batch that the worker has answered.
  std::optional<Answer> answer(Instant now);
  /// Replaces the worker, whose device is lost in its process. Its other batch has not failed.
  void replace(Error error) noexcept;
  /// Returns the end of the worker, if it has ended or has to be given up; the seat is vacant then.
  std::optional<SeatEnd> check(Instant now);
  /// Returns the latest instant for the next `check`.
  Instant check_at() const noexcept;
  /// Gives the worker no further batches, and asks it to end after those that it runs.
  void close() noexcept;
  /// Asks the worker to end now.
  void end() noexcept;
  void kill() noexcept {
    if (worker_) worker_->kill();
  }
  bool has_ended() const noexcept { return !worker_ || worker_->has_ended(); }
  /// Returns a worker that was given up although it is a thread that has not returned.
  std::optional<process::Worker> abandoned() noexcept;

 private:
  SlotHeader& header() const noexcept { return header_of(worker_->memory()); }
  std::optional<std::size_t> oldest() const noexcept;
  bool has_suspect() const noexcept {
    return (slots_[0] && slots_[0]->is_suspect) || (slots_[1] && slots_[1]->is_suspect);
  }
  Error error_of(std::span<const std::byte> bytes, std::uint64_t size) const;
  Error end_error();
  void find_fault(Instant now);
  SeatEnd vacate(Error error, Instant now);

  const Options options_;
  std::optional<process::Worker> worker_;
  std::array<std::optional<Batch>, 2> slots_;
  std::array<std::uint64_t, 2> orders_{};
  std::uint64_t next_order_ = 1;
  std::optional<process::Worker> abandoned_;
  bool has_joined_ = false, is_ready_ = false, is_ending_ = false;
  bool is_final_ = false, is_timeout_ = false, is_replaced_ = false;  // of `fault_`
  Instant since_{};             // of the start, the join, or the last batch or answer
  std::optional<Error> fault_;  // why the worker was killed
  std::uint32_t starts_ = 0;
  Duration pause_{};  // before the next start
  Instant restart_at_{};
};

}  // namespace wye::records
