#include "cache/descriptions.hpp"
#include "base/internals.hpp"

#include <wye/wye.hpp>

#include <atomic>
#include <thread>

#include "kernel/description.hpp"
#include "support/catch.hpp"

using namespace wye;

namespace {

using Scale = Kernel<ReadWrite<float>, float>;

/// A shader that says `which` in its last line and is `size` bytes.
KernelDescription describe(int which, std::size_t size = 400) {
  std::string text =
      "#version 450\n"
      "layout(local_size_x = 64) in;\n"
      "layout(set = 0, binding = 0) buffer X { float x[]; };\n"
      "layout(push_constant) uniform P { float s; };\n"
      "void main() { x[gl_GlobalInvocationID.x] *= s; }\n";
  const std::string last = "\n// " + std::to_string(which);
  text.resize(std::max(size, text.size() + last.size()) - last.size(), ' ');
  return Scale::describe({.name = "scale", .sources = {Glsl{.text = text + last}}});
}

/// Whether this build compiles GLSL.
bool has_glsl() {
  const auto pool = ContextPool::open({.backends = {"null"}}).value();
  const auto built = ShaderCache::open().value().find_or_build(describe(0), pool.devices()[0]);
  if (!built && built.error() != Errc::unsupported) FAIL(built.error().describe());
  return built.has_value();
}

const device::Program* made(cache::Descriptions& descriptions, const KernelDescription& description) {
  auto found = descriptions.find_or_make(description);
  if (!found) FAIL(found.error().describe());
  return found->get();
}

}  // namespace

TEST_CASE("one program is made of descriptions that say the same", "[cache]") {
  cache::Descriptions descriptions;
  const auto* one = made(descriptions, describe(1));
  CHECK(made(descriptions, describe(1)) == one);
  CHECK(made(descriptions, describe(2)) != one);
  CHECK(made(descriptions, describe(1)) == one);
}

TEST_CASE("the 256 descriptions used last are kept", "[cache]") {
  cache::Descriptions descriptions;
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < 256; ++i) ids.push_back(made(descriptions, describe(i))->id());
  CHECK(made(descriptions, describe(0))->id() == ids[0]);
  made(descriptions, describe(256));  // in place of 1
  CHECK(made(descriptions, describe(0))->id() == ids[0]);
  CHECK(made(descriptions, describe(2))->id() == ids[2]);
  CHECK(made(descriptions, describe(1))->id() != ids[1]);
}

TEST_CASE("descriptions of 16 MiB are kept", "[cache]") {
  cache::Descriptions descriptions;
  constexpr std::size_t size = 4 << 20;
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < 4; ++i) ids.push_back(made(descriptions, describe(i, size))->id());
  CHECK(made(descriptions, describe(0, size))->id() == ids[0]);
  made(descriptions, describe(4, size));
  CHECK(made(descriptions, describe(0, size))->id() == ids[0]);
  CHECK(made(descriptions, describe(1, size))->id() != ids[1]);
}

TEST_CASE("a description of which no kernel can be made says why each time", "[cache]") {
  cache::Descriptions descriptions;
  for (int i = 0; i < 2; ++i) {
    const auto found = descriptions.find_or_make({"scale", {}, {}});
    REQUIRE_FALSE(found);
    CHECK(found.error().sentence() == "Kernel 'scale' has no source.");
  }
}

TEST_CASE("a kernel is found by what it says, and is the kernel that was made of the same", "[cache]") {
  if (!has_glsl()) return;
  const auto pool = ContextPool::open({.backends = {"null"}}).value();
  const Device device = pool.devices()[0];
  auto cache = ShaderCache::open().value();
  const auto kernel = AnyKernel::make(describe(1)).value();
  const auto executable = cache.find_or_build(kernel, device).value();
  for (int i = 0; i < 10; ++i)
    CHECK(base::state_of(cache.find_or_build(describe(1), device).value()) == base::state_of(executable));
  CHECK(cache.metrics().misses == 1);
  CHECK(cache.metrics().hits == 10);
  CHECK(base::state_of(cache.find_or_build(describe(2), device).value()) != base::state_of(executable));
  cache.clear();
  CHECK(base::state_of(cache.find_or_build(describe(1), device).value()) ==
        base::state_of(executable));  // it is held
  CHECK(cache.metrics().misses == 2);
  CHECK(cache.find_or_build(describe(1), Device()).error().sentence() ==
        "A kernel cannot be built for no device.");
}

TEST_CASE("what a callback includes is asked for each time a kernel is found by what it says", "[cache]") {
  if (!has_glsl()) return;
  const auto pool = ContextPool::open({.backends = {"null"}}).value();
  auto cache = ShaderCache::open().value();
  int asked = 0;
  Glsl source{.text =
                  "#version 450\n#extension GL_GOOGLE_include_directive : require\n#include <a>\n"
                  "layout(set = 0, binding = 0) buffer X { float x[]; };\n"
                  "layout(push_constant) uniform P { float s; };\n"
                  "void main() { x[gl_GlobalInvocationID.x] *= s; }\n"};
  source.find_include = [&](const std::string&) {
    return std::optional<std::string>("// " + std::to_string(++asked) + "\n");
  };
  const auto description = Scale::describe({.name = "scale", .sources = {source}});
  const auto one = cache.find_or_build(description, pool.devices()[0]).value();
  const auto two = cache.find_or_build(description, pool.devices()[0]).value();
  CHECK(asked == 2);
  CHECK(base::state_of(one) != base::state_of(two));
}

TEST_CASE("threads that say the same and clear at once find what they asked for", "[cache]") {
  if (!has_glsl()) return;
  const auto pool = ContextPool::open({.backends = {"null"}}).value();
  auto cache = ShaderCache::open({.kernels = 4}).value();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        const auto description = describe((i + t) % 6, i % 50 == 0 ? 100'000 : 400);
        const auto found = cache.find_or_build(description, pool.devices()[0]);
        if (!found || found->name() != "scale") ++wrong;
        if (i % 60 == 59) cache.clear();
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}
