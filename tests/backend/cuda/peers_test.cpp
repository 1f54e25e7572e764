// Two CUDA devices that access each other's memory. Transfers between them do not pass through the
// host.
#include <wye/interop/shared.hpp>
#include <wye/wye.hpp>

#include <random>

#include "backend/cuda/rig.hpp"
#include "base/internals.hpp"
#include "device/native.hpp"
#include "pool/pool.hpp"
#include "test_kernels_cu.hpp"

namespace wye::test {
namespace {

using namespace std::chrono_literals;

/// The stand-in with two devices, which reach each other or not.
struct Two {
  explicit Two(bool peers)
      : count("WYE_STANDIN_DEVICES", "2"),
        reach("WYE_STANDIN_PEERS", peers ? "1" : "0"),
        pool(ContextPool::open({.backends = {"cuda"}, .cuda_driver = WYE_STAND_IN_CUDA}).value()) {
    REQUIRE(pool.devices().size() == 2);
  }
  Device a() const { return pool.devices()[0]; }
  Device b() const { return pool.devices()[1]; }
  const Setting count, reach;
  ContextPool pool;
};

using Add = Kernel<ReadWrite<Word>, Word>;
Add add_on_cuda() {
  return good(
      Add::make({.name = "add", .sources = {CudaCpp{.text = test_kernels_cu, .workgroup = Extent3{64}}}}));
}

}  // namespace

TEST_CASE("a lane copies out of the memory of a device that it reaches", "[cuda][peers]") {
  const StandIn stand_in;
  const auto alive = stand_in.alive();
  {
    Two two(true);
    CHECK(reaches(*base::state_of(two.a()), *base::state_of(two.b())));
    CHECK(reaches(*base::state_of(two.b()), *base::state_of(two.a())));
    std::mt19937 random(3);
    for (const std::size_t count : {std::size_t{1}, std::size_t{4099}, std::size_t{1'000'003}}) {
      std::vector<Word> words(count), seen(count);
      for (Word& word : words) word = static_cast<Word>(random());
      Lease a = two.pool.lease({.on = "cuda:0"}).value(), b = two.pool.lease({.on = "cuda:1"}).value();
      auto from = a.buffer<Word>(count).value();
      auto to = b.buffer<Word>(count).value();
      a.upload(words, from);
      a.wait().value();
      const long before = stand_in.calls("cuMemcpyPeerAsync"), staged = stand_in.calls("cuMemcpyAsync");
      b.copy(from, to, from.bytes());
      b.wait().value();
      CHECK(stand_in.calls("cuMemcpyPeerAsync") == before + 1);
      CHECK(stand_in.calls("cuMemcpyAsync") == staged);
      b.download(to, seen);
      b.wait().value();
      CHECK((seen == words));
    }
    // In a sequence too: not as a graph.
    Lease a = two.pool.lease({.on = "cuda:0"}).value(), b = two.pool.lease({.on = "cuda:1"}).value();
    auto from = a.buffer<Word>(100).value();
    auto to = b.buffer<Word>(100).value();
    a.fill(from, 9);
    a.wait().value();
    SequenceState sequence(base::state_of(two.b()));
    sequence.open().copy(range(base::state_of(from)), range(base::state_of(to)));
    for (int i = 0; i < 3; ++i) base::state_of(b)->lane().submit(sequence);
    std::vector<Word> seen(100);
    b.download(to, seen);
    b.wait().value();
    CHECK(seen == std::vector<Word>(100, 9));
    CHECK(stand_in.calls("cuMemcpyPeerAsync") == 6);
  }
  CHECK(stand_in.changed_since(alive) == "");
}

TEST_CASE("a lane refuses the memory of a device that it does not reach, and to write another's",
          "[cuda][peers]") {
  const StandIn stand_in;
  for (const bool peers : {true, false}) {
    Two two(peers);
    CHECK(reaches(*base::state_of(two.a()), *base::state_of(two.b())) == peers);
    Lease a = two.pool.lease({.on = "cuda:0"}).value();
    auto mine = a.buffer<Word>(10).value();
    auto other = two.b().buffer<Word>(10).value();
    if (peers)
      a.copy(mine, other, mine.bytes());
    else
      a.copy(other, mine, mine.bytes());
    auto refused = a.wait();
    REQUIRE_FALSE(refused);
    INFO(refused.error().describe());
    CHECK(refused.error() == Errc::invalid_argument);
    CHECK(refused.error().sentence().find("another device") != std::string::npos);
    CHECK(stand_in.calls("cuMemcpyPeerAsync") == 0);
  }
}

TEST_CASE("an array goes from one device to another that reaches it without the host", "[cuda][peers]") {
  if (!has_kernels()) return;
  for (const bool peers : {true, false}) {
    const StandIn stand_in;
    const Setting count("WYE_STANDIN_DEVICES", "2"), reach("WYE_STANDIN_PEERS", peers ? "1" : "0");
    Runtime runtime = good(Runtime::open({.pool = {.backends = {"cuda"}, .cuda_driver = WYE_STAND_IN_CUDA}}));
    REQUIRE(runtime.devices().size() == 2);
    const Add add = add_on_cuda();
    auto array = runtime.array(std::vector<Word>(10'007, 1));
    const auto run = [&](const char* on) {
      auto done = runtime.submit(Job(add(array, 1)), {.fallback = Fallback::forbid, .on = on}).wait();
      if (!done) FAIL(done.error().describe());
      CHECK(done->device().id == on);
      return done->bytes_transferred();
    };
    run("cuda:0");
    const long staged = stand_in.calls("cuMemcpyAsync");
    const Bytes moved = run("cuda:1");
    CHECK(moved == Bytes{(peers ? 1u : 2u) * 4u * 10'007u});  // once, or down and up again
    CHECK(stand_in.calls("cuMemcpyPeerAsync") == (peers ? 1 : 0));
    CHECK((stand_in.calls("cuMemcpyAsync") == staged) == peers);
    for (int i = 0; i < 3; ++i) {
      run("cuda:0");
      run("cuda:1");
    }
    CHECK(stand_in.calls("cuMemcpyPeerAsync") == (peers ? 7 : 0));
    const auto view = good(array.read());
    CHECK((std::vector<Word>(view.begin(), view.end()) == std::vector<Word>(10'007, 9)));
  }
}

TEST_CASE("a failed copy between devices fails the job and its outputs", "[cuda][peers]") {
  if (!has_kernels()) return;
  const StandIn stand_in;
  const Setting count("WYE_STANDIN_DEVICES", "2");
  Runtime runtime = good(Runtime::open({.pool = {.backends = {"cuda"}, .cuda_driver = WYE_STAND_IN_CUDA}}));
  const Add add = add_on_cuda();
  auto array = runtime.array(std::vector<Word>(100, 1));
  runtime.submit(Job(add(array, 1)), {.on = "cuda:0"}).wait().value();
  stand_in.fail("cuMemcpyPeerAsync", 1, CUDA_ERROR_NOT_PERMITTED);
  auto failed = runtime.submit(Job(add(array, 1)), {.fallback = Fallback::forbid, .on = "cuda:1"}).wait();
  REQUIRE_FALSE(failed);
  INFO(failed.error().describe());
  CHECK(failed.error() == Errc::unavailable);
  CHECK(failed.error().describe().find("cuMemcpyPeerAsync") != std::string::npos);
  CHECK(array.read().error() == Errc::unavailable);
  CHECK(stand_in.calls("cuMemcpyPeerAsync") == 1);
}

TEST_CASE("memory of two devices that reach each other is handed over without the host", "[cuda][peers]") {
  for (const bool peers : {true, false}) {
    const StandIn stand_in;
    Two two(peers);
    auto memory = interop::share<Word>(two.a(), two.b(), 1000).value();
    CHECK(memory.why_copied().find("not the same processor") != std::string::npos);
    Lease a = two.pool.lease({.on = "cuda:0"}).value(), b = two.pool.lease({.on = "cuda:1"}).value();
    a.fill(memory.on(two.a()), 21);
    memory.hand_over(a, b, 60s).value();
    CHECK(stand_in.calls("cuMemcpyPeerAsync") == (peers ? 1 : 0));
    CHECK((stand_in.calls("cuMemcpyAsync") == 0) == peers);
    std::vector<Word> seen(1000);
    b.download(memory.on(two.b()), seen);
    b.wait().value();
    CHECK(seen == std::vector<Word>(1000, 21));
  }
}

}  // namespace wye::test
