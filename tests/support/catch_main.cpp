// The one main() of the test programs; Catch2 2 compiles its own code here, once.
#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>

int main(int argc, char** argv) { return Catch::Session().run(argc, argv); }
#else
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#endif

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WYE_DRIVERS_STAY
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define WYE_DRIVERS_STAY
#endif

#ifdef WYE_DRIVERS_STAY
#include <dlfcn.h>

#include "support/child.hpp"

/// Asked by the leak sanitizer before it looks.
extern "C" int __lsan_is_turned_off();
extern "C" int __lsan_is_turned_off() { return wye::test::is_child ? 1 : 0; }

// Leaks of an unloaded driver have no names, and lsan.supp matches names.
static const bool drivers_stay = [] {
  for (const char* name :
       {"libvulkan_lvp.so", "libVkLayer_khronos_validation.so", "libnvrtc.so.13", "libnvrtc.so.12"})
    dlopen(name, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
  return true;
}();
#endif

#include <cstdlib>

// ctest sets the same variable for its tests: the user's cache is not used.
static const bool keeps_nothing = ::setenv("WYE_CACHE_DIR", "none", 1) == 0;
