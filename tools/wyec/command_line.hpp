#pragma once
/// What wyec is asked to do.
#include <string>
#include <variant>
#include <vector>
#include <wye/kernel/source.hpp>

namespace wyec {

enum class Action { compile, reflect, embed, help, version };
enum class Language { glsl, slang, spirv, cuda, ptx, cubin };
enum class Embed { code, text };

struct Input {
  std::string path;
  Language language = Language::glsl;
};

struct Command {
  Action action = Action::help;
  std::vector<Input> inputs = {};  ///< several: sources of one kernel, to be embedded
  std::string output = {};         ///< empty: standard output, which `reflect` alone may write to
  std::vector<std::string> targets = {};
  std::string entry = {};  ///< empty: "main" of a shader, of Slang its only one, else the kernel's name
  std::vector<wye::Macro> macros = {};
  std::vector<std::string> include_directories = {};
  std::string depfile = {};
  Embed embed = Embed::code;
  std::string name = {};  ///< of the kernel
  std::string space = "kernels";
};

/// Why arguments mean nothing, as a sentence.
struct Misuse {
  std::string sentence;
};

/// The last part of a path.
std::string file_name(const std::string& path);

std::variant<Command, Misuse> parse(const std::vector<std::string>& arguments);

extern const char usage[];

}  // namespace wyec
