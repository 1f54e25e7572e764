#pragma once
/// Memory blocks of one size that are used again.
#include <cstddef>
#include <memory>
#include <new>
#include <utility>

#include "base/gate.hpp"
#include "base/process.hpp"

namespace wye::inline v0::base {

/// Keeps blocks that were given back, up to a limit, for the next `take`. All blocks have one size.
/// The pool exists until `leave` has been called and all blocks are back. In a child of `fork` it
/// keeps every block that is given back.
/// Threads: thread-safe.
class BlockPool {
 public:
  explicit BlockPool(std::size_t most_kept) noexcept : most_kept_(most_kept) {}
  BlockPool(const BlockPool&) = delete;

  /// Throws: std::bad_alloc.
  void* take(std::size_t bytes);
  void give_back(void* block) noexcept;
  /// Called once by the owner, which does not use the pool any more.
  void leave() noexcept;
  const Origin& origin() const noexcept { return origin_; }

  struct Leave {
    void operator()(BlockPool* pool) const noexcept { pool->leave(); }
  };

 private:
  struct Free {
    Free* next;
  };
  ~BlockPool();

  const Origin origin_;
  const std::size_t most_kept_;
  SpinLock lock_;
  Free* free_ = nullptr;
  std::size_t kept_ = 0;
  std::size_t users_ = 1;  // the owner, and each block in use
};

/// Allocates single objects from a pool. Like those of `OwnAllocator`, they are destroyed only by
/// the process that made them.
template <class T>
class BlockAllocator {
 public:
  using value_type = T;
  explicit BlockAllocator(BlockPool& pool) noexcept : pool_(&pool) {}
  template <class U>
  BlockAllocator(const BlockAllocator<U>& other) noexcept  // NOLINT: implicit
      : pool_(other.pool_) {}

  T* allocate(std::size_t) { return static_cast<T*>(pool_->take(sizeof(T))); }
  void deallocate(T* memory, std::size_t) noexcept { pool_->give_back(memory); }
  template <class U>
  void destroy(U* object) noexcept {
    if (!pool_->origin().is_inherited()) object->~U();
  }
  template <class U>
  friend bool operator==(const BlockAllocator& a, const BlockAllocator<U>& b) noexcept {
    return a.pool_ == b.pool_;
  }

 private:
  template <class U>
  friend class BlockAllocator;
  BlockPool* pool_;
};

/// Destroys an object and returns its memory to the pool that its function `block_pool` returns.
struct ReturnBlock {
  template <class T>
  void operator()(T* object) const noexcept {
    BlockPool& pool = object->block_pool();
    std::destroy_at(object);
    pool.give_back(object);
  }
};
/// Owns an object in memory of a pool, which the object knows.
template <class T>
using BlockPointer = std::unique_ptr<T, ReturnBlock>;

/// Throws: std::bad_alloc, and the exceptions of the constructor.
template <class T, class... A>
BlockPointer<T> make_in(BlockPool& pool, A&&... arguments) {
  const auto give_back = [&pool](void* memory) { pool.give_back(memory); };
  std::unique_ptr<void, decltype(give_back)> memory(pool.take(sizeof(T)), give_back);
  T* const object = std::construct_at(static_cast<T*>(memory.get()), std::forward<A>(arguments)...);
  (void)memory.release();
  return BlockPointer<T>(object);
}

}  // namespace wye::base
