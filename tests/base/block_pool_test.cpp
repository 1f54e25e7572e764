#include "base/block_pool.hpp"

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "support/catch.hpp"

namespace {

using wye::base::BlockAllocator;
using wye::base::BlockPool;

using Owned = std::unique_ptr<BlockPool, BlockPool::Leave>;

struct Object {
  explicit Object(int& counter) : alive(counter) { ++alive; }
  ~Object() { --alive; }
  int& alive;
  std::byte bytes[500]{};
};

}  // namespace

TEST_CASE("a block pool hands out blocks that were given back, up to its limit", "[base]") {
  const Owned pool(new BlockPool(2));
  std::set<void*> first;
  for (int i = 0; i < 4; ++i) {
    void* const block = pool->take(300);
    std::memset(block, 0xa5, 300);
    CHECK(first.insert(block).second);  // no block twice at a time
  }
  for (void* const block : first) pool->give_back(block);
  void* const a = pool->take(300);
  void* const b = pool->take(300);
  CHECK(a != b);
  CHECK((first.contains(a) && first.contains(b)));  // the two that it kept
  pool->give_back(a);
  pool->give_back(b);
}

TEST_CASE("shared objects outlive the owner of their block pool", "[base]") {
  int alive = 0;
  Owned pool(new BlockPool(8));
  auto object = std::allocate_shared<Object>(BlockAllocator<Object>(*pool), alive);
  const void* const place = object.get();
  object.reset();
  CHECK(alive == 0);
  object = std::allocate_shared<Object>(BlockAllocator<Object>(*pool), alive);
  CHECK(object.get() == place);
  const std::weak_ptr<Object> weak = object;  // keeps the block, not the object
  pool.reset();
  CHECK(alive == 1);
  object.reset();
  CHECK(alive == 0);
  CHECK(weak.expired());
}

TEST_CASE("threads take and give back blocks of one pool", "[base]") {
  const Owned pool(new BlockPool(4));
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::vector<std::size_t*> mine;
      for (std::size_t i = 0; i < 20'000; ++i) {
        mine.push_back(static_cast<std::size_t*>(pool->take(64)));
        *mine.back() = t;
        if (mine.size() < 1 + i % 7) continue;
        for (std::size_t* const block : mine) {
          if (*block != t) std::abort();  // another thread has the block too
          pool->give_back(block);
        }
        mine.clear();
      }
      for (std::size_t* const block : mine) pool->give_back(block);
    });
  for (std::thread& thread : threads) thread.join();
  std::set<void*> taken;
  for (int i = 0; i < 6; ++i) CHECK(taken.insert(pool->take(64)).second);
  for (void* const block : taken) pool->give_back(block);
}
