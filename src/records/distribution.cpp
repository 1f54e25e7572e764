#include "distribution.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "reworded.hpp"
#include "serving.hpp"
#include "text.hpp"

namespace wye::inline v0::records {
namespace {

constexpr Duration progress_period = std::chrono::milliseconds(100);

}  // namespace

Distribution::Distribution(const RecordFunction& function, const Source& source, Sink& sink, Journal* journal,
                           std::vector<RecordRange> done, const RecordOptions& options,
                           std::vector<SetDevice> devices, const Pace& pace)
    : function_(function),
      source_(source),
      sink_(sink),
      journal_(journal),
      options_(options),
      devices_(std::move(devices)),
      pace_(pace),
      layout_{.batch = std::min(options.batch, source.count()),
              .input = function.input().size,
              .output = function.output().size},
      division_(source.count(), options.batch, devices_.size()),
      retries_(options.attempts, pace.most_halvings),
      failures_(devices_.size(), pace),
      meter_(devices_.size() + 1) {
  report_.records = source.count();
  for (const RecordRange& range : done) report_.resumed += range.count;
  report_.done = report_.resumed;
  if (!sink.is_in_order()) division_.set_done(done);
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    report_.devices.push_back({.id = devices_[d].id, .name = devices_[d].name, .out = std::nullopt});
    const std::uint64_t seats = std::min<std::uint64_t>(options.workers_per_device, division_.batches(d));
    for (std::uint64_t s = 0; s < seats; ++s)
      seats_.emplace_back(Seat::Options{.device = d,
                                        .device_name = devices_[d].name,
                                        .layout = layout_,
                                        .timeout = options.timeout,
                                        .pace = pace});
  }
  if (sink.is_in_order()) {
    division_.set_in_order(2 * seats_.size() * options.batch);
    division_.set_done(std::move(done));
    division_.set_next(sink.next());
  }
}

Result<RecordReport> Distribution::run() {
  times_.begin = Clock::steady().now();
  times_.end = options_.deadline.at(times_.begin);
  auto workers = process::Workers::open();
  if (!workers) return std::move(workers).error();
  workers_.emplace(*std::move(workers));
  const std::stop_callback rings(options_.stop, [this] { workers_->ring(); });
  for (;;) {
    const std::uint32_t seen = workers_->calls();
    const Instant now = Clock::steady().now();
    if (!is_stopping_ && (options_.stop.stop_requested() || now >= times_.end)) stop();
    bool has_changed = false;
    for (Seat& seat : seats_) {
      has_changed = take_answers(seat, now) || has_changed;
      has_changed = take_end(seat, now) || has_changed;
    }
    if (division_.are_all_out()) give_up_rest();
    if (is_complete()) break;
    start_workers(now);
    give_batches(now);
    show_progress(now, false);
    if (!has_changed) workers_->wait(seen, next_check(now));
  }
  end_workers();
  const Instant now = Clock::steady().now();
  show_progress(now, true);
  if (!has_given_ && !is_stopping_)  // no worker was ready
    for (const RecordDevice& device : report_.devices)
      if (device.out) return *device.out;
  return report(now);
}

bool Distribution::is_complete() const noexcept {
  return division_.is_empty() && std::ranges::none_of(seats_, &Seat::is_running);
}

bool Distribution::take_answers(Seat& seat, Instant now) {
  bool has_any = false;
  while (const auto answer = seat.answer(now)) {
    has_any = true;
    finish(*answer, seat);
  }
  return has_any;
}

void Distribution::finish(const Answer& answer, Seat& seat) {
  const RecordRange& range = answer.batch.range;
  const std::size_t d = seat.device();
  if (!answer.error) {
    if (auto written = sink_.write(range, answer.results); !written) {
      give_up(answer.batch, written.error(), devices_[d].id, d);
      return stop_writing(written.error());
    }
    division_.set_next(sink_.next());
    report_.done += range.count;
    report_.devices[d].done += range.count;
    failures_.note_done(d);
    if (journal_)
      if (auto noted = journal_->note(range, answer.results); !noted) stop_writing(noted.error());
    return;
  }
  // CUDA is lost until its process ends.
  if (options_.processes && *answer.error == Errc::device_lost) seat.replace(*answer.error);
  Batch failed = answer.batch;
  std::vector<Batch> parts = retries_.after_failure(failed, d);
  repeat(std::move(parts), failed, *answer.error, d);
  if (failures_.note_failure(d, range) && !division_.is_out(d))
    take_out(d, reworded(*answer.error,
                         text(pace_.most_failures, " batches in a row failed, the last with: "), ""));
}

bool Distribution::take_end(Seat& seat, Instant now) {
  auto end = seat.check(now);
  if (auto thread = seat.abandoned()) abandoned_.push_back(*std::move(thread));
  if (!end) return false;
  const std::size_t d = seat.device();
  log(LogLevel::warning, end->error.describe());
  for (const Batch& batch : end->not_run) put_back(batch);
  bool is_halving = false;
  for (Batch failed : end->ran) {
    is_halving = is_halving || failed.is_suspect;
    std::vector<Batch> parts = end->is_timeout        ? retries_.after_failure(failed, d)
                               : end->ran.size() == 1 ? retries_.after_end(failed, d)
                                                      : retries_.after_unclear_end(failed, d);
    repeat(std::move(parts), failed, end->error, d);
  }
  if (division_.is_out(d)) return true;
  if (end->is_final)
    take_out(d, end->error);
  else if (!is_halving && failures_.note_end(d, now))
    take_out(d, reworded(end->error,
                         text(pace_.most_ends, " workers ended within ",
                              seconds(std::chrono::duration<double>(pace_.ends_within).count()),
                              ", the last with: "),
                         ""));
  return true;
}

void Distribution::repeat(std::vector<Batch> parts, const Batch& failed, const Error& error,
                          std::size_t device) {
  if (parts.empty() || is_stopping_) {
    Batch last = failed;
    last.failures = std::max(failed.failures, 1u);
    return give_up(last, reworded(error, "", text(", attempt ", last.failures, " of ", options_.attempts)),
                   devices_[device].id, device);
  }
  for (const Batch& part : parts) division_.put_back(part);
}

void Distribution::give_up(const Batch& batch, const Error& error, std::string device,
                           std::size_t counted_for) {
  const RecordRange& range = batch.range;
  report_.failed.push_back({.first = range.first,
                            .last = range.end() - 1,
                            .device = std::move(device),
                            .attempts = batch.failures,
                            .error = error});
  report_.devices[counted_for].failed += range.count;
  if (auto written = sink_.write_failed(range); !written) stop_writing(written.error());
  division_.set_next(sink_.next());
}

/// Ends the set: later results would not be written either.
void Distribution::stop_writing(const Error& error) {
  if (is_stopping_) return;
  log(LogLevel::error, "The record set ends: " + error.sentence());
  stop();
}

/// Gives up all that is left, because no device is.
void Distribution::give_up_rest() {
  if (is_stopping_) return;
  const auto out =
      std::ranges::find_if(report_.devices, [](const RecordDevice& d) { return d.out.has_value(); });
  if (out == report_.devices.end()) return;
  for (const Batch& batch : division_.take_all())
    give_up(batch, reworded(*out->out, "No device is left: ", ""), "",
            static_cast<std::size_t>(out - report_.devices.begin()));
}

void Distribution::take_out(std::size_t device, const Error& error) {
  log(LogLevel::error, text(devices_[device].name, " (", devices_[device].id,
                            ") is taken out of the record set: ", error.sentence()));
  report_.devices[device].out = error;
  division_.take_out(device);
  for (Seat& seat : seats_) {
    if (seat.device() != device) continue;
    while (const auto batch = seat.take_back()) put_back(*batch);
    seat.close();
  }
}

/// Returns a batch that has not run.
void Distribution::put_back(const Batch& batch) {
  if (is_stopping_)
    report_.not_run += batch.range.count;
  else
    division_.put_back(batch);
}

/// Ends the set after the batches that run.
void Distribution::stop() {
  is_stopping_ = true;
  for (Seat& seat : seats_) {
    while (const auto batch = seat.take_back()) put_back(*batch);
    seat.close();
  }
  for (const Batch& batch : division_.take_all()) report_.not_run += batch.range.count;
}

void Distribution::start_workers(Instant now) {
  for (Seat& seat : seats_)
    if (seat.is_vacant() && seat.restart_at() <= now && !division_.is_out(seat.device()) && !is_stopping_ &&
        !division_.is_empty())
      start_worker(seat, now);
}

void Distribution::start_worker(Seat& seat, Instant now) {
  const std::size_t d = seat.device();
  auto worker = start(seat);
  if (worker) {
    log(LogLevel::info, seat.has_begun() ? text("A worker of ", devices_[d].name, " is started again.")
                                         : text("A worker of ", devices_[d].name, " is started."));
    return seat.seat(*std::move(worker), now);
  }
  seat.note_no_worker(now);
  const Error error = worker.error().with_context(text("while starting a worker of ", devices_[d].name));
  log(LogLevel::warning, error.describe());
  if (failures_.note_end(d, now) || error != Errc::unavailable) take_out(d, error);
}

Result<process::Worker> Distribution::start(const Seat& seat) {
  const SetDevice& device = devices_[seat.device()];
  const auto number = static_cast<std::uint32_t>(&seat - seats_.data());
  const auto size = layout_.size();
  if (!size)
    return Error(Errc::out_of_memory,
                 text("Two batches of ", layout_.batch, " records (", layout_.input, " and ", layout_.output,
                      " bytes each) exceed the memory of a worker (2^61 bytes)."));
  process::WorkerOptions options{.name = text("wye-records ", number), .memory = *size};
  std::vector<std::byte> message;
  if (options_.processes) {
    message = to_bytes(Order{.layout = layout_,
                             .function = function_.name(),
                             .device = device.id,
                             .number = number,
                             .io_workers = options_.io_workers,
                             .options = device.options.to_variables()});
    options.message = message;
    options.variables = device.environment;
    options.name = text(function_.name(), " on ", device.id);
  } else {
    options.body = [function = function_, layout = layout_, id = device.id, number,
                    io_workers = options_.io_workers,
                    runtime_options = device.options](process::WorkerEnd& end) {
      Serving(end, function,
              {.layout = layout,
               .device = id,
               .number = number,
               .io_workers = io_workers,
               .open_runtime = [&] { return Runtime::open(runtime_options); }})
          .run();
    };
  }
  return workers_->start(options);
}

void Distribution::give_batches(Instant now) {
  if (is_stopping_) return;
  // Every worker gets one batch before one gets its second.
  for (Seat& seat : seats_)
    if (seat.is_ready() && !seat.is_running())
      if (!give_batch(seat, true, now) && take_back_for(seat)) (void)give_batch(seat, true, now);
  for (Seat& seat : seats_)
    if (seat.wants()) (void)give_batch(seat, !seat.is_running(), now);
}

bool Distribution::give_batch(Seat& seat, bool may_be_suspect, Instant now) {
  while (const auto batch = division_.take(seat.device(), may_be_suspect)) {
    if (auto read = source_.read(batch->range, seat.room(*batch)); !read) {
      give_up(*batch, read.error().with_context("while reading records"), "", seat.device());
      continue;
    }
    seat.give(*batch, now);
    has_given_ = true;
    return true;
  }
  return false;
}

/// Takes a batch that another worker has not begun, and has a batch before it.
bool Distribution::take_back_for(const Seat& idle) {
  for (Seat& seat : seats_) {
    if (&seat == &idle || seat.wants()) continue;
    if (const auto batch = seat.take_back()) return division_.put_back(*batch), true;
  }
  return false;
}

Instant Distribution::next_check(Instant now) const {
  Instant next = std::min(now + pace_.longest_wait, is_stopping_ ? Instant::max() : times_.end);
  if (options_.progress) next = std::min(next, times_.progress + progress_period);
  for (const Seat& seat : seats_) {
    next = std::min(next, seat.check_at());
    if (seat.is_vacant() && seat.restart_at() > now) next = std::min(next, seat.restart_at());
  }
  return next;
}

void Distribution::show_progress(Instant now, bool is_end) {
  if (!options_.progress || (!is_end && now - times_.progress < progress_period)) return;
  times_.progress = now;
  RecordProgress progress{.devices = {},
                          .records = report_.records,
                          .done = report_.done,
                          .took = now - times_.begin,
                          .is_end = is_end};
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    const RecordDevice& device = report_.devices[d];
    std::uint64_t in_flight = 0;
    for (const Seat& seat : seats_)
      if (seat.device() == d) in_flight += seat.records();
    progress.devices.push_back({.id = device.id,
                                .name = device.name,
                                .records = device.done + device.failed + division_.records(d) + in_flight,
                                .done = device.done,
                                .failed = device.failed,
                                .rate = meter_.rate(d, device.done + device.failed, now),
                                .is_out = device.out.has_value()});
    progress.failed += device.failed;
  }
  const std::uint64_t ended = progress.done + progress.failed;
  progress.rate = meter_.rate(devices_.size(), ended, now);
  if (progress.rate > 0)
    progress.left = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(
        std::min(1e9, static_cast<double>(progress.records - ended) / progress.rate)));
  try {
    options_.progress(progress);
  } catch (...) {
  }
}

/// Asks all workers to end, and kills processes that do not.
void Distribution::end_workers() {
  for (Seat& seat : seats_) seat.end();
  const Instant limit = Clock::steady().now() + pace_.end_limit;
  const auto have_ended = [&] { return std::ranges::all_of(seats_, &Seat::has_ended); };
  for (;;) {
    const std::uint32_t seen = workers_->calls();
    if (have_ended() || Clock::steady().now() >= limit) break;
    workers_->wait(seen, limit);
  }
  for (Seat& seat : seats_) seat.kill();
  for (const Seat& seat : seats_) report_.devices[seat.device()].restarts += seat.restarts();
  seats_.clear();      // waits for threads
  abandoned_.clear();  // and for those that are late
}

RecordReport Distribution::report(Instant now) {
  std::ranges::sort(report_.failed, {}, &RecordFailure::first);
  report_.took = now - times_.begin;
  return std::move(report_);
}

void Distribution::log(LogLevel level, const std::string& sentence) const {
  const LogSink& sink = devices_.front().options.log;
  if (sink) sink({.level = level, .room = "records", .text = sentence});
}

}  // namespace wye::records
