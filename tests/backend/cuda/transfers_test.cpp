// Transfers through the pinned memory of a device: how much of it they take, and how often they ask
// the driver for it.
#include <cstring>
#include <vector>

#include "backend/cuda/cuda_device.hpp"
#include "backend/cuda/files.hpp"
#include "backend/cuda/rig.hpp"
#include "device/native.hpp"
#include "support/sanitizers.hpp"

namespace wye::test {
namespace {

constexpr std::size_t large = under_tsan ? 24u << 20 : 64u << 20;
constexpr std::size_t chunk = cuda::Staging::largest_chunk, part = cuda::Staging::part;

std::shared_ptr<DeviceBase> open_pinning(Bytes pinned) {
  BackendOptions options;
  options.cuda_driver = WYE_STAND_IN_CUDA;
  options.pinned_memory = pinned;
  return good(discover(options).at(0).adapter->open());
}
std::shared_ptr<BufferBase> buffer_of(DeviceBase& device, std::size_t bytes) {
  return good(device.create_buffer({.bytes = Bytes{bytes}, .account = nullptr}));
}
std::uint64_t pinned(const StandIn& stand_in) {
  return static_cast<std::uint64_t>(stand_in.alive()["pinned"]);
}
std::vector<Word> words_of(std::size_t bytes, Word first) {
  std::vector<Word> words(bytes / sizeof(Word));
  std::iota(words.begin(), words.end(), first);
  return words;
}

/// Uploads and downloads `words` on one lane, in two submissions.
void round_trip(Lane& lane, const std::shared_ptr<BufferBase>& buffer, const std::vector<Word>& words) {
  std::vector<Word> back(words.size());
  lane.upload(bytes_of(words), range(buffer));
  lane.submit();
  lane.download(range(buffer), writable_bytes_of(back));
  lane.submit();
  const auto waited = lane.wait(Instant::max());
  if (!waited) FAIL(waited.error().describe());
  REQUIRE(std::memcmp(back.data(), words.data(), words.size() * sizeof(Word)) == 0);
}

}  // namespace

TEST_CASE("a round trip pins and frees nothing after the first, within the limit", "[cuda]") {
  const StandIn stand_in;
  for (const Bytes limit : {32_MiB, 64_MiB, 16_MiB}) {
    if (limit.count > large) continue;  // the first round trip may not need all of it
    const auto device = open_pinning(limit);
    const auto buffer = buffer_of(*device, large);
    Lane lane(good(device->create_lane()));
    round_trip(lane, buffer, words_of(large, 1));
    CHECK(pinned(stand_in) * chunk <= limit.count);
    const long allocated = stand_in.calls("cuMemHostAlloc"), freed = stand_in.calls("cuMemFreeHost");
    for (Word round = 2; round < 4; ++round) round_trip(lane, buffer, words_of(large, round));
    CHECK(stand_in.calls("cuMemHostAlloc") == allocated);
    CHECK(stand_in.calls("cuMemFreeHost") == freed);
    {
      Lane other(good(device->create_lane()));  // uses the memory of the first
      round_trip(other, buffer, words_of(large, 9));
    }
    CHECK(stand_in.calls("cuMemHostAlloc") == allocated);
    CHECK(stand_in.calls("cuMemFreeHost") == freed);
  }
}

TEST_CASE("transfers of two lanes that leave each other no pinned memory complete", "[cuda]") {
  const StandIn stand_in;
  for (const Bytes limit : {0_B, 1_B, 8_MiB}) {
    const auto device = open_pinning(limit);
    const auto a = buffer_of(*device, large), b = buffer_of(*device, large);
    Lane first(good(device->create_lane())), second(good(device->create_lane()));
    const auto one = words_of(large, 1), two = words_of(large, 77);
    std::vector<Word> back_one(one.size()), back_two(two.size());
    // No call waits for the downloads of the first lane until the end.
    first.upload(bytes_of(one), range(a));
    first.download(range(a), writable_bytes_of(back_one));
    first.submit();
    second.upload(bytes_of(two), range(b));
    second.download(range(b), writable_bytes_of(back_two));
    second.submit();
    REQUIRE(second.wait(Instant::max()));
    REQUIRE(first.wait(Instant::max()));
    CHECK(back_one == one);
    CHECK(back_two == two);
    CHECK(pinned(stand_in) * chunk <= limit.count + 2 * part);
  }
}

TEST_CASE("small submissions in flight stay within the limit of pinned memory", "[cuda]") {
  const StandIn stand_in;
  const auto device = open_pinning(8_MiB);
  const auto buffer = buffer_of(*device, 4 * length);
  Lane lane(good(device->create_lane()));
  const auto words = numbers(5);
  lane.upload(bytes_of(words), range(buffer));
  std::vector<std::vector<Word>> back(300, std::vector<Word>(length));
  for (auto& one : back) {
    lane.download(range(buffer), writable_bytes_of(one));
    lane.submit();
  }
  CHECK(pinned(stand_in) * cuda::Staging::smallest_chunk <= (8_MiB).count);
  REQUIRE(lane.wait(Instant::max()));
  for (const auto& one : back) REQUIRE(one == words);
}

TEST_CASE("a thread that must make a signal is not kept by its own transfers", "[cuda]") {
  const StandIn stand_in;
  const auto device = open_pinning(8_MiB);
  const auto buffer = buffer_of(*device, large);
  const auto original = std::make_shared<FileTimeline>();
  SharedTimeline shared{original, base::Descriptor(original->another_file())};
  const auto timeline = good(device->native_interop()->open_shared_timeline(shared));
  Lane lane(good(device->create_lane()));
  const auto words = words_of(large, 3);
  std::vector<Word> back(words.size());
  lane.wait_for({timeline, 1});
  lane.upload(bytes_of(words), range(buffer));
  lane.download(range(buffer), writable_bytes_of(back));
  lane.submit();
  CHECK(original->signal(1));
  REQUIRE(lane.wait(Instant::max()));
  CHECK(back == words);
}

TEST_CASE("idle pinned memory is freed by a trim, and if the driver has no more", "[cuda]") {
  const StandIn stand_in;
  const auto device = open_pinning(16_MiB);
  const auto buffer = buffer_of(*device, large);
  Lane lane(good(device->create_lane()));
  round_trip(lane, buffer, words_of(large, 1));
  CHECK(stand_in.alive()["pinned"] > 0);
  device->release_spare_memory();
  CHECK(stand_in.alive()["pinned"] == 0);
  round_trip(lane, buffer, words_of(large, 2));
  const long idle = stand_in.alive()["pinned"];
  CHECK(idle > 0);
  stand_in.fail("cuMemHostAlloc", 1, CUDA_ERROR_OUT_OF_MEMORY);
  const auto staging =
      device->create_buffer({.bytes = 1_MiB, .use = MemoryUse::transfer, .account = nullptr});
  CHECK(staging);
  CHECK(stand_in.alive()["pinned"] == 1);
  stand_in.fail("cuMemHostAlloc", 0, CUDA_ERROR_OUT_OF_MEMORY);
  lane.upload(bytes_of(words_of(large, 1)), range(buffer));
  lane.submit();
  const auto waited = lane.wait(Instant::max());
  REQUIRE_FALSE(waited);
  CHECK(waited.error() == Errc::out_of_memory);
  says(waited.error().describe(), {"pinned memory", "4.00 MiB", "cuda:0"});
}

TEST_CASE("pinned memory of the application is copied from and to directly", "[cuda]") {
  const StandIn stand_in;
  const auto device = open_pinning(16_MiB);
  const auto& cu = static_cast<cuda::CudaDevice&>(*device).cu;
  const cuda::CurrentContext current(static_cast<cuda::CudaDevice&>(*device));
  void* host = nullptr;
  REQUIRE(cu.MemHostAlloc(&host, large, CU_MEMHOSTALLOC_PORTABLE) == CUDA_SUCCESS);
  {
    NativeMemory memory{.backend = "cuda"};
    memory.address = reinterpret_cast<std::uintptr_t>(host);
    memory.bytes = Bytes{large};
    const auto pinned = good(device->native_interop()->adopt_memory(memory, {}));
    const auto buffer = buffer_of(*device, large);
    const auto words = words_of(large, 1);
    std::memcpy(host, words.data(), large);
    Lane lane(good(device->create_lane()));
    const long allocations = stand_in.calls("cuMemHostAlloc"), copies = stand_in.calls("cuMemcpyAsync");
    lane.copy(range(pinned), range(buffer));
    lane.copy(range(buffer), range(pinned));
    REQUIRE(lane.wait(Instant::max()));
    CHECK(stand_in.calls("cuMemHostAlloc") == allocations);
    CHECK(stand_in.calls("cuMemcpyAsync") == copies + 2);
    CHECK(std::memcmp(host, words.data(), large) == 0);
  }
  CHECK(cu.MemFreeHost(host) == CUDA_SUCCESS);
}

}  // namespace wye::test
