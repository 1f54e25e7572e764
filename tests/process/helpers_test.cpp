// Threads beside a worker.
#include "process/helpers.hpp"

#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

#include "base/worker.hpp"
#include "support/catch.hpp"

using namespace wye;
using process::Helpers;

TEST_CASE("helpers call the body once for each number", "[process][helpers]") {
  for (const unsigned threads : {0u, 1u, 3u}) {
    auto helpers = Helpers::start("help", threads).value();
    helpers.finish();  // nothing has begun
    for (const std::size_t count : {0u, 1u, 2u, 1000u}) {
      std::vector<std::atomic<int>> calls(count);
      helpers.begin(count, [&](std::size_t number) { ++calls[number]; });
      helpers.finish();
      for (const auto& one : calls) REQUIRE(one == 1);
    }
  }
}

TEST_CASE("helpers work beside the thread that began", "[process][helpers]") {
  auto helpers = Helpers::start("help", 1).value();
  std::atomic<bool> has_begun{false}, may_end{false};
  helpers.begin(1, [&](std::size_t) {
    has_begun = true;
    while (!may_end) std::this_thread::yield();
  });
  while (!has_begun) std::this_thread::yield();
  may_end = true;
  helpers.finish();
  CHECK(may_end);
}

TEST_CASE("the end of helpers waits for their calls, and joins the threads", "[process][helpers]") {
  const int before = base::Worker::alive();
  std::atomic<int> running{0}, done{0};
  {
    auto helpers = Helpers::start("help", 2).value();
    helpers.begin(1000, [&](std::size_t) { ++running, ++done, --running; });
  }
  CHECK((running == 0 && done <= 1000));
  CHECK(base::Worker::alive() <= before);
}
