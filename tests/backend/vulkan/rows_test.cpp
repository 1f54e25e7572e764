// Grids of one row of workgroups that are longer than the device's limit in x.
#include <spirv-tools/libspirv.hpp>
#include <thread>

#include "backend/vulkan/driver.hpp"
#include "backend/vulkan/rig.hpp"
#include "backend/vulkan/vulkan_executable.hpp"
#include "spirv/rewrite.hpp"
#include "support/skip.hpp"

namespace wye::test {
namespace {

using vulkan::VulkanExecutable;

constexpr std::size_t fields = 8;  ///< words that `recording` leaves of an invocation

/// Every invocation counts itself and writes its built-ins at its index in a grid of one row.
std::string recording(Extent3 workgroup, Twin twin) {
  const bool bound = twin == Twin::descriptors;
  const auto size = [](std::uint64_t n) { return std::to_string(n); };
  return "#version 450\n#extension GL_EXT_buffer_reference : require\nlayout(local_size_x = " +
         size(workgroup.x) + ", local_size_y = " + size(workgroup.y) +
         ", local_size_z = " + size(workgroup.z) + ") in;\n" +
         (bound ? "layout(set = 0, binding = 0) buffer X { uint at[]; } x;\n"
                  "layout(push_constant) uniform P { uint by; } p;\n#define AT x.at\n"
                : "layout(buffer_reference, std430, buffer_reference_align = 4) buffer X { uint at[]; };\n"
                  "layout(push_constant) uniform P { X x; uvec2 count; uint by; } p;\n#define AT p.x.at\n") +
         R"(void main() {
  const uint size = gl_WorkGroupSize.x * gl_WorkGroupSize.y * gl_WorkGroupSize.z;
  const uvec3 whole = gl_GlobalInvocationID;
  const uint i = 8 * (gl_WorkGroupID.x * size + gl_LocalInvocationIndex);
  atomicAdd(AT[i], p.by);
  for (uint c = 0; c < 3; ++c) AT[i + 1 + c] = gl_WorkGroupID[c];
  AT[i + 4] = gl_GlobalInvocationID.x;
  AT[i + 5] = whole.y;
  AT[i + 6] = whole.z;
  AT[i + 7] = gl_LocalInvocationIndex;
})";
}

Artefact recorder(Extent3 workgroup, Twin twin = Twin::descriptors) {
  Artefact a;
  a.kernel = "recorder";
  a.language = "spirv";
  a.schema = {{buffer_slot("x", Access::read_write), scalar_slot("by")}};
  const bool bound = twin == Twin::descriptors;
  a.passing = {{.kind = bound ? Passing::Kind::descriptor : Passing::Kind::span, .binding = 0, .offset = 0},
               {.kind = Passing::Kind::bytes, .binding = 0, .offset = bound ? 0u : 16u}};
  a.parameter_bytes = bound ? 4 : 20;
  a.workgroup = a.tile = workgroup;
  a.code = compile(recording(workgroup, twin));
  return a;
}

/// Returns the result of `recording` for `groups` workgroups in a row, and checks that nothing
/// behind them is written.
std::vector<Word> expected(std::uint64_t groups, std::size_t room, Extent3 size, Word by) {
  std::vector<Word> words(room * size.count() * fields, 0);
  for (std::uint64_t g = 0; g < groups; ++g)
    for (std::uint64_t l = 0; l < size.count(); ++l) {
      Word* const at = &words[(g * size.count() + l) * fields];
      at[0] = by;
      at[1] = static_cast<Word>(g);
      at[4] = static_cast<Word>(g * size.x + l % size.x);
      at[5] = static_cast<Word>(l / size.x % size.y);
      at[6] = static_cast<Word>(l / size.x / size.y);
      at[7] = static_cast<Word>(l);
    }
  return words;
}

/// A driver whose device has a small limit of workgroups.
struct NarrowDriver : Driver {
  explicit NarrowDriver(std::array<std::uint32_t, 3> most = {7, 5, 3}) {
    replace<PFN_vkGetPhysicalDeviceProperties2>(
        "vkGetPhysicalDeviceProperties2", [most](PFN_vkGetPhysicalDeviceProperties2 real,
                                                 VkPhysicalDevice device, VkPhysicalDeviceProperties2* out) {
          real(device, out);
          std::copy(most.begin(), most.end(), out->properties.limits.maxComputeWorkGroupCount);
        });
  }
  unsigned pipelines() const { return calls("vkCreateComputePipelines"); }
  unsigned dispatches() const { return calls("vkCmdDispatch") + calls("vkCmdDispatchBase"); }
};

struct Tools {
  spvtools::SpirvTools tools{SPV_ENV_VULKAN_1_2};
  std::string complaint;
  Tools() {
    tools.SetMessageConsumer([this](spv_message_level_t, const char*, const spv_position_t&,
                                    const char* message) { complaint += message; });
  }
  std::string invalid(const std::vector<Word>& words) {
    complaint.clear();
    return tools.Validate(words) ? "" : "invalid: " + complaint;
  }
};

spirv::Module module_of(std::span<const std::byte> code) {
  std::vector<Word> words(code.size() / sizeof(Word));
  std::memcpy(words.data(), code.data(), code.size());
  return good(spirv::Module::parse(words));
}

/// A module whose main has `body`, with built-ins as inputs of `integer` and common declarations.
std::vector<std::byte> assembled(const std::string& body, const std::string& integer = "%uint") {
  const std::string text = R"(OpCapability Shader
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main "main" %group %item %count
OpExecutionMode %main LocalSize 4 2 1
OpDecorate %group BuiltIn WorkgroupId
OpDecorate %item BuiltIn GlobalInvocationId
OpDecorate %count BuiltIn NumWorkgroups
%void = OpTypeVoid
%nothing = OpTypeFunction %void
%uint = OpTypeInt 32 0
%int = OpTypeInt 32 1
%v3 = OpTypeVector )" + integer +
                           R"( 3
%in_v3 = OpTypePointer Input %v3
%in_one = OpTypePointer Input )" +
                           integer + R"(
%local_v3 = OpTypePointer Function %v3
%one = OpConstant %uint 1
%group = OpVariable %in_v3 Input
%item = OpVariable %in_v3 Input
%count = OpVariable %in_v3 Input
%main = OpFunction %void None %nothing
%begin = OpLabel
)" + body + "\nOpReturn\nOpFunctionEnd\n";
  Tools tools;
  std::vector<Word> words;
  INFO(text);
  if (!tools.tools.Assemble(text, &words)) FAIL(tools.complaint);
  REQUIRE(tools.invalid(words) == "");
  const auto bytes = std::as_bytes(std::span(words));
  return {bytes.begin(), bytes.end()};
}

TEST_CASE("a module that is split into rows is valid SPIR-V", "[vulkan][rows]") {
  Tools tools;
  const auto check = [&](std::span<const std::byte> code) {
    const auto module = module_of(code);
    const auto words = good(spirv::split_into_rows(module, "k", 65535, {4, 2, 1}));
    CHECK(words.size() > module.words.size());
    CHECK(tools.invalid(words) == "");
    // The module is still valid after it was split once more.
    CHECK(tools.invalid(good(
              spirv::split_into_rows(module_of(std::as_bytes(std::span(words))), "k", 3, {4, 2, 1}))) == "");
  };
  for (const Twin twin : {Twin::descriptors, Twin::addresses}) check(compile(recording({4, 2, 1}, twin)));
  check(compile(recording({4, 2, 1}, Twin::descriptors), true));  // SPIR-V 1.0
  for (const char* integer : {"%uint", "%int"}) {
    check(assembled("%a = OpLoad %v3 %group\n%b = OpLoad %v3 %item", integer));
    check(assembled("%p = OpAccessChain %in_one %item %one\n%q = OpCopyObject %in_one %p\n%a = OpLoad " +
                        std::string(integer) + " %q",
                    integer));
    check(assembled(
        "%p = OpCopyObject %in_v3 %group\n%q = OpInBoundsAccessChain %in_one %p %one\n%a = OpLoad " +
            std::string(integer) + " %q",
        integer));
  }
}

TEST_CASE("a module that reads no index is not changed", "[vulkan][rows]") {
  const auto code = compile("#version 450\nlayout(local_size_x = 4) in;\nvoid main() {}");
  const auto module = module_of(code);
  const auto words = good(spirv::split_into_rows(module, "k", 65535, 4));
  CHECK(std::equal(words.begin(), words.end(), module.words.begin(), module.words.end()));
}

TEST_CASE("a module whose loads cannot be rewritten is refused with the reason", "[vulkan][rows]") {
  const struct {
    std::string body, why;
  } rows[] = {
      {"%a = OpLoad %v3 %count", "it reads NumWorkgroups"},
      {"%p = OpAccessChain %in_one %count %one\n%a = OpLoad %uint %p", "it reads NumWorkgroups"},
      {"%local = OpVariable %local_v3 Function\nOpCopyMemory %local %item",
       "it uses a built-in without loading it"},
  };
  for (const auto& row : rows) {
    INFO(row.body);
    const auto code = assembled(row.body);
    const auto refused = spirv::split_into_rows(module_of(code), "k", 65535, {4, 2, 1});
    REQUIRE_FALSE(refused);
    CHECK(refused.error() == Errc::unsupported);
    CHECK(refused.error().sentence() ==
          "Kernel 'k' cannot be dispatched as rows of workgroups: " + row.why + ".");
  }
}

TEST_CASE("a grid of one row runs exactly its workgroups below, at and above the limit", "[vulkan][rows]") {
  NarrowDriver driver;
  Rig rig({.wrap = driver.wrap()});
  constexpr std::size_t room = 48;  // rows and columns of rows that would be too many
  for (const Twin twin : {Twin::descriptors, Twin::addresses})
    for (const Extent3 size : {Extent3(8), Extent3(4, 3, 2), Extent3(1, 1, 1), Extent3(2, 5, 1)}) {
      const auto kernel = rig.executable(recorder(size, twin));
      for (const std::uint64_t groups :
           std::initializer_list<std::uint64_t>{1, 6, 7, 8, 13, 14, 15, 20, 21, 22, 34, 35}) {
        INFO(groups << " workgroups of " << size.x << " x " << size.y << " x " << size.z);
        const auto x = rig.buffer(std::vector<Word>(room * size.count() * fields, 0));
        auto lane = rig.lane();
        lane->dispatch(kernel, arguments_of(argument(x), Word{3}), {groups * size.x, size.y, size.z});
        settle(*lane);
        CHECK(difference(rig.read(x), expected(groups, room, size, 3)) == "");
      }
    }
}

TEST_CASE("a kernel has its second pipeline from the first grid over the limit on", "[vulkan][rows]") {
  NarrowDriver driver;
  {
    Rig rig({.wrap = driver.wrap()});
    const auto kernel = rig.executable(recorder(8));
    const auto x = rig.buffer(std::vector<Word>(48 * 8 * fields, 0));
    const auto run = [&](std::uint64_t groups) {
      auto lane = rig.lane();
      lane->dispatch(kernel, arguments_of(argument(x), Word{1}), groups * 8);
      settle(*lane);
    };
    run(7);
    CHECK(driver.pipelines() == 1);
    CHECK(driver.dispatches() == 1);
    run(15);
    CHECK(driver.pipelines() == 2);
    CHECK(driver.dispatches() == 3);
    run(14);
    run(7);
    run(8);
    CHECK(driver.pipelines() == 2);
    CHECK(driver.dispatches() == 7);
  }
  CHECK(driver.alive_text() == "");
}

TEST_CASE("long and short grids of kernels take turns in one recording", "[vulkan][rows]") {
  NarrowDriver driver;
  for (const std::uint64_t push_constants :
       std::initializer_list<std::uint64_t>{128, 0}) {  // or a buffer of their own
    Rig rig({.wrap = driver.wrap(), .parameter_bytes = Bytes{push_constants}});
    const auto kernel = rig.executable(recorder(8));
    const auto add = rig.kernel("add", Twin::descriptors);
    const auto x = rig.buffer(std::vector<Word>(48 * 8 * fields, 0)),
               y = rig.buffer(std::vector<Word>(2000, 0));
    auto lane = rig.lane();
    const std::initializer_list<std::uint64_t> grids = {3, 20, 7, 8, 35};
    for (const std::uint64_t groups : grids)  // short and long without another kernel between
      lane->dispatch(kernel, arguments_of(argument(x), Word{1}), groups * 8);
    for (const std::uint64_t groups : grids) {
      lane->dispatch(kernel, arguments_of(argument(x), Word{1}), groups * 8);
      lane->dispatch(add, arguments_of(argument(y), Word{2}), 640);
      lane->dispatch(add, arguments_of(argument(y), Word{5}), 2000);
    }
    settle(*lane);
    auto wanted = expected(35, 48, 8, 2);
    for (std::size_t i = 0; i < 20 * 8; ++i)
      wanted[i * fields] = i < 3 * 8 ? 10 : i < 7 * 8 ? 8 : i < 8 * 8 ? 6 : 4;
    CHECK(difference(rig.read(x), wanted) == "");
    std::vector<Word> sums(2000, 25);
    std::fill_n(sums.begin(), 640, 35);
    CHECK(difference(rig.read(y), sums) == "");
  }
}

TEST_CASE("grids that rows do not cover are refused with number and limit", "[vulkan][rows]") {
  NarrowDriver driver;
  Rig rig({.wrap = driver.wrap()});
  const auto kernel = rig.executable(recorder(8));
  CHECK(kernel->row_groups() == 35);
  const auto x = rig.buffer(400);
  const auto refused = [&](Extent3 items) {
    auto lane = rig.lane();
    lane->dispatch(kernel, arguments_of(argument(x), Word{1}), items);
    auto settled = lane->wait(Instant::max());
    REQUIRE_FALSE(settled);
    CHECK(settled.error() == Errc::unsupported);
    return settled.error().sentence();
  };
  const std::string id = rig.device().info().id;
  CHECK(refused({36 * 8, 1, 1}) ==
        "Grid of kernel 'recorder' in x (36 workgroups) exceeds the limit of '" + id + "' (35).");
  CHECK(refused({8 * 8, 2, 1}) ==
        "Grid of kernel 'recorder' in x (8 workgroups) exceeds the limit of '" + id + "' (7).");
  CHECK(refused({8 * 8, 1, 2}) ==
        "Grid of kernel 'recorder' in x (8 workgroups) exceeds the limit of '" + id + "' (7).");
  CHECK(refused({1, 6, 1}) ==
        "Grid of kernel 'recorder' in y (6 workgroups) exceeds the limit of '" + id + "' (5).");
  CHECK(refused({1, 1, 4}) ==
        "Grid of kernel 'recorder' in z (4 workgroups) exceeds the limit of '" + id + "' (3).");
  CHECK(driver.pipelines() == 1);
}

TEST_CASE("a row has at most 2^32 invocations, the range of an index", "[vulkan][rows]") {
  NarrowDriver driver({65535, 65535, 65535});
  Rig rig({.wrap = driver.wrap()});
  CHECK(rig.executable(recorder(8))->row_groups() == std::uint64_t{1} << 29);
  CHECK(rig.executable(recorder(1))->row_groups() == std::uint64_t{65535} * 65535);
}

TEST_CASE("a kernel that reads NumWorkgroups runs up to the limit, and is refused above it with the reason",
          "[vulkan][rows]") {
  NarrowDriver driver;
  Rig rig({.wrap = driver.wrap()});
  Artefact a = recorder(8);
  a.code = compile(R"(#version 450
layout(local_size_x = 8) in;
layout(set = 0, binding = 0) buffer X { uint x[]; };
layout(push_constant) uniform P { uint by; };
void main() { x[gl_GlobalInvocationID.x] = gl_NumWorkGroups.x * by; })");
  const auto kernel = rig.executable(a);
  const auto x = rig.buffer(std::vector<Word>(64, 0));
  auto lane = rig.lane();
  lane->dispatch(kernel, arguments_of(argument(x), Word{2}), 7 * 8);
  settle(*lane);
  CHECK(rig.read(x)[55] == 14);
  lane->dispatch(kernel, arguments_of(argument(x), Word{2}), 8 * 8);
  auto settled = lane->wait(Instant::max());
  REQUIRE_FALSE(settled);
  CHECK(settled.error() == Errc::unsupported);
  INFO(settled.error().describe());
  CHECK(settled.error().describe().find("it reads NumWorkgroups") != std::string::npos);
  CHECK(settled.error().describe().find("8 workgroups in x, over the limit of '" + rig.device().info().id +
                                        "' (7)") != std::string::npos);
}

TEST_CASE("a second pipeline that the driver does not make fails that submission only", "[vulkan][rows]") {
  NarrowDriver driver;
  {
    Rig rig({.wrap = driver.wrap()});
    const auto kernel = rig.executable(recorder(8));
    const auto x = rig.buffer(std::vector<Word>(48 * 8 * fields, 0));
    driver.fail("vkCreateComputePipelines", 1, VK_ERROR_OUT_OF_DEVICE_MEMORY);
    auto failing = rig.lane();
    failing->dispatch(kernel, arguments_of(argument(x), Word{1}), 64 + 8);
    auto settled = failing->wait(Instant::max());
    REQUIRE_FALSE(settled);
    CHECK(settled.error() == Errc::out_of_memory);
    auto lane = rig.lane();
    lane->dispatch(kernel, arguments_of(argument(x), Word{1}), 64 + 8);
    settle(*lane);
    CHECK(difference(rig.read(x), expected(9, 48, 8, 1)) == "");
  }
  CHECK(driver.alive_text() == "");
}

TEST_CASE("threads that need the second pipeline at once get the same", "[vulkan][rows]") {
  NarrowDriver driver;
  {
    Rig rig({.wrap = driver.wrap()});
    const auto kernel = rig.executable(recorder(8));
    const auto& made = static_cast<const VulkanExecutable&>(*kernel);
    std::array<VkPipeline, 4> got{};
    std::vector<std::thread> threads;
    for (VkPipeline& one : got) threads.emplace_back([&] { one = made.row_pipeline().value(); });
    for (std::thread& thread : threads) thread.join();
    CHECK(std::count(got.begin(), got.end(), got[0]) == 4);
    CHECK(got[0] != made.pipeline());
    CHECK(driver.alive().at("Pipeline") == 2);
  }
  CHECK(driver.alive_text() == "");
}

TEST_CASE("4194304 items run in workgroups of 64, and so do three rows of them", "[vulkan][rows][no_tsan]") {
  Rig rig;
  const std::uint64_t limit = rig.device().info().limits.groups.x;
  if (limit > 65535) return skip("a row of this device has more than 65535 workgroups");
  Artefact a = recorder(64);
  a.code = compile(R"(#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer X { uint x[]; };
layout(push_constant) uniform P { uint by; };
void main() { atomicAdd(x[gl_GlobalInvocationID.x], gl_WorkGroupID.x * by + gl_LocalInvocationID.x); })");
  const auto kernel = rig.executable(a);
  for (const std::uint64_t count :
       {limit * 64, std::uint64_t{4194304}, 2 * limit * 64, 2 * limit * 64 + 77}) {
    INFO(count << " items");
    const std::uint64_t groups = (count + 63) / 64;
    const auto x = rig.buffer((groups + 70000) * 64 * sizeof(Word));
    auto lane = rig.lane();
    lane->fill(range(x), 0);
    lane->dispatch(kernel, arguments_of(argument(x), Word{100}), count);
    settle(*lane);
    std::vector<Word> wanted((groups + 70000) * 64, 0);
    for (std::uint64_t i = 0; i < groups * 64; ++i) wanted[i] = static_cast<Word>(i / 64 * 100 + i % 64);
    CHECK(difference(rig.read(x), wanted) == "");
  }
}

}  // namespace
}  // namespace wye::test
