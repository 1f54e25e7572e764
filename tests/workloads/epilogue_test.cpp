// Epilogues of products, and products of float with a transposed a.
#include <wye/workloads/matmul.hpp>

#include <algorithm>
#include <cmath>
#include <random>
#include <type_traits>

#include "workloads/legs.hpp"

using namespace wye;
using namespace wye::test;
namespace reference = wye::workloads::reference;
using workloads::Activation;
using workloads::MatmulEpilogue;
using workloads::MatmulOptions;
using workloads::MatmulShape;

namespace {

constexpr Activation activations[] = {Activation::none, Activation::relu, Activation::gelu,
                                      Activation::gelu_tanh, Activation::silu};

/// An epilogue without its numbers.
struct Ending {
  float scale = 1;
  Activation activation = Activation::none;
  bool bias = false;
  bool residual = false;
};

template <class T>
std::vector<double> doubles(const std::vector<T>& values) {
  std::vector<double> made;
  for (const T value : values) made.push_back(static_cast<float>(value));
  return made;
}
/// Compares a job with the documented bound.
template <class T, class C>
std::string difference_of(MatmulShape shape, const MatmulOptions& options, const Ending& ending,
                          const std::string& leg, std::uint32_t seed = 1) {
  const std::uint64_t one = shape.rows * shape.columns;
  const auto a = of<T>(numbers(options.batch * shape.rows * shape.inner, seed)),
             b = of<T>(numbers(options.batch * shape.inner * shape.columns, seed + 1));
  const auto bias = of<C>(numbers(shape.columns, seed + 2, -2, 2)),
             residual = of<C>(numbers(options.batch * one, seed + 3, -2, 2));
  MatmulEpilogue<C> epilogue{.scale = ending.scale, .activation = ending.activation};
  if (ending.bias) epilogue.bias = bias;
  if (ending.residual) epilogue.residual = residual;
  std::vector<C> c = of<C>(poisoned(options.batch * one));
  run(workloads::matmul(a, b, c, shape, options, epilogue), leg);

  const std::vector<double> product = reference::matmul(a, b, shape, options),
                            sizes = reference::matmul(sizes_of(a), sizes_of(b), shape, options);
  const auto added = ending.bias ? doubles(bias) : std::vector<double>(),
             last = ending.residual ? doubles(residual) : std::vector<double>();
  const std::vector<double> exact =
      reference::matmul_epilogue(product, shape.columns, ending.scale, added, ending.activation, last);
  const double share = static_cast<double>(shape.inner + 2) * (std::is_same_v<T, float> ? 0x1p-24 : 0x1p-23),
               rounding = std::is_same_v<C, half>       ? 0x1p-11
                          : std::is_same_v<C, bfloat16> ? 0x1p-8
                                                        : 0;
  return difference(floats(c), exact, [&](std::size_t i) {
    const double scaled = std::abs(ending.scale) * sizes[i];
    const double sum =
        1.13 * share * scaled + 0x1p-20 * (scaled + (ending.bias ? std::abs(added[i % shape.columns]) : 0) +
                                           (ending.residual ? std::abs(last[i]) : 0));
    return sum + rounding * (std::abs(exact[i]) + sum) + (std::is_same_v<C, half> ? 0x1p-25 : 1e-37);
  });
}

/// Of all types.
void all_are_right(MatmulShape shape, const MatmulOptions& options, const Ending& ending) {
  for (const std::string& leg : legs()) {
    INFO(leg << ", " << options.batch << " of " << shape.rows << " x " << shape.columns << " x "
             << shape.inner << (options.transposed_a ? ", a transposed" : "")
             << (options.transposed_b ? ", b transposed" : "") << ", scale " << ending.scale
             << ", activation " << static_cast<int>(ending.activation) << (ending.bias ? ", bias" : "")
             << (ending.residual ? ", residual" : ""));
    CHECK(difference_of<float, float>(shape, options, ending, leg) == "");
    CHECK(difference_of<half, float>(shape, options, ending, leg) == "");
    CHECK(difference_of<half, half>(shape, options, ending, leg) == "");
    CHECK(difference_of<bfloat16, float>(shape, options, ending, leg) == "");
    CHECK(difference_of<bfloat16, bfloat16>(shape, options, ending, leg) == "");
  }
}

/// The activation of each of `x`, and a product of each with 1.
std::vector<float> activated(const std::vector<float>& x, Activation activation, const std::string& leg) {
  const std::vector<float> one{1.0f};
  std::vector<float> c = poisoned(x.size());
  run(workloads::matmul(x, one, c, {x.size(), 1, 1}, {}, {.activation = activation}), leg);
  return c;
}

}  // namespace

TEST_CASE("matmul scales, adds a bias, activates and adds a residual", "[workloads][epilogue]") {
  for (const Activation activation : activations)
    for (const int added : {0, 1, 2, 3}) {
      const Ending ending{.scale = added == 1 ? 1.0f : -0.37f,
                          .activation = activation,
                          .bias = (added & 1) != 0,
                          .residual = (added & 2) != 0};
      all_are_right({16, 24, 32}, {}, ending);  // rows of multiples of 16 bytes
      all_are_right({33, 67, 21}, {}, ending);
    }
  all_are_right({130, 9, 31}, {}, {.scale = 0.5f});
}

TEST_CASE("matmul applies epilogues to batches and transposed matrices", "[workloads][epilogue]") {
  const Ending ending{.scale = 0.5f, .activation = Activation::gelu_tanh, .bias = true};
  const Ending added{.scale = 0.5f, .bias = true, .residual = true};
  for (const bool transposed_a : {false, true})
    for (const bool transposed_b : {false, true}) {
      const MatmulOptions options{.transposed_a = transposed_a, .transposed_b = transposed_b, .batch = 3};
      all_are_right({8, 16, 24}, options, ending);
      all_are_right({8, 16, 24}, options, added);
      all_are_right({7, 5, 9}, options, {.activation = Activation::silu, .bias = true, .residual = true});
    }
}

TEST_CASE("matmul applies an epilogue once, after the last stretch of the inner dimension",
          "[workloads][epilogue][large]") {
  all_are_right({3, 8, 32776}, {}, {.scale = 0.01f, .activation = Activation::gelu, .bias = true});
  for (const std::string& leg : legs()) {
    INFO(leg);
    const MatmulShape two{3, 8, 32776}, three{2, 3, 66000};
    const Ending biased{.scale = 0.01f, .activation = Activation::relu, .bias = true},
        added{.scale = 0.01f, .residual = true};
    CHECK(difference_of<float, float>(two, {}, biased, leg) == "");
    CHECK(difference_of<float, float>(three, {.transposed_a = true}, added, leg) == "");
    CHECK(difference_of<half, half>(three, {.transposed_a = true}, added, leg) == "");
  }
}

TEST_CASE("an epilogue of an empty inner dimension has the bias and the residual", "[workloads][epilogue]") {
  for (const MatmulShape& shape : {MatmulShape{3, 8, 0}, {0, 8, 4}, {3, 0, 4}, {0, 0, 0}})
    all_are_right(shape, {}, {.activation = Activation::silu, .bias = true, .residual = true});
}

TEST_CASE("matmul of float is right with a or b transposed, in random shapes with epilogues",
          "[workloads][epilogue]") {
  for (const std::string& leg : legs()) {
    std::mt19937 random(2026);
    const auto below = [&](std::uint32_t limit) { return static_cast<std::uint32_t>(random() % limit); };
    for (int i = 0; i < (leg == "cpu" ? 400 : 40); ++i) {
      const MatmulShape shape{1 + below(i % 10 == 0 ? 300 : 40), 1 + below(i % 7 == 0 ? 300 : 40), below(70)};
      const MatmulOptions options{.transposed_a = below(2) != 0, .transposed_b = below(2) != 0};
      const Ending ending{.scale = static_cast<float>(below(5)) - 2,
                          .activation = activations[below(5)],
                          .bias = below(2) != 0,
                          .residual = below(2) != 0};
      INFO(leg << ", shape " << i << ": " << shape.rows << " x " << shape.columns << " x " << shape.inner);
      CHECK(difference_of<float, float>(shape, options, ending, leg, static_cast<std::uint32_t>(random())) ==
            "");
    }
  }
  // More than one block, and stretches of the block's packed part.
  for (const std::string& leg : legs())
    CHECK(difference_of<float, float>({300, 280, 600}, {.transposed_a = true}, {}, leg) == "");
}

TEST_CASE("activations are within their bound everywhere, and defined for NaN and infinities",
          "[workloads][epilogue]") {
  std::vector<float> x;
  for (int i = -4000; i <= 4000; ++i) x.push_back(static_cast<float>(i) / 150);
  for (const float large : {88.0f, 104.0f, 1e4f, 1e20f, 3e38f}) x.push_back(large), x.push_back(-large);
  const std::vector<double> wide(x.begin(), x.end());
  for (const std::string& leg : legs())
    for (const Activation activation : activations) {
      INFO(leg << ", activation " << static_cast<int>(activation));
      const auto exact = reference::matmul_epilogue(wide, 1, 1, {}, activation, {});
      CHECK(difference(activated(x, activation, leg), exact,
                       [&](std::size_t i) { return 0x1p-20 * std::abs(wide[i]) + 1e-37; }) == "");
      const std::vector<float> special = activated({undefined, infinity, -infinity, 0.0f}, activation, leg);
      CHECK(std::isnan(special[0]));
      CHECK(special[1] == infinity);
      CHECK(special[2] == (activation == Activation::none ? -infinity : 0.0f));
      CHECK(special[3] == 0.0f);
    }
}

TEST_CASE("matmul refuses epilogues that do not fit", "[workloads][epilogue]") {
  std::vector<float> a(6), b(12), c(8), numbers(9);
  const auto refused = [&](const MatmulEpilogue<float>& epilogue) {
    return refusal(workloads::matmul(a, b, c, {2, 4, 3}, {}, epilogue));
  };
  CHECK(refused({.bias = std::span(numbers).first(4), .residual = std::span(numbers).first(8)}) ==
        "not refused");
  CHECK(refused({.bias = std::span(numbers).first(2)}) ==
        "Bias (2 elements) of workload 'matmul' does not have the columns of c (4).");
  CHECK(refused({.residual = numbers}) ==
        "Residual (9 elements) of workload 'matmul' does not have the elements of c (8).");
  CHECK(refused({.activation = static_cast<Activation>(5)}) ==
        "Activation (5) of workload 'matmul' is above the last (4).");
}
