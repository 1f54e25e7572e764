// The numbers that a pool reports.
#include <wye/cache/shader_cache.hpp>
#include <wye/pool/context_pool.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/internals.hpp"
#include "support/catch.hpp"
#include "support/kernels.hpp"
#include "support/scripted_pool.hpp"

using namespace wye;
using namespace wye::literals;
using namespace std::chrono_literals;
using test::pool_of;
using test::scripted;
using Step = test::ScriptedDevice::Step;

TEST_CASE("a pool lists the contexts that were leased, with their state", "[pool]") {
  ManualClock clock;
  ContextPool pool =
      pool_of({scripted("cuda:1"), scripted("vulkan:0")}, {.lanes_per_device = 2, .clock = &clock});
  CHECK(pool.contexts().empty());
  const Lease a = pool.lease({.on = "vulkan"}).value();
  const Buffer buffer = a.device().buffer<float>(1000).value();  // of no context
  clock.advance(10s);
  std::optional<Lease> b = pool.lease().value();
  const Buffer held = b->buffer<float>(100).value();
  clock.advance(5s);
  b.reset();
  clock.advance(3s);
  const auto contexts = pool.contexts();
  REQUIRE(contexts.size() == 2);  // in the order of the devices
  CHECK(contexts[0].id == "cuda:1#0");
  CHECK(contexts[0].device == "cuda:1");
  CHECK(contexts[0].backend == "cuda");
  CHECK_FALSE(contexts[0].active);
  CHECK(contexts[0].last_used == 8s);  // since the lease began
  CHECK(contexts[0].bytes == 400_B);
  CHECK(contexts[1].id == "vulkan:0#0");
  CHECK(contexts[1].active);
  CHECK(contexts[1].last_used == 18s);
  CHECK(contexts[1].bytes == 0_B);
  CHECK(contexts[1].kernels == 0);
}

TEST_CASE("a lease that a device refuses is not counted", "[pool]") {
  const auto first = scripted("cuda:0"), second = scripted("vulkan:0");
  first->fail_at(Step::create_lane, Errc::out_of_memory);
  ContextPool pool = pool_of({first, second}, {.lanes_per_device = 1});
  for (int i = 0; i < 3; ++i) CHECK(pool.lease()->device().id() == "vulkan:0");
  CHECK_FALSE(pool.lease({.on = "cuda"}));
  const PoolMetrics metrics = pool.metrics();
  CHECK(metrics.leases == 3);
  CHECK(metrics.contexts == 1);
  CHECK(metrics.active == 0);
  REQUIRE(pool.contexts().size() == 1);
  CHECK(pool.contexts()[0].id == "vulkan:0#0");
}

TEST_CASE("a switch is a submission of a thread to another context than before", "[pool]") {
  struct Switch {
    std::string from, to, backend;
    bool changes_device, changes_backend;
    std::uint64_t thread;
    Duration duration;
  };
  std::vector<Switch> switches;
  ContextPool pool =
      pool_of({scripted("cuda:0"), scripted("cuda:1"), scripted("vulkan:0")},
              {.lanes_per_device = 2, .on_switch = [&](const ContextSwitch& one) {
                 switches.push_back({std::string(one.from), std::string(one.to), std::string(one.backend),
                                     one.changes_device, one.changes_backend, one.thread, one.duration});
                 throw std::runtime_error("ignored");
               }});
  ContextPool other = pool_of({scripted("cuda:0")});
  const auto work = [](Lease& lease) {
    const Buffer buffer = lease.buffer<std::uint32_t>(4).value();
    lease.fill(buffer, 1);
    lease.submit();
  };
  Lease a = pool.lease({.on = "cuda:0"}).value(), b = pool.lease({.on = "cuda:0"}).value(),
        c = pool.lease({.on = "cuda:1"}).value(), d = pool.lease({.on = "vulkan:0"}).value(),
        elsewhere = other.lease().value();
  CHECK(pool.metrics().switches == 0);  // a lease alone is none
  work(a);
  work(a);
  CHECK(b.wait());  // nothing is submitted
  CHECK(base::state_of(pool)->journal().flush());
  CHECK(switches.empty());
  work(b);
  work(c);
  work(d);
  CHECK(d.wait());
  work(d);
  std::thread([&] { work(a); }).join();  // the first call of that thread
  work(elsewhere);                       // of another pool
  work(d);
  CHECK(base::state_of(pool)->journal().flush());
  CHECK(pool.metrics().switches == 3);
  CHECK(other.metrics().switches == 0);
  REQUIRE(switches.size() == 3);
  std::string order;
  for (const Switch& one : switches) {
    order += one.from + " " + one.to + (one.changes_device ? " device" : "") +
             (one.changes_backend ? " " + one.backend : "") + "; ";
    CHECK(one.thread == switches[0].thread);
    CHECK(one.duration > Duration::zero());
  }
  CHECK(order ==
        a.id() + " " + b.id() + "; " + b.id() + " cuda:1#0 device; cuda:1#0 vulkan:0#0 device vulkan; ");
}

TEST_CASE("refused requests are counted only if they waited until their deadline", "[pool]") {
  ContextPool pool = pool_of({scripted("cuda:0")}, {.lanes_per_device = 1});
  const Lease held = pool.lease().value();
  CHECK(pool.try_lease().error() == Errc::unavailable);
  CHECK(pool.lease({.on = "vulkan"}).error() == Errc::not_found);
  CHECK(pool.lease({.needs = {Feature::int8}}).error() == Errc::unsupported);
  CHECK(pool.lease({.deadline = 0s}).error() == Errc::timed_out);
  CHECK(pool.metrics().timeouts == 0);
  for (int i = 0; i < 3; ++i) CHECK(pool.lease({.deadline = 1ms}).error() == Errc::timed_out);
  CHECK(pool.metrics().timeouts == 3);
  CHECK(pool.metrics().leases == 1);
}

TEST_CASE("the dispatches of a context are counted over all of its leases", "[pool]") {
  ContextPool pool = ContextPool::open({.backends = {"cpu"}, .lanes_per_device = 2}).value();
  ShaderCache cache = ShaderCache::open().value();
  const auto kernel = test::host_scale();
  const Executable executable = cache.find_or_build(kernel, pool.devices()[0]).value();
  const Buffer buffer = pool.devices()[0].buffer<float>(4).value();
  Sequence sequence(pool.devices()[0]);
  sequence.dispatch(executable, arguments(buffer, 2.0f));
  sequence.dispatch(executable, arguments(buffer, 2.0f));
  const Lease other = pool.lease().value();
  for (int i = 0; i < 3; ++i) {
    Lease lease = pool.lease().value();
    lease.fill(buffer, 0);
    lease.dispatch(executable, arguments(buffer, 2.0f));
    lease.submit(sequence);
    CHECK(lease.wait());
  }
  REQUIRE(pool.contexts().size() == 2);
  CHECK(pool.contexts()[0].kernels == 0);
  CHECK(pool.contexts()[1].kernels == 9);
}

TEST_CASE("the numbers of a pool agree at every moment while threads lease", "[pool]") {
  const auto first = scripted("cuda:0"), second = scripted("vulkan:0");
  std::atomic<unsigned> lanes{0};
  first->set_script([&](Step step) -> std::optional<Error> {
    if (step == Step::create_lane && ++lanes % 3 == 0)
      return Error(Errc::out_of_memory, "No lane this time.");
    return std::nullopt;
  });
  ContextPool pool = pool_of({first, second}, {.lanes_per_device = 3, .lease_timeout = 60s});
  const pool::Pool& state = *base::state_of(pool);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 7; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 300; ++i) {
        auto lease = t % 3 == 0 ? pool.try_lease({.on = "cuda"}) : pool.lease();
        if (!lease) continue;
        const auto buffer = lease->buffer<std::byte>(100 + t);
        if (i % 16 == 0) base::state_of(*lease)->lane().fail(Error(Errc::internal, "no more"));
      }
      if (t == 0) stop = true;
    });
  PoolMetrics before;
  int wrong = 0, readings = 0;
  while (!stop || readings < 100) {
    const base::Lock still = state.freeze();
    const PoolMetrics now = state.metrics_locked();
    const auto contexts = state.contexts_locked();
    std::uint32_t active = 0;
    for (const ContextInfo& one : contexts) active += one.active;
    wrong += now.active != active || now.contexts != contexts.size();
    wrong += now.contexts > 6 || now.contexts < before.contexts;
    wrong += now.leases < before.leases || now.switches < before.switches || now.timeouts != 0;
    wrong += now.leases < now.contexts;
    before = now;
    ++readings;
  }
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(pool.metrics().active == 0);
  CHECK(pool.metrics().bytes == 0_B);
}
