// Options of a pool, and the devices that it opens.
#include <wye/pool/context_pool.hpp>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "base/internals.hpp"
#include "device/backend.hpp"
#include "device/device.hpp"
#include "support/catch.hpp"
#include "support/scripted_pool.hpp"
#include "support/skip.hpp"

using namespace wye;
using namespace wye::literals;
using namespace std::chrono_literals;

namespace {

/// The names of the open devices, "cpu:0 null:0".
std::string devices(const ContextPool& pool) {
  std::string names;
  for (const Device& device : pool.devices()) names += (names.empty() ? "" : " ") + device.id();
  return names;
}

std::string devices(std::vector<std::string> backends) {
  return devices(ContextPool::open({.backends = std::move(backends)}).value());
}

constexpr const char* no_library = "/nowhere/libcuda.so.1";

}  // namespace

TEST_CASE("an option out of range is refused with its value and its limits", "[pool]") {
  const auto refusal = [](PoolOptions options) {
    options.backends = {"null"};
    const auto pool = ContextPool::open(std::move(options));
    REQUIRE_FALSE(pool);
    CHECK(pool.error() == Errc::invalid_argument);
    return pool.error().sentence();
  };
  CHECK(refusal({.lanes_per_device = 0}) ==
        "The number of lanes per device (0) is not in the range 1 to 256.");
  CHECK(refusal({.lanes_per_device = 257}) ==
        "The number of lanes per device (257) is not in the range 1 to 256.");
  CHECK(refusal({.contexts_ahead = 3}) ==
        "The number of contexts made ahead (3) exceeds the number of lanes per device (2).");
  CHECK(refusal({.monitor_period = 0s}) ==
        "The period between readings of the monitor (0 s) is not positive.");
  CHECK(refusal({.idle_trim = 0s}) ==
        "The time after which idle contexts are trimmed (0 s) is not positive.");
  CHECK(refusal({.slots = 4097}) ==
        "The number of slots per processor (4097) is not in the range 1 to 4096, or 0.");
  CHECK(refusal({.slots = 3, .slot_rule = SlotRule::host_share}) ==
        "There are both a number of slots (3) and the rule 'host_share' for it.");
  CHECK(refusal({.silicon_memory = 4000_B}) ==
        "The memory budget of a processor (3.91 KiB) is less than 4.00 KiB.");
  CHECK(refusal({.pool_memory = 1_B}) == "The memory budget of the pool (1 byte) is less than 4.00 KiB.");
  CHECK(refusal({.tag_memory = {{"preview", 0_B}}}) ==
        "The memory budget of tag 'preview' (0 bytes) is less than 4.00 KiB.");
  CHECK(refusal({.tag_memory = {{"", 1_MiB}}}) ==
        "A tag with a memory budget ('') has 0 characters; expected 1 to 31.");
  CHECK(refusal({.tag_memory = {{"a", 1_MiB}, {"b", 1_MiB}, {"a", 2_MiB}}}) ==
        "Tag 'a' has two memory budgets.");
  CHECK(ContextPool::open({.backends = {"cpu"}, .silicon_memory = 4_KiB}));
  CHECK(refusal({.lane_memory = 0_B}) == "The memory limit of a lane (0 bytes) is not positive.");
  CHECK(refusal({.lease_timeout = -1500ms}) == "The lease timeout (-1.5 s) is negative.");
  CHECK(refusal({.poll_limit = -1s}) == "The poll limit (-1 s) is not from 0 to 1 s.");
  CHECK(refusal({.poll_limit = 1001ms}) == "The poll limit (1.001 s) is not from 0 to 1 s.");
  CHECK(refusal({.aging = 0s}) == "The aging of requests (0 s) is not positive.");
  CHECK(refusal({.close_timeout = -2s}) == "The close timeout (-2 s) is negative.");
}

TEST_CASE("options at the bounds of their ranges are accepted", "[pool]") {
  const auto opens = [](PoolOptions options) {
    options.backends = {"null", "cpu"};
    return ContextPool::open(std::move(options)).has_value();
  };
  CHECK(opens({.lanes_per_device = 1}));
  CHECK(opens({.lanes_per_device = 256}));
  CHECK(opens({.contexts_ahead = 2}));
  CHECK(opens({.idle_trim = Duration::max(), .monitor_period = Duration::max()}));
  CHECK(opens({.slots = 4096}));
  CHECK(opens({.slot_rule = SlotRule::host_share}));
  CHECK(opens({.slots = 1, .slot_rule = SlotRule::load}));
  CHECK(opens({.lane_memory = 1_B}));
  CHECK(opens({.kept_memory = 0_B}));
  CHECK(opens({.pinned_memory = 0_B}));
  CHECK(opens({.poll_limit = 0s}));
  CHECK(opens({.poll_limit = 1s}));
  CHECK(opens({.lease_timeout = 0s}));
  CHECK(opens({.lease_timeout = Duration::max()}));
  CHECK(opens({.cpu_threads = 1}));
  CHECK(opens({.isolation = Isolation::partition, .partition = {.percent = 1}}));
  CHECK(opens({.isolation = Isolation::partition, .partition = {.percent = 100}}));
  CHECK(opens({.close_timeout = 0s}));
}

TEST_CASE("a device with the most lanes leases all of them, each once", "[pool]") {
  const auto device = test::scripted("cuda:0");
  ContextPool pool = test::pool_of({device}, {.lanes_per_device = 256});
  std::vector<Lease> leases;
  for (int i = 0; i < 256; ++i) leases.push_back(pool.try_lease().value());
  CHECK(pool.try_lease().error().sentence().find("256 of 256 leased") != std::string::npos);
  std::vector<std::string> ids;
  for (const Lease& lease : leases) ids.push_back(lease.id());
  std::sort(ids.begin(), ids.end());
  CHECK(std::adjacent_find(ids.begin(), ids.end()) == ids.end());
  leases.clear();
  CHECK(pool.metrics().contexts == 256);
  CHECK(pool.metrics().active == 0);
}

TEST_CASE("devices come in the order in which their backends are named", "[pool]") {
  CHECK(devices({"cpu", "null"}) == "cpu:0 null:0");
  CHECK(devices({"null", "cpu"}) == "null:0 cpu:0");
}

TEST_CASE("a backend that is named twice opens its devices once", "[pool]") {
  CHECK(devices({"null", "cpu", "null", "null"}) == "null:0 cpu:0");
  const ContextPool pool = ContextPool::open({.backends = {"cpu", "cpu"}}).value();
  CHECK(pool.adapters().size() == 1);
}

TEST_CASE("without names a pool opens the CPU and no backend for measurements", "[pool]") {
  const ContextPool pool = ContextPool::open().value();
  int cpus = 0, others = 0;
  for (const AdapterInfo& info : pool.adapters()) {
    cpus += info.backend == "cpu" && info.usable;
    others += info.backend == "null";
  }
  CHECK(cpus == 1);
  CHECK(others == 0);
}

TEST_CASE("a driver of a GPU that runs on the CPU is the last device, even if it is named first", "[pool]") {
  const ContextPool pool = ContextPool::open({.backends = {"vulkan", "cpu"}}).value();
  bool emulated = false;
  for (const Device& device : pool.devices()) {
    if (emulated) CHECK(device::is_emulated(device.info()));
    emulated |= device::is_emulated(device.info());
  }
  if (!emulated) return test::skip("no device is emulated");
  CHECK_FALSE(device::is_emulated(pool.devices().front().info()));
}

TEST_CASE("every usable adapter is an open device, and every other adapter has its reason", "[pool]") {
  const ContextPool pool = ContextPool::open().value();
  std::vector<std::string> usable, open;
  for (const AdapterInfo& info : pool.adapters()) {
    if (info.usable) usable.push_back(info.id);
    CHECK(info.usable == info.reason.empty());
  }
  for (const Device& device : pool.devices()) open.push_back(device.id());
  CHECK(usable == open);
}

TEST_CASE("a pool without a usable device fails with the reason of each adapter", "[pool]") {
  const auto none = ContextPool::open({.backends = {"cuda"}, .cuda_driver = no_library});
  REQUIRE_FALSE(none);
  CHECK(none.error() == Errc::unavailable);
  CHECK(none.error().sentence().starts_with("No device can be used. cuda: "));
  const auto both =
      ContextPool::open({.backends = {"cuda", "cpu"}, .cpu_threads = 4'000'000, .cuda_driver = no_library});
  REQUIRE_FALSE(both);
  CHECK(both.error() == Errc::unavailable);
  CHECK(both.error().sentence().find("cuda: ") != std::string::npos);
  CHECK(both.error().sentence().find("cpu:0: Team size (4000000 threads) exceeds the limit") !=
        std::string::npos);
}

TEST_CASE("a missing driver leaves the other devices usable, and is listed with its reason", "[pool]") {
  ContextPool pool = ContextPool::open({.backends = {"cuda", "null"}, .cuda_driver = no_library}).value();
  CHECK(devices(pool) == "null:0");
  REQUIRE(pool.adapters().size() == 2);
  CHECK_FALSE(pool.adapters()[0].usable);
  CHECK(pool.adapters()[0].backend == "cuda");
  CHECK_FALSE(pool.adapters()[0].reason.empty());
  CHECK(pool.lease({.on = "cuda"}).error() == Errc::not_found);
  CHECK(pool.lease());
}

TEST_CASE("a name of a backend is matched whole", "[pool]") {
  for (const char* name : {"", "cp", "cpus", "CPU", "cpu:0", " cpu"}) {
    CAPTURE(name);
    CHECK(ContextPool::open({.backends = {name}}).error() == Errc::not_found);
  }
}

TEST_CASE("every pool that is opened names its devices anew", "[pool]") {
  const ContextPool one = ContextPool::open({.backends = {"cpu", "null"}}).value(),
                    two = ContextPool::open({.backends = {"cpu", "null"}}).value();
  for (std::size_t d = 0; d < 2; ++d) {
    const auto &a = *base::state_of(one.devices()[d]), &b = *base::state_of(two.devices()[d]);
    CHECK(a.info().id == b.info().id);
    CHECK(a.ref() != b.ref());
    CHECK(a.ref().generation < b.ref().generation);
  }
}
