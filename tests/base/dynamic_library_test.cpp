#include <wye/base/dynamic_library.hpp>

#include <algorithm>
#include <string>
#include <utility>

#include "support/catch.hpp"
#include "support/skip.hpp"

using wye::DynamicLibrary;

TEST_CASE("a dynamic library gives its symbols", "[base]") {
  auto library = DynamicLibrary::open("libm.so.6");
  REQUIRE(library);
  CHECK(library->name() == "libm.so.6");
  const auto cosine = library->function<double (*)(double)>("cos");
  REQUIRE(cosine);
  CHECK(cosine(0.0) == 1.0);
  CHECK(library->symbol("wye_has_no_such_symbol") == nullptr);
}

TEST_CASE("the first library that opens is taken", "[base]") {
  const auto library = DynamicLibrary::open({"libwye-absent.so.1", "libm.so.6"});
  REQUIRE(library);
  CHECK(library->name() == "libm.so.6");
}

TEST_CASE("a missing library is unavailable, with the loader's message for each name", "[base]") {
  const auto one = DynamicLibrary::open("libwye-absent.so.1");
  REQUIRE_FALSE(one);
  CHECK(one.error() == wye::Errc::unavailable);
  CHECK(one.error().sentence() ==
        "Library 'libwye-absent.so.1' cannot be opened (libwye-absent.so.1: cannot open shared object file: "
        "No such file or directory).");
  const auto two = DynamicLibrary::open({"libwye-absent.so.1", "libwye-absent.so"});
  REQUIRE_FALSE(two);
  CHECK(two.error().sentence().find("libwye-absent.so: cannot open") != std::string::npos);
  CHECK(DynamicLibrary::open({}).error() == wye::Errc::invalid_argument);
}

TEST_CASE("a dynamic library returns its path, and find searches the loader's directories", "[base]") {
  const auto library = DynamicLibrary::open("libm.so.6");
  REQUIRE(library);
  const std::string path = library->path();
  CHECK(path.front() == '/');
  CHECK(path.find("libm") != std::string::npos);
  const auto found = DynamicLibrary::find("libm.so");
  REQUIRE_FALSE(found.empty());
  CHECK(std::is_sorted(found.begin(), found.end()));
  CHECK(std::any_of(found.begin(), found.end(),
                    [](const std::string& file) { return file.ends_with("/libm.so.6"); }));
  CHECK(DynamicLibrary::find("libm.s").empty());
  CHECK(DynamicLibrary::find("libwye-absent.so").empty());
}

TEST_CASE("a dynamic library can be kept loaded", "[base]") {
  using Number = int (*)();
  Number number = nullptr;
  {
    const auto library = DynamicLibrary::open("libz.so.1");
    if (!library) return wye::test::skip(library.error().sentence());
    library->keep_loaded();
    number = library->function<Number>("zlibCompileFlags");
  }
  REQUIRE(number);
  CHECK(number() != 0);  // would be a fault
}

TEST_CASE("a dynamic library is moved with its handle", "[base]") {
  auto library = *DynamicLibrary::open("libm.so.6");
  DynamicLibrary moved = std::move(library);
  CHECK(moved.symbol("cos") != nullptr);
  CHECK(library.symbol("cos") == nullptr);  // NOLINT: a moved-from library has no symbols
  auto other = *DynamicLibrary::open("libc.so.6");
  other = std::move(moved);
  CHECK(other.name() == "libm.so.6");
  CHECK(other.symbol("cos") != nullptr);
}
