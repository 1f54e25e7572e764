// Each hazard once with descriptors, which validation sees, and once with addresses, which it does
// not.
#include "backend/vulkan/driver.hpp"
#include "backend/vulkan/rig.hpp"

namespace wye::test {
namespace {

struct Pair {
  Rig rig;
  std::shared_ptr<ExecutableBase> add, mix;
  std::vector<Word> a = random_words(1, length), b = random_words(2, length);
  std::shared_ptr<BufferBase> x = rig.buffer(a), y = rig.buffer(b);
  explicit Pair(Twin twin) : add(rig.kernel("add", twin)), mix(rig.kernel("mix", twin)) {}
  Arguments add_to(const std::shared_ptr<BufferBase>& buffer, Word by) {
    return arguments_of(argument(buffer), by);
  }
  Arguments from_to(const std::shared_ptr<BufferBase>& from, const std::shared_ptr<BufferBase>& to) {
    return arguments_of(argument(from), argument(to), Word{0});
  }
};

void on_both(void (*scenario)(Pair&)) {
  for (const Twin twin : {Twin::descriptors, Twin::addresses}) {
    Pair pair(twin);
    scenario(pair);
  }
}

TEST_CASE("peers 7: a dispatch reads the writes of the dispatch before it", "[vulkan]") {
  on_both([](Pair& p) {
    auto lane = p.rig.lane();
    lane->dispatch(p.add, p.add_to(p.x, 7), length);
    lane->dispatch(p.mix, p.from_to(p.x, p.y), length);
    settle(*lane);
    for (std::size_t i = 0; i < length; ++i) p.b[i] = p.b[i] * 3 + p.a[i] + 7;
    CHECK(difference(p.rig.read(p.y), p.b) == "");
  });
}

TEST_CASE("peers 7: a dispatch writes after the one before it wrote", "[vulkan]") {
  on_both([](Pair& p) {
    auto lane = p.rig.lane();
    for (Word i = 0; i < 200; ++i) lane->dispatch(p.add, p.add_to(p.x, i), length);
    settle(*lane);
    for (Word& word : p.a) word += 199 * 200 / 2;
    CHECK(difference(p.rig.read(p.x), p.a) == "");
  });
}

TEST_CASE("peers 7: a dispatch writes after the one before it read", "[vulkan]") {
  on_both([](Pair& p) {
    auto lane = p.rig.lane();
    lane->dispatch(p.mix, p.from_to(p.x, p.y), length);
    lane->dispatch(p.add, p.add_to(p.x, 9), length);
    settle(*lane);
    for (std::size_t i = 0; i < length; ++i) p.b[i] = p.b[i] * 3 + p.a[i];
    for (Word& word : p.a) word += 9;
    CHECK(difference(p.rig.read(p.y), p.b) == "");
    CHECK(difference(p.rig.read(p.x), p.a) == "");
  });
}

TEST_CASE("a dispatch sees the writes of earlier transfers, and later transfers see its writes", "[vulkan]") {
  on_both([](Pair& p) {
    auto lane = p.rig.lane();
    std::vector<Word> out(length);
    lane->fill(range(p.x), 5);
    lane->dispatch(p.add, p.add_to(p.x, 1), length);
    lane->copy(range(p.x), range(p.y));
    lane->fill(range(p.x), 8);
    lane->upload(bytes_of(p.a), range(p.x));
    lane->dispatch(p.mix, p.from_to(p.x, p.y), length);
    lane->download(range(p.y), writable_bytes_of(out));
    settle(*lane);
    for (std::size_t i = 0; i < length; ++i) p.b[i] = 6 * 3 + p.a[i];
    CHECK(difference(out, p.b) == "");
  });
}

TEST_CASE("submissions see the writes of earlier ones on their lane and on lanes that they wait for",
          "[vulkan]") {
  on_both([](Pair& p) {
    auto first = p.rig.lane(), second = p.rig.lane();
    for (Word i = 0; i < 20; ++i) {
      first->dispatch(p.add, p.add_to(p.x, 1), length);
      first->submit();
      first->dispatch(p.mix, p.from_to(p.x, p.y), length);
      second->wait_for(first->submit());
      second->dispatch(p.mix, p.from_to(p.y, p.x), length);
      first->wait_for(second->submit());
      for (std::size_t k = 0; k < length; ++k) {
        p.a[k] += 1;
        p.b[k] = p.b[k] * 3 + p.a[k];
        p.a[k] = p.a[k] * 3 + p.b[k];
      }
    }
    settle(*second);
    CHECK(difference(p.rig.read(p.x), p.a) == "");
    CHECK(difference(p.rig.read(p.y), p.b) == "");
  });
}

TEST_CASE("a batch begins after all earlier submissions, and ends with a barrier for the host", "[vulkan]") {
  // No other check sees this: validation examines one batch at a time, and lavapipe executes in
  // order anyway.
  Driver driver;
  std::vector<std::string> calls;
  bool writes_seen = true;
  driver.replace<PFN_vkCmdPipelineBarrier>(
      "vkCmdPipelineBarrier",
      [&](PFN_vkCmdPipelineBarrier real, VkCommandBuffer commands, VkPipelineStageFlags from,
          VkPipelineStageFlags to, VkDependencyFlags flags, std::uint32_t n, const VkMemoryBarrier* memory,
          std::uint32_t nb, const VkBufferMemoryBarrier* buffers, std::uint32_t ni,
          const VkImageMemoryBarrier* images) {
        constexpr VkPipelineStageFlags stages =
            VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
        constexpr VkAccessFlags writes = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
        constexpr VkAccessFlags reads = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT;
        writes_seen = writes_seen && n == 1 && from == stages && memory->srcAccessMask == writes;
        const bool for_host =
            to == VK_PIPELINE_STAGE_HOST_BIT && memory->dstAccessMask == VK_ACCESS_HOST_READ_BIT;
        const bool for_device = to == stages && memory->dstAccessMask == (reads | writes);
        calls.push_back(for_host ? "host" : for_device ? "barrier" : "wrong");
        real(commands, from, to, flags, n, memory, nb, buffers, ni, images);
      });
  driver.replace<PFN_vkCmdDispatch>("vkCmdDispatch", [&](PFN_vkCmdDispatch real, VkCommandBuffer commands,
                                                         std::uint32_t x, std::uint32_t y, std::uint32_t z) {
    calls.push_back("dispatch");
    real(commands, x, y, z);
  });
  Rig rig({.wrap = driver.wrap()});
  const auto add = rig.kernel("add"), mix = rig.kernel("mix");
  const auto x = rig.buffer(4 * length), y = rig.buffer(4 * length), z = rig.buffer(4 * length);
  auto lane = rig.lane();
  lane->dispatch(add, arguments_of(argument(x), Word{1}), length);
  lane->dispatch(add, arguments_of(argument(z), Word{1}), length);  // of no concern to the one before
  lane->dispatch(mix, arguments_of(argument(x), argument(y), Word{1}), length);
  settle(*lane);
  CHECK(calls == std::vector<std::string>{"barrier", "dispatch", "dispatch", "barrier", "dispatch", "host"});
  calls.clear();
  lane->dispatch(add, arguments_of(argument(y), Word{1}), length);
  settle(*lane);
  CHECK(calls == std::vector<std::string>{"barrier", "dispatch", "host"});
  CHECK(writes_seen);
}

TEST_CASE("messages of validation reach the sink", "[vulkan]") {
  if (!validates()) return;
  Rig rig;
  const VkBufferCreateInfo nothing{.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                   .pNext = nullptr,
                                   .flags = 0,
                                   .size = 0,
                                   .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT,
                                   .sharingMode = VK_SHARING_MODE_EXCLUSIVE,
                                   .queueFamilyIndexCount = 0,
                                   .pQueueFamilyIndices = nullptr};
  VkBuffer made = VK_NULL_HANDLE;
  if (rig.device().vk.CreateBuffer(rig.device().handle(), &nothing, nullptr, &made) == VK_SUCCESS)
    rig.device().vk.DestroyBuffer(rig.device().handle(), made, nullptr);
  const auto messages = rig.messages();
  REQUIRE(messages.size() == 1);
  CHECK(messages[0].find("VUID-VkBufferCreateInfo-size-00912") != std::string::npos);
}

/// A driver that can leave out barriers.
struct Barriers {
  Driver driver;
  bool planned = true;
  Barriers() {
    driver.replace<PFN_vkCmdPipelineBarrier>(
        "vkCmdPipelineBarrier",
        [this](PFN_vkCmdPipelineBarrier real, VkCommandBuffer commands, VkPipelineStageFlags from,
               VkPipelineStageFlags to, VkDependencyFlags flags, std::uint32_t n,
               const VkMemoryBarrier* memory, std::uint32_t nb, const VkBufferMemoryBarrier* buffers,
               std::uint32_t ni, const VkImageMemoryBarrier* images) {
          if (planned) real(commands, from, to, flags, n, memory, nb, buffers, ni, images);
        });
  }
};

void two_dispatches(Rig& rig) {
  const auto x = rig.buffer(random_words(1, length)), y = rig.buffer(random_words(2, length));
  auto lane = rig.lane();
  lane->dispatch(rig.kernel("add", Twin::descriptors), arguments_of(argument(x), Word{1}), length);
  lane->dispatch(rig.kernel("mix", Twin::descriptors), arguments_of(argument(x), argument(y), Word{1}),
                 length);
  settle(*lane);
}

TEST_CASE("validation detects a missing barrier of descriptors", "[vulkan]") {
  if (!validates()) return;
  Barriers barriers;
  Rig rig({.wrap = barriers.driver.wrap()});
  two_dispatches(rig);
  CHECK(rig.messages().empty());
  barriers.planned = false;
  two_dispatches(rig);
  const auto messages = rig.messages();
  REQUIRE_FALSE(messages.empty());
  CHECK(messages[0].find("SYNC-HAZARD") != std::string::npos);
}

// Run by the test validation_is_checked: tests/run.sh puts validation into every test program
// through the loader, and ctest searches for its messages in their output.
TEST_CASE("a barrier is missing and the messages have no sink", "[.]") {
  Barriers barriers;
  Rig rig({.wrap = barriers.driver.wrap()}, false);
  barriers.planned = false;
  two_dispatches(rig);
}

}  // namespace
}  // namespace wye::test
