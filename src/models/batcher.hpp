#pragma once
#include <wye/models/embed_queue.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace wye::inline v0::models {

/// A vector for each text of a batch.
using Vectors = std::vector<std::vector<float>>;

/// Runs a batch of texts. `stop` is requested when every request of the batch has settled without
/// it: the result is then dropped.
using RunBatch =
    std::function<Result<Vectors>(std::span<const std::string_view> texts, std::stop_token stop)>;

struct BatcherOptions {
  Duration delay = std::chrono::milliseconds(2);
  std::uint32_t batch_texts = 128;
  std::uint32_t max_waiting = 4096;
  /// The steady clock, or a clock that stands still until `Batcher::notify_clock`.
  const Clock& clock = Clock::steady();
};

struct BatcherState;

/// One text of a batch, and its result. It may outlive its batcher.
/// Threads: thread-safe.
class BatchRequest {
 public:
  BatchRequest(std::shared_ptr<BatcherState> batcher, std::string_view text, Instant arrived, Instant until);
  Result<std::vector<float>> wait(Deadline deadline = {});
  bool ready() noexcept;
  void cancel() noexcept;
  /// Returns whether this is a child of `fork`, which has no thread for it.
  bool is_inherited() const noexcept;

 private:
  friend class Batcher;
  friend struct BatcherState;
  enum class Stage : std::uint8_t {
    unlisted,
    waiting,  ///< in `BatcherState::waiting`
    running,  ///< in the call of `BatcherState::run`
    taken,    ///< in `BatcherState::batch`, between two calls; or settled
  };
  const std::shared_ptr<BatcherState> batcher_;
  const std::string text_;
  const Instant arrived_, until_;
  // Under the mutex of the batcher:
  Stage stage_ = Stage::unlisted;
  std::list<std::shared_ptr<BatchRequest>>::iterator place_;  ///< in `BatcherState::waiting`
  std::optional<Result<std::vector<float>>> result_;          ///< set once: the request has settled
  std::condition_variable settled_;
};

/// Joins requests to batches, which one thread runs. EmbedQueue and EmbedTicket document the
/// behaviour. Deadlines need no thread: every function that shows a request settles it first if
/// its deadline has passed.
/// Threads: thread-safe.
class Batcher {
 public:
  /// Starts the thread.
  /// Errors: invalid_argument (an option), unavailable (no thread), out_of_memory.
  static Result<std::shared_ptr<Batcher>> open(RunBatch run, BatcherOptions options = {});
  Batcher(const Batcher&) = delete;  // its destructor closes
  /// Closes. On the thread of the batcher, which `run` may use to end the batcher, it does not wait.
  ~Batcher();

  /// Errors: over_budget (`max_waiting` requests wait), closed, out_of_memory.
  Result<std::shared_ptr<BatchRequest>> submit(std::string_view text, Deadline deadline = {});
  EmbedQueueMetrics metrics();
  void close() noexcept;
  /// Wakes all threads that wait until an instant. A test calls it after it has moved the clock:
  /// public headers have no way to be woken by a ManualClock.
  void notify_clock() noexcept;

 private:
  explicit Batcher(std::shared_ptr<BatcherState> state) noexcept : state_(std::move(state)) {}
  const std::shared_ptr<BatcherState> state_;
};

}  // namespace wye::models
