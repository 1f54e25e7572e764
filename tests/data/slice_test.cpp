// Slices of arrays: order, transfers and failures by element.
#include <wye/interop/dlpack.hpp>
#include <wye/runtime/runtime.hpp>

#include <atomic>
#include <chrono>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/kernels.hpp"
#include "support/skip.hpp"
#include "support/stop_point.hpp"

using namespace wye;
using namespace std::chrono_literals;

namespace {

Runtime cpu() { return Runtime::open({.pool = {.backends = {"cpu"}, .lanes_per_device = 8}}).value(); }

/// An array of 0, 1, 2...
Array<float> counting(Runtime& runtime, std::size_t n) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), 0.0f);
  return runtime.array<float>(values);
}

std::vector<float> contents(const Array<float>& array) {
  const auto view = array.read().value();
  return {view.begin(), view.end()};
}

}  // namespace

TEST_CASE("a slice reads and writes its elements", "[data][slice]") {
  Runtime runtime = cpu();
  Array<float> array = counting(runtime, 10);
  Array<float> middle = array.slice(3, 4);
  CHECK(middle.size() == 4);
  CHECK(contents(middle) == std::vector<float>{3, 4, 5, 6});
  CHECK(contents(middle.slice(1, 2)) == std::vector<float>{4, 5});  // a slice of a slice
  REQUIRE(runtime.run(test::host_scale()(middle, 10.0f)));
  {
    auto view = array.slice(9, 1).write().value();
    REQUIRE(view.size() == 1);
    view[0] = -1;
  }
  CHECK(contents(array) == std::vector<float>{0, 1, 2, 30, 40, 50, 60, 7, 8, -1});
  CHECK(array.size() == 10);
}

TEST_CASE("views of slices wait for those that overlap, and for no other", "[data][slice]") {
  Runtime runtime = cpu();
  Array<float> array = counting(runtime, 10);
  const auto first = array.slice(0, 5).write();
  const auto second = array.slice(5, 5).write(0ms);
  CHECK(second);
  CHECK(array.slice(4, 1).read(0ms).error() == Errc::timed_out);
  CHECK(array.read(0ms).error() == Errc::timed_out);
  CHECK(array.slice(5, 0).read(0ms).error() ==
        Errc::timed_out);  // an empty slice follows as its first element would
}

TEST_CASE("jobs on slices that do not overlap run at the same time", "[data][slice]") {
  Runtime runtime = cpu();
  Array<float> array = counting(runtime, 8);
  test::StopPoint running;
  const auto held = test::on_host("held", [&](Range range, std::span<float> x) {
    running.pass();
    for (const std::uint64_t i : range) x[i] += 100;
  });
  auto left = runtime.submit(held(array.slice(0, 4)));
  auto whole = runtime.submit(test::host_scale()(array, 2.0f));
  auto right = runtime.submit(test::host_scale()(array.slice(4, 4), 3.0f));  // follows `whole`
  CHECK_FALSE(right.wait(20ms));
  Array<float> other = counting(runtime, 8);
  auto other_left = runtime.submit(held(other.slice(0, 4)));
  CHECK(runtime.submit(test::host_scale()(other.slice(4, 4), 3.0f))
            .wait());  // while the job on the left half is held
  CHECK_FALSE(other_left.ready());
  running.open();
  REQUIRE(right.wait());
  REQUIRE(whole.wait());
  CHECK(contents(array) == std::vector<float>{200, 202, 204, 206, 24, 30, 36, 42});
  CHECK(contents(other) == std::vector<float>{100, 101, 102, 103, 12, 15, 18, 21});
}

TEST_CASE("a failed job on a slice fails the elements of the slice only", "[data][slice]") {
  Runtime runtime = cpu();
  Array<float> array = counting(runtime, 6);
  const auto breaks =
      test::on_host("breaks", [](Range, std::span<float>) { throw std::runtime_error("no luck"); });
  CHECK(runtime.run(breaks(array.slice(2, 2))).error() == Errc::kernel_failed);
  CHECK(contents(array.slice(0, 2)) == std::vector<float>{0, 1});
  CHECK(contents(array.slice(4, 2)) == std::vector<float>{4, 5});
  CHECK(array.slice(3, 2).read().error() == Errc::kernel_failed);
  CHECK(array.read().error() == Errc::kernel_failed);
  CHECK(runtime.run(test::host_scale()(array.slice(1, 2), 2.0f)).error() == Errc::kernel_failed);
  CHECK(array.slice(1, 1).read().error() == Errc::kernel_failed);  // that job failed, too
  for (float& value : array.slice(1, 2).write().value()) value = 7;
  CHECK(array.slice(2, 2).read().error() == Errc::kernel_failed);
  CHECK(contents(array.slice(0, 3)) == std::vector<float>{0, 7, 7});
  for (float& value : array.write().value()) value = 1;
  CHECK(contents(array) == std::vector<float>(6, 1.0f));
}

TEST_CASE("a job transfers only the elements of its slices", "[data][slice]") {
  Runtime runtime = Runtime::open({.pool = {.backends = {"vulkan"}}}).value();
  if (!test::has_device(runtime, "vulkan")) return;
  Array<float> array = counting(runtime, 4096);
  const auto scale = test::scale();
  const auto on_slice = [&](std::uint64_t first, std::uint64_t count) {
    return runtime.run(scale(array.slice(first, count), 2.0f)).value().bytes_transferred();
  };
  CHECK(on_slice(1024, 1024) == Bytes{4096});
  CHECK(on_slice(1024, 1024) == Bytes{0});
  CHECK(on_slice(512, 1024) == Bytes{2048});  // half of it is there
  CHECK(on_slice(0, 4096) == Bytes{4096 * 4 - 4096 - 2048});
  {
    auto view = array.slice(100, 4).write().value();
    for (float& value : view) value = 0;
  }
  CHECK(on_slice(0, 4096) == Bytes{16});
  const std::vector<float> values = contents(array);
  for (std::size_t i = 0; i < 4096; ++i) {
    const int times = 2 + (i >= 1024 && i < 2048 ? 2 : 0) + (i >= 512 && i < 1536 ? 1 : 0);
    const float expected =
        i >= 100 && i < 104 ? 0.0f : static_cast<float>(i) * static_cast<float>(1 << times);
    REQUIRE(values[i] == expected);
  }
}

TEST_CASE("a slice beyond its array is refused with its sizes", "[data][slice]") {
  Runtime runtime = cpu();
  Array<float> array = counting(runtime, 6);
  for (const Array<float>& slice : {array.slice(5, 2), array.slice(7, 0), array.slice(1, ~std::uint64_t{0}),
                                    array.slice(2, 2).slice(1, 2), array.slice(9, 9).slice(0, 0)}) {
    CHECK(slice.size() == AnyArray::beyond);
    CHECK(slice.read().error() == Errc::invalid_argument);
    CHECK(slice.read().error().sentence() == "A slice of the array ends beyond its 6 elements.");
    const auto refused = runtime.run(test::host_scale()(slice, 2.0f));
    REQUIRE_FALSE(refused);
    CHECK(refused.error() == Errc::invalid_argument);
    CHECK(refused.error().sentence() ==
          "Argument 1 of 'host_scale' is a slice that ends beyond its array (6 elements).");
  }
  CHECK(array.slice(0, 1).read().error() == Errc::invalid_argument);  // the jobs should have written it
  CHECK(array.write());
  CHECK(contents(array) == std::vector<float>{0, 1, 2, 3, 4, 5});
  CHECK(contents(array.slice(6, 0)).empty());
  CHECK(Array<float>().slice(0, 0).read().error() == Errc::invalid_argument);
}
