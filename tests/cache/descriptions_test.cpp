#include "cache/descriptions.hpp"
#include "base/internals.hpp"

#include <wye/wye.hpp>

#include <atomic>
#include <thread>

#include "kernel/description.hpp"
#include "support/catch.hpp"
#include "support/compilers.hpp"

using namespace wye;

namespace {

using Scale = Kernel<ReadWrite<float>, float>;

/// A shader of `size` bytes with `which` in its last line.
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

const device::Program* made(cache::Descriptions& descriptions, const KernelDescription& description) {
  auto found = descriptions.find_or_make(description);
  if (!found) FAIL(found.error().describe());
  return found->get();
}

}  // namespace

TEST_CASE("equal descriptions share one program", "[cache]") {
  cache::Descriptions descriptions;
  const auto* one = made(descriptions, describe(1));
  CHECK(made(descriptions, describe(1)) == one);
  CHECK(made(descriptions, describe(2)) != one);
  CHECK(made(descriptions, describe(1)) == one);
}

TEST_CASE("the 256 most recently used descriptions are kept", "[cache]") {
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

TEST_CASE("an invalid description returns its error each time", "[cache]") {
  cache::Descriptions descriptions;
  for (int i = 0; i < 2; ++i) {
    const auto found = descriptions.find_or_make({"scale", {}, {}});
    REQUIRE_FALSE(found);
    CHECK(found.error().sentence() == "Kernel 'scale' has no source.");
  }
}

TEST_CASE("a description finds the kernel of an equal description", "[cache]") {
  if (!test::has_glsl()) return;
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
        base::state_of(executable));  // it is in use
  CHECK(cache.metrics().misses == 2);
  CHECK(cache.find_or_build(describe(1), Device()).error().sentence() ==
        "The device of the kernel is empty.");
}

TEST_CASE("an include callback is called at each lookup by description", "[cache]") {
  if (!test::has_glsl()) return;
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

TEST_CASE("threads with equal descriptions find their kernels while others clear the cache", "[cache]") {
  if (!test::has_glsl()) return;
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
