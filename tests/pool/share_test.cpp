// Processes that share the slots and the memory of a processor.
#include <wye/pool/context_pool.hpp>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/internals.hpp"
#include "base/worker.hpp"
#include "pool/pool.hpp"
#include "support/await.hpp"
#include "support/catch.hpp"
#include "support/device/memory_device.hpp"
#include "support/running_child.hpp"
#include "support/scripted_pool.hpp"
#include "support/temporary_folder.hpp"
#include "waiting.hpp"

using namespace wye;
using namespace wye::literals;
using namespace std::chrono_literals;
using test::RunningChild;

namespace {

/// Opens a pool of the CPU that shares its slots in `folder`.
Result<ContextPool> open_shared(const TemporaryFolder& folder, std::uint32_t slots,
                                const Clock* clock = nullptr) {
  return ContextPool::open({.backends = {"cpu"},
                            .lanes_per_device = 8,
                            .slots = slots,
                            .lease_timeout = 60s,
                            .clock = clock,
                            .share = Share::machine,
                            .share_folder = folder.path().string()});
}
/// Takes a lease on a thread of its own: leases of one thread share a slot.
Result<Lease> lease_on_a_thread(ContextPool& pool) {
  std::optional<Result<Lease>> lease;
  std::thread([&] { lease.emplace(pool.try_lease()); }).join();
  return *std::move(lease);
}
SiliconInfo shared_silicon(const ContextPool& pool) {
  const auto all = pool.silicon();
  REQUIRE(all.size() == 1);
  return all[0];
}
/// In a child: opens a pool, leases `count` slots and keeps them until the end. The exit status is
/// that of a normal end.
int hold_slots(RunningChild& parent, const TemporaryFolder& folder, int count) {
  auto pool = open_shared(folder, 3);
  if (!pool) return 10;
  std::vector<Lease> leases;
  for (int i = 0; i < count; ++i) {
    auto lease = lease_on_a_thread(*pool);
    if (!lease) return 11;
    leases.push_back(*std::move(lease));
  }
  parent.tell();
  if (!parent.await()) return 12;
  leases.clear();
  pool = open_shared(folder, 3);  // ends the first one later than it begins
  return pool ? 0 : 13;
}
double milliseconds(Duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

}  // namespace

TEST_CASE("the slots of a process that is killed serve a request that waits in another one",
          "[pool][share][fork][no_sanitizer]") {
  const TemporaryFolder folder;
  const test::CountingClock clock;
  RunningChild a([&](RunningChild& parent) { return hold_slots(parent, folder, 2); });
  REQUIRE(a.await());
  RunningChild b([&](RunningChild& parent) { return hold_slots(parent, folder, 1); });
  REQUIRE(b.await());
  ContextPool pool = open_shared(folder, 3, &clock).value();
  const auto none = pool.try_lease();
  REQUIRE_FALSE(none);
  CHECK(none.error().sentence().find("3 of 3 slots of '") != std::string::npos);
  CHECK(none.error().sentence().find("' in use (3 by other processes)") != std::string::npos);
  const SiliconInfo info = shared_silicon(pool);
  CHECK((info.slots == 3 && info.used == 0 && info.used_elsewhere == 3));
  REQUIRE(info.processes.size() == 3);
  CHECK((info.processes[0].pid == a.pid() && info.processes[0].used == 2 && !info.processes[0].is_own));
  CHECK((info.processes[1].pid == b.pid() && info.processes[1].used == 1 && !info.processes[1].is_own));
  CHECK((info.processes[2].pid == ::getpid() && info.processes[2].is_own));
  test::Waiting first(pool, clock), second(pool, clock);
  CHECK(shared_silicon(pool).processes[2].waits);
  const Instant killed = Clock::steady().now();
  a.kill();
  const auto lease = first.get(), next = second.get();
  const Duration took = Clock::steady().now() - killed;
  CHECK((lease && next));
  CHECK(took < 30s);
  UNSCOPED_INFO("after " << milliseconds(took) << " ms");
  if (std::getenv("WYE_TEST_TIMES")) std::printf("slots of a killed process: %.1f ms\n", milliseconds(took));
  CHECK(lease_on_a_thread(pool).error() == Errc::unavailable);
  CHECK(shared_silicon(pool).processes.size() == 2);
}

TEST_CASE("a slot that a process returns serves a request that waits in another one",
          "[pool][share][fork][no_sanitizer]") {
  const TemporaryFolder folder;
  const test::CountingClock clock;
  RunningChild child([&](RunningChild& parent) { return hold_slots(parent, folder, 3); });
  REQUIRE(child.await());
  ContextPool pool = open_shared(folder, 5, &clock).value();
  CHECK(shared_silicon(pool).slots == 3);
  test::Waiting waiting(pool, clock);
  child.tell();
  CHECK(waiting.get());
  CHECK(child.wait() == 0);
  std::vector<Lease> leases;
  for (int i = 0; i < 5; ++i) leases.push_back(lease_on_a_thread(pool).value());
  CHECK(shared_silicon(pool).slots == 5);
  CHECK(lease_on_a_thread(pool).error() == Errc::unavailable);
}

TEST_CASE("a request that has stopped waiting keeps no slot from other processes",
          "[pool][share][fork][no_sanitizer]") {
  const TemporaryFolder folder;
  RunningChild child([&](RunningChild& parent) {
    auto pool = open_shared(folder, 1);
    if (!pool) return 1;
    parent.tell();
    if (!parent.await()) return 2;
    if (const auto lease = pool->lease({.deadline = 5ms}); lease || lease.error() != Errc::timed_out)
      return 3;
    if (shared_silicon(*pool).processes[0].waits) return 4;
    parent.tell();
    return parent.await() ? 0 : 5;
  });
  REQUIRE(child.await());
  ContextPool pool = open_shared(folder, 1).value();
  {
    const Lease held = pool.try_lease().value();
    child.tell();
    REQUIRE(child.await());
  }
  CHECK(pool.try_lease());
  child.tell();
  CHECK(child.wait() == 0);
}

TEST_CASE("processes use no more slots than there are, and each of their requests is served",
          "[pool][share][fork][no_sanitizer]") {
  const TemporaryFolder folder;
  constexpr int leases = 300;
  void* const memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  auto& used = *new (memory) std::atomic<int>(0);  // of all processes
  const auto run = [&](RunningChild& parent) {
    auto pool = open_shared(folder, 2);
    parent.tell();
    if (!pool || !parent.await()) return 1;
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < leases; ++i) {
          const auto lease = pool->lease();
          wrong += !lease || ++used > 2;
          if (i % 8 == 0) std::this_thread::yield();
          --used;
        }
      });
    for (std::thread& thread : threads) thread.join();
    return wrong == 0 ? 0 : 2;
  };
  RunningChild a(run), b(run), c(run);
  for (RunningChild* const child : {&a, &b, &c}) REQUIRE(child->await());
  for (RunningChild* const child : {&a, &b, &c}) child->tell();
  for (RunningChild* const child : {&a, &b, &c}) CHECK(child->wait() == 0);
  ::munmap(memory, 4096);
}

TEST_CASE("pools of one process share one entry, and the last device removes it", "[pool][share]") {
  const TemporaryFolder folder;
  const int threads = base::Worker::alive();
  {
    const ContextPool unshared = ContextPool::open({.backends = {"cpu"}, .cpu_threads = 1}).value();
    CHECK(shared_silicon(unshared).processes.empty());
    const ContextPool one = open_shared(folder, 3).value();
    const ContextPool two = open_shared(folder, 2).value();
    CHECK(shared_silicon(one).processes.size() == 1);
    CHECK(shared_silicon(unshared).processes.size() == 1);
    CHECK(shared_silicon(unshared).slots == 2);
    CHECK_FALSE(std::filesystem::is_empty(folder.path()));
  }
  CHECK(std::filesystem::is_empty(folder.path()));
  CHECK(base::Worker::alive() == threads);
}

TEST_CASE("without Share::machine a pool touches no folder", "[pool][share]") {
  const TemporaryFolder folder;
  const std::string path = folder / "none";
  const ContextPool pool = ContextPool::open({.backends = {"cpu"}, .share_folder = path}).value();
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("a pool opens no shared file that is damaged, and says which processor it is for",
          "[pool][share]") {
  const TemporaryFolder folder;
  (void)folder.put("silicon-cpu", "something else");
  REQUIRE(::chmod((folder / "silicon-cpu").c_str(), 0600) == 0);
  const auto pool = open_shared(folder, 1);
  REQUIRE_FALSE(pool);
  CHECK(pool.error() == Errc::corrupt);
  CHECK(pool.error().describe().find("while sharing the processor of 'cpu:0' with other processes") !=
        std::string::npos);
  CHECK(folder.get("silicon-cpu") == "something else");
  CHECK(ContextPool::open({.backends = {"cpu"}}));
}

TEST_CASE("in a child of fork a shared pool of the parent has no effect on the slots",
          "[pool][share][fork][no_sanitizer]") {
  const TemporaryFolder folder;
  std::optional<ContextPool> pool = open_shared(folder, 2).value();
  std::optional<Lease> lease = pool->try_lease().value();
  std::optional<Buffer> buffer = lease->buffer<std::byte>(1000).value();
  CHECK(test::in_child([&] {
          buffer.reset(), lease.reset(), pool.reset();
          auto own = open_shared(folder, 2);
          WYE_CHILD_CHECK(1, own);
          const SiliconInfo info = shared_silicon(*own);
          WYE_CHILD_CHECK(2, info.processes.size() == 2 && info.used_elsewhere == 1);
          WYE_CHILD_CHECK(3, info.held_elsewhere == 1000_B && info.slots == 2);
          const auto mine = own->try_lease();
          WYE_CHILD_CHECK(4, mine && lease_on_a_thread(*own).error() == Errc::unavailable);
          return 0;
        }) == test::success);
  const SiliconInfo info = shared_silicon(*pool);
  CHECK((info.processes.size() == 1 && info.used == 1 && info.used_elsewhere == 0));
  CHECK(info.processes[0].held == 1000_B);
}

TEST_CASE("memory of another process is a shortage to wait for, and not a size that never fits",
          "[pool][share][fork][no_sanitizer]") {
  const TemporaryFolder folder;
  const auto open = [&](Bytes budget) {
    const auto card = std::make_shared<test::MemoryDevice>("cuda:0", 1_MiB, 232);
    REQUIRE(card->silicon()->share(folder.path().string()));
    return test::pool_over({card}, {.silicon_memory = budget});
  };
  RunningChild child([&](RunningChild& parent) {
    const ContextPool pool = open(0_B);
    std::optional<Buffer> buffer = pool.devices()[0].buffer<std::byte>(60'000).value();
    parent.tell();
    return parent.await() ? 0 : 1;
  });
  REQUIRE(child.await());
  const ContextPool pool = open(64_KiB);
  pool::Pool& state = *base::state_of(pool);
  const pool::WorkingSet set{.own = 8_KiB, .replicas = {}};
  CHECK(shared_silicon(pool).held_elsewhere == 60'000_B);
  CHECK_FALSE(state.accounts().limit_of(0, nullptr, set));
  CHECK(state.accounts().limit_of(0, nullptr, {.own = 65_KiB, .replicas = {}}));
  pool::Reservation reserved;
  const auto refused = state.accounts().reserve(0, nullptr, set, state.clock().now(), reserved);
  REQUIRE_FALSE(refused);
  CHECK(refused.error() == Errc::out_of_memory);
  CHECK(refused.error().describe().find("processes that share it hold 58.6 KiB") != std::string::npos);
  CHECK(state.accounts().note_shortage(0));
  CHECK(shared_silicon(pool).pressure == MemoryPressure::Level::some);
  child.kill();
  CHECK(test::becomes_true(
      [&] { return state.accounts().reserve(0, nullptr, set, state.clock().now(), reserved).has_value(); }));
  CHECK_FALSE(state.accounts().note_shortage(0));
}
