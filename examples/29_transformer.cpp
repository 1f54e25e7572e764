// A decoder serves requests in batches: they join and leave between steps. On a device, each gets
// the tokens that it gets alone.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <random>
#include <vector>
#include <wye/workloads/embed.hpp>
#include <wye/workloads/matmul.hpp>
#include <wye/workloads/transformer.hpp>
#include <wye/wye.hpp>

namespace {
constexpr wye::workloads::TransformerShape shape{
    .width = 64, .heads = 4, .key_value_heads = 2, .head_size = 16, .hidden = 96};
constexpr std::uint64_t slots = 3, capacity = 32, vocabulary = 200;
using Floats = std::vector<float>;
Floats random_weights(std::size_t count) {
  static std::mt19937 random(7);
  Floats made(count);
  for (float& w : made) w = static_cast<float>(random() % 2001) * 2e-4f - 0.2f;
  return made;
}

struct Block {
  Floats norm = Floats(64, 1.0f), q = random_weights(64 * 64), k = random_weights(32 * 64),
         v = random_weights(32 * 64), o = random_weights(64 * 64), gate = random_weights(96 * 64),
         up = random_weights(96 * 64), down = random_weights(64 * 96);
  Floats keys = Floats(slots * capacity * 32), values = Floats(slots * capacity * 32);
  wye::workloads::DecoderWeights<float> weights() const {
    return {norm, {q}, {k}, {v}, {o}, norm, {gate}, {up}, {down}};
  }
};

struct Request {
  std::vector<std::uint32_t> tokens;  // at first, the prompt
  std::size_t end = 0;                // the number of tokens at which it leaves
  std::uint32_t slot = 0, cached = 0;
};
/// Serves requests, at most `most` at a time.
std::vector<Request> serve(wye::Runtime& runtime, std::vector<Block>& blocks, const Floats& table,
                           std::deque<Request> waiting, std::size_t most) {
  std::vector<Request> running, left;
  std::vector<std::uint32_t> free_slots{2, 0, 1};
  while (!waiting.empty() || !running.empty()) {
    for (; !waiting.empty() && running.size() < most; waiting.pop_front()) {  // requests join
      running.push_back(waiting.front());
      running.back().slot = free_slots.back();
      free_slots.pop_back();
    }
    std::vector<std::uint32_t> tokens, offsets{0}, of_slots, cached;
    for (const Request& r : running) {  // the prompt, or the last token
      tokens.insert(tokens.end(), r.tokens.begin() + r.cached, r.tokens.end());
      offsets.push_back(static_cast<std::uint32_t>(tokens.size()));
      of_slots.push_back(r.slot);
      cached.push_back(r.cached);
    }
    Floats x(tokens.size() * 64), scores(tokens.size() * vocabulary);
    auto done = runtime.run(wye::workloads::embed(table, tokens, x));
    for (Block& block : blocks)
      if (done)
        done = runtime.run(wye::workloads::transformer_block(
            x, offsets, {block.keys, block.values, of_slots, cached, capacity}, block.weights(), shape));
    if (done)
      done = runtime.run(
          wye::workloads::matmul(x, table, scores, {tokens.size(), vocabulary, 64}, {.transposed_b = true}));
    if (!done) return std::puts(done.error().describe().c_str()), left;
    for (std::size_t s = running.size(); s-- > 0;) {  // requests leave
      Request& r = running[s];
      r.cached = static_cast<std::uint32_t>(r.tokens.size());
      const auto last = scores.begin() + static_cast<std::ptrdiff_t>((offsets[s + 1] - 1) * vocabulary);
      r.tokens.push_back(static_cast<std::uint32_t>(std::max_element(last, last + vocabulary) - last));
      if (r.tokens.size() < r.end) continue;
      free_slots.push_back(r.slot);
      left.push_back(r);
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(s));
    }
  }
  return left;
}
}  // namespace

int main() {
  auto runtime =
      wye::Runtime::open({.pool = {.backends = {"cpu"}}, .scheduler = {.measure_variants = false}});
  if (!runtime) return std::puts(runtime.error().describe().c_str()), 1;
  std::vector<Block> blocks(2);
  const Floats table = random_weights(vocabulary * 64);
  const std::deque<Request> requests{{{1, 2, 3}, 9}, {{4}, 20}, {{5, 6, 7, 8, 9}, 12}, {{10, 11}, 6}};
  const auto together = serve(*runtime, blocks, table, requests, slots);
  for (const Request& r : together) {
    const Request& asked = *std::find_if(requests.begin(), requests.end(),
                                         [&](const Request& q) { return q.tokens[0] == r.tokens[0]; });
    const auto alone = serve(*runtime, blocks, table, std::deque<Request>(1, asked), 1);
    if (alone.empty() || alone[0].tokens != r.tokens) return std::puts("other tokens alone"), 1;
    std::printf("request %u: %zu tokens, the last is %u\n", r.tokens[0], r.tokens.size(), r.tokens.back());
  }
  return together.size() == requests.size() ? 0 : 1;
}
