// Manifests: recorded, written, read, prewarmed.
#include <wye/cache/shader_cache.hpp>

#include "base/internals.hpp"
#include "cache/cache.hpp"
#include "cache/manifest_text.hpp"
#include "directory.hpp"
#include "doubles.hpp"
#include "support/catch.hpp"
#include "support/double_device.hpp"
#include "support/skip.hpp"

using namespace wye;
using namespace std::chrono_literals;
using test::Directory;
using test::DoubleDevice;
using test::MemoryStore;
using test::program;

namespace {

Manifest odd_manifest() {
  Manifest manifest;
  manifest.entries.push_back({Hasher().add("a").finish(), "scale", "vulkan", "NVIDIA H200", 12, 3ms});
  manifest.entries.push_back(
      {Hasher().add("b").finish(), "a name\nof 100%\x01 oddity", "", "\xc3\xa9t\xc3\xa9", 0, 0ns});
  manifest.entries.push_back(
      {Hasher().add("c").finish(), "", "cpu", " ", ~std::uint64_t{0}, Duration::max()});
  return manifest;
}

std::string resealed(std::string body) {
  std::size_t lines = 0;
  for (const char c : body) lines += c == '\n';
  return body + "end " + std::to_string(lines - 1) + " " + digest(std::as_bytes(std::span(body))).hex() +
         "\n";
}

Error not_read(const std::string& text) {
  const auto read = cache::from_text(text, "m");
  if (read) FAIL("it was read: " << text);
  return read.error();
}

AnyKernel glsl_kernel(const std::string& name, const std::string& body) {
  return AnyKernel::make(
             name, ParamSchema{{Slot{"x", SlotKind::buffer, Access::read_write, ElementType::float32, 4}}},
             {Glsl{.text = "#version 450\nlayout(local_size_x = 64) in;\n"
                           "layout(set = 0, binding = 0) buffer X { float x[]; };\n"
                           "void main() { " +
                           body + " }\n"}})
      .value();
}

}  // namespace

TEST_CASE("a manifest survives writing and reading", "[cache]") {
  const Directory directory;
  const std::string path = (directory.path() / "kernels.manifest").string();
  for (const Manifest& manifest : {odd_manifest(), Manifest{}}) {
    REQUIRE(manifest.write(path));
    const auto again = Manifest::read(path);
    REQUIRE(again);
    CHECK(*again == manifest);
  }
  CHECK(std::distance(std::filesystem::directory_iterator(directory.path()), {}) == 1);
}

TEST_CASE("a manifest is text, the same on every machine", "[cache]") {
  Manifest manifest;
  manifest.entries.push_back({Digest{}, "scale up", "vulkan", "llvmpipe", 12, 3ms});
  CHECK(cache::to_text(manifest) ==
        "wye manifest 1\n"
        "0000000000000000000000000000000000000000000000000000000000000000 vulkan 12 3000000 llvmpipe "
        "scale%20up\n"
        "end 1 d55fcc031f42b800e7daff131a98c237d4333ec5612acd72cc4fb7853f93f55f\n");
}

TEST_CASE("an incomplete manifest, or one of another version, is refused", "[cache]") {
  const Directory directory;
  const std::string path = (directory.path() / "kernels.manifest").string();
  CHECK(Manifest::read(path).error() == Errc::not_found);
  CHECK(Manifest::read(directory.path().string()).error() == Errc::io);
  CHECK(odd_manifest().write("/nowhere/at/all").error() == Errc::io);

  CHECK(not_read("wye manifest 2\nwhatever").sentence() ==
        "Manifest 'm' has version 2, and this build of wye reads version 1.");
  CHECK(not_read("wye manifest 2\nwhatever") == Errc::unsupported);
  for (const char* none :
       {"", "wye", "wye manifest 1", "wye manifest one\n", "wye manifest 01\n", "{\n}\n"}) {
    CHECK(not_read(none) == Errc::corrupt);
    CHECK(not_read(none).sentence() == "Manifest 'm' is no manifest.");
  }
  CHECK(not_read(resealed("wye manifest 0\n")) == Errc::corrupt);
  CHECK(not_read(resealed("wye manifest 1\nnonsense\n")).sentence() ==
        "Manifest 'm' is malformed in line 2.");
}

TEST_CASE("a truncated or changed manifest is refused", "[cache]") {
  const std::string whole = cache::to_text(odd_manifest());
  REQUIRE(cache::from_text(whole, "m"));
  for (std::size_t length = 0; length < whole.size(); ++length)
    if (not_read(whole.substr(0, length)) != Errc::corrupt) FAIL("cut at " << length);
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (const char with : {'0', ' ', '\n', '%', 'z'}) {
      std::string changed = whole;
      if (std::exchange(changed[at], with) == with) continue;
      const Error error = not_read(changed);
      if (error != Errc::corrupt && error != Errc::unsupported) FAIL("changed at " << at);
    }
}

TEST_CASE("a run records its kernels in order, with uses and times", "[cache]") {
  const auto store = std::make_shared<MemoryStore>();
  const auto cache = cache::Cache::open({.kernels = 2, .store = store}).value();
  const auto one = std::make_shared<DoubleDevice>("double:0"),
             two = std::make_shared<DoubleDevice>("double:1");
  const auto a = program("a", true), b = program("b", true), c = program("c", true),
             host = program("host", false);
  const auto use = [&](const auto& what, const auto& where) {
    REQUIRE(cache->provide(what, where, Instant::max()));
  };
  use(b, one), use(a, one), use(b, one), use(host, one), use(a, two), use(c, one), use(b, one), use(b, one);
  const Manifest manifest = cache->manifest();
  REQUIRE(manifest.entries.size() == 4);
  const auto check = [&](std::size_t i, const char* kernel, std::uint64_t uses) {
    CHECK(manifest.entries[i].kernel == kernel);
    CHECK(manifest.entries[i].uses == uses);
    CHECK(manifest.entries[i].backend == "double");
    CHECK(manifest.entries[i].device == "a double");
    CHECK(manifest.entries[i].took > 0ns);
  };
  check(0, "b", 4);
  check(1, "a", 1);
  check(2, "a", 1);
  check(3, "c", 1);
  CHECK(manifest.entries[0].key == b->artefact().key);
  CHECK(manifest == cache->manifest());
}

TEST_CASE("prewarm builds the kernels of a manifest that the application still has", "[cache]") {
  const std::vector<std::string_view> spirv{"spirv"};
  const auto gpu = std::make_shared<DoubleDevice>("vulkan:0", spirv),
             twin = std::make_shared<DoubleDevice>("vulkan:1", spirv),
             other = std::make_shared<DoubleDevice>("metal:0", spirv);
  const AnyKernel a = glsl_kernel("a", "x[0] = 1.0;"), b = glsl_kernel("b", "x[0] = 2.0;"),
                  c = glsl_kernel("c", "x[0] = 3.0;"), unused = glsl_kernel("unused", "x[0] = 4.0;");
  if (base::program_of(a)->refusal(*gpu)) return wye::test::skip("this build has no GLSL compiler");
  const Directory directory;
  const std::string path = (directory.path() / "kernels.manifest").string();
  {
    auto cache = ShaderCache::open().value();
    for (const AnyKernel& one : {b, a, c}) REQUIRE(cache.find_or_build(one, Device(gpu)));
    REQUIRE(cache.find_or_build(b, Device(twin)));
    REQUIRE(cache.manifest().write(path));
  }
  const Manifest manifest = Manifest::read(path).value();
  CHECK(manifest.entries.size() == 4);
  auto cache = ShaderCache::open().value();
  const AnyKernel changed = glsl_kernel("c", "x[0] = 3.5;");
  auto prewarm = cache.prewarm(manifest, {unused, a, b, changed}, {Device(gpu), Device(other), Device()});
  REQUIRE(prewarm);
  CHECK(prewarm->wait());
  CHECK(prewarm->progress().total == 2);
  CHECK(prewarm->progress().ready == 2);
  CHECK(prewarm->progress().unmatched == 1);
  CHECK(cache.contents() == std::vector<std::string>{"a@vulkan:0", "b@vulkan:0"});
}
