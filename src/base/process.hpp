#pragma once
/// The identity of the process. A child of `fork` has copies of its parent's objects and none of
/// its threads.
#include <wye/base/error.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace wye::inline v0::base {

/// Numbers the processes of one line of descent: a child has a larger number than its parent.
using Generation = std::uint32_t;

namespace detail {

/// One page of memory that the kernel fills with zeros in every child of `fork`.
struct alignas(4096) ForkPage {
  std::atomic<Generation> generation{0};
};
extern ForkPage fork_page;
Generation renew_generation() noexcept;

/// Keeps memory reachable until the process ends: a child of `fork` frees nothing that its parent
/// made.
void keep(void* memory) noexcept;

}  // namespace detail

/// Returns the generation of the calling process.
/// Threads: thread-safe.
/// Cost:    one load; one system call if the kernel cannot clear a page in children (Linux older
///          than 4.14).
inline Generation generation() noexcept {
  const Generation known = detail::fork_page.generation.load(std::memory_order_relaxed);
  return known != 0 ? known : detail::renew_generation();
}

/// Records the process that made the object of which it is a member.
class Origin {
 public:
  /// Returns whether another process made the object, so that the calling process is a child of
  /// that process.
  bool is_inherited() const noexcept { return made_in_ != generation(); }
  /// Returns the error of every call on an inherited object, or null if this process made the
  /// object. The error lives until the process ends.
  const Error* error() const noexcept { return is_inherited() ? &inherited_error() : nullptr; }

 private:
  static const Error& inherited_error() noexcept;
  Generation made_in_ = generation();
};

/// Allocates shared objects that are destroyed only by the process that made them.
template <class T>
class OwnAllocator {
 public:
  using value_type = T;
  OwnAllocator() = default;
  template <class U>
  OwnAllocator(const OwnAllocator<U>& other) noexcept : origin_(other.origin_) {}  // NOLINT: implicit

  T* allocate(std::size_t count) { return std::allocator<T>().allocate(count); }
  void deallocate(T* memory, std::size_t count) noexcept {
    if (origin_.is_inherited())
      detail::keep(memory);
    else
      std::allocator<T>().deallocate(memory, count);
  }
  template <class U>
  void destroy(U* object) noexcept {
    if (!origin_.is_inherited()) object->~U();
  }
  template <class U>
  friend bool operator==(const OwnAllocator&, const OwnAllocator<U>&) noexcept {
    return true;
  }

 private:
  template <class U>
  friend class OwnAllocator;
  Origin origin_;
};

/// Creates a shared object. In a child of `fork` its destructor does not run and its memory is not
/// freed: the destructor could join a thread that does not exist, call a driver, or lock a mutex
/// that is locked for ever.
template <class T, class... Arguments>
std::shared_ptr<T> make_own(Arguments&&... arguments) {
  return std::allocate_shared<T>(OwnAllocator<std::remove_const_t<T>>(),
                                 std::forward<Arguments>(arguments)...);
}

/// Deletes an object in the process that made it, and keeps it in any other.
class OwnDeleter {
 public:
  template <class T>
  void operator()(T* object) const noexcept {
    if (origin_.is_inherited())
      detail::keep(const_cast<std::remove_const_t<T>*>(object));
    else
      delete object;
  }

 private:
  Origin origin_;
};

/// Does the same as `make_own` for an object made with `new`.
template <class T>
std::shared_ptr<T> own(T* object) {
  return std::shared_ptr<T>(object, OwnDeleter());
}

/// A value of static storage that is new in every process, such as a registry and its mutex. A
/// child of `fork` gets a value of its own, because a thread of the parent may have been changing
/// the parent's value.
/// Threads: `get` is thread-safe.
template <class T>
class PerProcess {
 public:
  constexpr PerProcess() noexcept : first_() {}
  // No destructor runs: a host's static objects may use the value until the process ends.
  ~PerProcess() {}  // NOLINT
  PerProcess(const PerProcess&) = delete;

  T& get() {
    const Generation now = generation();
    if (now == 1) return first_;
    Later* later = later_.load(std::memory_order_acquire);
    if (later && later->generation == now) return later->value;
    auto made = std::make_unique<Later>(now, later);
    // Several threads of one child may get here at once: one of them wins. The values of ancestors
    // stay reachable.
    while (!later_.compare_exchange_weak(later, made.get(), std::memory_order_acq_rel)) {
      if (later && later->generation == now) return later->value;
      made->before = later;
    }
    return made.release()->value;
  }

 private:
  struct Later {
    Later(Generation g, Later* b) : generation(g), before(b) {}
    Generation generation;
    Later* before;
    T value;
  };
  union {
    T first_;
  };
  std::atomic<Later*> later_{nullptr};
};

}  // namespace wye::base
