// Tickets as senders of stdexec, if its headers are present.
#include <wye/scheduler/sender.hpp>
#include <wye/wye.hpp>

#include "rig.hpp"
#include "support/skip.hpp"

#if __has_include(<stdexec/execution.hpp>)

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

using namespace wye;

namespace {

/// What an operation completes with: the device, the code of its error, or that it was stopped.
struct Stopped {
  friend bool operator==(Stopped, Stopped) = default;
};
using Completion = std::variant<std::string, Errc, Stopped>;

/// The completions of one operation. Its last one ends the operation, as a consumer of senders may.
struct Completions {
  std::atomic<int> count{0};
  std::optional<Completion> last;
  std::thread::id thread;
  std::function<void()> end = [] {};

  void add(Completion completion) noexcept {
    last = std::move(completion);
    thread = std::this_thread::get_id();
    end();
    ++count;
  }
  void await() const {
    while (count == 0) std::this_thread::yield();
  }
};

template <class Token>
struct Environment {
  Token token;
  Token query(stdexec::get_stop_token_t) const noexcept { return token; }
};

template <class Token>
struct Receiver {
  Completions* completions;
  Token token = {};
  Environment<Token> get_env() const noexcept { return {token}; }
  void set_value(Outcome&& outcome) noexcept { completions->add(outcome.device().id); }
  void set_error(Error&& error) noexcept { completions->add(error.code()); }
  void set_stopped() noexcept { completions->add(Stopped{}); }
};
using Unstoppable = Receiver<stdexec::never_stop_token>;
using Stoppable = Receiver<stdexec::inplace_stop_token>;

/// A stop token that counts its callbacks and never calls them.
struct CountingToken {
  int* callbacks = nullptr;
  template <class F>
  struct callback_type {
    callback_type(CountingToken token, const F&) noexcept : callbacks(token.callbacks) { ++*callbacks; }
    callback_type(const callback_type&) = delete;
    ~callback_type() { --*callbacks; }
    int* callbacks;
  };
  static bool stop_requested() noexcept { return false; }
  static bool stop_possible() noexcept { return true; }
  friend bool operator==(const CountingToken&, const CountingToken&) = default;
};

Kernel<ReadWrite<float>> throwing() {
  return test::on_host("fails", [](Range, std::span<float>) { throw std::runtime_error("no"); });
}

/// An operation that is not started, on a job that waits behind another job.
struct QueuedOperation {
  test::Busy busy;
  std::vector<float> x = {1.0f};
  Completions completions;
  stdexec::inplace_stop_source stop;
  TicketOperation<Stoppable> operation = to_sender(busy.runtime.submit(test::host_scale()(x, 2.0f)))
                                             .connect(Stoppable{&completions, stop.get_token()});
};

}  // namespace

TEST_CASE("a ticket is a sender of one result", "[scheduler][sender]") {
  static_assert(stdexec::sender<TicketSender>);
  Runtime runtime = test::cpu_runtime();
  std::vector<float> x = {1.0f, 2.0f};
  auto sender = to_sender(runtime.submit(test::host_scale()(x, 2.0f))) |
                stdexec::then([](const Outcome& outcome) { return outcome.device().id; });
  const std::optional<std::tuple<std::string>> sent = stdexec::sync_wait(std::move(sender));
  REQUIRE(sent);
  CHECK(std::get<0>(*sent) == "cpu:0");
  CHECK(x == std::vector<float>{2.0f, 4.0f});
  std::optional<Errc> thrown;
  try {
    (void)stdexec::sync_wait(to_sender(runtime.submit(throwing()(x))));
  } catch (const Error& error) {
    thrown = error.code();
  }
  CHECK(thrown == Errc::kernel_failed);
}

TEST_CASE("a sender of a cancelled job is stopped", "[scheduler][sender]") {
  test::Busy busy;
  std::vector<float> x = {1.0f};
  Ticket ticket = busy.runtime.submit(test::host_scale()(x, 2.0f));
  ticket.cancel();
  CHECK_FALSE(stdexec::sync_wait(to_sender(std::move(ticket))));
  CHECK(x[0] == 1.0f);
}

TEST_CASE("an operation on a settled job completes when it starts, on that thread", "[scheduler][sender]") {
  Runtime runtime = test::cpu_runtime();
  std::vector<float> x = {1.0f};
  Ticket ticket = runtime.submit(throwing()(x));
  CHECK_FALSE(ticket.wait());
  Completions completions;
  auto operation = to_sender(std::move(ticket)).connect(Unstoppable{&completions});
  CHECK(completions.count == 0);
  stdexec::start(operation);
  CHECK(completions.count == 1);
  CHECK(completions.last == Completion(Errc::kernel_failed));
  CHECK(completions.thread == std::this_thread::get_id());
}

TEST_CASE("a stop request cancels a queued job, and its operation completes there", "[scheduler][sender]") {
  QueuedOperation f;
  stdexec::start(f.operation);
  CHECK(f.completions.count == 0);
  f.stop.request_stop();
  CHECK(f.completions.count == 1);
  CHECK(f.completions.last == Completion(Stopped{}));
  CHECK(f.completions.thread == std::this_thread::get_id());
  f.busy.release();
  CHECK(f.x[0] == 1.0f);
}

TEST_CASE("a stop request before the start cancels a queued job", "[scheduler][sender]") {
  QueuedOperation f;
  f.stop.request_stop();
  CHECK(f.completions.count == 0);
  stdexec::start(f.operation);
  CHECK(f.completions.last == Completion(Stopped{}));
}

TEST_CASE("a stop request drops the result of a running job", "[scheduler][sender]") {
  Runtime runtime = test::cpu_runtime(1);
  test::Latch latch;
  std::vector<float> x = {1.0f};
  Completions completions;
  stdexec::inplace_stop_source stop;
  auto operation =
      to_sender(runtime.submit(latch.kernel(x))).connect(Stoppable{&completions, stop.get_token()});
  stdexec::start(operation);
  latch.await();
  stop.request_stop();
  latch.open();
  completions.await();
  CHECK(completions.last == Completion(Stopped{}));
  CHECK(completions.thread != std::this_thread::get_id());
}

TEST_CASE("an operation leaves the stop token before it completes", "[scheduler][sender]") {
  test::Busy busy;
  std::vector<float> x = {1.0f};
  Completions completions;
  int callbacks = 0, at_completion = -1;
  completions.end = [&] { at_completion = callbacks; };
  auto operation = to_sender(busy.runtime.submit(test::host_scale()(x, 2.0f)))
                       .connect(Receiver<CountingToken>{&completions, {&callbacks}});
  CHECK(callbacks == 0);
  stdexec::start(operation);
  CHECK(callbacks == 1);
  busy.release();
  completions.await();
  CHECK(at_completion == 0);
  CHECK(completions.last == Completion("cpu:0"));
}

TEST_CASE("an operation that is not started destroys its ticket", "[scheduler][sender]") {
  test::Busy busy;
  std::vector<float> x = {1.0f};
  Completions completions;
  {
    const auto operation =
        to_sender(busy.runtime.submit(test::host_scale()(x, 2.0f))).connect(Unstoppable{&completions});
  }
  CHECK(busy.runtime.metrics().jobs.cancelled == 1);
  CHECK(completions.count == 0);
}

TEST_CASE("operations that are stopped while they complete each complete once", "[scheduler][sender]") {
  Runtime runtime = test::cpu_runtime();
  std::vector<float> x = {1.0f};
  const auto add = test::on_host("add", [](Range, std::span<float>) {});
  std::array<int, 3> counts = {};
  for (int round = 0; round < test::rounds(5000); ++round) {
    Completions completions;
    stdexec::inplace_stop_source stop;
    using Operation = TicketOperation<Stoppable>;
    std::unique_ptr<Operation> operation;
    std::atomic<bool> is_ready{false};
    std::thread stopping([&] {
      while (!is_ready) std::this_thread::yield();
      for (int i = 0; i < round % 50; ++i) std::this_thread::yield();
      stop.request_stop();
    });
    completions.end = [&] { operation.reset(); };
    operation.reset(new Operation(runtime.submit(add(x)), Stoppable{&completions, stop.get_token()}));
    Operation& starting = *operation;
    is_ready = true;
    stdexec::start(starting);
    completions.await();
    stopping.join();
    REQUIRE(completions.count == 1);
    ++counts[completions.last->index()];
  }
  CHECK(counts[1] == 0);
  CHECK(counts[0] + counts[2] == test::rounds(5000));
  CHECK(runtime.metrics().jobs.cancelled == static_cast<std::uint64_t>(counts[2]));
}

#else

TEST_CASE("tickets are senders", "[scheduler][sender]") {
  wye::test::skip("the headers of stdexec are not found");
}

#endif
