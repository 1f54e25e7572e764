#include <wye/workloads/similarity.hpp>

#include <cmath>

#include "workloads/legs.hpp"

using namespace wye;
using namespace wye::test;
namespace reference = wye::workloads::reference;

namespace {

std::vector<float> cosines(const std::vector<float>& matrix, std::size_t columns, const std::string& leg) {
  const std::size_t rows = columns == 0 ? 0 : matrix.size() / columns;
  std::vector<float> result = poisoned(rows * rows);
  run(workloads::similarity(matrix, result, columns), leg);
  return result;
}

std::string similarity_difference(const std::vector<float>& matrix, std::size_t columns,
                                  const std::string& leg) {
  const double bound = 2e-5 + static_cast<double>(columns + 2) * 0x1p-24;
  return difference(cosines(matrix, columns, leg), reference::similarity(matrix, columns),
                    [&](std::size_t) { return bound; });
}

}  // namespace

TEST_CASE("similarity compares all rows with all rows", "[workloads][similarity]") {
  const std::size_t shapes[][2] = {{0, 0},   {0, 7},    {1, 1},    {2, 3},    {17, 5},
                                   {64, 64}, {70, 100}, {257, 30}, {40, 1500}};
  for (const std::string& leg : legs())
    for (const auto& [rows, columns] : shapes) {
      INFO(leg << ", " << rows << " x " << columns);
      CHECK(similarity_difference(numbers(rows * columns, 1, -5, 5), columns, leg) == "");
    }
}

TEST_CASE("similarity is right for rows beyond the limit of a shader's loop", "[workloads][similarity]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    CHECK(similarity_difference(numbers(3 * 70000, 2, 0, 1), 70000, leg) == "");
  }
}

TEST_CASE("similarity leaves its matrix alone", "[workloads][similarity]") {
  const std::vector<float> matrix = numbers(30 * 40, 3);
  for (const std::string& leg : legs()) {
    INFO(leg);
    const std::vector<float> copy = matrix;
    (void)cosines(copy, 40, leg);
    CHECK(same_bits(copy, matrix));
  }
}

TEST_CASE("similarity with a row of zeros is 0, with NaN or an infinity NaN", "[workloads][similarity]") {
  const std::vector<float> matrix{1, 1, 0, 0, undefined, 1, 1, infinity};
  const std::vector<double> exact{1,         0,         undefined, undefined,  //
                                  0,         0,         undefined, undefined,  //
                                  undefined, undefined, undefined, undefined,  //
                                  undefined, undefined, undefined, undefined};
  for (const std::string& leg : legs()) {
    INFO(leg);
    CHECK(difference(cosines(matrix, 2, leg), exact, [](std::size_t) { return 1e-6; }) == "");
  }
}

TEST_CASE("similarity of rows of denormal numbers keeps its bound, or is 0", "[workloads][similarity]") {
  for (const std::string& leg : legs())
    for (float size : {1e-39f, 1e-40f, 1e-42f}) {
      INFO(leg << ", numbers of about " << size);
      const std::vector<float> matrix = numbers(3 * 50, 6, 0.5f * size, size);
      const std::vector<float> got = cosines(matrix, 50, leg);
      const bool zeros = got == std::vector<float>(9);
      CHECK((zeros || similarity_difference(matrix, 50, leg) == ""));
      if (leg == "cpu") CHECK_FALSE(zeros);
    }
}

TEST_CASE("similarity gives the same bits again", "[workloads][similarity]") {
  const std::vector<float> matrix = numbers(300 * 70, 4);
  for (const std::string& leg : legs()) {
    INFO(leg);
    CHECK(same_bits(cosines(matrix, 70, leg), cosines(matrix, 70, leg)));
  }
}

TEST_CASE("similarity refuses a result of another size", "[workloads][similarity]") {
  std::vector<float> matrix(12), result(10);
  CHECK(refusal(workloads::similarity(matrix, result, 4)) ==
        "Result (10 elements) of workload 'similarity' is not 3 x 3.");
  CHECK(refusal(workloads::similarity(matrix, result, 5)) ==
        "Matrix (12 elements) of workload 'similarity' has no whole number of rows of 5 columns.");
}
