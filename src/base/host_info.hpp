#pragma once
/// What the machine is: its processor, its memory, its name for itself.
#include <wye/base/bytes.hpp>

#include <array>
#include <cstdint>
#include <string>

namespace wye {
inline namespace v0 {
namespace base {

struct HostInfo {
  std::string processor;  ///< "AMD EPYC"; "CPU" where the system does not say
  Bytes memory;           ///< what this process may use: physical, or less by its control group
  std::array<std::uint8_t, 16>
      machine{};  ///< the same on every run on this machine; zero where it has no identity
};

/// Asks the system.
/// Threads: thread-safe.
/// Cost:    a few small files.
HostInfo host_info();

/// What could be allocated now without swapping, as the system estimates it.
Bytes available_memory();

}  // namespace base
}  // namespace v0
}  // namespace wye
