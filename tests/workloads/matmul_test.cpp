#include <wye/workloads/matmul.hpp>

#include <cmath>

#include "workloads/legs.hpp"

using namespace wye;
using namespace wye::test;
namespace reference = wye::workloads::reference;
using workloads::MatmulShape;

namespace {

std::vector<float> product(const std::vector<float>& a, const std::vector<float>& b, MatmulShape shape,
                           const std::string& leg) {
  std::vector<float> c = poisoned(shape.rows * shape.columns);
  run(workloads::matmul(a, b, c, shape), leg);
  return c;
}

std::string difference_of(const std::vector<float>& a, const std::vector<float>& b, MatmulShape shape,
                          const std::string& leg) {
  std::vector<float> sizes_of_a = a, sizes_of_b = b;
  for (float& v : sizes_of_a) v = std::abs(v);
  for (float& v : sizes_of_b) v = std::abs(v);
  const std::vector<double> sizes = reference::matmul(sizes_of_a, sizes_of_b, shape);
  return difference(product(a, b, shape, leg), reference::matmul(a, b, shape), [&](std::size_t i) {
    return static_cast<double>(shape.inner + 2) * 0x1p-24 * sizes[i] + 1e-37;
  });
}

std::string difference_of(MatmulShape shape, const std::string& leg) {
  return difference_of(numbers(shape.rows * shape.inner, 1), numbers(shape.inner * shape.columns, 2), shape,
                       leg);
}

}  // namespace

TEST_CASE("matmul multiplies matrices of any shape", "[workloads][matmul]") {
  const MatmulShape shapes[] = {{1, 1, 1},      {2, 3, 4},       {5, 1, 7},     {1, 9, 3},
                                {16, 16, 16},   {63, 65, 17},    {64, 64, 64},  {65, 63, 129},
                                {255, 257, 33}, {256, 256, 100}, {300, 20, 70}, {20, 300, 1000},
                                {13, 513, 520}, {1, 2000, 3},    {2000, 1, 3}};
  for (const std::string& leg : legs())
    for (const MatmulShape& shape : shapes) {
      INFO(leg << ", " << shape.rows << " x " << shape.columns << " x " << shape.inner);
      CHECK(difference_of(shape, leg) == "");
    }
}

TEST_CASE("matmul writes only c, and zeros if the inner dimension is zero", "[workloads][matmul]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    CHECK(difference_of({3, 4, 0}, leg) == "");
    CHECK(difference_of({0, 4, 5}, leg) == "");
    CHECK(difference_of({3, 0, 5}, leg) == "");
    CHECK(difference_of({0, 0, 0}, leg) == "");

    std::vector<float> memory = poisoned(1000);
    const std::vector<float> a = numbers(15 * 20, 1), b = numbers(20 * 30, 2);
    run(workloads::matmul(a, b, std::span(memory).subspan(100, 15 * 30), {15, 30, 20}), leg);
    CHECK(same_bits(std::span(memory).first(100), poisoned(100)));
    CHECK(same_bits(std::span(memory).last(450), poisoned(450)));
  }
}

TEST_CASE("matmul is right for inner dimensions beyond the limit of a shader's loop", "[workloads][matmul]") {
  const MatmulShape shape{3, 5, 70000};
  for (const std::string& leg : legs()) {
    INFO(leg);
    // All positive: the result of a loop that ended early would be far outside the bound.
    CHECK(difference_of(numbers(3 * 70000, 1, 1, 2), numbers(70000 * 5, 2, 1, 2), shape, leg) == "");
  }
}

TEST_CASE("matmul passes NaN and infinities on, and skips nothing that meets a zero", "[workloads][matmul]") {
  const std::vector<float> a{0, 1, 2, 3, infinity, 0}, b{undefined, 1, 1, 0, 2, 1, 5, 6, 7};
  for (const std::string& leg : legs()) {
    INFO(leg);
    CHECK(difference_of(a, b, {2, 3, 3}, leg) == "");
  }
}

TEST_CASE("matmul finds the shape that three sizes leave", "[workloads][matmul]") {
  const std::vector<float> a = numbers(6 * 10, 1), b = numbers(10 * 15, 2);
  for (const std::string& leg : legs()) {
    INFO(leg);
    std::vector<float> c = poisoned(6 * 15);
    run(workloads::matmul(a, b, c), leg);
    CHECK(same_bits(c, product(a, b, {6, 15, 10}, leg)));
  }
}

TEST_CASE("matmul refuses sizes that fit no product", "[workloads][matmul]") {
  std::vector<float> a(6), b(12), c(8), wrong(7), huge;
  CHECK(refusal(workloads::matmul(a, b, c)) == "not refused");
  CHECK(refusal(workloads::matmul(a, b, wrong)) ==
        "Matrices a (6 elements), b (12 elements) and c (7 elements) of workload 'matmul' fit no unique "
        "shape, and none is given.");
  CHECK(refusal(workloads::matmul(a, b, c, {3, 4, 2})) ==
        "Matrix b (12 elements) of workload 'matmul' is not 2 x 4.");
  CHECK(refusal(workloads::matmul(huge, huge, huge, {std::uint64_t{1} << 32, 0, 0})) ==
        "Dimension (4294967296) of workload 'matmul' exceeds the limit (2147483647).");
}

TEST_CASE("matmul gives the same bits again", "[workloads][matmul]") {
  const MatmulShape shape{300, 530, 200};
  const std::vector<float> a = numbers(300 * 200, 1), b = numbers(200 * 530, 2);
  for (const std::string& leg : legs()) {
    INFO(leg);
    CHECK(same_bits(product(a, b, shape, leg), product(a, b, shape, leg)));
  }
}
