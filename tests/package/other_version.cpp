// Compiled with headers of another version than the library's. The library must detect it.
#include <wye/wye.hpp>

#include <cstdio>

int main() {
  const auto runtime = wye::Runtime::open();
  if (runtime || runtime.error() != wye::Errc::unsupported) return 1;
  std::puts(runtime.error().describe().c_str());
  return 0;
}
