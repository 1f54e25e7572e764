#pragma once
/// The version of wye and how it was linked. wye's own build writes `build.hpp`, so a consumer sets
/// no macro.
#if __cplusplus < 202002L && !defined(_WIN32)
#error "wye needs C++20: compile with -std=c++20, or a newer standard."
#include <wye/needs_cxx20>  // no such file: compilers stop here, before hundreds of other errors
#endif

#include <wye/base/build.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

#if defined(_WIN32) && WYE_BUILD_SHARED
#ifdef WYE_BUILDING
#define WYE_API __declspec(dllexport)
#else
#define WYE_API __declspec(dllimport)
#endif
#elif defined(_WIN32)
#define WYE_API
#else
#define WYE_API __attribute__((visibility("default")))
#endif

/// Gives each shared library and program its own copy of a header's variable. g++ makes other
/// inline variables, and static variables of inline functions, unique in the process, and the
/// loader never unmaps a library with a unique symbol. For the same reason no inline function of
/// wye calls std::make_shared, which has such a variable.
#if defined(_WIN32)
#define WYE_LOCAL
#else
#define WYE_LOCAL __attribute__((visibility("hidden")))
#endif

namespace wye::inline v0 {

/// A version, ordered. While `major` is 0, each `minor` is its own ABI.
struct Version {
  std::uint16_t major = 0;
  std::uint16_t minor = 0;
  std::uint16_t patch = 0;
  friend constexpr auto operator<=>(const Version&, const Version&) = default;
};

/// The version of the headers this translation unit was compiled with.
WYE_LOCAL inline constexpr Version header_version{WYE_VERSION_MAJOR, WYE_VERSION_MINOR, WYE_VERSION_PATCH};

/// The headers that a caller of `open` was compiled with. `open` of Runtime, ContextPool,
/// ShaderCache and Scheduler refuses them if major.minor of the library differs, or the size of its
/// options: types of the standard library then have another layout there, for example because of
/// _GLIBCXX_DEBUG.
struct Headers {
  Version version;
  std::size_t options = 0;  ///< their size in bytes
};

/// Returns the version of the loaded library.
/// Threads: thread-safe.
WYE_API Version library_version() noexcept;

namespace detail {
/// Gives wye's own sources the state behind public handles. No public header defines it.
struct Internals;
}  // namespace detail

/// Returns "0.1.0".
WYE_API std::string to_string(Version version);

}  // namespace wye
