#pragma once
/// The includes and variables that a block of README.md or docs/ may use. docs/concepts.md names
/// the variables.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>
#include <wye/workloads/axpy.hpp>
#include <wye/workloads/matmul.hpp>
#include <wye/workloads/normalize.hpp>
#include <wye/wye.hpp>

using namespace std::chrono_literals;
using namespace wye::literals;

namespace readme {

using Scale = wye::Kernel<wye::ReadWrite<float>, float>;
using Function = wye::Result<void> (*)(wye::Runtime* runtime, std::vector<float>& x, std::vector<float>& y,
                                       const Scale* scale);

struct Block {
  const char* name;
  Function function;
};

inline std::vector<Block>& blocks() {
  static std::vector<Block> all;
  return all;
}

struct Registered {
  Registered(const char* name, Function function) { blocks().push_back({name, function}); }
};

}  // namespace readme

#define WYE_GIVEN                                                                \
  [[maybe_unused]] wye::Runtime *runtime, [[maybe_unused]] std::vector<float>&x, \
      [[maybe_unused]] std::vector<float>&y, [[maybe_unused]] const readme::Scale *scale
