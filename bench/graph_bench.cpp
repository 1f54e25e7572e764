// The cost of a node of a graph that is compiled once and run many times.
#include <benchmark/benchmark.h>
#include <oneapi/tbb/flow_graph.h>
#include <wye/wye.hpp>

#include <cstdint>
#include <list>
#include <span>
#include <string>
#include <vector>

namespace {

constexpr std::size_t nodes = 1000;

using Scale = wye::Kernel<wye::ReadWrite<float>, float>;
const Scale& kernel() {
  static const auto scale =
      Scale::make({.name = "scale", .sources = {wye::host([](wye::Range range, std::span<float> x, float s) {
                                      for (std::uint64_t i : range) x[i] *= s;
                                    })}});
  return *scale;
}

wye::Runtime open(const char* backend) {
  return wye::Runtime::open({.pool = {.backends = {backend}}}).value();
}

/// The shapes of graphs.
enum class Shape { chain, independent, arrays };

wye::Graph make(wye::Runtime& runtime, Shape shape, std::vector<std::vector<float>>& memory) {
  wye::Graph graph;
  const wye::Array<float> array = runtime.array(std::vector<float>(64, 1.0f));
  memory.assign(shape == Shape::independent ? nodes : 1, std::vector<float>(64, 1.0f));
  for (std::size_t i = 0; i < nodes; ++i) {
    if (shape == Shape::arrays)
      graph.add(kernel()(array, 1.5f));
    else
      graph.add(kernel()(memory[i % memory.size()], 1.5f));
  }
  return graph;
}

void replay(benchmark::State& state, const char* backend, Shape shape, bool sets) {
  wye::Runtime runtime = open(backend);
  std::vector<std::vector<float>> memory;
  auto plan = make(runtime, shape, memory).compile(runtime);
  if (!plan) return state.SkipWithError(plan.error().sentence().c_str());
  float value = 1.0f;
  for (auto _ : state) {
    if (sets && !plan->set(nodes / 2, 1, value += 1.0f)) return state.SkipWithError("refused");
    if (!plan->run().wait()) return state.SkipWithError("failed");
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(nodes));
}
BENCHMARK_CAPTURE(replay, null_chain, "null", Shape::chain, false)
    ->Name("graph_replay_null_x1000/wye")
    ->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(replay, null_independent, "null", Shape::independent, false)
    ->Name("graph_replay_independent_null_x1000/wye")
    ->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(replay, null_arrays, "null", Shape::arrays, false)
    ->Name("graph_replay_arrays_null_x1000/wye")
    ->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(replay, null_set, "null", Shape::chain, true)
    ->Name("graph_replay_null_with_a_new_argument_x1000/wye")
    ->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(replay, cpu_chain, "cpu", Shape::chain, false)
    ->Name("graph_replay_cpu_x1000/wye")
    ->MeasureProcessCPUTime();

/// Taskflow has no package in Debian. A flow graph of oneTBB is made once and run many times, too.
void replay_onetbb(benchmark::State& state, bool in_chain) {
  namespace flow = tbb::flow;
  using Node = flow::continue_node<flow::continue_msg>;
  flow::graph graph;
  flow::broadcast_node<flow::continue_msg> start(graph);
  std::list<Node> all;
  for (std::size_t i = 0; i < nodes; ++i) {
    Node& node = all.emplace_back(graph, [](const flow::continue_msg&) { benchmark::ClobberMemory(); });
    if (i == 0 || !in_chain)
      flow::make_edge(start, node);
    else
      flow::make_edge(*std::prev(all.end(), 2), node);
  }
  for (auto _ : state) {
    start.try_put(flow::continue_msg());
    graph.wait_for_all();
  }
}
BENCHMARK_CAPTURE(replay_onetbb, chain, true)
    ->Name("graph_replay_null_x1000/onetbb_flow_graph")
    ->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(replay_onetbb, independent, false)
    ->Name("graph_replay_independent_null_x1000/onetbb_flow_graph")
    ->MeasureProcessCPUTime();

/// The same kernel calls, made by a loop on one thread.
void replay_direct(benchmark::State& state) {
  std::vector<float> x(64, 1.0f);
  for (auto _ : state)
    for (std::size_t i = 0; i < nodes; ++i) {
      for (float& value : x) value *= 1.5f;
      benchmark::ClobberMemory();
    }
}
BENCHMARK(replay_direct)->Name("graph_replay_cpu_x1000/direct_calls")->MeasureProcessCPUTime();

/// Compiling is not replaying, but a host waits for it.
void compile(benchmark::State& state) {
  wye::Runtime runtime = open("null");
  std::vector<std::vector<float>> memory;
  const wye::Graph graph = make(runtime, Shape::chain, memory);
  for (auto _ : state)
    if (!graph.compile(runtime)) return state.SkipWithError("failed");
}
BENCHMARK(compile)->Name("graph_compile_null_x1000/wye")->MeasureProcessCPUTime();

}  // namespace
