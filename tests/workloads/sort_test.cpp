#include <wye/workloads/sort.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <numeric>
#include <random>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

#include "workloads/vectors.hpp"

using namespace wye;
using namespace wye::test;
namespace reference = wye::workloads::reference;
using workloads::SortOptions;
using workloads::SortOrder;

namespace {

using Words = std::vector<std::uint32_t>;
constexpr SortOrder sort_orders[] = {SortOrder::ascending, SortOrder::descending};

/// Returns the first place of `sorted`, and of `sorted_values` if there are any, that differs from
/// the reference.
template <class T>
std::string differing(const std::vector<T>& keys, const Words& values, std::size_t columns, SortOrder order,
                      const std::vector<T>& sorted, const Words* sorted_values) {
  const std::size_t rows = columns == 0 ? 0 : keys.size() / columns;
  const Words exact = reference::sorted_columns(keys, rows, order);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::size_t from = i / columns * columns + exact[i];
    const std::string place =
        " at column " + std::to_string(i % columns) + " of row " + std::to_string(i / columns);
    if (std::memcmp(&sorted[i], &keys[from], sizeof(T)) != 0) return "another key" + place;
    const std::uint32_t value = values.empty() ? exact[i] : values[from];
    if (sorted_values != nullptr && (*sorted_values)[i] != value)
      return std::to_string((*sorted_values)[i]) + " instead of " + std::to_string(value) + place;
  }
  return "";
}

template <class T>
std::string sort_keys(const std::vector<T>& keys, std::size_t columns, SortOrder order,
                      const std::string& leg) {
  auto sorted = poison<T>(keys.size());
  run(workloads::sort(keys, sorted, {.order = order, .columns = columns}), leg);
  return differing(keys, {}, columns, order, sorted, nullptr);
}

/// Without values, the values are the columns.
template <class T>
std::string sort_pairs(const std::vector<T>& keys, const Words& values, std::size_t columns, SortOrder order,
                       const std::string& leg) {
  auto sorted = poison<T>(keys.size());
  auto sorted_values = poison<std::uint32_t>(keys.size());
  run(workloads::sort(keys, values, sorted, sorted_values, {.order = order, .columns = columns}), leg);
  return differing(keys, values, columns, order, sorted, &sorted_values);
}

/// Rows and columns: of each number of rows in a tile, beside the limits of tiles and of the host's
/// lines.
constexpr RowShape sort_shapes[] = {{1, 1},    {3000, 1}, {2049, 2},  {300, 3},  {130, 31}, {65, 33},
                                    {17, 127}, {9, 1000}, {3, 1024},  {3, 2047}, {3, 2048}, {2, 2049},
                                    {3, 4096}, {2, 5000}, {1, 32768}, {1, 32769}};

}  // namespace

TEST_CASE("sort orders the rows of every type", "[workloads][sort]") {
  for (const std::string& leg : legs())
    for_element_types([&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()));
      std::uint32_t seed = 0;
      for (const auto& [rows, columns] : sort_shapes) {
        ++seed;
        if (leg != "cpu" && columns > 8192) continue;
        INFO(rows << " x " << columns);
        const auto values = elements<std::uint32_t>(rows * columns, seed + 100);
        const SortOrder order = sort_orders[seed % 2], other = sort_orders[(seed + 1) % 2];
        if (leg == "cpu" || seed % 2 == 0)
          CHECK(sort_keys(elements<T>(rows * columns, seed), columns, order, leg) == "");
        if (leg == "cpu" || seed % 2 == 1)
          CHECK(sort_pairs(equal_elements<T>(rows * columns, seed), values, columns, other, leg) == "");
      }
    });
}

TEST_CASE("sort orders long vectors, and uses columns as values", "[workloads][sort]") {
  constexpr std::size_t size = 140001;
  for (const std::string& leg : legs())
    for_element_types([&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()));
      CHECK(sort_pairs(elements<T>(size, 1), {}, size, SortOrder::descending, leg) == "");
      CHECK(sort_keys(equal_elements<T>(size, 2), size, SortOrder::ascending, leg) == "");
    });
}

TEST_CASE("sort is right for random shapes", "[workloads][sort]") {
  std::mt19937 random(3);
  for (std::uint32_t i = 0; i < 500; ++i) {
    const std::size_t rows = 1 + random() % 20, columns = 1 + random() % (i % 8 == 0 ? 5000 : 100);
    const auto seed = static_cast<std::uint32_t>(random());
    const std::string& leg = legs()[random() % legs().size()];
    if (leg != "cpu" && i % 16 != 0) continue;
    const SortOrder order = sort_orders[random() % 2];
    std::uint32_t type_number = 0;
    for_element_types([&](auto type) {
      using T = decltype(type);
      if (type_number++ != i % 6) return;
      INFO(leg << ", " << name(element_type<T>()) << ", " << rows << " x " << columns << ", seed " << seed);
      const std::size_t count = rows * columns;
      const auto keys = seed % 2 == 0 ? elements<T>(count, seed) : equal_elements<T>(count, seed);
      if (seed % 3 == 0)
        CHECK(sort_keys(keys, columns, order, leg) == "");
      else
        CHECK(sort_pairs(keys, seed % 3 == 1 ? elements<std::uint32_t>(count, seed) : Words(), columns, order,
                         leg) == "");
    });
  }
}

TEST_CASE("sort is stable, takes zeros and NaN for equal, and puts NaN above infinity", "[workloads][sort]") {
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()));
      const auto keys = of<T>(
          {0.0f, undefined, -0.0f, 1.0f, -infinity, -undefined, 0.0f, infinity, -1.0f, undefined, -0.0f});
      const Words no_values;
      const auto places = [&](SortOrder order) {
        auto sorted = poison<T>(keys.size());
        auto values = poison<std::uint32_t>(keys.size());
        run(workloads::sort(keys, no_values, sorted, values, {.order = order}), leg);
        return values;
      };
      CHECK(places(SortOrder::ascending) == Words{4, 8, 0, 2, 6, 10, 3, 7, 1, 5, 9});
      CHECK(places(SortOrder::descending) == Words{1, 5, 9, 7, 3, 0, 2, 6, 10, 8, 4});
    });
}

TEST_CASE("sort orders infinities without values beside the largest finite numbers", "[workloads][sort]") {
  constexpr float largest = std::numeric_limits<float>::max();
  for (const std::string& leg : legs())
    for (const std::size_t size : {std::size_t{40}, std::size_t{700}, std::size_t{90000}}) {
      if (leg != "cpu" && size > 8192) continue;
      auto keys = elements<float>(size, 5);
      for (std::size_t i = 0; i < size; i += 3)
        keys[i] = std::array{infinity, -infinity, largest, -largest}[i / 3 % 4];
      for (const SortOrder order : sort_orders) {
        INFO(leg << ", " << size << " elements, descending: " << (order == SortOrder::descending));
        CHECK(sort_keys(keys, size, order, leg) == "");
        CHECK(sort_keys(std::vector<float>(size, -infinity), size, order, leg) == "");
      }
    }
}

#ifdef __SSE__
TEST_CASE("sort orders denormal numbers on the CPU if the host's threads take them for zeros",
          "[workloads][sort]") {
  if (!has_leg("cpu")) return;
  std::vector<float> keys(40000);
  std::mt19937 random(7);
  for (float& key : keys) {
    const auto bits = static_cast<std::uint32_t>(random());
    key = std::bit_cast<float>((bits & 0x807f'ffffu) | 1u);
  }
  for (const SortOrder order : sort_orders) {
    auto sorted = poison<float>(keys.size());
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040);  // flush to zero, denormals are zeros
    run(workloads::sort(keys, sorted, {.order = order}), "cpu");
    const unsigned after = _mm_getcsr();
    _mm_setcsr(before);
    CHECK((after & 0x8040) == 0x8040);
    CHECK(differing(keys, {}, keys.size(), order, sorted, nullptr) == "");
  }
}
#endif

TEST_CASE("sort keeps vectors that are sorted, reversed or equal, and keys far from all others",
          "[workloads][sort]") {
  constexpr std::size_t size = 70000;
  std::vector<std::uint32_t> up(size), down(size), small(size);
  std::iota(up.begin(), up.end(), 0x7fff'0000u);
  std::reverse_copy(up.begin(), up.end(), down.begin());
  for (std::size_t i = 0; i < size; ++i) small[i] = static_cast<std::uint32_t>(i * i % 7);
  std::vector<std::uint32_t> far = small;
  far[0] = far[69999] = ~0u, far[1000] = 1u << 31;
  const Words lists[] = {up, down, small, far, Words(size, 5u)};
  for (const std::string& leg : legs())
    for (const Words& keys : lists) {
      if (leg != "cpu" && &keys != &lists[3]) continue;
      INFO(leg << ", first key " << keys[0] << ", second " << keys[1]);
      CHECK(sort_pairs(keys, {}, size, SortOrder::ascending, leg) == "");
    }
}

TEST_CASE("sort needs no elements", "[workloads][sort]") {
  for (const std::string& leg : legs()) {
    std::vector<float> none;
    run(workloads::sort(none, none), leg);
    run(workloads::sort(none, none, {.columns = 7}), leg);
    Words values;
    run(workloads::sort(none, values, none, values), leg);
  }
}

TEST_CASE("sort is right for arrays that begin at odd elements, and keeps the elements beside its results",
          "[workloads][sort]") {
  for (const std::string& leg : legs())
    for_element_types([&](auto type) {
      using T = decltype(type);
      for (const std::size_t columns : {67u, 2100u}) {
        const std::size_t count = 3 * columns, begin = 1;
        INFO(leg << ", " << name(element_type<T>()) << ", " << columns << " columns");
        const auto all = elements<T>(count + begin, 6);
        const std::vector<T> keys(all.begin() + begin, all.end());
        const auto edges = poison<T>(count + begin + 2);
        const Array<T> from = the_runtime().array(all), to = the_runtime().array(edges);
        run(workloads::sort(Read<T>(from).slice(begin, count), Write<T>(to).slice(begin, count),
                            {.columns = columns}),
            leg);
        const auto view = to.read();
        REQUIRE(view);
        const auto part = view->span().subspan(begin, count);
        CHECK(differing(keys, {}, columns, SortOrder::ascending, std::vector<T>(part.begin(), part.end()),
                        nullptr) == "");
        for (const std::size_t i : {std::size_t{0}, count + 1, count + 2})
          CHECK(std::memcmp(&(*view)[i], &edges[i], sizeof(T)) == 0);
      }
    });
}

TEST_CASE("sort is right on the CPU if its grid has more than one row", "[workloads][sort][large][.huge]") {
  if (!has_leg("cpu")) return;
  const std::size_t size = (std::size_t{1} << 26) + 301;
  const auto keys = elements<std::uint32_t>(size, 8);
  auto expected = keys;
  std::sort(expected.begin(), expected.end());
  auto sorted = poison<std::uint32_t>(size);
  run(workloads::sort(keys, sorted), "cpu");
  CHECK(equal_bits(sorted, expected));
}

TEST_CASE("sort orders more than 4 GiB on the CPU", "[workloads][sort][large][.huge]") {
  if (!has_leg("cpu")) return;
  // Rows of one tile: longer ones take scratch memory of more than a lane may have.
  constexpr std::size_t columns = 2, size = columns * ((std::size_t{1} << 28) + 7);
  std::vector<std::uint64_t> keys(size), sorted(size);
  std::uint64_t state = 9;
  for (std::uint64_t& key : keys) key = state = state * 0x5851f42d4c957f2d + 1;
  run(workloads::sort(keys, sorted, {.columns = columns}), "cpu");
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < size; i += columns) {
    const auto [less, more] = std::minmax(keys[i], keys[i + 1]);
    wrong += sorted[i] != less || sorted[i + 1] != more;
  }
  CHECK(wrong == 0);
}

TEST_CASE("sort refuses sizes that do not match", "[workloads][sort]") {
  std::vector<float> x(10), y(9), z(10);
  Words four(4), ten(10);
  const auto sentence_of = [](const Job& job) {
    REQUIRE(job.error());
    CHECK(*job.error() == Errc::invalid_argument);
    return refusal(job);
  };
  CHECK(sentence_of(workloads::sort(x, z, {.columns = 4})) ==
        "Matrix (10 elements) of workload 'sort' has no whole number of rows of 4 columns.");
  CHECK(sentence_of(workloads::sort(x, z, {.columns = 0})) ==
        "Matrix (10 elements) of workload 'sort' has no whole number of rows of 0 columns.");
  CHECK(sentence_of(workloads::sort(x, y)) ==
        "Vector sorted (9 elements) of workload 'sort' is not as long as keys (10 elements).");
  CHECK(sentence_of(workloads::sort(x, four, z, ten)) ==
        "Vector values (4 elements) of workload 'sort' is not as long as keys (10 elements).");
  CHECK(sentence_of(workloads::sort(x, ten, z, four)) ==
        "Vector sorted_values (4 elements) of workload 'sort' is not as long as keys (10 elements).");
  const std::span<const float> endless(x.data(), std::size_t{1} << 31);
  CHECK(
      sentence_of(workloads::sort(endless, z)) ==
      "Matrix (2147483648 elements) of workload 'sort' has rows whose length (2147483648) exceeds the limit "
      "(2147483647).");
}
