// Requests of many threads run in batches: when a batch begins, and how each request settles.
#include "models/batcher.hpp"

#include <signal.h>

#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "held_run.hpp"
#include "support/await.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/failing_new.hpp"
#include "support/thread.hpp"

using namespace wye;
using namespace std::chrono_literals;
using models::Batcher;
using test::HeldBatcher;
using test::Texts;
using test::vector_of;

namespace {

using Request = std::shared_ptr<models::BatchRequest>;

Request submit(HeldBatcher& held, std::string_view text, Deadline deadline = {}) {
  return held.batcher->submit(text, deadline).value();
}

}  // namespace

TEST_CASE("a batch begins when its oldest request has waited for the delay", "[models]") {
  HeldBatcher held;
  const Request a = submit(held, "a");
  held.advance(1ms);
  const Request b = submit(held, "b");
  held.advance(999'999ns);
  const Request c = submit(held, "c");
  held.advance(1ns);
  CHECK(held.run.await_call() == Texts{"a", "b", "c"});
  CHECK_FALSE(a->ready());
  held.run.finish();
  CHECK(a->wait().value() == vector_of("a"));
  CHECK(b->wait().value() == vector_of("b"));
  CHECK(c->wait().value() == vector_of("c"));
  CHECK(c->wait().value() == vector_of("c"));
  CHECK(held.batcher->metrics() ==
        models::EmbedQueueMetrics{.requests = 3, .batches = 1, .texts = 3, .completed = 3});
}

TEST_CASE("a full batch begins without a delay, and takes the oldest requests", "[models]") {
  HeldBatcher held(2);
  const Request a = submit(held, "a");
  const Request b = submit(held, "b");
  CHECK(held.run.await_call() == Texts{"a", "b"});
  const std::vector<Request> more{submit(held, "c"), submit(held, "d"), submit(held, "e")};
  held.run.finish();
  CHECK(held.run.await_call() == Texts{"c", "d"});
  CHECK(b->wait().value() == vector_of("b"));
  held.run.finish();
  CHECK(more[1]->wait().value() == vector_of("d"));
  CHECK_FALSE(more[2]->ready());
  CHECK(held.batcher->metrics().waiting == 1);
  held.advance(2ms);
  CHECK(held.run.await_call() == Texts{"e"});
}

TEST_CASE("a batch as large as all that may wait begins without a delay", "[models]") {
  HeldBatcher held(128, 2);
  const std::vector<Request> requests{submit(held, "a"), submit(held, "b")};
  CHECK(held.run.await_call() == Texts{"a", "b"});
}

TEST_CASE("without a delay each request begins a batch if none runs", "[models]") {
  HeldBatcher held(128, 4096, 0ns);
  const Request a = submit(held, "a");
  CHECK(held.run.await_call() == Texts{"a"});
  const std::vector<Request> more{submit(held, "b"), submit(held, "c")};
  held.run.finish();
  CHECK(held.run.await_call() == Texts{"b", "c"});
}

TEST_CASE("requests that arrive while a batch runs begin the next one by their own delay", "[models]") {
  HeldBatcher held;
  const Request a = submit(held, "a");
  held.advance(2ms);
  CHECK(held.run.await_call() == Texts{"a"});
  const Request b = submit(held, "b");
  held.advance(2ms);
  const Request c = submit(held, "c");
  held.run.finish();
  CHECK(held.run.await_call() == Texts{"b", "c"});  // at once: b has waited for the delay
  const Request d = submit(held, "d");
  held.run.finish();
  CHECK(b->wait());
  const Request e = submit(held, "e");  // no batch has begun with d alone
  held.advance(2ms);
  CHECK(held.run.await_call() == Texts{"d", "e"});
}

TEST_CASE("a batch does not begin for a request that has settled", "[models]") {
  HeldBatcher held;
  const Request a = submit(held, "a");
  const Request b = submit(held, "b", 1ms);
  held.advance(1ms);
  const Request c = submit(held, "c");
  a->cancel();
  held.advance(1ms);                    // a and b would begin a batch now
  const Request d = submit(held, "d");  // joins c
  held.advance(1ms);
  CHECK(held.run.await_call() == Texts{"c", "d"});
  CHECK(a->wait().error() == Errc::cancelled);
  CHECK(b->wait().error() == Errc::timed_out);
}

TEST_CASE("a request whose deadline passes while it waits times out before the batch ends", "[models]") {
  HeldBatcher held;
  const Request a = submit(held, "a");
  held.advance(2ms);
  CHECK(held.run.await_call() == Texts{"a"});
  const Request b = submit(held, "b", 5ms);
  const Request c = submit(held, "c", Instant(held.clock.now() + 5ms));
  std::optional<Result<std::vector<float>>> of_c;
  test::Thread waits([&] { of_c = c->wait(); });
  waits.await_parked();
  held.advance(4ms);
  CHECK_FALSE(b->ready());
  held.advance(1ms);
  CHECK(b->ready());
  CHECK(b->wait().error() == Errc::timed_out);
  CHECK(b->wait().error().sentence() == "The request did not complete before its deadline.");
  waits.join();
  CHECK(of_c->error() == Errc::timed_out);
  CHECK_FALSE(a->ready());
  held.run.finish();
  CHECK(a->wait().value() == vector_of("a"));
  CHECK(held.batcher->metrics() ==
        models::EmbedQueueMetrics{.requests = 3, .batches = 1, .texts = 1, .completed = 1, .timed_out = 2});
}

TEST_CASE("a deadline or a cancel ends one request of a batch that runs, and the others go on", "[models]") {
  HeldBatcher held;
  const Request a = submit(held, "a"), b = submit(held, "b", 5ms), c = submit(held, "c");
  held.advance(2ms);
  CHECK(held.run.await_call() == Texts{"a", "b", "c"});
  std::optional<Result<std::vector<float>>> of_b, of_c;
  test::Thread waits_for_b([&] { of_b = b->wait(); });
  test::Thread waits_for_c([&] { of_c = c->wait(); });
  waits_for_b.await_parked();
  waits_for_c.await_parked();
  c->cancel();
  waits_for_c.join();
  CHECK(of_c->error() == Errc::cancelled);
  held.advance(3ms);
  waits_for_b.join();
  CHECK(of_b->error() == Errc::timed_out);
  CHECK(held.batcher->metrics().running == 1);
  held.run.finish();
  CHECK(a->wait().value() == vector_of("a"));
  c->cancel();
  CHECK(c->wait().error() == Errc::cancelled);
  b->cancel();
  CHECK(b->wait().error() == Errc::timed_out);
  CHECK(held.batcher->metrics() ==
        models::EmbedQueueMetrics{
            .requests = 3, .batches = 1, .texts = 3, .completed = 1, .timed_out = 1, .cancelled = 1});
}

TEST_CASE("a batch that no request needs any more is stopped", "[models]") {
  HeldBatcher held(2);
  const Request a = submit(held, "a"), b = submit(held, "b", 5ms);
  CHECK(held.run.await_call() == Texts{"a", "b"});
  a->cancel();
  held.advance(5ms);
  const Request c = submit(held, "c"), d = submit(held, "d");
  CHECK(b->ready());                                // the last request settles
  CHECK(held.run.await_call() == Texts{"c", "d"});  // the first batch was not finished
  CHECK(a->wait().error() == Errc::cancelled);
}

TEST_CASE("a request that completes after its deadline has timed out", "[models]") {
  HeldBatcher held(3);
  const Request a = submit(held, "a"), b = submit(held, "b", 5ms), c = submit(held, "c", 5ms);
  CHECK(held.run.await_call() == Texts{"a", "b", "c"});
  held.clock.advance(5ms);  // no thread looks at the clock
  c->cancel();
  CHECK(c->wait().error() == Errc::timed_out);
  held.run.finish();
  CHECK(a->wait());
  CHECK(b->wait().error() == Errc::timed_out);
  const Request late = submit(held, "late", Instant(held.clock.now()));
  CHECK(late->ready());
  CHECK(late->wait().error() == Errc::timed_out);
  CHECK(held.batcher->metrics() ==
        models::EmbedQueueMetrics{.requests = 4, .batches = 1, .texts = 3, .completed = 1, .timed_out = 3});
}

TEST_CASE("a wait that times out leaves its request alone", "[models]") {
  HeldBatcher held;
  const Request a = submit(held, "a");
  CHECK(a->wait(0ns).error() == Errc::timed_out);
  std::optional<Result<std::vector<float>>> waited;
  test::Thread waits([&, end = Instant(held.clock.now() + 1ms)] { waited = a->wait(end); });
  waits.await_parked();
  held.advance(1ms);
  waits.join();
  CHECK(waited->error() == Errc::timed_out);
  CHECK(waited->error().sentence() == "The request did not complete before the deadline of the wait.");
  CHECK_FALSE(a->ready());
  held.run.open();
  held.advance(1ms);
  CHECK(a->wait().value() == vector_of("a"));
}

TEST_CASE("a failure of the device fails each request of the batch", "[models]") {
  HeldBatcher held(3);
  const Request a = submit(held, "a"), b = submit(held, "broken"), c = submit(held, "c");
  held.run.await_call();
  c->cancel();
  held.run.finish();
  CHECK(a->wait().error() == Errc::kernel_failed);
  CHECK(b->wait().error().sentence() == "Text 'broken' fails.");
  CHECK(c->wait().error() == Errc::cancelled);
  CHECK(held.batcher->metrics() ==
        models::EmbedQueueMetrics{.requests = 3, .batches = 1, .texts = 3, .failed = 2, .cancelled = 1});
}

TEST_CASE("a failure that one text may cause fails that text alone", "[models]") {
  HeldBatcher held(5);
  const Request a = submit(held, "a"), large = submit(held, "large"), cancelled = submit(held, "cancelled"),
                late = submit(held, "late", 5ms), b = submit(held, "b");
  CHECK(held.run.await_call().size() == 5);
  held.run.finish();
  CHECK(held.run.await_call() == Texts{"a"});
  CHECK(held.batcher->metrics().running == 5);
  held.run.finish();
  CHECK(held.run.await_call() == Texts{"large"});
  CHECK(a->wait().value() == vector_of("a"));  // before the others have run
  cancelled->cancel();
  held.advance(5ms);
  held.run.finish();
  CHECK(held.run.await_call() == Texts{"b"});
  CHECK(large->wait().error() == Errc::out_of_memory);
  CHECK(large->wait().error().sentence() == "Text 'large' fails.");
  held.run.finish();
  CHECK(b->wait().value() == vector_of("b"));
  CHECK(late->wait().error() == Errc::timed_out);
  CHECK(held.batcher->metrics() == models::EmbedQueueMetrics{.requests = 5,
                                                             .batches = 4,
                                                             .texts = 8,
                                                             .completed = 2,
                                                             .failed = 1,
                                                             .timed_out = 1,
                                                             .cancelled = 1});
}

TEST_CASE("a text that runs again alone is stopped when it is cancelled", "[models]") {
  HeldBatcher held(3);
  const Request a = submit(held, "a"), b = submit(held, "large"), c = submit(held, "c");
  held.run.await_call();
  held.run.finish();
  CHECK(held.run.await_call() == Texts{"a"});
  a->cancel();
  CHECK(held.run.await_call() == Texts{"large"});
  held.run.open();
  CHECK(c->wait().value() == vector_of("c"));
}

TEST_CASE("a function that throws or returns too few vectors fails its requests", "[models]") {
  std::atomic<int> calls = 0;
  const auto batcher =
      Batcher::open(
          [&](std::span<const std::string_view>, std::stop_token) -> Result<models::Vectors> {
            if (++calls == 1) throw std::runtime_error("no");
            return models::Vectors{};
          },
          {.delay = 0ns})
          .value();
  const auto thrown = batcher->submit("a").value()->wait();
  REQUIRE_FALSE(thrown);
  CHECK(thrown.error() == Errc::internal);
  const auto miscounted = batcher->submit("b").value()->wait();
  REQUIRE_FALSE(miscounted);
  CHECK(miscounted.error() == Errc::internal);
  CHECK(batcher->metrics().failed == 2);
}

TEST_CASE("a request beyond the limit of waiting requests is refused", "[models]") {
  HeldBatcher held(128, 2);
  const Request runs[] = {submit(held, "x"), submit(held, "y")};
  CHECK(held.run.await_call() == Texts{"x", "y"});
  const Request a = submit(held, "a");
  std::optional<Request> b = submit(held, "b", 5ms);
  const auto refused = held.batcher->submit("c");
  REQUIRE_FALSE(refused);
  CHECK(refused.error() == Errc::over_budget);
  CHECK(refused.error().sentence() ==
        "The request was refused: the limit of waiting requests is reached (max_waiting = 2).");
  held.clock.advance(5ms);
  const Request d = submit(held, "d");  // b has timed out
  CHECK_FALSE(held.batcher->submit("e"));
  a->cancel();
  const Request f = submit(held, "f");
  CHECK(held.batcher->metrics() == models::EmbedQueueMetrics{.requests = 6,
                                                             .refused = 2,
                                                             .batches = 1,
                                                             .texts = 2,
                                                             .timed_out = 1,
                                                             .cancelled = 1,
                                                             .waiting = 2,
                                                             .running = 2});
  held.run.finish();
  CHECK(held.run.await_call() == Texts{"d", "f"});
}

TEST_CASE("closing settles waiting requests, refuses new ones, and waits for the batch", "[models]") {
  HeldBatcher held(2);
  const Request a = submit(held, "a"), b = submit(held, "large");
  held.run.await_call();
  const Request c = submit(held, "c");
  test::Thread closes([&] { held.batcher->close(); });
  CHECK(c->wait().error() == Errc::closed);
  CHECK(c->wait().error().sentence() == "The request had not started when the queue was closed.");
  const auto refused = held.batcher->submit("d");
  REQUIRE_FALSE(refused);
  CHECK(refused.error() == Errc::closed);
  CHECK(refused.error().sentence() == "The request was submitted after the queue was closed.");
  test::Thread closes_too([&] { held.batcher->close(); });
  closes.await_parked();
  closes_too.await_parked();
  CHECK_FALSE(closes.has_ended());
  held.run.finish();
  CHECK(held.run.await_call() == Texts{"a"});  // the batch goes on alone, text by text
  CHECK_FALSE(closes.has_ended());
  CHECK_FALSE(closes_too.has_ended());
  held.run.finish();
  CHECK(held.run.await_call() == Texts{"large"});
  held.run.finish();
  closes.join();
  closes_too.join();
  CHECK(a->wait().value() == vector_of("a"));
  CHECK(b->wait().error() == Errc::out_of_memory);
  held.batcher->close();
  CHECK(held.batcher->metrics() ==
        models::EmbedQueueMetrics{
            .requests = 3, .batches = 3, .texts = 4, .completed = 1, .failed = 1, .closed = 1});
}

TEST_CASE("requests outlive their batcher, and its function does not", "[models]") {
  const auto kept = std::make_shared<int>(1);
  auto batcher = Batcher::open([kept](std::span<const std::string_view> texts,
                                      std::stop_token) { return test::embed_texts(texts); },
                               {.delay = Duration::max(), .batch_texts = 2})
                     .value();
  const Request a = batcher->submit("a").value(), b = batcher->submit("b").value();
  CHECK(a->wait().value() == vector_of("a"));
  const Request c = batcher->submit("c").value();
  batcher.reset();
  CHECK(kept.use_count() == 1);
  CHECK(b->wait().value() == vector_of("b"));
  CHECK(c->ready());
  c->cancel();
  CHECK(c->wait().error() == Errc::closed);
}

TEST_CASE("the function of a batcher may close and end it", "[models]") {
  std::shared_ptr<Batcher> batcher;
  test::HeldRun held;
  batcher = Batcher::open(
                [&, run = held.function()](std::span<const std::string_view> texts, std::stop_token stop) {
                  auto vectors = run(texts, std::move(stop));
                  batcher->close();
                  batcher.reset();
                  return vectors;
                },
                {.delay = 0ns, .batch_texts = 1})
                .value();
  const Request a = batcher->submit("a").value();
  held.await_call();
  const Request b = batcher->submit("b").value();
  held.finish();
  CHECK(b->wait().error() == Errc::closed);
  CHECK(a->wait().value() == vector_of("a"));
}

TEST_CASE("a batcher refuses options without a meaning", "[models]") {
  const auto run = [](std::span<const std::string_view> texts, std::stop_token) {
    return test::embed_texts(texts);
  };
  for (const auto& [options, sentence] :
       {std::pair(models::BatcherOptions{.delay = -1ns}, "The delay of a batch (-1 ns) is negative."),
        std::pair(models::BatcherOptions{.batch_texts = 0},
                  "The limit of texts of a batch (batch_texts) is 0; it is at least 1."),
        std::pair(models::BatcherOptions{.max_waiting = 0},
                  "The limit of waiting requests (max_waiting) is 0; it is at least 1.")}) {
    const auto refused = Batcher::open(run, options);
    REQUIRE_FALSE(refused);
    CHECK(refused.error() == Errc::invalid_argument);
    CHECK(refused.error().sentence() == sentence);
  }
}

TEST_CASE("the thread of a batcher blocks signals", "[models]") {
  sigset_t blocked;
  const auto batcher = Batcher::open(
                           [&](std::span<const std::string_view> texts, std::stop_token) {
                             ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
                             return test::embed_texts(texts);
                           },
                           {.delay = 0ns})
                           .value();
  CHECK(batcher->submit("a").value()->wait());
  CHECK(::sigismember(&blocked, SIGTERM) == 1);
  sigset_t own;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &own);
  CHECK(::sigismember(&own, SIGTERM) == 0);
}

TEST_CASE("a child of fork cannot use a batcher, and its destructors do nothing", "[models][fork]") {
  std::optional<HeldBatcher> held(std::in_place, 2u);
  std::vector<Request> requests{submit(*held, "a"), submit(*held, "b"), submit(*held, "c")};
  held->run.await_call();
  test::Thread waits([request = requests[2]] { (void)request->wait(); });
  waits.await_parked();
  CHECK(test::in_child(
            [&] {
              WYE_CHILD_CHECK(1, requests[2]->wait().error() == Errc::closed);
              WYE_CHILD_CHECK(2, held->batcher->submit("d").error() == Errc::closed);
              WYE_CHILD_CHECK(3, held->batcher->metrics() == models::EmbedQueueMetrics());
              requests[0]->cancel();
              held->batcher->close();
              held->batcher.reset();
              requests.clear();
              return 0;
            },
            test::Leave::at_once) == test::success);
  requests[2]->cancel();
  waits.join();
  held->run.finish();
  CHECK(requests[0]->wait().value() == vector_of("a"));
  held->batcher->close();
  CHECK(test::in_child(
            [&] {
              held->batcher.reset();
              requests.clear();
              return 0;
            },
            test::Leave::at_once) == test::success);
}

TEST_CASE("delays and deadlines end by the steady clock", "[models]") {
  const Duration soon = 1ms;
  test::HeldRun run;
  const auto batcher = Batcher::open(run.function(), {.delay = soon}).value();
  const Request a = batcher->submit("a").value();
  CHECK(run.await_call() == Texts{"a"});
  const Request b = batcher->submit("b", soon).value();
  CHECK(b->wait().error() == Errc::timed_out);  // the batch of a has not ended
  CHECK(a->wait(soon).error() == Errc::timed_out);
  CHECK_FALSE(a->ready());
  run.open();
  CHECK(a->wait(10min).value() == vector_of("a"));
}

TEST_CASE("each request settles once, whichever allocation fails", "[models]") {
  const auto batcher = Batcher::open([](std::span<const std::string_view> texts,
                                        std::stop_token) { return test::embed_texts(texts); },
                                     {.delay = Duration::max(), .batch_texts = 2})
                           .value();
  const std::string first(100, 'a'), second(100, 'b');
  std::uint64_t accepted = 0;
  int refused = 0, failed = 0;
  for (long count = 0;; ++count) {
    test::fail_allocations(count, test::Failing::one);
    auto a = batcher->submit(first), b = batcher->submit(second);
    if (!a) a = batcher->submit(first);
    if (!b) b = batcher->submit(second);
    const auto of_a = a.value()->wait(), of_b = b.value()->wait();
    test::fail_no_allocations();
    accepted += 2;
    for (const auto* result : {&of_a, &of_b}) {
      if (*result) continue;
      CHECK(result->error() == Errc::out_of_memory);
      ++failed;
    }
    if (of_a) CHECK(*of_a == vector_of(first));
    if (of_b) CHECK(*of_b == vector_of(second));
    const auto metrics = batcher->metrics();
    CHECK(metrics.requests == accepted);
    CHECK(metrics.completed + metrics.failed == accepted);
    if (test::failed_allocations() == 0) break;
    ++refused;
  }
  INFO(refused << " allocations failed, " << failed << " requests with them");
  CHECK(refused > 10);
}
