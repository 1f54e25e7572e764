#pragma once
#include <span>

#include "support/kernels.hpp"
#include "support/stop_point.hpp"

namespace wye::test {

/// A kernel that blocks until it is opened.
struct Latch : StopPoint {
  Latch() : StopPoint("the latch") {}
  Kernel<ReadWrite<float>> kernel = on_host("latch", [this](Range, std::span<float>) { pass(); });
};

}  // namespace wye::test
