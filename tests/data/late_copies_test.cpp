// Copies to a device that complete late, in another order, or not before their job has ended.
#include <wye/pool/context_pool.hpp>

#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "base/internals.hpp"
#include "data/array_state.hpp"
#include "pool/pool.hpp"
#include "support/catch.hpp"
#include "support/scripted_pool.hpp"

using namespace wye;
using namespace std::chrono_literals;

namespace {

/// Two devices, of which the second one reaches the first one. The commands of the first one run
/// when the test releases them.
struct LateCopies {
  test::Scripted late = test::scripted("cuda:0"), other = test::scripted("cuda:1");
  std::shared_ptr<pool::Pool> pool;

  LateCopies() {
    other->reach_others();
    pool = base::state_of(test::pool_of({late, other}, {.lanes_per_device = 4}));
    late->hold_commands();
  }
  std::shared_ptr<data::ArrayState> array(std::uint8_t first) const {
    std::vector<std::uint8_t> values(100);
    std::iota(values.begin(), values.end(), first);
    return data::ArrayState::make(pool, std::as_bytes(std::span(values)), values.size(), ElementType::uint8,
                                  1);
  }
};

/// A user of an array on a device: its copy is in flight on a lane of its own.
struct LateUser {
  LateUser(const LateCopies& scene, data::ArrayState& of)
      : array(of),
        device(*scene.late),
        lease(scene.pool->leases().lease_for(device, Instant::max()).value()) {
    auto placed = array.on_device(device, all).value();
    auto& lane = base::state_of(lease)->lane();
    elements = array.begin_fill(device, all, all, Instant::max()).value();
    for (const device::TimelinePoint& fill : placed.fills) lane.wait_for(fill);
    lane.upload({array.host_memory(), array.bytes().count}, {placed.buffer, {}, array.bytes()});
    filled = lane.submit();
    array.end_fill(device, elements, true, filled);
  }
  /// Ends the use as a job does that has completed, or has failed before its copy completed.
  void settle() const {
    array.settle_fill(device, elements, filled.timeline->reached() >= filled.value, filled);
  }
  std::size_t fills() const { return array.on_device(device, all).value().fills.size(); }

  data::ArrayState& array;
  device::DeviceBase& device;
  Lease lease;
  data::IntervalSet all = data::IntervalSet(array.all()), elements;
  device::TimelinePoint filled;
};

std::vector<std::uint8_t> bytes_of(const device::BufferBase& buffer) {
  const auto* const first = reinterpret_cast<const std::uint8_t*>(buffer.host());
  return {first, first + buffer.bytes().count};
}
std::vector<std::uint8_t> read(const std::shared_ptr<data::ArrayState>& array) {
  const auto view = Array<std::uint8_t>(array).read().value();
  return {view.begin(), view.end()};
}

}  // namespace

TEST_CASE("a device copies from a replica on another device once the copies to it have completed", "[data]") {
  const LateCopies scene;
  const auto x = scene.array(1), y = scene.array(50);
  const LateUser of_x(scene, *x), of_y(scene, *y);
  REQUIRE(scene.late->held() == 2);
  CHECK_FALSE(x->source_for(*scene.other, of_x.all));
  CHECK_FALSE(y->source_for(*scene.other, of_y.all));
  CHECK(bytes_of(*x->transfer_to(*scene.other, Instant::max()).value()) == read(x));  // from the host

  REQUIRE(scene.late->release_at(1));  // in another order than they were submitted
  CHECK_FALSE(x->source_for(*scene.other, of_x.all));
  CHECK(y->source_for(*scene.other, of_y.all) == y->replica_on(*scene.late));
  CHECK(bytes_of(*y->transfer_to(*scene.other, Instant::max()).value()) == read(y));
  REQUIRE(scene.late->release_at(0));
  CHECK(x->source_for(*scene.other, of_x.all) == x->replica_on(*scene.late));
  of_x.settle();
  of_y.settle();
}

TEST_CASE("a copy that is in flight when its job ends delays later users of its elements", "[data]") {
  const LateCopies scene;
  const auto array = scene.array(1);
  const LateUser first(scene, *array);
  first.settle();
  CHECK(first.fills() == 1);
  CHECK_FALSE(array->is_valid_on(*scene.late, array->all()));

  for (std::uint8_t& value : Array<std::uint8_t>(array).write().value()) value = 7;
  const LateUser second(scene, *array);
  REQUIRE(scene.late->held() == 2);
  CHECK_FALSE(scene.late->release_at(1));  // it would be overwritten by the first one
  REQUIRE(scene.late->release_at(0));
  REQUIRE(scene.late->release_at(0));
  second.settle();
  CHECK(second.fills() == 0);
  CHECK(array->is_valid_on(*scene.late, array->all()));
  CHECK(bytes_of(*array->replica_on(*scene.late)) == std::vector<std::uint8_t>(100, 7));
}
