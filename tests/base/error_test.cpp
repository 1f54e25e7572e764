#include <wye/base/error.hpp>

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "support/catch.hpp"

using wye::Errc;
using wye::Error;
using wye::NativeError;

TEST_CASE("an error has a code, a sentence and a place", "[base]") {
  const unsigned line = __LINE__ + 1;
  const Error error(Errc::not_found, "Device 'vulkan:7' does not exist.");
  CHECK(error.code() == Errc::not_found);
  CHECK(error == Errc::not_found);
  CHECK_FALSE(error == Errc::io);
  CHECK(error.sentence() == "Device 'vulkan:7' does not exist.");
  CHECK(error.native() == nullptr);
  CHECK(error.context().empty());
  CHECK(error.place().line == line);
  CHECK(error.describe() == "not_found: Device 'vulkan:7' does not exist.");
}

TEST_CASE("the place of an error has no path of the machine it was built on", "[base]") {
  const std::string file = Error(Errc::internal, "x").place().file;
  CHECK(file.front() == '.');  // of the source tree; of the build tree where ccache rewrites paths
  CHECK(file.ends_with("/tests/base/error_test.cpp"));
}

TEST_CASE("an error describes the driver's error and its context, innermost first", "[base]") {
  const Error error = Error(Errc::out_of_memory, "Memory is full.",
                            NativeError{"vkAllocateMemory", -2, "VK_ERROR_OUT_OF_DEVICE_MEMORY"})
                          .with_context("while creating buffer 'x'")
                          .with_context("while submitting job 3");
  REQUIRE(error.native());
  CHECK(error.native()->api == "vkAllocateMemory");
  CHECK(error.native()->number == -2);
  CHECK(error.native()->name == "VK_ERROR_OUT_OF_DEVICE_MEMORY");
  REQUIRE(error.context().size() == 2);
  CHECK(error.context()[0] == "while creating buffer 'x'");
  CHECK(error.context()[1] == "while submitting job 3");
  CHECK(error.describe() ==
        "out_of_memory: Memory is full.\n"
        "  vkAllocateMemory: VK_ERROR_OUT_OF_DEVICE_MEMORY (-2)\n"
        "  while creating buffer 'x'\n"
        "  while submitting job 3");
  CHECK(Error(Errc::io, "No.", NativeError{"read", 5, ""}).describe() == "io: No.\n  read: 5");
}

TEST_CASE("an error keeps a compiler's diagnostics in all its copies", "[base]") {
  const wye::Diagnostic one{.file = "a.comp", .line = 4, .text = "no"}, two{.file = "a.comp", .text = "none"};
  const Error error(Errc::compile_failed, "It does not compile.", {one, two});
  REQUIRE(error.diagnostics().size() == 2);
  CHECK(error.diagnostics()[1] == two);
  CHECK(error.native() == nullptr);
  const Error longer = error.with_context("while building");
  CHECK(longer.diagnostics().data() == error.diagnostics().data());
  CHECK(Error(Errc::io, "No.").diagnostics().empty());
  CHECK(to_string(one) == "a.comp:4: no");
  CHECK(to_string(two) == "a.comp: none");
  CHECK(to_string(wye::Diagnostic{.file = "a.comp", .line = 4, .column = 7, .text = "no"}) ==
        "a.comp:4:7: no");
}

TEST_CASE("a line of context is added to a copy and keeps the place", "[base]") {
  const Error error(Errc::io, "It is torn.");
  const Error longer = error.with_context("while rewinding");
  CHECK(error.context().empty());
  CHECK(longer.context().size() == 1);
  CHECK(longer.place().line == error.place().line);
  CHECK(longer == Errc::io);
}

TEST_CASE("a copy of an error outlives it", "[base]") {
  auto error = std::make_unique<Error>(Errc::closed, "The pool is closed.");
  const Error copy = *error;
  error.reset();
  CHECK(copy.sentence() == "The pool is closed.");
}

TEST_CASE("an error that was moved from can be read", "[base]") {
  Error error(Errc::closed, "The pool is closed.");
  const Error taken = std::move(error);
  CHECK(taken == Errc::closed);
  CHECK(error == Errc::internal);  // NOLINT: that is the point
  CHECK(error.describe() == "internal: This error was moved from.");
  CHECK(error.with_context("while reading").context().size() == 1);
}

TEST_CASE("every code has a name of its own", "[base]") {
  std::set<std::string_view> names;
  for (int code = static_cast<int>(Errc::invalid_argument); code <= static_cast<int>(Errc::internal);
       ++code) {
    names.insert(name(static_cast<Errc>(code)));
  }
  CHECK(names.size() == 15);
  CHECK(names.count("unknown") == 0);
  CHECK(name(Errc::device_lost) == "device_lost");
  CHECK(name(static_cast<Errc>(99)) == "unknown");
}
