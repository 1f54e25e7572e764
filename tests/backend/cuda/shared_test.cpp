// Memory shared by CUDA (the stand-in) and Vulkan (lavapipe), by file descriptors of their drivers,
// and the fallbacks.
#include <wye/interop/shared.hpp>
#include <wye/wye.hpp>

#include <random>
#include <thread>

#include "backend/cuda/files.hpp"
#include "backend/cuda/rig.hpp"
#include "base/internals.hpp"
#include "device/native.hpp"
#include "support/skip.hpp"

namespace wye::test {
namespace {

using namespace std::chrono_literals;
using interop::share;
using interop::SharedBuffer;

std::vector<Word> random_words(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Word> words(count);
  for (Word& word : words) word = static_cast<Word>(random());
  return words;
}

#if WYE_WITH_VULKAN

/// Returns the digits of lavapipe's UUID. Empty without Vulkan.
const std::string& vulkan_uuid() {
  static const std::string digits = [] {
    auto pool = ContextPool::open({.backends = {"vulkan"}});
    std::string text;
    if (!pool) return text;
    for (const char c : to_string(pool->devices().front().info().device_uuid))
      if (c != '-') text += c;
    return text;
  }();
  return digits;
}

/// Both backends, on one silicon by their UUIDs.
struct Pair {
  Pair() : Pair(vulkan_uuid()) {}
  explicit Pair(const std::string& uuid)
      : same("WYE_STANDIN_UUID", uuid.c_str()),
        pool(ContextPool::open({.backends = {"cuda", "vulkan"}, .cuda_driver = WYE_STAND_IN_CUDA}).value()),
        cuda(pool.devices().front()),
        vulkan(pool.devices().back()) {
    REQUIRE(cuda.info().backend == "cuda");
    REQUIRE(vulkan.info().backend == "vulkan");
  }
  Lease lease(const Device& device) { return pool.lease({.on = device.id()}).value(); }
  const Setting same;
  ContextPool pool;
  Device cuda, vulkan;
};

bool has_pair() {
  if (vulkan_uuid().empty()) skip("there is no Vulkan device");
  return !vulkan_uuid().empty();
}
#define WYE_NEEDS_PAIR() \
  if (!has_pair()) return

/// Each device writes words that the other one reads, several times.
void go_round(Pair& pair, SharedBuffer& memory, std::size_t count) {
  const bool copies = !memory.why_copied().empty();
  Lease a = pair.lease(pair.vulkan), b = pair.lease(pair.cuda);
  for (unsigned round = 0; round < 4; ++round) {
    const auto words = random_words(count, round), more = random_words(count, 100 + round);
    a.upload(words, memory.on(pair.vulkan));
    memory.hand_over(a, b, 60s).value();
    std::vector<Word> seen(count);
    b.download(memory.on(pair.cuda), seen);
    b.upload(more, memory.on(pair.cuda));
    memory.hand_over(b, a, 60s).value();
    std::vector<Word> found(count);
    a.download(memory.on(pair.vulkan), found);
    b.wait(60s).value();
    a.wait(60s).value();
    CHECK((seen == words));
    CHECK((found == more));
    // The other device sees a write at once, or not at all.
    a.fill(memory.on(pair.vulkan), 7);
    a.wait(60s).value();
    b.download(memory.on(pair.cuda), seen);
    b.wait(60s).value();
    CHECK((seen == (copies ? more : std::vector<Word>(count, 7))));
  }
}

}  // namespace

TEST_CASE("CUDA and Vulkan on one silicon have one memory, whichever makes it", "[cuda][shared]") {
  WYE_NEEDS_PAIR();
  const StandIn stand_in;
  const auto alive = stand_in.alive();
  long files = 0;
  {
    Pair pair;
    for (int time = 0; time < 2; ++time) {  // the files that drivers keep open exist after the first time
      if (time == 1) files = open_files();
      for (const bool by_vulkan : {true, false})
        for (const std::size_t count : {std::size_t{1}, std::size_t{1023}, std::size_t{600'001}}) {
          auto memory = by_vulkan ? share<Word>(pair.vulkan, pair.cuda, count).value()
                                  : share<Word>(pair.cuda, pair.vulkan, count).value();
          CHECK(memory.why_copied() == "");
          INFO(memory.why_waited());
          CHECK(memory.on(pair.cuda).size() == count);
          CHECK(memory.on(pair.vulkan).size() == count);
          CHECK_FALSE(memory.on({}));
          go_round(pair, memory, count);
        }
    }
    CHECK(open_files() == files);
    CHECK(stand_in.calls("cuImportExternalMemory") == 6);
    CHECK(stand_in.calls("cuMemExportToShareableHandle") == 6);
  }
  CHECK(stand_in.changed_since(alive) == "");
  CHECK(stand_in.left_behind() == 0);
}

TEST_CASE("kernels of both work on one memory in turn", "[cuda][shared]") {
  WYE_NEEDS_PAIR();
  if (!has_kernels()) return;
  const StandIn stand_in;
  Pair pair;
  auto memory = share<Word>(pair.vulkan, pair.cuda, 5000).value();
  Lease vulkan = pair.lease(pair.vulkan), cuda = pair.lease(pair.cuda);
  const auto add = good(base::state_of(pair.cuda)->create_executable(
      good(test_kernel("add", *base::state_of(pair.cuda), Twin::addresses))));
  vulkan.fill(memory.on(pair.vulkan), 100);
  for (Word round = 1; round <= 10; ++round) {
    stand_in.seed(round);
    memory.hand_over(vulkan, cuda).value();
    cuda.dispatch(Executable(add), arguments(memory.on(pair.cuda), Word{5}), {5000});
    memory.hand_over(cuda, vulkan).value();
    auto spare = vulkan.buffer<Word>(5000).value();
    vulkan.copy(memory.on(pair.vulkan), spare, Bytes{20'000});
    std::vector<Word> seen(5000);
    vulkan.download(spare, seen);
    vulkan.wait().value();
    CHECK((seen == std::vector<Word>(5000, 100 + 5 * round)));
  }
}

TEST_CASE("memory that is shared outlives the buffer, and the device, that made it", "[cuda][shared]") {
  WYE_NEEDS_PAIR();
  const StandIn stand_in;
  for (const bool by_vulkan : {true, false}) {
    Pair pair;
    const Device& maker = by_vulkan ? pair.vulkan : pair.cuda;
    const Device& opener = by_vulkan ? pair.cuda : pair.vulkan;
    const auto words = random_words(3001, 5);
    Buffer mine;
    {
      auto memory = share<Word>(maker, opener, 3001).value();
      CHECK(memory.why_copied() == "");
      mine = memory.on(opener);
      Lease lease = pair.lease(maker);
      lease.upload(words, memory.on(maker));
      lease.wait().value();
    }
    Lease lease = pair.lease(opener);
    std::vector<Word> seen(3001);
    lease.download(mine, seen);
    lease.wait().value();
    CHECK((seen == words));
  }
}

TEST_CASE("a driver's refusal is a reason, no error; files are closed once, and no object is left",
          "[cuda][shared]") {
  WYE_NEEDS_PAIR();
  const StandIn stand_in;
  const auto alive = stand_in.alive();
  {
    Pair pair;
    {
      auto warm = share<Word>(pair.vulkan, pair.cuda, 100).value();
      go_round(pair, warm, 100);
    }
    const auto shared_things = [&] {
      const auto all = stand_in.alive();
      return std::vector<long>{all.at("allocations"), all.at("reservations"), all.at("externals")};
    };
    const auto before = shared_things();
    const long files = open_files();
    for (const bool by_vulkan : {true, false})
      for (const char* function : {"cuImportExternalMemory", "cuExternalMemoryGetMappedBuffer",
                                   "cuMemGetAllocationGranularity", "cuMemCreate", "cuMemAddressReserve",
                                   "cuMemMap", "cuMemSetAccess", "cuMemExportToShareableHandle"})
        for (const bool other_way_too : {false, true}) {
          INFO(function << " " << by_vulkan << other_way_too);
          const bool opens = std::string_view(function).find("xternal") != std::string_view::npos;
          stand_in.fail(function, 1, CUDA_ERROR_NOT_PERMITTED);
          if (other_way_too)
            stand_in.fail(opens ? "cuMemCreate" : "cuImportExternalMemory", 1, CUDA_ERROR_OUT_OF_MEMORY);
          {
            auto memory = by_vulkan ? share<Word>(pair.vulkan, pair.cuda, 777).value()
                                    : share<Word>(pair.cuda, pair.vulkan, 777).value();
            INFO(memory.why_copied());
            // If one way is refused, the other one is used.
            CHECK(memory.why_copied().empty() != other_way_too);
            if (other_way_too) {
              CHECK(memory.why_copied().find("'cuda:0' cannot allocate shared memory") != std::string::npos);
              CHECK(memory.why_copied().find("'cuda:0' cannot import the memory of another driver") !=
                    std::string::npos);
            }
            stand_in.reset();
            go_round(pair, memory, 777);
          }
          CHECK(open_files() == files);
          CHECK(shared_things() == before);
        }
  }
  CHECK(stand_in.changed_since(alive) == "");
}

TEST_CASE("a device that is lost while memory is made for it is an error", "[cuda][shared]") {
  WYE_NEEDS_PAIR();
  const StandIn stand_in;
  Pair pair;
  const long files = open_files();
  stand_in.fail("cuImportExternalMemory", 1, CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(share<Word>(pair.vulkan, pair.cuda, 100).error() == Errc::device_lost);
  CHECK(share<Word>(pair.vulkan, pair.cuda, 100).error() == Errc::device_lost);
  CHECK(open_files() == files);
}

TEST_CASE("devices that are not one silicon have two memories, and each turn copies", "[cuda][shared]") {
  WYE_NEEDS_PAIR();
  const StandIn stand_in;
  Pair pair("");
  auto memory = share<Word>(pair.vulkan, pair.cuda, 1001).value();
  CHECK(memory.why_copied().find("are not the same processor") != std::string::npos);
  CHECK(memory.why_copied().find("'vulkan:0'") != std::string::npos);
  CHECK(memory.why_waited() == memory.why_copied());
  CHECK(stand_in.calls("cuMemCreate") == 0);
  go_round(pair, memory, 1001);
}

TEST_CASE("if the drivers share no timeline, the host waits, with the reason", "[cuda][shared]") {
  WYE_NEEDS_PAIR();
  const StandIn stand_in;
  Pair pair;
  auto memory = share<Word>(pair.vulkan, pair.cuda, 10).value();
  REQUIRE(memory.why_copied() == "");
  if (memory.why_waited().empty()) return skip("these drivers share timelines");
  CHECK(memory.why_waited().find("VK_KHR_external_semaphore_fd") != std::string::npos);
  CHECK(memory.why_waited().find("'cuda:0' cannot export semaphores") != std::string::npos);
  // So a turn that does not come ends with its deadline.
  Lease vulkan = pair.lease(pair.vulkan), cuda = pair.lease(pair.cuda);
  const auto gate = good(base::state_of(pair.cuda)->create_timeline());
  cuda.wait_for(SyncPoint(gate, 1));
  cuda.fill(memory.on(pair.cuda), 3);
  CHECK(memory.hand_over(cuda, vulkan, 20ms).error() == Errc::timed_out);
  REQUIRE(gate->signal(1));
  memory.hand_over(cuda, vulkan, 60s).value();
  std::vector<Word> seen(10);
  vulkan.download(memory.on(pair.vulkan), seen);
  vulkan.wait().value();
  CHECK(seen == std::vector<Word>(10, 3));
}

TEST_CASE("memory is shared by two devices, and handed over between lanes of theirs", "[cuda][shared]") {
  WYE_NEEDS_PAIR();
  const StandIn stand_in;
  Pair pair;
  CHECK(share<Word>(pair.cuda, pair.cuda, 1).error() == Errc::invalid_argument);
  CHECK(share<Word>(pair.cuda, {}, 1).error() == Errc::invalid_argument);
  CHECK(share<Word>(pair.cuda, pair.vulkan, ~std::uint64_t{0}).error() == Errc::invalid_argument);
  auto memory = share<Word>(pair.cuda, pair.vulkan, 1).value();
  Lease a = pair.lease(pair.cuda), b = pair.lease(pair.cuda), v = pair.lease(pair.vulkan);
  CHECK(memory.hand_over(a, b).error() == Errc::invalid_argument);
  CHECK(SharedBuffer().hand_over(a, v).error() == Errc::invalid_argument);
  ContextPool cpu = ContextPool::open({.backends = {"cpu"}}).value();
  auto with_host = share<Word>(cpu.devices().front(), pair.cuda, 1).value();
  CHECK(with_host.why_copied() == "The driver of device 'cpu:0' cannot share memory.");
  CHECK(memory.hand_over(a, v));
  a.fill(memory.on(pair.vulkan), 1);  // another device's: the lane fails, and does not take the other with it
  auto refused = memory.hand_over(a, v);
  REQUIRE_FALSE(refused);
  CHECK(refused.error() == Errc::invalid_argument);
  CHECK(v.wait());
}

namespace {
#endif  // WYE_WITH_VULKAN
}  // namespace

TEST_CASE("a lane waits for a semaphore of another driver on the device, and signals it", "[cuda][shared]") {
  const StandIn stand_in;
  ContextPool pool = ContextPool::open({.backends = {"cuda"}, .cuda_driver = WYE_STAND_IN_CUDA}).value();
  const auto before = stand_in.alive();
  const long files = open_files();
  {
    NativeInterop& interop = *base::state_of(pool.devices().front())->native_interop();
    const auto original = std::make_shared<FileTimeline>();
    SharedTimeline shared{original, base::Descriptor(original->another_file())};
    const auto timeline = good(interop.open_shared_timeline(shared));
    CHECK_FALSE(shared.file);  // the driver's
    CHECK(timeline->is_foreign());
    for (unsigned seed = 1; seed <= 10; ++seed) {
      stand_in.seed(seed);
      const std::uint64_t base = 10 * seed;
      Lease lease = pool.lease().value();
      auto buffer = lease.buffer<Word>(1000).value();
      lease.fill(buffer, 1);
      lease.wait().value();
      lease.wait_for(SyncPoint(timeline, base + 1));
      lease.fill(buffer, seed);
      lease.signal(SyncPoint(timeline, base + 2));
      std::vector<Word> seen(1000);
      lease.download(buffer, seen);
      CHECK(lease.wait(10ms).error() == Errc::timed_out);
      CHECK(original->reached() < base + 1);
      CHECK(original->signal(base + 1));
      CHECK(SyncPoint(timeline, base + 2).wait(60s));
      CHECK(original->reached() == base + 2);
      lease.wait(60s).value();
      CHECK(seen == std::vector<Word>(1000, seed));
    }
    CHECK(stand_in.calls("cuWaitExternalSemaphoresAsync") == 10);
    CHECK(stand_in.calls("cuSignalExternalSemaphoresAsync") == 10);
    // Also behind work that is parked on the host until then.
    Lease lease = pool.lease().value();
    const auto gate = good(base::state_of(lease.device())->create_timeline());
    lease.wait_for(SyncPoint(gate, 1));
    lease.signal(SyncPoint(timeline, 1000));
    std::this_thread::sleep_for(5ms);
    CHECK(original->reached() < 1000);
    CHECK(gate->signal(1));
    CHECK(SyncPoint(timeline, 1000).wait(60s));
    lease.wait().value();
  }
  CHECK(open_files() == files);
  CHECK(stand_in.alive().at("semaphores") == before.at("semaphores"));
}

TEST_CASE("a semaphore that the driver refuses is closed once, by its exporter", "[cuda][shared]") {
  const StandIn stand_in;
  ContextPool pool = ContextPool::open({.backends = {"cuda"}, .cuda_driver = WYE_STAND_IN_CUDA}).value();
  NativeInterop& interop = *base::state_of(pool.devices().front())->native_interop();
  const auto original = std::make_shared<FileTimeline>();
  const long files = open_files();
  {
    SharedTimeline shared{original, base::Descriptor(original->another_file())};
    stand_in.fail("cuImportExternalSemaphore", 1, CUDA_ERROR_INVALID_HANDLE);
    auto refused = interop.open_shared_timeline(shared);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().sentence() == "Device 'cuda:0' cannot import the semaphore of another driver.");
    CHECK(shared.file);
    CHECK(open_files() == files + 1);
    const Setting none("WYE_STANDIN_TIMELINES", "0");
    CHECK(interop.open_shared_timeline(shared).error() == Errc::unsupported);
  }
  CHECK(open_files() == files);
  // A signal that the driver refuses fails the lane with the reason.
  SharedTimeline shared{original, base::Descriptor(original->another_file())};
  const auto timeline = good(interop.open_shared_timeline(shared));
  Lease lease = pool.lease().value();
  auto buffer = lease.buffer<Word>(10).value();
  stand_in.fail("cuSignalExternalSemaphoresAsync", 1, CUDA_ERROR_NOT_PERMITTED);
  lease.fill(buffer, 1);
  lease.signal(SyncPoint(timeline, 1));
  CHECK_FALSE(lease.wait());
  CHECK(original->reached() == 0);
}

}  // namespace wye::test
