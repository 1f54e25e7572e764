#include <wye/workloads/csr_multiply.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "workloads/vectors.hpp"

using namespace wye;
using namespace wye::test;
namespace reference = wye::workloads::reference;

namespace {

struct Sparse {
  std::vector<std::uint32_t> offsets, columns;
  std::vector<float> values, x;
};

/// A matrix whose rows have `lengths` elements, in random columns of `width`.
Sparse sparse(const std::vector<std::uint32_t>& lengths, std::uint32_t width, std::uint32_t seed) {
  Sparse a;
  a.offsets.push_back(0);
  for (const std::uint32_t length : lengths) a.offsets.push_back(a.offsets.back() + length);
  std::mt19937 random(seed);
  a.columns.resize(a.offsets.back());
  for (std::uint32_t& column : a.columns) column = static_cast<std::uint32_t>(random() % width);
  a.values = numbers(a.offsets.back(), seed + 1);
  a.x = numbers(width, seed + 2);
  return a;
}

std::vector<std::uint32_t> lengths_below(std::size_t rows, std::uint32_t end, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::uint32_t> lengths(rows);
  for (std::uint32_t& length : lengths) length = static_cast<std::uint32_t>(random() % end);
  return lengths;
}

std::vector<float> multiplied(const Sparse& a, const std::string& leg) {
  auto y = poisoned(a.offsets.size() - 1);
  run(workloads::csr_multiply(a.offsets, a.columns, a.values, a.x, y), leg);
  return y;
}

/// Returns "" if all rows are within the documented bound. Infinities and NaN have to be equal.
std::string differing_row(const Sparse& a, std::span<const float> y) {
  const auto exact = reference::csr_multiply(a.offsets, a.columns, a.values, a.x);
  Sparse sizes = a;
  for (float& value : sizes.values) value = std::abs(value);
  for (float& value : sizes.x) value = std::abs(value);
  const auto of_sizes = reference::csr_multiply(sizes.offsets, sizes.columns, sizes.values, sizes.x);
  for (std::size_t row = 0; row < exact.size(); ++row) {
    const double n = a.offsets[row + 1] - a.offsets[row], got = y[row];
    const double bound = std::min(n + 2, 8300.0) * 0x1p-24 * of_sizes[row] + n * 0x1p-126;
    const bool right = std::isnan(exact[row])   ? std::isnan(got)
                       : std::isinf(exact[row]) ? got == exact[row]
                                                : std::abs(got - exact[row]) <= bound;
    if (!right)
      return std::to_string(got) + " instead of " + std::to_string(exact[row]) + " in row " +
             std::to_string(row);
  }
  return "";
}

void check_product(const Sparse& a, const std::string& leg) {
  CHECK(differing_row(a, multiplied(a, leg)) == "");
}

}  // namespace

TEST_CASE("csr_multiply multiplies matrices of rows of like and of unlike lengths",
          "[workloads][csr_multiply]") {
  for (const std::string& leg : legs()) {
    for (const std::size_t rows : {1u, 2u, 255u, 256u, 257u, 3001u})
      for (const std::uint32_t length : {0u, 1u, 3u, 4u, 5u, 17u, 100u}) {
        INFO(leg << ", " << rows << " rows of " << length);
        check_product(sparse(std::vector<std::uint32_t>(rows, length), 1000, 1), leg);
        check_product(sparse(lengths_below(rows, 2 * length + 1, 2), 1 + length, 3), leg);
      }
    for (const std::uint32_t length : {511u, 513u, 1024u, 2047u, 2048u, 2049u, 5000u}) {
      INFO(leg << ", rows of " << length);
      check_product(sparse(std::vector<std::uint32_t>(9, length), 3000, 4), leg);
    }
  }
}

TEST_CASE("csr_multiply is right for one row with nearly all elements, and for lengths by a power law",
          "[workloads][csr_multiply]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    for (const std::size_t place : {0u, 1u, 1500u, 2999u}) {
      INFO("row " << place);
      auto lengths = lengths_below(3000, 3, 5);
      lengths[place] = 200'001;
      check_product(sparse(lengths, 5000, 6), leg);
    }
    std::vector<std::uint32_t> lengths(2000);
    for (std::uint32_t i = 0; i < lengths.size(); ++i) lengths[i * 7 % 2000] = 50'000 / (i + 1);
    check_product(sparse(lengths, 2000, 7), leg);
  }
}

TEST_CASE("csr_multiply is right for rows of several million elements", "[workloads][csr_multiply][large]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    // The first row begins inside a block, the last one has whole blocks of blocks.
    check_product(sparse({3, 2'100'000, 0, 1023, 3'200'000}, 100'000, 8), leg);
    // Most rows are empty: one invocation computes each row.
    std::vector<std::uint32_t> lengths(1'500'000, 0);
    lengths[1'000'000] = 4'300'000;
    lengths[1'000'002] = 5;
    check_product(sparse(lengths, 100'000, 9), leg);
  }
}

TEST_CASE("csr_multiply is right for random shapes", "[workloads][csr_multiply]") {
  std::mt19937 random(10);
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const std::size_t rows = random() % 300;
    const std::uint32_t longest = 1 + static_cast<std::uint32_t>(random() % (i % 50 == 0 ? 3000 : 30));
    const auto seed = static_cast<std::uint32_t>(random());
    const std::string& leg = legs()[random() % legs().size()];
    INFO(leg << ", " << rows << " rows below " << longest << ", seed " << seed);
    check_product(sparse(lengths_below(rows, longest, seed), 1 + seed % 500, seed), leg);
  }
}

TEST_CASE("csr_multiply gives zeros without elements, and accepts no rows", "[workloads][csr_multiply]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    CHECK(multiplied({.offsets = {0}, .columns = {}, .values = {}, .x = {}}, leg).empty());
    const Sparse zeros{.offsets = std::vector<std::uint32_t>(301, 0), .columns = {}, .values = {}, .x = {}};
    CHECK(equal_bits(multiplied(zeros, leg), std::vector<float>(300)));
  }
}

TEST_CASE("csr_multiply propagates NaN and infinities to their rows only", "[workloads][csr_multiply]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    Sparse a = sparse({4, 4, 3000, 3000, 0, 4, 4}, 100, 11);
    std::fill(a.columns.begin(), a.columns.end(), 7u);
    a.columns[1] = a.columns[6013] = 1;  // times infinity
    a.values[1] = -2.0f;
    a.values[6] = undefined;
    a.values[1500] = infinity;
    a.values[5000] = infinity;
    a.values[5001] = -infinity;
    a.columns[6010] = 2;  // infinity times 0
    a.values[6010] = infinity;
    a.x[1] = infinity;
    a.x[2] = 0.0f;
    a.x[7] = 1.0f;
    const auto y = multiplied(a, leg);
    CHECK(y[0] == -infinity);
    CHECK(std::isnan(y[1]));
    CHECK(y[2] == infinity);
    CHECK(std::isnan(y[3]));
    CHECK(y[4] == 0);
    CHECK(std::isnan(y[5]));
    CHECK(differing_row(a, y) == "");
  }
}

TEST_CASE("csr_multiply ignores columns that x does not have", "[workloads][csr_multiply]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    Sparse a = sparse(lengths_below(500, 60, 12), 100, 13);
    for (std::size_t i = 0; i < a.columns.size(); i += 5) {
      a.columns[i] = i % 2 == 0 ? 100u + static_cast<std::uint32_t>(i) : ~0u;
      a.values[i] = undefined;
    }
    check_product(a, leg);
    a.x.clear();
    CHECK(equal_bits(multiplied(a, leg), std::vector<float>(500)));
  }
}

TEST_CASE("csr_multiply completes with offsets that decrease or point beyond the values",
          "[workloads][csr_multiply]") {
  std::mt19937 random(14);
  for (const std::string& leg : legs()) {
    INFO(leg);
    Sparse a = sparse(lengths_below(2000, 20, 15), 100, 16);
    for (std::uint32_t& offset : a.offsets) offset = static_cast<std::uint32_t>(random());
    a.offsets.back() = static_cast<std::uint32_t>(a.values.size());
    multiplied(a, leg);
    for (std::uint32_t& offset : a.offsets) offset %= static_cast<std::uint32_t>(a.values.size());
    // Host memory is checked, arrays are not.
    const Array<std::uint32_t> offsets = the_runtime().array(a.offsets);
    auto y = poisoned(2000);
    run(workloads::csr_multiply(offsets, a.columns, a.values, a.x, y), leg);
    // Only row 0 has valid offsets.
    std::vector<std::uint32_t> few(2001, ~0u);
    few[0] = 0;
    few[1] = 1;
    const Array<std::uint32_t> beyond = the_runtime().array(few);
    run(workloads::csr_multiply(beyond, a.columns, a.values, a.x, y), leg);
    CHECK(y[0] == a.values[0] * a.x[a.columns[0]]);
    CHECK(y[1999] == 0);
  }
}

TEST_CASE("csr_multiply gives the same bits again", "[workloads][csr_multiply]") {
  auto lengths = lengths_below(5000, 30, 17);
  lengths[77] = 100'000;
  const Sparse a = sparse(lengths, 3000, 18);
  for (const std::string& leg : legs()) {
    INFO(leg);
    CHECK(equal_bits(multiplied(a, leg), multiplied(a, leg)));
  }
}

TEST_CASE("csr_multiply on the CPU gives a row the same bits alone and among others",
          "[workloads][csr_multiply]") {
  if (!has_leg("cpu")) return;
  Sparse all = sparse(lengths_below(200, 80, 21), 500, 22);
  // Rows of 1 to 32 products -0, each with a longer row beside it.
  for (std::uint32_t length = 1; length <= 32; ++length)
    for (const std::uint32_t some : {length, 2 * length}) {
      for (std::uint32_t i = 0; i < some; ++i) {
        all.columns.push_back(some == length ? 0 : 1);
        all.values.push_back(-1);
      }
      all.offsets.push_back(static_cast<std::uint32_t>(all.values.size()));
    }
  all.x[0] = 0;
  const auto y = multiplied(all, "cpu");
  std::vector<float> alone;
  for (std::size_t row = 0; row < y.size(); ++row) {
    const auto begin = all.offsets[row], end = all.offsets[row + 1];
    const Sparse one{.offsets = {0, end - begin},
                     .columns = {all.columns.begin() + begin, all.columns.begin() + end},
                     .values = {all.values.begin() + begin, all.values.begin() + end},
                     .x = all.x};
    alone.push_back(multiplied(one, "cpu")[0]);
  }
  CHECK(equal_bits(y, alone));
}

TEST_CASE("csr_multiply reads slices and keeps the elements beside y", "[workloads][csr_multiply]") {
  const Sparse a = sparse(lengths_below(100, 50, 19), 100, 20);
  for (const std::string& leg : legs())
    for (const std::size_t begin : {0u, 1u, 2u, 3u}) {
      INFO(leg << ", from element " << begin << " on");
      const auto behind = [&](auto all) {
        all.insert(all.begin(), begin, {});
        return all;
      };
      const auto edges = poisoned(105);
      const Array<float> values = the_runtime().array(behind(a.values)), to = the_runtime().array(edges);
      const Array<std::uint32_t> columns = the_runtime().array(behind(a.columns));
      run(workloads::csr_multiply(a.offsets, Read<std::uint32_t>(columns).slice(begin, a.columns.size()),
                                  Read<float>(values).slice(begin, a.values.size()), a.x,
                                  Write<float>(to).slice(3 - begin, 100)),
          leg);
      const auto y = to.read();
      REQUIRE(y);
      CHECK(differing_row(a, y->span().subspan(3 - begin, 100)) == "");
      for (std::size_t i = 0; i < edges.size(); ++i)
        if (i < 3 - begin || i >= 103 - begin) CHECK(std::memcmp(&(*y)[i], &edges[i], sizeof(float)) == 0);
    }
}

TEST_CASE("csr_multiply is right if its grid has more than one row",
          "[workloads][csr_multiply][large][.huge]") {
  const std::size_t rows = (std::size_t{1} << 23) + 301;
  Sparse a;
  a.offsets.resize(rows + 1);
  std::iota(a.offsets.begin(), a.offsets.end(), 0u);
  a.columns.resize(rows);
  for (std::size_t i = 0; i < rows; ++i) a.columns[i] = static_cast<std::uint32_t>(rows - 1 - i);
  a.values.assign(rows, 2.0f);
  a.x = numbers(rows, 21);
  for (const std::string& leg : legs()) {
    INFO(leg);
    const auto y = multiplied(a, leg);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < rows; ++i) wrong += y[i] != 2 * a.x[rows - 1 - i];
    CHECK(wrong == 0);
  }
}

TEST_CASE("csr_multiply refuses sizes that do not match", "[workloads][csr_multiply]") {
  std::vector<std::uint32_t> offsets{0, 1, 3}, columns(3), few_columns(2);
  std::vector<float> values(3), x(5), y(2), few_rows(1);
  const auto sentence_of = [](const Job& job) {
    REQUIRE(job.error());
    CHECK(*job.error() == Errc::invalid_argument);
    return refusal(job);
  };
  CHECK(sentence_of(workloads::csr_multiply(offsets, columns, values, x, few_rows)) ==
        "Offsets (3 elements) of workload 'csr_multiply' must be one more than its rows (1).");
  CHECK(sentence_of(workloads::csr_multiply(offsets, few_columns, values, x, y)) ==
        "Columns (2 elements) of workload 'csr_multiply' differ in number from its values (3 elements).");
  offsets[2] = 2;
  CHECK(sentence_of(workloads::csr_multiply(offsets, columns, values, x, y)) ==
        "Last offset (2) of workload 'csr_multiply' is not the number of its values (3).");
  offsets[2] = 3;
  const std::span<const float> endless(x.data(), std::size_t{1} << 31);
  CHECK(sentence_of(workloads::csr_multiply(offsets, columns, values, endless, y)) ==
        "Vector x (2147483648 elements) of workload 'csr_multiply' exceeds the limit (2147483647).");
  const std::span<float> rows(x.data(), std::size_t{1} << 31);
  const std::span<const std::uint32_t> of_rows(columns.data(), (std::size_t{1} << 31) + 1);
  CHECK(sentence_of(workloads::csr_multiply(of_rows, columns, values, x, rows)) ==
        "Rows (2147483648) of workload 'csr_multiply' exceed the limit (2147483647).");
  const std::span<const float> many(x.data(), std::size_t{1} << 32);
  const std::span<const std::uint32_t> as_many(columns.data(), std::size_t{1} << 32);
  CHECK(sentence_of(workloads::csr_multiply(offsets, as_many, many, x, y)) ==
        "Values (4294967296) of workload 'csr_multiply' exceed the limit (4294967295).");
}
