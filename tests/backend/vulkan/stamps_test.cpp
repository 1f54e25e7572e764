// Stamps as timestamp queries: the arithmetic of their clock, and the calls that they make.
#include "device/stamps.hpp"

#include <limits>
#include <optional>

#include "backend/vulkan/driver.hpp"
#include "backend/vulkan/rig.hpp"
#include "backend/vulkan/vulkan_stamps.hpp"

namespace wye::test {
namespace {

using vulkan::QueueClock;

void stamp_fill(Lane& lane, const std::shared_ptr<BufferBase>& buffer,
                const std::shared_ptr<StampsBase>& stamps) {
  lane.stamp_begin(stamps);
  lane.fill(range(buffer), 1);
  lane.stamp_end(stamps);
}

std::shared_ptr<vulkan::VulkanDevice> open_with(Driver& driver) {
  VulkanOptions options;
  options.wrap = driver.wrap();
  return open_device(options);
}

std::shared_ptr<BufferBase> buffer_on(vulkan::VulkanDevice& device) {
  return good(device.create_buffer({.bytes = 400_B, .account = nullptr}));
}

}  // namespace

TEST_CASE("timestamps become times: periods, valid bits, and a clock that wraps around", "[vulkan]") {
  struct Row {
    QueueClock clock;
    std::uint64_t begin, end;
    std::optional<std::pair<std::int64_t, std::int64_t>> wanted;  // nanoseconds
  };
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  const Row rows[] = {
      {{64, 1.0f}, 1000, 1500, std::pair{1000, 1500}},
      {{64, 1.0f}, 1000, 1000, std::pair{1000, 1000}},
      {{64, 10.0f}, 7, 9, std::pair{70, 90}},
      {{64, 0.5f}, 10, 21, std::pair{5, 10}},
      {{64, 52.083332f}, 19'200'000, 38'400'000, std::pair{999'999'975, 1'999'999'950}},
      {{36, 1.0f},
       (1ull << 36) - 10,
       5,
       std::pair{(std::int64_t{1} << 36) - 10, (std::int64_t{1} << 36) + 5}},
      {{36, 1.0f},
       0xf000'0000'0000'0010,
       0x0000'0000'0000'0030,
       std::pair{16, 48}},  // bits that mean nothing
      {{64, 1.0f},
       (1ull << 61) + 1,  // a double has no such number
       (1ull << 61) + 3,
       std::pair{(std::int64_t{1} << 61) + 1, (std::int64_t{1} << 61) + 3}},
      {{64, 1.0f}, most - 1, 3, std::pair{(std::int64_t{1} << 62) - 2, (std::int64_t{1} << 62) + 3}},
      {{64, 1.0f}, 1500, 1000, std::nullopt},  // the end is before the begin
      {{36, 1.0f}, 20, 10, std::nullopt},
      {{36, 1.0f}, 0, 1ull << 35, std::nullopt},  // too long to be told from that
  };
  for (const Row& row : rows) {
    INFO(row.clock.valid_bits << " bits, " << row.clock.period << " ns, " << row.begin << " to " << row.end);
    const auto times = row.clock.times(row.begin, row.end);
    REQUIRE(times.has_value() == row.wanted.has_value());
    if (!times) continue;
    CHECK(times->clock == StampClock::device);
    CHECK(times->begin.count() == row.wanted->first);
    CHECK(times->end.count() == row.wanted->second);
  }
  CHECK(QueueClock{64, 1.0f}.exists());
  CHECK_FALSE(QueueClock{0, 1.0f}.exists());
  CHECK_FALSE(QueueClock{64, 0.0f}.exists());
}

TEST_CASE("a queue without valid bits or without a period has no stamps", "[vulkan]") {
  Driver driver;
  bool has_bits = false;
  driver.replace<PFN_vkGetPhysicalDeviceQueueFamilyProperties>(
      "vkGetPhysicalDeviceQueueFamilyProperties",
      [&](auto real, VkPhysicalDevice device, std::uint32_t* count, VkQueueFamilyProperties* families) {
        real(device, count, families);
        for (std::uint32_t i = 0; families && !has_bits && i < *count; ++i)
          families[i].timestampValidBits = 0;
      });
  driver.replace<PFN_vkGetPhysicalDeviceProperties2>(
      "vkGetPhysicalDeviceProperties2",
      [&](auto real, VkPhysicalDevice device, VkPhysicalDeviceProperties2* properties) {
        real(device, properties);
        if (has_bits) properties->properties.limits.timestampPeriod = 0;
      });
  for (const bool next : {false, true}) {
    has_bits = next;
    const auto device = open_with(driver);
    const auto stamps = device->create_stamps();
    REQUIRE_FALSE(stamps);
    CHECK(stamps.error() == Errc::unsupported);
    INFO(stamps.error().sentence());
    CHECK(stamps.error().sentence().find(next ? "a period of 0 ns" : "0 bits") != std::string::npos);
    Lane lane(good(device->create_lane({})));
    stamp_fill(lane, buffer_on(*device), nullptr);
    settle(lane);
  }
  CHECK(driver.calls("vkCreateQueryPool") == 0);
}

TEST_CASE("queries are reused, and submissions without stamps make no call for them", "[vulkan]") {
  Driver driver;
  const auto device = open_with(driver);
  const auto buffer = buffer_on(*device);
  Lane lane(good(device->create_lane({})));
  for (int i = 0; i < 10; ++i) {
    lane.fill(range(buffer), 1);
    settle(lane);
  }
  for (const char* call :
       {"vkCreateQueryPool", "vkCmdResetQueryPool", "vkCmdWriteTimestamp", "vkCmdCopyQueryPoolResults"})
    CHECK(driver.calls(call) == 0);
  for (int round = 0; round < 10; ++round) {
    std::vector<std::shared_ptr<StampsBase>> all;
    for (int i = 0; i < 32; ++i) {
      all.push_back(good(device->create_stamps()));
      stamp_fill(lane, buffer, all.back());
    }
    settle(lane);
    for (const auto& stamps : all) {
      CHECK(stamps->read());
      CHECK(stamps->read());
    }
  }
  CHECK(driver.calls("vkCreateQueryPool") == 1);
  CHECK(driver.calls("vkCmdResetQueryPool") == 320);
  CHECK(driver.calls("vkCmdWriteTimestamp") == 640);
  CHECK(driver.calls("vkCmdCopyQueryPoolResults") == 320);
}

TEST_CASE("spans of a lost device keep the times that were read before", "[vulkan]") {
  Driver driver;
  const auto device = open_with(driver);
  const auto buffer = buffer_on(*device);
  const auto read = good(device->create_stamps()), unread = good(device->create_stamps());
  Lane lane(good(device->create_lane({})));
  stamp_fill(lane, buffer, read);
  stamp_fill(lane, buffer, unread);
  settle(lane);
  CHECK(read->read());
  driver.fail("vkQueueSubmit", 1, VK_ERROR_DEVICE_LOST);
  stamp_fill(lane, buffer, nullptr);
  CHECK_FALSE(lane.wait(Instant::max()));
  REQUIRE(device->lost());
  CHECK(read->read());
  CHECK_FALSE(unread->read());
  CHECK(device->create_stamps().error() == Errc::device_lost);
}

TEST_CASE("validation has no message about stamps in submissions and sequences", "[vulkan]") {
  Rig rig;
  const auto buffer = rig.buffer(std::vector<Word>(length, 1));
  const auto add = rig.kernel("add");
  const auto outer = good(rig.device().create_stamps()), inner = good(rig.device().create_stamps());
  auto lane = rig.lane();
  SequenceState sequence(rig.shared());
  Recording& recording = sequence.open();
  recording.stamp_begin(outer);
  recording.stamp_begin(inner);
  recording.dispatch(add, arguments_of(argument(buffer), Word{1}), length);
  recording.stamp_end(inner);
  recording.stamp_begin(inner);  // again in the same submission
  recording.dispatch(add, arguments_of(argument(buffer), Word{1}), length);
  recording.stamp_end(inner);
  recording.stamp_end(outer);
  for (int i = 0; i < 10; ++i) lane->submit(sequence);
  settle(*lane);
  CHECK(outer->read());
  CHECK(inner->read());
  CHECK(rig.read(buffer) == std::vector<Word>(length, 21));
  CHECK(rig.messages().empty());
}

}  // namespace wye::test
