// Kernels of users: entry points, constants, limits.
#include "backend/vulkan/vulkan_executable.hpp"

#include "backend/vulkan/driver.hpp"
#include "backend/vulkan/rig.hpp"

namespace wye::test {
namespace {

/// x[i] = x[i] * (constant 3, default 5) + by, in a workgroup whose width is constant 1.
Artefact artefact() {
  Artefact a;
  a.kernel = "mine";
  a.language = "spirv";
  a.schema = {{buffer_slot("x", Access::read_write), scalar_slot("by")}};
  a.passing = {{.kind = Passing::Kind::descriptor, .binding = 2, .offset = 0},
               {.kind = Passing::Kind::bytes, .binding = 0, .offset = 0}};
  a.parameter_bytes = 4;
  a.workgroup = a.tile = 32;
  a.specialization = {{.id = 1, .size = 4, .bits = 32}};
  a.code = compile(R"(#version 450
layout(local_size_x_id = 1) in;
layout(constant_id = 3) const uint factor = 5;
layout(constant_id = 4) const bool negate = false;
layout(set = 0, binding = 2) buffer X { uint x[]; };
layout(push_constant) uniform P { uint by; };
void main() {
  uint i = gl_GlobalInvocationID.x;
  if (i < x.length()) x[i] = (negate ? -x[i] : x[i]) * factor + by;
})");
  return a;
}

std::vector<Word> run(Rig& rig, const Artefact& a) {
  const auto kernel = rig.executable(a);
  const auto x = rig.buffer(random_words(1, 100));
  auto lane = rig.lane();
  lane->dispatch(kernel, arguments_of(argument(x), Word{9}), 100);
  settle(*lane);
  return rig.read(x);
}

std::vector<Word> model(Word factor, bool negate) {
  auto words = random_words(1, 100);
  for (Word& word : words) word = (negate ? 0 - word : word) * factor + 9;
  return words;
}

Error refusal(Rig& rig, const Artefact& a) {
  auto made = rig.device().create_executable(a);
  REQUIRE_FALSE(made);
  UNSCOPED_INFO(made.error().sentence());
  return made.error();
}

bool says(const Error& error, std::string_view words) {
  return error.sentence().find(words) != std::string::npos;
}

TEST_CASE("specialization constants have their value, or the shader's own", "[vulkan]") {
  Rig rig;
  Artefact a = artefact();
  CHECK(difference(run(rig, a), model(5, false)) == "");
  a.specialization.push_back({.id = 3, .size = 4, .bits = 11});
  a.specialization.push_back({.id = 4, .size = 4, .bits = 1});
  CHECK(difference(run(rig, a), model(11, true)) == "");
  a.specialization.push_back({.id = 99, .size = 8, .bits = 1});  // of no constant: ignored
  CHECK(difference(run(rig, a), model(11, true)) == "");
}

TEST_CASE("the entry point may have any name", "[vulkan]") {
  Rig rig;
  Artefact a = artefact();
  // The name is a literal in the module: "main" and "kern" are as long.
  const std::string_view text(reinterpret_cast<const char*>(a.code.data()), a.code.size());
  const std::size_t at = text.find("main");
  REQUIRE(at != std::string_view::npos);
  std::memcpy(a.code.data() + at, "kern", 4);
  a.entry = "kern";
  CHECK(difference(run(rig, a), model(5, false)) == "");
  a.entry = "main";
  CHECK(refusal(rig, a) == Errc::compile_failed);
}

TEST_CASE("a language that is not SPIR-V is refused", "[vulkan]") {
  Rig rig;
  CHECK(rig.device().languages().size() == 1);
  Artefact a = artefact();
  a.language = "ptx";
  const Error error = refusal(rig, a);
  CHECK(error == Errc::unsupported);
  CHECK(says(error, "'ptx'"));
  CHECK(says(error, "'spirv'"));
}

TEST_CASE("a feature that the device lacks is named", "[vulkan]") {
  Rig rig;
  Artefact a = artefact();
  a.needs = {Feature::host_memory};
  const Error error = refusal(rig, a);
  CHECK(error == Errc::unsupported);
  CHECK(says(error, "host_memory"));
}

TEST_CASE("ways of passing that cannot be are refused, naming the slot", "[vulkan]") {
  Rig rig;
  Artefact a = artefact();
  a.passing[1].offset = 2;
  CHECK(says(refusal(rig, a), "Parameter 1 ('by')"));
  a.passing[1] = {.kind = Passing::Kind::host, .binding = 0, .offset = 0};
  CHECK(refusal(rig, a) == Errc::unsupported);
  a = artefact();
  a.passing.pop_back();
  CHECK(refusal(rig, a) == Errc::invalid_argument);
  a = artefact();
  a.schema.slots.push_back(buffer_slot("y", Access::read));
  a.passing.push_back({.kind = Passing::Kind::descriptor, .binding = 2, .offset = 0});
  CHECK(says(refusal(rig, a), "the same binding"));
}

TEST_CASE("more bound buffers than the device allows are refused with both numbers", "[vulkan]") {
  Rig rig;
  Artefact a = artefact();
  const std::uint32_t most = rig.device().info().limits.bound_buffers;
  for (std::uint32_t i = 0; i < most; ++i) {
    a.schema.slots.push_back(buffer_slot("y", Access::read));
    a.passing.push_back({.kind = Passing::Kind::descriptor, .binding = 10 + i, .offset = 0});
  }
  const Error error = refusal(rig, a);
  CHECK(error == Errc::unsupported);
  CHECK(says(error, std::to_string(most + 1)));
  CHECK(says(error, std::to_string(most)));
}

TEST_CASE("bindings may leave gaps", "[vulkan]") {
  Rig rig;
  Artefact a = artefact();
  a.schema = {{buffer_slot("a", Access::read), scalar_slot("by"), buffer_slot("b", Access::write)}};
  a.passing = {{.kind = Passing::Kind::descriptor, .binding = 7, .offset = 0},
               {.kind = Passing::Kind::bytes, .binding = 0, .offset = 0},
               {.kind = Passing::Kind::descriptor, .binding = 1, .offset = 0}};
  a.specialization.clear();
  a.code = compile(R"(#version 450
layout(local_size_x = 32) in;
layout(set = 0, binding = 7) readonly buffer A { uint a[]; };
layout(set = 0, binding = 1) buffer B { uint b[]; };
layout(push_constant) uniform P { uint by; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < b.length()) b[i] = a[i] + by; })");
  const auto kernel = rig.executable(a);
  const auto from = rig.buffer(random_words(4, 100)), to = rig.buffer(400);
  auto lane = rig.lane();
  lane->dispatch(kernel, arguments_of(argument(from), Word{2}, argument(to)), 100);
  settle(*lane);
  auto expected = random_words(4, 100);
  for (Word& word : expected) word += 2;
  CHECK(difference(rig.read(to), expected) == "");
}

TEST_CASE("atomics of device scope are valid with the memory model and without", "[vulkan]") {
  Rig rig;  // validation reports nothing
  const bool has_model = rig.device().info().features.contains({Feature::memory_model});
  for (const bool with_model : {false, has_model}) {
    Artefact a = artefact();
    a.specialization.clear();
    a.code = compile(std::string("#version 450\n") +
                     (with_model ? "#pragma use_vulkan_memory_model\n"
                                   "#extension GL_KHR_memory_scope_semantics : require\n"
                                 : "") +
                     R"(layout(local_size_x = 32) in;
layout(set = 0, binding = 2) buffer X { uint x[]; };
layout(push_constant) uniform P { uint by; };
void main() {
  uint i = gl_GlobalInvocationID.x;
  if (i < x.length()) atomicAdd(x[i], by);
})");
    auto wanted = random_words(1, 100);
    for (Word& word : wanted) word += 9;
    CHECK(difference(run(rig, a), wanted) == "");
  }
}

TEST_CASE("a driver that does not take a kernel is quoted", "[vulkan]") {
  Driver driver;
  Rig rig({.wrap = driver.wrap()});
  const struct {
    const char* api;
    VkResult result;
    Errc code;
  } rows[] = {{"vkCreateShaderModule", VK_ERROR_INVALID_SHADER_NV, Errc::compile_failed},
              {"vkCreateComputePipelines", VK_ERROR_UNKNOWN, Errc::compile_failed},
              {"vkCreateComputePipelines", VK_ERROR_OUT_OF_DEVICE_MEMORY, Errc::out_of_memory},
              {"vkCreatePipelineLayout", VK_ERROR_OUT_OF_HOST_MEMORY, Errc::out_of_memory},
              {"vkCreateDescriptorSetLayout", VK_ERROR_OUT_OF_HOST_MEMORY, Errc::out_of_memory}};
  good(rig.device().pipelines());  // which all kernels share
  const auto before = driver.alive();
  for (const auto& row : rows) {
    driver.fail(row.api, 1, row.result);
    const Error error = refusal(rig, artefact());
    CHECK(error == row.code);
    REQUIRE(error.native());
    CHECK(error.native()->api == row.api);
    CHECK(error.native()->number == row.result);
    CHECK(says(error, "'mine'"));
    CHECK(driver.alive() == before);
  }
  CHECK(difference(run(rig, artefact()), model(5, false)) == "");
}

TEST_CASE("an executable that is dropped after submission runs to its end", "[vulkan]") {
  Rig rig;
  auto kernel = rig.executable(artefact());
  auto x = rig.buffer(random_words(1, 100));
  auto keep = x;
  auto lane = rig.lane();
  lane->dispatch(kernel, arguments_of(argument(x), Word{9}), 100);
  kernel.reset();
  x.reset();
  lane->submit();
  settle(*lane);
  CHECK(difference(rig.read(keep), model(5, false)) == "");
}

TEST_CASE("arguments that do not fit the kernel are refused by the checked lane", "[vulkan]") {
  Rig rig;
  const auto other = open_device();
  const auto x = rig.buffer(random_words(1, 100));
  const auto foreign =
      good(other->create_buffer({.bytes = 400_B, .use = MemoryUse::device, .account = nullptr}));
  const auto kernel = rig.kernel("add");
  const auto refused = [&](auto record) {
    const auto lane = std::make_unique<Lane>(checked(good(rig.device().create_lane({}))));
    record(*lane);
    auto settled = lane->wait(Instant::max());
    REQUIRE_FALSE(settled);
    UNSCOPED_INFO(settled.error().sentence());
    CHECK(settled.error() == Errc::invalid_argument);
    auto next = rig.lane();
    next->fill(range(x), 1);
    settle(*next);
  };
  refused([&](Lane& l) { l.dispatch(kernel, arguments_of(argument(x)), 1); });
  refused([&](Lane& l) { l.dispatch(kernel, arguments_of(argument(foreign), Word{1}), 1); });
  refused([&](Lane& l) { l.dispatch(kernel, arguments_of(Word{1}, Word{1}), 1); });
  refused([&](Lane& l) { l.dispatch(kernel, arguments_of(argument(x), std::uint64_t{1}), 1); });
  refused([&](Lane& l) { l.dispatch(kernel, arguments_of(argument(x, 90, 11), Word{1}), 1); });
  refused([&](Lane& l) { l.dispatch(kernel, arguments_of(argument(x, ~0ull / 4, 2), Word{1}), 1); });
  refused([&](Lane& l) {
    l.dispatch(test_executable(*other, "add", Twin::addresses), arguments_of(argument(x), Word{1}), 1);
  });
  refused([&](Lane& l) { l.fill(range(x, 2, 4), 1); });
  refused([&](Lane& l) { l.fill(range(x, 4, 6), 1); });
  refused([&](Lane& l) { l.fill(range(x, 400, 4), 1); });
  refused([&](Lane& l) { l.copy(range(x, 0, 8), range(x, 8, 12)); });
  std::vector<Word> words(101);
  refused([&](Lane& l) { l.upload(bytes_of(words), range(x, 0, 404)); });
  refused([&](Lane& l) { l.download(range(x, 4, 400), writable_bytes_of(words)); });
}

}  // namespace
}  // namespace wye::test
