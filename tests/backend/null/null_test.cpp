// What only the null backend promises; the rest of it is in tests/contract.
#include "device/backend.hpp"
#include "device/lane.hpp"
#include "support/catch.hpp"

namespace wye::test {
namespace {

using namespace device;
using namespace literals;

std::shared_ptr<DeviceBase> null_device() {
  for (const BackendEntry& entry : backend_table())
    if (entry.name == "null") return entry.make()->discover({}).front().adapter->open().value();
  FAIL("there is no null backend");
  return nullptr;
}

}  // namespace

TEST_CASE("the null device answers at once and moves nothing", "[backend_null]") {
  const auto device = null_device();
  const auto buffer = device->create_buffer({.bytes = 64_B, .account = nullptr}).value();
  const auto gate = device->create_timeline().value();
  std::vector<std::byte> target(64, std::byte{7});
  Lane lane(device->create_lane().value());
  lane.wait_for({gate, 1});
  lane.fill({buffer, {}, 64_B}, 5);
  lane.download({buffer, {}, 64_B}, target);
  lane.submit();
  CHECK(lane.idle());
  CHECK(lane.wait(Instant::min()));
  CHECK(target == std::vector<std::byte>(64, std::byte{7}));
}

TEST_CASE("the null device has a tebibyte that costs nothing, and takes any language", "[backend_null]") {
  const auto device = null_device();
  const auto buffer = device->create_buffer({.bytes = 1024_GiB, .account = nullptr}).value();
  CHECK(buffer->bytes() == 1024_GiB);
  CHECK(buffer->host() == nullptr);
  CHECK(device->memory().available == 0_B);
  CHECK(device->create_buffer({.bytes = 1024_GiB + 1_B, .account = nullptr}).error() == Errc::out_of_memory);
  for (const char* language : {"host", "spirv", "cuneiform"}) {
    Artefact artefact;
    artefact.kernel = "k";
    artefact.language = language;
    artefact.needs = {Feature::float64, Feature::subgroups};
    CHECK(device->create_executable(artefact).value()->artefact().language == language);
  }
}

}  // namespace wye::test
