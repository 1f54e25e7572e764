// Exceptions of the application, and the lack of memory, at every point of a build.
#include <wye/cache/shader_cache.hpp>

#include <stdexcept>
#include <thread>

#include "cache/cache.hpp"
#include "cache/prewarming.hpp"
#include "doubles.hpp"
#include "support/catch.hpp"
#include "support/double_device.hpp"
#include "support/failing_new.hpp"

using namespace wye;
using namespace std::chrono_literals;
using test::DoubleDevice;
using test::metrics;
using test::program;

namespace {

/// Each call throws.
class ThrowingStore final : public BlobStore {
 public:
  Result<std::optional<std::vector<std::byte>>> get(const Digest&) override {
    throw std::runtime_error("no");
  }
  Result<void> put(const Digest&, std::span<const std::byte>) override { throw 42; }
  Result<void> remove(const Digest&) override { throw std::runtime_error("no"); }
};

class ThrowingObserver final : public device::UseObserver {
 public:
  void used(const std::shared_ptr<const device::Program>&,
            const std::shared_ptr<device::DeviceBase>&) override {
    throw std::runtime_error("no");
  }
};

Instant soon() { return Clock::steady().now() + 1min; }

}  // namespace

TEST_CASE("a store that throws is a store that fails: kernels are built, and one warning is logged",
          "[cache]") {
  std::vector<std::string> warnings;
  const auto device = std::make_shared<DoubleDevice>();
  device->code.resize(8);  // to store at the end
  {
    const auto cache = cache::Cache::open({.store = std::make_shared<ThrowingStore>(),
                                           .log =
                                               [&](const LogRecord& record) {
                                                 if (record.level == LogLevel::warning)
                                                   warnings.emplace_back(record.text);
                                               }})
                           .value();
    for (const Instant until : {Instant::max(), soon()}) {
      const auto scale = program(until == soon() ? "patient" : "scale", true);
      REQUIRE(cache->provide(scale, device, until));
      CHECK(cache->provide(scale, device, until)->tier == CacheTier::memory);
      CHECK(cache->explain(*scale, *device).find("is ready") != std::string::npos);
    }
    cache->clear();
  }
  CHECK(warnings == std::vector<std::string>{"The cache continues without the stored kernels that it cannot "
                                             "reach: The store of kernels threw: no."});
}

TEST_CASE("a callback that throws after a build keeps no waiter from the result", "[cache]") {
  const auto device = std::make_shared<DoubleDevice>();
  for (const bool fails : {false, true}) {
    const auto cache =
        cache::Cache::open({.on_build = [](const BuildEvent&) { throw std::runtime_error("no"); }}).value();
    const auto slow = program("slow", true);
    slow->on_build = [&]() -> Result<void> {
      while (metrics(*cache).joined < 1) std::this_thread::yield();
      if (fails) return Error(Errc::compile_failed, "No.");
      return {};
    };
    std::optional<Result<device::Provided>> waited;
    std::thread waiter([&] {
      while (slow->builds == 0) std::this_thread::yield();
      waited = cache->provide(slow, device, soon());
    });
    const auto built = cache->provide(slow, device, soon());
    waiter.join();
    CHECK(built.has_value() != fails);
    CHECK(waited->has_value() != fails);
    if (fails) CHECK(waited->error().sentence() == "No.");
  }
}

TEST_CASE("whichever allocation of a build fails, its callers receive a result, and the next call builds",
          "[cache][no_tsan]") {
  enum class End { success, failure, exception };
  for (const End end : {End::success, End::failure, End::exception})
    for (const bool has_deadline : {false, true}) {
      long n = 0;
      for (bool failed = true; failed && n < 1000; ++n) {
        INFO("allocation " << n << ", end " << static_cast<int>(end)
                           << (has_deadline ? ", on a thread" : ""));
        const auto cache =
            cache::Cache::open({.store = std::make_shared<test::MemoryStore>(),
                                .on_build = [](const BuildEvent&) { throw std::runtime_error("no"); }})
                .value();
        const auto device = std::make_shared<DoubleDevice>();
        const auto slow = program("a kernel with a name that needs an allocation", true);
        slow->on_build = [&]() -> Result<void> {
          while (metrics(*cache).joined < 1) std::this_thread::yield();
          test::fail_allocations(n, test::Failing::all_of_thread);
          if (end == End::failure) return Error(Errc::compile_failed, "The kernel does not compile at all.");
          if (end == End::exception) throw std::runtime_error("a fault of the kernel's own compiler");
          return {};
        };
        std::optional<Result<device::Provided>> waited;
        std::thread waiter([&] {
          while (slow->builds == 0) std::this_thread::yield();
          waited = cache->provide(slow, device, soon());
        });
        try {
          (void)cache->provide(slow, device, has_deadline ? soon() : Instant::max()).has_value();
        } catch (const std::bad_alloc&) {  // as at every public function of the cache
        }
        waiter.join();
        test::fail_no_allocations();
        failed = test::failed_allocations() > 0;
        REQUIRE(waited);
        CHECK((*waited || waited->error() != Errc::timed_out));
        if (!failed) CHECK(waited->has_value() == (end == End::success));
        slow->on_build = nullptr;
        cache->clear();
        CHECK(cache->provide(slow, device, soon()));
      }
      CHECK(n > 1);
      CHECK(n < 1000);
    }
}

TEST_CASE("an exception on the thread of a prewarm counts as a failed build", "[cache]") {
  const auto cache = cache::Cache::open({.store = std::make_shared<ThrowingStore>()}).value();
  const auto observer = std::make_shared<ThrowingObserver>();
  cache->observe(observer);
  const auto device = std::make_shared<DoubleDevice>();
  device->code.resize(8);
  const auto prewarming =
      cache::Prewarming::start(cache, {{program("a"), device}, {program("b"), device}}).value();
  CHECK(prewarming->wait(1min));
  CHECK(prewarming->progress().failed == 2);
  CHECK(prewarming->progress().ended);
}
