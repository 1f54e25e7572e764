// Operands of calls: their checks, their sizes, and their memory on a device.
#include "flight/operands.hpp"

#include <wye/data/array.hpp>
#include <wye/scheduler/job.hpp>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "rig.hpp"

using namespace wye;
using namespace wye::literals;
using test::Scene;
using test::scripted;

namespace {

using Values = std::vector<float>;

flight::Region region_of(Values& values, std::shared_ptr<device::BufferBase> buffer) {
  auto* const first = reinterpret_cast<std::byte*>(values.data());
  return {.first = first, .last = first + values.size() * sizeof(float), .buffer = std::move(buffer)};
}

Operand operand_of(Values& values, std::size_t from, std::size_t count) {
  return Operand::host_span(std::span(values).subspan(from, count), Access::read_write);
}

}  // namespace

TEST_CASE("the calls of a list and of a job are the same", "[flight]") {
  Values x{1, 2}, y{3};
  const auto scale = test::host_scale();
  const std::vector<Call> list{scale(x, 2.0f), scale(y, 3.0f), scale(x, 4.0f)};
  const Job job = Job::sequence("three", workload_types::custom, list[0], {list[1], list[2]});
  const flight::Calls of_list(list), of_job(job);
  REQUIRE(of_list.size() == 3);
  REQUIRE(of_job.size() == 3);
  for (std::size_t c = 0; c < 3; ++c) {
    CHECK(&of_list[c] == &list[c]);
    CHECK(&of_job[c] == &job[c]);
  }
  CHECK(flight::Calls(Job::failed("none", workload_types::custom, Error(Errc::internal, "no"))).size() == 0);
  CHECK(flight::size_of(of_job) == Bytes{3 * sizeof(float)});  // x counts once
}

TEST_CASE("the check of operands names the argument", "[flight]") {
  Values x{1};
  std::vector<Call> calls{test::host_scale()(x, 2.0f)};
  CHECK(flight::check_operands(calls));
  Operand& operand = calls[0].arguments()[0];
  operand.count = std::numeric_limits<std::uint64_t>::max();
  const auto wrong = flight::check_operands(calls);
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error() == Errc::invalid_argument);
  CHECK(
      wrong.error().sentence().starts_with("Argument 1 of 'host_scale' (18446744073709551615 elements of 4"));
  operand.kind = static_cast<Operand::Kind>(77);
  CHECK(flight::check_operands(calls).error().sentence() ==
        "Argument 1 of 'host_scale' has an unknown kind (77).");
}

TEST_CASE("host memory is bound to the buffer of its region", "[flight]") {
  const Scene scene(test::pool_of({scripted("cuda:0")}));
  Values x(10), y(10);
  if (y.data() < x.data()) x.swap(y);
  const auto buffer_x = scene.state().allocate(scene.request(40_B)).value();
  const auto buffer_y = scene.state().allocate(scene.request(40_B)).value();
  const std::vector<flight::Region> regions{region_of(x, buffer_x), region_of(y, buffer_y)};
  for (const bool is_first : {true, false}) {
    Operand operand = operand_of(is_first ? x : y, 3, 4);
    REQUIRE(flight::bind_operand(operand, scene.state(), regions, scene.request()));
    CHECK(operand.kind == Operand::Kind::buffer);
    CHECK(operand.object == (is_first ? buffer_x : buffer_y));
    CHECK(operand.offset == 3);
    CHECK(operand.count == 4);
  }
  Operand between = operand_of(x, 1, 2);
  between.data = static_cast<std::byte*>(between.data) + 2;
  const auto refused = flight::bind_operand(between, scene.state(), regions, scene.request());
  REQUIRE_FALSE(refused);
  CHECK(refused.error() == Errc::invalid_argument);
}

TEST_CASE("an operand without elements is bound to an empty buffer of the given account", "[flight]") {
  const Scene scene(test::pool_of({scripted("cuda:0")}));
  Values x(1);
  Operand operand = operand_of(x, 0, 0);
  REQUIRE(flight::bind_operand(operand, scene.state(), {}, scene.request(4_B)));
  CHECK(operand.kind == Operand::Kind::buffer);
  CHECK(operand.count == 0);
  CHECK(scene.held() == 0_B);
}

TEST_CASE("an array is bound to its replica, or in place", "[flight]") {
  for (const bool is_in_place : {false, true}) {
    INFO(is_in_place);
    const Scene scene(test::pool_of({scripted("cuda:0", AdapterType::discrete,
                                              is_in_place ? Features{Feature::host_memory} : Features{})}));
    const auto array = test::array_in(scene.pool, {1, 2, 3, 4});
    Operand operand = Array<float>(array).slice(1, 2).operand(Access::read);
    REQUIRE(flight::bind_operand(operand, scene.state(), {}, scene.request()));
    CHECK(operand.count == 2);
    if (is_in_place) {
      CHECK(operand.kind == Operand::Kind::host);
      CHECK(*static_cast<const float*>(operand.data) == 2.0f);
      CHECK(operand.offset == 0);
    } else {
      CHECK(operand.kind == Operand::Kind::buffer);
      CHECK(operand.object == array->replica_on(scene.state()));
      CHECK(operand.offset == 1);
    }
  }
}
