#pragma once
/// Reads the options of a runtime from environment variables. No other source of the library reads
/// the environment.
#include <wye/base/result.hpp>
#include <wye/runtime/options.hpp>

#include <functional>
#include <optional>
#include <string>

namespace wye::inline v0::runtime {

/// Returns the value of a variable: `process_environment`, or a test's table.
using Environment = std::function<std::optional<std::string>(const char* name)>;
std::optional<std::string> process_environment(const char* name);

/// Implements `RuntimeOptions::from_environment`.
Result<RuntimeOptions> read_environment(const Environment& environment);

}  // namespace wye::runtime
