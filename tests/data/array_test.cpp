#include <wye/runtime/runtime.hpp>
#include <wye/scheduler/graph.hpp>

#include <chrono>
#include <numeric>
#include <optional>
#include <random>
#include <thread>

#include "support/catch.hpp"
#include "support/kernels.hpp"
#include "support/skip.hpp"
#include "support/stop_point.hpp"

using namespace wye;
using namespace std::chrono_literals;
using namespace wye::literals;

namespace {

std::vector<float> random_floats(std::size_t n, std::uint32_t seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> value(-4, 4);
  std::vector<float> values(n);
  for (float& v : values) v = value(engine);
  return values;
}

bool has(const Runtime& runtime, std::string_view backend) {
  for (const Device& device : runtime.devices())
    if (device.info().backend == backend) return true;
  return false;
}

}  // namespace

TEST_CASE("an array is a copy of its initial values", "[data]") {
  Runtime runtime = Runtime::open({.pool = {.backends = {"cpu"}}}).value();
  auto values = random_floats(777, 1);
  Array<float> array = runtime.array<float>(values);
  const auto before = values;
  values.assign(777, 0);
  auto view = array.read();
  REQUIRE(view);
  CHECK(std::vector<float>(view->begin(), view->end()) == before);
  CHECK(array.size() == 777);
}

TEST_CASE("the host's copies of arrays are charged to the CPU from their first use", "[data][memory]") {
  Runtime runtime = Runtime::open({.pool = {.backends = {"cpu"}, .pool_memory = 1_MiB}}).value();
  const auto held = [&] {
    const Bytes bytes = runtime.metrics().pool.bytes;
    CHECK(runtime.metrics().bytes() == bytes + runtime.metrics().cache.bytes);
    Bytes listed;
    const auto silicon = runtime.pool().silicon();
    for (const auto& share : silicon.front().memory)
      if (share.level == "runtime") listed = share.held;
    CHECK(listed == bytes);
    return bytes;
  };
  REQUIRE(held() == 0_B);
  const auto values = random_floats(16384, 4);
  std::optional<Array<float>> copied = runtime.array<float>(values);
  CHECK(held() == 64_KiB);
  Array<float> empty = runtime.array<float>(16384), viewed = runtime.array<float>(16384);
  std::vector<float> memory(16384);
  Array<float> borrowed = runtime.borrow(std::span(memory));
  CHECK(held() == 64_KiB);
  REQUIRE(runtime.run(test::copy()(*copied, borrowed)));
  CHECK(held() == 64_KiB);
  REQUIRE(runtime.run(test::copy()(*copied, empty)));
  CHECK(held() == 128_KiB);
  REQUIRE(viewed.slice(0, 1).write());
  CHECK(held() == 192_KiB);
  REQUIRE(runtime.run(test::copy()(*copied, empty)));
  CHECK(held() == 192_KiB);
  copied.reset();
  CHECK(held() == 128_KiB);
}

TEST_CASE("arrays beyond the budget of the CPU fail as on other devices", "[data][memory]") {
  for (const bool is_silicon : {false, true}) {
    PoolOptions options{.backends = {"cpu"}};
    (is_silicon ? options.silicon_memory : options.pool_memory) = 1_MiB;
    Runtime runtime = Runtime::open({.pool = options}).value();
    const Errc code = is_silicon ? Errc::out_of_memory : Errc::over_budget;
    const auto error = [&](auto result) {
      REQUIRE_FALSE(result);
      CHECK(result.error() == code);
      return result.error().sentence();
    };
    const std::string limit = is_silicon ? "" : "; the budget of this runtime on 'cpu:0' is 1.00 MiB.";
    const std::vector<float> values(524288, 1.0f);
    Array<float> large = runtime.array<float>(values);
    CHECK(error(large.read()).find("An array needs 2.00 MiB on 'cpu:0'" + limit) == 0);
    Array<float> empty = runtime.array<float>(524288);
    CHECK(error(runtime.run(test::scale()(empty, 2.0f)))
              .find("Job 'scale' needs 2.00 MiB on 'cpu:0'" + limit) == 0);
    Array<float> unused = runtime.array<float>(524288);
    CHECK(error(unused.write()).find("An array needs 2.00 MiB on 'cpu:0'" + limit) == 0);
    CHECK(error(empty.write()).find("An array needs") == 0);  // it has failed still
    CHECK(error(empty.read()).find("Job 'scale' needs") == 0);
    Graph graph;
    graph.add(test::scale()(unused, 2.0f));
    const auto plan = graph.compile(runtime.scheduler());
    CHECK(plan.error() == Errc::over_budget);
    CHECK(plan.error().sentence().find("needs 2.00 MiB on 'cpu:0' (arrays 2.00 MiB") != std::string::npos);
    // Arrays that fit one by one share the budget.
    const std::vector<float> most(196608, 1.0f);
    std::optional<Array<float>> first = runtime.array<float>(most);
    REQUIRE(first->read());
    Array<float> second = runtime.array<float>(196608);
    (void)error(runtime.run(test::scale()(second, 2.0f)));
    (void)error(runtime.array<float>(most).read());
    first.reset();
    CHECK(runtime.metrics().pool.bytes == 0_B);
    REQUIRE(second.write());
    CHECK(runtime.run(test::scale()(second, 2.0f)));
  }
}

TEST_CASE("jobs on arrays follow each other by what they read and write", "[data]") {
  Runtime runtime = Runtime::open({.pool = {.backends = {"cpu"}}}).value();
  const auto scale = test::scale();
  const auto copy = test::copy();
  const auto values = random_floats(1000, 2);
  Array<float> a = runtime.array<float>(values);
  Array<float> b = runtime.array<float>(1000);
  std::vector<Ticket> tickets;
  for (int i = 0; i < 50; ++i) {
    tickets.push_back(runtime.submit(scale(a, i % 2 ? 0.5f : 2.0f)));
    tickets.push_back(runtime.submit(copy(a, b)));
    tickets.push_back(runtime.submit(scale(b, 3.0f)));
  }
  auto view = b.read();
  REQUIRE(view);
  for (std::size_t i = 0; i < values.size(); ++i) CHECK((*view)[i] == values[i] * 3.0f);
  for (Ticket& ticket : tickets) CHECK(ticket.wait());
}

TEST_CASE("an array follows its jobs from device to device", "[data]") {
  Runtime runtime = Runtime::open().value();
  if (!test::has_device(runtime, "vulkan")) return;
  const auto scale = test::scale();
  const auto values = random_floats(5000, 3);
  Array<float> a = runtime.array<float>(values);
  CHECK(runtime.submit(scale(a, 2.0f), {.on = "vulkan"}).wait());
  const auto stays = runtime.submit(scale(a, 2.0f), {.on = "vulkan"}).wait();
  REQUIRE(stays);
  CHECK(stays->bytes_transferred() == Bytes{0});
  const auto comes = runtime.submit(scale(a, 2.0f), {.on = "cpu"}).wait();
  REQUIRE(comes);
  CHECK(comes->bytes_transferred() == Bytes{5000 * sizeof(float)});
  CHECK(runtime.submit(scale(a, 2.0f), {.on = "vulkan"}).wait());
  auto view = a.read();
  REQUIRE(view);
  for (std::size_t i = 0; i < values.size(); ++i) CHECK((*view)[i] == values[i] * 16.0f);
}

TEST_CASE("random programs on arrays give what a sequential interpreter gives", "[data]") {
  Runtime runtime = Runtime::open({.scheduler = {.concurrent_jobs = 4}}).value();
  const bool gpu = has(runtime, "vulkan");
  const auto scale = test::scale();
  const auto copy = test::copy();
  for (std::uint32_t seed = 0; seed < 12; ++seed) {
    std::mt19937 engine(seed);
    constexpr std::size_t arrays = 4, n = 257;
    std::vector<std::vector<float>> model;
    std::vector<Array<float>> real;
    for (std::size_t i = 0; i < arrays; ++i) {
      model.push_back(random_floats(n, seed * 10 + static_cast<std::uint32_t>(i)));
      real.push_back(runtime.array<float>(model.back()));
    }
    for (std::size_t step = 0; step < 40; ++step) {
      const std::size_t a = engine() % arrays, b = engine() % arrays;
      const std::string_view on = gpu && engine() % 2 ? "vulkan" : "cpu";
      const auto kind = engine() % 8;
      if (kind < 4) {
        (void)runtime.submit(scale(real[a], -0.5f), {.on = on}).ready();
        for (float& v : model[a]) v *= -0.5f;
      } else if (kind < 6 && a != b) {
        auto ticket = runtime.submit(copy(real[a], real[b]), {.on = on});
        model[b] = model[a];
      } else if (kind == 6) {
        auto view = real[a].read();
        REQUIRE(view);
        CHECK(std::equal(view->begin(), view->end(), model[a].begin()));
      } else {
        auto view = real[a].write();
        REQUIRE(view);
        (*view)[step % n] = model[a][step % n] = static_cast<float>(step);
      }
    }
    for (std::size_t i = 0; i < arrays; ++i) {
      auto view = real[i].read();
      REQUIRE(view);
      CHECK(std::equal(view->begin(), view->end(), model[i].begin()));
    }
  }
}

TEST_CASE("a failure stays with the array: read and every job that follows return it", "[data]") {
  Runtime runtime = Runtime::open({.pool = {.backends = {"cpu"}}}).value();
  const auto values = random_floats(10, 4);
  Array<float> a = runtime.array<float>(values);
  Array<float> b = runtime.array<float>(values);
  const auto breaks =
      test::on_host("breaks", [](Range, std::span<float>) { throw std::runtime_error("no luck"); });
  auto broken = runtime.submit(breaks(a));
  auto follower = runtime.submit(test::copy()(a, b));
  CHECK(broken.wait().error() == Errc::kernel_failed);
  auto result = follower.wait();
  REQUIRE_FALSE(result);
  CHECK(result.error() == Errc::kernel_failed);
  CHECK(result.error().sentence().find("no luck") != std::string::npos);
  CHECK(a.read().error() == Errc::kernel_failed);
  {
    auto mend = a.write();
    REQUIRE(mend);
    std::copy(values.begin(), values.end(), mend->begin());
  }
  CHECK(a.read());
}

TEST_CASE("writers wait until a read view is destroyed", "[data]") {
  Runtime runtime = Runtime::open({.pool = {.backends = {"cpu"}}}).value();
  const auto values = random_floats(100, 5);
  Array<float> a = runtime.array<float>(values);
  std::optional<Ticket> ticket;
  {
    auto view = a.read();
    REQUIRE(view);
    ticket = runtime.submit(test::host_scale()(a, 2.0f));
    CHECK(ticket->wait(30ms).error() == Errc::timed_out);
    CHECK((*view)[0] == values[0]);
    auto together = a.read(1s);  // readers do not hold each other back... but a writer waits between them
    CHECK(together.error() == Errc::timed_out);
  }
  CHECK(ticket->wait());
  CHECK((*a.read())[0] == values[0] * 2);
}

TEST_CASE("an access that times out does not let its followers overtake its predecessors", "[data]") {
  Runtime runtime = Runtime::open({.pool = {.backends = {"cpu"}}}).value();
  Array<float> a = runtime.array<float>(random_floats(10, 6));
  test::StopPoint running_job;
  const auto slow = test::on_host("slow", [&](Range range, std::span<float> x) {
    running_job.pass();
    for (const std::uint64_t i : range) x[i] = 42;
  });
  auto running = runtime.submit(slow(a));
  CHECK(a.write(10ms).error() == Errc::timed_out);
  auto later = runtime.submit(test::host_scale()(a, 2.0f));
  CHECK(later.wait(20ms).error() == Errc::timed_out);
  running_job.open();
  CHECK(running.wait());
  CHECK(later.wait());
  CHECK((*a.read())[0] == 84);
}

TEST_CASE("an array whose writer was cancelled fails after the predecessors of the writer", "[data]") {
  Runtime runtime = Runtime::open({.pool = {.backends = {"cpu"}}}).value();
  Array<float> a = runtime.array<float>(random_floats(10, 9));
  test::StopPoint running_job;
  const auto slow = test::on_host("slow", [&](Range, std::span<float>) { running_job.pass(); });
  auto running = runtime.submit(slow(a));
  auto cancelled = runtime.submit(test::host_scale()(a, 2.0f));
  cancelled.cancel();
  CHECK(cancelled.wait().error() == Errc::cancelled);
  auto follower = runtime.submit(test::host_scale()(a, 2.0f));
  CHECK(follower.wait(20ms).error() == Errc::timed_out);
  running_job.open();
  CHECK(running.wait());
  CHECK(follower.wait().error() == Errc::cancelled);
  CHECK(a.read().error() == Errc::cancelled);
}

TEST_CASE("a borrowed array writes through to the host's memory", "[data]") {
  Runtime runtime = Runtime::open({.pool = {.backends = {"cpu"}}}).value();
  auto values = random_floats(64, 7);
  const auto before = values;
  Array<float> a = runtime.borrow(std::span<float>(values));
  CHECK(runtime.submit(test::host_scale()(a, 3.0f)).wait());
  CHECK(a.read());
  for (std::size_t i = 0; i < values.size(); ++i) CHECK(values[i] == before[i] * 3);
}

TEST_CASE("empty arrays, huge arrays and empty handles are handled", "[data]") {
  Runtime runtime = Runtime::open({.pool = {.backends = {"cpu"}}}).value();
  Array<float> none = runtime.array<float>(0);
  CHECK(none.read()->size() == 0);
  CHECK(runtime.submit(test::host_scale()(none, 2.0f)).wait());
  Array<double> huge = runtime.array<double>(~0ull / 4);
  CHECK(huge.read().error() == Errc::invalid_argument);
  Array<float> nothing;
  CHECK(nothing.read().error() == Errc::invalid_argument);
  CHECK(runtime.submit(test::host_scale()(nothing, 2.0f)).wait().error() == Errc::invalid_argument);
}

TEST_CASE("an array of another runtime is refused by name", "[data]") {
  Runtime one = Runtime::open({.pool = {.backends = {"cpu"}}}).value();
  Runtime two = Runtime::open({.pool = {.backends = {"cpu"}}}).value();
  Array<float> a = one.array<float>(random_floats(4, 8));
  auto refused = two.submit(test::host_scale()(a, 2.0f)).wait();
  CHECK(refused.error() == Errc::invalid_argument);
  CHECK(refused.error().sentence() == "Argument 1 of 'host_scale' is an array of another runtime.");
}

TEST_CASE("an array outlives its runtime: its contents are read and written afterwards, on every backend",
          "[data]") {
  for (const std::string backend : {"cpu", "vulkan", "cuda"}) {
    INFO(backend);
    Array<float> array, untouched;
    const auto values = random_floats(1000, 7);
    {
      auto opened = Runtime::open({.pool = {.backends = {backend}}});
      if (!opened) continue;
      array = opened->array<float>(values);
      untouched = opened->array<float>(values);
      const auto done = opened->submit(test::scale()(array, 2.0f), {.on = backend}).wait();
      if (!done && done.error() == Errc::unsupported) continue;
      REQUIRE(done);
    }
    {
      const auto view = array.read();
      if (!view) FAIL(view.error().describe());
      for (std::size_t i = 0; i < values.size(); ++i) REQUIRE((*view)[i] == values[i] * 2.0f);
    }
    {
      auto view = array.write();
      REQUIRE(view);
      (*view)[0] = 5;
    }
    CHECK((*array.read())[0] == 5);
    CHECK((*untouched.read())[999] == values[999]);
  }
}

TEST_CASE("reading an array of a closed runtime does not wait for a lease without limit", "[data]") {
  for (const std::string backend : {"cpu", "vulkan"}) {
    INFO(backend);
    auto opened = Runtime::open(
        {.pool = {.backends = {backend}, .lanes_per_device = 1, .lease_timeout = Duration(50ms)}});
    if (!opened) continue;
    Array<float> array = opened->array<float>(std::vector<float>(1000, 3));
    REQUIRE(opened->submit(test::scale()(array, 2.0f)).wait());
    std::optional<Lease> held = opened->pool().lease().value();
    opened->close();
    const auto blocked = array.read();  // without a deadline
    if (!blocked) CHECK(blocked.error() == Errc::timed_out);
    held.reset();
    const auto view = array.read();
    if (!view) FAIL(view.error().describe());
    CHECK((*view)[0] == 6);
  }
}
