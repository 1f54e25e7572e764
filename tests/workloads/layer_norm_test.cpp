#include <wye/scheduler/graph.hpp>
#include <wye/workloads/layer_norm.hpp>

#include "workloads/vectors.hpp"

using namespace wye;
using namespace wye::test;
namespace reference = wye::workloads::reference;

namespace {

/// The operands of a norm without a residual.
template <class T>
struct CenteredRows {
  std::vector<T> x, weight, bias;
};

template <class T>
CenteredRows<T> centered_rows(std::size_t rows, std::size_t columns, std::uint32_t seed, float low = -1,
                              float high = 1) {
  return {of<T>(numbers(rows * columns, seed, low, high)), of<T>(numbers(columns, seed + 1, -2, 2)),
          of<T>(numbers(columns, seed + 2, -2, 2))};
}

template <class T>
std::vector<T> centered_norms(const CenteredRows<T>& rows, const std::string& leg) {
  auto result = poison<T>(rows.x.size());
  run(workloads::layer_norm(rows.x, rows.weight, rows.bias, result), leg);
  return result;
}

template <class T>
std::string differing_norms(const CenteredRows<T>& rows, const std::vector<T>& result) {
  const auto exact = reference::layer_norm(std::span<const T>(rows.x), std::span<const T>(rows.weight),
                                           std::span<const T>(rows.bias));
  return difference(floats(result), exact, [&](std::size_t place) {
    const std::size_t column = place % rows.weight.size();
    const double weight = std::abs(double{static_cast<float>(rows.weight[column])}),
                 bias = static_cast<float>(rows.bias[column]);
    const double bound = 2e-5 * (weight + std::abs(exact[place] - bias)) + 0x1p-22 * std::abs(bias);
    return with_rounding<T>(bound, exact[place]);
  });
}

}  // namespace

TEST_CASE("layer_norm centers and scales rows of every type", "[workloads][layer_norm]") {
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()));
      CHECK(centered_norms<T>({}, leg).empty());
      CHECK(centered_norms<T>({{}, of<T>({1, 2}), of<T>({1, 2})}, leg).empty());
      for (const auto& [rows, columns] : row_shapes) {
        INFO(rows << " x " << columns);
        const auto given = centered_rows<T>(rows, columns, 1);
        CHECK(differing_norms(given, centered_norms(given, leg)) == "");
      }
    });
}

TEST_CASE("layer_norm adds a residual first, and keeps the rounded sum", "[workloads][layer_norm]") {
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      for (const auto& [rows, columns] : few_row_shapes) {
        INFO(leg << ", " << name(element_type<T>()) << ", " << rows << " x " << columns);
        const auto given = centered_rows<T>(rows, columns, 11);
        auto residual = of<T>(numbers(given.x.size(), 14, -1, 3));
        const CenteredRows<T> sums{sums_of(given.x, residual), given.weight, given.bias};
        auto result = poison<T>(given.x.size());
        run(workloads::layer_norm(given.x, residual, given.weight, given.bias, result), leg);
        CHECK(equal_bits(residual, sums.x));
        CHECK(differing_norms(sums, result) == "");
      }
    });
}

TEST_CASE("layer_norm is right for random shapes", "[workloads][layer_norm]") {
  std::mt19937 random(11);
  for (std::uint32_t i = 0; i < 200; ++i) {
    const std::size_t rows = random() % 40, columns = 1 + random() % (i % 8 == 0 ? 3000 : 80);
    const auto seed = static_cast<std::uint32_t>(random());
    const std::string& leg = legs()[random() % legs().size()];
    for_float_type(i, [&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()) << ", " << rows << " x " << columns << ", seed " << seed);
      const auto given = centered_rows<T>(rows, columns, seed, -1, 2);
      CHECK(differing_norms(given, centered_norms(given, leg)) == "");
    });
  }
}

TEST_CASE("layer_norm is right for rows whose mean is far from zero", "[workloads][layer_norm]") {
  for (const std::string& leg : legs())
    for (const std::size_t columns : {3u, 768u, 4096u, 70000u}) {
      INFO(leg << ", " << columns << " columns");
      const auto given = centered_rows<float>(2, columns, 21, 1999.5f, 2000.5f);
      CHECK(differing_norms(given, centered_norms(given, leg)) == "");
    }
}

TEST_CASE("layer_norm makes the bias of rows of equal numbers", "[workloads][layer_norm]") {
  for (const std::string& leg : legs())
    for (const std::size_t columns : {1u, 64u, 1024u, 131072u}) {
      INFO(leg << ", " << columns << " columns");
      auto given = centered_rows<float>(2, columns, 31);
      given.x.assign(given.x.size(), -0.75f);
      const auto result = centered_norms(given, leg);
      const std::vector<double> exact(given.bias.begin(), given.bias.end());
      for (std::size_t row = 0; row < 2; ++row)
        CHECK(difference(std::span(result).subspan(row * columns, columns), exact,
                         [](std::size_t) { return 1e-5; }) == "");
    }
}

TEST_CASE("layer_norm makes NaN of rows with NaN or infinities", "[workloads][layer_norm]") {
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      for (const std::size_t columns : {3u, 1000u, 70000u})
        for (const float odd : {undefined, infinity, -infinity}) {
          INFO(leg << ", " << name(element_type<T>()) << ", " << columns << " columns, " << odd);
          auto given = centered_rows<T>(2, columns, 41);
          const auto before = centered_norms(given, leg);
          given.x[columns - 2] = T(odd);
          const auto after = centered_norms(given, leg);
          std::size_t numbers_left = 0;
          for (std::size_t i = 0; i < columns; ++i) numbers_left += !std::isnan(static_cast<float>(after[i]));
          CHECK(numbers_left == 0);
          CHECK(std::memcmp(&before[columns], &after[columns], columns * sizeof(T)) == 0);
        }
    });
}

TEST_CASE("layer_norm gives a row the same bits alone and among others", "[workloads][layer_norm]") {
  constexpr std::size_t rows = 5;
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      for (const std::size_t columns : {3u, 129u, 4097u, 65539u}) {
        INFO(leg << ", " << name(element_type<T>()) << ", " << columns << " columns");
        const auto given = centered_rows<T>(rows, columns, 51);
        const auto all = centered_norms(given, leg);
        for (std::size_t row = 0; row < rows; ++row) {
          const auto begin = given.x.begin() + static_cast<std::ptrdiff_t>(row * columns);
          const CenteredRows<T> alone{
              {begin, begin + static_cast<std::ptrdiff_t>(columns)}, given.weight, given.bias};
          CHECK(std::memcmp(centered_norms(alone, leg).data(), &all[row * columns], columns * sizeof(T)) ==
                0);
        }
      }
    });
}

TEST_CASE("layer_norm changes no element beside arrays that begin at odd elements",
          "[workloads][layer_norm]") {
  constexpr std::size_t rows = 5;
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      for (const std::size_t columns : {1u, 3u, 67u})
        for (const std::size_t begin : {0u, 1u, 2u, 3u}) {
          INFO(leg << ", " << name(element_type<T>()) << ", " << columns << " columns from element " << begin
                   << " on");
          const std::size_t count = rows * columns, shift = 3 - begin;
          const auto added = of<T>(numbers(count + 6, 61)), before = of<T>(numbers(count + 6, 62));
          const auto given = centered_rows<T>(1, columns + 3, 63);
          const Array<T> x = the_runtime().array(added), residual = the_runtime().array(before),
                         weight = the_runtime().array(given.weight), bias = the_runtime().array(given.bias),
                         result = the_runtime().array(before);
          run(workloads::layer_norm(
                  Read<T>(x).slice(shift, count), ReadWrite<T>(residual).slice(begin, count),
                  Read<T>(weight).slice(begin, columns), Read<T>(bias).slice(shift, columns),
                  Write<T>(result).slice(shift, count)),
              leg);
          const auto part = [](std::span<const T> all, std::size_t first, std::size_t size) {
            return std::vector<T>(all.begin() + static_cast<std::ptrdiff_t>(first),
                                  all.begin() + static_cast<std::ptrdiff_t>(first + size));
          };
          const auto sums = residual.read(), normed = result.read();
          REQUIRE(sums);
          REQUIRE(normed);
          const CenteredRows<T> of_sums{sums_of(part(added, shift, count), part(before, begin, count)),
                                        part(given.weight, begin, columns), part(given.bias, shift, columns)};
          CHECK(equal_bits(part(sums->span(), begin, count), of_sums.x));
          CHECK(differing_norms(of_sums, part(normed->span(), shift, count)) == "");
          for (std::size_t i = 0; i < before.size(); ++i) {
            if (i < begin || i >= begin + count) CHECK(std::memcmp(&(*sums)[i], &before[i], sizeof(T)) == 0);
            if (i < shift || i >= shift + count)
              CHECK(std::memcmp(&(*normed)[i], &before[i], sizeof(T)) == 0);
          }
        }
    });
}

TEST_CASE("layer_norm is a step of a graph", "[workloads][layer_norm]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    const auto given = centered_rows<float>(2, 70000, 71);
    auto result = poison<float>(given.x.size());
    Graph graph;
    graph.add(workloads::layer_norm(given.x, given.weight, given.bias, result));
    auto plan = graph.compile(the_runtime(), {.on = leg});
    if (!plan) FAIL(plan.error().describe());
    const auto done = plan->run().wait();
    if (!done) FAIL(done.error().describe());
    CHECK(equal_bits(result, centered_norms(given, leg)));
  }
}

TEST_CASE("layer_norm refuses a result that overlaps x", "[workloads][layer_norm]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    std::vector<float> x(1000, 1.0f), weight(9);
    auto job = workloads::layer_norm(std::span(x).first(999), weight, weight, std::span(x).last(999));
    const auto done = the_runtime().submit(std::move(job), {.fallback = Fallback::forbid, .on = leg}).wait();
    REQUIRE_FALSE(done);
    CHECK(done.error() == Errc::invalid_argument);
  }
}

TEST_CASE("layer_norm refuses sizes that do not match, and epsilons out of range",
          "[workloads][layer_norm]") {
  std::vector<float> x(10), weight(5), other(4), result(10);
  CHECK(refusal(workloads::layer_norm(x, other, other, result)) ==
        "Matrix (10 elements) of workload 'layer_norm' has no whole number of rows of 4 columns.");
  CHECK(refusal(workloads::layer_norm(x, weight, other, result)) ==
        "Vector bias (4 elements) of workload 'layer_norm' is not as long as weight (5 elements).");
  CHECK(refusal(workloads::layer_norm(x, weight, weight, other)) ==
        "Vector result (4 elements) of workload 'layer_norm' is not as long as x (10 elements).");
  CHECK(refusal(workloads::layer_norm(x, other, weight, weight, result)) ==
        "Vector residual (4 elements) of workload 'layer_norm' is not as long as x (10 elements).");
  CHECK(refusal(workloads::layer_norm(x, weight, weight, result, {.epsilon = 0})) ==
        "Epsilon (0.000000) of workload 'layer_norm' is not finite and at least 2^-126.");
  CHECK(refusal(workloads::layer_norm(x, weight, weight, result, {.epsilon = infinity})) ==
        "Epsilon (inf) of workload 'layer_norm' is not finite and at least 2^-126.");
}
