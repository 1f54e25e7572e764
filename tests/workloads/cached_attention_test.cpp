#include <wye/workloads/attention.hpp>
#include <wye/workloads/cached_attention.hpp>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <utility>

#include "workloads/vectors.hpp"

using namespace wye;
using namespace wye::test;
namespace reference = wye::workloads::reference;
using workloads::SequenceOptions;
using workloads::SequenceShape;

namespace {

/// The tokens of a sequence: of the job, and in the cache before it.
struct SequenceTokens {
  std::uint32_t added = 0;
  std::uint32_t cached = 0;
};

/// Sequences of a job. Slots are not in order, and more than there are sequences. Rows of the cache
/// that no sequence has are NaN.
template <class T>
struct SequenceBatch {
  SequenceShape shape;
  SequenceOptions options;
  std::uint64_t capacity = 0;  // 0: no cache
  std::vector<std::uint32_t> offsets, slots, cached;
  std::vector<T> q, k, v, key_cache, value_cache;

  std::size_t rows() const { return offsets.back(); }
  std::size_t key_heads() const { return shape.key_value_heads == 0 ? shape.heads : shape.key_value_heads; }
  std::size_t value_size() const { return shape.value_size == 0 ? shape.head_size : shape.value_size; }
  std::size_t key_columns() const { return key_heads() * shape.head_size; }
  std::size_t value_columns() const { return key_heads() * value_size(); }
  std::size_t result_columns() const { return shape.heads * value_size(); }
  reference::CachedKeys<T> keys() const { return {key_cache, value_cache, slots, cached, capacity}; }
};

template <class T>
void copy_rows(const std::vector<T>& from, std::size_t row, std::vector<T>& to, std::size_t to_row,
               std::size_t rows, std::size_t columns) {
  std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(row * columns), rows * columns,
              to.begin() + static_cast<std::ptrdiff_t>(to_row * columns));
}

template <class T>
SequenceBatch<T> batch_of(const SequenceShape& shape, const std::vector<SequenceTokens>& sequences,
                          std::uint64_t capacity, std::uint32_t seed, const SequenceOptions& options = {}) {
  SequenceBatch<T> b{shape, options, capacity, {0}, {}, {}, {}, {}, {}, {}, {}};
  for (const SequenceTokens& tokens : sequences) b.offsets.push_back(b.offsets.back() + tokens.added);
  b.q = elements<T>(b.rows() * shape.heads * shape.head_size, seed);
  b.k = elements<T>(b.rows() * b.key_columns(), seed + 1);
  b.v = elements<T>(b.rows() * b.value_columns(), seed + 2);
  if (capacity == 0) return b;
  const std::size_t slots = sequences.size() + 2;
  b.key_cache.assign(slots * capacity * b.key_columns(), T(undefined));
  b.value_cache.assign(slots * capacity * b.value_columns(), T(undefined));
  b.slots.resize(slots);
  std::iota(b.slots.begin(), b.slots.end(), 0u);
  std::shuffle(b.slots.begin(), b.slots.end(), std::mt19937(seed));
  b.slots.resize(sequences.size());
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    const std::size_t count = sequences[s].cached, row = b.slots[s] * capacity;
    b.cached.push_back(sequences[s].cached);
    const auto number = static_cast<std::uint32_t>(seed + 10 * s);
    copy_rows(elements<T>(count * b.key_columns(), number + 3), 0, b.key_cache, row, count, b.key_columns());
    copy_rows(elements<T>(count * b.value_columns(), number + 4), 0, b.value_cache, row, count,
              b.value_columns());
  }
  return b;
}

template <class T>
std::vector<double> exact_of(const SequenceBatch<T>& b) {
  return b.capacity == 0
             ? reference::ragged_attention(b.q, b.k, b.v, b.offsets, b.shape, b.options)
             : reference::cached_attention(b.q, b.k, b.v, b.offsets, b.keys(), b.shape, b.options);
}

/// Runs a job. The caches of `b` change.
template <class T>
std::vector<T> attended(SequenceBatch<T>& b, const std::string& leg) {
  auto out = poison<T>(b.rows() * b.result_columns());
  if (b.capacity == 0)
    run(workloads::ragged_attention(b.q, b.k, b.v, b.offsets, out, b.shape, b.options), leg);
  else
    run(workloads::cached_attention(b.q, b.k, b.v, b.offsets,
                                    {b.key_cache, b.value_cache, b.slots, b.cached, b.capacity}, out, b.shape,
                                    b.options),
        leg);
  return out;
}

/// The documented bound of each number.
template <class T>
Bound bound_of(const SequenceBatch<T>& b, const std::vector<double>& exact) {
  SequenceBatch<T> sizes = b;
  sizes.v = sizes_of(b.v);
  sizes.value_cache = sizes_of(b.value_cache);
  const std::vector<double> of_values = exact_of(sizes);
  const std::size_t size = b.shape.head_size, heads = b.shape.heads, columns = b.value_size();
  const double scale =
      b.options.scale ? std::abs(double{*b.options.scale}) : 1 / std::sqrt(static_cast<double>(size));
  const auto number = [](T value) { return std::abs(static_cast<double>(static_cast<float>(value))); };
  std::vector<double> bounds(exact.size());
  for (std::size_t s = 0; s + 1 < b.offsets.size(); ++s) {
    const std::size_t before = b.capacity == 0 ? 0 : b.cached[s], begin = b.offsets[s],
                      tokens = b.offsets[s + 1] - begin;
    for (std::size_t i = 0; i < tokens * heads; ++i) {
      const std::size_t query = begin * heads + i, key_head = i % heads / (heads / b.key_heads());
      const std::size_t seen = before + (b.options.causal ? i / heads + 1 : tokens);
      const std::size_t first =
          b.options.window != 0 && seen > b.options.window ? seen - b.options.window : 0;
      double largest = 0;
      for (std::size_t j = first; j < seen; ++j) {
        const T* const row = j < before ? &b.key_cache[(b.slots[s] * b.capacity + j) * b.key_columns()]
                                        : &b.k[(begin + j - before) * b.key_columns()];
        double product = 0;
        for (std::size_t c = 0; c < size; ++c)
          product += number(b.q[query * size + c]) * number(row[key_head * size + c]);
        largest = std::max(largest, scale * product);
      }
      const double e =
          (static_cast<double>(size + 4) * 0x1p-23 + (b.options.softcap != 0 ? 0x1p-18 : 0)) * largest;
      const double weights = 5e-5 + std::expm1(2 * e) + static_cast<double>(seen + 2) * 0x1p-23;
      for (std::size_t at = query * columns; at < (query + 1) * columns; ++at)
        bounds[at] = with_rounding<T>(weights * of_values[at], exact[at]);
    }
  }
  return [bounds](std::size_t i) { return bounds[i]; };
}

/// Compares the results with the reference, and the cache with its contents before and the rows
/// that are appended.
template <class T>
std::string differing_batch(const SequenceBatch<T>& before, const std::string& leg) {
  SequenceBatch<T> after = before;
  const std::vector<double> exact = exact_of(before);
  const std::string wrong = difference(floats(attended(after, leg)), exact, bound_of(before, exact));
  if (!wrong.empty() || before.capacity == 0) return wrong;
  SequenceBatch<T> expected = before;
  for (std::size_t s = 0; s < before.slots.size(); ++s) {
    const std::size_t row = before.slots[s] * before.capacity + before.cached[s],
                      rows = before.offsets[s + 1] - before.offsets[s];
    copy_rows(before.k, before.offsets[s], expected.key_cache, row, rows, before.key_columns());
    copy_rows(before.v, before.offsets[s], expected.value_cache, row, rows, before.value_columns());
  }
  if (!equal_bits(after.key_cache, expected.key_cache)) return "the cache of keys differs";
  if (!equal_bits(after.value_cache, expected.value_cache)) return "the cache of values differs";
  return "";
}

/// Sequence s of a batch alone: tokens [first, last), the cache as it is.
template <class T>
SequenceBatch<T> part_of(const SequenceBatch<T>& b, std::size_t s, std::uint32_t first, std::uint32_t last) {
  SequenceBatch<T> part = b;
  const std::size_t row = b.offsets[s] + first, rows = last - first;
  part.offsets = {0, last - first};
  const auto cut = [&](std::vector<T>& numbers, std::size_t columns) {
    const auto begin = numbers.begin() + static_cast<std::ptrdiff_t>(row * columns);
    numbers = std::vector<T>(begin, begin + static_cast<std::ptrdiff_t>(rows * columns));
  };
  cut(part.q, b.shape.heads * b.shape.head_size);
  cut(part.k, b.key_columns());
  cut(part.v, b.value_columns());
  if (b.capacity == 0) return part;
  part.slots = {b.slots[s]};
  part.cached = {b.cached[s] + first};
  return part;
}

template <class T>
bool equal_rows(const std::vector<T>& some, const std::vector<T>& all, std::size_t first) {
  return some.empty() || std::memcmp(some.data(), &all[first], some.size() * sizeof(T)) == 0;
}

constexpr SequenceShape sequence_shapes[] = {
    {1, 1, 1},  {1, 0, 64, 1},  {4, 2, 7},   {9, 3, 64},      {5, 1, 20, 33}, {8, 1, 16, 8},
    {3, 3, 80}, {7, 7, 2, 129}, {2, 1, 256}, {4, 4, 31, 255}, {6, 2, 129, 3}, {12, 2, 5, 200}};

}  // namespace

TEST_CASE("cached_attention is right for heads of any number and size", "[workloads][cached_attention]") {
  const std::vector<SequenceTokens> sequences{{1, 0}, {0, 9}, {1, 7}, {3, 0}, {0, 0}, {2, 12}};
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      for (const SequenceShape& shape : sequence_shapes) {
        // The stand-in for CUDA takes long.
        constexpr int number = std::is_same_v<T, float> ? 0 : std::is_same_v<T, half> ? 1 : 2;
        if (leg == "cuda" && (&shape - sequence_shapes) % 3 != number) continue;
        INFO(leg << ", " << name(element_type<T>()) << ", " << shape.heads << " heads of " << shape.head_size
                 << " and " << shape.value_size << ", " << shape.key_value_heads << " of keys");
        CHECK(differing_batch(batch_of<T>(shape, sequences, 14, 1), leg) == "");
        CHECK(differing_batch(batch_of<T>(shape, sequences, 0, 2), leg) == "");
        CHECK(differing_batch(batch_of<T>(shape, sequences, 15, 3, {.scale = -0.3f, .causal = false}), leg) ==
              "");
      }
    });
}

TEST_CASE("cached_attention is right for any lengths beside stretches of 256 keys",
          "[workloads][cached_attention]") {
  const std::vector<SequenceTokens> sequences{{1, 255}, {1, 256}, {2, 255}, {1, 511},
                                              {3, 600}, {6, 252}, {1, 0}};
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()));
      if (leg == "cuda" && !std::is_same_v<T, half>) return;
      for (const bool causal : {true, false}) {
        const SequenceOptions options{.scale = std::nullopt, .causal = causal};
        CHECK(differing_batch(batch_of<T>({6, 2, 20, 9}, sequences, 603, 11, options), leg) == "");
        CHECK(differing_batch(batch_of<T>({2, 1, 3}, {{3, 0}, {0, 0}, {262, 0}, {1, 0}}, 0, 12, options),
                              leg) == "");
      }
    });
}

TEST_CASE("cached_attention sees the keys of a window", "[workloads][cached_attention]") {
  const std::vector<SequenceTokens> sequences{{1, 255}, {1, 256}, {2, 255}, {1, 511}, {3, 600},
                                              {6, 252}, {1, 0},   {0, 40},  {9, 0}};
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      if (leg == "cuda" && !std::is_same_v<T, bfloat16>) return;
      for (const std::uint64_t window : {1u, 2u, 7u, 255u, 256u, 257u, 300u, 512u, 602u, 603u, 100000u}) {
        if (leg == "cuda" && window > 2 && window % 256 > 1) continue;
        INFO(leg << ", " << name(element_type<T>()) << ", window " << window);
        const SequenceOptions options{.window = window};
        CHECK(differing_batch(batch_of<T>({6, 2, 20, 9}, sequences, 603, 13, options), leg) == "");
        CHECK(differing_batch(batch_of<T>({5, 1, 3, 130}, {{3, 0}, {0, 0}, {262, 0}, {1, 0}}, 0, 14, options),
                              leg) == "");
      }
      const SequenceOptions widest{.window = ~std::uint64_t{0}};
      CHECK(differing_batch(batch_of<T>({2, 1, 4}, {{3, 7}}, 10, 15, widest), leg) == "");
    });
}

TEST_CASE("cached_attention caps scores", "[workloads][cached_attention]") {
  const std::vector<SequenceTokens> sequences{{1, 300}, {3, 0}, {2, 12}};
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      // Scores from a hundredth to a hundred times the cap, and beyond both.
      for (const float softcap : {50.0f, 1.0f, 0.01f, 1e30f, 1e-37f})
        for (const float scale : {-1.0f, 0.5f, 30.0f}) {
          if (leg == "cuda" && (scale < 0 || !std::is_same_v<T, float>)&&softcap < 50) continue;
          INFO(leg << ", " << name(element_type<T>()) << ", softcap " << softcap << ", scale " << scale);
          CHECK(differing_batch(
                    batch_of<T>({6, 2, 20, 9}, sequences, 301, 16, {.scale = scale, .softcap = softcap}),
                    leg) == "");
        }
      CHECK(differing_batch(batch_of<T>({3, 3, 33}, {{4, 0}, {30, 0}}, 0, 17,
                                        {.scale = 4.0f, .causal = false, .softcap = 5.0f}),
                            leg) == "");
    });
}

TEST_CASE("cached_attention caps infinite scores, and keeps NaN", "[workloads][cached_attention]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    SequenceBatch<float> b = batch_of<float>({1, 1, 1}, {{4, 0}}, 0, 18, {.scale = 1.0f, .softcap = 2.0f});
    b.q = {1, 1, 1, 1};
    b.k = {0, infinity, -infinity, undefined};
    b.v = {1, 2, 4, 8};
    const std::vector<float> found = attended(b, leg);
    const double up = std::exp(2.0), down = std::exp(-2.0);
    CHECK(std::abs(double{found[0]} - 1) < 1e-6);
    CHECK(std::abs(double{found[1]} - (1 + 2 * up) / (1 + up)) < 1e-5);
    CHECK(std::abs(double{found[2]} - (1 + 2 * up + 4 * down) / (1 + up + down)) < 1e-5);
    CHECK(std::isnan(found[3]));
  }
}

TEST_CASE("cached_attention without rows gives nothing", "[workloads][cached_attention]") {
  for (const std::string& leg : legs())
    for (const std::uint64_t capacity : {0u, 3u})
      for (const std::vector<SequenceTokens>& sequences :
           {std::vector<SequenceTokens>{}, std::vector<SequenceTokens>{{0, 0}, {0, 2}}}) {
        INFO(leg);
        CHECK(differing_batch(batch_of<half>({4, 2, 5}, sequences, capacity, 21), leg) == "");
      }
}

TEST_CASE("cached_attention is right for random sequences", "[workloads][cached_attention]") {
  std::mt19937 random(23);
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const std::uint64_t key_heads = 1 + random() % 3, group = 1 + random() % 6;
    const SequenceShape shape{key_heads * group, key_heads, 1 + random() % 40, random() % 40};
    const std::uint64_t capacity = i % 3 == 0 ? 0 : 12 + random() % (i % 8 == 1 ? 300 : 12);
    std::vector<SequenceTokens> sequences(random() % 5);
    for (SequenceTokens& tokens : sequences) {
      tokens.added = static_cast<std::uint32_t>(random() % 4 == 0 ? random() % 9 : random() % 2);
      if (capacity != 0) tokens.cached = static_cast<std::uint32_t>(random() % (capacity - tokens.added + 1));
    }
    SequenceOptions options{.scale = std::nullopt, .causal = random() % 4 != 0};
    if (options.causal && random() % 2 == 0) options.window = 1 + random() % (random() % 3 == 0 ? 300 : 8);
    if (random() % 3 == 0) options.softcap = std::exp2(static_cast<float>(random() % 16) - 8);
    const auto seed = static_cast<std::uint32_t>(random());
    const std::string& leg = legs()[random() % legs().size()];
    if (leg == "cuda" && i % 5 != 0) continue;  // takes long on the stand-in
    for_float_type(i, [&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()) << ", " << shape.heads << " heads of " << shape.head_size
               << " and " << shape.value_size << ", " << key_heads << " of keys, " << sequences.size()
               << " sequences, capacity " << capacity << ", causal " << options.causal << ", window "
               << options.window << ", softcap " << options.softcap << ", seed " << seed);
      CHECK(differing_batch(batch_of<T>(shape, sequences, capacity, seed, options), leg) == "");
    });
  }
}

TEST_CASE("the reference of ragged_attention is that of attention for each sequence and head",
          "[workloads][cached_attention]") {
  const SequenceBatch<float> b = batch_of<float>({6, 2, 5, 3}, {{4, 0}, {1, 0}, {7, 0}}, 0, 31);
  const std::vector<double> all = exact_of(b);
  for (std::size_t s = 0; s < 3; ++s)
    for (std::size_t head = 0; head < 6; ++head) {
      const std::size_t begin = b.offsets[s], rows = b.offsets[s + 1] - begin;
      const auto head_of = [&](const std::vector<float>& from, std::size_t heads, std::size_t which,
                               std::size_t size) {
        std::vector<float> part;
        for (std::size_t i = 0; i < rows * size; ++i)
          part.push_back(from[((begin + i / size) * heads + which) * size + i % size]);
        return part;
      };
      const auto q = head_of(b.q, 6, head, 5), k = head_of(b.k, 2, head / 3, 5),
                 v = head_of(b.v, 2, head / 3, 3);
      const std::vector<double> one = reference::attention(q, k, v, {1, rows, rows, 5, 3}, {.causal = true});
      for (std::size_t i = 0; i < one.size(); ++i)
        CHECK(std::abs(one[i] - all[((begin + i / 3) * 6 + head) * 3 + i % 3]) < 1e-12);
    }
}

TEST_CASE("cached_attention gives a row the same bits alone, in any batch and token by token",
          "[workloads][cached_attention]") {
  const std::vector<SequenceTokens> sequences{{3, 254}, {0, 4}, {1, 300}, {5, 0}, {2, 17}};
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()));
      if (leg == "cuda" && !std::is_same_v<T, bfloat16>) return;
      for (const std::uint64_t window : {0u, 5u, 270u}) {
        INFO("window " << window);
        const SequenceOptions options{.window = window, .softcap = window == 5 ? 3.0f : 0.0f};
        const SequenceBatch<T> b = batch_of<T>({10, 2, 33, 20}, sequences, 310, 41, options);
        SequenceBatch<T> together = b;
        const std::vector<T> all = attended(together, leg);
        for (std::size_t s = 0; s < sequences.size(); ++s) {
          INFO("sequence " << s);
          SequenceBatch<T> alone = part_of(b, s, 0, sequences[s].added);
          CHECK(equal_rows(attended(alone, leg), all, b.offsets[s] * b.result_columns()));
          SequenceBatch<T> cache = b;
          for (std::uint32_t i = 0; i < sequences[s].added; ++i) {
            SequenceBatch<T> one = part_of(cache, s, i, i + 1);
            CHECK(equal_rows(attended(one, leg), all, (b.offsets[s] + i) * b.result_columns()));
            cache.key_cache = one.key_cache;
            cache.value_cache = one.value_cache;
          }
        }
        // Without a cache, too.
        SequenceBatch<T> ragged = batch_of<T>({4, 2, 33, 20}, {{270, 0}, {3, 0}}, 0, 42, options);
        const std::vector<T> both = attended(ragged, leg);
        for (std::size_t s = 0; s < 2; ++s) {
          SequenceBatch<T> alone = part_of(ragged, s, 0, ragged.offsets[s + 1] - ragged.offsets[s]);
          CHECK(equal_rows(attended(alone, leg), both, ragged.offsets[s] * ragged.result_columns()));
        }
      }
    });
}

TEST_CASE("attention of sequences has the same bits with a window of all keys as without one",
          "[workloads][cached_attention]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    SequenceBatch<half> b = batch_of<half>({4, 2, 9}, {{3, 0}, {300, 0}, {1, 0}}, 0, 43);
    const std::vector<half> all = attended(b, leg);
    for (const std::uint64_t window : {300u, 301u, 5000u}) {
      b.options.window = window;
      CHECK(equal_bits(attended(b, leg), all));
    }
    b.options.window = 299;
    CHECK_FALSE(equal_bits(attended(b, leg), all));
  }
}

TEST_CASE("attention of sequences has no effect of what is before a window",
          "[workloads][cached_attention]") {
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()));
      const SequenceBatch<T> b = batch_of<T>({4, 2, 6, 5}, {{2, 290}}, 300, 44, {.window = 40});
      SequenceBatch<T> same = b;
      const std::vector<T> before = attended(same, leg);
      // Row 0 is at place 290 and sees the places from 251 on. Large keys would have all the weight.
      const std::size_t slot = b.slots[0] * b.capacity;
      for (const float other : {undefined, 1000.0f, -1000.0f}) {
        INFO("keys and values before the window are " << other);
        SequenceBatch<T> changed = b;
        std::fill_n(changed.key_cache.begin() + static_cast<std::ptrdiff_t>(slot * b.key_columns()),
                    251 * b.key_columns(), T(other));
        std::fill_n(changed.value_cache.begin() + static_cast<std::ptrdiff_t>(slot * b.value_columns()),
                    251 * b.value_columns(), T(other));
        CHECK(equal_bits(attended(changed, leg), before));
      }
    });
}

TEST_CASE("cached_attention serves requests that join and leave, with a cache on the device",
          "[workloads][cached_attention]") {
  struct Request {
    std::uint32_t slot, length, prompt, end;
    std::vector<half> q, k, v;  // of all tokens
  };
  const SequenceShape shape{6, 2, 16};
  constexpr std::size_t query_columns = 6 * 16, key_columns = 2 * 16, capacity = 24, slots = 3;
  for (const std::string& leg : legs()) {
    INFO(leg);
    std::mt19937 random(51);
    const std::vector<half> empty(slots * capacity * key_columns, half(undefined));
    const Array<half> key_cache = the_runtime().array(empty), value_cache = the_runtime().array(empty);
    std::vector<Request> waiting, running;
    for (std::uint32_t i = 0; i < 8; ++i) {
      const auto prompt = static_cast<std::uint32_t>(1 + random() % 9),
                 end = static_cast<std::uint32_t>(prompt + random() % (capacity - prompt + 1));
      waiting.push_back({0, 0, prompt, end, elements<half>(end * query_columns, 60 + i),
                         elements<half>(end * key_columns, 70 + i),
                         elements<half>(end * key_columns, 80 + i)});
    }
    std::vector<std::uint32_t> free_slots{2, 0, 1};
    std::size_t ended = 0;
    while (!waiting.empty() || !running.empty()) {
      while (!waiting.empty() && !free_slots.empty()) {
        running.push_back(std::move(waiting.back()));
        running.back().slot = free_slots.back();
        waiting.pop_back();
        free_slots.pop_back();
      }
      std::vector<std::uint32_t> offsets{0}, of_slots, cached;
      std::vector<half> q, k, v;
      for (Request& r : running) {
        const std::uint32_t tokens = r.length == 0 ? r.prompt : 1;
        const auto append = [&](std::vector<half>& to, const std::vector<half>& from, std::size_t columns) {
          const auto begin = from.begin() + static_cast<std::ptrdiff_t>(r.length * columns);
          to.insert(to.end(), begin, begin + static_cast<std::ptrdiff_t>(tokens * columns));
        };
        append(q, r.q, query_columns);
        append(k, r.k, key_columns);
        append(v, r.v, key_columns);
        offsets.push_back(offsets.back() + tokens);
        of_slots.push_back(r.slot);
        cached.push_back(r.length);
      }
      auto out = poison<half>(q.size());
      run(workloads::cached_attention(q, k, v, offsets, {key_cache, value_cache, of_slots, cached, capacity},
                                      out, shape),
          leg);
      for (std::size_t s = 0; s < running.size(); ++s) {
        Request& r = running[s];
        r.length += offsets[s + 1] - offsets[s];
        const std::vector<std::uint32_t> whole{0, r.length};
        const std::vector<double> exact = reference::ragged_attention(
            std::span(r.q).first(r.length * query_columns), std::span(r.k).first(r.length * key_columns),
            std::span(r.v).first(r.length * key_columns), whole, shape);
        const std::size_t count = (offsets[s + 1] - offsets[s]) * query_columns;
        const std::vector<float> found = floats(out);
        CHECK(difference(std::span(found).subspan(offsets[s] * query_columns, count),
                         std::span(exact).last(count), [](std::size_t) { return 1e-3; }) == "");
      }
      std::erase_if(running, [&](const Request& r) {
        if (r.length < r.end) return false;
        free_slots.push_back(r.slot);
        ++ended;
        return true;
      });
    }
    CHECK(ended == 8);
  }
}

TEST_CASE("cached_attention gives zeros to rows without a place, and appends none of them",
          "[workloads][cached_attention]") {
  // Offsets that decrease, rows that no sequence has, slots and places that do not exist. The
  // arrays are not host memory.
  const SequenceShape shape{4, 2, 5, 3};
  constexpr std::uint64_t capacity = 6, slots = 3;
  struct Case {
    std::vector<std::uint32_t> offsets, slots, cached;
    std::vector<std::uint32_t> places;  // of each row in the cache
  };
  constexpr std::uint32_t none = ~0u;
  const Case cases[] = {
      {{0, 2, 4, 5}, {2, 3, 0}, {0, 0, 0}, {12, 13, none, none, 0}},
      {{0, 2, 4, 5}, {2, none, 0}, {5, 0, none}, {17, none, none, none, none}},
      {{0, 2, 4, 5}, {2, 1, 0}, {4, 6, 5}, {16, 17, none, none, 5}},
      {{1, 2, 4, 4}, {2, 1, 0}, {0, 3, 0}, {none, 12, 9, 10, none}},
      {{0, 3, none, none}, {0, 1, 2}, {0, 2, 0}, {0, 1, 2, 8, 9}},
      {{4, 3, 2, 0}, {0, 1, 2}, {0, 0, 0}, {none, none, none, none, none}},
  };
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()));
      for (const Case& c : cases) {
        INFO("case " << &c - cases);
        const auto q = elements<T>(5 * 20, 61), k = elements<T>(5 * 10, 62), v = elements<T>(5 * 6, 63);
        // Arrays begin with numbers that are not the cache's.
        const auto keys = elements<T>(slots * capacity * 10 + 7, 64),
                   values = elements<T>(slots * capacity * 6 + 7, 65);
        const Array<T> key_cache = the_runtime().array(keys), value_cache = the_runtime().array(values),
                       out = the_runtime().array(poison<T>(5 * 12 + 6));
        const Array<std::uint32_t> offsets = the_runtime().array(c.offsets),
                                   of_slots = the_runtime().array(c.slots),
                                   cached = the_runtime().array(c.cached);
        run(workloads::cached_attention(
                q, k, v, offsets,
                {ReadWrite<T>(key_cache).slice(3, slots * capacity * 10),
                 ReadWrite<T>(value_cache).slice(3, slots * capacity * 6), of_slots, cached, capacity},
                Write<T>(out).slice(3, 5 * 12), shape),
            leg);
        const auto keys_after = key_cache.read(), values_after = value_cache.read(), found = out.read();
        REQUIRE((keys_after && values_after && found));
        auto expected_keys = keys, expected_values = values;
        for (std::size_t row = 0; row < 5; ++row) {
          if (c.places[row] == none) continue;
          std::copy_n(k.begin() + static_cast<std::ptrdiff_t>(row * 10), 10,
                      expected_keys.begin() + static_cast<std::ptrdiff_t>(3 + c.places[row] * 10));
          std::copy_n(v.begin() + static_cast<std::ptrdiff_t>(row * 6), 6,
                      expected_values.begin() + static_cast<std::ptrdiff_t>(3 + c.places[row] * 6));
        }
        CHECK(equal_bits(std::vector<T>(keys_after->begin(), keys_after->end()), expected_keys));
        CHECK(equal_bits(std::vector<T>(values_after->begin(), values_after->end()), expected_values));
        const std::vector<T> results(found->begin(), found->end()), before = poison<T>(results.size());
        for (std::size_t i = 0; i < results.size(); ++i) {
          const bool is_result = i >= 3 && i < 63;
          if (!is_result) {
            CHECK(std::memcmp(&results[i], &before[i], sizeof(T)) == 0);
            continue;
          }
          const std::size_t row = (i - 3) / 12, head = (i - 3) % 12 / 3;
          if (c.places[row] == none) {
            CHECK(static_cast<float>(results[i]) == 0);
            continue;
          }
          // The row sees the rows of its slot up to its own.
          const std::size_t own = c.places[row], first = own / capacity * capacity;
          double sum = 0, total = 0;
          for (std::size_t place = first; place <= own; ++place) {
            double score = 0;
            for (std::size_t x = 0; x < 5; ++x)
              score += double{static_cast<float>(q[row * 20 + head * 5 + x])} *
                       double{static_cast<float>(expected_keys[3 + place * 10 + head / 2 * 5 + x])};
            const double weight = std::exp(score / std::sqrt(5.0));
            total += weight;
            sum += weight *
                   double{static_cast<float>(expected_values[3 + place * 6 + head / 2 * 3 + (i - 3) % 3])};
          }
          CHECK(std::abs(double{static_cast<float>(results[i])} - sum / total) <
                with_rounding<T>(2e-4, sum / total));
        }
      }
    });
}

TEST_CASE("ragged_attention takes offsets from the device", "[workloads][cached_attention]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    SequenceBatch<half> b = batch_of<half>({4, 2, 9}, {{3, 0}, {0, 0}, {290, 0}, {1, 0}}, 0, 71);
    const std::vector<half> expected = attended(b, leg);
    const Array<std::uint32_t> offsets = the_runtime().array(b.offsets);
    auto out = poison<half>(expected.size());
    run(workloads::ragged_attention(b.q, b.k, b.v, offsets, out, b.shape), leg);
    CHECK(equal_bits(out, expected));
    // The last offset is beyond the rows, and all offsets are.
    for (const std::vector<std::uint32_t>& odd :
         {std::vector<std::uint32_t>{0, 3, 3, 293, ~0u}, std::vector<std::uint32_t>{~0u, ~0u}}) {
      const Array<std::uint32_t> beyond = the_runtime().array(odd);
      out = poison<half>(expected.size());
      run(workloads::ragged_attention(b.q, b.k, b.v, beyond, out, b.shape, {.scale = {}, .causal = false}),
          leg);
      CHECK((odd[0] == 0 || equal_bits(out, std::vector<half>(out.size()))));
    }
  }
}

TEST_CASE("attention of sequences is right in several steps of rows", "[workloads][cached_attention]") {
  // The state of all rows exceeds 32 MiB, because offsets are not host memory.
  std::vector<SequenceTokens> sequences;
  for (std::uint32_t i = 0; i < 320; ++i) sequences.push_back({1 + i % 4, 0});
  const SequenceBatch<float> b = batch_of<float>({12, 3, 3, 256}, sequences, 0, 81);
  const std::vector<double> exact = exact_of(b);
  const Bound bound = bound_of(b, exact);
  for (const std::string& leg : legs()) {
    INFO(leg);
    const Array<std::uint32_t> offsets = the_runtime().array(b.offsets);
    auto out = poison<float>(exact.size());
    run(workloads::ragged_attention(b.q, b.k, b.v, offsets, out, b.shape), leg);
    CHECK(difference(out, exact, bound) == "");
  }
}

TEST_CASE("attention of sequences propagates NaN and infinities of the keys that a row sees",
          "[workloads][cached_attention]") {
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()));
      const SequenceBatch<T> clean = batch_of<T>({2, 1, 2}, {{3, 0}, {2, 0}}, 0, 91);
      SequenceBatch<T> copy = clean;
      const std::vector<T> before = attended(copy, leg);
      const auto check = [&](SequenceBatch<T> b, const char* expected) {
        // For each row: s: the same bits, n: NaN, f: finite, i: infinite in column 0.
        const std::vector<T> after = attended(b, leg);
        for (std::size_t i = 0; i < after.size(); ++i) {
          const float found = static_cast<float>(after[i]);
          INFO("number " << i << " is " << found << ", expected " << expected);
          const char kind = expected[i / 4];
          if (kind == 's') CHECK(std::memcmp(&after[i], &before[i], sizeof(T)) == 0);
          if (kind == 'n') CHECK(std::isnan(found));
          if (kind == 'f') CHECK(std::isfinite(found));
          if (kind == 'i') CHECK(std::isinf(found) == (i % 2 == 0));
        }
      };
      SequenceBatch<T> b = clean;
      b.k[1 * 2] = T(undefined);
      check(b, "snnss");
      b = clean;
      b.q[1 * 4] = b.q[1 * 4 + 2] = T(infinity), b.k[0] = T(1.0f), b.k[2] = T(0.5f);
      check(b, "?n?ss");
      b = clean;
      b.v[1 * 2] = T(infinity);
      check(b, "siiss");
      // Scores of -infinity: one of three keys, then all.
      b = clean;
      std::fill(b.q.begin(), b.q.end(), T(1.0f));
      b.k[1 * 2] = T(-infinity);
      check(b, "ffff?");
      b.k[0] = T(-infinity);
      check(b, "nnf??");
      b.k[2 * 2] = T(-infinity);
      check(b, "nnn??");
    });
}

TEST_CASE("attention of sequences is right for a cache beyond 4 GiB",
          "[workloads][cached_attention][large]") {
  if (!has_leg("cpu")) return;
  constexpr std::size_t capacity = std::size_t{1} << 22, columns = 256, slots = 2;
  constexpr auto release = [](void* memory) { std::free(memory); };
  // Of this memory, only the pages exist that are used.
  const std::unique_ptr<void, decltype(release)> memory(
      std::calloc(slots * capacity * columns, sizeof(float)), release);
  REQUIRE(memory);
  const std::span<float> values(static_cast<float*>(memory.get()), slots * capacity * columns);
  std::vector<float> keys(slots * capacity);
  SequenceBatch<float> b = batch_of<float>({2, 1, 1, columns}, {{2, 300}}, 303, 95);
  for (std::size_t i = 0; i < 300; ++i) {
    const std::size_t from = b.slots[0] * 303 + i;
    keys[capacity + i] = b.key_cache[from];
    std::copy_n(b.value_cache.begin() + static_cast<std::ptrdiff_t>(from * columns), columns,
                values.begin() + static_cast<std::ptrdiff_t>((capacity + i) * columns));
  }
  const std::vector<std::uint32_t> of_slots{1};
  auto out = poison<float>(2 * 2 * columns);
  run(workloads::cached_attention(b.q, b.k, b.v, b.offsets, {keys, values, of_slots, b.cached, capacity}, out,
                                  b.shape),
      "cpu");
  const std::vector<double> exact = exact_of(b);
  CHECK(difference(out, exact, bound_of(b, exact)) == "");
  CHECK(std::memcmp(&values[(capacity + 300) * columns], b.v.data(), 2 * columns * sizeof(float)) == 0);
}

TEST_CASE("attention of sequences refuses results that overlap queries, keys, values or the cache",
          "[workloads][cached_attention]") {
  const std::vector<std::uint32_t> offsets{0, 5}, slots{0}, cached{0};
  for (const std::string& leg : legs())
    for (std::size_t which = 0; which < 5; ++which) {
      INFO(leg << ", " << which);
      std::vector<float> shared(101, 1.0f), q(100), k(100), v(100), keys(100), values(100);
      const std::span<float> part = std::span(shared).first(100), out = std::span(shared).last(100);
      const auto or_part = [&](std::size_t number, std::vector<float>& own) {
        return number == which ? part : std::span<float>(own);
      };
      auto job = which < 3 ? workloads::ragged_attention(or_part(0, q), or_part(1, k), or_part(2, v), offsets,
                                                         out, {4, 4, 5})
                           : workloads::cached_attention(
                                 q, k, v, offsets, {or_part(3, keys), or_part(4, values), slots, cached, 5},
                                 out, {4, 4, 5});
      const auto done =
          the_runtime().submit(std::move(job), {.fallback = Fallback::forbid, .on = leg}).wait();
      REQUIRE_FALSE(done);
      CHECK(done.error() == Errc::invalid_argument);
    }
}

TEST_CASE("cached_attention refuses sizes that do not match, and sequences that the cache cannot have",
          "[workloads][cached_attention]") {
  std::vector<float> q(5 * 4 * 3), k(5 * 2 * 3), v(5 * 2 * 3), out(5 * 4 * 3), keys(3 * 8 * 6),
      values(3 * 8 * 6);
  std::vector<std::uint32_t> offsets{0, 2, 2, 5}, slots{1, 1, 0}, cached{6, 0, 5};
  std::uint64_t capacity = 8;
  const auto refused = [&](const SequenceShape& shape = {4, 2, 3}, const SequenceOptions& options = {}) {
    return refusal(workloads::cached_attention(q, k, v, offsets, {keys, values, slots, cached, capacity}, out,
                                               shape, options));
  };
  const std::string of = " of workload 'cached_attention' ";
  CHECK(refused() == "not refused");
  CHECK(refused({0, 2, 3}) == "Number of heads (0)" + of + "is below the minimum (1).");
  CHECK(refused({1025, 1, 3}) == "Number of heads (1025)" + of + "exceeds the limit (1024).");
  CHECK(refused({4, 3, 3}) ==
        "Number of heads (4)" + of + "is no multiple of the number of key/value heads (3).");
  CHECK(refused({4, 2, 0}) == "Head size (0)" + of + "is below the minimum (1).");
  CHECK(refused({4, 2, 257}) == "Head size (257)" + of + "exceeds the limit (256).");
  CHECK(refused({4, 2, 3, 257}) == "Value size (257)" + of + "exceeds the limit (256).");
  CHECK(refused({4, 2, 7}) == "Queries (60 elements)" + of + "are no whole rows of 4 heads of 7.");
  CHECK(refused({4, 1, 3}) == "Keys (30 elements)" + of + "are not 5 rows of 1 heads of 3.");
  CHECK(refused({4, 2, 3, 2}) == "Values (30 elements)" + of + "are not 5 rows of 2 heads of 2.");
  CHECK(refused({4, 2, 3}, {.scale = infinity}) == "Scale (inf)" + of + "is not finite.");
  CHECK(refused({4, 2, 3}, {.causal = false, .window = 4}) ==
        "Window (4)" + of + "requires causal attention.");
  for (const float odd : {-1.0f, 1e-39f, infinity, undefined})
    CHECK(refused({4, 2, 3}, {.softcap = odd}) ==
          "Softcap (" + std::to_string(odd) + ")" + of + "is neither 0 nor finite and at least 2^-126.");
  out.pop_back();
  CHECK(refused() == "Results (59 elements)" + of + "are not 5 rows of 4 heads of 3.");
  out.push_back(0);
  for (const std::uint64_t odd : {std::uint64_t{0}, (std::uint64_t{1} << 22) + 1}) {
    capacity = odd;
    CHECK(refused() == "Capacity (" + std::to_string(odd) + ")" + of + "is not between 1 and 4194304.");
  }
  capacity = 7;
  CHECK(refused() ==
        "Cache of keys (144 elements)" + of + "has no whole number of slots of 7 rows of 2 heads of 3.");
  capacity = 8;
  values.pop_back();
  CHECK(refused() == "Cache of values (143 elements)" + of + "has not 3 slots of 8 rows of 2 heads of 3.");
  values.push_back(0);

  const auto with = [&](std::vector<std::uint32_t>& numbers, const std::vector<std::uint32_t>& others) {
    const std::vector<std::uint32_t> before = std::exchange(numbers, others);
    const std::string sentence = refused();
    numbers = before;
    return sentence;
  };
  CHECK(with(offsets, {}) == "Offsets (0 elements)" + of + "are not between 1 and 2147483647.");
  CHECK(with(offsets, {0, 5}) == "Slots (3 elements)" + of + "are not those of 1 sequences.");
  CHECK(with(cached, {0, 5}) == "Cached tokens (2 elements)" + of + "are not those of 3 sequences.");
  CHECK(with(offsets, {1, 2, 2, 5}) == "Offset 0 (1)" + of + "is not 0.");
  CHECK(with(offsets, {0, 3, 2, 5}) == "Offset 2 (2)" + of + "is below the offset before it (3).");
  CHECK(with(offsets, {0, 2, 2, 6}) == "Offset 3 (6)" + of + "is not the number of rows (5).");
  CHECK(with(cached, {7, 0, 5}) == "Sequence 0 (9)" + of + "has more tokens than the cache (8).");
  CHECK(with(cached, {6, 9, 5}) == "not refused");  // of an empty sequence
  CHECK(with(slots, {3, 1, 0}) == "Slot 0 (3)" + of + "is not below the number of slots (3).");
  CHECK(with(slots, {0, 1, 0}) == "Slot (0)" + of + "is that of two sequences.");

  CHECK(refusal(workloads::ragged_attention(q, k, v, slots, out, {4, 2, 3})) ==
        "Offset 0 (1) of workload 'ragged_attention' is not 0.");
  // Heads times keys bound the state of a row.
  const std::vector<float> one(1024), key(1);
  std::vector<float> of_keys((1 << 18) + 1), of_values(of_keys.size()), result(1024);
  const std::vector<std::uint32_t> whole{0, 1}, slot{0};
  const Array<std::uint32_t> unseen = the_runtime().array(slot);
  SequenceOptions options;
  const auto long_cache = [&](std::uint64_t rows) {
    return refusal(workloads::cached_attention(
        one, key, key, whole,
        {std::span(of_keys).first(rows), std::span(of_values).first(rows), slot, unseen, rows}, result,
        {1024, 1, 1}, options));
  };
  CHECK(long_cache(1 << 18) == "not refused");
  CHECK(long_cache((1 << 18) + 1) ==
        "Number of heads times the longest sequence (268436480)" + of + "exceeds the limit (268435456).");
  options.window = 1 << 17;  // bounds the keys of a row
  CHECK(long_cache((1 << 18) + 1) == "not refused");
}
