#pragma once
/// The texts that wyec makes of a kernel, and how they become files.
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include <wye/kernel/compile.hpp>

#include "command_line.hpp"

namespace wyec {

/// What a kernel expects, as JSON.
std::string json(const Command& command, const wye::Compiled& kernel);

/// A C++ header with a function that makes the kernel. `text` is its source, where it is to be compiled at run
/// time.
std::string header(const Command& command, const wye::Compiled& kernel, const std::optional<wye::Glsl>& text);

/// "OUT: IN ...", for make and ninja.
std::string dependencies(const std::string& output, const std::vector<std::string>& inputs);

/// Writes a file whole or not at all; says why it could not.
std::optional<std::string> write_file(const std::string& path, std::string_view content);

}  // namespace wyec
