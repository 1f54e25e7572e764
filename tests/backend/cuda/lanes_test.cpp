// A device with fewer lanes than requested.
#include <wye/wye.hpp>

#include <chrono>
#include <optional>
#include <thread>

#include "backend/cuda/rig.hpp"
#include "support/thread.hpp"
#include "test_kernels_cu.hpp"

namespace wye::test {

using namespace std::chrono_literals;

TEST_CASE("a device that gives one lane of two is used through that one", "[cuda][pool]") {
  const StandIn stand_in;
  auto pool =
      ContextPool::open({.backends = {"cuda"}, .lanes_per_device = 2, .cuda_driver = WYE_STAND_IN_CUDA})
          .value();
  const std::string first = pool.lease().value().id();
  stand_in.fail("cuStreamCreateWithPriority", 0, CUDA_ERROR_OUT_OF_MEMORY);
  const long tried = stand_in.calls("cuStreamCreateWithPriority");
  for (int i = 0; i < 4; ++i) CHECK(pool.lease().value().id() == first);
  CHECK(stand_in.calls("cuStreamCreateWithPriority") == tried);
  // A leased lane is waited for, up to the deadline.
  std::optional<Lease> held = pool.lease().value();
  CHECK(held->id() == first);
  const auto none = pool.try_lease();
  REQUIRE_FALSE(none);
  CHECK(none.error() == Errc::unavailable);
  says(none.error().describe(), {"1 of 2 leased", "cannot create a stream"});
  const auto late = pool.lease({.on = "cuda", .deadline = Deadline(20ms)});
  REQUIRE_FALSE(late);
  CHECK(late.error() == Errc::timed_out);
  std::optional<Result<Lease>> waited;
  test::Thread waits([&] { waited.emplace(pool.lease({.on = "cuda", .deadline = Deadline(60s)})); });
  waits.await_parked();
  held.reset();
  waits.join();
  REQUIRE(*waited);
  CHECK((*waited)->id() == first);
  // As soon as the device gives one, there are two.
  stand_in.fail("cuStreamCreateWithPriority", 0, CUDA_SUCCESS);
  CHECK(pool.try_lease().value().id() != first);
}

TEST_CASE("a device that gives no lane at all is an error at once, and another one is taken if there is one",
          "[cuda][pool]") {
  const StandIn stand_in;
  stand_in.fail("cuStreamCreateWithPriority", 0, CUDA_SUCCESS);
  auto pool = ContextPool::open(
                  {.backends = {"cuda", "cpu"}, .lanes_per_device = 2, .cuda_driver = WYE_STAND_IN_CUDA})
                  .value();
  stand_in.fail("cuStreamCreateWithPriority", 0, CUDA_ERROR_OUT_OF_MEMORY);
  const auto none = pool.lease({.on = "cuda", .deadline = Deadline(60s)});
  REQUIRE_FALSE(none);
  CHECK(none.error() == Errc::out_of_memory);
  says(none.error().describe(), {"cannot create a stream", "while creating context 'cuda:0#"});
  CHECK(pool.lease().value().device().id() == "cpu:0");
}

TEST_CASE("contexts report what the pool of their device has reserved", "[cuda][pool]") {
  const StandIn stand_in;
  auto pool = ContextPool::open(
                  {.backends = {"cuda", "cpu"}, .lanes_per_device = 2, .cuda_driver = WYE_STAND_IN_CUDA})
                  .value();
  Lease first = pool.lease({.on = "cuda"}).value();
  const Lease host = pool.lease({.on = "cpu"}).value();
  const Lease second = pool.lease({.on = "cuda"}).value();
  const auto buffer = first.buffer<std::byte>(5 << 20).value();
  const std::vector<ContextInfo> contexts = pool.contexts();
  REQUIRE(contexts.size() == 3);
  CHECK(stand_in.reserved() >= 5_MiB);
  for (const ContextInfo& context : contexts)
    CHECK(context.reserved == (context.backend == "cuda" ? stand_in.reserved() : 0_B));
}

TEST_CASE("an array is read through any lane of its device, and other jobs run there", "[cuda][pool]") {
  if (!has_kernels()) return;
  const StandIn stand_in;
  RuntimeOptions options;
  options.pool.backends = {"cuda"};
  options.pool.cuda_driver = WYE_STAND_IN_CUDA;
  options.pool.lanes_per_device = 2;
  Runtime runtime = good(Runtime::open(options));
  const auto add = good(Kernel<ReadWrite<Word>, Word>::make(
      {.name = "add", .sources = {CudaCpp{.text = test_kernels_cu, .workgroup = Extent3{64}}}}));
  Array<Word> array = runtime.array<Word>(std::vector<Word>(1000, 0));
  REQUIRE(runtime.submit(add(array, 3)).wait());
  stand_in.fail("cuStreamCreateWithPriority", 0, CUDA_ERROR_OUT_OF_MEMORY);
  for (Word i = 1; i <= 4; ++i) {
    {
      const auto seen = array.read();
      if (!seen) FAIL(seen.error().describe());
      CHECK((*seen)[999] == 3 * i);
    }
    const auto done = runtime.submit(add(array, 3)).wait();
    if (!done) FAIL(done.error().describe());
  }
}

}  // namespace wye::test
