#include "base/journal.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/gate.hpp"
#include "base/host_info.hpp"
#include "base/worker.hpp"
#include "support/await.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/stop_point.hpp"

using namespace wye;
using namespace std::chrono_literals;
using base::Event;
using base::JobEnded;
using base::Journal;
using base::KernelReloaded;
using base::Subscription;
using base::Worker;

namespace {

JobEnded job(std::uint64_t thread, std::uint64_t number) {
  JobEnded event;
  event.id = {thread};
  event.number = number;
  return event;
}

/// Emits events 1 to `each` of `threads` threads.
void emit_all(Journal& journal, std::uint64_t threads, std::uint64_t each) {
  std::vector<std::thread> emitters;
  for (std::uint64_t t = 1; t <= threads; ++t)
    emitters.emplace_back([&journal, t, each] {
      for (std::uint64_t i = 1; i <= each; ++i) journal.emit(job(t, i));
    });
  for (std::thread& emitter : emitters) emitter.join();
}

}  // namespace

TEST_CASE("events of many threads arrive in the order of each thread, or are counted as dropped",
          "[base][journal]") {
  constexpr std::uint64_t threads = 6, each = 5000;
  // Without a wait until a ring is idle, threads take the rings of each other all the time.
  for (const auto& [capacity, ring_idle] : std::map<std::size_t, Duration>{{4, 1s}, {64, 0s}, {8192, 1s}}) {
    const auto journal = Journal::make(capacity, ring_idle);
    std::map<std::uint64_t, std::uint64_t> last;
    std::uint64_t heard = 0;
    bool is_ordered = true;
    auto subscription = journal->listen<JobEnded>([&](const JobEnded& event) {
      std::uint64_t& before = last[event.id.number];
      is_ordered &= event.number > before;
      before = event.number;
      if (++heard % 1000 == 0) std::this_thread::yield();
    });
    REQUIRE(subscription);
    emit_all(*journal, threads, each);
    CHECK(journal->flush());
    CHECK(is_ordered);
    CHECK(heard + journal->dropped() == threads * each);
    for (std::uint64_t t = 1; t <= threads; ++t) CHECK(last[t] == each);  // the newest are kept
    if (capacity > each) CHECK(journal->dropped() == 0);
  }
}

TEST_CASE("the oldest events are dropped while a listener blocks", "[base][journal]") {
  const auto journal = Journal::make(8);
  test::StopPoint point;
  std::vector<std::uint64_t> heard;
  auto subscription = journal->listen<JobEnded>([&](const JobEnded& event) {
    if (heard.empty()) point.pass();
    heard.push_back(event.number);
  });
  REQUIRE(subscription);
  journal->emit(job(1, 1));
  point.await();
  for (std::uint64_t i = 2; i <= 20; ++i) journal->emit(job(1, i));
  CHECK(journal->dropped() == 11);
  CHECK_FALSE(journal->flush(Clock::steady().now()));
  point.open();
  CHECK(journal->flush());
  CHECK(heard == std::vector<std::uint64_t>{1, 13, 14, 15, 16, 17, 18, 19, 20});
  CHECK(journal->dropped() == 11);
}

TEST_CASE("bursts of any length are kept up to the limit, in order", "[base][journal]") {
  const auto journal = Journal::make(64);
  std::mt19937_64 random(5);
  test::StopPoint* blocks = nullptr;
  std::vector<std::uint64_t> heard;
  auto subscription = journal->listen<JobEnded>([&](const JobEnded& event) {
    if (blocks) std::exchange(blocks, nullptr)->pass();
    heard.push_back(event.number);
  });
  REQUIRE(subscription);
  std::uint64_t number = 0;
  for (int round = 0; round < 300; ++round) {
    test::StopPoint point;
    REQUIRE(journal->flush());
    heard.clear();
    blocks = &point;
    journal->emit(job(1, ++number));
    point.await();
    const std::uint64_t burst = random() % 100, kept = std::min<std::uint64_t>(burst, 64);
    for (std::uint64_t i = 0; i < burst; ++i) journal->emit(job(1, ++number));
    point.open();
    REQUIRE(journal->flush());
    REQUIRE(heard.size() == 1 + kept);
    for (std::uint64_t i = 0; i < kept; ++i) REQUIRE(heard[1 + i] == number - kept + 1 + i);
  }
}

TEST_CASE("the events of a thread need memory for those that wait", "[base][journal][no_sanitizer]") {
  const auto journal = Journal::make(32'768);  // 8 MiB
  std::uint64_t heard = 0;
  auto subscription = journal->listen<JobEnded>([&](const JobEnded& event) { heard = event.number; });
  REQUIRE(subscription);
  const auto emit = [&](std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t i = first; i <= last; ++i) {
      journal->emit(job(1, i));
      if (i % 50 == 0) REQUIRE(journal->flush());
    }
  };
  emit(1, 100);
  const Bytes before = base::process_use().resident;
  emit(101, 100'000);  // three rounds
  REQUIRE(journal->flush());
  CHECK(heard == 100'000);
  CHECK(base::process_use().resident.count < before.count + (3 << 20));
}

TEST_CASE("an event is delivered after the event of another thread that caused it", "[base][journal]") {
  const auto journal = Journal::make(8192);
  std::vector<std::uint64_t> heard;
  heard.reserve(4000);
  auto subscription =
      journal->listen<JobEnded>([&](const JobEnded& event) { heard.push_back(event.number); });
  REQUIRE(subscription);
  std::atomic<std::uint64_t> turn{1};
  const auto play = [&](std::uint64_t odd) {
    for (std::uint64_t i = 0; i < 2000; ++i) {
      while (turn % 2 != odd) std::this_thread::yield();
      journal->emit(job(odd, turn));
      ++turn;
    }
  };
  std::thread other([&] { play(0); });
  play(1);
  other.join();
  CHECK(journal->flush());
  CHECK(heard.size() == 4000);
  CHECK(std::is_sorted(heard.begin(), heard.end()));
}

TEST_CASE("no thread reads the journal without a listener, and none is left behind", "[base][journal]") {
  const int threads = Worker::alive();
  const auto journal = Journal::make();
  CHECK_FALSE(journal->wants<JobEnded>());
  journal->emit(job(1, 1));
  CHECK(threads == Worker::alive());
  for (int round = 0; round < 3; ++round) {
    int heard = 0;
    auto jobs = journal->listen<JobEnded>([&](const JobEnded&) { ++heard; });
    auto reloads = journal->listen<KernelReloaded>([&](const KernelReloaded&) { heard += 100; });
    REQUIRE((jobs && reloads));
    CHECK(threads + 1 == Worker::alive());
    CHECK(journal->wants<JobEnded>());
    CHECK_FALSE(journal->wants<base::KernelBuilt>());
    jobs->end();
    CHECK_FALSE(journal->wants<JobEnded>());
    journal->emit(job(1, 2));
    journal->emit(KernelReloaded{.kernel = "k"});
    reloads->finish();
    CHECK(heard == 100);
    CHECK(threads == Worker::alive());
  }
  CHECK(journal->dropped() == 0);
  CHECK(journal->flush());
}

TEST_CASE("a listener receives the events since its subscription, and those before its end",
          "[base][journal]") {
  const auto journal = Journal::make();
  test::StopPoint point;
  int first = 0, second = 0;
  auto slow = journal->listen_to_all([&](const Event&) {
    ++first;
    point.pass();
  });
  REQUIRE(slow);
  journal->emit(job(1, 1));
  point.await();
  journal->emit(job(1, 2));
  auto late = journal->listen_to_all([&, emitter = base::this_thread()](const Event& event) {
    second += std::get<JobEnded>(event.data).number == 3 && event.thread == emitter ? 1 : 100;
  });
  REQUIRE(late);
  journal->emit(job(1, 3));
  point.open();
  late->finish();
  CHECK(first == 3);
  CHECK(second == 1);
}

TEST_CASE("exceptions of a listener are dropped", "[base][journal]") {
  const auto journal = Journal::make();
  int thrown = 0, heard = 0;
  auto throws = journal->listen<JobEnded>([&](const JobEnded&) {
    ++thrown;
    throw std::runtime_error("the application's");
  });
  auto hears = journal->listen<JobEnded>([&](const JobEnded&) { ++heard; });
  for (int i = 0; i < 3; ++i) journal->emit(job(1, 1));
  CHECK(journal->flush());
  CHECK(thrown == 3);
  CHECK(heard == 3);
}

TEST_CASE("a listener may emit, flush, subscribe and end any subscription", "[base][journal]") {
  const int threads = Worker::alive();
  const auto journal = Journal::make();
  std::atomic<int> jobs{0}, reloads{0}, refused{0};
  const auto held = std::make_shared<int>();
  std::optional<Subscription> own, other;
  std::mutex mutex;
  {
    const base::Lock lock(mutex);
    own = journal
              ->listen<JobEnded>([&, held](const JobEnded& event) {
                const base::Lock wait_until_assigned(mutex);
                ++jobs;
                refused += !journal->flush();
                if (event.number == 1) {
                  journal->emit(KernelReloaded{.kernel = "k"});
                  journal->emit(job(1, 2));
                } else if (event.number == 2) {
                  other->end();
                  other =
                      journal->listen<KernelReloaded>([&](const KernelReloaded&) { reloads += 10; }).value();
                  journal->emit(KernelReloaded{.kernel = "k"});
                } else {
                  own->end();
                  *held = 1;  // this listener still has it
                }
              })
              .value();
    other = journal->listen<KernelReloaded>([&](const KernelReloaded&) { ++reloads; }).value();
  }
  journal->emit(job(1, 1));
  test::await([&] { return reloads == 11; });
  journal->emit(job(1, 3));
  CHECK(journal->flush());
  journal->emit(job(1, 4));
  CHECK(journal->flush());
  CHECK(jobs == 3);
  CHECK(refused == 3);
  CHECK(*held == 1);
  CHECK(held.use_count() == 1);
  CHECK(threads + 1 == Worker::alive());
  other->end();
  CHECK(threads == Worker::alive());
}

TEST_CASE("a journal whose last subscription ends in its listener has no thread, and may be heard again",
          "[base][journal]") {
  const int threads = Worker::alive();
  {
    auto journal = Journal::make();
    for (int round = 0; round < 50; ++round) {
      std::mutex mutex;
      std::optional<Subscription> own;
      std::atomic<int> heard{0};
      {
        const base::Lock lock(mutex);
        own = journal
                  ->listen<JobEnded>([&](const JobEnded&) {
                    const base::Lock wait_until_assigned(mutex);
                    own->end();
                    ++heard;
                  })
                  .value();
      }
      journal->emit(job(1, 1));
      test::await([&] { return heard == 1; });
      const base::Lock until_the_call_is_over(mutex);
    }
    std::optional<Subscription> last;
    std::mutex mutex;
    {
      const base::Lock lock(mutex);
      last = journal
                 ->listen<JobEnded>([&](const JobEnded&) {
                   const base::Lock wait_until_assigned(mutex);
                   last.reset();
                 })
                 .value();
      journal->emit(job(1, 1));
      journal.reset();
    }
    test::await([&] {
      const base::Lock lock(mutex);
      return !last;
    });
  }
  test::await([&] { return threads == Worker::alive(); });
}

TEST_CASE("listeners that come and go while threads emit are called only while they are subscribed",
          "[base][journal]") {
  const int threads = Worker::alive();
  {
    const auto journal = Journal::make(16);
    std::atomic<bool> over{false};
    std::vector<std::thread> emitters, listeners;
    for (std::uint64_t t = 1; t <= 3; ++t)
      emitters.emplace_back([&, t] {
        for (std::uint64_t i = 1; !over; ++i) {
          journal->emit(job(t, i));
          if (i % 64 == 0) std::this_thread::yield();
        }
      });
    for (int l = 0; l < 3; ++l)
      listeners.emplace_back([&, l] {
        for (int round = 0; round < 100; ++round) {
          auto alive = std::make_unique<std::atomic<std::uint64_t>>(0);
          auto subscription =
              journal->listen<JobEnded>([&alive](const JobEnded& event) { *alive = event.number; });
          if (!subscription) return;
          while (round % 3 == l && *alive == 0) std::this_thread::yield();
          if (round % 2 == 0) (void)journal->flush();
          subscription->end();
          alive.reset();  // a later call would write to freed memory
        }
      });
    for (std::thread& listener : listeners) listener.join();
    over = true;
    for (std::thread& emitter : emitters) emitter.join();
  }
  CHECK(threads == Worker::alive());
}

TEST_CASE("two journals of one thread do not mix", "[base][journal]") {
  const auto first = Journal::make(), second = Journal::make();
  std::vector<std::uint64_t> of_first, of_second;
  auto a = first->listen<JobEnded>([&](const JobEnded& event) { of_first.push_back(event.number); });
  auto b = second->listen<JobEnded>([&](const JobEnded& event) { of_second.push_back(event.number); });
  for (std::uint64_t i = 0; i < 10; ++i) (i % 2 == 0 ? first : second)->emit(job(1, i));
  CHECK(first->flush());
  CHECK(second->flush());
  CHECK(of_first == std::vector<std::uint64_t>{0, 2, 4, 6, 8});
  CHECK(of_second == std::vector<std::uint64_t>{1, 3, 5, 7, 9});
}

TEST_CASE("an event keeps its error and its texts, cut to what fits", "[base][journal]") {
  const auto journal = Journal::make();
  std::optional<JobEnded> heard;
  auto subscription = journal->listen<JobEnded>([&](const JobEnded& event) { heard = event; });
  {
    const std::string name = std::string(62, 'n') + "\xc3\xa9tude";  // the 63rd byte begins a character
    JobEnded event = job(7, 1);
    event.name = name;
    event.type = "matrix";
    event.error = Error(Errc::io, "No.");
    journal->emit(event);
  }
  CHECK(journal->flush());
  REQUIRE(heard);
  CHECK(heard->id == Id{7});
  CHECK(std::string_view(heard->name) == std::string(62, 'n'));
  CHECK(std::string_view(heard->type) == "matrix");
  CHECK(heard->error->sentence() == "No.");
}

TEST_CASE("a child of fork has the journal of its parent and no listener", "[base][journal][fork]") {
  const auto journal = Journal::make();
  std::atomic<int> heard{0};
  auto subscription = journal->listen<JobEnded>([&](const JobEnded&) { ++heard; });
  REQUIRE(subscription);
  journal->emit(job(1, 1));
  CHECK(journal->flush());
  CHECK(test::in_child([&]() -> int {
          journal->emit(job(1, 2));
          WYE_CHILD_CHECK(1, journal->flush());
          WYE_CHILD_CHECK(2, heard == 1);
          const auto late = journal->listen<JobEnded>([](const JobEnded&) {});
          WYE_CHILD_CHECK(3, !late && late.error() == Errc::closed);
          subscription->end();
          return 0;
        }) == test::success);
  journal->emit(job(1, 3));
  subscription->finish();
  CHECK(heard == 2);
}
