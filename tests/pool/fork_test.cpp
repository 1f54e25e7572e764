// A pool of the parent in a child of `fork`.
#include <wye/pool/context_pool.hpp>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/child.hpp"

using namespace wye;
using namespace std::chrono_literals;

namespace {

template <class T>
bool is_inherited(const Result<T>& result) {
  return !result && result.error() == Errc::closed &&
         result.error().sentence().find("forked") != std::string::npos;
}

}  // namespace

TEST_CASE("in a child of fork an inherited pool refuses every call and ends at once",
          "[pool][no_sanitizer]") {
  std::optional<ContextPool> pool =
      ContextPool::open({.backends = {"cpu", "null"}, .lanes_per_device = 1}).value();
  std::optional<Lease> lease = pool->lease().value();
  std::optional<Buffer> buffer = lease->buffer<float>(10).value();
  lease->fill(*buffer, 0);
  CHECK(test::in_child([&] {
          WYE_CHILD_CHECK(1, is_inherited(pool->lease()));
          WYE_CHILD_CHECK(2, is_inherited(pool->lease({.on = "null"})));
          WYE_CHILD_CHECK(3, is_inherited(pool->try_lease({.on = "nowhere"})));
          WYE_CHILD_CHECK(4, is_inherited(pool->close(Deadline::never())));
          WYE_CHILD_CHECK(5, pool->contexts().empty() && pool->metrics().leases == 0);
          WYE_CHILD_CHECK(6, pool->devices().size() == 2 && pool->adapters().size() == 2);
          WYE_CHILD_CHECK(7, is_inherited(lease->wait()));
          WYE_CHILD_CHECK(8, is_inherited(lease->buffer<float>(1)) && is_inherited(pool->rescan()));
          pool->close();
          Lease moved = *std::move(lease);
          buffer.reset(), lease.reset(), pool.reset();
          auto own = ContextPool::open({.backends = {"cpu"}});
          WYE_CHILD_CHECK(9, own && own->lease() && own->lease()->wait());
          return 0;
        }) == test::success);
  CHECK(lease->wait());
  CHECK(pool->try_lease({.on = "null"}));
  CHECK(pool->metrics().active == 1);
}

TEST_CASE("a fork while threads lease leaves parent and child without a locked pool",
          "[pool][no_sanitizer]") {
  std::optional<ContextPool> pool =
      ContextPool::open({.backends = {"null"}, .lanes_per_device = 2, .lease_timeout = 60s}).value();
  std::atomic<bool> stop{false};
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      while (!stop) failed += !pool->lease().has_value();
    });
  std::vector<std::string> ends;
  for (int i = 0; i < 20; ++i)
    ends.push_back(test::in_child([&] {
      WYE_CHILD_CHECK(1, is_inherited(pool->lease()));
      WYE_CHILD_CHECK(2, pool->metrics().leases == 0);
      pool->close();
      pool.reset();
      return 0;
    }));
  stop = true;
  for (auto& thread : threads) thread.join();
  for (const std::string& end : ends) CHECK(end == test::success);
  CHECK(failed == 0);
  CHECK(pool->metrics().active == 0);
}
