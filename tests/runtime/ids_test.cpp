// Ids of jobs, leases, contexts and builds.
#include <wye/wye.hpp>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/kernels.hpp"

using namespace wye;

TEST_CASE("jobs, leases, contexts and builds have ids of one space, in all runtimes", "[runtime]") {
  std::vector<Id> ids, builds;
  std::mutex mutex;
  {
    const auto open = [&] {
      CacheOptions cache;
      cache.on_build = [&](const BuildEvent& event) {
        const std::lock_guard lock(mutex);
        builds.push_back(event.id);
      };
      return Runtime::open({.cache = std::move(cache)}).value();
    };
    Runtime first = open(), second = open();
    std::vector<float> x(10, 1.0f);
    for (Runtime* runtime : {&first, &second}) {
      for (int i = 0; i < 3; ++i) {
        Ticket ticket = runtime->submit(test::host_scale()(x, 2.0f));
        const Id id = ticket.id();
        const auto done = ticket.wait();
        REQUIRE(done);
        CHECK(done->id() == id);
        CHECK(ticket.id() == id);
        ids.push_back(id);
      }
      for (int i = 0; i < 3; ++i) {
        const Lease lease = runtime->pool().lease({.on = "cpu"}).value();
        ids.push_back(lease.lease_id());
        const auto contexts = runtime->pool().contexts();
        CHECK(std::any_of(contexts.begin(), contexts.end(), [&](const ContextInfo& context) {
          return context.id == lease.id() && context.lease_id == lease.lease_id();
        }));
      }
      for (const ContextInfo& context : runtime->pool().contexts()) ids.push_back(context.context_id);
      for (const Device& device : runtime->devices()) {
        const auto scale = test::scale();
        if (device.info().backend == "vulkan")
          (void)runtime->cache().find_or_build(scale, device).has_value();  // some builds compile no GLSL
      }
    }
  }
  ids.insert(ids.end(), builds.begin(), builds.end());
  std::sort(ids.begin(), ids.end());
  CHECK(ids.size() >= 14);
  CHECK(ids.front());
  CHECK(std::adjacent_find(ids.begin(), ids.end()) == ids.end());
}
