#include "base/file_watch.hpp"

#include <sys/inotify.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>

#include "base/gate.hpp"
#include "support/await.hpp"
#include "support/catch.hpp"
#include "support/skip.hpp"
#include "support/temporary_folder.hpp"

using namespace std::chrono_literals;
using wye::base::FileWatch;

namespace {

/// A watch that counts its calls.
class CountingWatch {
 public:
  explicit CountingWatch(std::vector<std::string> paths)
      : watch_(FileWatch::start([this] {
                 const wye::base::Lock lock(mutex_);
                 ++calls_;
                 gate_.wake_all();
               }).value()) {
    watch(std::move(paths));
  }
  void watch(std::vector<std::string> paths) {
    watch_.watch(std::move(paths));
    CHECK(was_called());  // the thread has applied the new set of files
  }
  void ring() { watch_.ring(); }

  /// Returns whether it was called since the last call, within some seconds.
  bool was_called() {
    wye::base::Lock lock(mutex_);
    const bool rung = gate_.wait(lock, wye::Clock::steady().now() + 1min, [&] { return calls_ > 0; });
    calls_ = 0;
    return rung;
  }
  /// Returns the number of calls until it is quiet for a while. Waits some seconds for the first
  /// time.
  int calls() {
    wye::base::Lock lock(mutex_);
    gate_.wait(lock, wye::Clock::steady().now() + 1min, [&] { return calls_ > 0; });
    for (int before = 0; before != calls_;) {
      before = calls_;
      gate_.wait(lock, wye::Clock::steady().now() + 200ms, [&] { return calls_ != before; });
    }
    return std::exchange(calls_, 0);
  }
  /// Returns whether it stays quiet for a while.
  bool is_quiet() {
    wye::base::Lock lock(mutex_);
    gate_.wait(lock, wye::Clock::steady().now() + 200ms, [&] { return calls_ > 0; });
    return std::exchange(calls_, 0) == 0;
  }
  /// Makes a change, and returns whether it was called for it once. On a busy machine a pause of 20
  /// ms within the change ends its burst, and then the rest of the change is a burst of its own.
  template <class Change>
  bool was_called_once(Change change) {
    const wye::Instant start = wye::Clock::steady().now();
    change();
    const auto pauses = (wye::Clock::steady().now() - start) / 20ms;
    const int made = calls();
    return made >= 1 && made <= 1 + pauses;
  }

 private:
  std::mutex mutex_;
  wye::base::Gate gate_;
  int calls_ = 0;
  FileWatch watch_;
};

}  // namespace

TEST_CASE("a change of a file calls back", "[base]") {
  const TemporaryFolder folder;
  const std::string file = folder.put("a.comp", "one");
  folder.put("other.comp", "one");
  CountingWatch watch({file});
  CHECK(watch.is_quiet());
  CHECK(watch.was_called_once([&] { folder.put("a.comp", "two"); }));  // written in place
  folder.put("other.comp", "two");
  CHECK(watch.is_quiet());
  CHECK(watch.was_called_once([&] { std::filesystem::rename(folder.put("a.comp~", "three"), file); }));
  CHECK(watch.was_called_once([&] { std::filesystem::remove(file); }));
  CHECK(watch.was_called_once([&] { folder.put("a.comp", "four"); }));
}

TEST_CASE("ring causes one more call", "[base]") {
  const TemporaryFolder folder;
  CountingWatch watch({folder.put("a", "0")});
  CHECK(watch.is_quiet());
  watch.ring();
  CHECK(watch.was_called());
  CHECK(watch.is_quiet());
}

TEST_CASE("files that the system cannot watch are examined", "[base]") {
  // A user has few inotify instances. The test takes all of them.
  std::vector<int> taken;
  const TemporaryFolder folder;
  const std::string file = folder.put("a", "0");
  for (int one = 0; taken.size() < 4096 && (one = ::inotify_init1(IN_CLOEXEC)) >= 0;) taken.push_back(one);
  const bool none_left = ::inotify_init1(IN_CLOEXEC) < 0 && errno == EMFILE;
  CountingWatch watch({file});
  for (const int one : taken) ::close(one);
  if (!none_left) wye::test::skip("this user has no limit of inotify instances within reach");
  CHECK(watch.is_quiet());
  folder.put("a", "one");
  CHECK(watch.was_called());
}

TEST_CASE("a burst of changes causes one call", "[base]") {
  const TemporaryFolder folder;
  const std::string a = folder.put("a", "0"), b = folder.put("b", "0");
  CountingWatch watch({a, b});
  // On a busy machine the burst may pause for the 20 ms that end it.
  int pauses = 0;
  wye::Instant before = wye::Clock::steady().now();
  for (int i = 0; i < 100; ++i) {
    const wye::Instant start = wye::Clock::steady().now();
    folder.put(i % 2 == 0 ? "a" : "b", std::to_string(i));
    const wye::Instant end = wye::Clock::steady().now();
    pauses += end - before >= 20ms;
    before = start;
  }
  const int calls = watch.calls();
  CHECK(calls >= 1);
  CHECK(calls <= 1 + pauses);
}

TEST_CASE("a change of a link's target calls back", "[base]") {
  const TemporaryFolder folder;
  const std::string file = folder.put("real/a.comp", "one");
  std::filesystem::create_symlink(file, folder / "link.comp");
  CountingWatch watch({folder / "link.comp"});
  folder.put("real/a.comp", "two");
  CHECK(watch.was_called());
}

TEST_CASE("a file calls back when its folder is created, removed and created again", "[base]") {
  const TemporaryFolder folder;
  CountingWatch watch({folder / "later/a.comp"});
  CHECK(watch.is_quiet());
  folder.put("later/a.comp", "one");
  CHECK(watch.was_called());
  folder.put("later/a.comp", "two");
  CHECK(watch.was_called());
  std::filesystem::remove_all(folder / "later");
  CHECK(watch.was_called());
  folder.put("later/a.comp", "three");
  CHECK(watch.was_called());
}

TEST_CASE("only the last set of files calls back", "[base]") {
  const TemporaryFolder folder;
  const std::string a = folder.put("a", "0"), b = folder.put("b", "0");
  CountingWatch watch({a});
  watch.watch({b});
  folder.put("a", "1");
  CHECK(watch.is_quiet());
  folder.put("b", "1");
  CHECK(watch.was_called());
}

TEST_CASE("a watch can end from inside its call", "[base]") {
  const TemporaryFolder folder;
  const std::string file = folder.put("a", "0");
  const int before = wye::base::Worker::alive();
  std::optional<FileWatch> watch;
  std::mutex mutex;
  watch.emplace(FileWatch::start([&] {
                  const wye::base::Lock lock(mutex);
                  watch.reset();
                }).value());
  watch->watch({file});
  CHECK(wye::test::becomes_true([&] { return wye::base::Worker::alive() == before; }));
  const wye::base::Lock lock(mutex);
  CHECK_FALSE(watch);
}
