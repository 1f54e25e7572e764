// Compiled with the headers of another version than the library's, which the library has to notice.
#include <wye/wye.hpp>

#include <cstdio>

int main() {
  const auto runtime = wye::Runtime::open();
  if (runtime || runtime.error() != wye::Errc::unsupported) return 1;
  std::puts(runtime.error().describe().c_str());
  return 0;
}
