// Prints the factor that its kernel was compiled with.
#include <app/text/scale.hpp>
#include <kernels/move.hpp>
#include <kernels/scale.hpp>

#ifdef HAS_CUDA_CODE
#include <app/cuda/scale.hpp>
#endif

#include <algorithm>
#include <bit>
#include <cstdio>
#include <iterator>

namespace {

struct Particle {
  float position[3];
  float speed;
};

bool has(float constant) {
  const auto bits = std::bit_cast<std::uint32_t>(constant);
  return std::find(std::begin(kernels::scale_words), std::end(kernels::scale_words), bits) !=
         std::end(kernels::scale_words);
}

template <class T>
bool made(const wye::Result<T>& kernel, const char* languages) {
  if (!kernel) return std::puts(kernel.error().describe().c_str()), false;
  return kernel->languages() == languages;
}

}  // namespace

int main() {
  const auto by_host = wye::host([](wye::Range, std::span<float>, float) {});
  const wye::Result<kernels::scale_kernel> scale = kernels::scale({by_host});
  if (!made(scale, "host, SpirV, CudaCpp") || scale->schema().slots[1].name != "s") return 1;
  const wye::Result<wye::Kernel<wye::ReadWrite<float>, float>> text = app::text::scale();
  if (!made(text, "Glsl") || text->schema().slots[1].name != "s" ||
      app::text::scale_source().includes.size() != 2)
    return 1;
  if (!made(kernels::move<wye::ReadWrite<Particle>>(), "SpirV")) return 1;
  if (kernels::move<wye::ReadWrite<double>>()) return 1;
#ifdef HAS_CUDA_CODE
  const auto code = app::cuda::scale<wye::ReadWrite<float>, float>();
  if (!made(code, "Cubin, Ptx")) return 1;
#endif
  const bool two = has(2.0f), three = has(3.0f);
  if (two == three) return 1;
  std::printf("factor %d\n", two ? 2 : 3);
  return 0;
}
