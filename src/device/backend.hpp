#pragma once
/// The table of backends. It is written by the build from the folders it finds in src/backend.
#include <memory>
#include <span>
#include <string_view>

#include "device/contract.hpp"

namespace wye {
inline namespace v0 {
namespace device {

struct BackendEntry {
  std::string_view name;
  std::unique_ptr<Backend> (*make)();
};

/// All backends of this build, in alphabetical order.
std::span<const BackendEntry> backend_table() noexcept;

}  // namespace device
}  // namespace v0
}  // namespace wye
