// Embed queues: tickets, and random programs against a sequential model.
#include <wye/models/embed_queue.hpp>

#include <algorithm>
#include <atomic>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "held_run.hpp"
#include "support/await.hpp"
#include "support/catch.hpp"
#include "support/random_cases.hpp"
#include "support/thread.hpp"

using namespace wye;
using namespace std::chrono_literals;
using models::EmbedQueue;
using models::EmbedQueueMetrics;
using models::EmbedTicket;
using test::HeldBatcher;
using test::Texts;
using test::vector_of;

namespace {

/// A queue whose batches do not wait, and end at once.
EmbedQueue open_queue(models::BatcherOptions options) {
  return EmbedQueue(models::Batcher::open([](std::span<const std::string_view> texts,
                                             std::stop_token) { return test::embed_texts(texts); },
                                          options)
                        .value());
}

/// The request of a random program as the model sees it.
struct Modelled {
  std::string text;
  Instant arrived, until;
  std::optional<Errc> error = std::nullopt;
  bool has_settled = false;
};

/// Does the same as a queue, one step at a time.
class QueueModel {
 public:
  QueueModel(std::uint32_t batch_texts, std::uint32_t max_waiting, Duration delay)
      : batch_texts_(batch_texts), max_waiting_(max_waiting), delay_(delay) {}

  /// Returns the number of the request, or none if it is refused.
  std::optional<std::size_t> submit(std::string text, Duration deadline) {
    if (is_closed_) return std::nullopt;
    const bool never = deadline == Duration::max();
    Modelled request{std::move(text), now_, never ? Instant::max() : now_ + deadline};
    if (request.until > now_ && waiting_.size() >= max_waiting_) {
      ++counts_.refused;
      return std::nullopt;
    }
    ++counts_.requests;
    requests_.push_back(std::move(request));
    const std::size_t number = requests_.size() - 1;
    waiting_.push_back(number);
    expire();
    return number;
  }
  void advance(Duration by) {
    now_ += by;
    expire();
  }
  void cancel(std::size_t number) { settle(number, Errc::cancelled, &EmbedQueueMetrics::cancelled); }
  void close() {
    is_closed_ = true;
    while (!waiting_.empty()) settle(waiting_.front(), Errc::closed, &EmbedQueueMetrics::closed);
  }
  /// Ends the call.
  void finish() {
    const auto begins = [&](const char* beginning) {
      return std::any_of(call_.begin(), call_.end(),
                         [&](std::size_t number) { return requests_[number].text.starts_with(beginning); });
    };
    const bool is_broken = begins("broken"), is_large = begins("large");
    const auto ended = std::exchange(call_, {});
    if (is_large && !is_broken && ended.size() > 1) {
      alone_.assign(ended.begin(), ended.end());
      return;
    }
    for (const std::size_t number : ended)
      if (is_broken || is_large)
        settle(number, is_broken ? Errc::kernel_failed : Errc::out_of_memory, &EmbedQueueMetrics::failed);
      else
        settle(number, std::nullopt, &EmbedQueueMetrics::completed);
  }
  /// Begins the next call, if one begins without a further event, and returns its texts.
  std::optional<Texts> begin_call() {
    if (!call_.empty() && std::all_of(call_.begin(), call_.end(),
                                      [&](std::size_t number) { return requests_[number].has_settled; }))
      call_.clear();  // it is stopped
    if (!call_.empty()) return std::nullopt;
    while (!alone_.empty() && requests_[alone_.front()].has_settled) alone_.pop_front();
    if (!alone_.empty()) {
      call_ = {alone_.front()};
      alone_.pop_front();
    } else if (!is_closed_ && !waiting_.empty() &&
               (waiting_.size() >= std::min(batch_texts_, max_waiting_) ||
                requests_[waiting_.front()].arrived + delay_ <= now_)) {
      const std::size_t texts = std::min<std::size_t>(waiting_.size(), batch_texts_);
      for (std::size_t i = 0; i < texts; ++i) {
        call_.push_back(waiting_.front());
        waiting_.pop_front();
      }
    } else {
      return std::nullopt;
    }
    ++counts_.batches;
    counts_.texts += call_.size();
    Texts texts;
    for (const std::size_t number : call_) texts.push_back(requests_[number].text);
    return texts;
  }
  bool is_running() const { return !call_.empty(); }
  bool is_closed() const { return is_closed_; }
  const Modelled& operator[](std::size_t number) const { return requests_[number]; }
  EmbedQueueMetrics metrics() const {
    EmbedQueueMetrics counts = counts_;
    counts.waiting = waiting_.size();
    counts.running = counts.requests - counts.completed - counts.failed - counts.timed_out -
                     counts.cancelled - counts.closed - counts.waiting;
    return counts;
  }

 private:
  void settle(std::size_t number, std::optional<Errc> error, std::uint64_t EmbedQueueMetrics::*counter) {
    if (std::exchange(requests_[number].has_settled, true)) return;
    requests_[number].error = error;
    ++(counts_.*counter);
    std::erase(waiting_, number);
  }
  void expire() {
    for (std::size_t number = 0; number < requests_.size(); ++number)
      if (requests_[number].until <= now_) settle(number, Errc::timed_out, &EmbedQueueMetrics::timed_out);
  }
  const std::uint32_t batch_texts_, max_waiting_;
  const Duration delay_;
  Instant now_ = ManualClock().now();
  bool is_closed_ = false;
  std::vector<Modelled> requests_;
  std::deque<std::size_t> waiting_, alone_;
  std::vector<std::size_t> call_;
  EmbedQueueMetrics counts_;
};

}  // namespace

TEST_CASE("a queue returns the vector of each text", "[models]") {
  const EmbedQueue queue = open_queue({.delay = 0ns});
  const EmbedQueue copy = queue;
  CHECK(queue.embed("a").value() == vector_of("a"));
  CHECK(copy.embed("b").value() == vector_of("b"));
  CHECK(queue.embed("").value() == vector_of(""));
  CHECK(queue.embed("broken").error() == Errc::kernel_failed);
  CHECK(queue.embed("c", {.deadline = 0ns}).error() == Errc::timed_out);
  EmbedTicket ticket = queue.submit("d").value();
  CHECK(ticket.wait().value() == vector_of("d"));
  CHECK(ticket.ready());
  CHECK(ticket.wait().value() == vector_of("d"));
  EmbedTicket other = std::move(ticket);
  CHECK(ticket.wait().error() == Errc::invalid_argument);  // NOLINT: moved from
  CHECK_FALSE(ticket.ready());                             // NOLINT
  ticket.cancel();                                         // NOLINT
  CHECK(other.wait().value() == vector_of("d"));
}

TEST_CASE("a ticket cancels its request when it ends", "[models]") {
  HeldBatcher held;
  const EmbedQueue queue(held.batcher);
  std::optional<EmbedTicket> dropped = queue.submit("dropped").value();
  EmbedTicket ticket = queue.submit("replaced").value();
  ticket = queue.submit("a").value();
  CHECK(queue.metrics().cancelled == 1);
  dropped.reset();
  CHECK(queue.metrics().cancelled == 2);
  held.advance(2ms);
  CHECK(held.run.await_call() == Texts{"a"});
  held.run.finish();
  CHECK(ticket.wait().value() == vector_of("a"));
}

TEST_CASE("a stop token cancels a request", "[models]") {
  HeldBatcher held;
  const EmbedQueue queue(held.batcher);
  std::stop_source source;
  std::optional<Result<std::vector<float>>> result;
  test::Thread waits([&] { result = queue.embed("a", {.stop = source.get_token()}); });
  waits.await_parked();
  source.request_stop();
  waits.join();
  CHECK(result->error() == Errc::cancelled);
  CHECK(queue.embed("b", {.stop = source.get_token()}).error() == Errc::cancelled);

  std::stop_source second;
  EmbedTicket c = queue.submit("c", {.stop = second.get_token()}).value(), d = queue.submit("d").value();
  held.advance(2ms);
  CHECK(held.run.await_call() == Texts{"c", "d"});
  second.request_stop();
  CHECK(c.ready());
  held.run.finish();
  CHECK(c.wait().error() == Errc::cancelled);
  CHECK(d.wait().value() == vector_of("d"));
  second = std::stop_source();  // its token outlives it in the ticket
}

TEST_CASE("a queue closes with its last copy", "[models]") {
  HeldBatcher held;
  std::optional<EmbedQueue> queue(std::move(held.batcher));
  std::optional<EmbedQueue> copy = queue;
  EmbedTicket ticket = queue->submit("a").value();
  queue.reset();
  CHECK_FALSE(ticket.ready());
  copy.reset();
  CHECK(ticket.wait().error() == Errc::closed);
}

TEST_CASE("random programs settle each request once, as a sequential model does", "[models][random]") {
  for (const unsigned seed : test::RandomCases(300)) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const auto below = [&](unsigned end) {
      return std::uniform_int_distribution<unsigned>(0, end - 1)(random);
    };
    const std::uint32_t batch_texts = 1 + below(5), max_waiting = 1 + below(8);
    const Duration delay = std::chrono::milliseconds(below(3));
    HeldBatcher held(batch_texts, max_waiting, delay);
    EmbedQueue queue(held.batcher);
    QueueModel model(batch_texts, max_waiting, delay);
    std::vector<std::pair<std::size_t, std::optional<EmbedTicket>>> tickets;
    std::optional<test::Thread> closes;
    const std::shared_ptr<void> opens(nullptr, [&](void*) { held.run.open(); });  // also if a check fails

    // Both do what follows from an event; then they show the same.
    const auto settle = [&] {
      queue.metrics();  // deadlines that have passed may stop a batch
      while (const std::optional<Texts> texts = model.begin_call()) REQUIRE(held.run.await_call() == *texts);
      test::await([&] { return queue.metrics() == model.metrics(); });
      for (auto& [number, ticket] : tickets)
        if (ticket) REQUIRE(ticket->ready() == model[number].has_settled);
    };
    const auto some_ticket = [&]() -> std::pair<std::size_t, std::optional<EmbedTicket>>* {
      if (tickets.empty()) return nullptr;
      auto& chosen = tickets[below(static_cast<unsigned>(tickets.size()))];
      return chosen.second ? &chosen : nullptr;
    };
    for (unsigned step = 0; step < 60; ++step) {
      const unsigned event = below(100);
      if (event < 45) {
        const char* const beginnings[] = {"text", "text", "text", "text", "text", "text", "large", "broken"};
        const std::string text = beginnings[below(8)] + std::string("-") + std::to_string(step);
        const Duration deadline =
            below(3) == 0 ? Duration(std::chrono::milliseconds(below(6))) : Duration::max();
        auto ticket = queue.submit(text, {.deadline = deadline});
        const auto number = model.submit(text, deadline);
        REQUIRE(ticket.has_value() == number.has_value());
        if (ticket)
          tickets.emplace_back(*number, *std::move(ticket));
        else
          REQUIRE(ticket.error() == (model.is_closed() ? Errc::closed : Errc::over_budget));
      } else if (event < 65) {
        const auto by = std::chrono::milliseconds(1 + below(2));
        model.advance(by);
        held.advance(by);
      } else if (event < 82) {
        if (model.is_running()) {
          model.finish();
          held.run.finish();
        }
      } else if (event < 88) {
        if (auto* const chosen = some_ticket()) {
          model.cancel(chosen->first);
          chosen->second->cancel();
        }
      } else if (event < 94) {
        if (auto* const chosen = some_ticket()) {
          model.cancel(chosen->first);
          chosen->second.reset();
        }
      } else if (event < 99) {
        if (auto* const chosen = some_ticket()) {
          const bool has_settled = model[chosen->first].has_settled;
          const auto waited = chosen->second->wait(0ns);
          if (!has_settled) REQUIRE(waited.error() == Errc::timed_out);
        }
      } else if (!closes && step > 30) {
        closes.emplace([&] { queue.close(); });
        while (held.batcher->submit("before", 0ns)) model.submit("before", 0ns);
        model.close();
      }
      settle();
    }
    while (model.is_running()) {
      model.finish();
      held.run.finish();
      settle();
    }
    model.close();
    queue.close();
    settle();
    for (auto& [number, ticket] : tickets) {
      if (!ticket) continue;
      const auto result = ticket->wait();
      INFO(model[number].text);
      if (model[number].error)
        REQUIRE(result.error() == *model[number].error);
      else
        REQUIRE(result.value() == vector_of(model[number].text));
    }
  }
}

TEST_CASE("requests of 32 threads settle once with the vectors of their texts", "[models][random]") {
  constexpr unsigned threads = 32, requests = 150;
  EmbedQueue queue = open_queue({.delay = 0ns, .batch_texts = 16, .max_waiting = 24});
  std::atomic<std::uint64_t> completed{0}, failed{0}, timed_out{0}, cancelled{0}, closed{0}, over_budget{0},
      wrong{0};
  std::vector<std::stop_source> sources(threads);
  const auto count = [&](std::string_view text, const Result<std::vector<float>>& result) {
    if (result) return *result == vector_of(text) ? ++completed : ++wrong;
    switch (result.error().code()) {
      case Errc::kernel_failed: return ++failed;  // of itself, or of its batch
      case Errc::out_of_memory: return text.starts_with("large") ? ++failed : ++wrong;
      case Errc::timed_out: return ++timed_out;
      case Errc::cancelled: return ++cancelled;
      case Errc::closed: return ++closed;
      case Errc::over_budget: return ++over_budget;
      default: return ++wrong;
    }
  };
  {
    std::list<test::Thread> all;
    for (unsigned thread = 0; thread < threads; ++thread) {
      all.emplace_back([&, thread] {
        std::mt19937 random(thread);
        for (unsigned i = 0; i < requests; ++i) {
          const auto kind = static_cast<unsigned>(random() % 20);
          const std::string text = (kind == 0  ? "broken-"
                                    : kind < 3 ? "large-"
                                               : "text-") +
                                   std::to_string(thread) + "-" + std::to_string(i);
          if (kind == 3) {
            count(text, queue.embed(text, {.deadline = 0ns}));
          } else if (kind == 4) {
            std::stop_source source;
            const test::Thread stops([source]() mutable { source.request_stop(); });
            count(text, queue.embed(text, {.stop = source.get_token()}));
          } else if (kind < 7) {
            auto ticket = queue.submit(text);
            if (!ticket) {
              count(text, std::move(ticket).error());
              continue;
            }
            if (kind == 5) ticket->cancel();
            while (kind == 6 && !ticket->ready()) (void)ticket->wait(0ns);
            count(text, ticket->wait());
          } else {
            count(text, queue.embed(text, {.deadline = 1h}));
          }
        }
      });
    }
  }
  queue.close();
  CHECK(queue.embed("late").error() == Errc::closed);
  CHECK(wrong == 0);
  CHECK(closed == 0);
  const EmbedQueueMetrics metrics = queue.metrics();
  CHECK(metrics.requests + metrics.refused == threads * requests);
  CHECK(metrics.completed == completed);
  CHECK(metrics.failed == failed);
  CHECK(metrics.timed_out == timed_out);
  CHECK(metrics.cancelled == cancelled);
  CHECK(metrics.refused == over_budget);
  CHECK(metrics.requests == completed + failed + timed_out + cancelled);
  CHECK(completed > 0);
}

TEST_CASE("requests of many threads settle once when the queue closes", "[models]") {
  for (unsigned round = 0; round < 20; ++round) {
    EmbedQueue queue = open_queue({.delay = 0ns, .batch_texts = 4});
    std::atomic<std::uint64_t> completed{0}, closed{0}, refused{0};
    {
      std::list<test::Thread> all;
      for (unsigned thread = 0; thread < 8; ++thread) {
        all.emplace_back([&] {
          for (;;) {
            auto ticket = queue.submit("a");
            if (!ticket) {
              ++refused;
              return;
            }
            const auto result = ticket->wait();
            result ? ++completed : ++closed;
          }
        });
      }
      test::await([&] { return completed >= 100; });
      queue.close();
    }
    const EmbedQueueMetrics metrics = queue.metrics();
    CHECK(refused == 8);
    CHECK(metrics.completed == completed);
    CHECK(metrics.closed == closed);
    CHECK(metrics.requests == completed + closed);
  }
}
