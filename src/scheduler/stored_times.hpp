#pragma once
/// Times of jobs on a device, as they are stored.
#include <wye/base/clock.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/timing.hpp"

namespace wye::inline v0::scheduler {

/// Threads: a value.
struct StoredTimes {
  struct Row {
    std::uint16_t size_class = 0;
    Timing held, share;  ///< as those of `TimeBook::Times`
    friend bool operator==(const Row&, const Row&) = default;
  };
  /// The jobs of some kernels.
  struct Kernels {
    std::uint64_t number = 0;  ///< a part of `ProgramDigests::stored`
    Duration run{};            ///< how long jobs have run, on all devices
    Duration run_before{};     ///< the same, when one last ended on this device
    std::vector<Row> rows;
    friend bool operator==(const Kernels&, const Kernels&) = default;
  };
  /// A variant, for calls of a shape.
  struct Variant {
    std::uint64_t number = 0;
    std::uint16_t size_class = 0;
    Timing time;
    friend bool operator==(const Variant&, const Variant&) = default;
  };
  std::vector<Kernels> kernels;  ///< the last used ones first
  std::vector<Variant> variants;
  friend bool operator==(const StoredTimes&, const StoredTimes&) = default;

  /// The most rows and variants that are stored for a device.
  static constexpr std::size_t most = 10'000;
};

/// Returns the bytes of times, the same on every machine.
std::vector<std::byte> encode(const StoredTimes& times);
/// Returns the times of the output of `encode`; nothing for all other bytes, also of other versions.
/// Reads nothing outside `bytes`.
std::optional<StoredTimes> decode_times(std::span<const std::byte> bytes);
/// Returns `later`, and after that the times of `earlier` that it has not, up to `StoredTimes::most`.
StoredTimes merge(StoredTimes later, const StoredTimes& earlier);

}  // namespace wye::scheduler
