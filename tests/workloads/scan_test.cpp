#include <wye/workloads/scan.hpp>

#include <algorithm>

#include "workloads/vectors.hpp"

using namespace wye;
using namespace wye::test;
namespace reference = wye::workloads::reference;
using workloads::Scan;

namespace {

constexpr Scan scans[] = {Scan::inclusive, Scan::exclusive};

template <class T>
std::vector<Sum<T>> prefix_sums(Scan scan, const std::vector<T>& x, std::size_t rows,
                                const std::string& leg) {
  auto sums = poison<Sum<T>>(x.size());
  run(workloads::scan(scan, x, sums, rows == 0 ? 0 : x.size() / rows), leg);
  return sums;
}

/// Returns "", or the place and the sums that differ. Sums that are infinite or NaN have to be
/// equal.
template <class T>
std::string differing_prefix(Scan scan, const std::vector<T>& x, std::size_t rows,
                             std::span<const Sum<T>> sums) {
  const auto exact = reference::scan(scan, x, rows);
  if constexpr (std::is_integral_v<T>) {
    for (std::size_t i = 0; i < exact.size(); ++i)
      if (sums[i] != exact[i])
        return std::to_string(sums[i]) + " instead of " + std::to_string(exact[i]) + " at " +
               std::to_string(i);
    return "";
  } else {
    std::vector<T> sizes = x;
    for (T& number : sizes) number = T(std::abs(static_cast<float>(number)));
    const auto of_sizes = reference::scan(scan, sizes, rows);
    for (std::size_t i = 0; i < exact.size(); ++i) {
      const auto column = static_cast<double>(i % (x.size() / rows));
      const double bound = bound_of_sum(static_cast<std::size_t>(column) + 1, of_sizes[i]), sum = sums[i];
      const bool right = std::isnan(exact[i])   ? std::isnan(sum)
                         : std::isinf(exact[i]) ? sum == exact[i]
                                                : std::abs(sum - exact[i]) <= bound;
      if (!right)
        return std::to_string(sum) + " instead of " + std::to_string(exact[i]) + " at " + std::to_string(i);
    }
    return "";
  }
}

template <class T>
void check_scans(const std::vector<T>& x, std::size_t rows, const std::string& leg) {
  for (const Scan scan : scans)
    CHECK(differing_prefix<T>(scan, x, rows, prefix_sums(scan, x, rows, leg)) == "");
}

}  // namespace

TEST_CASE("scan sums prefixes of rows of every type", "[workloads][scan]") {
  for (const std::string& leg : legs())
    for_element_types([&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()));
      for (const auto& [rows, columns] : row_shapes) {
        INFO(rows << " x " << columns);
        check_scans(elements<T>(rows * columns, 1), rows, leg);
        const auto equal = equal_elements<T>(rows * columns, 2);
        const Scan scan = scans[columns % 2];
        CHECK(differing_prefix<T>(scan, equal, rows, prefix_sums(scan, equal, rows, leg)) == "");
      }
    });
}

TEST_CASE("scan is right for random shapes", "[workloads][scan]") {
  std::mt19937 random(3);
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const std::size_t rows = 1 + random() % 40, columns = 1 + random() % (i % 8 == 0 ? 3000 : 60);
    const auto seed = static_cast<std::uint32_t>(random());
    const std::string& leg = legs()[random() % legs().size()];
    const Scan scan = scans[random() % 2];
    std::uint32_t type_number = 0;
    for_element_types([&](auto type) {
      using T = decltype(type);
      if (type_number++ != i % 6) return;
      INFO(leg << ", " << name(element_type<T>()) << ", " << rows << " x " << columns << ", seed " << seed
               << (scan == Scan::inclusive ? ", inclusive" : ", exclusive"));
      const std::size_t count = rows * columns;
      const auto x = seed % 2 == 0 ? elements<T>(count, seed) : equal_elements<T>(count, seed);
      CHECK(differing_prefix<T>(scan, x, rows, prefix_sums(scan, x, rows, leg)) == "");
    });
  }
}

TEST_CASE("scan accepts empty vectors, empty rows and no rows", "[workloads][scan]") {
  for (const std::string& leg : legs())
    for_element_types([&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()));
      for (std::size_t rows : {0u, 1u, 300u})
        for (const Scan scan : scans) CHECK(prefix_sums(scan, std::vector<T>(), rows, leg).empty());
    });
}

TEST_CASE("scan takes a vector for one row", "[workloads][scan]") {
  for (const std::string& leg : legs()) {
    const std::vector<std::uint32_t> x{3, 0, 5, 4'294'967'295u, 7};
    auto sums = poison<std::uint32_t>(x.size());
    run(workloads::scan(Scan::inclusive, x, sums), leg);
    CHECK(sums == std::vector<std::uint32_t>{3, 3, 8, 7, 14});
    run(workloads::scan(Scan::exclusive, x, sums), leg);
    CHECK(sums == std::vector<std::uint32_t>{0, 3, 3, 8, 7});
  }
}

TEST_CASE("scan propagates NaN and infinities to all later sums of a row", "[workloads][scan]") {
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()));
      constexpr std::size_t columns = 140000;
      std::vector<T> x(3 * columns, T(1.0f));
      x[69999] = T(infinity);
      x[139000] = T(-infinity);
      x[columns + 5] = T(undefined);
      x[2 * columns + 131072] = T(-infinity);
      const auto sums = prefix_sums(Scan::inclusive, x, 3, leg);
      CHECK(sums[69998] == 69999);
      CHECK(sums[69999] == infinity);
      CHECK(sums[138999] == infinity);
      CHECK(
          std::all_of(sums.begin() + 139000, sums.begin() + columns, [](float s) { return std::isnan(s); }));
      CHECK(sums[columns + 4] == 5);
      CHECK(std::all_of(sums.begin() + columns + 5, sums.begin() + 2 * columns,
                        [](float s) { return std::isnan(s); }));
      CHECK(sums[2 * columns + 131071] == 131072);
      CHECK(std::all_of(sums.begin() + 2 * columns + 131072, sums.end(),
                        [](float s) { return s == -infinity; }));
      CHECK(differing_prefix<T>(Scan::exclusive, x, 3, prefix_sums(Scan::exclusive, x, 3, leg)) == "");
    });
}

TEST_CASE("scan adds small numbers to large ones within its bound", "[workloads][scan]") {
  for (const std::string& leg : legs())
    for (std::size_t columns : {255u, 65536u, 300001u}) {
      INFO(leg << ", " << columns << " columns");
      check_scans(std::vector<float>(columns, 0.1f), 1, leg);
      std::vector<float> cancelling = numbers(columns, 4, 1e6f, 1e8f);
      for (std::size_t i = 1; i < columns; i += 2) cancelling[i] = -cancelling[i - 1];
      check_scans(cancelling, 1, leg);
      check_scans(numbers(columns, 5, 1e32f, 1e32f), 1, leg);
    }
}

TEST_CASE("scan is right for arrays that begin at odd elements, and keeps the elements beside its sums",
          "[workloads][scan]") {
  constexpr std::size_t rows = 5, columns = 67, count = rows * columns;
  for (const std::string& leg : legs())
    for_element_types([&](auto type) {
      using T = decltype(type);
      for (std::size_t begin : {0u, 1u, 2u, 3u}) {
        INFO(leg << ", " << name(element_type<T>()) << ", from element " << begin << " on");
        const auto all = elements<T>(count + begin, 6);
        const std::vector<T> x(all.begin() + static_cast<std::ptrdiff_t>(begin), all.end());
        const auto edges = poison<Sum<T>>(count + 5);
        const Array<T> from = the_runtime().array(all);
        const Array<Sum<T>> to = the_runtime().array(edges);
        const std::size_t place = 3 - begin;
        run(workloads::scan(Scan::inclusive, Read<T>(from).slice(begin, count),
                            Write<Sum<T>>(to).slice(place, count), columns),
            leg);
        const auto sums = to.read();
        REQUIRE(sums);
        CHECK(differing_prefix<T>(Scan::inclusive, x, rows, sums->span().subspan(place, count)) == "");
        for (std::size_t i = 0; i < edges.size(); ++i)
          if (i < place || i >= place + count)
            CHECK(std::memcmp(&(*sums)[i], &edges[i], sizeof(Sum<T>)) == 0);
      }
    });
}

TEST_CASE("scan refuses sums that overlap x", "[workloads][scan]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    std::vector<float> x(70000, 1.0f);
    auto job = workloads::scan(Scan::inclusive, std::span(x).first(69999), std::span(x).last(69999));
    const auto done = the_runtime().submit(std::move(job), {.fallback = Fallback::forbid, .on = leg}).wait();
    REQUIRE_FALSE(done);
    CHECK(done.error() == Errc::invalid_argument);
  }
}

TEST_CASE("scan gives the same bits again", "[workloads][scan]") {
  for (const std::string& leg : legs())
    for (std::size_t columns : {7u, 1000u, 150000u}) {
      INFO(leg << ", " << columns << " columns");
      const std::vector<float> x = numbers(columns * (columns < 5000 ? 100 : 2), 8);
      const std::size_t rows = x.size() / columns;
      CHECK(
          equal_bits(prefix_sums(Scan::inclusive, x, rows, leg), prefix_sums(Scan::inclusive, x, rows, leg)));
    }
}

TEST_CASE("scan is right if its grid has more than one row", "[workloads][scan][large][.huge]") {
  const std::size_t rows = (std::size_t{1} << 23) + 301;
  const auto x = elements<float>(rows, 9);
  for (const std::string& leg : legs()) {
    INFO(leg);
    CHECK(equal_bits(prefix_sums(Scan::inclusive, x, rows, leg), x));
    CHECK(equal_bits(prefix_sums(Scan::exclusive, x, rows, leg), std::vector<float>(rows)));
  }
}

TEST_CASE("scan is right beyond 4 GiB", "[workloads][scan][large][.huge]") {
  if (!has_leg("cpu")) return;
  const std::vector<std::uint64_t> x((std::size_t{1} << 29) + 70001, 3);
  std::vector<std::uint64_t> sums(x.size());
  run(workloads::scan(Scan::inclusive, x, sums), "cpu");
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) wrong += sums[i] != 3 * (i + 1);
  CHECK(wrong == 0);
}

TEST_CASE("scan refuses sizes that do not match", "[workloads][scan]") {
  std::vector<float> x(10), sums(10), few(4);
  std::vector<half> halves(8);
  const auto sentence_of = [](const Job& job) {
    REQUIRE(job.error());
    CHECK(*job.error() == Errc::invalid_argument);
    return refusal(job);
  };
  CHECK(sentence_of(workloads::scan(Scan::inclusive, x, few)) ==
        "Vector sums (4 elements) of workload 'scan' is not as long as x (10 elements).");
  CHECK(sentence_of(workloads::scan(Scan::inclusive, halves, x)) ==
        "Vector sums (10 elements) of workload 'scan' is not as long as x (8 elements).");
  CHECK(sentence_of(workloads::scan(Scan::exclusive, x, sums, 3)) ==
        "Matrix (10 elements) of workload 'scan' has no whole number of rows of 3 columns.");
  CHECK(sentence_of(workloads::scan(Scan::exclusive, x, sums, 0)) ==
        "Matrix (10 elements) of workload 'scan' has no whole number of rows of 0 columns.");
  std::vector<std::uint32_t> word(1);
  const std::span<std::uint32_t> endless(word.data(), std::size_t{1} << 31);
  CHECK(sentence_of(workloads::scan(Scan::inclusive, endless, endless)) ==
        "Matrix (2147483648 elements) of workload 'scan' has rows whose length (2147483648) exceeds the "
        "limit (2147483647).");
}
