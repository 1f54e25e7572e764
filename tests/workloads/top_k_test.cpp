#include <wye/workloads/top_k.hpp>

#include <algorithm>

#include "workloads/vectors.hpp"

using namespace wye;
using namespace wye::test;
namespace reference = wye::workloads::reference;
using workloads::SortOrder;

namespace {

using TopPlaces = std::vector<std::uint32_t>;
constexpr SortOrder top_orders[] = {SortOrder::ascending, SortOrder::descending};

template <class T>
std::string differing_top(std::size_t k, const std::vector<T>& x, std::size_t columns, SortOrder order,
                          const std::string& leg) {
  const std::size_t rows = x.size() / columns;
  auto values = poison<T>(k * rows);
  auto places = poison<std::uint32_t>(k * rows);
  run(workloads::top_k(k, x, values, places, {.order = order, .columns = columns}), leg);
  const TopPlaces exact = reference::top_k_columns<T>(k, x, rows, order);
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const std::string place = " at " + std::to_string(i % k) + " of row " + std::to_string(i / k);
    if (places[i] != exact[i])
      return "place " + std::to_string(places[i]) + " instead of " + std::to_string(exact[i]) + place;
    if (std::memcmp(&values[i], &x[i / k * columns + exact[i]], sizeof(T)) != 0) return "other bits" + place;
  }
  return "";
}

/// Numbers of elements to find in rows of some length: with whole rows in a tile, with one
/// selection or several, and by sorting.
struct TopShape {
  std::size_t k, rows, columns;
};
constexpr TopShape top_shapes[] = {{1, 1, 1},        {0, 3, 5},       {2, 2000, 2},    {3, 100, 31},
                                   {1000, 3, 1000},  {7, 3, 2048},    {7, 3, 2049},    {1024, 2, 2050},
                                   {1024, 1, 9000},  {100, 2, 10001}, {500, 1, 70000}, {1025, 2, 5000},
                                   {40000, 1, 40001}};

}  // namespace

TEST_CASE("top_k finds the first elements of rows of every type", "[workloads][top_k]") {
  for (const std::string& leg : legs())
    for_element_types([&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()));
      std::uint32_t seed = 0;
      for (const auto& [k, rows, columns] : top_shapes) {
        ++seed;
        if (leg != "cpu" && k * columns > 10'000'000) continue;
        INFO(k << " of " << rows << " x " << columns);
        if (leg == "cpu" || seed % 2 == 0)
          CHECK(differing_top(k, elements<T>(rows * columns, seed), columns, top_orders[seed % 2], leg) ==
                "");
        if (leg == "cpu" || seed % 2 == 1)
          CHECK(differing_top(k, equal_elements<T>(rows * columns, seed), columns, top_orders[(seed + 1) % 2],
                              leg) == "");
      }
    });
}

TEST_CASE("top_k finds the first elements of long vectors", "[workloads][top_k]") {
  constexpr std::size_t size = 300001;
  for (const std::string& leg : legs())
    for (const std::size_t k : {1u, 100u}) {
      INFO(leg << ", " << k);
      CHECK(differing_top(k, elements<float>(size, 1), size, SortOrder::descending, leg) == "");
      CHECK(differing_top(k, equal_elements<half>(size, 2), size, SortOrder::descending, leg) == "");
      auto up = elements<std::uint64_t>(size, 3);
      std::sort(up.begin(), up.end());
      CHECK(differing_top(k, up, size, SortOrder::descending, leg) == "");
    }
}

TEST_CASE("top_k is right for random shapes", "[workloads][top_k]") {
  std::mt19937 random(3);
  for (std::uint32_t i = 0; i < 500; ++i) {
    const std::size_t rows = 1 + random() % 20, columns = 1 + random() % (i % 8 == 0 ? 8000 : 100);
    const std::size_t k = random() % (std::min<std::size_t>(columns, i % 16 == 0 ? 8000 : 50) + 1);
    const auto seed = static_cast<std::uint32_t>(random());
    const std::string& leg = legs()[random() % legs().size()];
    if (leg != "cpu" && i % 16 != 0) continue;
    const SortOrder order = top_orders[random() % 2];
    std::uint32_t type_number = 0;
    for_element_types([&](auto type) {
      using T = decltype(type);
      if (type_number++ != i % 6) return;
      INFO(leg << ", " << name(element_type<T>()) << ", " << k << " of " << rows << " x " << columns
               << ", seed " << seed);
      const std::size_t count = rows * columns;
      CHECK(differing_top(k, seed % 2 == 0 ? elements<T>(count, seed) : equal_elements<T>(count, seed),
                          columns, order, leg) == "");
    });
  }
}

TEST_CASE("top_k takes zeros and NaN for equal, and the first of equal elements", "[workloads][top_k]") {
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()));
      const auto x = of<T>(
          {0.0f, undefined, -0.0f, 1.0f, -infinity, -undefined, 0.0f, infinity, -1.0f, undefined, -0.0f});
      const auto places = [&](std::size_t k, SortOrder order) {
        auto values = poison<T>(k);
        auto found = poison<std::uint32_t>(k);
        run(workloads::top_k(k, x, values, found, {.order = order}), leg);
        return found;
      };
      CHECK(places(6, SortOrder::ascending) == TopPlaces{4, 8, 0, 2, 6, 10});
      CHECK(places(6, SortOrder::descending) == TopPlaces{1, 5, 9, 7, 3, 0});
      // Equal elements of several tiles.
      const std::vector<T> equal(9000, T(undefined));
      auto values = poison<T>(50);
      TopPlaces found(50), expected(50);
      for (std::uint32_t i = 0; i < 50; ++i) expected[i] = i;
      run(workloads::top_k(50, equal, values, found), leg);
      CHECK(found == expected);
    });
}

TEST_CASE("top_k needs no elements", "[workloads][top_k]") {
  for (const std::string& leg : legs()) {
    std::vector<float> none, x(10);
    TopPlaces places;
    run(workloads::top_k(0, none, none, places), leg);
    run(workloads::top_k(3, none, none, places, {.columns = 5}), leg);
    run(workloads::top_k(0, x, none, places), leg);
  }
}

TEST_CASE("top_k finds elements of more than 4 GiB on the CPU", "[workloads][top_k][large][.huge]") {
  if (!has_leg("cpu")) return;
  const std::size_t size = (std::size_t{1} << 30) + 12'345;
  std::vector<float> x(size, 0.5f);
  const std::size_t first = 7, second = size - 1;
  x[first] = x[second] = 2;
  std::vector<float> values(3);
  TopPlaces places(3);
  run(workloads::top_k(3, x, values, places), "cpu");
  CHECK(places == TopPlaces{static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(second), 0});
  CHECK(values == std::vector<float>{2, 2, 0.5f});
}

TEST_CASE("top_k refuses sizes that do not match", "[workloads][top_k]") {
  std::vector<float> x(10), four(4), six(6);
  TopPlaces places(4);
  const auto sentence_of = [](const Job& job) {
    REQUIRE(job.error());
    CHECK(*job.error() == Errc::invalid_argument);
    return refusal(job);
  };
  CHECK(sentence_of(workloads::top_k(11, x, four, places)) ==
        "Number k (11) of workload 'top_k' exceeds the length of a row (10).");
  CHECK(sentence_of(workloads::top_k(2, x, four, places, {.columns = 3})) ==
        "Matrix (10 elements) of workload 'top_k' has no whole number of rows of 3 columns.");
  CHECK(sentence_of(workloads::top_k(2, x, six, places, {.columns = 5})) ==
        "Vector values (6 elements) of workload 'top_k' does not have 2 elements for each of 2 rows.");
  CHECK(sentence_of(workloads::top_k(3, x, six, places, {.columns = 5})) ==
        "Vector places (4 elements) of workload 'top_k' does not have 3 elements for each of 2 rows.");
}
