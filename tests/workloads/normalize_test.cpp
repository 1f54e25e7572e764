#include <wye/workloads/normalize.hpp>

#include <algorithm>
#include <cmath>

#include "workloads/legs.hpp"

using namespace wye;
using namespace wye::test;
namespace reference = wye::workloads::reference;

namespace {

std::vector<float> normalized(std::vector<float> matrix, std::size_t columns, const std::string& leg) {
  run(workloads::normalize(matrix, columns), leg);
  return matrix;
}

std::string normalize_difference(const std::vector<float>& matrix, std::size_t columns,
                                 const std::string& leg) {
  const std::vector<double> exact = reference::normalize(matrix, columns);
  return difference(normalized(matrix, columns, leg), exact, relative(exact, 1e-5));
}

}  // namespace

TEST_CASE("normalize gives every row the length 1", "[workloads][normalize]") {
  const std::size_t shapes[][2] = {{0, 0},     {0, 5},     {1, 1},    {1000, 1},  {513, 2},
                                   {300, 3},   {257, 5},   {65, 63},  {33, 1000}, {16, 1024},
                                   {5, 10001}, {2, 65535}, {3, 65536}};
  for (const std::string& leg : legs())
    for (const auto& [rows, columns] : shapes) {
      INFO(leg << ", " << rows << " x " << columns);
      CHECK(normalize_difference(numbers(rows * columns, 1, -3, 3), columns, leg) == "");
    }
}

TEST_CASE("normalize is right for rows of several pieces", "[workloads][normalize]") {
  for (const std::string& leg : legs())
    for (std::size_t columns : {65537u, 131072u, 150001u}) {
      INFO(leg << ", " << columns << " columns");
      CHECK(normalize_difference(numbers(3 * columns, 2, 0.5f, 1.5f), columns, leg) == "");
    }
}

TEST_CASE("normalize is right if its grid has more than one row", "[workloads][normalize][large][.huge]") {
  const std::size_t rows = (std::size_t{1} << 23) + 301;
  for (const std::string& leg : legs()) {
    INFO(leg);
    CHECK(normalize_difference(numbers(2 * rows, 3, 1, 2), 2, leg) == "");
  }
}

TEST_CASE("normalize is right if squares overflow or vanish", "[workloads][normalize]") {
  for (const std::string& leg : legs())
    for (float size : {1e38f, 1e30f, 1e20f, 1e18f, 1e-12f, 1e-15f, 1e-25f, 1e-36f})
      for (std::size_t columns : {3u, 700u, 70000u}) {
        INFO(leg << ", numbers of about " << size << ", " << columns << " columns");
        CHECK(normalize_difference(numbers(2 * columns, 4, 0.5f * size, size), columns, leg) == "");
      }
  for (const std::string& leg : legs()) {
    INFO(leg << ", large beside small");
    CHECK(normalize_difference({1e30f, 1e-30f, 1e25f, -2e30f}, 4, leg) == "");
  }
}

TEST_CASE("normalize gives rows of denormal numbers the length 1, or takes them for zeros",
          "[workloads][normalize]") {
  for (const std::string& leg : legs())
    for (float size : {1e-38f, 1e-39f, 1e-40f, 1e-42f, 3e-45f})
      for (std::size_t columns : {2u, 700u, 70000u}) {
        INFO(leg << ", numbers of about " << size << ", " << columns << " columns");
        const std::vector<float> matrix = numbers(columns, 6, 0.5f * size, size);
        const std::vector<float> got = normalized(matrix, columns, leg);
        const std::vector<double> exact = reference::normalize(matrix, columns);
        const bool zeros = std::all_of(got.begin(), got.end(), [](float v) { return std::abs(v) < 1e-30f; });
        CHECK((zeros || difference(got, exact, relative(exact, 1e-5)) == ""));
        if (leg == "cpu") CHECK_FALSE(zeros);
      }
}

TEST_CASE("normalize is right for rows of 2^28 numbers", "[workloads][normalize][large][.huge]") {
  if (!has_leg("cpu")) return;
  // The exact answer is the same for all: no copy in float64.
  std::vector<float> matrix(std::size_t{1} << 28, 0.871f);
  run(workloads::normalize(matrix, matrix.size()), "cpu");
  CHECK(std::abs(double{matrix.front()} * 0x1p14 - 1) <= 2e-7);
  CHECK(matrix.back() == matrix.front());
}

TEST_CASE("normalize leaves rows of zeros, and makes NaN of rows without a direction",
          "[workloads][normalize]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    const std::vector<float> matrix{0,  0, 0, 1, undefined, 2,         infinity, 1,
                                    -3, 3, 0, 4, infinity,  -infinity, 1};
    const std::vector<double> exact{0, 0,   0, undefined, undefined, undefined, undefined, 0,
                                    0, 0.6, 0, 0.8,       undefined, undefined, 0};
    CHECK(difference(normalized(matrix, 3, leg), exact, relative(exact, 1e-5)) == "");

    std::vector<float> wide(140000, 1.0f);
    wide[100] = undefined;
    CHECK(normalize_difference(wide, 70000, leg) == "");
    wide.assign(140000, 0.0f);
    CHECK(normalize_difference(wide, 70000, leg) == "");
  }
}

TEST_CASE("normalize gives the same bits again", "[workloads][normalize]") {
  for (const std::string& leg : legs())
    for (std::size_t columns : {7u, 1000u, 70000u}) {
      INFO(leg << ", " << columns << " columns");
      const std::vector<float> matrix = numbers(columns * (columns < 5000 ? 400 : 5), 5);
      CHECK(same_bits(normalized(matrix, columns, leg), normalized(matrix, columns, leg)));
    }
}

TEST_CASE("normalize refuses sizes that are no matrix", "[workloads][normalize]") {
  std::vector<float> matrix(10);
  CHECK(refusal(workloads::normalize(matrix, 3)) ==
        "Matrix (10 elements) of workload 'normalize' has no whole number of rows of 3 columns.");
  CHECK(refusal(workloads::normalize(matrix, 0)) ==
        "Matrix (10 elements) of workload 'normalize' has no whole number of rows of 0 columns.");
}
