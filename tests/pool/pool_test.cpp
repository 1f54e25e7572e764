#include <wye/pool/context_pool.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include "support/catch.hpp"
#include "waiting.hpp"

using namespace wye;
using namespace wye::literals;
using namespace std::chrono_literals;

namespace {

ContextPool open(PoolOptions options) { return ContextPool::open(std::move(options)).value(); }

}  // namespace

TEST_CASE("a lease returns its context on destruction", "[pool]") {
  ContextPool pool = open({.backends = {"cpu"}, .lanes_per_device = 1});
  std::string first;
  {
    auto lease = pool.lease();
    REQUIRE(lease);
    first = lease->id();
    CHECK(pool.contexts().at(0).active);
    CHECK(pool.try_lease().error() == Errc::unavailable);
  }
  CHECK_FALSE(pool.contexts().at(0).active);
  CHECK(pool.lease()->id() == first);
}

TEST_CASE("of the idle contexts the least recently used is leased", "[pool]") {
  ContextPool pool = open({.backends = {"cpu"}, .lanes_per_device = 3});
  auto a = pool.lease().value();
  auto b = pool.lease().value();
  auto c = pool.lease().value();
  const std::array<std::string, 3> ids{a.id(), b.id(), c.id()};
  CHECK(std::set<std::string>(ids.begin(), ids.end()).size() == 3);
  { auto gone = std::move(c); }
  { auto gone = std::move(a); }
  { auto gone = std::move(b); }
  // By when their lease began: a, b, c.
  for (const std::string& id : ids) CHECK(pool.lease()->id() == id);
}

TEST_CASE("a moved lease still holds its context, once", "[pool]") {
  ContextPool pool = open({.backends = {"cpu"}, .lanes_per_device = 2});
  auto a = pool.lease().value();
  const std::string id = a.id();
  Lease b = std::move(a);
  CHECK(b.id() == id);
  auto c = pool.lease().value();
  CHECK(pool.metrics().active == 2);
  c = std::move(b);  // returns its own context
  CHECK(c.id() == id);
  CHECK(pool.metrics().active == 1);
}

TEST_CASE("a pool that has no context free says so with numbers", "[pool]") {
  ManualClock clock;
  ContextPool pool =
      open({.backends = {"cpu"}, .lanes_per_device = 2, .lease_timeout = 10ms, .clock = &clock});
  auto a = pool.lease().value();
  auto b = pool.lease().value();
  auto none = pool.lease();
  REQUIRE_FALSE(none);
  CHECK(none.error() == Errc::timed_out);
  CHECK(none.error().sentence() ==
        "No context of 'cpu:0' became free within 0.01 s (2 of 2 leased; oldest for 0.0 s).");
  CHECK(pool.metrics().timeouts == 1);
}

TEST_CASE("waiters are served first come, first served", "[pool]") {
  test::CountingClock clock;
  ContextPool pool = open({.backends = {"cpu"}, .lanes_per_device = 1, .clock = &clock});
  std::optional<Lease> held = pool.lease().value();
  std::mutex mutex;
  std::vector<int> served;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    const int before = clock.readings;
    threads.emplace_back([&, i] {
      auto lease = pool.lease({.deadline = 60s}).value();
      const std::lock_guard lock(mutex);
      served.push_back(i);
    });
    test::await_waiter(pool, clock, before);  // it is queued before the next one
  }
  held.reset();
  for (auto& thread : threads) thread.join();
  CHECK(served == std::vector<int>{0, 1, 2, 3});
}

TEST_CASE("a lease that waits for one device does not delay a lease of another", "[pool]") {
  test::CountingClock clock;
  ContextPool pool =
      open({.backends = {"cpu", "null"}, .lanes_per_device = 1, .lease_timeout = 60s, .clock = &clock});
  std::optional<Lease> held = pool.lease({.on = "cpu"}).value();
  test::Waiting waiter(pool, clock, {.on = "cpu"});
  CHECK(pool.lease({.on = "null", .deadline = 60s}));
  CHECK_FALSE(waiter.has_returned());
  held.reset();
  CHECK(waiter.get());
}

TEST_CASE("closing a pool refuses new leases and wakes all waiters", "[pool]") {
  test::CountingClock clock;
  ContextPool pool = open({.backends = {"cpu"}, .lanes_per_device = 1, .clock = &clock});
  auto held = pool.lease().value();
  test::Waiting waiter(pool, clock, {.deadline = 1h});
  pool.close();
  CHECK(waiter.get().error() == Errc::closed);
  CHECK(pool.lease().error() == Errc::closed);
  CHECK(held.wait());  // outstanding leases stay valid
}

TEST_CASE("a request that no device can meet fails at once", "[pool]") {
  ContextPool pool = open({.backends = {"cpu", "null"}});
  auto nowhere = pool.lease({.on = "gpu:7"});
  CHECK(nowhere.error() == Errc::not_found);
  CHECK(nowhere.error().sentence() ==
        "There is no device or backend 'gpu:7' (devices: 'cpu:0', 'null:0'; backends: 'cpu', 'null').");
  auto impossible = pool.lease({.on = "cpu", .needs = {Feature::subgroups}});
  CHECK(impossible.error() == Errc::unsupported);
  CHECK(impossible.error().sentence().find("lacks subgroups") != std::string::npos);
}

TEST_CASE("options out of range are refused, and so is a backend that does not exist", "[pool]") {
  CHECK(ContextPool::open({.backends = {"cpu"}, .lanes_per_device = 0}).error() == Errc::invalid_argument);
  CHECK(ContextPool::open({.backends = {"cpu"}, .lanes_per_device = 257}).error() == Errc::invalid_argument);
  CHECK(ContextPool::open({.backends = {"cpu"}, .lease_timeout = -1s}).error() == Errc::invalid_argument);
  CHECK(ContextPool::open({.backends = {"cpu"}, .lane_memory = 0_B}).error() == Errc::invalid_argument);
  auto none = ContextPool::open({.backends = {"opengl"}});
  CHECK(none.error() == Errc::not_found);
  CHECK(none.error().sentence().find("has no backend 'opengl' (it has cpu, ") != std::string::npos);
  CHECK(
      ContextPool::open({}, {Version{header_version.major, header_version.minor + 1, 0}, sizeof(PoolOptions)})
          .error() == Errc::unsupported);
  CHECK(ContextPool::open({}, {header_version, sizeof(PoolOptions) + 8}).error() == Errc::unsupported);
}

TEST_CASE("a partition that contradicts itself is refused with its values", "[pool]") {
  const auto sentence = [](Isolation isolation, Partition part) {
    auto pool = ContextPool::open({.backends = {"cpu"}, .isolation = isolation, .partition = part});
    REQUIRE_FALSE(pool);
    CHECK(pool.error() == Errc::invalid_argument);
    return pool.error().sentence();
  };
  CHECK(sentence(Isolation::shared, {.percent = 50}) ==
        "A partition (50 %) is set, but the isolation is 'shared'.");
  CHECK(sentence(Isolation::shared, {.multiprocessors = 8}) ==
        "A partition (8 multiprocessors) is set, but the isolation is 'shared'.");
  CHECK(sentence(Isolation::partition, {.percent = 101}) ==
        "The share of a partition (101 %) is not in the range 1 to 100.");
  CHECK(sentence(Isolation::partition, {.multiprocessors = 8, .percent = 50}) ==
        "The partition has both a number of multiprocessors (8) and a share of them (50 %).");
  // The CPU's part is its number of threads.
  ContextPool pool =
      open({.backends = {"cpu"}, .isolation = Isolation::partition, .partition = {.percent = 50}});
  CHECK(pool.lease().value().buffer<float>(10));
}

TEST_CASE("a device that cannot be divided is not opened as a partition and has that reason", "[pool]") {
  const ContextPool whole = open({.backends = {"vulkan", "cpu"}});
  const ContextPool part = open({.backends = {"vulkan", "cpu"}, .isolation = Isolation::partition});
  REQUIRE(part.adapters().size() == whole.adapters().size());
  for (std::size_t i = 0; i < part.adapters().size(); ++i) {
    const AdapterInfo &one = part.adapters()[i], &before = whole.adapters()[i];
    INFO(one.id << ": " << one.reason);
    if (one.backend == "cpu") CHECK(one.usable);
    if (one.backend != "vulkan" || !before.usable) continue;
    CHECK_FALSE(one.usable);
    CHECK(one.reason.find("cannot be divided") != std::string::npos);
    CHECK(one.reason.find(one.name) != std::string::npos);
  }
}

TEST_CASE("a context has its memory limit", "[pool]") {
  ContextPool pool = open({.backends = {"cpu"}, .lanes_per_device = 1, .lane_memory = 1_MiB});
  auto lease = pool.lease().value();
  auto fits = lease.buffer<float>(100'000);
  REQUIRE(fits);
  CHECK(pool.contexts().at(0).bytes == 400'000_B);
  auto over = lease.buffer<float>(200'000);
  CHECK(over.error() == Errc::over_budget);
  CHECK(over.error().sentence().find("cpu:0#0") != std::string::npos);
  *fits = Buffer();
  CHECK(lease.buffer<float>(200'000));
}

TEST_CASE("uploads, downloads, copies and fills arrive, at odd sizes and offsets", "[pool]") {
  ContextPool pool = open({.backends = {"cpu"}});
  auto lease = pool.lease().value();
  auto a = lease.buffer<std::uint8_t>(1001).value();
  auto b = lease.buffer<std::uint8_t>(1001).value();
  std::vector<std::uint8_t> values(1001), out(1001, 0xee);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint8_t>(i * 37 + 11);
  lease.upload(values, a);
  std::vector<std::uint8_t> piece(values.begin() + 13, values.begin() + 20);
  lease.copy(a, b, 1001_B);
  lease.upload(piece, b, 3_B);
  std::fill(piece.begin(), piece.end(), 0);  // the upload has copied it
  lease.download(b, out);
  REQUIRE(lease.wait());
  for (std::size_t i = 0; i < out.size(); ++i)
    CHECK(out[i] == (i >= 3 && i < 10 ? values[i + 10] : values[i]));
}

TEST_CASE("the first failure on a lease sticks, and the next lease is clean", "[pool]") {
  ContextPool pool = open({.backends = {"cpu"}, .lanes_per_device = 1});
  {
    auto lease = pool.lease().value();
    auto small = lease.buffer<float>(4).value();
    std::vector<float> large(16, 1.0f);
    lease.upload(large, small);
    const auto first = lease.wait();
    REQUIRE_FALSE(first);
    CHECK(first.error() == Errc::invalid_argument);
    CHECK(lease.wait().error().sentence() == first.error().sentence());
  }
  auto lease = pool.lease().value();
  CHECK(lease.wait());
}

TEST_CASE("many threads lease and return; the counts balance", "[pool]") {
  ContextPool pool = open({.backends = {"cpu"}, .lanes_per_device = 3, .lease_timeout = 60s});
  std::atomic<int> out{0}, most{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        auto lease = pool.lease().value();
        const int now = ++out;
        int seen = most;
        while (now > seen && !most.compare_exchange_weak(seen, now)) {
        }
        --out;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(most <= 3);
  const PoolMetrics metrics = pool.metrics();
  CHECK(metrics.active == 0);
  CHECK(metrics.leases == 1600);
  CHECK(metrics.contexts <= 3);
}

TEST_CASE("a sequence is recorded once, and run by any lease of its device with the arguments it has then",
          "[pool]") {
  ContextPool pool = open({.backends = {"cpu"}, .lanes_per_device = 2});
  auto a = pool.lease().value(), b = pool.lease().value();
  const auto buffer = a.device().buffer<std::uint32_t>(4).value(),
             copy = a.device().buffer<std::uint32_t>(4).value();
  Sequence sequence(a.device());
  CHECK(sequence.fill(buffer, 7) == 0);
  CHECK(sequence.copy(buffer, copy, copy.bytes()) == 1);
  CHECK(sequence.size() == 2);
  for (Lease* lease : {&a, &b}) {
    std::array<std::uint32_t, 4> out{};
    lease->fill(copy, 1);
    lease->submit(sequence);
    lease->download(copy, out);
    REQUIRE(lease->wait());
    CHECK(out == std::array<std::uint32_t, 4>{7, 7, 7, 7});
  }
  auto none = sequence.set(0, 0, 3.0f);
  REQUIRE_FALSE(none);
  CHECK(none.error() == Errc::invalid_argument);
  const Sequence moved = std::move(sequence);
  CHECK(moved.size() == 2);
}
