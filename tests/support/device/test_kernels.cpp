#include "support/device/test_kernels.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "base/text.hpp"

#if WYE_WITH_GLSL
#include <shaderc/shaderc.hpp>
#endif
#if WYE_WITH_CUDA
#include "kernel/compilers/nvrtc.hpp"
#include "test_kernels_cu.hpp"
#endif

namespace wye::test {
namespace {

using namespace device;
using base::text;

struct HostCodeOf final : HostCode {
  explicit HostCodeOf(HostFunction f) : function(std::move(f)) {}
  void run(Range range, std::span<const Operand> operands, const StopToken& stop) const override {
    function(range, operands, stop);
  }
  HostFunction function;
};

struct TestKernel {
  std::string name;
  ParamSchema schema;
  Extent3 workgroup;
  std::string
      body;  // GLSL: `x(i)` is an element of x, `x_size` its length, `by` a scalar, `at` the invocation
  HostFunction function;
};

const std::vector<TestKernel>& all() {
  using U = std::uint32_t;
  constexpr ElementType float32 = ElementType::float32;
  static const std::vector<TestKernel> kernels = {
      {"add",
       {{buffer_slot("x", Access::read_write), scalar_slot("by")}},
       64,
       "if (at.x < x_size) x(at.x) += by;",
       [](Range range, std::span<const Operand> o, const StopToken&) {
         auto x = elements<U>(o, 0);
         for (auto i : range)
           if (i < x.size()) x[i] += scalar<U>(o, 1);
       }},
      {"mix",
       {{buffer_slot("from", Access::read), buffer_slot("to", Access::read_write), scalar_slot("by")}},
       64,
       "if (at.x < to_size) to(at.x) = to(at.x) * 3u + from(at.x) + by;",
       [](Range range, std::span<const Operand> o, const StopToken&) {
         auto from = elements<const U>(o, 0);
         auto to = elements<U>(o, 1);
         for (auto i : range)
           if (i < to.size()) to[i] = to[i] * 3 + from[i] + scalar<U>(o, 2);
       }},
      {"iota",
       {{buffer_slot("to", Access::write), scalar_slot("first")}},
       64,
       "if (at.x < to_size) to(at.x) = first + at.x;",
       [](Range range, std::span<const Operand> o, const StopToken&) {
         auto to = elements<U>(o, 0);
         for (auto i : range)
           if (i < to.size()) to[i] = scalar<U>(o, 1) + static_cast<U>(i);
       }},
      {"axpy",
       {{buffer_slot("x", Access::read, float32), buffer_slot("y", Access::read_write, float32),
         scalar_slot("a", float32)}},
       128,
       "if (at.x < y_size) y(at.x) += a * x(at.x);",
       [](Range range, std::span<const Operand> o, const StopToken&) {
         auto x = elements<const float>(o, 0);
         auto y = elements<float>(o, 1);
         for (auto i : range)
           if (i < y.size()) y[i] += scalar<float>(o, 2) * x[i];
       }},
      {"paint",
       {{buffer_slot("to", Access::write), scalar_slot("width"), scalar_slot("height"),
         scalar_slot("depth")}},
       {4, 4, 4},
       "if (at.x < width && at.y < height && at.z < depth)"
       " to((at.z * height + at.y) * width + at.x) = at.x + 1000u * at.y + 1000000u * at.z;",
       [](Range range, std::span<const Operand> o, const StopToken&) {
         auto to = elements<U>(o, 0);
         const U width = scalar<U>(o, 1), height = scalar<U>(o, 2);
         for (auto i : range) {
           const auto at = static_cast<U>(i);
           to[i] = at % width + 1000 * (at / width % height) + 1000000 * (at / width / height);
         }
       }},
  };
  return kernels;
}

#if WYE_WITH_GLSL

/// Returns the kernel as GLSL and sets how its arguments are passed.
std::string glsl(const TestKernel& kernel, Twin twin, Artefact& artefact) {
  std::string types, members, names;
  std::uint32_t binding = 0, offset = 0;
  for (const Slot& slot : kernel.schema.slots) {
    const std::string_view type = slot.element == ElementType::float32 ? "float" : "uint";
    if (slot.kind == SlotKind::scalar) {
      artefact.passing.push_back({.kind = Passing::Kind::bytes, .binding = 0, .offset = offset});
      members += text("  {0} {1}_;\n", type, slot.name);
      names += text("#define {0} p_.{0}_\n", slot.name);
      offset += 4;
    } else if (twin == Twin::descriptors) {
      artefact.passing.push_back({.kind = Passing::Kind::descriptor, .binding = binding, .offset = 0});
      types += text("layout(set = 0, binding = {0}, std430) {1}buffer B_{2} {{ {3} data[]; }} {2}_;\n",
                    binding++, slot.access == Access::read ? "readonly " : "", slot.name, type);
      names += text("#define {0}(i) {0}_.data[i]\n#define {0}_size uint({0}_.data.length())\n", slot.name);
    } else {
      artefact.passing.push_back({.kind = Passing::Kind::span, .binding = 0, .offset = offset});
      types += text(
          "layout(buffer_reference, std430, buffer_reference_align = 4) buffer B_{0} {{ {1} data[]; }};\n",
          slot.name, type);
      members += text("  B_{0} {0}_;\n  uvec2 {0}_count_;\n", slot.name);
      names += text("#define {0}(i) p_.{0}_.data[i]\n#define {0}_size p_.{0}_count_.x\n", slot.name);
      offset += 16;
    }
  }
  artefact.parameter_bytes = offset;
  return text(
      "#version 450\n#extension GL_EXT_buffer_reference : require\n"
      "layout(local_size_x = {}, local_size_y = {}, local_size_z = {}) in;\n"
      "{}layout(push_constant, std430) uniform P {{\n{}}} p_;\n{}"
      "void main() {{\n  uvec3 at = gl_GlobalInvocationID;\n  {}\n}}\n",
      kernel.workgroup.x, kernel.workgroup.y, kernel.workgroup.z, types, members, names, kernel.body);
}

Result<std::vector<std::byte>> spirv(const std::string& source, const std::string& name) {
  static std::mutex mutex;
  static std::map<std::string, std::vector<std::byte>> known;
  const std::lock_guard lock(mutex);
  if (auto found = known.find(source); found != known.end()) return found->second;
  shaderc::CompileOptions options;
  options.SetTargetEnvironment(shaderc_target_env_vulkan, shaderc_env_version_vulkan_1_2);
  const auto compiled =
      shaderc::Compiler().CompileGlslToSpv(source, shaderc_compute_shader, name.c_str(), options);
  if (compiled.GetCompilationStatus() != shaderc_compilation_status_success)
    return Error(Errc::compile_failed, compiled.GetErrorMessage() + source);
  const auto bytes = std::as_bytes(std::span(compiled.cbegin(), compiled.cend()));
  return known[source] = std::vector<std::byte>(bytes.begin(), bytes.end());
}

#endif

#if WYE_WITH_CUDA

/// All test kernels of tests/support/cuda/test_kernels.cu in one cubin; compiled once for each
/// architecture.
Result<std::vector<std::byte>> cubin(const std::string& architecture) {
  static std::mutex mutex;
  static std::map<std::string, std::vector<std::byte>> known;
  const std::lock_guard lock(mutex);
  if (auto found = known.find(architecture); found != known.end()) return found->second;
  auto compiler = kernel::CudaCompiler::share();
  if (!compiler) return std::move(compiler).error();
  const auto target = kernel::parse_target(architecture);
  if (!target) return Error(Errc::unsupported, text("'{}' is no architecture of CUDA's.", architecture));
  CudaCpp source{.text = test_kernels_cu, .file = "test_kernels.cu"};
  auto code =
      (*compiler)->compile(source, {{"test_kernels.cu", test_kernels_cu}}, {}, "test_kernels", *target);
  if (!code) return std::move(code).error();
  return known[architecture] = *std::move(code);
}

Result<Artefact> cuda_artefact(const TestKernel& kernel, const std::string& architecture) {
  Artefact artefact;
  artefact.kernel = artefact.entry = kernel.name;
  artefact.language = "cubin";
  artefact.schema = kernel.schema;
  artefact.workgroup = artefact.tile = kernel.workgroup;
  for (const Slot& slot : kernel.schema.slots) {
    std::uint32_t& offset = artefact.parameter_bytes;
    const bool is_span = slot.kind == SlotKind::buffer;
    if (is_span) offset = (offset + 7) / 8 * 8;
    artefact.passing.push_back(
        {.kind = is_span ? Passing::Kind::span : Passing::Kind::bytes, .binding = 0, .offset = offset});
    offset += is_span ? 16 : slot.size;
  }
  auto code = cubin(architecture);
  if (!code) return std::move(code).error();
  artefact.code = *std::move(code);
  artefact.key = digest(artefact.code);
  return artefact;
}

#endif

}  // namespace

Slot buffer_slot(std::string name, Access access, ElementType element) {
  return {.name = std::move(name), .kind = SlotKind::buffer, .access = access, .element = element, .size = 4};
}

Slot scalar_slot(std::string name, ElementType element) {
  return {.name = std::move(name),
          .kind = SlotKind::scalar,
          .access = Access::read,
          .element = element,
          .size = 4};
}

Artefact host_artefact(std::string name, ParamSchema schema, HostFunction function, Extent3 tile) {
  Artefact artefact;
  artefact.kernel = std::move(name);
  artefact.language = "host";
  artefact.host = std::make_shared<HostCodeOf>(std::move(function));
  artefact.passing.resize(schema.slots.size());
  artefact.schema = std::move(schema);
  artefact.tile = tile;
  return artefact;
}

Result<Artefact> test_kernel(std::string_view name, std::string_view language, [[maybe_unused]] Twin twin) {
  const auto kernel =
      std::find_if(all().begin(), all().end(), [&](const TestKernel& k) { return k.name == name; });
  if (kernel == all().end()) return Error(Errc::not_found, text("There is no test kernel '{}'.", name));
  if (language == "host") return host_artefact(kernel->name, kernel->schema, kernel->function);
#if WYE_WITH_GLSL
  if (language == "spirv") {
    Artefact artefact;
    artefact.kernel = kernel->name;
    artefact.language = language;
    artefact.schema = kernel->schema;
    artefact.workgroup = artefact.tile = kernel->workgroup;
    const std::string source = glsl(*kernel, twin, artefact);
    auto code = spirv(source, kernel->name);
    if (!code) return std::move(code).error();
    artefact.code = *std::move(code);
    artefact.key = digest(artefact.code);
    return artefact;
  }
#endif
  return Error(Errc::unsupported, text("There is no test kernel '{}' in language '{}'.", name, language));
}

Result<Artefact> test_kernel(std::string_view name, const DeviceBase& device, Twin twin) {
#if WYE_WITH_CUDA
  if (device.info().backend == "cuda") {
    const auto kernel =
        std::find_if(all().begin(), all().end(), [&](const TestKernel& k) { return k.name == name; });
    if (kernel == all().end()) return Error(Errc::not_found, text("There is no test kernel '{}'.", name));
    return cuda_artefact(*kernel, device.info().architecture);
  }
#endif
  return test_kernel(name, device.languages().front(), twin);
}

std::string no_cuda_kernels() {
#if WYE_WITH_CUDA
  if (auto compiler = kernel::CudaCompiler::share(); !compiler) return compiler.error().sentence();
  return "";
#else
  return "This build is without CUDA.";
#endif
}

std::string stand_in_cuda() {
#if WYE_WITH_CUDA
  return WYE_STAND_IN_CUDA;
#else
  return "";
#endif
}

std::vector<Twin> twins(const DeviceBase& device) {
  const std::string_view language = device.languages().front();
  if (language == "host" || language == "native") return {Twin::addresses};
  return {Twin::descriptors, Twin::addresses};
}

std::shared_ptr<ExecutableBase> test_executable(DeviceBase& device, std::string_view name, Twin twin) {
  auto artefact = test_kernel(name, device, twin);
  if (!artefact) throw std::runtime_error(artefact.error().describe());
  auto executable = device.create_executable(*artefact);
  if (!executable) throw std::runtime_error(executable.error().describe());
  return *executable;
}

}  // namespace wye::test
