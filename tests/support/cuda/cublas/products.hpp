#pragma once
// Products for the stand-ins of cuBLAS and cuBLASLt: on the host, in the order of the stand-in
// driver's streams.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "../library.hpp"

namespace {

enum Status {
  success = 0,
  not_initialized = 1,
  invalid_value = 7,
  execution_failed = 13,
  not_supported = 15
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
  switch (m.type) {
    case real_16f: return half_at(from);
    case real_16bf: return bfloat16_at(from);
    case real_8i: return read<std::int8_t>(from);
    default: return read<float>(from);
  }
}

/// c = activation(alpha a b + beta added + bias). `bias` has an element for each row of c, or is
/// null. `added` is laid out as c, and may be c.
struct Product {
  Matrix a, b;
  int m, n, k, batch;
  int c_type;
  double alpha, beta;
  const char* added;
  char* c;
  std::size_t c_step, c_matrices_apart;
  int activation = 0;
  const char* bias = nullptr;
  bool splits = false;  ///< the inner dimension, and adds the parts in the type of c
};

/// The activations of cublasLtEpilogue_t.
enum Activations { relu = 2, gelu = 32 };

double activated(double x, int activation) {
  if (activation == relu) return std::max(x, 0.0);
  if (activation != gelu) return x;
  return x / 2 * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}

/// Sets an element of c, of type C, whose sums are of type Sum.
template <class Sum, class C>
void set(const Product& p, std::size_t matrix, std::size_t i, std::size_t j) {
  Sum sum = 0;
  for (std::size_t l = 0; l < static_cast<std::size_t>(p.k); ++l) {
    const double product = number_at(p.a, matrix, i, l) * number_at(p.b, matrix, l, j);
    if constexpr (std::is_same_v<Sum, float>) {
      sum += static_cast<float>(product);
      if (const C part(sum); p.splits && l % 16 == 15)
        sum = static_cast<float>(
            number_at({reinterpret_cast<const char*>(&part), p.c_type, false, 0, 0}, 0, 0, 0));
    } else
      sum += static_cast<Sum>(static_cast<std::int32_t>(product));  // wraps around
  }
  C& c = reinterpret_cast<C*>(p.c)[matrix * p.c_matrices_apart + j * p.c_step + i];
  const Matrix added{p.added, p.c_type, false, p.c_step, p.c_matrices_apart};
  if constexpr (std::is_same_v<Sum, std::uint32_t>) {
    c = static_cast<Sum>(p.alpha) * sum + (p.beta == 0 ? 0 : static_cast<Sum>(p.beta) * c);
  } else {
    sum = static_cast<float>(p.alpha) * sum;
    if (p.beta != 0) sum += static_cast<float>(p.beta * number_at(added, matrix, i, j));
    if (p.bias) sum += static_cast<float>(number_at({p.bias, p.c_type, false, 0, 0}, 0, i, 0));
    c = C(static_cast<float>(p.activation == 0 ? double{sum} : activated(sum, p.activation)));
  }
}

/// Column-major, as in cuBLAS. If beta is 0, `added` is not read.
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
