#pragma once
/// The sanitizer that a test program is built with.

namespace wye::test {

#if defined(__SANITIZE_THREAD__)
constexpr bool under_tsan = true, under_asan = false;
#elif defined(__has_feature)
constexpr bool under_tsan = __has_feature(thread_sanitizer), under_asan = __has_feature(address_sanitizer);
#else
constexpr bool under_tsan = false, under_asan = false;
#endif

}  // namespace wye::test
