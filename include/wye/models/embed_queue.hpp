#pragma once
/// Queues of texts: requests from many threads run in batches of one encoder.
#include <wye/models/encoder.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace wye::inline v0::models {

class Batcher;

/// Options of an embed queue.
struct EmbedQueueOptions {
  /// A batch begins when its oldest request has waited this long. With 0 it begins as soon as no
  /// batch runs: then a request alone is fastest, and there are more and smaller batches.
  Duration delay = std::chrono::milliseconds(2);
  std::uint32_t batch_texts = 128;   ///< a batch begins when this many requests wait; at least 1
  std::uint32_t max_waiting = 4096;  ///< limit of the requests that wait for a batch; at least 1
  LongText long_text = LongText::cut;
  std::string tag = {};  ///< of the jobs
};

/// Options of one request.
struct EmbedRequest {
  Deadline deadline = {};     ///< from submission to completion, on the steady clock
  std::stop_token stop = {};  ///< cancels the request
};

/// Counts of an embed queue since it was opened. `requests` is the sum of `completed`, `failed`,
/// `timed_out`, `cancelled`, `closed`, `waiting` and `running`.
struct EmbedQueueMetrics {
  std::uint64_t requests = 0;  ///< accepted by `submit` or `embed`
  std::uint64_t refused = 0;   ///< not accepted because of `max_waiting`
  std::uint64_t batches = 0;   ///< runs of the encoder
  std::uint64_t texts = 0;     ///< of these runs; a text that runs again alone counts again
  std::uint64_t completed = 0;
  std::uint64_t failed = 0;
  std::uint64_t timed_out = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t closed = 0;   ///< had not started when the queue was closed
  std::uint64_t waiting = 0;  ///< now
  std::uint64_t running = 0;  ///< now
  friend bool operator==(const EmbedQueueMetrics&, const EmbedQueueMetrics&) = default;
};

/// Waits for and cancels one request. Its destructor cancels the request.
/// Threads: one thread at a time.
class WYE_API EmbedTicket {
 public:
  EmbedTicket(EmbedTicket&& other) noexcept;
  EmbedTicket& operator=(EmbedTicket&& other) noexcept;
  EmbedTicket(const EmbedTicket&) = delete;  // a request has one owner, which cancels it
  ~EmbedTicket();

  /// Waits until the request has settled or `deadline` passes, and returns a copy of the vector.
  /// Errors: timed_out (the deadline of the request; or this wait: then `ready` returns false, and
  ///         the request continues), cancelled, closed (the queue was closed before the request
  ///         started), out_of_memory (of the copy: wait again), invalid_argument (a moved-from
  ///         ticket); those of `Encoder::embed`.
  Result<std::vector<float>> wait(Deadline deadline = {});
  /// Returns whether the request has settled. Never blocks.
  bool ready() const noexcept;
  /// Cancels the request, unless it has settled. It settles before this returns. The other requests
  /// of its batch go on.
  void cancel() noexcept;

 private:
  friend class EmbedQueue;
  struct WYE_LOCAL State;
  explicit EmbedTicket(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

/// Joins the requests of many threads to batches of one encoder, which run one after the other on a
/// thread of the queue. Requests that arrive meanwhile wait for the next batch. Each request
/// settles once.
///
/// If a batch fails as invalid_argument, out_of_memory or over_budget, each of its texts runs
/// again alone: only those that fail alone fail. Other errors are the errors of each request of the
/// batch. A batch of which every request was cancelled is stopped.
///
/// Copies share one queue. It closes with its last copy, as by `close`. A child of `fork` cannot
/// use it: calls return `closed`, and destructors do nothing.
/// Threads: thread-safe.
class WYE_API EmbedQueue {
 public:
  /// Starts the thread of a queue.
  /// Errors: invalid_argument (an option), unavailable (the system starts no thread),
  ///         out_of_memory.
  static Result<EmbedQueue> open(Encoder encoder, EmbedQueueOptions options = {});

  /// Returns the vector of a text, when its batch has run. `text` is copied.
  /// Errors: those of `submit` and `EmbedTicket::wait`.
  Result<std::vector<float>> embed(std::string_view text, EmbedRequest options = {}) const;
  /// Adds a request and returns without waiting. `text` is copied.
  /// Errors: over_budget (`max_waiting` requests wait), closed, out_of_memory.
  Result<EmbedTicket> submit(std::string_view text, EmbedRequest options = {}) const;
  EmbedQueueMetrics metrics() const;
  /// Refuses new requests, completes waiting requests as `closed`, and returns when the batch that
  /// runs has ended.
  void close() noexcept;

  explicit EmbedQueue(std::shared_ptr<Batcher> batcher) noexcept;

 private:
  std::shared_ptr<Batcher> batcher_;
};

}  // namespace wye::models
