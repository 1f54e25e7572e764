#include "kernel/compilers/slang.hpp"

#include <cstring>
#include <mutex>
#include <span>

#include "base/float_environment.hpp"
#include "base/process.hpp"
#include "base/text.hpp"

#if WYE_WITH_SLANG
#include <wye/base/dynamic_library.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "base/file.hpp"
#include "kernel/compilers/diagnostics.hpp"
#include "kernel/compilers/glsl.hpp"
#include "kernel/compilers/nesting.hpp"
#include "kernel/compilers/slang_abi.hpp"
#include "kernel/compilers/slang_layout.hpp"
#endif

namespace wye::inline v0::kernel {

#if WYE_WITH_SLANG

namespace {

constexpr std::string_view library_name = "libslang-compiler.so";
/// The oldest release with the numbering of options that later releases keep.
const std::vector<unsigned> oldest_release{2026, 5};

/// Returns 2026, 12, 1 for "v2026.12.1-7-g0ab".
std::vector<unsigned> numbers(std::string_view text) {
  std::vector<unsigned> result;
  if (text.starts_with('v')) text.remove_prefix(1);
  for (bool more = true; more;) {
    unsigned number = 0;
    std::size_t digits = 0;
    for (; digits < std::min<std::size_t>(text.size(), 9) && text[digits] >= '0' && text[digits] <= '9';
         ++digits)
      number = number * 10 + static_cast<unsigned>(text[digits] - '0');
    if (digits == 0) break;
    result.push_back(number);
    more = digits < text.size() && text[digits] == '.';
    text.remove_prefix(std::min(digits + 1, text.size()));
  }
  return result;
}

/// The opened library.
struct Library {
  DynamicLibrary library;
  std::string folder = {};
  std::string release = {};  ///< "2026.12"
  bool optimizes = false;    ///< the library of spirv-opt is in the same folder

  slang::Status (*create_global_session)(const slang::GlobalOptions*, slang::GlobalSession**) = nullptr;
  slang::Blob* (*create_blob)(const void* data, std::size_t size) = nullptr;
  unsigned (*parameter_count)(slang::Layout*) = nullptr;
  slang::Parameter* (*parameter)(slang::Layout*, unsigned index) = nullptr;
  const char* (*entry_name)(slang::Entry*) = nullptr;
  void (*group_size)(slang::Entry*, std::uint64_t dimensions, std::uint64_t* size) = nullptr;
  SlangLayouts layouts = {};
};

/// Opens the library by its name. The library of a wheel has its release in the name; the newest is
/// taken.
Result<DynamicLibrary> open_library() {
  std::vector<std::string> found = DynamicLibrary::find(library_name);
  const auto release = [](const std::string& path) {
    const std::size_t at = path.rfind(library_name) + library_name.size() + 1;
    return at < path.size() ? numbers(std::string_view(path).substr(at)) : std::vector{~0u};
  };
  std::stable_sort(found.begin(), found.end(),
                   [&](const std::string& a, const std::string& b) { return release(a) > release(b); });
  return DynamicLibrary::open(found.empty() ? library_name : std::string_view(found.front()));
}

Result<Library> find_library() {
  auto opened = open_library();
  if (!opened) return std::move(opened).error();
  opened->keep_loaded();
  Library library{std::move(*opened)};
  const std::string path = library.library.path();
  library.folder = path.substr(0, path.rfind('/'));

  const char* missing = nullptr;
  const auto find = [&](auto& function, const char* name) {
    function = library.library.function<std::remove_reference_t<decltype(function)>>(name);
    if (!function && !missing) missing = name;
  };
  const char* (*tag)() = nullptr;
  find(tag, "spGetBuildTagString");
  find(library.create_global_session, "slang_createGlobalSession2");
  find(library.create_blob, "slang_createBlob");
  find(library.parameter_count, "spReflection_GetParameterCount");
  find(library.parameter, "spReflection_GetParameterByIndex");
  find(library.entry_name, "spReflectionEntryPoint_getName");
  find(library.group_size, "spReflectionEntryPoint_getComputeThreadGroupSize");
  if (const char* const name = library.layouts.open(library.library); name && !missing) missing = name;
  if (missing)
    return Error(Errc::unavailable,
                 base::text("Library '{}' is not a supported Slang compiler: it has no function '{}'.", path,
                            missing));
  library.release = tag();
  if (numbers(library.release) < oldest_release)
    return Error(
        Errc::unavailable,
        base::text("The release of Slang compiler '{}' ('{}') is too old; wye requires 2026.5 or newer.",
                   path, library.release));
  if (const auto beside = base::list_directory(library.folder))
    library.optimizes = std::any_of(beside->begin(), beside->end(),
                                    [](const auto& name) { return name.starts_with("libslang-glslang"); });
  return library;
}

/// Returns the virtual folder of a place. It is so deep that "../x" does not leave it.
std::string folder_of(std::size_t place) { return base::text("{}/+/+/+/+/+/+/+/+", place); }

/// Returns the name of a text for Slang. The names shown in messages differ between machines.
std::string path_of(const SourceText& text) {
  return normal_path(folder_of(text.place) + "/" + (text.name.empty() ? "source.slang" : text.name));
}

/// A virtual file system for Slang, which contains only the texts that were read.
class Files : public slang::Object {
 public:
  Files(const Library& library, const std::vector<SourceText>& texts) : Object{functions}, library_(library) {
    for (std::size_t i = 1; i < texts.size(); ++i) files_.emplace(path_of(texts[i]), texts[i].text);
  }

 private:
  static slang::Status query(Files*, const void*, void** object) {
    *object = nullptr;
    return slang::no_interface;
  }
  static std::uint32_t count(Files*) { return 1; }
  static void* cast(Files*, const void*) { return nullptr; }
  static slang::Status load(Files* self, const char* path, slang::Blob** content) {
    *content = nullptr;
    try {
      const auto file = self->files_.find(normal_path(path));
      if (file == self->files_.end()) return slang::not_found;
      const std::string_view text = file->second.empty() ? "\n" : file->second;  // a blob cannot be empty
      *content = self->library_.create_blob(text.data(), text.size());
    } catch (const std::bad_alloc&) {
    }
    return *content ? slang::ok : slang::not_found;
  }
  static void* const functions[5];

  const Library& library_;
  std::map<std::string, std::string_view> files_;
};

void* const Files::functions[5] = {reinterpret_cast<void*>(&query), reinterpret_cast<void*>(&count),
                                   reinterpret_cast<void*>(&count), reinterpret_cast<void*>(&cast),
                                   reinterpret_cast<void*>(&load)};

/// Returns a link-time constant as a literal of Slang.
std::string literal(const LinkConstant& constant) {
  if (constant.type == "bool") return constant.bits != 0 ? "true" : "false";
  const auto as = [&](auto value) {
    std::memcpy(&value, &constant.bits, sizeof value);
    return value;
  };
  if (constant.type == "float") return base::text("{:.9e}f", as(float()));
  if (constant.type == "double") return base::text("{:.17e}L", as(double()));
  if (constant.type == "int") return base::text("int({})", as(std::int32_t()));
  if (constant.type == "int64_t") return base::text("int64_t({}LL)", as(std::int64_t()));
  if (constant.type == "uint64_t") return base::text("{}ULL", constant.bits);
  return base::text("{}u", constant.bits);
}

std::string exported(const std::vector<LinkConstant>& constants) {
  std::string text;
  for (const LinkConstant& constant : constants)
    text += base::text("export static const {} {} = {};\n", constant.type, constant.name, literal(constant));
  return text;
}

using Made = SlangCompiler::Made;

/// One compile. It destroys its Slang objects before the next compile begins.
class Compile {
 public:
  Compile(const Library& library, slang::GlobalSession* global, const Slang& source,
          const std::vector<SourceText>& texts, const std::string& kernel)
      : library_(library),
        global_(global),
        source_(source),
        texts_(texts),
        kernel_(kernel),
        files_(library, texts) {}

  Result<Made> run(SlangCompiler::Target target, std::vector<Diagnostic>* warnings) {
    auto code = make(target);
    if (code && warnings) *warnings = parse(Diagnostic::Severity::warning);
    return code;
  }

 private:
  using Messages = slang::Ref<slang::Blob>;

  Result<Made> make(SlangCompiler::Target target) {
    if (auto known = check_constants(); !known) return std::move(known).error();
    if (auto nesting = check_nesting(source_.text, texts_, kernel_); !nesting)
      return std::move(nesting).error();
    slang::Ref<slang::Blob> code;
    if (target == SlangCompiler::Target::module) {
      slang::Ref<slang::Session> session;
      auto module = load(target, session);
      if (!module) return std::move(module).error();
      if (slang::serialize(*module, code.out()) < 0 || !code) return fail("the module cannot be serialized");
      return Made{.code = std::string(slang::text_of(code))};
    }
    Linked linked;
    if (auto done = link(target, linked); !done) return std::move(done).error();
    if (library_.parameter_count(linked.layout) != 0) return refuse_global(linked.layout);
    if (target == SlangCompiler::Target::cuda)
      if (auto same = check_layouts(linked.layout); !same) return std::move(same).error();

    Messages code_messages;
    const slang::Status made =
        slang::entry_point_code(linked.program.get(), 0, 0, code.out(), code_messages.out());
    append_messages(code_messages);
    if (made < 0 || !code) return fail("no code can be generated");
    Made result{.code = std::string(slang::text_of(code))};
    if (slang::Entry* const launched = library_.layouts.entry(linked.layout, 0)) {
      result.entry = library_.entry_name(launched);
      std::uint64_t size[3] = {1, 1, 1};
      library_.group_size(launched, 3, size);
      result.workgroup = Extent3(size[0], size[1], size[2]);
    }
    return result;
  }

  /// The program linked for a target, and its session.
  struct Linked {
    slang::Ref<slang::Session> session = {};
    slang::Ref<slang::Component> program = {};
    slang::Layout* layout = nullptr;
  };

  Result<void> link(SlangCompiler::Target target, Linked& result) {
    const auto module = load(target, result.session);
    if (!module) return module.error();
    slang::Session* const session = result.session.get();
    slang::Ref<slang::EntryPoint> entry;
    if (auto done = find_entry(*module, entry); !done) return done;

    std::vector<slang::Component*> parts{*module, entry.get()};
    if (!source_.constants.empty()) {
      Messages messages;
      parts.push_back(slang::load_text(session, "wye_link_constants", "link constants.slang",
                                       exported(source_.constants).c_str(), messages.out()));
      append_messages(messages);
      if (!parts.back()) return fail("the link-time constants cannot be read");
    }
    slang::Ref<slang::Component> composed;
    Messages compose_messages, link_messages, layout_messages;
    const slang::Status whole = slang::compose(session, parts.data(), static_cast<std::int64_t>(parts.size()),
                                               composed.out(), compose_messages.out());
    append_messages(compose_messages);
    if (whole < 0 || !composed) return fail("its parts cannot be composed");
    const slang::Status linkage = slang::link(composed.get(), result.program.out(), link_messages.out());
    append_messages(link_messages);
    if (linkage < 0 || !result.program) return fail("it cannot be linked");

    result.layout = slang::layout(result.program.get(), 0, layout_messages.out());
    append_messages(layout_messages);
    if (!result.layout) return fail("its parameters have no layout");
    return {};
  }

  /// Checks constants here, because Slang ignores an exported constant that no module declares.
  Result<void> check_constants() const {
    for (const LinkConstant& constant : source_.constants) {
      bool named = !source_.module.empty() || outline(source_.text, constant.name).has_entry;
      for (std::size_t i = 1; i < texts_.size() && !named; ++i)
        named = outline(texts_[i].text, constant.name).has_entry;
      if (!named)
        return base::invalid(base::text("Kernel '{}' has no link-time constant '{}' in its Slang source.",
                                        kernel_, constant.name));
    }
    return {};
  }

  slang::Status open(SlangCompiler::Target target, slang::Ref<slang::Session>& session) {
    const slang::Option options[] = {
        {.name = slang::option_c_layout},
        {.name = slang::option_tabular},
        // Warnings about structs with both buffers and scalars, which Slang splits.
        {.name = slang::option_disable_warnings, .kind = 1, .text = "31106,31107"},
    };
    std::vector<std::string> folders;
    for (std::size_t place = 0; place < source_.include_directories.size() + 2; ++place)
      folders.push_back(folder_of(place));
    std::vector<const char*> paths;
    for (const std::string& folder : folders) paths.push_back(folder.c_str());
    std::vector<slang::Macro> macros;
    for (const Macro& macro : source_.macros)
      if (is_identifier(macro.name)) macros.push_back({macro.name.c_str(), macro.value.c_str()});

    slang::Target made;
    made.format = target == SlangCompiler::Target::cuda ? slang::format_cuda : slang::format_spirv;
    made.options = options;
    made.option_count = 1;
    made.line_directives = slang::no_line_directives;
    slang::SessionOptions wanted;
    wanted.targets = &made;
    wanted.target_count = 1;
    wanted.search_paths = paths.data();
    wanted.search_path_count = static_cast<std::int64_t>(paths.size());
    wanted.macros = macros.data();
    wanted.macro_count = static_cast<std::int64_t>(macros.size());
    wanted.file_system = &files_;
    wanted.options = options;
    wanted.option_count = std::size(options);
    return slang::create_session(global_, &wanted, session.out());
  }

  Result<slang::Module*> load(SlangCompiler::Target target, slang::Ref<slang::Session>& made) {
    if (open(target, made) < 0) return fail("a session cannot be made");
    slang::Session* const session = made.get();
    Messages messages;
    slang::Module* module = nullptr;
    const std::string path = path_of(texts_.front());
    if (source_.module.empty()) {
      // A session accepts no macros with parameters; they become lines of the text.
      std::string text;
      for (const Macro& macro : source_.macros)
        if (!is_identifier(macro.name)) text += base::text("#define {} {}\n", macro.name, macro.value);
      if (!text.empty()) text += "#line 1\n";
      text += source_.text;
      module = slang::load_text(session, "wye_kernel", path.c_str(), text.c_str(), messages.out());
    } else {
      const slang::Ref<slang::Blob> blob(library_.create_blob(source_.module.data(), source_.module.size()));
      if (blob) module = slang::load_module(session, "wye_kernel", path.c_str(), blob.get(), messages.out());
    }
    append_messages(messages);
    if (!module) return fail("the module cannot be read");
    return module;
  }

  Result<void> find_entry(slang::Module* module, slang::Ref<slang::EntryPoint>& entry) {
    if (source_.entry.empty()) {
      const std::int32_t count = slang::entry_point_count(module);
      if (count == 1 && slang::entry_point(module, 0, entry.out()) >= 0 && entry) return {};
      return fail(
          count == 0
              ? "no function is marked [shader(\"compute\")]; mark a function or name the entry point"
              : base::text("{} functions are entry points; name the entry point of the kernel", count));
    }
    Messages messages;
    const slang::Status found = slang::find_entry_point(module, source_.entry.c_str(), slang::stage_compute,
                                                        entry.out(), messages.out());
    append_messages(messages);
    if (found < 0 || !entry) return fail(base::text("there is no entry point '{}'", source_.entry));
    return {};
  }

  /// Refuses global parameters. On CUDA they would be one module constant, for which two streams
  /// would race.
  Error refuse_global(slang::Layout* layout) const {
    slang::Parameter* const first = library_.parameter(layout, 0);
    slang::Variable* const variable = first ? library_.layouts.variable(first) : nullptr;
    const char* const name = variable ? library_.layouts.variable_name(variable) : nullptr;
    return Error(
        Errc::unsupported,
        base::text("Kernel '{}' has a parameter{} outside its entry point; wye accepts parameters of the "
                   "entry point only.",
                   kernel_, base::parenthesized(name ? name : "")));
  }

  /// Compares struct layouts for Vulkan and CUDA. Structs have the layout of C, but CUDA aligns 2-
  /// and 4-vectors differently. Passes a source that compiles only for CUDA.
  Result<void> check_layouts(slang::Layout* cuda) {
    const std::string before = messages_;
    Linked vulkan;
    const bool linked = link(SlangCompiler::Target::spirv, vulkan).has_value();
    messages_ = before;
    if (!linked) return {};
    const std::string difference = library_.layouts.difference(vulkan.layout, cuda);
    if (difference.empty()) return {};
    return base::invalid(base::text("In the Slang source of kernel '{}', {}.", kernel_, difference));
  }

  void append_messages(const Messages& messages) {
    const std::string_view text = slang::text_of(messages);
    messages_ += text;
    if (!text.empty() && text.back() != '\n') messages_ += '\n';
  }

  /// Returns the diagnostics as an error, or `otherwise` if there are none.
  Error fail(std::string otherwise) const {
    std::vector<Diagnostic> errors = parse(Diagnostic::Severity::error);
    // Errors without a position (giving up, missing module) add nothing to those with a position.
    const auto placed = [](const Diagnostic& diagnostic) { return diagnostic.line != 0; };
    if (std::any_of(errors.begin(), errors.end(), placed))
      errors.erase(std::remove_if(errors.begin(), errors.end(), std::not_fn(placed)), errors.end());
    if (errors.empty()) errors.push_back({.file = texts_.front().shown, .text = std::move(otherwise)});
    return compile_error(kernel_, std::move(errors));
  }

  /// The fields of a line of Slang's diagnostics.
  struct Line {
    std::string_view code, kind, file, line, column, last_line, last_column, text;
  };

  std::vector<Diagnostic> parse(Diagnostic::Severity wanted) const {
    std::vector<Diagnostic> list;
    std::string_view rest = messages_, code;
    bool is_wanted = false;  // the following spans and notes belong to a wanted line
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      const Line line = fields(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
      if (line.kind == "span" || line.kind == "note") {
        if (is_wanted && line.code == code) add(line, list.back());
        continue;
      }
      code = line.code;
      const bool error = line.kind == "error" || line.kind == "fatal error" || line.kind == "internal error";
      is_wanted = wanted == Diagnostic::Severity::error ? error : line.kind == "warning";
      if (is_wanted) list.push_back(begin(line, wanted));
    }
    for (Diagnostic& diagnostic : list) diagnostic.text = base::clause(std::move(diagnostic.text));
    return list;
  }

  /// Splits a line at tabs. The last field may contain tabs.
  static Line fields(std::string_view text) {
    Line line;
    for (std::string_view* field :
         {&line.code, &line.kind, &line.file, &line.line, &line.column, &line.last_line, &line.last_column}) {
      const std::size_t tab = text.find('\t');
      if (tab == text.npos) return {};
      *field = text.substr(0, tab);
      text.remove_prefix(tab + 1);
    }
    line.text = text;
    return line;
  }

  Diagnostic begin(const Line& line, Diagnostic::Severity severity) const {
    const SourceText* const text = find(line.file);
    return {.file = text                ? text->shown
                    : line.file.empty() ? texts_.front().shown
                                        : std::string(line.file),
            .line = small_number(line.line).value_or(0),
            .column = small_number(line.column).value_or(0),
            .severity = severity,
            .text = std::string(line.text)};
  }

  const SourceText* find(std::string_view file) const {
    const std::string path = normal_path(file);
    const auto text =
        std::find_if(texts_.begin(), texts_.end(), [&](const auto& t) { return path_of(t) == path; });
    return text == texts_.end() ? nullptr : &*text;
  }

  /// Adds a span or a note to a message. The first line states the rule, spans state the case,
  /// notes give hints.
  void add(const Line& line, Diagnostic& diagnostic) const {
    if (line.text.empty()) return;
    if (line.kind == "note")
      diagnostic.text = base::text("{} ({})", base::clause(std::move(diagnostic.text)),
                                   base::clause(std::string(line.text)));
    else if (line.text.starts_with(diagnostic.text))
      diagnostic.text = line.text;
    else if (!diagnostic.text.starts_with(line.text))
      diagnostic.text = base::text("{}: {}", diagnostic.text, line.text);
    constexpr std::string_view cannot_open = "E00001", no_include = "E15300";
    if (line.code != cannot_open && line.code != no_include) return;
    if (const SourceText* text = find(line.file))
      for (const IncludeUse& use : text->uses)  // Slang does not report the searched paths
        if (use.text == 0 && line.text.find("'" + use.name + "'") != line.text.npos)
          diagnostic.text = base::text("'{}' cannot be included: {}", use.name, use.why);
  }

  const Library& library_;
  slang::GlobalSession* const global_;
  const Slang& source_;
  const std::vector<SourceText>& texts_;
  const std::string& kernel_;
  Files files_;
  std::string messages_;
};

class OpenedSlang final : public SlangCompiler {
 public:
  Result<std::string> build_id(Target target) const override {
    const Result<Library>& library = opened();
    if (!library) return library.error();
    // Without spirv-opt it generates different SPIR-V, and reports this only once.
    return base::text("Slang {}, C layout, row-major, {}", library->release,
                      target == Target::cuda ? "CUDA C++"
                      : library->optimizes   ? "SPIR-V, spirv-opt"
                                             : "SPIR-V");
  }

  Result<Made> compile(const Slang& source, const std::vector<SourceText>& texts, const std::string& kernel,
                       Target target, std::vector<Diagnostic>* warnings) const override {
    const base::DefaultFloatEnvironment environment;
    const Result<Library>& library = opened();
    if (!library) return library.error();
    return run_compiler([&]() -> Result<Made> {
      const std::lock_guard lock(compiling_);  // sessions of one global session race
      if (!global_)
        if (auto made = make_global(*library); !made) return std::move(made).error();
      auto made = Compile(*library, global_.get(), source, texts, kernel).run(target, warnings);
      if (made && target == Target::cuda) made->prelude = prelude_;
      return made;
    });
  }

 private:
  const Result<Library>& opened() const {
    const std::lock_guard lock(opening_);
    if (!opened_) opened_ = find_library();
    return *opened_;
  }

  Result<void> make_global(const Library& library) const {
    const slang::GlobalOptions options;
    slang::Ref<slang::GlobalSession> global;
    const slang::Status made = library.create_global_session(&options, global.out());
    if (made < 0 || !global)
      return Error(Errc::unavailable,
                   base::text("The Slang compiler '{}' cannot be started.", library.library.path()),
                   NativeError{"slang_createGlobalSession2", made, {}});
    for (const std::int32_t compiler : {slang::compiler_glslang, slang::compiler_spirv_opt})
      slang::set_compiler_path(global.get(), compiler, library.folder.c_str());
    if ((slang::check_compiler(global.get(), slang::compiler_spirv_opt) == slang::ok) != library.optimizes)
      return Error(
          Errc::unavailable,
          base::text("The Slang compiler in '{}' {} spirv-opt, which {} beside it.", library.folder,
                     library.optimizes ? "cannot open" : "opens", library.optimizes ? "is" : "is not"));
    // Includes the 300 KB prelude by name, so that not every kernel contains a copy.
    slang::Ref<slang::Blob> inlined;
    slang::prelude(global.get(), slang::language_cuda, inlined.out());
    prelude_ = slang::text_of(inlined);
    slang::set_prelude(global.get(), slang::language_cuda,
                       base::text("#include \"{}\"\n", cuda_prelude).c_str());
    global_ = std::move(global);
    return {};
  }

  mutable std::mutex opening_;
  mutable std::optional<Result<Library>> opened_;
  mutable std::mutex compiling_;
  mutable slang::Ref<slang::GlobalSession> global_;
  mutable std::string prelude_;
};

}  // namespace

#else

namespace {

class NoSlang final : public SlangCompiler {
 public:
  Result<std::string> build_id(Target) const override {
    return Error(Errc::unsupported, "This build of wye has no Slang compiler.");
  }
  Result<Made> compile(const Slang&, const std::vector<SourceText>&, const std::string&, Target,
                       std::vector<Diagnostic>*) const override {
    return build_id(Target::spirv).error();
  }
};
using OpenedSlang = NoSlang;

}  // namespace

#endif

Result<std::vector<std::uint32_t>> SlangCompiler::spirv(const Slang& source,
                                                        const std::vector<SourceText>& texts,
                                                        const std::string& kernel,
                                                        std::vector<Diagnostic>* warnings) const {
  const auto made = compile(source, texts, kernel, Target::spirv, warnings);
  if (!made) return made.error();
  std::vector<std::uint32_t> words(made->code.size() / sizeof(std::uint32_t));
  std::memcpy(words.data(), made->code.data(), words.size() * sizeof(std::uint32_t));
  return words;
}

Result<CudaCpp> SlangCompiler::cuda(const Slang& source, const std::vector<SourceText>& texts,
                                    const std::string& kernel, std::vector<Diagnostic>* warnings) const {
  auto made = compile(source, texts, kernel, Target::cuda, warnings);
  if (!made) return std::move(made).error();
  CudaCpp cuda{.text = std::move(made->code),
               .file = shown_name(source, kernel) + ".cu",
               .entry = std::move(made->entry)};
  cuda.workgroup = made->workgroup;
  cuda.tile = source.tile;
  // Slang declares no launch bounds. Without this limit, a large block may exceed the registers of
  // a multiprocessor.
  constexpr std::uint64_t registers = 65'536, most_of_a_thread = 255;
  if (const std::uint64_t threads = made->workgroup.count(); threads > registers / (most_of_a_thread + 1))
    cuda.max_registers = static_cast<std::uint32_t>(registers / threads);
  if (cuda.text.find("__half") != cuda.text.npos) cuda.macros.push_back({"SLANG_CUDA_ENABLE_HALF", "1"});
  cuda.includes.push_back({cuda_prelude, std::move(made->prelude)});
  return cuda;
}

std::vector<SourceText> SlangCompiler::cuda_texts() {
  return {{.shown = cuda_prelude, .uses = {{"cuda_fp16.h", true, 0, {}}}}};
}

Result<std::vector<std::byte>> SlangCompiler::module(const Slang& source,
                                                     const std::vector<SourceText>& texts,
                                                     const std::string& kernel) const {
  const auto made = compile(source, texts, kernel, Target::module, nullptr);
  if (!made) return made.error();
  const auto bytes = std::as_bytes(std::span(made->code));
  return std::vector<std::byte>(bytes.begin(), bytes.end());
}

namespace {

struct SharedSlang {
  std::mutex mutex;
  std::weak_ptr<const SlangCompiler> compiler;
};
constinit base::PerProcess<SharedSlang> shared_slang;

}  // namespace

std::shared_ptr<const SlangCompiler> SlangCompiler::share() {
  auto& [mutex, shared] = shared_slang.get();
  const std::lock_guard lock(mutex);
  auto there = shared.lock();
  if (!there) shared = there = base::make_own<const OpenedSlang>();
  return there;
}

}  // namespace wye::kernel
