/// The CUDA kernels of the library and of the tests, as NVRTC compiles them for each architecture:
/// no device is needed.
#include <wye/kernel/compile.hpp>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <span>

#include "support/catch.hpp"
#include "support/skip.hpp"

using namespace wye;

namespace {

struct CudaFile {
  std::string path;
  std::string name;
  std::vector<std::string> entries;
};

/// The name of each function that a text marks __global__.
std::vector<std::string> entries_of(const std::string& text) {
  std::vector<std::string> names;
  for (std::size_t at = text.find("__global__"); at != text.npos; at = text.find("__global__", at + 1)) {
    std::size_t open = text.find('(', at);
    if (text.compare(open - std::strlen("__launch_bounds__"), std::strlen("__launch_bounds__"),
                     "__launch_bounds__") == 0)
      open = text.find('(', open + 1);
    const std::size_t begin = text.find_last_of(" \n*", open - 1) + 1;
    names.push_back(text.substr(begin, open - begin));
  }
  return names;
}

std::vector<CudaFile> cuda_files() {
  std::vector<CudaFile> files;
  for (const char* folder : {WYE_SOURCE_FOLDER "/shaders", WYE_SOURCE_FOLDER "/tests/support/cuda"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      // Planted kernels are wrong on purpose, and not for the oldest architecture.
      if (entry.path().extension() != ".cu" || entry.path().stem() == "planted") continue;
      const auto source = CudaCpp::from_file(entry.path().string());
      REQUIRE(source);
      files.push_back({entry.path().string(), entry.path().stem().string(), entries_of(source->text)});
    }
  std::sort(files.begin(), files.end(), [](const CudaFile& a, const CudaFile& b) { return a.path < b.path; });
  return files;
}

/// Compiles a kernel, once per program.
const Result<Compiled>& compiled(const CudaFile& file, const std::string& entry, const std::string& target,
                                 const std::string& nvrtc = {}) {
  const auto compile_file = [&]() -> Result<Compiled> {
    auto source = CudaCpp::from_file(file.path);
    if (!source) return source.error();
    source->entry = entry;
    source->include_directories.push_back(WYE_SOURCE_FOLDER "/shaders/include");
    return compile(*source, {.name = entry, .target = target, .nvrtc = nvrtc});
  };
  static std::map<std::string, Result<Compiled>> all;
  const std::string key = file.path + ' ' + entry + ' ' + target + ' ' + nvrtc;
  const auto found = all.find(key);
  return found != all.end() ? found->second : all.emplace(key, compile_file()).first->second;
}

/// Returns whether the kernels' sources and a compiler are present: the program may run on another
/// machine than it was built on.
bool can_compile() {
  if (!std::filesystem::exists(WYE_SOURCE_FOLDER "/shaders")) {
    test::skip("the source tree is absent");
    return false;
  }
  const auto tried = compile(CudaCpp{.text = "extern \"C\" __global__ void k() {}"}, {.name = "k"});
  if (!tried) test::skip(tried.error().sentence());
  return tried.has_value();
}

std::size_t number_at(std::span<const std::byte> bytes, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  REQUIRE(at + size <= bytes.size());
  std::memcpy(&value, bytes.data() + at, size);
  return static_cast<std::size_t>(value);
}

/// The resources of each thread of a function in a cubin.
struct Needs {
  unsigned registers = 0;
  unsigned stack = 0;  ///< bytes of local memory for spilled registers
};

/// Calls `visit` with the name and the bytes of each section of an ELF file.
template <class Visit>
void for_sections(const std::vector<std::byte>& file, Visit visit) {
  const auto number = [&](std::size_t at, std::size_t size) { return number_at(file, at, size); };
  const std::size_t sections = number(40, 8), entry = number(58, 2), count = number(60, 2);
  const std::size_t names = number(sections + number(62, 2) * entry + 24, 8);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t section = sections + i * entry, from = number(section + 24, 8),
                      size = number(section + 32, 8);
    if (number(section + 4, 4) == 8 || size == 0) continue;  // it has no bytes in the file
    REQUIRE(from + size <= file.size());
    visit(std::string_view(reinterpret_cast<const char*>(file.data()) + names + number(section, 4)),
          std::span(file).subspan(from, size));
  }
}

/// Reads the attributes of all functions, in the section ".nv.info": the registers (0x2f), the
/// frame (0x11) and the least stack (0x12) of each. The most of each, as a file has one kernel, or
/// a few.
Needs needs_of(const std::vector<std::byte>& file) {
  Needs needs;
  bool said = false;
  for_sections(file, [&](std::string_view name, std::span<const std::byte> bytes) {
    if (name != ".nv.info") return;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t format = number_at(bytes, at, 1), attribute = number_at(bytes, at + 1, 1),
                        size = number_at(bytes, at + 2, 2);
      at += 4;
      if (format != 4) continue;  // its value is the size
      const auto value = size == 8 ? static_cast<unsigned>(number_at(bytes, at + 4, 4)) : 0u;
      if (attribute == 0x2f) needs.registers = std::max(needs.registers, value), said = true;
      if (attribute == 0x11 || attribute == 0x12) needs.stack = std::max(needs.stack, value);
      at += size;
    }
  });
  REQUIRE(said);
  return needs;
}

/// Counts the instructions of tensor cores in a cubin for sm_75 to sm_120: those of 16 bytes whose
/// lowest 12 bits are HMMA (0x23c) or IMMA (0x237).
std::size_t tensor_instructions(const std::vector<std::byte>& file) {
  std::size_t count = 0;
  for_sections(file, [&](std::string_view name, std::span<const std::byte> bytes) {
    if (!name.starts_with(".text.")) return;
    for (std::size_t at = 0; at + 16 <= bytes.size(); at += 16) {
      const std::size_t operation = number_at(bytes, at, 2) & 0xfff;
      count += operation == 0x23c || operation == 0x237;
    }
  });
  return count;
}

std::size_t occurrences(std::string_view text, std::string_view of) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(of, at)) != text.npos; at += of.size()) ++count;
  return count;
}

std::string layout(const Compiled& kernel) {
  std::string text;
  for (const SourceParameter& p : kernel.parameters)
    text += std::to_string(p.slot.size) + " at " + std::to_string(p.offset) + ", ";
  return text + std::to_string(kernel.push_bytes) + " bytes, blocks of " + std::to_string(kernel.workgroup.x);
}

/// The registers per thread with which two blocks of 256 fit on a processor, and four. Kernels that
/// are bound by memory need four blocks to hide its latency.
constexpr unsigned most_registers = 64, most_registers_of_products = 128;

/// Whether the text of a kernel differs by architecture.
bool depends_on_architecture(const CudaFile& file) {
  return file.name.starts_with("matmul") || file.name.starts_with("attention");
}

std::string ptx_path(const CudaFile& file, const std::string& architecture) {
  return WYE_PTX_FOLDER "/" + file.name + ".compute_" + architecture + ".ptx";
}

}  // namespace

// The test ptxas compares what each kernel needs on each architecture, made of the PTX that is
// shipped. This compiles the text, as the newest NVRTC does.
TEST_CASE("every CUDA kernel compiles for each architecture, in its bound of registers and without spills",
          "[.architectures][cuda]") {
  if (!can_compile()) return;
  std::size_t kernels = 0;
  for (const CudaFile& file : cuda_files()) {
    REQUIRE_FALSE(file.entries.empty());
    // One compile of a file has all its kernels.
    const std::string& entry = file.entries.front();
    kernels += file.entries.size();
    const auto& text = compiled(file, entry, "compute_75");
    if (!text) FAIL(text.error().describe());
    CHECK(text->warnings.empty());
    for (const char* const architecture : {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"}) {
      INFO(file.path << " for " << architecture);
      const auto& machine = compiled(file, entry, architecture);
      if (!machine && machine.error() == Errc::unsupported) continue;  // newer than this NVRTC
      if (!machine) FAIL(machine.error().describe());
      const Needs needs = needs_of(machine->cubin->bytes);
      CHECK(needs.stack <=
            8);  // one number, which NVRTC 13.0 keeps there for two kernels on sm_100 and sm_120
      CHECK(needs.registers > 0);
      CHECK(needs.registers <= (depends_on_architecture(file) ? most_registers_of_products : most_registers));
      CHECK(layout(*machine) == layout(*text));
    }
    for (const std::string architecture : {"75", "80"}) {
      const auto ptx = Ptx::from_file(ptx_path(file, architecture));
      if (!ptx) continue;
      INFO(ptx_path(file, architecture));
      const auto described = compile(Ptx{.text = ptx->text, .entry = entry}, {.name = file.name});
      if (!described) FAIL(described.error().describe());
      if (const auto& shipped = compiled(file, entry, "compute_" + architecture))
        CHECK(layout(*described) == layout(*shipped));
    }
  }
  CHECK(kernels >= 20);
}

TEST_CASE("products of few bits are made by tensor cores, each on the oldest architecture that has them",
          "[workloads][cuda][large]") {
  if (!can_compile()) return;
  struct Instruction {
    std::string kernel;
    const char* target;
    const char* name;
  };
  for (const Instruction& wanted :
       {Instruction{"attention_half", "compute_75", "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"},
        Instruction{"attention_half", "compute_80", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"},
        Instruction{"attention_bfloat16", "compute_80",
                    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"},
        Instruction{"matmul_half", "compute_75", "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"},
        Instruction{"matmul_half", "compute_80", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"},
        Instruction{"matmul_half_rounded", "compute_75", "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"},
        Instruction{"matmul_bfloat16", "compute_80", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"},
        Instruction{"matmul_bfloat16_rounded", "compute_80",
                    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"},
        Instruction{"matmul_int8", "compute_75", "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32"},
        Instruction{"matmul_int8", "compute_80", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"},
        Instruction{"matmul_tf32", "compute_80", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"}}) {
    INFO(wanted.kernel << " for " << wanted.target);
    const std::string folder = wanted.kernel.substr(0, wanted.kernel.find('_'));
    const CudaFile file{
        WYE_SOURCE_FOLDER "/shaders/" + folder + "/" + wanted.kernel + ".cu", wanted.kernel, {}};
    const auto& text = compiled(file, "wye_" + file.name, wanted.target);
    if (!text) FAIL(text.error().describe());
    REQUIRE(text->ptx);
    CHECK(text->ptx->text.find(wanted.name) != std::string::npos);
    CHECK(text->ptx->text.find("ldmatrix.sync.aligned.m8n8.x4.shared.b16") != std::string::npos);
    CHECK((text->ptx->text.find("cp.async.cg.shared.global") != std::string::npos) ==
          (folder == "matmul" && wanted.target == std::string_view("compute_80")));
  }
}

TEST_CASE("without usable tensor cores, fused multiply-adds compute the product",
          "[workloads][cuda][large]") {
  if (!can_compile()) return;
  for (const auto& [name, target] :
       {std::pair{"matmul_bfloat16", "compute_75"}, std::pair{"matmul_tf32", "compute_75"},
        std::pair{"attention_bfloat16", "compute_75"}, std::pair{"matmul_half_plain", "compute_80"},
        std::pair{"matmul_bfloat16_plain", "compute_80"},
        std::pair{"matmul_half_rounded_plain", "compute_80"},
        std::pair{"matmul_bfloat16_rounded_plain", "compute_80"},
        std::pair{"attention_half_plain", "compute_80"},
        std::pair{"attention_bfloat16_plain", "compute_80"}}) {
    INFO(name << " for " << target);
    const std::string file = name, folder = file.substr(0, file.find('_'));
    const auto& text = compiled({WYE_SOURCE_FOLDER "/shaders/" + folder + "/" + file + ".cu", file, {}},
                                "wye_" + file, target);
    if (!text) FAIL(text.error().describe());
    REQUIRE(text->ptx);
    CHECK(text->ptx->text.find("mma.") == std::string::npos);
    // Of the inner loops, unrolled: fewer, and it is not these that multiply.
    CHECK(occurrences(text->ptx->text, "fma.rn.f32") >= 64);
  }
}

TEST_CASE("a spill is seen in the machine code", "[workloads][cuda][large]") {
  if (!can_compile()) return;
  const std::string text = R"(extern "C" __global__ void k(wye_span<float> x) {
    float values[64];
#pragma unroll
    for (int i = 0; i < 64; ++i) values[i] = x[threadIdx.x + i * 256];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 64; ++i)
      for (int j = 0; j < 64; ++j) x[threadIdx.x * 64 + i] += values[i] * values[j];
  })";
  const auto spilled = compile(CudaCpp{.text = text, .max_registers = 32}, {.name = "k", .target = "sm_90"});
  REQUIRE(spilled);
  const Needs needs = needs_of(spilled->cubin->bytes);
  CHECK(needs.stack > 0);
  CHECK(needs.registers <= 32);
}

TEST_CASE("kernels are shipped as PTX that drivers for CUDA 12.2 take", "[workloads][cuda]") {
  std::map<std::string, std::size_t> seen;
  for (const CudaFile& file : cuda_files())
    for (const std::string architecture : {"75", "80"}) {
      const std::string path = ptx_path(file, architecture);
      if (!std::filesystem::exists(path)) continue;
      INFO(path);
      auto ptx = Ptx::from_file(path);
      REQUIRE(ptx);
      CHECK(ptx->text.find(".version 8.2\n") != std::string::npos);
      CHECK(ptx->text.find(".target sm_" + architecture + "\n") != std::string::npos);
      // Only kernels for tensor cores have code of sm_80.
      if (architecture == "80") CHECK(ptx->text.find("mma.sync.aligned.m16n8k") != std::string::npos);
      ptx->entry = file.entries.front();
      const auto described = compile(*ptx, {.name = file.name});
      if (!described) FAIL(described.error().describe());
      ++seen[architecture];
    }
  if (seen.empty()) return test::skip("this build has no PTX (cmake/wheels.sh ptx)");
  CHECK(seen["75"] > seen["80"]);
  CHECK(seen["80"] == 8);
}

TEST_CASE(
    "kernels for tensor cores are shipped as machine code with all of their instructions, without spills",
    "[workloads][cuda]") {
  const std::filesystem::path folder = WYE_PTX_FOLDER;
  if (!can_compile() || !std::filesystem::exists(folder)) return;
  std::size_t seen = 0;
  for (const auto& item : std::filesystem::directory_iterator(folder)) {
    if (item.path().extension() != ".cubin") continue;
    INFO(item.path());
    auto cubin = Cubin::from_file(item.path().string());
    REQUIRE(cubin);
    const std::string name = item.path().stem().stem().string();
    cubin->entry = "wye_" + name;
    const auto described = compile(*cubin, {.name = name});
    if (!described) FAIL(described.error().describe());
    const Needs needs = needs_of(cubin->bytes);
    CHECK(needs.stack == 0);
    CHECK(needs.registers <= most_registers_of_products);
    const auto ptx = Ptx::from_file((folder / (name + ".compute_80.ptx")).string());
    REQUIRE(ptx);
    CHECK(tensor_instructions(cubin->bytes) == occurrences(ptx->text, "mma.sync."));
    ++seen;
  }
  if (seen == 0) test::skip("this build has no cubins (WYE_CUBINS)");
}

TEST_CASE("the CUDA kernels for tensor cores compile for sm_70, without them", "[.architectures][cuda]") {
  if (!can_compile()) return;
  if (!std::filesystem::exists(WYE_PTX_NVRTC))  // newer ones do not know sm_70
    return test::skip("this build has no NVRTC for drivers of CUDA 12 (cmake/wheels.sh ptx)");
  for (const CudaFile& file : cuda_files()) {
    if (!depends_on_architecture(file)) continue;
    INFO(file.path);
    const auto& machine = compiled(file, file.entries.front(), "sm_70", WYE_PTX_NVRTC);
    if (!machine) FAIL(machine.error().describe());
    CHECK(tensor_instructions(machine->cubin->bytes) == 0);
    CHECK(needs_of(machine->cubin->bytes).registers <= most_registers_of_products);
  }
}
