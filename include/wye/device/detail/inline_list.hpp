#pragma once
/// A list that needs no allocation while it is short.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>

namespace wye::inline v0::detail {

/// A list of `T` that allocates memory only for more than `N` elements. Moving it moves the
/// elements that it has.
/// Threads: thread-compatible.
template <class T, std::size_t N>
class InlineList {
  static_assert(std::is_nothrow_move_constructible_v<T>);

 public:
  InlineList() noexcept {}
  InlineList(const InlineList& other) : InlineList() {
    reserve(other.size());
    for (const T& element : other) emplace_back(element);
  }
  InlineList(InlineList&& other) noexcept
      : more_(std::exchange(other.more_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, std::uint32_t{N})) {
    if (!more_) move_to(few_, other.few_, size_);
  }
  InlineList& operator=(InlineList other) noexcept {
    std::destroy_at(this);
    return *std::construct_at(this, std::move(other));
  }
  ~InlineList() {
    clear();
    if (more_) std::allocator<T>().deallocate(more_, capacity_);
  }

  template <class... A>
  T& emplace_back(A&&... arguments) {
    if (size_ == capacity_) return grow_and_add(T(std::forward<A>(arguments)...));
    T& added = *std::construct_at(end(), std::forward<A>(arguments)...);
    ++size_;
    return added;
  }
  void push_back(T element) { emplace_back(std::move(element)); }
  /// Allocates memory for `n` elements in all: adding up to these does not throw. Grows
  /// geometrically.
  void reserve(std::size_t n) {
    if (n > capacity_) grow(std::max(n, 2 * std::size_t{capacity_}));
  }
  /// Removes all elements after the first `n`. Keeps the memory.
  void truncate(std::size_t n) noexcept {
    std::destroy(begin() + n, end());
    size_ = static_cast<std::uint32_t>(n);
  }
  /// Keeps the memory.
  void clear() noexcept { truncate(0); }

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T* begin() noexcept { return more_ ? more_ : few_; }
  T* end() noexcept { return begin() + size_; }
  const T* begin() const noexcept { return more_ ? more_ : few_; }
  const T* end() const noexcept { return begin() + size_; }
  T& operator[](std::size_t i) noexcept { return begin()[i]; }
  const T& operator[](std::size_t i) const noexcept { return begin()[i]; }
  T& back() noexcept { return end()[-1]; }
  const T& back() const noexcept { return end()[-1]; }

 private:
  static void move_to(T* to, T* from, std::size_t n) noexcept {
    std::uninitialized_move_n(from, n, to);
    std::destroy_n(from, n);
  }
  /// Throws: std::bad_alloc, also beyond 2^32 elements.
  void grow(std::size_t capacity) {
    // Not thrown here, because the application may be compiled without exceptions: so much memory
    // is refused.
    if (capacity > std::numeric_limits<std::uint32_t>::max())
      capacity = std::numeric_limits<std::size_t>::max();
    T* const memory = std::allocator<T>().allocate(capacity);
    move_to(memory, begin(), size_);
    if (more_) std::allocator<T>().deallocate(more_, capacity_);
    more_ = memory;
    capacity_ = static_cast<std::uint32_t>(capacity);
  }
  /// `added` was made before the elements move, because its arguments may refer to one of them.
  T& grow_and_add(T added) {
    grow(2 * std::size_t{capacity_});
    T& there = *std::construct_at(end(), std::move(added));
    ++size_;
    return there;
  }

  T* more_ = nullptr;  // null: the elements are in `few_`
  std::uint32_t size_ = 0;
  std::uint32_t capacity_ = N;
  union {
    T few_[N];
  };
};

}  // namespace wye::detail
