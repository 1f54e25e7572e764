#include "command_line.hpp"

#include <sys/stat.h>

#include <cstddef>

#include "text.hpp"

namespace document_network {
namespace {

enum class Kind { missing, folder, file, other };

Kind kind_of(const std::string& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0) return Kind::missing;
  return S_ISDIR(about.st_mode) ? Kind::folder : S_ISREG(about.st_mode) ? Kind::file : Kind::other;
}

/// Returns the errors in the paths that can be found before any work.
std::optional<Mistake> check(const Options& options) {
  if (options.documents) {
    const Kind kind = kind_of(*options.documents);
    if (kind == Kind::missing)
      return Mistake{"Folder '" + printable(*options.documents) + "' (--documents) does not exist."};
    if (kind != Kind::folder)
      return Mistake{"'" + printable(*options.documents) + "' (--documents) is not a folder."};
  }
  const Kind out = kind_of(options.out);
  if (out != Kind::missing && out != Kind::folder)
    return Mistake{"'" + printable(options.out) + "' (--out) is not a folder."};
  if (options.json && kind_of(*options.json) == Kind::folder)
    return Mistake{"'" + printable(*options.json) + "' (--json) is a folder, not a file."};
  return std::nullopt;
}

}  // namespace

std::variant<Options, Help, Mistake> read_command_line(const std::vector<std::string>& arguments) {
  Options options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const std::size_t equals = argument.rfind("--", 0) == 0 ? argument.find('=') : std::string::npos;
    const std::string flag = argument.substr(0, equals);
    if (flag == "--help" || flag == "-h") return Help{};
    if (flag == "--compare") {
      if (equals != std::string::npos) return Mistake{"--compare takes no value."};
      options.compare = true;
      continue;
    }
    std::string* value = flag == "--backend"     ? &options.backend
                         : flag == "--out"       ? &options.out
                         : flag == "--json"      ? &options.json.emplace()
                         : flag == "--documents" ? &options.documents.emplace()
                                                 : nullptr;
    if (!value) return Mistake{"Unknown argument '" + printable(argument) + "'."};
    if (equals != std::string::npos)
      *value = argument.substr(equals + 1);
    else if (i + 1 < arguments.size() && arguments[i + 1].rfind("--", 0) != 0)
      *value = arguments[++i];
    else
      return Mistake{flag + " needs a value."};
    if (value->empty()) return Mistake{flag + " needs a value that is not empty."};
  }
  if (auto mistake = check(options)) return std::move(*mistake);
  return options;
}

std::string help_text() {
  return R"(Compares, ranks, dates and draws documents, on whatever this machine has.

document_network [--documents DIR] [--backend NAME] [--compare] [--out DIR] [--json FILE]

  --documents DIR  read every text in DIR and the folders in it
                   (default: this machine's licence texts and copyright files)
  --backend NAME   auto, cpu, vulkan, cuda, or a device such as vulkan:0 (default: auto)
  --compare        run every step on all backends, and show how far they agree with the CPU
  --out DIR        where the pictures go (default: document_network_report)
  --json FILE      write what was done and found to FILE
  --help           show this

The exit status is 0 if every step ran (and, with --compare, all backends agree), 2 if an argument
is wrong, else 1.
)";
}

}  // namespace document_network
