#include "support/cuda/team.hpp"

#include <algorithm>
#include <chrono>

namespace standin {
namespace {

/// The nodes of a graph that run at once, at most.
std::size_t most_at_once() {
  static const auto most =
      static_cast<std::size_t>(std::max(1ll, setting("WYE_STANDIN_NODES", has_tsan() ? 2 : 4)));
  return most;
}

/// Runs a node behind those that it waits for. They are complete: the loads tell ThreadSanitizer
/// so.
void run_node(GraphRun& run, std::size_t i) {
  (void)run.has_begun.load(std::memory_order_acquire);
  GraphRun::Node& node = run.nodes[i];
  for (const std::size_t before : node.after)
    (void)run.nodes[before].is_complete.load(std::memory_order_acquire);
  node.operation();
  node.is_complete.store(true, std::memory_order_release);
}

/// Removes one element at random.
template <class T>
T draw(std::vector<T>& from, std::mt19937& random) {
  std::swap(from[random() % from.size()], from.back());
  T drawn = from.back();
  from.pop_back();
  return drawn;
}

}  // namespace

Team::~Team() {
  {
    const std::lock_guard lock(mutex_);
    for (const auto& member : members_) {
      member->ends = true;
      member->changed.notify_one();
    }
  }
  for (const auto& member : members_) member->thread.join();
}

void Team::work(Member& me) {
  for (;;) {
    GraphRun* run = nullptr;
    std::size_t node = 0;
    {
      const Unseen unseen;
      std::unique_lock lock(mutex_);
      me.changed.wait(lock, [&] { return me.run || me.ends; });
      if (!me.run) return;
      run = me.run, node = me.node;
    }
    run_node(*run, node);
    const Unseen unseen;
    const std::lock_guard lock(mutex_);
    me.run = nullptr;
    complete_.push_back({&me, node});
    changed_.notify_one();
  }
}

void Team::create_members() {
  while (members_.size() < most_at_once()) {
    Member* const member = members_.emplace_back(std::make_unique<Member>()).get();
    idle_.push_back(member);
    member->thread = std::thread([this, member] { work(*member); });
  }
}

void Team::begin(GraphRun& run, std::size_t node) {
  if (world().seed != 0 && run.random() % 4 == 0)
    std::this_thread::sleep_for(std::chrono::microseconds(run.random() % 300));
  const Unseen unseen;
  const std::lock_guard lock(mutex_);
  Member& member = *draw(idle_, run.random);
  member.run = &run;
  member.node = node;
  member.changed.notify_one();
}

std::vector<std::size_t> Team::collect_complete() {
  const Unseen unseen;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !complete_.empty(); });
  std::vector<std::size_t> all;
  for (const auto& [member, node] : complete_) {
    idle_.push_back(member);
    all.push_back(node);
  }
  complete_.clear();
  return all;
}

void Team::run(GraphRun& run) {
  run.has_begun.store(true, std::memory_order_release);
  const std::size_t count = run.nodes.size();
  std::vector<std::size_t> ready, missing(count);
  std::vector<std::vector<std::size_t>> behind(count);
  for (std::size_t i = 0; i < count; ++i) {
    missing[i] = run.nodes[i].after.size();
    for (const std::size_t before : run.nodes[i].after) behind[before].push_back(i);
    if (missing[i] == 0) ready.push_back(i);
  }
  std::size_t running = 0;
  const auto finish = [&](std::size_t node) {
    for (const std::size_t next : behind[node])
      if (--missing[next] == 0) ready.push_back(next);
  };
  while (running != 0 || !ready.empty()) {
    // If one node is ready and none runs, all others are behind it: it runs on this thread.
    if (running == 0 && ready.size() == 1) {
      const std::size_t node = draw(ready, run.random);
      run_node(run, node);
      finish(node);
      continue;
    }
    create_members();
    for (; !ready.empty() && running < most_at_once(); ++running) begin(run, draw(ready, run.random));
    for (const std::size_t node : collect_complete()) {
      --running;
      finish(node);
    }
  }
  for (const GraphRun::Node& node : run.nodes) (void)node.is_complete.load(std::memory_order_acquire);
}

}  // namespace standin
