#include "seat.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "reworded.hpp"
#include "text.hpp"

namespace wye::inline v0::records {
namespace {

std::string seconds_of(Duration time) { return seconds(std::chrono::duration<double>(time).count()); }

}  // namespace

void Seat::seat(process::Worker worker, Instant now) {
  worker_.emplace(std::move(worker));
  ++starts_;
  has_joined_ = is_ready_ = false;
  fault_.reset();
  since_ = now;
}

void Seat::note_no_worker(Instant now) {
  pause_ = pause_ == Duration{} ? options_.pace.first_restart
                                : std::min(2 * pause_, options_.pace.longest_restart);
  restart_at_ = now + pause_;
}

std::span<std::byte> Seat::room(const Batch& batch) noexcept {
  return options_.layout.input_of(worker_->memory(), slots_[0] ? 1 : 0)
      .first(static_cast<std::size_t>(batch.range.count * options_.layout.input));
}

void Seat::give(const Batch& batch, Instant now) {
  const std::size_t s = slots_[0] ? 1 : 0;
  if (!is_running()) since_ = now;
  Slot& slot = header().slots[s];
  slot.count = batch.range.count;
  slot.order.store(orders_[s] = next_order_++, std::memory_order_relaxed);
  slots_[s] = batch;
  slot.set(SlotState::given);
  worker_->wake();
}

std::optional<Batch> Seat::take_back() noexcept {
  if (!worker_) return std::nullopt;
  for (std::size_t s = 0; s < slots_.size(); ++s)
    if (slots_[s] && header().slots[s].move(SlotState::given, SlotState::empty))
      return std::exchange(slots_[s], std::nullopt);
  return std::nullopt;
}

/// Returns the slot with the batch that was given first.
std::optional<std::size_t> Seat::oldest() const noexcept {
  if (!slots_[0] && !slots_[1]) return std::nullopt;
  if (!slots_[0]) return 1;
  return slots_[1] && orders_[1] < orders_[0] ? 1 : 0;
}

std::optional<Answer> Seat::answer(Instant now) {
  std::optional<Answer> answer;
  const auto s = oldest();
  if (!worker_ || fault_ || !s) return answer;
  Slot& slot = header().slots[*s];
  if (!slot.is(SlotState::answered)) return answer;
  answer.emplace().batch = *std::exchange(slots_[*s], std::nullopt);
  if (slot.has_error != 0)
    answer->error = error_of(slot.error, slot.error_bytes);
  else
    answer->results =
        options_.layout.output_of(worker_->memory(), *s)
            .first(static_cast<std::size_t>(answer->batch.range.count * options_.layout.output));
  slot.set(SlotState::empty);
  since_ = now;
  pause_ = Duration{};
  if (is_ending_ && !is_running()) worker_->ask_to_end();
  return answer;
}

/// Returns the error that a worker has written.
Error Seat::error_of(std::span<const std::byte> bytes, std::uint64_t size) const {
  const std::string before = options_.device_name + " failed: ";
  // A copy: the worker may still write there.
  const auto copy = std::vector<std::byte>(
      bytes.begin(),
      bytes.begin() + static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(size, bytes.size())));
  if (const auto error = process::error_from(copy)) return reworded(*error, before, "");
  return Error(Errc::corrupt, text(before, "its worker wrote an error that cannot be read."));
}

void Seat::replace(Error error) noexcept {
  if (fault_) return;
  is_replaced_ = true;
  fault_ = std::move(error);
}

std::optional<SeatEnd> Seat::check(Instant now) {
  if (!worker_) return std::nullopt;
  const auto s = oldest();
  if (!fault_ && s && header().slots[*s].is(SlotState::answered)) return std::nullopt;  // first
  const bool has_ended = worker_->has_ended();
  if (has_ended && is_ending_ && !is_running()) {
    (void)worker_->collect();
    worker_.reset();
    return std::nullopt;
  }
  if (!fault_) find_fault(now);  // a worker that has ended may have written the reason
  if (has_ended) return vacate(end_error(), now);
  if (!fault_) return std::nullopt;
  worker_->ask_to_end();
  worker_->kill();
  // The end of a process is seen at a later call. A thread may return late, or not at all.
  if (worker_->is_process()) return std::nullopt;
  return vacate(*fault_, now);
}

/// Returns why the worker, which has ended, did.
Error Seat::end_error() {
  const process::WorkerExit exit = worker_->collect();
  std::optional<Error> error = fault_;
  if (!error && !has_joined_ && !worker_->has_joined() && !exit.is_by_signal) {
    is_final_ = true;
    error = Error(Errc::unavailable,
                  text("The worker process of ", options_.device_name, " ", exit.reason,
                       " before it called wye::worker_main. Call wye::worker_main first in main."));
  }
  if (!error) error = Error(Errc::kernel_failed, text(options_.device_name, " failed: ", exit.reason, "."));
  if (!exit.output.empty())
    error = error->with_context("the standard error of the worker ended with: " + exit.output);
  return *error;
}

/// Sets `fault_` if the worker has to be given up.
void Seat::find_fault(Instant now) {
  const auto is_late = [&](Duration limit) { return now - since_ > limit; };
  const auto wrote_garbage = [&] {
    fault_ = Error(Errc::corrupt,
                   text(options_.device_name, " failed: its worker wrote to memory of wye that it shares."));
  };
  if (!has_joined_ && (has_joined_ = worker_->has_joined())) since_ = now;
  if (!has_joined_) {
    if (is_late(options_.pace.join_limit)) {
      is_final_ = true;
      fault_ =
          Error(Errc::unavailable,
                text("The worker process of ", options_.device_name, " did not call wye::worker_main within ",
                     seconds_of(options_.pace.join_limit), ". Call wye::worker_main first in main."));
    }
    return;
  }
  if (!is_ready_) {
    const std::uint32_t stage = header().stage;
    if (stage == static_cast<std::uint32_t>(Stage::ready)) {
      is_ready_ = true;
      since_ = now;
    } else if (stage == static_cast<std::uint32_t>(Stage::failed)) {
      is_final_ = true;
      fault_ = error_of(header().error, header().error_bytes)
                   .with_context(text("while preparing a worker of ", options_.device_name));
    } else if (stage != static_cast<std::uint32_t>(Stage::preparing)) {
      wrote_garbage();
    } else if (is_late(options_.timeout)) {
      is_final_ = true;
      fault_ = Error(Errc::timed_out,
                     text(options_.device_name, " failed: the preparation of a worker exceeds the timeout (",
                          seconds_of(options_.timeout), ")."));
    }
    return;
  }
  for (std::size_t s = 0; s < slots_.size(); ++s) {
    const Slot& slot = header().slots[s];
    if (slots_[s] && !slot.is(SlotState::given) && !slot.is(SlotState::running) &&
        !slot.is(SlotState::answered))
      return wrote_garbage();
  }
  if (is_running() && is_late(options_.timeout)) {
    is_timeout_ = true;
    fault_ = Error(Errc::timed_out, text(options_.device_name, " failed: a batch exceeds the timeout (",
                                         seconds_of(options_.timeout), ")."));
  }
}

/// Ends the use of the worker.
SeatEnd Seat::vacate(Error error, Instant now) {
  SeatEnd end{.error = std::move(error),
              .is_final = std::exchange(is_final_, false),
              .is_timeout = std::exchange(is_timeout_, false)};
  for (auto s = oldest(); s; s = oldest()) {
    const Batch batch = *std::exchange(slots_[*s], std::nullopt);
    Slot& slot = header().slots[*s];
    const bool has_begun = !is_replaced_ && !slot.move(SlotState::given, SlotState::empty);
    (has_begun ? end.ran : end.not_run).push_back(batch);
  }
  if (worker_->has_ended()) {
    worker_.reset();
  } else {
    abandoned_.emplace(std::move(*worker_));
    worker_.reset();
  }
  fault_.reset();
  is_replaced_ = false;
  note_no_worker(now);
  return end;
}

Instant Seat::check_at() const noexcept {
  if (!worker_) return Instant::max();
  const Duration limit = !has_joined_ ? options_.pace.join_limit : options_.timeout;
  if (has_joined_ && is_ready_ && !is_running()) return Instant::max();
  return Deadline(limit).at(since_) + std::chrono::milliseconds(1);
}

void Seat::close() noexcept {
  is_ending_ = true;
  if (worker_ && !is_running()) worker_->ask_to_end();
}

void Seat::end() noexcept {
  is_ending_ = true;
  if (worker_) worker_->ask_to_end();
}

std::optional<process::Worker> Seat::abandoned() noexcept {
  if (!abandoned_) return std::nullopt;
  std::optional<process::Worker> worker(std::move(abandoned_));
  abandoned_.reset();
  return worker;
}

}  // namespace wye::records
