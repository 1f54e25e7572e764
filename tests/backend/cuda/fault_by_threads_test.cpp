// Any call of the driver may fail while eight threads lease and submit.
#include <wye/wye.hpp>

#include "backend/cuda/cuda_error.hpp"
#include "backend/cuda/cuda_loader.hpp"
#include "backend/cuda/rig.hpp"
#include "support/await.hpp"
#include "support/temporary_folder.hpp"
#include "support/users.hpp"

namespace wye::test {

TEST_CASE("a call of the driver fails while eight threads use CUDA and the CPU", "[cuda][no_tsan]") {
  if (!has_kernels()) return;
  const StandIn stand_in;
  std::vector<std::string> functions;
  // If a call that destroys an object fails, the object stays (sweep_test.cpp).
  const auto add = [&](std::string function) {
    for (const char* word : {"Destroy", "Free", "Unload", "Unmap", "Release", "Ctx"})
      if (function.find(word) != std::string::npos) return;
    functions.push_back(std::move(function));
  };
#define WYE_FUNCTION(name, version) add("cu" #name);
  WYE_CUDA_FUNCTIONS(WYE_FUNCTION)
  WYE_CUDA_NEWER_FUNCTIONS(WYE_FUNCTION)
#undef WYE_FUNCTION
  const TemporaryFolder folder;
  const auto kernel = axpy();
  int met = 0, failed = 0;
  for (const std::string& function : functions)
    for (const int code : {2, 719, 999})
      for (const long nth : {1L, 4L, 20L}) {
        INFO(function << " answers " << code << " at call " << nth);
        stand_in.reset();
        Use use;
        long calls = 0;
        {
          Runtime runtime = Runtime::open({.pool = {.backends = {"cuda", "cpu"},
                                                    .lanes_per_device = 3,
                                                    .cuda_driver = WYE_STAND_IN_CUDA},
                                           .cache = {.directory = folder.path()},
                                           .qualification = Qualification::never})
                                .value();
          const long before = stand_in.calls(function);
          stand_in.fail(function, nth, code);
          use_at_once(runtime.pool(), runtime.scheduler(), kernel, use);
          calls = stand_in.calls(function) - before;
          CHECK(runtime.pool().metrics().active == 0);
          CHECK(runtime.metrics().jobs.running == 0);
        }
        REQUIRE(test::becomes_true([&] { return stand_in.alive().at("contexts") == 0; }));
        CHECK(use.wrong == 0);
        CHECK(use.completed + use.failed == 32);
        failed += use.failed;
        met += calls >= nth;
        if (calls < nth) break;  // it is not called that often
      }
  stand_in.reset();
  CHECK(met > 40);
  WARN(met << " faults met, " << failed << " errors of a caller");
}

}  // namespace wye::test
