#include <wye/workloads/rope.hpp>

#include "workloads/vectors.hpp"

using namespace wye;
using namespace wye::test;
namespace reference = wye::workloads::reference;
using workloads::RopeLayout;
using workloads::RopeOptions;

namespace {

constexpr RopeLayout rope_layouts[] = {RopeLayout::halves, RopeLayout::neighbours};

/// Positions from `first` on, not in order.
std::vector<std::uint32_t> positions_from(std::uint32_t first, std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::uint32_t> positions(count);
  for (std::uint32_t& position : positions) position = first + static_cast<std::uint32_t>(random() % 5000);
  return positions;
}

template <class T>
std::vector<T> rotated(std::vector<T> x, const std::vector<std::uint32_t>& positions, std::size_t head_size,
                       const RopeOptions& options, const std::string& leg) {
  run(workloads::rope(x, positions, head_size, options), leg);
  return x;
}

/// Compares with the documented bound. Elements that are not rotated are exact.
template <class T>
std::string differing_rotation(std::span<const T> before, std::span<const T> after,
                               std::span<const std::uint32_t> positions, std::size_t head_size,
                               const RopeOptions& options) {
  const auto exact = reference::rope(before, positions, head_size, options);
  const std::size_t count = options.rotated == 0 ? head_size : options.rotated;
  std::vector<float> found;
  for (const T element : after) found.push_back(static_cast<float>(element));
  return difference(found, exact, [&](std::size_t place) {
    const std::size_t element = place % head_size;
    if (element >= count) return 0.0;
    const std::size_t partner = options.layout == RopeLayout::neighbours ? element ^ 1
                                : element < count / 2                    ? element + count / 2
                                                                         : element - count / 2;
    const double sizes = std::abs(double{static_cast<float>(before[place])}) +
                         std::abs(double{static_cast<float>(before[place - element + partner])});
    return with_rounding<T>(5e-7 * sizes, exact[place]);
  });
}

template <class T>
std::string rope_difference(const std::vector<T>& x, const std::vector<std::uint32_t>& positions,
                            std::size_t head_size, const RopeOptions& options, const std::string& leg) {
  const auto after = rotated(x, positions, head_size, options, leg);
  return differing_rotation<T>(x, after, positions, head_size, options);
}

struct HeadShape {
  std::size_t rows, heads, head_size, rotated;
};

}  // namespace

TEST_CASE("rope rotates heads of every type and size", "[workloads][rope]") {
  const HeadShape shapes[] = {{1, 1, 2, 0},    {300, 1, 2, 0},   {7, 3, 4, 0},    {5, 9, 6, 0},
                              {3, 8, 64, 0},   {17, 32, 128, 0}, {4, 5, 80, 32},  {9, 7, 5, 2},
                              {3, 2, 67, 66},  {1, 70, 130, 0},  {2, 1, 1030, 0}, {2, 3, 2050, 2},
                              {1, 1, 65536, 0}};
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()));
      for (const RopeLayout layout : rope_layouts) {
        CHECK(rotated<T>({}, {}, 64, {.layout = layout}, leg).empty());
        CHECK(rotated<T>({}, {1, 2, 3}, 64, {.layout = layout}, leg).empty());
        for (const HeadShape& shape : shapes) {
          INFO(shape.rows << " x " << shape.heads << " heads of " << shape.head_size << ", " << shape.rotated
                          << " rotated, layout " << static_cast<int>(layout));
          const auto x = elements<T>(shape.rows * shape.heads * shape.head_size, 1);
          CHECK(rope_difference(x, positions_from(0, shape.rows, 2), shape.head_size,
                                {.layout = layout, .rotated = shape.rotated}, leg) == "");
        }
      }
    });
}

TEST_CASE("rope is as exact at large positions as at small ones", "[workloads][rope]") {
  const std::uint32_t far = 1u << 20, farthest = (1u << 24) - 5000;
  for (const std::string& leg : legs())
    for (const RopeLayout layout : rope_layouts)
      for (const double base : {2.0, 10000.0, 500000.0, 1e9})
        for (const std::uint32_t first : {0u, far - 5000, far, farthest}) {
          INFO(leg << ", base " << base << ", positions from " << first << " on");
          const auto x = elements<float>(20 * 3 * 128, 11);
          CHECK(rope_difference(x, positions_from(first, 20, 12), 128, {.base = base, .layout = layout},
                                leg) == "");
        }
}

TEST_CASE("rope takes any position of 32 bits", "[workloads][rope]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    const std::vector<float> x{1, 0};
    const std::vector<std::uint32_t> positions{0xffff'ffff};
    const auto after = rotated(x, positions, 2, {}, leg);
    CHECK(std::abs(double{after[0]} - std::cos(4294967295.0)) < 2e-6);
    CHECK(std::abs(double{after[1]} - std::sin(4294967295.0)) < 2e-6);
  }
}

TEST_CASE("rope is right for random shapes", "[workloads][rope]") {
  std::mt19937 random(17);
  for (std::uint32_t i = 0; i < 200; ++i) {
    const std::size_t rows = random() % 20, heads = random() % 12, head_size = 2 + random() % 100;
    std::size_t count = 2 * (random() % (head_size / 2 + 1));
    if (count == 0 && head_size % 2 != 0) count = 2;
    const RopeOptions options{.layout = rope_layouts[random() % 2], .rotated = count};
    const auto seed = static_cast<std::uint32_t>(random());
    const std::string& leg = legs()[random() % legs().size()];
    for_float_type(i, [&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()) << ", " << rows << " x " << heads << " heads of "
               << head_size << ", " << count << " rotated, seed " << seed);
      const auto x = elements<T>(rows * heads * head_size, seed);
      CHECK(rope_difference(x, positions_from(seed >> 12, rows, seed), head_size, options, leg) == "");
    });
  }
}

TEST_CASE("rope propagates NaN and infinities within pairs", "[workloads][rope]") {
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()));
      const std::vector<std::uint32_t> positions{1, 2, 0};
      const auto x = of<T>({undefined, 1, 2, 3, 1, infinity, 3, 4, 1, undefined, 3, 4});
      CHECK(rope_difference(x, positions, 4, {.layout = RopeLayout::neighbours}, leg) == "");
      CHECK(rope_difference(x, positions, 4, {}, leg) == "");
    });
}

TEST_CASE("rope gives a row the same bits alone and among others", "[workloads][rope]") {
  constexpr std::size_t rows = 6, heads = 3;
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      for (const RopeLayout layout : rope_layouts)
        for (const std::size_t head_size : {5u, 64u, 130u}) {
          INFO(leg << ", " << name(element_type<T>()) << ", heads of " << head_size);
          const RopeOptions options{.layout = layout, .rotated = head_size / 2 * 2};
          const std::size_t columns = heads * head_size;
          const auto x = elements<T>(rows * columns, 21);
          const auto positions = positions_from(1000, rows, 22);
          const auto all = rotated(x, positions, head_size, options, leg);
          for (std::size_t row = 0; row < rows; ++row) {
            const auto begin = x.begin() + static_cast<std::ptrdiff_t>(row * columns);
            const std::vector<T> alone(begin, begin + static_cast<std::ptrdiff_t>(columns));
            const auto made = rotated(alone, {positions[row]}, head_size, options, leg);
            CHECK(std::memcmp(made.data(), &all[row * columns], columns * sizeof(T)) == 0);
          }
        }
    });
}

TEST_CASE("rope changes no element beside arrays that begin at odd elements", "[workloads][rope]") {
  constexpr std::size_t rows = 4, heads = 3;
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      for (const RopeLayout layout : rope_layouts)
        for (const std::size_t head_size : {6u, 7u, 66u})
          for (const std::size_t begin : {0u, 1u, 2u, 3u}) {
            INFO(leg << ", " << name(element_type<T>()) << ", heads of " << head_size << " from element "
                     << begin << " on");
            const std::size_t count = rows * heads * head_size;
            const RopeOptions options{.layout = layout, .rotated = 6};
            const auto before = elements<T>(count + begin + 3, 31);
            const auto positions = positions_from(7, rows + begin, 32);
            const Array<T> x = the_runtime().array(before);
            const Array<std::uint32_t> at = the_runtime().array(positions);
            run(workloads::rope(ReadWrite<T>(x).slice(begin, count),
                                Read<std::uint32_t>(at).slice(begin, rows), head_size, options),
                leg);
            const auto after = x.read();
            REQUIRE(after);
            CHECK(differing_rotation<T>(std::span(before).subspan(begin, count),
                                        after->span().subspan(begin, count),
                                        std::span(positions).subspan(begin), head_size, options) == "");
            for (std::size_t i = 0; i < before.size(); ++i)
              if (i < begin || i >= begin + count || (i - begin) % head_size >= 6)
                CHECK(std::memcmp(&(*after)[i], &before[i], sizeof(T)) == 0);
          }
    });
}

TEST_CASE("rope is right if its grid has more than one row", "[workloads][rope][large][.huge]") {
  const std::size_t rows = (std::size_t{1} << 23) + 301;
  const auto positions = positions_from(0, rows, 41);
  const auto x = numbers(2 * rows, 42);
  for (const std::string& leg : legs()) {
    INFO(leg);
    CHECK(rope_difference(x, positions, 2, {}, leg) == "");
  }
}

TEST_CASE("rope refuses sizes that do not match, and options out of range", "[workloads][rope]") {
  std::vector<float> x(24);
  std::vector<std::uint32_t> positions(2), none;
  CHECK(refusal(workloads::rope(x, positions, 8)) ==
        "Vector x (24 elements) of workload 'rope' has no whole number of heads of 8 elements for 2 "
        "positions.");
  CHECK(refusal(workloads::rope(x, none, 8)) ==
        "Vector x (24 elements) of workload 'rope' has no whole number of heads of 8 elements for 0 "
        "positions.");
  CHECK(refusal(workloads::rope(x, positions, 0)) ==
        "Size of a head (0 elements) of workload 'rope' is not between 1 and 65536.");
  CHECK(refusal(workloads::rope(x, positions, 65538)) ==
        "Size of a head (65538 elements) of workload 'rope' is not between 1 and 65536.");
  CHECK(refusal(workloads::rope(x, positions, 3)) == "Rotated elements (3) of workload 'rope' are odd.");
  CHECK(refusal(workloads::rope(x, positions, 6, {.rotated = 8})) ==
        "Rotated elements (8) of workload 'rope' exceed the size of a head (6).");
  CHECK(refusal(workloads::rope(x, positions, 6, {.base = 1})) ==
        "Base (1.000000) of workload 'rope' is not finite and at least 2.");
  CHECK(refusal(workloads::rope(x, positions, 6, {.base = double{undefined}})) ==
        "Base (nan) of workload 'rope' is not finite and at least 2.");
}
