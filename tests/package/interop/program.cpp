// clang-format off
#include <wye/interop/dlpack.hpp>
#include "dlpack.h"
// clang-format on

int dlpack_first();

int main() {
  auto runtime = wye::Runtime::open({.pool = {.backends = {"cpu"}}});
  if (!runtime) return 1;
  auto array = runtime->array<float>(10);
  auto tensor = wye::interop::to_dlpack(array, {.shape = {3, 3}});
  return tensor ? 2 : dlpack_first();
}
