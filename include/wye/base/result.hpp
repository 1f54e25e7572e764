#pragma once
/// A value or an `Error`. Every function of wye that can fail returns a `Result`.
#include <wye/base/error.hpp>

#include <concepts>
#include <type_traits>
#include <utility>
#include <variant>

namespace wye::inline v0 {

template <class T>
class Result;

namespace detail {
/// Types from which a `Result<T>` with a value may be made.
template <class U, class T>
concept ValueOf = std::is_constructible_v<T, U> && std::is_convertible_v<U, T> &&
                  !std::is_same_v<std::remove_cvref_t<U>, Result<T>> &&
                  !std::is_same_v<std::remove_cvref_t<U>, Error>;
}  // namespace detail

/// A `T` or the error because of which there is none. `value()`, `*` and `->` on an error throw
/// `Exception` (see `detail::throw_error`). Test the result first, or call `error()`.
/// Threads: thread-compatible.
template <class T>
class [[nodiscard]] Result {
  static_assert(!std::is_reference_v<T> && !std::is_same_v<std::remove_cv_t<T>, Error>);

 public:
  using value_type = T;

  template <detail::ValueOf<T> U = T>
  Result(U&& value) : state_(std::in_place_index<0>, std::forward<U>(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  T& value() & { return checked(), *std::get_if<0>(&state_); }
  const T& value() const& { return checked(), *std::get_if<0>(&state_); }
  T value() && { return checked(), std::move(*std::get_if<0>(&state_)); }

  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T operator*() && { return std::move(*this).value(); }  // by value: `auto& x = *make();` must not dangle
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  template <class... A>
  requires std::invocable<const T&, A...>
  void operator()(A&&...) const = delete;  // test the result, then call its value: (*kernel)(x)

  template <class U>
  T value_or(U&& other) const& {
    return has_value() ? **this : static_cast<T>(std::forward<U>(other));
  }

  /// Returns the error. A call on a value is a bug of the caller and returns `internal`.
  const Error& error() const& { return has_value() ? detail_no_error() : *std::get_if<1>(&state_); }
  Error error() && { return has_value() ? detail_no_error() : std::move(*std::get_if<1>(&state_)); }

 private:
  static const Error& detail_no_error();
  void checked() const {
    if (const Error* error = std::get_if<1>(&state_)) detail::throw_error(*error);
  }
  std::variant<T, Error> state_;
};

namespace detail {
/// Returns the error of a result that holds a value.
WYE_API const Error& no_error() noexcept;
struct Done {
  friend constexpr bool operator==(Done, Done) = default;
};
}  // namespace detail

template <class T>
const Error& Result<T>::detail_no_error() {
  return detail::no_error();
}

/// Success or an error.
/// Threads: thread-compatible.
template <>
class [[nodiscard]] Result<void> : public Result<detail::Done> {
 public:
  Result() : Result<detail::Done>(detail::Done{}) {}
  Result(Error error) : Result<detail::Done>(std::move(error)) {}
  void value() const { (void)Result<detail::Done>::value(); }
};

}  // namespace wye
