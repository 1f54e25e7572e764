#include <hwy/targets.h>
#include <wye/base/dynamic_library.hpp>

#include <optional>
#include <string_view>

#include "cpu.hpp"

namespace wye {
inline namespace v0 {
namespace workloads {
namespace {

/// Bytes of the vectors that OpenBLAS calculates with on a core it knows by this name.
int vector_bytes(std::string_view core) {
  for (std::string_view wide : {"SkylakeX", "Cooperlake", "SapphireRapids", "Sapphirerapids"})
    if (core == wide) return 64;
  return core == "Haswell" || core == "Zen" ? 32 : 16;
}

int vector_bytes_of_our_code() {
  const auto targets = hwy::SupportedTargets();
  return (targets & HWY_AVX3) != 0 ? 64 : (targets & HWY_AVX2) != 0 ? 32 : 16;
}

/// The serial OpenBLAS of this machine, if it is worth its call. The threaded flavours start threads and keep them
/// spinning, which is not for a library to do to its host. One that does not know this processor (0.3.21 takes a Zen 5
/// for a Haswell) is slower than our own code.
class OpenBlas {
 public:
  OpenBlas() {
    // $LIB is the loader's own name for where libraries are, "lib/x86_64-linux-gnu" on Debian.
    auto library = DynamicLibrary::open("/usr/$LIB/openblas-serial/libopenblas.so.0");
    if (!library) return;
    const auto parallel = library->function<int (*)()>("openblas_get_parallel");
    const auto core = library->function<const char* (*)()>("openblas_get_corename");
    const auto sgemm = library->function<Sgemm>("cblas_sgemm");
    if (!parallel || !core || !sgemm || parallel() != 0) return;
    if (vector_bytes(core()) < vector_bytes_of_our_code()) return;
    library_ = std::move(*library);
    sgemm_ = sgemm;
  }

  bool multiply(const Block& block) const {
    constexpr int row_major = 101, as_is = 111, transposed = 112;
    if (!sgemm_) return false;
    sgemm_(row_major, as_is, block.transposed ? transposed : as_is, static_cast<int>(block.rows),
           static_cast<int>(block.columns), static_cast<int>(block.inner), 1.0f, block.a,
           static_cast<int>(block.a_step), block.b, static_cast<int>(block.b_step), block.add ? 1.0f : 0.0f,
           block.c, static_cast<int>(block.c_step));
    return true;
  }

 private:
  using Sgemm = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int, float,
                         float*, int);
  std::optional<DynamicLibrary> library_;
  Sgemm sgemm_ = nullptr;
};

}  // namespace

bool cpu::blas_multiply(const Block& block) {
  // Holds no thread: it may stay open until this library is unloaded.
  static const OpenBlas blas;
  return blas.multiply(block);
}

}  // namespace workloads
}  // namespace v0
}  // namespace wye
