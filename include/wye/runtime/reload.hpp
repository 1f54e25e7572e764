#pragma once
/// What a runtime tells of kernels whose files change.
#include <wye/base/clock.hpp>
#include <wye/base/error.hpp>

#include <functional>
#include <optional>
#include <string>

namespace wye {
inline namespace v0 {

/// What became of one kernel after its file, or a file it includes, was saved.
struct Reload {
  std::string kernel;
  std::optional<Error> error = std::nullopt;  ///< why it stays what it was; unset: jobs run what the file has
  Duration took{};                            ///< reading it, and compiling it for the devices that use it
};

/// Called on a thread of the runtime's, under no lock of wye's. It may use the runtime. What it throws is lost.
using ReloadSink = std::function<void(const Reload&)>;

}  // namespace v0
}  // namespace wye
