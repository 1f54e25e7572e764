#include <wye/workloads/quantized.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>

#include "workloads/vectors.hpp"

using namespace wye;
using namespace wye::test;
namespace reference = wye::workloads::reference;
using workloads::block_bytes;
using workloads::BlockType;
using workloads::Quantization;

namespace {

using ByteVector = std::vector<std::uint8_t>;

constexpr Quantization quantizations[] = {
    {BlockType::q4_0, 32}, {BlockType::q4_1, 32}, {BlockType::q8_0, 32},
    {BlockType::int4, 32}, {BlockType::int4, 64}, {BlockType::int4, 128},
    {BlockType::int8, 32}, {BlockType::int8, 64}, {BlockType::int8, 128}};

std::string name(Quantization q) {
  const char* names[] = {"q4_0", "q4_1", "q8_0", "int4", "int8"};
  return names[static_cast<int>(q.type)] + (" by " + std::to_string(q.group));
}

ByteVector quantized(const std::vector<float>& x, Quantization q, const std::string& leg) {
  auto blocks = poison<std::uint8_t>(x.size() / q.group * block_bytes(q));
  run(workloads::quantize(x, blocks, q), leg);
  return blocks;
}
std::vector<float> dequantized(const ByteVector& blocks, Quantization q, const std::string& leg) {
  auto x = poison<float>(blocks.size() / block_bytes(q) * q.group);
  run(workloads::dequantize(blocks, x, q), leg);
  return x;
}
std::vector<float> multiplied(const std::vector<float>& x, const ByteVector& weights, std::size_t rows,
                              std::size_t columns, Quantization q, const std::string& leg,
                              bool int8_x = false) {
  auto y = poison<float>(rows * columns);
  run(workloads::quantized_matmul(x, weights, y, rows, q, {.int8_x = int8_x}), leg);
  return y;
}

/// Returns "", or the place of the first difference. NaN equals NaN.
std::string differing_element(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return "sizes";
  for (std::size_t i = 0; i < a.size(); ++i)
    if (std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i]) &&
        !(std::isnan(a[i]) && std::isnan(b[i])))
      return std::to_string(a[i]) + " instead of " + std::to_string(b[i]) + " at " + std::to_string(i);
  return "";
}
std::string differing_byte(const ByteVector& a, const ByteVector& b) {
  if (a.size() != b.size()) return "sizes";
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i])
      return std::to_string(a[i]) + " instead of " + std::to_string(b[i]) + " at " + std::to_string(i);
  return "";
}

std::string differing_product(const std::vector<float>& y, const std::vector<float>& x,
                              const ByteVector& weights, std::size_t rows, Quantization q) {
  const auto exact = reference::quantized_matmul(x, weights, rows, q);
  const auto sizes = reference::quantized_matmul(x, weights, rows, q, true);
  const double inner = rows == 0 ? 0.0 : static_cast<double>(x.size() / rows);
  return difference(y, exact,
                    [&](std::size_t i) { return (inner + 8) * 0x1p-24 * sizes[i] + inner * 0x1p-126; });
}

/// Returns x as `int8_x` rounds it.
std::vector<float> rounded_to_int8(const std::vector<float>& x) {
  constexpr Quantization q8_0{.type = BlockType::q8_0};
  return reference::dequantize(reference::quantize(x, q8_0), q8_0);
}
/// Checks a product with `int8_x`: exactly rounded x, and the documented bound for x itself.
void check_int8_product(const std::vector<float>& x, const ByteVector& weights, std::size_t rows,
                        std::size_t columns, Quantization q, const std::string& leg) {
  const auto y = multiplied(x, weights, rows, columns, q, leg, true);
  CHECK(differing_product(y, rounded_to_int8(x), weights, rows, q) == "");
  if (rows == 0 || x.empty()) return;
  // The largest |x| of each 32, and 1: their products with |w| are sums of |w|.
  std::vector<float> largest(x.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    largest[i / 32 * 32] = std::max(largest[i / 32 * 32], std::abs(x[i]));
  for (std::size_t i = 0; i < x.size(); ++i) largest[i] = largest[i / 32 * 32];
  const auto exact = reference::quantized_matmul(x, weights, rows, q),
             sizes = reference::quantized_matmul(x, weights, rows, q, true),
             of_blocks = reference::quantized_matmul(largest, weights, rows, q, true),
             of_ones =
                 reference::quantized_matmul(std::vector<float>(x.size(), 1.0f), weights, rows, q, true);
  const double inner = static_cast<double>(x.size() / rows);
  CHECK(difference(y, exact, [&](std::size_t i) {
          return (inner + 8) * 0x1p-24 * sizes[i] + 0x1p-7 * of_blocks[i] + 0x1p-18 * of_ones[i] +
                 inner * 0x1p-126;
        }) == "");
}

/// Numbers whose size differs from block to block.
std::vector<float> weights_of(std::size_t count, std::uint32_t seed) {
  std::vector<float> made = numbers(count, seed);
  for (std::size_t i = 0; i < count; ++i) made[i] = std::ldexp(made[i], static_cast<int>(i / 32 % 20) - 10);
  return made;
}

template <class T>
std::uint64_t hash(const std::vector<T>& values) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  const auto* bytes = reinterpret_cast<const unsigned char*>(values.data());
  for (std::size_t i = 0; i < values.size() * sizeof(T); ++i) hash = (hash ^ bytes[i]) * 0x100000001b3u;
  return hash;
}

}  // namespace

TEST_CASE("quantize and dequantize have the bits of the package gguf", "[workloads][quantized]") {
  // FNV-1a hashes of 1,000 blocks that gguf 0.19.0 (quants.py) makes of these elements, and of the
  // elements of the blocks.
  constexpr std::size_t count = 32000;
  std::vector<float> x(count);
  for (std::uint32_t i = 0; i < count; ++i)
    x[i] = std::ldexp(static_cast<float>(i * 2654435761u >> 8) * 0x1p-24f - 0.5f,
                      static_cast<int>(i / 32 % 20) - 10);
  struct Expected {
    BlockType type;
    std::uint64_t blocks, elements;
  };
  constexpr Expected expected[] = {{BlockType::q4_0, 0x9b1c7dc5c7cb48a4u, 0x8fc2f99e16a85cd4u},
                                   {BlockType::q4_1, 0x42b3357e97bce9c9u, 0x9e65695b5d4d6f26u},
                                   {BlockType::q8_0, 0x33d455418dd4c179u, 0x7cb1ac1a5d2b9229u}};
  for (const Expected& e : expected) {
    const Quantization q{.type = e.type};
    INFO(name(q));
    CHECK(hash(reference::quantize(x, q)) == e.blocks);
    for (const std::string& leg : legs()) {
      INFO(leg);
      const ByteVector blocks = quantized(x, q, leg);
      CHECK(hash(blocks) == e.blocks);
      CHECK(hash(dequantized(blocks, q, leg)) == e.elements);
    }
  }
}

TEST_CASE("quantize and dequantize have the bits of the reference", "[workloads][quantized]") {
  for (const std::string& leg : legs())
    for (const Quantization q : quantizations)
      for (std::size_t blocks : {0u, 1u, 3u, 257u, 1000u}) {
        INFO(leg << ", " << name(q) << ", " << blocks << " blocks");
        const auto x = weights_of(blocks * q.group, static_cast<std::uint32_t>(blocks) + 1);
        const ByteVector expected = reference::quantize(x, q);
        CHECK(differing_byte(quantized(x, q, leg), expected) == "");
        CHECK(differing_element(dequantized(expected, q, leg), reference::dequantize(expected, q)) == "");
      }
}

TEST_CASE("dequantize takes blocks of any bits", "[workloads][quantized]") {
  std::mt19937 random(2);
  for (const std::string& leg : legs())
    for (const Quantization q : quantizations) {
      INFO(leg << ", " << name(q));
      ByteVector blocks(700 * block_bytes(q));
      for (std::uint8_t& byte : blocks) byte = static_cast<std::uint8_t>(random());
      CHECK(differing_element(dequantized(blocks, q, leg), reference::dequantize(blocks, q)) == "");
    }
}

TEST_CASE("quantize defines zeros, equal elements, large elements, NaN and infinities",
          "[workloads][quantized]") {
  for (const std::string& leg : legs())
    for (const Quantization q : quantizations) {
      INFO(leg << ", " << name(q));
      std::vector<float> x;
      for (float v :
           {0.0f, 1.0f, -3.0f, 65504.0f, 1e30f, -3e38f, 1e-9f, 1e-33f, undefined, infinity, -infinity})
        for (std::uint32_t i = 0; i < q.group; ++i) x.push_back(v);
      for (float v : {undefined, infinity, -infinity, 3e38f, -3e38f, 7e4f, 1e-31f}) {
        const auto more = numbers(q.group, 3);
        x.insert(x.end(), more.begin(), more.end());
        x[x.size() - 5] = v;
      }
      x[x.size() - 3 * q.group + 1] = 3e38f;  // a range beyond float
      const ByteVector blocks = quantized(x, q, leg);
      CHECK(differing_byte(blocks, reference::quantize(x, q)) == "");
      const auto back = dequantized(blocks, q, leg);
      for (std::size_t block : {8u, 9u, 10u, 11u, 12u, 13u})
        CHECK(std::all_of(back.begin() + static_cast<std::ptrdiff_t>(block * q.group),
                          back.begin() + static_cast<std::ptrdiff_t>((block + 1) * q.group),
                          [](float v) { return std::isnan(v); }));
    }
}

TEST_CASE("int4 and int8 are within their bound", "[workloads][quantized]") {
  for (const std::string& leg : legs())
    for (const Quantization q : quantizations) {
      if (q.type != BlockType::int4 && q.type != BlockType::int8) continue;
      INFO(leg << ", " << name(q));
      auto x = weights_of(600 * q.group, 4);
      for (std::size_t i = 0; i < x.size() / 2; ++i)
        x[i] = std::ldexp(x[i] + 0.25f, static_cast<int>(i / 128 % 20) - 10);
      const ByteVector blocks = quantized(x, q, leg);
      const auto back = dequantized(blocks, q, leg);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const std::uint8_t* block = blocks.data() + i / q.group * block_bytes(q);
        const auto d =
            static_cast<float>(half::from_bits(static_cast<std::uint16_t>(block[0] | block[1] << 8)));
        wrong += !(std::abs(back[i] - x[i]) <= d + 0x1p-17f);
      }
      CHECK(wrong == 0);
    }
}

TEST_CASE("quantized_matmul is right for shapes beside its limits", "[workloads][quantized]") {
  struct Shape {
    std::size_t rows, columns, inner;
  };
  constexpr Shape shapes[] = {{1, 1, 128},     {1, 300, 256}, {3, 65, 640}, {4, 257, 128},
                              {5, 10, 1152},   {8, 33, 512},  {9, 31, 640}, {260, 5, 128},
                              {261, 260, 128}, {0, 0, 0},     {2, 0, 128}};
  for (const std::string& leg : legs())
    for (const Quantization& q : quantizations)
      for (const Shape& s : shapes) {
        INFO(leg << ", " << name(q) << ", " << s.rows << " x " << s.columns << " x " << s.inner);
        // Products of many rows take long, all products on the stand-in.
        const bool is_slow = s.rows > 100 && (s.columns > 100 || leg == "cuda");
        const bool is_left_out = is_slow ? q != quantizations[1] && (q != quantizations[8] || leg == "cuda")
                                         : leg == "cuda" && (&q - quantizations + &s - shapes) % 3 != 0;
        if (is_left_out) continue;
        const auto x = numbers(s.rows * s.inner, 5);
        const ByteVector weights = reference::quantize(weights_of(s.columns * s.inner, 6), q);
        CHECK(differing_product(multiplied(x, weights, s.rows, s.columns, q, leg), x, weights, s.rows, q) ==
              "");
        check_int8_product(x, weights, s.rows, s.columns, q, leg);
      }
}

TEST_CASE("quantized_matmul takes zero points of any 16 bits", "[workloads][quantized]") {
  for (const std::string& leg : legs())
    for (const Quantization& q : quantizations) {
      if (q.type != BlockType::int4 && q.type != BlockType::int8) continue;
      constexpr std::size_t rows = 5, columns = 6, inner = 256;
      const auto x = numbers(rows * inner, 15);
      ByteVector weights = reference::quantize(weights_of(columns * inner, 16), q);
      const std::int16_t zeros[] = {-32768, -16385, -16384, 16384, 16385, 32767, -129, 255};
      for (std::size_t block = 0; block * block_bytes(q) < weights.size(); ++block)
        std::memcpy(&weights[block * block_bytes(q) + 2], &zeros[block % std::size(zeros)], 2);
      INFO(leg << ", " << name(q));
      CHECK(differing_product(multiplied(x, weights, rows, columns, q, leg), x, weights, rows, q) == "");
      check_int8_product(x, weights, rows, columns, q, leg);
    }
}

TEST_CASE("quantized_matmul of empty rows is zero", "[workloads][quantized]") {
  for (const std::string& leg : legs())
    for (std::size_t rows : {1u, 3u, 20u})
      for (bool int8_x : {false, true})
        CHECK(multiplied({}, {}, rows, 7, {}, leg, int8_x) == std::vector<float>(rows * 7));
}

TEST_CASE("quantized workloads are right for random shapes", "[workloads][quantized]") {
  std::mt19937 random(7);
  for (int i = 0; i < 1000; ++i) {
    const Quantization q = quantizations[random() % std::size(quantizations)];
    const std::string& leg = legs()[random() % legs().size()];
    if (leg == "cuda" && i % 8 != 0) continue;
    const std::size_t rows = 1 + random() % 12, columns = 1 + random() % 20,
                      inner = q.group * (1 + random() % 5);
    const auto seed = static_cast<std::uint32_t>(random());
    INFO(leg << ", " << name(q) << ", " << rows << " x " << columns << " x " << inner << ", seed " << seed);
    const auto w = weights_of(columns * inner, seed), x = numbers(rows * inner, seed + 1);
    const ByteVector weights = reference::quantize(w, q);
    if (i % 4 == 0)
      CHECK(differing_byte(quantized(w, q, leg), weights) == "");
    else if (i % 4 == 1)
      check_int8_product(x, weights, rows, columns, q, leg);
    else
      CHECK(differing_product(multiplied(x, weights, rows, columns, q, leg), x, weights, rows, q) == "");
  }
}

TEST_CASE("quantized_matmul gives a row the same bits in any batch", "[workloads][quantized]") {
  for (const std::string& leg : legs())
    for (const Quantization q : {quantizations[0], quantizations[1], quantizations[8]}) {
      INFO(leg << ", " << name(q));
      constexpr std::size_t inner = 640, columns = 37;
      const std::size_t most = leg == "cuda" ? 40 : 300;
      const auto x = numbers(most * inner, 8);
      const ByteVector weights = reference::quantize(weights_of(columns * inner, 9), q);
      const auto of = [&](std::size_t rows) {
        return multiplied({x.begin(), x.begin() + static_cast<std::ptrdiff_t>(rows * inner)}, weights, rows,
                          columns, q, leg);
      };
      const auto eight = of(8), many = of(most);
      for (std::size_t rows : {1u, 3u, 4u, 7u}) {
        const auto few = of(rows);
        CHECK(std::equal(few.begin(), few.end(), eight.begin()));
      }
      for (std::size_t rows : {std::size_t{9}, most - 7}) {
        const auto some = of(rows);
        CHECK(std::equal(some.begin(), some.end(), many.begin()));
      }
      if (leg != "cpu") CHECK(std::equal(eight.begin(), eight.end(), many.begin()));
      CHECK(equal_bits(many, of(most)));
      const auto int8_of = [&](std::size_t rows) {
        return multiplied({x.begin(), x.begin() + static_cast<std::ptrdiff_t>(rows * inner)}, weights, rows,
                          columns, q, leg, true);
      };
      const auto many_int8 = int8_of(40);
      for (std::size_t rows : {1u, 3u, 8u, 9u}) {
        const auto some = int8_of(rows);
        CHECK(std::equal(some.begin(), some.end(), many_int8.begin()));
      }
    }
}

TEST_CASE("quantized_matmul propagates NaN and infinities", "[workloads][quantized]") {
  for (const std::string& leg : legs())
    for (const Quantization q : quantizations)
      for (std::size_t rows : {3u, 11u}) {
        INFO(leg << ", " << name(q) << ", " << rows << " rows");
        constexpr std::size_t inner = 256, columns = 3;
        auto x = numbers(rows * inner, 10, 0.5f, 1.0f);
        x[5] = undefined;
        x[inner + 200] = infinity;
        ByteVector weights(columns * inner / q.group * block_bytes(q));
        auto w = numbers(columns * inner, 11, 0.5f, 1.0f);
        w[inner + 7] = undefined;
        weights = reference::quantize(w, q);
        const auto y = multiplied(x, weights, rows, columns, q, leg),
                   by_int8 = multiplied(x, weights, rows, columns, q, leg, true);
        for (std::size_t i = 0; i < y.size(); ++i)
          CHECK(std::isnan(by_int8[i]) == (i < 2 * columns || i % columns == 1));
        for (std::size_t column = 0; column < columns; ++column) CHECK(std::isnan(y[column]));
        for (std::size_t row = 0; row < rows; ++row) CHECK(std::isnan(y[row * columns + 1]));
        CHECK_FALSE(std::isfinite(y[columns]));
        CHECK(std::isfinite(y[2 * columns]));
        CHECK(std::isfinite(y[2 * columns + 2]));
      }
}

TEST_CASE("quantized workloads take blocks at odd bytes, and keep the bytes beside them",
          "[workloads][quantized]") {
  for (const std::string& leg : legs())
    for (const Quantization q : quantizations)
      for (std::size_t begin : {0u, 1u, 2u, 3u}) {
        INFO(leg << ", " << name(q) << ", from byte " << begin << " on");
        const auto x = weights_of(6 * q.group, 12);
        const ByteVector expected = reference::quantize(x, q);
        const auto edges = poison<std::uint8_t>(expected.size() + 5);
        const Array<std::uint8_t> array = the_runtime().array(edges);
        run(workloads::quantize(x, Write<std::uint8_t>(array).slice(begin, expected.size()), q), leg);
        const auto all = array.read();
        REQUIRE(all);
        ByteVector whole = edges;
        std::copy(expected.begin(), expected.end(), whole.begin() + static_cast<std::ptrdiff_t>(begin));
        CHECK(differing_byte(ByteVector(all->span().begin(), all->span().end()), whole) == "");
        auto back = poison<float>(x.size());
        run(workloads::dequantize(Read<std::uint8_t>(array).slice(begin, expected.size()), back, q), leg);
        CHECK(differing_element(back, reference::dequantize(expected, q)) == "");
        auto y = poison<float>(6);
        run(workloads::quantized_matmul(x, Read<std::uint8_t>(array).slice(begin, expected.size()),
                                        std::span(y).first(1), 1, q),
            leg);
        CHECK(differing_product({y[0]}, x, expected, 1, q) == "");
      }
}

TEST_CASE("quantized workloads are right if their grids have more than one row",
          "[workloads][quantized][large][.huge]") {
  constexpr Quantization q{};
  const std::size_t count = (std::size_t{1} << 23) + 32 * 301;
  const auto w = weights_of(count, 13);
  const ByteVector weights = reference::quantize(w, q);
  const auto elements = reference::dequantize(weights, q);
  for (const std::string& leg : legs()) {
    INFO(leg);
    CHECK(differing_element(dequantized(weights, q, leg), elements) == "");
    if (leg == "cuda") continue;  // the product takes 45 s on the stand-in
    const auto x = numbers(32, 14);
    CHECK(differing_product(multiplied(x, weights, 1, count / 32, q, leg), x, weights, 1, q) == "");
  }
}

TEST_CASE("quantize and dequantize are right beyond 4 GiB", "[workloads][quantized][large][.huge]") {
  if (!has_leg("cpu")) return;
  constexpr Quantization q{.type = BlockType::q8_0};
  const std::size_t count = (std::size_t{1} << 30) + 32 * 101;
  std::vector<float> x(count, 1.0f);
  x[count - 1] = -127.0f;
  ByteVector blocks(count / 32 * 34);
  run(workloads::quantize(x, blocks, q), "cpu");
  run(workloads::dequantize(blocks, x, q), "cpu");
  CHECK(x[count - 1] == -127.0f);
  CHECK(x[count - 2] == 1.0f);
  const float one = x[0];
  CHECK(std::abs(one - 1.0f) < 0x1p-11f);
  CHECK(std::all_of(x.begin(), x.end() - 32, [&](float v) { return v == one; }));
}

TEST_CASE("quantized workloads refuse sizes and layouts that do not match", "[workloads][quantized]") {
  std::vector<float> x(64), y(6);
  ByteVector blocks(36), few(35), six(6 * 18);
  const auto sentence_of = [](const Job& job) {
    REQUIRE(job.error());
    CHECK(*job.error() == Errc::invalid_argument);
    return refusal(job);
  };
  CHECK(sentence_of(workloads::quantize(x, few)) ==
        "Blocks (35 bytes) of workload 'quantize' are not the 36 bytes of 64 elements.");
  CHECK(sentence_of(workloads::dequantize(blocks, std::span(x).first(33))) ==
        "Vector x (33 elements) of workload 'dequantize' is no whole number of blocks of 32 elements.");
  CHECK(sentence_of(workloads::quantize(x, blocks, {static_cast<BlockType>(9), 32})) ==
        "Block type (9) of workload 'quantize' exceeds the limit (4).");
  CHECK(sentence_of(workloads::quantize(x, blocks, {BlockType::q4_0, 64})) ==
        "Group (64 elements) of workload 'quantize' is not 32.");
  CHECK(sentence_of(workloads::quantize(x, blocks, {BlockType::int4, 48})) ==
        "Group (48 elements) of workload 'quantize' is not 32, 64 or 128.");
  CHECK(sentence_of(workloads::quantized_matmul(x, six, y, 3)) ==
        "Matrix x (64 elements) of workload 'quantized_matmul' has no whole number of columns for 3 rows.");
  CHECK(sentence_of(workloads::quantized_matmul(x, six, y, 0)) ==
        "Matrix x (64 elements) of workload 'quantized_matmul' has no whole number of columns for 0 rows.");
  CHECK(sentence_of(workloads::quantized_matmul(x, six, std::span(y).first(5), 2)) ==
        "Matrix y (5 elements) of workload 'quantized_matmul' has no whole number of columns for 2 rows.");
  CHECK(sentence_of(workloads::quantized_matmul(std::span(x).first(40), six, y, 1)) ==
        "Rows (40 elements) of workload 'quantized_matmul' are no whole number of blocks of 32 elements.");
  CHECK(sentence_of(workloads::quantized_matmul(x, six, y, 1)) ==
        "Weights (108 bytes) of workload 'quantized_matmul' are not the 216 bytes of 6 x 64 elements.");
  const std::span<const float> endless(x.data(), (std::size_t{1} << 20) + 32);
  CHECK(sentence_of(workloads::quantized_matmul(endless, six, y, 1)) ==
        "Rows (1048608 elements) of workload 'quantized_matmul' exceed the limit (1048576).");
  const std::span<float> wide(y.data(), std::size_t{1} << 31);
  CHECK(sentence_of(workloads::quantized_matmul(x, six, wide, 1)) ==
        "Matrix y (2147483648 elements, 1 rows) of workload 'quantized_matmul' exceeds the limit "
        "(2147483647).");
}
