// Transfers between host and device: in place if that is safe, otherwise staged.
#include "backend/vulkan/driver.hpp"
#include "backend/vulkan/rig.hpp"

namespace wye::test {
namespace {

constexpr std::size_t count = 1u << 18;  // 1 MiB

TEST_CASE("on shared memory an idle buffer is written and read in place, without a copy by the device",
          "[vulkan]") {
  Driver driver;
  Rig rig({.wrap = driver.wrap()});
  const auto x = rig.buffer(4 * count);
  auto lane = rig.lane();
  for (std::uint64_t round = 0; round < 3; ++round) {  // idle again after each
    auto words = random_words(round, count);
    std::vector<Word> out(count);
    lane->upload(bytes_of(words), range(x));
    lane->dispatch(rig.kernel("add"), arguments_of(argument(x), Word{3}), count);
    lane->download(range(x), writable_bytes_of(out));
    settle(*lane);
    for (Word& word : words) word += 3;
    CHECK(difference(out, words) == "");
  }
  CHECK(driver.calls("vkCmdCopyBuffer") == 0);
}

TEST_CASE("an upload waits with its submission, even if the buffer is idle", "[vulkan]") {
  Rig rig;
  const auto gate = good(rig.device().create_timeline());
  const auto x = rig.buffer(random_words(1, count)), y = rig.buffer(random_words(2, count));
  const auto later = random_words(3, count);
  auto lane = rig.lane();
  lane->wait_for({gate, 1});
  lane->upload(bytes_of(later), range(x));
  lane->submit();
  lane->upload(bytes_of(later), range(y));  // behind it in the lane
  lane->submit();
  CHECK(difference(rig.read(x), random_words(1, count)) == "");
  CHECK(difference(rig.read(y), random_words(2, count)) == "");
  good(gate->signal(1));
  settle(*lane);
  CHECK(difference(rig.read(x), later) == "");
  CHECK(difference(rig.read(y), later) == "");
}

TEST_CASE("a buffer in use is not written by the host", "[vulkan]") {
  Driver driver;
  Rig rig({.wrap = driver.wrap()});
  const auto x = rig.buffer(random_words(1, count)), y = rig.buffer(4 * count);
  const auto words = random_words(2, count);
  auto lane = rig.lane();
  const unsigned before = driver.calls("vkCmdCopyBuffer");
  lane->copy(range(x), range(y));
  lane->upload(bytes_of(words), range(x));
  settle(*lane);
  CHECK(driver.calls("vkCmdCopyBuffer") > before + 1);
  CHECK(difference(rig.read(y), random_words(1, count)) == "");
  CHECK(difference(rig.read(x), words) == "");
}

TEST_CASE("a download has the contents at its place in the order, not later ones", "[vulkan]") {
  for (const bool host_visible : {true, false}) {
    Rig rig({.host_visible = host_visible});
    const auto x = rig.buffer(random_words(1, count));
    const auto add = rig.kernel("add");
    const auto later = random_words(2, count);
    std::vector<Word> first(count), second(count), third(count);
    auto lane = rig.lane(), other = rig.lane();
    lane->download(range(x), writable_bytes_of(first));
    lane->dispatch(add, arguments_of(argument(x), Word{5}), count);
    lane->download(range(x), writable_bytes_of(second));
    lane->upload(bytes_of(later), range(x));  // after the download, in the same recording
    const TimelinePoint point = lane->submit();
    other->wait_for(point);
    other->fill(range(x), 77);  // before a wait for the downloads
    settle(*other);
    lane->download(range(x), writable_bytes_of(third));
    settle(*lane);
    auto model = random_words(1, count);
    CHECK(difference(first, model) == "");
    for (Word& word : model) word += 5;
    CHECK(difference(second, model) == "");
    CHECK(difference(third, std::vector<Word>(count, 77)) == "");
  }
}

TEST_CASE("a download without a wait keeps its contents when another lane writes", "[vulkan]") {
  Rig rig;
  const auto x = rig.buffer(random_words(1, count));
  std::vector<Word> out(count), small(100);
  auto lane = good(rig.device().create_lane({}));
  auto recording = std::make_shared<Recording>();
  recording->download(range(x), writable_bytes_of(out));
  recording->download(range(x, 400, 400), writable_bytes_of(small));
  recording->close();
  const auto value =
      good(lane->submit({.recording = recording, .waits = {}, .stop = {}, .caller_waits = true}));
  auto other = rig.lane();
  other->wait_for({lane->timeline(), value});
  other->fill(range(x), 1);
  settle(*other);
  good(lane->wait(value, Instant::max()));
  CHECK(difference(out, random_words(1, count)) == "");
  CHECK(std::equal(small.begin(), small.end(), out.begin() + 100));
  CHECK(difference(rig.read(x), std::vector<Word>(count, 1)) == "");
}

TEST_CASE("downloads that are abandoned do not touch their targets", "[vulkan]") {
  for (const bool host_visible : {true, false}) {
    Rig rig({.host_visible = host_visible});
    const auto x = rig.buffer(random_words(1, count));
    std::vector<Word> out(count, 5);
    auto lane = good(rig.device().create_lane({}));
    auto recording = std::make_shared<Recording>();
    recording->download(range(x), writable_bytes_of(out));
    recording->close();
    const auto value =
        good(lane->submit({.recording = recording, .waits = {}, .stop = {}, .caller_waits = true}));
    lane->abandon();
    auto other = rig.lane();
    other->fill(range(x), 1);
    settle(*other);
    good(lane->wait(value, Instant::max()));
    CHECK(difference(out, std::vector<Word>(count, 5)) == "");
  }
}

TEST_CASE("an upload of any size goes through a bounded piece of staging memory", "[vulkan]") {
  Driver driver;
  std::uint64_t most = 0, now = 0;
  std::map<VkDeviceMemory, std::uint64_t> sizes;
  driver.replace<PFN_vkAllocateMemory>(
      "vkAllocateMemory", [&](PFN_vkAllocateMemory real, VkDevice device, const VkMemoryAllocateInfo* info,
                              const VkAllocationCallbacks* callbacks, VkDeviceMemory* memory) {
        const VkResult r = real(device, info, callbacks, memory);
        if (r == VK_SUCCESS) most = std::max(most, now += sizes[*memory] = info->allocationSize);
        return r;
      });
  driver.replace<PFN_vkFreeMemory>("vkFreeMemory",
                                   [&](PFN_vkFreeMemory real, VkDevice device, VkDeviceMemory memory,
                                       const VkAllocationCallbacks* callbacks) {
                                     now -= sizes[memory];
                                     real(device, memory, callbacks);
                                   });
  Rig rig({.wrap = driver.wrap(), .host_visible = false, .staging_chunk = 1_MiB, .staging_budget = 4_MiB});
  constexpr std::size_t large = (50u << 20) / 4 + 3;
  const auto x = rig.buffer(4 * large), y = rig.buffer(4 * 1000);
  const auto words = random_words(1, large), small = random_words(2, 1000);
  const std::uint64_t before = now;
  most = now;
  auto lane = rig.lane();
  lane->upload(bytes_of(small), range(y));
  lane->upload(bytes_of(words), range(x));
  lane->upload(bytes_of(small), range(x, 0, 4000));
  lane->dispatch(rig.kernel("add"), arguments_of(argument(x, 0, 2000), Word{1}), 2000);
  settle(*lane);
  CHECK(most - before <= 16u << 20);
  CHECK(difference(rig.read(y), small) == "");
  auto model = words;
  std::copy(small.begin(), small.end(), model.begin());
  for (std::size_t i = 0; i < 2000; ++i) model[i] += 1;
  CHECK(difference(rig.read(x), model) == "");
}

TEST_CASE("a large upload behind a value that the host signals later is copied at once", "[vulkan]") {
  Rig rig({.host_visible = false, .staging_chunk = 1_MiB, .staging_budget = 2_MiB});
  const auto gate = good(rig.device().create_timeline());
  const auto x = rig.buffer(4 * 10 * count);
  auto words = random_words(1, 10 * count);
  const auto kept = words;
  auto lane = rig.lane();
  lane->wait_for({gate, 1});
  lane->upload(bytes_of(words), range(x));
  lane->submit();
  std::fill(words.begin(), words.end(), 0);
  good(gate->signal(1));
  settle(*lane);
  CHECK(difference(rig.read(x), kept) == "");
}

TEST_CASE("memory that is not coherent is flushed and invalidated in whole atoms", "[vulkan]") {
  Driver driver;
  std::uint64_t atom = 1;
  bool whole = true;
  const auto check = [&](const VkMappedMemoryRange* range) {
    whole = whole && range->offset % atom == 0 && (range->size == VK_WHOLE_SIZE || range->size % atom == 0);
  };
  driver.replace<PFN_vkFlushMappedMemoryRanges>(
      "vkFlushMappedMemoryRanges", [&](PFN_vkFlushMappedMemoryRanges real, VkDevice device, std::uint32_t n,
                                       const VkMappedMemoryRange* ranges) {
        check(ranges);
        return real(device, n, ranges);
      });
  driver.replace<PFN_vkInvalidateMappedMemoryRanges>(
      "vkInvalidateMappedMemoryRanges", [&](PFN_vkInvalidateMappedMemoryRanges real, VkDevice device,
                                            std::uint32_t n, const VkMappedMemoryRange* ranges) {
        check(ranges);
        return real(device, n, ranges);
      });
  Rig rig({.wrap = driver.wrap(), .host_coherent = false});
  atom = rig.device().physical().atom;
  const auto x = rig.buffer(random_words(1, 1001));
  CHECK(x->host() == nullptr);
  CHECK(driver.calls("vkFlushMappedMemoryRanges") == 2);  // the zeros of a new buffer, then the words
  std::vector<Word> part(77);
  auto lane = rig.lane();
  lane->download(range(x, 4 * 13, 4 * 77), writable_bytes_of(part));
  settle(*lane);
  CHECK(driver.calls("vkInvalidateMappedMemoryRanges") == 1);
  CHECK(whole);
  const auto words = random_words(1, 1001);
  CHECK(std::equal(part.begin(), part.end(), words.begin() + 13));
}

TEST_CASE("a steady stream of equal submissions makes no new objects", "[vulkan]") {
  for (const Twin twin : {Twin::descriptors, Twin::addresses}) {
    Driver driver;
    Rig rig({.wrap = driver.wrap()});
    const auto x = rig.buffer(random_words(1, 100));
    const auto add = rig.kernel("add", twin);
    auto lane = rig.lane();
    const auto once = [&] {
      lane->dispatch(add, arguments_of(argument(x), Word{1}), 100);
      settle(*lane);
    };
    once();
    const auto alive = driver.alive();
    const unsigned buffers = driver.calls("vkAllocateCommandBuffers");
    for (int i = 0; i < 200; ++i) once();
    CHECK(driver.alive() == alive);
    CHECK(driver.calls("vkAllocateCommandBuffers") == buffers);
  }
}

}  // namespace
}  // namespace wye::test
