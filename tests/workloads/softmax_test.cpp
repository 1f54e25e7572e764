#include <wye/workloads/softmax.hpp>

#include <cmath>

#include "workloads/legs.hpp"

using namespace wye;
using namespace wye::test;
namespace reference = wye::workloads::reference;

namespace {

std::vector<float> weights(std::vector<float> matrix, std::size_t columns, const std::string& leg) {
  run(workloads::softmax(matrix, columns), leg);
  return matrix;
}

std::string softmax_difference(const std::vector<float>& matrix, std::size_t columns,
                               const std::string& leg) {
  const std::vector<double> exact = reference::softmax(matrix, columns);
  return difference(weights(matrix, columns, leg), exact, relative(exact, 5e-5));
}

}  // namespace

TEST_CASE("softmax makes weights of every row", "[workloads][softmax]") {
  const std::size_t shapes[][2] = {{0, 0},   {0, 5},     {1, 1},     {1000, 1},  {513, 2},  {300, 3},
                                   {65, 63}, {33, 1000}, {16, 1024}, {5, 10001}, {2, 65536}};
  for (const std::string& leg : legs())
    for (const auto& [rows, columns] : shapes) {
      INFO(leg << ", " << rows << " x " << columns);
      CHECK(softmax_difference(numbers(rows * columns, 1, -20, 20), columns, leg) == "");
    }
}

TEST_CASE("softmax is right for rows of several pieces", "[workloads][softmax]") {
  for (const std::string& leg : legs())
    for (std::size_t columns : {65537u, 131072u, 200001u}) {
      INFO(leg << ", " << columns << " columns");
      CHECK(softmax_difference(numbers(2 * columns, 2, -3, 3), columns, leg) == "");
    }
}

TEST_CASE("softmax is right if its grid has more than one row", "[workloads][softmax][large][.huge]") {
  const std::size_t rows = (std::size_t{1} << 22) + 301;
  for (const std::string& leg : legs()) {
    INFO(leg);
    CHECK(softmax_difference(numbers(5 * rows, 3), 5, leg) == "");
  }
}

TEST_CASE("softmax is right for rows of 2^28 numbers", "[workloads][softmax][large][.huge]") {
  if (!has_leg("cpu")) return;
  std::vector<float> matrix(std::size_t{1} << 28, -0.71f);
  matrix[0] = 0;
  run(workloads::softmax(matrix, matrix.size()), "cpu");
  const double weight = std::exp(double{-0.71f}), sum = 1 + weight * (0x1p28 - 1);
  CHECK(std::abs(double{matrix[0]} * sum - 1) <= 2e-6);
  CHECK(std::abs(double{matrix.back()} * sum / weight - 1) <= 2e-6);
}

TEST_CASE("softmax neither overflows nor loses small weights", "[workloads][softmax]") {
  const std::vector<float> rows{
      1000,   1000,   999,    -1000,   // all large
      -1e30f, -1e30f, -1e30f, -1e30f,  // equal, far below zero
      3e38f,  -3e38f, 3e38f,  0,       // as far apart as can be
      0,      -30,    -60,    -80,     // weights down to 1e-35
  };
  for (const std::string& leg : legs()) {
    INFO(leg);
    CHECK(softmax_difference(rows, 4, leg) == "");
  }
}

TEST_CASE("softmax gives -infinity no weight, and a row without weights becomes NaN",
          "[workloads][softmax]") {
  const std::vector<float> rows{
      0,         -infinity, 0,  //
      1,         undefined, 2,  //
      1,         infinity,  2,  //
      -infinity, -infinity, -infinity,
  };
  const std::vector<double> exact{0.5,       0,         0.5,       undefined, undefined, undefined,
                                  undefined, undefined, undefined, undefined, undefined, undefined};
  for (const std::string& leg : legs()) {
    INFO(leg);
    CHECK(difference(weights(rows, 3, leg), exact, relative(exact, 1e-6)) == "");
    for (float odd : {undefined, infinity, -infinity}) {
      INFO(odd << " in a row of several pieces");
      std::vector<float> wide(140000, 1.0f);
      wide[69000] = odd;
      CHECK(softmax_difference(wide, 70000, leg) == "");
      std::fill_n(wide.begin() + 70000, 65536, -infinity);  // a whole piece without weight
      CHECK(softmax_difference(wide, 70000, leg) == "");
    }
    CHECK(softmax_difference(std::vector<float>(70000, -infinity), 70000, leg) == "");
  }
}

TEST_CASE("softmax gives the same bits again", "[workloads][softmax]") {
  for (const std::string& leg : legs())
    for (std::size_t columns : {7u, 1000u, 70000u}) {
      INFO(leg << ", " << columns << " columns");
      const std::vector<float> matrix = numbers(columns * (columns < 5000 ? 400 : 5), 5);
      CHECK(same_bits(weights(matrix, columns, leg), weights(matrix, columns, leg)));
    }
}

TEST_CASE("softmax refuses sizes that are no matrix", "[workloads][softmax]") {
  std::vector<float> matrix(10);
  CHECK(refusal(workloads::softmax(matrix, 4)) ==
        "Matrix (10 elements) of workload 'softmax' has no whole number of rows of 4 columns.");
}
