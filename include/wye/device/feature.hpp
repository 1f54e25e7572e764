#pragma once
/// What a kernel may need and a device may have.
#include <wye/base/config.hpp>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace wye {
inline namespace v0 {

/// One capability of a device that a kernel can need.
enum class Feature : std::uint8_t {
  float16,
  float64,
  int8,
  int16,
  int64,
  storage8,             ///< 8-bit values in buffers
  storage16,            ///< 16-bit values in buffers
  subgroups,            ///< arithmetic, vote, ballot and shuffle across a subgroup
  atomics_int64,        ///< 64-bit integer atomics in buffers
  atomics_float32,      ///< atomicAdd on float in buffers
  host_memory,          ///< kernels read and write the host's memory in place
  scalar_layout,        ///< vectors and structs in buffers are aligned as their numbers are, as in C
  parameters8,          ///< 8-bit values among the parameters that are no buffers
  parameters16,         ///< 16-bit values among them
  subgroups_clustered,  ///< arithmetic across clusters of a subgroup
  memory_model,         ///< the Vulkan memory model
};

/// "float64".
WYE_API std::string_view name(Feature feature) noexcept;

/// A set of features.
class Features {
 public:
  constexpr Features() = default;
  constexpr Features(std::initializer_list<Feature> list) {
    for (Feature f : list) bits_ |= bit(f);
  }
  constexpr bool has(Feature f) const { return (bits_ & bit(f)) != 0; }
  constexpr void add(Feature f) { bits_ |= bit(f); }
  constexpr bool contains(Features other) const { return (other.bits_ & ~bits_) == 0; }
  /// What is in this set and not in `other`.
  constexpr Features without(Features other) const {
    Features rest;
    rest.bits_ = bits_ & ~other.bits_;
    return rest;
  }
  /// What is in this set or in `other`.
  constexpr Features with(Features other) const {
    Features both;
    both.bits_ = bits_ | other.bits_;
    return both;
  }
  constexpr bool empty() const { return bits_ == 0; }
  friend constexpr bool operator==(Features, Features) = default;

 private:
  static constexpr std::uint64_t bit(Feature f) { return std::uint64_t{1} << static_cast<unsigned>(f); }
  std::uint64_t bits_ = 0;
};

/// "float64, int64".
WYE_API std::string to_string(Features features);

}  // namespace v0
}  // namespace wye
