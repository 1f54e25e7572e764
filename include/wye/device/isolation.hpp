#pragma once
/// How much of a device an opened one may use.
#include <cstdint>

namespace wye {
inline namespace v0 {

/// What keeps the work of this runtime from that of others on the same device.
enum class Isolation : std::uint8_t {
  shared,     ///< nothing: it runs on all of the device, as everybody's does
  partition,  ///< some of its multiprocessors are used, and no others: CUDA's green contexts
};

/// The part of a device that `Isolation::partition` takes; half of it where nothing is said. Drivers divide in steps (of 8
/// multiprocessors on compute capability 9.0): it is at least this large.
struct Partition {
  std::uint32_t multiprocessors = 0;  ///< a number of them, or
  std::uint32_t percent = 0;          ///< a share of those there are, 1 to 100
  friend bool operator==(const Partition&, const Partition&) = default;
};

}  // namespace v0
}  // namespace wye
