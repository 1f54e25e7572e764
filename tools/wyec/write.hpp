#pragma once
/// The texts that wyec makes of a kernel, and how they become files.
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>
#include <wye/kernel/compile.hpp>

#include "command_line.hpp"

namespace wyec {

/// One source of a kernel. `text` is it where it is to be compiled at run time.
struct Part {
  Language language = Language::glsl;
  std::string target = {};
  std::optional<wye::Compiled> compiled = {};  ///< none where there is no compiler for a text
  std::variant<std::monostate, wye::Glsl, wye::Slang, wye::CudaCpp> text = {};
};

/// What a kernel expects, as JSON.
std::string json(const Command& command, const Part& part);

/// A C++ header with a function that makes the kernel.
std::string header(const Command& command, const std::vector<Part>& parts);

/// Does what is asked of a cache directory; the program's status.
wye::Result<int> look_after(const Command& command);

/// "OUT: IN ...", for make and ninja.
std::string dependencies(const std::string& output, const std::vector<std::string>& inputs);

/// Writes a file whole or not at all; says why it could not.
std::optional<std::string> write_file(const std::string& path, std::string_view content);

}  // namespace wyec
