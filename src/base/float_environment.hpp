#pragma once
/// The floating-point environment of a thread: rounding mode, traps, and denormal numbers.
#include <cfenv>
#include <utility>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace wye::inline v0::base {

/// While one lives, its thread has the default environment: rounding to nearest, no trap, denormal
/// numbers. Hosts may have another one, with which kernels have other results and drivers stop the
/// process by SIGFPE. The destructor restores the host's.
/// Cost: 3 ns if the environment is the default one.
class DefaultFloatEnvironment {
 public:
  DefaultFloatEnvironment() noexcept : is_changed_(!is_default()) {
    if (is_changed_) {
      std::fegetenv(&before_);
      std::fesetenv(FE_DFL_ENV);
    }
  }
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;  // restores once
  ~DefaultFloatEnvironment() {
    if (is_changed_) std::fesetenv(&before_);
  }

 private:
  static bool is_default() noexcept {
#if defined(__x86_64__)
    // The flags that exceptions have set do not matter.
    unsigned short x87 = 0;
    __asm__("fnstcw %0" : "=m"(x87));
    return (_mm_getcsr() & ~0x3fu) == 0x1f80u && x87 == 0x37f;
#else
    return false;
#endif
  }

  const bool is_changed_;
  std::fenv_t before_;
};

/// A function of a driver or compiler, called in the default environment.
template <class Pointer>
class DriverFunction;
template <class Result, class... Parameters>
class DriverFunction<Result (*)(Parameters...)> {
 public:
  using Pointer = Result (*)(Parameters...);

  DriverFunction(Pointer function = nullptr) noexcept : function_(function) {}  // NOLINT: implicit
  Result operator()(Parameters... parameters) const {
    const DefaultFloatEnvironment environment;
    return function_(parameters...);
  }
  explicit operator bool() const noexcept { return function_ != nullptr; }

 private:
  Pointer function_;
};
template <class Result, class... Parameters>
DriverFunction(Result (*)(Parameters...)) -> DriverFunction<Result (*)(Parameters...)>;

}  // namespace wye::base
