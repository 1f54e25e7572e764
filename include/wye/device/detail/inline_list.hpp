#pragma once
/// A list that needs no allocation while it is short.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace wye {
inline namespace v0 {
namespace detail {

/// A list of `T` that allocates memory only for more than `N` elements. Moving it moves the elements that it has.
/// Threads: thread-compatible.
template <class T, std::size_t N>
class InlineList {
  static_assert(std::is_nothrow_move_constructible_v<T>);

 public:
  InlineList() noexcept {}
  InlineList(const InlineList& other) : InlineList() {
    for (const T& element : other) emplace_back(element);
  }
  InlineList(InlineList&& other) noexcept
      : size_(std::exchange(other.size_, 0)), more_(std::move(other.more_)) {
    other.more_.clear();
    if (!more_.empty()) return;
    std::uninitialized_move_n(other.few_, size_, few_);
    std::destroy_n(other.few_, size_);
  }
  InlineList& operator=(InlineList other) noexcept {
    std::destroy_at(this);
    return *std::construct_at(this, std::move(other));
  }
  ~InlineList() { clear(); }

  template <class... A>
  T& emplace_back(A&&... arguments) {
    if (more_.empty() && size_ < N) {
      T& added = *std::construct_at(few_ + size_, std::forward<A>(arguments)...);
      ++size_;
      return added;
    }
    if (more_.empty()) spill();
    T& added = more_.emplace_back(std::forward<A>(arguments)...);
    ++size_;
    return added;
  }
  void push_back(T element) { emplace_back(std::move(element)); }
  /// Allocates memory for `n` elements in all: adding up to these does not throw. Grows geometrically.
  void reserve(std::size_t n) {
    if (n > N && n > more_.capacity()) more_.reserve(std::max({n, 2 * N, 2 * more_.capacity()}));
  }
  /// Removes all elements after the first `n`. Keeps the memory.
  void truncate(std::size_t n) noexcept {
    if (more_.empty())
      std::destroy(few_ + n, few_ + size_);
    else
      more_.erase(more_.begin() + static_cast<std::ptrdiff_t>(n), more_.end());
    size_ = n;
  }
  /// Keeps the memory.
  void clear() noexcept {
    if (more_.empty()) std::destroy_n(few_, size_);
    more_.clear();
    size_ = 0;
  }

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T* begin() noexcept { return more_.empty() ? few_ : more_.data(); }
  T* end() noexcept { return begin() + size_; }
  const T* begin() const noexcept { return more_.empty() ? few_ : more_.data(); }
  const T* end() const noexcept { return begin() + size_; }
  T& operator[](std::size_t i) noexcept { return begin()[i]; }
  const T& operator[](std::size_t i) const noexcept { return begin()[i]; }
  T& back() noexcept { return end()[-1]; }
  const T& back() const noexcept { return end()[-1]; }

 private:
  /// Moves all elements to the memory for more.
  void spill() {
    more_.reserve(2 * N);
    for (T& element : few_) more_.push_back(std::move(element));
    std::destroy_n(few_, N);
  }

  std::size_t size_ = 0;
  std::vector<T> more_;
  union {
    T few_[N];  // the elements, while `more_` is empty
  };
};

}  // namespace detail
}  // namespace v0
}  // namespace wye
