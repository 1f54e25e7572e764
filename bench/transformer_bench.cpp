// Blocks of a decoder, 576 wide: 9 heads of 64, 3 key/value heads, 1,536 hidden.
// bench/peers/transformer_onnxruntime.py times onnxruntime with rows of the same names.
#include <benchmark/benchmark.h>
#include <wye/runtime/runtime.hpp>
#include <wye/workloads/transformer.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "values.hpp"

namespace {

namespace workloads = wye::workloads;
using wye_bench::values;

constexpr workloads::TransformerShape block_shape{
    .width = 576, .heads = 9, .key_value_heads = 3, .head_size = 64, .hidden = 1536};
constexpr std::size_t block_queries = 9 * 64, block_keys = 3 * 64;

wye::Runtime& steady_runtime() {
  static wye::Runtime runtime =
      wye::Runtime::open({.pool = {.backends = {"cpu"}}, .scheduler = {.measure_variants = false}}).value();
  return runtime;
}

/// A matrix of weights, as floats or in blocks q4_0.
struct BenchMatrix {
  std::vector<float> elements;
  std::vector<std::uint8_t> blocks;

  BenchMatrix(std::size_t outputs, std::size_t inputs, unsigned seed, bool quantized)
      : elements(values(outputs * inputs, seed, std::sqrt(3.0f / static_cast<float>(inputs)))) {
    if (!quantized) return;
    blocks.resize(elements.size() / 32 * 18);
    if (!steady_runtime().run(workloads::quantize(elements, blocks))) std::abort();
    elements.clear();
  }
  workloads::WeightMatrix<float> matrix() const {
    return {wye::Read<float>(elements), wye::Read<std::uint8_t>(blocks), {}};
  }
  std::size_t bytes() const { return elements.size() * sizeof(float) + blocks.size(); }
};

/// The weights and the cache of a block.
struct BenchBlock {
  static constexpr std::size_t width = block_shape.width, hidden = block_shape.hidden;
  bool quantized;
  BenchMatrix query{block_queries, width, 21, quantized}, key{block_keys, width, 22, quantized},
      value{block_keys, width, 23, quantized}, output{width, block_queries, 24, quantized},
      gate{hidden, width, 25, quantized}, up{hidden, width, 26, quantized},
      down{width, hidden, 27, quantized};
  std::vector<float> norm = std::vector<float>(width, 1.0f);
  std::vector<float> keys, cached_values;

  BenchBlock(bool in_blocks, std::size_t tokens) : quantized(in_blocks) {
    keys = values(tokens * block_keys, 28);
    cached_values = values(tokens * block_keys, 29);
  }
  workloads::DecoderWeights<float> weights() const {
    return {norm, query.matrix(), key.matrix(), value.matrix(), output.matrix(),
            norm, gate.matrix(),  up.matrix(),  down.matrix()};
  }
  std::size_t bytes() const {
    return query.bytes() + key.bytes() + value.bytes() + output.bytes() + gate.bytes() + up.bytes() +
           down.bytes();
  }
};

/// Rows of x, the sequences that they belong to, and blocks.
struct BenchDecoder {
  std::uint64_t capacity;
  std::vector<float> x;
  std::vector<std::uint32_t> offsets{0}, slots, cached;
  std::vector<BenchBlock> blocks;

  BenchDecoder(std::uint32_t sequences, std::uint32_t tokens, std::uint32_t cached_tokens, std::size_t count,
               bool quantized)
      : capacity(cached_tokens + tokens), x(values(sequences * tokens * block_shape.width, 20)) {
    for (std::uint32_t s = 0; s < sequences; ++s) {
      offsets.push_back(offsets.back() + tokens);
      slots.push_back(s);
      cached.push_back(cached_tokens);
    }
    for (std::size_t b = 0; b < count; ++b) blocks.emplace_back(quantized, sequences * capacity);
  }
  /// Runs rows through the blocks.
  bool run(std::span<float> rows, std::span<const std::uint32_t> of_rows,
           std::span<const std::uint32_t> of_slots, std::span<const std::uint32_t> of_cached) {
    for (BenchBlock& block : blocks)
      if (!steady_runtime().run(workloads::transformer_block(
              rows, of_rows, {block.keys, block.cached_values, of_slots, of_cached, capacity},
              block.weights(), block_shape)))
        return false;
    return true;
  }
};

void decoder_wye(benchmark::State& state, std::uint32_t sequences, std::uint32_t tokens,
                 std::uint32_t cached_tokens, std::size_t blocks, bool quantized) {
  BenchDecoder decoder(sequences, tokens, cached_tokens, blocks, quantized);
  for (auto _ : state)
    if (!decoder.run(decoder.x, decoder.offsets, decoder.slots, decoder.cached))
      state.SkipWithError("a block failed");
}

/// The same requests one after the other.
void decoder_one_by_one(benchmark::State& state, std::uint32_t sequences, std::uint32_t cached_tokens,
                        std::size_t blocks) {
  BenchDecoder decoder(sequences, 1, cached_tokens, blocks, false);
  const std::vector<std::uint32_t> one{0, 1};
  for (auto _ : state)
    for (std::uint32_t s = 0; s < sequences; ++s)
      if (!decoder.run(std::span(decoder.x).subspan(s * block_shape.width, block_shape.width), one,
                       std::span(decoder.slots).subspan(s, 1), std::span(decoder.cached).subspan(s, 1)))
        state.SkipWithError("a block failed");
}

/// Reads as many bytes as the weights of the blocks have, once, by all threads.
void decoder_weights_floor(benchmark::State& state, std::size_t blocks, bool quantized) {
  const std::size_t bytes = BenchBlock(quantized, 1).bytes() * blocks;
  const auto v = values(bytes / sizeof(float), 30);
  const unsigned parts = std::max(1u, std::thread::hardware_concurrency());
  const auto read = [&](unsigned part) {
    std::uint32_t sum = 0;
    for (std::size_t i = v.size() * part / parts; i < v.size() * (part + 1) / parts; ++i)
      sum += std::bit_cast<std::uint32_t>(v[i]);
    benchmark::DoNotOptimize(sum);
  };
  for (auto _ : state) {
    std::vector<std::thread> threads;
    for (unsigned part = 1; part < parts; ++part) threads.emplace_back(read, part);
    read(0);
    for (std::thread& thread : threads) thread.join();
  }
}

// 12 blocks: their weights, 170 MB of floats, exceed caches.
BENCHMARK_CAPTURE(decoder_wye, one, 1, 1, 127, 12, false)->Name("decoder_1_token_cpu/wye")->UseRealTime();
BENCHMARK_CAPTURE(decoder_weights_floor, one, 12, false)
    ->Name("decoder_1_token_cpu/memory_floor")
    ->UseRealTime();
BENCHMARK_CAPTURE(decoder_wye, one_q4, 1, 1, 127, 12, true)
    ->Name("decoder_q4_0_1_token_cpu/wye")
    ->UseRealTime();
BENCHMARK_CAPTURE(decoder_weights_floor, one_q4, 12, true)
    ->Name("decoder_q4_0_1_token_cpu/memory_floor")
    ->UseRealTime();
BENCHMARK_CAPTURE(decoder_wye, eight, 8, 1, 127, 12, false)
    ->Name("decoder_8_requests_cpu/wye")
    ->UseRealTime();
BENCHMARK_CAPTURE(decoder_one_by_one, eight, 8, 127, 12)
    ->Name("decoder_8_requests_cpu/one_by_one")
    ->UseRealTime();
BENCHMARK_CAPTURE(decoder_wye, prompt, 1, 512, 0, 1, false)
    ->Name("decoder_512_tokens_cpu/wye")
    ->UseRealTime();
BENCHMARK_CAPTURE(decoder_wye, prompt_q4, 1, 512, 0, 1, true)
    ->Name("decoder_q4_0_512_tokens_cpu/wye")
    ->UseRealTime();

}  // namespace
