// The main() of the test programs. Catch2 2 compiles its own code here, once.
//   WYE_TEST_PART=PROGRAM=I/N,...   a program that is named runs each N-th of its cases, beginning with the I-th (I >= 1)
//   WYE_TEST_FLAKY=FILE             cases that fail run three times more, each in a process of its own; if all pass, the program
//                                   passes too, and adds a line "flaky: PROGRAM: CASE" to FILE
// A program that ends by a signal, or whose sanitizer reports something, fails in any case.
#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#include <catch2/catch_test_case_info.hpp>
#include <catch2/reporters/catch_reporter_event_listener.hpp>
#include <catch2/reporters/catch_reporter_registrars.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WYE_DRIVERS_STAY
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define WYE_DRIVERS_STAY
#endif

#ifdef WYE_DRIVERS_STAY
#include <dlfcn.h>

#include "support/child.hpp"

/// Called by the leak sanitizer before its check.
extern "C" int __lsan_is_turned_off();
extern "C" int __lsan_is_turned_off() { return wye::test::is_child ? 1 : 0; }

/// Reports leaks and ends the process with them. At the end of the process, the sanitizer of clang 14
/// now and then stops by a signal of its own, if threads of libraries end meanwhile.
extern "C" void __lsan_do_leak_check();

// Leaks of a driver have no names after the driver is unloaded, and lsan.supp matches names.
static const bool drivers_stay = [] {
  for (const char* name :
       {"libvulkan_lvp.so", "libVkLayer_khronos_validation.so", "libnvrtc.so.13", "libnvrtc.so.12"})
    dlopen(name, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
  return true;
}();
#endif

namespace {

#if __has_include(<catch2/catch_session.hpp>)
using Listener = Catch::EventListenerBase;
const std::string& name_of(const Catch::TestCaseStats& stats) { return stats.testInfo->name; }
#else
using Listener = Catch::TestEventListenerBase;
const std::string& name_of(const Catch::TestCaseStats& stats) { return stats.testInfo.name; }
#endif

/// The names of the cases that ran, and of those that failed.
std::vector<std::string> ran, failed;

struct Names final : Listener {
  using Listener::Listener;
  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    ran.push_back(name_of(stats));
    if (!stats.totals.assertions.allOk()) failed.push_back(name_of(stats));
  }
};
CATCH_REGISTER_LISTENER(Names)

/// Returns the value of an environment variable, and removes it: processes that a test starts have
/// no part and no file.
std::string taken(const char* variable) {
  const char* const value = std::getenv(variable);
  const std::string result = value ? value : "";
  ::unsetenv(variable);
  return result;
}

/// Returns the filter that selects the case of this name. Quotes do not help: a comma ends a filter
/// inside of them, too.
std::string filter_of(std::string_view name) {
  std::string filter;
  for (const char c : name) {
    if (std::string_view("\\,[]\"~").find(c) != std::string_view::npos) filter += '\\';
    filter += c;
  }
  return filter;
}

/// Returns what `parts` says of a program: "1/3" for b if they are "a=2/2,b=1/3".
std::optional<std::string> part_of(std::string_view parts, std::string_view program) {
  while (!parts.empty()) {
    const std::string_view part = parts.substr(0, parts.find(','));
    if (part.starts_with(program) && part.substr(program.size()).starts_with('='))
      return std::string(part.substr(program.size() + 1));
    parts.remove_prefix(std::min(parts.size(), part.size() + 1));
  }
  return std::nullopt;
}

/// Restricts the session to every `count`-th of its cases, beginning with number `first`. Returns
/// whether all of these can have run, once the session has run.
std::function<bool()> take_part(Catch::Session& session, std::size_t first, std::size_t count) {
#if __has_include(<catch2/catch_session.hpp>)
  session.configData().shardCount = static_cast<unsigned>(count);
  session.configData().shardIndex = static_cast<unsigned>(first - 1);
  return [] { return true; };
#else
  const Catch::IConfig& config = session.config();
  const Catch::TestSpec& all = config.testSpec();
  auto data = session.configData();
  data.testsOrTags.clear();
  std::size_t number = 0, chosen = 0;
  for (const auto& test : Catch::getAllTestCasesSorted(config)) {
    if (all.hasFilters() ? !all.matches(test) : test.isHidden()) continue;
    if (++number % count != first % count) continue;
    ++chosen;
    data.testsOrTags.push_back(filter_of(test.name));
    data.testsOrTags.emplace_back(",");
  }
  if (data.testsOrTags.empty()) data.testsOrTags.emplace_back("~*");
  session.useConfigData(data);
  return [chosen] { return ran.size() == chosen; };
#endif
}

/// Runs one case in a process of its own. Returns whether it passes.
bool passes_alone(const char* program, const std::string& name) {
  std::string self = program, filter = filter_of(name);
  char* const arguments[] = {self.data(), filter.data(), nullptr};
  ::setenv("WYE_TEST_ALONE", name.c_str(), 1);
  pid_t child = 0;
  int status = 0;
  return ::posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments, environ) == 0 &&
         ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// Runs the failed cases again. Returns whether each of them passes three times; if so, `file`
/// names them.
bool are_flaky(const char* program, std::string_view program_name, const std::string& file) {
  for (const std::string& name : failed)
    for (int run = 0; run < 3; ++run)
      if (!passes_alone(program, name)) return false;
  std::ofstream out(file, std::ios::app);
  for (const std::string& name : failed) {
    const std::string line = "flaky: " + std::string(program_name) + ": " + name + "\n";
    std::fputs(line.c_str(), stdout);
    out << line;
  }
  return out.good();
}

}  // namespace

/// A test program whose worker processes are copies of itself defines it: returns the exit status of a
/// worker, or -1 if this process is none.
[[gnu::weak]] int run_as_worker(int argc, char** argv);

int main(int argc, char** argv) {
  if (run_as_worker)
    if (const int status = run_as_worker(argc, argv); status >= 0) return status;
  // As under ctest: the user's own cache is not used.
  ::setenv("WYE_CACHE_DIR", "none", 1);
  const std::string parts = taken("WYE_TEST_PART"), flaky = taken("WYE_TEST_FLAKY"),
                    alone = taken("WYE_TEST_ALONE");
  std::string_view program = argv[0];
  program.remove_prefix(program.rfind('/') + 1);  // npos + 1 is 0

  Catch::Session session;
  if (const int wrong = session.applyCommandLine(argc, argv)) return wrong;
  std::function<bool()> all_ran = [&] { return alone.empty() || ran == std::vector<std::string>{alone}; };
  if (const auto part = part_of(parts, program)) {
    unsigned first = 0, count = 0;
    const bool is_read = std::sscanf(part->c_str(), "%u/%u", &first, &count) == 2;
    if (!is_read || first < 1 || first > count) {
      std::fprintf(stderr, "WYE_TEST_PART (%s) is not PROGRAM=I/N,... with 1 <= I <= N.\n", parts.c_str());
      return 2;
    }
    all_ran = take_part(session, first, count);
  }
  const int result = session.run();
#ifdef WYE_DRIVERS_STAY
  __lsan_do_leak_check();
#endif
  if (!all_ran()) {
    std::fprintf(stderr, "The filters did not select the cases that were chosen: %zu ran.\n", ran.size());
    return 2;
  }
  if (result == 0 || failed.empty() || flaky.empty()) return result;
  return are_flaky(argv[0], program, flaky) ? 0 : result;
}
