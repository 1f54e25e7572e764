// Leases in a process that counts its allocations, and fails them.
#include <wye/pool/context_pool.hpp>

#include <memory>
#include <optional>

#include "base/internals.hpp"
#include "pool/discovery.hpp"
#include "pool/pool.hpp"
#include "support/catch.hpp"
#include "support/device/memory_device.hpp"
#include "support/failing_new.hpp"

using namespace wye;
using namespace wye::literals;

namespace {

/// The allocations of this thread in `f`.
template <class F>
long count(F f) {
  const long before = test::allocations;
  f();
  return test::allocations - before;
}

}  // namespace

TEST_CASE("a lease of an idle context allocates nothing, nor does its end", "[pool]") {
  ContextPool pool = ContextPool::open({.backends = {"cpu", "null"}, .lanes_per_device = 2}).value();
  { const auto a = pool.lease({.on = "cpu"}), b = pool.lease({.on = "cpu"}); }  // makes the lanes
  bool is_leased = true;
  const auto lease = [&](const LeaseRequest& request) {
    for (int i = 0; i < 10; ++i) is_leased &= pool.lease(request).has_value();
    for (int i = 0; i < 10; ++i) is_leased &= pool.try_lease(request).has_value();
  };
  CHECK(count([&] { lease({}); }) == 0);
  CHECK(count([&] { lease({.on = "cpu"}); }) == 0);
  CHECK(count([&] { lease({.on = "cpu:0", .needs = {Feature::float64}}); }) == 0);
  CHECK(count([&] {
          Lease a = std::move(pool.lease()).value();
          Lease b = std::move(pool.lease()).value();
          a = std::move(b);
        }) == 0);
  CHECK(is_leased);
  CHECK(pool.metrics().active == 0);
}

TEST_CASE("whichever allocation of a lease fails, it is an error, and the pool is as before", "[pool]") {
  const auto device = std::make_shared<test::MemoryDevice>("scripted:0");
  const auto state =
      pool::Pool::open({.lanes_per_device = 1, .lane_memory = 1_MiB, .lease_timeout = Duration::zero()},
                       {.adapters = {device->info()}, .devices = {device}});
  enum class Life { cold, warm, busy, unknown };
  for (const Life life : {Life::cold, Life::warm, Life::busy, Life::unknown}) {
    INFO("life " << static_cast<int>(life));
    int failures = 0;
    for (long n = 0; n < 200; ++n) {
      std::optional<Lease> held;
      if (life == Life::busy) held = state->lease({}, Instant::min()).value();
      if (life == Life::cold)  // a lane that failed is replaced
        base::state_of(state->lease({}, Instant::min()).value())
            ->lane()
            .fail(Error(Errc::internal, "no more"));
      std::optional<Result<Lease>> lease;
      std::optional<Result<Buffer>> buffer;
      test::fail_allocations(n, test::Failing::all_of_thread);  // the CPU's team continues
      lease.emplace(state->lease({.on = life == Life::unknown ? "nowhere" : ""}, Instant::min()));
      if (*lease) buffer.emplace((**lease).buffer<float>(1000));
      test::fail_no_allocations();
      const bool failed = test::failed_allocations() > 0;
      INFO("allocation " << n);
      if (life == Life::busy && !failed) CHECK(lease->error() == Errc::unavailable);
      if (life == Life::unknown && !failed) CHECK(lease->error() == Errc::not_found);
      if (!*lease && failed)
        CHECK((lease->error() == Errc::out_of_memory || lease->error() == Errc::unavailable ||
               lease->error() == Errc::not_found));
      if (buffer && !*buffer) CHECK(buffer->error() == Errc::out_of_memory);
      const Bytes charged = buffer && *buffer ? Bytes{4000} : Bytes{};
      const auto contexts = state->contexts_locked();
      CHECK((contexts.empty() ? Bytes{} : contexts.at(0).bytes) == charged);
      CHECK(state->metrics_locked().bytes == charged);
      CHECK(device->memory().in_use == charged);
      buffer.reset();
      lease.reset();
      held.reset();
      CHECK(device->memory().in_use == 0_B);
      CHECK(state->metrics_locked().active == 0);
      CHECK(state->lease({}, Instant::min()));
      if (!failed) break;
      ++failures;
    }
    CHECK(failures > 0);
    CHECK(failures < 199);
  }
}
