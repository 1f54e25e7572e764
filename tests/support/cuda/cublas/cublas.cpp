// A stand-in for cuBLAS: the functions that wye calls, on the host, in the order of the stand-in driver's streams. Like
// cuBLAS, it is found by its name in the loader's folders. Its functions are scripted as the driver's are.
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>

namespace {

enum Status {
  success = 0,
  not_initialized = 1,
  invalid_value = 7,
  execution_failed = 13,
  not_supported = 15
};

/// The stand-in driver's functions for its libraries.
struct Driver {
  int (*scripted)(const char* name) = nullptr;
  int (*is_known)(unsigned long long address, std::size_t size) = nullptr;
  /// 0: the function will be called when the stream reaches it.
  int (*enqueue)(void* stream, void (*function)(void*), void* data) = nullptr;
};

const Driver* driver() {
  static const Driver the_driver = [] {
    Driver found;
    Dl_info self{};
    if (::dladdr(reinterpret_cast<void*>(&driver), &self) == 0) return found;
    std::string path = self.dli_fname;
    for (int i = 0; i < 3; ++i) path.erase(path.rfind('/'));
    void* library = ::dlopen((path + "/libcuda.so.1").c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (!library) return found;
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    };
    find(found.scripted, "wye_standin_scripted");
    find(found.is_known, "wye_standin_is_known");
    find(found.enqueue, "wye_standin_enqueue");
    return found;
  }();
  return the_driver.enqueue ? &the_driver : nullptr;
}

struct Handle {
  void* stream = nullptr;
};

/// The values of cudaDataType that are supported here.
enum Type { real_32f = 0, real_16f = 2, real_8i = 3, real_32i = 10, real_16bf = 14 };
/// cublasComputeType_t.
enum Compute { compute_32f = 68, compute_32i = 72, compute_32f_fast_tf32 = 77 };

struct Matrix {
  const char* begin;
  int type;
  bool transposed;
  std::size_t step, matrices_apart;
};

std::size_t size_of(int type) { return type == real_8i ? 1 : type == real_16f || type == real_16bf ? 2 : 4; }

/// A number of any of the types: double represents all of them.
double number_at(const Matrix& m, std::size_t matrix, std::size_t row, std::size_t column) {
  const std::size_t at =
      matrix * m.matrices_apart + (m.transposed ? row * m.step + column : column * m.step + row);
  const char* const from = m.begin + at * size_of(m.type);
  const auto read = [from](auto value) {
    std::memcpy(&value, from, sizeof(value));
    return value;
  };
  switch (m.type) {
    case real_16f: {
      const unsigned bits = read(std::uint16_t{}), exponent = bits >> 10 & 31u, fraction = bits & 1023u;
      const double size = exponent == 31  ? (fraction != 0 ? std::nan("") : HUGE_VAL)
                          : exponent == 0 ? std::ldexp(fraction, -24)
                                          : std::ldexp(1024 + fraction, static_cast<int>(exponent) - 25);
      return bits >> 15 != 0 ? -size : size;
    }
    case real_16bf: {
      const std::uint32_t bits = std::uint32_t{read(std::uint16_t{})} << 16;
      float value = 0;
      std::memcpy(&value, &bits, sizeof(value));
      return value;
    }
    case real_8i: return read(std::int8_t{});
    default: return read(float{});
  }
}

/// A number of 16 bits, `fraction` of them after the leading one: 10 of half, 7 of bfloat16. Rounds to nearest, ties to even.
template <int fraction>
struct Sixteen {
  std::uint16_t bits = 0;

  Sixteen() = default;
  explicit Sixteen(float value) {
    constexpr int bias = (1 << (14 - fraction)) - 1, infinite = (2 * bias + 1) << fraction;
    int size = infinite;
    if (std::isnan(value)) {
      size += 1 << (fraction - 1);
    } else if (!std::isinf(value)) {
      const int exponent = value == 0 ? 1 - bias : std::max(std::ilogb(value), 1 - bias);
      const double steps = std::nearbyint(std::ldexp(std::abs(double{value}), fraction - exponent));
      size = exponent > bias
                 ? infinite
                 : std::min(((exponent + bias - 1) << fraction) + static_cast<int>(steps), infinite);
    }
    bits = static_cast<std::uint16_t>((std::signbit(value) ? 0x8000 : 0) + size);
  }
};

struct Product {
  Matrix a, b;
  int m, n, k, batch;
  int c_type;
  double alpha, beta;
  char* c;
  std::size_t c_step, c_matrices_apart;
};

/// Sets an element of c, of type C, whose sums are of type Sum.
template <class Sum, class C>
void set(const Product& p, std::size_t matrix, std::size_t i, std::size_t j) {
  Sum sum = 0;
  for (std::size_t l = 0; l < static_cast<std::size_t>(p.k); ++l) {
    const double product = number_at(p.a, matrix, i, l) * number_at(p.b, matrix, l, j);
    if constexpr (std::is_same_v<Sum, float>)
      sum += static_cast<float>(product);
    else
      sum += static_cast<Sum>(static_cast<std::int32_t>(product));  // wraps around
  }
  C& c = reinterpret_cast<C*>(p.c)[matrix * p.c_matrices_apart + j * p.c_step + i];
  if constexpr (std::is_same_v<Sum, C>)
    c = static_cast<Sum>(p.alpha) * sum + (p.beta == 0 ? 0 : static_cast<Sum>(p.beta) * c);
  else
    c = C(static_cast<Sum>(p.alpha) * sum);  // wye adds to no numbers of 16 bits
}

/// Column-major, as in cuBLAS. If beta is 0, c is not read.
void multiply(void* data) {
  const Product* const p = static_cast<Product*>(data);
  const auto set_one = p->c_type == real_32i    ? set<std::uint32_t, std::uint32_t>
                       : p->c_type == real_16f  ? set<float, Sixteen<10>>
                       : p->c_type == real_16bf ? set<float, Sixteen<7>>
                                                : set<float, float>;
  for (std::size_t matrix = 0; matrix < static_cast<std::size_t>(p->batch); ++matrix)
    for (std::size_t j = 0; j < static_cast<std::size_t>(p->n); ++j)
      for (std::size_t i = 0; i < static_cast<std::size_t>(p->m); ++i) set_one(*p, matrix, i, j);
  delete p;
}

bool is_known(const void* matrix, int type, int rows, int columns, std::size_t step, std::size_t apart,
              int batch) {
  if (rows == 0 || columns == 0 || batch == 0) return true;
  const std::size_t size = static_cast<std::size_t>(batch - 1) * apart +
                           step * static_cast<std::size_t>(columns - 1) + static_cast<std::size_t>(rows);
  return driver()->is_known(reinterpret_cast<std::uint64_t>(matrix), size * size_of(type)) != 0;
}

}  // namespace

#define WYE_EXPORT extern "C" __attribute__((visibility("default")))
#define WYE_SCRIPTED(name)               \
  if (!driver()) return not_initialized; \
  if (const int code = driver()->scripted(name)) return code

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
