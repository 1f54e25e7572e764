#include "command_line.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>

namespace wyec {

const char usage[] = R"(wyec compiles kernels without a device.

wyec compile FILE -o OUT    writes SPIR-V, a cubin or PTX
wyec reflect FILE [-o OUT]  writes what a kernel expects, as JSON
wyec embed FILE... -o OUT   writes a C++ header that has the kernel in it, with each FILE as a source
wyec bundle [DIR] -o OUT    packs the kernels of a cache directory, to be shipped
wyec cache ls [DIR]         lists what lies in a cache directory, used last first
wyec cache verify [DIR]     says which of it is damaged
wyec cache trim [DIR]       removes what was used longest ago; give --bytes, --files or both
wyec cache clear [DIR]      removes everything

  -o, --output FILE       where to write
  -D NAME[=VALUE]         defines a macro (VALUE is 1 where none is given)
  -I DIR                  includes from DIR too; FILE's own folder is looked in first
  --entry NAME            the function to begin with (main; of Slang, the only one marked [shader("compute")]; of
                          CUDA, the kernel's name)
  --language LANGUAGE     glsl, slang, spirv, cuda, ptx or cubin; else as FILE ends: .comp and .glsl, .slang, .spv,
                          .cu, .ptx, .cubin
  --target TARGET         what to compile for: spirv; of CUDA C++ and Slang sm_90 (a cubin) or compute_90 (PTX), and such; embed
                          takes several
  --nvrtc FILE            compiles CUDA C++ with this NVRTC: drivers take PTX of one that is not newer than they are
  --depfile FILE          writes what OUT depends on, for make and ninja
  --as FORM               of embed: code, or text that is compiled at run time (CUDA C++ without a target is text)
  --name NAME             the kernel's name, in messages and of embed's function (as FILE is called)
  --namespace NAME        of embed: the function's namespace (kernels)
  --manifest FILE         of bundle: only the kernels that a manifest names
  --bytes N               of cache trim: what may stay, as 536870912 or 512MiB
  --files N               of cache trim: how many may stay
  --help, --version

DIR is the user's own cache where none is given: WYE_CACHE_DIR, XDG_CACHE_HOME/wye or HOME/.cache/wye.
Errors go to standard error, as FILE:LINE: error: TEXT where a line is known. Status: 0 done, 1 failed, 2 misused.
)";

namespace {

bool is_identifier(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !name.empty() && letter(name.front()) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

/// Words that cannot name a function of C++.
bool is_word_of_cpp(const std::string& name) {
  static const std::set<std::string, std::less<>> words{
      "alignas",     "alignof",  "and",        "and_eq",    "asm",       "auto",         "bitand",
      "bitor",       "bool",     "break",      "case",      "catch",     "char",         "char16_t",
      "char32_t",    "char8_t",  "class",      "co_await",  "co_return", "co_yield",     "compl",
      "concept",     "const",    "const_cast", "consteval", "constexpr", "constinit",    "continue",
      "decltype",    "default",  "delete",     "do",        "double",    "dynamic_cast", "else",
      "enum",        "explicit", "export",     "extern",    "false",     "float",        "for",
      "friend",      "goto",     "if",         "inline",    "int",       "long",         "mutable",
      "namespace",   "new",      "noexcept",   "not",       "not_eq",    "nullptr",      "operator",
      "or",          "or_eq",    "private",    "protected", "public",    "register",     "reinterpret_cast",
      "requires",    "return",   "short",      "signed",    "sizeof",    "static",       "static_assert",
      "static_cast", "struct",   "switch",     "template",  "this",      "thread_local", "throw",
      "true",        "try",      "typedef",    "typeid",    "typename",  "union",        "unsigned",
      "using",       "virtual",  "void",       "volatile",  "wchar_t",   "while",        "wye",
      "xor",         "xor_eq"};
  return words.count(name) != 0;
}

std::optional<Language> language_of(const std::string& path) {
  if (path.ends_with(".comp") || path.ends_with(".glsl")) return Language::glsl;
  if (path.ends_with(".slang")) return Language::slang;
  if (path.ends_with(".spv")) return Language::spirv;
  if (path.ends_with(".cu")) return Language::cuda;
  if (path.ends_with(".ptx")) return Language::ptx;
  if (path.ends_with(".cubin")) return Language::cubin;
  return std::nullopt;
}

std::string in_quotes(const std::string& text) { return "'" + text + "'"; }

/// "spirv", or "sm_90", "compute_90a" and such.
bool is_target(std::string_view name) {
  if (name == "spirv") return true;
  for (const std::string_view prefix : {"sm_", "compute_"})
    if (name.starts_with(prefix) && name.size() > prefix.size() && name[prefix.size()] >= '1' &&
        name[prefix.size()] <= '9')
      return true;
  return false;
}

/// Reads the arguments of one call.
class Parser {
 public:
  explicit Parser(const std::vector<std::string>& arguments) : rest_(arguments) {}

  std::variant<Command, Misuse> run() {
    for (const std::string& argument : rest_) {
      if (argument == "--help" || argument == "-h") return Command{.action = Action::help};
      if (argument == "--version") return Command{.action = Action::version};
    }
    if (rest_.empty()) return Misuse{"Nothing is asked for."};
    if (const std::string& verb = rest_.front(); verb == "compile")
      command_.action = Action::compile;
    else if (verb == "reflect")
      command_.action = Action::reflect;
    else if (verb == "embed")
      command_.action = Action::embed;
    else if (verb == "bundle")
      command_.action = Action::bundle;
    else if (verb == "cache")
      take_cache_verb();
    else
      return Misuse{"'" + verb + "' is not compile, reflect, embed, bundle or cache."};
    if (misuse_.empty()) read_options();
    if (misuse_.empty()) command_.action >= Action::bundle ? check_for_directory() : check();
    if (!misuse_.empty()) return Misuse{misuse_};
    return command_;
  }

 private:
  void take_cache_verb() {
    static const std::vector<std::pair<std::string, Action>> verbs{{"ls", Action::cache_ls},
                                                                   {"verify", Action::cache_verify},
                                                                   {"trim", Action::cache_trim},
                                                                   {"clear", Action::cache_clear}};
    const std::string verb = rest_.size() > 1 ? rest_[1] : std::string();
    for (const auto& [name, action] : verbs)
      if (verb == name) command_.action = action;
    if (command_.action == Action::help) misuse_ = in_quotes(verb) + " is not ls, verify, trim or clear.";
  }

  bool is_on_directory() const { return command_.action >= Action::bundle; }

  /// Reads the options of the verb and the names of the files or of the directory.
  void read_options() {
    Command& c = command_;
    const bool embeds = c.action == Action::embed, packs = c.action == Action::bundle;
    CLI::App app;
    app.set_help_flag();
    app.allow_extras();
    const auto one = [&](const char* option, std::string& value) {
      app.add_option(option, value)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    };
    const auto many = [&](const char* option, std::vector<std::string>& values) {
      app.add_option(option, values)->allow_extra_args(false);
    };
    std::vector<std::string> names, macros;
    std::string language, form, bytes, files;
    if (!is_on_directory() || packs) one("-o,--output", c.output);
    if (packs) one("--manifest", c.manifest);
    if (c.action == Action::cache_trim) {
      one("--bytes", bytes);
      one("--files", files);
    }
    if (!is_on_directory()) {
      many("-D", macros);
      many("-I", c.include_directories);
      many("--target", c.targets);
      one("--entry", c.entry);
      one("--depfile", c.depfile);
      one("--nvrtc", c.nvrtc);
      one("--language", language);
      one("--name", c.name);
    }
    if (embeds) {
      one("--as", form);
      one("--namespace", c.space);
    }
    const std::size_t verbs = c.action >= Action::cache_ls ? 2 : 1;
    const std::string verb = verbs == 2 ? rest_[0] + " " + rest_[1] : rest_[0];
    try {
      app.parse(std::vector<std::string>(rest_.rbegin(), rest_.rend() - static_cast<std::ptrdiff_t>(verbs)));
    } catch (const CLI::ParseError&) {
      return fail("Option " + in_quotes(rest_.back()) + " has no value.");
    }
    std::vector<std::string> extras = app.remaining();
    for (std::string& rest : extras) {
      if (rest.size() > 1 && rest.front() == '-')
        return fail("Option " + in_quotes(rest) + " is not one of " + verb + ".");
      names.push_back(std::move(rest));
    }
    for (const CLI::Option* option : app.get_options()) check(*option, embeds);
    for (const std::string& target : c.targets)
      if (!is_target(target))
        return fail("Target " + in_quotes(target) +
                    " is unknown; valid targets are like 'spirv', 'sm_90' and 'compute_90'.");
    choose(language_, "--language", language,
           {{"glsl", Language::glsl},
            {"slang", Language::slang},
            {"spirv", Language::spirv},
            {"cuda", Language::cuda},
            {"ptx", Language::ptx},
            {"cubin", Language::cubin}});
    std::optional<Embed> embed;
    choose(embed, "--as", form, {{"code", Embed::code}, {"text", Embed::text}});
    c.embed = embed.value_or(Embed::code);
    count(c.bytes, "--bytes", bytes);
    count(c.files, "--files", files);
    for (const std::string& macro : macros) define(macro);
    take_names(names);
  }

  void check(const CLI::Option& option, bool embeds) {
    const std::string name =
        option.get_snames().empty() ? option.get_name() : "-" + option.get_snames().front();
    const bool once = option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeLast ||
                      (name == "--target" && !embeds);
    if (once && option.count() > 1) fail("Option " + in_quotes(name) + " is given twice.");
    for (const std::string& value : option.results())
      if (value.empty()) fail("Option " + in_quotes(name) + " has no value.");
  }

  void take_names(const std::vector<std::string>& names) {
    if (!misuse_.empty()) return;
    const bool of_directory = is_on_directory();
    for (const std::string& name : names)
      if (name.empty())
        return fail("The name of the " + std::string(of_directory ? "directory" : "file to read") +
                    " is empty.");
    if (names.size() > 1 && command_.action != Action::embed)
      return fail("There are two " + std::string(of_directory ? "directories" : "files to read") + ": " +
                  in_quotes(names[0]) + " and " + in_quotes(names[1]) + ".");
    if (of_directory && !names.empty()) command_.directory = names[0];
    if (!of_directory)
      for (const std::string& name : names) command_.inputs.push_back({name});
  }

  /// Reads a whole number, of --bytes with a unit.
  void count(std::optional<std::uint64_t>& where, const std::string& option, const std::string& text) {
    if (text.empty() || !misuse_.empty()) return;
    const bool of_bytes = option == "--bytes";
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const std::string unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
    std::optional<unsigned> shift;
    if (unit.empty() || (of_bytes && unit == "B")) shift = 0;
    if (of_bytes && unit == "KiB") shift = 10;
    if (of_bytes && unit == "MiB") shift = 20;
    if (of_bytes && unit == "GiB") shift = 30;
    if (error != std::errc() || !shift || value > (~std::uint64_t{0} >> *shift)) {
      misuse_ = "The value of " + option + " (" + in_quotes(text) + ") is not a whole number" +
                (of_bytes ? " of bytes such as 536870912 or 512MiB." : ".");
      return;
    }
    where = value << *shift;
  }

  void check_for_directory() {
    if (command_.action == Action::bundle && command_.output.empty())
      return fail("There is no file to write: give -o.");
    if (command_.action == Action::cache_trim && !command_.bytes && !command_.files)
      return fail("Nothing says what may stay: give --bytes, --files or both.");
  }

  template <class T>
  void choose(std::optional<T>& where, const std::string& option, const std::string& text,
              const std::vector<std::pair<std::string, T>>& choices) {
    if (text.empty() || !misuse_.empty()) return;
    std::string known;
    for (const auto& [name, choice] : choices) {
      if (text == name) where = choice;
      known += (known.empty() ? "" : " or ") + in_quotes(name);
    }
    if (!where) fail("The value of " + option + " (" + in_quotes(text) + ") is not " + known + ".");
  }

  void define(const std::string& macro) {
    if (!misuse_.empty()) return;
    const std::size_t equals = std::min(macro.find('='), macro.size());
    wye::Macro made{macro.substr(0, equals), equals == macro.size() ? "1" : macro.substr(equals + 1)};
    const auto identifier = [](const std::string& name) { return name.substr(0, name.find('(')); };
    if (!is_identifier(identifier(made.name))) {  // the library checks the parameters of a macro
      misuse_ = "Macro " + in_quotes(made.name) + " is not an identifier.";
      return;
    }
    for (const wye::Macro& other : command_.macros)
      if (identifier(other.name) == identifier(made.name))
        misuse_ = "Macro " + in_quotes(made.name) + " is defined twice.";
    command_.macros.push_back(std::move(made));
  }

  void check() {
    Command& c = command_;
    if (c.inputs.empty()) return fail("There is no file to read.");
    if (language_ && c.inputs.size() > 1) return fail("Of several files each one's name says the language.");
    for (Input& input : c.inputs) {
      const auto language = language_ ? language_ : language_of(input.path);
      if (!language)
        return fail("The language of " + in_quotes(input.path) +
                    " is not known by its name: give --language.");
      for (const Input& other : c.inputs)
        if (&other < &input && other.language == *language)
          return fail("Files " + in_quotes(other.path) + " and " + in_quotes(input.path) +
                      " are of one language.");
      input.language = *language;
      const bool text =
          *language == Language::glsl || *language == Language::slang || *language == Language::cuda;
      if (!text && c.inputs.size() == 1) {
        const std::string name = *language == Language::spirv ? "SPIR-V"
                                 : *language == Language::ptx ? "PTX"
                                                              : "a cubin";
        if (!c.macros.empty() || !c.include_directories.empty())
          return fail("Neither macros nor include folders mean anything to " + name + ".");
        if (c.embed == Embed::text)
          return fail((name == "a cubin" ? "A cubin" : name) + " has no text to embed.");
      }
    }
    if (c.output.empty() && c.action != Action::reflect) return fail("There is no file to write: give -o.");
    if (c.output.empty() && !c.depfile.empty())
      return fail("Without a file to write, nothing can depend: give -o.");
    for (const std::string& written : {c.output, c.depfile})
      for (const Input& input : c.inputs)
        if (written == input.path) return fail("File " + in_quotes(input.path) + " would be written over.");
    if (!c.output.empty() && c.output == c.depfile)
      return fail("File " + in_quotes(c.output) + " would be written twice.");
    const std::string file = file_name(c.inputs[0].path);
    if (c.name.empty()) c.name = file.substr(0, file.find('.'));
    if (c.action == Action::embed) return check_names();
    if (c.name.empty()) c.name = file;
  }

  void check_names() {
    if (!is_identifier(command_.name) || is_word_of_cpp(command_.name))
      return fail(in_quotes(command_.name) + " cannot name a function of C++: give --name.");
    std::string_view space = command_.space;
    for (bool last = false; !last;) {
      const std::size_t end = space.find("::");
      last = end == space.npos;
      const std::string part(space.substr(0, end));
      if (!is_identifier(part) || is_word_of_cpp(part))
        return fail(in_quotes(command_.space) + " cannot name a namespace of C++.");
      if (!last) space.remove_prefix(end + 2);
    }
  }

  /// Keeps the first sentence.
  void fail(std::string sentence) {
    if (misuse_.empty()) misuse_ = std::move(sentence);
  }

  const std::vector<std::string>& rest_;
  std::optional<Language> language_;
  Command command_;
  std::string misuse_;
};

}  // namespace

std::string file_name(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == path.npos ? path : path.substr(slash + 1);
}

std::variant<Command, Misuse> parse(const std::vector<std::string>& arguments) {
  return Parser(arguments).run();
}

}  // namespace wyec
