// Many buffers in few allocations, correct numbers, and reported limits.
#include "backend/vulkan/vulkan_memory.hpp"

#include <atomic>
#include <thread>

#include "backend/vulkan/driver.hpp"
#include "backend/vulkan/rig.hpp"

namespace wye::test {
namespace {

TEST_CASE("many small buffers lie in few allocations, apart from each other", "[vulkan]") {
  Driver driver;
  {
    Rig rig({.wrap = driver.wrap()});
    std::mt19937_64 random(1);
    std::vector<std::shared_ptr<BufferBase>> buffers;
    for (int i = 0; i < 2000; ++i) buffers.push_back(rig.buffer(1 + random() % 4000));
    CHECK(driver.calls("vkAllocateMemory") <= 3);
    std::map<std::uint64_t, std::uint64_t> by_address;
    for (const auto& buffer : buffers) by_address[buffer->address()] = buffer->bytes().count;
    REQUIRE(by_address.size() == buffers.size());
    std::uint64_t end = 0;
    for (const auto& [address, bytes] : by_address) {
      CHECK(address >= end);
      end = address + bytes;
    }
  }
  CHECK(driver.alive_text() == "");
}

TEST_CASE("allocated memory is counted, and freed with its buffers", "[vulkan]") {
  Rig rig;
  const MemoryInfo before = rig.device().memory();
  CHECK(before.total == rig.device().info().memory);
  CHECK(before.in_use == Bytes{0});
  auto small = rig.buffer(1000), large = rig.buffer(100u << 20);
  const MemoryInfo with = rig.device().memory();
  CHECK(with.in_use >= Bytes{1000 + (100u << 20)});
  CHECK(with.in_use < Bytes{1000 + (100u << 20) + 10000});
  CHECK(with.available == with.total - with.in_use);
  small.reset();
  large.reset();
  CHECK(rig.device().memory().in_use == Bytes{0});
}

TEST_CASE("one empty block is kept, others and large ones go back to the driver", "[vulkan]") {
  Driver driver;
  Rig rig({.wrap = driver.wrap()});
  {
    const auto a = rig.buffer(3u << 20), b = rig.buffer(3u << 20), c = rig.buffer(90u << 20);
    CHECK(driver.alive()["DeviceMemory"] == 3);
  }
  CHECK(driver.alive()["DeviceMemory"] == 1);
  const unsigned calls = driver.calls("vkAllocateMemory");
  for (int i = 0; i < 100; ++i) rig.buffer(100000);
  CHECK(driver.calls("vkAllocateMemory") == calls);
}

TEST_CASE("a buffer beyond the limit is refused with both numbers", "[vulkan]") {
  Rig rig;
  const std::uint64_t most = rig.device().info().limits.buffer.count;
  for (const std::uint64_t bytes : {most + 1, most * 2, ~std::uint64_t{0}}) {
    auto refused =
        rig.device().create_buffer({.bytes = Bytes{bytes}, .use = MemoryUse::device, .account = nullptr});
    REQUIRE_FALSE(refused);
    CHECK(refused.error() == Errc::out_of_memory);
    INFO(refused.error().sentence());
    CHECK(refused.error().sentence().find(std::to_string(bytes)) != std::string::npos);
    CHECK(refused.error().sentence().find(std::to_string(most)) != std::string::npos);
    CHECK(refused.error().sentence().find(rig.device().info().id) != std::string::npos);
  }
}

TEST_CASE("a full heap has an error of its own, and works again after a free", "[vulkan]") {
  Driver driver;
  driver.replace<PFN_vkGetPhysicalDeviceMemoryProperties2>(
      "vkGetPhysicalDeviceMemoryProperties2",
      [](PFN_vkGetPhysicalDeviceMemoryProperties2 real, VkPhysicalDevice device,
         VkPhysicalDeviceMemoryProperties2* out) {
        real(device, out);
        out->memoryProperties.memoryHeaps[0].size = 100u << 20;
      });
  Rig rig({.wrap = driver.wrap()});
  auto a = rig.buffer(60u << 20);
  auto refused = rig.device().create_buffer({.bytes = 50_MiB, .use = MemoryUse::device, .account = nullptr});
  REQUIRE_FALSE(refused);
  CHECK(refused.error() == Errc::out_of_memory);
  INFO(refused.error().sentence());
  CHECK(refused.error().sentence().find("does not fit into the heap") != std::string::npos);
  CHECK(refused.error().sentence().find(std::to_string(100u << 20)) != std::string::npos);
  // The rest is still allocated, in smaller blocks than usual, to the last MiB.
  std::vector<std::shared_ptr<BufferBase>> rest;
  for (int i = 0; i < 40; ++i) rest.push_back(rig.buffer(1u << 20));
  a.reset();
  rest.clear();
  rig.buffer(90u << 20);  // needs the block that was kept
}

TEST_CASE("if the driver has no room, wye tries smaller blocks before it fails", "[vulkan]") {
  Driver driver;
  std::vector<std::uint64_t> asked;
  driver.replace<PFN_vkAllocateMemory>(
      "vkAllocateMemory", [&](PFN_vkAllocateMemory real, VkDevice device, const VkMemoryAllocateInfo* info,
                              const VkAllocationCallbacks* callbacks, VkDeviceMemory* memory) {
        asked.push_back(info->allocationSize);
        if (info->allocationSize > 1u << 20) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
        return real(device, info, callbacks, memory);
      });
  Rig rig({.wrap = driver.wrap()});
  rig.buffer(1000);
  CHECK(asked == std::vector<std::uint64_t>{4u << 20, 2u << 20, 1u << 20});
  auto refused = rig.device().create_buffer({.bytes = 2_MiB, .use = MemoryUse::device, .account = nullptr});
  REQUIRE_FALSE(refused);
  REQUIRE(refused.error().native());
  CHECK(refused.error().native()->api == "vkAllocateMemory");
  CHECK(refused.error().native()->name == "VK_ERROR_OUT_OF_DEVICE_MEMORY");
  CHECK(refused.error().sentence().find("no room for an allocation now") != std::string::npos);
}

TEST_CASE("an account is charged while a buffer lives, and not if its creation fails", "[vulkan]") {
  Driver driver;
  Rig rig({.wrap = driver.wrap()});
  const auto account = std::make_shared<MemoryAccount>("lane 1", 1_MiB);
  {
    const auto buffer =
        good(rig.device().create_buffer({.bytes = 600_KiB, .use = MemoryUse::device, .account = account}));
    CHECK(account->held() == 600_KiB);
    auto over = rig.device().create_buffer({.bytes = 500_KiB, .use = MemoryUse::device, .account = account});
    CHECK(over.error() == Errc::over_budget);
    driver.fail("vkBindBufferMemory", 1, VK_ERROR_OUT_OF_HOST_MEMORY);
    auto failed =
        rig.device().create_buffer({.bytes = 100_KiB, .use = MemoryUse::device, .account = account});
    CHECK(failed.error() == Errc::out_of_memory);
    CHECK(account->held() == 600_KiB);
  }
  CHECK(account->held() == Bytes{0});
}

TEST_CASE("buffers beyond the range of a descriptor work through addresses, also at their end", "[vulkan]") {
  Rig rig;
  constexpr std::uint64_t bytes = (1ull << 30) + (300u << 20) + 40, tail = 5000;
  const auto big = rig.buffer(bytes);
  const std::uint64_t words = bytes / 4, first = (words - tail) / 16 * 16;
  auto model = random_words(3, words - first);
  auto lane = rig.lane();
  lane->fill(range(big, 0, 1u << 20), 1);
  lane->upload(bytes_of(model), range(big, 4 * first, 4 * model.size()));
  lane->dispatch(rig.kernel("add"), arguments_of(argument(big, first, model.size()), Word{77}), model.size());
  std::vector<Word> out(model.size());
  lane->download(range(big, 4 * first, 4 * model.size()), writable_bytes_of(out));
  settle(*lane);
  for (Word& word : model) word += 77;
  CHECK(difference(out, model) == "");

  const auto bound = rig.kernel("add", Twin::descriptors);
  lane->dispatch(bound, arguments_of(argument(big), Word{1}), 10);
  auto refused = lane->wait(Instant::max());
  REQUIRE_FALSE(refused);
  CHECK(refused.error() == Errc::unsupported);
  INFO(refused.error().sentence());
  for (const std::string& part : {std::string("Argument 'x' (slot 0) of kernel 'add'"), std::to_string(bytes),
                                  std::to_string(rig.device().info().limits.descriptor_range.count)})
    CHECK(refused.error().sentence().find(part) != std::string::npos);
}

TEST_CASE("a descriptor that begins between two multiples of the alignment is refused", "[vulkan]") {
  Rig rig;
  REQUIRE(rig.device().info().limits.offset_alignment > 4);
  const auto x = rig.buffer(random_words(1, 100));
  auto lane = rig.lane();
  lane->dispatch(rig.kernel("add", Twin::descriptors), arguments_of(argument(x, 1, 10), Word{1}), 10);
  auto refused = lane->wait(Instant::max());
  REQUIRE_FALSE(refused);
  CHECK(refused.error() == Errc::unsupported);
  CHECK(refused.error().sentence().find("begins at byte 4") != std::string::npos);
}

TEST_CASE("an empty range that is bound has no elements", "[vulkan]") {
  Rig rig;
  const auto x = rig.buffer(random_words(1, 64)), none = rig.buffer(0);
  auto lane = rig.lane();
  const auto add = rig.kernel("add", Twin::descriptors);
  lane->dispatch(add, arguments_of(argument(x, 64, 0), Word{1}), 64);
  lane->dispatch(add, arguments_of(argument(none), Word{1}), 64);
  settle(*lane);
  CHECK(difference(rig.read(x), random_words(1, 64)) == "");
}

TEST_CASE("the host can read and write memory for transfers", "[vulkan]") {
  Rig rig({.host_visible = false});
  const auto staging = rig.buffer(4000, MemoryUse::transfer), device = rig.buffer(4000);
  CHECK(device->host() == nullptr);
  REQUIRE(staging->host());
  const auto words = random_words(9, 1000);
  std::memcpy(staging->host(), words.data(), 4000);
  auto lane = rig.lane();
  lane->copy(range(staging), range(device));
  lane->fill(range(staging), 1);
  lane->copy(range(device, 0, 2000), range(staging, 2000, 2000));
  settle(*lane);
  std::vector<Word> seen(1000);
  std::memcpy(seen.data(), staging->host(), 4000);
  std::vector<Word> model(1000, 1);
  std::copy_n(words.begin(), 500, model.begin() + 500);
  CHECK(difference(seen, model) == "");
}

TEST_CASE("a buffer is zero in memory that the host cannot write", "[vulkan]") {
  Driver driver;
  {
    Rig rig({.wrap = driver.wrap(), .host_visible = false});
    for (const std::size_t count : {1u, 1000u, 100'000u}) {
      { const auto filled = rig.buffer(std::vector<Word>(count, 0xa5a5a5a5)); }
      // Buffers that are freed before the device has cleared them.
      for (int i = 0; i < 20; ++i) rig.buffer(4 * count);
      std::vector<std::shared_ptr<BufferBase>> buffers;
      for (int i = 0; i < 3; ++i) buffers.push_back(rig.buffer(4 * count));
      for (const auto& buffer : buffers) CHECK(difference(rig.read(buffer), std::vector<Word>(count)) == "");
    }
    for (const std::uint64_t bytes : {1u, 4001u, 65'535u}) {
      const std::vector<std::byte> pattern(bytes, std::byte{0xa5});
      auto lane = rig.lane();
      {
        const auto filled = rig.buffer(bytes);
        lane->upload(pattern, range(filled));
        settle(*lane);
      }
      const auto buffer = rig.buffer(bytes);
      std::vector<std::byte> seen(bytes, std::byte{1});
      lane->download(range(buffer), seen);
      settle(*lane);
      CHECK(seen == std::vector<std::byte>(bytes));
    }
    // The commands of completed fills are used again.
    const unsigned pools = driver.calls("vkCreateCommandPool");
    for (int i = 0; i < 20; ++i) rig.buffer(4000);
    CHECK(driver.calls("vkCreateCommandPool") <= pools + 1);
  }
  CHECK(driver.alive_text() == "");
}

TEST_CASE("many threads create buffers that the device clears", "[vulkan]") {
  Rig rig({.host_visible = false});
  std::atomic<std::size_t> wrong{0};
  std::vector<std::thread> threads;
  for (Word t = 1; t <= 4; ++t)
    threads.emplace_back([&, t] {
      auto lane = Lane::create(rig.device()).value();
      for (int round = 0; round < 50; ++round) {
        auto made =
            rig.device().create_buffer({.bytes = 4000_B, .use = MemoryUse::device, .account = nullptr});
        if (!made) {
          ++wrong;
          continue;
        }
        std::vector<Word> seen(1000, 1);
        lane->download(range(*made), writable_bytes_of(seen));
        lane->fill(range(*made), t);
        wrong += !lane->wait(Instant::max());
        for (const Word word : seen) wrong += word != 0;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace wye::test
