// The life of a lease and of its lane: moves, failures, and work in flight at the end.
#include <wye/pool/context_pool.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "all_devices.hpp"
#include "base/internals.hpp"
#include "device/timeline.hpp"
#include "support/catch.hpp"
#include "support/scripted_pool.hpp"
#include "support/skip.hpp"

using namespace wye;
using namespace wye::literals;
using namespace std::chrono_literals;
using test::pool_of;
using test::scripted;
using Step = test::ScriptedDevice::Step;

namespace {

/// Submits a fill, which a device that holds its submissions keeps in flight.
void submit(Lease& lease, const Buffer& buffer) {
  lease.fill(buffer, 7);
  lease.submit();
}

}  // namespace

TEST_CASE("a lease that was moved from returns nothing, and can be assigned again", "[pool]") {
  ContextPool pool = pool_of({scripted("cuda:0")}, {.lanes_per_device = 2});
  Lease a = pool.lease().value();
  const std::string id = a.id();
  {
    Lease b = std::move(a);
    CHECK(pool.metrics().active == 1);
    Lease& same = b;
    b = std::move(same);
    CHECK(b.id() == id);
    CHECK(pool.metrics().active == 1);
    a = std::move(b);
  }
  CHECK(a.id() == id);
  CHECK(pool.metrics().active == 1);
  { const Lease ends = std::move(a); }
  CHECK(pool.metrics().active == 0);
}

TEST_CASE("leases in a container return their contexts when they are erased", "[pool]") {
  ContextPool pool = pool_of({scripted("cuda:0")}, {.lanes_per_device = 8});
  std::vector<Lease> leases;
  for (int i = 0; i < 8; ++i) leases.push_back(pool.try_lease().value());
  leases.erase(leases.begin() + 2, leases.begin() + 5);
  CHECK(pool.metrics().active == 5);
  std::vector<std::string> ids;
  for (int i = 0; i < 3; ++i) ids.push_back(leases.emplace_back(pool.try_lease().value()).id());
  CHECK(ids == std::vector<std::string>{"cuda:0#2", "cuda:0#3", "cuda:0#4"});
  leases.clear();
  CHECK(pool.metrics().active == 0);
}

TEST_CASE("a lane that is returned with work in flight is replaced, and destroyed after its work", "[pool]") {
  const auto device = scripted("cuda:0");
  ContextPool pool = pool_of({device}, {.lanes_per_device = 1});
  {
    Lease lease = pool.lease().value();
    const Buffer buffer = lease.buffer<float>(4).value();
    device->hold();
    submit(lease, buffer);
  }
  CHECK(device->lanes_alive() == 1);
  { const Lease next = pool.lease().value(); }  // at once, with a lane of its own
  CHECK(device->count(Step::create_lane) == 2);
  CHECK(device->lanes_alive() == 2);
  device->release();
  { const Lease next = pool.lease().value(); }
  CHECK(device->lanes_alive() == 1);
  CHECK(device->count(Step::create_lane) == 2);
  CHECK(device->lanes_cut_off() == 0);
  CHECK(device->buffers_alive() == 0);
}

TEST_CASE("lanes with work in flight do not use up the contexts of their device", "[pool]") {
  const auto device = scripted("cuda:0");
  ContextPool pool = pool_of({device}, {.lanes_per_device = 2});
  const Buffer buffer = pool.devices()[0].buffer<float>(4).value();
  device->hold();
  for (int i = 0; i < 10; ++i) {
    Lease a = pool.try_lease().value(), b = pool.try_lease().value();
    submit(a, buffer);
    submit(b, buffer);
  }
  CHECK(device->lanes_alive() == 20);
  CHECK(pool.metrics().contexts == 2);
  device->release();
  CHECK(pool.try_lease());
  CHECK(device->lanes_alive() <= 2);
  CHECK(device->lanes_cut_off() == 0);
}

TEST_CASE("a lane whose work has completed is used again, although no thread waited for it", "[pool]") {
  const auto device = scripted("cuda:0");
  ContextPool pool = pool_of({device}, {.lanes_per_device = 1});
  for (int i = 0; i < 5; ++i) {
    Lease lease = pool.lease().value();
    submit(lease, lease.buffer<float>(4).value());
  }
  CHECK(device->count(Step::create_lane) == 1);
}

TEST_CASE("commands that were not submitted end with their lease", "[pool]") {
  const auto device = scripted("cuda:0");
  ContextPool pool = pool_of({device}, {.lanes_per_device = 1});
  const Buffer buffer = pool.devices()[0].buffer<std::uint32_t>(4).value();
  std::vector<std::uint32_t> out(4, 1);
  {
    Lease lease = pool.lease().value();
    lease.download(buffer, out);
  }
  Lease lease = pool.lease().value();
  CHECK(lease.wait());
  CHECK(out == std::vector<std::uint32_t>(4, 1));
}

TEST_CASE("a wait that times out can be repeated, and its lane stays", "[pool]") {
  const auto device = scripted("cuda:0");
  ContextPool pool = pool_of({device}, {.lanes_per_device = 1});
  const std::vector<std::uint32_t> values(4, 5);
  std::vector<std::uint32_t> out(4, 0);
  {
    Lease lease = pool.lease().value();
    const Buffer buffer = lease.buffer<std::uint32_t>(4).value();
    lease.upload(values, buffer);
    device->hold();
    lease.download(buffer, out);
    CHECK(lease.wait(0s).error() == Errc::timed_out);
    CHECK(lease.wait(1ms).error() == Errc::timed_out);
    CHECK(out == std::vector<std::uint32_t>(4, 0));
    device->release();
    CHECK(lease.wait(1min));
    CHECK(out == values);
  }
  CHECK(pool.lease());
  CHECK(device->count(Step::create_lane) == 1);
}

TEST_CASE("the download of a lease that has ended is not written", "[pool]") {
  const std::string on = GENERATE("cpu", "vulkan", "cuda");
  CAPTURE(on);
  ContextPool pool = test::all_devices();
  if (!test::has_device(pool, on)) return;
  std::shared_ptr<device::Timeline> gate;
  std::vector<std::uint32_t> out(1000, 1);
  std::optional<Lease> lease = pool.lease({.on = on}).value();
  const Device device = lease->device();
  const Buffer buffer = lease->buffer<std::uint32_t>(1000).value();
  gate = base::state_of(device)->create_timeline().value();
  lease->fill(buffer, 9);
  lease->wait_for(SyncPoint(gate, 1));
  lease->download(buffer, out);
  const SyncPoint end = lease->point();
  CHECK_FALSE(end.reached());
  lease.reset();
  CHECK(gate->signal(1));
  CHECK(end.wait(1min));
  CHECK(pool.close(1min));
  CHECK(out == std::vector<std::uint32_t>(1000, 1));
}

TEST_CASE("a lease that ends between a download and its wait leaves nothing for the next lease", "[pool]") {
  const std::string on = GENERATE("cpu", "vulkan", "cuda");
  CAPTURE(on);
  ContextPool pool = test::all_devices({.lanes_per_device = 1});
  if (!test::has_device(pool, on)) return;
  const Device device = pool.lease({.on = on})->device();
  const Buffer buffer = device.buffer<std::uint32_t>(1000).value();
  const auto gate = base::state_of(device)->create_timeline().value();
  std::vector<std::uint32_t> out(1000, 1), recorded(1000, 2), later(1000);
  {
    Lease lease = pool.lease({.on = on}).value();
    lease.fill(buffer, 9);
    REQUIRE(lease.wait());
    lease.download(buffer, out);
    REQUIRE(lease.point().wait(1min));  // its work has completed, and its lane is used again
    std::fill(out.begin(), out.end(), 1);
    lease.wait_for(SyncPoint(gate, 1));  // for the commands that follow, which are not submitted
    lease.fill(buffer, 5);
    lease.download(buffer, recorded);
  }
  {
    Lease lease = pool.lease({.on = on}).value();
    lease.fill(buffer, 6);
    lease.download(buffer, later);
    CHECK(lease.wait(1min));  // it does not wait for the gate
  }
  (void)gate->signal(1);
  CHECK(later == std::vector<std::uint32_t>(1000, 6));
  CHECK(out == std::vector<std::uint32_t>(1000, 1));
  CHECK(recorded == std::vector<std::uint32_t>(1000, 2));
}

TEST_CASE("commands that a lease has not submitted are dropped when it ends", "[pool]") {
  const auto device = scripted("cuda:0");
  ContextPool pool = pool_of({device}, {.lanes_per_device = 1});
  std::vector<float> values(4, 1.0f), early(4), late(4);
  {
    Lease lease = pool.lease().value();
    Buffer source = lease.buffer<float>(4).value();
    lease.upload(values, source);
    REQUIRE(lease.wait());
    lease.download(source, early);
  }
  CHECK(device->buffers_alive() == 0);  // the recorded copy does not hold it
  Lease lease = pool.lease().value();
  auto other = lease.buffer<float>(4).value();
  lease.upload(values, other);
  lease.download(other, late);
  REQUIRE(lease.wait());
  CHECK(late == values);
  CHECK(early == std::vector<float>(4));
}

TEST_CASE("downloads that a lease has not waited for are not written when it has ended", "[pool]") {
  const auto device = scripted("cuda:0");
  ContextPool pool = pool_of({device}, {.lanes_per_device = 1});
  std::vector<float> values(4, 1.0f), early(4);
  {
    Lease lease = pool.lease().value();
    Buffer source = lease.buffer<float>(4).value();
    lease.upload(values, source);
    lease.download(source, early);
    lease.submit();
  }
  Lease lease = pool.lease().value();
  REQUIRE(lease.wait());
  CHECK(early == std::vector<float>(4));
}

TEST_CASE("memory is freed when its lease ends, if the work on it has completed", "[pool]") {
  const std::string on = GENERATE("cpu", "vulkan", "cuda");
  CAPTURE(on);
  ContextPool pool = test::all_devices();
  if (!test::has_device(pool, on)) return;
  {
    Lease lease = pool.lease({.on = on}).value();
    const Buffer from = lease.buffer<std::uint32_t>(1000).value(),
                 to = lease.buffer<std::uint32_t>(1000).value();
    lease.fill(from, 1);
    lease.submit();
    lease.copy(from, to, to.bytes());
    REQUIRE(lease.point().wait(1min));  // and no `wait` of the lease
  }
  CHECK(pool.metrics().bytes == 0_B);
}

TEST_CASE("after a failure the commands of a lease are skipped", "[pool]") {
  const std::string on = GENERATE("cpu", "vulkan", "cuda");
  CAPTURE(on);
  ContextPool pool = test::all_devices();
  if (!test::has_device(pool, on)) return;
  Lease lease = pool.lease({.on = on}).value();
  const Buffer buffer = lease.buffer<std::uint32_t>(4).value();
  lease.fill(buffer, 3);
  REQUIRE(lease.wait());
  lease.upload(std::vector<std::uint32_t>(5), buffer);  // too large
  const auto first = lease.wait();
  REQUIRE_FALSE(first);
  CHECK(first.error() == Errc::invalid_argument);
  std::vector<std::uint32_t> out(4, 1);
  lease.fill(buffer, 8);
  lease.download(buffer, out);
  lease.submit();
  (void)lease.point();
  CHECK(lease.wait().error().sentence() == first.error().sentence());
  CHECK(out == std::vector<std::uint32_t>(4, 1));
  Lease other = pool.lease({.on = on}).value();
  other.download(buffer, out);
  CHECK(other.wait());
  CHECK(out == std::vector<std::uint32_t>(4, 3));
}

TEST_CASE("a command with an empty handle fails its lease, and no other", "[pool]") {
  ContextPool pool = ContextPool::open({.backends = {"cpu"}, .lanes_per_device = 1}).value();
  const Buffer buffer = pool.devices()[0].buffer<std::uint32_t>(4).value();
  std::vector<std::uint32_t> values(4, 1);
  const std::array<void (*)(Lease&, const Buffer&, std::vector<std::uint32_t>&), 8> commands{
      [](Lease& lease, const Buffer&, auto& host) { lease.upload(host, Buffer()); },
      [](Lease& lease, const Buffer&, auto& host) { lease.download(Buffer(), host); },
      [](Lease& lease, const Buffer& good, auto&) { lease.copy(good, Buffer(), 4_B); },
      [](Lease& lease, const Buffer& good, auto&) { lease.copy(Buffer(), good, 4_B); },
      [](Lease& lease, const Buffer&, auto&) { lease.fill(Buffer(), 1); },
      [](Lease& lease, const Buffer& good, auto&) { lease.dispatch(Executable(), arguments(good)); },
      [](Lease& lease, const Buffer& good, auto&) { lease.dispatch(Executable(), arguments(good), 4); },
      [](Lease& lease, const Buffer&, auto&) { lease.signal(SyncPoint()); }};
  for (std::size_t i = 0; i < commands.size(); ++i) {
    CAPTURE(i);
    {
      Lease lease = pool.lease().value();
      commands[i](lease, buffer, values);
      CHECK(lease.wait().error() == Errc::invalid_argument);
    }
    CHECK(pool.lease()->wait());
  }
  Lease lease = pool.lease().value();
  lease.wait_for(SyncPoint());  // an empty point is reached
  CHECK(lease.wait());
}

TEST_CASE("memory of another device is refused, with the names of both", "[pool]") {
  ContextPool pool = ContextPool::open({.backends = {"cpu", "null"}}).value();
  Lease on_cpu = pool.lease({.on = "cpu"}).value();
  const Buffer on_null = pool.lease({.on = "null"})->buffer<float>(4).value();
  on_cpu.fill(on_null, 0);
  const auto failed = on_cpu.wait();
  REQUIRE_FALSE(failed);
  CHECK(failed.error() == Errc::invalid_argument);
  CHECK(failed.error().sentence() ==
        "Target of a fill is memory of another device ('null:0'); the lane is on 'cpu:0'.");
}

TEST_CASE("two leases of a device are ordered by a point", "[pool]") {
  const std::string on = GENERATE("cpu", "vulkan", "cuda");
  CAPTURE(on);
  ContextPool pool = test::all_devices();
  if (!test::has_device(pool, on)) return;
  Lease writer = pool.lease({.on = on}).value(), reader = pool.lease({.on = on}).value();
  const Buffer from = writer.buffer<std::uint32_t>(100'000).value(),
               to = reader.buffer<std::uint32_t>(100'000).value();
  std::vector<std::uint32_t> out(100'000);
  for (std::uint32_t round = 1; round <= 20; ++round) {
    writer.fill(from, round);
    reader.wait_for(writer.point());
    reader.copy(from, to, from.bytes());
    reader.download(to, out);
    writer.wait_for(reader.point());
    REQUIRE(reader.wait());
    CHECK(out == std::vector<std::uint32_t>(100'000, round));
  }
  CHECK(writer.wait());
}

TEST_CASE("a point outlives its lease and its pool", "[pool]") {
  std::optional<SyncPoint> reached;
  {
    ContextPool pool = ContextPool::open({.backends = {"cpu"}}).value();
    Lease lease = pool.lease().value();
    lease.fill(lease.buffer<float>(100).value(), 0);
    reached = lease.point();
    REQUIRE(lease.wait());
  }
  CHECK(reached->reached());
  CHECK(reached->wait(0s));
}

TEST_CASE("a device closes after the last pool, lease and buffer of it, in any order", "[pool]") {
  std::array<int, 3> order{0, 1, 2};
  do {
    CAPTURE(order);
    auto device = scripted("cuda:0");
    const std::weak_ptr<test::ScriptedDevice> closed = device;
    std::optional<ContextPool> pool = pool_of({device});
    device.reset();
    std::optional<Lease> lease = pool->lease().value();
    std::optional<Buffer> buffer = lease->buffer<float>(4).value();
    for (const int next : order) {
      CHECK_FALSE(closed.expired());
      if (next == 0) pool.reset();
      if (next == 1) lease.reset();
      if (next == 2) buffer.reset();
    }
    CHECK(closed.expired());
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("a lease that outlives its pool still allocates, works and fails by itself", "[pool]") {
  std::optional<Lease> lease =
      ContextPool::open({.backends = {"cpu"}, .lane_memory = 1000_B}).value().lease().value();
  CHECK(lease->id() == "cpu:0#0");
  const Buffer buffer = lease->buffer<std::byte>(600).value();
  CHECK(lease->buffer<std::byte>(600).error() == Errc::over_budget);
  std::vector<std::byte> out(600);
  lease->fill(buffer, 0x01010101);
  lease->download(buffer, out);
  CHECK(lease->wait());
  CHECK(out == std::vector<std::byte>(600, std::byte{1}));
  lease.reset();
  CHECK(buffer.bytes() == 600_B);
}

TEST_CASE("a failure on one context leaves leases of other contexts as they are", "[pool]") {
  ContextPool pool = ContextPool::open({.backends = {"cpu"}, .lanes_per_device = 2}).value();
  Lease good = pool.lease().value(), bad = pool.lease().value();
  const Buffer buffer = good.buffer<std::uint32_t>(4).value();
  good.fill(buffer, 4);
  bad.fill(Buffer(), 0);
  CHECK_FALSE(bad.wait());
  std::vector<std::uint32_t> out(4);
  good.download(buffer, out);
  CHECK(good.wait());
  CHECK(out == std::vector<std::uint32_t>(4, 4));
}

TEST_CASE("a lease that ends with work in flight on another thread is replaced as well", "[pool]") {
  const auto device = scripted("cuda:0");
  ContextPool pool = pool_of({device}, {.lanes_per_device = 1, .lease_timeout = 60s});
  const Buffer buffer = pool.devices()[0].buffer<float>(4).value();
  device->hold();
  for (int i = 0; i < 10; ++i) {
    Lease lease = pool.lease().value();
    submit(lease, buffer);
    std::thread([lease = std::move(lease)]() mutable { const Lease ends = std::move(lease); }).join();
  }
  CHECK(device->count(Step::create_lane) == 10);
  device->release();
  CHECK(pool.close(1min));
  CHECK(device->lanes_cut_off() == 0);
  CHECK(device->lanes_alive() == 0);
}
