#pragma once
/// A function that embeds batches of texts, which a test holds.
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <new>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "models/batcher.hpp"

namespace wye::test {

using Texts = std::vector<std::string>;

/// Returns a vector that no other text of a test has.
inline std::vector<float> vector_of(std::string_view text) {
  std::uint32_t hash = 2166136261;
  for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619;
  return {static_cast<float>(hash & 0xffff), static_cast<float>(hash >> 16), static_cast<float>(text.size())};
}

/// Embeds texts with `vector_of`. A text that begins with "broken" or "large" fails its batch.
inline Result<models::Vectors> embed_texts(std::span<const std::string_view> texts) {
  for (const auto& [beginning, code] : {std::pair<std::string_view, Errc>("broken", Errc::kernel_failed),
                                        std::pair<std::string_view, Errc>("large", Errc::out_of_memory)})
    for (const std::string_view text : texts)
      if (text.starts_with(beginning)) return Error(code, "Text '" + std::string(text) + "' fails.");
  models::Vectors vectors;
  for (const std::string_view text : texts) vectors.push_back(vector_of(text));
  return vectors;
}

/// Calls of `embed_texts` that wait until the test finishes them, or until their stop is requested.
/// It outlives its batcher.
/// Threads: thread-safe.
class HeldRun {
 public:
  models::RunBatch function() {
    return [this](std::span<const std::string_view> texts, std::stop_token stop) -> Result<models::Vectors> {
      std::unique_lock lock(mutex_);
      calls_.emplace_back(texts.begin(), texts.end());
      const std::size_t number = calls_.size();
      changed_.notify_all();
      if (!changed_.wait(lock, stop, [&] { return number <= finished_; }))
        return Error(Errc::cancelled, "The batch was stopped.");
      return embed_texts(texts);
    };
  }
  /// Waits until the next call has begun, and returns its texts. Throws if none has within a minute.
  Texts await_call() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::minutes(1), [&] { return calls_.size() > seen_; }))
      throw std::runtime_error("Batch " + std::to_string(seen_ + 1) + " has not begun within a minute.");
    return calls_[seen_++];
  }
  /// Lets the call return that has begun last.
  void finish() { finish_until(calls()); }
  /// Lets all calls return.
  void open() { finish_until(SIZE_MAX); }
  std::size_t calls() const {
    const std::lock_guard lock(mutex_);
    return calls_.size();
  }

 private:
  void finish_until(std::size_t number) {
    const std::lock_guard lock(mutex_);
    finished_ = number;
    changed_.notify_all();
  }
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<Texts> calls_;
  std::size_t seen_ = 0, finished_ = 0;
};

/// A batcher with a held function and a clock that stands still.
struct HeldBatcher {
  explicit HeldBatcher(std::uint32_t batch_texts = 128, std::uint32_t max_waiting = 4096,
                       Duration delay = std::chrono::milliseconds(2))
      : batcher(models::Batcher::open(
                    run.function(),
                    {.delay = delay, .batch_texts = batch_texts, .max_waiting = max_waiting, .clock = clock})
                    .value()) {}
  ~HeldBatcher() { run.open(); }
  void advance(Duration by) {
    clock.advance(by);
    batcher->notify_clock();
  }
  ManualClock clock;
  HeldRun run;
  std::shared_ptr<models::Batcher> batcher;  // ends first
};

}  // namespace wye::test
