#include <wye/workloads/norm.hpp>

#include "workloads/vectors.hpp"

using namespace wye;
using namespace wye::test;
namespace reference = wye::workloads::reference;
using workloads::Norm;

namespace {

constexpr Norm all_norms[] = {Norm::one, Norm::two, Norm::infinity};

template <class T>
std::vector<float> norms(Norm norm, const std::vector<T>& x, std::size_t rows, const std::string& leg) {
  auto results = poison<float>(rows);
  run(workloads::norm(norm, x, results), leg);
  return results;
}

template <class T>
std::string differing_norm(Norm norm, std::span<const T> x, std::span<const float> results) {
  const auto exact = reference::norm(norm, x, results.size());
  return difference(results, exact, [&](std::size_t row) {
    return norm == Norm::infinity ? 1e-37 : bound_of_sum(x.size() / results.size(), exact[row]) + 1e-37;
  });
}

template <class T>
void check_norms(const std::vector<T>& x, std::size_t rows, const std::string& leg) {
  for (const Norm norm : all_norms) {
    INFO("norm " << static_cast<int>(norm));
    CHECK(differing_norm<T>(norm, x, norms(norm, x, rows, leg)) == "");
  }
}

}  // namespace

TEST_CASE("norm measures rows of every type", "[workloads][norm]") {
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()));
      check_norms<T>({}, 0, leg);
      for (const Norm norm : all_norms) CHECK(norms<T>(norm, {}, 300, leg) == std::vector<float>(300, 0.0f));
      for (const auto& [rows, columns] : row_shapes) {
        INFO(rows << " x " << columns);
        check_norms(elements<T>(rows * columns, 1), rows, leg);
      }
    });
}

TEST_CASE("norm is right for random shapes", "[workloads][norm]") {
  std::mt19937 random(3);
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const std::size_t rows = 1 + random() % 40, columns = random() % (i % 8 == 0 ? 1500 : 60);
    const auto seed = static_cast<std::uint32_t>(random());
    const std::string& leg = legs()[random() % legs().size()];
    const Norm norm = all_norms[random() % 3];
    std::uint32_t type_number = 0;
    for_float_types([&](auto type) {
      using T = decltype(type);
      if (type_number++ != i % 3) return;
      INFO(leg << ", " << name(element_type<T>()) << ", " << rows << " x " << columns << ", seed " << seed
               << ", norm " << static_cast<int>(norm));
      const std::size_t count = rows * columns;
      const auto x = seed % 2 == 0 ? elements<T>(count, seed) : equal_elements<T>(count, seed);
      CHECK(differing_norm<T>(norm, x, norms(norm, x, rows, leg)) == "");
    });
  }
}

TEST_CASE("norm is right if squares overflow or vanish", "[workloads][norm]") {
  for (const std::string& leg : legs())
    for (float size : {1e38f, 1e30f, 1e20f, 1e18f, 1e-12f, 1e-15f, 1e-25f, 1e-36f})
      for (std::size_t columns : {3u, 700u, 140001u}) {
        if (static_cast<double>(size) * static_cast<double>(columns) > 3e38) continue;
        INFO(leg << ", numbers of about " << size << ", " << columns << " columns");
        check_norms(numbers(2 * columns, 4, 0.5f * size, size), 2, leg);
      }
  for (const std::string& leg : legs()) {
    INFO(leg << ", large beside small");
    check_norms<float>({1e30f, 1e-30f, 1e25f, -2e30f}, 1, leg);
    check_norms<float>({1e-30f, 2e-30f, 0, -3e-25f}, 1, leg);
  }
}

TEST_CASE("norm is exact for denormal numbers, or takes them for zeros", "[workloads][norm]") {
  for (const std::string& leg : legs())
    for (float size : {1e-39f, 1e-42f, 3e-45f}) {
      INFO(leg << ", numbers of about " << size);
      const std::vector<float> x = numbers(1000, 6, 0.5f * size, size);
      const float length = norms(Norm::two, x, 1, leg).front();
      const double exact = reference::norm(Norm::two, x, 1).front();
      CHECK((length == 0 || std::abs(double{length} - exact) <= bound_of_sum(1000, exact) + 0x1p-148));
      if (leg == "cpu") CHECK(length != 0);
    }
}

TEST_CASE("norm propagates NaN and infinities", "[workloads][norm]") {
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()));
      const auto x =
          of<T>({1, infinity, 2, 1, -infinity, 3, infinity, undefined, -infinity, 1, undefined, 2});
      for (const Norm norm : all_norms) {
        const auto found = norms(norm, x, 4, leg);
        CHECK(found[0] == infinity);
        CHECK(found[1] == infinity);
        CHECK(std::isnan(found[2]));
        CHECK(std::isnan(found[3]));
      }
      std::vector<T> wide(140000, T(1.0f));
      wide[69999] = T(undefined);
      wide[70000] = T(infinity);
      check_norms(wide, 2, leg);
    });
}

TEST_CASE("norm is right for arrays that begin at odd elements", "[workloads][norm]") {
  constexpr std::size_t rows = 3, columns = 301, count = rows * columns;
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      for (std::size_t begin : {1u, 2u, 3u}) {
        INFO(leg << ", " << name(element_type<T>()) << ", from element " << begin << " on");
        const auto x = elements<T>(count + begin, 6);
        const Array<T> from = the_runtime().array(x);
        const Array<float> to = the_runtime().template array<float>(rows + begin);
        run(workloads::norm(Norm::two, Read<T>(from).slice(begin, count),
                            Write<float>(to).slice(begin, rows)),
            leg);
        const auto results = to.read();
        REQUIRE(results);
        CHECK(differing_norm<T>(Norm::two, std::span(x).subspan(begin), results->span().subspan(begin)) ==
              "");
      }
    });
}

TEST_CASE("norm gives the same bits again", "[workloads][norm]") {
  for (const std::string& leg : legs())
    for (std::size_t columns : {7u, 1000u, 150000u}) {
      INFO(leg << ", " << columns << " columns");
      const std::size_t rows = columns < 5000 ? 100 : 2;
      const std::vector<float> x = numbers(columns * rows, 7);
      for (const Norm norm : all_norms)
        CHECK(equal_bits(norms(norm, x, rows, leg), norms(norm, x, rows, leg)));
    }
}

TEST_CASE("norm refuses sizes that do not match", "[workloads][norm]") {
  std::vector<float> x(10), results(4);
  CHECK(refusal(workloads::norm(Norm::two, x, results)) ==
        "Vector x (10 elements) of workload 'norm' has no whole number of rows for 4 results.");
}
