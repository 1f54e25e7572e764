#pragma once
// Products with tensor cores. A 32-bit word holds elements that are adjacent along the inner dimension: two
// of 16 bits, four of 8 bits, or one of 32 bits. A warp then always multiplies 16 rows by 8 words by 8
// columns, with the same layout in registers. It computes 32 x 64 elements of c, which are 2 x 8 such pieces.
// A block multiplies 8 words of each line at a time, a stage. Since sm_80, copies of the next two stages to shared
// memory are in flight meanwhile. Before, it loads the next stage to registers, then stores it.
#include "epilogue.cuh"
#include "numbers.cuh"
#include "product.cuh"

constexpr unsigned stage_words = 8;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
constexpr unsigned stages = 3;
#else
constexpr unsigned stages = 2;
#endif
// Padded by four words. The eight rows of four words that one instruction loads then have no bank conflicts.
constexpr unsigned row_words = stage_words + 4;

// With g = lane / 4 and t = lane % 4, a lane has these words of the 16 x 8: a[0] at (g, t), a[1] at (g + 8,
// t), a[2] at (g, t + 4) and a[3] at (g + 8, t + 4). Of the 8 columns of 8 words it has b[0] at (g, t) and
// b[1] at (g, t + 4). Of the sums it has (g, 2 t), (g, 2 t + 1), (g + 8, 2 t) and (g + 8, 2 t + 1).
// Architectures before sm_80 have no such instruction for bfloat16 and TF32, and those before sm_75 none for half: they
// multiply as in `matmul.cuh`.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ < 750
// Does the same without such instructions, through shared memory: on the host, and for int8 before sm_75.
template <class T>
__device__ void multiply_by_words(typename T::Sum (&sums)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  __shared__ unsigned words_of_warps[8][6][32];
  const unsigned lane = threadIdx.x % 32;
  unsigned(*const words)[32] = words_of_warps[threadIdx.x / 32];
  for (unsigned i = 0; i < 4; ++i) words[i][lane] = a[i];
  words[4][lane] = b0;
  words[5][lane] = b1;
  __syncwarp();
  for (unsigned w = 0; w < 8; ++w)
    for (unsigned i = 0; i < 4; ++i)
      sums[i] = T::add(sums[i], words[w / 4 * 2 + i / 2][lane / 4 * 4 + w % 4],
                       words[4 + w / 4][(lane % 4 * 2 + i % 2) * 4 + w % 4]);
  __syncwarp();
}
#endif

__device__ unsigned bits_of(unsigned short number) { return number; }
__device__ unsigned bits_of(signed char number) { return (unsigned char)number; }
__device__ unsigned bits_of(float number) { return __float_as_uint(number); }

// 16-bit numbers, two per word.
template <class T>
struct TensorPairs : T {
  typedef float Sum;
  static constexpr unsigned per_word = 2;
  __device__ static unsigned operand(unsigned word) { return word; }
  __device__ static float add(float sum, unsigned a, unsigned b) {
    float left[2], right[2];
    T::split(a, left[0], left[1]);
    T::split(b, right[0], right[1]);
    return fmaf(left[1], right[1], fmaf(left[0], right[0], sum));
  }
};

struct TensorHalf : TensorPairs<Half> {
  __device__ static void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    mma_half_16x8x16(c, a, b0, b1);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 750
    mma_half_16x8x8(c, a[0], a[1], b0);
    mma_half_16x8x8(c, a[2], a[3], b1);
#else
    multiply_by_words<TensorHalf>(c, a, b0, b1);
#endif
  }
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
struct TensorBfloat16 : TensorPairs<Bfloat16> {
  __device__ static void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
#ifdef __CUDA_ARCH__
    mma_bfloat16_16x8x16(c, a, b0, b1);
#else
    multiply_by_words<TensorBfloat16>(c, a, b0, b1);
#endif
  }
};

struct Tf32 {
  typedef float Number;
  typedef float Sum;
  static constexpr unsigned per_word = 1;
  // Rounds to the nearest number of 11 bits.
  __device__ static unsigned operand(unsigned word) {
#ifdef __CUDA_ARCH__
    return rounded_to_tf32(word);
#else
    const bool nan = (word & 0x7fffffffu) > 0x7f800000u;
    return (nan ? word | 0x400000u : word + 0x1000u) & 0xffffe000u;
#endif
  }
  __device__ static float add(float sum, unsigned a, unsigned b) { return fmaf(__uint_as_float(a), __uint_as_float(b), sum); }
  __device__ static void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
#ifdef __CUDA_ARCH__
    mma_tf32_16x8x8(c, a, b0, b1);
#else
    multiply_by_words<Tf32>(c, a, b0, b1);
#endif
  }
};
#endif

struct Int8 {
  typedef signed char Number;
  typedef int Sum;
  static constexpr unsigned per_word = 4;
  __device__ static unsigned operand(unsigned word) { return word; }
  __device__ static int add(int sum, unsigned a, unsigned b) {
    unsigned wraps = unsigned(sum);
    for (unsigned i = 0; i < 32; i += 8) wraps += unsigned(int((signed char)(a >> i)) * int((signed char)(b >> i)));
    return int(wraps);
  }
  __device__ static void multiply(int (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    mma_int8_16x8x32(c, a, b0, b1);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 750
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) mma_int8_8x8x16(c[i % 2 * 2], c[i % 2 * 2 + 1], a[i], i < 2 ? b0 : b1);
#else
    multiply_by_words<Int8>(c, a, b0, b1);
#endif
  }
};

// One stage of a matrix: of each line, or of each step of the inner dimension.
template <class T>
union alignas(16) TensorTile {
  static constexpr unsigned steps_of_stage = stage_words * T::per_word;
  unsigned lines[tile_side][row_words];
  // Padded by eight numbers, also to avoid bank conflicts.
  unsigned steps[steps_of_stage][(tile_side + 8) / T::per_word];
};
template <class T>
struct TensorTiles {
  TensorTile<T> a[stages];
  TensorTile<T> b[stages];
};

// Loads a lane's words at (g, t), (g + 8, t), (g, t + 4) and (g + 8, t + 4) of 16 rows from `rows` on, and
// eight words of each from `word` on.
template <unsigned pitch>
__device__ void load_pieces(unsigned (&to)[4], const unsigned (*rows)[pitch], unsigned word = 0) {
  const unsigned lane = threadIdx.x % 32;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 750
  load_matrices(to, &rows[lane % 16][word + lane / 16 * 4]);
#else
  for (unsigned i = 0; i < 4; ++i) to[i] = rows[lane / 4 + i % 2 * 8][word + i / 2 * 4 + lane % 4];
#endif
}

// Loads a lane's words of 16 columns: b[0] and b[1] of the first eight, then of the others. Columns are lines of eight
// words from `word` on.
template <unsigned pitch>
__device__ void load_columns(unsigned (&to)[4], const unsigned (*lines)[pitch], unsigned word = 0) {
  const unsigned lane = threadIdx.x % 32;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 750
  load_matrices(to, &lines[lane / 16 * 8 + lane % 8][word + lane / 8 % 2 * 4]);
#else
  for (unsigned i = 0; i < 4; ++i) to[i] = lines[lane / 4 + i / 2 * 8][word + i % 2 * 4 + lane % 4];
#endif
}

// Does the same for columns of 16-bit numbers that are not lines: 16 lines have eight words of them from `word` on.
template <unsigned pitch>
__device__ void load_transposed_columns(unsigned (&to)[4], const unsigned (*lines)[pitch], unsigned word) {
  const unsigned lane = threadIdx.x % 32;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 750
  load_transposes(to, &lines[lane % 16][word + lane / 16 * 4]);
#else
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned line = i % 2 * 8 + lane % 4 * 2, column = i / 2 * 8 + lane / 4, shift = column % 2 * 16;
    const unsigned low = lines[line][word + column / 2] >> shift, high = lines[line + 1][word + column / 2] >> shift;
    to[i] = (low & 0xffffu) | high << 16;
  }
#endif
}

// Makes a group of the copies of a stage.
__device__ void end_stage() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  end_group();
#endif
}
// Waits until the oldest stage is complete. The stage before it is then unused.
__device__ void wait_for_stage() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  wait_for_groups<stages - 2>();
#endif
  __syncthreads();
}

template <unsigned count>
struct alignas(4 * count) Words {
  unsigned word[count];
};

// Copies a matrix's part of the stretch to shared memory, a stage at a time. Lines are rows of a and columns of b.
// Elements beyond the matrix are zero. A thread copies four words that are adjacent in memory: of one line if it is
// `transposed`, otherwise of one step. Steps of 8-bit numbers are stored as lines: a thread loads one word of four
// steps, and stores one word of four lines.
template <class T>
struct WordFetcher {
  typedef typename T::Number Number;
  static constexpr unsigned per_word = T::per_word, bits = 32 / per_word;
  static constexpr unsigned threads_of_step = tile_side / per_word / 4;

  const Number* from;  // the thread's first element at the beginning of the stretch
  unsigned stride;     // from one step of the inner dimension to the next
  unsigned end;        // number of steps from the thread's first element on; 0 if it has no line
  unsigned width;      // number of lines from the thread's first line on
  bool transposed;

  // Returns a word of the first `left` elements, then zeros.
  __device__ static unsigned word_of(const Number* from, unsigned left) {
    unsigned word = 0;
#pragma unroll
    for (unsigned e = 0; e < per_word; ++e)
      if (e < left) word |= bits_of(from[e]) << (e * bits);
    return word;
  }

  // Begins to copy the stage at step k to `tile`, or loads it to `words`.
  __device__ void load(unsigned k, TensorTile<T>& tile, unsigned (&words)[4]) const {
    const unsigned steps = k < end ? end - k : 0;
    const Number* const here = from + Size(k) * stride;
    if (packs()) {
#pragma unroll
      for (unsigned step = 0; step < per_word; ++step)
        words[step] = load_word(here + Size(step) * stride, step < steps ? width : 0);
      return;
    }
    const unsigned left = min(transposed ? steps : steps != 0 ? width : 0, 4 * per_word);
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    const unsigned bytes = left * unsigned(sizeof(Number));
    if (has_quads(from)) return begin_copy<4>(place_in(tile), here, bytes);
    if (has_words()) {
#pragma unroll
      for (unsigned i = 0; i < 4; ++i)
        begin_copy<1>(place_in(tile) + i, here + i * per_word, bytes > 4 * i ? min(bytes - 4 * i, 4u) : 0);
      return;
    }
#else
    if (has_quads(from) && left == 4 * per_word) {
      const Words<4> loaded = *reinterpret_cast<const Words<4>*>(here);
#pragma unroll
      for (unsigned i = 0; i < 4; ++i) words[i] = loaded.word[i];
      return;
    }
#endif
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) words[i] = load_word(here + i * per_word, left > i * per_word ? left - i * per_word : 0);
  }

  // Stores the words that `load` loaded, if it did.
  __device__ void store(TensorTile<T>& tile, const unsigned (&words)[4]) const {
    if (packs()) {
#pragma unroll
      for (unsigned i = 0; i < 4; ++i) {
        unsigned word = 0;
#pragma unroll
        for (unsigned step = 0; step < per_word; ++step) word |= (words[step] >> (i % per_word * bits) & mask) << (step * bits);
        tile.lines[threadIdx.x / 8 * 4 + i][threadIdx.x % 8] = word;
      }
      return;
    }
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    if (has_words()) return;
#endif
    *reinterpret_cast<Words<4>*>(place_in(tile)) = {{words[0], words[1], words[2], words[3]}};
  }

 private:
  static constexpr unsigned mask = ~0u >> (32 - bits);

  __device__ bool packs() const { return per_word == 4 && !transposed; }
  // Whether the thread's words are aligned in each stage: the elements of a stage are 32 bytes of a line.
  __device__ bool has_words() const { return per_word == 1 || has_quads<unsigned>(from); }

  __device__ unsigned* place_in(TensorTile<T>& tile) const {
    return transposed ? &tile.lines[threadIdx.x / 2][threadIdx.x % 2 * 4]
                      : &tile.steps[threadIdx.x / threads_of_step][threadIdx.x % threads_of_step * 4];
  }

  __device__ static unsigned load_word(const Number* from, unsigned left) {
    return left >= per_word && has_quads<unsigned>(from) ? *reinterpret_cast<const unsigned*>(from) : word_of(from, left);
  }
};

// Makes the fetcher of a matrix of `lines` rows of `inner` numbers.
template <class T>
__device__ WordFetcher<T> fetch_word_rows(const typename T::Number* data, unsigned first_line, unsigned lines, unsigned inner,
                                          unsigned depth) {
  const unsigned at = threadIdx.x % 2 * 4 * T::per_word;
  const unsigned line = first_line + threadIdx.x / 2;
  return {data + Size(line) * inner + at, 1, line < lines && at < depth ? depth - at : 0, 0, true};
}
// Makes the fetcher of a matrix of `lines` columns.
template <class T>
__device__ WordFetcher<T> fetch_word_columns(const typename T::Number* data, unsigned first_line, unsigned lines, unsigned depth) {
  constexpr bool packs = T::per_word == 4;
  constexpr unsigned threads = WordFetcher<T>::threads_of_step;
  const unsigned at = packs ? threadIdx.x % 8 * 4 : threadIdx.x / threads;
  const unsigned line = first_line + (packs ? threadIdx.x / 8 : threadIdx.x % threads * T::per_word) * 4;
  return {data + Size(at) * lines + line, lines, line < lines && at < depth ? depth - at : 0, line < lines ? lines - line : 0, false};
}

template <class Sum>
struct alignas(8) SumPair {
  Sum x, y;
};
__device__ float plus(float a, float b) { return a + b; }
__device__ int plus(int a, int b) { return int(unsigned(a) + unsigned(b)); }

// Writes the first `count` of two adjacent sums, or adds them. `together`: whether the two are aligned to their size.
template <class T>
__device__ void write_sums(typename T::Sum* to, unsigned count, bool together, bool add, SumPair<typename T::Sum> pair) {
  if (together && count > 1) {
    SumPair<typename T::Sum>* const both = reinterpret_cast<SumPair<typename T::Sum>*>(to);
    if (add) pair = {plus(both->x, pair.x), plus(both->y, pair.y)};
    *both = pair;
    return;
  }
  if (count > 0) to[0] = add ? plus(to[0], pair.x) : pair.x;
  if (count > 1) to[1] = add ? plus(to[1], pair.y) : pair.y;
}
// Rounds two adjacent sums to 16 bits and writes the first `count` of them.
template <class T>
__device__ void write_sums(unsigned short* to, unsigned count, bool together, bool, SumPair<float> pair) {
  T::write_two(to, count, together, pair.x, pair.y);
}

template <class T>
__device__ void make_operands(unsigned (&words)[4]) {
#pragma unroll
  for (unsigned& word : words) word = T::operand(word);
}

// Loads a lane's words of 16 columns of b from `column` on.
template <class T>
__device__ void load_columns_of(unsigned (&to)[4], const TensorTile<T>& tile, unsigned column, bool by_lines) {
  if (by_lines) {
    load_columns(to, &tile.lines[column]);
  } else if (T::per_word == 2) {
    load_transposed_columns(to, tile.steps, column / 2);
  } else {
    const unsigned lane = threadIdx.x % 32;
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) to[i] = tile.steps[i % 2 * 4 + lane % 4][column + i / 2 * 8 + lane / 4];
  }
  make_operands<T>(to);
}

// Loads a lane's words of 16 rows of a from `row` on. Their order is not that of columns.
template <class T>
__device__ void load_rows_of(unsigned (&to)[4], const TensorTile<T>& tile, unsigned row, bool by_lines) {
  if (by_lines) {
    load_pieces(to, &tile.lines[row]);
    make_operands<T>(to);
    return;
  }
  load_columns_of<T>(to, tile, row, false);
  const unsigned second = to[1];
  to[1] = to[2];
  to[2] = second;
}

template <class T, class C, class E>
__device__ void multiply_words(const typename T::Number* a, const typename T::Number* b, C* c, const Product& shape,
                               const E& epilogue, TensorTiles<T>& tiles) {
  typedef typename T::Sum Sum;
  Place place;
  if (!find_place(shape, place)) return;
  a += place.matrix * shape.a_step;
  b += place.matrix * shape.b_step;

  const unsigned depth = shape.last - shape.first;
  const WordFetcher<T> fetch_a =
      shape.transposed_a != 0 ? fetch_word_columns<T>(a + Size(shape.first) * shape.rows, place.row, shape.rows, depth)
                              : fetch_word_rows<T>(a + shape.first, place.row, shape.rows, shape.inner, depth);
  const WordFetcher<T> fetch_b =
      shape.transposed_b != 0 ? fetch_word_rows<T>(b + shape.first, place.column, shape.columns, shape.inner, depth)
                              : fetch_word_columns<T>(b + Size(shape.first) * shape.columns, place.column, shape.columns, depth);
  const unsigned warp = threadIdx.x / 32, down = warp / 2 * 32, right = warp % 2 * 64;
  const bool inside = place.row + down < shape.rows && place.column + right < shape.columns;
  const bool a_by_lines = T::per_word == 4 || shape.transposed_a == 0, b_by_lines = T::per_word == 4 || shape.transposed_b != 0;

  Sum sums[2][8][4] = {};
  unsigned next_a[4], next_b[4];
  constexpr unsigned stage = stage_words * T::per_word, ahead = (stages - 1) * stage;
#pragma unroll 1
  for (unsigned i = 0; i + 1 < stages; ++i) {
    if (i * stage < depth) {
      fetch_a.load(i * stage, tiles.a[i], next_a);
      fetch_b.load(i * stage, tiles.b[i], next_b);
      fetch_a.store(tiles.a[i], next_a);
      fetch_b.store(tiles.b[i], next_b);
    }
    end_stage();
  }
  for (unsigned k = 0, now = 0, next = stages - 1; k < depth; k += stage) {
    wait_for_stage();
    const bool more = depth - k > ahead;
    if (more) {
      fetch_a.load(k + ahead, tiles.a[next], next_a);
      fetch_b.load(k + ahead, tiles.b[next], next_b);
    }
    end_stage();
    if (inside) {
      unsigned left[2][4];
#pragma unroll
      for (unsigned m = 0; m < 2; ++m) load_rows_of<T>(left[m], tiles.a[now], down + m * 16, a_by_lines);
#pragma unroll
      for (unsigned n = 0; n < 8; n += 2) {
        unsigned both[4];
        load_columns_of<T>(both, tiles.b[now], right + n * 8, b_by_lines);
#pragma unroll
        for (unsigned m = 0; m < 2; ++m) {
          T::multiply(sums[m][n], left[m], both[0], both[1]);
          T::multiply(sums[m][n + 1], left[m], both[2], both[3]);
        }
      }
    }
    if (more) {
      fetch_a.store(tiles.a[next], next_a);
      fetch_b.store(tiles.b[next], next_b);
    }
    next = now;
    now = now + 1 == stages ? 0 : now + 1;
  }

  const bool ends = epilogue.any(), add = shape.first != 0 && !ends;
  const Size start = place.matrix * shape.c_step;
  const bool pairs = reinterpret_cast<Size>(c + start) % (2 * sizeof(C)) == 0 && shape.columns % 2 == 0;
  if (ends) __syncthreads();
  const unsigned lane = threadIdx.x % 32, row = place.row + down + lane / 4, column = place.column + right + lane % 4 * 2;
#pragma unroll
  for (unsigned m = 0; m < 4; ++m) {
    if (row + m * 8 >= shape.rows) continue;
    Sum values[16];
#pragma unroll
    for (unsigned i = 0; i < 16; ++i) values[i] = sums[m / 2][i / 2][m % 2 * 2 + i % 2];
    const Size line = start + Size(row + m * 8) * shape.columns;
    if (ends)
      finish(values, reinterpret_cast<Sum(*)[256]>(&tiles), epilogue, line, shape.columns,
             [column](unsigned i) { return column + i / 2 * 8 + i % 2; });
#pragma unroll
    for (unsigned n = 0; n < 8; ++n) {
      const unsigned at = column + n * 8;
      if (at < shape.columns)
        write_sums<T>(c + line + at, shape.columns - at, pairs, add, {values[2 * n], values[2 * n + 1]});
    }
  }
}
