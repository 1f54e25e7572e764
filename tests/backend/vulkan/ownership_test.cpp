// Memory shared with another driver, and the transfers of its ownership.
#include "backend/vulkan/driver.hpp"
#include "backend/vulkan/rig.hpp"
#include "device/native.hpp"
#include "support/skip.hpp"

namespace wye::test {
namespace {

struct Halves {
  Halves() {
    driver.replace<PFN_vkCmdPipelineBarrier>(
        "vkCmdPipelineBarrier",
        [this](PFN_vkCmdPipelineBarrier real, VkCommandBuffer commands, VkPipelineStageFlags from,
               VkPipelineStageFlags to, VkDependencyFlags flags, std::uint32_t all,
               const VkMemoryBarrier* barriers, std::uint32_t buffers, const VkBufferMemoryBarrier* halves,
               std::uint32_t images, const VkImageMemoryBarrier* of_images) {
          seen.insert(seen.end(), halves, halves + buffers);
          real(commands, from, to, flags, all, barriers, buffers, halves, images, of_images);
        });
  }
  Driver driver;
  std::vector<VkBufferMemoryBarrier> seen;
};

}  // namespace

TEST_CASE("memory is released to another driver and acquired from it, each as half a transfer", "[vulkan]") {
  Halves halves;
  Rig rig({.wrap = halves.driver.wrap()});
  DeviceBase& device = rig.device();
  auto shared = device.native_interop()->create_shared(Bytes{length * sizeof(Word)});
  if (!shared) {
    return skip(shared.error().sentence());
  }
  const auto add = rig.kernel("add");
  auto lane = rig.lane();
  lane->fill(range(shared->buffer), 5);
  lane->release(range(shared->buffer));
  settle(*lane);
  const std::uint32_t mine = rig.device().physical().queue_family;
  REQUIRE(halves.seen.size() == 1);
  CHECK(halves.seen[0].srcQueueFamilyIndex == mine);
  CHECK(halves.seen[0].dstQueueFamilyIndex == VK_QUEUE_FAMILY_EXTERNAL);
  CHECK(halves.seen[0].offset == 0);
  CHECK(halves.seen[0].size == length * sizeof(Word));
  CHECK((halves.seen[0].srcAccessMask & VK_ACCESS_TRANSFER_WRITE_BIT) != 0);
  CHECK((halves.seen[0].srcAccessMask & VK_ACCESS_SHADER_WRITE_BIT) != 0);
  CHECK(halves.seen[0].dstAccessMask == 0);

  std::vector<Word> got(length);
  lane->acquire(range(shared->buffer));
  lane->dispatch(add, arguments_of(argument(shared->buffer), Word{2}), length);
  lane->download(range(shared->buffer), writable_bytes_of(got));
  settle(*lane);
  REQUIRE(halves.seen.size() == 2);
  CHECK(halves.seen[1].srcQueueFamilyIndex == VK_QUEUE_FAMILY_EXTERNAL);
  CHECK(halves.seen[1].dstQueueFamilyIndex == mine);
  CHECK(halves.seen[1].buffer == halves.seen[0].buffer);
  CHECK(halves.seen[1].srcAccessMask == 0);
  CHECK((halves.seen[1].dstAccessMask & VK_ACCESS_SHADER_READ_BIT) != 0);
  CHECK((halves.seen[1].dstAccessMask & VK_ACCESS_TRANSFER_READ_BIT) != 0);
  CHECK(difference(got, std::vector<Word>(length, 7)) == "");
}

TEST_CASE("memory that is not shared has no transfer of ownership", "[vulkan]") {
  Rig rig, other;
  const auto lane = std::make_unique<Lane>(checked(good(rig.device().create_lane({}))));
  lane->release(range(other.buffer(64)));
  CHECK(lane->wait(Instant::max()).error() == Errc::invalid_argument);
}

}  // namespace wye::test
