#include <wye/workloads/add_rows.hpp>

#include <cstdlib>
#include <memory>

#include "workloads/vectors.hpp"

using namespace wye;
using namespace wye::test;
namespace reference = wye::workloads::reference;

namespace {

/// Compares sums with the exact ones, rounded once. GPUs may take numbers and sums below 2^-126 for
/// zeros.
template <class T>
std::string differing_sum(const std::vector<double>& exact, std::span<const T> after) {
  if (exact.size() != after.size()) return "another size";
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const float wanted = static_cast<float>(T(static_cast<float>(exact[i])));
    const float found = static_cast<float>(after[i]);
    if (std::isnan(wanted) ? std::isnan(found) : found == wanted) continue;
    if (std::abs(exact[i]) < 0x1.01p-126 && found == 0) continue;
    return std::to_string(found) + " instead of " + std::to_string(wanted) + " at " + std::to_string(i);
  }
  return "";
}

template <class T>
std::string row_difference(std::vector<T> x, const std::vector<T>& row, const std::string& leg) {
  const auto exact = reference::add_rows(std::span<const T>(x), std::span<const T>(row));
  run(workloads::add_rows(x, row), leg);
  return differing_sum<T>(exact, x);
}

template <class T>
std::string table_difference(std::vector<T> x, const std::vector<T>& table,
                             const std::vector<std::uint32_t>& rows, const std::string& leg) {
  const auto exact = reference::add_rows(std::span<const T>(x), std::span<const T>(table), rows);
  run(workloads::add_rows(x, table, rows), leg);
  return differing_sum<T>(exact, x);
}

/// Numbers of rows below `count`, and one in eight beyond.
std::vector<std::uint32_t> row_numbers(std::size_t size, std::uint32_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::uint32_t> rows(size);
  for (std::uint32_t& row : rows) {
    const auto number = static_cast<std::uint32_t>(random());
    const std::uint32_t beyond = number % 16 == 0 ? 0xffff'ffff : count;
    row = number % 8 == 0 || count == 0 ? beyond : number / 16 % count;
  }
  return rows;
}

}  // namespace

TEST_CASE("add_rows adds one row to each row of every type", "[workloads][add_rows]") {
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()));
      CHECK(row_difference<T>({}, {}, leg) == "");
      CHECK(row_difference<T>({}, elements<T>(5, 1), leg) == "");
      for (const auto& [rows, columns] : row_shapes) {
        INFO(rows << " x " << columns);
        CHECK(row_difference(elements<T>(rows * columns, 1), elements<T>(columns, 2), leg) == "");
      }
    });
}

TEST_CASE("add_rows adds the rows of a table that numbers name", "[workloads][add_rows]") {
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()));
      CHECK(table_difference<T>({}, {}, {}, leg) == "");
      CHECK(table_difference<T>({}, elements<T>(5, 1), {}, leg) == "");
      CHECK(table_difference<T>({}, {}, {0, 1, 2}, leg) == "");
      CHECK(table_difference<T>(elements<T>(45, 1), {}, row_numbers(9, 0, 2), leg) == "");
      for (const auto& [rows, columns] : row_shapes) {
        INFO(rows << " x " << columns);
        CHECK(table_difference(elements<T>(rows * columns, 1), elements<T>(3 * columns, 2),
                               row_numbers(rows, 3, 3), leg) == "");
      }
    });
}

TEST_CASE("add_rows is right for random shapes", "[workloads][add_rows]") {
  std::mt19937 random(29);
  for (std::uint32_t i = 0; i < 300; ++i) {
    const std::size_t rows = 1 + random() % 40, columns = 1 + random() % (i % 8 == 0 ? 1500 : 60);
    const auto table_rows = static_cast<std::uint32_t>(random() % 20);
    const auto seed = static_cast<std::uint32_t>(random());
    const std::string& leg = legs()[random() % legs().size()];
    for_float_type(i, [&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()) << ", " << rows << " x " << columns << ", " << table_rows
               << " rows of the table, seed " << seed);
      const auto x = elements<T>(rows * columns, seed);
      CHECK(row_difference(x, elements<T>(columns, seed + 1), leg) == "");
      CHECK(table_difference(x, elements<T>(table_rows * columns, seed + 2),
                             row_numbers(rows, table_rows, seed + 3), leg) == "");
    });
  }
}

TEST_CASE("add_rows rounds sums of all halves once", "[workloads][add_rows]") {
  std::vector<half> halves;
  std::vector<bfloat16> bfloats;
  for (unsigned bits = 0; bits < 65536; ++bits) {
    halves.push_back(half::from_bits(static_cast<std::uint16_t>(bits)));
    bfloats.push_back(bfloat16::from_bits(static_cast<std::uint16_t>(bits)));
  }
  for (const std::string& leg : legs())
    for (float a : {0.0f, 1.0f, 0.333f, -1001.0f, 60000.0f, 6e-8f}) {
      INFO(leg << ", and " << a);
      CHECK(row_difference<half>(halves, of<half>({a}), leg) == "");
      CHECK(row_difference<bfloat16>(bfloats, of<bfloat16>({a}), leg) == "");
    }
}

TEST_CASE("add_rows propagates NaN and infinities", "[workloads][add_rows]") {
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()));
      const auto x = of<T>({1, infinity, -infinity, infinity, undefined, -1, undefined, 1, -0.0f});
      CHECK(row_difference(x, of<T>({infinity, -infinity, undefined}), leg) == "");
      CHECK(row_difference(x, of<T>({1, 2, -0.0f}), leg) == "");
      CHECK(table_difference(x, of<T>({-infinity, infinity, undefined, 1, 2, 3}), {1, 0, 1}, leg) == "");
    });
}

TEST_CASE("add_rows leaves rows whose number the table lacks as they are, bit for bit",
          "[workloads][add_rows]") {
  constexpr std::size_t columns = 37;
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()));
      std::mt19937 random(31);
      std::vector<T> x(4 * columns);  // any bits, also of NaN
      for (T& element : x) {
        const auto word = static_cast<std::uint32_t>(random());
        std::memcpy(static_cast<void*>(&element), &word, sizeof(T));
      }
      const std::vector<T> before = x;
      const auto table = elements<T>(2 * columns, 1);
      const std::vector<std::uint32_t> rows{2, 0xffffffff, 3, 1000};
      run(workloads::add_rows(x, table, rows), leg);
      CHECK(equal_bits(x, before));
    });
}

TEST_CASE("add_rows changes no element beside arrays that begin at odd elements", "[workloads][add_rows]") {
  constexpr std::size_t count = 9, table_rows = 4;
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      for (const std::size_t columns : {1u, 3u, 67u})
        for (const std::size_t begin : {0u, 1u, 2u, 3u}) {
          INFO(leg << ", " << name(element_type<T>()) << ", " << columns << " columns from element " << begin
                   << " on");
          const std::size_t shift = 3 - begin, size = count * columns;
          const auto before = elements<T>(size + 6, 11), all = elements<T>(table_rows * columns + 6, 12);
          const auto numbers_of_rows = row_numbers(count + 3, table_rows, 13);
          const Array<T> x = the_runtime().array(before), table = the_runtime().array(all);
          const Array<std::uint32_t> rows = the_runtime().array(numbers_of_rows);
          run(workloads::add_rows(ReadWrite<T>(x).slice(begin, size),
                                  Read<T>(table).slice(shift, table_rows * columns),
                                  Read<std::uint32_t>(rows).slice(begin, count)),
              leg);
          const auto after = x.read();
          REQUIRE(after);
          const auto exact = reference::add_rows(std::span(before).subspan(begin, size),
                                                 std::span(all).subspan(shift, table_rows * columns),
                                                 std::span(numbers_of_rows).subspan(begin, count));
          CHECK(differing_sum<T>(exact, after->span().subspan(begin, size)) == "");
          for (std::size_t i = 0; i < before.size(); ++i)
            if (i < begin || i >= begin + size) CHECK(std::memcmp(&(*after)[i], &before[i], sizeof(T)) == 0);
        }
    });
}

TEST_CASE("add_rows is right for tables beyond 4 GiB", "[workloads][add_rows][large]") {
  if (!has_leg("cpu")) return;
  constexpr std::size_t columns = 65536, table_rows = 32768 + 5;
  constexpr auto release = [](void* memory) { std::free(memory); };
  // Of this memory, only the pages exist that are used.
  const std::unique_ptr<void, decltype(release)> memory(std::calloc(table_rows * columns, sizeof(half)),
                                                        release);
  REQUIRE(memory);
  const std::span<half> table(static_cast<half*>(memory.get()), table_rows * columns);
  const auto last = elements<half>(columns, 1), other = elements<half>(columns, 2);
  std::copy(last.begin(), last.end(), table.end() - columns);
  std::copy(other.begin(), other.end(), table.begin() + std::ptrdiff_t{32768} * columns);
  std::vector<half> x(3 * columns), expected = last;
  expected.resize(2 * columns);
  expected.insert(expected.end(), other.begin(), other.end());
  const std::vector<std::uint32_t> rows{table_rows - 1, table_rows, 32768};
  run(workloads::add_rows(x, table, rows), "cpu");
  CHECK(floats(x) == floats(expected));
}

TEST_CASE("add_rows refuses a row that overlaps x", "[workloads][add_rows]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    std::vector<float> x(1000, 1.0f);
    auto job = workloads::add_rows(std::span(x).first(900), std::span<const float>(x).subspan(899, 9));
    const auto done = the_runtime().submit(std::move(job), {.fallback = Fallback::forbid, .on = leg}).wait();
    REQUIRE_FALSE(done);
    CHECK(done.error() == Errc::invalid_argument);
  }
}

TEST_CASE("add_rows refuses sizes that do not match", "[workloads][add_rows]") {
  std::vector<float> x(10), four(4), none;
  std::vector<std::uint32_t> rows(5), three(3), no_rows;
  CHECK(refusal(workloads::add_rows(x, four)) ==
        "Matrix (10 elements) of workload 'add_rows' has no whole number of rows of 4 columns.");
  CHECK(refusal(workloads::add_rows(x, none)) ==
        "Matrix (10 elements) of workload 'add_rows' has no whole number of rows of 0 columns.");
  CHECK(refusal(workloads::add_rows(x, four, three)) ==
        "Vector x (10 elements) of workload 'add_rows' has no whole number of rows for 3 numbers of rows.");
  CHECK(refusal(workloads::add_rows(x, four, no_rows)) ==
        "Vector x (10 elements) of workload 'add_rows' has no whole number of rows for 0 numbers of rows.");
  std::vector<float> seven(7);
  CHECK(refusal(workloads::add_rows(x, seven, rows)) ==
        "Table (7 elements) of workload 'add_rows' has no whole number of rows of 2 columns.");
}
