#pragma once
// Empty tasks in oneTBB: each with a result that its caller waits for, and without one.
#include <cstddef>
#include <future>
#include <memory>
#include <vector>

namespace wye_bench {

/// Of Taskflow, the other peer, Debian has no package. StarPU is left out: its workers poll, which
/// takes a processor from everything that is measured in turns with it.
class OneTbb {
 public:
  OneTbb();
  ~OneTbb();
  /// Enqueues `count` tasks, each with a std::future, and appends those.
  void enqueue(std::size_t count, std::vector<std::future<void>>& futures);
  /// Runs `count` tasks of one task_group, which has one result for all. The calling thread helps.
  void run_group(std::size_t count);
  /// Makes a flow graph of `count` nodes, each after the one before, and runs it once.
  void run_chain(std::size_t count);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace wye_bench
