// Devices with a context of their own, on the stand-in for the driver.
#include <wye/pool/context_pool.hpp>

#include <memory>
#include <string>
#include <vector>

#include "backend/cuda/cuda_device.hpp"
#include "backend/cuda/rig.hpp"
#include "backend/cuda/stand_in.hpp"

namespace wye::test {

TEST_CASE("with `Isolation::device` each device has a context of its own, and takes no primary one",
          "[cuda]") {
  StandIn stand_in;
  const auto open = [](Isolation isolation) {
    auto found = discover(WYE_STAND_IN_CUDA, isolation);
    REQUIRE(found.at(0).adapter);
    return std::static_pointer_cast<cuda::CudaDevice>(good(found[0].adapter->open()));
  };
  {
    const auto a = open(Isolation::device), b = open(Isolation::device);
    CHECK(stand_in.calls("cuDevicePrimaryCtxRetain") == 0);
    CHECK(stand_in.calls("cuCtxCreate") == 2);
    CHECK(a->context() != b->context());
    const auto shared = open(Isolation::shared), same = open(Isolation::shared);
    CHECK(shared->context() == same->context());
    CHECK(shared->context() != a->context());
    CUcontext current = nullptr;
    CHECK(a->cu.CtxGetCurrent(&current) == CUDA_SUCCESS);
    CHECK(current == nullptr);  // a host's thread keeps its own
    CHECK(a->silicon() == shared->silicon());
  }
  CHECK(stand_in.calls("cuCtxDestroy") == 2);
  CHECK(stand_in.alive().at("contexts") == 0);
  CHECK(stand_in.left_behind() == 0);
}

TEST_CASE("a device that is in exclusive use gives no context of its own", "[cuda]") {
  const Setting taken("WYE_STANDIN_TAKEN", "1");
  auto found = discover(WYE_STAND_IN_CUDA, Isolation::device);
  REQUIRE(found.at(0).adapter);
  const auto refused = found[0].adapter->open();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().describe().find("cuCtxCreate") != std::string::npos);
  CHECK(refused.error().sentence().find("exclusive use by another process") != std::string::npos);
}

}  // namespace wye::test
