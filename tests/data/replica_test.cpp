// Replicas of arrays: what they are charged to, and when they give way.
#include <wye/pool/context_pool.hpp>
#include <wye/runtime/runtime.hpp>

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "data/array_state.hpp"
#include "pool/discovery.hpp"
#include "support/catch.hpp"
#include "support/device/memory_device.hpp"

using namespace wye;
using namespace wye::literals;
using namespace std::chrono_literals;

namespace {

/// Two scripted devices with one context each, and arrays of 1000 bytes.
struct Scene {
  std::shared_ptr<test::MemoryDevice> a = std::make_shared<test::MemoryDevice>("scripted:0");
  std::shared_ptr<test::MemoryDevice> b = std::make_shared<test::MemoryDevice>("scripted:1");
  std::shared_ptr<pool::Pool> pool = pool::Pool::open(
      {.lanes_per_device = 1, .lease_timeout = 60s}, {.adapters = {a->info(), b->info()}, .devices = {a, b}});

  std::shared_ptr<data::ArrayState> array(std::uint8_t first = 0) const {
    std::vector<std::uint8_t> values(1000);
    std::iota(values.begin(), values.end(), first);
    return data::ArrayState::make(pool, std::as_bytes(std::span(values)), 1000, ElementType::uint8, 1);
  }
  static std::vector<std::uint8_t> contents(const std::shared_ptr<data::ArrayState>& array) {
    const auto view = Array<std::uint8_t>(array).read(60s).value();
    return {view.begin(), view.end()};
  }
  Bytes held(const device::DeviceBase& device) const { return pool->accounts().of(device)->held(); }
};

/// A job's turn with an array.
struct Turn {
  Turn(data::ArrayState& array, Access access) { array.follow(access, array.all(), completion, before); }
  ~Turn() { completion->complete(); }
  std::shared_ptr<data::Completion> completion = std::make_shared<data::Completion>();
  data::Predecessors before;
};

}  // namespace

TEST_CASE("a replica is charged to the pool while it lives", "[data]") {
  const Scene scene;
  auto array = scene.array();
  REQUIRE(array->transfer_to(*scene.a, Instant::max()));
  CHECK(scene.held(*scene.a) == 1000_B);
  CHECK(scene.held(*scene.b) == 0_B);
  CHECK(scene.pool->metrics_locked().bytes == 1000_B);
  CHECK(scene.a->memory().in_use == 1000_B);
  REQUIRE(array->transfer_to(*scene.b, Instant::max()));
  CHECK(scene.pool->metrics_locked().bytes == 2000_B);
  array.reset();
  CHECK(scene.pool->metrics_locked().bytes == 0_B);
  CHECK(scene.a->memory().in_use == 0_B);
}

TEST_CASE("a spare replica gives way to an allocation that the device refuses", "[data]") {
  const Scene scene;
  const auto array = scene.array();
  REQUIRE(array->transfer_to(*scene.a, Instant::max()));
  scene.a->refuse_buffers = 1;
  REQUIRE(Device(scene.a).buffer<std::byte>(10));
  CHECK(scene.held(*scene.a) == 0_B);
  REQUIRE(array->transfer_to(*scene.a, Instant::max()));  // it comes back when it is needed
  CHECK(scene.held(*scene.a) == 1000_B);
  CHECK(Scene::contents(array) == Scene::contents(scene.array()));
  scene.a->refuse_buffers = 1;
  REQUIRE(Device(scene.a).buffer<std::byte>(10));  // and gives way again
  CHECK(scene.held(*scene.a) == 0_B);
}

TEST_CASE("a replica that is not spare stays", "[data]") {
  const Scene scene;
  const auto array = scene.array();
  const auto buffer = array->transfer_to(*scene.a, Instant::max()).value();
  const auto refuse = [&] {
    scene.a->refuse_buffers = 2;  // also after the lanes of idle contexts gave way
    CHECK_FALSE(Device(scene.a).buffer<std::byte>(10));
    CHECK(scene.held(*scene.a) == 1000_B);
    scene.a->refuse_buffers = 0;
  };
  SECTION("because its buffer is held by something else") { refuse(); }
  const_cast<std::shared_ptr<device::BufferBase>&>(buffer).reset();
  SECTION("because a job writes another copy, and may fail") {
    array->begin_write();
    refuse();
    array->end_write();
  }
  SECTION("because it is the only valid copy") {
    array->mark_written_on(scene.a.get());
    refuse();
    CHECK(Scene::contents(array) == Scene::contents(scene.array()));
  }
}

TEST_CASE("a replica gives way while users of its array wait", "[data]") {
  const Scene scene;
  const auto array = scene.array();
  REQUIRE(array->transfer_to(*scene.a, Instant::max()));
  const Turn first(*array, Access::read), second(*array, Access::write);
  scene.a->refuse_buffers = 1;
  CHECK(Device(scene.a).buffer<std::byte>(10));
  CHECK(scene.held(*scene.a) == 0_B);
}

TEST_CASE("the least recently used replica gives way first, each is counted, and a sole copy stays",
          "[data]") {
  const Scene scene;
  std::vector<std::shared_ptr<data::ArrayState>> arrays;
  for (std::uint8_t i = 0; i < 4; ++i) {
    arrays.push_back(scene.array(i));
    REQUIRE(arrays.back()->transfer_to(*scene.a, Instant::max()));
  }
  for (const std::size_t used : {2u, 0u, 3u}) REQUIRE(arrays[used]->transfer_to(*scene.a, Instant::max()));
  int evicted = 0;
  auto events = scene.pool->journal().listen<base::Evicted>([&](const base::Evicted& event) {
    if (std::string_view(event.name) == "array" && event.bytes == arrays[0]->bytes()) ++evicted;
  });
  arrays[1]->mark_written_on(scene.a.get());  // used least recently, and valid nowhere else
  const auto is_there = [&](std::size_t i) {
    return arrays[i]->valid_elsewhere(nullptr, data::IntervalSet(arrays[i]->all()));
  };
  const std::vector<std::vector<bool>> after{{true, true, false, true}, {false, true, false, true}};
  for (std::size_t n = 0; n < after.size(); ++n) {
    scene.a->refuse_buffers = 1;
    REQUIRE(Device(scene.a).buffer<std::byte>(10));
    for (std::size_t i = 0; i < 4; ++i) CHECK(is_there(i) == after[n][i]);
    CHECK(scene.pool->metrics_locked().evictions == n + 1);
  }
  CHECK((scene.pool->journal().flush() && evicted == 2));
  for (std::uint8_t i = 0; i < 4; ++i) CHECK(Scene::contents(arrays[i]) == Scene::contents(scene.array(i)));
}

TEST_CASE("a replica with stale contents gives way", "[data]") {
  const Scene scene;
  const auto array = scene.array();
  REQUIRE(array->transfer_to(*scene.a, Instant::max()));
  array->mark_written_on(nullptr);
  scene.a->refuse_buffers = 1;
  CHECK(Device(scene.a).buffer<std::byte>(10));
  CHECK(scene.held(*scene.a) == 0_B);
}

TEST_CASE("a replica is moved with the contents that are valid, and charged once", "[data]") {
  const Scene scene;
  const auto array = scene.array();
  const auto before = array->transfer_to(*scene.a, Instant::max()).value()->id();
  array->mark_written_on(scene.a.get());
  int moves = 0;
  scene.a->after_copy = [&] { ++moves; };
  SECTION("if nothing uses it") {
    scene.a->defragment();
    CHECK(array->replica_on(*scene.a)->id() != before);
    CHECK(moves == 1);
    CHECK(scene.held(*scene.a) == 1000_B);
    CHECK(Scene::contents(array) == Scene::contents(scene.array()));
  }
  SECTION("not while a job writes another copy") {
    array->begin_write();
    scene.a->defragment();
    array->end_write();
    CHECK(array->replica_on(*scene.a)->id() == before);
    CHECK(moves == 0);
  }
  SECTION("not if there is no memory for the copy") {
    scene.a->refuse_buffers = 1;
    scene.a->defragment();
    CHECK(array->replica_on(*scene.a)->id() == before);
    CHECK(Scene::contents(array) == Scene::contents(scene.array()));
  }
}

TEST_CASE("what a user writes while a replica is moved is not lost", "[data]") {
  const Scene scene;
  const auto array = scene.array();
  REQUIRE(array->transfer_to(*scene.a, Instant::max()));
  array->mark_written_on(scene.a.get());
  scene.a->after_copy = [&] {
    const auto buffer = array->replica_on(*scene.a);
    buffer->host()[7] = std::byte{99};
    array->mark_written_on(scene.a.get());
  };
  scene.a->defragment();
  std::vector<std::uint8_t> expected = Scene::contents(scene.array());
  expected[7] = 99;
  CHECK(Scene::contents(array) == expected);
}

TEST_CASE("eight threads read arrays while their replicas give way; contents and charges stay right",
          "[data]") {
  const Scene scene;
  std::vector<std::shared_ptr<data::ArrayState>> arrays;
  for (std::uint8_t i = 0; i < 4; ++i) arrays.push_back(scene.array(i));
  std::atomic<int> failures{0};
  std::atomic<int> moves{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (unsigned i = 0; i < 200; ++i) {
        const auto& array = arrays[(t + i) % arrays.size()];
        test::MemoryDevice& device = (i / 4 + t) % 2 == 0 ? *scene.a : *scene.b;
        const Turn turn(*array, Access::read);
        if (i % 3 == 0) device.refuse_buffers = 1;
        const auto buffer = array->transfer_to(device, Instant::max());
        if (!buffer) {
          if (buffer.error() != Errc::out_of_memory) ++failures;
          continue;
        }
        ++moves;
        const std::byte* bytes = (*buffer)->host();
        for (std::size_t n = 0; n < 1000; ++n)
          failures += bytes[n] != static_cast<std::byte>((t + i) % arrays.size() + n);
      }
    });
  for (auto& thread : threads) thread.join();
  CHECK(failures == 0);
  CHECK(moves > 0);
  scene.a->refuse_buffers = scene.b->refuse_buffers = 0;
  arrays.clear();
  CHECK(scene.pool->metrics_locked().bytes == 0_B);
  CHECK(scene.a->memory().in_use == 0_B);
  CHECK(scene.b->memory().in_use == 0_B);
}
