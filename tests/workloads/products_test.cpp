// Products of other numbers than float32, and many at a time.
#include <wye/workloads/matmul.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <type_traits>

#include "matmul_kernels.hpp"
#include "steps.hpp"
#include "support/skip.hpp"
#include "variants.hpp"
#include "workloads/legs.hpp"

using namespace wye;
using namespace wye::test;
namespace reference = wye::workloads::reference;
using workloads::MatmulOptions;
using workloads::MatmulShape;

namespace {

template <class T>
std::vector<T> some(std::size_t count, std::uint32_t seed) {
  return of<T>(numbers(count, seed));
}
template <>
std::vector<std::int8_t> some(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::int8_t> made(count);
  for (std::int8_t& number : made) number = static_cast<std::int8_t>(random() >> 24);
  return made;
}

/// The documented bounds: of the product, then of the rounding of c.
template <class T, class C>
struct Bounds {
  double product = std::is_same_v<T, float> ? 0x1p-10 + 0x1p-22 : 0;  // TF32
  double relative = std::is_same_v<C, half> ? 0x1p-11 : std::is_same_v<C, bfloat16> ? 0x1p-8 : 0;
  double absolute = std::is_same_v<C, half> ? 0x1p-25 : 1e-37;
};

template <class T>
struct Problem {
  MatmulShape shape;
  MatmulOptions options;
  std::vector<T> a, b;
};

template <class T>
Problem<T> problem(MatmulShape shape, MatmulOptions options = {}) {
  const auto size = [&](std::uint64_t one, std::optional<std::uint64_t> step) {
    return (options.batch - 1) * step.value_or(one) + one;
  };
  return {shape, options, some<T>(size(shape.rows * shape.inner, options.a_step), 1),
          some<T>(size(shape.inner * shape.columns, options.b_step), 2)};
}

std::uint64_t size_of_c(MatmulShape shape, const MatmulOptions& options) {
  const std::uint64_t one = shape.rows * shape.columns;
  return (options.batch - 1) * options.c_step.value_or(one) + one;
}

template <class T, class C>
std::string difference_of(const Problem<T>& p, const std::vector<C>& c) {
  const std::vector<double> exact = reference::matmul(p.a, p.b, p.shape, p.options),
                            sizes = reference::matmul(sizes_of(p.a), sizes_of(p.b), p.shape, p.options);
  const Bounds<T, C> bounds;
  // Between the matrices nothing is written.
  std::vector<float> got = floats(c);
  const std::uint64_t one = p.shape.rows * p.shape.columns, step = p.options.c_step.value_or(one);
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (step == one || i % step < one) continue;
    if (got[i] != static_cast<float>(C(-54321.0f)))
      return "something between the matrices at " + std::to_string(i);
    got[i] = 0;
  }
  return difference(got, exact, [&](std::size_t i) {
    const double sum = (static_cast<double>(p.shape.inner + 2) * 0x1p-23 + bounds.product) * sizes[i];
    return sum + bounds.relative * (std::abs(exact[i]) + sum) + bounds.absolute;
  });
}

template <class T, class C>
std::string difference_of(const Problem<T>& p, const std::string& leg) {
  std::vector<C> c = of<C>(poisoned(size_of_c(p.shape, p.options)));
  run(workloads::matmul(p.a, p.b, c, p.shape, p.options), leg);
  return difference_of<T, C>(p, c);
}

std::string difference_of(const Problem<std::int8_t>& p, const std::string& leg) {
  std::vector<std::int32_t> c(size_of_c(p.shape, p.options), -54321);
  run(workloads::matmul(p.a, p.b, c, p.shape, p.options), leg);
  std::vector<std::int64_t> exact = reference::matmul(p.a, p.b, p.shape, p.options);
  const std::uint64_t one = p.shape.rows * p.shape.columns, step = p.options.c_step.value_or(one);
  for (std::size_t i = 0; i < c.size(); ++i) {
    if (step != one && i % step >= one) exact[i] = -54321;
    if (c[i] != static_cast<std::int32_t>(static_cast<std::uint32_t>(exact[i])))
      return std::to_string(c[i]) + " instead of " + std::to_string(exact[i]) + " at " + std::to_string(i);
  }
  return "";
}

/// Of every kind of number.
void all_are_right(MatmulShape shape, MatmulOptions options = {}) {
  for (const std::string& leg : legs()) {
    INFO(leg << ", " << options.batch << " of " << shape.rows << " x " << shape.columns << " x "
             << shape.inner << (options.transposed_a ? ", a transposed" : "")
             << (options.transposed_b ? ", b transposed" : ""));
    CHECK(difference_of<half, float>(problem<half>(shape, options), leg) == "");
    CHECK(difference_of<bfloat16, float>(problem<bfloat16>(shape, options), leg) == "");
    CHECK(difference_of(problem<std::int8_t>(shape, options), leg) == "");
    options.tf32 = true;
    CHECK(difference_of<float, float>(problem<float>(shape, options), leg) == "");
    options.tf32 = false;
    if (options.batch > 1) CHECK(difference_of<float, float>(problem<float>(shape, options), leg) == "");
    if (options.c_step) continue;
    CHECK(difference_of<half, half>(problem<half>(shape, options), leg) == "");
    CHECK(difference_of<bfloat16, bfloat16>(problem<bfloat16>(shape, options), leg) == "");
  }
}

/// The CUDA kernels that use no tensor cores, whichever the workload takes.
template <class T>
struct PlainKernels {
  static const workloads::KernelText& text() {
    return std::is_same_v<T, half> ? workloads::kernels::matmul_half_plain
                                   : workloads::kernels::matmul_bfloat16_plain;
  }
  workloads::ProductKernel<T, Write<float>> set =
      workloads::make_product_kernel<T, Write<float>>(text()).value();
  workloads::ProductKernel<T, ReadWrite<float>> add =
      workloads::make_product_kernel<T, ReadWrite<float>>(text()).value();
  workloads::ProductKernel<T, Write<T>> rounded =
      workloads::make_product_kernel<T, Write<T>>(std::is_same_v<T, half>
                                                      ? workloads::kernels::matmul_half_rounded_plain
                                                      : workloads::kernels::matmul_bfloat16_rounded_plain)
          .value();

  static workloads::Product product_of(MatmulShape shape, const MatmulOptions& options) {
    return {.rows = static_cast<std::uint32_t>(shape.rows),
            .columns = static_cast<std::uint32_t>(shape.columns),
            .inner = static_cast<std::uint32_t>(shape.inner),
            .last = static_cast<std::uint32_t>(shape.inner),
            .transposed_a = options.transposed_a,
            .transposed_b = options.transposed_b,
            .batch = static_cast<std::uint32_t>(options.batch),
            .a_step = options.a_step.value_or(shape.rows * shape.inner),
            .b_step = options.b_step.value_or(shape.inner * shape.columns),
            .c_step = options.c_step.value_or(shape.rows * shape.columns)};
  }
  static Extent3 items_of(const workloads::Product& product) {
    return workloads::flat(workloads::blocks_of(product) * workloads::items_per_block);
  }

  /// Runs the kernel that rounds.
  void run(Read<T> a, Read<T> b, std::span<T> c, MatmulShape shape, const MatmulOptions& options) const {
    const workloads::Product product = product_of(shape, options);
    const std::span<const T> none;
    test::run(rounded(a, b, none, none, std::span<const float>(), c, product).over(items_of(product)),
              "cuda");
  }
  /// Runs the others over `stretch` of the inner dimension at a time.
  void run(Read<T> a, Read<T> b, std::span<float> c, MatmulShape shape, const MatmulOptions& options,
           std::uint64_t stretch = 16384) const {
    workloads::Product product = product_of(shape, options);
    product.last = 0;
    const std::span<const float> none;
    const Extent3 items = items_of(product);
    do {
      product.first = product.last;
      product.last = static_cast<std::uint32_t>(std::min(product.last + stretch, shape.inner));
      if (product.first == 0 && !options.c_step)
        test::run(set(a, b, none, none, c, product).over(items), "cuda");
      else
        test::run(add(a, b, none, none, c, product).over(items), "cuda");
    } while (product.last < shape.inner);
  }
};

template <class T>
std::string plain_product_difference(MatmulShape shape, MatmulOptions options = {},
                                     std::uint64_t stretch = 16384) {
  const Problem<T> p = problem<T>(shape, options);
  std::vector<float> c = poisoned(size_of_c(shape, options));
  PlainKernels<T>().run(p.a, p.b, c, shape, options, stretch);
  return difference_of<T, float>(p, c);
}
template <class T>
std::string plain_rounded_difference(MatmulShape shape, MatmulOptions options) {
  const Problem<T> p = problem<T>(shape, options);
  std::vector<T> c = of<T>(poisoned(size_of_c(shape, options)));
  PlainKernels<T>().run(p.a, p.b, std::span(c), shape, options);
  return difference_of<T, T>(p, c);
}

/// Of both kinds of 16 bits.
void plain_products_are_right(MatmulShape shape, MatmulOptions options = {}, std::uint64_t stretch = 16384) {
  INFO(options.batch << " of " << shape.rows << " x " << shape.columns << " x " << shape.inner
                     << (options.transposed_a ? ", a transposed" : "")
                     << (options.transposed_b ? ", b transposed, " : ", ") << stretch << " at a time");
  CHECK(plain_product_difference<half>(shape, options, stretch) == "");
  CHECK(plain_product_difference<bfloat16>(shape, options, stretch) == "");
  if (options.c_step) return;
  CHECK(plain_rounded_difference<half>(shape, options) == "");
  CHECK(plain_rounded_difference<bfloat16>(shape, options) == "");
}

}  // namespace

TEST_CASE("matmul multiplies numbers of 16 and 8 bits and in TF32, in any shape", "[workloads][products]") {
  for (const MatmulShape& shape : {MatmulShape{1, 1, 1}, {16, 8, 16}, {130, 20, 31}, {33, 67, 65}})
    all_are_right(shape);
  for (const MatmulShape& shape : {MatmulShape{5, 1, 7}, {17, 9, 33}, {9, 260, 40}, {3, 70, 64}})
    all_are_right(shape, {.transposed_b = true});
  for (const MatmulShape& shape : {MatmulShape{1, 5, 7}, {9, 17, 33}, {260, 9, 40}, {70, 3, 64}})
    all_are_right(shape, {.transposed_a = true});
  for (const MatmulShape& shape : {MatmulShape{6, 7, 5}, {136, 24, 48}, {130, 140, 19}})
    all_are_right(shape, {.transposed_a = true, .transposed_b = true});
}

TEST_CASE("matmul of other types writes zeros if the inner dimension is zero", "[workloads][products]") {
  for (const MatmulShape& shape : {MatmulShape{3, 5, 0}, {0, 4, 5}, {3, 0, 5}, {0, 0, 0}})
    all_are_right(shape);
}

TEST_CASE("matmul makes batches, with matrices apart and one for all", "[workloads][products]") {
  const MatmulShape shape{7, 10, 12};
  all_are_right(shape, {.batch = 3});
  all_are_right(shape, {.transposed_b = true, .batch = 4, .a_step = 0});
  all_are_right(shape, {.batch = 3, .a_step = 100, .b_step = 0, .c_step = 83});
  all_are_right(shape, {.transposed_a = true, .batch = 3, .a_step = 90, .b_step = 0, .c_step = 70});
  all_are_right({1, 1, 3}, {.batch = 9});
}

TEST_CASE("matmul of other numbers is right beyond one stretch of the inner dimension",
          "[workloads][products]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    CHECK(difference_of<half, half>(problem<half>({2, 3, 32768}), leg) == "");
    CHECK(difference_of<half, half>(problem<half>({5, 7, 33000}), leg) == "");
    CHECK(difference_of<bfloat16, bfloat16>(problem<bfloat16>({3, 5, 32769}), leg) == "");
    CHECK(difference_of(problem<std::int8_t>({3, 2, 33001}, {.transposed_b = true}), leg) == "");
    CHECK(difference_of<half, half>(problem<half>({2, 3, 33000}, {.transposed_a = true}), leg) == "");
  }
}

TEST_CASE("matmul takes and writes parts of arrays of 16 bits wherever they begin", "[workloads][products]") {
  const MatmulShape shape{5, 7, 9};
  const Problem<half> p = problem<half>(shape);
  const std::vector<double> exact = reference::matmul(p.a, p.b, shape);
  for (const std::string& leg : legs())
    for (std::size_t begin : {0u, 1u, 2u, 3u}) {
      INFO(leg << ", from " << begin);
      Array<half> a = the_runtime().array<half>(60), b = the_runtime().array<half>(80),
                  c = the_runtime().array(std::vector<half>(50, half(77.0f)));
      std::copy(p.a.begin(), p.a.end(), a.write().value().begin() + begin);
      std::copy(p.b.begin(), p.b.end(), b.write().value().begin() + begin);
      run(workloads::matmul(Read<half>(a).slice(begin, 45), Read<half>(b).slice(begin, 63),
                            Write<half>(c).slice(begin, 35), shape),
          leg);
      const auto view = c.read().value();
      std::vector<float> got;
      std::size_t others = 0;
      for (std::size_t i = 0; i < view.size(); ++i) {
        const auto value = static_cast<float>(view.begin()[i]);
        if (i >= begin && i < begin + 35)
          got.push_back(value);
        else
          others += value != 77.0f;
      }
      CHECK(others == 0);
      CHECK(difference(got, exact, [&](std::size_t i) { return 0x1p-10 * (std::abs(exact[i]) + 1); }) == "");
    }
}

TEST_CASE("matmul of half propagates NaN and infinities, and respects subnormals", "[workloads][products]") {
  const half least = half::from_bits(1), large = half(60000.0f), huge = half(infinity),
             none = half(undefined);
  // The products of numbers below 2^-14, which vanish in sums of half.
  const Problem<half> p{{3, 2, 3},
                        {},
                        {least, least, half(0.0f), huge, half(1.0f), half(0.0f), large, large, half(1.0f)},
                        {half(3.0f), none, half(1024.0f), half(1.0f), half(2.0f), half(-1.0f)}};
  for (const std::string& leg : legs()) {
    INFO(leg);
    CHECK(difference_of<half, float>(p, leg) == "");
    // Beyond 65504 there is infinity.
    const std::vector<half> a{large, large, half(-60000.0f), half(1.0f)}, b{half(1.0f), half(0.125f)};
    std::vector<half> c(2);
    run(workloads::matmul(a, b, c, {2, 1, 2}), leg);
    CHECK(static_cast<float>(c[0]) == infinity);
    CHECK(static_cast<float>(c[1]) == -60000.0f);
  }
}

TEST_CASE("matmul rounds to 16 bits as the host does", "[workloads][products]") {
  /// Counts wrong bits of a column times a row: one product each, without rounding in float.
  /// Further products are zero.
  const auto wrong = [](const auto& column, const auto& row, std::size_t inner, float least,
                        const std::string& leg) {
    using T = std::decay_t<decltype(row[0])>;
    std::vector<T> a(column.size() * inner), b(inner * row.size()), c(column.size() * row.size());
    for (std::size_t i = 0; i < column.size(); ++i) a[i * inner] = column[i];
    std::copy(row.begin(), row.end(), b.begin());
    run(workloads::matmul(a, b, c, {column.size(), row.size(), inner}), leg);
    std::size_t count = 0;
    for (std::size_t i = 0; i < column.size(); ++i)
      for (std::size_t j = 0; j < row.size(); ++j)
        if (const T exact(static_cast<float>(column[i]) * static_cast<float>(row[j]));
            std::abs(static_cast<float>(exact)) >= least && c[i * row.size() + j].bits != exact.bits)
          ++count;
    return count;
  };
  for (const std::string& leg : legs())
    for (const std::uint32_t inner : {1u, 32769u}) {  // one stretch, and two
      INFO(leg << ", " << inner);
      const std::uint32_t apart = inner == 1 ? 1 : 8;
      std::vector<bfloat16> a;
      for (std::uint32_t bits = 0x0400; bits < 0x7f00; bits += 517 * apart)
        a.push_back(bfloat16::from_bits(static_cast<std::uint16_t>(bits)));
      std::vector<half> left;
      for (std::uint32_t bits = 0; bits < 0x7c00; bits += 173 * apart)
        left.push_back(half::from_bits(static_cast<std::uint16_t>(bits)));
      CHECK(wrong(a, std::vector{bfloat16(1.0f), bfloat16(1.00390625f), bfloat16(-0x1p-8f)}, inner, 1e-37f,
                  leg) == 0);
      CHECK(wrong(left, std::vector{half(1.0f), half(1.00390625f), half(0x1p-9f)}, inner, 0.0f, leg) == 0);
    }
}

TEST_CASE("sums of bytes that int32 does not have wrap around", "[workloads][products]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    // The first sum that int32 does not have is that of 131,072 largest products; these are four
    // more.
    const std::uint64_t inner = 131076;
    const std::vector<std::int8_t> least(inner, std::int8_t{-128});
    std::vector<std::int32_t> c(1);
    run(workloads::matmul(least, least, c, {1, 1, inner}), leg);
    CHECK(c[0] == static_cast<std::int32_t>(static_cast<std::uint32_t>(inner << 14)));
  }
}

TEST_CASE("TF32 is used only if it is allowed, and NaN stays NaN in it", "[workloads][products]") {
  // 1 + 2^-12 needs one bit more than TF32 has.
  const std::vector<float> a{1.0f + 0x1p-12f}, b{1.0f};
  const std::vector<float> nan{std::bit_cast<float>(0x7fff'ffffu), std::bit_cast<float>(0x7f80'0001u)},
      one{1.0f};
  for (const std::string& leg : legs()) {
    INFO(leg);
    std::vector<float> c(1), d(2);
    run(workloads::matmul(a, b, c, {1, 1, 1}, {.tf32 = false}), leg);
    CHECK(c[0] == a[0]);
    run(workloads::matmul(nan, one, d, {2, 1, 1}, {.tf32 = true}), leg);
    CHECK(std::isnan(d[0]));
    CHECK(std::isnan(d[1]));
  }
}

TEST_CASE("matmul refuses batches that cannot be", "[workloads][products]") {
  std::vector<half> a(12), b(12), c(8);
  std::vector<float> d(8);
  const auto refused = [&](MatmulShape shape, const MatmulOptions& options) {
    return refusal(workloads::matmul(a, b, d, shape, options));
  };
  CHECK(refused({2, 2, 3}, {.batch = 2}) == "not refused");
  CHECK(refused({2, 2, 3}, {.batch = 0}) == "Batch (0) of workload 'matmul' is below the minimum (1).");
  CHECK(refused({}, {.batch = 2}) ==
        "Batch (2) of workload 'matmul' has no shape, which is required above (1).");
  CHECK(refused({2, 2, 3}, {.batch = 3}) == "Matrix a (12 elements) of workload 'matmul' is not 3 of 2 x 3.");
  CHECK(refused({2, 2, 3}, {.batch = 2, .b_step = 7}) ==
        "Matrix b (12 elements) of workload 'matmul' is not 2 of 3 x 2, 7 apart.");
  CHECK(refused({2, 2, 3}, {.batch = 2, .c_step = 3}) ==
        "Matrices c of workload 'matmul' overlap: their step (3) is below their size (4).");
  CHECK(refusal(workloads::matmul(a, b, c, {2, 1, 3}, {.batch = 2, .b_step = 3, .c_step = 6})) ==
        "Matrices c of 16 bits of workload 'matmul' are not contiguous: their step (6) is not their "
        "size (2).");
  std::vector<float> one(1), none;
  CHECK(refusal(workloads::matmul(one, one, one, {1, 1, 1},
                                  {.batch = std::uint64_t{1} << 40, .a_step = 0, .b_step = 0})) ==
        "Matrix c (1 elements) of workload 'matmul' is not 1099511627776 of 1 x 1.");
}

TEST_CASE("one thread multiplies all blocks in one call, with the bits of several threads",
          "[workloads][products]") {
  if (!has_leg("cpu")) return;
  Runtime alone = Runtime::open({.pool = {.backends = {"cpu"}, .cpu_threads = 1}}).value();
  const auto check = [&]<class T, class C>(MatmulShape shape, T, C) {
    INFO(shape.rows << " x " << shape.columns << " x " << shape.inner << ", " << sizeof(T) << " and "
                    << sizeof(C) << " bytes");
    const Problem<T> p = problem<T>(shape);
    std::vector<C> of_several(shape.rows * shape.columns), of_one(of_several.size());
    run(workloads::matmul(p.a, p.b, of_several, shape), "cpu");
    REQUIRE(alone.run(workloads::matmul(p.a, p.b, of_one, shape)));
    CHECK(std::memcmp(of_several.data(), of_one.data(), of_one.size() * sizeof(C)) == 0);
  };
  for (const MatmulShape& shape : {MatmulShape{512, 256, 3}, {300, 257, 20}, {1030, 520, 9}}) {
    check(shape, half(), half());
    check(shape, bfloat16(), bfloat16());
    check(shape, half(), float());
    check(shape, float(), float());
    check(shape, std::int8_t(), std::int32_t());
  }
}

TEST_CASE("small products on several threads at once do not disturb each other", "[workloads][products]") {
  for (const std::string& leg : legs())
    for (int round = 0; round < 20; ++round)
      CHECK(difference_of<float, float>(problem<float>({2, 3, 5}, {.batch = 64}), leg) == "");
}

TEST_CASE("without cuBLAS, products of 16 bits are autotuned with and without tensor cores",
          "[workloads][products]") {
  if (!has_leg("cuda")) return;
  if (workloads::matmul_on_cuda() == "cuBLAS") return test::skip("there is cuBLAS");
  const MatmulShape shape{130, 70, 45};
  const auto a = of<half>(numbers(130 * 45, 5)), b = of<half>(numbers(45 * 70, 6));
  const auto exact = workloads::reference::matmul(a, b, shape);
  std::string reason;
  for (int i = 0; i < 7; ++i) {
    std::vector<float> c = poisoned(exact.size());
    reason = run(workloads::matmul(a, b, c, shape), "cuda").reason();
    CHECK(difference(c, exact, [&](std::size_t) { return 47 * 0x1p-23 * 45; }) == "");
  }
  INFO(reason);
  CHECK(reason.find("was selected from 2 variants: minimum times are 'matmul_half' ") != std::string::npos);
  CHECK(reason.find("'matmul_half_plain' ") != std::string::npos);
}

TEST_CASE("without tensor cores CUDA's kernels multiply 16 bits in any shape", "[workloads][products]") {
  if (!has_leg("cuda")) return;
  for (const MatmulShape& shape : {MatmulShape{1, 1, 1},
                                   {16, 8, 16},
                                   {130, 20, 31},
                                   {33, 67, 65},
                                   {5, 260, 7},
                                   {129, 132, 20},
                                   {3, 5, 0},
                                   {0, 4, 5},
                                   {3, 0, 5},
                                   {0, 0, 0}}) {
    plain_products_are_right(shape);
    plain_products_are_right(shape, {.transposed_b = true});
    plain_products_are_right(shape, {.transposed_a = true});
  }
}

TEST_CASE("without tensor cores CUDA's kernels multiply batches of 16 bits, a stretch at a time",
          "[workloads][products]") {
  if (!has_leg("cuda")) return;
  const MatmulShape shape{7, 10, 12};
  plain_products_are_right(shape, {.batch = 3});
  plain_products_are_right(shape, {.transposed_b = true, .batch = 4, .a_step = 0});
  plain_products_are_right(shape, {.batch = 3, .a_step = 100, .b_step = 0, .c_step = 83});
  plain_products_are_right({140, 9, 300}, {.batch = 2}, 100);
  plain_products_are_right({9, 140, 61}, {.transposed_b = true, .batch = 2, .c_step = 1261}, 30);
  plain_products_are_right({5, 6, 50}, {}, 13);
}

TEST_CASE("without tensor cores CUDA's kernels take 16 bits wherever they begin", "[workloads][products]") {
  if (!has_leg("cuda")) return;
  for (const bool transposed : {false, true})
    for (const MatmulShape& shape : {MatmulShape{5, 7, 9}, {6, 12, 8}}) {
      const Problem<half> p = problem<half>(shape, {.transposed_b = transposed});
      for (std::size_t begin : {0u, 1u, 2u, 3u, 4u}) {
        INFO("from " << begin << (transposed ? ", transposed" : ""));
        Array<half> a = the_runtime().array<half>(60), b = the_runtime().array<half>(110);
        std::copy(p.a.begin(), p.a.end(), a.write().value().begin() + begin);
        std::copy(p.b.begin(), p.b.end(), b.write().value().begin() + begin);
        std::vector<float> c = poisoned(shape.rows * shape.columns + begin);
        PlainKernels<half>().run(Read<half>(a).slice(begin, p.a.size()),
                                 Read<half>(b).slice(begin, p.b.size()), std::span(c).subspan(begin), shape,
                                 p.options);
        CHECK(difference_of<half, float>(
                  p, std::vector<float>(c.begin() + static_cast<std::ptrdiff_t>(begin), c.end())) == "");
        std::vector<half> rounded = of<half>(poisoned(shape.rows * shape.columns + begin));
        PlainKernels<half>().run(Read<half>(a).slice(begin, p.a.size()),
                                 Read<half>(b).slice(begin, p.b.size()), std::span(rounded).subspan(begin),
                                 shape, p.options);
        CHECK(difference_of<half, half>(
                  p, std::vector<half>(rounded.begin() + static_cast<std::ptrdiff_t>(begin),
                                       rounded.end())) == "");
      }
    }
}

TEST_CASE("without tensor cores CUDA's kernels respect every number of 16 bits", "[workloads][products]") {
  if (!has_leg("cuda")) return;
  // Each times one.
  const auto all = [](auto number) {
    using T = decltype(number);
    std::vector<T> numbers;
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits)
      numbers.push_back(T::from_bits(static_cast<std::uint16_t>(bits)));
    const std::vector<T> one{T(1.0f)};
    std::vector<float> c(numbers.size());
    PlainKernels<T>().run(numbers, one, c, {numbers.size(), 1, 1}, {});
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < c.size(); ++i) {
      const auto exact = static_cast<float>(numbers[i]);
      wrong += !(std::isnan(exact) ? std::isnan(c[i])
                                   : c[i] == exact || (std::abs(exact) < 0x1p-126f && c[i] == 0));
    }
    return wrong;
  };
  CHECK(all(half()) == 0);
  CHECK(all(bfloat16()) == 0);
}
