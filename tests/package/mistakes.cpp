// Calls that the compiler refuses with a sentence if a macro selects them.
#include <wye/wye.hpp>

#include <vector>

using Scale = wye::Kernel<wye::ReadWrite<float>, float>;

wye::Call call(const Scale& kernel, std::vector<float>& x);
wye::Call call(const Scale& kernel, std::vector<float>& x) {
#ifdef UNCHECKED
  return wye::Result<Scale>(kernel)(x, 2.0f);
#elif defined(TEMPORARY)
  return kernel(std::vector<float>(x), 2.0f);
#else
  return kernel(x, 2.0f);
#endif
}
