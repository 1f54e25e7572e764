// The table of the processes that share a processor. Each MachineShare is a process to the others,
// even within one.
#include "silicon/machine_share.hpp"

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/worker.hpp"
#include "silicon/memory_account.hpp"
#include "support/await.hpp"
#include "support/catch.hpp"
#include "support/running_child.hpp"
#include "support/temporary_folder.hpp"

using namespace wye;
using namespace wye::literals;
using namespace std::chrono_literals;
using silicon::MachineShare;
using test::RunningChild;

namespace {

using SharePtr = std::unique_ptr<MachineShare>;

SharePtr join(const TemporaryFolder& folder, std::uint32_t limit = 0, const Clock& clock = Clock::steady()) {
  auto share = MachineShare::join(folder.path().string(), "0007", clock).value();
  share->set_wish({.limit = limit, .otherwise = 4});
  return share;
}
std::string file_of(const TemporaryFolder& folder) { return folder / "silicon-0007"; }
Error refusal(const TemporaryFolder& folder) {
  auto share = MachineShare::join(folder.path().string(), "0007");
  REQUIRE_FALSE(share);
  return share.error();
}
bool says(const Error& error, std::string_view text) {
  return error.sentence().find(text) != std::string::npos;
}
constexpr Instant at(int rank) { return Instant(std::chrono::seconds(rank)); }

/// Returns the number of open files of this process.
std::ptrdiff_t open_files() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}
/// Returns whether a file of the folder is mapped.
bool is_mapped(const TemporaryFolder& folder) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find(folder.path().string()) != std::string::npos) return true;
  return false;
}

}  // namespace

TEST_CASE("processes use no more slots than the smallest limit of one of them", "[silicon][share]") {
  const TemporaryFolder folder;
  const SharePtr a = join(folder);
  CHECK(a->limit() == 4);
  SharePtr b = join(folder, 3), c = join(folder, 2);
  CHECK((a->limit() == 2 && b->limit() == 2 && c->limit() == 2));
  CHECK(a->take(at(1)));
  CHECK(b->is_free(at(1)));
  CHECK(b->take(at(1)));
  CHECK_FALSE(c->is_free(at(1)));
  CHECK_FALSE(c->take(at(1)));
  CHECK(c->used_elsewhere() == 2);
  CHECK(b->used_elsewhere() == 1);
  a->give_back();
  CHECK(c->take(at(1)));
  c.reset();
  CHECK(a->limit() == 3);
  CHECK(a->take(at(1)));
  CHECK(a->take(at(1)));
  CHECK_FALSE(b->take(at(1)));
  b.reset();
  CHECK(a->limit() == 4);
  CHECK(a->used_elsewhere() == 0);
}

TEST_CASE("a slot goes to the earliest rank of all processes", "[silicon][share]") {
  const TemporaryFolder folder;
  const SharePtr a = join(folder, 1), b = join(folder, 1), c = join(folder, 1);
  CHECK(a->take(at(1)));
  b->wait(at(30));
  c->wait(at(20));
  a->give_back();
  CHECK_FALSE(a->take(at(40)));
  CHECK_FALSE(b->take(at(30)));
  CHECK(a->is_free(at(10)));
  CHECK(c->take(at(20)));
  c->wait(std::nullopt);
  c->give_back();
  CHECK_FALSE(a->take(at(40)));
  CHECK(b->take(at(30)));
}

TEST_CASE("a process that does not take a free slot is passed over, until it waits again",
          "[silicon][share]") {
  const TemporaryFolder folder;
  ManualClock clock;
  const SharePtr a = join(folder, 1, clock), stopped = join(folder, 1, clock);
  stopped->wait(at(1));
  CHECK_FALSE(a->take(at(2)));
  clock.advance(249ms);
  CHECK_FALSE(a->take(at(2)));
  clock.advance(1ms);
  CHECK(a->take(at(2)));
  a->give_back();
  CHECK(a->take(at(2)));  // at once
  a->give_back();
  stopped->wait(at(1));
  stopped->wait(at(0));
  CHECK_FALSE(a->take(at(2)));
  CHECK(stopped->take(at(0)));
  stopped->wait(std::nullopt);
  CHECK_FALSE(a->take(at(2)));
  stopped->give_back();
  CHECK(a->take(at(2)));
}

TEST_CASE("the time in which no slot is free does not count against a process that waits",
          "[silicon][share]") {
  const TemporaryFolder folder;
  ManualClock clock;
  const SharePtr a = join(folder, 1, clock), b = join(folder, 1, clock), waiting = join(folder, 1, clock);
  waiting->wait(at(1));
  CHECK_FALSE(a->take(at(2)));  // a slot is left to it
  CHECK(b->take(at(0)));        // an earlier rank takes that
  clock.advance(300ms);
  b->give_back();
  CHECK_FALSE(a->take(at(2)));
  CHECK(waiting->take(at(1)));
}

TEST_CASE("the watcher is called when another process returns a slot, ends, or lets it pass",
          "[silicon][share]") {
  const TemporaryFolder folder;
  const SharePtr a = join(folder, 1);
  SharePtr b = join(folder, 1);
  std::atomic<int> calls{0};
  REQUIRE(a->watch([&] { ++calls; }));
  CHECK(b->take(at(1)));
  b->give_back();
  std::this_thread::sleep_for(300ms);
  CHECK(calls == 0);  // no request waits
  CHECK(b->take(at(1)));
  const auto is_called = [&](auto act) {
    const int before = calls;
    act();
    return test::becomes_true([&] { return calls > before; });
  };
  CHECK(is_called([&] { a->wait(at(2)); }));
  CHECK(is_called([&] { b->give_back(); }));
  b->wait(at(1));
  CHECK(is_called([&] { b->wait(at(3)); }));
  CHECK(is_called([&] { b.reset(); }));
}

TEST_CASE("the slots and the memory of a killed process come back at once", "[silicon][share][fork]") {
  const TemporaryFolder folder;
  ManualClock clock;
  const SharePtr a = join(folder, 2, clock);
  const auto use_all = [&](RunningChild& parent) {
    const SharePtr there = join(folder, 2);
    const std::atomic<std::uint64_t> held{100};
    there->set_budget(100_B);
    there->publish(held);
    if (!there->take(at(1)) || !there->take(at(1))) return 1;
    there->wait(at(1));
    parent.tell();
    return parent.await() ? 2 : 3;
  };
  RunningChild child(use_all);
  REQUIRE(child.await());
  CHECK_FALSE(a->take(at(2)));
  CHECK_FALSE(a->has_room(0, 1_B));
  CHECK(a->held_elsewhere() == 100_B);
  REQUIRE(a->processes().size() == 2);
  const auto theirs = a->processes()[1];
  CHECK((theirs.number == child.pid() && theirs.used == 2 && theirs.held == 100_B));
  CHECK((theirs.waits && !theirs.is_own && a->processes()[0].is_own));
  child.kill();
  clock.advance(11ms);  // it is not looked for more often
  CHECK(a->take(at(2)));
  CHECK(a->take(at(2)));
  CHECK(a->has_room(0, 1000_B));
  CHECK(a->held_elsewhere() == 0_B);
  CHECK(a->processes().size() == 1);
}

TEST_CASE("a killed process whose child lives on keeps no slot", "[silicon][share][fork]") {
  const TemporaryFolder folder;
  const SharePtr a = join(folder, 1);
  std::array<int, 2> until_end{};
  REQUIRE(::pipe(until_end.data()) == 0);
  RunningChild child([&](RunningChild& parent) {
    const SharePtr there = join(folder, 1);
    if (!there->take(at(1))) return 1;
    if (::fork() == 0) {  // has the file open until the test ends
      ::close(until_end[1]);
      char none = 0;
      (void)!::read(until_end[0], &none, 1);
      ::_exit(0);
    }
    parent.tell();
    return parent.await() ? 2 : 3;
  });
  REQUIRE(child.await());
  CHECK_FALSE(a->take(at(2)));
  child.kill();
  CHECK(test::becomes_true([&] { return a->take(at(2)); }));
  const SharePtr b = join(folder);
  CHECK(b->used_elsewhere() == 1);
  ::close(until_end[0]), ::close(until_end[1]);
}

TEST_CASE("a process that is killed at any moment leaves a table that others use", "[silicon][share][fork]") {
  const TemporaryFolder folder;
  const SharePtr a = join(folder, 1);
  for (int round = 0; round < 40; ++round) {
    RunningChild child([&](RunningChild& parent) {
      parent.tell();
      for (;;) {
        const SharePtr there = join(folder, 1);
        const std::atomic<std::uint64_t> held{7};
        for (int i = 0; i < 50; ++i) {
          there->publish(held);
          if (there->take(at(1))) there->give_back();
          there->wait(at(i));
          there->wait(std::nullopt);
        }
      }
      return 0;
    });
    REQUIRE(child.await());
    std::this_thread::sleep_for(std::chrono::microseconds(137 * (round % 17)));
    child.kill();
    REQUIRE(test::becomes_true([&] { return a->take(at(2)); }));
    a->give_back();
    CHECK(test::becomes_true([&] { return a->collect_dead(), a->processes().size() == 1; }));
  }
}

TEST_CASE("in a child of fork the entry of its parent changes nothing, and it may join itself",
          "[silicon][share][fork]") {
  const TemporaryFolder folder;
  SharePtr a = join(folder, 2);
  CHECK(a->take(at(1)));
  CHECK(test::in_child([&] {
          a->give_back();
          a->wait(at(0));
          WYE_CHILD_CHECK(1, !a->take(at(1)) && !a->collect_dead(true));
          a.reset();
          const SharePtr own = join(folder, 2);
          WYE_CHILD_CHECK(2, own->used_elsewhere() == 1 && own->processes().size() == 2);
          WYE_CHILD_CHECK(3, own->take(at(1)) && !own->take(at(1)));
          return 0;
        }) == test::success);
  CHECK(a->used_elsewhere() == 0);
  CHECK(a->processes().size() == 1);
  CHECK(a->take(at(1)));
  CHECK_FALSE(a->take(at(1)));
}

TEST_CASE("the last process removes the file, and nothing stays open", "[silicon][share]") {
  const TemporaryFolder folder;
  const auto files = open_files();
  const int threads = base::Worker::alive();
  {
    const SharePtr a = join(folder);
    SharePtr b = join(folder);
    REQUIRE(b->watch([] {}));
    CHECK(base::Worker::alive() == threads + 1);
    CHECK(is_mapped(folder));
    b.reset();
    CHECK(std::filesystem::exists(file_of(folder)));
  }
  CHECK_FALSE(std::filesystem::exists(file_of(folder)));
  CHECK_FALSE(is_mapped(folder));
  CHECK(open_files() == files);
  CHECK(base::Worker::alive() == threads);
}

TEST_CASE("processes join and leave at the same time", "[silicon][share]") {
  const TemporaryFolder folder;
  std::atomic<int> wrong{0}, used{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        auto share = MachineShare::join(folder.path().string(), "0007");
        if (!share) {
          ++wrong;
          continue;
        }
        (*share)->set_wish({.limit = 2});
        if (!(*share)->take(at(1))) continue;
        wrong += ++used > 2;
        --used;
        (*share)->give_back();
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK_FALSE(std::filesystem::exists(file_of(folder)));
}

TEST_CASE("a file that its process did not finish is written again", "[silicon][share]") {
  const TemporaryFolder folder;
  for (const std::size_t size : {0u, 1u, 4096u, 8000u}) {
    (void)folder.put("silicon-0007", std::string(size, '\0'));
    CHECK(::chmod(file_of(folder).c_str(), 0600) == 0);
    const SharePtr a = join(folder, 1);
    CHECK(a->take(at(1)));
  }
}

TEST_CASE("numbers that a machine left behind when it stopped have no effect", "[silicon][share]") {
  const TemporaryFolder folder;
  std::string content;
  {
    const SharePtr a = join(folder, 1);
    CHECK(a->take(at(1)));
    a->wait(at(0));
    content = folder.get("silicon-0007");
  }
  std::fill(content.begin() + 128, content.begin() + 168, '\x01');  // the mutex is locked for ever
  (void)folder.put("silicon-0007", content);
  CHECK(::chmod(file_of(folder).c_str(), 0600) == 0);
  const SharePtr b = join(folder, 1);
  CHECK(b->processes().size() == 1);
  CHECK(b->take(at(1)));
}

TEST_CASE("a damaged file is refused, with the reason", "[silicon][share]") {
  const TemporaryFolder folder;
  std::string content;
  {
    const SharePtr a = join(folder);
    content = folder.get("silicon-0007");
  }
  const auto refused = [&](const std::string& changed) {
    (void)folder.put("silicon-0007", changed);
    CHECK(::chmod(file_of(folder).c_str(), 0600) == 0);
    Error error = refusal(folder);
    CHECK(says(error, "Shared file '" + file_of(folder) + "' "));
    CHECK(folder.get("silicon-0007") == changed);  // it may be another program's
    return error;
  };
  const auto damaged = [&](const std::string& changed, std::string_view why) {
    const Error error = refused(changed);
    CHECK(error == Errc::corrupt);
    CHECK(says(error, why));
  };
  damaged("a letter", "is no table of slots, or is damaged: it does not begin with 'wyeslots'");
  damaged(std::string(content.size(), 'x'), "it does not begin with 'wyeslots'");
  damaged(content.substr(0, 5000), "its size is 5000 bytes; expected 16576");
  damaged(content + "x", "its size is ");
  for (std::size_t i = 12; i < 88; i += 5) {
    std::string changed = content;
    changed[i] = static_cast<char>(changed[i] ^ 0x10);
    damaged(changed, "its description of the table has changed");
  }
  std::string newer = content;
  newer[8] = 9;
  const Error error = refused(newer);
  CHECK(error == Errc::unsupported);
  CHECK(says(error, "has layout version 9; this library has version 1."));
}

TEST_CASE("a folder that other users may change is refused", "[silicon][share]") {
  const TemporaryFolder folder;
  const auto error_in = [](const std::string& path) {
    auto share = MachineShare::join(path, "0007");
    REQUIRE_FALSE(share);
    CHECK(share.error() == Errc::io);
    return share.error().sentence();
  };
  const std::string open_to_all = folder / "open", link = folder / "link", file = folder.put("file", "x");
  CHECK(::mkdir(open_to_all.c_str(), 0777) == 0);
  CHECK(::chmod(open_to_all.c_str(), 0777) == 0);
  CHECK(error_in(open_to_all) ==
        "Directory '" + open_to_all + "' has mode 0777: other users may write to it.");
  CHECK(::symlink(folder.path().c_str(), link.c_str()) == 0);
  CHECK(error_in(link) == "Shared directory '" + link + "' is a symbolic link.");
  CHECK(error_in(link + "/") == "Shared directory '" + link + "' is a symbolic link.");
  CHECK(error_in(file) == "'" + file + "' is not a directory.");
  if (::geteuid() != 0) return;
  const std::string foreign = folder / "foreign";
  CHECK(::mkdir(foreign.c_str(), 0700) == 0);
  CHECK(::chown(foreign.c_str(), 12345, 12345) == 0);
  CHECK(error_in(foreign) ==
        "Directory '" + foreign + "' belongs to user 12345; this process runs as user 0.");
}

TEST_CASE("a table takes 128 processes, and names this limit to the next one", "[silicon][share]") {
  const TemporaryFolder folder;
  std::vector<SharePtr> all;
  for (std::uint32_t i = 0; i < MachineShare::most_processes; ++i) all.push_back(join(folder, 200));
  for (const SharePtr& one : all) CHECK(one->take(at(1)));
  CHECK(all[5]->used_elsewhere() == 127);
  const Error full = refusal(folder);
  CHECK(full == Errc::unavailable);
  CHECK(full.sentence() ==
        "Shared file '" + file_of(folder) + "' has no place for a further process; its limit is 128.");
  all.erase(all.begin() + 64);
  CHECK(join(folder)->used_elsewhere() == 127);
}

TEST_CASE("the smallest budget limits the memory of all processes together", "[silicon][share]") {
  const TemporaryFolder folder;
  SharePtr of_a = join(folder), of_b = join(folder);
  silicon::MemoryAccount a("card", 1_GiB, silicon::AccountLevel::silicon),
      b("card", 1_GiB, silicon::AccountLevel::silicon);
  CHECK(a.reserve(100_B));  // before it shares
  a.share(of_a.get());
  b.share(of_b.get());
  CHECK(b.held_elsewhere() == 100_B);
  CHECK(b.reserve(5000_B));
  of_a->set_budget(1000_B);
  CHECK(b.limit() == 1000_B);
  CHECK(b.find_smaller(1001_B) == &b);
  CHECK(b.find_full(1_B) == &b);
  b.release(5000_B);
  CHECK(b.find_full(900_B) == nullptr);
  CHECK(b.reserve(900_B));
  CHECK(
      a.reserve(1_B).error().sentence() ==
      "Allocation (1 byte) exceeds the rest of the budget of silicon 'card' (1000 bytes held of 1000 bytes, "
      "900 bytes by other processes).");
  CHECK(a.find_smaller(1000_B) == nullptr);  // it may fit later
  b.release(1_B);
  CHECK(a.reserve(1_B));
  CHECK(a.held() == 101_B);
  b.share(nullptr), of_b.reset();
  CHECK(a.reserve(899_B));
  CHECK_FALSE(a.reserve(1_B));
  a.share(nullptr);
}

TEST_CASE("threads of several processes never exceed their budget together", "[silicon][share]") {
  const TemporaryFolder folder;
  std::atomic<std::uint64_t> held{0};
  std::atomic<int> wrong{0}, granted{0};
  std::vector<std::thread> threads;
  const SharePtr of_a = join(folder), of_b = join(folder);
  silicon::MemoryAccount a("card", 1_GiB, silicon::AccountLevel::silicon),
      b("card", 1_GiB, silicon::AccountLevel::silicon);
  a.share(of_a.get());
  b.share(of_b.get());
  of_b->set_budget(1000_B);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      silicon::MemoryAccount& own = t % 2 == 0 ? a : b;
      for (int i = 0; i < 5000; ++i) {
        if (!own.reserve(300_B)) continue;
        wrong += (held += 300) > 1000;
        ++granted;
        held -= 300;
        own.release(300_B);
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(granted > 1000);
  CHECK((a.held() == 0_B && b.held() == 0_B));
  CHECK((of_a->held_elsewhere() == 0_B && of_b->held_elsewhere() == 0_B));
  a.share(nullptr), b.share(nullptr);
}
