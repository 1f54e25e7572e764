#include "raw_cublaslt.hpp"

#include <dlfcn.h>

#include <cstddef>
#include <type_traits>

namespace wye_bench {
namespace {

// cublasLtMatmulHeuristicResult_t.
struct Heuristic {
  std::uint64_t algorithm[8];
  std::size_t workspace;
  int status;
  float waves;
  int reserved[4];
};

}  // namespace

struct RawCublasLt::State {
  void* library = nullptr;
  void* handle = nullptr;
  void* operation = nullptr;
  void* layout = nullptr;  // of all three matrices
  void* preference = nullptr;
  void* stream = nullptr;
  std::uint64_t workspace = 0;
  Heuristic heuristic{};
  int (*destroy)(void*) = nullptr;
  int (*operation_destroy)(void*) = nullptr;
  int (*layout_destroy)(void*) = nullptr;
  int (*preference_destroy)(void*) = nullptr;
  int (*matmul)(void*, void*, const void*, const void*, void*, const void*, void*, const void*, const void*,
                void*, void*, void*, const void*, void*, std::size_t, void*) = nullptr;
};

RawCublasLt::~RawCublasLt() {
  if (!state_) return;
  if (state_->preference) state_->preference_destroy(state_->preference);
  if (state_->layout) state_->layout_destroy(state_->layout);
  if (state_->operation) state_->operation_destroy(state_->operation);
  if (state_->handle) state_->destroy(state_->handle);
  delete state_;  // The library stays loaded, as cuBLAS recommends.
}

std::string RawCublasLt::prepare(void* stream, int n, bool bfloat16, std::uint64_t bias,
                                 std::uint64_t workspace) {
  state_ = new State;
  State& s = *state_;
  s.stream = stream;
  s.workspace = workspace;
  for (const char* name : {"libcublasLt.so.13", "libcublasLt.so.12"})
    if (!s.library) s.library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!s.library) return "no cuBLASLt";
  bool all = true;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(s.library, name));
    all = all && function;
  };
  int (*create)(void**) = nullptr;
  int (*operation_create)(void**, int, int) = nullptr;
  int (*layout_create)(void**, int, std::uint64_t, std::uint64_t, std::int64_t) = nullptr;
  int (*preference_create)(void**) = nullptr;
  int (*operation_set)(void*, int, const void*, std::size_t) = nullptr;
  int (*preference_set)(void*, int, const void*, std::size_t) = nullptr;
  int (*search)(void*, void*, void*, void*, void*, void*, void*, int, void*, int*) = nullptr;
  find(create, "cublasLtCreate");
  find(s.destroy, "cublasLtDestroy");
  find(operation_create, "cublasLtMatmulDescCreate");
  find(operation_set, "cublasLtMatmulDescSetAttribute");
  find(s.operation_destroy, "cublasLtMatmulDescDestroy");
  find(layout_create, "cublasLtMatrixLayoutCreate");
  find(s.layout_destroy, "cublasLtMatrixLayoutDestroy");
  find(preference_create, "cublasLtMatmulPreferenceCreate");
  find(preference_set, "cublasLtMatmulPreferenceSetAttribute");
  find(s.preference_destroy, "cublasLtMatmulPreferenceDestroy");
  find(search, "cublasLtMatmulAlgoGetHeuristic");
  find(s.matmul, "cublasLtMatmul");
  if (!all) return "cuBLASLt lacks a function";

  constexpr int compute_32f = 68, real_32f = 0, real_16f = 2, real_16bf = 14;
  constexpr int epilogue = 7, bias_pointer = 8, relu_and_bias = 6, most_workspace = 1;
  const auto side = static_cast<std::uint64_t>(n);
  bool done = create(&s.handle) == 0 && operation_create(&s.operation, compute_32f, real_32f) == 0 &&
              layout_create(&s.layout, bfloat16 ? real_16bf : real_16f, side, side, n) == 0 &&
              preference_create(&s.preference) == 0;
  const std::uint64_t most = workspace_bytes;
  done = done && preference_set(s.preference, most_workspace, &most, sizeof(most)) == 0;
  if (bias != 0)
    done = done && operation_set(s.operation, epilogue, &relu_and_bias, sizeof(relu_and_bias)) == 0 &&
           operation_set(s.operation, bias_pointer, &bias, sizeof(bias)) == 0;
  int found = 0;
  done = done && search(s.handle, s.operation, s.layout, s.layout, s.layout, s.layout, s.preference, 1,
                        &s.heuristic, &found) == 0;
  return done && found == 1 ? "" : "cuBLASLt has no algorithm";
}

bool RawCublasLt::multiply(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  State& s = *state_;
  const float one = 1, zero = 0;
  const auto pointer = [](std::uint64_t address) { return reinterpret_cast<void*>(address); };
  // Column after column it is c' = b' a'.
  return s.matmul(s.handle, s.operation, &one, pointer(b), s.layout, pointer(a), s.layout, &zero, pointer(c),
                  s.layout, pointer(c), s.layout, s.heuristic.algorithm, pointer(s.workspace),
                  workspace_bytes, s.stream) == 0;
}

}  // namespace wye_bench
