// A coroutine that awaits jobs: steps in order, each after the result of the one before, and no
// thread that waits.
#include <coroutine>
#include <cstdio>
#include <exception>
#include <future>
#include <string>
#include <utility>
#include <vector>
#include <wye/scheduler/coroutine.hpp>
#include <wye/scheduler/future.hpp>
#include <wye/workloads/axpy.hpp>
#include <wye/wye.hpp>

// A coroutine that starts at once and leaves its result in a future. Most hosts have a type like
// it.
struct Task {
  struct promise_type {
    std::promise<std::string> promise;
    Task get_return_object() { return {promise.get_future()}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_value(std::string text) { promise.set_value(std::move(text)); }
    void unhandled_exception() { std::terminate(); }
  };
  std::future<std::string> result;
};

Task run(wye::Runtime& runtime, const std::vector<float>& x, std::vector<float>& sum) {
  auto first = co_await runtime.submit(wye::workloads::axpy(2.0f, x, sum));
  if (!first) co_return first.error().describe();
  // From here on it runs on the thread that completed the job. `resume_on` continues on a thread of
  // the host instead.
  const float factor = sum[0] > 3.0f ? -1.0f : 1.0f;
  auto second = co_await runtime.submit(wye::workloads::axpy(factor, x, sum));
  if (!second) co_return second.error().describe();
  co_return "Both steps completed, the second one on " + second->device().id + ".";
}

int main() {
  auto runtime = wye::Runtime::open();
  if (!runtime) return std::puts(runtime.error().describe().c_str()), 1;

  const std::vector<float> x(100'000, 1.0f);
  std::vector<float> sum(x.size(), 2.0f), other(x.size(), 2.0f);
  Task task = run(*runtime, x, sum);
  // A future is the other way to hand over a result. The job borrows x and other until the future
  // is ready.
  std::future<wye::Result<wye::Outcome>> future =
      wye::to_future(runtime->submit(wye::workloads::axpy(1.0f, x, other)));

  std::puts(task.result.get().c_str());
  const auto done = future.get();
  if (!done) return std::puts(done.error().describe().c_str()), 1;
  return sum.back() == 3.0f && other.back() == 3.0f ? 0 : 1;
}
