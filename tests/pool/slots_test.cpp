// The slots of a processor: one number for all of its devices and all pools of the process.
#include <wye/pool/context_pool.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/host_info.hpp"
#include "base/internals.hpp"
#include "device/processor.hpp"
#include "pool/waiting.hpp"
#include "support/catch.hpp"
#include "support/scripted_pool.hpp"

using namespace wye;
using namespace std::chrono_literals;
using test::pool_of;
using test::Scripted;
using test::Waiting;

namespace {

/// Returns a device of a GPU that this file shares among backends and pools.
Scripted card(const std::string& id, std::uint8_t silicon = 201) {
  return test::scripted(id, AdapterType::discrete, {}, silicon);
}
SiliconInfo only_silicon(const ContextPool& pool) {
  const auto all = pool.silicon();
  REQUIRE(all.size() == 1);
  return all[0];
}
/// Takes a lease on a thread of its own.
Result<Lease> lease_elsewhere(ContextPool& pool, const LeaseRequest& request = {}) {
  std::optional<Result<Lease>> lease;
  std::thread([&] { lease.emplace(pool.try_lease(request)); }).join();
  return *std::move(lease);
}
bool contains(const Error& error, std::string_view text) {
  return error.sentence().find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("a processor has the default slots of its devices, and no fewer than a pool has contexts",
          "[pool][slots]") {
  AdapterInfo info;
  const auto slots = [&](AdapterType type, std::uint32_t processors, std::uint32_t queues) {
    info.type = type;
    info.processors = processors;
    info.queues = queues;
    return device::default_slots(info);
  };
  CHECK(slots(AdapterType::discrete, 0, 0) == 4);
  CHECK(slots(AdapterType::discrete, 132, 0) == 16);
  CHECK(slots(AdapterType::discrete, 24, 0) == 4);
  CHECK(slots(AdapterType::integrated, 0, 8) == 8);
  CHECK(slots(AdapterType::cpu, 2, 0) == 4);
  CHECK(slots(AdapterType::cpu, 64, 1) == 64);
  CHECK(only_silicon(pool_of({card("cuda:0")})).slots == 4);
  CHECK(only_silicon(pool_of({card("cuda:0")}, {.lanes_per_device = 9})).slots == 9);
  const unsigned processors = base::usable_processors();
  CHECK(only_silicon(pool_of({card("cuda:0")}, {.slot_rule = SlotRule::host_share})).slots == processors);
  const ContextPool two = pool_of({card("cuda:0"), card("cuda:1", 202)}, {.slot_rule = SlotRule::host_share});
  for (const SiliconInfo& silicon : two.silicon()) CHECK(silicon.slots == std::max(1u, processors / 2));
}

TEST_CASE("devices of one processor share its slots", "[pool][slots]") {
  ContextPool pool = pool_of({card("cuda:0"), card("vulkan:0")}, {.lanes_per_device = 2, .slots = 2});
  std::optional<Lease> a = pool.try_lease({.on = "cuda:0", .tag = "preview"}).value();
  const Lease b = lease_elsewhere(pool, {.on = "vulkan:0"}).value();
  for (const char* on : {"cuda:0", "vulkan:0", ""}) {
    const auto none = lease_elsewhere(pool, {.on = on});
    REQUIRE_FALSE(none);
    CHECK(none.error() == Errc::unavailable);
    CHECK(contains(none.error(), ", 2 of 2 slots of 'scripted cuda:0' in use"));
  }
  a.reset();
  CHECK(pool.lease({.on = "vulkan:0", .deadline = 1ms}));
  const Lease c = lease_elsewhere(pool).value();
  CHECK(pool.lease({.on = "vulkan:0", .deadline = 1ms}).error() == Errc::timed_out);
}

TEST_CASE("leases of one thread share a slot, and keep it until the last of them ends", "[pool][slots]") {
  const Scripted device = card("cuda:0");
  ContextPool a = pool_of({device}, {.slots = 1}), b = pool_of({device}, {.slots = 1});
  std::optional<Lease> first = a.try_lease().value(), second = b.try_lease().value(),
                       third = a.try_lease().value();
  CHECK(only_silicon(a).used == 1);
  CHECK(only_silicon(a).leases.size() == 3);
  for (std::optional<Lease>* lease : {&first, &third, &second}) {
    CHECK(lease_elsewhere(a).error() == Errc::unavailable);
    lease->reset();
  }
  CHECK(only_silicon(a).used == 0);
  CHECK(lease_elsewhere(a));
}

TEST_CASE("a lease passes over a processor without a free slot", "[pool][slots]") {
  ContextPool pool =
      pool_of({card("cuda:0"), card("cuda:1", 202), card("vulkan:0")}, {.lanes_per_device = 2, .slots = 1});
  const Lease first = lease_elsewhere(pool).value(), second = lease_elsewhere(pool).value();
  CHECK(first.device().id() == "cuda:0");
  CHECK(second.device().id() == "cuda:1");
  CHECK(lease_elsewhere(pool).error() == Errc::unavailable);
}

TEST_CASE("a slot that a lease of one device leaves serves a request for another one", "[pool][slots]") {
  const test::CountingClock clock;
  ContextPool pool =
      pool_of({card("cuda:0"), card("vulkan:0")}, {.lanes_per_device = 2, .slots = 1, .clock = &clock});
  std::optional<Lease> held = pool.lease({.on = "cuda:0"}).value();
  Waiting waiting(pool, clock, {.on = "vulkan:0"});
  CHECK(only_silicon(pool).waiting == 1);
  held.reset();
  CHECK(waiting.get().value().device().id() == "vulkan:0");
}

TEST_CASE("pools share the slots of a processor, and are served in the order of their requests",
          "[pool][slots]") {
  const test::CountingClock clock_a, clock_b;
  const Scripted device = card("cuda:0");
  ContextPool a = pool_of({device}, {.lanes_per_device = 4, .slots = 1, .clock = &clock_a}),
              b = pool_of({device}, {.lanes_per_device = 4, .slots = 1, .clock = &clock_b});
  std::optional<Lease> held = a.lease().value();
  CHECK(lease_elsewhere(b).error() == Errc::unavailable);
  Waiting first(b, clock_b), second(a, clock_a), urgent(b, clock_b, {.priority = Priority::high});
  held.reset();
  {
    const auto lease = urgent.get();
    CHECK(lease);
    CHECK(lease_elsewhere(a).error() == Errc::unavailable);
    CHECK_FALSE(first.has_returned());
  }
  {
    const auto lease = first.get();
    CHECK(lease);
    CHECK_FALSE(second.has_returned());
  }
  CHECK(second.get());
}

TEST_CASE("the smallest number of slots holds while its pool is open", "[pool][slots]") {
  const test::CountingClock clock;
  const Scripted device = card("cuda:0");
  ContextPool many = pool_of({device}, {.lanes_per_device = 4, .slots = 3, .clock = &clock});
  std::optional<ContextPool> few = pool_of({device}, {.slots = 1});
  CHECK(only_silicon(many).slots == 1);
  const Lease held = many.lease().value();
  Waiting waiting(many, clock);
  few.reset();
  CHECK(waiting.get());
  CHECK(only_silicon(many).slots == 3);
}

TEST_CASE("a request that lost the context it could use does not keep a slot from others", "[pool][slots]") {
  const test::CountingClock clock_a, clock_b;
  const Scripted device = card("cuda:0");
  ContextPool a = pool_of({device}, {.lanes_per_device = 1, .slots = 1, .clock = &clock_a}),
              b = pool_of({device}, {.lanes_per_device = 2, .slots = 1, .clock = &clock_b});
  std::optional<Lease> held = b.lease().value();
  Waiting first(a, clock_a);
  // A transfer needs no slot, and takes the context.
  std::optional<Lease> transfer = base::state_of(a)->leases().lease_for(*device, Instant::max()).value();
  Waiting second(b, clock_b);
  held.reset();
  {
    const auto lease = second.get();
    CHECK(lease);
    CHECK_FALSE(first.has_returned());
    transfer.reset();
    CHECK_FALSE(first.has_returned());
  }
  CHECK(first.get());
}

TEST_CASE("jobs need a slot, and transfers do not", "[pool][slots]") {
  const Scripted device = card("cuda:0");
  ContextPool pool = pool_of({device}, {.lanes_per_device = 3, .slots = 1, .lease_timeout = 1ms});
  const auto state = base::state_of(pool);
  {
    const Lease job = state->leases().lease_on(*device, Clock::steady().now()).value();
    CHECK(state->leases().lease_on(*device, Clock::steady().now()).error() == Errc::timed_out);
    CHECK(pool.try_lease().error() == Errc::unavailable);
    CHECK(state->leases().lease_for(*device, Instant::max()));
    CHECK(state->leases().lease_copies(device->ref()));
    CHECK(only_silicon(pool).leases.size() == 1);
  }
  CHECK(only_silicon(pool).leases.empty());
}

TEST_CASE("threads that wait for each other's slots and contexts without end are refused", "[pool][slots]") {
  ContextPool pool = pool_of({card("cuda:0"), card("cuda:1", 202)}, {.lanes_per_device = 2, .slots = 1});
  std::atomic<bool> is_held{false};
  std::unique_ptr<Lease> mine = std::make_unique<Lease>(pool.lease({.on = "cuda:0"}).value());
  std::thread other([&] {
    const Lease lease = pool.lease({.on = "cuda:1"}).value();
    is_held = true;
    CHECK(pool.lease({.on = "cuda:0", .deadline = Deadline::never()}));
  });
  while (!is_held) std::this_thread::yield();
  while (pool.silicon()[0].waiting == 0) std::this_thread::yield();
  const auto none = pool.lease({.on = "cuda:1", .deadline = Deadline::never()});
  CHECK(none.error() == Errc::unavailable);
  CHECK(contains(none.error(), "all slots belong to this thread or to threads that wait for it"));
  CHECK(contains(none.error(), "'cuda:1#0' was leased at slots_test.cpp:"));
  mine.reset();
  other.join();
}

TEST_CASE("a processor lists its slots, leases and memory, of all pools", "[pool][slots]") {
  const Scripted cuda = card("cuda:0"), vulkan = card("vulkan:0");
  ContextPool a = pool_of({cuda, vulkan}), b = pool_of({cuda});
  Lease preview = a.lease({.on = "vulkan:0", .tag = "preview"}).value(),
        model = b.lease({.tag = "model"}).value();
  const Buffer small = preview.buffer<std::byte>(100).value(), large = model.buffer<std::byte>(1000).value();
  const SiliconInfo info = only_silicon(a);
  CHECK(info.name == "scripted cuda:0");
  REQUIRE(info.devices.size() == 2);
  CHECK((info.devices[0].id == "cuda:0" && info.devices[1].id == "vulkan:0"));
  CHECK(info.slots == 4);
  CHECK(info.waiting == 0);
  REQUIRE(info.leases.size() == 2);
  const auto& [theirs, own] = std::pair(info.leases[0], info.leases[1]);
  CHECK(own.context == preview.id());
  CHECK(own.tag == "preview");
  CHECK(own.is_own);
  CHECK(own.age >= Duration::zero());
  CHECK(own.taken_at.starts_with("slots_test.cpp:"));
  CHECK(theirs.context == model.id());
  CHECK(theirs.tag == "model");
  CHECK_FALSE(theirs.is_own);
  std::string memory;
  for (const MemoryShare& share : info.memory)
    if (share.held != Bytes{}) memory += share.level + " " + share.owner + " " + to_string(share.held) + "; ";
  CHECK(memory ==
        "silicon scripted cuda:0 1.07 KiB; runtime cuda:0 100 bytes; context vulkan:0#0 100 bytes; "
        "runtime cuda:0 1000 bytes; context cuda:0#0 1000 bytes; ");
}

TEST_CASE("threads of several pools never use more slots than there are, and each is served",
          "[pool][slots]") {
  constexpr std::uint32_t slots = 2;
  const Scripted cuda = card("cuda:0"), vulkan = card("vulkan:0");
  std::vector<ContextPool> pools;
  for (int i = 0; i < 3; ++i)
    pools.push_back(pool_of({cuda, vulkan}, {.lanes_per_device = 2, .slots = slots, .lease_timeout = 60s}));
  std::atomic<std::uint32_t> used{0}, most{0};
  std::atomic<int> leases{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      std::minstd_rand random(t + 1);
      for (int i = 0; i < 500; ++i) {
        const char* const on[] = {"cuda:0", "vulkan:0", ""};
        LeaseRequest request{.on = on[random() % 3], .priority = static_cast<Priority>(random() % 3)};
        if (random() % 4 == 0) request.deadline = std::chrono::microseconds(random() % 200);
        const auto lease = pools[random() % pools.size()].lease(request);
        if (!lease) {
          if (!request.deadline || lease.error() != Errc::timed_out) FAIL_CHECK(lease.error().sentence());
          continue;
        }
        const std::uint32_t now = ++used;
        for (std::uint32_t known = most; known < now && !most.compare_exchange_weak(known, now);) {
        }
        ++leases;
        if (random() % 8 == 0) std::this_thread::yield();
        --used;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(most <= slots);
  CHECK(leases >= 8 * 500 / 2);
  for (const ContextPool& pool : pools) CHECK(only_silicon(pool).leases.empty());
}
