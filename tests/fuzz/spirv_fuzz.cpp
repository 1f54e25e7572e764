// Code from anywhere: it is read within its bounds, understood or refused.
#include "spirv/rewrite.hpp"

#include <cstdio>
#include <cstdlib>

#include "backend/vulkan/spirv_check.hpp"
#include "fuzz/edits.hpp"
#include "kernel/compilers/glsl.hpp"
#include "kernel/reflect/spirv.hpp"

namespace {

using namespace wye;
using Words = std::vector<std::uint32_t>;

/// Bound buffers and addresses, a structure, loops, calls, shared memory, a specialized workgroup.
const char* const shaders[] = {
    R"(#version 450
layout(local_size_x_id = 1) in;
layout(set = 0, binding = 0) buffer X { float x[]; };
layout(set = 0, binding = 2) readonly buffer Y { vec4 y[]; };
layout(constant_id = 3) const uint rounds = 4;
layout(push_constant) uniform P { float s; uvec3 size; mat3 turn; };
shared float part[64];
float next(float v) { return v * s + turn[0][1]; }
void main() {
  uint i = gl_GlobalInvocationID.x;
  part[gl_LocalInvocationID.x & 63] = y[i].x;
  barrier();
  for (uint r = 0; r < rounds; ++r) if (i < x.length()) x[i] = next(x[i]) + part[r & 63];
})",
    R"(#version 450
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
layout(local_size_x = 64) in;
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Floats { float at[]; };
layout(buffer_reference) buffer Node;
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Node { uint64_t value; Node next; };
struct Span { Floats data; uvec2 count; };
layout(push_constant) uniform P { Span x; Node list; double s; };
void main() {
  uint i = gl_GlobalInvocationID.x;
  Floats at = i > 5 ? x.data : Floats(uint64_t(x.data) + 16);
  if (i < x.count.x) at.at[i] = float(s) * float(list.next.value);
})",
};

std::vector<Words> seeds() {
  std::vector<Words> all;
  for (const char* text : shaders) {
    auto words = kernel::GlslCompiler::share()->compile(Glsl{.text = text}, "seed");
    if (!words) std::fputs(words.error().describe().c_str(), stderr), std::abort();
    all.push_back(*words);
  }
  return all;
}

vulkan::PhysicalDevice device_with_little() {
  vulkan::PhysicalDevice physical;
  physical.info.id = "vulkan:7";
  physical.info.limits.workgroup = {1024, 1024, 64};
  physical.info.limits.workgroup_invocations = 1024;
  physical.info.limits.shared_memory = Bytes{32768};
  physical.spirv_version = 0x00010600;
  physical.enabled.core.features.shaderInt64 = VK_TRUE;
  physical.enabled.core.features.shaderFloat64 = VK_TRUE;
  return physical;
}

void check(const Words& words, const kernel::Interface& interface) {
  static const vulkan::PhysicalDevice physical = device_with_little();
  device::Artefact artefact;
  artefact.kernel = "k";
  artefact.language = "spirv";
  artefact.workgroup = interface.workgroup;
  artefact.parameter_bytes = interface.push_bytes;
  const auto bytes = std::as_bytes(std::span(words));
  artefact.code.assign(bytes.begin(), bytes.end());
  for (const kernel::Binding& binding : interface.bindings) {
    artefact.schema.slots.push_back(
        Slot{binding.name, SlotKind::buffer, Access::read_write, ElementType::opaque, 4});
    artefact.passing.push_back(
        {.kind = device::Passing::Kind::descriptor, .binding = binding.binding, .offset = 0});
  }
  const auto module = vulkan::read_spirv(artefact, physical);
  if (!module || !vulkan::check_spirv(*module, artefact, physical)) return;
  const Words spilled = spirv::spill_push_constants(*module, 31);
  // The result is a module again.
  if (!spirv::Module::parse(spilled)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<Words> valid = seeds();
  test::Input input(data, size);
  const Words words = test::edited(valid[input.take<std::uint8_t>() % valid.size()], input);
  static const device::Specialization constant{.id = 1, .size = 4, .bits = 32};
  for (const std::size_t given : {0u, 1u})
    if (const auto interface = kernel::reflect(words, "main", {&constant, given})) check(words, *interface);
  return 0;
}
