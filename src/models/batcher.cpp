#include "batcher.hpp"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

namespace wye::inline v0::models {

namespace {

using Lock = std::unique_lock<std::mutex>;
using Requests = std::list<std::shared_ptr<BatchRequest>>;
using Counter = std::uint64_t EmbedQueueMetrics::*;

/// Deletes the state of a batcher, but not in a child of `fork`: the state has a thread that does not
/// exist there.
struct DeleteOwn {
  pid_t process = ::getpid();
  template <class T>
  void operator()(T* last) const {
    if (::getpid() == process) delete last;
  }
};

/// Returns whether one text may have caused the failure of its batch.
bool may_concern_one_text(const Error& error) {
  return error == Errc::invalid_argument || error == Errc::out_of_memory || error == Errc::over_budget;
}

/// Starts a thread that blocks signals, because they belong to the application.
/// Errors: unavailable.
template <class Body>
Result<std::thread> start_thread(Body body) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread;
  int refused = 0;
  try {
    thread = std::thread(std::move(body));
  } catch (const std::system_error& error) {
    refused = error.code().value();
  } catch (const std::bad_alloc&) {
    refused = ENOMEM;
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (refused != 0)
    return Error(Errc::unavailable, "The thread of a queue cannot be started: " +
                                        std::generic_category().message(refused) + ".");
  ::pthread_setname_np(thread.native_handle(), "wye-embed");
  return thread;
}

/// Returns the source of a batch. Without memory it never stops the batch.
std::stop_source make_stop_source() noexcept {
  try {
    return std::stop_source();
  } catch (const std::bad_alloc&) {
    return std::stop_source(std::nostopstate);
  }
}

}  // namespace

/// The state of a batcher, shared with its thread and its requests. Functions that end with
/// `_locked` are called with `mutex` held, and return the source whose stop the caller requests
/// after it has released the mutex: a callback of it may take any lock.
/// Threads: thread-safe.
struct BatcherState : std::enable_shared_from_this<BatcherState> {
  using Stage = BatchRequest::Stage;

  BatcherState(RunBatch run_, const BatcherOptions& options_) : run(std::move(run_)), options(options_) {}

  bool is_inherited() const noexcept { return ::getpid() != process; }
  Instant now() const noexcept { return options.clock.now(); }
  /// Returns the number of waiting requests that begin a batch without a delay.
  std::size_t full_batch() const noexcept { return std::min(options.batch_texts, options.max_waiting); }

  void run_batches() noexcept;
  Result<std::shared_ptr<BatchRequest>> submit(std::string_view text, Deadline deadline);

  /// Settles a request, unless it has settled, and counts it.
  std::stop_source settle_locked(BatchRequest& request, Result<std::vector<float>> result,
                                 Counter counter) noexcept {
    if (request.result_) return std::stop_source(std::nostopstate);
    request.result_.emplace(std::move(result));
    ++(counts.*counter);
    const Stage stage = std::exchange(request.stage_, Stage::taken);
    if (stage == Stage::running && --needed == 0) return stop;
    if (stage == Stage::waiting) waiting.erase(request.place_);  // may end the request
    return std::stop_source(std::nostopstate);
  }
  /// Settles all requests whose deadline has passed. Their waiters wake by themselves.
  std::stop_source expire_locked(Instant at) noexcept {
    std::stop_source last(std::nostopstate);
    if (at < next_deadline) return last;
    next_deadline = Instant::max();
    const auto look = [&](BatchRequest& request) {
      if (request.result_) return;
      if (request.until_ > at) {
        next_deadline = std::min(next_deadline, request.until_);
        return;
      }
      if (auto source = settle_locked(request, timed_out, &EmbedQueueMetrics::timed_out);
          source.stop_possible())
        last = std::move(source);
    };
    for (auto next = waiting.begin(); next != waiting.end();) look(**next++);
    for (const auto& request : batch) look(*request);
    return last;
  }
  /// Waits until `woken` is notified or `until` passes. May return early.
  void wait(Lock& lock, std::condition_variable& woken, Instant until) const {
    if (until == Instant::max() || &options.clock != &Clock::steady())
      woken.wait(lock);
    else  // not for longer: the standard library adds the time of its clock, which could overflow
      woken.wait_for(lock, std::min<Duration>(until - now(), std::chrono::hours(1)));
  }

  RunBatch run;
  const BatcherOptions options;
  const pid_t process = ::getpid();
  // Made early: a request settles without memory.
  const Error inherited{
      Errc::closed,
      "The process that opened the queue has forked, and this is the child. Open a queue there."};
  const Error closed{Errc::closed, "The request had not started when the queue was closed."};
  const Error closed_before{Errc::closed, "The request was submitted after the queue was closed."};
  const Error full{Errc::over_budget,
                   "The request was refused: the limit of waiting requests is reached (max_waiting = " +
                       std::to_string(options.max_waiting) + ")."};
  const Error timed_out{Errc::timed_out, "The request did not complete before its deadline."};
  const Error wait_timed_out{Errc::timed_out,
                             "The request did not complete before the deadline of the wait."};
  const Error cancelled{Errc::cancelled, "The request was cancelled."};
  const Error no_memory{Errc::out_of_memory, "The host has no memory left to embed a text."};
  const Error thrown{Errc::internal, "The function that embeds a batch threw an exception."};
  const Error miscounted{Errc::internal,
                         "The function that embeds a batch returned a wrong number of vectors."};

  std::mutex mutex;
  std::condition_variable work;             ///< for the thread: a batch may begin
  std::condition_variable ended;            ///< for `close`: another thread has joined the thread
  Requests waiting;                         ///< first submitted first; none has settled
  Requests batch;                           ///< changed by the thread alone; may have settled
  std::size_t needed = 0;                   ///< requests in the call of `run` that have not settled
  std::stop_source stop{std::nostopstate};  ///< of the call of `run`
  Instant next_deadline = Instant::max();   ///< none that has not settled has an earlier one
  EmbedQueueMetrics counts;
  bool is_closing = false;
  bool is_joining = false;  ///< a thread has begun to join the thread
  bool has_ended = false;   ///< it has joined it
  std::thread thread;
  std::thread::id thread_id;  ///< `thread` itself belongs to the thread that joins it

 private:
  using Place = Requests::iterator;
  bool await_batch(Lock& lock);
  bool run_together(Lock& lock, Place first, Place last);
  Result<Vectors> call(Place first, Place last) const noexcept;
};

Result<std::shared_ptr<BatchRequest>> BatcherState::submit(std::string_view text, Deadline deadline) {
  const Instant arrived = now();
  Requests one;
  one.push_back(std::make_shared<BatchRequest>(shared_from_this(), text, arrived, deadline.at(arrived)));
  std::shared_ptr<BatchRequest> request = one.front();
  std::stop_source unneeded(std::nostopstate);
  {
    const Lock lock(mutex);
    if (is_closing) return closed_before;
    if (waiting.size() >= options.max_waiting) unneeded = expire_locked(arrived);
    if (request->until_ <= arrived) {
      ++counts.requests;
      settle_locked(*request, timed_out, &EmbedQueueMetrics::timed_out);
    } else if (waiting.size() < options.max_waiting) {
      ++counts.requests;
      request->stage_ = Stage::waiting;
      request->place_ = one.begin();
      next_deadline = std::min(next_deadline, request->until_);
      waiting.splice(waiting.end(), one);
      if (waiting.size() == 1 || waiting.size() == full_batch()) work.notify_one();
    } else {
      ++counts.refused;
      request.reset();
    }
  }
  unneeded.request_stop();
  if (!request) return full;
  return request;
}

/// Waits until a batch begins. Returns false if the batcher closes.
bool BatcherState::await_batch(Lock& lock) {
  for (;;) {
    if (is_closing) return false;
    const Instant at = now();
    expire_locked(at);
    if (waiting.size() >= full_batch()) return true;
    const Instant begin =
        waiting.empty() ? Instant::max() : Deadline(options.delay).at(waiting.front()->arrived_);
    if (begin <= at) return true;
    wait(lock, work, begin);
  }
}

/// Calls `run` with the texts of requests that have not settled, and settles them. Returns false if
/// it settles none, because each of them is to run alone.
bool BatcherState::run_together(Lock& lock, Place first, Place last) {
  for (auto at = first; at != last; ++at) (*at)->stage_ = Stage::running;
  const auto texts = static_cast<std::size_t>(std::distance(first, last));
  needed = texts;
  stop = make_stop_source();
  ++counts.batches;
  counts.texts += texts;
  lock.unlock();
  Result<Vectors> vectors = call(first, last);
  if (vectors && vectors->size() != texts) vectors = miscounted;
  lock.lock();
  expire_locked(now());
  const bool is_settled = vectors || texts == 1 || !may_concern_one_text(vectors.error());
  std::size_t index = 0;
  for (auto at = first; at != last; ++at, ++index) {
    if (!is_settled)
      (*at)->stage_ = Stage::taken;
    else if (vectors)
      settle_locked(**at, std::move((*vectors)[index]), &EmbedQueueMetrics::completed);
    else
      settle_locked(**at, vectors.error(), &EmbedQueueMetrics::failed);
  }
  stop = std::stop_source(std::nostopstate);
  lock.unlock();
  for (auto at = first; is_settled && at != last; ++at) (*at)->settled_.notify_all();
  lock.lock();
  return is_settled;
}

Result<Vectors> BatcherState::call(Place first, Place last) const noexcept {
  try {
    std::vector<std::string_view> texts;
    for (auto at = first; at != last; ++at) texts.push_back((*at)->text_);
    return run(texts, stop.get_token());
  } catch (const std::bad_alloc&) {
    return no_memory;
  } catch (...) {
    return thrown;
  }
}

void BatcherState::run_batches() noexcept {
  Lock lock(mutex);
  while (await_batch(lock)) {
    const auto texts =
        static_cast<std::ptrdiff_t>(std::min<std::size_t>(waiting.size(), options.batch_texts));
    batch.splice(batch.end(), waiting, waiting.begin(), std::next(waiting.begin(), texts));
    if (!run_together(lock, batch.begin(), batch.end())) {
      for (auto at = batch.begin(); at != batch.end(); ++at) {
        if (!(*at)->result_) run_together(lock, at, std::next(at));
      }
    }
    batch.clear();
  }
}

BatchRequest::BatchRequest(std::shared_ptr<BatcherState> batcher, std::string_view text, Instant arrived,
                           Instant until)
    : batcher_(std::move(batcher)), text_(text), arrived_(arrived), until_(until) {}

bool BatchRequest::is_inherited() const noexcept { return batcher_->is_inherited(); }

Result<std::vector<float>> BatchRequest::wait(Deadline deadline) {
  BatcherState& batcher = *batcher_;
  if (batcher.is_inherited()) return batcher.inherited;
  const Instant until = deadline.at(batcher.options.clock);
  std::stop_source unneeded(std::nostopstate);
  bool has_settled = false;
  for (Lock lock(batcher.mutex);;) {
    const Instant at = batcher.now();
    if (until_ <= at)
      unneeded = batcher.settle_locked(*this, batcher.timed_out, &EmbedQueueMetrics::timed_out);
    has_settled = result_.has_value();
    if (has_settled || until <= at) break;
    batcher.wait(lock, settled_, std::min(until, until_));
  }
  unneeded.request_stop();
  if (!has_settled) return batcher.wait_timed_out;
  try {
    return *result_;  // it no longer changes
  } catch (const std::bad_alloc&) {
    return batcher.no_memory;
  }
}

bool BatchRequest::ready() noexcept {
  BatcherState& batcher = *batcher_;
  if (batcher.is_inherited()) return true;
  std::stop_source unneeded(std::nostopstate);
  bool has_settled = false;
  {
    const Lock lock(batcher.mutex);
    if (until_ <= batcher.now())
      unneeded = batcher.settle_locked(*this, batcher.timed_out, &EmbedQueueMetrics::timed_out);
    has_settled = result_.has_value();
  }
  unneeded.request_stop();
  return has_settled;
}

void BatchRequest::cancel() noexcept {
  BatcherState& batcher = *batcher_;
  if (batcher.is_inherited()) return;
  std::stop_source unneeded(std::nostopstate);
  {
    const Lock lock(batcher.mutex);
    if (until_ <= batcher.now())
      unneeded = batcher.settle_locked(*this, batcher.timed_out, &EmbedQueueMetrics::timed_out);
    else
      unneeded = batcher.settle_locked(*this, batcher.cancelled, &EmbedQueueMetrics::cancelled);
    settled_.notify_all();
  }
  unneeded.request_stop();
}

Result<std::shared_ptr<Batcher>> Batcher::open(RunBatch run, BatcherOptions options) {
  if (options.delay < Duration::zero())
    return Error(Errc::invalid_argument,
                 "The delay of a batch (" + std::to_string(options.delay.count()) + " ns) is negative.");
  if (options.batch_texts == 0)
    return Error(Errc::invalid_argument,
                 "The limit of texts of a batch (batch_texts) is 0; it is at least 1.");
  if (options.max_waiting == 0)
    return Error(Errc::invalid_argument,
                 "The limit of waiting requests (max_waiting) is 0; it is at least 1.");
  try {
    const std::shared_ptr<BatcherState> state(new BatcherState(std::move(run), options), DeleteOwn());
    std::shared_ptr<Batcher> batcher(new Batcher(state));
    Result<std::thread> thread = start_thread([state] { state->run_batches(); });
    if (!thread) {
      state->is_joining = state->has_ended = true;
      return std::move(thread).error();
    }
    state->thread = *std::move(thread);
    state->thread_id = state->thread.get_id();
    return batcher;
  } catch (const std::bad_alloc&) {
    return Error(Errc::out_of_memory, "The host has no memory left to open a queue.");
  }
}

Batcher::~Batcher() {
  if (state_->is_inherited()) return;
  close();
  if (state_->thread.joinable())
    state_->thread.detach();  // it is this thread, and it holds the state
  else
    state_->run = nullptr;  // tickets may keep the state
}

Result<std::shared_ptr<BatchRequest>> Batcher::submit(std::string_view text, Deadline deadline) {
  if (state_->is_inherited()) return state_->inherited;
  try {
    return state_->submit(text, deadline);
  } catch (const std::bad_alloc&) {
    return state_->no_memory;
  }
}

EmbedQueueMetrics Batcher::metrics() {
  if (state_->is_inherited()) return {};
  EmbedQueueMetrics counts;
  std::stop_source unneeded(std::nostopstate);
  {
    const Lock lock(state_->mutex);
    unneeded = state_->expire_locked(state_->now());
    counts = state_->counts;
    counts.waiting = state_->waiting.size();
    for (const auto& request : state_->batch) counts.running += request->result_ ? 0u : 1u;
  }
  unneeded.request_stop();
  return counts;
}

void Batcher::close() noexcept {
  BatcherState& state = *state_;
  if (state.is_inherited()) return;
  const bool is_own_thread = state.thread_id == std::this_thread::get_id();
  std::stop_source unneeded(std::nostopstate);
  bool joins = false;
  {
    const Lock lock(state.mutex);
    unneeded = state.expire_locked(state.now());
    joins = !is_own_thread && !std::exchange(state.is_joining, true);
    state.is_closing = true;
    while (!state.waiting.empty()) {
      const std::shared_ptr<BatchRequest> request = state.waiting.front();
      state.settle_locked(*request, state.closed, &EmbedQueueMetrics::closed);
      request->settled_.notify_all();
    }
    state.work.notify_one();
  }
  unneeded.request_stop();
  if (is_own_thread) return;
  if (joins) state.thread.join();
  Lock lock(state.mutex);
  if (joins) {
    state.has_ended = true;
    state.ended.notify_all();
  }
  state.ended.wait(lock, [&] { return state.has_ended; });
}

void Batcher::notify_clock() noexcept {
  if (state_->is_inherited()) return;
  const Lock lock(state_->mutex);
  state_->work.notify_one();
  for (const auto& request : state_->waiting) request->settled_.notify_all();
  for (const auto& request : state_->batch) request->settled_.notify_all();
}

}  // namespace wye::models
