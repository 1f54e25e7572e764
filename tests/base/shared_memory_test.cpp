// Memory, locks and signals between processes.
#include "base/shared_memory.hpp"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <new>
#include <string>
#include <thread>

#include "support/await.hpp"
#include "support/catch.hpp"
#include "support/running_child.hpp"
#include "support/temporary_folder.hpp"

using namespace wye::base;
using namespace wye::literals;
using namespace std::chrono_literals;
using wye::test::RunningChild;

namespace {

struct Shared {
  SharedMutex mutex;
  std::atomic<std::uint32_t> word;
  ProcessId process;
};

/// Maps the file of a test.
struct SharedForTest {
  explicit SharedForTest(const std::string& path) : file(SharedFile::open(path).value()) {
    const std::array<std::byte, sizeof(Shared)> zeros{};
    if (file.size().value() == 0_B) REQUIRE(file.write(0, zeros));
    memory = std::launder(reinterpret_cast<Shared*>(file.map(wye::Bytes{sizeof(Shared)}).value()));
  }
  SharedFile file;
  Shared* memory;
};

wye::Instant soon(wye::Duration time) { return wye::Clock::steady().now() + time; }

}  // namespace

TEST_CASE("a mutex whose owner is killed goes to the next thread", "[base][fork]") {
  const TemporaryFolder folder;
  SharedForTest here(folder / "shared");
  REQUIRE(here.memory->mutex.initialize());
  for (int round = 0; round < 5; ++round) {
    RunningChild child([&](RunningChild&) {
      SharedForTest there(folder / "shared");
      if (!there.memory->mutex.lock(1min)) return 1;
      ::raise(SIGKILL);
      return 2;
    });
    CHECK(child.wait() == -SIGKILL);
    REQUIRE(here.memory->mutex.lock(0s));
    here.memory->mutex.unlock();
  }
}

TEST_CASE("a mutex that stays locked is not waited for longer than its limit", "[base]") {
  const TemporaryFolder folder;
  SharedForTest here(folder / "shared");
  REQUIRE(here.memory->mutex.initialize());
  REQUIRE(here.memory->mutex.lock(0s));
  bool locked = true;
  std::thread([&] { locked = here.memory->mutex.lock(20ms); }).join();
  CHECK_FALSE(locked);
  here.memory->mutex.unlock();
}

TEST_CASE("the places of a file exclude processes and files, and the end of a process releases them",
          "[base][fork]") {
  const TemporaryFolder folder;
  SharedFile file = SharedFile::open(folder / "shared").value(),
             other = SharedFile::open(folder / "shared").value();
  RunningChild child([&](RunningChild& parent) {
    SharedFile there = SharedFile::open(folder / "shared").value();
    if (!there.try_lock(7)) return 1;
    parent.tell();
    return parent.await() ? 2 : 3;
  });
  REQUIRE(child.await());
  CHECK_FALSE(file.try_lock(7));
  CHECK(file.is_any_locked(0, 100));
  CHECK_FALSE(file.is_any_locked(8, 100));
  child.kill();
  CHECK_FALSE(file.is_any_locked(0, 100));
  CHECK(file.try_lock(7));
  CHECK(file.try_lock(7));
  CHECK_FALSE(other.try_lock(7));
  CHECK_FALSE(other.lock(7, soon(5ms)).value());
  CHECK_FALSE(file.is_any_locked(0, 100));  // by another one
  file.unlock(7);
  CHECK(other.lock(7, soon(5ms)).value());
}

TEST_CASE("a thread that awaits a change of a shared word is woken by another process", "[base][fork]") {
  const TemporaryFolder folder;
  SharedForTest here(folder / "shared");
  RunningChild child([&](RunningChild& parent) {
    SharedForTest there(folder / "shared");
    if (!parent.await()) return 1;
    signal_change(there.memory->word);
    return 0;
  });
  child.tell();
  while (here.memory->word == 0) await_change(here.memory->word, 0, soon(60s));
  CHECK(child.wait() == 0);
  const wye::Instant begin = wye::Clock::steady().now();
  await_change(here.memory->word, 0, soon(60s));  // it has changed
  CHECK(wye::Clock::steady().now() - begin < 30s);
  await_change(here.memory->word, 1, soon(1ms));
}

TEST_CASE("a file that a shared path does not name is known", "[base]") {
  const TemporaryFolder folder;
  SharedFile first = SharedFile::open(folder / "shared").value();
  CHECK(first.is_named());
  first.remove();
  CHECK_FALSE(first.is_named());
  SharedFile second = SharedFile::open(folder / "shared").value();
  CHECK_FALSE(first.is_named());
  first.remove();
  CHECK(second.is_named());
}

TEST_CASE("a shared file is a regular file of this user alone", "[base]") {
  const TemporaryFolder folder;
  const std::string path = folder / "shared";
  const auto refused = [&] { return SharedFile::open(path).error(); };
  CHECK(::symlink((folder / "elsewhere").c_str(), path.c_str()) == 0);
  CHECK(refused().sentence() == "Shared file '" + path + "' is a symbolic link.");
  CHECK(::unlink(path.c_str()) == 0);
  CHECK(::mkfifo(path.c_str(), 0600) == 0);
  CHECK(refused().sentence() == "Shared file '" + path + "' is not a regular file.");
  CHECK(::unlink(path.c_str()) == 0);
  (void)folder.put("shared", "");
  CHECK(::chmod(path.c_str(), 0622) == 0);
  CHECK(refused().sentence() == "Shared file '" + path + "' has mode 0622: other users may write to it.");
  CHECK(::chmod(path.c_str(), 0600) == 0);
  CHECK(SharedFile::open(path));
  if (::geteuid() != 0) return;
  CHECK(::chown(path.c_str(), 12345, 12345) == 0);
  CHECK(refused().sentence() ==
        "Shared file '" + path + "' belongs to user 12345; this process runs as user 0.");
}

TEST_CASE("a process has ended when its number is free, or is that of another one", "[base][fork]") {
  const ProcessId own = ProcessId::own();
  CHECK(own.number == ::getpid());
  CHECK(own.start != 0);
  CHECK_FALSE(own.has_ended());
  ProcessId other = own;
  ++other.start;
  CHECK(other.has_ended());
  other.numbers = own.numbers + 1;  // another namespace
  CHECK_FALSE(other.has_ended());
  const TemporaryFolder folder;
  SharedForTest here(folder / "shared");
  RunningChild child([&](RunningChild& parent) {
    SharedForTest there(folder / "shared");
    there.memory->process = ProcessId::own();
    parent.tell();
    return parent.await() ? 0 : 1;
  });
  REQUIRE(child.await());
  const ProcessId ended = here.memory->process;
  CHECK(ended.number == child.pid());
  CHECK_FALSE(ended.has_ended());
  ::kill(child.pid(), SIGKILL);
  CHECK(wye::test::becomes_true([&] { return ended.has_ended(); }));  // before its parent waits for it
  child.kill();
  CHECK(ended.has_ended());
}
