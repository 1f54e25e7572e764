#pragma once
/// Rotary position embeddings.
#include <wye/base/half.hpp>
#include <wye/device/parameter.hpp>
#include <wye/scheduler/job.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace wye::inline v0::workloads {

/// The elements of a pair of d rotated elements: i and i + d / 2, or 2 i and 2 i + 1.
enum class RopeLayout : std::uint8_t { halves, neighbours };

/// YaRN: pairs that turn often within the original context keep their frequency, pairs that turn
/// seldom get `RopeOptions::scale` times theirs, and those between get a share of both.
struct RopeYarn {
  std::uint64_t original_context = 0;  ///< tokens that the model was trained with, at least 1
  double beta_fast = 32;               ///< turns within them from which on a pair keeps its frequency
  double beta_slow = 1;  ///< turns up to which a pair has the scaled frequency; below `beta_fast`
  double mix = 1;        ///< from 0 to 1: the share of their frequency that fast pairs keep
};

struct RopeOptions {
  double base = 10000;  ///< finite, at least 2
  RopeLayout layout = RopeLayout::halves;
  std::uint64_t rotated = 0;  ///< elements of a head that are rotated, the first; an even number; 0: all
  /// Divisors of the frequencies, one for each rotated pair (Llama 3.1: `rope_freqs`; long contexts of
  /// Phi-3). Finite and at least 2^-8.
  std::optional<Read<float>> factors = std::nullopt;
  /// Of all frequencies, from 1e-6 to 1: 1 / 4 stretches the context four times (linear scaling).
  double scale = 1;
  std::optional<RopeYarn> yarn = std::nullopt;  ///< set: `scale` is not that of all pairs
  /// Rotated elements are multiplied with it; with YaRN and a mix above 0, also with
  /// 1 + 0.1 ln(1 / scale). Finite and above 0.
  double magnitude = 1;
};

/// Rotates pair i of d rotated elements by the angle a = position * f(i), in place: (x, y) becomes
/// m (x cos a - y sin a, x sin a + y cos a), with f(i) = base^(-2 i / d) / factors[i] and m =
/// `magnitude`. Linear scaling multiplies f(i) with `scale`. YaRN multiplies it with
///
///     scale + (1 - scale) mix r(i),  r(i) = 1 - min(1, max(0, (i - low) / max(1, high - low))),
///     low = max(0, floor(t(beta_fast))),  high = min(d - 1, ceil(t(beta_slow))),
///     t(b) = d ln(original_context / (2 pi b)) / (2 ln base),
///
/// where t(b) is the pair that turns b times within the original context, and multiplies m with
/// 1 + 0.1 ln(1 / scale) unless mix is 0. rope_ext of ggml has the same formulas: its freq_factors are
/// `factors`, freq_scale is `scale`, ext_factor `mix` and attn_factor `magnitude`.
///
///     // Llama 3.1: the file of the model has the factors.
///     rope(x, positions, 128, {.base = 500000, .factors = factors});
///     // YaRN: a context of 32,768 tokens, stretched four times.
///     rope(x, positions, 128, {.base = 1e6, .scale = 0.25, .yarn = RopeYarn{.original_context = 32768}});
///
/// Shape:   `x` has a row for each of `positions`, row after row. A row has heads of `head_size` elements, at most 65,536. Rows and
///          heads of all rows are fewer than 2^31. Without positions, `x` is empty. Positions are any numbers of 32 bits. `factors`
///          has d / 2 elements. They are checked if they are in host memory. Otherwise, the elements of a pair whose factor is
///          out of its range are undefined.
/// Bound:   5e-7 m (|x| + |y|) for positions below 2^24: angles are products of integers, without their whole turns. Elements of 16
///          bits are computed as float and rounded once. NaN and infinities follow the formula. Numbers below 2^-126 may
///          count as zero. Elements that are not rotated keep their bits.
/// Bits:    the same device gives the same bits for a row, alone or among others.
/// Cost:    reads and writes the rotated elements once. An angle is computed once for each 8 heads of a row.
/// Errors:  invalid_argument (a size of `x` that is no whole number of heads for each position; an option out of its range; an odd
///          number of rotated elements, or more than a head has; factors that are not one for each pair; too many heads; memory
///          that overlaps).
/// Source:  Su et al., RoFormer: enhanced transformer with rotary position embedding, arXiv:2104.09864, section 3.2.2. Chen et al.,
///          Extending context window of large language models via positional interpolation, arXiv:2306.15595 (`scale`). Peng et
///          al., YaRN: efficient context window extension of large language models, arXiv:2309.00071, sections 3.2 and 3.4.
WYE_API Job rope(ReadWrite<float> x, Read<std::uint32_t> positions, std::uint64_t head_size,
                 RopeOptions options = {});
WYE_API Job rope(ReadWrite<half> x, Read<std::uint32_t> positions, std::uint64_t head_size,
                 RopeOptions options = {});
WYE_API Job rope(ReadWrite<bfloat16> x, Read<std::uint32_t> positions, std::uint64_t head_size,
                 RopeOptions options = {});

namespace reference {
/// The same in float64, on this thread. Factors are in host memory.
WYE_API std::vector<double> rope(std::span<const float> x, std::span<const std::uint32_t> positions,
                                 std::uint64_t head_size, RopeOptions options = {});
WYE_API std::vector<double> rope(std::span<const half> x, std::span<const std::uint32_t> positions,
                                 std::uint64_t head_size, RopeOptions options = {});
WYE_API std::vector<double> rope(std::span<const bfloat16> x, std::span<const std::uint32_t> positions,
                                 std::uint64_t head_size, RopeOptions options = {});
}  // namespace reference

}  // namespace wye::workloads
