#include <wye/workloads/scale.hpp>

#include "workloads/vectors.hpp"

using namespace wye;
using namespace wye::test;
namespace reference = wye::workloads::reference;

namespace {

/// Compares products with the exact ones, rounded once. GPUs may take numbers and products below
/// 2^-126 for zeros.
template <class T>
std::string differing_product(std::span<const T> factors, std::span<const T> before,
                              std::span<const T> after) {
  const auto exact = reference::scale(factors, before);
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const std::string place = " at " + std::to_string(i);
    if constexpr (std::is_integral_v<T>) {
      if (after[i] != exact[i])
        return std::to_string(after[i]) + " instead of " + std::to_string(exact[i]) + place;
    } else {
      const float wanted = static_cast<float>(T(static_cast<float>(exact[i])));
      const float found = static_cast<float>(after[i]);
      if (std::isnan(wanted) ? std::isnan(found) : found == wanted) continue;
      if (std::abs(exact[i]) < 0x1.01p-126 && found == 0) continue;
      return std::to_string(found) + " instead of " + std::to_string(wanted) + place;
    }
  }
  return "";
}

template <class T>
std::string scale_difference(const std::vector<T>& factors, std::vector<T> x, const std::string& leg) {
  const std::vector<T> before = x;
  run(workloads::scale(factors, x), leg);
  return differing_product<T>(factors, before, x);
}

}  // namespace

TEST_CASE("scale multiplies rows of every type by their factors", "[workloads][scale]") {
  for (const std::string& leg : legs())
    for_element_types([&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()));
      CHECK(scale_difference<T>({}, {}, leg) == "");
      CHECK(scale_difference<T>(elements<T>(300, 1), {}, leg) == "");
      for (const auto& [rows, columns] : row_shapes) {
        INFO(rows << " x " << columns);
        CHECK(scale_difference(elements<T>(rows, 1), elements<T>(rows * columns, 2), leg) == "");
      }
    });
}

TEST_CASE("scale multiplies a vector of every type by one factor", "[workloads][scale]") {
  for (const std::string& leg : legs())
    for_element_types([&](auto type) {
      using T = decltype(type);
      const std::vector<T> a = elements<T>(1, 3);
      for (std::size_t n : {0u, 1u, 2u, 255u, 256u, 257u, 65535u, 65537u, 200001u}) {
        INFO(leg << ", " << name(element_type<T>()) << ", " << n << " elements");
        const std::vector<T> before = elements<T>(n, 4);
        std::vector<T> x = before;
        run(workloads::scale(a.front(), x), leg);
        CHECK(differing_product<T>(a, before, x) == "");
      }
    });
}

TEST_CASE("scale is right for random shapes", "[workloads][scale]") {
  std::mt19937 random(3);
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const std::size_t rows = 1 + random() % 40, columns = random() % (i % 8 == 0 ? 1500 : 60);
    const auto seed = static_cast<std::uint32_t>(random());
    const std::string& leg = legs()[random() % legs().size()];
    std::uint32_t type_number = 0;
    for_element_types([&](auto type) {
      using T = decltype(type);
      if (type_number++ != i % 6) return;
      INFO(leg << ", " << name(element_type<T>()) << ", " << rows << " x " << columns << ", seed " << seed);
      const auto x = elements<T>(rows * columns, seed);
      CHECK(scale_difference(seed % 2 == 0 ? elements<T>(rows, seed) : equal_elements<T>(rows, seed), x,
                             leg) == "");
    });
  }
}

TEST_CASE("scale rounds products of all halves once", "[workloads][scale]") {
  std::vector<half> halves;
  std::vector<bfloat16> bfloats;
  for (unsigned bits = 0; bits < 65536; ++bits) {
    halves.push_back(half::from_bits(static_cast<std::uint16_t>(bits)));
    bfloats.push_back(bfloat16::from_bits(static_cast<std::uint16_t>(bits)));
  }
  for (const std::string& leg : legs())
    for (float a : {1.0f, 0.333f, -1.001f, 700.0f, 1e-4f}) {
      INFO(leg << ", times " << a);
      CHECK(scale_difference<half>(of<half>({a}), halves, leg) == "");
      CHECK(scale_difference<bfloat16>(of<bfloat16>({a}), bfloats, leg) == "");
    }
}

TEST_CASE("scale propagates NaN and infinities", "[workloads][scale]") {
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()));
      const auto x = of<T>({1, infinity, 0, -1, infinity, 2, undefined, 1, -infinity});
      CHECK(scale_difference(of<T>({infinity, 0, -2}), x, leg) == "");
    });
}

TEST_CASE("scale changes no element beside arrays that begin at odd elements", "[workloads][scale]") {
  for (const std::string& leg : legs())
    for_element_types([&](auto type) {
      using T = decltype(type);
      for (std::size_t columns : {1u, 3u, 67u})
        for (std::size_t begin : {0u, 1u, 2u, 3u}) {
          INFO(leg << ", " << name(element_type<T>()) << ", " << columns << " columns from element " << begin
                   << " on");
          constexpr std::size_t rows = 5;
          const std::size_t count = rows * columns;
          const auto before = elements<T>(count + begin + 3, 6), factors = elements<T>(rows + begin, 7);
          const Array<T> x = the_runtime().array(before), by = the_runtime().array(factors);
          run(workloads::scale(Read<T>(by).slice(begin, rows), ReadWrite<T>(x).slice(begin, count)), leg);
          const auto after = x.read();
          REQUIRE(after);
          CHECK(differing_product<T>(std::span(factors).subspan(begin),
                                     std::span(before).subspan(begin, count),
                                     after->span().subspan(begin, count)) == "");
          for (std::size_t i = 0; i < before.size(); ++i)
            if (i < begin || i >= begin + count) CHECK(std::memcmp(&(*after)[i], &before[i], sizeof(T)) == 0);
        }
    });
}

TEST_CASE("scale refuses sizes that do not match", "[workloads][scale]") {
  std::vector<float> x(10), factors(4), none;
  CHECK(refusal(workloads::scale(factors, x)) ==
        "Vector x (10 elements) of workload 'scale' has no whole number of rows for 4 factors.");
  CHECK(refusal(workloads::scale(none, x)) ==
        "Vector x (10 elements) of workload 'scale' has no whole number of rows for 0 factors.");
}
