#pragma once
/// A pool of real devices.
#include <wye/pool/context_pool.hpp>

#include <utility>

namespace wye::test {

/// Opens a pool of every device of this machine. Its CUDA device is the stand-in's.
inline ContextPool all_devices(PoolOptions options = {}) {
#ifdef WYE_STAND_IN_CUDA
  options.cuda_driver = WYE_STAND_IN_CUDA;
#endif
  return ContextPool::open(std::move(options)).value();
}

}  // namespace wye::test
