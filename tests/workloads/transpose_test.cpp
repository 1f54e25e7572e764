#include <wye/workloads/transpose.hpp>

#include <cstring>
#include <random>

#include "support/skip.hpp"
#include "workloads/vectors.hpp"

using namespace wye;
using namespace wye::test;
namespace reference = wye::workloads::reference;

namespace {

/// Elements of any bits.
template <class T>
std::vector<T> bits(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<T> made(count);
  for (T& one : made) {
    const auto word = static_cast<std::uint32_t>(random());
    std::memcpy(static_cast<void*>(&one), &word, sizeof(T));
  }
  return made;
}

template <class T>
bool is_transposed(std::size_t rows, std::size_t columns, std::size_t batch, const std::string& leg) {
  const std::vector<T> x = bits<T>(rows * columns * batch, 7);
  std::vector<T> y = poison<T>(x.size());
  run(workloads::transpose(x, y, columns, batch), leg);
  return equal_bits(y, reference::transpose<T>(x, columns, batch));
}

/// Of every type.
void all_are_transposed(std::size_t rows, std::size_t columns, std::size_t batch = 1) {
  for (const std::string& leg : legs()) {
    INFO(leg << ", " << batch << " of " << rows << " x " << columns);
    CHECK(is_transposed<float>(rows, columns, batch, leg));
    CHECK(is_transposed<half>(rows, columns, batch, leg));
    CHECK(is_transposed<bfloat16>(rows, columns, batch, leg));
    CHECK(is_transposed<std::int8_t>(rows, columns, batch, leg));
    CHECK(is_transposed<std::int32_t>(rows, columns, batch, leg));
    CHECK(is_transposed<std::uint32_t>(rows, columns, batch, leg));
  }
}

}  // namespace

TEST_CASE("transpose moves every element, bit for bit, in any shape", "[workloads][transpose]") {
  const std::size_t shapes[][2] = {{0, 0},    {0, 5},    {1, 1},      {1, 100},  {100, 1},  {2, 3},
                                   {31, 33},  {32, 32},  {33, 31},    {64, 96},  {65, 127}, {257, 255},
                                   {3, 3000}, {3001, 5}, {128, 1024}, {300, 261}};
  for (const auto& [rows, columns] : shapes) all_are_transposed(rows, columns);
}

TEST_CASE("transpose takes batches of matrices", "[workloads][transpose]") {
  all_are_transposed(1, 1, 70);
  all_are_transposed(3, 5, 7);  // matrices that begin inside a word
  all_are_transposed(33, 40, 3);
  all_are_transposed(0, 4, 3);
}

TEST_CASE("transpose of random shapes is right", "[workloads][transpose]") {
  std::mt19937 random(20261126);
  for (const std::string& leg : legs()) {
    std::string wrong;
    for (int i = 0; i < 250 && wrong.empty(); ++i) {
      const std::size_t rows = random() % 80, columns = 1 + random() % 80, batch = 1 + random() % 3;
      const bool right = i % 4 == 0   ? is_transposed<float>(rows, columns, batch, leg)
                         : i % 4 == 1 ? is_transposed<half>(rows, columns, batch, leg)
                         : i % 4 == 2 ? is_transposed<std::int8_t>(rows, columns, batch, leg)
                                      : is_transposed<std::int32_t>(rows, columns, batch, leg);
      if (!right)
        wrong = std::to_string(batch) + " of " + std::to_string(rows) + " x " + std::to_string(columns) +
                ", type " + std::to_string(i % 4);
    }
    INFO(leg);
    CHECK(wrong == "");
  }
}

TEST_CASE("transpose reads and writes parts of arrays, and nothing beside them", "[workloads][transpose]") {
  const std::vector<std::int8_t> given = bits<std::int8_t>(60, 3);
  for (const std::string& leg : legs())
    for (std::size_t begin = 0; begin < 5; ++begin) {
      INFO(leg << ", from " << begin);
      const Array<std::int8_t> x = the_runtime().array(given),
                               y = the_runtime().array(std::vector<std::int8_t>(60, 77));
      run(workloads::transpose(Read<std::int8_t>(x).slice(begin, 35),
                               Write<std::int8_t>(y).slice(4 - begin, 35), 7),
          leg);
      std::vector<std::int8_t> expected(60, 77);
      const auto part = reference::transpose<std::int8_t>(std::span(given).subspan(begin, 35), 7);
      std::copy(part.begin(), part.end(), expected.begin() + static_cast<std::ptrdiff_t>(4 - begin));
      const auto view = y.read().value();
      CHECK(std::vector<std::int8_t>(view.begin(), view.end()) == expected);
    }
}

TEST_CASE("transpose is right for matrices that no cache holds", "[workloads][transpose][large]") {
  if (!has_leg("cpu")) return;
  const std::size_t columns = 1033;
  for (const std::size_t rows :
       {8208u, 8209u})  // whole lines of columns are written past the caches, and none
    for (const std::size_t begin : {0u, 1u, 12u}) {
      INFO(rows << " rows, results from " << begin);
      const std::vector<float> x = elements<float>(rows * columns, 5);
      std::vector<float> y = poison<float>(x.size() + 16);
      const std::vector<float> poisoned = y;
      run(workloads::transpose(x, std::span(y).subspan(begin, x.size()), columns), "cpu");
      std::vector<float> expected = poisoned;
      const auto exact = reference::transpose<float>(x, columns);
      std::copy(exact.begin(), exact.end(), expected.begin() + static_cast<std::ptrdiff_t>(begin));
      CHECK(equal_bits(y, expected));
    }
}

TEST_CASE("transpose is right beyond 4 GiB", "[workloads][transpose][large][.huge]") {
  if (!has_leg("cpu")) return;
  const std::size_t rows = 3, columns = (std::size_t{1} << 32) / 3 + 5;
  if (columns > 0x7fff'ffff) return test::skip("the dimension is too large");
  std::vector<std::int8_t> x(rows * columns), y(x.size(), 0x55);
  for (std::size_t i = 0; i < x.size(); i += 4093) x[i] = static_cast<std::int8_t>(i % 251 + 1);
  run(workloads::transpose(x, y, columns), "cpu");
  std::size_t wrong = 0;
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t column = 0; column < columns; ++column)
      wrong += y[column * rows + row] != x[row * columns + column];
  CHECK(wrong == 0);
}

TEST_CASE("transpose refuses sizes that are no matrices", "[workloads][transpose]") {
  std::vector<float> x(12), y(12), small(11);
  CHECK(refusal(workloads::transpose(x, y, 5)) ==
        "Matrix x (12 elements) of workload 'transpose' has no whole number of rows of 5 columns.");
  CHECK(refusal(workloads::transpose(x, y, 4, 2)) ==
        "Matrix x (12 elements) of workload 'transpose' has no whole number of rows of 4 columns in 2 "
        "matrices.");
  CHECK(refusal(workloads::transpose(x, y, 0)) ==
        "Matrix x (12 elements) of workload 'transpose' has no whole number of rows of 0 columns.");
  CHECK(refusal(workloads::transpose(x, small, 4)) ==
        "Matrix y (11 elements) of workload 'transpose' is not as large as x (12 elements).");
  CHECK(refusal(workloads::transpose(x, y, 4, 0)) ==
        "Batch (0) of workload 'transpose' is below the minimum (1).");
  CHECK(refusal(workloads::transpose(x, y, std::uint64_t{1} << 31)) ==
        "Dimension (2147483648) of workload 'transpose' exceeds the limit (2147483647).");
}
