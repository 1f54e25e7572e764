// If a process has reached its limit of open files, the errors say so, and do not report missing
// libraries.
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

TEST_CASE("a library is not reported missing if the process can open no file",
          "[vulkan][descriptors][no_sanitizer]") {
  Errc code{};
  std::string said;
  bool is_absent_found = true, is_loaded_found = false;
  {
    const Exhausted files(0);
    const auto library = DynamicLibrary::open({"libwye-absent.so.1", "libwye-absent.so"});
    is_absent_found = library.has_value();
    is_loaded_found = DynamicLibrary::open({"libwye-absent.so.1", "libm.so.6"}).has_value();
    code = library.error().code();
    said = library.error().sentence();
  }
  CHECK_FALSE(is_absent_found);
  CHECK(is_loaded_found);
  CHECK(code == Errc::io);
  CHECK(said ==
        "Library 'libwye-absent.so.1' cannot be opened: the process has reached its limit of open files "
        "(256).");
  CHECK(DynamicLibrary::open("libwye-absent.so.1").error() == Errc::unavailable);
}

TEST_CASE("Vulkan is not reported absent if the process can open no file, or few",
          "[vulkan][descriptors][no_sanitizer]") {
  for (const unsigned left : {0u, 1u, 2u, 3u, 5u, 8u}) {
    INFO(left);
    std::vector<device::Discovered> found;
    {
      const Exhausted files(left);
      found = discover({.wrap = [](std::string_view, PFN_vkVoidFunction real) { return real; }});
    }
    REQUIRE_FALSE(found.empty());
    const std::string reason = found[0].adapter ? std::string() : found[0].info.reason;
    CHECK(reason.find("installed") == std::string::npos);
    if (left == 0) CHECK(reason.find("limit of open files (256)") != std::string::npos);
  }
  CHECK(discover().at(0).adapter);
}

}  // namespace wye::test
