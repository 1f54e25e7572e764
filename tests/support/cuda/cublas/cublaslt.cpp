// A stand-in for cuBLASLt: the functions that wye calls, with the attributes that it sets. It
// refuses what the documentation refuses, and an algorithm for another product than the one it was
// found for.
#include <array>

#include "products.hpp"

namespace {

struct Operation {
  int compute = 0;
  std::int32_t transposed_a = 0, transposed_b = 0, epilogue = 1;
  const void* bias = nullptr;
};
struct Layout {
  int type = 0;
  std::uint64_t rows = 0, columns = 0;
  std::int64_t step = 0;
  std::int32_t batch = 1;
  std::int64_t apart = 0;
};
/// The defaults are those of the library: the greatest alignment, and any order of adding.
struct Preference {
  std::uint64_t workspace = 0;
  std::uint32_t reductions = 7;
  std::uint32_t alignments[4] = {256, 256, 256, 256};
};
/// cublasLtMatmulHeuristicResult_t.
struct Found {
  std::uint64_t algorithm[8];
  std::size_t workspace;
  int status;
  float waves;
  int reserved[4];
};
static_assert(sizeof(Found) == 96);

template <class T>
int make(void** object, T value) {
  *object = new T(value);
  return success;
}
template <class T>
int destroy(void* object) {
  delete static_cast<T*>(object);
  return success;
}
template <class T>
int set(T& attribute, const void* value, std::size_t size) {
  if (size != sizeof(T)) return invalid_value;
  std::memcpy(&attribute, value, size);
  return success;
}

/// Of a product, without addresses: the first words of an algorithm.
std::uint64_t digest(const Operation& operation, const Layout& a, const Layout& b, const Layout& d) {
  std::uint64_t sum = 17;
  const auto add = [&sum](auto number) { sum = sum * 1000003 + static_cast<std::uint64_t>(number); };
  for (int number : {operation.compute, operation.transposed_a, operation.transposed_b, operation.epilogue})
    add(number);
  for (const Layout* l : {&a, &b, &d}) {
    add(l->type), add(l->rows), add(l->columns), add(l->step), add(l->batch), add(l->apart);
  }
  return sum;
}

/// The rows and columns of a matrix in a product.
std::uint64_t rows_of(const Layout& layout, bool transposed) {
  return transposed ? layout.columns : layout.rows;
}
std::uint64_t columns_of(const Layout& layout, bool transposed) {
  return transposed ? layout.rows : layout.columns;
}

int check(const Operation& operation, const Layout& a, const Layout& b, const Layout& c, const Layout& d) {
  const bool real = a.type == real_32f
                        ? operation.compute == compute_32f || operation.compute == compute_32f_fast_tf32
                        : (a.type == real_16f || a.type == real_16bf) && operation.compute == compute_32f;
  if (!real || a.type != b.type || c.type != d.type || (d.type != real_32f && d.type != a.type))
    return not_supported;
  for (const Layout* l : {&a, &b, &c, &d})
    if (l->step < static_cast<std::int64_t>(std::max<std::uint64_t>(l->rows, 1)) || l->batch != d.batch ||
        l->rows == 0 || l->columns == 0)
      return invalid_value;
  if (rows_of(a, operation.transposed_a != 0) != d.rows ||
      columns_of(b, operation.transposed_b != 0) != d.columns ||
      columns_of(a, operation.transposed_a != 0) != rows_of(b, operation.transposed_b != 0) ||
      c.rows != d.rows || c.columns != d.columns)
    return invalid_value;
  switch (operation.epilogue) {
    case 1:
    case 2:
    case 4:
    case 6:
    case 32:
    case 36: return success;
    default: return not_supported;
  }
}

bool lies_at(const void* matrix, std::uint64_t alignment) {
  return reinterpret_cast<std::uintptr_t>(matrix) % alignment == 0;
}

bool is_known(const void* matrix, const Layout& layout) {
  return is_known(matrix, layout.type, static_cast<int>(layout.rows), static_cast<int>(layout.columns),
                  static_cast<std::size_t>(layout.step), static_cast<std::size_t>(layout.apart),
                  layout.batch);
}

}  // namespace

WYE_EXPORT int cublasLtCreate(void** handle) {
  WYE_SCRIPTED("cublasLtCreate");
  return make(handle, int{});
}
WYE_EXPORT int cublasLtDestroy(void* handle) {
  WYE_SCRIPTED("cublasLtDestroy");
  return destroy<int>(handle);
}
WYE_EXPORT int cublasLtMatmulDescCreate(void** operation, int compute, int scale_type) {
  WYE_SCRIPTED("cublasLtMatmulDescCreate");
  if (scale_type != real_32f) return not_supported;
  return make(operation, Operation{.compute = compute});
}
WYE_EXPORT int cublasLtMatmulDescDestroy(void* operation) { return destroy<Operation>(operation); }
WYE_EXPORT int cublasLtMatmulDescSetAttribute(void* operation, int attribute, const void* value,
                                              std::size_t size) {
  WYE_SCRIPTED("cublasLtMatmulDescSetAttribute");
  Operation& of = *static_cast<Operation*>(operation);
  switch (attribute) {
    case 3: return set(of.transposed_a, value, size);
    case 4: return set(of.transposed_b, value, size);
    case 7: return set(of.epilogue, value, size);
    case 8: return set(of.bias, value, size);
    default: return invalid_value;
  }
}
WYE_EXPORT int cublasLtMatrixLayoutCreate(void** layout, int type, std::uint64_t rows, std::uint64_t columns,
                                          std::int64_t step) {
  WYE_SCRIPTED("cublasLtMatrixLayoutCreate");
  return make(layout, Layout{.type = type, .rows = rows, .columns = columns, .step = step});
}
WYE_EXPORT int cublasLtMatrixLayoutDestroy(void* layout) { return destroy<Layout>(layout); }
WYE_EXPORT int cublasLtMatrixLayoutSetAttribute(void* layout, int attribute, const void* value,
                                                std::size_t size) {
  WYE_SCRIPTED("cublasLtMatrixLayoutSetAttribute");
  Layout& of = *static_cast<Layout*>(layout);
  return attribute == 5   ? set(of.batch, value, size)
         : attribute == 6 ? set(of.apart, value, size)
                          : invalid_value;
}
WYE_EXPORT int cublasLtMatmulPreferenceCreate(void** preference) {
  WYE_SCRIPTED("cublasLtMatmulPreferenceCreate");
  return make(preference, Preference{});
}
WYE_EXPORT int cublasLtMatmulPreferenceDestroy(void* preference) { return destroy<Preference>(preference); }
WYE_EXPORT int cublasLtMatmulPreferenceSetAttribute(void* preference, int attribute, const void* value,
                                                    std::size_t size) {
  WYE_SCRIPTED("cublasLtMatmulPreferenceSetAttribute");
  Preference& of = *static_cast<Preference*>(preference);
  if (attribute == 1) return set(of.workspace, value, size);
  if (attribute == 3) return set(of.reductions, value, size);
  return attribute >= 5 && attribute < 9 ? set(of.alignments[attribute - 5], value, size) : invalid_value;
}
WYE_EXPORT int cublasLtMatmulAlgoGetHeuristic(void* handle, void* operation, void* a, void* b, void* c,
                                              void* d, void* preference, int wanted, void* results,
                                              int* count) {
  WYE_SCRIPTED("cublasLtMatmulAlgoGetHeuristic");
  if (!handle || wanted < 1) return invalid_value;
  const Operation& of = *static_cast<Operation*>(operation);
  const Layout &in_a = *static_cast<Layout*>(a), &in_b = *static_cast<Layout*>(b),
               &in_c = *static_cast<Layout*>(c), &out = *static_cast<Layout*>(d);
  if (const int code = check(of, in_a, in_b, in_c, out)) return code;
  const Preference& wishes = *static_cast<Preference*>(preference);
  Found found{};
  found.algorithm[0] = digest(of, in_a, in_b, out);
  for (std::size_t i = 0; i < 4; ++i) found.algorithm[1 + i] = wishes.alignments[i];
  found.algorithm[5] = wishes.reductions;
  // The library takes the alignment of the bias from its address, which may not be set.
  found.algorithm[6] =
      of.bias ? (reinterpret_cast<std::uintptr_t>(of.bias) & -reinterpret_cast<std::uintptr_t>(of.bias))
              : 256;
  std::memcpy(results, &found, sizeof(found));
  *count = 1;
  return success;
}
WYE_EXPORT int cublasLtMatmul(void* handle, void* operation, const void* alpha, const void* a, void* a_layout,
                              const void* b, void* b_layout, const void* beta, const void* c, void* c_layout,
                              void* d, void* d_layout, const void* algorithm, void* memory,
                              std::size_t workspace, void* stream) {
  WYE_SCRIPTED("cublasLtMatmul");
  const Operation& of = *static_cast<Operation*>(operation);
  const Layout &in_a = *static_cast<Layout*>(a_layout), &in_b = *static_cast<Layout*>(b_layout),
               &in_c = *static_cast<Layout*>(c_layout), &out = *static_cast<Layout*>(d_layout);
  std::array<std::uint64_t, 8> found{};
  std::memcpy(found.data(), algorithm, sizeof(found));
  if (!handle || found[0] != digest(of, in_a, in_b, out) || (workspace != 0 && !memory)) return invalid_value;
  if (!lies_at(a, found[1]) || !lies_at(b, found[2]) || !lies_at(c, found[3]) || !lies_at(d, found[4]))
    return invalid_value;
  const bool biased = (of.epilogue & 4) != 0;
  if (biased && !lies_at(of.bias, std::min<std::uint64_t>(found[6], 256))) return invalid_value;
  const float factor = *static_cast<const float*>(alpha), keep = *static_cast<const float*>(beta);
  if (!is_known(a, in_a) || !is_known(b, in_b) || !is_known(d, out) || (keep != 0 && !is_known(c, in_c)) ||
      (biased && !is_known(of.bias, out.type, static_cast<int>(out.rows), 1,
                           static_cast<std::size_t>(out.rows), 0, 1))) {
    std::fprintf(stderr, "stand-in: a product has a matrix that is not in the device's memory.\n");
    return execution_failed;
  }
  const auto matrix = [](const void* begin, const Layout& l, bool transposed) {
    return Matrix{static_cast<const char*>(begin), l.type, transposed, static_cast<std::size_t>(l.step),
                  static_cast<std::size_t>(l.apart)};
  };
  auto* product = new Product{matrix(a, in_a, of.transposed_a != 0),
                              matrix(b, in_b, of.transposed_b != 0),
                              static_cast<int>(out.rows),
                              static_cast<int>(out.columns),
                              static_cast<int>(columns_of(in_a, of.transposed_a != 0)),
                              out.batch,
                              out.type,
                              double{factor},
                              double{keep},
                              static_cast<const char*>(c),
                              static_cast<char*>(d),
                              static_cast<std::size_t>(out.step),
                              static_cast<std::size_t>(out.apart),
                              of.epilogue & (relu | gelu),
                              biased ? static_cast<const char*>(of.bias) : nullptr,
                              found[5] != 0};
  if (driver()->enqueue(stream, multiply, product) == 0) return success;
  delete product;
  return execution_failed;
}
