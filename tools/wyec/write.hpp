#pragma once
/// The texts that wyec makes of a kernel, and the files that it writes.
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>
#include <wye/kernel/compile.hpp>

#include "command_line.hpp"

namespace wyec {

/// One source of a kernel. `text` is set if it is compiled at run time.
struct Part {
  Language language = Language::glsl;
  std::string target = {};
  std::optional<wye::Compiled> compiled = {};  ///< none if there is no compiler for a text
  std::variant<std::monostate, wye::Glsl, wye::Slang, wye::CudaCpp> text = {};
};

/// Returns the interface of a kernel as JSON.
std::string json(const Command& command, const Part& part);

/// A C++ header with a function that makes the kernel.
std::string header(const Command& command, const std::vector<Part>& parts);

/// Runs a command on a cache directory; returns the program's status.
wye::Result<int> run_on_directory(const Command& command);

/// "OUT: IN ...", for make and ninja.
std::string dependencies(const std::string& output, const std::vector<std::string>& inputs);

/// Writes a file completely or not at all; returns the reason if it could not.
std::optional<std::string> write_file(const std::string& path, std::string_view content);

}  // namespace wyec
