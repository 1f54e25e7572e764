// Jobs of several steps, one of whose launches fails.
#include <wye/workloads/cached_attention.hpp>
#include <wye/workloads/collatz.hpp>
#include <wye/workloads/csr_multiply.hpp>
#include <wye/workloads/force_layout.hpp>
#include <wye/workloads/layer_norm.hpp>
#include <wye/workloads/pagerank.hpp>
#include <wye/workloads/quantized.hpp>
#include <wye/workloads/render.hpp>
#include <wye/workloads/scan.hpp>
#include <wye/workloads/softmax.hpp>
#include <wye/workloads/sort.hpp>
#include <wye/workloads/thread_simulation.hpp>
#include <wye/workloads/top_k.hpp>
#include <wye/workloads/transformer.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <set>

#include "support/skip.hpp"
#include "workloads/stand_in.hpp"
#include "workloads/vectors.hpp"

using namespace wye;
using namespace wye::test;

namespace {

using Contents = std::vector<std::byte>;
using Indexes = std::vector<std::uint32_t>;
using Floats = std::vector<float>;

/// A job, and the contents of the memory that it writes.
struct Trial {
  Job job;
  std::function<Contents()> contents;
};

template <class... V>
Contents contents_of(const V&... vectors) {
  Contents all;
  const auto add = [&](std::span<const std::byte> bytes) {
    all.insert(all.end(), bytes.begin(), bytes.end());
  };
  (add(std::as_bytes(std::span(vectors))), ...);
  return all;
}

Trial collatz_trial() {
  struct Memory {
    std::vector<workloads::CollatzResult> results = workloads::reference::collatz({1, 0}, 66'000);
    std::vector<workloads::CollatzSummary> summary = poison<workloads::CollatzSummary>(1);
  };
  const auto m = std::make_shared<Memory>();
  return {workloads::collatz_summary(m->results, m->summary), [m] { return contents_of(m->summary); }};
}

Trial thread_simulation_trial() {
  struct Memory {
    std::vector<workloads::SimulatedThread> last = poison<workloads::SimulatedThread>(300);
    std::vector<workloads::ThreadDepth> depths = poison<workloads::ThreadDepth>(11);
    std::vector<workloads::ThreadSummary> summary = poison<workloads::ThreadSummary>(1);
  };
  const auto m = std::make_shared<Memory>();
  return {workloads::thread_simulation(m->last, m->depths, m->summary),
          [m] { return contents_of(m->last, m->depths, m->summary); }};
}

Trial sort_trial() {
  struct Memory {
    Floats keys = elements<float>(5000, 1), sorted = poison<float>(5000);
  };
  const auto m = std::make_shared<Memory>();
  return {workloads::sort(m->keys, m->sorted), [m] { return contents_of(m->sorted); }};
}

Trial scan_trial() {
  struct Memory {
    Floats x = elements<float>(140'000, 2), sums = poison<float>(140'000);
  };
  const auto m = std::make_shared<Memory>();
  return {workloads::scan(workloads::Scan::inclusive, m->x, m->sums), [m] { return contents_of(m->sums); }};
}

Trial top_k_trial() {
  struct Memory {
    Floats x = elements<float>(9000, 3), values = poison<float>(20);
    Indexes places = poison<std::uint32_t>(20);
  };
  const auto m = std::make_shared<Memory>();
  return {workloads::top_k(20, m->x, m->values, m->places),
          [m] { return contents_of(m->values, m->places); }};
}

Trial csr_multiply_trial() {
  struct Memory {
    Indexes offsets{0, 5000, 5001, 9000}, columns = Indexes(9000);
    Floats values = elements<float>(9000, 4), x = elements<float>(100, 5), y = poison<float>(3);
  };
  const auto m = std::make_shared<Memory>();
  for (std::uint32_t i = 0; i < 9000; ++i) m->columns[i] = i * 37 % 100;
  return {workloads::csr_multiply(m->offsets, m->columns, m->values, m->x, m->y),
          [m] { return contents_of(m->y); }};
}

Trial softmax_trial() {
  const auto matrix = std::make_shared<Floats>(elements<float>(140'000, 6));
  return {workloads::softmax(*matrix, 140'000), [matrix] { return contents_of(*matrix); }};
}

Trial layer_norm_trial() {
  struct Memory {
    Floats x = elements<float>(140'000, 7), residual = elements<float>(140'000, 8),
           weight = elements<float>(140'000, 9), bias = elements<float>(140'000, 10),
           result = poison<float>(140'000);
  };
  const auto m = std::make_shared<Memory>();
  return {workloads::layer_norm(m->x, m->residual, m->weight, m->bias, m->result),
          [m] { return contents_of(m->residual, m->result); }};
}

/// A ring of nodes.
struct Ring {
  Indexes offsets, targets;
};
Ring ring_of(std::uint32_t nodes) {
  Ring ring{{0}, {}};
  for (std::uint32_t v = 0; v < nodes; ++v) {
    ring.targets.push_back((v + 1) % nodes);
    ring.targets.push_back((v + nodes - 1) % nodes);
    ring.offsets.push_back(2 * (v + 1));
  }
  return ring;
}

Trial pagerank_trial() {
  struct Memory {
    Ring ring = ring_of(300);
    Floats ranks = poison<float>(300);
    std::vector<workloads::PageRankSummary> summary = poison<workloads::PageRankSummary>(1);
  };
  const auto m = std::make_shared<Memory>();
  return {workloads::pagerank(m->ring.offsets, m->ring.targets, m->ranks, m->summary, {.iterations = 3}),
          [m] { return contents_of(m->ranks, m->summary); }};
}

Trial force_layout_trial() {
  struct Memory {
    Ring ring = ring_of(70);
    Floats positions = workloads::force_layout_start(70),
           state = Floats(workloads::force_layout_state_size(70));
  };
  const auto m = std::make_shared<Memory>();
  return {
      workloads::force_layout(m->ring.offsets, m->ring.targets, m->positions, m->state, {.iterations = 2}),
      [m] { return contents_of(m->positions, m->state); }};
}

Trial render_trial() {
  struct Memory {
    Ring ring = ring_of(70);
    Floats positions = workloads::force_layout_start(70), ranks = Floats(70, 0.5f);
    Indexes ends, pixels = poison<std::uint32_t>(150 * 140);
  };
  const auto m = std::make_shared<Memory>();
  for (std::uint32_t v = 0; v < 70; ++v) m->ends.insert(m->ends.end(), {v, (v + 1) % 70});
  return {workloads::render_network(m->positions, m->ranks, m->ends, m->pixels, {.width = 150, .height = 140},
                                    {.view = {.scale = 8}, .diameter = 2}),
          [m] { return contents_of(m->pixels); }};
}

Trial quantized_trial() {
  struct Memory {
    Floats x = elements<float>(3 * 64, 11), y = poison<float>(3 * 10);
    std::vector<std::uint8_t> weights = std::vector<std::uint8_t>(10 * 2 * 18, 0x21);
  };
  const auto m = std::make_shared<Memory>();
  return {workloads::quantized_matmul(m->x, m->weights, m->y, 3, {}, {.int8_x = true}),
          [m] { return contents_of(m->y); }};
}

/// A cache of keys and values of 2 heads of 16 in two slots, the sequences in it, and their new
/// tokens.
struct CacheMemory {
  Floats keys = elements<float>(2 * 40 * 32, 12), values = elements<float>(2 * 40 * 32, 13);
  Indexes slots{1, 0}, cached{30, 0}, offsets{0, 1, 4};
  workloads::KeyValueCache<float> cache() { return {keys, values, slots, cached, 40}; }
};

Trial cached_attention_trial() {
  struct Memory : CacheMemory {
    Floats q = elements<float>(4 * 64, 14), k = elements<float>(4 * 32, 15), v = elements<float>(4 * 32, 16),
           out = poison<float>(4 * 64);
  };
  const auto m = std::make_shared<Memory>();
  return {workloads::cached_attention(m->q, m->k, m->v, m->offsets, m->cache(), m->out, {4, 2, 16}),
          [m] { return contents_of(m->keys, m->values, m->out); }};
}

Trial transformer_trial() {
  struct Memory : CacheMemory {
    Floats x = elements<float>(4 * 64, 17), norm = Floats(64, 1.0f), square = elements<float>(64 * 64, 18),
           narrow = elements<float>(32 * 64, 19), wide = elements<float>(96 * 64, 20);
  };
  const auto m = std::make_shared<Memory>();
  const workloads::DecoderWeights<float> weights{m->norm, {m->square}, {m->narrow}, {m->narrow}, {m->square},
                                                 m->norm, {m->wide},   {m->wide},   {m->wide}};
  return {workloads::transformer_block(
              m->x, m->offsets, m->cache(), weights,
              {.width = 64, .heads = 4, .key_value_heads = 2, .head_size = 16, .hidden = 96}),
          [m] { return contents_of(m->x, m->keys, m->values); }};
}

}  // namespace

TEST_CASE("a job whose launch fails leaves its memory as it was, and another device runs it",
          "[workloads][failures]") {
  const auto stand_in = stand_in_driver();
  if (!stand_in) return test::skip("CUDA's driver is no stand-in");
  constexpr int out_of_resources = 701;
  const WorkloadType type{"failing"};
  RuntimeOptions options = RuntimeOptions::from_environment().value();
  options.pool.backends = {"cuda", "cpu"};
  options.scheduler.preferences = {{.type = type, .at_least = {}, .backends = {"cuda", "cpu"}}};
  options.scheduler.measure_variants = false;
  Runtime runtime = Runtime::open(std::move(options)).value();
  const auto run_on = [&](const Trial& trial, std::string_view backend) {
    return runtime.submit(trial.job, {.fallback = Fallback::forbid, .on = backend}).wait();
  };
  const auto right_on = [&](const Trial& trial, std::string_view backend) {
    const auto done = run_on(trial, backend);
    if (!done) FAIL(done.error().describe());
    return trial.contents();
  };

  using Make = Trial (*)();
  for (const Make make :
       {collatz_trial, thread_simulation_trial, sort_trial, scan_trial, top_k_trial, csr_multiply_trial,
        softmax_trial, layer_norm_trial, pagerank_trial, force_layout_trial, render_trial, quantized_trial,
        cached_attention_trial, transformer_trial}) {
    const long before = stand_in->calls("cuLaunchKernel");
    const Contents right = right_on(make(), "cuda"), right_on_cpu = right_on(make(), "cpu");
    const long launches = stand_in->calls("cuLaunchKernel") - before;
    INFO(make().job.name() << ", " << launches << " launches");
    CHECK(launches >= 2);
    for (const long nth : std::set<long>{1, (launches + 1) / 2, launches}) {
      INFO("the launch that fails: " << nth);
      const Trial refused = make(), moved = make();
      const Contents untouched = refused.contents();
      stand_in->fail("cuLaunchKernel", nth, out_of_resources);
      const auto failed = run_on(refused, "cuda");
      REQUIRE_FALSE(failed);
      CHECK(failed.error().describe().find("cuLaunchKernel") != std::string::npos);
      CHECK(refused.contents() == untouched);

      stand_in->fail("cuLaunchKernel", nth, out_of_resources);
      const auto done = runtime.submit(moved.job, {.type = type}).wait();
      if (!done) FAIL(done.error().describe());
      CHECK(done->backend() == "cpu");
      CHECK(moved.contents() == right_on_cpu);
      CHECK(right_on(make(), "cuda") == right);
    }
  }
}
