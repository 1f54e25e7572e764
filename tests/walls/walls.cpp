#include "walls.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "reader.hpp"
#include "sizes.hpp"

namespace walls {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

// The rooms that each room may include; every room may include itself. "backend" stands for each
// backend by itself.
const std::map<std::string, Names> arrows{
    {"base", {}},
    {"silicon", {"base"}},
    {"process", {"base"}},
    {"device", {"base", "silicon"}},
    {"spirv", {"base", "device"}},
    {"kernel", {"base", "device", "spirv"}},
    {"backend", {"base", "device", "spirv"}},
    {"cache", {"base", "device", "kernel"}},
    {"pool", {"base", "silicon", "device"}},
    {"data", {"base", "device", "pool"}},
    {"flight", {"base", "silicon", "device", "kernel", "pool", "data"}},
    {"scheduler", {"base", "silicon", "device", "kernel", "cache", "pool", "data", "flight"}},
    {"runtime", {"base", "silicon", "device", "kernel", "cache", "pool", "data", "scheduler"}},
    {"interop", {"base", "device", "pool", "data", "runtime"}},
};

// Parts of a room that know less than the room: beginnings of files, and of their includes from src.
const std::vector<std::pair<Names, Names>> parts{
    // Runs under the mutex of a scheduler: it calls nothing outside.
    {{"src/scheduler/ready.", "src/scheduler/next_job.", "src/scheduler/lines.", "src/scheduler/entries.",
      "src/scheduler/places.", "src/scheduler/tags.", "src/scheduler/waiting."},
     {"base/", "scheduler/ready.", "scheduler/next_job.", "scheduler/lines.", "scheduler/entries.",
      "scheduler/places.", "scheduler/tags.", "scheduler/waiting.", "scheduler/time_book.",
      "scheduler/placement."}},
    // Pure functions.
    {{"src/scheduler/placement."}, {"base/", "device/backend.", "scheduler/placement."}},
};

// These see public headers only, all of them.
const std::set<std::string> customers{"workloads", "models",   "records", "cluster",
                                      "tools",     "examples", "bench"};

// Programs of their own: they may print and read files, but a vendor's words are out of place there
// too.
const std::set<std::string> programs{"tools", "examples"};
const std::set<std::string> vendors{"Vulkan", "CUDA"};

struct Words {
  std::string of;
  std::regex pattern;  // of a whole name, with its qualification, or of an included <file>
  Names home;          // beginnings of paths
};

const std::vector<Words>& vocabulary() {
  static const std::vector<Words> words{
      {"Vulkan",
       std::regex(R"((vk|Vk)[A-Z]\w*|VK_\w+|<(vulkan|vk_video)/.*>)"),
       {"src/backend/vulkan/", "include/wye/interop/vulkan", "examples/10_your_vulkan_device"}},
      {"CUDA",
       std::regex(
           R"(cu[A-Z]\w*|CU[a-z]\w*|(cuda|nvrtc)[A-Z]\w*|(CU|CUDA|NVRTC)_\w+|<(cuda|nvrtc|cublas).*>)"),
       {"src/backend/cuda/", "src/kernel/compilers/nvrtc", "include/wye/interop/cuda"}},
      {"threads",
       std::regex(
           R"(std::(jthread|thread|this_thread|condition_variable\w*|\w+_semaphore|latch|barrier|async)(::.*)?)"
           R"(|std::(future|shared_future|promise|packaged_task|call_once)|notify_(one|all)|pthread_\w+)"
           R"(|syscall|SYS_futex|<(thread|condition_variable|semaphore|latch|barrier|future|pthread\.h)>)"),
       // The thread of an EmbedQueue: `models` sees public headers only, and these have no Worker.
       {"src/base/", "include/wye/scheduler/future.hpp", "src/models/batcher."}},
      {"files",
       std::regex(R"(std::(\w*fstream|filesystem(::.*)?|FILE|fopen)|fopen|fdopen|FILE|mmap|munmap)"
                  R"(|::(open|openat|read|write|close|unlink|rename|mkdir|stat|fstat|flock|mmap))"
                  R"(|<(fstream|filesystem|fcntl\.h|unistd\.h|dirent\.h|sys/.*)>)"),
       // A batcher asks for the number of its process (unistd.h).
       {"src/base/", "src/models/mapped_file.", "src/models/batcher.", "src/records/progress_bars.",
        "src/records/whole_file.", "include/wye/records/progress_bars.hpp"}},
      {"child processes",
       std::regex(
           R"((::)?(v?fork|posix_spawn\w*|waitpid|waitid|wait4|execv\w*|execl\w*|getp?pid)|::kill|SYS_pidfd_\w+|<spawn\.h>)"),
       // A batcher asks for the number of its process.
       {"src/base/", "src/models/batcher."}},
      {"the dynamic loader", std::regex(R"(dlopen|dlsym|dlclose|dladdr|dlerror|<dlfcn\.h>)"), {"src/base/"}},
      {"the clock",
       std::regex(
           R"((\w+::)*(steady|system|high_resolution)_clock(::.*)?|std::time|clock_gettime|gettimeofday)"
           R"(|nanosleep|<(ctime|time\.h)>)"),
       {"src/base/", "include/wye/base/clock.hpp"}},
      {"the environment",
       std::regex(R"((std::|::)?(secure_)?getenv|setenv|unsetenv|putenv|environ)"),
       {"src/runtime/", "src/base/spawn.", "src/process/worker_end."}},
      {"sockets", std::regex(R"((::)?(socket|getaddrinfo)|sockaddr\w*|<(netinet/.*|arpa/.*|netdb\.h)>)"), {}},
      {"fmt", std::regex(R"(fmt::.*|<fmt/.*>)"), {"src/base/text."}},
      {"libsodium", std::regex(R"(crypto_\w+|sodium_\w+|<sodium.*>)"), {"src/base/"}},
      {"xxHash", std::regex(R"(XXH\w+|<xxhash\.h>)"), {"src/base/"}},
      {"shaderc", std::regex(R"(shaderc(_\w+|::.*)|<shaderc/.*>)"), {"src/kernel/"}},
      {"SPIR-V",
       std::regex(R"(spv::.*|<spirv/.*>)"),
       {"src/spirv/", "src/kernel/reflect/spirv", "src/backend/vulkan/spirv_check"}},
      // The only lane of other rooms is `device::Lane`, whose submissions are checked: backends do
      // not check them again.
      {"lanes without checks",
       std::regex(R"(((wye::)?device::)?LaneBase|create_lane)"),
       {"src/device/", "src/backend/"}},
      {"CLI11", std::regex(R"(CLI::.*|<CLI/.*>)"), {}},
      {"nlohmann-json",
       std::regex(R"(nlohmann::.*|<nlohmann/.*>)"),
       {"src/scheduler/json.", "src/scheduler/plan_json.", "src/models/json.", "src/runtime/event_json."}},
      {"utf8proc", std::regex(R"(utf8proc\w*|UTF8PROC\w+|<utf8proc\.h>)"), {"src/models/"}},
      {"stdexec", std::regex(R"(stdexec::.*|<stdexec/.*>)"), {"include/wye/scheduler/sender.hpp"}},
      {"Highway", std::regex(R"(hwy::.*|HWY_\w+|<hwy/.*>)"), {"src/workloads/"}},
      {"printing",
       std::regex(
           R"((std::)?(v?f?printf|f?puts|putchar|perror|stdout|stderr)|std::(cout|cerr|clog)|<iostream>)"),
       {"src/base/", "src/records/progress_bars."}},
      {"ending the process",
       std::regex(R"((std::)?abort|std::(exit|_Exit|quick_exit|terminate|signal)|_exit|sigaction)"),
       {"src/base/"}},
  };
  return words;
}

// The files outside of src/backend that may name a backend, and why.
const Names backend_names_allowed{"include/wye/interop/",         // the public door to one vendor's objects
                                  "src/device/names.cpp",         // "cpu" is the name of a type of adapter
                                  "src/interop/dlpack.cpp",       // DLPack numbers vendors
                                  "src/workloads/attention.cpp",  // native sources for one vendor's libraries
                                  "src/workloads/matmul.cpp"};

// The folders and files in which the rules of `voice` hold. Extend the list when a room is
// rewritten.
const Names plain_rooms{
    "include/wye/base/",
    "include/wye/cache/",
    "include/wye/data/",
    "include/wye/device/",
    "include/wye/interop/",
    "include/wye/kernel/",
    "include/wye/models/",
    "include/wye/pool/",
    "include/wye/records/",
    "include/wye/runtime/",
    "include/wye/scheduler/",
    "include/wye/workloads/",
    "include/wye/wye.hpp",
    "src/backend/cpu/",
    "src/backend/cuda/",
    "src/backend/null/",
    "src/backend/vulkan/",
    "src/base/",
    "src/cache/",
    "src/data/",
    "src/device/",
    "src/flight/",
    "src/interop/",
    "src/kernel/",
    "src/models/",
    "src/pool/",
    "src/process/",
    "src/records/",
    "src/records/",
    "include/wye/records/",
    "src/runtime/",
    "src/scheduler/",
    "src/silicon/",
    "src/spirv/",
    "src/workloads/",
};

// Markdown has at most this many columns, except tables, code and lines without a space.
constexpr std::size_t markdown_columns = 120;

struct Phrase {
  std::string of;
  std::regex pattern;  // of comments and Markdown, without text in backquotes
  std::string instead;
};

const std::vector<Phrase>& voice() {
  constexpr auto any_case = std::regex::ECMAScript | std::regex::icase;
  static const std::vector<Phrase> phrases{
      {"nobody",
       std::regex(
           R"(\b(nobody|no one|somebody|someone|anybody|anyone|everybody|everyone|who(m|so)?ever|whatever)\b)",
           any_case),
       "name the type, function, thread or caller"},
      {"who", std::regex(R"(\bwhom?\b)", any_case), "name the type, function, thread or caller"},
      {"what", std::regex(R"(\bwhat\b)", any_case), "name the object"},
      {"the one", std::regex(R"(\b(the )?ones? (that|which|it|they|used)\b|\bthe ones?[.,;:])", any_case),
       "repeat the noun"},
      {"as far as", std::regex(R"(\bas far as\b)", any_case), "write the condition with 'if'"},
      {"so that ... does", std::regex(R"(\bso that\b[^.;:]*\bdoes\b)", any_case), "write two sentences"},
      {"where",
       std::regex(R"((^|[.;:,(] )where\b|\bwhere (there|it|they|that|this) (is|are|was|were|has|can|does)\b)",
                  any_case),
       "write the condition with 'if'"},
      {"else", std::regex(R"([;,] else\b)", any_case), "write 'otherwise'"},
  };
  return phrases;
}

// Ways in which time decides the result of a test.
struct ByTime {
  std::string kind;
  std::regex pattern;
  long most_sum;  // of the entries in the table of exceptions
};

const std::vector<ByTime>& by_time() {
  static const std::vector<ByTime> kinds{
      {"sleep_for", std::regex(R"(\bsleep_for\()"), 24},
      {"steady-clock-plus", std::regex(R"(\bClock::steady\(\)\.now\(\)\s*\+)"), 50},
      // A deadline, start or limit above zero and below ten seconds.
      {"short-deadline",
       std::regex(
           R"((\bDeadline[({]|\b(deadline|start_by|time_limit|\w+_timeout) = (Deadline\()?|[.>](wait|close|read|write)\())"
           R"((std::chrono::)?([1-9][0-9]*(ms|us|ns)\b|[1-9]s\b|(milli|micro|nano)seconds\([1-9]|seconds\([1-9]\)))"),
       123},
      {"threads-alive", std::regex(R"(\bWorker::alive\(\) ==)"), 35},
  };
  return kinds;
}

std::vector<Limit> by_time_limits() {
  std::vector<Limit> limits;
  for (const auto& [kind, pattern, most_sum] : by_time())
    limits.push_back(
        {kind, "tests by time", "", "of '" + kind + "'", "let no time decide the test", 0, most_sum});
  return limits;
}

struct Source {
  Names included;  // "<wye/base/error.hpp>", "\"cache/store.hpp\""
  std::set<std::string> names;
  std::set<std::string> strings;
  Names comments;  // the text of each comment; consecutive lines are one comment
};

bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == ':'; }

// Returns whether the text between two comments is the end of a line.
bool is_next_line(std::string_view between) {
  return between.find_first_not_of(" \n") == between.npos &&
         std::count(between.begin(), between.end(), '\n') == 1;
}

// Returns the includes, names, strings and comments of a file. Names in comments and strings do not
// count.
Source read(const fs::path& path) {
  const std::string text = text_of(path);
  const std::string_view view = text;
  Source source;
  std::size_t comment_end = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto rest = view.substr(at);
    if (rest.starts_with("//")) {
      const auto end = std::min(text.find('\n', at), text.size());
      const auto first = std::min(text.find_first_not_of("/!< ", at), end);
      const auto between = view.substr(comment_end, at - comment_end);
      if (comment_end == 0 || !is_next_line(between)) source.comments.emplace_back();
      source.comments.back() += text.substr(first, end - first) + " ";
      comment_end = at = end;
    } else if (rest.starts_with("/*")) {
      at = text.find("*/", at + 2);
    } else if (rest.starts_with("R\"")) {
      const auto open = text.find('(', at);
      at = text.find(")" + text.substr(at + 2, open - at - 2) + "\"", open);
    } else if (rest.starts_with("#include")) {
      const auto end = std::min(text.find('\n', at), text.size());
      const auto first = text.find_first_of("<\"", at);
      if (first < end) {
        const auto last = text.find_first_of(">\"", first + 1);
        source.included.push_back(text.substr(first, last - first + 1));
      }
      at = end;
    } else if (rest.front() == '"' || rest.front() == '\'') {
      const auto begin = at + 1;
      for (++at; at < text.size() && text[at] != rest.front(); ++at) at += text[at] == '\\';
      if (rest.front() == '"') source.strings.insert(text.substr(begin, std::min(at, text.size()) - begin));
      ++at;
    } else if (in_name(rest.front())) {
      auto end = at;  // a digit separator is part of its number
      while (end < text.size() && (in_name(text[end]) || (text[end] == '\'' && std::isdigit(view[at]))))
        ++end;
      source.names.insert(text.substr(at, end - at));
      at = end;
    } else {
      ++at;
    }
    if (at == std::string::npos) break;
  }
  return source;
}

bool contains(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool begins_with_one_of(const std::string& path, const Names& beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](const auto& b) { return path.starts_with(b); });
}

// "cache" of "src/cache/key.cpp" and of "include/wye/cache/shader_cache.hpp"; "backend/vulkan";
// "examples".
std::string room_of(const std::string& path) {
  static const std::regex inside(R"((src|include/wye)/(backend/\w+|\w+)/.*)");
  std::smatch match;
  if (std::regex_match(path, match, inside)) return match[2];
  if (path.starts_with("include/")) return "runtime";  // wye.hpp puts together what runtime does
  return path.substr(0, path.find('/'));
}

std::string kind_of(const std::string& room) { return room.starts_with("backend/") ? "backend" : room; }

// Returns the room that an include belongs to, if any.
std::optional<std::string> target_of(const std::string& included) {
  if (included == "<wye/wye.hpp>") return "runtime";
  if (included.starts_with("<spirv/unified1/")) return std::nullopt;  // of the package, not of the room
  static const std::regex leads(R"([<"](wye/)?(backend/\w+|\w+)/.*)");
  std::smatch match;
  if (!std::regex_match(included, match, leads)) return std::nullopt;
  const std::string room = match[2];
  if (match[1].matched || arrows.contains(kind_of(room)) || customers.contains(room)) return room;
  return std::nullopt;
}

class Checker {
 public:
  Checker(const fs::path& root, std::size_t most_public_headers)
      : root_(root), most_public_headers_(most_public_headers) {}

  std::vector<Violation> check() {
    for (const auto& entry : fs::directory_iterator(root_ / "src/backend"))
      if (entry.is_directory()) backends_.push_back(entry.path().filename().string());
    for (const char* folder : {"include", "src", "examples", "bench", "tools", "docs"}) {
      if (fs::exists(root_ / folder)) check_folder(folder);
    }
    for (const auto& entry : fs::directory_iterator(root_))
      if (entry.path().extension() == ".md") check_markdown(entry.path().filename().string());
    check_public_headers();
    check_tests_by_time();
    add(check_sizes(root_));
    std::sort(found_.begin(), found_.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
    return std::move(found_);
  }

 private:
  void check_folder(const char* folder) {
    std::set<std::string> rooms;
    for (const auto& entry : fs::recursive_directory_iterator(root_ / folder)) {
      const auto extension = entry.path().extension();
      const auto path = entry.path().lexically_relative(root_).generic_string();
      if (extension == ".md") check_markdown(path);
      if (extension != ".hpp" && extension != ".cpp") continue;
      const auto room = room_of(path);
      if (!arrows.contains(kind_of(room)) && !customers.contains(room)) {
        add("rooms", path, "'" + room + "' is no room of the table.");
        continue;
      }
      check_file(path, room);
      if (path.starts_with("src/")) rooms.insert(room);
    }
    for (const auto& room : rooms) check_readme("src/" + room);
  }

  void check_file(const std::string& path, const std::string& room) {
    const bool is_public = path.starts_with("include/");
    const auto source = read(root_ / path);
    for (const auto& included : source.included) {
      check_arrow(path, room, included);
      check_part(path, included);
      check_vendor(path, is_public, included);
    }
    const bool is_library = is_public || path.starts_with("src/");
    if (is_library && !path.starts_with("src/backend/") && !begins_with_one_of(path, backend_names_allowed))
      for (const auto& string : source.strings)
        if (contains(backends_, string)) add("backend names", path, '"' + string + "\" names a backend.");
    for (const auto& comment : source.comments) check_voice(path, comment);
    // A benchmark is timed against its peers: it has their words.
    if (room == "bench") return;
    auto names = source.names;
    names.insert(source.included.begin(), source.included.end());
    for (const auto& words : vocabulary()) {
      if (programs.contains(room) && !vendors.contains(words.of)) continue;
      if (begins_with_one_of(path, words.home)) continue;
      for (const auto& name : names) {
        if (std::regex_match(name, words.pattern))
          add(words.of, path, name + " is a word of " + words.of + ".");
      }
    }
  }

  void check_arrow(const std::string& path, const std::string& room, const std::string& included) {
    const auto target = target_of(included);
    if (!target || *target == room) return;
    // Record sets have workers, too; nothing else of the library shows them.
    const bool may_see_workers = room == "records" && *target == "process";
    const bool may = customers.contains(room) ? included.starts_with("<wye/") || may_see_workers
                                              : contains(arrows.at(kind_of(room)), *target);
    if (!may) add("arrows", path, room + " may not include " + included + ".");
  }

  void check_part(const std::string& path, const std::string& included) {
    for (const auto& [files, known] : parts)
      if (begins_with_one_of(path, files) && included.starts_with('"') &&
          !begins_with_one_of(included.substr(1), known))
        add("parts", path, "This part may not include " + included + ".");
  }

  void check_vendor(const std::string& path, bool is_public, const std::string& included) {
    if (!is_public || path.starts_with("include/wye/interop/") || included.starts_with("<wye/")) return;
    if (path == "include/wye/scheduler/sender.hpp" && included.starts_with("<stdexec/")) return;
    // The standard library's headers have neither a folder nor a suffix.
    if (included.find_first_of("/.\"") != std::string::npos) {
      add("public headers", path, "A public header includes " + included + ".");
    }
  }

  void check_markdown(const std::string& path) {
    std::istringstream lines(text_of(root_ / path));
    bool is_code = false;
    std::string paragraph;
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("```")) is_code = !is_code;
      if (is_code) continue;
      const auto columns = static_cast<std::size_t>(
          std::count_if(line.begin(), line.end(), [](unsigned char c) { return (c & 0xc0) != 0x80; }));
      const auto indent = std::min(line.find_first_not_of(' '), line.size());
      if (columns > markdown_columns && line[indent] != '|' && line.find(' ', indent) != line.npos)
        add("width", path,
            "A line has " + std::to_string(columns) + " columns, over the limit of " +
                std::to_string(markdown_columns) + ".");
      if (line.empty()) check_voice(path, std::exchange(paragraph, {}));
      paragraph += line + " ";
    }
    check_voice(path, paragraph);
  }

  void check_voice(const std::string& path, const std::string& prose) {
    if (!begins_with_one_of(path, plain_rooms)) return;
    static const std::regex quoted(R"(`[^`]*`)");
    const std::string text = std::regex_replace(prose, quoted, "``");
    for (const auto& phrase : voice()) {
      for (std::sregex_iterator at(text.begin(), text.end(), phrase.pattern), end; at != end; ++at) {
        const auto from = static_cast<std::size_t>(std::max<std::ptrdiff_t>(at->position() - 20, 0));
        const auto length = static_cast<std::size_t>(at->position() + at->length() + 20) - from;
        add("voice: " + phrase.of, path,
            "'" + phrase.of + "' in '" + text.substr(from, length) + "': " + phrase.instead + ".");
      }
    }
  }

  // docs/threading.md promises a line for each class that has a docstring.
  void check_threads(const std::string& path) {
    static const std::regex documented(
        R"(((?:///.*\n)+)(?:template <.*>\n)?class (?:\[\[nodiscard\]\] |WYE_API )*([A-Za-z:<>]+)[^;{]*\{)");
    const std::string text = text_of(root_ / path);
    for (std::sregex_iterator at(text.begin(), text.end(), documented), end; at != end; ++at)
      if (at->str(1).find("/// Threads: ") == std::string::npos)
        add("threads", path, "The docstring of " + at->str(2) + " has no line 'Threads:'.");
  }

  // Headers below a folder "detail" are installed, but users do not include them.
  void check_public_headers() {
    std::size_t headers = 0;
    for (const auto& entry : fs::recursive_directory_iterator(root_ / "include")) {
      const auto path = entry.path().lexically_relative(root_).generic_string();
      if (entry.path().extension() != ".hpp" || path.find("/detail/") != std::string::npos) continue;
      ++headers;
      check_threads(path);
    }
    if (headers > most_public_headers_)
      add("number of public headers", "include",
          "There are " + std::to_string(headers) + " public headers, over the limit of " +
              std::to_string(most_public_headers_) + ".");
  }

  // Counts the ways in which time decides the results of tests.
  void check_tests_by_time() {
    Counts counts;
    for (const auto& entry : fs::recursive_directory_iterator(root_ / "tests")) {
      const auto extension = entry.path().extension();
      const auto path = entry.path().lexically_relative(root_).generic_string();
      if ((extension != ".hpp" && extension != ".cpp") || path.starts_with("tests/walls/")) continue;
      const std::string text = text_of(entry.path());
      for (const auto& one : by_time())
        counts[{one.kind, path, ""}] = std::distance(
            std::sregex_iterator(text.begin(), text.end(), one.pattern), std::sregex_iterator());
    }
    add(compare(root_, "tests/walls/by_time.txt", by_time_limits(), counts));
  }

  void check_readme(const std::string& folder) {
    std::ifstream file(root_ / folder / "README.md");
    if (!file) return add("readmes", folder, "The room has no README.md.");
    long lines = 0;
    for (std::string line; std::getline(file, line);) ++lines;
    if (lines > 30) {
      add("readmes", folder, "README.md has " + std::to_string(lines) + " lines, over the limit of 30.");
    }
  }

  void add(std::string rule, std::string path, std::string sentence) {
    found_.push_back({std::move(rule), std::move(path), std::move(sentence)});
  }

  void add(std::vector<Violation> violations) {
    std::move(violations.begin(), violations.end(), std::back_inserter(found_));
  }

  fs::path root_;
  Names backends_;
  std::size_t most_public_headers_;
  std::vector<Violation> found_;
};

}  // namespace

std::vector<Violation> check(const fs::path& root, std::size_t most_public_headers) {
  return Checker(root, most_public_headers).check();
}

std::vector<std::string> rules() {
  std::vector<std::string> all{
      "arrows",  "backend names", "brackets",       "number of public headers", "parts",
      "readmes", "rooms",         "public headers", "sum of tests by time",     "tests by time",
      "threads", "width"};
  for (const auto& limit : size_limits()) all.insert(all.end(), {limit.rule, "sum of " + limit.rule});
  for (const auto& phrase : voice()) all.push_back("voice: " + phrase.of);
  for (const auto& words : vocabulary()) all.push_back(words.of);
  return all;
}

}  // namespace walls
