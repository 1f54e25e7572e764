#include "base/process.hpp"

#include <sys/mman.h>
#include <unistd.h>

namespace wye::inline v0::base {
namespace detail {

// Alone on its page, because the kernel clears the whole page.
constinit ForkPage fork_page;
static_assert(sizeof(ForkPage) == 4096);

namespace {

constinit std::atomic<bool> page_is_set{false};    // the kernel knows of the page
constinit std::atomic<Generation> last{0};         // never smaller than the generation of a page
constinit std::atomic<std::uint64_t> numbered{0};  // without the page: a process and its generation

struct Kept {
  void* memory;
  Kept* next;
};
constinit std::atomic<Kept*> kept{nullptr};

}  // namespace

/// Gives this process its number. Runs once per process, or each time if the kernel cannot clear
/// the page.
Generation renew_generation() noexcept {
  if (!page_is_set.load(std::memory_order_acquire)) {
    if (::madvise(&fork_page, sizeof(fork_page), MADV_WIPEONFORK) != 0) {
      const auto process = static_cast<std::uint64_t>(::getpid()) << 32;
      std::uint64_t seen = numbered.load();
      while (seen >> 32 != process >> 32) {
        const std::uint64_t next = process | (static_cast<Generation>(seen) + 1);
        if (numbered.compare_exchange_weak(seen, next)) return static_cast<Generation>(next);
      }
      return static_cast<Generation>(seen);
    }
    page_is_set.store(true, std::memory_order_release);
  }
  const Generation next = last.fetch_add(1) + 1;
  Generation none = 0;
  if (!fork_page.generation.compare_exchange_strong(none, next)) return none;  // another thread was faster
  return next;
}

void keep(void* memory) noexcept {
  auto* const node = new (std::nothrow) Kept{memory, kept.load()};
  if (!node) return;  // then a leak checker reports the memory
  while (!kept.compare_exchange_weak(node->next, node)) {
  }
}

}  // namespace detail

const Error& Origin::inherited_error() noexcept {
  // Never destroyed: a host's static objects may ask for it while the process ends.
  alignas(Error) static std::byte storage[sizeof(Error)];
  static const Error* const error = new (storage)
      Error(Errc::closed,
            "The process that made this object has forked, and this is the child: a runtime does not outlast "
            "fork. Open a runtime in the child.");
  return *error;
}

}  // namespace wye::base
