#include "runtime/checks.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <utility>

#include "base/text.hpp"
#include "kernel/compilers/glsl.hpp"
#include "kernel/source.hpp"
#include "qualification_kernels.hpp"

namespace wye::inline v0::runtime {
namespace {

using U8 = std::uint8_t;
using U16 = std::uint16_t;
using U32 = std::uint32_t;
using U64 = std::uint64_t;

/// Compares `results` elements of type T for each item with `expected(item, result)`.
template <class T, class F>
Mistake differs(const Answer& answer, std::size_t results, F expected) {
  for (std::size_t i = 0; i < answer.n; ++i)
    for (std::size_t k = 0; k < results; ++k) {
      const T is = answer.out<T>(results * i + k), should = static_cast<T>(expected(i, k));
      if (is != should)
        return base::text("Result {} of item {} is {:#x}; expected {:#x}.", k, i, U64{is}, U64{should});
    }
  return std::nullopt;
}

/// Compares element `at` of type T.
template <class T>
Mistake differs_at(const Answer& answer, std::size_t at, T should) {
  const T is = answer.out<T>(at);
  if (is == should) return std::nullopt;
  return base::text("Result {} is {:#x}; expected {:#x}.", at, U64{is}, U64{should});
}

Mistake is_far(std::size_t item, std::size_t result, double is, double should, double bound) {
  if (std::abs(is - should) <= bound) return std::nullopt;
  return base::text("Result {} of item {} is {}; expected {} within {}.", result, item, is, should, bound);
}

std::size_t next(const Answer& answer, std::size_t i, std::size_t by = 1) { return (i + by) % answer.n; }

Mistake integers(const Answer& answer) {
  return differs<U32>(answer, 8, [&](std::size_t i, std::size_t k) -> U32 {
    const U32 a = answer.in<U32>(i), b = answer.in<U32>(next(answer, i)), shift = b & 31;
    switch (k) {
      case 0: return a * b;
      case 1: return a / std::max(b, 1u);
      case 2: return a % std::max(b, 1u);
      case 3:
        return static_cast<U32>(static_cast<std::int32_t>(a) /
                                std::max(static_cast<std::int32_t>(b >> 1), 1));
      case 4: return (a << shift) ^ (b >> (a & 31));
      case 5: return static_cast<U32>(static_cast<std::int32_t>(a) >> shift);
      case 6: return static_cast<U32>(std::popcount(a)) + 64 * static_cast<U32>(std::bit_width(a));
      default: return static_cast<U32>(U64{a} * b >> 32);
    }
  });
}

/// Bounds: the precision of SPIR-V's operations in the Vulkan specification, "Precision and
/// Operation of SPIR-V Instructions".
Mistake floats(const Answer& answer) {
  const auto number = [&](std::size_t i) {
    return double{std::bit_cast<float>(0x3f000000 | (answer.in<U32>(i) & 0x00ffffff))};
  };
  for (std::size_t i = 0; i < answer.n; ++i) {
    const double p = number(i), q = number(next(answer, i));
    const double exact[] = {p + q, p - q, p * q, p / q, std::sqrt(p), std::exp2(p), std::log2(p)};
    constexpr double ulps[] = {1, 1, 1, 2.5, 5, 7, 0};
    for (std::size_t k = 0; k < std::size(exact); ++k) {
      const double ulp = std::exp2(std::ilogb(exact[k] == 0 ? 1.0 : exact[k]) - 23);
      const double bound = k == 6 ? std::exp2(-21) : ulps[k] * ulp;
      if (auto far = is_far(i, k, std::bit_cast<float>(answer.out<U32>(8 * i + k)), exact[k], bound))
        return far;
    }
    const U32 should = static_cast<U32>(p * 1024) + (p < q ? 65536 : 0);
    if (auto wrong = differs_at<U32>(answer, 8 * i + 7, should)) return wrong;
  }
  return std::nullopt;
}

Mistake barriers(const Answer& answer) {
  constexpr std::size_t group = 64;
  std::vector<U32> words(group), values(group), before(group);
  for (std::size_t first = 0; first < answer.n; first += group) {
    U32 sum = 0;
    for (std::size_t at = 0; at < group; ++at) {
      words[at] = values[at] = first + at < answer.n ? answer.in<U32>(first + at) : 0;
      sum += words[at];
    }
    for (U32 k = 0; k < 8; ++k) {
      before = values;
      for (std::size_t at = 0; at < group; ++at) values[at] = before[(at + 7) % group] * 3 + k;
    }
    for (std::size_t at = 0; at < group && first + at < answer.n; ++at)
      if (auto wrong = differs_at<U32>(answer, first + at, values[at] ^ sum)) return wrong;
  }
  return std::nullopt;
}

Mistake atomics(const Answer& answer) {
  U32 sum = 0, most = 0, parity = 0;
  std::vector<bool> taken(answer.n);
  for (std::size_t i = 0; i < answer.n; ++i) {
    const U32 word = answer.in<U32>(i), ticket = answer.out<U32>(8 + i);
    sum += word;
    most = std::max(most, word);
    parity ^= word;
    if (ticket >= answer.n || taken[ticket])
      return base::text("Two invocations of {} got the number {}, or it is too large.", answer.n, ticket);
    taken[ticket] = true;
  }
  const U32 should[] = {answer.n, most, parity, sum, sum};
  for (std::size_t k = 0; k < std::size(should); ++k)
    if (auto wrong = differs_at<U32>(answer, k, should[k])) return wrong;
  return std::nullopt;
}

template <U32 factor, bool inverts, std::size_t length>
Mistake specialization(const Answer& answer) {
  return differs<U32>(answer, 1, [&](std::size_t i, std::size_t) -> U32 {
    U32 value = 0;
    for (std::size_t k = 0; k < length; ++k)
      value = value * factor + answer.in<U32>(next(answer, i, length - 1 - k));
    return inverts ? ~value : value;
  });
}

Mistake addresses(const Answer& answer) {
  return differs<U32>(
      answer, 1, [&](std::size_t i, std::size_t) { return answer.in<U32>(answer.n - 1 - i) + 4 * answer.n; });
}

/// The invocations of one subgroup, by their numbers in it.
using Members = std::map<U32, std::size_t>;

/// Returns the members of each subgroup, which the first three of `results` words of each item
/// describe. Sets `wrong` if two have one number, or a number is too large.
std::map<U32, Members> subgroups_of(const Answer& answer, std::size_t results, Mistake& wrong) {
  std::map<U32, Members> groups;
  for (std::size_t i = 0; i < answer.n; ++i) {
    const U32 size = answer.out<U32>(results * i), number = answer.out<U32>(results * i + 1);
    if (!groups[answer.out<U32>(results * i + 2)].try_emplace(number, i).second || number >= size)
      wrong =
          base::text("Invocation {} has the number {} in a subgroup of {}, or shares it.", i, number, size);
  }
  return groups;
}

Mistake subgroups(const Answer& answer) {
  Mistake wrong;
  for (const auto& [id, members] : subgroups_of(answer, 8, wrong)) {
    U32 sum = 0, odd = 0, any = 0;
    for (const auto& [number, i] : members) {
      const U32 word = answer.in<U32>(i);
      if (!wrong) wrong = differs_at<U32>(answer, 8 * i + 4, sum);
      sum += word;
      odd += word & 1;
      any |= (word & 7) == 0;
    }
    for (const auto& [number, i] : members) {
      if (wrong) return wrong;
      const U32 should[] = {sum, odd, any};
      constexpr std::size_t at[] = {3, 5, 7};
      for (std::size_t k = 0; k < std::size(at) && !wrong; ++k)
        wrong = differs_at<U32>(answer, 8 * i + at[k], should[k]);
      const auto other = members.find((number + 3) % answer.out<U32>(8 * i));
      if (other != members.end() && !wrong)
        wrong = differs_at<U32>(answer, 8 * i + 6, answer.in<U32>(other->second));
    }
  }
  return wrong;
}

Mistake subgroups_clustered(const Answer& answer) {
  Mistake wrong;
  for (const auto& [id, members] : subgroups_of(answer, 4, wrong)) {
    std::map<U32, U32> sums;
    for (const auto& [number, i] : members) sums[number / 4] += answer.in<U32>(i);
    for (const auto& [number, i] : members)
      if (!wrong) wrong = differs_at<U32>(answer, 4 * i + 3, sums[number / 4]);
  }
  return wrong;
}

/// Results of 8-bit and of 16-bit integers: `T` of each word's first parts, and `S`, which is
/// signed, of others.
template <class T, class S, unsigned parts, unsigned shift>
Mistake narrow_integers(const Answer& answer) {
  constexpr unsigned bits = 8 * sizeof(T);
  return differs<U32>(answer, 2, [&](std::size_t i, std::size_t k) -> U32 {
    const U32 word = answer.in<U32>(i);
    const U32 a = static_cast<T>(word), b = static_cast<T>(word >> bits);
    const std::int32_t c = static_cast<S>(word >> (parts - 2) * bits),
                       d = static_cast<S>(word >> (parts - 1) * bits);
    if (k == 0) return static_cast<T>(a * b + a) | U32{static_cast<T>(a - b)} << bits;
    const auto low = [](std::int32_t value) { return static_cast<U32>(value) & 0xffff; };
    return low(static_cast<S>(c * d)) | low(static_cast<S>(c >> shift)) << 16;
  });
}

Mistake int64(const Answer& answer) {
  return differs<U64>(answer, 3, [&](std::size_t i, std::size_t k) -> U64 {
    const U64 a = U64{answer.in<U32>(i)} << 32 | answer.in<U32>(next(answer, i)),
              b = answer.in<U32>(next(answer, i, 2)) | U64{1};
    if (k == 0) return a * b + (a >> (answer.in<U32>(i) & 63));
    return k == 1 ? a / b : static_cast<U64>(static_cast<std::int64_t>(a) / static_cast<std::int64_t>(b));
  });
}

Mistake float16(const Answer& answer) {
  const auto number = [](U32 bits) {  // 0x3800 to 0x3fff: [0.5, 2)
    return std::exp2((bits >> 10 & 1) == 0 ? -1.0 : 0.0) * (1 + (bits & 0x3ff) / 1024.0);
  };
  for (std::size_t i = 0; i < answer.n; ++i) {
    const U32 word = answer.in<U32>(i);
    const double p = number(word & 0x7ff), q = number(word >> 16 & 0x7ff), exact[] = {p + q, p * q};
    for (std::size_t k = 0; k < 2; ++k)
      if (auto far = is_far(i, k, std::bit_cast<float>(answer.out<U32>(2 * i + k)), exact[k],
                            std::exp2(std::ilogb(exact[k]) - 10)))
        return far;
  }
  return std::nullopt;
}

Mistake float64(const Answer& answer) {
  for (std::size_t i = 0; i < answer.n; ++i) {
    const auto number = [&](std::size_t low, std::size_t high) {
      const U64 word = 0x3fe00000 | (answer.in<U32>(high) & 0x001fffff);
      return std::bit_cast<double>(word << 32 | answer.in<U32>(low));
    };
    const double p = number(i, next(answer, i)), q = number(next(answer, i, 2), i);
    const double should[] = {p + q, p * q, p / q, std::sqrt(p)};
    for (std::size_t k = 0; k < std::size(should); ++k)
      if (auto far = is_far(i, k, answer.out<double>(4 * i + k), should[k],
                            5 * std::exp2(std::ilogb(should[k]) - 52)))
        return far;
  }
  return std::nullopt;
}

template <class T>
Mistake storage(const Answer& answer) {
  return differs<T>(answer, 1, [&](std::size_t i, std::size_t) {
    return static_cast<T>(answer.in<T>(answer.n - 1 - i) * 5u + static_cast<U32>(i));
  });
}

Mistake atomics_int64(const Answer& answer) {
  U64 sum = 0, most = 0, parity = 0;
  for (std::size_t i = 0; i < answer.n; ++i) {
    const U64 value = U64{answer.in<U32>(i)} << 32 | answer.in<U32>(next(answer, i));
    sum += value;
    most = std::max(most, value);
    parity ^= value;
  }
  for (std::size_t k = 0; k < 3; ++k)
    if (auto wrong = differs_at<U64>(answer, k, k == 0 ? sum : k == 1 ? most : parity)) return wrong;
  return std::nullopt;
}

Mistake atomics_float32(const Answer& answer) {
  double sum = 0;
  for (std::size_t i = 0; i < answer.n; ++i) sum += answer.in<U32>(i) & 1023;
  return is_far(0, 0, answer.out<float>(0), sum, 0);
}

Mistake scalar_layout(const Answer& answer) {
  return differs<U32>(answer, 1, [&](std::size_t i, std::size_t) {
    constexpr U32 weights[] = {1, 3, 5, 7, 11};
    U32 sum = 0;
    for (std::size_t k = 0; k < std::size(weights); ++k) sum += weights[k] * answer.in<U32>(5 * i + k);
    return sum;
  });
}

template <U32 factor, U32 added>
Mistake parameters(const Answer& answer) {
  return differs<U32>(answer, 1,
                      [&](std::size_t i, std::size_t) { return answer.in<U32>(i) * factor + added; });
}

Mistake memory_model(const Answer& answer) {
  return differs<U32>(answer, 1, [&](std::size_t i, std::size_t) {
    return answer.in<U32>((i / 64 * 64 + (i + 17) % 64) % answer.n);
  });
}

Mistake cooperative_matrix(const Answer& answer) {
  const std::size_t n = answer.n, rows = answer.out<U32>(n), columns = answer.out<U32>(n + 1),
                    inner = answer.out<U32>(n + 2);
  if (rows > 16 || columns > 16 || inner > 16 || rows * columns * inner == 0)
    return base::text("The sizes of matrices ({}, {}, {}) are not from 1 to 16.", rows, columns, inner);
  return differs<U32>(answer, 1, [&](std::size_t i, std::size_t) -> U32 {
    const std::size_t element = i % 256, row = element / columns, column = element % columns;
    if (row >= rows) return 0;
    U32 sum = answer.in<U32>(next(answer, element, 13)) & 1023;
    for (std::size_t k = 0; k < inner; ++k)
      sum += (answer.in<U32>(next(answer, row * inner + k, 0)) & 31) *
             (answer.in<U32>(next(answer, column * inner + k, 7)) >> 5 & 31);
    return sum;
  });
}

/// Returns the bytes of an element of x.
std::uint32_t from_size(const KernelCheck& check) {
  return check.from == ElementType::opaque ? check.struct_size : kernel::size_of(check.from);
}

constexpr U32 loops_wanted = 64 * 4096;

/// Results of one loop: its iterations, and a value that each of them changes. All invocations have
/// the same iterations, so that a driver that ends loops early ends all of them.
Mistake loops(const Answer& answer) {
  const U32 iterations = answer.out<U32>(0);
  if (iterations == 0 || iterations > loops_wanted)
    return base::text("A loop had {} iterations; expected {}.", iterations, loops_wanted);
  return differs<U32>(answer, 2, [&](std::size_t i, std::size_t k) -> U32 {
    U32 value = answer.in<U32>(i);
    for (U32 n = 0; k == 1 && n < iterations; ++n) value = value * 1664525 + 1013904223;
    return k == 0 ? iterations : value;
  });
}

std::uint64_t loop_limit(const Answer& answer) {
  const U32 iterations = answer.out<U32>(0);
  return iterations < loops_wanted ? iterations : 0;
}

/// Returns the parameter `name` of a check: a buffer.
Slot buffer(const char* name, Access access, ElementType element, std::uint32_t size) {
  return {.name = name, .kind = SlotKind::buffer, .access = access, .element = element, .size = size};
}

std::vector<KernelCheck> make_kernel_checks() {
  using E = ElementType;
  using F = Feature;
  std::vector<KernelCheck> checks = {
      {.name = "integers", .text = &kernels::integers, .results = 8, .find_mistake = integers},
      {.name = "floats", .text = &kernels::floats, .results = 8, .find_mistake = floats},
      {.name = "barriers", .text = &kernels::barriers, .find_mistake = barriers},
      {.name = "atomics", .text = &kernels::atomics, .more = 8, .is_zeroed = true, .find_mistake = atomics},
      {.name = "specialization",
       .text = &kernels::specialization,
       .find_mistake = specialization<1, false, 2>},
      {.name = "specialization with constants",
       .text = &kernels::specialization,
       .constants = {{0, 5u}, {1, true}, {2, 3u}},
       .find_mistake = specialization<5, true, 3>},
      {.name = "loops",
       .text = &kernels::loops,
       .items = 64,
       .results = 2,
       .find_mistake = loops,
       .loop_iterations = loop_limit},
      {.name = "addresses", .text = &kernels::addresses, .find_mistake = addresses},
      {.name = "int8",
       .text = &kernels::int8,
       .feature = F::int8,
       .results = 2,
       .find_mistake = narrow_integers<U8, std::int8_t, 4, 2>},
      {.name = "int16",
       .text = &kernels::int16,
       .feature = F::int16,
       .results = 2,
       .find_mistake = narrow_integers<U16, std::int16_t, 2, 3>},
      {.name = "int64", .text = &kernels::int64, .feature = F::int64, .results = 6, .find_mistake = int64},
      {.name = "float16",
       .text = &kernels::float16,
       .feature = F::float16,
       .results = 2,
       .find_mistake = float16},
      {.name = "float64",
       .text = &kernels::float64,
       .feature = F::float64,
       .results = 8,
       .find_mistake = float64},
      {.name = "storage8",
       .text = &kernels::storage8,
       .feature = F::storage8,
       .from = E::uint8,
       .to = E::uint8,
       .find_mistake = storage<U8>},
      {.name = "storage16",
       .text = &kernels::storage16,
       .feature = F::storage16,
       .from = E::uint16,
       .to = E::uint16,
       .find_mistake = storage<U16>},
      {.name = "subgroups",
       .text = &kernels::subgroups,
       .feature = F::subgroups,
       .items = 1024,
       .results = 8,
       .find_mistake = subgroups},
      {.name = "subgroups_clustered",
       .text = &kernels::subgroups_clustered,
       .feature = F::subgroups_clustered,
       .items = 1024,
       .results = 4,
       .find_mistake = subgroups_clustered},
      {.name = "atomics_int64",
       .text = &kernels::atomics_int64,
       .feature = F::atomics_int64,
       .to = E::uint64,
       .is_zeroed = true,
       .find_mistake = atomics_int64},
      {.name = "atomics_float32",
       .text = &kernels::atomics_float32,
       .feature = F::atomics_float32,
       .to = E::float32,
       .is_zeroed = true,
       .find_mistake = atomics_float32},
      {.name = "scalar_layout",
       .text = &kernels::scalar_layout,
       .feature = F::scalar_layout,
       .from = E::opaque,
       .struct_size = 20,
       .find_mistake = scalar_layout},
      {.name = "parameters8",
       .text = &kernels::parameters8,
       .feature = F::parameters8,
       .parameters = {201, 77},
       .parameter = E::uint8,
       .find_mistake = parameters<201, 77>},
      {.name = "parameters16",
       .text = &kernels::parameters16,
       .feature = F::parameters16,
       .parameters = {50'001, 777},
       .parameter = E::uint16,
       .find_mistake = parameters<50'001, 777>},
      {.name = "memory_model",
       .text = &kernels::memory_model,
       .feature = F::memory_model,
       .items = 1024,
       .find_mistake = memory_model},
  };
  if (kernel::GlslCompiler::knows_cooperative_matrix())
    checks.push_back({.name = "cooperative_matrix",
                      .text = &kernels::cooperative_matrix,
                      .feature = F::cooperative_matrix,
                      .more = 3,
                      .find_mistake = cooperative_matrix});
  return checks;
}

}  // namespace

const std::vector<KernelCheck>& kernel_checks() {
  static const std::vector<KernelCheck> checks = make_kernel_checks();
  return checks;
}

Result<AnyKernel> make_kernel(const KernelCheck& check) {
  const KernelText& text = *check.text;
  ParamSchema schema{{buffer("x", Access::read, check.from, from_size(check)),
                      buffer("y", Access::read_write, check.to, kernel::size_of(check.to)),
                      {.name = "n", .kind = SlotKind::scalar, .element = ElementType::uint32, .size = 4}}};
  for (std::size_t i = 0; i < check.parameters.size(); ++i)
    schema.slots.push_back({.name = base::text("parameter {}", i),
                            .kind = SlotKind::scalar,
                            .element = check.parameter,
                            .size = kernel::size_of(check.parameter)});
  std::vector<AnySource> sources;
  if (!text.glsl.empty())
    sources.push_back(Glsl{.text = std::string(text.glsl),
                           .file = std::string(text.name) + ".comp",
                           .constants = check.constants});
  if (!text.cuda.empty())
    sources.push_back(CudaCpp{.text = std::string(text.cuda),
                              .file = std::string(text.name) + ".cu",
                              .entry = std::string("wye_") + text.name});
  for (const std::string_view code : text.ptx)
    sources.push_back(Ptx{.text = std::string(code), .entry = std::string("wye_") + text.name});
  return AnyKernel::make("check of " + std::string(check.name), std::move(schema), std::move(sources));
}

std::vector<std::byte> input_of(const KernelCheck& check) {
  constexpr std::uint32_t edges[] = {0, 1, 0xffffffff, 0x80000000, 0x7fffffff, 2, 0x80000001, 0x10000};
  std::vector<std::byte> bytes((std::size_t{check.items} * from_size(check) + 3) / 4 * 4);
  std::uint32_t word = 0x9e3779b9;
  for (std::size_t i = 0; i < bytes.size() / 4; ++i) {
    word = (word ^ word >> 15) * 0x2c1b3c6d + 0x6b43a9b5;  // a permutation of 32 bits
    const std::uint32_t value = i < std::size(edges) ? edges[i] : word ^ word >> 16;
    std::memcpy(bytes.data() + 4 * i, &value, 4);
  }
  bytes.resize(std::size_t{check.items} * from_size(check));
  return bytes;
}

}  // namespace wye::runtime
