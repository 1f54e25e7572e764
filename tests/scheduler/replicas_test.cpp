// The copies of arrays and host memory that jobs make: which, and how many bytes.
#include <wye/wye.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "rig.hpp"

using namespace wye;
using Step = test::ScriptedDevice::Step;

namespace {

constexpr std::uint64_t replica_floats = 100, replica_bytes = replica_floats * sizeof(float);

/// Two devices with memory of their own, and a job's bytes on each.
struct Pair {
  test::Scripted a = test::scripted("cuda:0"), b = test::scripted("vulkan:0");
  test::Machine machine{{a, b}};
  Array<float> x = machine.array(std::vector<float>(replica_floats, 1.0f)),
               y = machine.array(std::vector<float>(replica_floats, 2.0f));

  std::uint64_t moved(Job job, std::string_view on) {
    const auto done = machine.scheduler.run(std::move(job), {.on = on});
    if (!done) FAIL(done.error().describe());
    return done->bytes_transferred().count;
  }
  std::uint64_t reads(std::string_view on) { return moved(test::copy()(x, y), on); }
  std::uint64_t changes(std::string_view on) { return moved(test::host_scale()(x, 2.0f), on); }
};

}  // namespace

TEST_CASE("an array is copied to a device once, and then read there", "[scheduler]") {
  Pair pair;
  CHECK(pair.reads("cuda:0") == replica_bytes);
  CHECK(pair.reads("cuda:0") == 0);
  CHECK(pair.reads("vulkan:0") == replica_bytes);
  CHECK(pair.reads("cuda:0") == 0);
  CHECK(pair.reads("vulkan:0") == 0);
}

TEST_CASE("a write on one device makes the copies on the others stale", "[scheduler]") {
  Pair pair;
  CHECK(pair.reads("cuda:0") == replica_bytes);
  CHECK(pair.reads("vulkan:0") == replica_bytes);
  CHECK(pair.changes("cuda:0") == 0);
  CHECK(pair.reads("cuda:0") == 0);
  CHECK(pair.reads("vulkan:0") == 2 * replica_bytes);  // to the host, and from there
  CHECK(pair.changes("vulkan:0") == 0);
  CHECK(pair.changes("cuda:0") == 2 * replica_bytes);
  CHECK(test::contents(pair.x) == std::vector<float>(replica_floats, 8.0f));
}

TEST_CASE("the host's read copies an array once and leaves the device's copy valid", "[scheduler]") {
  Pair pair;
  CHECK(pair.changes("cuda:0") == replica_bytes);
  CHECK(test::contents(pair.x) == std::vector<float>(replica_floats, 2.0f));
  CHECK(pair.changes("cuda:0") == 0);
  CHECK(test::contents(pair.x) == std::vector<float>(replica_floats, 4.0f));
  CHECK(pair.reads("vulkan:0") == replica_bytes);  // the host's copy is valid
}

TEST_CASE("the host's write makes every device's copy stale, also if it changes nothing", "[scheduler]") {
  Pair pair;
  CHECK(pair.reads("cuda:0") == replica_bytes);
  CHECK(pair.reads("vulkan:0") == replica_bytes);
  { CHECK(pair.x.write()); }
  CHECK(pair.reads("cuda:0") == replica_bytes);
  CHECK(pair.reads("vulkan:0") == replica_bytes);
}

TEST_CASE("an array that a job overwrites is not copied to the device first", "[scheduler]") {
  Pair pair;
  CHECK(pair.changes("cuda:0") == replica_bytes);
  CHECK(pair.moved(test::copy()(pair.x, pair.y), "cuda:0") == 0);
  CHECK(pair.moved(test::copy()(pair.y, pair.x), "vulkan:0") == 2 * replica_bytes);  // y alone
  CHECK(test::contents(pair.x) == std::vector<float>(replica_floats, 2.0f));
}

TEST_CASE("host memory is copied by its access: there, back, or both", "[scheduler]") {
  Pair pair;
  std::vector<float> in(replica_floats, 1.0f), out(replica_floats);
  CHECK(pair.moved(test::copy()(in, out), "cuda:0") == 2 * replica_bytes);
  CHECK(out == in);
  CHECK(pair.moved(test::copy()(in, pair.x), "cuda:0") == replica_bytes);
  CHECK(pair.moved(test::copy()(pair.x, out), "cuda:0") == replica_bytes);
  CHECK(pair.moved(test::host_scale()(out, 2.0f), "cuda:0") == 2 * replica_bytes);
  CHECK(out == std::vector<float>(replica_floats, 2.0f));
}

TEST_CASE("host memory that overlaps is copied once", "[scheduler]") {
  Pair pair;
  std::vector<float> x(replica_floats, 1.0f);
  const std::span<float> all(x), first = all.first(60), last = all.last(60);
  const auto scale = test::host_scale();
  CHECK(pair.moved(Job::sequence("two", workload_types::custom, scale(first, 2.0f), {scale(last, 3.0f)}),
                   "cuda:0") == 2 * replica_bytes);
  CHECK(x[0] == 2.0f);
  CHECK(x[50] == 6.0f);
  CHECK(x[replica_floats - 1] == 3.0f);
  // Neighbours that do not overlap are two copies.
  CHECK(pair.moved(Job::sequence("two", workload_types::custom, scale(all.first(10), 2.0f),
                                 {scale(all.last(10), 3.0f)}),
                   "cuda:0") == 2 * 20 * sizeof(float));
}

TEST_CASE("operands of a job that overlap unevenly are refused with the offset", "[scheduler]") {
  const auto both = Kernel<ReadWrite<std::uint8_t>, ReadWrite<std::uint32_t>>::make(
                        {.name = "both",
                         .sources = {host([](Range, std::span<std::uint8_t>, std::span<std::uint32_t>) {})}})
                        .value();
  Pair pair;
  std::vector<std::uint32_t> memory(16);
  const std::span<std::uint8_t> as_bytes(reinterpret_cast<std::uint8_t*>(memory.data()) + 1, 32);
  const auto refused =
      pair.machine.scheduler.run(both(as_bytes, std::span(memory).subspan(1, 4)), {.on = "cuda:0"});
  REQUIRE_FALSE(refused);
  CHECK(refused.error() == Errc::invalid_argument);
  CHECK(refused.error().sentence().find("(3 bytes)") != std::string::npos);
  CHECK(pair.a->buffers_alive() == 0);
}

TEST_CASE("an array used by several arguments and steps is copied once", "[scheduler]") {
  Pair pair;
  const auto scale = test::host_scale();
  CHECK(pair.moved(Job::sequence("steps", workload_types::custom, scale(pair.x, 2.0f),
                                 {test::copy()(pair.x, pair.y), scale(pair.y, 2.0f), scale(pair.x, 2.0f)}),
                   "cuda:0") == replica_bytes);  // y is overwritten
  CHECK(test::contents(pair.x) == std::vector<float>(replica_floats, 4.0f));
  CHECK(test::contents(pair.y) == std::vector<float>(replica_floats, 4.0f));
}

TEST_CASE("a job returns the memory of its operands, and an array that of its copies", "[scheduler]") {
  Pair pair;
  std::vector<float> x(replica_floats, 1.0f);
  CHECK(pair.moved(test::host_scale()(x, 2.0f), "cuda:0") == 2 * replica_bytes);
  CHECK(pair.a->buffers_alive() == 0);
  (void)pair.reads("cuda:0");
  CHECK(pair.a->buffers_alive() == 2);
  pair.x = {};
  pair.y = {};
  (void)pair.moved(test::host_scale()(x, 2.0f), "cuda:0");  // the lane's next recording
  CHECK(pair.a->buffers_alive() == 0);
}

TEST_CASE("a job that fails before it is submitted leaves nothing behind on its lane", "[scheduler]") {
  const auto device = test::scripted("cuda:0");
  std::atomic<bool> fails{true};
  device->set_script([&](Step step) -> std::optional<Error> {
    if (step != Step::create_buffer || !fails || device->buffers_alive() == 0) return std::nullopt;
    return Error(Errc::out_of_memory, "The script fails the second buffer.");
  });
  ContextPool pool = test::pool_of({device}, {.lanes_per_device = 1});
  Scheduler scheduler = scheduler::open(pool, std::make_shared<test::Builder>(Clock::steady())).value();
  {
    std::vector<float> x(replica_floats, 1.0f), y(replica_floats, 1.0f);
    const auto scale = test::host_scale();
    CHECK(scheduler.run(Job::sequence("two", workload_types::custom, scale(x, 2.0f), {scale(y, 2.0f)}))
              .error() == Errc::out_of_memory);
  }
  CHECK(device->buffers_alive() == 0);  // the recorded copy holds no memory, and is not made later
  fails = false;
  std::vector<float> z(replica_floats, 1.0f);
  CHECK(scheduler.run(test::host_scale()(z, 2.0f)));
  CHECK(z == std::vector<float>(replica_floats, 2.0f));
}

TEST_CASE("an array goes round three devices and the host, and every value arrives", "[scheduler]") {
  const auto a = test::scripted("cuda:0"), b = test::scripted("vulkan:0"), c = test::scripted("vulkan:1");
  test::Machine machine({a, b, c});
  std::vector<float> values(replica_floats);
  for (std::size_t i = 0; i < replica_floats; ++i) values[i] = static_cast<float>(i);
  auto x = machine.array(values);
  for (int round = 0; round < 5; ++round) {
    for (const char* on : {"vulkan:1", "cuda:0", "vulkan:0"})
      REQUIRE(machine.scheduler.run(test::host_scale()(x, 2.0f), {.on = on}));
    for (float& value : values) value *= 8.0f;
    REQUIRE(test::contents(x) == values);
    for (float& value : x.write().value()) value *= 0.125f;
    for (float& value : values) value *= 0.125f;
  }
}
