// Hosts whose threads have floating-point environments of their own.
#include <wye/wye.hpp>

#include <cfenv>
#include <vector>

#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/host_float.hpp"
#include "support/kernels.hpp"

using namespace wye;

namespace {

/// Opens a runtime, runs a kernel on each of its devices, and closes it. Returns 0 on success.
int use_each_device() {
  auto runtime = Runtime::open({});
  WYE_CHILD_CHECK(1, runtime.has_value());
  for (const Device& device : runtime->devices()) {
    std::vector<float> x(1000, 1.0f);
    WYE_CHILD_CHECK(2, runtime->run(Job(test::scale()(x, 2.0f)), {.on = device.info().id}).has_value());
    WYE_CHILD_CHECK(3, x == std::vector<float>(1000, 2.0f));
  }
  return 0;
}

}  // namespace

TEST_CASE("a host's floating-point exceptions may be traps", "[runtime]") {
  CHECK(test::in_child([] {
          const test::HostFloat host(5);
          WYE_CHILD_CHECK(10, fegetexcept() == (FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW));
          if (const int failed = use_each_device()) return failed;
          WYE_CHILD_CHECK(11, fegetexcept() == (FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW));
          return 0;
        }) == test::success);
}

TEST_CASE("a host's rounding changes no result of a kernel, and stays as it is", "[runtime]") {
  const auto divide = host([](Range range, std::span<float> x) {
    for (auto i : range) x[i] /= 3.0f;
  });
  const auto third = Kernel<ReadWrite<float>>::make({.name = "third", .sources = {divide}});
  REQUIRE(third);
  auto runtime = Runtime::open({.pool = {.backends = {"cpu"}}});
  REQUIRE(runtime);
  std::vector<float> x(100'000, 1.0f);
  const auto run = [&](unsigned environment) {
    const test::HostFloat host(environment);
    const int rounding = std::fegetround();
    std::fill(x.begin(), x.end(), 1.0f);
    const auto done = runtime->run(Job((*third)(x)));
    return done && std::fegetround() == rounding;
  };
  for (unsigned environment = 0; environment < test::HostFloat::count; ++environment) {
    INFO(test::HostFloat(environment).name());
    CHECK(run(environment));
    CHECK((x == std::vector<float>(x.size(), 1.0f / 3.0f)));
  }
}
