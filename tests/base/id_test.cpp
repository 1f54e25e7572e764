#include "base/id.hpp"

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

#include "support/catch.hpp"

using wye::Id;
using namespace wye::base;

TEST_CASE("ids of many threads differ, and none is zero", "[base]") {
  constexpr std::size_t threads = 8, each = 10'000;
  std::vector<std::vector<Id>> made(threads);
  {
    std::vector<std::thread> makers;
    for (std::vector<Id>& ids : made)
      makers.emplace_back([&ids] {
        for (std::size_t i = 0; i < each; ++i) ids.push_back(next_id());
      });
    for (std::thread& maker : makers) maker.join();
  }
  std::vector<Id> all;
  for (const std::vector<Id>& ids : made) all.insert(all.end(), ids.begin(), ids.end());
  std::sort(all.begin(), all.end());
  CHECK(all.size() == threads * each);
  CHECK(all.front());
  CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
  CHECK_FALSE(Id());
}

TEST_CASE("a copy of an object with an id has an id of its own", "[base]") {
  const Identified first, second, copy(first);  // NOLINT: the copy is the subject
  CHECK(first.id != second.id);
  CHECK(copy.id);
  CHECK(copy.id != first.id);
}

TEST_CASE("the number of a thread is its own", "[base]") {
  std::uint64_t other = 0;
  std::thread([&] { other = this_thread(); }).join();
  CHECK(this_thread() == this_thread());
  CHECK(other != this_thread());
  CHECK(other > 0);
}
