#include "base/team.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "base/gate.hpp"
#include "base/worker.hpp"
#include "support/catch.hpp"

using wye::base::ChunkFunction;
using wye::base::Gate;
using wye::base::Lock;
using wye::base::Pace;
using wye::base::Team;
using wye::base::WakeTime;
using wye::base::Worker;
using namespace std::chrono_literals;

namespace {

/// Counts down to zero; waiters park.
class Countdown {
 public:
  explicit Countdown(int count) : left_(count) {}
  void done() {
    const Lock lock(mutex_);
    if (--left_ == 0) gate_.wake_all();
  }
  void wait() {
    Lock lock(mutex_);
    gate_.wait(lock, wye::Instant::max(), [&] { return left_ == 0; });
  }

 private:
  std::mutex mutex_;
  Gate gate_;
  int left_;
};

/// Enough work that a team wakes other threads.
void spin_for(std::chrono::microseconds time) {
  const wye::Instant until = wye::Clock::steady().now() + time;
  while (wye::Clock::steady().now() < until) {
  }
}

void wait_for_no_worker() {
  std::mutex mutex;
  Gate gate;
  Lock lock(mutex);
  while (Worker::alive() != 0) {
    gate.wait(lock, wye::Clock::steady().now() + std::chrono::milliseconds(1), [] { return false; });
  }
}

}  // namespace

TEST_CASE("a team visits every item once, in runs of whole grains", "[base]") {
  const unsigned size = GENERATE(1u, 2u, 3u, 8u);
  const auto team = *Team::share(size);
  CHECK(team->size() == size);
  for (std::uint64_t count : {0u, 1u, 2u, 63u, 64u, 65u, 1000u, 4097u, 100'003u}) {
    for (std::uint64_t grain : {0u, 1u, 7u, 64u, 5000u}) {
      CAPTURE(size, count, grain);
      std::vector<std::atomic<std::uint8_t>> visits(count);
      std::atomic<int> wrong{0};
      auto chunk = [&](std::uint64_t first, std::uint64_t last) {
        const std::uint64_t whole = std::max<std::uint64_t>(grain, 1);
        if (first >= last || last > count || first % whole != 0) ++wrong;
        if (last != count && (last - first) % whole != 0) ++wrong;
        for (std::uint64_t i = first; i < last; ++i) ++visits[i];
      };
      team->each(count, grain, chunk);
      CHECK(wrong == 0);
      CHECK(std::count(visits.begin(), visits.end(), 1) == static_cast<std::ptrdiff_t>(count));
    }
  }
}

TEST_CASE("a team computes the same sum as one thread", "[base]") {
  const auto team = *Team::share(4);
  std::mt19937_64 random(11);
  std::vector<std::uint64_t> numbers(250'007);
  for (auto& number : numbers) number = random();
  std::atomic<std::uint64_t> sum{0};
  auto chunk = [&](std::uint64_t first, std::uint64_t last) {
    std::uint64_t part = 0;
    for (std::uint64_t i = first; i < last; ++i) part += numbers[i];
    sum += part;
  };
  team->each(numbers.size(), 1000, chunk);
  CHECK(sum == std::accumulate(numbers.begin(), numbers.end(), std::uint64_t{0}));
}

TEST_CASE("grids near the end of 64 bits are cut without overflow", "[base]") {
  const auto team = *Team::share(3);
  constexpr std::uint64_t most = ~std::uint64_t{0};
  for (std::uint64_t grain : {most / 2, most / 3 + 1, most / 1000}) {
    std::atomic<std::uint64_t> sum{0};
    auto chunk = [&](std::uint64_t first, std::uint64_t last) { sum += last - first; };
    team->each(most, grain, chunk);
    CHECK(sum == most);
  }
}

TEST_CASE("one grain runs on the caller alone", "[base]") {
  const auto team = *Team::share(4);
  std::thread::id runner;
  int calls = 0;
  auto chunk = [&](std::uint64_t first, std::uint64_t last) {
    ++calls;
    CHECK(first == 0);
    CHECK(last == 100);
    runner = std::this_thread::get_id();
  };
  team->each(100, 100, chunk);
  CHECK(calls == 1);
  CHECK(runner == std::this_thread::get_id());
}

TEST_CASE("all threads of a team work on one grid", "[base]") {
  constexpr unsigned size = 4;
  const auto team = *Team::share(size);
  // Each run waits until `size` runs have begun. The test hangs unless as many threads take part.
  Countdown all(size);
  auto chunk = [&](std::uint64_t, std::uint64_t) {
    all.done();
    all.wait();
  };
  team->each(size, 1, chunk);
  CHECK(Worker::alive() >= static_cast<int>(size) - 1);
}

TEST_CASE("a small grid of cheap items runs on its caller, in two pieces", "[base]") {
  const auto team = *Team::share(4);
  Pace pace;
  CHECK_FALSE(pace.known());
  pace.saw(1000, std::chrono::microseconds(1));
  CHECK(pace.expected(2000) == std::chrono::microseconds(2));
  using Runs = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  const auto runs_of = [&](std::uint64_t count, std::uint64_t grain) {
    Pace cheap;
    cheap.saw(1000, std::chrono::microseconds(1));
    std::mutex mutex;
    Runs runs;
    runs.reserve(count);
    auto chunk = [&](std::uint64_t first, std::uint64_t last) {
      const Lock lock(mutex);
      runs.emplace_back(first, last);
    };
    team->each(count, grain, chunk, cheap);
    return runs;
  };
  // If the system preempts the thread in the first piece, its items look expensive. That does not
  // happen every time.
  const auto comes_to = [&](std::uint64_t count, std::uint64_t grain, const Runs& wanted) {
    for (int i = 0; i < 1000; ++i)
      if (runs_of(count, grain) == wanted) return true;
    return false;
  };
  CHECK(comes_to(64, 1, {{0, 8}, {8, 64}}));
  CHECK(comes_to(10, 3, {{0, 3}, {3, 10}}));  // in whole grains
}

TEST_CASE("expensive items are shared at once, and the pace follows their cost", "[base]") {
  constexpr unsigned size = 4;
  const auto team = *Team::share(size);
  Pace pace;
  pace.saw(1, std::chrono::seconds(1));
  Countdown all(size);
  auto chunk = [&](std::uint64_t, std::uint64_t) {
    all.done();
    all.wait();
  };
  team->each(size, 1, chunk, pace);  // hangs if a thread is alone
  CHECK(pace.expected(1) < std::chrono::seconds(1));
  for (int i = 0; i < 100; ++i) pace.saw(1, std::chrono::milliseconds(4));
  CHECK(pace.expected(1) > std::chrono::milliseconds(3));
  CHECK(pace.expected(1) < std::chrono::milliseconds(5));
  CHECK(pace.expected(~0ull) > std::chrono::hours(1));
}

TEST_CASE("the time of a wake follows measurements, shorter ones faster, within its limits", "[base]") {
  WakeTime time;
  const wye::Duration first = time.expected();
  CHECK(first == wye::base::parking);
  for (int i = 0; i < 100; ++i) time.saw(40us);
  CHECK(time.expected() > 39us);
  CHECK(time.expected() <= 40us);

  time.saw(20us);
  CHECK(time.expected() <= 35us);
  const wye::Duration before = time.expected();
  time.saw(60us);
  CHECK(time.expected() > before);
  CHECK(time.expected() < before + 2us);

  for (int i = 0; i < 1000; ++i) time.saw(1h);
  CHECK(time.expected() <= WakeTime::longest);
  CHECK(time.expected() > WakeTime::longest - 1us);
  for (int i = 0; i < 100; ++i) time.saw(0ns);
  CHECK(time.expected() < first + 1us);
}

TEST_CASE("at most as many threads as the team's size work on one grid", "[base]") {
  const auto team = *Team::share(3);
  std::atomic<int> inside{0}, most{0};
  auto chunk = [&](std::uint64_t, std::uint64_t) {
    const int now = ++inside;
    for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
    }
    spin_for(std::chrono::microseconds(20));
    --inside;
  };
  for (int round = 0; round < 20; ++round) team->each(24, 1, chunk);
  CHECK(most <= 3);
}

TEST_CASE("calls of each may be nested", "[base]") {
  const auto team = *Team::share(3);
  std::atomic<std::uint64_t> count{0};
  auto inner = [&](std::uint64_t first, std::uint64_t last) { count += last - first; };
  auto middle = [&](std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t i = first; i < last; ++i) team->each(37, 1, inner);
  };
  auto outer = [&](std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t i = first; i < last; ++i) team->each(11, 1, middle);
  };
  for (int round = 0; round < 20; ++round) team->each(13, 1, outer);
  CHECK(count == 20u * 13 * 11 * 37);
}

TEST_CASE("many threads share a team", "[base]") {
  const auto team = *Team::share(2);
  std::atomic<std::uint64_t> count{0};
  std::vector<std::thread> hosts;
  for (unsigned host = 0; host < 6; ++host) {
    hosts.emplace_back([&team, &count, host] {
      std::mt19937 random(host);
      for (int round = 0; round < 200; ++round) {
        auto chunk = [&](std::uint64_t first, std::uint64_t last) { count += last - first; };
        const std::uint64_t items = random() % 5000 + 1;
        team->each(items, random() % 50 + 1, chunk);
        count -= items;
      }
    });
  }
  for (std::thread& host : hosts) host.join();
  CHECK(count == 0);
}

TEST_CASE("posted tasks run on team threads, in the order of each posting thread", "[base]") {
  const auto team = *Team::share(1);
  std::vector<int> order;
  std::atomic<bool> on_caller{false};
  const auto caller = std::this_thread::get_id();
  Countdown all(100);
  for (int i = 0; i < 100; ++i) {
    team->post([&, i] {
      if (std::this_thread::get_id() == caller) on_caller = true;
      order.push_back(i);  // a team of one has one thread
      all.done();
    });
  }
  all.wait();
  std::vector<int> expected(100);
  std::iota(expected.begin(), expected.end(), 0);
  CHECK(order == expected);
  CHECK_FALSE(on_caller);
}

TEST_CASE("a task may post, and call each", "[base]") {
  const unsigned size = GENERATE(1u, 2u, 4u);
  const auto team = *Team::share(size);
  std::atomic<std::uint64_t> count{0};
  Countdown all(64);
  for (int i = 0; i < 64; ++i) {
    team->post([&] {
      auto chunk = [&](std::uint64_t first, std::uint64_t last) { count += last - first; };
      team->each(501, 10, chunk);
      team->post([&] {
        ++count;
        all.done();
      });
    });
  }
  all.wait();
  CHECK(count == 64 * 502);
}

TEST_CASE("a chunk may post", "[base]") {
  const auto team = *Team::share(3);
  Countdown all(50);
  auto chunk = [&](std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t i = first; i < last; ++i) team->post([&] { all.done(); });
  };
  team->each(50, 1, chunk);
  all.wait();
}

TEST_CASE("a posted task does not wait for the end of a grid", "[base]") {
  const auto team = *Team::share(2);
  std::atomic<bool> ran{false};
  std::atomic<bool> posted{false};
  // Both threads are inside the grid. A run returns only after the task ran, so one thread must
  // leave the grid for it.
  auto chunk = [&](std::uint64_t first, std::uint64_t) {
    if (first == 0) {
      team->post([&] { ran = true; });
      posted = true;
      while (!ran) std::this_thread::yield();
    } else {
      spin_for(std::chrono::microseconds(50));
    }
  };
  team->each(8, 1, chunk);
  CHECK(posted);
  CHECK(ran);
}

TEST_CASE("a posted task runs even if the last handle ends first", "[base]") {
  std::atomic<int> ran{0};
  {
    const auto team = *Team::share(2);
    for (int i = 0; i < 200; ++i) team->post([&] { ++ran; });
  }
  CHECK(ran == 200);
}

TEST_CASE("the captures of a task are destroyed with it", "[base]") {
  const auto team = *Team::share(1);
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = held;
  team->post([held = std::move(held)] {});
  Countdown after(1);
  team->post([&] { after.done(); });
  after.wait();
  CHECK(watch.expired());
}

TEST_CASE("there is one team of a size", "[base]") {
  const auto two = *Team::share(2);
  const auto same = *Team::share(2);
  const auto other = *Team::share(3);
  CHECK(two == same);
  CHECK(two != other);
  CHECK((*Team::share(0))->size() >= 1);
  CHECK(*Team::share(0) != nullptr);
}

TEST_CASE("a team of absurd size is refused", "[base]") {
  const auto refused = Team::share(1025);
  REQUIRE_FALSE(refused);
  CHECK(refused.error() == wye::Errc::invalid_argument);
  CHECK(refused.error().sentence() == "Team size (1025 threads) exceeds the limit (1024 threads).");
}

TEST_CASE("a team starts its first thread for its first task, and ends with none", "[base]") {
  wait_for_no_worker();
  auto team = *Team::share(4);
  auto nothing = [](std::uint64_t, std::uint64_t) {};
  team->each(1, 1, nothing);
  CHECK(Worker::alive() == 0);
  Countdown posted(1);
  CHECK(team->post([&] { posted.done(); }));
  posted.wait();
  CHECK(Worker::alive() == 1);
  auto second = team;
  team.reset();
  CHECK(Worker::alive() >= 1);
  second.reset();
  CHECK(Worker::alive() == 0);
}

TEST_CASE("a last handle may end inside a task of its team", "[base]") {
  for (int round = 0; round < 50; ++round) {
    auto team = *Team::share(2);
    Team* const plain = team.get();
    auto nothing = [](std::uint64_t, std::uint64_t) { spin_for(std::chrono::microseconds(2)); };
    plain->each(16, 1, nothing);
    plain->post([team = std::move(team)]() mutable { team.reset(); });
  }
  wait_for_no_worker();
  CHECK(Worker::alive() == 0);
}

TEST_CASE("teams come and go a thousand times, on many threads", "[base]") {
  std::atomic<std::uint64_t> count{0};
  std::vector<std::thread> hosts;
  for (unsigned host = 0; host < 4; ++host) {
    hosts.emplace_back([&count, host] {
      for (unsigned round = 0; round < 250; ++round) {
        const auto team = *Team::share(1 + (round + host) % 3);
        auto chunk = [&](std::uint64_t first, std::uint64_t last) { count += last - first; };
        team->each(100, 1, chunk);
        if (round % 2) team->post([&count] { ++count; });
      }
    });
  }
  for (std::thread& host : hosts) host.join();
  CHECK(Worker::alive() == 0);
  CHECK(count == 4 * (250 * 100 + 125));
}

TEST_CASE("a chunk function and its copy refer to the same callable", "[base]") {
  int calls = 0;
  auto callable = [&](std::uint64_t first, std::uint64_t last) { calls += static_cast<int>(last - first); };
  auto original = std::make_unique<ChunkFunction>(callable);
  ChunkFunction copy = *original;
  original.reset();
  copy(0, 3);
  CHECK(calls == 3);
}
