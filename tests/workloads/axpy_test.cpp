#include <wye/workloads/axpy.hpp>

#include <cmath>

#include "workloads/legs.hpp"

using namespace wye;
using namespace wye::test;
namespace reference = wye::workloads::reference;

namespace {

std::string difference_of(std::vector<float> x, std::vector<float> y, float a, const std::string& leg) {
  const std::vector<float> before = y;
  run(workloads::axpy(a, x, y), leg);
  return difference(y, reference::axpy(a, x, before), [&](std::size_t i) {
    return std::ldexp(std::abs(double{a} * double{x[i]}) + std::abs(double{before[i]}), -23) + 1e-37;
  });
}

}  // namespace

TEST_CASE("axpy adds a multiple of x to y", "[workloads][axpy]") {
  for (const std::string& leg : legs())
    for (std::size_t n : {0u, 1u, 2u, 255u, 256u, 257u, 1023u, 1025u, 16384u, 100001u}) {
      INFO(leg << ", " << n << " elements");
      CHECK(difference_of(numbers(n, 1, -10, 10), numbers(n, 2, -10, 10), -1.7f, leg) == "");
    }
}

TEST_CASE("axpy is right if its grid has more than one row", "[workloads][axpy][large]") {
  const std::size_t n = (std::size_t{1} << 23) + 1001;
  for (const std::string& leg : legs()) {
    INFO(leg);
    CHECK(difference_of(numbers(n, 3), numbers(n, 4), 0.3f, leg) == "");
  }
}

TEST_CASE("axpy passes NaN and infinities on", "[workloads][axpy]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    CHECK(difference_of({1, undefined, infinity, infinity, 0}, {undefined, 1, 1, -infinity, infinity}, 2.0f,
                        leg) == "");
  }
}

TEST_CASE("axpy overflows only if the sum does", "[workloads][axpy]") {
  const std::vector<float> x{3e38f, 1.6e38f, 3e38f, 3e38f, 1.7e38f, 3e38f, 3e38f}, two{-2.0f};
  for (const std::string& leg : legs()) {
    INFO(leg);
    std::vector<float> y{-3e38f, -3e38f, 3e38f, -infinity, -3.4e38f, infinity, undefined};
    run(workloads::axpy(2.0f, x, y), leg);
    CHECK(y[0] == Approx(3e38));
    CHECK(y[1] == Approx(2e37));
    CHECK(y[2] == infinity);
    CHECK(y[3] == -infinity);
    CHECK(std::abs(y[4]) <= 1e33f);
    CHECK(y[5] == infinity);
    CHECK(std::isnan(y[6]));
    std::vector<float> one{-3e38f};
    run(workloads::axpy(-3e38f, two, one), leg);
    CHECK(one[0] == Approx(3e38));
  }
}

TEST_CASE("axpy refuses vectors of different lengths", "[workloads][axpy]") {
  std::vector<float> x(3), y(4);
  const Job job = workloads::axpy(1, x, y);
  CHECK(refusal(job) == "Vector x (3 elements) of workload 'axpy' is not as long as y (4 elements).");
  const auto done = the_runtime().submit(job).wait();
  REQUIRE_FALSE(done);
  CHECK(done.error() == Errc::invalid_argument);
}

TEST_CASE("axpy works on arrays, too", "[workloads][axpy]") {
  const std::vector<float> x = numbers(1000, 5), y = numbers(1000, 6);
  const std::vector<double> exact = reference::axpy(2.0f, x, y);
  for (const std::string& leg : legs()) {
    INFO(leg);
    const Array<float> from = the_runtime().array(x), to = the_runtime().array(y);
    run(workloads::axpy(2.0f, from, to), leg);
    const auto view = to.read();
    REQUIRE(view);
    CHECK(difference(view->span(), exact, [](std::size_t) { return 4e-7; }) == "");
  }
}
