#include "base/block_pool.hpp"

#include <mutex>
#include <new>

namespace wye::inline v0::base {

BlockPool::~BlockPool() {
  while (Free* const block = free_) {
    free_ = block->next;
    ::operator delete(block);
  }
}

void* BlockPool::take(std::size_t bytes) {
  if (origin_.is_inherited()) return ::operator new(bytes);  // a thread of the parent may hold the lock
  {
    const std::lock_guard lock(lock_);
    if (Free* const block = free_) {
      free_ = block->next;
      --kept_;
      ++users_;
      return block;
    }
  }
  void* const block = ::operator new(bytes);
  const std::lock_guard lock(lock_);
  ++users_;
  return block;
}

void BlockPool::give_back(void* block) noexcept {
  if (origin_.is_inherited()) return detail::keep(block);
  bool is_last = false;
  {
    const std::lock_guard lock(lock_);
    if (kept_ < most_kept_) {
      free_ = new (block) Free{free_};
      ++kept_;
      block = nullptr;
    }
    is_last = --users_ == 0;
  }
  ::operator delete(block);
  if (is_last) delete this;
}

void BlockPool::leave() noexcept {
  bool is_last = false;
  {
    const std::lock_guard lock(lock_);
    is_last = --users_ == 0;
  }
  if (is_last) delete this;
}

}  // namespace wye::base
