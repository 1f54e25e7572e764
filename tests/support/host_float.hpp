#pragma once
/// Floating-point environments that a host's thread may have.
#include <cfenv>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace wye::test {

/// While one lives, its thread has environment number `number` modulo `count`.
class HostFloat {
 public:
  static constexpr unsigned count = 6;

  explicit HostFloat(unsigned number) {
    std::fegetenv(&before_);
    switch (number % count) {
      case 0: break;
      case 1: set_rounding(FE_UPWARD, "upward"); break;
      case 2: set_rounding(FE_DOWNWARD, "downward"); break;
      case 3: set_rounding(FE_TOWARDZERO, "toward zero"); break;
      case 4:
#if defined(__SSE__)
        _mm_setcsr(_mm_getcsr() | 0x8040);
        name_ = "denormal numbers are zeros";
#endif
        break;
      case 5:
#if defined(__GLIBC__)
        std::feclearexcept(FE_ALL_EXCEPT);
        feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW);
        name_ = "exceptions are traps";
#endif
        break;
    }
  }
  HostFloat(const HostFloat&) = delete;
  ~HostFloat() { std::fesetenv(&before_); }

  const char* name() const { return name_; }

 private:
  void set_rounding(int mode, const char* name) {
    std::fesetround(mode);
    name_ = name;
  }

  std::fenv_t before_;
  const char* name_ = "default";
};

}  // namespace wye::test
