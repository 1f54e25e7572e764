#include "kernel/description.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <variant>

#include "kernel/source.hpp"

namespace wye::inline v0::kernel {

namespace {

template <class Source>
constexpr bool is_function = std::is_same_v<Source, HostSource> || std::is_same_v<Source, NativeSource>;

/// Returns the code of a source.
template <class Source>
std::string_view code_of(const Source& source) {
  if constexpr (is_function<Source>) {
    return {};
  } else if constexpr (std::is_same_v<Source, SpirV>) {
    return {reinterpret_cast<const char*>(source.words.data()), source.words.size() * sizeof(std::uint32_t)};
  } else if constexpr (std::is_same_v<Source, Cubin>) {
    return {reinterpret_cast<const char*>(source.bytes.data()), source.bytes.size()};
  } else if constexpr (std::is_same_v<Source, Slang>) {
    if (!source.module.empty())
      return {reinterpret_cast<const char*>(source.module.data()), source.module.size()};
    return source.text;
  } else {
    return source.text;
  }
}

// Returns all members except the code. Each binding lists every member: a new member breaks the
// build.
auto rest_of(const Glsl& source) {
  const auto& [text, file, entry, constants, macros, tile, includes, directories, find, path] = source;
  return std::tuple_cat(std::tie(file, entry, constants, macros, tile, includes, directories, path),
                        std::tuple(find != nullptr));
}
auto rest_of(const Slang& source) {
  const auto& [text, file, entry, constants, macros, tile, includes, directories, find, module, path] =
      source;
  return std::tuple_cat(std::tie(file, entry, constants, macros, tile, includes, directories, path),
                        std::tuple(find != nullptr, module.empty()));
}
auto rest_of(const SpirV& source) {
  const auto& [words, entry, constants, tile, path] = source;
  return std::tie(entry, constants, tile, path);
}
auto rest_of(const CudaCpp& source) {
  const auto& [text, file, entry, macros, workgroup, tile, dynamic_shared, registers, fast_math, includes,
               directories, find, path, launch, standard] = source;
  return std::tuple_cat(std::tie(file, entry, macros, workgroup, tile, dynamic_shared, registers, fast_math,
                                 includes, directories, path, launch, standard),
                        std::tuple(find != nullptr));
}
template <class Module>
auto rest_of(const Module& source) {  // Ptx, Cubin
  const auto& [code, entry, workgroup, tile, dynamic_shared, path, launch] = source;
  return std::tie(entry, workgroup, tile, dynamic_shared, path, launch);
}

bool are_same(const AnySource& a, const AnySource& b) {
  const SourceData &left = *a.data(), &right = *b.data();
  if (&left == &right) return true;
  if (left.source.index() != right.source.index()) return false;
  return std::visit(
      [&](const auto& one) {
        using Source = std::decay_t<decltype(one)>;
        if constexpr (is_function<Source>) {
          return false;
        } else {
          const Source& other = *std::get_if<Source>(&right.source);
          return rest_of(one) == rest_of(other) && code_of(one) == code_of(other);
        }
      },
      left.source);
}

/// The odd multiplier of Fibonacci hashing (D. E. Knuth, The Art of Computer Programming 3, 6.4).
constexpr std::uint64_t spread = 0x9E3779B97F4A7C15u;

std::uint64_t mixed(std::uint64_t state, std::uint64_t word) noexcept {
  state = (state ^ word) * spread;
  return state ^ (state >> 32);
}

/// Hashes the beginning, which differs between generated texts, and sampled words of the rest. Uses
/// independent lanes.
std::uint64_t mixed(std::uint64_t state, std::string_view bytes) noexcept {
  constexpr std::size_t word = sizeof(std::uint64_t), words = 16;
  std::uint64_t lanes[4] = {mixed(state, bytes.size()), 1, 2, 3};
  const auto take = [&](std::size_t lane, std::size_t at, std::size_t size) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + at, size);
    lanes[lane] = mixed(lanes[lane], bits);
  };
  if (bytes.size() <= words * word) {
    for (std::size_t at = 0; at < bytes.size(); at += word) take(0, at, std::min(word, bytes.size() - at));
  } else {
    for (std::size_t i = 0; i < words; i += 2) {
      take(0, i * word, word);
      take(1, i * word + word, word);
      take(2, (bytes.size() - word) * i / (words - 1), word);
      take(3, (bytes.size() - word) * (i + 1) / (words - 1), word);
    }
  }
  return mixed(mixed(lanes[0], lanes[1]), mixed(lanes[2], lanes[3]));
}

}  // namespace

bool is_complete(const KernelDescription& description) {
  return std::all_of(description.sources.begin(), description.sources.end(), [](const AnySource& source) {
    return std::visit(
        [](const auto& one) {
          if constexpr (requires { one.find_include; })
            return one.path.empty() && one.include_directories.empty() && !one.find_include;
          else if constexpr (requires { one.path; })
            return one.path.empty();
          else
            return true;
        },
        source.data()->source);
  });
}

Bytes size_of(const KernelDescription& description) {
  Bytes size;
  for (const AnySource& source : description.sources)
    std::visit(
        [&](const auto& one) {
          size.count += code_of(one).size();
          if constexpr (requires { one.includes; })
            for (const Include& include : one.includes) size.count += include.text.size();
        },
        source.data()->source);
  return size;
}

std::uint64_t sample(const OneSource& source) {
  std::uint64_t state = mixed(0, source.index());
  std::visit(
      [&](const auto& one) {
        if constexpr (is_function<std::decay_t<decltype(one)>>)
          state = mixed(state, reinterpret_cast<std::uintptr_t>(one.code.get()));
        else
          state = mixed(state, code_of(one));
        if constexpr (requires { one.macros; })
          for (const Macro& macro : one.macros) state = mixed(mixed(state, macro.name), macro.value);
        if constexpr (requires { one.constants; })
          for (const auto& constant : one.constants) state = mixed(state, constant.bits);
      },
      source);
  return state;
}

std::uint64_t sample(const KernelDescription& description) {
  std::uint64_t state = mixed(description.schema.slots.size(), description.name);
  for (const AnySource& source : description.sources) state = mixed(state, source.data()->sample);
  return state;
}

bool equal(const KernelDescription& a, const KernelDescription& b) {
  return a.name == b.name && a.schema == b.schema && a.batchable == b.batchable && a.adapters == b.adapters &&
         a.features == b.features && a.has_short_loops == b.has_short_loops &&
         std::equal(a.sources.begin(), a.sources.end(), b.sources.begin(), b.sources.end(), are_same);
}

}  // namespace wye::kernel
