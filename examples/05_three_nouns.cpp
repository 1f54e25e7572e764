// A pool, a cache and a lease without a runtime, for hosts with their own loop.
#include <chrono>
#include <cstdio>
#include <span>
#include <vector>
#include <wye/wye.hpp>

namespace {

int fail(const wye::Error& error) { return std::puts(error.describe().c_str()), 1; }

}  // namespace

int main() {
  using namespace std::chrono_literals;
  using namespace wye::literals;

  const auto scale = wye::Kernel<wye::ReadWrite<float>, float>::make({
      .name = "scale",
      .sources = {wye::Glsl{.text = R"(#version 450
                      layout(local_size_x = 256) in;
                      layout(set = 0, binding = 0) buffer X { float x[]; };
                      layout(push_constant) uniform P { float s; };
                      void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) x[i] *= s; })"},
                  wye::host([](wye::Range range, std::span<float> x, float s) {
                    for (auto i : range) x[i] *= s;
                  })},
  });
  if (!scale) return fail(scale.error());

  auto pool = wye::ContextPool::open({.backends = {"vulkan"}, .lanes_per_device = 4});
  if (!pool)
    pool = wye::ContextPool::open({.backends = {"cpu"}, .lanes_per_device = 4});  // no Vulkan on this machine
  if (!pool) return fail(pool.error());
  auto cache = wye::ShaderCache::open({.memory = 64_MiB, .eviction = wye::Eviction::lru});
  if (!cache) return fail(cache.error());

  auto lease = pool->lease({.needs = {wye::Feature::float64}, .deadline = 1s});
  if (!lease) return fail(lease.error());
  auto program = cache->find_or_build(*scale, lease->device());  // never built twice
  if (!program) return fail(program.error());

  const std::vector<float> values(1000, 3.0f);
  std::vector<float> out(values.size());
  auto buffer = lease->buffer<float>(values.size());
  if (!buffer) return fail(buffer.error());

  lease->upload(values, *buffer);
  lease->dispatch(*program, wye::arguments(*buffer, 2.0f));
  lease->download(*buffer, out);
  if (auto finished = lease->wait(10s); !finished)
    return fail(finished.error());  // the first failure, if any

  std::printf("out[0] = %g, on %s, lane %s\n", out[0], lease->device().info().name.c_str(),
              lease->id().c_str());
  return out.front() == 6.0f && out.back() == 6.0f ? 0 : 1;
}
