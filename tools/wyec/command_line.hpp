#pragma once
/// The command line of wyec.
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>
#include <wye/kernel/source.hpp>

namespace wyec {

enum class Action {
  compile,
  reflect,
  embed,
  bundle,
  cache_ls,
  cache_verify,
  cache_trim,
  cache_clear,
  help,
  version,
};
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
  std::string entry = {};  ///< empty: "main" of a shader, of Slang its only one, otherwise the kernel's name
  std::vector<wye::Macro> macros = {};
  std::vector<std::string> include_directories = {};
  std::string depfile = {};
  std::string nvrtc = {};  ///< the file of the compiler of CUDA C++; empty: the newest that is found
  Embed embed = Embed::code;
  std::string name = {};  ///< of the kernel
  std::string space = "kernels";
  std::string directory = {};  ///< of `bundle` and `cache`; empty: the user's own
  std::string manifest = {};
  std::optional<std::uint64_t> bytes = {};  ///< of `cache_trim`
  std::optional<std::uint64_t> files = {};
};

/// The reason why arguments are wrong, as a sentence.
struct Misuse {
  std::string sentence;
};

/// The last part of a path.
std::string file_name(const std::string& path);

std::variant<Command, Misuse> parse(const std::vector<std::string>& arguments);

extern const char usage[];

}  // namespace wyec
