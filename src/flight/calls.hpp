#pragma once
/// The calls that flights run.
#include <wye/kernel/kernel.hpp>

#include <concepts>
#include <cstddef>

namespace wye::inline v0::flight {

/// Refers to the calls of a job, or of a segment of a plan, in their order. The caller keeps them.
/// Threads: thread-compatible.
class Calls {
 public:
  /// `calls`: a list whose elements after the first are in one array.
  template <class List>
  requires requires(const List& calls) {
    { calls[0] } -> std::same_as<const Call&>;
    calls.size();
  }
  Calls(const List& calls)  // NOLINT: a list of calls is calls
      : first_(calls.size() > 0 ? &calls[0] : nullptr),
        rest_(calls.size() > 1 ? &calls[1] : nullptr),
        size_(calls.size()) {}

  std::size_t size() const noexcept { return size_; }
  const Call& operator[](std::size_t i) const noexcept { return i == 0 ? *first_ : rest_[i - 1]; }

 private:
  const Call* first_;
  const Call* rest_;
  std::size_t size_;
};

}  // namespace wye::flight
