// Compiled with _GLIBCXX_DEBUG: containers have other layouts than in the library, which must detect it.
#include <wye/wye.hpp>

#include <cstdio>

int main() {
  for (const auto& runtime : {wye::Runtime::open(), wye::Runtime::open({.pool = {.backends = {"cpu"}}})}) {
    if (runtime || runtime.error() != wye::Errc::unsupported) return 1;
    std::puts(runtime.error().describe().c_str());
  }
  return 0;
}
