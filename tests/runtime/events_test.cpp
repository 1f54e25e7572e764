// The functions of an application that receive events.
#include <wye/wye.hpp>

#include <atomic>
#include <optional>
#include <utility>
#include <vector>

#include "base/internals.hpp"
#include "base/worker.hpp"
#include "pool/pool.hpp"
#include "support/await.hpp"
#include "support/catch.hpp"
#include "support/kernels.hpp"
#include "support/stop_point.hpp"

using namespace wye;
using namespace wye::literals;
using namespace std::chrono_literals;

namespace {

/// Two leases of one thread, each with a submission: a switch.
void switch_contexts(Runtime& runtime) {
  for (int i = 0; i < 2; ++i) {
    Lease first = runtime.pool().lease({.on = "cpu"}).value(),
          second = runtime.pool().lease({.on = "cpu"}).value();
    for (Lease* lease : {&first, &second}) {
      const Buffer buffer = lease->buffer<std::uint32_t>(4).value();
      lease->fill(buffer, 1);
      CHECK(lease->wait());
    }
  }
}

}  // namespace

TEST_CASE("a function that receives events may block: no work waits for it, the end of the runtime does",
          "[runtime]") {
  const int threads = base::Worker::alive();
  std::atomic<int> switches{0};
  test::StopPoint point;
  PoolOptions pool{.backends = {"cpu"}};
  pool.on_switch = [&](const ContextSwitch&) {
    point.pass();
    ++switches;
  };
  std::optional<Runtime> runtime = Runtime::open({.pool = std::move(pool)}).value();
  switch_contexts(*runtime);
  point.await();
  switch_contexts(*runtime);
  std::vector<float> x(10, 1.0f);
  CHECK(runtime->run(test::host_scale()(x, 2.0f)));
  CHECK(switches == 0);
  const std::uint64_t all = runtime->metrics().pool.switches;
  CHECK(all > 3);
  point.open();
  runtime.reset();
  CHECK(static_cast<std::uint64_t>(switches) == all);
  CHECK(threads == base::Worker::alive());
}

TEST_CASE("a function that receives events may call the runtime, and end it", "[runtime]") {
  const int threads = base::Worker::alive();
  std::optional<Runtime> runtime;
  std::atomic<int> jobs{0};
  std::atomic<bool> has_ended{false};
  std::vector<float> x(10, 1.0f);
  test::StopPoint ready;
  PoolOptions pool{.backends = {"cpu"}};
  pool.on_switch = [&](const ContextSwitch&) {
    ready.pass();
    if (!runtime) return;
    jobs += runtime->run(test::host_scale()(x, 2.0f)).has_value() ? 1 : 0;
    runtime.reset();
    has_ended = true;
  };
  runtime = Runtime::open({.pool = std::move(pool)}).value();
  switch_contexts(*runtime);
  ready.open();
  test::await([&] { return has_ended.load(); });
  CHECK(jobs == 1);
  CHECK(test::becomes_true([&] { return threads == base::Worker::alive(); }));
}
