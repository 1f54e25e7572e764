#pragma once
/// The host code of the workloads. Functions that take a `Range` are kernel sources: they process
/// its items, and several threads call them with disjoint ranges.
#include <wye/base/extent.hpp>
#include <wye/base/half.hpp>
#include <wye/workloads/collatz.hpp>
#include <wye/workloads/pagerank.hpp>
#include <wye/workloads/thread_simulation.hpp>
#include <wye/workloads/timeline.hpp>

#include <cstdint>
#include <span>

#include "attention_stretch.hpp"
#include "cached_rows.hpp"
#include "pictures.hpp"
#include "product.hpp"
#include "quantization.hpp"
#include "rotation.hpp"
#include "row_norm.hpp"
#include "rows.hpp"
#include "segments.hpp"
#include "sorting.hpp"
#include "transposition.hpp"

namespace wye::inline v0::workloads::cpu {

void axpy(Range range, float a, std::span<const float> x, std::span<float> y);

void copy(Range range, std::span<const float> from, std::span<float> to);

/// Transposes blocks of 256 x 256.
void transpose(Range range, std::span<const float> x, std::span<float> y, Transposition shape);
void transpose(Range range, std::span<const half> x, std::span<half> y, Transposition shape);
void transpose(Range range, std::span<const bfloat16> x, std::span<bfloat16> y, Transposition shape);
void transpose(Range range, std::span<const std::int8_t> x, std::span<std::int8_t> y, Transposition shape);
void transpose(Range range, std::span<const std::int32_t> x, std::span<std::int32_t> y, Transposition shape);
void transpose(Range range, std::span<const std::uint32_t> x, std::span<std::uint32_t> y,
               Transposition shape);

/// Sums of squares in three scales, as in `shaders/include/length.glsl`: of the numbers, of 2^100
/// and of 2^-80 times the numbers.
struct Squares {
  float plain;
  float up;
  float down;
};

/// Returns the sum of squares in double precision, in which squares of floats neither overflow nor
/// underflow.
double sum_of_squares(std::span<const float> x);

/// Normalizes rows of one piece.
void normalize(Range range, std::span<float> matrix, RowSplit split);
/// Normalize rows of several pieces: first the `Squares` of each piece (three numbers), then the
/// result.
void normalize_sums(Range range, std::span<const float> matrix, std::span<float> sums, RowSplit split);
void normalize_apply(Range range, std::span<float> matrix, std::span<const float> sums, RowSplit split);

/// Computes the sum of each piece of rows.
template <class T>
void reduce_sum(Range range, std::span<const T> x, std::span<SumOf<T>> sums, RowSplit split);
/// Computes the prefix sums of each piece of rows, plus the offset of the piece if there are
/// `offsets`.
template <class T>
void scan(Range range, std::span<const T> x, std::span<const SumOf<T>> offsets, std::span<SumOf<T>> sums,
          RowSplit split, std::uint32_t exclusive);
/// Finds the first element of each piece of rows that has the largest key. `flip` inverts keys, or
/// the signs of integers. `candidates` are places of each row, as many as `split` has columns; if
/// empty, all places are candidates. `columns` are those of x. Writes `values` and `places` unless
/// they are empty.
template <class T>
void reduce_extreme(Range range, std::span<const T> x, std::span<const std::uint32_t> candidates,
                    std::span<T> values, std::span<std::uint32_t> places, RowSplit split,
                    std::uint32_t columns, std::uint32_t flip);
/// Computes the sum of the products of each piece of rows.
template <class T>
void dot(Range range, std::span<const T> x, std::span<const T> y, std::span<SumOf<T>> sums, RowSplit split);

/// Computes the norm of each piece of rows. `which` is a `Norm`.
template <class T>
void norm(Range range, std::span<const T> x, std::span<float> results, RowSplit split, std::uint32_t which);

/// A row as floats becomes ((x - mean) - correction) * inverse, times a weight.
struct NormFactors {
  float mean = 0;
  float correction = 0;
  float inverse = 1;
};
/// Computes a phase of the norms of rows. `residual`, `bias` and `partials` may be empty.
template <class T>
void row_norm(Range range, std::span<const T> x, std::span<T> residual, std::span<const T> weight,
              std::span<const T> bias, std::span<float> partials, std::span<T> result, RowSplit split,
              NormStep norm);
/// Rotates pairs of elements of heads.
template <class T>
void rope(Range range, std::span<T> x, std::span<const std::uint32_t> positions,
          std::span<const float> factors, Rotation shape);
template <class T>
void silu_multiply(Range range, std::span<const T> gate, std::span<const T> up, std::span<T> result,
                   RowSplit split);
/// Copies the rows of `table` that tokens name, or zeros. `split` has the rows of the result.
template <class T>
void embed(Range range, std::span<const T> table, std::span<const std::uint32_t> tokens, std::span<T> result,
           RowSplit split, std::uint32_t vocabulary);
/// Adds to the rows of x the rows of `table` that `rows` name, or row 0 if there are none. `split` has
/// the rows of x.
template <class T>
void add_rows(Range range, std::span<T> x, std::span<const T> table, std::span<const std::uint32_t> rows,
              RowSplit split, std::uint32_t table_rows);
/// Computes the sums of the rows of whole stretches (segments.hpp).
template <class T>
void segment_sums(Range range, std::span<const T> x, std::span<const std::uint32_t> offsets,
                  std::span<float> sums, SegmentShape shape);
/// Computes the means of segments from these sums and from the rows that are in no whole stretch.
template <class T>
void segment_mean(Range range, std::span<const T> x, std::span<const std::uint32_t> offsets,
                  std::span<const float> sums, std::span<T> result, SegmentShape shape);

/// The steps of attention to a cache; `shaders/include/cached_attention.glsl` documents the layout
/// of the buffers.
void attention_places(Range range, std::span<const std::uint32_t> offsets,
                      std::span<const std::uint32_t> slots, std::span<const std::uint32_t> cached,
                      std::span<std::uint32_t> places, SequenceRows shape);
template <class T>
void cache_append(Range range, std::span<const T> k, std::span<const T> v, std::span<T> key_cache,
                  std::span<T> value_cache, std::span<const std::uint32_t> places, CacheRows shape);
template <class T>
void cached_attention(Range range, std::span<const T> q, std::span<const T> keys, std::span<const T> values,
                      std::span<const std::uint32_t> places, std::span<float> state, std::span<T> result,
                      CachedStretches shape);

/// The bits of a factor of any type, a kernel parameter.
struct ScaleFactor {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
};
/// Multiplies rows by `factors`, or all rows by `a` if there are none.
template <class T>
void scale(Range range, std::span<const T> factors, std::span<T> x, RowSplit split, ScaleFactor a);

/// Sort the rows of tiles, or distribute the elements of longer rows, as
/// `shaders/include/sort_scatter.glsl` does. For longer rows, the host does in the first and the
/// last pass all that GPUs do in passes of 8 bits.
template <class T, bool has_values>
void sort_count(Range range, std::span<const T> keys, std::span<std::uint32_t> counts, SortShape shape);
void sort_scan(Range range, std::span<std::uint32_t> counts, SortShape shape);
template <class T>
void sort_scatter(Range range, std::span<const T> keys, std::span<const std::uint32_t> values,
                  std::span<T> sorted_keys, std::span<std::uint32_t> sorted_values,
                  std::span<const std::uint32_t> bases, SortShape shape);

/// Selects candidates for the first `keep` elements of longer rows, for all tiles of a row in the
/// range. They are at the places of the first of these tiles. The other places have the column
/// `no_column`, which elements do not have.
inline constexpr std::uint32_t no_column = ~0u;
template <class T>
void top_k_select(Range range, std::span<const T> x, std::span<const std::uint32_t> places,
                  std::span<T> selected, std::span<std::uint32_t> selected_places, SortShape shape);
/// Writes the first `keep` elements of rows that tiles have, in order.
template <class T>
void top_k_sort(Range range, std::span<const T> x, std::span<const std::uint32_t> places, std::span<T> sorted,
                std::span<std::uint32_t> sorted_places, std::span<const std::uint32_t> bases,
                SortShape shape);

/// A sum of exp(exponent - most), which cannot overflow.
struct ExponentSum {
  float most;
  float sum;
};

/// Computes the softmax of rows of one piece.
void softmax(Range range, std::span<float> matrix, RowSplit split, float scale);
/// Compute the softmax of rows of several pieces: first the `ExponentSum` of each piece (two
/// numbers), then the result.
void softmax_sums(Range range, std::span<const float> matrix, std::span<float> sums, RowSplit split,
                  float scale);
void softmax_apply(Range range, std::span<float> matrix, std::span<const float> sums, RowSplit split,
                   float scale);
/// Replaces x by exp(x scale - m); m is the largest of `most` and all x scale. Returns m and the
/// sum of the results.
ExponentSum exponentiate(std::span<float> x, float scale, float most);

/// Computes heads of attention over one stretch of the keys.
void attention(Range range, std::span<const float> q, std::span<const float> k, std::span<const float> v,
               std::span<float> result, std::span<float> state, AttentionStretch stretch);
void attention(Range range, std::span<const half> q, std::span<const half> k, std::span<const half> v,
               std::span<half> result, std::span<float> state, AttentionStretch stretch);
void attention(Range range, std::span<const bfloat16> q, std::span<const bfloat16> k,
               std::span<const bfloat16> v, std::span<bfloat16> result, std::span<float> state,
               AttentionStretch stretch);

/// Computes attention with a mask, of one head or of all heads.
void masked_attention(Range range, std::span<const float> q, std::span<const float> k,
                      std::span<const float> v, std::span<float> result, std::span<const float> mask,
                      std::span<float> state, AttentionStretch stretch);
void masked_attention(Range range, std::span<const half> q, std::span<const half> k, std::span<const half> v,
                      std::span<half> result, std::span<const float> mask, std::span<float> state,
                      AttentionStretch stretch);
void masked_attention(Range range, std::span<const bfloat16> q, std::span<const bfloat16> k,
                      std::span<const bfloat16> v, std::span<bfloat16> result, std::span<const float> mask,
                      std::span<float> state, AttentionStretch stretch);

/// Computes c = a b over one stretch of the inner dimension, or c += a b, and the epilogue after
/// the last. Converts other numbers to float.
template <class T>
void matmul(Range range, std::span<const T> a, std::span<const T> b, std::span<const float> bias,
            std::span<const float> residual, std::span<float> c, Product shape);
void matmul(Range range, std::span<const std::int8_t> a, std::span<const std::int8_t> b,
            std::span<std::int32_t> c, Product shape);
/// Computes the last stretch in float, adds `sums` of the stretches before, and rounds after the
/// epilogue.
template <class T>
void matmul_rounded(Range range, std::span<const T> a, std::span<const T> b, std::span<const T> bias,
                    std::span<const T> residual, std::span<const float> sums, std::span<T> c, Product shape);
/// Rounds to 16 bits.
void narrow(std::span<const float> from, half* to);
void narrow(std::span<const float> from, bfloat16* to);
/// Converts rows that begin `step` apart to floats. The rows in `to` are contiguous.
void widen(const half* from, std::size_t rows, std::size_t columns, std::size_t step, float* to);
void widen(const bfloat16* from, std::size_t rows, std::size_t columns, std::size_t step, float* to);
void widen(const std::int8_t* from, std::size_t rows, std::size_t columns, std::size_t step, float* to);
/// Computes one block of a product. Does not use an installed BLAS: threaded BLAS libraries start
/// threads of their own. The serial OpenBLAS of Debian 12 (0.3.21, built without locks) computes
/// wrong sums if two threads call it at the same time.
void multiply(const Block& block);
void finish(const BlockEpilogue& block);

/// Quantizes and dequantizes blocks. Items are blocks, and elements.
void quantize(Range range, std::span<const float> x, std::span<std::uint8_t> blocks, BlockLayout layout);
void dequantize(Range range, std::span<const std::uint8_t> blocks, std::span<float> x, BlockLayout layout);
/// Multiply by quantized weights: units of few rows, or blocks of many rows. Ranges of products of
/// int8 and of many rows have whole tiles of 256 columns.
void multiply_few_rows(Range range, std::span<const float> x, std::span<const std::uint8_t> weights,
                       std::span<float> y, QuantizedProduct shape, BlockLayout layout);
void multiply_int8_rows(Range range, std::span<const std::uint8_t> x, std::span<const std::uint8_t> weights,
                        std::span<float> y, QuantizedProduct shape, BlockLayout layout);
void multiply_many_rows(Range range, std::span<const float> x, std::span<const std::uint8_t> weights,
                        std::span<float> y, QuantizedProduct shape, BlockLayout layout);

void timeline(Range range, std::span<const Evidence> evidence, std::span<TimelinePoint> points, float now,
              float decay);

/// PageRank; `shaders/include/pagerank.glsl` documents the layout of the buffers.
void pagerank_clear(Range range, std::span<std::uint32_t> degrees, std::span<PageRankSummary> summary,
                    std::uint32_t nodes);
void pagerank_count(Range range, std::span<const std::uint32_t> sources, std::span<std::uint32_t> degrees,
                    std::span<PageRankSummary> summary, std::uint32_t nodes);
void pagerank_largest(Range range, std::span<const float> weights, std::span<const std::uint32_t> sources,
                      std::span<std::uint32_t> degrees, std::span<PageRankSummary> summary,
                      std::uint32_t nodes);
void pagerank_fractions(Range range, std::span<const float> weights, std::span<const std::uint32_t> sources,
                        std::span<const std::uint32_t> degrees, std::span<float> shares, std::uint32_t nodes);
void pagerank_preference(Range range, std::span<const float> preferences, std::span<float> partials,
                         std::uint32_t nodes);
void pagerank_start(Range range, std::span<const std::uint32_t> degrees, std::span<float> shares,
                    std::span<float> ranks, std::span<float> partials, std::uint32_t nodes,
                    std::span<const float> preferences);
void pagerank_pull(Range range, std::span<const std::uint32_t> offsets,
                   std::span<const std::uint32_t> sources, std::span<float> shares,
                   std::span<const float> blocks, std::span<float> ranks, std::span<float> partials,
                   std::span<const PageRankSummary> summary, std::uint32_t nodes, std::uint32_t turn,
                   float damping);
void pagerank_sum(Range range, std::span<float> partials, std::span<PageRankSummary> summary,
                  std::uint32_t groups, std::uint32_t counts, float tolerance);

/// The elements of a block of a sparse matrix; `shaders/include/csr.glsl` documents the layout of
/// `blocks`.
inline constexpr std::uint32_t csr_block = 1024;
/// Adds up the products of whole blocks, at `level` 1 the sums of blocks.
void csr_multiply_blocks(Range range, std::span<const std::uint32_t> offsets,
                         std::span<const std::uint32_t> columns, std::span<const float> values,
                         std::span<const float> x, std::span<float> blocks, std::uint32_t level);
/// Computes the rows of the product.
void csr_multiply(Range range, std::span<const std::uint32_t> offsets, std::span<const std::uint32_t> columns,
                  std::span<const float> values, std::span<const float> x, std::span<const float> blocks,
                  std::span<float> y, std::uint32_t lanes_log2);

/// The most nodes whose forces are computed together, and the bodies: positions and masses of all
/// nodes.
inline constexpr std::size_t layout_tile = 64;
struct LayoutBodies {
  const float* x;
  const float* y;
  const float* mass;
  std::size_t nodes;
};
/// The steps of a layout; `shaders/include/force_layout.glsl` documents the layout of the buffers.
void force_layout_forces(Range range, std::span<const std::uint32_t> offsets,
                         std::span<const std::uint32_t> targets, std::span<const float> weights,
                         std::span<const float> bodies, std::span<float> forces, float repulsion,
                         float gravity, std::uint32_t strong);
void force_layout_speed(Range range, std::span<const float> bodies, std::span<const float> forces,
                        std::span<float> state, float tolerance);
void force_layout_move(Range range, std::span<const std::uint32_t> offsets,
                       std::span<const std::uint32_t> targets, std::span<float> positions,
                       std::span<float> bodies, std::span<const float> forces, std::span<float> state,
                       std::uint32_t begins);

/// Kernel parameters of collatz: the words of the first number, the lowest first.
struct CollatzStart {
  std::uint32_t first_0 = 0;
  std::uint32_t first_1 = 0;
  std::uint32_t first_2 = 0;
  std::uint32_t first_3 = 0;
  std::uint32_t step_limit = 0;
};
void collatz(Range range, std::span<CollatzResult> results, CollatzStart start);
/// The results, or summaries of the step before, that one workgroup of 256 reads.
inline constexpr std::uint64_t collatz_stretch = 65536;
/// Summarizes stretches of `parts`, or of `results` if `parts` is empty.
void collatz_summary(Range range, std::span<const CollatzResult> results,
                     std::span<const CollatzSummary> parts, std::span<CollatzSummary> sums);

/// Kernel parameters of thread_simulation.
struct ThreadShape {
  std::uint32_t limit_low = 0;
  std::uint32_t limit_high = 0;
  std::uint32_t max_depth = 0;
  std::uint32_t batch = 0;
  std::uint32_t part = 0;  ///< the step: resets the depths, follows the chains, finds the deepest
};
enum ThreadPart : std::uint32_t { reset_depths, follow_chains, find_deepest };
void thread_simulation(Range range, std::span<SimulatedThread> last, std::span<ThreadDepth> depths,
                       std::span<ThreadSummary> summary, ThreadShape shape);

/// The most adjacent tiles of a picture that are painted together.
inline constexpr std::uint32_t tiles_of_run = 128;
/// A stroke, with numbers that its pixels share.
struct PictureStroke {
  float x = 0;  ///< of one end
  float y = 0;
  float along_x = 0;  ///< to the other end
  float along_y = 0;
  float inner = 0;
  float outer = 1;
  float opacity = 0;
  float inverse = 0;  ///< 1 / length^2; 0 for a point
  float fade = 0;     ///< 1 / (outer - inner)
  float red = 0;
  float green = 0;
  float blue = 0;
};
/// The pixels of adjacent tiles, red, green and blue of each row apart.
struct PaintedRows {
  float* memory = nullptr;  ///< of `memory_size` numbers
  std::uint32_t columns = 0;
  std::uint32_t count = 0;
  float left = 0;  ///< of the centre of the first pixel
  float top = 0;
  /// A row ends with room for a vector.
  static constexpr std::size_t room = 64;
  static constexpr std::size_t memory_size(std::uint32_t columns) {
    return 3 * picture_tile * (columns + room);
  }
  std::size_t row_size() const { return columns + room; }
  float* channel(std::uint32_t row, std::uint32_t c) const { return memory + (3 * row + c) * row_size(); }
};
/// The steps of a picture; `shaders/include/render.glsl` documents the layout of the buffers.
void render_points(Range range, std::span<const float> positions, std::span<const float> values,
                   std::span<const std::uint32_t> ends, std::span<std::uint32_t> strokes, PointStyle style);
void render_moments(Range range, std::span<const TimelinePoint> points, std::span<std::uint32_t> strokes,
                    MomentStyle style);
/// Do nothing: the host finds the pixels of a stroke in a row by its equation.
void render_bins(Range range, std::span<const std::uint32_t> strokes, std::span<std::uint32_t> masks,
                 PicturePass pass);
void render_tiles(Range range, std::span<const std::uint32_t> strokes, std::span<const std::uint32_t> masks,
                  std::span<std::uint32_t> hits, PicturePass pass);
void render_paint(Range range, std::span<const std::uint32_t> strokes, std::span<const std::uint32_t> hits,
                  std::span<const std::uint32_t> before, std::span<std::uint32_t> result, PicturePass pass);

}  // namespace wye::workloads::cpu
