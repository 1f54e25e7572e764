// The checks of a CUDA device.
#include <wye/wye.hpp>

#include <string>

#include "backend/cuda/rig.hpp"
#include "support/temporary_folder.hpp"

namespace wye::test {

namespace {

void passes_each_check() {
  const StandIn stand_in;
  const ContextPool pool =
      ContextPool::open({.backends = {"cuda"}, .cuda_driver = WYE_STAND_IN_CUDA}).value();
  const Device device = pool.devices().front();
  const auto report = qualify(device);
  REQUIRE(report);
  INFO(report->text());
  CHECK(report->passed());
  CHECK(report->failed_features().empty());
  std::size_t passed = 0;
  for (const QualificationCheck& check : report->checks) {
    passed += check.state == CheckState::passed;
    if (check.state != CheckState::skipped) continue;
    const bool is_offered = !check.feature || device.info().features.has(*check.feature);
    CHECK(check.detail ==
          (is_offered ? "There is no such check for 'cuda'." : "The device does not offer it."));
  }
  CHECK(passed == 13);  // copies, timeline, and the eleven kernels in CUDA C++
}

}  // namespace

TEST_CASE("a CUDA device passes each check that there is for CUDA", "[cuda][qualification]") {
  passes_each_check();
}

TEST_CASE("a CUDA device that NVRTC cannot compile for is checked with the PTX of the build",
          "[cuda][qualification]") {
  if (!WYE_WITH_PTX) return skip("this build made no PTX");
  SECTION("its architecture is newer") {
    const Setting architecture("WYE_STANDIN_ARCHITECTURE", "255");
    passes_each_check();
  }
  SECTION("its driver is older") {
    const Setting version("WYE_STANDIN_VERSION", "12020");
    passes_each_check();
  }
}

TEST_CASE("a CUDA driver that fails during its checks is not used, and not remembered if it lacked memory",
          "[cuda][qualification]") {
  const StandIn stand_in;
  const TemporaryFolder folder;
  const auto open = [&] {
    return Runtime::open({.pool = {.backends = {"cuda", "cpu"}, .cuda_driver = WYE_STAND_IN_CUDA},
                          .cache = {.directory = folder.path()}})
        .value();
  };
  stand_in.fail("cuMemAllocFromPoolAsync", 0, CUDA_ERROR_OUT_OF_MEMORY);
  {
    const Runtime runtime = open();
    CHECK(runtime.devices().size() == 1);
    CHECK(runtime.adapters()[0].reason.find("Device 'cuda:0' could not be checked: ") == 0);
    CHECK(runtime.qualifications().empty());
  }
  stand_in.reset();
  const Runtime runtime = open();
  CHECK(runtime.devices().size() == 2);
  REQUIRE(runtime.qualifications().size() == 1);
  CHECK(runtime.qualifications()[0].passed());
}

}  // namespace wye::test
