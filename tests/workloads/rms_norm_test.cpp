#include <wye/scheduler/graph.hpp>
#include <wye/workloads/rms_norm.hpp>

#include "workloads/vectors.hpp"

using namespace wye;
using namespace wye::test;
namespace reference = wye::workloads::reference;

namespace {

template <class T>
std::vector<T> root_norms(const std::vector<T>& x, const std::vector<T>& weight, const std::string& leg) {
  auto result = poison<T>(x.size());
  run(workloads::rms_norm(x, weight, result), leg);
  return result;
}

template <class T>
std::string differing_root_norms(const std::vector<T>& x, const std::vector<T>& weight,
                                 const std::vector<T>& result) {
  const auto exact = reference::rms_norm(std::span<const T>(x), std::span<const T>(weight));
  return difference(floats(result), exact, [&](std::size_t place) {
    return with_rounding<T>(2e-5 * std::abs(exact[place]), exact[place]);
  });
}

}  // namespace

TEST_CASE("rms_norm scales rows of every type", "[workloads][rms_norm]") {
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()));
      CHECK(root_norms<T>({}, {}, leg).empty());
      CHECK(root_norms<T>({}, of<T>({1, 2}), leg).empty());
      for (const auto& [rows, columns] : row_shapes) {
        INFO(rows << " x " << columns);
        const auto x = elements<T>(rows * columns, 1), weight = of<T>(numbers(columns, 2, -2, 2));
        CHECK(differing_root_norms(x, weight, root_norms(x, weight, leg)) == "");
      }
    });
}

TEST_CASE("rms_norm adds a residual first, and keeps the rounded sum", "[workloads][rms_norm]") {
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      for (const auto& [rows, columns] : few_row_shapes) {
        INFO(leg << ", " << name(element_type<T>()) << ", " << rows << " x " << columns);
        const auto x = elements<T>(rows * columns, 11), weight = of<T>(numbers(columns, 12, -2, 2));
        auto residual = of<T>(numbers(x.size(), 13, -1, 3)), result = poison<T>(x.size());
        const auto sums = sums_of(x, residual);
        run(workloads::rms_norm(x, residual, weight, result), leg);
        CHECK(equal_bits(residual, sums));
        CHECK(differing_root_norms(sums, weight, result) == "");
      }
    });
}

TEST_CASE("rms_norm is right for random shapes", "[workloads][rms_norm]") {
  std::mt19937 random(13);
  for (std::uint32_t i = 0; i < 200; ++i) {
    const std::size_t rows = random() % 40, columns = 1 + random() % (i % 8 == 0 ? 3000 : 80);
    const auto seed = static_cast<std::uint32_t>(random());
    const std::string& leg = legs()[random() % legs().size()];
    for_float_type(i, [&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()) << ", " << rows << " x " << columns << ", seed " << seed);
      const auto x = elements<T>(rows * columns, seed), weight = elements<T>(columns, seed + 1);
      CHECK(differing_root_norms(x, weight, root_norms(x, weight, leg)) == "");
    });
  }
}

TEST_CASE("rms_norm has an epsilon: rows of zeros stay, and small numbers grow less",
          "[workloads][rms_norm]") {
  for (const std::string& leg : legs())
    for (const std::size_t columns : {2u, 1000u, 70000u}) {
      INFO(leg << ", " << columns << " columns");
      const std::vector<float> zeros(columns), weight = numbers(columns, 21, 1, 2);
      CHECK(root_norms(zeros, weight, leg) == zeros);
      const auto x = numbers(columns, 22, -1e-3f, 1e-3f);
      CHECK(differing_root_norms(x, weight, root_norms(x, weight, leg)) == "");
      auto result = poison<float>(columns);
      run(workloads::rms_norm(x, weight, result, {.epsilon = 2.0f}), leg);
      const auto exact = reference::rms_norm(x, weight, {.epsilon = 2.0f});
      CHECK(difference(result, exact, relative(exact, 2e-5)) == "");
    }
}

TEST_CASE("rms_norm propagates NaN, and makes NaN of infinities and zeros of the numbers beside them",
          "[workloads][rms_norm]") {
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      for (const std::size_t columns : {3u, 1000u, 70000u})
        for (const float odd : {undefined, infinity, -infinity}) {
          INFO(leg << ", " << name(element_type<T>()) << ", " << columns << " columns, " << odd);
          auto x = elements<T>(2 * columns, 31);
          const auto weight = of<T>(numbers(columns, 32, 1, 2));
          const auto before = root_norms(x, weight, leg);
          const std::size_t place = columns - 2;
          x[place] = T(odd);
          const auto after = root_norms(x, weight, leg);
          std::size_t wrong = 0;
          for (std::size_t i = 0; i < columns; ++i) {
            const auto value = static_cast<float>(after[i]);
            wrong += i == place || std::isnan(odd) ? !std::isnan(value) : value != 0;
          }
          CHECK(wrong == 0);
          CHECK(std::memcmp(&before[columns], &after[columns], columns * sizeof(T)) == 0);
        }
    });
}

TEST_CASE("rms_norm gives a row the same bits alone and among others", "[workloads][rms_norm]") {
  constexpr std::size_t rows = 5;
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      for (const std::size_t columns : {3u, 129u, 4097u, 65539u}) {
        INFO(leg << ", " << name(element_type<T>()) << ", " << columns << " columns");
        const auto x = elements<T>(rows * columns, 41), weight = elements<T>(columns, 42);
        const auto all = root_norms(x, weight, leg);
        for (std::size_t row = 0; row < rows; ++row) {
          const auto begin = x.begin() + static_cast<std::ptrdiff_t>(row * columns);
          const std::vector<T> alone(begin, begin + static_cast<std::ptrdiff_t>(columns));
          CHECK(std::memcmp(root_norms(alone, weight, leg).data(), &all[row * columns],
                            columns * sizeof(T)) == 0);
        }
      }
    });
}

TEST_CASE("rms_norm is a step of a graph", "[workloads][rms_norm]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    const auto x = numbers(140000, 51), weight = numbers(70000, 52);
    auto result = poison<float>(x.size());
    Graph graph;
    graph.add(workloads::rms_norm(x, weight, result));
    auto plan = graph.compile(the_runtime(), {.on = leg});
    if (!plan) FAIL(plan.error().describe());
    const auto done = plan->run().wait();
    if (!done) FAIL(done.error().describe());
    CHECK(equal_bits(result, root_norms(x, weight, leg)));
  }
}

TEST_CASE("rms_norm refuses a result that overlaps x", "[workloads][rms_norm]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    std::vector<float> x(1000, 1.0f), weight(9);
    auto job = workloads::rms_norm(std::span(x).first(999), weight, std::span(x).last(999));
    const auto done = the_runtime().submit(std::move(job), {.fallback = Fallback::forbid, .on = leg}).wait();
    REQUIRE_FALSE(done);
    CHECK(done.error() == Errc::invalid_argument);
  }
}

TEST_CASE("rms_norm refuses sizes that do not match, and epsilons out of range", "[workloads][rms_norm]") {
  std::vector<float> x(10), weight(5), other(4), none, result(10);
  CHECK(refusal(workloads::rms_norm(x, other, result)) ==
        "Matrix (10 elements) of workload 'rms_norm' has no whole number of rows of 4 columns.");
  CHECK(refusal(workloads::rms_norm(x, none, result)) ==
        "Matrix (10 elements) of workload 'rms_norm' has no whole number of rows of 0 columns.");
  CHECK(refusal(workloads::rms_norm(x, weight, other)) ==
        "Vector result (4 elements) of workload 'rms_norm' is not as long as x (10 elements).");
  CHECK(refusal(workloads::rms_norm(x, other, weight, result)) ==
        "Vector residual (4 elements) of workload 'rms_norm' is not as long as x (10 elements).");
  CHECK(refusal(workloads::rms_norm(x, weight, result, {.epsilon = -1})) ==
        "Epsilon (-1.000000) of workload 'rms_norm' is not finite and at least 2^-126.");
  CHECK(refusal(workloads::rms_norm(x, weight, result, {.epsilon = undefined})) ==
        "Epsilon (nan) of workload 'rms_norm' is not finite and at least 2^-126.");
}
