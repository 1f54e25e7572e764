#include <wye/workloads/segment_mean.hpp>

#include <cstdlib>
#include <memory>

#include "workloads/vectors.hpp"

using namespace wye;
using namespace wye::test;
namespace reference = wye::workloads::reference;

namespace {

using Lengths = std::vector<std::uint32_t>;

/// The offsets of segments of these lengths.
Lengths offsets_of(const Lengths& lengths) {
  Lengths offsets{0};
  for (const std::uint32_t length : lengths) offsets.push_back(offsets.back() + length);
  return offsets;
}

template <class T>
std::vector<T> means(const std::vector<T>& x, const Lengths& offsets, std::size_t columns,
                     const std::string& leg) {
  auto result = poison<T>((offsets.size() - 1) * columns);
  run(workloads::segment_mean(x, offsets, result), leg);
  return result;
}

/// The same with offsets that are in an array.
template <class T>
std::vector<T> means_by_array(const std::vector<T>& x, const Lengths& offsets, std::size_t columns,
                              const std::string& leg) {
  auto result = poison<T>((offsets.size() - 1) * columns);
  const Array<std::uint32_t> on_device = the_runtime().array(offsets);
  run(workloads::segment_mean(x, on_device, result), leg);
  return result;
}

/// Compares with the documented bound.
template <class T>
std::string differing_mean(const std::vector<T>& x, const Lengths& offsets, std::size_t columns,
                           const std::vector<T>& result) {
  const auto exact = reference::segment_mean(std::span<const T>(x), offsets, columns);
  const auto all = sizes_of(x);
  const auto sizes = reference::segment_mean(std::span<const T>(all), offsets, columns);
  return difference(floats(result), exact, [&](std::size_t place) {
    const std::size_t segment = place / columns;
    const double n = offsets[segment + 1] - offsets[segment];
    return with_rounding<T>(std::min(n + 2, 250.0) * 0x1p-24 * sizes[place], exact[place]);
  });
}

template <class T>
std::string mean_difference(const Lengths& lengths, std::size_t columns, std::uint32_t seed,
                            const std::string& leg) {
  const Lengths offsets = offsets_of(lengths);
  const auto x = elements<T>(offsets.back() * columns, seed);
  return differing_mean(x, offsets, columns, means(x, offsets, columns, leg));
}

/// Returns the sum of numbers `step` apart, of `at_a_time` first.
float sum_by(const float* x, std::size_t count, std::size_t step, std::size_t at_a_time) {
  float sum = 0;
  for (std::size_t first = 0; first < count; first += at_a_time) {
    float part = 0;
    for (std::size_t i = first; i < std::min(first + at_a_time, count); ++i) part += x[i * step];
    sum += part;
  }
  return sum;
}

/// Returns the mean of numbers in the order of all devices.
float mean_in_order(const float* x, std::size_t count, std::size_t step) {
  std::vector<float> stretches;
  for (std::size_t first = 0; first + 512 <= count; first += 512)
    stretches.push_back(sum_by(x + first * step, 512, step, 32));
  const std::size_t rest = stretches.size() * 512;
  return (sum_by(stretches.data(), stretches.size(), 1, 128) +
          sum_by(x + rest * step, count - rest, step, 32)) /
         static_cast<float>(count);
}

/// Lengths of segments: none, few rows, and about the lengths where another order begins.
Lengths random_lengths(std::size_t count, std::mt19937& random) {
  Lengths lengths(count);
  for (std::uint32_t& length : lengths) {
    const std::uint32_t edges[] = {0, 1, 31, 32, 33, 64, 511, 512, 513, 544, 1024, 1100};
    const auto number = static_cast<std::uint32_t>(random());
    length = number % 4 == 0 ? edges[number / 4 % std::size(edges)] : number / 4 % 40;
  }
  return lengths;
}

}  // namespace

TEST_CASE("segment_mean is the mean of the rows of each segment", "[workloads][segment_mean]") {
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()));
      for (const std::size_t columns : {1u, 2u, 3u, 4u, 5u, 63u, 384u, 1023u, 1024u, 1025u, 2051u}) {
        INFO(columns << " columns");
        CHECK(mean_difference<T>({1}, columns, 1, leg) == "");
        CHECK(mean_difference<T>({3, 0, 1, 7, 33, 0, 64, 2}, columns, 2, leg) == "");
        CHECK(mean_difference<T>({512}, columns, 3, leg) == "");
        CHECK(mean_difference<T>({5, 511, 513, 1, 1029, 0}, columns, 4, leg) == "");
      }
      CHECK(mean_difference<T>({70001}, 1, 5, leg) == "");
      CHECK(mean_difference<T>({100, 70001, 3}, 5, 6, leg) == "");
      CHECK(mean_difference<T>({2, 1}, 70001, 7, leg) == "");
      CHECK(mean_difference<T>(Lengths(3000, 1), 3, 8, leg) == "");
    });
}

TEST_CASE("segment_mean of empty segments is zeros", "[workloads][segment_mean]") {
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()));
      CHECK(means<T>({}, {0}, 1, leg).empty());
      CHECK(means<T>({}, {0, 5, 7}, 0, leg).empty());
      CHECK(equal_bits(means<T>({}, {0, 0, 0, 0}, 67, leg), std::vector<T>(3 * 67)));
      CHECK(equal_bits(means_by_array<T>({}, {0, 0}, 3, leg), std::vector<T>(3)));
      const auto some = means(of<T>({1, 2}), {0, 0, 1, 1, 1}, 2, leg);
      CHECK(equal_bits(some, of<T>({0, 0, 1, 2, 0, 0, 0, 0})));
    });
}

TEST_CASE("segment_mean is right for random segments", "[workloads][segment_mean]") {
  std::mt19937 random(37);
  for (std::uint32_t i = 0; i < 200; ++i) {
    const std::size_t columns = 1 + random() % (i % 8 == 0 ? 1500 : 60);
    const Lengths lengths = random_lengths(random() % 20, random), offsets = offsets_of(lengths);
    const auto seed = static_cast<std::uint32_t>(random());
    const std::string& leg = legs()[random() % legs().size()];
    if (lengths.empty()) continue;
    for_float_type(i, [&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()) << ", " << lengths.size() << " segments of "
               << offsets.back() << " x " << columns << ", seed " << seed);
      const auto x = elements<T>(offsets.back() * columns, seed);
      const auto result = means(x, offsets, columns, leg);
      CHECK(differing_mean(x, offsets, columns, result) == "");
      CHECK(equal_bits(means_by_array(x, offsets, columns, leg), result));
    });
  }
}

TEST_CASE("segment_mean gives a segment the same bits alone and beside any others",
          "[workloads][segment_mean]") {
  std::mt19937 random(41);
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      for (std::uint32_t i = 0; i < 8; ++i) {
        const std::size_t columns = 1 + random() % 150;
        const Lengths lengths = random_lengths(1 + random() % 12, random), offsets = offsets_of(lengths);
        INFO(leg << ", " << name(element_type<T>()) << ", " << lengths.size() << " segments, " << columns
                 << " columns, batch " << i);
        const auto x = elements<T>(offsets.back() * columns, i);
        const auto all = means(x, offsets, columns, leg);
        for (std::size_t segment = 0; segment < lengths.size(); ++segment) {
          const auto begin = x.begin() + static_cast<std::ptrdiff_t>(offsets[segment] * columns);
          const std::vector<T> own(begin, begin + static_cast<std::ptrdiff_t>(lengths[segment] * columns));
          CHECK(std::memcmp(means(own, {0, lengths[segment]}, columns, leg).data(), &all[segment * columns],
                            columns * sizeof(T)) == 0);
        }
      }
    });
}

TEST_CASE("segment_mean adds rows in the same order on all devices", "[workloads][segment_mean]") {
  // Means of 2^n rows are exact quotients. Other quotients are as near as a driver's divisions are.
  const Lengths lengths{1, 2, 4, 32, 64, 512, 1024, 600, 131072, 33, 700}, offsets = offsets_of(lengths);
  constexpr std::size_t columns = 3;
  const auto x = elements<float>(offsets.back() * columns, 71);
  for (const std::string& leg : legs()) {
    const auto result = means(x, offsets, columns, leg);
    for (std::size_t i = 0; i < result.size(); ++i) {
      const std::size_t segment = i / columns;
      INFO(leg << ", " << lengths[segment] << " rows, column " << i % columns);
      const float expected =
          mean_in_order(&x[offsets[segment] * columns + i % columns], lengths[segment], columns);
      const bool exact = (lengths[segment] & (lengths[segment] - 1)) == 0;
      CHECK(std::abs(result[i] - expected) <= (exact ? 0.0f : 0x1p-21f * std::abs(expected)));
    }
  }
}

TEST_CASE("segment_mean of long segments keeps small terms", "[workloads][segment_mean]") {
  // One after the other, terms of 1 would stop to count in a sum of 2^24.
  constexpr std::uint32_t rows = 1u << 22;
  for (const std::string& leg : legs()) {
    INFO(leg);
    std::vector<float> x(rows, 1.0f);
    x.front() = 0x1p25f;
    const double exact = (0x1p25 + rows - 1) / rows;
    const auto result = means(x, {0, rows}, 1, leg);
    CHECK(difference(result, std::vector<double>{exact},
                     [&](std::size_t) { return exact * 250 * 0x1p-24; }) == "");
  }
}

TEST_CASE("segment_mean propagates NaN and infinities in their columns alone", "[workloads][segment_mean]") {
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      for (const std::uint32_t length : {2u, 40u, 700u}) {
        INFO(leg << ", " << name(element_type<T>()) << ", " << length << " rows");
        constexpr std::size_t columns = 5;
        const Lengths offsets = offsets_of({length, length});
        auto x = elements<T>(offsets.back() * columns, 1);
        const auto before = means(x, offsets, columns, leg);
        const std::size_t last = (length - 1) * columns;
        x[0] = T(undefined);
        x[last + 1] = T(infinity);
        x[2] = T(-infinity);
        x[3] = T(infinity);
        x[last + 3] = T(-infinity);
        const auto after = means(x, offsets, columns, leg);
        CHECK(std::isnan(static_cast<float>(after[0])));
        CHECK(static_cast<float>(after[1]) == infinity);
        CHECK(static_cast<float>(after[2]) == -infinity);
        CHECK(std::isnan(static_cast<float>(after[3])));
        CHECK(std::memcmp(&before[4], &after[4], (columns + 1) * sizeof(T)) == 0);
      }
    });
}

TEST_CASE("segment_mean reads rows that exist for any offsets on a device", "[workloads][segment_mean]") {
  constexpr std::size_t columns = 7, rows = 1500;
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()));
      const auto x = elements<T>(rows * columns, 51);
      // Rows beyond the matrix count in no segment.
      const auto beyond = means_by_array(x, {3, 100, 900, 1600, 0xffff'ffff}, columns, leg);
      CHECK(differing_mean(x, {3, 100, 900, rows, rows}, columns, beyond) == "");
      // A segment that ends before it begins is empty; those of few rows are as they would be.
      const auto falling = means_by_array(x, {900, 1000, 20, 30, 0xffff'ffff, 5, 10}, columns, leg);
      CHECK(differing_mean(x, {900, 1000}, columns, std::vector<T>(falling.begin(), falling.begin() + 7)) ==
            "");
      CHECK(equal_bits(std::vector<T>(falling.begin() + 7, falling.begin() + 14), std::vector<T>(7)));
      CHECK(differing_mean(x, {20, 30}, columns,
                           std::vector<T>(falling.begin() + 14, falling.begin() + 21)) == "");
      CHECK(equal_bits(std::vector<T>(falling.begin() + 28, falling.begin() + 35), std::vector<T>(7)));
      std::mt19937 random(53);
      for (int i = 0; i < 20; ++i) {
        Lengths any(9);
        for (std::uint32_t& offset : any) offset = static_cast<std::uint32_t>(random() % 1800);
        const auto first = means_by_array(x, any, columns, leg);
        CHECK(equal_bits(means_by_array(x, any, columns, leg), first));
      }
    });
}

TEST_CASE("segment_mean changes no element beside arrays that begin at odd elements",
          "[workloads][segment_mean]") {
  const Lengths offsets = offsets_of({3, 0, 520, 1, 40});
  const std::size_t segments = offsets.size() - 1, rows = offsets.back();
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      for (const std::size_t columns : {1u, 3u, 67u})
        for (const std::size_t begin : {0u, 1u, 2u, 3u}) {
          INFO(leg << ", " << name(element_type<T>()) << ", " << columns << " columns from element " << begin
                   << " on");
          const std::size_t shift = 3 - begin, size = segments * columns;
          const auto all = elements<T>(rows * columns + 6, 61), before = elements<T>(size + 6, 62);
          Lengths shifted(begin, 77);
          shifted.insert(shifted.end(), offsets.begin(), offsets.end());
          const Array<T> x = the_runtime().array(all), result = the_runtime().array(before);
          const Array<std::uint32_t> on_device = the_runtime().array(shifted);
          run(workloads::segment_mean(Read<T>(x).slice(shift, rows * columns),
                                      Read<std::uint32_t>(on_device).slice(begin, offsets.size()),
                                      Write<T>(result).slice(begin, size)),
              leg);
          const auto after = result.read();
          REQUIRE(after);
          const auto first = all.begin() + static_cast<std::ptrdiff_t>(shift);
          const std::vector<T> own(first, first + static_cast<std::ptrdiff_t>(rows * columns));
          const auto part = after->span().subspan(begin, size);
          CHECK(equal_bits(std::vector<T>(part.begin(), part.end()), means(own, offsets, columns, leg)));
          for (std::size_t i = 0; i < before.size(); ++i)
            if (i < begin || i >= begin + size) CHECK(std::memcmp(&(*after)[i], &before[i], sizeof(T)) == 0);
        }
    });
}

TEST_CASE("segment_mean is right for matrices beyond 4 GiB", "[workloads][segment_mean][large]") {
  if (!has_leg("cpu")) return;
  constexpr std::size_t columns = 65536, rows = 32768 + 5;
  constexpr auto release = [](void* memory) { std::free(memory); };
  // Of this memory, only the pages exist that are used.
  const std::unique_ptr<void, decltype(release)> memory(std::calloc(rows * columns, sizeof(half)), release);
  REQUIRE(memory);
  const std::span<half> x(static_cast<half*>(memory.get()), rows * columns);
  const auto last = elements<half>(columns, 1);
  std::copy(last.begin(), last.end(), x.end() - columns);
  auto result = poison<half>(2 * columns);
  // Only these rows are read.
  const Array<std::uint32_t> offsets = the_runtime().array(Lengths{rows - 5, rows - 1, rows});
  run(workloads::segment_mean(x, offsets, result), "cpu");
  std::vector<half> expected(columns);
  expected.insert(expected.end(), last.begin(), last.end());
  CHECK(floats(result) == floats(expected));
}

TEST_CASE("segment_mean refuses a result that overlaps x", "[workloads][segment_mean]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    std::vector<float> x(1000, 1.0f);
    const Lengths offsets{0, 400, 900};
    auto job = workloads::segment_mean(std::span(x).first(900), offsets, std::span(x).subspan(899, 2));
    const auto done = the_runtime().submit(std::move(job), {.fallback = Fallback::forbid, .on = leg}).wait();
    REQUIRE_FALSE(done);
    CHECK(done.error() == Errc::invalid_argument);
  }
}

TEST_CASE("segment_mean refuses sizes that do not match, and offsets of other rows",
          "[workloads][segment_mean]") {
  std::vector<float> x(12), result(6), none;
  const Lengths offsets{0, 1, 4}, nothing;
  const auto reason = [](std::span<float> matrix, const Lengths& of, std::span<float> means) {
    return refusal(workloads::segment_mean(matrix, of, means));
  };
  CHECK(reason(x, nothing, result) ==
        "Offsets (0 elements) of workload 'segment_mean' are not between 1 and 2147483647.");
  CHECK(reason(x, Lengths{0, 1, 2, 3, 4}, result) ==
        "Result (6 elements) of workload 'segment_mean' has no whole number of elements for 4 segments.");
  CHECK(reason(x, Lengths{0}, result) ==
        "Result (6 elements) of workload 'segment_mean' has no whole number of elements for 0 segments.");
  CHECK(reason(std::span(x).first(10), offsets, result) ==
        "Matrix (10 elements) of workload 'segment_mean' has no whole number of rows of 3 columns.");
  CHECK(reason(x, offsets, none) ==
        "Matrix (12 elements) of workload 'segment_mean' has no whole number of rows of 0 columns.");
  CHECK(reason(x, Lengths{1, 2, 4}, result) == "Offset 0 (1) of workload 'segment_mean' is not 0.");
  CHECK(reason(x, Lengths{0, 5, 4}, result) ==
        "Offset 2 (4) of workload 'segment_mean' is below the offset before it (5).");
  CHECK(reason(x, Lengths{0, 1, 3}, result) ==
        "Offset 2 (3) of workload 'segment_mean' is not the number of rows (4).");
  std::vector<float> many((1u << 22) + 1);
  CHECK(
      reason(many, Lengths{0, (1u << 22) + 1}, std::span(result).first(1)) ==
      "Matrix (4194305 elements) of workload 'segment_mean' has a number of rows (4194305) that exceeds the "
      "limit (4194304).");
}
