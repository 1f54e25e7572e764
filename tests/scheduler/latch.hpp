#pragma once
#include <atomic>
#include <chrono>
#include <span>
#include <thread>

#include "support/kernels.hpp"

namespace wye::test {

/// A kernel that blocks until it is opened.
struct Latch {
  std::atomic<int> entered{0};
  std::atomic<bool> open{false};
  Kernel<ReadWrite<float>> kernel = on_host("latch", [this](Range, std::span<float>) {
    ++entered;
    while (!open) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  void await() const {
    while (entered == 0) std::this_thread::yield();
  }
};

}  // namespace wye::test
