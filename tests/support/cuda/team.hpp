#pragma once
// The threads that run nodes of a stream's graphs at the same time.
#include <random>

#include "support/cuda/world.hpp"

namespace standin {

/// One launch of a graph.
struct GraphRun {
  struct Node {
    std::vector<std::size_t> after;  // the nodes that it waits for
    std::function<void()> operation;
    std::atomic<bool> is_complete{false};
  };
  explicit GraphRun(std::size_t count, std::uint32_t seed) : nodes(count), random(seed) {}
  std::vector<Node> nodes;
  std::mt19937 random;
  std::atomic<bool> has_begun{false};
};

/// Threads, created when the nodes of a graph first fork. To ThreadSanitizer nothing orders two
/// nodes but the edges between them: the team's own lock is hidden from it. Nodes that are ready at
/// the same time run on different threads.
class Team {
 public:
  Team() = default;
  Team(const Team&) = delete;
  /// Ends the threads.
  ~Team();
  /// Runs each node when those that it waits for are complete, and returns when all are. If more
  /// nodes are ready than threads are idle, their order is random. The thread of the stream calls
  /// it.
  void run(GraphRun& run);

 private:
  struct Member {
    GraphRun* run = nullptr;  // null: it is idle
    std::size_t node = 0;
    bool ends = false;
    std::condition_variable changed;
    std::thread thread;
  };
  void work(Member& me);
  void create_members();
  /// Gives a node to an idle member, chosen at random.
  void begin(GraphRun& run, std::size_t node);
  /// Waits until a node is complete. Returns all that have become so.
  std::vector<std::size_t> collect_complete();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<Member*> idle_;
  std::vector<std::pair<Member*, std::size_t>> complete_;
};

}  // namespace standin
