// Tickets as awaitables of coroutines and as futures.
#include <wye/scheduler/coroutine.hpp>
#include <wye/scheduler/future.hpp>
#include <wye/wye.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <coroutine>
#include <exception>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "rig.hpp"

using namespace wye;
using namespace std::chrono_literals;
using test::cpu_runtime;

namespace {

/// A coroutine that starts at once and ends by itself.
struct Task {
  struct promise_type {
    Task get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
  std::coroutine_handle<promise_type> handle;
};

Kernel<ReadWrite<float>> throwing() {
  return test::on_host("fails", [](Range, std::span<float>) { throw std::runtime_error("no"); });
}

/// A kernel that runs until `open`.
struct Held : test::StopPoint {
  Kernel<ReadWrite<float>> kernel = test::on_host("held", [this](Range, std::span<float> x) {
    pass();
    x[0] += 1.0f;
  });
};

template <class T>
T get(std::future<T>& future) {
  REQUIRE(future.wait_for(60s) == std::future_status::ready);
  return future.get();
}

/// Calls functions on one thread of its own.
class Loop {
 public:
  ~Loop() {
    post(nullptr);
    thread_.join();
  }
  void post(std::function<void()> f) {
    const std::lock_guard lock(mutex_);
    functions_.push_back(std::move(f));
    posted_.notify_one();
  }
  std::thread::id id() const { return thread_.get_id(); }

 private:
  void run() {
    for (;;) {
      std::vector<std::function<void()>> now;
      {
        std::unique_lock lock(mutex_);
        posted_.wait(lock, [&] { return !functions_.empty(); });
        now.swap(functions_);
      }
      for (auto& f : now) {
        if (!f) return;
        f();
      }
    }
  }
  std::mutex mutex_;
  std::condition_variable posted_;
  std::vector<std::function<void()>> functions_;
  std::thread thread_{[this] { run(); }};
};

}  // namespace

TEST_CASE("a coroutine receives the result of a job", "[scheduler][coroutine]") {
  Runtime runtime = cpu_runtime();
  std::vector<float> x = {1.0f, 2.0f, 3.0f};
  std::promise<std::vector<std::string>> done;
  auto result = done.get_future();
  const auto task = [&]() -> Task {
    std::vector<std::string> seen;
    auto first = co_await runtime.submit(test::host_scale()(x, 2.0f));
    seen.push_back(first ? first->device().id : first.error().sentence());
    Ticket ticket = runtime.submit(test::host_scale()(x, 3.0f));
    auto second = co_await ticket;
    seen.push_back(second ? second->device().id : second.error().sentence());
    auto third = co_await runtime.submit(throwing()(x));
    seen.push_back(third ? "no error" : third.error() == Errc::kernel_failed ? "failed" : "another error");
    done.set_value(seen);
  };
  task();
  CHECK(get(result) == std::vector<std::string>{"cpu:0", "cpu:0", "failed"});
  CHECK(x == std::vector<float>{6.0f, 12.0f, 18.0f});
}

TEST_CASE("a coroutine continues at once if the job has completed", "[scheduler][coroutine]") {
  Runtime runtime = cpu_runtime();
  std::vector<float> x = {1.0f};
  std::thread::id id;
  const auto task = [&]() -> Task {
    Ticket ticket = runtime.submit(test::host_scale()(x, 2.0f));
    CHECK(ticket.wait());
    CHECK(co_await ticket);
    CHECK(co_await ticket);  // any number of times
    id = std::this_thread::get_id();
  };
  task();
  CHECK(id == std::this_thread::get_id());
}

TEST_CASE("a coroutine continues on the executor that it names", "[scheduler][coroutine]") {
  Runtime runtime = cpu_runtime();
  std::vector<float> x = {1.0f};
  Loop loop;
  std::promise<std::pair<std::thread::id, std::thread::id>> done;
  auto result = done.get_future();
  const auto task = [&]() -> Task {
    const Executor executor = [&loop](std::function<void()> f) { loop.post(std::move(f)); };
    Ticket ticket = runtime.submit(test::host_scale()(x, 2.0f));
    const bool first = (co_await resume_on(ticket, executor)).has_value();
    const std::thread::id there = std::this_thread::get_id();
    const bool again = (co_await resume_on(ticket, executor)).has_value();  // it has completed
    done.set_value(first && again ? std::pair(there, std::this_thread::get_id())
                                  : std::pair<std::thread::id, std::thread::id>());
  };
  task();
  CHECK(get(result) == std::pair(loop.id(), loop.id()));
}

TEST_CASE("10,000 jobs that a coroutine awaits one by one use no stack per job", "[scheduler][coroutine]") {
  Runtime runtime = cpu_runtime();
  std::vector<float> x = {0.0f};
  const auto add = test::on_host("add", [](Range, std::span<float> y) { y[0] += 1.0f; });
  std::promise<int> done;
  auto result = done.get_future();
  const auto task = [&]() -> Task {
    int completed = 0;
    for (int i = 0; i < 10'000; ++i) completed += (co_await runtime.submit(add(x))).has_value();
    done.set_value(completed);
  };
  task();
  CHECK(get(result) == 10'000);
  CHECK(x[0] == 10'000.0f);
}

TEST_CASE("many coroutines on several threads each receive their result once", "[scheduler][coroutine]") {
  constexpr std::size_t threads = 4, each = 200;
  Runtime runtime = cpu_runtime();
  std::vector<float> x(threads * each, 1.0f);
  std::atomic<std::size_t> completed{0};
  std::promise<void> done;
  auto result = done.get_future();
  const auto task = [&](std::size_t i) -> Task {
    auto one = co_await runtime.submit(test::host_scale()(std::span(x).subspan(i, 1), 2.0f));
    if (one && ++completed == threads * each) done.set_value();
  };
  std::vector<std::thread> all;
  for (std::size_t t = 0; t < threads; ++t)
    all.emplace_back([&, t] {
      for (std::size_t i = 0; i < each; ++i) task(t * each + i);
    });
  for (std::thread& thread : all) thread.join();
  get(result);
  CHECK(x == std::vector<float>(threads * each, 2.0f));
}

TEST_CASE("a coroutine that is destroyed while it waits is not resumed", "[scheduler][coroutine]") {
  Runtime runtime = cpu_runtime();
  Held held;
  auto x = runtime.array(std::vector<float>{1.0f});
  std::atomic<bool> resumed{false};
  const auto task = [&]() -> Task {
    Ticket ticket = runtime.submit(held.kernel(x));
    (void)(co_await ticket).has_value();
    resumed = true;
  };
  const Task waiting = task();
  held.await();
  waiting.handle.destroy();
  held.open();
  CHECK((*x.read())[0] == 2.0f);
  runtime.close();
  CHECK_FALSE(resumed);
}

TEST_CASE("a future has the result of a job", "[scheduler][future]") {
  Runtime runtime = cpu_runtime();
  std::vector<float> x = {1.0f, 2.0f};
  auto done = to_future(runtime.submit(test::host_scale()(x, 2.0f)));
  const auto result = get(done);
  REQUIRE(result);
  CHECK(result->backend() == "cpu");
  CHECK(x == std::vector<float>{2.0f, 4.0f});
  auto failed = to_future(runtime.submit(throwing()(x)));
  CHECK(get(failed).error() == Errc::kernel_failed);
}

TEST_CASE("a future that is dropped neither waits for its job nor cancels it", "[scheduler][future]") {
  std::vector<float> x = {1.0f};
  Held held;
  {
    Runtime runtime = cpu_runtime();
    (void)to_future(runtime.submit(held.kernel(x)));
    held.await();
    held.open();
  }
  CHECK(x[0] == 2.0f);
}

TEST_CASE("a closed runtime completes its futures and coroutines", "[scheduler][future][coroutine]") {
  std::vector<float> x = {1.0f}, y = {1.0f}, z = {1.0f};
  std::optional<Errc> awaited;
  Held held;
  std::future<Result<Outcome>> queued;
  {
    Runtime runtime =
        Runtime::open({.pool = {.backends = {"cpu"}}, .scheduler = {.concurrent_jobs = 1}}).value();
    auto running = to_future(runtime.submit(held.kernel(x)));
    held.await();
    queued = to_future(runtime.submit(test::host_scale()(y, 2.0f)));
    const auto task = [&]() -> Task {
      auto result = co_await runtime.submit(test::host_scale()(z, 2.0f));
      awaited = result ? std::optional<Errc>() : std::optional(result.error().code());
    };
    task();
    test::Thread closer([&] { runtime.close(); });
    closer.await_parked();
    held.open();
    closer.join();
    CHECK(get(running));
  }
  CHECK(get(queued).error() == Errc::closed);
  CHECK(awaited == Errc::closed);
}
