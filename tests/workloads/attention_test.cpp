#include <wye/workloads/attention.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <type_traits>

#include "attention_kernels.hpp"
#include "steps.hpp"
#include "variants.hpp"
#include "workloads/attention_case.hpp"
#include "workloads/legs.hpp"

using namespace wye;
using namespace wye::test;
namespace reference = wye::workloads::reference;
using workloads::AttentionOptions;
using workloads::AttentionShape;

namespace {

/// Attends by the CUDA kernels that use no tensor cores, whichever the workload takes, to `step`
/// keys at a time.
template <class T>
void attend_plainly(const Heads<T>& p, const Read<T>& q, const Read<T>& k, const Read<T>& v,
                    const Write<T>& out, std::uint64_t step = 16384) {
  const auto kernel = workloads::make_attention_kernel<T>(std::is_same_v<T, half>
                                                              ? workloads::kernels::attention_half_plain
                                                              : workloads::kernels::attention_bfloat16_plain)
                          .value();
  workloads::AttentionStretch stretch{
      .heads = static_cast<std::uint32_t>(p.shape.heads),
      .queries = static_cast<std::uint32_t>(p.shape.queries),
      .keys = static_cast<std::uint32_t>(p.shape.keys),
      .sizes = workloads::AttentionStretch::sizes_of(p.shape.head_size, value_size(p.shape)),
      .causal = p.options.causal,
      .scale = p.options.scale.value_or(
          static_cast<float>(1 / std::sqrt(static_cast<double>(p.shape.head_size))))};
  const Extent3 items = workloads::flat(p.shape.heads * workloads::blocks_of_head(p.shape.queries) *
                                        workloads::items_per_query_block);
  std::vector<float> state = poisoned(
      step < p.shape.keys ? p.shape.heads * p.shape.queries * workloads::state_size(value_size(p.shape)) : 0);
  do {
    stretch.first = stretch.last;
    stretch.last = static_cast<std::uint32_t>(std::min(stretch.last + step, p.shape.keys));
    run(kernel(q, k, v, out, state, stretch).over(items), "cuda");
  } while (stretch.last < stretch.keys);
}

template <class T>
std::string plain_attention_difference(const Heads<T>& p, std::uint64_t step = 16384) {
  std::vector<T> out = of<T>(poisoned(results(p.shape)));
  attend_plainly<T>(p, p.q, p.k, p.v, out, step);
  const std::vector<double> exact = reference::attention(p.q, p.k, p.v, p.shape, p.options);
  return difference(floats(out), exact, bound_of(p, exact));
}

/// Of both kinds of 16 bits.
void plain_attention_is_right(AttentionShape shape, AttentionOptions options = {},
                              std::uint64_t step = 16384) {
  INFO(shape.heads << " heads, " << shape.queries << " queries, " << shape.keys << " keys of "
                   << shape.head_size << " and " << value_size(shape)
                   << (options.causal ? ", causal, " : ", ") << step << " at a time");
  CHECK(plain_attention_difference(heads<half>(shape, options), step) == "");
  CHECK(plain_attention_difference(heads<bfloat16>(shape, options), step) == "");
}

constexpr AttentionShape any_shapes[] = {{1, 1, 1, 1},    {1, 1, 1, 64},   {2, 1, 100, 32}, {3, 70, 1, 8},
                                         {2, 64, 64, 64}, {3, 65, 33, 40}, {1, 17, 300, 80}},
                         causal_shapes[] = {
                             {1, 1, 5, 4}, {2, 5, 5, 4}, {2, 70, 70, 20}, {2, 40, 100, 16}, {1, 100, 40, 16}};

/// Of every kind of number.
void attention_is_right(AttentionShape shape, AttentionOptions options = {}) {
  for (const std::string& leg : legs()) {
    INFO(leg << ", " << shape.heads << " heads, " << shape.queries << " queries, " << shape.keys
             << " keys of " << shape.head_size << " and " << value_size(shape)
             << (options.causal ? ", causal" : ""));
    CHECK(difference_of(heads<float>(shape, options), leg) == "");
    CHECK(difference_of(heads<half>(shape, options), leg) == "");
    CHECK(difference_of(heads<bfloat16>(shape, options), leg) == "");
  }
}

/// Compares causal attention with and without NaN and infinities in keys and values that some
/// queries do not see. Returns "" if the queries that do not see them keep their results, and the
/// others become NaN.
template <class T>
std::string unseen_difference(AttentionShape shape,
                              const std::function<std::vector<float>(const Heads<T>&)>& attend) {
  const Heads<T> clean = heads<T>(shape, {.causal = true});
  const std::vector<double> exact = reference::attention(clean.q, clean.k, clean.v, shape, clean.options);
  const Bound bound = bound_of(clean, exact);
  for (const std::uint64_t back : {std::uint64_t{1}, shape.keys / 2, shape.keys})
    for (const float odd : {undefined, infinity}) {
      Heads<T> p = clean;
      const std::uint64_t key = shape.keys - back;
      for (std::uint64_t head = 0; head < shape.heads; ++head)
        for (std::uint64_t c = 0; c < shape.head_size; ++c) {
          const std::uint64_t at = (head * shape.keys + key) * shape.head_size + c;
          p.k[at] = p.v[at] = T(c % 2 == 0 ? odd : -odd);
        }
      const std::vector<float> got = attend(p);
      for (std::uint64_t i = 0; i < got.size(); ++i) {
        const std::uint64_t query = i / shape.head_size % shape.queries;
        const bool sees = query + shape.keys >= key + shape.queries;
        // A score of -infinity has the weight 0.
        if (sees ? std::isfinite(got[i]) && std::isnan(odd)
                 : !(std::abs(static_cast<double>(got[i]) - exact[i]) <= bound(i)))
          return std::to_string(got[i]) + " instead of " + std::to_string(exact[i]) + " for query " +
                 std::to_string(query) + " and key " + std::to_string(key);
      }
    }
  return "";
}

}  // namespace

TEST_CASE("attention is right for any number of heads, queries and keys", "[workloads][attention]") {
  for (const AttentionShape& shape : any_shapes) attention_is_right(shape);
}

TEST_CASE("attention is right for heads of any size", "[workloads][attention]") {
  for (std::uint64_t size : {2u, 7u, 16u, 31u, 63u, 100u, 128u, 129u, 200u, 255u, 256u})
    attention_is_right({2, 9, 35, size});
}

TEST_CASE("attention is right for few queries of a head", "[workloads][attention]") {
  // Up to 4 queries the CPU computes otherwise.
  for (const std::uint64_t queries : {1u, 2u, 3u, 4u, 5u}) {
    attention_is_right({2, queries, 259, 20, 9}, {.causal = queries % 2 == 0});
    attention_is_right({3, queries, 15, 3, 70}, {.causal = queries % 2 == 1});
    attention_is_right({1, queries, 513, 33, 70});
    std::vector<float> mask = numbers(queries * 300, 33, -5, 5);
    for (std::size_t i = 0; i < mask.size(); i += 3) mask[i] = -infinity;
    attention_is_right({2, queries, 300, 33}, {.causal = true, .mask = mask});
  }
}

TEST_CASE("attention is right for values of another size than keys", "[workloads][attention]") {
  for (const auto& [head, value] : {std::pair{1u, 256u},
                                    {256u, 1u},
                                    {7u, 3u},
                                    {64u, 65u},
                                    {128u, 129u},
                                    {129u, 128u},
                                    {200u, 32u},
                                    {31u, 255u},
                                    {130u, 200u},
                                    {16u, 64u}})
    attention_is_right({2, 9, 35, head, value});
  attention_is_right({2, 70, 70, 20, 33}, {.causal = true});
  attention_is_right({1, 100, 40, 9, 150}, {.causal = true});
  // More than one stretch of the keys.
  attention_is_right({1, 3, 16400, 5, 3}, {.causal = true});
}

TEST_CASE("without tensor cores CUDA's kernels attend to values of another size than keys",
          "[workloads][attention]") {
  if (!has_leg("cuda")) return;
  for (const auto& [head, value] :
       {std::pair{1u, 256u}, {256u, 1u}, {7u, 3u}, {64u, 65u}, {200u, 32u}, {31u, 255u}})
    for (const bool causal : {false, true}) {
      plain_attention_is_right({2, 9, 35, head, value}, {.causal = causal});
      plain_attention_is_right({1, 70, 40, head, value}, {.causal = causal}, 17);
    }
}

TEST_CASE("attention adds a mask to its scores", "[workloads][attention]") {
  for (const AttentionShape& shape : {AttentionShape{1, 1, 1, 1},
                                      {2, 1, 100, 32},
                                      {3, 70, 1, 8},
                                      {2, 64, 64, 64},
                                      {3, 65, 33, 40},
                                      {1, 17, 300, 80},
                                      {2, 9, 35, 256, 130},
                                      {2, 9, 35, 7, 129},
                                      {1, 100, 40, 9},
                                      {2, 3, 0, 5},
                                      {2, 0, 3, 5},
                                      {0, 4, 3, 5}})
    for (const std::uint64_t heads : {std::uint64_t{1}, shape.heads}) {
      std::vector<float> mask = numbers(heads * shape.queries * shape.keys, 31, -5, 5);
      attention_is_right(shape, {.mask = mask});
      attention_is_right(shape, {.causal = true, .mask = mask});
      // A third of the keys is not seen. Some queries see none.
      for (std::size_t i = 0; i < mask.size(); ++i)
        if (i % 3 == 1 || i / shape.keys % 7 == 4) mask[i] = -infinity;
      attention_is_right(shape, {.mask = mask});
      attention_is_right(shape, {.scale = -0.7f, .causal = true, .mask = mask});
    }
}

TEST_CASE("attention with a mask is right beyond one stretch of the keys", "[workloads][attention]") {
  const AttentionShape shape{2, 3, 16400, 3, 5};
  std::vector<float> mask = numbers(3 * 16400, 32, -2, 2);
  // One query sees keys of the second stretch only, and one sees none.
  std::fill(mask.begin(), mask.begin() + 16390, -infinity);
  std::fill(mask.begin() + 16400, mask.begin() + 32800, -infinity);
  attention_is_right(shape, {.mask = mask});
}

TEST_CASE("attention gives zeros to a query whose mask hides all keys", "[workloads][attention]") {
  const AttentionShape shape{2, 5, 40, 9, 3};
  std::vector<float> mask(5 * 40);
  std::fill(mask.begin() + 80, mask.begin() + 120, -infinity);
  for (const std::string& leg : legs()) {
    INFO(leg);
    const std::vector<float> got = attended(heads<float>(shape, {.mask = mask}), leg),
                             narrow = attended(heads<half>(shape, {.mask = mask}), leg);
    for (std::size_t i = 0; i < got.size(); ++i) {
      CHECK((got[i] == 0) == (i / 3 % 5 == 2));
      CHECK((narrow[i] == 0) == (i / 3 % 5 == 2));
    }
  }
}

TEST_CASE("a key that a mask hides makes no difference, and NaN in a mask is NaN for its query",
          "[workloads][attention]") {
  const AttentionShape shape{1, 70, 40, 9, 6};
  const auto check = [&]<class T>(T, const std::string& leg) {
    // Key 7 is hidden from all queries, key 20 from those with even numbers.
    std::vector<float> mask = numbers(70 * 40, 33);
    for (std::size_t query = 0; query < 70; ++query) {
      mask[query * 40 + 7] = -infinity;
      if (query % 2 == 0) mask[query * 40 + 20] = -infinity;
    }
    Heads<T> p = heads<T>(shape, {.mask = mask});
    const std::vector<double> exact = reference::attention(p.q, p.k, p.v, shape, p.options);
    const Bound bound = bound_of(p, exact);
    for (const std::size_t key : {7u, 20u}) {
      std::fill_n(p.k.begin() + static_cast<std::ptrdiff_t>(key * 9), 9, T(undefined));
      std::fill_n(p.v.begin() + static_cast<std::ptrdiff_t>(key * 6), 6, T(key == 7 ? infinity : undefined));
    }
    std::vector<float> got = attended(p, leg);
    for (std::size_t i = 0; i < got.size(); ++i) {
      const bool sees = i / 6 % 2 == 1;
      if (std::isnan(got[i]) != sees) return std::to_string(got[i]) + " at " + std::to_string(i);
      if (!sees && !(std::abs(static_cast<double>(got[i]) - exact[i]) <= bound(i)))
        return "far off at " + std::to_string(i);
    }
    p = heads<T>(shape, {.mask = mask});
    mask[3 * 40 + 5] = undefined, mask[4 * 40 + 39] = infinity;
    got = attended(p, leg);
    for (std::size_t i = 0; i < got.size(); ++i)
      if (std::isnan(got[i]) != (i / 6 == 3 || i / 6 == 4))
        return std::to_string(got[i]) + " at " + std::to_string(i);
    return std::string();
  };
  for (const std::string& leg : legs()) {
    INFO(leg);
    CHECK(check(float(), leg) == "");
    CHECK(check(half(), leg) == "");
    CHECK(check(bfloat16(), leg) == "");
  }
}

TEST_CASE("attention with a mask of zeros is attention without one, and takes the mask from an array",
          "[workloads][attention]") {
  const AttentionShape shape{2, 33, 50, 20};
  const std::vector<float> values = numbers(33 * 50, 34), zeros(33 * 50);
  const Array<float> array = the_runtime().array(values);
  for (const std::string& leg : legs()) {
    INFO(leg);
    const Heads<float> p = heads<float>(shape);
    const std::vector<double> exact = reference::attention(p.q, p.k, p.v, shape);
    CHECK(difference(attended(heads<float>(shape, {.mask = zeros}), leg), exact, bound_of(p, exact)) == "");
    CHECK(same_bits(attended(heads<float>(shape, {.mask = array}), leg),
                    attended(heads<float>(shape, {.mask = values}), leg)));
  }
}

TEST_CASE("the queries of causal attention see the keys before them, the last one all keys",
          "[workloads][attention]") {
  for (const AttentionShape& shape : causal_shapes) attention_is_right(shape, {.causal = true});
  // One key, which every query but the last does not see.
  const std::vector<float> q(6, 1.0f), k{1.0f, 2.0f}, v{3.0f, 4.0f};
  for (const std::string& leg : legs()) {
    INFO(leg);
    std::vector<float> out = poisoned(6);
    run(workloads::attention(q, k, v, out, {1, 3, 1, 2}, {.causal = true}), leg);
    CHECK(out == std::vector<float>{0, 0, 0, 0, 3, 4});
  }
}

TEST_CASE("keys that causal attention hides have no effect", "[workloads][attention]") {
  const AttentionShape shape{1, 3, 3, 2};
  for (const std::string& leg : legs()) {
    INFO(leg);
    Heads<float> p = heads<float>(shape, {.causal = true});
    const std::vector<float> before = attended(p, leg);
    // The last key: only the last query sees it.
    p.k[4] = undefined;
    p.k[5] = infinity;
    const std::vector<float> after = attended(p, leg);
    CHECK(same_bits(std::span(before).first(4), std::span(after).first(4)));
    CHECK(std::isnan(after[4]));
    CHECK(std::isnan(after[5]));
  }
}

TEST_CASE("NaN and infinities of keys that a query does not see make no difference to it",
          "[workloads][attention]") {
  for (const AttentionShape& shape : {AttentionShape{2, 5, 5, 4},
                                      {2, 70, 70, 20},
                                      {1, 40, 100, 130},
                                      {1, 100, 40, 9},
                                      {1, 300, 300, 7},
                                      {2, 4, 258, 9}})
    for (const std::string& leg : legs()) {
      INFO(leg << ", " << shape.queries << " queries, " << shape.keys << " keys of " << shape.head_size);
      CHECK(unseen_difference<float>(shape, [&](const auto& p) { return attended(p, leg); }) == "");
      CHECK(unseen_difference<half>(shape, [&](const auto& p) { return attended(p, leg); }) == "");
      CHECK(unseen_difference<bfloat16>(shape, [&](const auto& p) { return attended(p, leg); }) == "");
      if (leg != "cuda") continue;
      const auto plainly = []<class T>(const Heads<T>& p) {
        std::vector<T> out(p.q.size());
        attend_plainly<T>(p, p.q, p.k, p.v, out);
        return floats(out);
      };
      CHECK(unseen_difference<half>(shape, plainly) == "");
      CHECK(unseen_difference<bfloat16>(shape, plainly) == "");
    }
}

TEST_CASE("attention takes a scale, and scores of 1e4 and more", "[workloads][attention]") {
  attention_is_right({1, 9, 40, 24}, {.scale = 0.0f});
  attention_is_right({1, 9, 40, 24}, {.scale = -0.3f});
  const AttentionShape shape{2, 20, 90, 16};
  for (const std::string& leg : legs()) {
    INFO(leg);
    // Products up to 1e4, of which the largest takes all.
    CHECK(difference_of(heads<float>(shape, {.scale = 1.0f}, 25), leg) == "");
    CHECK(difference_of(heads<half>(shape, {.scale = 1.0f}, 25), leg) == "");
    CHECK(difference_of(heads<bfloat16>(shape, {.scale = 1.0f}, 25), leg) == "");
    // Equal scores of any size have equal weights: the mean of v.
    for (const float number : {100.0f, 6e4f, 1e15f, -1e15f}) {
      INFO(number);
      Heads<float> p = heads<float>({1, 2, 100, 3});
      std::fill(p.q.begin(), p.q.end(), number);
      std::fill(p.k.begin(), p.k.end(), 1.1f * number);
      std::vector<double> mean(6);
      for (std::size_t i = 0; i < 300; ++i) mean[i % 3] += static_cast<double>(p.v[i]) / 100;
      for (std::size_t c = 0; c < 3; ++c) mean[3 + c] = mean[c];
      CHECK(difference(attended(p, leg), mean, [](std::size_t) { return 1e-5; }) == "");
    }
  }
}

TEST_CASE("attention gives -infinity no weight, and a query without weights becomes NaN",
          "[workloads][attention]") {
  // Of four queries: 1, NaN, infinity, -infinity. Keys: 1, 0.5 and 2, of which one is then
  // replaced.
  const AttentionShape shape{1, 4, 3, 1};
  const Heads<float> plain{
      shape, {}, {1.0f, undefined, infinity, -infinity}, {1.0f, 0.5f, 2.0f}, {1.0f, 2.0f, 4.0f}};
  for (const std::string& leg : legs()) {
    INFO(leg);
    const std::vector<float> got = attended(plain, leg);
    CHECK(std::abs(got[0] - (std::exp(1.0f) + 2 * std::exp(0.5f) + 4 * std::exp(2.0f)) /
                                (std::exp(1.0f) + std::exp(0.5f) + std::exp(2.0f))) < 1e-3f);
    for (std::size_t i : {1u, 2u, 3u}) CHECK(std::isnan(got[i]));  // the last: nothing but -infinity

    Heads<float> p = plain;
    p.k[1] = -infinity;
    CHECK(std::abs(attended(p, leg)[0] -
                   (std::exp(1.0f) + 4 * std::exp(2.0f)) / (std::exp(1.0f) + std::exp(2.0f))) < 1e-3f);
    p.k = {-infinity, -infinity, -infinity};
    CHECK(std::isnan(attended(p, leg)[0]));
    for (float odd : {undefined, infinity}) {
      p = plain;
      p.k[2] = odd;
      CHECK(std::isnan(attended(p, leg)[0]));
    }
    p = plain;
    p.v[0] = infinity;
    CHECK(attended(p, leg)[0] == infinity);
    p.v[0] = undefined;
    CHECK(std::isnan(attended(p, leg)[0]));
  }
}

TEST_CASE("attention of 16 bits knows NaN and infinities", "[workloads][attention]") {
  const AttentionShape shape{1, 2, 40, 3};
  for (const std::string& leg : legs()) {
    INFO(leg);
    Heads<half> p = heads<half>(shape);
    p.k[3 * 39] = half(undefined);
    for (float number : attended(p, leg)) CHECK(std::isnan(number));
    p = heads<half>(shape);
    p.v[3 * 39] = half(infinity);
    const std::vector<float> got = attended(p, leg);
    CHECK(got[0] == infinity);
    CHECK(got[3] == infinity);
    CHECK(std::isfinite(got[1]));
    // Beyond 65504 there is infinity, but not on the way.
    p = heads<half>({1, 1, 2, 1});
    p.v = {half(60000.0f), half(65504.0f)};
    CHECK(attended(p, leg)[0] > 60000.0f);
    Heads<bfloat16> large = heads<bfloat16>({1, 1, 2, 1});
    large.v = {bfloat16(1e38f), bfloat16(2e38f)};
    CHECK(attended(large, leg)[0] > 1e38f);
  }
}

TEST_CASE("attention without keys gives zeros, and without queries nothing", "[workloads][attention]") {
  for (const std::string& leg : legs())
    for (const bool causal : {false, true}) {
      INFO(leg);
      const Heads<float> p = heads<float>({2, 3, 0, 5}, {.causal = causal});
      CHECK(attended(p, leg) == std::vector<float>(30, 0.0f));
      CHECK(attended(heads<half>({2, 3, 0, 5}), leg) == std::vector<float>(30, 0.0f));
      CHECK(attended(heads<float>({2, 0, 3, 5}, {.causal = causal}), leg).empty());
      CHECK(attended(heads<bfloat16>({0, 4, 3, 5}), leg).empty());
    }
}

TEST_CASE("attention is right beyond one stretch of the keys", "[workloads][attention]") {
  // Of 16384 keys.
  attention_is_right({1, 3, 16385, 5});
  attention_is_right({2, 2, 16400, 3}, {.causal = true});
}

TEST_CASE("attention is right beyond two stretches of the keys, for heads of two turns",
          "[workloads][attention][large]") {
  const AttentionShape shape{1, 2, 32769, 129};
  for (const std::string& leg : legs()) {
    INFO(leg);
    CHECK(difference_of(growing<float>(shape, {.causal = true}), leg) == "");
    CHECK(difference_of(growing<half>(shape, {.causal = true}), leg) == "");
    CHECK(difference_of(growing<bfloat16>(shape, {.causal = true}), leg) == "");
  }
}

TEST_CASE("attention takes and writes parts of arrays of 16 bits wherever they begin",
          "[workloads][attention]") {
  const AttentionShape shape{2, 3, 4, 7};
  const Heads<half> p = heads<half>(shape);
  const std::vector<double> exact = reference::attention(p.q, p.k, p.v, shape);
  for (const std::string& leg : legs())
    for (std::size_t begin : {0u, 1u, 2u, 3u}) {
      INFO(leg << ", from " << begin);
      Array<half> q = the_runtime().array<half>(60), k = the_runtime().array<half>(80),
                  v = the_runtime().array<half>(80),
                  out = the_runtime().array(std::vector<half>(50, half(77.0f)));
      std::copy(p.q.begin(), p.q.end(), q.write().value().begin() + begin);
      std::copy(p.k.begin(), p.k.end(), k.write().value().begin() + begin);
      std::copy(p.v.begin(), p.v.end(), v.write().value().begin() + begin);
      run(workloads::attention(Read<half>(q).slice(begin, 42), Read<half>(k).slice(begin, 56),
                               Read<half>(v).slice(begin, 56), Write<half>(out).slice(begin, 42), shape),
          leg);
      const auto view = out.read().value();
      std::vector<float> got;
      for (std::size_t i = 0; i < 50; ++i) got.push_back(static_cast<float>(view.begin()[i]));
      CHECK(difference(std::span(got).subspan(begin, 42), exact, bound_of(p, exact)) == "");
      for (std::size_t i = 0; i < 50; ++i)
        if (i < begin || i >= begin + 42) CHECK(got[i] == 77.0f);
    }
}

TEST_CASE("attention gives the same bits again, also beside other queries", "[workloads][attention]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    const Heads<float> p = heads<float>({3, 150, 90, 24});
    const std::vector<float> all = attended(p, leg);
    CHECK(same_bits(all, attended(p, leg)));
    // The second head alone.
    const std::size_t queries = 150 * 24, keys = 90 * 24;
    const auto part = [](const std::vector<float>& of, std::size_t count) {
      const auto begin = of.begin() + static_cast<std::ptrdiff_t>(count);
      return std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(count));
    };
    const Heads<float> one{{1, 150, 90, 24}, {}, part(p.q, queries), part(p.k, keys), part(p.v, keys)};
    CHECK(same_bits(attended(one, leg), part(all, queries)));
  }
}

TEST_CASE("attention refuses sizes that do not match the shape", "[workloads][attention]") {
  std::vector<float> q(24), k(40), v(40), out(24);
  const auto refused = [&](AttentionShape shape, AttentionOptions options = {}) {
    return refusal(workloads::attention(q, k, v, out, shape, options));
  };
  CHECK(refused({2, 3, 5, 4}) == "not refused");
  CHECK(refused({2, 3, 5, 0}) == "Head size (0) of workload 'attention' is below the minimum (1).");
  CHECK(refused({1, 1, 1, 257}) == "Head size (257) of workload 'attention' exceeds the limit (256).");
  CHECK(refused({1, std::uint64_t{1} << 31, 1, 4}) ==
        "Dimension (2147483648) of workload 'attention' exceeds the limit (2147483647).");
  CHECK(refused({0x7fff'ffff, 3, 5, 4}) ==
        "Number of blocks of 64 queries (2147483647) of workload 'attention' exceeds the limit (268431360).");
  CHECK(refused({3, 3, 5, 4}) == "Queries (24 elements) of workload 'attention' are not 3 heads of 3 x 4.");
  CHECK(refused({2, 3, 4, 4}) == "Keys (40 elements) of workload 'attention' are not 2 heads of 4 x 4.");
  v.resize(41);
  CHECK(refused({2, 3, 5, 4}) == "Values (41 elements) of workload 'attention' are not 2 heads of 5 x 4.");
  v.resize(40);
  out.resize(23);
  CHECK(refused({2, 3, 5, 4}) == "Results (23 elements) of workload 'attention' are not 2 heads of 3 x 4.");
  out.resize(24);
  CHECK(refused({2, 3, 5, 4, 4}) == "not refused");
  CHECK(refused({2, 3, 5, 4, 257}) == "Value size (257) of workload 'attention' exceeds the limit (256).");
  CHECK(refused({2, 3, 5, 4, 3}) == "Values (40 elements) of workload 'attention' are not 2 heads of 5 x 3.");
  v.resize(30);
  CHECK(refused({2, 3, 5, 4, 3}) ==
        "Results (24 elements) of workload 'attention' are not 2 heads of 3 x 3.");
  v.resize(40);
  const std::vector<float> mask(31);
  const auto first = [&](std::size_t count) { return std::span(mask).first(count); };
  CHECK(refused({2, 3, 5, 4}, {.mask = first(15)}) == "not refused");
  CHECK(refused({2, 3, 5, 4}, {.mask = first(30)}) == "not refused");
  for (const std::size_t count : {0u, 14u, 31u})
    CHECK(refused({2, 3, 5, 4}, {.mask = first(count)}) ==
          "Mask (" + std::to_string(count) +
              " elements) of workload 'attention' is neither 3 x 5 nor that of 2 heads of 3 x 5.");
  CHECK(refused({2, 3, 5, 4}, {.scale = undefined}) == "Scale (nan) of workload 'attention' is not finite.");
}

TEST_CASE("attention of 16 bits is autotuned with and without tensor cores", "[workloads][attention]") {
  if (!has_leg("cuda")) return;
  const AttentionShape shape{2, 70, 60, 40};
  const auto q = of<bfloat16>(numbers(2 * 70 * 40, 5)), k = of<bfloat16>(numbers(2 * 60 * 40, 6)),
             v = of<bfloat16>(numbers(2 * 60 * 40, 7));
  std::string reason;
  for (int i = 0; i < 10; ++i) {
    std::vector<bfloat16> out(q.size());
    reason = run(workloads::attention(q, k, v, out, shape), "cuda").reason();
  }
  INFO(reason);
  const bool has_cudnn = reason.find(", 'attention_bfloat16_cudnn' ") != std::string::npos;
  CHECK(reason.find("was selected from " + std::string(has_cudnn ? "3" : "2") +
                    " variants: minimum times are 'attention_bfloat16' ") != std::string::npos);
  CHECK(reason.find("'attention_bfloat16_plain' ") != std::string::npos);
}

TEST_CASE("without tensor cores CUDA's kernels attend to 16 bits in any shape", "[workloads][attention]") {
  if (!has_leg("cuda")) return;
  for (const AttentionShape& shape : any_shapes) plain_attention_is_right(shape);
  for (const AttentionShape& shape :
       {AttentionShape{2, 33, 130, 4}, {2, 3, 0, 5}, {2, 0, 3, 5}, {0, 4, 3, 5}})
    plain_attention_is_right(shape);
  for (std::uint64_t size : {2u, 7u, 63u, 65u, 127u, 128u, 129u, 200u, 255u, 256u})
    plain_attention_is_right({2, 9, 35, size});
  plain_attention_is_right({1, 40, 70, 256}, {.causal = true});
  plain_attention_is_right({1, 9, 40, 24}, {.scale = -0.3f});
}

TEST_CASE("without tensor cores CUDA's kernels attend to the visible keys, a stretch at a time",
          "[workloads][attention]") {
  if (!has_leg("cuda")) return;
  for (const AttentionShape& shape : causal_shapes) {
    plain_attention_is_right(shape, {.causal = true});
    plain_attention_is_right(shape, {.causal = true}, 33);
    plain_attention_is_right(shape, {}, 17);
  }
  for (const bool causal : {false, true}) {
    const AttentionShape shape{1, 35, 300, 130};
    CHECK(plain_attention_difference(growing<half>(shape, {.causal = causal}), 100) == "");
    CHECK(plain_attention_difference(growing<bfloat16>(shape, {.causal = causal}), 100) == "");
  }
}

TEST_CASE("without tensor cores CUDA's kernels attend to 16 bits wherever they begin",
          "[workloads][attention]") {
  if (!has_leg("cuda")) return;
  for (const std::uint64_t size : {7u, 8u}) {
    const AttentionShape shape{2, 3, 4, size};
    const Heads<half> p = heads<half>(shape);
    const std::vector<double> exact = reference::attention(p.q, p.k, p.v, shape);
    const std::size_t count = p.q.size();
    for (std::size_t begin : {0u, 1u, 2u, 3u, 4u}) {
      INFO(size << ", from " << begin);
      Array<half> q = the_runtime().array<half>(60), k = the_runtime().array<half>(80),
                  v = the_runtime().array<half>(80),
                  out = the_runtime().array(std::vector<half>(60, half(77.0f)));
      std::copy(p.q.begin(), p.q.end(), q.write().value().begin() + begin);
      std::copy(p.k.begin(), p.k.end(), k.write().value().begin() + begin);
      std::copy(p.v.begin(), p.v.end(), v.write().value().begin() + begin);
      attend_plainly<half>(p, Read<half>(q).slice(begin, count), Read<half>(k).slice(begin, p.k.size()),
                           Read<half>(v).slice(begin, p.v.size()), Write<half>(out).slice(begin, count));
      const auto view = out.read().value();
      std::vector<float> got;
      for (std::size_t i = 0; i < 60; ++i) got.push_back(static_cast<float>(view.begin()[i]));
      CHECK(difference(std::span(got).subspan(begin, count), exact, bound_of(p, exact)) == "");
      for (std::size_t i = 0; i < 60; ++i)
        if (i < begin || i >= begin + count) CHECK(got[i] == 77.0f);
    }
  }
}

TEST_CASE("without tensor cores CUDA's kernels know NaN and infinities of 16 bits",
          "[workloads][attention]") {
  if (!has_leg("cuda")) return;
  const auto attended = [](const Heads<half>& p) {
    std::vector<half> out(p.q.size());
    attend_plainly<half>(p, p.q, p.k, p.v, out);
    return floats(out);
  };
  const AttentionShape shape{1, 2, 40, 3};
  Heads<half> p = heads<half>(shape);
  p.k[3 * 39] = half(undefined);
  for (float number : attended(p)) CHECK(std::isnan(number));
  p = heads<half>(shape);
  p.v[3 * 39] = half(infinity);
  const std::vector<float> got = attended(p);
  CHECK(got[0] == infinity);
  CHECK(got[3] == infinity);
  CHECK(std::isfinite(got[1]));
}
