#pragma once
// CUDA C++ on the host: a .cu file that is included after this compiles as it is into functions that run one thread each. It is
// the only source of a library: what is thread-local there is the shared memory of its kernels.
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "support/cuda/engine.hpp"
#include "support/cuda/host_functions.hpp"

namespace twin {

/// Where each parameter of a kernel lies in the block of parameters.
template <class... A>
struct Layout {
  static constexpr std::size_t count = sizeof...(A);
  std::size_t offsets[count + 1] = {};
  std::size_t sizes[count + 1] = {};
  constexpr Layout() {
    std::size_t i = 0, at = 0;
    ((at = (at + alignof(A) - 1) / alignof(A) * alignof(A), offsets[i] = at, sizes[i] = sizeof(A),
      at += sizeof(A), ++i),
     ...);
  }
};

template <auto F>
struct Twin;
template <class... A, void (*F)(A...)>
struct Twin<F> {
  static constexpr Layout<A...> layout{};
  template <std::size_t... I>
  static void call_with(const std::byte* parameters, std::index_sequence<I...>) {
    const auto get = [&](auto* value, std::size_t i) {
      std::memcpy(static_cast<void*>(value), parameters + layout.offsets[i], sizeof(*value));
    };
    std::tuple<std::remove_const_t<A>...> values;
    (get(&std::get<I>(values), I), ...);
    std::apply(F, values);
  }
  static void call(const void* parameters) {
    call_with(static_cast<const std::byte*>(parameters), std::index_sequence_for<A...>{});
  }
};

inline const Kernel*& kernels() {
  static const Kernel* first = nullptr;
  return first;
}
std::byte* dynamic_shared();  // of this library: written by the build

struct Add {
  Kernel kernel;
  template <auto F>
  static Kernel make(const char* name) {
    return {name,
            Twin<F>::layout.count,
            Twin<F>::layout.offsets,
            Twin<F>::layout.sizes,
            Twin<F>::call,
            dynamic_shared,
            kernels()};
  }
  explicit Add(const Kernel& k) : kernel(k) { kernels() = &kernel; }
};

/// An operation of a warp on values of any type of at most 8 bytes.
template <class T>
T exchange(Combine combine, unsigned mask, T value, unsigned argument, int line) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = sync_warp(combine, mask, bits, argument, line);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

/// What a lane gets that asks for the value of lane `from`: its own where that is not in its part of the warp, and of a lane that
/// is not in the mask nothing that means anything.
inline std::uint64_t value_of(const std::uint64_t* values, unsigned mask, unsigned from) {
  return mask >> from & 1u ? values[from] : ~std::uint64_t{0};
}
/// A lane number, or how far from the own one, and the width of the parts that the warp is divided into.
inline unsigned shuffle(int lane, int width) {
  return static_cast<unsigned>(lane) << 8 | static_cast<unsigned>(width);
}
inline int shuffle_lane(unsigned argument) { return static_cast<int>(argument) >> 8; }
inline unsigned shuffle_width(unsigned argument) { return argument & 0xffu; }

}  // namespace twin

#define __global__
#define __device__
#define __host__
#define __constant__ static const
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __shared__ thread_local  // the blocks of one thread of the host run one after the other
#define threadIdx (twin::self.thread)
#define blockIdx (twin::self.block)
#define blockDim (twin::self.block_dim)
#define gridDim (twin::self.grid_dim)
constexpr int warpSize = twin::warp_size;

inline void __syncthreads(int line = __builtin_LINE()) { twin::sync_threads(line); }
inline void __syncwarp(unsigned mask = ~0u, int line = __builtin_LINE()) {
  twin::sync_warp(nullptr, mask, 0, 0, line);
}
inline void __threadfence() { twin::fence(); }
inline void __threadfence_block() { twin::fence(); }
inline void __threadfence_system() { twin::fence(); }
/// The lanes that happen to be here: the caller at least, and nobody may depend on more.
inline unsigned __activemask() { return 1u << twin::index_in_block() % twin::warp_size; }

template <class T>
T __shfl_sync(unsigned mask, T value, int lane, int width = warpSize, int line = __builtin_LINE()) {
  return twin::exchange(
      [](const std::uint64_t* values, unsigned m, unsigned me, unsigned argument) {
        const unsigned part = twin::shuffle_width(argument);
        return twin::value_of(values, m,
                              me / part * part + static_cast<unsigned>(twin::shuffle_lane(argument)) % part);
      },
      mask, value, twin::shuffle(lane, width), line);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = warpSize, int line = __builtin_LINE()) {
  return twin::exchange(
      [](const std::uint64_t* values, unsigned m, unsigned me, unsigned argument) {
        const auto far = static_cast<unsigned>(twin::shuffle_lane(argument));
        return twin::value_of(values, m, me % twin::shuffle_width(argument) < far ? me : me - far);
      },
      mask, value, twin::shuffle(static_cast<int>(by), width), line);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = warpSize, int line = __builtin_LINE()) {
  return twin::exchange(
      [](const std::uint64_t* values, unsigned m, unsigned me, unsigned argument) {
        const unsigned part = twin::shuffle_width(argument);
        const auto far = static_cast<unsigned>(twin::shuffle_lane(argument));
        return twin::value_of(values, m, me % part + far >= part ? me : me + far);
      },
      mask, value, twin::shuffle(static_cast<int>(by), width), line);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = warpSize, int line = __builtin_LINE()) {
  return twin::exchange(
      [](const std::uint64_t* values, unsigned m, unsigned me, unsigned argument) {
        const unsigned part = twin::shuffle_width(argument),
                       from = me ^ static_cast<unsigned>(twin::shuffle_lane(argument));
        return twin::value_of(values, m, from / part > me / part ? me : from);
      },
      mask, value, twin::shuffle(bits, width), line);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
  return static_cast<unsigned>(twin::exchange<std::uint64_t>(
      [](const std::uint64_t* values, unsigned m, unsigned, unsigned) {
        std::uint64_t all = 0;
        for (unsigned i = 0; i < twin::warp_size; ++i)
          if ((m >> i & 1u) && values[i] != 0) all |= 1u << i;
        return all;
      },
      mask, predicate != 0, 0, line));
}
inline int __any_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
  return __ballot_sync(mask, predicate, line) != 0;
}
inline int __all_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
  return __ballot_sync(mask, predicate, line) == mask;
}

// All lanes get what is made of all their values.
#define WYE_REDUCE(name, types, expression)                                                    \
  template <class T, std::enable_if_t<types<T> && sizeof(T) == 4, int> = 0>                    \
  T name(unsigned mask, T value, int line = __builtin_LINE()) {                                \
    return twin::exchange(                                                                     \
        [](const std::uint64_t* values, unsigned m, unsigned, unsigned) {                      \
          T a{};                                                                               \
          for (unsigned i = 0; i < twin::warp_size; ++i) {                                     \
            const T b = static_cast<T>(values[i]);                                             \
            if (m >> i & 1u) a = (m & ((1u << i) - 1u)) == 0 ? b : static_cast<T>(expression); \
          }                                                                                    \
          return std::uint64_t{static_cast<unsigned>(a)};                                      \
        },                                                                                     \
        mask, value, 0, line);                                                                 \
  }
WYE_REDUCE(__reduce_add_sync, std::is_integral_v, static_cast<unsigned>(a) + static_cast<unsigned>(b))
WYE_REDUCE(__reduce_min_sync, std::is_integral_v, a < b ? a : b)
WYE_REDUCE(__reduce_max_sync, std::is_integral_v, a < b ? b : a)
WYE_REDUCE(__reduce_and_sync, std::is_unsigned_v, a& b)
WYE_REDUCE(__reduce_or_sync, std::is_unsigned_v, a | b)
WYE_REDUCE(__reduce_xor_sync, std::is_unsigned_v, a ^ b)
#undef WYE_REDUCE

// As the compiler of the kernel room begins every source.
template <class T>
struct wye_span {
  T* data;
  unsigned long long size;
  T& operator[](unsigned long long i) const { return data[i]; }
};

#define WYE_TWIN(kernel) static twin::Add twin_of_##kernel(twin::Add::make<kernel>(#kernel))
