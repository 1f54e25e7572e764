// The main() of all test programs: parts of a program, and cases that fail by chance.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/sanitizers.hpp"
#include "support/temporary_folder.hpp"

using namespace wye::test;

namespace {

/// Adds a line to the file that WYE_TEST_TRACE names. Returns how often it had that line before.
std::size_t lines_before(const std::string& line) {
  const char* const file = std::getenv("WYE_TEST_TRACE");
  REQUIRE(file != nullptr);
  std::string text;
  std::size_t count = 0;
  for (std::ifstream in(file); std::getline(in, text);) count += text == line;
  std::ofstream(file, std::ios::app) << line << '\n';
  return count;
}

/// This program in a process of its own.
struct Run {
  std::string end;    ///< as `in_child` describes it
  std::string trace;  ///< the lines of the cases that ran
  std::string flaky;  ///< the file that WYE_TEST_FLAKY names
};
Run run(const char* cases, const char* part = nullptr) {
  const TemporaryFolder folder;
  const std::string trace = folder / "trace", flaky = folder / "flaky";
  Run result;
  result.end = in_child(
      [&] {
        ::setenv("WYE_TEST_TRACE", trace.c_str(), 1);
        ::setenv("WYE_TEST_FLAKY", flaky.c_str(), 1);
        if (part) ::setenv("WYE_TEST_PART", part, 1);
        ::execl("/proc/self/exe", "wye_programs_tests", cases, "--order", "decl",
                static_cast<char*>(nullptr));
        return 127;
      },
      Leave::at_once);
  result.trace = folder.get("trace");
  result.flaky = folder.get("flaky");
  return result;
}

}  // namespace

TEST_CASE("a case, \"odd\" of name [x], fails the first time", "[.][first_time]") {
  CHECK(lines_before("first") != 0);
}
TEST_CASE("a case fails the first three times", "[.][three_times]") { CHECK(lines_before("three") >= 3); }
TEST_CASE("a case fails once and stops the process by a signal the second time", "[.][signal]") {
  if (lines_before("signal") != 0) std::raise(SIGKILL);
  CHECK(false);
}
TEST_CASE("a case stops the process by a signal", "[.][at_once]") {
  lines_before("at once");
  std::raise(SIGKILL);
}
TEST_CASE("a case passes, \"1\" [of many], with \\ and ~", "[.][parts]") { CHECK(lines_before("1") < 9); }
TEST_CASE("a case passes: 2", "[.][parts]") { CHECK(lines_before("2") < 9); }
TEST_CASE("a case passes: 3", "[.][parts]") { CHECK(lines_before("3") < 9); }
TEST_CASE("a case passes: 4", "[.][parts]") { CHECK(lines_before("4") < 9); }

TEST_CASE("a program whose failed case passes three times alone passes and names the case", "[programs]") {
  const Run once = run("[first_time]");
  CHECK(once.end == success);
  CHECK(once.trace == "first\nfirst\nfirst\nfirst\n");
  CHECK(once.flaky == "flaky: wye_programs_tests: a case, \"odd\" of name [x], fails the first time\n");
}

TEST_CASE("a program whose case fails again fails", "[programs]") {
  const Run again = run("[three_times]");
  CHECK(again.end == "exit 1");
  CHECK(again.trace == "three\nthree\n");
  CHECK(again.flaky.empty());
  // One case that fails again is enough.
  CHECK(run("[first_time],[three_times]").flaky.empty());
}

TEST_CASE("a program that a signal ends is not run again", "[programs]") {
  const Run at_once = run("[at_once]");
  CHECK(at_once.end == "signal 9");
  CHECK(at_once.trace == "at once\n");
  CHECK(at_once.flaky.empty());
  const Run later = run("[signal]");
  CHECK(later.end == "exit 1");
  CHECK(later.trace == "signal\nsignal\n");
  CHECK(later.flaky.empty());
}

TEST_CASE("the parts of a program together are all of its cases", "[programs]") {
  const auto part = [](const char* of) {
    const Run ran = run("[parts]", of);
    CHECK(ran.end == success);
    return ran.trace;
  };
  CHECK(part("wye_programs_tests=1/1") == "1\n2\n3\n4\n");
  CHECK(part("wye_other_tests=1/2") == "1\n2\n3\n4\n");
  std::string lines;
  for (const char* of : {"wye_programs_tests=1/3", "wye_programs_tests=2/3", "wye_programs_tests=3/3"}) {
    const std::string some = part(of);
    CHECK(some.size() < 8);
    lines += some;
  }
  std::sort(lines.begin(), lines.end());
  CHECK(lines == "\n\n\n\n1234");
  CHECK(part("wye_programs_tests=5/5").empty());
  CHECK(part("wye_other_tests=5/5,wye_programs_tests=2/2") == "2\n4\n");
  CHECK(part("wye_programs_tests=2/2,wye_programs=5/5") == "2\n4\n");
  for (const char* wrong :
       {"wye_programs_tests=0/3", "wye_programs_tests=4/3", "wye_programs_tests=x", "wye_programs_tests="})
    CHECK(run("[parts]", wrong).end == "exit 2");
}
