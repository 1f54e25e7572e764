#include "ping_pong.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace wye_bench {
namespace {

constexpr std::uint32_t ended = 0x80000000u;

void sleep_while(std::atomic<std::uint32_t>& word, std::uint32_t value) {
  while (word.load() == value) syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}
void wake(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace

PingPong::PingPong() : other_([this] { answer(); }) {}

PingPong::~PingPong() {
  turn_ = ended;
  wake(turn_);
  other_.join();
}

void PingPong::round_trip() {
  turn_ = 1;
  wake(turn_);
  sleep_while(turn_, 1);
}

void PingPong::answer() {
  for (;;) {
    sleep_while(turn_, 0);
    if (turn_ == ended) return;
    turn_ = 0;
    wake(turn_);
  }
}

double handover_p50() {
  PingPong pair;
  for (int i = 0; i < 100; ++i) pair.round_trip();
  std::vector<double> times(2000);
  for (double& time : times) {
    const auto start = std::chrono::steady_clock::now();
    pair.round_trip();
    time = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / 2;
  }
  std::nth_element(times.begin(), times.begin() + 1000, times.end());
  return times[1000];
}

}  // namespace wye_bench
