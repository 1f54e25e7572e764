#pragma once
// Two threads that hand each other the turn through a futex: the least that waiting for another
// thread can cost.
#include <atomic>
#include <cstdint>
#include <thread>

namespace wye_bench {

class PingPong {
 public:
  PingPong();
  ~PingPong();
  PingPong(const PingPong&) = delete;
  /// Wakes the other thread, and sleeps until that one has answered: two hand-overs.
  void round_trip();

 private:
  void answer();
  std::atomic<std::uint32_t> turn_{0};  // 0: the turn of `round_trip`, 1: of the other thread
  std::thread other_;
};

/// Returns the median time of one hand-over, in seconds. Takes about 20 ms.
double handover_p50();

}  // namespace wye_bench
