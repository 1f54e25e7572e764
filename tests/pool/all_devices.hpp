#pragma once
/// A pool of real devices.
#include <wye/pool/context_pool.hpp>

#include <utility>

#include "support/device/test_kernels.hpp"

namespace wye::test {

/// Opens a pool of every device of this machine. Its CUDA device is the stand-in's.
inline ContextPool all_devices(PoolOptions options = {}) {
  options.cuda_driver = test::stand_in_cuda();
  return ContextPool::open(std::move(options)).value();
}

}  // namespace wye::test
