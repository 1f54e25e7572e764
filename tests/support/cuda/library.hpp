#pragma once
// What the stand-ins of NVIDIA's libraries share: the stand-in driver's functions for them, and
// numbers of 16 bits.
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

namespace {

/// The stand-in driver's functions for its libraries.
struct Driver {
  int (*scripted)(const char* name) = nullptr;
  int (*is_known)(unsigned long long address, std::size_t size) = nullptr;
  /// 0: the function will be called when the stream reaches it.
  int (*enqueue)(void* stream, void (*function)(void*), void* data) = nullptr;
};

const Driver* driver() {
  static const Driver the_driver = [] {
    Driver found;
    Dl_info self{};
    if (::dladdr(reinterpret_cast<void*>(&driver), &self) == 0) return found;
    std::string path = self.dli_fname;
    for (int i = 0; i < 3; ++i) path.erase(path.rfind('/'));
    void* library = ::dlopen((path + "/libcuda.so.1").c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (!library) return found;
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    };
    find(found.scripted, "wye_standin_scripted");
    find(found.is_known, "wye_standin_is_known");
    find(found.enqueue, "wye_standin_enqueue");
    return found;
  }();
  return the_driver.enqueue ? &the_driver : nullptr;
}

template <class T>
T read(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}
[[maybe_unused]] double half_at(const char* from) {
  const unsigned bits = read<std::uint16_t>(from), exponent = bits >> 10 & 31u, fraction = bits & 1023u;
  const double size = exponent == 31  ? (fraction != 0 ? std::nan("") : HUGE_VAL)
                      : exponent == 0 ? std::ldexp(fraction, -24)
                                      : std::ldexp(1024 + fraction, static_cast<int>(exponent) - 25);
  return bits >> 15 != 0 ? -size : size;
}
[[maybe_unused]] double bfloat16_at(const char* from) {
  const std::uint32_t bits = std::uint32_t{read<std::uint16_t>(from)} << 16;
  return read<float>(reinterpret_cast<const char*>(&bits));
}

/// A number of 16 bits, `fraction` of them after the leading one: 10 of half, 7 of bfloat16. Rounds
/// to nearest, ties to even.
template <int fraction>
struct Sixteen {
  std::uint16_t bits = 0;

  Sixteen() = default;
  explicit Sixteen(float value) {
    constexpr int bias = (1 << (14 - fraction)) - 1, infinite = (2 * bias + 1) << fraction;
    int size = infinite;
    if (std::isnan(value)) {
      size += 1 << (fraction - 1);
    } else if (!std::isinf(value)) {
      const int exponent = value == 0 ? 1 - bias : std::max(std::ilogb(value), 1 - bias);
      const double steps = std::nearbyint(std::ldexp(std::abs(double{value}), fraction - exponent));
      size = exponent > bias
                 ? infinite
                 : std::min(((exponent + bias - 1) << fraction) + static_cast<int>(steps), infinite);
    }
    bits = static_cast<std::uint16_t>((std::signbit(value) ? 0x8000 : 0) + size);
  }
};

}  // namespace

#define WYE_EXPORT extern "C" __attribute__((visibility("default")))
#define WYE_SCRIPTED(name)               \
  if (!driver()) return not_initialized; \
  if (const int code = driver()->scripted(name)) return code
