// A process that has as many files open as it may: that is said, and not that something is not installed.
#include <fcntl.h>
#include <sys/resource.h>
#include <wye/base/dynamic_library.hpp>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "backend/vulkan/rig.hpp"
#include "base/descriptor.hpp"

namespace wye::test {
namespace {

/// Opens files until `left` more can be.
class Exhausted {
 public:
  explicit Exhausted(unsigned left) {
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    rlimit few = before_;
    few.rlim_cur = std::min<rlim_t>(before_.rlim_cur, 256);
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
    files_.reserve(256);
    for (;;) {
      base::Descriptor file(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      if (!file) break;
      files_.push_back(std::move(file));
    }
    files_.resize(files_.size() - left);
  }
  ~Exhausted() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
  std::vector<base::Descriptor> files_;
};

}  // namespace

TEST_CASE("a library is not missing where the process can open no file", "[vulkan][descriptors]") {
  Errc code{};
  std::string said;
  {
    const Exhausted files(0);
    const auto library = DynamicLibrary::open({"libwye-absent.so.1", "libwye-absent.so"});
    REQUIRE_FALSE(library);
    CHECK(DynamicLibrary::open({"libwye-absent.so.1", "libm.so.6"}));  // it is loaded already
    code = library.error().code();
    said = library.error().sentence();
  }
  CHECK(code == Errc::io);
  CHECK(said ==
        "Library 'libwye-absent.so.1' cannot be opened: the process has as many files open as it may (256).");
  CHECK(DynamicLibrary::open("libwye-absent.so.1").error() == Errc::unavailable);
}

TEST_CASE("Vulkan is not said to be absent where the process can open no file, or few",
          "[vulkan][descriptors]") {
  for (const unsigned left : {0u, 1u, 2u, 3u, 5u, 8u}) {
    INFO(left);
    std::string reason;
    {
      const Exhausted files(left);
      const auto found = discover({.wrap = [](std::string_view, PFN_vkVoidFunction real) { return real; }});
      REQUIRE_FALSE(found.empty());
      if (!found[0].adapter) reason = found[0].info.reason;
    }
    CHECK(reason.find("installed") == std::string::npos);
    if (left == 0) CHECK(reason.find("as many files open as it may (256)") != std::string::npos);
  }
  CHECK(discover().at(0).adapter);
}

}  // namespace wye::test
