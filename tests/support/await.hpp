#pragma once
/// Waits for conditions that nothing signals, such as a metric.
#include <wye/base/clock.hpp>

#include <chrono>
#include <thread>

#include "support/catch.hpp"

namespace wye::test {

/// Returns whether a condition becomes true within a minute. It is polled: a condition that a
/// thread of the test makes true has a StopPoint.
template <class Condition>
bool becomes_true(Condition condition) {
  for (const Instant end = Clock::steady().now() + std::chrono::minutes(1); !condition();) {
    if (Clock::steady().now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

/// Waits until a condition becomes true. Fails the test if it does not.
template <class Condition>
void await(Condition condition) {
  REQUIRE(becomes_true(condition));
}

}  // namespace wye::test
