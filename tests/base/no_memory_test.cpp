// Parts that do without memory.
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/id.hpp"
#include "base/journal.hpp"
#include "support/catch.hpp"
#include "support/failing_new.hpp"

using namespace wye;
using base::JobEnded;
using base::Journal;

TEST_CASE("an id costs no allocation", "[base]") {
  const long before = test::allocations;
  for (int i = 0; i < 1000; ++i) (void)base::next_id();
  CHECK(test::allocations == before);
}

TEST_CASE("without memory for its ring an event is dropped and counted", "[base][journal]") {
  const auto journal = Journal::make(4);
  std::vector<std::uint64_t> heard;
  auto subscription =
      journal->listen<JobEnded>([&](const JobEnded& event) { heard.push_back(event.number); });
  REQUIRE(subscription);
  heard.reserve(4);
  long n = 0;
  for (int failed = 1; failed != 0 && n < 10; ++n) {
    JobEnded event;
    event.number = static_cast<std::uint64_t>(n);
    test::fail_allocations(n, test::Failing::all_of_thread);
    journal->emit(event);
    test::fail_no_allocations();
    failed = test::failed_allocations();
  }
  CHECK(n > 1);
  CHECK(n < 10);
  CHECK(journal->flush());
  CHECK(journal->dropped() == static_cast<std::uint64_t>(n - 1));
  CHECK(heard == std::vector{static_cast<std::uint64_t>(n - 1)});
}

TEST_CASE("an emission allocates nothing once the thread has its ring", "[base][journal]") {
  const auto journal = Journal::make(4);
  journal->emit(JobEnded{});
  auto subscription = journal->listen<JobEnded>([](const JobEnded&) {});
  REQUIRE(subscription);
  const Error error(Errc::internal, "A sentence that is longer than a short string would be.");
  journal->emit(JobEnded{});
  const long before = test::allocations;
  for (int i = 0; i < 100; ++i) {
    JobEnded event;
    event.name = "a name that is longer than a short string would be";
    event.error = error;
    journal->emit(event);
  }
  CHECK(test::allocations == before);
}

TEST_CASE("a thread that has ended leaves its ring to a later thread", "[base][journal]") {
  const auto journal = Journal::make(4, Duration::zero());
  auto subscription = journal->listen<JobEnded>([](const JobEnded&) {});
  REQUIRE(subscription);
  const auto allocated_by = [&](auto emit) {
    const long before = test::all_allocations;
    for (int i = 0; i < 20; ++i) {
      std::thread(emit).join();
      CHECK(journal->flush());
    }
    return test::all_allocations - before;
  };
  (void)allocated_by([&] { journal->emit(JobEnded{}); });
  CHECK(allocated_by([&] { journal->emit(JobEnded{}); }) == allocated_by([] {}));
}
