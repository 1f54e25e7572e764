#include <wye/workloads/transformer.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "workloads/vectors.hpp"

using namespace wye;
using namespace wye::test;
namespace reference = wye::workloads::reference;
using workloads::BlockType;
using workloads::Quantization;
using workloads::TransformerShape;

namespace {

using Quantized = std::optional<Quantization>;

/// A matrix of weights: rows have a length of about 1.
template <class T>
struct StoredMatrix {
  std::vector<T> elements;
  std::vector<std::uint8_t> blocks;
  Quantization quantization;

  StoredMatrix(std::size_t outputs, std::size_t inputs, std::uint32_t seed, const Quantized& quantized)
      : quantization(quantized.value_or(Quantization{})) {
    const float side = std::sqrt(3.0f / static_cast<float>(inputs));
    const std::vector<float> made = numbers(outputs * inputs, seed, -side, side);
    if (quantized)
      blocks = reference::quantize(made, *quantized);
    else
      elements = of<T>(made);
  }
  workloads::WeightMatrix<T> matrix() const {
    workloads::WeightMatrix<T> made;
    made.elements = Read<T>(elements);
    made.blocks = Read<std::uint8_t>(blocks);
    made.quantization = quantization;
    return made;
  }
};

template <class T>
std::vector<T> norm_of(std::size_t count, std::uint32_t seed) {
  return of<T>(numbers(count, seed, 0.5f, 1.5f));
}

TransformerShape completed(TransformerShape shape) {
  if (shape.key_value_heads == 0) shape.key_value_heads = shape.heads;
  return shape;
}

/// The weights of a block of a decoder and of an encoder, which share matrices.
template <class T>
struct StoredBlock {
  TransformerShape shape;
  StoredMatrix<T> query, key, value, output, gate, up, down;
  std::vector<T> first_norm, second_norm, first_bias, second_bias, query_bias, key_bias, value_bias, up_bias;

  StoredBlock(const TransformerShape& given, std::uint32_t seed, const Quantized& quantized = std::nullopt)
      : shape(completed(given)),
        query(shape.heads * shape.head_size, shape.width, seed, quantized),
        key(shape.key_value_heads * shape.head_size, shape.width, seed + 1, quantized),
        value(shape.key_value_heads * shape.head_size, shape.width, seed + 2, quantized),
        output(shape.width, shape.heads * shape.head_size, seed + 3, quantized),
        gate(shape.hidden, shape.width, seed + 4, quantized),
        up(shape.hidden, shape.width, seed + 5, quantized),
        down(shape.width, shape.hidden, seed + 6, quantized),
        first_norm(norm_of<T>(shape.width, seed + 7)),
        second_norm(norm_of<T>(shape.width, seed + 8)),
        first_bias(elements_of_bias(shape.width, seed + 9)),
        second_bias(elements_of_bias(shape.width, seed + 10)),
        query_bias(elements_of_bias(shape.heads * shape.head_size, seed + 11)),
        key_bias(elements_of_bias(shape.key_value_heads * shape.head_size, seed + 12)),
        value_bias(elements_of_bias(shape.key_value_heads * shape.head_size, seed + 13)),
        up_bias(elements_of_bias(shape.hidden, seed + 14)) {}

  static std::vector<T> elements_of_bias(std::size_t count, std::uint32_t seed) {
    return of<T>(numbers(count, seed, -0.5f, 0.5f));
  }
  workloads::DecoderWeights<T> decoder() const {
    return {first_norm,  query.matrix(), key.matrix(), value.matrix(), output.matrix(),
            second_norm, gate.matrix(),  up.matrix(),  down.matrix()};
  }
  workloads::EncoderWeights<T> encoder() const {
    return {query.matrix(),  query_bias,  key.matrix(), key_bias,    value.matrix(), value_bias,
            output.matrix(), first_bias,  first_norm,   second_bias, up.matrix(),    up_bias,
            down.matrix(),   second_bias, second_norm,  first_bias};
  }
};

template <class T>
std::vector<StoredBlock<T>> blocks_of(const TransformerShape& shape, std::size_t count, std::uint32_t seed,
                                      const Quantized& quantized = std::nullopt) {
  std::vector<StoredBlock<T>> blocks;
  for (std::size_t b = 0; b < count; ++b)
    blocks.emplace_back(shape, seed + static_cast<std::uint32_t>(20 * b), quantized);
  return blocks;
}

template <class T>
std::vector<double> exact_numbers(const std::vector<T>& x) {
  const std::vector<float> wide = floats(x);
  return {wide.begin(), wide.end()};
}

/// Caches of all blocks. Rows that no sequence has appended are NaN.
template <class T>
struct BlockCaches {
  std::uint64_t capacity;
  std::vector<std::vector<T>> keys, values;

  BlockCaches(const std::vector<StoredBlock<T>>& blocks, std::uint64_t slots, std::uint64_t rows)
      : capacity(rows) {
    for (const StoredBlock<T>& block : blocks) {
      const std::size_t size = slots * rows * block.shape.key_value_heads * block.shape.head_size;
      keys.emplace_back(size, T(undefined));
      values.emplace_back(size, T(undefined));
    }
  }
};

/// A runtime whose results have the same bits for any number of rows.
Runtime& steady_runtime() {
  static Runtime runtime = [] {
    RuntimeOptions options = RuntimeOptions::from_environment().value();
    options.scheduler.measure_variants = false;
    options.scheduler.job_time_limit = std::chrono::minutes(5);
    return Runtime::open(std::move(options)).value();
  }();
  return runtime;
}

/// Runs x through all blocks of a decoder.
template <class T>
void decode(std::vector<T>& x, const std::vector<StoredBlock<T>>& blocks, BlockCaches<T>& caches,
            const std::vector<std::uint32_t>& offsets, const std::vector<std::uint32_t>& slots,
            const std::vector<std::uint32_t>& cached, const std::string& leg,
            const workloads::DecoderOptions& options = {}) {
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    auto done =
        steady_runtime()
            .submit(workloads::transformer_block(
                        x, offsets, {caches.keys[b], caches.values[b], slots, cached, caches.capacity},
                        blocks[b].decoder(), blocks[b].shape, options),
                    {.fallback = Fallback::forbid, .on = leg})
            .wait();
    if (!done) FAIL(done.error().describe());
    CHECK(done->backend() == leg);
  }
}

template <class T>
void encode(std::vector<T>& x, const std::vector<StoredBlock<T>>& blocks,
            const std::vector<std::uint32_t>& offsets, const std::string& leg) {
  for (const StoredBlock<T>& block : blocks) {
    auto done = steady_runtime()
                    .submit(workloads::transformer_block(x, offsets, block.encoder(), block.shape),
                            {.fallback = Fallback::forbid, .on = leg})
                    .wait();
    if (!done) FAIL(done.error().describe());
  }
}

/// The documented bound after 1 block, or after 12.
template <class T>
Bound bound_of_rows(const std::vector<double>& exact, std::size_t width, std::size_t blocks,
                    bool int8_x = false) {
  const bool is_half = std::is_same_v<T, half>, is_float = std::is_same_v<T, float>;
  double share = is_float ? 0x1p-17 : is_half ? 0x1p-6 : 0x1p-3;
  if (blocks > 1) share = is_float ? 0x1p-15 : is_half ? 0x1p-5 : 0x1p-2;
  if (int8_x) share = 0x1p-3;
  std::vector<double> of_rows;
  for (std::size_t first = 0; first < exact.size(); first += width) {
    double squares = 0;
    for (std::size_t i = 0; i < width; ++i) squares += exact[first + i] * exact[first + i];
    of_rows.push_back(share * std::max(1.0, std::sqrt(squares / static_cast<double>(width))));
  }
  return [of_rows, width](std::size_t i) { return of_rows[i / width]; };
}

/// The slots and the cached tokens of sequences that begin.
struct NewSequences {
  std::vector<std::uint32_t> slots, cached;
  explicit NewSequences(const std::vector<std::uint32_t>& offsets)
      : slots(offsets.size() - 1), cached(offsets.size() - 1) {
    std::iota(slots.rbegin(), slots.rend(), 1u);
  }
  std::uint64_t count() const { return slots.size() + 1; }
};

/// Compares blocks of a decoder with the reference.
template <class T>
std::string differing_decoder(const std::vector<StoredBlock<T>>& blocks,
                              const std::vector<std::uint32_t>& offsets, std::uint32_t seed,
                              const std::string& leg, const workloads::DecoderOptions& options = {}) {
  const std::size_t width = blocks[0].shape.width;
  auto x = elements<T>(offsets.back() * width, seed);
  std::vector<double> exact = exact_numbers(x);
  for (const StoredBlock<T>& block : blocks)
    exact = reference::transformer_block(exact, offsets, block.decoder(), block.shape, options);
  const NewSequences sequences(offsets);
  BlockCaches<T> caches(blocks, sequences.count(), std::max<std::uint64_t>(offsets.back(), 1));
  decode(x, blocks, caches, offsets, sequences.slots, sequences.cached, leg, options);
  return difference(floats(x), exact, bound_of_rows<T>(exact, width, blocks.size(), options.int8_x));
}
template <class T>
std::string differing_encoder(const std::vector<StoredBlock<T>>& blocks,
                              const std::vector<std::uint32_t>& offsets, std::uint32_t seed,
                              const std::string& leg) {
  const std::size_t width = blocks[0].shape.width;
  auto x = elements<T>(offsets.back() * width, seed);
  std::vector<double> exact = exact_numbers(x);
  for (const StoredBlock<T>& block : blocks)
    exact = reference::transformer_block(exact, offsets, block.encoder(), block.shape);
  encode(x, blocks, offsets, leg);
  return difference(floats(x), exact, bound_of_rows<T>(exact, width, blocks.size()));
}

constexpr TransformerShape odd_shape{
    .width = 30, .heads = 6, .key_value_heads = 2, .head_size = 10, .hidden = 37},
    even_shape{.width = 96, .heads = 4, .key_value_heads = 2, .head_size = 16, .hidden = 160},
    wide_shape{.width = 144, .heads = 2, .key_value_heads = 1, .head_size = 72, .hidden = 272};

constexpr Quantization block_kinds[] = {{BlockType::q4_0, 32},
                                        {BlockType::q4_1, 32},
                                        {BlockType::q8_0, 32},
                                        {BlockType::int4, 32},
                                        {BlockType::int8, 32}};

/// A request: x of all tokens, and its rows after the blocks.
template <class T>
struct TokenRequest {
  std::vector<T> x, expected;
  std::uint32_t prompt, tokens, slot = 0, length = 0;
};

/// Serves requests in batches, in which they have their prompts or one token. Compares the bits
/// with those of each alone, all tokens in one job.
template <class T>
void check_batches(const TransformerShape& shape, const std::string& leg, const Quantized& quantized,
                   const workloads::DecoderOptions& options = {}) {
  constexpr std::uint32_t capacity = 40, slots = 8;
  const auto blocks = blocks_of<T>(shape, 2, 500, quantized);
  const std::size_t width = shape.width;
  std::mt19937 random(51);
  std::vector<TokenRequest<T>> waiting, running;
  for (std::uint32_t i = 0; i < 10; ++i) {
    const auto prompt = static_cast<std::uint32_t>(1 + random() % (i == 4 ? 30 : 7)),
               tokens = prompt + static_cast<std::uint32_t>(random() % 4);
    TokenRequest<T> request{elements<T>(tokens * width, 600 + i), {}, prompt, tokens};
    request.expected = request.x;
    BlockCaches<T> alone(blocks, 1, capacity);
    decode<T>(request.expected, blocks, alone, {0, tokens}, {0}, {0}, leg, options);
    waiting.push_back(std::move(request));
  }
  BlockCaches<T> caches(blocks, slots, capacity);
  std::vector<std::uint32_t> free_slots(slots);
  std::iota(free_slots.begin(), free_slots.end(), 0u);
  std::size_t largest_batch = 0;
  while (!waiting.empty() || !running.empty()) {
    while (!waiting.empty() && !free_slots.empty()) {
      running.push_back(std::move(waiting.back()));
      waiting.pop_back();
      running.back().slot = free_slots.back();
      free_slots.pop_back();
    }
    std::vector<std::uint32_t> offsets{0}, of_slots, cached;
    std::vector<T> x;
    for (const TokenRequest<T>& r : running) {
      const std::uint32_t count = r.length == 0 ? r.prompt : 1;
      offsets.push_back(offsets.back() + count);
      of_slots.push_back(r.slot);
      cached.push_back(r.length);
      const auto begin = r.x.begin() + static_cast<std::ptrdiff_t>(r.length * width);
      x.insert(x.end(), begin, begin + static_cast<std::ptrdiff_t>(count * width));
    }
    decode(x, blocks, caches, offsets, of_slots, cached, leg, options);
    largest_batch = std::max(largest_batch, running.size());
    std::vector<TokenRequest<T>> still;
    for (std::size_t s = 0; s < running.size(); ++s) {
      TokenRequest<T>& r = running[s];
      const std::uint32_t count = offsets[s + 1] - offsets[s];
      INFO("sequence " << s << " from token " << r.length << " on");
      CHECK(std::memcmp(&x[offsets[s] * width], &r.expected[r.length * width], count * width * sizeof(T)) ==
            0);
      r.length += count;
      if (r.length == r.tokens)
        free_slots.push_back(r.slot);
      else
        still.push_back(std::move(r));
    }
    running = std::move(still);
  }
  CHECK(largest_batch == slots);
}

}  // namespace

TEST_CASE("transformer_block is right for decoders and encoders of each type", "[workloads][transformer]") {
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      for (const TransformerShape& shape : {odd_shape, even_shape, wide_shape}) {
        INFO(leg << ", " << name(element_type<T>()) << ", width " << shape.width);
        const auto blocks = blocks_of<T>(shape, 1, 100);
        for (const std::vector<std::uint32_t>& offsets :
             {std::vector<std::uint32_t>{0, 1}, std::vector<std::uint32_t>{0, 5, 5, 6, 19}}) {
          CHECK(differing_decoder(blocks, offsets, 11, leg) == "");
          CHECK(differing_encoder(blocks, offsets, 12, leg) == "");
        }
      }
    });
}

TEST_CASE("transformer_block is right with scaled rotations, a window and capped scores",
          "[workloads][transformer]") {
  const std::vector<float> factors{1, 1.5f, 2, 4.25f, 8};
  workloads::DecoderOptions scaled, windowed, all;
  scaled.rope->factors = factors;
  scaled.rope->scale = 0.25;
  windowed.window = 4;
  all.rope = workloads::RopeOptions{.base = 500,
                                    .layout = workloads::RopeLayout::neighbours,
                                    .factors = factors,
                                    .scale = 0.5,
                                    .yarn = workloads::RopeYarn{.original_context = 64, .beta_fast = 4},
                                    .magnitude = 0.9};
  all.window = 3;
  all.softcap = 1.5f;
  const std::vector<std::uint32_t> offsets{0, 5, 5, 6, 19};
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()));
      const auto blocks = blocks_of<T>(odd_shape, 1, 150);
      for (const workloads::DecoderOptions& options : {scaled, windowed, all})
        CHECK(differing_decoder(blocks, offsets, 13, leg, options) == "");
      // These options are no small change.
      const auto x = exact_numbers(elements<T>(19 * odd_shape.width, 13));
      const auto plain = reference::transformer_block(x, offsets, blocks[0].decoder(), blocks[0].shape);
      for (const workloads::DecoderOptions& options : {scaled, windowed, all}) {
        const auto other =
            reference::transformer_block(x, offsets, blocks[0].decoder(), blocks[0].shape, options);
        const Bound bound = bound_of_rows<float>(plain, odd_shape.width, 1);
        CHECK(difference(std::vector<float>(other.begin(), other.end()), plain, bound) != "");
      }
    });
}

TEST_CASE("transformer_block is right for quantized weights", "[workloads][transformer]") {
  for (const std::string& leg : legs())
    for (const Quantization& kind : block_kinds) {
      if (leg == "cuda" && kind.type != BlockType::q4_1) continue;  // takes long on the stand-in
      INFO(leg << ", type of blocks " << static_cast<int>(kind.type));
      const auto blocks = blocks_of<float>(even_shape, 1, 200, kind);
      const std::vector<std::uint32_t> offsets{0, 4, 15};
      CHECK(differing_decoder(blocks, offsets, 21, leg) == "");
      CHECK(differing_encoder(blocks, offsets, 22, leg) == "");
      workloads::DecoderOptions options;
      options.int8_x = true;
      CHECK(differing_decoder(blocks, offsets, 23, leg, options) == "");
    }
}

TEST_CASE("transformer_block follows its options", "[workloads][transformer]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    const auto blocks = blocks_of<float>(odd_shape, 1, 300);
    workloads::DecoderOptions options{.epsilon = 0.5f, .rope = std::nullopt, .scale = 0.75f};
    CHECK(differing_decoder(blocks, {0, 9}, 31, leg, options) == "");
    options.rope =
        workloads::RopeOptions{.base = 100000, .layout = workloads::RopeLayout::neighbours, .rotated = 6};
    CHECK(differing_decoder(blocks, {0, 9}, 31, leg, options) == "");
    // Each option has an effect.
    auto x = elements<float>(9 * 30, 31), other = x;
    BlockCaches<float> caches(blocks, 1, 9);
    decode(x, blocks, caches, {0, 9}, {0}, {0}, leg, options);
    decode(other, blocks, caches, {0, 9}, {0}, {0}, leg);
    CHECK_FALSE(same_bits(x, other));
  }
}

TEST_CASE("12 blocks are within the documented bound", "[workloads][transformer]") {
  for (const std::string& leg : legs()) {
    for_float_types([&](auto type) {
      using T = decltype(type);
      if (leg == "cuda" && !std::is_same_v<T, half>) return;  // takes long on the stand-in
      INFO(leg << ", " << name(element_type<T>()));
      const auto blocks = blocks_of<T>(even_shape, 12, 1000);
      CHECK(differing_decoder(blocks, {0, 7, 12}, 41, leg) == "");
      CHECK(differing_encoder(blocks, {0, 7, 12}, 42, leg) == "");
    });
    if (leg == "cuda") continue;
    INFO(leg << ", quantized");
    CHECK(differing_decoder(blocks_of<float>(even_shape, 12, 1000, block_kinds[0]), {0, 7, 12}, 43, leg) ==
          "");
  }
}

TEST_CASE("transformer_block is right for random shapes", "[workloads][transformer]") {
  std::mt19937 random(23);
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const std::uint64_t key_heads = 1 + random() % 3;
    const TransformerShape shape{.width = 1 + random() % 40,
                                 .heads = key_heads * (1 + random() % 3),
                                 .key_value_heads = key_heads,
                                 .head_size = 2 * (1 + random() % 6),
                                 .hidden = 1 + random() % 50};
    std::vector<std::uint32_t> offsets{0};
    for (std::size_t s = random() % 4; s > 0; --s)
      offsets.push_back(offsets.back() + static_cast<std::uint32_t>(random() % 5));
    const auto seed = static_cast<std::uint32_t>(random() % 100000);
    const std::string& leg = legs()[random() % legs().size()];
    if (leg == "cuda" && i % 20 >= 3) continue;  // takes long on the stand-in
    for_float_type(i, [&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()) << ", width " << shape.width << ", " << shape.heads
               << " heads of " << shape.head_size << ", " << key_heads << " of keys, hidden " << shape.hidden
               << ", rows " << offsets.back() << ", seed " << seed);
      const auto blocks = blocks_of<T>(shape, 1, seed);
      if (i % 4 == 0)
        CHECK(differing_encoder(blocks, offsets, seed + 50, leg) == "");
      else
        CHECK(differing_decoder(blocks, offsets, seed + 50, leg) == "");
    });
  }
}

TEST_CASE(
    "transformer_block gives a request the same bits alone, in any batch, and for a prompt in several jobs",
    "[workloads][transformer]") {
  for (const std::string& leg : legs()) {
    const bool few = leg == "cuda";  // takes long on the stand-in
    const bool all = leg == "cpu";   // shaders of quantized products have one order of adding
    for_float_types([&](auto type) {
      if (few && !std::is_same_v<decltype(type), half>) return;
      INFO(leg << ", " << name(element_type<decltype(type)>()));
      check_batches<decltype(type)>(odd_shape, leg, std::nullopt);
    });
    for (const Quantization& kind : {block_kinds[0], block_kinds[1]}) {
      if (!all && kind.type != BlockType::q4_0) continue;
      INFO(leg << ", type of blocks " << static_cast<int>(kind.type));
      check_batches<float>(even_shape, leg, kind);
    }
    if (!all) continue;
    INFO(leg << ", int8_x");
    workloads::DecoderOptions options;
    options.int8_x = true;
    check_batches<float>(even_shape, leg, block_kinds[0], options);
  }
}

TEST_CASE("a row has the same bits for any number of rows if inner dimensions are long",
          "[workloads][transformer]") {
  constexpr TransformerShape shape{
      .width = 130, .heads = 1, .key_value_heads = 1, .head_size = 6, .hidden = 1061};
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      if (leg == "cuda" && !std::is_same_v<T, float>) return;  // takes long on the stand-in
      INFO(leg << ", " << name(element_type<T>()));
      const auto blocks = blocks_of<T>(shape, 1, 750);
      const auto decoded = [&](std::uint32_t first, std::uint32_t rows) {
        const auto all = elements<T>(69 * 130, 76);
        const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first * 130);
        std::vector<T> x(begin, begin + static_cast<std::ptrdiff_t>(rows * 130));
        std::vector<std::uint32_t> offsets(rows + 1);
        std::iota(offsets.begin(), offsets.end(), 0u);
        const NewSequences sequences(offsets);
        BlockCaches<T> caches(blocks, sequences.count(), 1);
        decode(x, blocks, caches, offsets, sequences.slots, sequences.cached, leg);
        return x;
      };
      const std::vector<T> together = decoded(0, 69);
      for (const auto& [first, rows] :
           {std::pair{0u, 1u}, {68u, 1u}, {1u, 2u}, {3u, 4u}, {7u, 5u}, {12u, 13u}}) {
        if (leg == "cuda" && rows != 2) continue;
        INFO(rows << " rows from " << first << " on");
        const std::vector<T> alone = decoded(first, rows);
        CHECK(std::memcmp(alone.data(), &together[first * 130], alone.size() * sizeof(T)) == 0);
      }
    });
}

TEST_CASE("an encoder gives a sequence the same bits alone and in a batch", "[workloads][transformer]") {
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()));
      const auto blocks = blocks_of<T>(odd_shape, 2, 700);
      const std::vector<std::uint32_t> offsets{0, 3, 20, 21, 29};
      auto x = elements<T>(29 * 30, 71);
      const auto before = x;
      encode(x, blocks, offsets, leg);
      for (std::size_t s = 0; s < 4; ++s) {
        const auto row = [&](const std::vector<T>& of, std::size_t n) {
          return of.begin() + static_cast<std::ptrdiff_t>(offsets[n] * 30);
        };
        std::vector<T> alone(row(before, s), row(before, s + 1));
        encode(alone, blocks, {0, offsets[s + 1] - offsets[s]}, leg);
        CHECK(equal_bits(alone, std::vector<T>(row(x, s), row(x, s + 1))));
      }
    });
}

TEST_CASE("transformer_block takes no rows, and no sequences", "[workloads][transformer]") {
  for (const std::string& leg : legs())
    for (const Quantized& kind : {Quantized(), Quantized(block_kinds[0])}) {
      INFO(leg << ", quantized " << kind.has_value());
      const auto blocks = blocks_of<float>(even_shape, 1, 800, kind);
      CHECK(differing_decoder(blocks, {0}, 81, leg) == "");
      CHECK(differing_decoder(blocks, {0, 0, 0}, 81, leg) == "");
      CHECK(differing_encoder(blocks, {0}, 81, leg) == "");
      CHECK(differing_encoder(blocks, {0, 0, 0}, 81, leg) == "");
    }
}

TEST_CASE("NaN in a row of x has no effect on rows before it and on other sequences",
          "[workloads][transformer]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    const auto blocks = blocks_of<float>(odd_shape, 1, 900);
    const std::vector<std::uint32_t> offsets{0, 4, 7};
    const NewSequences sequences(offsets);
    auto x = elements<float>(7 * 30, 91), with_nan = x;
    with_nan[2 * 30 + 5] = undefined;
    BlockCaches<float> caches(blocks, sequences.count(), 7), others = caches;
    decode(x, blocks, caches, offsets, sequences.slots, sequences.cached, leg);
    decode(with_nan, blocks, others, offsets, sequences.slots, sequences.cached, leg);
    for (std::size_t row = 0; row < 7; ++row) {
      const auto part = [&](std::vector<float>& of) { return std::span(of).subspan(row * 30, 30); };
      INFO("row " << row);
      if (row == 2 || row == 3)
        CHECK(
            std::all_of(part(with_nan).begin(), part(with_nan).end(), [](float n) { return std::isnan(n); }));
      else
        CHECK(same_bits(part(with_nan), part(x)));
    }
  }
}

TEST_CASE("transformer_block takes memory of a device", "[workloads][transformer]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    const auto blocks = blocks_of<half>(odd_shape, 1, 950);
    const std::vector<std::uint32_t> offsets{0, 2, 6}, slots{1, 0}, cached{0, 0};
    auto expected = elements<half>(6 * 30, 96);
    const auto before = expected;
    BlockCaches<half> caches(blocks, 2, 6);
    const Array<half> x = the_runtime().array(before), keys = the_runtime().array(caches.keys[0]),
                      values = the_runtime().array(caches.values[0]);
    const Array<std::uint32_t> of_offsets = the_runtime().array(offsets),
                               of_slots = the_runtime().array(slots), of_cached = the_runtime().array(cached);
    decode(expected, blocks, caches, offsets, slots, cached, leg);
    run(workloads::transformer_block(x, of_offsets, {keys, values, of_slots, of_cached, 6},
                                     blocks[0].decoder(), odd_shape),
        leg);
    const auto found = x.read();
    REQUIRE(found);
    std::vector<double> exact = exact_numbers(expected);
    CHECK(difference(floats(std::vector<half>(found->begin(), found->end())), exact,
                     bound_of_rows<half>(exact, 30, 1)) == "");
  }
}

TEST_CASE("transformer_block refuses arguments that do not match", "[workloads][transformer]") {
  const StoredBlock<float> plain(even_shape, 1), quantized(even_shape, 1, block_kinds[0]);
  std::vector<float> x(5 * 96), keys(2 * 8 * 32), values(2 * 8 * 32);
  std::vector<std::uint32_t> offsets{0, 2, 5}, slots{1, 0}, cached{0, 0};
  workloads::DecoderWeights<float> w = plain.decoder();
  workloads::DecoderOptions options;
  const auto refused = [&](const TransformerShape& shape = even_shape) {
    return refusal(
        workloads::transformer_block(x, offsets, {keys, values, slots, cached, 8}, w, shape, options));
  };
  const auto with = [&](auto change) {
    TransformerShape shape = even_shape;
    change(shape);
    return refused(shape);
  };
  const std::string of = " of workload 'transformer_block' ";
  CHECK(refused() == "not refused");
  CHECK(with([](auto& s) { s.width = 0; }) == "Width (0)" + of + "is not between 1 and 1048576.");
  CHECK(with([](auto& s) { s.hidden = 1048577; }) ==
        "Hidden width (1048577)" + of + "is not between 1 and 1048576.");
  CHECK(with([](auto& s) { s.width = 97; }) ==
        "Matrix x (480 elements)" + of + "has no whole number of rows of 97.");
  CHECK(with([](auto& s) { s.hidden = 161; }) ==
        "Weights 'gate' (15360 elements)" + of + "are not 161 x 96 elements.");
  CHECK(with([](auto& s) { s.heads = 5; }) ==
        "Weights 'query' (6144 elements)" + of + "are not 80 x 96 elements.");
  CHECK(with([](auto& s) { s.key_value_heads = 0; }) ==
        "Weights 'key' (3072 elements)" + of + "are not 64 x 96 elements.");
  const std::vector<float> short_norm(95);
  w.feed_forward_norm = Read<float>(short_norm);
  CHECK(refused() == "Weights 'feed_forward_norm' (95 elements)" + of + "are not 96 elements.");
  w = plain.decoder();
  w.down.blocks = Read<std::uint8_t>(quantized.down.blocks);
  CHECK(refused() == "Weights 'down' (15360 elements)" + of + "also have blocks.");

  w = quantized.decoder();
  CHECK(refused() == "not refused");
  w.up.quantization = {BlockType::q8_0, 32};
  CHECK(refused() == "Weights 'up' (8640 bytes)" + of + "are not the 16320 bytes of 160 x 96 elements.");
  w.up.quantization = {BlockType::int4, 128};
  CHECK(refused() == "Weights 'up' (8640 bytes)" + of +
                         "have rows of 96 elements, which are no whole number of blocks of 128.");
  w.up.quantization = {BlockType::q4_0, 64};
  CHECK(refused() == "Group (64 elements) of workload 'transformer_block' is not 32.");
  w.up.quantization = {static_cast<BlockType>(9), 32};
  CHECK(refused() == "Block type (9) of workload 'transformer_block' exceeds the limit (4).");
  {
    StoredBlock<half> halves(even_shape, 1);
    auto narrow = halves.decoder();
    narrow.key.elements = std::span<const half>();
    narrow.key.blocks = Read<std::uint8_t>(quantized.key.blocks);
    std::vector<half> h(5 * 96), k(2 * 8 * 32), v(2 * 8 * 32);
    CHECK(refusal(workloads::transformer_block(h, offsets, {k, v, slots, cached, 8}, narrow, even_shape)) ==
          "Weights 'key' (1728 bytes)" + of + "are quantized, which requires x of float.");
  }

  w = plain.decoder();
  options.epsilon = 0;
  CHECK(refused() == "Epsilon (0.000000) of workload 'transformer_block' is not finite and at least 2^-126.");
  options = {};
  options.scale = infinity;
  CHECK(refused() == "Scale (inf)" + of + "is not finite.");
  options = {};
  options.rope->base = 1;
  CHECK(refused() == "Base (1.000000)" + of + "is not finite and at least 2.");
  options = {};
  options.rope->scale = 2;
  CHECK(refused() == "Scale (2.000000)" + of + "is not between 0.000001 and 1.");
  options = {};
  options.rope->factors = Read<float>(short_norm);
  CHECK(refused() == "Frequency factors (95 elements)" + of + "are not those of 8 pairs.");
  options = {};
  options.softcap = -1;
  CHECK(refused() == "Softcap (-1.000000)" + of + "is neither 0 nor finite and at least 2^-126.");
  options = {};
  offsets = {0, 2, 6};
  CHECK(refused() == "Offset 2 (6)" + of + "is not the number of rows (5).");
  offsets = {0, 2, 5};
  slots = {1, 1};
  CHECK(refused() == "Slot (1)" + of + "is that of two sequences.");
  slots = {1, 0};
  cached = {0, 6};
  CHECK(refused() == "Sequence 1 (9)" + of + "has more tokens than the cache (8).");
  cached = {0, 0};
  values.pop_back();
  CHECK(refused() == "Cache of values (511 elements)" + of + "has not 2 slots of 8 rows of 2 heads of 16.");

  const auto refused_encoder = [&](const workloads::EncoderWeights<float>& weights, float epsilon = 1e-12f) {
    return refusal(workloads::transformer_block(x, offsets, weights, even_shape, {.epsilon = epsilon}));
  };
  auto e = plain.encoder();
  CHECK(refused_encoder(e) == "not refused");
  CHECK(refused_encoder(e, infinity) ==
        "Epsilon (inf) of workload 'transformer_block' is not finite and at least 2^-126.");
  e.up_bias = Read<float>(short_norm);
  CHECK(refused_encoder(e) == "Weights 'up_bias' (95 elements)" + of + "are not 160 elements.");
  e = plain.encoder();
  e.attention_norm_bias = Read<float>(short_norm);
  CHECK(refused_encoder(e) == "Weights 'attention_norm_bias' (95 elements)" + of + "are not 96 elements.");
}
