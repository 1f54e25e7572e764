#pragma once
/// Replaces operator new: it counts its calls, and fails if a test asks for that. Include it in one
/// file of a test program: it applies to the whole program.
#include <atomic>
#include <cstdlib>
#include <new>

namespace wye::test {

/// Allocations of this thread.
inline thread_local long allocations = 0;
/// Allocations of all threads.
inline std::atomic<long> all_allocations{0};

/// Which allocations fail after `fail_allocations`.
enum class Failing {
  one,            ///< of any thread
  all,            ///< of all threads
  all_of_thread,  ///< of the thread that called
};

namespace detail {
inline std::atomic<long> allocations_left{-1};  ///< that succeed before one fails; negative: none fails
inline std::atomic<Failing> failing{Failing::one};
inline std::atomic<int> failed{0};
inline thread_local bool is_chosen = false;

inline bool fails_now() noexcept {
  ++allocations;
  all_allocations.fetch_add(1, std::memory_order_relaxed);
  if (allocations_left.load(std::memory_order_relaxed) < 0) return false;
  if (failing == Failing::all_of_thread && !is_chosen) return false;
  const long left = allocations_left.fetch_sub(1);
  if (left > 0) return false;
  if (failing != Failing::one) allocations_left = 0;
  if (left < 0 && failing == Failing::one) return false;
  ++failed;
  return true;
}

/// Not inlined: otherwise GCC warns of `free` on the result of an operator new
/// (-Wmismatched-new-delete).
[[gnu::noinline]] inline void release(void* memory) noexcept { std::free(memory); }
}  // namespace detail

/// Lets `count` more allocations succeed.
inline void fail_allocations(long count, Failing failing) {
  detail::failed = 0;
  detail::failing = failing;
  detail::is_chosen = true;
  detail::allocations_left = count;
}
inline void fail_no_allocations() {
  detail::allocations_left = -1;
  detail::is_chosen = false;
}
/// Allocations that failed since `fail_allocations`.
inline int failed_allocations() { return detail::failed; }

}  // namespace wye::test

void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return wye::test::detail::fails_now() ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
}
void* operator new(std::size_t bytes) {
  void* const memory = operator new(bytes, std::nothrow);
  if (!memory) throw std::bad_alloc();
  return memory;
}
void* operator new[](std::size_t bytes) { return operator new(bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t& no) noexcept { return operator new(bytes, no); }
void operator delete(void* memory) noexcept { wye::test::detail::release(memory); }
void operator delete(void* memory, std::size_t) noexcept { wye::test::detail::release(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { wye::test::detail::release(memory); }
void operator delete[](void* memory) noexcept { wye::test::detail::release(memory); }
void operator delete[](void* memory, std::size_t) noexcept { wye::test::detail::release(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { wye::test::detail::release(memory); }
