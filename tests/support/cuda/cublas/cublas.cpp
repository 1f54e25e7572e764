// A stand-in for cuBLAS: the functions that wye calls. Like cuBLAS, it is found by its name in the
// loader's folders. Its functions are scripted as the driver's are.
#include "products.hpp"

namespace {

struct Handle {
  void* stream = nullptr;
};

}  // namespace

WYE_EXPORT int cublasCreate_v2(void** handle) {
  WYE_SCRIPTED("cublasCreate_v2");
  *handle = new Handle;
  return success;
}
WYE_EXPORT int cublasDestroy_v2(void* handle) {
  WYE_SCRIPTED("cublasDestroy_v2");
  delete static_cast<Handle*>(handle);
  return success;
}
WYE_EXPORT int cublasSetStream_v2(void* handle, void* stream) {
  WYE_SCRIPTED("cublasSetStream_v2");
  static_cast<Handle*>(handle)->stream = stream;
  return success;
}
WYE_EXPORT int cublasSetMathMode(void*, int mode) {
  WYE_SCRIPTED("cublasSetMathMode");
  return mode == 0 || mode == 2 || mode == 16 ? success : invalid_value;
}
WYE_EXPORT int cublasGemmStridedBatchedEx(void* handle, int of_a, int of_b, int m, int n, int k,
                                          const void* alpha, const void* a, int a_type, int a_step,
                                          long long a_apart, const void* b, int b_type, int b_step,
                                          long long b_apart, const void* beta, void* c, int c_type,
                                          int c_step, long long c_apart, int batch, int compute,
                                          int algorithm) {
  WYE_SCRIPTED("cublasGemmStridedBatchedEx");
  if (!handle || m < 0 || n < 0 || k < 0 || batch < 0 || of_a < 0 || of_a > 1 || of_b < 0 || of_b > 1 ||
      c_step < (m > 1 ? m : 1) || a_apart < 0 || b_apart < 0 || c_apart < 0)
    return invalid_value;
  const int a_rows = of_a ? k : m, b_rows = of_b ? n : k;
  if (a_step < (a_rows > 1 ? a_rows : 1) || b_step < (b_rows > 1 ? b_rows : 1)) return invalid_value;
  // The subset that wye uses.
  const bool whole = compute == compute_32i;
  const bool real = a_type == real_32f  ? compute == compute_32f || compute == compute_32f_fast_tf32
                    : a_type == real_8i ? false
                                        : compute == compute_32f;
  if (a_type != b_type || algorithm != -1 ||
      (c_type != (whole ? real_32i : real_32f) &&
       (c_type != a_type || whole || *static_cast<const float*>(beta) != 0)) ||
      (whole ? a_type != real_8i : !real))
    return not_supported;
  const auto is_word = [](auto number) { return (unsigned long long)(number) % 4 == 0; };
  if (whole && (!is_word(a) || !is_word(b) || !is_word(a_step) || !is_word(b_step) || !is_word(a_apart) ||
                !is_word(b_apart) || !is_word(c_step) || !is_word(m) || !is_word(k)))
    return not_supported;
  const auto size = [](auto number) { return static_cast<std::size_t>(number); };
  if (!is_known(a, a_type, a_rows, of_a ? m : k, size(a_step), size(a_apart), batch) ||
      !is_known(b, b_type, b_rows, of_b ? k : n, size(b_step), size(b_apart), batch) ||
      !is_known(c, c_type, m, n, size(c_step), size(c_apart), batch)) {
    std::fprintf(stderr, "stand-in: a product has a matrix that is not in the device's memory.\n");
    return execution_failed;
  }
  const auto factor = [whole](const void* from) {
    return whole ? static_cast<double>(*static_cast<const std::int32_t*>(from))
                 : static_cast<double>(*static_cast<const float*>(from));
  };
  auto* product = new Product{{static_cast<const char*>(a), a_type, of_a != 0, size(a_step), size(a_apart)},
                              {static_cast<const char*>(b), b_type, of_b != 0, size(b_step), size(b_apart)},
                              m,
                              n,
                              k,
                              batch,
                              c_type,
                              factor(alpha),
                              factor(beta),
                              static_cast<char*>(c),
                              static_cast<char*>(c),
                              size(c_step),
                              size(c_apart)};
  if (driver()->enqueue(static_cast<Handle*>(handle)->stream, multiply, product) == 0) return success;
  delete product;
  return execution_failed;
}
/// The peer of the benchmarks.
WYE_EXPORT int cublasSgemm_v2(void* handle, int of_a, int of_b, int m, int n, int k, const float* alpha,
                              const float* a, int a_step, const float* b, int b_step, const float* beta,
                              float* c, int c_step) {
  return cublasGemmStridedBatchedEx(handle, of_a, of_b, m, n, k, alpha, a, real_32f, a_step, 0, b, real_32f,
                                    b_step, 0, beta, c, real_32f, c_step, 0, 1, compute_32f, -1);
}
