#include "kernel/reflect/spirv.hpp"
#include "spirv/rewrite.hpp"

#include <random>

#include "kernel/compilers/glsl.hpp"
#include "shaders.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using namespace wye;
using device::Specialization;
using kernel::Interface;
using kernel::Memory;
using kernel::PushMember;
using kernel::reflect;
using kernel::Written;

namespace {

Interface interface_of(const test::Words& words, std::vector<Specialization> constants = {},
                       std::string_view entry = "main") {
  auto result = reflect(words, entry, constants);
  if (!result) FAIL(result.error().describe());
  return *result;
}

Error refused(const test::Words& words, std::vector<Specialization> constants = {},
              std::string_view entry = "main") {
  auto result = reflect(words, entry, constants);
  REQUIRE_FALSE(result);
  return result.error();
}

}  // namespace

TEST_CASE("bytes that are no SPIR-V are refused", "[kernel]") {
  CHECK(refused({}).code() == Errc::invalid_argument);
  CHECK(refused({0x07230203, 0x00010500, 0, 10}).sentence() ==
        "The SPIR-V module (4 words) is shorter than its header (5 words).");
  CHECK(refused({0x03022307, 0x00010500, 0, 10, 0}).sentence().find("The first word (0x03022307)") == 0);
  CHECK(refused({0x07230203, 0x00010500, 0, 10, 0}).sentence() == "The code has no compute entry point.");
  CHECK(refused({0x07230203, 0x00010500, 0, 10, 0, 0}).code() == Errc::invalid_argument);
  CHECK(refused({0x07230203, 0x00010500, 0, 10, 0, 0x00030011, 1}).code() == Errc::invalid_argument);
}

TEST_CASE("source languages newer than the tools are forgotten, nothing else", "[kernel]") {
  test::Words words{0x07230203, 0x00010500, 0, 10, 0, 0x00030003, 11, 1, 0x00020011, 1};
  const test::Words before = words;
  spirv::make_portable(words);
  CHECK(words[6] == 0);
  words[6] = 11;
  CHECK(words == before);
  words[6] = 2;
  spirv::make_portable(words);
  CHECK(words[6] == 2);
  test::Words cut{0x07230203, 0x00010500, 0, 10, 0, 0x00030003, 11};
  spirv::make_portable(cut);
  CHECK(cut[6] == 11);
}

TEST_CASE("features of small numbers are required for storage buffers only", "[kernel]") {
  test::Words words{0x07230203, 0x00010500, 0,          10, 0,          0x00020011, 4434,
                    0x00020011, 4449,       0x00020011, 1,  0x00030005, 4434,       1};
  spirv::make_portable(words);
  CHECK(words == test::Words{0x07230203, 0x00010500, 0, 10, 0, 0x00020011, 4433, 0x00020011, 4448, 0x00020011,
                             1, 0x00030005, 4434, 1});
  test::Words cut{0x07230203, 0x00010500, 0, 10, 0, 0x00030011, 4434};
  spirv::make_portable(cut);
  CHECK(cut[6] == 4434);
}

#if WYE_WITH_GLSL

namespace {

Interface of_glsl(const std::string& glsl, std::vector<Specialization> constants = {}) {
  return interface_of(test::compile(glsl), std::move(constants));
}

Error glsl_refused(const std::string& glsl) { return refused(test::compile(glsl)); }

/// A shader with `declarations` and `body`; some extensions are on.
std::string compute_shader(const std::string& declarations, const std::string& body) {
  return R"(#version 450
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
layout(local_size_x = 32) in;
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Floats { float at[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer In { float at[]; };
struct Span { Floats data; uvec2 count; };
)" + declarations +
         "\nvoid main() { uint i = gl_GlobalInvocationID.x;\n" + body + "\n}";
}

}  // namespace

TEST_CASE("the shader of programs.md 02 is read whole", "[kernel]") {
  const Interface seen = of_glsl(test::scale_glsl);
  REQUIRE(seen.bindings.size() == 1);
  CHECK(seen.bindings[0].binding == 0);
  CHECK(seen.bindings[0].name == "x");
  CHECK(seen.bindings[0].memory == Memory{Access::read_write, Written::yes, ElementType::float32, 4});
  REQUIRE(seen.members.size() == 1);
  CHECK(seen.members[0].name == "s");
  CHECK(seen.members[0].kind == PushMember::Kind::scalar);
  CHECK(seen.members[0].element == ElementType::float32);
  CHECK(seen.members[0].offset == 0);
  CHECK(seen.members[0].size == 4);
  CHECK(seen.push_bytes == 4);
  CHECK(seen.workgroup == Extent3(256));
  CHECK(seen.needs.empty());
}

TEST_CASE("buffers come in the order of their bindings, with names, elements and directions", "[kernel]") {
  const Interface seen =
      of_glsl(compute_shader(R"(
    layout(set = 0, binding = 7) writeonly buffer Out { uvec4 out_[]; };
    layout(set = 0, binding = 2) readonly buffer In2 { double d[]; } second;
    layout(set = 0, binding = 3) buffer Never { int n[]; };
    layout(set = 0, binding = 4) buffer Count { uint count; };
    layout(set = 0, binding = 5) buffer Mixed { uint n5; float rest[]; };
    struct S { vec3 a; float b; };
    layout(set = 0, binding = 6) buffer Structs { S s[]; };)",
                             "out_[i] = uvec4(second.d[i]); count = n[i]; s[i].b = rest[i];"));
  REQUIRE(seen.bindings.size() == 6);
  const auto& b = seen.bindings;
  CHECK(b[0].binding == 2);
  CHECK(b[0].name == "second");
  CHECK(b[0].memory == Memory{Access::read, Written::no, ElementType::float64, 8});
  CHECK(b[1].memory == Memory{Access::read_write, Written::no, ElementType::int32, 4});
  CHECK(b[2].memory == Memory{Access::read_write, Written::yes, ElementType::uint32, 4});
  CHECK(b[3].memory == Memory{Access::read_write, Written::no, ElementType::opaque, 0});
  CHECK(b[3].name == "Mixed");
  const std::vector<SlotMember> numbers = {{ElementType::float32, 0, 4},
                                           {ElementType::float32, 4, 4},
                                           {ElementType::float32, 8, 4},
                                           {ElementType::float32, 12, 4}};
  CHECK(b[4].memory == Memory{Access::read_write, Written::yes, ElementType::opaque, 16, numbers});
  CHECK(b[5].binding == 7);
  CHECK(b[5].memory == Memory{Access::write, Written::yes, ElementType::uint32, 16});
  CHECK(seen.needs == Features{Feature::float64});
}

TEST_CASE("a buffer that the code never touches is still a parameter", "[kernel]") {
  CHECK(
      of_glsl(compute_shader("layout(set = 0, binding = 0) buffer X { float x[]; };", "")).bindings.size() ==
      1);
}

TEST_CASE("atomics write, and reading an atomic does not", "[kernel]") {
  const Interface seen = of_glsl(compute_shader(R"(
    layout(set = 0, binding = 0) buffer A { uint a[]; };
    layout(set = 0, binding = 1) buffer B { uint b[]; };
    layout(set = 0, binding = 2) buffer C { uint c[]; };)",
                                                "atomicAdd(a[i], 1); atomicCompSwap(b[i], 1, c[i]);"));
  CHECK(seen.bindings[0].memory.written == Written::yes);
  CHECK(seen.bindings[1].memory.written == Written::yes);
  CHECK(seen.bindings[2].memory.written == Written::no);
}

TEST_CASE("writes inside functions count for the buffers that they reach", "[kernel]") {
  const Interface seen = of_glsl(compute_shader(R"(
    layout(set = 0, binding = 0) buffer A { uint a[]; };
    layout(set = 0, binding = 1) buffer B { uint b[]; };
    void called(uint i) { a[i] = b[i]; }
    void not_called(uint i) { b[i] = a[i]; })",
                                                "called(i);"));
  CHECK(seen.bindings[0].memory.written == Written::yes);
  CHECK(seen.bindings[1].memory.written == Written::no);
}

TEST_CASE("two views of one binding are one buffer", "[kernel]") {
  const Interface seen = of_glsl(compute_shader(R"(
    layout(set = 0, binding = 0) readonly buffer A { float a[]; };
    layout(set = 0, binding = 0) buffer B { uint b[]; };)",
                                                "b[i] = uint(a[i]);"));
  REQUIRE(seen.bindings.size() == 1);
  CHECK(seen.bindings[0].memory.declared == Access::read_write);
  CHECK(seen.bindings[0].memory.written == Written::yes);
  CHECK(seen.bindings[0].memory.stride == 0);
}

TEST_CASE("push constants are read with kinds, offsets and sizes", "[kernel]") {
  const Interface seen = of_glsl(compute_shader(R"(
    struct Pair { vec4 a; float b; };
    layout(push_constant, std430) uniform P {
      float f; int i_; uint u; double d; uint64_t u64; int64_t i64; 
      vec3 v; Pair pair; mat3 m; float list[5]; Floats pointer; Span span; In in_; };
    layout(set = 0, binding = 0) buffer X { float x[]; };)",
                                                "x[i] = f;"));
  const auto& m = seen.members;
  REQUIRE(m.size() == 13);
  const auto is = [&](std::size_t n, const char* name, PushMember::Kind kind, ElementType element,
                      std::uint32_t offset, std::uint32_t size) {
    INFO(name);
    CHECK(m[n].name == name);
    CHECK(m[n].kind == kind);
    CHECK(m[n].element == element);
    CHECK(m[n].offset == offset);
    CHECK(m[n].size == size);
  };
  using PushKind = PushMember::Kind;
  is(0, "f", PushKind::scalar, ElementType::float32, 0, 4);
  is(1, "i_", PushKind::scalar, ElementType::int32, 4, 4);
  is(2, "u", PushKind::scalar, ElementType::uint32, 8, 4);
  is(3, "d", PushKind::scalar, ElementType::float64, 16, 8);
  is(4, "u64", PushKind::scalar, ElementType::uint64, 24, 8);
  is(5, "i64", PushKind::scalar, ElementType::int64, 32, 8);
  is(6, "v", PushKind::structure, ElementType::float32, 48, 12);
  is(7, "pair", PushKind::structure, ElementType::opaque, 64, 20);
  CHECK(m[7].packed_size == 20);
  CHECK(m[7].padded_size == 32);
  is(8, "m", PushKind::structure, ElementType::float32, 96, 48);
  is(9, "list", PushKind::structure, ElementType::float32, 144, 20);
  is(10, "pointer", PushKind::pointer, ElementType::opaque, 168, 8);
  CHECK(m[10].memory.component == ElementType::float32);
  CHECK(m[10].memory.stride == 4);
  is(11, "span", PushKind::span, ElementType::opaque, 176, 16);
  CHECK(m[11].memory.stride == 4);
  is(12, "in_", PushKind::pointer, ElementType::opaque, 192, 8);
  CHECK(m[12].memory.declared == Access::read);
  CHECK(seen.push_bytes == 200);
}

TEST_CASE("a push-constant block too large for any device is refused", "[kernel]") {
  CHECK(glsl_refused(compute_shader("layout(push_constant) uniform P { float list[20000]; };", ""))
            .sentence() == "The push-constant block (80000 bytes) exceeds the limit (65536 bytes).");
}

TEST_CASE("writes through addresses count for the member they came from", "[kernel]") {
  const auto held = kernel::GlslCompiler::share();
  const std::string block = "layout(push_constant) uniform P { Span a; Span b; Floats c; uvec2 d; };";
  const auto written = [&](const std::string& functions, const std::string& body) {
    std::vector<Written> result;
    for (const PushMember& member : of_glsl(compute_shader(block + functions, body)).members)
      result.push_back(member.memory.written);
    return result;
  };
  using W = std::vector<Written>;
  constexpr auto no = Written::no, yes = Written::yes, unknown = Written::unknown;
  CHECK(written("", "") == W{no, no, no, no});
  CHECK(written("", "a.data.at[i] = b.data.at[i];") == W{yes, no, no, no});
  CHECK(written("", "Floats p = b.data; p.at[i] += 1.0;") == W{no, yes, no, no});
  CHECK(written("", "Span s = b; s.data.at[i] = a.data.at[i];") == W{no, yes, no, no});
  CHECK(written("", "Floats(d).at[i] = c.at[i];") == W{no, no, no, yes});
  CHECK(written("void put(Floats p, uint i) { p.at[i] = 1.0; }", "put(c, i);") == W{no, no, yes, no});
  CHECK(written("void put(Span s, uint i) { s.data.at[i] = 1.0; }", "put(a, i);") == W{yes, no, no, no});
  CHECK(written("Floats which(uint i) { return b.data; }", "which(i).at[i] = a.data.at[i];") ==
        W{no, yes, no, no});
  CHECK(written("void pick(out Floats p) { p = c; }", "Floats p; pick(p); p.at[i] = 1.0;") ==
        W{no, no, yes, no});
  // A pointer that may be one of several is unknown, and so is a pointer loaded from memory.
  CHECK(written("", "Floats p = a.data; if (i > 3) p = b.data; p.at[i] = 1.0;") ==
        W{unknown, unknown, no, no});
  CHECK(written("", "uvec2 q = uvec2(floatBitsToUint(c.at[0]), 1u); Floats(q).at[i] = 1.0;") ==
        W{unknown, unknown, unknown, unknown});
}

TEST_CASE("the workgroup is read with its specialization constants", "[kernel]") {
  const auto held = kernel::GlslCompiler::share();
  const std::string fixed =
      "#version 450\nlayout(local_size_x = 8, local_size_y = 4, local_size_z = 2) in;\nvoid main() {}";
  CHECK(of_glsl(fixed).workgroup == Extent3(8, 4, 2));
  const std::string open =
      "#version 450\nlayout(local_size_x_id = 3, local_size_y = 4) in;\n"
      "layout(constant_id = 5) const double d = 1.0lf;\nlayout(constant_id = 6) const bool b = true;\n"
      "layout(set = 0, binding = 0) buffer X { float x[]; };\n"
      "void main() { if (b) x[0] = float(d); }";
  CHECK(of_glsl(open).workgroup == Extent3(1, 4, 1));
  CHECK(of_glsl(open, {{3, 4, 64}, {5, 8, 0}, {6, 4, 0}}).workgroup == Extent3(64, 4, 1));
  CHECK(refused(test::compile(open), {{4, 4, 64}}).sentence() ==
        "The source has no specialization constant 4.");
  CHECK(refused(test::compile(open), {{3, 8, 64}}).sentence() ==
        "The value of specialization constant 3 has 8 bytes, but the constant has 4 bytes in the source.");
  CHECK(refused(test::compile(open), {{5, 4, 64}}).code() == Errc::invalid_argument);
  CHECK(refused(test::compile(open), {{3, 4, 0}}).sentence() ==
        "The workgroup size (0 x 4 x 1) has a zero dimension.");
}

TEST_CASE("a workgroup of ids is read too", "[kernel]") {
  const auto words = test::module("", "", "", "OpEntryPoint GLCompute %main \"main\"",
                                  "OpExecutionModeId %main LocalSizeId %u3 %u2 %u1");
  CHECK(interface_of(words).workgroup == Extent3(3, 2, 1));
  CHECK(kernel::validate(words).error() == Errc::invalid_argument);  // Vulkan 1.2 has no such mode
  CHECK(refused(test::module("", "", "", "OpEntryPoint GLCompute %main \"main\"", "")).sentence() ==
        "The entry point has no workgroup size.");
}

TEST_CASE("array lengths follow their specialization constants", "[kernel]") {
  const auto words = test::module(
      "OpDecorate %n SpecId 1\nOpDecorate %list ArrayStride 4\nOpMemberDecorate %block 0 Offset "
      "0\nOpDecorate %block Block",
      "%n = OpSpecConstant %uint 5\n%list = OpTypeArray %float %n\n%block = OpTypeStruct %list\n"
      "%pointer = OpTypePointer PushConstant %block\n%push = OpVariable %pointer PushConstant",
      "", "OpEntryPoint GLCompute %main \"main\" %push");
  CHECK(interface_of(words).push_bytes == 20);
  CHECK(interface_of(words, {{1, 4, 7}}).push_bytes == 28);
}

TEST_CASE("addresses of bare numbers and of structs are read as other compilers write them", "[kernel]") {
  const auto words = test::module(R"(
OpDecorate %to_float ArrayStride 4
OpDecorate %to_pair ArrayStride 8
OpMemberDecorate %pair 0 Offset 0
OpMemberDecorate %pair 1 Offset 4
OpMemberDecorate %block 0 Offset 0
OpMemberDecorate %block 1 Offset 8
OpDecorate %block Block)",
                                  R"(
%one = OpConstant %float 1
%pair = OpTypeStruct %float %uint
%to_float = OpTypePointer PhysicalStorageBuffer %float
%to_pair = OpTypePointer PhysicalStorageBuffer %pair
%block = OpTypeStruct %to_pair %to_float
%block_pointer = OpTypePointer PushConstant %block
%member = OpTypePointer PushConstant %to_float
%push = OpVariable %block_pointer PushConstant)",
                                  R"(
%where = OpAccessChain %member %push %u1
%address = OpLoad %to_float %where
%element = OpPtrAccessChain %to_float %address %u3
OpStore %element %one Aligned 4)",
                                  "OpEntryPoint GLCompute %main \"main\" %push");
  const Interface seen = interface_of(words);
  REQUIRE(seen.members.size() == 2);
  CHECK(seen.members[0].kind == PushMember::Kind::pointer);
  CHECK(seen.members[0].memory == Memory{Access::read_write, Written::no, ElementType::opaque, 8});
  CHECK(seen.members[1].memory == Memory{Access::read_write, Written::yes, ElementType::float32, 4});
}

TEST_CASE("an address that is one of several is written perhaps, and an address beside them is not",
          "[kernel]") {
  const auto written = [](const std::string& chosen) {
    const auto words = test::module(R"(
OpDecorate %to_float ArrayStride 4
OpMemberDecorate %block 0 Offset 0
OpMemberDecorate %block 1 Offset 8
OpMemberDecorate %block 2 Offset 16
OpDecorate %block Block)",
                                    R"(
%bool = OpTypeBool
%true = OpConstantTrue %bool
%one = OpConstant %float 1
%to_float = OpTypePointer PhysicalStorageBuffer %float
%block = OpTypeStruct %to_float %to_float %to_float
%block_pointer = OpTypePointer PushConstant %block
%member = OpTypePointer PushConstant %to_float
%push = OpVariable %block_pointer PushConstant)",
                                    R"(
%place_a = OpAccessChain %member %push %u0
%place_b = OpAccessChain %member %push %u1
%a = OpLoad %to_float %place_a
%b = OpLoad %to_float %place_b
)" + chosen + R"(
%element = OpPtrAccessChain %to_float %chosen %u3
OpStore %element %one Aligned 4)",
                                    "OpEntryPoint GLCompute %main \"main\" %push");
    std::vector<Written> result;
    for (const PushMember& member : interface_of(words).members) result.push_back(member.memory.written);
    return result;
  };
  using W = std::vector<Written>;
  constexpr auto no = Written::no, unknown = Written::unknown;
  CHECK(written("%chosen = OpSelect %to_float %true %a %b") == W{unknown, unknown, no});
  CHECK(written(R"(
OpSelectionMerge %end None
OpBranchConditional %true %left %right
%left = OpLabel
OpBranch %end
%right = OpLabel
OpBranch %end
%end = OpLabel
%chosen = OpPhi %to_float %a %left %b %right)") == W{unknown, unknown, no});
}

TEST_CASE("atomics on floating-point numbers and on flags write", "[kernel]") {
  for (const char* const atomic :
       {"OpAtomicFAddEXT %float %to_a %u1 %u0 %one", "OpAtomicFMinEXT %float %to_a %u1 %u0 %one",
        "OpAtomicFMaxEXT %float %to_a %u1 %u0 %one", "OpAtomicFlagTestAndSet %bool %to_a %u1 %u0"}) {
    INFO(atomic);
    const auto words =
        test::module(R"(
OpDecorate %list ArrayStride 4
OpMemberDecorate %block 0 Offset 0
OpDecorate %block Block
OpDecorate %a DescriptorSet 0
OpDecorate %a Binding 0)",
                     R"(
%bool = OpTypeBool
%list = OpTypeRuntimeArray %float
%block = OpTypeStruct %list
%buffer = OpTypePointer StorageBuffer %block
%element = OpTypePointer StorageBuffer %float
%one = OpConstant %float 1
%a = OpVariable %buffer StorageBuffer)",
                     "%to_a = OpAccessChain %element %a %u0 %u1\n%old = " + std::string(atomic),
                     "OpEntryPoint GLCompute %main \"main\" %a");
    CHECK(interface_of(words).bindings.at(0).memory.written == Written::yes);
  }
}

TEST_CASE("a matrix has the size of its lines, which are rows if it is row-major", "[kernel]") {
  const Interface seen = of_glsl(compute_shader(
      "layout(push_constant, std430) uniform P { mat3x2 columns; layout(row_major) mat3x2 rows; };", ""));
  REQUIRE(seen.members.size() == 2);
  CHECK(seen.members[0].size == 24);  // three columns, 8 bytes apart
  CHECK(seen.members[1].size == 32);  // two rows, 16 bytes apart
}

TEST_CASE("each entry point has its own buffers, and a missing one is named with those there are",
          "[kernel]") {
  const std::string annotations = R"(
OpExecutionMode %other LocalSize 16 1 1
OpDecorate %list ArrayStride 4
OpMemberDecorate %block 0 Offset 0
OpDecorate %block Block
OpDecorate %a DescriptorSet 0
OpDecorate %a Binding 0
OpDecorate %b DescriptorSet 0
OpDecorate %b Binding 1)";
  const std::string declarations = R"(
%list = OpTypeRuntimeArray %float
%block = OpTypeStruct %list
%buffer = OpTypePointer StorageBuffer %block
%element = OpTypePointer StorageBuffer %float
%one = OpConstant %float 1
%a = OpVariable %buffer StorageBuffer
%b = OpVariable %buffer StorageBuffer
%other = OpFunction %void None %code
%begin = OpLabel
%to_b = OpAccessChain %element %b %u0 %u1
OpStore %to_b %one
OpReturn
OpFunctionEnd)";
  const std::string body = "%to_a = OpAccessChain %element %a %u0 %u1\n%loaded = OpLoad %float %to_a";
  const auto both = [&](const char* a, const char* b) {
    return test::module(annotations, declarations, body,
                        std::string("OpEntryPoint GLCompute %main \"main\"") + a +
                            "\nOpEntryPoint GLCompute %other \"other\"" + b);
  };
  auto words = both(" %a", " %b");
  for (const bool lists_them : {true, false}) {
    if (!lists_them) words = both("", ""), words[1] = 0x00010300;
    const Interface main = interface_of(words), other = interface_of(words, {}, "other");
    REQUIRE(main.bindings.size() == 1);
    REQUIRE(other.bindings.size() == 1);
    CHECK(main.bindings[0].binding == 0);
    CHECK(other.bindings[0].binding == 1);
    CHECK(main.bindings[0].memory.written == Written::no);
    CHECK(other.bindings[0].memory.written == Written::yes);
    CHECK(main.workgroup == Extent3(8, 4, 2));
    CHECK(other.workgroup == Extent3(16));
  }
  CHECK(refused(words, {}, "third").sentence() ==
        "The code has no compute entry point 'third' (it has 'main', 'other').");
}

TEST_CASE("SPIR-V of before 1.4 keeps its buffers", "[kernel]") {
  auto words = test::module(
      "OpMemberDecorate %block 0 Offset 0\nOpDecorate %block BufferBlock\nOpDecorate %a DescriptorSet "
      "0\nOpDecorate %a "
      "Binding 4",
      "%block = OpTypeStruct %float\n%pointer = OpTypePointer Uniform %block\n%a = OpVariable %pointer "
      "Uniform",
      "");
  words[1] = 0x00010000;
  const Interface seen = interface_of(words);
  REQUIRE(seen.bindings.size() == 1);
  CHECK(seen.bindings[0].binding == 4);
}

TEST_CASE("a resource other than a storage buffer of set 0 is refused by number and name", "[kernel]") {
  const auto held = kernel::GlslCompiler::share();
  const auto said = [](const std::string& declarations, const std::string& body) {
    const Error error = glsl_refused(compute_shader(declarations, body));
    CHECK(error.code() == Errc::unsupported);
    return error.sentence();
  };
  const std::string tail = "; wye accepts only storage buffers of set 0.";
  CHECK(said("layout(set = 1, binding = 2) buffer X { float x[]; };", "x[i] = 1.0;") ==
        "Binding 2 ('x') of set 1 is a storage buffer of another set" + tail);
  CHECK(said("layout(set = 0, binding = 1) uniform U { float u; };\nlayout(set = 0, binding = 0) buffer X { "
             "float x[]; };",
             "x[i] = u;") == "Binding 1 ('u') of set 0 is a uniform buffer" + tail);
  CHECK(said("layout(set = 0, binding = 1, r32f) uniform image2D picture;",
             "imageStore(picture, ivec2(i), vec4(1.0));") ==
        "Binding 1 ('picture') of set 0 is an image" + tail);
  CHECK(said("layout(set = 0, binding = 3) uniform sampler2D texture_;\nlayout(set = 0, binding = 0) buffer "
             "X { vec4 x[]; };",
             "x[i] = textureLod(texture_, vec2(0), 0.0);") ==
        "Binding 3 ('texture_') of set 0 is an image" + tail);
  CHECK(said("layout(set = 0, binding = 0) buffer X { float x[]; } list[3];", "list[1].x[i] = 1.0;") ==
        "Binding 0 ('list') of set 0 is an array of resources" + tail);
  CHECK(said("layout(set = 0, binding = 5000) buffer X { float x[]; };", "x[i] = 1.0;") ==
        "Binding number 5000 ('x') exceeds the limit (1023).");
}

TEST_CASE("capabilities become features, and unknown ones are refused by name", "[kernel]") {
  const auto held = kernel::GlslCompiler::share();
  const auto needs = [](const std::string& extension, const std::string& body) {
    return of_glsl("#version 450\n" + extension +
                   "\nlayout(local_size_x = 8) in;\nlayout(set = 0, binding = 0) buffer X { float x[]; "
                   "};\nlayout(set = 0, "
                   "binding = 1) buffer Y { uint y[]; };\nvoid main() { uint i = gl_GlobalInvocationID.x; " +
                   body + " }")
        .needs;
  };
  const std::string types = "#extension GL_EXT_shader_explicit_arithmetic_types : require";
  CHECK(needs("", "x[i] = 1.0;").empty());
  CHECK(needs("", "double d = x[i]; x[i] = float(d * d);") == Features{Feature::float64});
  CHECK(needs(types, "float16_t h = float16_t(x[i]); x[i] = float(h * h);") == Features{Feature::float16});
  CHECK(needs(types, "int64_t l = int64_t(y[i]); y[i] = uint(l * l);") == Features{Feature::int64});
  CHECK(needs(types, "int16_t l = int16_t(y[i]); y[i] = uint(l * l);") == Features{Feature::int16});
  CHECK(needs(types, "int8_t l = int8_t(y[i]); y[i] = uint(l * l);") == Features{Feature::int8});
  CHECK(needs("#extension GL_KHR_shader_subgroup_arithmetic : require", "x[i] = subgroupAdd(x[i]);") ==
        Features{Feature::subgroups});
  CHECK(needs("#extension GL_EXT_shader_atomic_float : require", "atomicAdd(x[i], 1.0);") ==
        Features{Feature::atomics_float32});
  CHECK(
      glsl_refused(
          "#version 450\n#extension GL_ARB_shader_clock : require\n#extension GL_KHR_shader_subgroup_quad : "
          "require\nlayout(set = 0, binding = 0) buffer X { float x[]; };\nvoid main() { x[0] = "
          "subgroupQuadBroadcast(x[0], 1); }")
          .sentence() ==
      "The code needs the SPIR-V capability 68 ('GroupNonUniformQuad'), which wye does not offer.");
}

TEST_CASE("storage of small numbers needs its features", "[kernel]") {
  const auto held = kernel::GlslCompiler::share();
  const auto needs = [](const char* type) {
    return of_glsl(
        std::string("#version 450\n#extension GL_EXT_shader_16bit_storage : require\n"
                    "#extension GL_EXT_shader_8bit_storage : require\n"
                    "layout(set = 0, binding = 0) buffer X { ") +
        type +
        " x[]; };\nlayout(set = 0, binding = 1) buffer Y { uint y[]; };\nvoid main() { y[0] = uint(x[0]); }");
  };
  CHECK(needs("uint16_t").needs == Features{Feature::storage16});
  CHECK(needs("uint16_t").bindings[0].memory.component == ElementType::uint16);
  CHECK(needs("uint8_t").needs == Features{Feature::storage8});
  CHECK(needs("uint8_t").bindings[0].memory.stride == 1);
}

TEST_CASE("names are printable and short", "[kernel]") {
  const auto words =
      test::module("OpName %push \"a\tb\nc\"\nOpMemberName %block 0 \"" + std::string(200, 'n') +
                       "\"\nOpMemberDecorate %block 0 Offset 0\nOpDecorate %block Block",
                   "%block = OpTypeStruct %float\n%pointer = OpTypePointer PushConstant %block\n%push = "
                   "OpVariable %pointer PushConstant",
                   "", "OpEntryPoint GLCompute %main \"main\" %push");
  CHECK(interface_of(words).members[0].name == std::string(64, 'n'));
}

TEST_CASE("numbers among push constants and newer capabilities become features", "[kernel]") {
  const auto held = kernel::GlslCompiler::share();
  const auto seen = of_glsl(
      "#version 450\n#extension GL_EXT_shader_16bit_storage : require\n"
      "#extension GL_EXT_shader_8bit_storage : require\n#extension GL_KHR_shader_subgroup_clustered : "
      "require\n"
      "layout(push_constant) uniform P { int8_t a; uint16_t b; bool c; };\n"
      "layout(set = 0, binding = 0) buffer Y { uint y[]; };\n"
      "void main() { y[0] = subgroupClusteredAdd(uint(int(a)) + uint(b) + (c ? 1u : 0u), 4); }");
  CHECK(seen.needs.has(Feature::parameters8));
  CHECK(seen.needs.has(Feature::parameters16));
  CHECK(seen.needs.has(Feature::subgroups_clustered));
  REQUIRE(seen.members.size() == 3);
  CHECK(seen.members[0].element == ElementType::int8);
  CHECK(seen.members[1].element == ElementType::uint16);
  CHECK(seen.members[2].element == ElementType::uint32);
}

TEST_CASE("uniform buffers become storage buffers that are not written", "[kernel]") {
  auto words = test::compile(
      "#version 450\nlayout(set = 0, binding = 2) uniform U { float a; vec3 b; uint c[3]; };\n"
      "layout(set = 0, binding = 0) buffer X { float x[]; };\nvoid main() { x[0] = a + b.y + float(c[1]); }");
  CHECK_FALSE(reflect(words, "main", {}));
  spirv::make_portable(words);
  CHECK(kernel::validate(words));
  const Interface seen = interface_of(words);
  REQUIRE(seen.bindings.size() == 2);
  CHECK(seen.bindings[1].binding == 2);
  CHECK(seen.bindings[1].memory.declared == Access::read);
  std::vector<std::uint32_t> offsets;
  for (const SlotMember& member : seen.bindings[1].memory.layout) offsets.push_back(member.offset);
  CHECK(offsets == std::vector<std::uint32_t>{0, 16, 20, 24, 32, 48, 64});
  auto again = words;
  spirv::make_portable(again);
  CHECK(again == words);
}

TEST_CASE("a type without numbers that is nested without end is not walked without end", "[kernel]") {
  std::string declarations =
      "%n = OpConstant %uint 4294967295\n%s0 = OpTypeStruct\n%many = OpTypeArray %s0 %n\n";
  declarations += "%t0 = OpTypeStruct %many\n";
  for (int i = 1; i < 64; ++i)
    declarations += "%t" + std::to_string(i) + " = OpTypeStruct %t" + std::to_string(i - 1) + " %t" +
                    std::to_string(i - 1) + "\n";
  declarations +=
      "%block = OpTypeStruct %t63\n%pointer = OpTypePointer PushConstant %block\n"
      "%push = OpVariable %pointer PushConstant";
  const auto words = test::module("OpMemberDecorate %block 0 Offset 0\nOpDecorate %block Block", declarations,
                                  "", "OpEntryPoint GLCompute %main \"main\" %push");
  const Interface seen = interface_of(words);
  REQUIRE(seen.members.size() == 1);
  CHECK(seen.members[0].layout.empty());
}

TEST_CASE("an invalid SPIR-V file is refused with the reason", "[kernel]") {
  const TemporaryFolder folder;
  const auto said = [&](std::string bytes) {
    const std::string path = folder.put("a.spv", bytes);
    const auto read = SpirV::from_file(path);
    REQUIRE_FALSE(read);
    CHECK(read.error() == Errc::invalid_argument);
    std::string sentence = read.error().sentence();
    return sentence.replace(sentence.find(path), path.size(), "F");
  };
  const auto words = test::compile(test::scale_glsl);
  const std::string good(reinterpret_cast<const char*>(words.data()), words.size() * 4);
  CHECK(said(good.substr(0, good.size() - 1)) == "The size of file 'F' (" + std::to_string(good.size() - 1) +
                                                     " bytes) is not that of SPIR-V: a multiple of 4 of at "
                                                     "least 20.");
  CHECK(said(good.substr(0, 16)).find("(16 bytes)") != std::string::npos);
  CHECK(said("\x07\x23\x02\x03" + good.substr(4)) ==
        "File 'F' is SPIR-V in the byte order of another machine.");
  CHECK(said("#version 450") == "File 'F' is not SPIR-V: it lacks the magic number.");
  CHECK(SpirV::from_file(folder.put("b.spv", good)));
}

TEST_CASE("valid SPIR-V is accepted, and invalid SPIR-V is refused with the reason", "[kernel]") {
  auto words = test::compile(test::scale_glsl);
  CHECK(kernel::validate(words));
  const auto bad = test::module("", "%broken = OpTypePointer StorageBuffer %u0", "");
  auto refusal = kernel::validate(bad);
  REQUIRE_FALSE(refusal);
  CHECK(refusal.error().code() == Errc::invalid_argument);
  CHECK(refusal.error().sentence().find("The SPIR-V is not valid at instruction ") == 0);
  REQUIRE_FALSE(refusal.error().context().empty());  // the instruction, in words
  CHECK(refusal.error().context()[0].find("OpTypePointer") != std::string::npos);
  CHECK_FALSE(kernel::validate({}));
}

TEST_CASE("no word of a module can be anything that leads outside it", "[kernel]") {
  // Under a sanitizer this proves the walk's bounds. Every truncation, every word replaced in
  // several ways, and noise.
  const std::vector<test::Words> modules{
      test::compile(test::scale_glsl), test::compile(test::scale_span_glsl),
      test::compile(
          compute_shader("struct S { mat3 m; vec3 v[4]; }; layout(constant_id = 1) const uint n = 4;\n"
                         "layout(push_constant) uniform P { S s; Span a; float l[n]; };\n"
                         "layout(set = 0, binding = 0) buffer X { S x[]; };\n"
                         "void put(Floats p, uint i) { p.at[i] = 1.0; }",
                         "x[i] = s; put(a.data, n);"))};
  std::mt19937 random(20240607);
  std::size_t understood = 0, tried = 0;
  const auto try_one = [&](const test::Words& words) {
    ++tried;
    understood += reflect(words, "main", {}).has_value();
    test::Words copy = words;
    spirv::make_portable(copy);
    spirv::make_portable(copy);
  };
  for (const test::Words& whole : modules) {
    for (std::size_t length = 0; length < whole.size(); ++length)
      try_one(test::Words(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)));
    test::Words words = whole;
    for (std::size_t at = 0; at < whole.size(); ++at) {
      for (const std::uint32_t other : {0u, 1u, ~0u, whole[at] ^ 1u, whole[at] + 1, whole[at] ^ 0x80000000u,
                                        whole[at] ^ 0x10000u, whole[at] >> 1, std::uint32_t(random())}) {
        words[at] = other;
        try_one(words);
      }
      words[at] = whole[at];
    }
    for (int round = 0; round < 2000; ++round) {
      words = whole;
      for (int i = 0; i < 8; ++i)
        words[5 + random() % (words.size() - 5)] = static_cast<std::uint32_t>(random() % 128);
      try_one(words);
    }
  }
  CHECK(understood > 0);
  CHECK(understood < tried);
}

TEST_CASE("the validator takes any words too", "[kernel]") {
  const test::Words whole = test::compile(test::scale_glsl);
  test::Words words = whole;
  for (std::size_t length = 0; length < whole.size(); length += 7)
    CHECK_FALSE(kernel::validate(std::span(whole).first(length)));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    words[at] = whole[at] ^ 0x11;
    (void)kernel::validate(words).has_value();
    words[at] = whole[at];
  }
}

#endif
