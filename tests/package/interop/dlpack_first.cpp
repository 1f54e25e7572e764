// clang-format off
#include "dlpack.h"
#include <wye/interop/dlpack.hpp>
// clang-format on

int dlpack_first();
int dlpack_first() {
  auto runtime = wye::Runtime::open({.pool = {.backends = {"cpu"}}});
  if (!runtime) return 1;
  auto refused = wye::interop::from_dlpack<float>(*runtime, static_cast<DLManagedTensor*>(nullptr));
  return refused ? 1 : 0;
}
