// Kernels that write a part of memory that they declare as written: no memory of another job, array,
// lease or tag arrives in it.
#include <wye/kernel/compile.hpp>
#include <wye/wye.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/internals.hpp"
#include "device/lane.hpp"
#include "flight/binding.hpp"
#include "support/catch.hpp"
#include "support/compilers.hpp"
#include "support/device/test_kernels.hpp"
#include "support/skip.hpp"

using namespace wye;

namespace written_in_part {
namespace {

using Number = std::uint32_t;
using Numbers = std::vector<Number>;
using Shift = Kernel<Read<Number>, Write<Number>, Number>;

constexpr std::size_t count = 65'536;
constexpr std::size_t written = 64;  // by the jobs of tag "b": one workgroup
constexpr Number secret = 0xa5a5a5a5;

/// A way to declare which memory a kernel writes.
struct Declared {
  std::string name;
  std::vector<Shift::Source> sources;
};

std::string glsl(const std::string& qualifier) {
  return "#version 450\nlayout(local_size_x = 64) in;\n"
         "layout(set = 0, binding = 0) readonly buffer X { uint x[]; };\n"
         "layout(set = 0, binding = 1) " +
         qualifier +
         " buffer Z { uint z[]; };\n"
         "layout(push_constant) uniform P { uint k; };\n"
         "void main() { uint i = gl_GlobalInvocationID.x; if (i < z.length()) z[i] = x[i] + k; }";
}

const char* const by_address = R"(#version 460
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 64) in;
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer In { uint x[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) writeonly buffer Out { uint x[]; };
layout(push_constant) uniform P { In x; Out z; uint k; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < 65536) z.x[i] = x.x[i] + k; })";

const char* const slang_text = R"([shader("compute")] [numthreads(64, 1, 1)]
void shift(uint3 id : SV_DispatchThreadID, uniform StructuredBuffer<uint> x, uniform RWStructuredBuffer<uint> z,
           uniform uint k) {
  if (id.x < 65536) z[id.x] = x[id.x] + k;
})";

const char* const slang_pointers = R"([shader("compute")] [numthreads(64, 1, 1)]
void shift(uint3 id : SV_DispatchThreadID, uniform Ptr<uint, Access.Read> x, uniform uint* z, uniform uint k) {
  if (id.x < 65536) z[id.x] = x[id.x] + k;
})";

/// The text is that of tests/support/cuda/programs.cu.
const char* const cuda_text =
    "extern \"C\" __global__ void shift(wye_span<const unsigned> x, wye_span<unsigned> z, unsigned k) {\n"
    "  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < z.size) z[i] = x[i] + k;\n}\n";

std::vector<Declared> ways(std::string_view backend) {
  if (backend == "cpu")
    return {
        {"host function", {host([](Range range, std::span<const Number> x, std::span<Number> z, Number k) {
           for (const std::uint64_t i : range) z[i] = x[i] + k;
         })}}};
  if (backend == "cuda")
    return {{"CUDA C++", {CudaCpp{.text = cuda_text, .entry = "shift", .workgroup = written}}}};
  std::vector<Declared> all = {{"GLSL, writeonly", {Glsl{.text = glsl("writeonly")}}},
                               {"GLSL, both", {Glsl{.text = glsl("")}}},
                               {"GLSL, restrict writeonly", {Glsl{.text = glsl("restrict writeonly")}}},
                               {"GLSL, address", {Glsl{.text = by_address}}}};
  for (const char* const qualifier : {"writeonly", ""})
    all.push_back({std::string("SPIR-V, ") + qualifier,
                   {compile(Glsl{.text = glsl(qualifier)}, {.name = "shift"}).value().spirv}});
  if (test::has_slang()) {
    all.push_back({"Slang, buffers", {Slang{.text = slang_text}}});
    all.push_back({"Slang, pointers", {Slang{.text = slang_pointers}}});
  }
  return all;
}

/// A backend under test.
struct World {
  std::string backend;
  Runtime runtime;
  /// Whether an element that is not written keeps its value: host and device share their memory.
  bool keeps = true;
};

std::optional<World> open(const std::string& backend) {
  if (backend == "vulkan" && !test::has_glsl()) return std::nullopt;
  if (backend == "cuda" && test::stand_in_cuda().empty()) return std::nullopt;
  if (backend == "cuda" && !test::no_cuda_kernels().empty()) return std::nullopt;
  auto runtime = Runtime::open(
      {.pool = {.backends = {backend}, .cuda_driver = backend == "cuda" ? test::stand_in_cuda() : ""}});
  if (!runtime) return test::skip(runtime.error().sentence()), std::nullopt;
  const AdapterType type = runtime->devices().front().info().type;
  return World{backend, *std::move(runtime), type == AdapterType::cpu || type == AdapterType::integrated};
}

Shift kernel(const Declared& way) {
  auto made = Shift::make({.name = "shift", .sources = way.sources});
  if (!made) FAIL(made.error().describe());
  return *made;
}

void run(World& world, Job job, std::string_view tag) {
  const auto done = world.runtime.run(std::move(job), {.tag = tag});
  if (!done) FAIL(done.error().describe());
  CHECK(done->backend() == world.backend);
}

/// Fills the memory of the device with the secret of tag "a".
void leave_secret(World& world, const Shift& shift) {
  const Numbers x(count, secret - 1);
  Numbers z(count);
  run(world, shift(x, z, 1u), "a");
  REQUIRE(std::count(z.begin(), z.end(), secret) == static_cast<std::ptrdiff_t>(count));
}

std::size_t secrets(std::span<const Number> z) {
  return static_cast<std::size_t>(std::count(z.begin(), z.end(), secret) +
                                  std::count(z.begin(), z.end(), secret - 1));
}

/// Counts the elements in front that are not `x + k`, and those behind that are not as `rest` says.
template <class F>
std::size_t mistakes(std::span<const Number> z, Number k, F rest) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < z.size(); ++i) wrong += z[i] != (i < written ? 100 + k : rest(i));
  return wrong;
}

template <class F>
void on_each_backend(F check) {
  for (const std::string backend : {"cpu", "vulkan", "cuda"}) {
    auto world = open(backend);
    if (!world) continue;
    for (const Declared& way : ways(backend)) {
      INFO(backend << ", " << way.name);
      check(*world, kernel(way));
    }
  }
}

}  // namespace

TEST_CASE("host memory that a kernel writes in part has no elements of another tag's job", "[scheduler]") {
  on_each_backend([](World& world, const Shift& shift) {
    leave_secret(world, shift);
    const Numbers x(count, 100);
    Numbers z(count);
    std::iota(z.begin(), z.end(), 1000u);
    run(world, shift(x, z, 5u).over({written}), "b");
    CHECK(secrets(z) == 0);
    CHECK(mistakes(z, 5, [&](std::size_t i) {
            return world.keeps ? static_cast<Number>(1000 + i) : Number{0};
          }) == 0);
  });
}

TEST_CASE("an array that a kernel writes in part has no elements of another tag's job", "[scheduler]") {
  on_each_backend([](World& world, const Shift& shift) {
    leave_secret(world, shift);
    {
      Array<Number> x = world.runtime.array(Numbers(count, secret - 1));
      Array<Number> z = world.runtime.array<Number>(count);
      run(world, shift(x, z, 1u), "a");
    }
    const Numbers x(count, 100);
    Array<Number> z = world.runtime.array<Number>(count);
    run(world, shift(x, z, 5u).over({written}), "b");
    const auto seen = z.read();
    REQUIRE(seen);
    CHECK(secrets({seen->data(), count}) == 0);
    CHECK(mistakes({seen->data(), count}, 5, [](std::size_t) { return Number{0}; }) == 0);
  });
}

TEST_CASE("an array without values is zero", "[scheduler]") {
  on_each_backend([](World& world, const Shift&) {
    for (int round = 0; round < 4; ++round) {
      Array<Number> array = world.runtime.array<Number>(1000);
      {
        auto view = array.read();
        REQUIRE(view);
        CHECK(std::count(view->data(), view->data() + 1000, 0u) == 1000);
      }
      auto view = array.write();
      REQUIRE(view);
      std::fill(view->data(), view->data() + 1000, secret);
    }
  });
}

TEST_CASE("a range that begins and ends anywhere is cleared, and nothing beside it", "[scheduler]") {
  on_each_backend([](World& world, const Shift&) {
    const auto device = base::state_of(world.runtime.devices().front());
    auto lane = device::Lane::create(*device).value();
    constexpr std::size_t size = 40;
    const std::vector<std::byte> pattern(size, std::byte{0xa5});
    std::size_t wrong = 0;
    for (std::size_t first = 0; first < 9; ++first)
      for (std::size_t bytes = 0; first + bytes <= size; ++bytes) {
        const auto buffer = device->create_buffer({.bytes = Bytes{size}, .account = nullptr}).value();
        lane->upload(pattern, {buffer, {}, Bytes{size}});
        flight::Binding::clear(*lane, buffer, first, bytes);
        std::vector<std::byte> seen(size), expected = pattern;
        lane->download({buffer, {}, Bytes{size}}, seen);
        if (!lane->wait(Instant::max())) FAIL("The lane failed.");
        std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(first), bytes, std::byte{0});
        wrong += seen != expected;
      }
    CHECK(wrong == 0);
  });
}

TEST_CASE("scratch memory has no elements of another tag's job", "[scheduler]") {
  on_each_backend([](World& world, const Shift& shift) {
    leave_secret(world, shift);
    {
      const Numbers x(count, secret - 1);
      Numbers z(count);
      Scratch<Number> between(count);
      run(world,
          Job::sequence("steps", workload_types::custom, shift(x, between, 0u), {shift(between, z, 1u)}),
          "a");
    }
    const Numbers x(count, 100);
    Numbers z(count);
    Scratch<Number> between(count);
    run(world,
        Job::sequence("steps", workload_types::custom, shift(x, between, 5u).over({written}),
                      {shift(between, z, 0u)}),
        "b");
    CHECK(secrets(z) == 0);
    CHECK(mistakes(z, 5, [](std::size_t) { return Number{0}; }) == 0);
  });
}

TEST_CASE("a buffer of a lease has no elements of another lease's buffer", "[scheduler]") {
  on_each_backend([](World& world, const Shift&) {
    for (const std::size_t size : {100u, 65'536u, 1'000'000u}) {
      {
        auto lease = world.runtime.pool().lease({.tag = "a"}).value();
        const auto filled = lease.buffer<Number>(size).value();
        const Numbers secrets_of_a(size, secret);
        lease.upload(secrets_of_a, filled);
        REQUIRE(lease.wait());
      }
      auto lease = world.runtime.pool().lease({.tag = "b"}).value();
      const auto fresh = lease.buffer<Number>(size).value();
      Numbers seen(size, 1u);
      lease.download(fresh, seen);
      REQUIRE(lease.wait());
      CHECK(std::count(seen.begin(), seen.end(), 0u) == static_cast<std::ptrdiff_t>(size));
    }
  });
}

TEST_CASE("jobs that share a launch keep the elements that their kernel does not write", "[scheduler]") {
  auto world = open("vulkan");
  if (!world) return;
  const char* const text = R"(#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1) readonly buffer W { uint w[]; };
layout(set = 0, binding = 2) writeonly buffer Z { uint z[]; };
layout(push_constant) uniform P { uint k; };
void main() {
  const uint n = w.length(), i = gl_GlobalInvocationID.x, call = gl_GlobalInvocationID.z;
  if (i < 7) z[call * n + i] = x[call * n + i] + w[i] + k;
})";
  const auto kernel = Kernel<Read<Number>, Read<Number>, Write<Number>, Number>::make(
      {.name = "batched", .sources = {Glsl{.text = text}}, .batchable = {0, 2}});
  REQUIRE(kernel);
  constexpr std::size_t jobs = 64, size = 1001;
  const Numbers w(size, 1);
  std::vector<Numbers> x(jobs, Numbers(size)), z(jobs, Numbers(size));
  std::vector<Ticket> tickets;
  for (std::size_t j = 0; j < jobs; ++j) {
    std::fill(x[j].begin(), x[j].end(), static_cast<Number>(10 * j));
    std::fill(z[j].begin(), z[j].end(), static_cast<Number>(1'000'000 + j));
    tickets.push_back(world->runtime.submit((*kernel)(x[j], w, z[j], 5u), {.tag = j % 2 == 0 ? "a" : "b"}));
  }
  REQUIRE(wait_all(tickets));
  std::size_t wrong = 0;
  for (std::size_t j = 0; j < jobs; ++j)
    for (std::size_t i = 0; i < size; ++i)
      wrong += z[j][i] != (i < 7 ? static_cast<Number>(10 * j + 6) : static_cast<Number>(1'000'000 + j));
  CHECK(wrong == 0);
}

}  // namespace written_in_part
