#pragma once
/// Products that a test computes by one text of a kernel on Vulkan.
#include <wye/workloads/matmul.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "steps.hpp"
#include "variants.hpp"
#include "workloads/vectors.hpp"

namespace wye::test {

struct CaseEpilogue {
  float scale = 1;
  workloads::Activation activation = workloads::Activation::none;
  bool bias = false;
  bool residual = false;
};

/// A product over stretches of the inner dimension.
struct ProductCase {
  workloads::MatmulShape shape;
  workloads::MatmulOptions options = {};
  CaseEpilogue ending = {};
  std::uint32_t stretch = 32768;
  bool special = false;  // many zeros, infinities and NaN

  std::uint64_t size(std::uint64_t one, std::optional<std::uint64_t> step) const {
    return (options.batch - 1) * step.value_or(one) + one;
  }
  std::uint64_t a_size() const { return size(shape.rows * shape.inner, options.a_step); }
  std::uint64_t b_size() const { return size(shape.inner * shape.columns, options.b_step); }
  std::uint64_t c_size() const { return size(shape.rows * shape.columns, options.c_step); }
};

inline std::string description(const ProductCase& c) {
  return std::to_string(c.options.batch) + " of " + std::to_string(c.shape.rows) + " x " +
         std::to_string(c.shape.columns) + " x " + std::to_string(c.shape.inner) +
         (c.options.transposed_a ? ", a transposed" : "") + (c.options.transposed_b ? ", b transposed" : "") +
         ", stretches of " + std::to_string(c.stretch) + ", activation " +
         std::to_string(static_cast<int>(c.ending.activation)) + (c.ending.bias ? ", bias" : "") +
         (c.ending.residual ? ", residual" : "");
}

/// Shapes at and around the sizes of tiles, with each matrix as it is and transposed.
inline std::vector<ProductCase> cases_of_shapes() {
  std::vector<ProductCase> cases;
  for (const workloads::MatmulShape& shape : {workloads::MatmulShape{1, 1, 1},
                                              {16, 8, 16},
                                              {64, 64, 32},
                                              {128, 128, 32},
                                              {130, 20, 31},
                                              {33, 67, 65},
                                              {5, 260, 17},
                                              {260, 9, 40},
                                              {260, 9, 100},
                                              {3, 5, 0},
                                              {0, 4, 5},
                                              {3, 0, 5},
                                              {0, 0, 0}})
    for (const bool transposed_a : {false, true})
      for (const bool transposed_b : {false, true})
        cases.push_back({shape, {.transposed_a = transposed_a, .transposed_b = transposed_b}});
  return cases;
}

/// Batches, several stretches and epilogues.
inline std::vector<ProductCase> cases_of_options() {
  using workloads::Activation;
  const workloads::MatmulShape shape{7, 10, 12};
  std::vector<ProductCase> cases{
      {shape, {.batch = 3}},
      {shape, {.transposed_b = true, .batch = 4, .a_step = 0}},
      {shape, {.batch = 3, .a_step = 100, .b_step = 0, .c_step = 83}},
      {shape, {.batch = 3, .a_step = 101, .b_step = 0, .c_step = 83}},
      {shape, {.transposed_a = true, .batch = 3, .a_step = 90, .b_step = 0, .c_step = 70}},
      {shape, {.transposed_a = true, .batch = 3, .a_step = 91, .b_step = 0, .c_step = 70}},
      {{140, 9, 300}, {.batch = 2}, {.scale = 0.5f, .bias = true}, 100},
      {{140, 9, 300}, {.batch = 2}, {.scale = 0.5f, .bias = true}, 101},
      {{9, 140, 61}, {.transposed_b = true, .batch = 2}, {.residual = true}, 30},
      {{5, 6, 50}, {.transposed_a = true}, {.activation = Activation::gelu}, 13},
      {{3, 8, 0}, {}, {1, Activation::silu, true, true}}};
  for (const Activation activation :
       {Activation::relu, Activation::gelu, Activation::gelu_tanh, Activation::silu})
    cases.push_back({{33, 67, 21}, {}, {-0.37f, activation, true, true}});
  return cases;
}

/// Zeros, infinities and NaN.
inline std::vector<ProductCase> cases_of_special_numbers() {
  std::vector<ProductCase> cases;
  for (const std::uint64_t inner : {3u, 16u, 17u})
    for (const bool transposed : {false, true})
      cases.push_back({{70, 67, inner},
                       {.transposed_a = transposed, .transposed_b = !transposed},
                       {.bias = transposed},
                       8,
                       true});
  return cases;
}

template <class T>
std::vector<T> factors(std::uint64_t count, std::uint32_t seed, bool special) {
  return special ? equal_elements<T>(count, seed) : elements<T>(count, seed);
}

/// Runs the kernels of a text on Vulkan over all stretches: `set` for the first one, `add` for
/// others. Returns c, which is poisoned before.
template <class T, class C, class Set, class Add>
std::vector<C> run_product(const ProductCase& given, const Set& set, const Add& add) {
  const std::vector<T> a = factors<T>(given.a_size(), 1, given.special),
                       b = factors<T>(given.b_size(), 2, given.special);
  using Extra = std::conditional_t<std::is_integral_v<C>, float, C>;
  const std::vector<Extra> bias = elements<Extra>(given.ending.bias ? given.shape.columns : 0, 3),
                           residual = elements<Extra>(given.ending.residual ? given.c_size() : 0, 4);
  std::vector<C> c = poison<C>(given.c_size());
  const workloads::MatmulShape& shape = given.shape;
  workloads::Product product{.rows = static_cast<std::uint32_t>(shape.rows),
                             .columns = static_cast<std::uint32_t>(shape.columns),
                             .inner = static_cast<std::uint32_t>(shape.inner),
                             .transposed_a = given.options.transposed_a,
                             .transposed_b = given.options.transposed_b,
                             .batch = static_cast<std::uint32_t>(given.options.batch),
                             .activation = given.ending.activation,
                             .scale = given.ending.scale,
                             .a_step = given.options.a_step.value_or(shape.rows * shape.inner),
                             .b_step = given.options.b_step.value_or(shape.inner * shape.columns),
                             .c_step = given.options.c_step.value_or(shape.rows * shape.columns)};
  const Extent3 items = workloads::flat(workloads::blocks_of(product) * workloads::items_per_block);
  const auto advance = [&] {
    product.first = product.last;
    product.last += std::min(given.stretch, product.inner - product.last);
  };
  if constexpr (sizeof(C) == 2) {
    // The sums of the stretches before the last are any numbers.
    std::vector<float> sums;
    if (product.inner > given.stretch) {
      sums = numbers(c.size(), 5);
      product.first = given.stretch;
    }
    product.last = product.inner;
    run(set(a, b, bias, residual, sums, c, product).over(items), "vulkan");
  } else {
    const auto call = [&](const auto& kernel, auto&& to) {
      if constexpr (std::is_integral_v<C>)
        run(kernel(a, b, to, product).over(items), "vulkan");
      else
        run(kernel(a, b, bias, residual, to, product).over(items), "vulkan");
    };
    do {
      advance();
      if (product.first == 0 && !given.options.c_step)
        call(set, c);
      else
        call(add, c);
    } while (product.last < product.inner);
  }
  return c;
}

}  // namespace wye::test
