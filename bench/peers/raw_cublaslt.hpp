#pragma once
// cuBLASLt as its users call it: one handle, one algorithm per shape, a workspace of 32 MiB.
#include <cstdint>
#include <string>

namespace wye_bench {

class RawCublasLt {
 public:
  RawCublasLt() = default;
  RawCublasLt(const RawCublasLt&) = delete;
  ~RawCublasLt();

  /// Prepares c = a b of n x n numbers of 16 bits, row after row, on `stream`: of half, or of
  /// bfloat16. With `bias`, one for each column, c = max(a b + bias, 0). Returns the reason if it
  /// fails, otherwise "".
  std::string prepare(void* stream, int n, bool bfloat16, std::uint64_t bias, std::uint64_t workspace);
  static constexpr std::uint64_t workspace_bytes = 32u << 20;
  bool multiply(std::uint64_t a, std::uint64_t b, std::uint64_t c);

 private:
  struct State;
  State* state_ = nullptr;
};

}  // namespace wye_bench
