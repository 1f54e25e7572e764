// What only the CPU backend promises; the rest of it is in tests/contract.
#include <wye/device/buffer.hpp>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <mutex>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/host_info.hpp"
#include "device/backend.hpp"
#include "device/lane.hpp"
#include "support/catch.hpp"
#include "support/device/test_kernels.hpp"
#include "support/skip.hpp"

namespace wye::test {
namespace {

using namespace device;
using namespace literals;
using namespace std::chrono_literals;

std::shared_ptr<DeviceBase> cpu(const BackendOptions& options) {
  for (const BackendEntry& entry : backend_table())
    if (entry.name == "cpu") return entry.make()->discover(options).front().adapter->open().value();
  FAIL("there is no cpu backend");
  return nullptr;
}
std::shared_ptr<DeviceBase> cpu(unsigned threads = 0) {
  BackendOptions options;
  options.cpu_threads = threads;
  return cpu(options);
}

std::unique_ptr<Lane> lane_of(DeviceBase& device) {
  return std::make_unique<Lane>(device.create_lane().value());
}

std::shared_ptr<ExecutableBase> function(DeviceBase& device, HostFunction f, Extent3 tile = 1,
                                         ParamSchema schema = {}) {
  return device.create_executable(host_artefact("f", std::move(schema), std::move(f), tile)).value();
}

BufferRange range(const std::shared_ptr<BufferBase>& buffer) { return {buffer, Bytes{}, buffer->bytes()}; }

Instant in(Duration duration) { return Clock::steady().now() + duration; }

/// Something that happens once, that threads can wait for.
struct Event {
  std::atomic<bool> happened{false};
  void set() {
    happened = true;
    happened.notify_all();
  }
  void wait() { happened.wait(false); }
};

}  // namespace

TEST_CASE("the CPU says what it is", "[backend_cpu]") {
  const auto device = cpu();
  const AdapterInfo& info = device->info();
  const base::HostInfo host = base::host_info();
  CHECK(info.id == "cpu:0");
  CHECK(info.type == AdapterType::cpu);
  CHECK(info.name == host.processor);
  CHECK(info.device_uuid == host.machine);
  CHECK(info.memory == host.memory);
  CHECK(info.memory > 64_MiB);
  CHECK(device->memory().available <= device->memory().total);
  CHECK(device->memory().available > 0_B);
}

TEST_CASE("the size of the team is an option, and a size nobody can mean is an error", "[backend_cpu]") {
  for (const BackendEntry& entry : backend_table()) {
    if (entry.name != "cpu") continue;
    BackendOptions options;
    options.cpu_threads = 5000;
    auto opened = entry.make()->discover(options).front().adapter->open();
    REQUIRE_FALSE(opened);
    CHECK(opened.error() == Errc::invalid_argument);
  }
}

TEST_CASE("buffers of the CPU are aligned memory of the host", "[backend_cpu]") {
  const auto device = cpu();
  for (std::uint64_t size : {1u, 3u, 64u, 1000u, 1u << 20}) {
    const auto buffer = device->create_buffer({.bytes = Bytes{size}, .account = nullptr}).value();
    CHECK(buffer->address() % 64 == 0);
    CHECK(reinterpret_cast<std::uintptr_t>(buffer->host()) == buffer->address());
  }
}

TEST_CASE("memory of freed buffers serves buffers of about its size, up to `kept_memory`", "[backend_cpu]") {
  BackendOptions options;
  options.kept_memory = 20_MiB;
  const auto device = cpu(options);
  const auto create = [&](Bytes bytes) {
    return device->create_buffer({.bytes = bytes, .account = nullptr}).value();
  };
  const auto spare = [&] { return device->memory().spare; };
  create(8_MiB);
  REQUIRE(spare() == 8_MiB);
  CHECK(device->memory().in_use == 0_B);
  std::vector<std::shared_ptr<BufferBase>> others;
  for (const Bytes other : {8_MiB + 1_B, 7_MiB, 1_KiB}) others.push_back(create(other));
  CHECK(spare() == 8_MiB);
  {
    const Bytes held = device->memory().in_use, small = 8_MiB - 100_KiB;
    const auto buffer = create(small);
    CHECK(spare() == 0_B);
    CHECK((device->memory().in_use == held + small));
    std::fill_n(buffer->host(), buffer->bytes().count, std::byte{0x5a});
  }
  create(10_MiB);
  CHECK(spare() == 18_MiB);
  create(4_MiB);  // 22 MiB are above the limit: that kept longest goes
  CHECK(spare() == 14_MiB);
  create(21_MiB);
  CHECK(spare() == 14_MiB);
  others.pop_back();  // small buffers are not kept
  CHECK(spare() == 14_MiB);
  device->release_spare_memory();
  CHECK(spare() == 0_B);
}

TEST_CASE("the system may take the pages of kept memory", "[backend_cpu]") {
  const auto offered = [] {
    std::ifstream file("/proc/self/smaps_rollup");
    for (std::string line; std::getline(file, line);)
      if (line.starts_with("LazyFree:")) return std::stoull(line.substr(9)) << 10;
    return ~0ull;
  };
  if (offered() == ~0ull) return skip("the system does not report offered pages");
  const auto device = cpu();
  auto buffer = device->create_buffer({.bytes = 16_MiB, .account = nullptr}).value();
  std::fill_n(buffer->host(), buffer->bytes().count, std::byte{0x5a});
  const auto before = offered();
  buffer = nullptr;
  CHECK(offered() >= before + (15ull << 20));
  // Pages that are written again stay.
  buffer = device->create_buffer({.bytes = 16_MiB, .account = nullptr}).value();
  CHECK(device->memory().spare == 0_B);
  std::fill_n(buffer->host(), buffer->bytes().count, std::byte{0x5b});
  CHECK(offered() <= before + (1ull << 20));
}

TEST_CASE("more than the machine has is refused for now, in one sentence", "[backend_cpu]") {
  const auto device = cpu();
  const Bytes half{device->memory().total.count / 2 + 1};
  const auto account = std::make_shared<MemoryAccount>("a", half * 4, silicon::AccountLevel::context,
                                                       device->silicon()->account());
  const auto first = device->create_buffer({.bytes = half, .account = account});
  if (!first) return skip("the system refuses half of its memory: " + first.error().sentence());
  auto second = device->create_buffer({.bytes = half, .account = account});
  REQUIRE_FALSE(second);
  CHECK(second.error() == Errc::out_of_memory);
  CHECK(second.error().sentence().find("the rest of the budget of silicon") != std::string::npos);
  CHECK(account->held() == half);
  CHECK(device->memory().in_use == half);
}

TEST_CASE("who waits without a deadline runs what has not started", "[backend_cpu]") {
  const auto device = cpu();
  std::thread::id ran;
  const auto who = function(
      *device, [&](Range, std::span<const Operand>, const StopToken&) { ran = std::this_thread::get_id(); });
  auto lane = lane_of(*device);
  lane->dispatch(who, {}, 1);
  REQUIRE(lane->wait(Instant::max()));
  CHECK(ran == std::this_thread::get_id());
  lane->dispatch(who, {}, 1);
  REQUIRE(lane->wait(in(60s)));  // with a deadline somebody else must, or it could not be kept
  CHECK(ran != std::this_thread::get_id());
  // Unless the caller said it would; on a lane of its own, for a thread of the team may not be out
  // of the last one yet.
  auto other = lane_of(*device);
  other->dispatch(who, {}, 1);
  other->submit({}, true);
  REQUIRE(other->wait(in(60s)));
  CHECK(ran == std::this_thread::get_id());
}

TEST_CASE("a submission that nobody waits for runs by itself", "[backend_cpu]") {
  const auto device = cpu();
  Event ran;
  auto lane = lane_of(*device);
  lane->dispatch(function(*device, [&](Range, std::span<const Operand>, const StopToken&) { ran.set(); }), {},
                 1);
  lane->submit();
  ran.wait();
  CHECK(lane->wait(Instant::max()));
}

TEST_CASE("a wait keeps its deadline while a long kernel runs", "[backend_cpu]") {
  const auto device = cpu();
  Event go;
  auto lane = lane_of(*device);
  lane->dispatch(function(*device, [&](Range, std::span<const Operand>, const StopToken&) { go.wait(); }), {},
                 1);
  auto waited = lane->wait(in(5ms));
  REQUIRE_FALSE(waited);
  CHECK(waited.error() == Errc::timed_out);
  CHECK_FALSE(lane->idle());
  go.set();
  CHECK(lane->wait(in(60s)));
}

TEST_CASE("every item of a grid is run once, in runs no shorter than the tile", "[backend_cpu]") {
  const auto device = cpu(3);
  for (const Extent3 tile : {Extent3(1), Extent3(7), Extent3(whole), Extent3(whole, 2)}) {
    const Extent3 grid(13, 11, 3);
    std::mutex mutex;
    std::vector<int> times(grid.count());
    std::vector<std::uint64_t> lengths;
    const auto count = function(
        *device,
        [&](Range r, std::span<const Operand>, const StopToken&) {
          const std::lock_guard lock(mutex);
          CHECK(r.grid == grid);
          for (auto i : r) ++times[i];
          if (r.last != grid.count()) lengths.push_back(r.size());
        },
        tile);
    auto lane = lane_of(*device);
    lane->dispatch(count, {}, grid);
    REQUIRE(lane->wait(Instant::max()));
    CHECK(times == std::vector<int>(grid.count(), 1));
    const std::uint64_t grain = tile.y == 2 ? 26 : tile.x == whole ? 13 : tile.x;
    for (std::uint64_t length : lengths) CHECK(length % grain == 0);
  }
}

TEST_CASE("a grid no larger than its tile runs on one thread", "[backend_cpu]") {
  const auto device = cpu();
  int calls = 0;
  auto lane = lane_of(*device);
  lane->dispatch(
      function(
          *device, [&](Range r, std::span<const Operand>, const StopToken&) { calls += r.size() == 900; },
          1000),
      {}, 900);
  REQUIRE(lane->wait(Instant::max()));
  CHECK(calls == 1);
}

TEST_CASE("a host function gets operands in place, and values by their bytes", "[backend_cpu]") {
  struct Settings {
    double numbers[5];
  };
  const auto device = cpu();
  const auto buffer = device->create_buffer({.bytes = 400_B, .account = nullptr}).value();
  ParamSchema schema{
      {buffer_slot("x", Access::read_write),
       {.name = "p", .kind = SlotKind::address, .access = Access::read, .element = {}, .size = 8},
       {.name = "s", .kind = SlotKind::structure, .access = Access::read, .element = {}, .size = 40}}};
  bool right = false;
  const auto look = function(
      *device,
      [&](Range, std::span<const Operand> o, const StopToken&) {
        right = o[0].kind == Operand::Kind::host && o[0].data == buffer->host() + 40 && o[0].count == 20 &&
                o[1].kind == Operand::Kind::value && scalar<std::uint64_t>(o, 1) == buffer->address() &&
                scalar<Settings>(o, 2).numbers[4] == 2.5;
      },
      whole, schema);
  Operand address;
  address.kind = Operand::Kind::address;
  address.object = buffer;
  Arguments arguments;
  arguments.push_back(Buffer(buffer, ElementType::uint32, 4).operand(Access::read_write, 10, 20));
  arguments.push_back(address);
  arguments.push_back(Operand::of_value(Settings{{0, 0, 0, 0, 2.5}}));
  auto lane = lane_of(*device);
  lane->dispatch(look, arguments, 20);
  REQUIRE(lane->wait(Instant::max()));
  CHECK(right);
}

TEST_CASE("a host function hears that it is to stop", "[backend_cpu]") {
  const auto device = cpu();
  std::atomic<bool> stop{false};
  Event started;
  auto lane = lane_of(*device);
  lane->dispatch(function(*device,
                          [&](Range, std::span<const Operand>, const StopToken& token) {
                            started.set();
                            while (!token.stop_requested()) std::this_thread::yield();
                          }),
                 {}, 1);
  lane->submit(StopToken(&stop));
  started.wait();
  CHECK_FALSE(lane->wait(in(1ms)));
  stop = true;
  CHECK(lane->wait(in(60s)));
}

TEST_CASE("only the first of many failures of one kernel is told", "[backend_cpu]") {
  const auto device = cpu(4);
  std::atomic<int> thrown{0};
  auto lane = lane_of(*device);
  lane->dispatch(function(*device,
                          [&](Range r, std::span<const Operand>, const StopToken&) {
                            ++thrown;
                            throw std::runtime_error("item " + std::to_string(r.first));
                          }),
                 {}, 100000);
  auto waited = lane->wait(Instant::max());
  REQUIRE_FALSE(waited);
  CHECK(waited.error() == Errc::kernel_failed);
  CHECK(waited.error().sentence().find("Kernel 'f' failed on 'cpu:0': item ") == 0);
  CHECK(thrown <= 4);  // the rest of the grid is left alone
}

TEST_CASE("what a host function throws is told by its own words", "[backend_cpu]") {
  const auto device = cpu();
  const auto sentence = [&](HostFunction f) {
    auto lane = lane_of(*device);
    lane->dispatch(function(*device, std::move(f)), {}, 1);
    return lane->wait(Instant::max()).error().sentence();
  };
  CHECK(sentence([](Range, std::span<const Operand>, const StopToken&) {
          throw 5;
        }).find("not a std::exception") != std::string::npos);
  CHECK(sentence([](Range, std::span<const Operand>, const StopToken&) {
          Result<int>(Error(Errc::not_found, "File 'x' is missing.")).value();
        }) == "Kernel 'f' failed on 'cpu:0': File 'x' is missing.");
}

TEST_CASE("host functions may use lanes, even where all threads are inside one", "[backend_cpu]") {
  for (unsigned threads : {1u, 2u}) {
    for (const bool deadline : {false, true}) {
      const auto device = cpu(threads);
      std::atomic<int> inner{0};
      const auto leaf = function(*device, [&](Range r, std::span<const Operand>, const StopToken&) {
        inner += static_cast<int>(r.size());
      });
      const auto nested = function(
          *device,
          [&](Range, std::span<const Operand>, const StopToken&) {
            for (int i = 0; i < 3; ++i) {
              auto lane = lane_of(*device);
              lane->dispatch(leaf, {}, 1000);
              lane->submit();
              lane->dispatch(leaf, {}, 1000);
              if (!lane->wait(deadline ? in(60s) : Instant::max())) inner = -1000000;
              lane->dispatch(leaf, {}, 1000);
              lane->submit();  // the lane ends while it is still queued
            }
          },
          1);
      std::vector<std::unique_ptr<Lane>> lanes;
      for (int i = 0; i < 4; ++i) {
        lanes.push_back(lane_of(*device));
        lanes.back()->dispatch(nested, {}, 4);
        lanes.back()->submit();
      }
      for (auto& lane : lanes) REQUIRE(lane->wait(in(60s)));
      // A run of the outer grid may be several of its items.
      CHECK(inner % 9000 == 0);
      CHECK(inner > 0);
    }
  }
}

TEST_CASE("a chain of lanes that wait for each other needs no thread to wait", "[backend_cpu]") {
  const auto device = cpu(1);
  const auto gate = device->create_timeline().value();
  std::vector<int> order;
  std::vector<std::unique_ptr<Lane>> lanes;
  TimelinePoint before{gate, 1};
  for (int i = 0; i < 50; ++i) {
    lanes.push_back(lane_of(*device));
    lanes.back()->wait_for(before);
    lanes.back()->dispatch(function(*device, [&order, i](Range, std::span<const Operand>,
                                                         const StopToken&) { order.push_back(i); }),
                           {}, 1);
    before = lanes.back()->submit();
  }
  auto bystander = lane_of(*device);  // the one thread of the team is free
  bystander->dispatch(function(*device, [](Range, std::span<const Operand>, const StopToken&) {}), {}, 1);
  REQUIRE(bystander->wait(in(60s)));
  CHECK(order.empty());
  REQUIRE(gate->signal(1));
  REQUIRE(lanes.back()->wait(in(60s)));
  std::vector<int> wanted(50);
  std::iota(wanted.begin(), wanted.end(), 0);
  CHECK(order == wanted);
}

TEST_CASE("uploads that nothing is before are done when submit returns", "[backend_cpu]") {
  const auto device = cpu();
  const auto buffer = device->create_buffer({.bytes = 8_B, .account = nullptr}).value();
  const std::vector<std::byte> bytes(8, std::byte{7});
  auto lane = lane_of(*device);
  lane->upload(bytes, range(buffer));
  lane->submit();
  CHECK(lane->idle());
  CHECK(std::equal(bytes.begin(), bytes.end(), buffer->host()));
}

TEST_CASE("lanes, timelines and waiters race without losing each other", "[backend_cpu]") {
  const auto device = cpu(3);
  const auto buffer = device->create_buffer({.bytes = 8_B, .account = nullptr}).value();
  const auto step = function(*device, [&](Range, std::span<const Operand>, const StopToken&) {
    std::uint64_t value = 0;
    std::memcpy(&value, buffer->host(), 8);
    value = value * 3 + 1;
    std::memcpy(buffer->host(), &value, 8);
  });
  std::memset(buffer->host(), 0, 8);
  std::uint64_t wanted = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<std::unique_ptr<Lane>> lanes;
    TimelinePoint before;
    for (int i = 0; i < 6; ++i) {
      lanes.push_back(lane_of(*device));
      if (before.timeline) lanes.back()->wait_for(before);
      lanes.back()->dispatch(step, {}, 1);
      before = lanes.back()->submit({}, i % 3 == 2 && round % 2 == 0);
      wanted = wanted * 3 + 1;
      if (i % 3 == 2) REQUIRE(lanes.back()->wait(round % 3 == 0 ? in(60s) : Instant::max()));
    }
    if (round % 2 == 0) lanes.front().reset();
  }
  std::uint64_t got = 0;
  std::memcpy(&got, buffer->host(), 8);
  CHECK(got == wanted);
}

}  // namespace wye::test
