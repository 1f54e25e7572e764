#include <wye/workloads/dot.hpp>

#include "workloads/vectors.hpp"

using namespace wye;
using namespace wye::test;
namespace reference = wye::workloads::reference;

namespace {

template <class T>
std::vector<Sum<T>> dots(const std::vector<T>& x, const std::vector<T>& y, std::size_t rows,
                         const std::string& leg) {
  auto results = poison<Sum<T>>(rows);
  run(workloads::dot(x, y, results), leg);
  return results;
}

template <class T>
std::string differing_dot(std::span<const T> x, std::span<const T> y, std::span<const Sum<T>> results) {
  const std::size_t rows = results.size();
  const auto exact = reference::dot(x, y, rows);
  if constexpr (std::is_integral_v<T>) {
    for (std::size_t row = 0; row < rows; ++row)
      if (results[row] != exact[row])
        return std::to_string(results[row]) + " instead of " + std::to_string(exact[row]) + " of row " +
               std::to_string(row);
    return "";
  } else {
    const auto sizes = [](std::span<const T> numbers) {
      std::vector<T> made;
      for (T number : numbers) made.push_back(T(std::abs(static_cast<float>(number))));
      return made;
    };
    const auto of_sizes = reference::dot(sizes(x), sizes(y), rows);
    return difference(results, exact,
                      [&](std::size_t row) { return bound_of_sum(x.size() / rows, of_sizes[row]); });
  }
}

template <class T>
std::string dot_difference(const std::vector<T>& x, const std::vector<T>& y, std::size_t rows,
                           const std::string& leg) {
  return differing_dot<T>(x, y, dots(x, y, rows, leg));
}

}  // namespace

TEST_CASE("dot adds the products of rows of every type", "[workloads][dot]") {
  for (const std::string& leg : legs())
    for_element_types([&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()));
      CHECK(dots<T>({}, {}, 0, leg).empty());
      CHECK(dots<T>({}, {}, 300, leg) == std::vector<Sum<T>>(300, Sum<T>(0)));
      for (const auto& [rows, columns] : row_shapes) {
        INFO(rows << " x " << columns);
        const std::size_t count = rows * columns;
        CHECK(dot_difference(elements<T>(count, 1), elements<T>(count, 2), rows, leg) == "");
      }
    });
}

TEST_CASE("dot is right for random shapes", "[workloads][dot]") {
  std::mt19937 random(3);
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const std::size_t rows = 1 + random() % 20, columns = random() % (i % 8 == 0 ? 1500 : 60);
    const auto seed = static_cast<std::uint32_t>(random());
    const std::string& leg = legs()[random() % legs().size()];
    std::uint32_t type_number = 0;
    for_element_types([&](auto type) {
      using T = decltype(type);
      if (type_number++ != i % 6) return;
      INFO(leg << ", " << name(element_type<T>()) << ", " << rows << " x " << columns << ", seed " << seed);
      const std::size_t count = rows * columns;
      CHECK(dot_difference(elements<T>(count, seed), equal_elements<T>(count, seed + 1, true), rows, leg) ==
            "");
    });
  }
}

TEST_CASE("dot propagates NaN and infinities", "[workloads][dot]") {
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()));
      const auto x = of<T>({1, infinity, 1, infinity, 1, undefined, 0, infinity}),
                 y = of<T>({2, 2, 2, -1, 3, 0, 1, 0});
      const auto found = dots(x, y, 4, leg);
      CHECK(found[0] == infinity);
      CHECK(found[1] == -infinity);
      CHECK(std::isnan(found[2]));
      CHECK(std::isnan(found[3]));
    });
}

TEST_CASE("dot is within its bound if products cancel out or are large", "[workloads][dot]") {
  for (const std::string& leg : legs())
    for (std::size_t columns : {255u, 65536u, 300001u}) {
      INFO(leg << ", " << columns << " columns");
      const std::vector<float> x = numbers(columns, 4, 1e3f, 1e4f);
      std::vector<float> y = x;
      for (std::size_t i = 1; i < columns; i += 2) y[i] = -y[i];
      CHECK(dot_difference(x, y, 1, leg) == "");
      CHECK(dot_difference(x, x, 1, leg) == "");
      const std::vector<float> large = numbers(columns, 5, 1e16f, 1e16f);
      CHECK(dot_difference(large, large, 1, leg) == "");
    }
}

TEST_CASE("dot is right for arrays that begin at odd elements", "[workloads][dot]") {
  constexpr std::size_t rows = 3, columns = 301, count = rows * columns;
  for (const std::string& leg : legs())
    for_element_types([&](auto type) {
      using T = decltype(type);
      for (std::size_t begin : {0u, 1u, 2u, 3u}) {
        INFO(leg << ", " << name(element_type<T>()) << ", from element " << begin << " on");
        const auto x = elements<T>(count + begin, 6), y = elements<T>(count + 1, 7);
        const Array<T> a = the_runtime().array(x), b = the_runtime().array(y);
        const Array<Sum<T>> to = the_runtime().template array<Sum<T>>(rows + begin);
        run(workloads::dot(Read<T>(a).slice(begin, count), Read<T>(b).slice(1, count),
                           Write<Sum<T>>(to).slice(begin, rows)),
            leg);
        const auto results = to.read();
        REQUIRE(results);
        CHECK(differing_dot<T>(std::span(x).subspan(begin), std::span(y).subspan(1),
                               results->span().subspan(begin)) == "");
      }
    });
}

TEST_CASE("dot gives the same bits again", "[workloads][dot]") {
  for (const std::string& leg : legs())
    for (std::size_t columns : {7u, 1000u, 150000u}) {
      INFO(leg << ", " << columns << " columns");
      const std::size_t rows = columns < 5000 ? 100 : 2;
      const std::vector<float> x = numbers(columns * rows, 7), y = numbers(columns * rows, 8);
      CHECK(equal_bits(dots(x, y, rows, leg), dots(x, y, rows, leg)));
    }
}

TEST_CASE("dot is right if its grid has more than one row", "[workloads][dot][large]") {
  const std::size_t rows = (std::size_t{1} << 23) + 301;
  const auto x = elements<std::uint32_t>(rows, 8), y = elements<std::uint32_t>(rows, 9);
  for (const std::string& leg : legs()) {
    INFO(leg);
    CHECK(dot_difference(x, y, rows, leg) == "");
  }
}

TEST_CASE("dot refuses sizes that do not match", "[workloads][dot]") {
  std::vector<float> x(10), y(9), results(4);
  CHECK(refusal(workloads::dot(x, y, results)) ==
        "Vector x (10 elements) of workload 'dot' is not as long as y (9 elements).");
  CHECK(refusal(workloads::dot(x, x, results)) ==
        "Vector x (10 elements) of workload 'dot' has no whole number of rows for 4 results.");
}
