#include "onetbb.hpp"

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include <list>
#include <utility>

namespace wye_bench {
namespace {

/// A task of an arena is called as a constant.
struct Task {
  mutable std::promise<void> promise;
  void operator()() const { promise.set_value(); }
};

}  // namespace

struct OneTbb::State {
  tbb::task_arena arena;
};

OneTbb::OneTbb() : state_(std::make_unique<State>()) { state_->arena.initialize(); }
OneTbb::~OneTbb() = default;

void OneTbb::enqueue(std::size_t count, std::vector<std::future<void>>& futures) {
  for (std::size_t i = 0; i < count; ++i) {
    Task task;
    futures.push_back(task.promise.get_future());
    state_->arena.enqueue(std::move(task));
  }
}

void OneTbb::run_group(std::size_t count) {
  tbb::task_group group;
  for (std::size_t i = 0; i < count; ++i) group.run([] {});
  group.wait();
}

void OneTbb::run_chain(std::size_t count) {
  using Node = tbb::flow::continue_node<tbb::flow::continue_msg>;
  tbb::flow::graph graph;
  std::list<Node> nodes;  // a node stays where it is
  for (std::size_t i = 0; i < count; ++i) {
    nodes.emplace_back(graph, [](const tbb::flow::continue_msg&) {});
    if (i != 0) tbb::flow::make_edge(*std::prev(nodes.end(), 2), nodes.back());
  }
  nodes.front().try_put(tbb::flow::continue_msg());
  graph.wait_for_all();
}

}  // namespace wye_bench
