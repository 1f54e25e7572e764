// The jobs of one priority in a line, against a sorted list.
#include "scheduler/entries.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "support/catch.hpp"

using namespace wye;
using scheduler::Entries;
using scheduler::Entry;

namespace {

using Shared = std::shared_ptr<scheduler::Waiting>;

/// The same jobs in `Entries` and in a list.
struct Both {
  Entries entries;
  std::vector<Shared> list;  // the next one first

  static bool runs_before(const Shared& a, const Shared& b) {
    return a->due != b->due ? a->due < b->due : a->sequence < b->sequence;
  }
  void add(Instant due, std::uint64_t sequence, std::size_t room = 1) {
    auto job = std::make_shared<scheduler::Waiting>();
    job->due = due;
    job->sequence = sequence;
    entries.reserve(room);
    list.insert(std::upper_bound(list.begin(), list.end(), job, runs_before), job);
    push(job);
  }
  void push(const Shared& job) {
    entries.push({.due = job->due, .sequence = job->sequence, .number = ++job->waits.entries, .job = job});
  }
  void check_front() const {
    REQUIRE(entries.size() == list.size());
    REQUIRE(entries.empty() == list.empty());
    if (!list.empty()) REQUIRE(entries.front().job == list.front());
  }
  void drop(const Shared& job) { std::erase(list, job); }
};

Instant at(std::uint64_t due) { return Instant(std::chrono::nanoseconds(due)); }

}  // namespace

TEST_CASE("jobs that are added in order are taken in order, with few moves of them") {
  Both both;
  std::uint64_t sequence = 0;
  for (std::size_t waiting = 0; waiting < 200; ++waiting) {
    both.add({}, ++sequence);
    both.add({}, ++sequence);
    both.check_front();
    CHECK(both.entries.pop_front() == both.list.front());
    both.list.erase(both.list.begin());
  }
  while (!both.list.empty()) {
    both.check_front();
    CHECK(both.entries.pop_front() == both.list.front());
    both.list.erase(both.list.begin());
  }
  both.check_front();
}

TEST_CASE("jobs that are added in any order are taken in order") {
  const std::uint64_t seed = GENERATE(range(1u, 9u));
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t end) { return random() % end; };
  Both both;
  std::uint64_t sequence = 0;
  const std::uint64_t span = seed % 2 ? 4 : 1000;  // of equal and of distinct times
  for (int step = 0; step < 4000; ++step) {
    const bool grows = (step / 500) % 2 == 0;
    const std::uint64_t draw = below(grows ? 10 : 20);
    if (draw < 7 || both.list.empty()) {
      both.add(at(below(span)), ++sequence, 1 + below(3));
    } else if (draw < 12) {
      REQUIRE(both.entries.pop_front() == both.list.front());
      both.list.erase(both.list.begin());
    } else if (draw < 15) {
      const auto job = both.entries.back().job;
      REQUIRE(both.entries.pop_back() == job);
      both.drop(job);
    } else {
      const Shared job = both.list[below(both.list.size())];
      const Entry* found = nullptr;
      both.entries.each([&](const Entry& entry) { found = entry.job == job ? &entry : found; });
      REQUIRE(found);
      REQUIRE(both.entries.remove(*found) == job);
      both.drop(job);
    }
    both.check_front();
  }
}

TEST_CASE("there is room for as many jobs as were reserved, in any order") {
  Both both;
  for (std::uint64_t i = 0; i < 100; ++i) both.add(at(i), i, 20);
  std::vector<Shared> taken;
  for (int i = 0; i < 19; ++i) taken.push_back(both.entries.pop_front());
  for (std::uint64_t i = 100; i < 119; ++i) both.add(at(i), i, 20);
  for (auto job = taken.rbegin(); job != taken.rend(); ++job) both.push(*job);  // the least comes last
  for (; !both.list.empty(); both.list.erase(both.list.begin())) {
    both.check_front();
    REQUIRE(both.entries.pop_front() == both.list.front());
  }
}

TEST_CASE("an entry is old once its job has another one, and stale once its job runs") {
  Both both;
  both.add({}, 1);
  const Entry& entry = both.entries.front();
  CHECK_FALSE(entry.is_stale());
  entry.job->state = scheduler::State::staging;
  CHECK_FALSE(entry.is_stale());
  entry.job->state = scheduler::State::running;
  CHECK(entry.is_stale());
  CHECK_FALSE(entry.is_old());
  entry.job->state = scheduler::State::queued;
  ++entry.job->waits.entries;
  CHECK(entry.is_old());
  CHECK(entry.is_stale());
}
