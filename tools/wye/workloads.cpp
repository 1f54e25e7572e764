// The workloads of `wye run`, with the bounds of their documentation.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <utility>

#include "run.hpp"

#if WYE_HAS_WORKLOADS
#include <wye/workloads/axpy.hpp>
#include <wye/workloads/dot.hpp>
#include <wye/workloads/matmul.hpp>
#include <wye/workloads/normalize.hpp>
#include <wye/workloads/reduce.hpp>
#include <wye/workloads/scan.hpp>
#include <wye/workloads/softmax.hpp>
#include <wye/workloads/sort.hpp>
#include <wye/workloads/transpose.hpp>

namespace wye_tool {
namespace {

namespace reference = wye::workloads::reference;

using Floats = std::vector<float>;
constexpr double epsilon = 0x1p-24;

/// Random operands, and results.
struct Operands {
  Floats x, y, results;
};

Floats random_floats(std::uint64_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> of(-1.0f, 1.0f);
  Floats values(count);
  for (float& value : values) value = of(random);
  return values;
}

/// Returns the largest difference from the expected values, as a multiple of the bound of each.
template <class BoundOf>
double largest_error(std::span<const float> results, std::span<const double> expected, BoundOf bound_of) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (results.size() != expected.size()) return infinity;
  double worst = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const double difference = std::abs(static_cast<double>(results[i]) - expected[i]);
    worst = std::isnan(difference) ? infinity : std::max(worst, difference / bound_of(i));
  }
  return worst;
}

/// Returns results that no device has written.
Floats unwritten(std::uint64_t count) { return Floats(count, std::numeric_limits<float>::quiet_NaN()); }

/// Returns no error, or an infinite one.
double exact(bool is_equal) { return is_equal ? 0 : std::numeric_limits<double>::infinity(); }

double sum_bound(std::uint64_t count, double absolute) {
  return (128 + 2 * std::log2(static_cast<double>(count))) * epsilon * absolute + 1e-300;
}

Trial axpy(std::uint64_t size) {
  const auto all = std::make_shared<Operands>(Operands{random_floats(size, 1), random_floats(size, 2), {}});
  return {[all] {
            all->results = all->y;
            return wye::workloads::axpy(0.75f, all->x, all->results);
          },
          [all] {
            const auto expected = reference::axpy(0.75f, all->x, all->y);
            return largest_error(all->results, expected, [&](std::size_t i) {
              return 0x1p-23 * (std::abs(0.75 * static_cast<double>(all->x[i])) +
                                std::abs(static_cast<double>(all->y[i]))) +
                     1e-300;
            });
          }};
}

Trial dot(std::uint64_t size) {
  const auto all = std::make_shared<Operands>(Operands{random_floats(size, 1), random_floats(size, 2), {}});
  return {[all] {
            all->results = unwritten(1);
            return wye::workloads::dot(all->x, all->y, all->results);
          },
          [all] {
            double absolute = 0;
            for (std::size_t i = 0; i < all->x.size(); ++i)
              absolute += std::abs(static_cast<double>(all->x[i]) * static_cast<double>(all->y[i]));
            return largest_error(
                all->results,
                reference::dot(std::span<const float>(all->x), std::span<const float>(all->y), 1),
                [&](std::size_t) { return sum_bound(all->x.size(), absolute); });
          }};
}

Trial reduce(std::uint64_t size) {
  const auto all = std::make_shared<Operands>(Operands{random_floats(size, 1), {}, {}});
  return {[all] {
            all->results = unwritten(1);
            return wye::workloads::reduce(wye::workloads::Reduction::sum, all->x, all->results);
          },
          [all] {
            double absolute = 0;
            for (const float x : all->x) absolute += std::abs(static_cast<double>(x));
            return largest_error(all->results, reference::sums(std::span<const float>(all->x), 1),
                                 [&](std::size_t) { return sum_bound(all->x.size(), absolute); });
          }};
}

Trial scan(std::uint64_t size) {
  const auto all = std::make_shared<Operands>(Operands{random_floats(size, 1), {}, {}});
  return {[all] {
            all->results = unwritten(all->x.size());
            return wye::workloads::scan(wye::workloads::Scan::inclusive, all->x, all->results);
          },
          [all] {
            double absolute = 0;
            return largest_error(
                all->results,
                reference::scan(wye::workloads::Scan::inclusive, std::span<const float>(all->x), 1),
                [&](std::size_t i) {
                  absolute += std::abs(static_cast<double>(all->x[i]));
                  return sum_bound(i + 1, absolute);
                });
          }};
}

Trial sort(std::uint64_t size) {
  const auto all = std::make_shared<Operands>(Operands{random_floats(size, 1), {}, {}});
  return {[all] {
            all->results = unwritten(all->x.size());
            return wye::workloads::sort(all->x, all->results);
          },
          [all] {
            Floats expected = all->x;
            std::ranges::stable_sort(expected);
            return exact(all->results == expected);
          }};
}

Trial transpose(std::uint64_t size) {
  const auto all = std::make_shared<Operands>(Operands{random_floats(size * size, 1), {}, {}});
  return {[all, size] {
            all->results = unwritten(all->x.size());
            return wye::workloads::transpose(all->x, all->results, size);
          },
          [all, size] {
            return exact(all->results == reference::transpose(std::span<const float>(all->x), size));
          }};
}

Trial softmax(std::uint64_t size) {
  const auto all = std::make_shared<Operands>(Operands{random_floats(size * size, 1), {}, {}});
  return {[all, size] {
            all->results = all->x;
            return wye::workloads::softmax(all->results, size);
          },
          [all, size] {
            return largest_error(all->results, reference::softmax(all->x, size),
                                 [](std::size_t) { return 5e-5; });
          }};
}

Trial normalize(std::uint64_t size) {
  const auto all = std::make_shared<Operands>(Operands{random_floats(size * size, 1), {}, {}});
  return {[all, size] {
            all->results = all->x;
            return wye::workloads::normalize(all->results, size);
          },
          [all, size] {
            return largest_error(all->results, reference::normalize(std::span<const float>(all->x), size),
                                 [](std::size_t) { return 1e-5; });
          }};
}

/// Checks some rows: a whole product in float64 would take longer than the runs.
Trial matmul(std::uint64_t size) {
  const auto all =
      std::make_shared<Operands>(Operands{random_floats(size * size, 1), random_floats(size * size, 2), {}});
  return {[all] {
            all->results = unwritten(all->x.size());
            return wye::workloads::matmul(all->x, all->y, all->results);
          },
          [all, size] {
            constexpr std::uint64_t most_rows = 16;
            if (all->results.size() != size * size) return exact(false);
            double worst = 0;
            std::vector<double> expected(size), absolute(size);
            for (std::uint64_t r = 0; r < std::min(size, most_rows); ++r) {
              const std::uint64_t row = r * size / std::min(size, most_rows);
              std::ranges::fill(expected, 0.0);
              std::ranges::fill(absolute, 0.0);
              for (std::uint64_t k = 0; k < size; ++k)
                for (std::uint64_t column = 0; column < size; ++column) {
                  const double product = static_cast<double>(all->x[row * size + k]) *
                                         static_cast<double>(all->y[k * size + column]);
                  expected[column] += product;
                  absolute[column] += std::abs(product);
                }
              worst = std::max(worst, largest_error(std::span(all->results).subspan(row * size, size),
                                                    expected, [&](std::size_t column) {
                                                      return static_cast<double>(size + 2) * epsilon *
                                                                 absolute[column] +
                                                             1e-300;
                                                    }));
            }
            return worst;
          }};
}

}  // namespace

const std::vector<Workload>& workloads() {
  constexpr std::uint64_t longest = 1ull << 26;  // 256 MiB
  static const std::vector<Workload> all{
      {"axpy", "elements", 1 << 20, longest, axpy},
      {"dot", "elements", 1 << 20, longest, dot},
      {"matmul", "rows and columns", 512, 4096, matmul},
      {"normalize", "rows and columns", 1024, 8192, normalize},
      {"reduce", "elements", 1 << 20, longest, reduce},
      {"scan", "elements", 1 << 20, longest, scan},
      {"softmax", "rows and columns", 1024, 8192, softmax},
      {"sort", "elements", 1 << 20, longest, sort},
      {"transpose", "rows and columns", 1024, 8192, transpose},
  };
  return all;
}

}  // namespace wye_tool
#else
namespace wye_tool {

const std::vector<Workload>& workloads() {
  static const std::vector<Workload> none;
  return none;
}

}  // namespace wye_tool
#endif
