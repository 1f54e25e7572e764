#include <wye/workloads/rope.hpp>

#include <algorithm>

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
  const bool mixes = options.yarn && options.yarn->mix != 0;
  const double magnitude = options.magnitude * (mixes ? 1 - 0.1 * std::log(options.scale) : 1);
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
    return with_rounding<T>(5e-7 * magnitude * sizes, exact[place]);
  });
}

template <class T>
std::string rope_difference(const std::vector<T>& x, const std::vector<std::uint32_t>& positions,
                            std::size_t head_size, const RopeOptions& options, const std::string& leg) {
  const auto after = rotated(x, positions, head_size, options, leg);
  return differing_rotation<T>(x, after, positions, head_size, options);
}

/// Factors of Llama 3.1 for a context that is 8 times as long as the original one, computed as its
/// authors do.
std::vector<float> factors_of_llama(double base, std::size_t pairs) {
  std::vector<float> factors;
  for (std::size_t i = 0; i < pairs; ++i) {
    const double length =
        2 * std::acos(-1.0) * std::pow(base, static_cast<double>(i) / static_cast<double>(pairs));
    const double smooth = std::clamp((8192 / length - 1) / (4 - 1), 0.0, 1.0);
    factors.push_back(static_cast<float>(1 / ((1 - smooth) / 8 + smooth)));
  }
  return factors;
}

/// Random factors from 2^-8 on, of very different sizes.
std::vector<float> factors_of(std::size_t pairs, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> factors;
  for (const float exponent : numbers(pairs, seed, -8.0f, 12.0f))
    factors.push_back(random() % 7 == 0 ? std::exp2(std::floor(exponent)) : std::exp2(exponent));
  if (pairs > 2) factors[1] = 1e30f, factors[2] = 1.0f;
  return factors;
}

/// The parameters of rope_ext in ggml, by its names.
struct ExtendedRotation {
  double freq_scale = 1, ext_factor = 0, attn_factor = 1, beta_fast = 32, beta_slow = 1;
  std::size_t n_ctx_orig = 0;
  std::vector<float> freq_factors = {};
};

/// Rotates neighbours by the definition of rope_ext, with base 10000, in float64: by angles that are
/// mixed instead of frequencies that are scaled.
std::vector<double> rotated_by_definition(std::vector<double> x, double position, const ExtendedRotation& r) {
  const auto size = static_cast<double>(x.size()), turn = 2 * std::acos(-1.0);
  const auto limit = [&](double beta) {
    return size / 2 * std::log(static_cast<double>(r.n_ctx_orig) / beta / turn) / std::log(10000.0);
  };
  for (std::size_t i = 0; i < x.size() / 2; ++i) {
    double own = position / std::pow(10000.0, 2 * static_cast<double>(i) / size);
    if (!r.freq_factors.empty()) own /= double{r.freq_factors[i]};
    double angle = own * r.freq_scale, length = r.attn_factor;
    if (r.ext_factor != 0) {
      const double low = std::max(std::floor(limit(r.beta_fast)), 0.0),
                   high = std::min(std::ceil(limit(r.beta_slow)), size - 1);
      const double way = (static_cast<double>(i) - low) / std::max(high - low, 0.001);
      const double share = r.ext_factor * (1 - std::clamp(way, 0.0, 1.0));
      angle = own * share + angle * (1 - share);
      length *= 1 - std::log(r.freq_scale) / 10;
    }
    const double a = x[2 * i], b = x[2 * i + 1];
    x[2 * i] = length * (a * std::cos(angle) - b * std::sin(angle));
    x[2 * i + 1] = length * (a * std::sin(angle) + b * std::cos(angle));
  }
  return x;
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

TEST_CASE("rope scales frequencies by factors, linearly and by YaRN", "[workloads][rope]") {
  const HeadShape shapes[] = {{1, 1, 2, 0},   {5, 3, 6, 0},   {3, 8, 64, 0},   {7, 9, 128, 0},
                              {4, 5, 80, 32}, {9, 7, 67, 66}, {2, 1, 1030, 0}, {1, 1, 65536, 0}};
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      for (const RopeLayout layout : rope_layouts)
        for (const HeadShape& shape : shapes) {
          const std::size_t pairs = (shape.rotated == 0 ? shape.head_size : shape.rotated) / 2;
          const auto odd = factors_of(pairs, 3), llama = factors_of_llama(500000, pairs);
          const Array<float> on_device = the_runtime().array(llama);
          const workloads::RopeYarn yarn{.original_context = 4096};
          const RopeOptions cases[] = {
              {.factors = odd},
              {.base = 500000, .factors = on_device},
              {.scale = 0.125},
              {.scale = 1e-6, .magnitude = 1.5},
              {.scale = 1.0 / 40, .yarn = yarn},
              {.scale = 0.3, .yarn = workloads::RopeYarn{4096, 7.5, 0.25, 0.6}, .magnitude = 0.5},
              {.scale = 0.25, .yarn = workloads::RopeYarn{1, 32, 1, 1}},
              {.base = 2, .scale = 0.25, .yarn = workloads::RopeYarn{1u << 30, 32, 1, 0}},
              {.base = 1e6, .factors = odd, .scale = 0.25, .yarn = yarn, .magnitude = 1.25}};
          const auto x = elements<T>(shape.rows * shape.heads * shape.head_size, 4);
          // To the last position that the bound is for.
          const auto positions = positions_from((1u << 24) - 5000, shape.rows, 5);
          for (std::size_t which = 0; which < std::size(cases); ++which) {
            RopeOptions options = cases[which];
            INFO(leg << ", " << name(element_type<T>()) << ", " << shape.rows << " x " << shape.heads
                     << " heads of " << shape.head_size << ", " << shape.rotated << " rotated, layout "
                     << static_cast<int>(layout) << ", case " << which);
            options.layout = layout;
            options.rotated = shape.rotated;
            const auto after = rotated(x, positions, shape.head_size, options, leg);
            if (which == 1) options.factors = llama;
            CHECK(differing_rotation<T>(x, after, positions, shape.head_size, options) == "");
          }
        }
    });
}

TEST_CASE("rope is right for random frequencies", "[workloads][rope]") {
  std::mt19937 random(57);
  const auto between = [&](double least, double most) {
    return least + (most - least) * static_cast<double>(random()) / 4294967295.0;
  };
  for (std::uint32_t i = 0; i < 200; ++i) {
    const std::size_t pairs = 1 + random() % 70, head_size = 2 * pairs + random() % 3,
                      rows = 1 + random() % 9, heads = random() % 10;
    const auto seed = static_cast<std::uint32_t>(random());
    const auto factors = factors_of(pairs, seed);
    RopeOptions options{
        .base = std::exp2(between(1, 25)), .layout = rope_layouts[random() % 2], .rotated = 2 * pairs};
    if (random() % 2 == 0) options.factors = factors;
    if (random() % 2 == 0) options.scale = std::exp2(between(-8, 0));
    if (random() % 2 == 0) options.magnitude = between(0.1, 2);
    if (random() % 2 == 0) {
      const double slow = std::exp2(between(-3, 3));
      options.yarn = workloads::RopeYarn{1 + random() % 200000, slow + std::exp2(between(-6, 6)), slow,
                                         random() % 3 == 0 ? 1.0 : between(0, 1)};
    }
    const std::string& leg = legs()[random() % legs().size()];
    for_float_type(i, [&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()) << ", " << rows << " x " << heads << " heads of "
               << head_size << ", seed " << seed);
      const auto x = elements<T>(rows * heads * head_size, seed);
      CHECK(rope_difference(x, positions_from(seed >> 8, rows, seed), head_size, options, leg) == "");
    });
  }
}

TEST_CASE("the reference of rope follows the definition of rope_ext in ggml", "[workloads][rope]") {
  constexpr std::size_t size = 96;
  const auto x = numbers(size, 61);
  const std::vector<std::uint32_t> positions{70001};
  const auto factors = factors_of_llama(10000, size / 2);
  const auto check = [&](RopeOptions options, const ExtendedRotation& rotation) {
    options.layout = RopeLayout::neighbours;
    const auto expected = rotated_by_definition({x.begin(), x.end()}, positions[0], rotation);
    const auto found = reference::rope(x, positions, size, options);
    for (std::size_t i = 0; i < found.size(); ++i) CHECK(std::abs(found[i] - expected[i]) < 1e-9);
  };
  check({}, {});
  check({.factors = factors}, {.freq_factors = factors});
  check({.scale = 0.25}, {.freq_scale = 0.25});
  for (const double mix : {0.0, 0.7, 1.0})
    check({.factors = factors, .scale = 0.1, .yarn = workloads::RopeYarn{4096, 30, 2, mix}, .magnitude = 1.5},
          {.freq_scale = 0.1,
           .ext_factor = mix,
           .attn_factor = 1.5,
           .beta_fast = 30,
           .beta_slow = 2,
           .n_ctx_orig = 4096,
           .freq_factors = factors});
}

TEST_CASE("rope gives the same bits with factors of 1, a scale of 1 and a mix of 1 as without",
          "[workloads][rope]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    const auto x = elements<float>(9 * 3 * 128, 71);
    const auto positions = positions_from(100000, 9, 72);
    const std::vector<float> ones(64, 1.0f);
    const auto plain = rotated(x, positions, 128, {}, leg);
    CHECK(equal_bits(rotated(x, positions, 128, {.factors = ones}, leg), plain));
    CHECK(equal_bits(rotated(x, positions, 128, {.yarn = workloads::RopeYarn{8192}}, leg), plain));
    // A context that the fast pairs alone fill keeps the frequencies of all.
    CHECK(equal_bits(
        rotated(x, positions, 128,
                {.scale = 0.5, .yarn = workloads::RopeYarn{1u << 30}, .magnitude = 1 / 1.0693147180559945},
                leg),
        plain));
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

  std::vector<float> factors{1, 2, 3};
  const auto with = [&](const RopeOptions& options) {
    return refusal(workloads::rope(x, positions, 6, options));
  };
  CHECK(with({.factors = factors}) == "not refused");
  CHECK(with({.rotated = 4, .factors = factors}) ==
        "Frequency factors (3 elements) of workload 'rope' are not those of 2 pairs.");
  for (const float odd : {0.0f, -1.0f, 0.0039f, infinity, undefined}) {
    factors[1] = odd;
    CHECK(with({.factors = factors}) == "Frequency factor 1 (" + std::to_string(odd) +
                                            ") of workload 'rope' is not finite and at least 0.003906.");
  }
  for (const double odd : {0.0, -1.0, 1.5, 0.9e-6, double{infinity}, double{undefined}})
    CHECK(with({.scale = odd}) ==
          "Scale (" + std::to_string(odd) + ") of workload 'rope' is not between 0.000001 and 1.");
  for (const double odd : {0.0, -1.0, 1e39, double{infinity}, double{undefined}})
    CHECK(with({.magnitude = odd}) ==
          "Magnitude (" + std::to_string(odd) + ") of workload 'rope' is not finite and above 0.");
  CHECK(with({.yarn = workloads::RopeYarn{}}) ==
        "Original context (0) of workload 'rope' is below the minimum (1).");
  CHECK(with({.yarn = workloads::RopeYarn{.original_context = 9, .mix = 1.1}}) ==
        "Mix (1.100000) of workload 'rope' is not between 0 and 1.");
  CHECK(with({.yarn = workloads::RopeYarn{.original_context = 9, .beta_slow = 0}}) ==
        "Beta slow (0.000000) of workload 'rope' is not above 0.");
  CHECK(with({.yarn = workloads::RopeYarn{.original_context = 9, .beta_fast = 1, .beta_slow = 1}}) ==
        "Beta fast (1.000000) of workload 'rope' is not finite and above beta slow (1.000000).");
}
