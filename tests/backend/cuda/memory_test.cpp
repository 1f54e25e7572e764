// Memory of lanes: pools, quotas, kept memory.
#include <array>
#include <random>
#include <utility>
#include <vector>

#include "backend/cuda/rig.hpp"
#include "device/native.hpp"

namespace wye::test {
namespace {

std::shared_ptr<MemoryAccount> account(const char* name, Bytes limit) {
  return std::make_shared<MemoryAccount>(name, limit);
}

std::shared_ptr<DeviceBase> open_keeping(Bytes kept) {
  BackendOptions options;
  options.cuda_driver = WYE_STAND_IN_CUDA;
  options.kept_memory = kept;
  return good(discover(options).at(0).adapter->open());
}

/// Waits for the device, so that the driver releases the memory that pools keep above their
/// threshold. Memory freed before is in its pool by then.
void settle(const std::shared_ptr<DeviceBase>& device) {
  (void)device->native_interop()->native_memory(
      *good(device->create_buffer({.bytes = 16_B, .account = nullptr})));
}

}  // namespace

TEST_CASE("all accounts of a device share one pool, and the memory that it keeps", "[cuda]") {
  const StandIn stand_in;
  const auto device = good(discover().at(0).adapter->open());
  const auto take = [&](const std::shared_ptr<MemoryAccount>& from) {
    return good(device->create_buffer({.bytes = 1_MiB, .account = from}));
  };
  const auto first = account("a", 4_MiB), second = account("b", 4_MiB);
  { const auto a = take(first), b = take(second), c = take(nullptr); }
  CHECK(stand_in.alive()["pools"] == 1);
  settle(device);
  const auto a = take(first), b = take(first), c = take(first);
  CHECK(stand_in.reserved() <= 3_MiB + 64_B);
  CHECK(device->reserved_memory() == stand_in.reserved());
  CHECK(first->held() == 3_MiB);
}

TEST_CASE("a device keeps freed memory up to `kept_memory`", "[cuda]") {
  const StandIn stand_in;
  for (const auto& [kept, expected] :
       {std::pair{0_MiB, 0_MiB}, std::pair{3_MiB, 3_MiB}, std::pair{64_MiB, 5_MiB}}) {
    const auto device = open_keeping(kept);
    const auto lane = account("a lane", 8_MiB), other = account("another lane", 8_MiB);
    std::vector<std::shared_ptr<BufferBase>> buffers;
    for (int i = 0; i < 5; ++i)
      buffers.push_back(good(device->create_buffer({.bytes = 1_MiB, .account = i % 2 == 0 ? lane : other})));
    CHECK(stand_in.reserved() == 5_MiB);
    buffers.clear();
    settle(device);
    settle(device);
    CHECK((stand_in.reserved() >= expected && stand_in.reserved() <= expected + 64_B));
    const MemoryInfo memory = device->memory();
    CHECK(memory.available + 64_B >= memory.total);  // kept memory is available to all lanes
  }
}

TEST_CASE("a lane receives the memory that another lane has freed", "[cuda]") {
  const Setting little("WYE_STANDIN_MEMORY", "67108864");
  const StandIn stand_in;
  const auto device = good(discover().at(0).adapter->open());
  const auto first = account("the first", 64_MiB), second = account("the second", 64_MiB);
  { const auto all = good(device->create_buffer({.bytes = 48_MiB, .account = first})); }
  settle(device);
  const auto buffer = good(device->create_buffer({.bytes = 48_MiB, .account = second}));
  CHECK(stand_in.calls("cuMemPoolTrimTo") == 0);
  auto much = device->create_buffer({.bytes = 32_MiB, .account = first});
  REQUIRE_FALSE(much);
  CHECK(much.error() == Errc::out_of_memory);
  CHECK(stand_in.calls("cuMemPoolTrimTo") == 1);
  INFO(much.error().sentence());
  CHECK(much.error().sentence().find("(" + to_string(16_MiB) + " of ") != std::string::npos);
  CHECK(first->held() == 0_B);
  CHECK(second->held() == 48_MiB);
}

TEST_CASE("a lane that has spent its limit takes nothing from another", "[cuda]") {
  const StandIn stand_in;
  const auto device = good(discover().at(0).adapter->open());
  const auto small = account("Context 'small'", 1_MiB), large = account("Context 'large'", 8_MiB);
  const auto held = good(device->create_buffer({.bytes = 700_KiB, .account = small}));
  auto over = device->create_buffer({.bytes = 700_KiB, .account = small});
  REQUIRE_FALSE(over);
  CHECK(over.error() == Errc::over_budget);
  CHECK(over.error().sentence().find("Context 'small'") != std::string::npos);
  CHECK(device->create_buffer({.bytes = 7_MiB, .account = large}));
}

TEST_CASE("memory moves between lanes with its last contents", "[cuda]") {
  const StandIn stand_in;
  const auto device = open_keeping(1_MiB);
  const std::array accounts{account("a", 8_MiB), account("b", 8_MiB), account("c", 8_MiB)};
  std::vector<std::unique_ptr<Lane>> lanes;
  for (std::size_t i = 0; i < accounts.size(); ++i)
    lanes.push_back(std::make_unique<Lane>(good(device->create_lane())));
  std::mt19937 random(20261122);
  std::vector<std::vector<Word>> got(150, std::vector<Word>(length));
  for (std::size_t round = 0; round < got.size(); ++round) {
    const std::size_t from = random() % lanes.size(), to = random() % lanes.size();
    auto source = good(device->create_buffer({.bytes = Bytes{4 * length}, .account = accounts[from]}));
    auto target = good(device->create_buffer({.bytes = Bytes{4 * length}, .account = accounts[to]}));
    lanes[from]->fill(range(source), static_cast<Word>(round + 1));
    const TimelinePoint written = lanes[from]->submit();
    lanes[to]->wait_for(written);
    lanes[to]->copy(range(source), range(target));
    lanes[to]->download(range(target), writable_bytes_of(got[round]));
    lanes[to]->submit();  // the test no longer holds the buffers
    if (random() % 8 == 0) REQUIRE(lanes[to]->wait(Clock::steady().now() + std::chrono::seconds(60)));
  }
  for (const auto& lane : lanes) REQUIRE(lane->wait(Instant::max()));
  for (std::size_t round = 0; round < got.size(); ++round)
    REQUIRE(got[round] == std::vector<Word>(length, static_cast<Word>(round + 1)));
}

}  // namespace wye::test
