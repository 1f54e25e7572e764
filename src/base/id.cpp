#include "base/id.hpp"

#include <atomic>

namespace wye::inline v0::base {
namespace {

/// The ids that one step of the shared counter gives to a thread. Threads that each took single ids
/// from it would wait for its cache line.
constexpr std::uint64_t block = 64;

constinit std::atomic<std::uint64_t> blocks{0};

/// The numbers that this thread has not used yet.
struct Numbers {
  std::uint64_t next = 0, end = 0;
};
constinit thread_local Numbers unused;

}  // namespace

Id next_id() noexcept {
  if (unused.next == unused.end) {
    unused.next = blocks.fetch_add(1, std::memory_order_relaxed) * block + 1;
    unused.end = unused.next + block;
  }
  return {unused.next++};
}

std::uint64_t this_thread() noexcept {
  static constinit std::atomic<std::uint64_t> last{0};
  static constinit thread_local std::uint64_t own = 0;
  if (own == 0) own = last.fetch_add(1, std::memory_order_relaxed) + 1;
  return own;
}

}  // namespace wye::base
