// Runs the threads of a block one at a time as fibers, warp by warp: a waiting thread keeps its
// stack. A wait that nothing can end is detected when no thread can run.
#include "engine.hpp"

#include <link.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <utility>
#include <vector>

// Defined in a process with a sanitizer.
extern "C" {
[[gnu::weak]] void __sanitizer_start_switch_fiber(void** fake_stack, const void* bottom, std::size_t size);
[[gnu::weak]] void __sanitizer_finish_switch_fiber(void* fake_stack, const void** bottom, std::size_t* size);
[[gnu::weak]] void __asan_poison_memory_region(const volatile void* address, std::size_t size);
[[gnu::weak]] void __asan_unpoison_memory_region(const volatile void* address, std::size_t size);
[[gnu::weak]] void* __tsan_get_current_fiber();
[[gnu::weak]] void* __tsan_create_fiber(unsigned flags);
[[gnu::weak]] void __tsan_destroy_fiber(void* fiber);
[[gnu::weak]] void __tsan_switch_to_fiber(void* fiber, unsigned flags);
[[gnu::weak]] void __tsan_acquire(void* address);
[[gnu::weak]] void __tsan_release(void* address);

void wye_switch(void** from, void* to);
}

#if defined(__x86_64__)
// Switches from the stack whose top is stored in *from to the one at `to`.
asm(R"(
  .text
  .hidden wye_switch
  .globl wye_switch
  .type wye_switch, @function
wye_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size wye_switch, .-wye_switch
)");
#else
#error "The engine needs wye_switch for this processor."
#endif

namespace twin {
constinit thread_local Self self;

namespace {

bool has_tsan() { return __tsan_create_fiber != nullptr; }
void acquire(void* token) {
  if (has_tsan()) __tsan_acquire(token);
}
void release(void* token) {
  if (has_tsan()) __tsan_release(token);
}

/// Returns the numbers below `count` in some order: an arithmetic progression, which costs nothing
/// for large counts.
struct Order {
  std::uint64_t count = 1, first = 0, step = 1;
  std::uint64_t at(std::uint64_t i) const { return (first + i * step) % count; }
};
Order order_of(std::uint64_t count, long how, std::uint64_t salt) {
  if (count < 2 || how == 0) return {count, 0, 1};
  if (how < 0) return {count, count - 1, count - 1};
  std::mt19937_64 random(static_cast<std::uint64_t>(how) * 1000003u + salt);
  Order order{count, random() % count, 0};
  do order.step = 1 + random() % (count - 1);
  while (std::gcd(order.step, count) != 1);
  return order;
}

/// A stack and the thread of a kernel that runs on it.
struct Fiber {
  static constexpr std::size_t guard = 4096, size = 256u << 10;
  std::byte* stack = nullptr;
  void* end = nullptr;         // of the stack, while it does not run
  void* fake_stack = nullptr;  // ASan's
  void* tsan = nullptr;
  bool quits = false;

  explicit Fiber(void (*main)()) {
    void* memory = mmap(nullptr, guard + size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    mprotect(memory, guard, PROT_NONE);
    stack = static_cast<std::byte*>(memory) + guard;
    void** top = reinterpret_cast<void**>(stack + size);
    *--top = nullptr;  // the return address for `main`
    *--top = reinterpret_cast<void*>(main);
    for (int i = 0; i < 6; ++i) *--top = nullptr;
    end = top;
    if (has_tsan()) tsan = __tsan_create_fiber(0);
  }
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber() {
    if (tsan) __tsan_destroy_fiber(tsan);
    if (__asan_unpoison_memory_region) __asan_unpoison_memory_region(stack, size);
    munmap(stack - guard, guard + size);
  }
};

enum class State : unsigned char { runs, at_barrier, at_cluster, at_grid, at_warp, ended };
bool waits_for_block(State state) {
  return state == State::at_barrier || state == State::at_cluster || state == State::at_grid;
}

struct Thread {
  State state = State::runs;
  int line = 0;
  uint3 at{};
  std::unique_ptr<Fiber> fiber;
  // The warp operation in which the thread waits.
  Combine combine = nullptr;
  unsigned mask = 0, argument = 0;
  std::uint64_t value = 0;
};

std::string hex(unsigned mask) {
  char text[11];
  std::snprintf(text, sizeof(text), "0x%08x", mask);
  return text;
}

/// A block that has begun and not ended. It can be suspended while it waits for others, and
/// resumed.
struct Block {
  uint3 at{};
  std::uint64_t number = 0, phase = 0;
  std::vector<Thread> threads;
  unsigned ended = 0;
  State waits = State::runs;      // for its cluster or grid; `ended` when it has
  std::vector<std::byte> shared;  // its shared memory while it is suspended
};

/// Returns the engine of a host thread.
class Engine {
 public:
  ~Engine() {
    // Threads that have ended leave their stacks in order, because ASan requires it.
    for (std::unique_ptr<Fiber>& fiber : idle_)
      if (fiber) {
        fiber->quits = true;
        enter(*fiber);
      }
  }

  /// Runs a block from its beginning, or from the point where it waited for other blocks, until its
  /// end or its next wait.
  std::string run_block(const Launch& launch, Block& block) {
    launch_ = &launch;
    self = {{}, block.at, launch.block, launch.grid, launch.cluster};
    count_ = launch.block.x * launch.block.y * launch.block.z;
    ended_ = block.ended;
    failure_.clear();
    waits_ = State::runs;
    if (block.waits != State::runs) threads_.swap(block.threads);
    threads_.resize(count_);
    uint3 at{};
    for (Thread& thread : threads_) {
      thread.state = State::runs;
      thread.at = at;
      if (++at.x == launch.block.x) at = {0, at.y + 1, at.z};
      if (at.y == launch.block.y) at = {0, 0, at.z + 1};
    }
    at_warp_.assign((count_ + warp_size - 1) / warp_size, 0);
    release(&begin_);
    release(&others_);
    while (ended_ != count_ && waits_ == State::runs) {
      const std::uint64_t phase = block.phase++;
      const Order warps = order_of(at_warp_.size(), launch.order, block.number * 31 + phase),
                  order = order_of(warp_size, launch.order, block.number * 37 + phase);
      unsigned lanes[warp_size];
      for (unsigned i = 0; i < warp_size; ++i) lanes[i] = static_cast<unsigned>(order.at(i));
      for (std::uint64_t w = 0; w < warps.count; ++w) run_warp(static_cast<unsigned>(warps.at(w)), lanes);
      if (failure_.empty() && ended_ != count_) look_at_waiting();
      if (!failure_.empty()) {
        threads_.clear();  // with the stacks on which they wait
        break;
      }
    }
    acquire(&end_);
    block.ended = ended_;
    block.waits = ended_ == count_ ? State::ended : waits_;
    if (block.waits != State::ended) threads_.swap(block.threads);
    return failure_;
  }

  void sync_threads(int line) { wait(State::at_barrier, line, &barrier_); }
  void sync_cluster(int line) {
    const dim3& cluster = launch_->cluster;
    if (cluster.x * cluster.y * cluster.z == 1) return sync_threads(line);
    wait(State::at_cluster, line, &others_);
  }
  void sync_grid(int line) {
    if (!launch_->cooperative) {
      fail("Threads" + of_block() + " wait for the whole grid at line " + std::to_string(line) +
           ", which was not launched as a cooperative one.");
      wait(State::at_warp, line, nullptr);
    }
    wait(State::at_grid, line, &others_);
  }

  std::uint64_t sync_warp(Combine combine, unsigned mask, std::uint64_t value, unsigned argument, int line) {
    const unsigned me = running_, lane = me % warp_size, base = me - lane;
    Thread& thread = threads_[me];
    thread.combine = combine;
    thread.mask = mask;
    thread.value = value;
    thread.argument = argument;
    if ((mask >> lane & 1u) == 0) {
      fail("Lane " + std::to_string(lane) + " of warp " + std::to_string(me / warp_size) + of_block() +
           " gives a mask (" + hex(mask) + ") at line " + std::to_string(line) + " that it is not in.");
      wait(State::at_warp, line, nullptr);
    }
    if (!completes(base, lane, mask, combine)) {
      wait(State::at_warp, line, combine ? nullptr : &warp_);
      return thread.value;
    }
    if (!combine) release(&warp_);
    std::uint64_t values[warp_size] = {}, results[warp_size] = {};
    for (unsigned i = 0; i < warp_size; ++i)
      if (mask >> i & 1u) values[i] = threads_[base + i].value;
    for (unsigned i = 0; i < warp_size; ++i)
      if (mask >> i & 1u) results[i] = combine ? combine(values, mask, i, threads_[base + i].argument) : 0;
    for (unsigned i = 0; i < warp_size; ++i)
      if ((mask >> i & 1u) && i != lane) {
        threads_[base + i].value = results[i];
        threads_[base + i].state = State::runs;
        make_ready(base + i);
      }
    if (!combine) acquire(&warp_);
    return results[lane];
  }

 private:
  /// The stack on which new fibers begin.
  static void main();

  void run_warp(unsigned warp, std::span<const unsigned, warp_size> lanes) {
    ready_from_ = ready_to_ = 0;
    for (const unsigned lane : lanes)
      if (const unsigned thread = warp * warp_size + lane; thread < count_) make_ready(thread);
    while (ready_from_ != ready_to_ && failure_.empty()) run_thread(ready_[ready_from_++ % warp_size]);
  }
  void make_ready(unsigned thread) {
    at_warp_[thread / warp_size] &= ~(1u << thread % warp_size);
    ready_[ready_to_++ % warp_size] = thread;
  }

  void run_thread(unsigned index) {
    Thread& thread = threads_[index];
    running_ = index;
    self_.thread = thread.at;
    if (!thread.fiber) thread.fiber = take_fiber(index);
    enter(*thread.fiber);
    if (thread.state == State::ended) idle_[has_tsan() ? index : ready_fiber_++] = std::move(thread.fiber);
  }

  /// Returns an unused stack. Under TSan a thread number always gets the same one, because TSan
  /// identifies threads by it.
  std::unique_ptr<Fiber> take_fiber(unsigned index) {
    if (has_tsan()) {
      if (idle_.size() <= index) idle_.resize(index + 1);
      if (idle_[index]) return std::move(idle_[index]);
    } else {
      if (ready_fiber_ != 0) return std::move(idle_[--ready_fiber_]);
      idle_.emplace_back();  // reserved for when its thread has ended
    }
    return std::make_unique<Fiber>(&main);
  }

  // The order of these lines is the one that the sanitizers' manuals require.
  void enter(Fiber& fiber) {
    fiber_ = &fiber;
    if (__sanitizer_start_switch_fiber)
      __sanitizer_start_switch_fiber(&fake_stack_, fiber.stack, Fiber::size);
    if (has_tsan()) {
      tsan_ = __tsan_get_current_fiber();
      __tsan_switch_to_fiber(fiber.tsan, 1);
    }
    wye_switch(&end_of_stack_, fiber.end);
    if (__sanitizer_finish_switch_fiber) __sanitizer_finish_switch_fiber(fake_stack_, nullptr, nullptr);
  }
  void leave() {
    Fiber& fiber = *fiber_;
    if (__sanitizer_start_switch_fiber)
      __sanitizer_start_switch_fiber(fiber.quits ? nullptr : &fiber.fake_stack, bottom_, size_);
    if (has_tsan()) __tsan_switch_to_fiber(tsan_, 1);
    wye_switch(&fiber.end, end_of_stack_);
    if (__sanitizer_finish_switch_fiber) __sanitizer_finish_switch_fiber(fiber.fake_stack, &bottom_, &size_);
  }

  /// Orders what a thread did before it waits with what all threads that meet it at `token` do
  /// afterwards, if there is one.
  void wait(State state, int line, char* token) {
    Thread& thread = threads_[running_];
    thread.state = state;
    thread.line = line;
    if (state == State::at_warp) at_warp_[running_ / warp_size] |= 1u << running_ % warp_size;
    if (token) release(token);
    release(&end_);  // it may never resume
    leave();
    if (token) acquire(token);
  }

  bool completes(unsigned base, unsigned lane, unsigned mask, Combine combine) const {
    if (mask & ~(at_warp_[base / warp_size] | 1u << lane)) return false;
    for (unsigned i = 0; i < warp_size; ++i) {
      if ((mask >> i & 1u) == 0 || i == lane) continue;
      const Thread& other = threads_[base + i];
      if (other.mask != mask || other.combine != combine) return false;
    }
    return true;
  }

  /// No thread can run: all wait at one barrier, or there is a mistake.
  void look_at_waiting() {
    const auto at = [&](unsigned i) {
      return "thread " + std::to_string(i) + " at line " + std::to_string(threads_[i].line);
    };
    unsigned first = count_, ended = count_;
    for (unsigned i = 0; i < count_; ++i) {
      const Thread& thread = threads_[i];
      if (thread.state == State::at_warp) return absent_lanes(i);
      if (thread.state == State::ended) ended = std::min(ended, i);
      if (!waits_for_block(thread.state)) continue;
      if (first == count_) first = i;
      const Thread& other = threads_[first];
      if ((thread.line != other.line || thread.state != other.state) && failure_.empty())
        fail("Threads" + of_block() + " wait at different barriers: " + at(first) + ", " + at(i) + ".");
    }
    if (!failure_.empty()) return;
    if (ended != count_)
      return fail("Threads" + of_block() + " wait at a barrier (" + at(first) + ") that thread " +
                  std::to_string(ended) + " never comes to.");
    if (threads_[0].state != State::at_barrier) {
      waits_ = threads_[0].state;
      return;
    }
    for (Thread& thread : threads_) thread.state = State::runs;
  }
  void absent_lanes(unsigned waiting) {
    const Thread& thread = threads_[waiting];
    const unsigned base = waiting / warp_size * warp_size;
    unsigned absent = 0;
    for (unsigned i = 0; i < warp_size; ++i) {
      const bool comes = base + i < count_ && threads_[base + i].state == State::at_warp &&
                         threads_[base + i].mask == thread.mask &&
                         threads_[base + i].combine == thread.combine;
      if ((thread.mask >> i & 1u) && !comes) absent |= 1u << i;
    }
    fail("Lane " + std::to_string(waiting - base) + " of warp " + std::to_string(base / warp_size) +
         of_block() + " waits at line " + std::to_string(thread.line) +
         " for lanes that never come: its mask is " + hex(thread.mask) + ", absent are " + hex(absent) + ".");
  }

  std::string of_block() const {
    return " of block (" + std::to_string(self.block.x) + "," + std::to_string(self.block.y) + "," +
           std::to_string(self.block.z) + ")";
  }
  void fail(std::string sentence) { failure_ = std::move(sentence); }

  Self& self_ = self;
  const Launch* launch_ = nullptr;
  unsigned count_ = 0, ended_ = 0, running_ = 0;
  std::vector<Thread> threads_;
  std::vector<unsigned> at_warp_;  // the lanes of each warp that wait at an operation of it
  /// The threads of the warp that can run, in turn: each is there once at most. In no memory that
  /// grows, for it is a thread of the kernel that fills it, as a sanitizer sees it.
  unsigned ready_[warp_size] = {};
  std::uint64_t ready_from_ = 0, ready_to_ = 0;
  std::vector<std::unique_ptr<Fiber>> idle_;  // the first ready_fiber_ of them; under TSan by thread
  std::size_t ready_fiber_ = 0;
  std::string failure_;
  State waits_ = State::runs;  // what the running block waits for, of other blocks

  Fiber* fiber_ = nullptr;
  void* end_of_stack_ = nullptr;
  void *fake_stack_ = nullptr, *tsan_ = nullptr;
  const void* bottom_ = nullptr;
  std::size_t size_ = 0;
  char begin_ = 0, barrier_ = 0, warp_ = 0, end_ = 0, others_ = 0;  // for TSan: what each point hands over
};

Engine& engine() {
  // Found without a call, at each operation of a warp: it takes 8 bytes of the memory that this
  // needs, not the whole engine.
  [[gnu::tls_model("initial-exec")]] static constinit thread_local Engine* mine = nullptr;
  if (!mine) {
    static thread_local Engine the_engine;
    mine = &the_engine;
  }
  return *mine;
}

void Engine::main() {
  Engine& mine = engine();
  if (__sanitizer_finish_switch_fiber) __sanitizer_finish_switch_fiber(nullptr, &mine.bottom_, &mine.size_);
  for (;;) {
    acquire(&mine.begin_);
    mine.launch_->kernel->call(mine.launch_->parameters);
    mine.threads_[mine.running_].state = State::ended;
    ++mine.ended_;
    release(&mine.end_);
    mine.leave();
    if (mine.fiber_->quits) mine.leave();
  }
}

/// Returns the shared memory of a library of kernels on this thread.
struct Shared {
  std::byte* begin = nullptr;
  std::size_t size = 0;
};
Shared shared_of(const Kernel& kernel) {
  struct Search {
    ElfW(Addr) code;
    Shared found;
  } search{reinterpret_cast<ElfW(Addr)>(kernel.call), {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        Search& wanted = *static_cast<Search*>(data);
        std::size_t size = 0;
        bool is_it = false;
        for (ElfW(Half) i = 0; i < info->dlpi_phnum; ++i) {
          const auto& header = info->dlpi_phdr[i];
          if (header.p_type == PT_TLS) size = header.p_memsz;
          if (header.p_type == PT_LOAD && wanted.code - info->dlpi_addr - header.p_vaddr < header.p_memsz)
            is_it = true;
        }
        if (is_it) wanted.found = {static_cast<std::byte*>(info->dlpi_tls_data), size};
        return is_it ? 1 : 0;
      },
      &search);
  return search.found;
}

void poison(std::byte* address, std::size_t size, bool on) {
  if (const auto change = on ? __asan_poison_memory_region : __asan_unpoison_memory_region)
    change(address, size);
}

char fences;

}  // namespace

/// Returns the parts of a kernel's shared memory on this thread; the space between them is unused.
class SharedMemory {
 public:
  explicit SharedMemory(const Launch& launch)
      : dynamic_(launch.kernel->dynamic_shared()),  // this also creates the shared memory of this thread
        unused_(dynamic_ + launch.shared),
        unused_size_(most_shared - launch.shared),
        all_(shared_of(*launch.kernel)) {
    poison(unused_, unused_size_, true);
  }
  SharedMemory(const SharedMemory&) = delete;
  ~SharedMemory() { poison(unused_, unused_size_, false); }
  /// A block starts with NaN in its shared memory.
  void clear() const {
    std::memset(all_.begin, 0xff, before());
    std::memset(unused_ + unused_size_, 0xff, after());
  }
  void save(std::vector<std::byte>& to) const {
    to.resize(before() + after());
    std::memcpy(to.data(), all_.begin, before());
    std::memcpy(to.data() + before(), unused_ + unused_size_, after());
  }
  void restore(const std::vector<std::byte>& from) const {
    std::memcpy(all_.begin, from.data(), before());
    std::memcpy(unused_ + unused_size_, from.data() + before(), after());
  }

 private:
  std::size_t before() const { return static_cast<std::size_t>(unused_ - all_.begin); }
  std::size_t after() const {
    return static_cast<std::size_t>(all_.begin + all_.size - (unused_ + unused_size_));
  }
  std::byte *dynamic_, *unused_;
  std::size_t unused_size_;
  Shared all_;
};

/// Runs blocks that wait for each other: one after the other, each until it waits, until all have
/// ended.
std::string run_together(const Launch& launch, const SharedMemory& shared, std::vector<Block>& blocks) {
  const auto cluster_of = [&](const Block& block) {
    const dim3 &grid = launch.grid, &cluster = launch.cluster;
    return (std::uint64_t{block.at.z / cluster.z} * grid.y + block.at.y / cluster.y) * grid.x +
           block.at.x / cluster.x;
  };
  for (std::size_t left = blocks.size(); left != 0;) {
    bool moved = false;
    for (Block& block : blocks) {
      if (block.waits == State::ended) continue;
      // It resumes when all blocks that it waits for wait too.
      bool ready = true;
      for (const Block& other : blocks)
        if (block.waits != State::runs && other.waits != block.waits && other.number != block.number &&
            (block.waits == State::at_grid || cluster_of(other) == cluster_of(block)))
          ready = false;
      if (!ready) continue;
      // All of them, before any reaches the next barrier.
      const State was = block.waits;
      const std::uint64_t cluster = cluster_of(block);
      for (Block& other : blocks) {
        if (was == State::runs
                ? &other != &block
                : other.waits != was || (was == State::at_cluster && cluster_of(other) != cluster))
          continue;
        if (was == State::runs)
          shared.clear();
        else
          shared.restore(other.shared);
        if (std::string failure = engine().run_block(launch, other); !failure.empty()) return failure;
        if (other.waits == State::ended)
          --left;
        else
          shared.save(other.shared);
      }
      moved = true;
      break;
    }
    if (!moved) return "Blocks wait for others at a barrier that not all of them come to.";
  }
  return {};
}

void sync_threads(int line) { engine().sync_threads(line); }
void sync_cluster(int line) { engine().sync_cluster(line); }
void sync_grid(int line) { engine().sync_grid(line); }
std::uint64_t sync_warp(Combine combine, unsigned mask, std::uint64_t value, unsigned argument, int line) {
  return engine().sync_warp(combine, mask, value, argument, line);
}
void fence() {
  release(&fences);
  acquire(&fences);
}

std::string run(const Launch& launch, std::uint64_t first, std::uint64_t step) {
  const dim3 &grid = launch.grid, &cluster = launch.cluster;
  const Order blocks = order_of(std::uint64_t{grid.x} * grid.y * grid.z, launch.order, 1);
  const SharedMemory shared(launch);
  const auto block_at = [&](std::uint64_t i) {
    const std::uint64_t at = blocks.at(i);
    Block block;
    block.at = {static_cast<unsigned>(at % grid.x), static_cast<unsigned>(at / grid.x % grid.y),
                static_cast<unsigned>(at / grid.x / grid.y)};
    block.number = at;
    return block;
  };
  std::string failure;
  if (launch.cooperative || cluster.x * cluster.y * cluster.z > 1) {
    if (first != 0) return failure;
    std::vector<Block> all;
    for (std::uint64_t i = 0; i < blocks.count; ++i) all.push_back(block_at(i));
    return run_together(launch, shared, all);
  }
  for (std::uint64_t i = first; i < blocks.count && failure.empty(); i += step) {
    shared.clear();
    Block block = block_at(i);
    failure = engine().run_block(launch, block);
  }
  return failure;
}

}  // namespace twin
