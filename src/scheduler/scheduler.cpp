#include <wye/cache/shader_cache.hpp>
#include <wye/scheduler/scheduler.hpp>

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "base/cancellation.hpp"
#include "base/internals.hpp"
#include "base/process.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "device/backend.hpp"
#include "scheduler/core.hpp"

namespace wye::inline v0 {

namespace scheduler {

Parking& Record::parking() const noexcept { return core->parking_of(*this); }

std::shared_ptr<data::Completion> Record::followed() {
  const base::Lock lock(parking().mutex);
  if (!watch()) return nullptr;
  if (!completion) completion = core->make_completion();
  return completion;
}

Result<Outcome> Record::result() {
  if (error) return *error;
  return Outcome(shared_from_this());
}

namespace {

Result<void> check_numbers(const SchedulerOptions& options) {
  struct Number {
    std::string_view of;
    std::uint32_t value, least, most;
  };
  for (const Number& number : {Number{"concurrent jobs", options.concurrent_jobs, 1, 1024},
                               Number{"jobs committed per lane", options.committed_per_lane, 1, 64},
                               Number{"jobs in one submission", options.batch_limit, 1, 64},
                               Number{"recent jobs to keep", options.recent, 0, 1u << 20}})
    if (number.value < number.least || number.value > number.most)
      return base::invalid(base::text("The number of {} ({}) is not in the range {} to {}.", number.of,
                                      number.value, number.least, number.most));
  if (options.max_queued < 1)
    return base::invalid("The limit of waiting jobs (max_queued) is 0; it is at least 1.");
  return {};
}

Result<void> check_durations(const SchedulerOptions& options) {
  const auto seconds = [](Duration time) { return std::chrono::duration<double>(time).count(); };
  if (options.close_timeout && *options.close_timeout < Duration::zero())
    return base::invalid(
        base::text("The close timeout ({} s) is negative.", seconds(*options.close_timeout)));
  if (options.aging <= Duration::zero())
    return base::invalid(base::text("The aging of jobs ({} s) is not positive.", seconds(options.aging)));
  if (options.job_time_limit <= Duration::zero())
    return base::invalid("The time limit of jobs is not positive.");
  return {};
}

Result<void> check_tags(const std::vector<TagOptions>& tags) {
  for (auto tag = tags.begin(); tag != tags.end(); ++tag) {
    if (!(tag->share >= 0.001 && tag->share <= 1000))
      return base::invalid(
          base::text("The share of tag '{}' ({}) is not in the range 0.001 to 1000.", tag->tag, tag->share));
    if (tag->concurrent < 1)
      return base::invalid(base::text("The limit of concurrent jobs of tag '{}' is 0.", tag->tag));
    if (std::any_of(tags.begin(), tag, [&](const TagOptions& other) { return other.tag == tag->tag; }))
      return base::invalid(base::text("The options name tag '{}' twice.", tag->tag));
  }
  return {};
}

Result<void> check_preferences(const std::vector<Preference>& rows) {
  for (const Preference& row : rows) {
    if (row.type.name.empty()) return base::invalid("A preference has no workload type.");
    for (const std::string& backend : row.backends)
      if (!device::find_backend(backend))
        return base::invalid(
            base::text("The preference for {} work names a backend ('{}') that does not exist.",
                       row.type.name, backend));
  }
  return {};
}

Result<void> check(const SchedulerOptions& options) {
  if (auto ok = check_numbers(options); !ok) return ok;
  if (auto ok = check_durations(options); !ok) return ok;
  if (auto ok = check_tags(options.tags); !ok) return ok;
  return check_preferences(options.preferences);
}

/// Returns the error of `Ticket::then` without memory. Opening a scheduler makes it.
const Error& no_memory_for_then() {
  static const Error error(Errc::out_of_memory,
                           "The host has no memory left to call a function when the job completes.");
  return error;
}

}  // namespace

Result<Scheduler> open(const ContextPool& pool, std::shared_ptr<device::ExecutableProvider> provider,
                       SchedulerOptions options) {
  if (const Error* inherited = base::state_of(pool)->origin().error()) return *inherited;
  if (auto ok = check(options); !ok) return std::move(ok).error();
  try {
    (void)no_memory_for_then();
    auto core = base::make_own<Core>(base::state_of(pool), std::move(provider), std::move(options));
    // Records keep the core, and the queue keeps records. So the deleter of the handles closes the
    // core.
    return detail::Internals::make<Scheduler>(std::shared_ptr<Core>(
        core.get(), [core](Core* last) { (void)last->close(last->closes_by()).has_value(); }));
  } catch (const std::bad_alloc&) {
    return Error(Errc::out_of_memory, "The host has no memory for a scheduler.");
  }
}

}  // namespace scheduler

Result<Scheduler> Scheduler::open(ContextPool pool, const ShaderCache& cache, SchedulerOptions options,
                                  Headers headers) {
  if (auto ok = base::check_headers<SchedulerOptions>(headers); !ok) return std::move(ok).error();
  std::shared_ptr<device::ExecutableProvider> provider = base::state_of(cache);
  if (!provider) return Error(Errc::invalid_argument, "The cache of the scheduler is a moved-from object.");
  return scheduler::open(pool, std::move(provider), std::move(options));
}

Ticket Scheduler::submit(Job job, const JobOptions& options) {
  auto record = state_->accept(std::move(job), options);
  state_->submit(record);
  return Ticket(std::move(record));
}

std::vector<Ticket> Scheduler::submit(std::span<Job> jobs, const JobOptions& options) {
  std::vector<Ticket> tickets;
  tickets.reserve(jobs.size());
  std::array<std::shared_ptr<scheduler::Record>, scheduler::Core::most_submitted> records;
  while (!jobs.empty()) {
    const std::size_t count = std::min(jobs.size(), records.size());
    for (std::size_t i = 0; i < count; ++i) records[i] = state_->accept(std::move(jobs[i]), options);
    state_->submit(std::span(records).first(count));
    for (std::size_t i = 0; i < count; ++i) tickets.push_back(Ticket(std::move(records[i])));
    jobs = jobs.subspan(count);
  }
  return tickets;
}

Result<Outcome> Scheduler::run(Job job, const JobOptions& options) {
  return state_->run_here(state_->accept(std::move(job), options));
}

Result<Explanation> Scheduler::estimate(Job job, const JobOptions& options) const {
  return state_->estimate(std::move(job), options);
}

SchedulerMetrics Scheduler::metrics() const {
  if (state_->origin().is_inherited()) return {};
  return state_->metrics();
}

std::vector<Cost> Scheduler::costs() const { return state_->costs(); }

void Scheduler::forget() { state_->forget(); }

std::vector<Placement> Scheduler::recent() const { return state_->recent(); }

Result<void> Scheduler::quiesce(Deadline deadline) { return state_->quiesce(deadline); }

void Scheduler::close() { (void)state_->close(Instant::max()).has_value(); }

Result<void> Scheduler::close(Deadline deadline) {
  const Clock& clock = state_->pool().clock();
  return state_->close(base::parked_until(clock, deadline.at(clock)));
}

Ticket::Ticket(std::shared_ptr<scheduler::Record> record) : record_(std::move(record)) {}
Ticket::Ticket(Ticket&& other) noexcept = default;
Ticket& Ticket::operator=(Ticket&& other) noexcept {
  if (this != &other) {
    if (record_) record_->core->release(record_);
    record_ = std::move(other.record_);
  }
  return *this;
}
Ticket::~Ticket() {
  if (record_) record_->core->release(record_);
}

Id Ticket::id() const noexcept { return record_->id; }
Result<Outcome> Ticket::wait(Deadline deadline) { return record_->core->wait(*record_, deadline); }

bool Ticket::ready() const noexcept {
  if (record_->core->origin().is_inherited()) return true;  // `wait` returns at once
  return record_->is_settled;
}

namespace {

/// Calls a function of the application, and drops its exceptions as the thread that completes a job
/// does.
void call(const std::function<void(const Result<Outcome>&)>& then, const Result<Outcome>& result) noexcept {
  const base::CancellationHeld held;
  try {
    then(result);
  } catch (...) {
  }
}

}  // namespace

void Ticket::then(std::function<void(const Result<Outcome>&)> then) {
  if (const Error* inherited = record_->core->origin().error()) return call(then, *inherited);
  try {
    const base::Lock lock(record_->parking().mutex);
    if (record_->watch()) return record_->make_listeners().continuations.push_back(std::move(then));
  } catch (const std::bad_alloc&) {  // `then` was not moved from
    return call(then, scheduler::no_memory_for_then());
  }
  record_->core->call_at_once(then, *record_);
}

void Ticket::then(std::function<void(const Result<Outcome>&)> then, const Executor& executor) {
  this->then([then = std::move(then), executor](const Result<Outcome>& result) {
    executor([then, result] { then(result); });
  });
}

void Ticket::cancel() { record_->core->cancel(*record_); }
Explanation Ticket::explain() const { return record_->core->parts().explainer.explain(*record_); }

namespace {

/// Returns the error of one of several tickets. `index` is from 0.
Error moved_from(std::size_t index) {
  return Error(Errc::invalid_argument, base::text("Ticket {} was moved from.", index + 1));
}

}  // namespace

Result<void> wait_all(std::span<Ticket> tickets, Deadline deadline) {
  for (std::size_t i = 0; i < tickets.size(); ++i)
    if (!tickets[i].record_) return moved_from(i);
  std::optional<Error> first;
  const Clock& clock = tickets.empty() ? Clock::steady() : tickets[0].record_->core->clock();
  const Instant until = deadline.at(clock);
  for (Ticket& ticket : tickets) {
    auto result = ticket.wait(deadline.is_never() ? deadline : Deadline(until - clock.now()));
    if (!result && !ticket.ready()) return std::move(result).error();
    if (!result && !first) first = std::move(result).error();
  }
  if (first) return *std::move(first);
  return {};
}

Result<std::size_t> wait_any(std::span<Ticket> tickets, Deadline deadline) {
  if (tickets.empty()) return Error(Errc::invalid_argument, "There is no ticket to wait for.");
  std::vector<std::shared_ptr<scheduler::Record>> records;
  records.reserve(tickets.size());
  for (std::size_t i = 0; i < tickets.size(); ++i) {
    if (!tickets[i].record_) return moved_from(i);
    records.push_back(tickets[i].record_);
  }
  return scheduler::Core::wait_any(records, deadline);
}

Id Outcome::id() const noexcept { return record_->id; }
const AdapterInfo& Outcome::device() const { return record_->core->pool().fleet().info(record_->device); }
Duration Outcome::queue_time() const { return record_->queue_time(); }
Duration Outcome::build_time() const { return record_->times.build; }
Duration Outcome::transfer_time() const { return record_->times.transfer; }
Duration Outcome::run_time() const { return record_->run_time(); }
Bytes Outcome::bytes_transferred() const { return record_->bytes_transferred; }
CacheTier Outcome::cache_tier() const { return record_->tier; }
std::uint32_t Outcome::jobs_in_submission() const noexcept { return record_->batch_size; }
std::uint32_t Outcome::jobs_in_launch() const noexcept { return record_->launch_size; }
std::vector<VariantChoice> Outcome::variants() const {
  return record_->core->parts().explainer.variants(*record_);
}
std::vector<KernelCode> Outcome::code() const { return record_->core->parts().explainer.code(*record_); }
std::string Outcome::reason() const { return record_->core->parts().explainer.reason(*record_); }

}  // namespace wye
