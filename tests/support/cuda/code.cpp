#include "support/cuda/code.hpp"

#include <elf.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string_view>

#include "support/cuda/capture.hpp"

namespace standin {
namespace {

/// Reads the kernels of a cubin: their names and the layout of their parameters.
CUresult read_cubin(const std::byte* image, Library& library) {
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof(header));
  if (header.e_machine != 190) return CUDA_ERROR_INVALID_IMAGE;
  const unsigned sm = header.e_ident[EI_ABIVERSION] >= 8 ? header.e_flags >> 8 & 0xff : header.e_flags & 0xff;
  const CUresult fits =
      sm == static_cast<unsigned>(architecture()) ? CUDA_SUCCESS : CUDA_ERROR_NO_BINARY_FOR_GPU;
  const auto section = [&](std::size_t i) {
    Elf64_Shdr s;
    std::memcpy(&s, image + header.e_shoff + i * header.e_shentsize, sizeof(s));
    return s;
  };
  const Elf64_Shdr names = section(header.e_shstrndx);
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr s = section(i);
    const std::string name = reinterpret_cast<const char*>(image + names.sh_offset + s.sh_name);
    constexpr std::string_view prefix = ".nv.info.";
    if (name.compare(0, prefix.size(), prefix) != 0) continue;
    auto kernel = std::make_unique<Kernel>();
    kernel->name = name.substr(prefix.size());
    kernel->fits = fits;
    for (std::size_t other = 0; other < header.e_shnum; ++other)
      if (reinterpret_cast<const char*>(image + names.sh_offset + section(other).sh_name) ==
          ".nv.shared." + kernel->name)
        kernel->fixed_shared = section(other).sh_size;
    const std::byte* at = image + s.sh_offset;
    const std::byte* const end = at + s.sh_size;
    std::map<unsigned, std::pair<std::size_t, std::size_t>> parameters;
    while (at + 4 <= end) {
      const auto format = static_cast<unsigned>(at[0]), attribute = static_cast<unsigned>(at[1]);
      std::uint16_t size = 0;
      std::memcpy(&size, at + 2, 2);
      if (format == 4 && attribute == 0x17) {
        std::uint16_t ordinal = 0, offset = 0;
        std::uint32_t word = 0;
        std::memcpy(&ordinal, at + 8, 2);
        std::memcpy(&offset, at + 10, 2);
        std::memcpy(&word, at + 12, 4);
        parameters[ordinal] = {offset, word >> 18};
      }
      at += 4 + (format == 4 ? size : 0);
    }
    for (const auto& [ordinal, where] : parameters) {
      kernel->parameters.push_back(where);
      kernel->parameter_bytes = std::max(kernel->parameter_bytes, where.first + where.second);
    }
    library.kernels[kernel->name] = std::move(kernel);
  }
  return library.kernels.empty() ? CUDA_ERROR_INVALID_IMAGE : CUDA_SUCCESS;
}

/// Reads the kernels of PTX text as NVRTC writes it: "\t.param .align 8 .b8 add_param_0[16],",
/// "\t.param .u32 add_param_1".
CUresult read_ptx(const char* code, Library& library) {
  const std::string text = code;
  if (text.find(".version") == std::string::npos) return CUDA_ERROR_INVALID_PTX;
  const std::size_t target = text.find(".target sm_");
  if (target == std::string::npos) return CUDA_ERROR_INVALID_PTX;
  const CUresult fits =
      std::atoi(text.c_str() + target + 11) <= architecture() ? CUDA_SUCCESS : CUDA_ERROR_NO_BINARY_FOR_GPU;
  for (std::size_t at = text.find(".entry "); at != std::string::npos; at = text.find(".entry ", at + 1)) {
    const std::size_t open = text.find('(', at), close = text.find(')', open);
    auto kernel = std::make_unique<Kernel>();
    kernel->name = text.substr(at + 7, open - at - 7);
    kernel->fits = fits;
    std::istringstream lines(text.substr(open + 1, close - open - 1));
    for (std::string line; std::getline(lines, line);) {
      if (line.find(".param") == std::string::npos) continue;
      std::istringstream words(line);
      std::size_t align = 0, unit = 0, count = 1;
      for (std::string word; words >> word;) {
        if (word == ".align") words >> align;
        if (word.size() >= 3 && word[0] == '.' &&
            std::string_view("bsuf").find(word[1]) != std::string_view::npos)
          unit = static_cast<std::size_t>(std::atoi(word.c_str() + 2)) / 8;
        if (const std::size_t bracket = word.find('['); bracket != std::string::npos)
          count = static_cast<std::size_t>(std::atoi(word.c_str() + bracket + 1));
      }
      if (unit == 0) return CUDA_ERROR_INVALID_PTX;
      if (align == 0) align = unit;
      const std::size_t offset = (kernel->parameter_bytes + align - 1) / align * align;
      kernel->parameters.push_back({offset, unit * count});
      kernel->parameter_bytes = offset + unit * count;
    }
    library.kernels[kernel->name] = std::move(kernel);
  }
  return library.kernels.empty() ? CUDA_ERROR_INVALID_PTX : CUDA_SUCCESS;
}

/// The context of a partition is "a normal primary context" (cuda.h at cuCtxFromGreenCtx).
CUcontext full_context(CUcontext context) { return is_partition(context) ? primary(0) : context; }

/// The kernels that run, by number, each with its context. Hidden from ThreadSanitizer: a load
/// orders no work.
struct RunningKernels {
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t count = 0;
  std::map<std::uint64_t, CUcontext> all;
};
RunningKernels& running_kernels() {
  static auto& kernels = *new RunningKernels;  // never destroyed, as the world
  return kernels;
}

}  // namespace

RunningKernel::RunningKernel(CUcontext context)
    : number_([=] {
        const Unseen unseen;
        const CUcontext in = full_context(context);
        RunningKernels& kernels = running_kernels();
        const std::lock_guard lock(kernels.mutex);
        kernels.all[++kernels.count] = in;
        return kernels.count;
      }()) {}
RunningKernel::~RunningKernel() {
  const Unseen unseen;
  RunningKernels& kernels = running_kernels();
  const std::lock_guard lock(kernels.mutex);
  kernels.all.erase(number_);
  kernels.changed.notify_all();
}

bool is_loaded(const Kernel& kernel, CUcontext context) {
  context = full_context(context);
  const std::lock_guard lock(world().mutex);
  return kernel.loaded.contains(context);
}

CUresult load(Kernel& kernel, CUcontext context) {
  if (is_loaded(kernel, context)) return CUDA_SUCCESS;
  if (const int code = prohibited("cuFuncLoad")) return static_cast<CUresult>(code);
  if (const int code = scripted("load")) return static_cast<CUresult>(code);
  if (kernel.fits != CUDA_SUCCESS) return kernel.fits;
  context = full_context(context);
  {
    const Unseen unseen;
    RunningKernels& kernels = running_kernels();
    std::unique_lock lock(kernels.mutex);
    kernels.changed.wait(lock, [&, last = kernels.count] {
      return std::none_of(kernels.all.begin(), kernels.all.end(),
                          [&](const auto& one) { return one.first <= last && one.second == context; });
    });
  }
  const std::lock_guard lock(world().mutex);
  kernel.loaded.insert(context);
  return CUDA_SUCCESS;
}

CUresult read_code(const void* code, Library& library) {
  return std::memcmp(code, ELFMAG, SELFMAG) == 0 ? read_cubin(static_cast<const std::byte*>(code), library)
                                                 : read_ptx(static_cast<const char*>(code), library);
}

}  // namespace standin
