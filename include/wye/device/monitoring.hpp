#pragma once
/// What a device's own monitor says of it.
#include <wye/base/bytes.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace wye {
inline namespace v0 {

/// A number, or the reason why there is none.
template <class T>
struct Reading {
  std::optional<T> value = std::nullopt;
  std::string absence = {};  ///< a sentence; empty where there is a value
};

/// The state of a piece of hardware, whoever uses it, at the moment of asking.
struct Monitoring {
  std::string device;                         ///< "cuda:0"
  Reading<Bytes> memory_total;                ///< of the hardware
  Reading<Bytes> memory_used;                 ///< by all processes, and by the driver
  Reading<double> utilization;                ///< part of the time just past in which any kernel ran, 0 to 1
  Reading<double> temperature;                ///< degrees Celsius
  Reading<std::uint64_t> corrected_errors;    ///< of its memory, found by ECC since the driver was loaded
  Reading<std::uint64_t> uncorrected_errors;  ///< and those that ECC could not correct
};

}  // namespace v0
}  // namespace wye
