#pragma once
/// Pieces that several tests of the scheduler share.
#include <wye/wye.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/internals.hpp"
#include "data/array_state.hpp"
#include "latch.hpp"
#include "scripted.hpp"
#include "support/await.hpp"
#include "support/catch.hpp"
#include "support/kernels.hpp"
#include "support/sanitizers.hpp"
#include "support/stop_point.hpp"
#include "support/thread.hpp"

namespace wye::test {

/// Returns `plain`; a tenth of it under the thread sanitizer, a quarter under the address sanitizer
/// of clang.
constexpr int rounds(int plain) { return plain / (under_tsan ? 10 : under_asan ? 4 : 1); }

/// Waits until a job has settled, without running it on this thread as `Ticket::wait` may. Returns
/// the code of its error; nothing if it completed.
inline std::optional<Errc> settled(Ticket& ticket) {
  const auto promise = std::make_shared<std::promise<std::optional<Errc>>>();
  auto result = promise->get_future();
  ticket.then([promise](const Result<Outcome>& r) {
    promise->set_value(r ? std::optional<Errc>() : std::optional(r.error().code()));
  });
  REQUIRE(result.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
  return result.get();
}

/// Stops one thread that makes a step, the step with a number among those of its kind, until the
/// test lets it continue.
struct StopAt : StopPoint {
  std::atomic<int> made{0};
  ScriptedDevice::Script script(ScriptedDevice::Step step, int number = 1) {
    return [this, step, number](ScriptedDevice::Step now) -> std::optional<Error> {
      if (now == step && ++made == number) pass();
      return std::nullopt;
    };
  }
};

/// Copies `values` to a new array of `pool`.
template <class T>
Array<T> array_in(const ContextPool& pool, const std::vector<T>& values) {
  return Array<T>(data::ArrayState::make(base::state_of(pool), std::as_bytes(std::span(values)),
                                         values.size(), element_type<T>(), sizeof(T)));
}

/// Opens a runtime on the CPU.
inline Runtime cpu_runtime(std::uint32_t concurrent_jobs = 4, const Clock* clock = nullptr) {
  return Runtime::open({.pool = {.backends = {"cpu"}, .lanes_per_device = 8},
                        .cache = {.disk = Bytes{0}},
                        .scheduler = {.concurrent_jobs = concurrent_jobs},
                        .clock = clock})
      .value();
}

/// A runtime on the CPU with one worker, which runs a job until `release`. Its clock moves only in
/// `advance`.
struct Busy {
  ManualClock clock;
  Latch latch;
  std::vector<float> memory = {1.0f};
  Runtime runtime = cpu_runtime(1, &clock);
  Ticket blocker = runtime.submit(latch.kernel(memory), {.time_limit = Duration::max(), .tag = "blocker"});

  Busy() { latch.await(); }
  Busy(const Busy&) = delete;
  ~Busy() { latch.open(); }
  void release() {
    latch.open();
    CHECK(blocker.wait());
  }
};

/// Returns two GPUs of different names, so that they are not equal.
inline std::vector<Scripted> unlike_gpus(const char* first = "cuda:0", const char* second = "cuda:1") {
  const auto gpu = [](const char* id, const char* name) {
    return std::make_shared<ScriptedDevice>(id, AdapterType::discrete, Features{}, std::uint8_t{0}, name);
  };
  return {gpu(first, "A"), gpu(second, "B")};
}

/// A scheduler on scripted devices, and arrays of its pool. Jobs of `workload_types::custom` try
/// the devices in their order.
struct Machine {
  explicit Machine(const std::vector<Scripted>& devices, SchedulerOptions options = {},
                   std::uint32_t lanes_per_device = 8)
      : pool(pool_of(devices, {.lanes_per_device = lanes_per_device, .clock = options.clock})),
        scheduler(scheduler_on(pool, devices, std::move(options))) {}

  template <class T>
  Array<T> array(const std::vector<T>& values) const {
    return array_in(pool, values);
  }

  ContextPool pool;
  Scheduler scheduler;
};

/// Returns the contents of an array.
template <class T>
std::vector<T> contents(const Array<T>& array) {
  const auto view = array.read();
  REQUIRE(view);
  return {view->begin(), view->end()};
}

/// Checks that every submitted job is counted once, in total and per type and backend.
inline void check_counts(const SchedulerMetrics& m) {
  TypeMetrics sum;
  std::uint64_t by_backend = 0;
  for (const auto& [type, row] : m.by_type) {
    sum.completed += row.completed;
    sum.failed += row.failed;
    sum.cancelled += row.cancelled;
    sum.timed_out += row.timed_out;
  }
  for (const auto& [backend, jobs] : m.completed_by_backend) by_backend += jobs;
  CHECK(m.submitted == m.completed + m.failed + m.cancelled + m.timed_out + m.queued + m.running);
  CHECK(m.completed == sum.completed);
  CHECK(m.completed == by_backend);
  CHECK(m.failed == sum.failed);
  CHECK(m.cancelled == sum.cancelled);
  CHECK(m.timed_out == sum.timed_out);
}

}  // namespace wye::test
