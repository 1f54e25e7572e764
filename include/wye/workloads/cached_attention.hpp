#pragma once
/// Causal attention of several sequences of unlike lengths in one job, with and without a cache of
/// keys and values.
#include <wye/base/half.hpp>
#include <wye/device/parameter.hpp>
#include <wye/scheduler/job.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace wye::inline v0::workloads {

/// Rows of q and out have `heads` heads, rows of k and v `key_value_heads`. Query head h uses
/// key/value head h / (heads / key_value_heads). Heads of q and k have `head_size` numbers, heads
/// of v and out `value_size`.
struct SequenceShape {
  std::uint64_t heads = 0;
  std::uint64_t key_value_heads = 0;  ///< 0: heads
  std::uint64_t head_size = 0;
  std::uint64_t value_size = 0;  ///< 0: head_size
  friend bool operator==(const SequenceShape&, const SequenceShape&) = default;
};

struct SequenceOptions {
  std::optional<float> scale = std::nullopt;  ///< of scores; unset: 1 / sqrt(head_size)
  bool causal = true;  ///< a query sees keys up to its own place; otherwise all keys of its sequence
  /// A query at place p sees the keys of places k with p - window < k <= p; 0: all up to p. Requires
  /// `causal`.
  std::uint64_t window = 0;
  float softcap = 0;  ///< scaled scores s become softcap tanh(s / softcap); 0: they do not change
};

/// A cache: keys [slots, capacity, key_value_heads, head_size] and values [slots, capacity,
/// key_value_heads, value_size]. Sequence s of a job has the first `cached[s]` places of slot
/// `slots[s]`. A slot is free if no sequence uses it: to begin a sequence needs a slot and `cached`
/// 0, to end one needs nothing.
template <class T>
struct KeyValueCache {
  ReadWrite<T> keys;
  ReadWrite<T> values;
  Read<std::uint32_t> slots;   ///< of each sequence
  Read<std::uint32_t> cached;  ///< tokens of each sequence before this job
  std::uint64_t capacity = 0;  ///< tokens of a slot
};

/// Appends k and v to the cache. Then sets each row of out to softmax(q k^T scale) v over the keys that it sees, or to
/// softmax(softcap tanh(q k^T scale / softcap)) v. Row i of sequence s is row offsets[s] + i of q, k, v and out. Its place in the
/// slot is cached[s] + i. It sees the places up to its own, with a window the last `window` of these. The cache keeps all keys.
///
///     // 8 requests, of which some begin (all tokens of a prompt) and others go on (one token).
///     for (const Request& r : requests) {               // offsets begins with 0
///       offsets.push_back(offsets.back() + r.tokens());
///       slots.push_back(r.slot);
///       cached.push_back(r.length);
///     }
///     cached_attention(q, k, v, offsets, {key_cache, value_cache, slots, cached, 4096}, out, {9, 3, 64});
///     // Each length grows by the tokens. A request that ends returns its slot; the next one begins there with length 0.
///
/// Shape:   q and out have a row for each token, k and v as many. `offsets` has one element more than there are sequences:
///          it begins with 0, does not decrease and ends with the number of rows. Sequences may be empty. `heads`, at most
///          1,024, is a multiple of `key_value_heads`. Head and value sizes are from 1 to 256. Rows and `capacity` are at most
///          2^22, `heads` times the longest sequence at most 2^28, and slots times capacity below 2^31.
///          Sequences of a job have different slots. Arrays, buffers and scratch memory are not checked: then the results
///          of sequences that share a slot, and that slot, are undefined. A row that no sequence has, and a row whose slot or
///          place does not exist, becomes zeros and is not appended. No memory outside the arguments is accessed.
/// Bound:   that of `attention` for the keys that a row sees. Weights are not rounded to 16 bits. Values of 256 keys are added
///          up before they are divided, relative to the largest score among these: from 2^128 on that is infinity.
///          A row with a score that is NaN or +infinity becomes NaN. Otherwise a score of -infinity has the weight 0, and a
///          row with no other scores becomes NaN. With a softcap, infinite scores count as softcap or -softcap, and the bound has
///          2^-18 of the size of a score more in e. NaN and infinities of v count if their weight is not 0. If it is 0, or
///          below exp(-87) of the row's largest, they may make NaN in their column or not. Places that a row does not see
///          have no effect on it.
/// Bits:    the same device gives the same bits for a row, alone and beside any other sequences. With `causal`, so it does if
///          a sequence is appended in one job or in several: stretches of 256 keys begin at multiples of 256. A window of all
///          keys or more gives the bits of none.
/// Cost:    reads the keys and values of a sequence once for each row and each 4 query heads of a key/value head: best for
///          one new token per sequence, which memory bounds. Memory for 4 (value_size + 2) bytes per row, head and 256 keys of
///          the longest sequence, or of `capacity` if `offsets` or `cached` is not in host memory. Beyond 32 MiB, rows take
///          several steps. With a window, reads and memory are those of at most window + 255 keys.
/// Errors:  invalid_argument (sizes that do not match, heads that do not divide, a size beyond its limit, a scale that is
///          not finite, a window without `causal`, a softcap that is neither 0 nor finite and at least 2^-126, memory that
///          overlaps; in host memory also offsets that decrease or end elsewhere, a slot that does not exist or is used twice, a
///          sequence that is longer than the cache).
/// Source:  Dao et al., FlashAttention, arXiv:2205.14135; Ainslie et al., GQA, arXiv:2305.13245. Beltagy et al., Longformer,
///          arXiv:2004.05150, section 3.1 (window). Gemma team, Gemma 2, arXiv:2408.00118, section 2 (softcap).
WYE_API Job cached_attention(Read<float> q, Read<float> k, Read<float> v, Read<std::uint32_t> offsets,
                             KeyValueCache<float> cache, Write<float> out, SequenceShape shape,
                             SequenceOptions options = {});
WYE_API Job cached_attention(Read<half> q, Read<half> k, Read<half> v, Read<std::uint32_t> offsets,
                             KeyValueCache<half> cache, Write<half> out, SequenceShape shape,
                             SequenceOptions options = {});
WYE_API Job cached_attention(Read<bfloat16> q, Read<bfloat16> k, Read<bfloat16> v,
                             Read<std::uint32_t> offsets, KeyValueCache<bfloat16> cache, Write<bfloat16> out,
                             SequenceShape shape, SequenceOptions options = {});

/// The same without a cache: a sequence has no keys but its own rows of k and v.
/// Shape:   as above; the longest sequence takes the place of `capacity`, or all rows if `offsets`
///          is no host memory.
WYE_API Job ragged_attention(Read<float> q, Read<float> k, Read<float> v, Read<std::uint32_t> offsets,
                             Write<float> out, SequenceShape shape, SequenceOptions options = {});
WYE_API Job ragged_attention(Read<half> q, Read<half> k, Read<half> v, Read<std::uint32_t> offsets,
                             Write<half> out, SequenceShape shape, SequenceOptions options = {});
WYE_API Job ragged_attention(Read<bfloat16> q, Read<bfloat16> k, Read<bfloat16> v,
                             Read<std::uint32_t> offsets, Write<bfloat16> out, SequenceShape shape,
                             SequenceOptions options = {});

namespace reference {

/// The cache before a job, in host memory.
template <class T>
struct CachedKeys {
  std::span<const T> keys;
  std::span<const T> values;
  std::span<const std::uint32_t> slots;
  std::span<const std::uint32_t> cached;
  std::uint64_t capacity = 0;
};

/// The same in float64, on the calling thread. The cache is not changed.
WYE_API std::vector<double> cached_attention(std::span<const float> q, std::span<const float> k,
                                             std::span<const float> v, std::span<const std::uint32_t> offsets,
                                             CachedKeys<float> cache, SequenceShape shape,
                                             SequenceOptions options = {});
WYE_API std::vector<double> cached_attention(std::span<const half> q, std::span<const half> k,
                                             std::span<const half> v, std::span<const std::uint32_t> offsets,
                                             CachedKeys<half> cache, SequenceShape shape,
                                             SequenceOptions options = {});
WYE_API std::vector<double> cached_attention(std::span<const bfloat16> q, std::span<const bfloat16> k,
                                             std::span<const bfloat16> v,
                                             std::span<const std::uint32_t> offsets,
                                             CachedKeys<bfloat16> cache, SequenceShape shape,
                                             SequenceOptions options = {});
WYE_API std::vector<double> ragged_attention(std::span<const float> q, std::span<const float> k,
                                             std::span<const float> v, std::span<const std::uint32_t> offsets,
                                             SequenceShape shape, SequenceOptions options = {});
WYE_API std::vector<double> ragged_attention(std::span<const half> q, std::span<const half> k,
                                             std::span<const half> v, std::span<const std::uint32_t> offsets,
                                             SequenceShape shape, SequenceOptions options = {});
WYE_API std::vector<double> ragged_attention(std::span<const bfloat16> q, std::span<const bfloat16> k,
                                             std::span<const bfloat16> v,
                                             std::span<const std::uint32_t> offsets, SequenceShape shape,
                                             SequenceOptions options = {});
}  // namespace reference

}  // namespace wye::workloads
