#include "kernel/compilers/nvrtc.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/file.hpp"
#include "base/float_environment.hpp"
#include "base/process.hpp"
#include "base/text.hpp"
#include "kernel/compilers/diagnostics.hpp"
#include "kernel/compilers/glsl.hpp"
#include "kernel/compilers/nesting.hpp"
#include "kernel/key.hpp"

#if WYE_WITH_CUDA
#include <nvrtc.h>
#include <wye/base/dynamic_library.hpp>
#endif

namespace wye::inline v0::kernel {

std::string to_string(const CudaTarget& target) {
  const std::string name = to_string(target.architecture);
  return target.ptx ? "compute_" + name.substr(3) : name;
}

std::optional<CudaTarget> parse_target(std::string_view name) {
  if (const auto machine = parse_architecture(name)) return CudaTarget{*machine, false};
  if (const auto virtual_one = parse_architecture(name, "compute_")) return CudaTarget{*virtual_one, true};
  return std::nullopt;
}

bool CudaCompiler::knows(Architecture architecture) const noexcept {
  const auto all = architectures();
  return std::binary_search(all.begin(), all.end(), architecture.number);
}

std::optional<CudaTarget> CudaCompiler::newest_ptx(Architecture device) const noexcept {
  const auto all = architectures();
  const auto after = std::upper_bound(all.begin(), all.end(), device.number);
  if (after == all.begin()) return std::nullopt;
  return CudaTarget{{*(after - 1), 0}, true};
}

#if WYE_WITH_CUDA

namespace {

/// The prelude of every source. The layout is that of the kernel ABI.
constexpr std::string_view prelude = R"(template <class T> struct wye_span {
  T* data;
  unsigned long long size;
  __device__ __forceinline__ T& operator[](unsigned long long i) const { return data[i]; }
};
)";

/// The names of texts for the compiler. The names shown in messages differ between machines and
/// must not become part of the code. The compiler searches this folder, which does not exist, for
/// files beside the source.
constexpr std::string_view cuda_source_name = "/wye.nowhere/kernel.cu";
constexpr std::string_view cuda_prelude_name = "/wye.nowhere/prelude.cu";
constexpr std::string_view cuda_include_name = "kernel.include.";
constexpr std::string_view cuda_toolkit_name = "kernel.toolkit.";
constexpr std::string_view cuda_missing_name = "kernel.missing.";

constexpr const char* library_names[] = {"libnvrtc.so.13", "libnvrtc.so.12"};

#define WYE_FUNCTIONS(X)       \
  X(nvrtcVersion)              \
  X(nvrtcGetNumSupportedArchs) \
  X(nvrtcGetSupportedArchs)    \
  X(nvrtcCreateProgram)        \
  X(nvrtcDestroyProgram)       \
  X(nvrtcCompileProgram)       \
  X(nvrtcGetPTXSize)           \
  X(nvrtcGetPTX)               \
  X(nvrtcGetCUBINSize)         \
  X(nvrtcGetCUBIN)             \
  X(nvrtcGetProgramLogSize)    \
  X(nvrtcGetProgramLog)        \
  X(nvrtcGetErrorString)

struct Functions {
#define X(name) decltype(&::name) name = nullptr;
  WYE_FUNCTIONS(X)
#undef X
};

struct Output {
  nvrtcResult result = NVRTC_SUCCESS;
  std::vector<std::byte> code;
  std::string log;
};

/// A text that the compiler may include.
struct NamedText {
  std::string name;
  std::string text;
};

/// The texts for the compiler, and the errors for includes that were not found.
struct CudaTexts {
  std::string source;
  std::vector<NamedText> includes;
  std::vector<std::string> missing;
};

/// Parses the compiler's log line by line. An indented line belongs to the line before it.
class Log {
 public:
  Log(const std::vector<SourceText>& texts, const std::vector<std::string>& missing,
      const std::string& toolkit)
      : texts_(texts), missing_(missing), toolkit_(toolkit) {}

  std::vector<Diagnostic> parse(std::string_view log, Diagnostic::Severity wanted) const {
    std::vector<Diagnostic> list;
    for (std::size_t at = 0; at < log.size();) {
      const std::size_t end = std::min(log.find('\n', at), log.size());
      auto diagnostic = parse_line(log.substr(at, end - at));
      if (diagnostic && diagnostic->line != 0)
        diagnostic->column = column_of(log.substr(std::min(end + 1, log.size())));
      if (diagnostic && diagnostic->severity == wanted) list.push_back(std::move(*diagnostic));
      at = end + 1;
    }
    return list;
  }

 private:
  /// Parses "a.cu(4): error: text", "a.cu(4): warning #177-D: text", "ptxas error   : text".
  std::optional<Diagnostic> parse_line(std::string_view line) const {
    constexpr struct {
      std::string_view mark;
      Diagnostic::Severity severity;
    } kinds[] = {{"catastrophic error", Diagnostic::Severity::error},
                 {"error", Diagnostic::Severity::error},
                 {"fatal", Diagnostic::Severity::error},
                 {"warning", Diagnostic::Severity::warning}};
    if (line.empty() || line.front() == ' ') return std::nullopt;
    std::optional<Diagnostic> first;
    std::size_t first_at = line.npos;
    for (const auto& kind : kinds) {
      const auto [at, text] = find_mark(line, kind.mark);
      if (at >= first_at) continue;  // it is inside the message
      first_at = at;
      first = Diagnostic{.severity = kind.severity, .text = std::string(trimmed(line.substr(text)))};
    }
    if (!first) return std::nullopt;
    place(trimmed(line.substr(0, first_at)), *first);
    restore_include_error(*first);
    return first;
  }

  /// Returns the column of the caret below the quoted line; 0 if there is none.
  static std::uint32_t column_of(std::string_view after) {
    constexpr std::size_t indent = 2;  // of the quoted line
    const std::size_t quoted_end = after.find('\n');
    if (!after.starts_with("  ") || quoted_end == after.npos) return 0;
    const std::string_view mark =
        after.substr(quoted_end + 1, after.find('\n', quoted_end + 1) - quoted_end - 1);
    const std::size_t caret = mark.find_first_not_of(" \t");
    if (caret == mark.npos || mark[caret] != '^' || caret < indent || caret >= quoted_end + 1) return 0;
    return static_cast<std::uint32_t>(caret - indent + 1);
  }

  /// Returns the position of " mark:", " mark :" or " mark #177-D:" and the position of the text
  /// after it; npos if absent.
  static std::pair<std::size_t, std::size_t> find_mark(std::string_view line, std::string_view mark) {
    for (std::size_t at = line.find(mark); at != line.npos; at = line.find(mark, at + 1)) {
      std::size_t colon = at + mark.size();
      if (line.substr(colon, 2) == " #") colon = std::min(line.find(':', colon), line.size());
      colon = std::min(line.find_first_not_of(' ', colon), line.size());
      if (at > 0 && line[at - 1] == ' ' && line.substr(colon, 1) == ":") return {at, colon + 1};
    }
    return {line.npos, 0};
  }

  /// Parses "a.cu(4):". Messages of the assembler have no position in the source.
  void place(std::string_view text, Diagnostic& diagnostic) const {
    const std::size_t open = text.rfind('(');
    const bool in_file = text.ends_with("):") && open != text.npos;
    if (!in_file) {
      diagnostic.file = texts_.front().shown;
      if (text.starts_with("ptxas")) diagnostic.text = "ptxas: " + diagnostic.text;
      return;
    }
    diagnostic.line = small_number(text.substr(open + 1, text.size() - 2 - (open + 1))).value_or(0);
    const std::string_view name = text.substr(0, open);
    if (name.starts_with(cuda_include_name)) {
      const auto index = small_number(name.substr(cuda_include_name.size()));
      if (index && *index < texts_.size()) return void(diagnostic.file = texts_[*index].shown);
    }
    if (name.starts_with(cuda_toolkit_name))
      diagnostic.file = toolkit_ + "/" + std::string(name.substr(cuda_toolkit_name.size()));
    else
      diagnostic.file = texts_.front().shown;
    if (name == cuda_prelude_name) diagnostic.line = 0;  // a macro of the source
  }

  /// Restores the text of an error directive that replaced an `#include`.
  void restore_include_error(Diagnostic& diagnostic) const {
    const std::size_t at = diagnostic.text.find(cuda_missing_name);
    if (at == std::string::npos) return;
    const std::string_view rest = std::string_view(diagnostic.text).substr(at + cuda_missing_name.size());
    const auto index = small_number(rest.substr(0, rest.find(' ')));
    if (index && *index < missing_.size()) diagnostic.text = missing_[*index];
  }

  const std::vector<SourceText>& texts_;
  const std::vector<std::string>& missing_;
  const std::string& toolkit_;
};

class Nvrtc final : public CudaCompiler {
 public:
  static Result<std::shared_ptr<const Nvrtc>> open(std::initializer_list<std::string_view> names) {
    auto library = DynamicLibrary::open(names);
    if (!library)
      return Error(library.error().code(),
                   base::text("CUDA C++ cannot be compiled, because NVRTC {}: {}",
                              library.error() == Errc::io ? "cannot be opened" : "is not installed",
                              library.error().sentence()));
    auto made = base::own(new Nvrtc(std::move(*library)));
    if (auto done = made->begin(); !done) return std::move(done).error();
    return std::shared_ptr<const Nvrtc>(std::move(made));
  }

  const std::string& build_id() const noexcept override { return build_id_; }
  const std::string& name() const noexcept override { return name_; }
  unsigned version() const noexcept override { return version_; }
  std::span<const unsigned> architectures() const noexcept override { return architectures_; }

  ToolkitHeaders headers(std::span<const SourceText> texts) const override {
    ToolkitHeaders found;
    for (const SourceText& text : texts)
      for (const IncludeUse& use : text.uses) {
        if (use.text != 0 || use.name.empty() || use.name.front() == '/') continue;
        if (auto there = header(use.name)) found.emplace(use.name, std::move(there));
      }
    return found;
  }

  Result<std::vector<std::byte>> compile(const CudaCpp& source, const std::vector<SourceText>& texts,
                                         const ToolkitHeaders& headers, const std::string& kernel,
                                         const CudaTarget& target,
                                         std::vector<Diagnostic>* warnings) const override {
    const base::DefaultFloatEnvironment environment;
    if (!knows(target.architecture))
      return Error(Errc::unsupported,
                   base::text("Kernel '{}' cannot be compiled for {}: {} supports sm_{} to sm_{}.", kernel,
                              to_string(target), name_, architectures_.front(), architectures_.back()));
    const CudaTexts prepared = prepare(source, texts, headers);
    std::vector<std::string> options{"--gpu-architecture=" + to_string(target),
                                     base::text("--std=c++{:02}", source.standard)};
    if (source.max_registers != 0) options.push_back(base::text("--maxrregcount={}", source.max_registers));
    if (source.fast_math) options.push_back("--use_fast_math");
    if (!warnings) options.push_back("--disable-warnings");
    if (auto nesting = check_nesting(source.text, texts, kernel); !nesting) return std::move(nesting).error();
    auto ran = run_compiler([&]() -> Result<Output> {
      Output output;
      if (has_minimal_) {
        options.push_back("--minimal");
        output = run(prepared, options, target.ptx);
        options.pop_back();
      }
      // The few sources that use textures or runtime functions need the complete language.
      if (!has_minimal_ || output.result == NVRTC_ERROR_COMPILATION)
        output = run(prepared, options, target.ptx);
      return output;
    });
    if (!ran) return std::move(ran).error();
    Output& output = *ran;

    const Log log(texts, prepared.missing, toolkit_);
    if (output.result == NVRTC_ERROR_OUT_OF_MEMORY)
      return Error(Errc::out_of_memory,
                   base::text("NVRTC has no memory left to compile kernel '{}'.", kernel));
    if (output.result != NVRTC_SUCCESS) {
      std::vector<Diagnostic> errors = log.parse(output.log, Diagnostic::Severity::error);
      if (errors.empty()) {
        const std::string_view diagnostic =
            trimmed(std::string_view(output.log).substr(0, output.log.find('\n')));
        errors.push_back({.file = texts.front().shown,
                          .text = diagnostic.empty() ? functions_.nvrtcGetErrorString(output.result)
                                                     : std::string(diagnostic)});
      }
      return compile_error(kernel, std::move(errors));
    }
    if (warnings) *warnings = log.parse(output.log, Diagnostic::Severity::warning);
    return std::move(output.code);
  }

 private:
  explicit Nvrtc(DynamicLibrary library) : library_(std::move(library)) {}

  Result<void> begin() {
    const auto unusable = [&](const std::string& why) {
      return Error(Errc::unavailable,
                   base::text("CUDA C++ cannot be compiled, because '{}' {}.", library_.name(), why));
    };
#define X(name)                                                  \
  functions_.name = library_.function<decltype(&::name)>(#name); \
  if (!functions_.name) return unusable(base::text("lacks {}", #name));
    WYE_FUNCTIONS(X)
#undef X
    int count = 0;
    if (functions_.nvrtcGetNumSupportedArchs(&count) != NVRTC_SUCCESS || count <= 0)
      return unusable("does not report its architectures");
    std::vector<int> numbers(static_cast<std::size_t>(count));
    if (functions_.nvrtcGetSupportedArchs(numbers.data()) != NVRTC_SUCCESS)
      return unusable("does not report its architectures");
    for (const int number : numbers) architectures_.push_back(static_cast<unsigned>(number));
    std::sort(architectures_.begin(), architectures_.end());

    // Only the header of its PTX identifies the build: `nvrtcVersion` lacks the last number.
    const std::string architecture = base::text("--gpu-architecture=compute_{}", architectures_.front());
    Output output = run({}, {architecture, "--minimal"}, true);
    has_minimal_ = output.result == NVRTC_SUCCESS;
    if (!has_minimal_) output = run({}, {architecture}, true);
    if (output.result != NVRTC_SUCCESS)
      return unusable(base::text("cannot compile an empty source ({}{}{})",
                                 functions_.nvrtcGetErrorString(output.result),
                                 output.log.empty() ? "" : ": ", trimmed(output.log)));
    const std::string_view text(reinterpret_cast<const char*>(output.code.data()), output.code.size());
    std::string head;
    for (std::size_t at = 0; at < text.size() && text.substr(at, 2) == "//";) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      const std::string_view line = trimmed(text.substr(at + 2, end - at - 2));
      if (!line.empty()) head.append(head.empty() ? "" : ", ").append(line);
      at = end + 1;
    }
    int major = 0, minor = 0;
    if (functions_.nvrtcVersion(&major, &minor) != NVRTC_SUCCESS)
      return unusable("does not report its version");
    version_ = static_cast<unsigned>(major) * 1000 + static_cast<unsigned>(minor) * 10;
    const std::size_t number = head.find(", V");
    name_ = number == head.npos ? base::text("NVRTC {}.{}", major, minor)
                                : "NVRTC " + head.substr(number + 3, head.find(',', number + 3) - number - 3);
    build_id_ = base::text("NVRTC {}.{}, {}, c++17{}, {}", major, minor, head,
                           has_minimal_ ? ", minimal where that will do" : "", prelude);

    std::string folder = base::path_of(reinterpret_cast<const void*>(functions_.nvrtcVersion));
    for (int up = 0; up < 2; ++up) folder = folder.substr(0, folder.rfind('/'));
    toolkit_ = folder + "/include";
    return {};
  }

  /// Returns the name of a toolkit header for the compiler: its path in the toolkit.
  std::string named(const SourceText& text) const { return std::string(cuda_toolkit_name).append(text.name); }

  std::shared_ptr<const ToolkitHeader> header(const std::string& wanted) const {
    {
      const std::lock_guard lock(mutex_);
      if (const auto known = known_.find(wanted); known != known_.end()) return known->second;
    }
    auto made = read_header(wanted);
    const std::lock_guard lock(mutex_);
    return known_.emplace(wanted, std::move(made)).first->second;
  }

  std::shared_ptr<const ToolkitHeader> read_header(const std::string& wanted) const {
    CudaCpp includer;
    includer.text = "#include <" + wanted + ">\n";
    includer.include_directories = {toolkit_, toolkit_ + "/cccl"};
    auto made = std::make_shared<ToolkitHeader>();
    made->texts = read_includes(IncludePlaces(includer), "");
    if (made->texts.size() < 2) return nullptr;
    made->digest = texts_digest(made->texts);
    for (std::size_t i = 1; i < made->texts.size(); ++i) {
      SourceText& text = made->texts[i];
      text.text = with_includes(text.text, text.uses, [&](const IncludeUse* use) -> std::string {
        if (use && use->text != 0) return '"' + named(made->texts[use->text]) + '"';
        return use ? base::text("error '{}' cannot be included: {}", use->name, use->why)
                   : std::string("error the form of this #include is not supported");
      });
    }
    return made;
  }

  CudaTexts prepare(const CudaCpp& source, const std::vector<SourceText>& texts,
                    const ToolkitHeaders& headers) const {
    CudaTexts made;
    std::map<std::string, const SourceText*> toolkit;  // by name: headers may share includes
    const auto rewritten = [&](std::string_view text, const std::vector<IncludeUse>& uses) {
      return with_includes(text, uses, [&](const IncludeUse* use) -> std::string {
        if (use && use->text != 0) return base::text("\"{}{}\"", cuda_include_name, use->text);
        if (use)
          if (const auto found = headers.find(use->name); found != headers.end()) {
            const auto& all = found->second->texts;
            for (std::size_t i = 1; i < all.size(); ++i) toolkit.emplace(named(all[i]), &all[i]);
            return '"' + named(all[all.front().uses.front().text]) + '"';
          }
        made.missing.push_back(use ? base::text("'{}' cannot be included: {}", use->name, use->why)
                                   : std::string("the form of this #include is not supported"));
        return base::text("error {}{}", cuda_missing_name, made.missing.size() - 1);
      });
    };
    std::vector<Macro> macros = source.macros;
    std::sort(macros.begin(), macros.end(), [](const Macro& a, const Macro& b) { return a.name < b.name; });
    made.source = prelude;
    for (const Macro& macro : macros) made.source += base::text("#define {} {}\n", macro.name, macro.value);
    made.source += base::text("#line 1 \"{}\"\n", cuda_source_name);
    made.source += rewritten(source.text, texts.front().uses);
    for (std::size_t i = 1; i < texts.size(); ++i)
      made.includes.push_back(
          {base::text("{}{}", cuda_include_name, i), rewritten(texts[i].text, texts[i].uses)});
    for (const auto& [name, text] : toolkit) made.includes.push_back({name, text->text});
    return made;
  }

  Output run(const CudaTexts& prepared, const std::vector<std::string>& options, bool ptx) const {
    std::vector<const char*> texts, names, words;
    for (const NamedText& include : prepared.includes) {
      texts.push_back(include.text.c_str());
      names.push_back(include.name.c_str());
    }
    for (const std::string& option : options) words.push_back(option.c_str());
    Output output;
    nvrtcProgram program = nullptr;
    output.result = functions_.nvrtcCreateProgram(&program, prepared.source.c_str(), cuda_prelude_name.data(),
                                                  static_cast<int>(texts.size()), texts.data(), names.data());
    if (output.result != NVRTC_SUCCESS) return output;
    const auto destroy = [this](nvrtcProgram p) { functions_.nvrtcDestroyProgram(&p); };
    const std::unique_ptr<_nvrtcProgram, decltype(destroy)> ended(program, destroy);
    output.result = functions_.nvrtcCompileProgram(program, static_cast<int>(words.size()), words.data());
    std::size_t size = 0;
    if (functions_.nvrtcGetProgramLogSize(program, &size) == NVRTC_SUCCESS && size > 1) {
      output.log.resize(size);
      functions_.nvrtcGetProgramLog(program, output.log.data());
      output.log.resize(output.log.find('\0'));
    }
    if (output.result != NVRTC_SUCCESS) return output;
    output.result =
        ptx ? functions_.nvrtcGetPTXSize(program, &size) : functions_.nvrtcGetCUBINSize(program, &size);
    if (output.result != NVRTC_SUCCESS) return output;
    output.code.resize(size);
    const auto bytes = reinterpret_cast<char*>(output.code.data());
    output.result = ptx ? functions_.nvrtcGetPTX(program, bytes) : functions_.nvrtcGetCUBIN(program, bytes);
    return output;
  }

  DynamicLibrary library_;
  Functions functions_;
  std::vector<unsigned> architectures_;
  bool has_minimal_ = true;
  unsigned version_ = 0;
  std::string name_, build_id_, toolkit_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::shared_ptr<const ToolkitHeader>> known_;  // null: it does not exist
};

}  // namespace

namespace {

struct KeptCompiler {
  std::shared_ptr<const Nvrtc> compiler;
};

struct SharedNvrtc {
  std::mutex mutex;
  std::weak_ptr<const Nvrtc> compiler;
  std::weak_ptr<KeptCompiler> kept;
};

constinit base::PerProcess<SharedNvrtc> shared_nvrtc;

}  // namespace

Result<std::shared_ptr<const CudaCompiler>> CudaCompiler::share() {
  SharedNvrtc& shared = shared_nvrtc.get();
  const std::lock_guard lock(shared.mutex);
  auto there = shared.compiler.lock();
  if (!there) {
    auto opened = Nvrtc::open({library_names[0], library_names[1]});
    if (!opened) return std::move(opened).error();
    shared.compiler = there = std::move(*opened);
  }
  if (const auto kept = shared.kept.lock()) kept->compiler = there;
  return std::shared_ptr<const CudaCompiler>(std::move(there));
}

Result<std::shared_ptr<const CudaCompiler>> CudaCompiler::open(const std::string& nvrtc) {
  auto opened = Nvrtc::open({nvrtc});
  if (!opened) return std::move(opened).error();
  return std::shared_ptr<const CudaCompiler>(std::move(*opened));
}

std::shared_ptr<const void> CudaCompiler::keep() {
  SharedNvrtc& shared = shared_nvrtc.get();
  const std::lock_guard lock(shared.mutex);
  auto kept = shared.kept.lock();
  if (!kept) shared.kept = kept = std::make_shared<KeptCompiler>(KeptCompiler{shared.compiler.lock()});
  return kept;
}

#undef WYE_FUNCTIONS

#else

Result<std::shared_ptr<const CudaCompiler>> CudaCompiler::share() {
  return Error(Errc::unsupported, "This build of wye has no CUDA C++ compiler.");
}

Result<std::shared_ptr<const CudaCompiler>> CudaCompiler::open(const std::string&) { return share(); }

std::shared_ptr<const void> CudaCompiler::keep() { return nullptr; }

#endif

}  // namespace wye::kernel
