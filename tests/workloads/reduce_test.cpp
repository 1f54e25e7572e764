#include <wye/workloads/reduce.hpp>

#include <algorithm>

#include "workloads/vectors.hpp"

using namespace wye;
using namespace wye::test;
namespace reference = wye::workloads::reference;
using workloads::Reduction;

namespace {

constexpr Reduction extremes[] = {Reduction::min, Reduction::max};

template <class T>
std::vector<Sum<T>> sums(const std::vector<T>& x, std::size_t rows, const std::string& leg) {
  auto results = poison<Sum<T>>(rows);
  run(workloads::reduce(Reduction::sum, x, results), leg);
  return results;
}

template <class T>
std::string differing_sum(const std::vector<T>& x, std::span<const Sum<T>> results) {
  const std::size_t rows = results.size();
  const auto exact = reference::sums(x, rows);
  if constexpr (std::is_integral_v<T>) {
    for (std::size_t row = 0; row < rows; ++row)
      if (results[row] != exact[row])
        return std::to_string(results[row]) + " instead of " + std::to_string(exact[row]) + " of row " +
               std::to_string(row);
    return "";
  } else {
    std::vector<T> sizes = x;
    for (T& number : sizes) number = T(std::abs(static_cast<float>(number)));
    const auto of_sizes = reference::sums(sizes, rows);
    return difference(results, exact,
                      [&](std::size_t row) { return bound_of_sum(x.size() / rows, of_sizes[row]); });
  }
}

template <class T>
struct Extremes {
  std::vector<T> values;
  std::vector<std::uint32_t> places;
};

template <class T>
Extremes<T> extremes_of(Reduction reduction, const std::vector<T>& x, std::size_t rows,
                        const std::string& leg) {
  Extremes<T> found{poison<T>(rows), poison<std::uint32_t>(rows)};
  run(workloads::reduce(reduction, x, found.values, found.places), leg);
  return found;
}

template <class T>
std::string differing_extreme(Reduction reduction, const std::vector<T>& x, const Extremes<T>& found) {
  const std::size_t rows = found.values.size(), columns = rows == 0 ? 0 : x.size() / rows;
  const auto places = reference::places(reduction, x, rows);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::string place = std::to_string(places[row]) + " of row " + std::to_string(row);
    if (found.places[row] != places[row])
      return "place " + std::to_string(found.places[row]) + " instead of " + place;
    if (std::memcmp(&found.values[row], &x[row * columns + places[row]], sizeof(T)) != 0)
      return "other bits than at place " + place;
  }
  return "";
}

/// Compares all reductions of `x`, with places and without.
template <class T>
void check_reductions(const std::vector<T>& x, std::size_t rows, const std::string& leg) {
  CHECK(differing_sum<T>(x, sums(x, rows, leg)) == "");
  if (x.empty() && rows != 0) return;
  for (const Reduction reduction : extremes) {
    const Extremes<T> found = extremes_of(reduction, x, rows, leg);
    CHECK(differing_extreme(reduction, x, found) == "");
    auto alone = poison<T>(rows);
    run(workloads::reduce(reduction, x, alone), leg);
    CHECK(equal_bits(alone, found.values));
  }
}

}  // namespace

TEST_CASE("reduce finds sums and extremes of rows of every type", "[workloads][reduce]") {
  for (const std::string& leg : legs())
    for_element_types([&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()));
      check_reductions(std::vector<T>(), 0, leg);
      for (const auto& [rows, columns] : row_shapes) {
        INFO(rows << " x " << columns);
        check_reductions(elements<T>(rows * columns, 1), rows, leg);
        check_reductions(equal_elements<T>(rows * columns, 2), rows, leg);
      }
    });
}

TEST_CASE("reduce is right for random shapes", "[workloads][reduce]") {
  std::mt19937 random(3);
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const std::size_t rows = 1 + random() % 40, columns = 1 + random() % (i % 8 == 0 ? 1500 : 60);
    const auto seed = static_cast<std::uint32_t>(random());
    const std::string& leg = legs()[random() % legs().size()];
    const auto reduction = static_cast<Reduction>(random() % 3);
    std::uint32_t type_number = 0;
    for_element_types([&](auto type) {
      using T = decltype(type);
      if (type_number++ != i % 6) return;
      INFO(leg << ", " << name(element_type<T>()) << ", " << rows << " x " << columns << ", seed " << seed
               << ", reduction " << static_cast<int>(reduction));
      const std::size_t count = rows * columns;
      const auto x = seed % 2 == 0 ? elements<T>(count, seed) : equal_elements<T>(count, seed);
      CHECK((reduction == Reduction::sum
                 ? differing_sum<T>(x, sums(x, rows, leg))
                 : differing_extreme(reduction, x, extremes_of(reduction, x, rows, leg))) == "");
    });
  }
}

TEST_CASE("reduce sets sums of empty rows to zero, and needs no rows", "[workloads][reduce]") {
  for (const std::string& leg : legs())
    for_element_types([&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()));
      CHECK(sums(std::vector<T>(), 300, leg) == std::vector<Sum<T>>(300, Sum<T>(0)));
    });
}

TEST_CASE("reduce selects the first of equal elements, and takes zeros and NaN for equal",
          "[workloads][reduce]") {
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()));
      const auto places = [&](Reduction reduction, const std::vector<float>& x, std::size_t rows) {
        const Extremes<T> found = extremes_of(reduction, of<T>(x), rows, leg);
        CHECK(differing_extreme(reduction, of<T>(x), found) == "");
        return found.places;
      };
      using Places = std::vector<std::uint32_t>;
      const std::vector<float> x{-0.0f,     0,         -0.0f,     0,  //
                                 1,         undefined, infinity,  -undefined, -infinity, 2,
                                 -infinity, undefined, undefined, -undefined, undefined, undefined};
      CHECK(places(Reduction::max, x, 4) == Places{0, 1, 3, 0});
      CHECK(places(Reduction::min, x, 4) == Places{0, 0, 0, 0});
      // Equal elements of several pieces.
      std::vector<float> wide(200000, 0.5f);
      CHECK(places(Reduction::max, wide, 1) == Places{0});
      CHECK(places(Reduction::min, wide, 1) == Places{0});
      wide[66000] = wide[131072] = wide[199999] = 1;
      wide[65535] = wide[65536] = -1;
      CHECK(places(Reduction::max, wide, 1) == Places{66000});
      CHECK(places(Reduction::min, wide, 1) == Places{65535});
      wide[199999] = undefined;
      CHECK(places(Reduction::max, wide, 1) == Places{199999});
      CHECK(places(Reduction::min, wide, 1) == Places{65535});
      std::fill(wide.begin(), wide.end(), undefined);
      CHECK(places(Reduction::min, wide, 1) == Places{0});
      wide[150000] = infinity;
      CHECK(places(Reduction::min, wide, 1) == Places{150000});
    });
}

TEST_CASE("reduce propagates NaN and infinities in sums", "[workloads][reduce]") {
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()));
      const auto x = of<T>({1, infinity, 2, 1, -infinity, 3, infinity, 0, -infinity, 1, undefined, infinity});
      const auto found = sums(x, 4, leg);
      CHECK(found[0] == infinity);
      CHECK(found[1] == -infinity);
      CHECK(std::isnan(found[2]));
      CHECK(std::isnan(found[3]));
      std::vector<T> wide(140000, T(1.0f));
      wide[69999] = T(infinity);
      CHECK(differing_sum<T>(wide, sums(wide, 2, leg)) == "");
    });
}

TEST_CASE("reduce adds small numbers to large ones within its bound", "[workloads][reduce]") {
  for (const std::string& leg : legs())
    for (std::size_t columns : {255u, 65536u, 300001u}) {
      INFO(leg << ", " << columns << " columns");
      const std::vector<float> equal(columns, 0.1f);
      CHECK(differing_sum<float>(equal, sums(equal, 1, leg)) == "");
      std::vector<float> cancelling = numbers(columns, 4, 1e6f, 1e8f);
      for (std::size_t i = 1; i < columns; i += 2) cancelling[i] = -cancelling[i - 1];
      CHECK(differing_sum<float>(cancelling, sums(cancelling, 1, leg)) == "");
      const std::vector<float> large = numbers(columns, 5, 1e32f, 1e33f);
      CHECK(differing_sum<float>(large, sums(large, 1, leg)) == "");
    }
}

TEST_CASE("reduce is right for arrays that begin at odd elements, and keeps the elements beside its results",
          "[workloads][reduce]") {
  constexpr std::size_t rows = 5, columns = 67, count = rows * columns;
  for (const std::string& leg : legs())
    for_element_types([&](auto type) {
      using T = decltype(type);
      for (std::size_t begin : {0u, 1u, 2u, 3u}) {
        INFO(leg << ", " << name(element_type<T>()) << ", from element " << begin << " on");
        const auto all = elements<T>(count + begin, 6);
        const std::vector<T> x(all.begin() + static_cast<std::ptrdiff_t>(begin), all.end());
        const auto edges = poison<T>(rows + begin + 2);
        const auto edges_of_sums = poison<Sum<T>>(rows + begin + 2);
        const Array<T> from = the_runtime().array(all), values = the_runtime().array(edges);
        const Array<Sum<T>> to = the_runtime().array(edges_of_sums);
        const Array<std::uint32_t> places = the_runtime().template array<std::uint32_t>(rows + begin);
        const Read<T> part = Read<T>(from).slice(begin, count);
        run(workloads::reduce(Reduction::sum, part, Write<Sum<T>>(to).slice(begin, rows)), leg);
        run(workloads::reduce(Reduction::max, part, Write<T>(values).slice(begin, rows),
                              Write<std::uint32_t>(places).slice(begin, rows)),
            leg);
        const auto results = to.read();
        const auto extreme = values.read();
        const auto found = places.read();
        REQUIRE((results && extreme && found));
        CHECK(differing_sum<T>(x, results->span().subspan(begin, rows)) == "");
        const auto copy = [&](const auto& view) {
          const auto list = view->span().subspan(begin, rows);
          return std::vector(list.begin(), list.end());
        };
        CHECK(differing_extreme<T>(Reduction::max, x, {copy(extreme), copy(found)}) == "");
        for (std::size_t i = 0; i < edges.size(); ++i) {
          if (i >= begin && i < begin + rows) continue;
          CHECK(std::memcmp(&(*extreme)[i], &edges[i], sizeof(T)) == 0);
          CHECK(std::memcmp(&(*results)[i], &edges_of_sums[i], sizeof(Sum<T>)) == 0);
        }
      }
    });
}

TEST_CASE("reduce gives the same bits again", "[workloads][reduce]") {
  for (const std::string& leg : legs())
    for (std::size_t columns : {7u, 1000u, 150000u}) {
      INFO(leg << ", " << columns << " columns");
      const std::vector<float> x = numbers(columns * (columns < 5000 ? 100 : 2), 7);
      const std::size_t rows = x.size() / columns;
      CHECK(equal_bits(sums(x, rows, leg), sums(x, rows, leg)));
    }
}

TEST_CASE("reduce is right if its grid has more than one row", "[workloads][reduce][large][.huge]") {
  const std::size_t rows = (std::size_t{1} << 23) + 301;
  const auto x = elements<float>(rows, 8);
  for (const std::string& leg : legs()) {
    INFO(leg);
    CHECK(equal_bits(sums(x, rows, leg), x));
    const Extremes<float> found = extremes_of(Reduction::min, x, rows, leg);
    CHECK(equal_bits(found.values, x));
    CHECK(std::all_of(found.places.begin(), found.places.end(),
                      [](std::uint32_t place) { return place == 0; }));
  }
}

TEST_CASE("reduce refuses sizes and types that do not match", "[workloads][reduce]") {
  std::vector<float> x(10), results(4), none;
  std::vector<half> halves(8), of_halves(4);
  std::vector<std::uint32_t> places(3), of_words(1);
  const auto sentence_of = [](const Job& job) {
    REQUIRE(job.error());
    CHECK(*job.error() == Errc::invalid_argument);
    return refusal(job);
  };
  CHECK(sentence_of(workloads::reduce(Reduction::sum, x, results)) ==
        "Vector x (10 elements) of workload 'reduce' has no whole number of rows for 4 results.");
  CHECK(sentence_of(workloads::reduce(Reduction::max, x, none)) ==
        "Vector x (10 elements) of workload 'reduce' has no whole number of rows for 0 results.");
  CHECK(sentence_of(workloads::reduce(Reduction::min, none, results)) ==
        "Vector x (0 elements) of workload 'reduce' has empty rows, which have no 'min'.");
  CHECK(sentence_of(workloads::reduce(Reduction::max, halves, results)) ==
        "Reduction 'max' of workload 'reduce' needs results of the type of x.");
  CHECK(sentence_of(workloads::reduce(Reduction::sum, halves, of_halves)) ==
        "Reduction 'sum' of workload 'reduce' needs results of type float.");
  CHECK(sentence_of(workloads::reduce(Reduction::sum, halves, of_halves, places)) ==
        "Reduction 'sum' of workload 'reduce' has no places.");
  CHECK(sentence_of(workloads::reduce(Reduction::min, halves, of_halves, places)) ==
        "Vector places (3 elements) of workload 'reduce' is not as long as results (4 elements).");
  const std::span<const std::uint32_t> endless(of_words.data(), std::size_t{1} << 31);
  CHECK(sentence_of(workloads::reduce(Reduction::sum, endless, of_words)) ==
        "Vector x (2147483648 elements) of workload 'reduce' has rows whose length (2147483648) exceeds the "
        "limit "
        "(2147483647).");
}
